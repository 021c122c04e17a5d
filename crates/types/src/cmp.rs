//! Comparing and hashing values of one type.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::{DatumRef, Interval};

/// PostgreSQL's order of floats: NaN equals itself and is greatest, -0 equals 0.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

/// An interval as one number of microseconds, with months of 30 days: the key that intervals are compared by.
pub fn interval_key(i: &Interval) -> i128 {
    (i.months as i128 * 30 + i.days as i128) * 86_400_000_000 + i.micros as i128
}

/// The instant of a `timetz` and, for equal instants, its zone.
fn timetz_key(micros: i64, west: i32) -> (i64, i32) {
    (micros + west as i64 * 1_000_000, west)
}

/// Compares two values of one type in the order of its B-tree class. NULL sorts last and equals itself; values of
/// different variants compare by variant, which happens to no two values of one type.
pub fn compare(a: &DatumRef<'_>, b: &DatumRef<'_>) -> Ordering {
    use DatumRef as D;
    match (a, b) {
        (D::Null, D::Null) => Ordering::Equal,
        (D::Null, _) => Ordering::Greater,
        (_, D::Null) => Ordering::Less,
        (D::Bool(a), D::Bool(b)) => a.cmp(b),
        (D::Int2(a), D::Int2(b)) => a.cmp(b),
        (D::Int4(a), D::Int4(b)) => a.cmp(b),
        (D::Int8(a), D::Int8(b)) => a.cmp(b),
        (D::Oid(a), D::Oid(b)) => a.cmp(b),
        (D::Float4(a), D::Float4(b)) => compare_floats(*a as f64, *b as f64),
        (D::Float8(a), D::Float8(b)) => compare_floats(*a, *b),
        (D::Numeric(a), D::Numeric(b)) => a.get().cmp(&b.get()),
        (D::Text(a), D::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (D::Bytea(a), D::Bytea(b)) => a.cmp(b),
        (D::Date(a), D::Date(b)) => a.cmp(b),
        (D::Time(a), D::Time(b)) | (D::Timestamp(a), D::Timestamp(b)) | (D::TimestampTz(a), D::TimestampTz(b)) => {
            a.cmp(b)
        }
        (D::TimeTz(a, z), D::TimeTz(b, y)) => timetz_key(*a, *z).cmp(&timetz_key(*b, *y)),
        (D::Interval(a), D::Interval(b)) => interval_key(a).cmp(&interval_key(b)),
        (D::Uuid(a), D::Uuid(b)) => a.cmp(b),
        (D::Array(a), D::Array(b)) => {
            let (a, b) = (a.get(), b.get());
            let elements = compare_lists(&a.values, &b.values);
            elements.then_with(|| a.dims.len().cmp(&b.dims.len())).then_with(|| a.dims.cmp(&b.dims))
        }
        (D::Record(a), D::Record(b)) => compare_lists(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_lists(a: &[crate::Datum], b: &[crate::Datum]) -> Ordering {
    let unequal = a.iter().zip(b).map(|(x, y)| compare(&x.as_ref(), &y.as_ref())).find(|o| o.is_ne());
    unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn rank(d: &DatumRef<'_>) -> u8 {
    use DatumRef as D;
    match d {
        D::Null => 0,
        D::Bool(_) => 1,
        D::Int2(_) => 2,
        D::Int4(_) => 3,
        D::Int8(_) => 4,
        D::Oid(_) => 5,
        D::Float4(_) => 6,
        D::Float8(_) => 7,
        D::Numeric(_) => 8,
        D::Text(_) => 9,
        D::Bytea(_) => 10,
        D::Date(_) => 11,
        D::Time(_) => 12,
        D::TimeTz(..) => 13,
        D::Timestamp(_) => 14,
        D::TimestampTz(_) => 15,
        D::Interval(_) => 16,
        D::Uuid(_) => 17,
        D::Array(_) => 18,
        D::Record(_) => 19,
    }
}

/// Hashes a value so that equal values of one type hash equally.
pub fn hash_datum<H: Hasher>(d: &DatumRef<'_>, state: &mut H) {
    use DatumRef as D;
    let float = |f: f64| if f.is_nan() { u64::MAX } else { (f + 0.0).to_bits() };
    match d {
        D::Null => state.write_u8(0),
        D::Bool(v) => v.hash(state),
        D::Int2(v) => v.hash(state),
        D::Int4(v) => v.hash(state),
        D::Int8(v) => v.hash(state),
        D::Oid(v) => v.hash(state),
        D::Float4(v) => float(*v as f64).hash(state),
        D::Float8(v) => float(*v).hash(state),
        D::Numeric(v) => v.get().hash(state),
        D::Text(v) => v.hash(state),
        D::Bytea(v) => v.hash(state),
        D::Date(v) => v.hash(state),
        D::Time(v) | D::Timestamp(v) | D::TimestampTz(v) => v.hash(state),
        D::TimeTz(v, z) => timetz_key(*v, *z).hash(state),
        D::Interval(v) => interval_key(v).hash(state),
        D::Uuid(v) => v.hash(state),
        D::Array(v) => v.get().values.iter().for_each(|e| hash_datum(&e.as_ref(), state)),
        D::Record(v) => v.iter().for_each(|e| hash_datum(&e.as_ref(), state)),
    }
}
