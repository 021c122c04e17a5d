//! Slices: `a[2:3]`, `a[:3][1:]`.

use std::sync::Arc;

use base::Result;
use types::{Array, Datum};

use super::super::EvalContext;
use super::array_at;

/// Number of the function; PostgreSQL has none.
pub(super) const OID: u32 = 9552;
/// Its name, which no statement can write without quotes.
pub(super) const NAME: &str = "array slice";

/// `array_get_slice`: the array, then lower and upper bound of each dimension. A bound that is not written is `false`.
pub(super) fn array_slice(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let array = array_at(args, 0)?;
    let empty = || Datum::Array(Arc::new(Array { element: array.element, dims: Vec::new(), values: Vec::new() }));
    let bounds = &args[1..];
    if array.dims.is_empty() || bounds.len() / 2 > array.dims.len() {
        return Ok(empty());
    }
    let mut ranges = Vec::with_capacity(array.dims.len());
    for (i, &(length, lower)) in array.dims.iter().enumerate() {
        let upper = lower + (length - 1);
        let bound = |at: usize, other: i32| match bounds.get(at) {
            Some(Datum::Int4(n)) => *n,
            _ => other,
        };
        let (first, last) = (bound(2 * i, lower).max(lower), bound(2 * i + 1, upper).min(upper));
        if first > last {
            return Ok(empty());
        }
        ranges.push((i64::from(first) - i64::from(lower), i64::from(last) - i64::from(lower)));
    }
    let mut values = Vec::new();
    for (at, value) in array.values.iter().enumerate() {
        let mut rest = at as i64;
        let mut inside = true;
        for (&(length, _), &(first, last)) in array.dims.iter().zip(&ranges).rev() {
            let place = rest % i64::from(length);
            rest /= i64::from(length);
            inside &= (first..=last).contains(&place);
        }
        if inside {
            values.push(value.clone());
        }
    }
    let dims = ranges.iter().map(|(first, last)| ((last - first + 1) as i32, 1)).collect();
    Ok(Datum::Array(Arc::new(Array { element: array.element, dims, values })))
}
