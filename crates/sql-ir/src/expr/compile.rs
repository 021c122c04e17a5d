//! From bound expressions to [`Code`].

use std::sync::{Arc, LazyLock};

use base::{Oid, Result, work};
use rustc_hash::FxHashMap;
use sql_functions::{self as functions, Function};
use types::{Datum, oid};

use super::{ArithmeticOp, Code, Comparison, Constants, How, IntWidth, RowPair, Slot};
use crate::{AnyAllSource, CastKind, Column, CompareOp, Expr, Query, SubqueryKind};

/// Where the names of an expression are found. Implemented by the planner of a query.
pub trait Resolve {
    /// Slot of a column.
    fn column(&mut self, column: &Column) -> Result<Slot>;
    /// A whole row as a record.
    fn whole_row(&mut self, level: usize, rel: usize) -> Result<Code>;
    /// Slot of an aggregate's result.
    fn aggregate(&mut self, level: usize, index: usize) -> Result<Slot>;
    /// Slot of a parameter.
    fn param(&mut self, index: usize) -> Slot;
    /// Plans a subquery.
    fn subquery(&mut self, kind: &SubqueryKind, query: &Query) -> Result<Code>;
    /// A slot that already holds the value of this expression (a grouping expression above its aggregation).
    fn computed(&mut self, _expr: &Expr) -> Option<Slot> {
        None
    }
}

/// Compiles a list.
pub fn compile_all<'a>(exprs: impl IntoIterator<Item = &'a Expr>, names: &mut dyn Resolve) -> Result<Vec<Code>> {
    let exprs = exprs.into_iter();
    let mut codes = Vec::with_capacity(exprs.size_hint().0);
    for expr in exprs {
        codes.push(compile(expr, names)?);
    }
    Ok(codes)
}

fn boxed(exprs: &[Expr], names: &mut dyn Resolve) -> Result<Box<[Code]>> {
    Ok(compile_all(exprs, names)?.into())
}

fn constant(expr: &Expr) -> Option<&Datum> {
    match expr {
        Expr::Const(value, _) => Some(value),
        _ => None,
    }
}

fn pair(args: &[Expr; 2], names: &mut dyn Resolve) -> Result<Box<[Code; 2]>> {
    Ok(Box::new([compile(&args[0], names)?, compile(&args[1], names)?]))
}

/// Compiles an expression.
///
/// # Errors
/// Those of `names`.
pub fn compile(expr: &Expr, names: &mut dyn Resolve) -> Result<Code> {
    work::step(32)?;
    if let Some(slot) = names.computed(expr) {
        return Ok(Code::Slot(slot));
    }
    Ok(match expr {
        Expr::Const(value, _) => Code::Const(value.clone()),
        Expr::Param(index, _) => Code::Slot(names.param(*index)),
        Expr::Column(column) => Code::Slot(names.column(column)?),
        Expr::WholeRow { level, rel } => names.whole_row(*level, *rel)?,
        Expr::Agg { level, index, .. } => Code::Slot(names.aggregate(*level, *index)?),
        Expr::Call { function, args, .. } if function.oid == functions::ELEMENTS_OID => match args.as_slice() {
            [Expr::Const(Datum::Int4(depth), _), array, test] => Code::Elements {
                depth: *depth as usize,
                array: Box::new(compile(array, names)?),
                test: Box::new(compile(test, names)?),
            },
            _ => return Err(base::Error::internal("a test of elements without its parts")),
        },
        Expr::Call { function, args, .. } => {
            let args = boxed(args, names)?;
            // It will never be called, whatever its other arguments are, and even if they fail.
            if function.strict && args.iter().any(|arg| matches!(arg, Code::Const(Datum::Null))) {
                return Ok(Code::Const(Datum::Null));
            }
            match functions::question(function.oid) {
                Some(question) => {
                    let is_bigint = function.ret == oid::INT8 || function.args == [oid::INT8];
                    Code::Transaction { question, args, is_bigint }
                }
                None => call(function, args),
            }
        }
        Expr::Cast { arg, ty, kind, explicit, .. } => {
            let from = arg.ty().oid;
            let code = compile(arg, names)?;
            if matches!(kind, CastKind::Relabel | CastKind::Collate(_) | CastKind::Called) && ty.oid != oid::INET {
                return Ok(code);
            }
            Code::Cast { arg: Box::new(code), from, to: ty.oid, typmod: ty.typmod, kind: *kind, explicit: *explicit }
        }
        Expr::And(args) => Code::And(boxed(args, names)?),
        Expr::Or(any) => alternatives(any, names)?,
        Expr::Not(arg) => Code::Not(Box::new(compile(arg, names)?)),
        Expr::IsNull { arg, negated, fields: false } if arg.ty().oid == oid::RECORD => {
            // What is distinct from NULL is there; no two rows are ever compared.
            let equal = Comparison { op: CompareOp::Eq, how: How::Order(oid::RECORD) };
            let args = Box::new([compile(arg, names)?, Code::Const(Datum::Null)]);
            Code::Distinct { equal, args, negated: !*negated }
        }
        Expr::IsNull { arg, negated, .. } => Code::IsNull(Box::new(compile(arg, names)?), *negated),
        Expr::BooleanTest { arg, want, negated } => {
            Code::BooleanTest { arg: Box::new(compile(arg, names)?), want: *want, negated: *negated }
        }
        Expr::Distinct { equal, args, negated } => {
            Code::Distinct { equal: comparison_of(equal), args: pair(args, names)?, negated: *negated }
        }
        Expr::Case { branches, otherwise, .. } => Code::Case {
            branches: branches
                .iter()
                .map(|(condition, result)| Ok((compile(condition, names)?, compile(result, names)?)))
                .collect::<Result<_>>()?,
            otherwise: match otherwise {
                Some(expr) => Some(Box::new(compile(expr, names)?)),
                None => None,
            },
        },
        Expr::Coalesce(args, _) => Code::Coalesce(boxed(args, names)?),
        Expr::NullIf { equal, args, .. } => Code::NullIf(comparison_of(equal), pair(args, names)?),
        Expr::MinMax { greatest, args, ty } => {
            Code::MinMax { greatest: *greatest, ty: ty.oid, args: boxed(args, names)? }
        }
        Expr::AnyAll { all, function, left, right } => {
            let (all, test) = (*all, comparison_of(function));
            let left = Box::new(compile(left, names)?);
            let constants = match right {
                AnyAllSource::List(items) => Constants::of(all, &test, items.iter().map(constant)),
                AnyAllSource::Array(array) => match constant(array) {
                    Some(Datum::Array(array)) => Constants::of(all, &test, array.values.iter().map(Some)),
                    _ => None,
                },
            };
            match (constants, right) {
                (Some(constants), _) => Code::AnyAllConstants { all, left, constants: Arc::new(constants) },
                (None, AnyAllSource::List(items)) => {
                    let fixed = items.iter().all(is_parameter);
                    Code::AnyAllList { all, test, left, items: boxed(items, names)?, fixed }
                }
                (None, AnyAllSource::Array(array)) => {
                    let fixed = is_parameter(array);
                    Code::AnyAllArray { all, test, left, array: Box::new(compile(array, names)?), fixed }
                }
            }
        }
        Expr::Row(args, _) => {
            let types = args.iter().map(|arg| type_of_field(arg.ty().oid)).collect();
            Code::Row { fields: boxed(args, names)?, types }
        }
        Expr::RowCompare { op, pairs } => Code::RowCompare {
            op: *op,
            pairs: pairs
                .iter()
                .map(|(left, right, equal, less)| {
                    Ok(RowPair {
                        left: compile(left, names)?,
                        right: compile(right, names)?,
                        equal: comparison_of(equal),
                        less: comparison_of(less),
                    })
                })
                .collect::<Result<_>>()?,
        },
        Expr::Array { elements, element, nested, .. } => {
            Code::Array { elements: boxed(elements, names)?, element: *element, nested: *nested }
        }
        Expr::Subscript { array, indexes, .. } => {
            Code::Subscript { array: Box::new(compile(array, names)?), indexes: boxed(indexes, names)? }
        }
        Expr::Subquery { kind, query, .. } => names.subquery(kind, query)?,
        Expr::Default => return Err(base::Error::internal("DEFAULT outside of INSERT and UPDATE")),
    })
}

/// One of several alternatives. If each of many wants a value of the same column, the column is looked for in the list of these values first: of
/// most rows no alternative is looked at.
fn alternatives(any: &[Expr], names: &mut dyn Resolve) -> Result<Code> {
    let mut lists = Vec::new();
    if any.len() >= Constants::MANY {
        for (column, function, first) in equalities(&any[0]) {
            let value_of = |of: &'_ Expr| {
                let mut found = equalities(of).filter(|(c, f, _)| is_column(c, column) && f.oid == function.oid);
                Some(found.next()?.2.clone())
            };
            work::step(8 * any.len())?;
            let Some(items) = any.iter().map(value_of).collect::<Option<Vec<Expr>>>() else { continue };
            if !items.iter().all(|item| is_same(item, first)) {
                let (left, right) = (Box::new(Expr::Column(*column)), AnyAllSource::List(items));
                lists.push(compile(&Expr::AnyAll { all: false, function, left, right }, names)?);
            }
        }
    }
    if let ([_], true) = (&lists[..], any.iter().all(|of| !matches!(of, Expr::And(_)))) {
        // There is nothing else in them.
        return lists.pop().ok_or_else(|| base::Error::internal("a list that is not there"));
    }
    let any = Code::Or(boxed(any, names)?);
    if lists.is_empty() {
        return Ok(any);
    }
    lists.push(any);
    Ok(Code::And(lists.into()))
}

/// The equalities of columns with values, which are the same for all rows, that must hold for a condition to hold.
fn equalities(condition: &Expr) -> impl Iterator<Item = (&Column, &'static Function, &Expr)> {
    let all = match condition {
        Expr::And(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    all.iter().filter_map(|one| {
        let Expr::Call { function, args, .. } = one else { return None };
        let [Expr::Column(column), value] = &args[..] else { return None };
        let test = comparison_of(function);
        let is_equality = test.op == CompareOp::Eq && !matches!(test.how, How::Function(_));
        (is_equality && is_parameter(value)).then_some((column, *function, value))
    })
}

/// Whether two values are known to be the same.
fn is_same(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Const(one, _), Expr::Const(other, _)) => one == other,
        (Expr::Param(one, _), Expr::Param(other, _)) => one == other,
        _ => false,
    }
}

fn is_column(one: &Column, other: &Column) -> bool {
    (one.level, one.rel, one.column) == (other.level, other.rel, other.column)
}

/// Whether an expression is a constant or a parameter, in whatever type.
fn is_parameter(expr: &Expr) -> bool {
    match expr {
        Expr::Const(..) | Expr::Param(..) => true,
        Expr::Cast { arg, .. } => is_parameter(arg),
        _ => false,
    }
}

fn width_of(ty: Oid) -> Option<IntWidth> {
    Some(match ty {
        oid::INT2 => IntWidth::Two,
        oid::INT4 => IntWidth::Four,
        oid::INT8 => IntWidth::Eight,
        _ => return None,
    })
}

fn call(function: &'static Function, args: Box<[Code]>) -> Code {
    let args = match <Box<[Code; 2]>>::try_from(args) {
        Ok(args) => {
            let test = comparison_of(function);
            if !matches!(test.how, How::Function(_)) {
                return Code::Compare(test, args);
            }
            if let Some((op, width)) = integer_arithmetic(function) {
                return Code::Int { op, width, args };
            }
            if let Some(op) = numeric_arithmetic(function) {
                return Code::Numeric { op, args };
            }
            let [left, right] = *args;
            Box::new([left, right]) as Box<[Code]>
        }
        Err(args) => args,
    };
    let args = match <Box<[Code; 1]>>::try_from(args) {
        Ok(arg) => {
            let [arg] = *arg;
            if let Some(width) = integer_cast(function) {
                return Code::IntCast(width, Box::new(arg));
            }
            Box::new([arg]) as Box<[Code]>
        }
        Err(args) => args,
    };
    Code::Call { function, args }
}

/// `int4pl` and the like: +, - and * of integers.
fn integer_arithmetic(function: &Function) -> Option<(ArithmeticOp, IntWidth)> {
    let rest = function.name.strip_prefix("int")?;
    if function.args.len() != 2 || function.args.iter().any(|a| width_of(*a).is_none()) {
        return None;
    }
    let op = match rest.trim_start_matches(|c: char| c.is_ascii_digit()) {
        "pl" => ArithmeticOp::Add,
        "mi" => ArithmeticOp::Sub,
        "mul" => ArithmeticOp::Mul,
        _ => return None,
    };
    Some((op, width_of(function.ret)?))
}

/// `numeric_add` and the like: +, - and * of numeric.
fn numeric_arithmetic(function: &Function) -> Option<ArithmeticOp> {
    if function.args != [oid::NUMERIC; 2] {
        return None;
    }
    Some(match function.name {
        "numeric_add" => ArithmeticOp::Add,
        "numeric_sub" => ArithmeticOp::Sub,
        "numeric_mul" => ArithmeticOp::Mul,
        _ => return None,
    })
}

/// The casts between integer widths.
fn integer_cast(function: &Function) -> Option<IntWidth> {
    let [from] = function.args else { return None };
    width_of(*from)?;
    matches!(function.name, "int2" | "int4" | "int8").then(|| width_of(function.ret)).flatten()
}

/// The comparison operators' functions: (name, left, right) → which comparison.
static COMPARISONS: LazyLock<FxHashMap<(&'static str, Oid, Oid), CompareOp>> = LazyLock::new(|| {
    functions::all_operators().iter().filter_map(|o| Some(((o.function, o.left, o.right), o.compare?))).collect()
});

/// By a comparison's function: the function of the comparison that is true where it is false. Both are NULL for the same values.
static OPPOSITES: LazyLock<FxHashMap<u32, &'static Function>> = LazyLock::new(|| {
    let opposite = |op| match op {
        CompareOp::Eq => CompareOp::Ne,
        CompareOp::Ne => CompareOp::Eq,
        CompareOp::Lt => CompareOp::Ge,
        CompareOp::Le => CompareOp::Gt,
        CompareOp::Gt => CompareOp::Le,
        CompareOp::Ge => CompareOp::Lt,
    };
    let all = functions::all_operators();
    let pair = |o: &functions::Operator| {
        let wanted = opposite(o.compare?);
        let other = all.iter().find(|p| (p.left, p.right, p.compare) == (o.left, o.right, Some(wanted)))?;
        let function = |name| functions::function(name, &[o.left, o.right]);
        Some((function(o.function)?.oid, function(other.function)?))
    };
    all.iter().filter_map(pair).collect()
});

/// The comparison that is true where this one is false.
pub fn opposite_of(function: &Function) -> Option<&'static Function> {
    OPPOSITES.get(&function.oid).copied()
}

/// The comparison that a function is, whatever the types of its arguments.
pub fn compare_op_of(function: &Function) -> Option<CompareOp> {
    let [left, right] = function.args else { return None };
    COMPARISONS.get(&(function.name, *left, *right)).copied()
}

/// How the test of a boolean function of two arguments is done.
pub fn comparison_of(function: &'static Function) -> Comparison {
    let by_call = Comparison { op: CompareOp::Eq, how: How::Function(function) };
    let [left, right] = function.args else { return by_call };
    let Some(&op) = COMPARISONS.get(&(function.name, *left, *right)) else { return by_call };
    let how = match (left, right) {
        (l, r) if width_of(*l).is_some() && width_of(*r).is_some() => How::Int,
        (l, r) if l == r && ordered(*l) => How::Order(*l),
        (&oid::FLOAT4, &oid::FLOAT8) | (&oid::FLOAT8, &oid::FLOAT4) => How::Order(oid::FLOAT8),
        (&oid::NAME, &oid::TEXT) | (&oid::TEXT, &oid::NAME) => How::Order(oid::TEXT),
        _ => return by_call,
    };
    Comparison { op, how }
}

/// Types whose operators compare as [`types::compare_as`] does.
fn ordered(ty: Oid) -> bool {
    matches!(
        ty,
        oid::BOOL
            | oid::OID
            | oid::FLOAT4
            | oid::FLOAT8
            | oid::NUMERIC
            | oid::TEXT
            | oid::BPCHAR
            | oid::NAME
            | oid::BYTEA
            | oid::DATE
            | oid::TIME
            | oid::TIMETZ
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::INTERVAL
            | oid::UUID
            | oid::INET
            | oid::MACADDR
            | oid::MACADDR8
            | oid::BIT
            | oid::VARBIT
            | oid::TID
            | oid::XID8
            | oid::ANYENUM
    )
}

/// What a record says of a field whose expression is of a type.
pub fn type_of_field(ty: Oid) -> Oid {
    types::user::plain_type(ty, -1).0
}
