//! Making arrays of elements and of other arrays.

use std::sync::Arc;

use base::work::Count;
use base::{Error, Result, SqlState};
use types::{Array, Datum, room};

use super::super::EvalContext;
use super::super::entry::mismatch;
use super::{element_type, list, subscript_error};

/// PostgreSQL's limit of elements.
const ELEMENTS_MAX: i64 = 134_217_727;
/// Elements that fit the largest value of 1 GiB.
const FILL_MAX: i64 = (1 << 30) / size_of::<Datum>() as i64;

#[cold]
fn not_one_dimensional() -> Error {
    Error::new(SqlState::DATA_EXCEPTION, "argument must be empty or one-dimensional array")
}

/// Dimensions whose bounds fit, that behind the last element included.
fn checked(dims: Vec<(i32, i32)>) -> Result<Vec<(i32, i32)>> {
    match dims.iter().find(|(length, lower)| lower.checked_add(*length).is_none()) {
        None => Ok(dims),
        Some((_, lower)) => {
            let message = format!("array lower bound is too large: {lower}");
            Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
        }
    }
}

/// An array with one more element at its end or its beginning.
fn extended(array: &Datum, value: &Datum, at_end: bool) -> Result<Datum> {
    let array = match array {
        Datum::Null => return Ok(list(element_type(value), vec![value.clone()])),
        Datum::Array(array) => array,
        _ => return Err(mismatch("array_append")),
    };
    let (length, lower) = match array.dims[..] {
        [] => return Ok(list(array.element, vec![value.clone()])),
        [one] => one,
        _ => return Err(not_one_dimensional()),
    };
    if !at_end && lower == i32::MIN {
        return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"));
    }
    let dims = checked(vec![(length + 1, lower)])?;
    room::for_list(array.values.len() + 1, size_of::<Datum>())?;
    let mut values = Vec::with_capacity(array.values.len() + 1);
    if !at_end {
        values.push(value.clone());
    }
    values.extend(array.values.iter().counted(4).cloned());
    if at_end {
        values.push(value.clone());
    }
    Ok(Datum::Array(Arc::new(Array { element: array.element, dims, values })))
}

pub(super) fn array_append(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [array, value] = args else { return Err(mismatch("array_append")) };
    extended(array, value, true)
}

pub(super) fn array_prepend(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [value, array] = args else { return Err(mismatch("array_prepend")) };
    extended(array, value, false)
}

#[cold]
fn incompatible(detail: &str) -> Error {
    subscript_error("cannot concatenate incompatible arrays").detail(detail)
}

/// The dimensions of two arrays put together.
fn joined(a: &Array, b: &Array) -> Result<Vec<(i32, i32)>> {
    let (m, n) = (a.dims.len(), b.dims.len());
    if m == n {
        if a.dims[1..] != b.dims[1..] {
            let detail = "Arrays with differing element dimensions are not compatible for concatenation.";
            return Err(incompatible(detail));
        }
        let mut dims = a.dims.clone();
        dims[0].0 += b.dims[0].0;
        return checked(dims);
    }
    let (outer, inner) = if m + 1 == n {
        (&b.dims, &a.dims)
    } else if m == n + 1 {
        (&a.dims, &b.dims)
    } else {
        let detail = format!("Arrays of {m} and {n} dimensions are not compatible for concatenation.");
        return Err(incompatible(&detail));
    };
    if outer[1..] != inner[..] {
        return Err(incompatible("Arrays with differing dimensions are not compatible for concatenation."));
    }
    let mut dims = outer.clone();
    dims[0].0 += 1;
    checked(dims)
}

pub(super) fn array_cat(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (a, b) = match args {
        [Datum::Null, other] | [other, Datum::Null] => return Ok(other.clone()),
        [Datum::Array(a), Datum::Array(b)] => (a, b),
        _ => return Err(mismatch("array_cat")),
    };
    if b.dims.is_empty() {
        return Ok(args[0].clone());
    }
    if a.dims.is_empty() {
        return Ok(args[1].clone());
    }
    let dims = joined(a, b)?;
    room::for_list(a.values.len() + b.values.len(), size_of::<Datum>())?;
    let mut values = Vec::with_capacity(a.values.len() + b.values.len());
    values.extend(a.values.iter().chain(&b.values).counted(4).cloned());
    Ok(Datum::Array(Arc::new(Array { element: a.element, dims, values })))
}

/// The integers of a dimension or lower bound array.
fn bounds(value: &Datum) -> Result<Vec<i32>> {
    let null = |message: &str| Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    let Datum::Array(array) = value else {
        return null("dimension array or low bound array cannot be null");
    };
    if array.dims.len() > 1 {
        return Err(
            subscript_error("wrong number of array subscripts").detail("Dimension array must be one dimensional.")
        );
    }
    let mut numbers = Vec::with_capacity(array.values.len());
    for value in &array.values {
        match value {
            Datum::Int4(n) => numbers.push(*n),
            _ => return null("dimension values cannot be null"),
        }
    }
    Ok(numbers)
}

pub(super) fn array_fill(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [value, lengths, lowers @ ..] = args else { return Err(mismatch("array_fill")) };
    if lengths.is_null() || lowers.iter().any(Datum::is_null) {
        bounds(&Datum::Null)?;
    }
    let lengths = bounds(lengths)?;
    if lengths.len() > 6 {
        let message = format!("number of array dimensions ({}) exceeds the maximum allowed (6)", lengths.len());
        return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let lowers = match lowers {
        [lowers] => bounds(lowers)?,
        _ => vec![1; lengths.len()],
    };
    if lowers.len() != lengths.len() {
        let detail = "Low bound array has different size than dimensions array.";
        return Err(subscript_error("wrong number of array subscripts").detail(detail));
    }
    let too_large = || {
        let message = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
        Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
    };
    let mut total = 1i64;
    for &length in &lengths {
        if length < 0 {
            return Err(too_large());
        }
        total = total.checked_mul(length.into()).filter(|&n| n <= FILL_MAX).ok_or_else(too_large)?;
    }
    if lengths.is_empty() || total == 0 {
        return Ok(list(element_type(value), Vec::new()));
    }
    let dims = checked(lengths.into_iter().zip(lowers).collect())?;
    room::for_list(total as usize, size_of::<Datum>())?;
    let values = std::iter::repeat_n(value, total as usize).counted(4).cloned().collect();
    Ok(Datum::Array(Arc::new(Array { element: element_type(value), dims, values })))
}
