//! The access path of one table: which conditions an index answers, and in which order it does.

use base::work::Count as _;
use base::{Oid, Result, work};
use engine_api::{IndexDesc, IndexKey, RowContent};
use sql_functions::{AS_TIMESTAMP, AS_TIMESTAMPTZ, DAY, DAY_AFTER, DAY_BEFORE, Function};
use sql_ir::expr::{Code, How, compare_op_of, comparison_of};
use sql_ir::row_codec::RowReader;
use sql_ir::system_relation::{Key, SystemRelation};
use sql_ir::{AnyAllSource, CastKind, CompareOp, Expr, TableInfo};
use types::{Datum, oid};

use super::level::Level;
use super::methods::{PlanMethod, PlanMethods, sort_cost};
use super::node::{Access, Bound, KeyColumn, KeyPart, KeyReader, ListSource, Node, PlannedTable, ScanNode, Stage};
use super::places::Places;
use super::{explain, leak, selectivity, walk};

/// Rels of a level as a set.
pub(super) type Mask = u128;

/// A condition, and the rels of this level that it is about.
#[derive(Clone, Debug)]
pub(super) struct Conjunct {
    pub expr: Expr,
    pub mask: Mask,
    /// Already tested by a node.
    pub used: bool,
    /// Follows from others, which are tested: it helps to find rows, and between rels it is never tested itself.
    pub derived: bool,
    /// Hides rows of a table from the conditions behind it ([`leak`]).
    pub guard: bool,
    /// How many guards it must wait for: conditions that are tested together are in this order.
    pub after: usize,
}

impl Conjunct {
    pub fn new(expr: Expr) -> Conjunct {
        let mut mask = 0;
        walk::walk(&expr, 0, &mut |e, depth| match e {
            Expr::Column(c) if c.level == depth => mask |= 1 << c.rel,
            Expr::WholeRow { level, rel } if *level == depth => mask |= 1 << rel,
            _ => {}
        });
        Conjunct { expr, mask, used: false, derived: false, guard: false, after: 0 }
    }
}

/// A condition that an index can answer.
#[derive(Clone, Debug)]
struct Sarg<'e> {
    conjunct: usize,
    /// Column of the table.
    column: usize,
    kind: SargKind<'e>,
}

#[derive(Clone, Debug)]
enum SargKind<'e> {
    Compare(CompareOp, &'e Expr, Via),
    List(&'e [Expr]),
    Array(&'e Expr),
    /// Any of several ranges.
    Ranges(Vec<Ends<'e>>),
    /// Texts that begin with this.
    Prefix(Prefix),
}

/// What a pattern demands of the beginning of a text.
#[derive(Clone, Debug, PartialEq)]
struct Prefix {
    /// The first text with this beginning.
    first: String,
    /// What is behind the last one; `None` if nothing is.
    behind: Option<String>,
    /// The pattern demands nothing else.
    is_all: bool,
}

impl Prefix {
    /// Of a pattern of LIKE; `None` if it does not say how a text begins.
    fn of(pattern: &str) -> Option<Prefix> {
        let (mut first, mut rest) = (String::new(), pattern.chars());
        let mut wildcard = None;
        while let Some(character) = rest.next() {
            match character {
                '%' | '_' => {
                    wildcard = Some(character);
                    break;
                }
                // A pattern that ends with the escape is an error, which the test tells of.
                '\\' => first.push(rest.next()?),
                other => first.push(other),
            }
        }
        let mut behind = first.clone();
        // Texts are in the order of their code points, as their bytes are.
        let behind = loop {
            let Some(last) = behind.pop() else { break None };
            let next = ((last as u32 + 1)..=0x10_ffff).find_map(char::from_u32);
            if let Some(next) = next {
                behind.push(next);
                break Some(behind);
            }
        };
        let is_all = wildcard == Some('%') && rest.all(|c| c == '%') && behind.is_some();
        (!first.is_empty()).then_some(Prefix { first, behind, is_all })
    }
}

/// How the value of a comparison becomes one that the keys of a column are compared with.
#[derive(Clone, Copy, Debug)]
enum Via {
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
    fn is_exact(self) -> bool {
        matches!(self, Via::Same | Via::As(_))
    }

    /// The value to look for.
    fn applied(self, value: Code, op: CompareOp) -> Code {
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

/// A range's ends: the value, and whether it belongs to the range.
type Ends<'e> = [Option<(&'e Expr, bool)>; 2];

/// An order that is wanted of a scan: (column, descending, nulls first).
pub(super) type WantedOrder = [(usize, bool, bool)];

/// A chosen access path, not compiled yet.
#[derive(Debug)]
pub(super) struct Path<'e> {
    /// A condition that says where the rows are.
    places: Option<(usize, Places<'e>)>,
    index: Option<(usize, Vec<Sarg<'e>>, Option<Sarg<'e>>, Option<Sarg<'e>>)>,
    pub rows: f64,
    pub cost: f64,
    reverse: bool,
    /// How many of the wanted columns, the first ones, the rows are in the order of. Some of them count under LIMIT only.
    pub ordered: usize,
}

/// The first number of what stands for the expressions that indexes are over, as if they were columns.
const COMPUTED: usize = 1 << 16;

/// A table as conditions are about it: a rel of the level, and the expressions of its indexes over that rel, each with its
/// number.
#[derive(Clone, Debug)]
struct Of {
    rel: usize,
    computed: Vec<(usize, Expr)>,
}

impl Of {
    fn new(rel: usize, info: &TableInfo) -> Of {
        let mut computed = Vec::new();
        for number in 0..info.indexes.len() {
            let Some(Some(code)) = info.code(number) else { continue };
            for (at, expression) in code.expressions.iter().enumerate() {
                computed.push((computed_column(number, at), over_rel(expression, rel)));
            }
        }
        Of { rel, computed }
    }
}

/// The number of an index's expression.
fn computed_column(index: usize, expression: usize) -> usize {
    COMPUTED + index * 64 + expression
}

/// An expression over rel 0 as one over another rel.
fn over_rel(expr: &Expr, rel: usize) -> Expr {
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

/// Whether an index has all rows that the conditions let through.
fn has_all(info: &TableInfo, number: usize, rel: usize, conjuncts: &[Conjunct]) -> bool {
    let Some(code) = info.code(number) else { return false };
    let Some(predicate) = code.and_then(|c| c.predicate.as_ref()) else { return true };
    let given: Vec<&Expr> = conjuncts.iter().filter(|c| !c.used && c.mask == 1 << rel).map(|c| &c.expr).collect();
    sql_bind::all_implied(&given, &over_rel(predicate, rel))
}

fn column_of(expr: &Expr, of: &Of) -> Option<(usize, Oid)> {
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

fn flipped(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        same => same,
    }
}

/// Whether the keys of a column of type `column` are in the order of a comparison, whose other side has type `other`.
fn fits(how: How, column: Oid, other: Oid) -> bool {
    let integer = |ty| matches!(ty, oid::INT2 | oid::INT4 | oid::INT8);
    match how {
        How::Int => integer(column) && integer(other),
        How::Order(oid::TEXT) => matches!(column, oid::TEXT | oid::VARCHAR),
        How::Order(ty) => ty == column,
        How::Function(_) => false,
    }
}

/// Whether an expression has a value before rows of `rel` are read, when those of `available` have been.
pub(super) fn known(expr: &Expr, rel: usize, available: Mask) -> bool {
    let conjunct = Conjunct::new(expr.clone());
    conjunct.mask & !available == 0 && conjunct.mask & (1 << rel) == 0 && !walk::is_volatile(expr)
}

/// A comparison of a column with a known value: column, operator, value, and how the value is looked for.
fn compared<'e>(expr: &'e Expr, of: &Of, available: Mask) -> Option<(usize, CompareOp, &'e Expr, Via)> {
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
    for (column, op, value) in [(left, op, right), (right, flipped(op), left)] {
        if let Some((column, ty)) = column_of(column, of)
            && let Some(via) = via(op, ty, value.ty().oid)
            && known(value, rel, available)
        {
            return Some((column, op, value, via));
        }
    }
    None
}

/// By what a relation of the catalog can be read when rows of `available` are there: its key, and the value.
pub(super) fn key_of_system<'e>(
    relation: &SystemRelation,
    rel: usize,
    conjuncts: &'e [Conjunct],
    available: Mask,
) -> Option<(&'static Key, &'e Expr)> {
    let of = Of { rel, computed: Vec::new() };
    let about = conjuncts.iter().filter(|c| !c.used && c.mask & (1 << rel) != 0);
    let keys = about.filter_map(|conjunct| {
        let (column, op, value, via) = compared(&conjunct.expr, &of, available)?;
        let key = (op == CompareOp::Eq && matches!(via, Via::Same)).then(|| relation.key(column)).flatten()?;
        Some((key, value))
    });
    keys.min_by(|a, b| a.0.rows.total_cmp(&b.0.rows))
}

fn sarg<'e>(conjunct: &'e Conjunct, number: usize, of: &Of, available: Mask) -> Option<Sarg<'e>> {
    let rel = of.rel;
    let found = |column, kind| Some(Sarg { conjunct: number, column, kind });
    match &conjunct.expr {
        Expr::Call { .. } => {
            if let Some((column, prefix)) = prefixed(&conjunct.expr, of) {
                return found(column, SargKind::Prefix(prefix));
            }
            let (column, op, value, via) = compared(&conjunct.expr, of, available)?;
            found(column, SargKind::Compare(op, value, via))
        }
        Expr::Or(any) => {
            let (column, ranges) = ranges(any, of, available)?;
            found(column, SargKind::Ranges(ranges))
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
        _ => None,
    }
}

/// A text column that is to be LIKE a constant pattern which says how it begins.
fn prefixed(expr: &Expr, of: &Of) -> Option<(usize, Prefix)> {
    let Expr::Call { function, args, .. } = expr else { return None };
    let [left, Expr::Const(Datum::Text(pattern), _)] = args.as_slice() else { return None };
    if function.oid != TEXTLIKE_OID {
        return None;
    }
    let (column, ty) = column_of(left, of)?;
    matches!(ty, oid::TEXT | oid::VARCHAR).then_some(())?;
    Some((column, Prefix::of(pattern)?))
}

/// The ranges of one column outside of which a disjunction is false or NULL.
fn ranges<'e>(any: &'e [Expr], table: &Of, available: Mask) -> Option<(usize, Vec<Ends<'e>>)> {
    let mut of = None;
    let mut ranges = Vec::with_capacity(any.len());
    for one in any {
        let all = match one {
            Expr::And(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut ends: Ends<'e> = [None, None];
        for comparison in all {
            let Some((column, op, value, Via::Same)) = compared(comparison, table, available) else { continue };
            if *of.get_or_insert(column) != column {
                continue;
            }
            let [lower, upper] = &mut ends;
            match op {
                CompareOp::Eq => ends = [Some((value, true)); 2],
                CompareOp::Gt | CompareOp::Ge => *lower = lower.or(Some((value, op == CompareOp::Ge))),
                CompareOp::Lt | CompareOp::Le => *upper = upper.or(Some((value, op == CompareOp::Le))),
                CompareOp::Ne => {}
            }
        }
        if ends.iter().all(Option::is_none) {
            return None;
        }
        ranges.push(ends);
    }
    of.map(|column| (column, ranges))
}

/// The best path to the rows of a table, given which other rels' rows are there.
pub(super) fn choose<'e>(
    level: &Level<'_>,
    rel: usize,
    info: &TableInfo,
    conjuncts: &'e [Conjunct],
    available: Mask,
    wanted: Option<(&WantedOrder, bool)>,
) -> Path<'e> {
    work::beat(16 * conjuncts.len());
    let total = level.rows[rel];
    let of = Of::new(rel, info);
    let sargs: Vec<Sarg<'e>> = conjuncts
        .iter()
        .enumerate()
        .filter(|(_, c)| !c.used && c.mask & (1 << rel) != 0 && leak::may_lead(c, rel, conjuncts))
        .filter_map(|(i, c)| sarg(c, i, &of, available))
        .collect();
    let testable = |c: &&Conjunct| !c.used && c.mask & (1 << rel) != 0 && c.mask & !(available | 1 << rel) == 0;
    // A condition between rels that follows from others halves nothing twice.
    let counted = |c: &&Conjunct| testable(c) && (!c.derived || c.mask == 1 << rel || available != 0);
    let rows = (total * selectivity::of_rel(level, rel, conjuncts.iter().filter(counted))).max(1.0);
    let table = OfTable { level, rel, conjuncts, total, rows, left: conjuncts.iter().filter(testable).count() as i32 };
    let methods = level.cx.methods;
    let cost = total + 1.0 + methods.cost(PlanMethod::SeqScan);
    let full = Path { places: None, index: None, rows, cost, reverse: false, ordered: 0 };
    let mut best = finish(full, wanted, &table, table.left);
    // A table that is small now may not be small for long, and an index of a small one costs next to nothing.
    let mut least = best.cost.max(INDEXED_MIN);
    for (number, index) in info.indexes.iter().enumerate().filter(|(n, _)| has_all(info, *n, rel, conjuncts)) {
        if let Some(path) = index_path(number, index, &sargs, &table, wanted)
            && path.cost < least
        {
            least = path.cost;
            best = path;
        }
    }
    if let Some(path) = places_path(&table, conjuncts, available, wanted)
        && path.cost < least
    {
        best = path;
    }
    best
}

/// The way to rows whose places are known.
fn places_path<'e>(
    table: &OfTable<'_, '_>,
    conjuncts: &'e [Conjunct],
    available: Mask,
    wanted: Option<(&WantedOrder, bool)>,
) -> Option<Path<'e>> {
    let (rel, rels) = (table.rel, table.level.rels);
    if rels[rel].columns.len() == rels[rel].system_start()? {
        return None;
    }
    let unused = conjuncts.iter().enumerate().filter(|(_, c)| !c.used && leak::may_lead(c, rel, conjuncts));
    let found = unused.filter_map(|(at, c)| Some((at, Places::of(c, rels, rel, available)?)));
    let places = found.min_by(|a, b| a.1.rows().total_cmp(&b.1.rows()))?;
    let (methods, rows) = (table.level.cx.methods, places.1.rows());
    let cost = 1.0 + rows + methods.cost(PlanMethod::TidScan);
    let rows = table.rows.min(rows).max(1.0);
    let path = Path { places: Some(places), index: None, rows, cost, reverse: false, ordered: 0 };
    Some(finish(path, wanted, table, table.left - 1))
}

/// `text LIKE text`.
const TEXTLIKE_OID: u32 = 850;

/// Rows up to which an index is always taken that leads to fewer of them.
const INDEXED_MIN: f64 = 1000.0;

/// A table whose paths are compared.
struct OfTable<'t, 'a> {
    level: &'t Level<'a>,
    rel: usize,
    conjuncts: &'t [Conjunct],
    /// Its rows.
    total: f64,
    /// Those that all conditions leave.
    rows: f64,
    /// How many conditions there are.
    left: i32,
}

impl OfTable<'_, '_> {
    /// Rows that an index leads to.
    fn visited(&self, index: &IndexDesc, prefix: &[Sarg<'_>], ends: [Option<&Sarg<'_>>; 2]) -> f64 {
        let (given, keys) = (prefix.len(), index.keys.len());
        let values = list_of(prefix).map(|(_, values)| values);
        let several = match prefix {
            [Sarg { kind: SargKind::Ranges(ranges), .. }] => Some(ranges),
            _ => None,
        };
        if given == keys && index.is_immediate() && several.is_none() {
            return values.unwrap_or(1.0);
        }
        if self.level.tables[self.rel].is_some() {
            let used = numbers(prefix, ends).map(|number| &self.conjuncts[number]);
            return self.total * selectivity::of_rel(self.level, self.rel, used);
        }
        // Without statistics: each column of a key divides the rows alike, and equal keys of an index that is not unique
        // are few.
        let mut rows = self.total.powf(1.0 - given as f64 / keys as f64);
        if given == keys {
            rows = self.total.min(selectivity::ROWS_PER_KEY);
        }
        rows *= values.unwrap_or(1.0);
        if let Some(ranges) = several {
            let closed = |ends: &Ends<'_>| ends.iter().all(Option::is_some);
            let share = |ends: &Ends<'_>| if closed(ends) { 0.005 } else { 0.2 };
            rows = ranges.iter().map(|ends| share(ends) * self.total).sum();
        }
        for _ in ends.into_iter().flatten() {
            rows *= 0.2;
        }
        rows
    }
}

/// Values of an array that is not known when the plan is made.
const ARRAY: f64 = 10.0;

/// The part of a prefix that has several values, and how many.
fn list_of(prefix: &[Sarg<'_>]) -> Option<(usize, f64)> {
    prefix.iter().enumerate().find_map(|(at, sarg)| match &sarg.kind {
        SargKind::List(items) => Some((at, items.len() as f64)),
        SargKind::Array(_) => Some((at, ARRAY)),
        SargKind::Compare(..) | SargKind::Ranges(_) | SargKind::Prefix(_) => None,
    })
}

/// The conditions of a path, each once: one may be both ends of a range.
fn numbers<'s>(prefix: &'s [Sarg<'_>], [lower, upper]: [Option<&'s Sarg<'_>>; 2]) -> impl Iterator<Item = usize> + 's {
    let upper = upper.filter(|upper| lower.is_none_or(|lower| lower.conjunct != upper.conjunct));
    prefix.iter().chain(lower).chain(upper).map(|sarg| sarg.conjunct)
}

/// Expected groups from which on rows are sorted group by group: of few groups the first may have most of the rows, and then reading
/// them through an index has no gain.
const GROUPS_MIN: f64 = 8.0;

/// Adds what it costs to sort, if a wanted order does not come by itself.
///
/// With LIMIT an ordered path ends early, the later the more conditions are left to test. So does one in the order of the first
/// columns, behind the last group of equal ones that is needed.
fn finish<'e>(
    mut path: Path<'e>,
    wanted: Option<(&WantedOrder, bool)>,
    table: &OfTable<'_, '_>,
    left: i32,
) -> Path<'e> {
    let Some((wanted, limited)) = wanted else { return path };
    let methods = table.level.cx.methods;
    let early = |cost: f64, least: f64| cost.min(20.0 + cost * (least + 0.05 * 4f64.powi(left.min(4))));
    if path.ordered == wanted.len() {
        if limited {
            path.cost = early(path.cost, 0.0);
        }
        return path;
    }
    let sorted = path.cost + sort_cost(path.rows, methods);
    if limited && path.ordered > 0 && !methods.is_off(PlanMethod::IncrementalSort) {
        let groups = selectivity::groups_by_columns(table.level, table.rel, &wanted[..path.ordered], path.rows);
        let by_group = early(path.cost, 1.0 / groups) + sort_cost(path.rows / groups, PlanMethods::default());
        if groups >= GROUPS_MIN && by_group < sorted {
            path.cost = by_group;
            return path;
        }
    }
    Path { cost: sorted, ordered: 0, reverse: false, ..path }
}

fn index_path<'e>(
    number: usize,
    index: &IndexDesc,
    sargs: &[Sarg<'e>],
    table: &OfTable<'_, '_>,
    wanted: Option<(&WantedOrder, bool)>,
) -> Option<Path<'e>> {
    let on = |at: usize| key_number(number, index, at);
    let mut prefix: Vec<Sarg<'e>> = Vec::new();
    let mut lists = 0;
    for key in 0..index.keys.len() {
        let equal =
            sargs.iter().find(|s| s.column == on(key) && matches!(s.kind, SargKind::Compare(CompareOp::Eq, ..)));
        let list =
            || sargs.iter().find(|s| s.column == on(key) && matches!(s.kind, SargKind::List(_) | SargKind::Array(_)));
        match equal {
            Some(sarg) => prefix.push(sarg.clone()),
            None if lists == 0 => match list() {
                Some(sarg) => {
                    lists += 1;
                    prefix.push(sarg.clone());
                }
                None => break,
            },
            None => break,
        }
    }
    let next = Some(prefix.len()).filter(|&at| at < index.keys.len());
    let bound = |ops: [CompareOp; 2]| {
        let next = next?;
        sargs
            .iter()
            .find(|s| s.column == on(next) && matches!(s.kind, SargKind::Compare(op, ..) if ops.contains(&op)))
            .cloned()
    };
    let (mut lower, mut upper) = (bound([CompareOp::Gt, CompareOp::Ge]), bound([CompareOp::Lt, CompareOp::Le]));
    if lower.is_none() && upper.is_none() {
        let is_next = |s: &&Sarg<'_>| next.is_some_and(|next| s.column == on(next));
        let begins = sargs.iter().filter(is_next).find(|s| matches!(s.kind, SargKind::Prefix(_)));
        (lower, upper) = (begins.cloned(), begins.cloned());
    }
    if prefix.is_empty() && lower.is_none() && upper.is_none() {
        let several = sargs.iter().find(|s| s.column == on(0) && matches!(s.kind, SargKind::Ranges(_)));
        prefix.extend(several.cloned());
    }
    let several = prefix.iter().any(|sarg| matches!(sarg.kind, SargKind::Ranges(_)));
    let (ordered, reverse) = match wanted {
        Some((wanted, _)) if !several => order_of((number, index), &prefix, wanted),
        _ => (0, false),
    };
    let leads = !prefix.is_empty() || lower.is_some() || upper.is_some();
    if !leads && ordered == 0 {
        return None;
    }
    let rows = table.visited(index, &prefix, [lower.as_ref(), upper.as_ref()]).max(1.0).min(table.total);
    let used = numbers(&prefix, [lower.as_ref(), upper.as_ref()]).count();
    let left = (table.left - used as i32).max(0);
    // A row through an index costs more than one of a full scan, and walking down the tree costs something too.
    let methods = table.level.cx.methods;
    let method = if several { PlanMethod::BitmapScan } else { PlanMethod::IndexScan };
    let cost = 2.0 * list_of(&prefix).map_or(1.0, |(_, values)| values) + rows * 1.5 + methods.cost(method);
    let path = Path {
        places: None,
        index: Some((number, prefix, lower, upper)),
        rows: table.rows.min(rows).max(1.0),
        cost,
        reverse,
        ordered,
    };
    let path = finish(path, wanted, table, left);
    // Without the order there is no reason to go this way.
    (leads || path.ordered > 0).then_some(path)
}

/// How many of the wanted columns, the first ones, an index gives the order of behind its equal prefix, and whether backwards. None
/// if these are the prefix's alone, in whose order all rows are. Of a part with several values there is a range for each, in order.
fn order_of((number, index): (usize, &IndexDesc), prefix: &[Sarg<'_>], wanted: &WantedOrder) -> (usize, bool) {
    let list = list_of(prefix).map(|(at, _)| at);
    let constant = |column: usize| prefix.iter().enumerate().any(|(at, s)| Some(at) != list && s.column == column);
    let keys =
        (list.unwrap_or(prefix.len())..index.keys.len()).map(|at| (key_number(number, index, at), &index.keys[at]));
    let mut keys = keys.filter(|(key_column, _)| !constant(*key_column));
    let mut reverse: Option<bool> = None;
    let mut ordered = 0;
    for &(column, descending, nulls_first) in wanted {
        if !constant(column) {
            let Some((_, key)) = keys.next().filter(|(key_column, _)| *key_column == column) else { break };
            let backwards = match (key.descending == descending, key.nulls_first == nulls_first) {
                (true, true) => false,
                (false, false) => true,
                _ => break,
            };
            if *reverse.get_or_insert(backwards) != backwards {
                break;
            }
        }
        ordered += 1;
    }
    match reverse {
        None if ordered < wanted.len() => (0, false),
        reverse => (ordered, reverse.unwrap_or(false)),
    }
}

/// A scan that was compiled.
pub(super) struct Scanned {
    pub node: Node,
    pub rows: f64,
    pub cost: f64,
    /// See [`Path::ordered`].
    pub ordered: usize,
}

/// Compiles a scan along a path. The conditions it tests are marked as used.
pub(super) fn scan(
    level: &mut Level<'_>,
    rel: usize,
    info: &std::sync::Arc<TableInfo>,
    conjuncts: &mut [Conjunct],
    available: Mask,
    path_wanted: Option<(&WantedOrder, bool)>,
) -> Result<Scanned> {
    let before = work::total();
    let snapshot: Vec<Conjunct> = conjuncts.iter().counted(32).cloned().collect();
    let scanned = scan_by(level, rel, info, (conjuncts, &snapshot), available, path_wanted);
    work::discard_made(snapshot, before);
    scanned
}

/// As [`scan`]; beside the conditions, those as they were.
fn scan_by(
    level: &mut Level<'_>,
    rel: usize,
    info: &std::sync::Arc<TableInfo>,
    (conjuncts, snapshot): (&mut [Conjunct], &[Conjunct]),
    available: Mask,
    path_wanted: Option<(&WantedOrder, bool)>,
) -> Result<Scanned> {
    let path = choose(level, rel, info, snapshot, available, path_wanted);
    let (rows, cost, ordered) = (path.rows, path.cost, path.ordered);
    let mut shown: Vec<&Expr> = Vec::new();
    let mut keys = None;
    let access = match path.index {
        None => match path.places {
            None => Access::Full,
            Some((conjunct, places)) => {
                conjuncts[conjunct].used = true;
                shown.push(&snapshot[conjunct].expr);
                Access::Places(places.compile(level)?)
            }
        },
        Some((number, prefix, lower, upper)) => {
            let index = &info.indexes[number];
            // Some ways lead to rows that the condition may still refuse.
            let is_exact = |sarg: &&Sarg<'_>| match sarg.kind {
                SargKind::Ranges(_) => false,
                SargKind::Compare(_, _, via) => via.is_exact(),
                SargKind::Prefix(ref prefix) => prefix.is_all,
                SargKind::List(_) | SargKind::Array(_) => true,
            };
            for sarg in prefix.iter().filter(is_exact) {
                conjuncts[sarg.conjunct].used = true;
            }
            // A range that is open at one end has the NULLs at that end, which must be tested away.
            let no_nulls = |sarg: &Sarg<'_>| info.desc.columns.get(sarg.column).is_some_and(|c| c.not_null);
            for sarg in lower.iter().chain(&upper).filter(is_exact) {
                if (lower.is_some() && upper.is_some()) || no_nulls(sarg) {
                    conjuncts[sarg.conjunct].used = true;
                }
            }
            let conditions = numbers(&prefix, [lower.as_ref(), upper.as_ref()]);
            shown.extend(conditions.map(|number| &snapshot[number].expr));
            let access = index_access(level, info, index, &prefix, lower.as_ref(), upper.as_ref(), path.reverse)?;
            keys = index_only(level, rel, info, index, &access);
            access
        }
    };
    let content = match &keys {
        Some(_) => RowContent::Key,
        // That the rows are there is all that matters of them.
        None if level.columns(rel).is_empty() && level.table_row_slot(rel).is_none() => RowContent::Nothing,
        None => RowContent::Tuple,
    };
    // Only EXPLAIN shows them, and they may be long.
    let (explains, rels) = (level.cx.explains, level.rels);
    let conditions = |exprs: &[&Expr]| if explains { explain::conditions(exprs, rels) } else { String::new() };
    let index_condition = conditions(&shown);
    let mut filter: Vec<Code> = Vec::new();
    let mut filter_exprs: Vec<&Expr> = Vec::new();
    for number in in_order(conjuncts) {
        let conjunct = &mut conjuncts[number];
        let testable = conjunct.mask & !(available | 1 << rel) == 0;
        if conjunct.derived && conjunct.mask != 1 << rel {
            continue;
        }
        if !conjunct.used && testable && (conjunct.mask & (1 << rel) != 0 || conjunct.mask == 0) {
            conjunct.used = true;
            filter.push(level.compile(&conjunct.expr)?);
            filter_exprs.push(&snapshot[number].expr);
        }
    }
    let filter_condition = conditions(&filter_exprs);
    let (reader, stages) = staged(level, rel, info, &filter)?;
    let node = ScanNode {
        table: PlannedTable::new(info),
        alias: level.rels[rel].alias.clone(),
        reader,
        keys,
        content,
        stages,
        access,
        filter,
        shown: (index_condition, filter_condition),
    };
    Ok(Scanned { node: Node::Scan(std::sync::Arc::new(node)), rows, cost, ordered })
}

/// The numbers of conditions in the order in which they are tested: as they are written, but for those that wait for guards.
pub(super) fn in_order(conjuncts: &[Conjunct]) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..conjuncts.len()).collect();
    if conjuncts.iter().any(|c| c.after > 0) {
        numbers.sort_by_key(|number| conjuncts[*number].after);
    }
    numbers
}

/// The reader of a scan that needs only what the keys of its index say. A row that may be locked or changed is read itself, and so
/// is one that is looked up by its whole key: there is nothing to gain.
fn index_only(
    level: &Level<'_>,
    rel: usize,
    info: &TableInfo,
    index: &IndexDesc,
    access: &Access,
) -> Option<KeyReader> {
    let scans = matches!(access, Access::Range { .. } | Access::Ranges { .. });
    if !scans || level.cx.methods.is_off(PlanMethod::IndexOnlyScan) || level.table_row_slot(rel).is_some() {
        return None;
    }
    KeyReader::new(index, level.columns(rel), |at| key_column(info, index, at))
}

/// A reader of a table's used columns that has first what the first condition needs, then what the second one does, and so on.
/// Answers also what each needs.
fn staged(level: &Level<'_>, rel: usize, info: &TableInfo, filter: &[Code]) -> Result<(RowReader, Box<[Stage]>)> {
    let mut left = level.columns(rel).to_vec();
    let mut ordered = Vec::with_capacity(left.len());
    let mut stages = Vec::with_capacity(filter.len());
    for condition in filter {
        let (mut slots, mut all) = (Vec::new(), false);
        condition.visit(&mut |code| match code {
            Code::Slot(slot) => slots.push(*slot),
            // What a subquery takes from the row is not told here.
            Code::Subquery { .. } => all = true,
            _ => {}
        });
        left.retain(|column| {
            let needed = all || slots.contains(&column.1);
            ordered.extend(needed.then_some(*column));
            !needed
        });
        let stored = match condition {
            Code::Compare(test, args) if test.takes_stored() => match (&args[0], &args[1]) {
                (Code::Slot(slot), Code::Const(_)) => Some(slot),
                (Code::Slot(slot), Code::Slot(value)) if !ordered.iter().any(|(_, to)| to == value) => Some(slot),
                _ => None,
            },
            _ => None,
        };
        let column = stored.and_then(|slot| ordered.iter().position(|(_, to)| to == slot));
        stages.push(column.map_or(Stage::Columns(ordered.len()), Stage::Stored));
    }
    ordered.append(&mut left);
    Ok((RowReader::new(info, &ordered, level.table_row_slot(rel))?, stages.into()))
}

fn key_column(info: &TableInfo, index: &IndexDesc, at: usize) -> KeyColumn {
    let key: &IndexKey = &index.keys[at];
    let ty = match index.expression(at) {
        Some(expression) => expression.type_oid,
        None => info.desc.columns[(key.column - 1) as usize].type_oid,
    };
    let ty = types::user::plain_type(ty, -1).0;
    KeyColumn { ty, descending: key.descending, nulls_first: key.nulls_first }
}

fn index_access(
    level: &mut Level<'_>,
    info: &TableInfo,
    index: &IndexDesc,
    prefix: &[Sarg<'_>],
    lower: Option<&Sarg<'_>>,
    upper: Option<&Sarg<'_>>,
    reverse: bool,
) -> Result<Access> {
    if let [Sarg { kind: SargKind::Ranges(several), .. }] = prefix {
        let mut ranges = Vec::with_capacity(several.len());
        for ends in several {
            let mut bounds = [None, None];
            for (bound, end) in bounds.iter_mut().zip(ends) {
                if let &Some((value, inclusive)) = end {
                    *bound = Some(Bound { value: level.compile(value)?, inclusive });
                }
            }
            ranges.push(bounds);
        }
        return Ok(Access::Ranges { index: index.oid, column: key_column(info, index, 0), ranges });
    }
    let mut parts = Vec::with_capacity(prefix.len());
    let mut list = None;
    for (at, sarg) in prefix.iter().take(index.keys.len()).enumerate() {
        let value = match &sarg.kind {
            &SargKind::Compare(op, value, via) => via.applied(level.compile(value)?, op),
            SargKind::List(items) => {
                list = Some((at, ListSource::List(level.compile_all(*items)?)));
                Code::Const(types::Datum::Null)
            }
            SargKind::Array(array) => {
                list = Some((at, ListSource::Array(level.compile(array)?)));
                Code::Const(types::Datum::Null)
            }
            SargKind::Ranges(_) | SargKind::Prefix(_) => return Err(base::Error::internal("ranges inside a key")),
        };
        parts.push(KeyPart { column: key_column(info, index, at), value });
    }
    let list = match list {
        Some((list, values)) if parts.len() == index.keys.len() && !reverse => {
            return Ok(Access::Multi { index: index.oid, key: parts, list, values });
        }
        None if parts.len() == index.keys.len() && !reverse => {
            return Ok(Access::Point { index: index.oid, key: parts });
        }
        list => list,
    };
    let mut bound = |sarg: Option<&Sarg<'_>>, is_lower: bool| -> Result<Option<Bound>> {
        if let Some(Sarg { kind: SargKind::Prefix(prefix), .. }) = sarg {
            let end = if is_lower { Some(&prefix.first) } else { prefix.behind.as_ref() };
            let value = |text: &String| Code::Const(Datum::Text(text.as_str().into()));
            return Ok(end.map(|text| Bound { value: value(text), inclusive: is_lower }));
        }
        let Some(&Sarg { kind: SargKind::Compare(op, value, via), .. }) = sarg else { return Ok(None) };
        let inclusive = matches!(op, CompareOp::Ge | CompareOp::Le) || !via.is_exact();
        Ok(Some(Bound { value: via.applied(level.compile(value)?, op), inclusive }))
    };
    Ok(Access::Range {
        index: index.oid,
        next: (prefix.len() < index.keys.len()).then(|| key_column(info, index, prefix.len())),
        lower: bound(lower, true)?,
        upper: bound(upper, false)?,
        prefix: parts,
        list,
        reverse,
    })
}
