//! Comparing and hashing values of one type.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use base::Oid;

use crate::{DatumRef, Interval, oid};

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
pub(crate) fn timetz_key(micros: i64, west: i32) -> (i64, i32) {
    (micros.saturating_add(west as i64 * 1_000_000), west)
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
        (D::Enum(ty, a), D::Enum(_, b)) => crate::place::compare(*ty, *a, *b),
        (D::Array(a), D::Array(b)) => {
            let (a, b) = (a.get(), b.get());
            let elements = compare_lists(&a.values, &b.values, a.element);
            let lengths = || a.dims.iter().map(|d| d.0).cmp(b.dims.iter().map(|d| d.0));
            let lower_bounds = || a.dims.iter().map(|d| d.1).cmp(b.dims.iter().map(|d| d.1));
            elements.then(a.dims.len().cmp(&b.dims.len())).then_with(lengths).then_with(lower_bounds)
        }
        (D::Record(a), D::Record(b)) => compare_lists(a, b, Oid::INVALID),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Compares two values of type `ty`: as [`compare`], but `char(n)` ignores trailing blanks, and documents
/// are compared by their parts.
pub fn compare_as(ty: Oid, a: &DatumRef<'_>, b: &DatumRef<'_>) -> Ordering {
    match (a, b) {
        (DatumRef::Text(a), DatumRef::Text(b)) if ty == oid::BPCHAR => without_blanks(a).cmp(without_blanks(b)),
        (DatumRef::Text(a), DatumRef::Text(b)) if ty == oid::JSONB => crate::json::compare(a, b),
        _ => compare(a, b),
    }
}

/// What of a `char(n)` takes part in comparisons.
pub(crate) fn without_blanks(text: &str) -> &[u8] {
    text.trim_end_matches(' ').as_bytes()
}

fn compare_lists(a: &[crate::Datum], b: &[crate::Datum], element: Oid) -> Ordering {
    let unequal = a.iter().zip(b).map(|(x, y)| compare_as(element, &x.as_ref(), &y.as_ref())).find(|o| o.is_ne());
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
        D::Enum(..) => 20,
    }
}

/// Hashes a value of type `ty`: as [`hash_datum`], but `char(n)` ignores trailing blanks.
pub fn hash_as<H: Hasher>(ty: Oid, d: &DatumRef<'_>, state: &mut H) {
    match d {
        DatumRef::Text(v) if ty == oid::BPCHAR => v.trim_end_matches(' ').hash(state),
        DatumRef::Text(v) if ty == oid::JSONB => {
            let mut key = Vec::new();
            crate::json::write_key(v, &mut key);
            key.hash(state);
        }
        _ => hash_datum(d, state),
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
        D::Enum(_, order) => order.to_bits().hash(state),
        D::Array(v) => {
            let v = v.get();
            v.values.iter().for_each(|e| hash_as(v.element, &e.as_ref(), state));
        }
        D::Record(v) => v.iter().for_each(|e| hash_datum(&e.as_ref(), state)),
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;
    use std::sync::Arc;

    use super::*;
    use crate::{Array, Datum, Numeric};

    fn hash(d: &Datum) -> u64 {
        struct One<'a>(&'a Datum);
        impl Hash for One<'_> {
            fn hash<H: Hasher>(&self, state: &mut H) {
                hash_datum(&self.0.as_ref(), state);
            }
        }
        std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default().hash_one(One(d))
    }

    #[test]
    fn equal_values_hash_equally() {
        let numeric = |s: &str| Datum::Numeric(Numeric::parse(s).unwrap());
        let pairs = [
            (numeric("1.0"), numeric("1.00")),
            (numeric("12345678901234567890000"), numeric("12345678901234567890000.000")),
            (numeric("1000000000000000000"), numeric("1000000000000000000.0000")),
            (numeric("0"), numeric("0.0000")),
            (Datum::Float8(0.0), Datum::Float8(-0.0)),
            (Datum::Float8(f64::NAN), Datum::Float8(-f64::NAN)),
            (Interval { micros: 0, days: 30, months: 0 }.into(), Interval { micros: 0, days: 0, months: 1 }.into()),
        ];
        for (a, b) in pairs {
            assert_eq!(a, b);
            assert_eq!(hash(&a), hash(&b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn arrays_compare_by_elements_then_shape() {
        let array = |dims: &[(i32, i32)], values: &[i32]| {
            let values = values.iter().map(|v| Datum::Int4(*v)).collect();
            Datum::Array(Arc::new(Array { element: oid::INT4, dims: dims.to_vec(), values }))
        };
        let sorted = [
            array(&[], &[]),
            array(&[(2, 1)], &[1, 2]),
            array(&[(2, 2)], &[1, 2]),
            array(&[(1, 1), (2, 1)], &[1, 2]),
            array(&[(3, 1)], &[1, 2, 0]),
            array(&[(1, 1)], &[2]),
        ];
        for pair in sorted.windows(2) {
            assert!(compare(&pair[0].as_ref(), &pair[1].as_ref()).is_lt(), "{pair:?}");
        }
    }

    #[test]
    fn char_ignores_trailing_blanks() {
        let (a, b) = (DatumRef::Text("a "), DatumRef::Text("a"));
        assert!(compare_as(oid::BPCHAR, &a, &b).is_eq());
        assert!(compare_as(oid::TEXT, &a, &b).is_gt());
    }
}
