//! What an index can answer of a condition.
//!
//! Responsible for: taking conditions apart into what they demand of single columns, or of several at once, of one table.
//! Not responsible for: which of them are used together, by which index ([`super::access`]).
//! Invariant: rows outside of what a sarg says do not satisfy its condition. Rows inside do if the sarg is exact.

use base::Oid;
use base::work::Count as _;
use engine_api::IndexDesc;
use sql_functions::{AS_TIMESTAMP, AS_TIMESTAMPTZ, DAY, DAY_AFTER, DAY_BEFORE, Function, LikePrefix};
use sql_ir::expr::{Code, How, compare_op_of, comparison_of};
use sql_ir::{AnyAllSource, CastKind, CompareOp, Expr, Rel, RelKind, TableInfo};
use types::{Datum, oid};

use super::access::{Mask, rels_in};
use super::assume::Values;
use super::walk;

/// A condition that an index can answer, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Sarg<'e> {
    /// Number of the condition.
    pub conjunct: usize,
    /// Column of the table, or the number of an index's expression. Of several columns, the first.
    pub column: usize,
    pub kind: SargKind<'e>,
    /// It is one of several alternatives of its condition.
    pub is_part: bool,
}

/// The pairs of a comparison of rows.
type Pairs = [(Expr, Expr, &'static Function, &'static Function)];

#[derive(Clone, Debug)]
pub(super) enum SargKind<'e> {
    Compare(CompareOp, &'e Expr, Via),
    List(&'e [Expr]),
    Array(&'e Expr),
    /// Nothing: each value of a column that has so many is looked at.
    Any(f64),
    /// NULL, or a truth value.
    Is(Datum),
    NotNull,
    /// Texts that begin with this.
    Prefix(LikePrefix),
    /// Texts that begin as a pattern says which is known to say so when it is.
    PrefixOf(&'e Expr),
    /// A comparison of several columns, the column being the first of them, with the values of the other side.
    Row(RowEnd<'e>),
}

/// A row to which the values of several columns are compared.
#[derive(Clone, Debug)]
pub(super) struct RowEnd<'e> {
    /// As if the columns stood on the left.
    pub op: CompareOp,
    /// Columns with their values.
    pub pairs: Vec<(usize, &'e Expr)>,
    /// There are more that no index answers.
    pub is_cut: bool,
}

impl Sarg<'_> {
    /// It demands one value.
    pub fn is_equality(&self) -> bool {
        matches!(self.kind, SargKind::Compare(CompareOp::Eq, ..) | SargKind::Is(_))
    }

    /// It demands one of several values.
    pub fn is_list(&self) -> bool {
        matches!(self.kind, SargKind::List(_) | SargKind::Array(_))
    }

    /// It is an end of a range.
    pub fn is_end(&self, is_lower: bool) -> bool {
        use CompareOp::{Ge, Gt, Le, Lt};
        let ops = if is_lower { [Gt, Ge] } else { [Lt, Le] };
        match &self.kind {
            SargKind::Compare(op, ..) => ops.contains(op),
            SargKind::Row(row) => ops.contains(&row.op),
            _ => false,
        }
    }

    /// Whether the rows that an index leads to satisfy the condition, all of them.
    pub fn is_exact(&self) -> bool {
        !self.is_part && self.says_all()
    }

    /// Whether they satisfy it, or the part of it that this is.
    pub fn says_all(&self) -> bool {
        match &self.kind {
            SargKind::Compare(_, _, via) => via.is_exact(),
            SargKind::Prefix(prefix) => prefix.is_all,
            SargKind::Row(_) | SargKind::PrefixOf(_) | SargKind::Any(_) => false,
            SargKind::List(_) | SargKind::Array(_) | SargKind::Is(_) | SargKind::NotNull => true,
        }
    }
}

/// How the value of a comparison becomes one that the keys of a column are compared with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Via {
    /// As it is.
    Same,
    /// As what the comparison takes it for: the keys say what the comparison would.
    As(&'static Function),
    /// As the day of it: the comparison is tested, too.
    Day,
    /// As a lower end a day earlier and as an upper end a day later: the comparison is tested, too.
    Around(Oid),
}

impl Via {
    /// Between instants of different types: a column of one, a value of the other.
    fn of(op: CompareOp, column: Oid, value: Oid) -> Option<Via> {
        Some(match (column, value) {
            (oid::TIMESTAMPTZ, oid::DATE | oid::TIMESTAMP) => Via::As(&AS_TIMESTAMPTZ),
            (oid::TIMESTAMP, oid::DATE) => Via::As(&AS_TIMESTAMP),
            (oid::DATE, oid::TIMESTAMP) => Via::Day,
            (oid::DATE | oid::TIMESTAMP, oid::TIMESTAMPTZ) if op != CompareOp::Eq => Via::Around(column),
            _ => return None,
        })
    }

    /// Whether the keys found are those of rows that satisfy the comparison, and of no others.
    pub fn is_exact(self) -> bool {
        matches!(self, Via::Same | Via::As(_))
    }

    /// The value to look for.
    pub fn applied(self, value: Code, op: CompareOp) -> Code {
        let call = |function, args| Code::Call { function, args };
        match self {
            Via::Same => value,
            Via::As(function) => call(function, Box::new([value])),
            Via::Day => call(&DAY, Box::new([value])),
            Via::Around(column) => {
                let like = if column == oid::DATE { Datum::Date(0) } else { Datum::Timestamp(0) };
                let is_lower = matches!(op, CompareOp::Gt | CompareOp::Ge);
                let function = if is_lower { &DAY_BEFORE } else { &DAY_AFTER };
                call(function, Box::new([value, Code::Const(like)]))
            }
        }
    }
}

/// The first number of what stands for the expressions that indexes are over, as if they were columns.
const COMPUTED: usize = 1 << 16;

/// A table as conditions are about it: a rel of the level, and the expressions of its indexes over that rel, each with its
/// number.
#[derive(Clone, Debug)]
pub(super) struct Of<'o> {
    pub rel: usize,
    pub computed: Vec<(usize, Expr)>,
    /// The indexes that there are, and what is known of parameters.
    pub with: Option<(&'o TableInfo, &'o Values<'o>)>,
}

impl<'o> Of<'o> {
    pub fn new(rel: usize, info: &'o TableInfo, values: Option<&'o Values<'o>>) -> Of<'o> {
        let mut computed = Vec::new();
        for number in 0..info.indexes.len() {
            let Some(Some(code)) = info.code(number) else { continue };
            for (at, expression) in code.expressions.iter().enumerate() {
                computed.push((computed_column(number, at), over_rel(expression, rel)));
            }
        }
        Of { rel, computed, with: values.map(|values| (info, values)) }
    }
}

/// The rel and the number of an index's expression that an expression is.
pub(super) fn indexed(rels: &[Rel], expr: &Expr) -> Option<(usize, usize)> {
    let mut of = None;
    walk::columns_of(expr, &mut |c| _ = of.get_or_insert(c.rel));
    let rel = of?;
    let RelKind::Table(info) = &rels.get(rel)?.kind else { return None };
    let found = Of::new(rel, info, None).computed.into_iter().find(|(_, e)| sql_bind::equal::same(e, expr));
    found.map(|(number, _)| (rel, number))
}

/// The number of an index's expression.
fn computed_column(index: usize, expression: usize) -> usize {
    COMPUTED + index * 64 + expression
}

/// An expression over rel 0 as one over another rel.
pub(super) fn over_rel(expr: &Expr, rel: usize) -> Expr {
    let mut expr = expr.clone();
    sql_bind::visit::walk_mut(&mut expr, 0, &mut |e, depth| {
        if let Expr::Column(c) = e
            && c.level == depth
        {
            c.rel = rel;
        }
    });
    expr
}

/// What stands for a key of an index: its column, or the number of its expression.
pub(super) fn key_number(number: usize, index: &IndexDesc, at: usize) -> usize {
    match index.keys[at].column {
        0 => computed_column(number, index.keys[..at].iter().filter(|k| k.column == 0).count()),
        column => (column - 1) as usize,
    }
}

fn column_of(expr: &Expr, of: &Of<'_>) -> Option<(usize, Oid)> {
    match expr {
        Expr::Column(c) if c.level == 0 && c.rel == of.rel => return Some((c.column, c.ty.oid)),
        Expr::Const(..) | Expr::Param(..) | Expr::Column(_) => return None,
        _ => {}
    }
    if let Some((number, _)) = of.computed.iter().find(|(_, e)| sql_bind::equal::same(e, expr)) {
        return Some((*number, expr.ty().oid));
    }
    match expr {
        Expr::Cast { arg, kind: CastKind::Relabel, .. } => column_of(arg, of),
        _ => None,
    }
}

/// Whether the keys of a column of type `column` are in the order of a comparison, whose other side has type `other`.
fn fits(how: How, column: Oid, other: Oid) -> bool {
    let integer = |ty| matches!(ty, oid::INT2 | oid::INT4 | oid::INT8);
    match how {
        How::Int => integer(column) && integer(other),
        How::Order(oid::TEXT) => matches!(column, oid::TEXT | oid::VARCHAR | oid::NAME),
        // The keys of a `real` are shorter than those of what it is compared with.
        How::Order(oid::FLOAT8) => column == oid::FLOAT8 && other != oid::FLOAT4,
        How::Order(oid::ANYENUM) => column == other && types::user::is_enum(column),
        How::Order(ty) => ty == column,
        How::Function(_) => false,
    }
}

/// Whether an expression has a value before rows of `rel` are read, when those of `available` have been.
pub(super) fn known(expr: &Expr, rel: usize, available: Mask) -> bool {
    if matches!(expr, Expr::Const(..) | Expr::Param(..)) {
        return true;
    }
    let mask = rels_in(expr);
    mask & !available == 0 && mask & (1 << rel) == 0 && !walk::is_volatile(expr)
}

/// A comparison of a column with a known value: column, operator, value, and how the value is looked for.
pub(super) fn compared<'e>(expr: &'e Expr, of: &Of<'_>, available: Mask) -> Option<(usize, CompareOp, &'e Expr, Via)> {
    let rel = of.rel;
    let Expr::Call { function, args, .. } = expr else { return None };
    let [left, right] = args.as_slice() else { return None };
    let test = comparison_of(function);
    let by_call = matches!(test.how, How::Function(_));
    let op = if by_call { compare_op_of(function)? } else { test.op };
    if op == CompareOp::Ne {
        return None;
    }
    let via = |op, column, value| match by_call {
        true => Via::of(op, column, value),
        false => fits(test.how, column, value).then_some(Via::Same),
    };
    for (column, op, value) in [(left, op, right), (right, op.flipped(), left)] {
        if let Some((column, ty)) = column_of(column, of)
            && let Some(via) = via(op, ty, value.ty().oid)
            && known(value, rel, available)
        {
            return Some((column, op, value, via));
        }
    }
    None
}

/// What a condition demands of a table.
pub(super) fn sarg<'e>(expr: &'e Expr, conjunct: usize, of: &Of<'_>, available: Mask) -> Option<Sarg<'e>> {
    let rel = of.rel;
    let found = |column, kind| Some(Sarg { conjunct, column, kind, is_part: false });
    let truth = |expr: &Expr, value: bool| {
        let (column, ty) = column_of(expr, of)?;
        (ty == oid::BOOL).then_some(()).and_then(|()| found(column, SargKind::Is(Datum::Bool(value))))
    };
    match expr {
        Expr::Call { .. } => {
            if let Some((column, kind)) = prefixed(expr, of) {
                return found(column, kind);
            }
            match compared(expr, of, available) {
                Some((column, op, value, via)) => found(column, SargKind::Compare(op, value, via)),
                None => truth(expr, true),
            }
        }
        Expr::AnyAll { all: false, function, left, right } => {
            let test = comparison_of(function);
            let (column, ty) = column_of(left, of)?;
            if test.op != CompareOp::Eq {
                return None;
            }
            match right {
                AnyAllSource::List(items)
                    if items.iter().all(|i| fits(test.how, ty, i.ty().oid) && known(i, rel, available)) =>
                {
                    found(column, SargKind::List(items))
                }
                AnyAllSource::Array(array)
                    if known(array, rel, available)
                        && types::oid::element_of(array.ty().oid).is_some_and(|e| fits(test.how, ty, e)) =>
                {
                    found(column, SargKind::Array(array))
                }
                _ => None,
            }
        }
        Expr::IsNull { arg, negated, fields: false } => {
            let (column, _) = column_of(arg, of)?;
            found(column, if *negated { SargKind::NotNull } else { SargKind::Is(Datum::Null) })
        }
        Expr::RowCompare { op, pairs } => {
            let row = row_end(*op, pairs, of, available)?;
            found(row.pairs.first()?.0, SargKind::Row(row))
        }
        Expr::Not(arg) => truth(arg, false),
        Expr::BooleanTest { arg, want, negated: false } => truth(arg, (*want)?),
        other => truth(other, true),
    }
}

/// A comparison of rows whose one side is columns of the table, as far as it is.
fn row_end<'e>(op: CompareOp, pairs: &'e Pairs, of: &Of<'_>, available: Mask) -> Option<RowEnd<'e>> {
    let columns = |flip: bool| {
        let one = |(left, right, equal, _): &'e (Expr, Expr, &'static Function, &'static Function)| {
            let (column, value) = if flip { (right, left) } else { (left, right) };
            let (number, ty) = column_of(column, of)?;
            let fits = fits(comparison_of(equal).how, ty, value.ty().oid) && known(value, of.rel, available);
            fits.then_some((number, value))
        };
        pairs.iter().map_while(one).collect::<Vec<_>>()
    };
    let (left, right) = (columns(false), columns(true));
    let (op, found) = if left.is_empty() { (op.flipped(), right) } else { (op, left) };
    let is_cut = found.len() < pairs.len();
    (!found.is_empty()).then_some(RowEnd { op, pairs: found, is_cut })
}

/// What each alternative of a disjunction demands; `None` if one of them demands nothing.
pub(super) fn alternatives<'e>(
    any: &'e [Expr],
    conjunct: usize,
    of: &Of<'_>,
    available: Mask,
) -> Option<Vec<Vec<Sarg<'e>>>> {
    let mut each = Vec::with_capacity(any.len());
    for one in any.iter().counted(ALTERNATIVE) {
        let found = parts_of(one).iter().filter_map(|part| sarg(part, conjunct, of, available));
        let sargs: Vec<Sarg<'e>> = found.map(|sarg| Sarg { is_part: true, ..sarg }).collect();
        if sargs.is_empty() {
            return None;
        }
        each.push(sargs);
    }
    Some(each)
}

/// What an alternative demands, each by itself.
pub(super) fn parts_of(alternative: &Expr) -> &[Expr] {
    match alternative {
        Expr::And(all) => all,
        one => std::slice::from_ref(one),
    }
}

/// Units of work for one alternative.
const ALTERNATIVE: usize = 32;

/// `text LIKE text`.
const TEXTLIKE_OID: u32 = 850;

/// A text column that is to be LIKE a pattern that says how it begins: a constant, or a parameter that is known to.
fn prefixed<'e>(expr: &'e Expr, of: &Of<'_>) -> Option<(usize, SargKind<'e>)> {
    let Expr::Call { function, args, .. } = expr else { return None };
    let [left, pattern] = args.as_slice() else { return None };
    if function.oid != TEXTLIKE_OID {
        return None;
    }
    let (column, _) = column_of(left, of).filter(|(_, ty)| matches!(*ty, oid::TEXT | oid::VARCHAR))?;
    let param = match pattern {
        Expr::Const(Datum::Text(pattern), _) => return Some((column, SargKind::Prefix(LikePrefix::of(pattern)?))),
        Expr::Param(param, ty) if ty.oid == oid::TEXT => *param,
        _ => return None,
    };
    let (info, values) = of.with?;
    let is_key =
        |(number, index): (usize, &IndexDesc)| (0..index.keys.len()).any(|at| key_number(number, index, at) == column);
    // Only where an index has the column does it matter what the pattern is.
    let matters = info.indexes.iter().enumerate().any(is_key);
    (matters && values.is_prefix(param)).then_some((column, SargKind::PrefixOf(pattern)))
}
