//! Functions of the types that statements make.

use std::cell::RefCell;

use base::{Error, Oid, Result, SqlState, work};
use types::oid::*;
use types::user::check_safe;
use types::{Array, Datum};

use super::entry::{argument_types, immutable, mismatch, stable, volatile};
use super::{EvalContext, Function};

/// The table.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    stable(9585, "domain value", &[ANY], ANYELEMENT, domain_value).lax().repeating(),
    volatile(9586, "domain hold", &[INT4, ANYELEMENT], ANYELEMENT, hold).lax(),
    volatile(9587, "domain held", &[INT4], ANYELEMENT, held),
    stable(ELEMENTS_OID, "domain elements", &[INT4, ANYARRAY, ANY], ANYARRAY, |_, _| Err(mismatch("domain"))).lax(),
    stable(9589, "domain within", &[ANY, ANYELEMENT], ANYELEMENT, |_, a| Ok(a[1].clone())).lax(),
    immutable(3508, "enum_eq", &[ANYENUM, ANYENUM], BOOL, |_, a| compare(a, |o| o.is_eq())),
    immutable(3509, "enum_ne", &[ANYENUM, ANYENUM], BOOL, |_, a| compare(a, |o| o.is_ne())),
    immutable(3510, "enum_lt", &[ANYENUM, ANYENUM], BOOL, |_, a| compare(a, |o| o.is_lt())),
    immutable(3511, "enum_gt", &[ANYENUM, ANYENUM], BOOL, |_, a| compare(a, |o| o.is_gt())),
    immutable(3512, "enum_le", &[ANYENUM, ANYENUM], BOOL, |_, a| compare(a, |o| o.is_le())),
    immutable(3513, "enum_ge", &[ANYENUM, ANYENUM], BOOL, |_, a| compare(a, |o| o.is_ge())),
    immutable(3524, "enum_smaller", &[ANYENUM, ANYENUM], ANYENUM, |_, a| Ok(pick(a, true))),
    immutable(3525, "enum_larger", &[ANYENUM, ANYENUM], ANYENUM, |_, a| Ok(pick(a, false))),
    stable(3528, "enum_first", &[ANYENUM], ANYENUM, |_, a| end(a, true)).lax().told_types(),
    stable(3529, "enum_last", &[ANYENUM], ANYENUM, |_, a| end(a, false)).lax().told_types(),
    stable(3530, "enum_range", &[ANYENUM, ANYENUM], ANYARRAY, range).lax().told_types(),
    stable(3531, "enum_range", &[ANYENUM], ANYARRAY, range).lax().told_types(),
];

/// The function that tests each element of an array: depth, array, and the test, which is about the value held at that depth. It is
/// compiled to a loop.
pub const ELEMENTS_OID: u32 = 9588;

thread_local! {
    /// Values that conditions of domains are about, by strand and by how deep the domains are in one another.
    static HELD: RefCell<Vec<Vec<Datum>>> = const { RefCell::new(Vec::new()) };
}

fn depth(arg: &Datum) -> Result<usize> {
    match arg {
        Datum::Int4(depth) => usize::try_from(*depth).map_err(|_| mismatch("domain")),
        _ => Err(mismatch("domain")),
    }
}

/// Keeps a value that is to be evaluated once, for the conditions that are evaluated after it in the same call.
fn hold(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [at, value] = args else { return Err(mismatch("domain")) };
    keep(depth(at)?, value);
    Ok(value.clone())
}

/// Keeps a value for what is evaluated next.
pub fn keep(depth: usize, value: &Datum) {
    let strand = work::strand();
    HELD.with_borrow_mut(|held| {
        if held.len() <= strand {
            held.resize(strand + 1, Vec::new());
        }
        let held = &mut held[strand];
        held.resize(depth + 1, Datum::Null);
        held[depth] = value.clone();
    });
}

fn held(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let at = depth(args.first().ok_or_else(|| mismatch("domain"))?)?;
    HELD.with_borrow(|held| held.get(work::strand())?.get(at).cloned()).ok_or_else(|| mismatch("domain"))
}

/// The value, the domain's schema and name, the name that is shown, whether NULL is refused, then name and outcome of each
/// condition.
fn domain_value(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [value, Datum::Text(schema), Datum::Text(name), Datum::Text(shown), Datum::Bool(not_null), checks @ ..] = args
    else {
        return Err(mismatch("domain"));
    };
    if *not_null && value.is_null() {
        let message = format!("domain {shown} does not allow null values");
        return Err(Error::new(SqlState::NOT_NULL_VIOLATION, message).schema(&**schema).data_type(&**name));
    }
    for check in checks.chunks_exact(2) {
        if let [Datum::Text(constraint), Datum::Bool(false)] = check {
            let message = format!("value for domain {shown} violates check constraint \"{constraint}\"");
            let error = Error::new(SqlState::CHECK_VIOLATION, message);
            return Err(error.schema(&**schema).data_type(&**name).constraint(&**constraint));
        }
    }
    Ok(value.clone())
}

fn order(args: &[Datum]) -> Option<std::cmp::Ordering> {
    match args {
        [Datum::Enum(ty, a), Datum::Enum(_, b)] => Some(types::place::compare(*ty, *a, *b)),
        _ => None,
    }
}

fn compare(args: &[Datum], test: fn(std::cmp::Ordering) -> bool) -> Result<Datum> {
    order(args).map(|o| Datum::Bool(test(o))).ok_or_else(|| mismatch("enum comparison"))
}

fn pick(args: &[Datum], smaller: bool) -> Datum {
    let first = order(args).is_none_or(|o| if smaller { o.is_le() } else { o.is_ge() });
    args.get(!first as usize).cloned().unwrap_or_default()
}

/// The enum that a call is about, with its labels' marks, and the arguments.
fn labels(args: &[Datum]) -> Result<(Oid, Vec<f32>, &[Datum])> {
    let (types, args) = argument_types(args);
    let ty = match types.and_then(|t| t.values.first()) {
        Some(Datum::Oid(ty)) => Oid(*ty),
        _ => return Err(mismatch("enum function")),
    };
    let marks = types::user::marks(ty).ok_or_else(|| mismatch("enum function"))?;
    Ok((ty, marks, args))
}

fn end(args: &[Datum], first: bool) -> Result<Datum> {
    let (ty, marks, _) = labels(args)?;
    let found = if first { marks.first() } else { marks.last() };
    let Some(&mark) = found else {
        let message = format!("enum {} contains no values", types::format_type(ty, -1));
        return Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    };
    check_safe(ty, mark).map(|()| Datum::Enum(ty, mark))
}

fn range(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (ty, marks, args) = labels(args)?;
    let bound = |at: usize| match (args.len(), args.get(at)) {
        (2, Some(Datum::Enum(_, mark))) => marks.iter().position(|m| m == mark),
        _ => None,
    };
    let (low, high) = (bound(0).unwrap_or(0), bound(1).map_or(marks.len(), |at| at + 1));
    let inside = marks.get(low..high).unwrap_or_default();
    inside.iter().try_for_each(|&mark| check_safe(ty, mark))?;
    let values: Vec<Datum> = inside.iter().map(|&mark| Datum::Enum(ty, mark)).collect();
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
    Ok(Datum::Array(Array { element: ty, dims, values }.into()))
}
