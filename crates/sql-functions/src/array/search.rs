//! Finding elements. NULL is found as if it were a value; containment never finds it.

use std::hash::Hasher;
use std::sync::Arc;

use base::work::Count;
use base::{Error, Oid, Result, SqlState};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use types::oid::INT4;
use types::{Array, Datum, compare_as};

use super::super::EvalContext;
use super::super::entry::mismatch;
use super::{array_at, list};

fn same(ty: Oid, a: &Datum, b: &Datum) -> bool {
    match (a.is_null(), b.is_null()) {
        (false, false) => compare_as(ty, &a.as_ref(), &b.as_ref()).is_eq(),
        (a, b) => a && b,
    }
}

#[cold]
fn multidimensional(what: &str) -> Error {
    Error::unsupported(format!("{what} multidimensional arrays is not supported"))
}

/// The array to search; `None` is NULL.
fn searched(args: &[Datum]) -> Result<Option<&Array>> {
    match args.first() {
        Some(Datum::Null) => Ok(None),
        Some(Datum::Array(array)) if array.dims.len() > 1 => Err(multidimensional("searching for elements in")),
        Some(Datum::Array(array)) => Ok(Some(array)),
        _ => Err(mismatch("array_position")),
    }
}

/// The subscripts of elements that equal the second argument.
fn hits<'a>(array: &'a Array, value: &'a Datum) -> impl Iterator<Item = i32> + 'a {
    let lower = array.dims.first().map_or(1, |d| d.1);
    let found = array.values.iter().counted(4).enumerate().filter(move |(_, v)| same(array.element, v, value));
    found.map(move |(i, _)| lower + i as i32)
}

pub(super) fn array_position(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let Some(array) = searched(args)? else { return Ok(Datum::Null) };
    let start = match args.get(2) {
        None => i32::MIN,
        Some(Datum::Int4(n)) => *n,
        _ => return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, "initial position must not be null")),
    };
    let value = args.get(1).ok_or_else(|| mismatch("array_position"))?;
    Ok(hits(array, value).find(|&at| at >= start).into())
}

pub(super) fn array_positions(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let Some(array) = searched(args)? else { return Ok(Datum::Null) };
    let value = args.get(1).ok_or_else(|| mismatch("array_positions"))?;
    Ok(list(INT4, hits(array, value).map(Datum::Int4).collect()))
}

pub(super) fn array_remove(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (array, value) = match args {
        [Datum::Null, _] => return Ok(Datum::Null),
        [Datum::Array(array), value] => (array, value),
        _ => return Err(mismatch("array_remove")),
    };
    if array.dims.len() > 1 {
        return Err(multidimensional("removing elements from"));
    }
    let values: Vec<Datum> =
        array.values.iter().counted(8).filter(|v| !same(array.element, v, value)).cloned().collect();
    if values.len() == array.values.len() {
        return Ok(args[0].clone());
    }
    if values.is_empty() {
        return Ok(list(array.element, values));
    }
    let dims = vec![(values.len() as i32, array.dims[0].1)];
    Ok(Datum::Array(Arc::new(Array { element: array.element, dims, values })))
}

pub(super) fn array_replace(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (array, from, to) = match args {
        [Datum::Null, ..] => return Ok(Datum::Null),
        [Datum::Array(array), from, to] => (array, from, to),
        _ => return Err(mismatch("array_replace")),
    };
    let replace = |v: &Datum| if same(array.element, v, from) { to.clone() } else { v.clone() };
    let values = array.values.iter().counted(8).map(replace).collect();
    Ok(Datum::Array(Arc::new(Array { element: array.element, dims: array.dims.clone(), values })))
}

/// Elements times elements that are compared one with one another; more are found by their hashes.
const ONE_BY_ONE: usize = 256;

/// The elements of an array that are not NULL, to be found.
enum Elements<'a> {
    List(&'a Array),
    /// By hash, the elements of the same one.
    Hashed(Oid, FxHashMap<u64, SmallVec<[&'a Datum; 1]>>),
}

fn hash(ty: Oid, value: &Datum) -> u64 {
    let mut hasher = FxHasher::default();
    types::hash_as(ty, &value.as_ref(), &mut hasher);
    hasher.finish()
}

impl Elements<'_> {
    /// Those of an array in which so many values are looked for.
    fn of(array: &Array, wanted: usize) -> Elements<'_> {
        if array.values.len().saturating_mul(wanted) <= ONE_BY_ONE {
            return Elements::List(array);
        }
        let mut table: FxHashMap<u64, SmallVec<[&Datum; 1]>> = FxHashMap::default();
        for value in array.values.iter().filter(|value| !value.is_null()).counted(32) {
            let alike = table.entry(hash(array.element, value)).or_default();
            if !alike.iter().any(|known| same(array.element, known, value)) {
                alike.push(value);
            }
        }
        Elements::Hashed(array.element, table)
    }

    fn hold(&self, value: &Datum) -> bool {
        if value.is_null() {
            return false;
        }
        match self {
            Elements::List(array) => array.values.iter().any(|v| !v.is_null() && same(array.element, v, value)),
            Elements::Hashed(ty, table) => {
                let alike = table.get(&hash(*ty, value));
                alike.is_some_and(|alike| alike.iter().any(|known| same(*ty, known, value)))
            }
        }
    }
}

/// Whether one array holds all elements of another.
fn contains(all: &Array, some: &Array) -> bool {
    let elements = Elements::of(all, some.values.len());
    some.values.iter().counted(32).all(|value| elements.hold(value))
}

pub(super) fn array_contains(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (all, some) = (array_at(args, 0)?, array_at(args, 1)?);
    Ok(Datum::Bool(contains(all, some)))
}

pub(super) fn array_contained(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (some, all) = (array_at(args, 0)?, array_at(args, 1)?);
    Ok(Datum::Bool(contains(all, some)))
}

pub(super) fn array_overlap(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (array_at(args, 0)?, array_at(args, 1)?);
    let elements = Elements::of(a, b.values.len());
    Ok(Datum::Bool(b.values.iter().counted(32).any(|value| elements.hold(value))))
}

/// The number of thresholds at or below a value; the thresholds are in order.
pub(super) fn width_bucket(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [value, Datum::Array(thresholds)] = args else { return Err(mismatch("width_bucket")) };
    if thresholds.dims.len() > 1 {
        return Err(super::subscript_error("thresholds must be one-dimensional array"));
    }
    if thresholds.values.iter().counted(1).any(Datum::is_null) {
        let message = "thresholds array must not contain NULLs";
        return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    }
    let below = |t: &Datum| compare_as(thresholds.element, &t.as_ref(), &value.as_ref()).is_le();
    Ok(Datum::Int4(thresholds.values.partition_point(below) as i32))
}
