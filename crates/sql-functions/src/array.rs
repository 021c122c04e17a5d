//! Arrays.
//!
//! Responsible for: their shape, adding, taking away and finding elements and containment.
//! Not responsible for: reading and printing array literals (`types`), subscripts (`expr`), delimited text (`text`).

mod assign;
mod build;
mod search;
mod slice;

use std::sync::Arc;

use base::work::Count;
use base::{Error, Result, SqlState};
use types::oid::*;
use types::{Array, Datum};

use super::entry::{immutable, mismatch, natural_type};
use super::{EvalContext, Function};

/// The table.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(378, "array_append", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE], ANYCOMPATIBLEARRAY, build::array_append).lax(),
    immutable(379, "array_prepend", &[ANYCOMPATIBLE, ANYCOMPATIBLEARRAY], ANYCOMPATIBLEARRAY, build::array_prepend).lax(),
    immutable(383, "array_cat", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLEARRAY], ANYCOMPATIBLEARRAY, build::array_cat).lax(),
    immutable(2176, "array_length", &[ANYARRAY, INT4], INT4, array_length),
    immutable(748, "array_ndims", &[ANYARRAY], INT4, array_ndims),
    immutable(747, "array_dims", &[ANYARRAY], TEXT, array_dims),
    immutable(2091, "array_lower", &[ANYARRAY, INT4], INT4, array_lower),
    immutable(2092, "array_upper", &[ANYARRAY, INT4], INT4, array_upper),
    immutable(3179, "cardinality", &[ANYARRAY], INT4, cardinality),
    immutable(3277, "array_position", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE], INT4, search::array_position).lax(),
    immutable(3278, "array_position", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, INT4], INT4, search::array_position).lax(),
    immutable(3279, "array_positions", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE], INT4_ARRAY, search::array_positions).lax(),
    immutable(3167, "array_remove", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE], ANYCOMPATIBLEARRAY, search::array_remove).lax(),
    immutable(3168, "array_replace", &[ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, ANYCOMPATIBLE], ANYCOMPATIBLEARRAY, search::array_replace).lax(),
    immutable(1193, "array_fill", &[ANYELEMENT, INT4_ARRAY], ANYARRAY, build::array_fill).lax(),
    immutable(1286, "array_fill", &[ANYELEMENT, INT4_ARRAY, INT4_ARRAY], ANYARRAY, build::array_fill).lax(),
    immutable(slice::OID, slice::NAME, &[ANYARRAY, ANY], ANYARRAY, slice::array_slice).lax().repeating(),
    immutable(3218, "width_bucket", &[ANYCOMPATIBLE, ANYCOMPATIBLEARRAY], INT4, search::width_bucket),
    immutable(9582, "array assign", &[ANYARRAY, OID, ANYELEMENT, ANY], ANYARRAY, assign::element).lax().repeating(),
    immutable(9583, "array assign slice", &[ANYARRAY, OID, ANYARRAY, ANY], ANYARRAY, assign::slice).lax().repeating(),
    immutable(6172, "trim_array", &[ANYARRAY, INT4], ANYARRAY, trim_array),
    immutable(2748, "arraycontains", &[ANYARRAY, ANYARRAY], BOOL, search::array_contains),
    immutable(2749, "arraycontained", &[ANYARRAY, ANYARRAY], BOOL, search::array_contained),
    immutable(2747, "arrayoverlap", &[ANYARRAY, ANYARRAY], BOOL, search::array_overlap),
];

fn array_at(args: &[Datum], i: usize) -> Result<&Arc<Array>> {
    match args.get(i) {
        Some(Datum::Array(array)) => Ok(array),
        _ => Err(mismatch("array argument")),
    }
}

/// An array of one dimension that begins at 1.
fn list(element: base::Oid, values: Vec<Datum>) -> Datum {
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
    Datum::Array(Arc::new(Array { element, dims, values }))
}

/// The element type for a value that has no array beside it.
fn element_type(value: &Datum) -> base::Oid {
    match value {
        Datum::Oid(_) => OID,
        other => natural_type(other).unwrap_or(TEXT),
    }
}

#[cold]
fn subscript_error(message: &str) -> Error {
    Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

/// Length and lower bound of the dimension that the second argument numbers.
fn dimension(args: &[Datum]) -> Result<Option<(i32, i32)>> {
    let (array, Some(Datum::Int4(n))) = (array_at(args, 0)?, args.get(1)) else { return Err(mismatch("array_length")) };
    Ok(usize::try_from(*n).ok().and_then(|n| array.dims.get(n.checked_sub(1)?)).copied())
}

fn array_length(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(dimension(args)?.map(|d| d.0).into())
}

fn array_lower(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(dimension(args)?.map(|d| d.1).into())
}

fn array_upper(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(dimension(args)?.map(|(length, lower)| lower + (length - 1)).into())
}

fn array_ndims(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let count = array_at(args, 0)?.dims.len();
    Ok((count > 0).then_some(count as i32).into())
}

fn array_dims(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let dims = &array_at(args, 0)?.dims;
    let text: String = dims.iter().map(|(length, lower)| format!("[{lower}:{}]", lower + (length - 1))).collect();
    Ok((!dims.is_empty()).then_some(text).into())
}

fn cardinality(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(array_at(args, 0)?.values.len() as i32))
}

fn trim_array(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (array, Some(Datum::Int4(n))) = (array_at(args, 0)?, args.get(1)) else { return Err(mismatch("trim_array")) };
    let length = array.dims.first().map_or(0, |d| d.0);
    if *n < 0 || *n > length {
        return Err(subscript_error(&format!("number of elements to trim must be between 0 and {length}")));
    }
    if *n == length {
        return Ok(list(array.element, Vec::new()));
    }
    let kept = array.values.len() / length as usize * (length - n) as usize;
    let mut dims = array.dims.clone();
    dims[0] = (length - n, 1);
    for dim in &mut dims[1..] {
        dim.1 = 1;
    }
    Ok(Datum::Array(Arc::new(Array {
        element: array.element,
        dims,
        values: array.values[..kept].iter().counted(4).cloned().collect(),
    })))
}
