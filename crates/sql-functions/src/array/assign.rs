//! Assignments to elements and slices: `a[3] = x`, `a[2:4] = b`.
//!
//! The arguments are the array, the type of its elements, the new value, and the subscripts: one of each dimension, or lower
//! and upper bound of each. A bound that is not written is `false`.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use types::{Array, Datum, room};

use super::super::EvalContext;
use super::super::entry::mismatch;
use super::subscript_error;

/// Elements that fit the largest value of 1 GiB.
const ELEMENTS_MAX: i64 = (1 << 30) / size_of::<Datum>() as i64;

#[cold]
fn too_large() -> Error {
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed (134217727)")
}

/// The arguments, taken apart.
fn parts(args: &[Datum]) -> Result<(Array, &Datum, &[Datum])> {
    let [container, Datum::Oid(element), value, subscripts @ ..] = args else { return Err(mismatch("array assign")) };
    if subscripts.iter().any(Datum::is_null) {
        let message = "array subscript in assignment must not be null";
        return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    }
    let array = match container {
        Datum::Array(array) => Array::clone(array),
        _ => Array { element: Oid(*element), dims: Vec::new(), values: Vec::new() },
    };
    Ok((array, value, subscripts))
}

fn checked_dims(dims: &[(i32, i32)]) -> Result<usize> {
    let total = dims.iter().try_fold(1i64, |n, d| n.checked_mul(d.0.into())).filter(|&n| n <= ELEMENTS_MAX);
    total.map(|n| n as usize).ok_or_else(too_large)
}

/// Puts one more dimension's worth of NULLs around an array of one dimension, so that it reaches from `low` to `high`.
fn extend(array: &mut Array, low: i64, high: i64) -> Result<()> {
    let (length, lower) = match array.dims[..] {
        [(length, lower)] => (i64::from(length), i64::from(lower)),
        _ => (0, low),
    };
    let before = (lower - low).max(0);
    let after = (high - (lower + length - 1)).max(0);
    let new_length = length + before + after;
    if new_length > ELEMENTS_MAX {
        return Err(too_large());
    }
    room::for_list(new_length as usize, size_of::<Datum>())?;
    let mut values = Vec::with_capacity(new_length as usize);
    values.resize(before as usize, Datum::Null);
    values.append(&mut array.values);
    values.resize(new_length as usize, Datum::Null);
    array.values = values;
    array.dims = vec![(new_length as i32, (lower - before) as i32)];
    Ok(())
}

fn int(value: &Datum) -> Result<i64> {
    match value {
        Datum::Int4(n) => Ok(i64::from(*n)),
        _ => Err(mismatch("array subscript")),
    }
}

/// `array assign(array, element type, value, subscript…)`
pub(super) fn element(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (mut array, value, subscripts) = parts(args)?;
    let places = subscripts.iter().map(int).collect::<Result<Vec<i64>>>()?;
    if places.len() > 6 {
        let message = format!("number of array dimensions ({}) exceeds the maximum allowed (6)", places.len());
        return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    if array.dims.is_empty() {
        array.dims = places.iter().map(|&p| (1, p as i32)).collect();
        array.values = vec![value.clone()];
        return Ok(Datum::Array(Arc::new(array)));
    }
    if array.dims.len() != places.len() {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    if let [place] = places[..] {
        let (length, lower) = array.dims[0];
        let upper = i64::from(lower) + i64::from(length) - 1;
        if place < lower.into() || place > upper {
            extend(&mut array, place.min(lower.into()), place.max(upper))?;
        }
    }
    let mut at = 0i64;
    for (&place, &(length, lower)) in places.iter().zip(&array.dims) {
        let offset = place - i64::from(lower);
        if !(0..i64::from(length)).contains(&offset) {
            return Err(subscript_error("array subscript out of range"));
        }
        at = at * i64::from(length) + offset;
    }
    array.values[at as usize] = value.clone();
    Ok(Datum::Array(Arc::new(array)))
}

/// First and last place of each dimension of a slice; bounds that are not written are those of the array.
fn ranges(bounds: &[Datum], array: &Array) -> Result<Vec<(i64, i64)>> {
    let mut out = Vec::with_capacity(bounds.len() / 2);
    for (i, pair) in bounds.chunks_exact(2).enumerate() {
        let dim = array.dims.get(i).copied();
        let low = match (&pair[0], dim) {
            (Datum::Bool(_), Some((_, lower))) => lower.into(),
            (Datum::Bool(_), None) => {
                return Err(subscript_error("array slice subscript must provide both boundaries").detail(
                    "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
                ));
            }
            (value, _) => int(value)?,
        };
        let high = match (&pair[1], dim) {
            (Datum::Bool(_), Some((length, lower))) => i64::from(lower) + i64::from(length) - 1,
            (Datum::Bool(_), None) => {
                return Err(subscript_error("array slice subscript must provide both boundaries").detail(
                    "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
                ));
            }
            (value, _) => int(value)?,
        };
        if low > high {
            return Err(subscript_error("upper bound cannot be less than lower bound"));
        }
        out.push((low, high));
    }
    Ok(out)
}

/// `array assign slice(array, element type, value, lower, upper…)`
pub(super) fn slice(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (mut array, value, bounds) = parts(args)?;
    // A slice cannot become NULL, so the array stays as it is.
    let Datum::Array(source) = value else { return Ok(args[0].clone()) };
    let mut ranges = ranges(bounds, &array)?;
    if array.dims.is_empty() {
        let total: i64 = ranges.iter().map(|(low, high)| high - low + 1).product();
        array.dims = ranges.iter().map(|(low, high)| ((high - low + 1) as i32, *low as i32)).collect();
        checked_dims(&array.dims)?;
        if (source.values.len() as i64) < total {
            return Err(subscript_error("source array too small"));
        }
        array.values = source.values[..total as usize].to_vec();
        return Ok(Datum::Array(Arc::new(array)));
    }
    if array.dims.len() < ranges.len() {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    if array.dims.len() == 1 {
        let (length, lower) = array.dims[0];
        let upper = i64::from(lower) + i64::from(length) - 1;
        let (low, high) = ranges[0];
        if low < lower.into() || high > upper {
            extend(&mut array, low.min(lower.into()), high.max(upper))?;
        }
    }
    for (i, &(length, lower)) in array.dims.iter().enumerate() {
        let upper = i64::from(lower) + i64::from(length) - 1;
        match ranges.get(i) {
            Some(&(low, high)) if low < lower.into() || high > upper => {
                return Err(subscript_error("array subscript out of range"));
            }
            Some(_) => {}
            None => ranges.push((lower.into(), upper)),
        }
    }
    let total: i64 = ranges.iter().map(|(low, high)| high - low + 1).product();
    if (source.values.len() as i64) < total {
        return Err(subscript_error("source array too small"));
    }
    let mut next = source.values.iter();
    for at in 0..array.values.len() {
        let mut rest = at as i64;
        let mut inside = true;
        for (&(length, lower), &(low, high)) in array.dims.iter().zip(&ranges).rev() {
            let place = rest % i64::from(length) + i64::from(lower);
            rest /= i64::from(length);
            inside &= (low..=high).contains(&place);
        }
        if inside && let Some(value) = next.next() {
            array.values[at] = value.clone();
        }
    }
    Ok(Datum::Array(Arc::new(array)))
}
