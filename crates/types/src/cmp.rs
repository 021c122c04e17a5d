//! Comparing and hashing values of one type.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use base::Oid;
use base::work::{self, Count};

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
        (D::Float4(a), D::Float8(b)) => compare_floats(*a as f64, *b),
        (D::Float8(a), D::Float4(b)) => compare_floats(*a, *b as f64),
        (D::Numeric(a), D::Numeric(b)) => a.compare(b),
        (D::Text(a), D::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (D::Bytea(a), D::Bytea(b)) => a.cmp(b),
        (D::Date(a), D::Date(b)) => a.cmp(b),
        (D::Time(a), D::Time(b)) | (D::Timestamp(a), D::Timestamp(b)) | (D::TimestampTz(a), D::TimestampTz(b)) => {
            a.cmp(b)
        }
        (D::TimeTz(a, z), D::TimeTz(b, y)) => timetz_key(*a, *z).cmp(&timetz_key(*b, *y)),
        (D::Interval(a), D::Interval(b)) => interval_key(a).cmp(&interval_key(b)),
        (D::Uuid(a), D::Uuid(b)) => a.cmp(b),
        (D::Inet(a), D::Inet(b)) => a.cmp(b),
        (D::Mac(a), D::Mac(b)) => a.cmp(b),
        (D::Mac8(a), D::Mac8(b)) => a.cmp(b),
        (D::Bits(a), D::Bits(b)) => crate::bits::compare(a, b),
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
        (DatumRef::Text(a), DatumRef::Text(b)) if a.len().min(b.len()) > LONG => {
            work::beat(work::bytes(a.len().min(b.len())));
            match ty {
                oid::BPCHAR => without_blanks(a).cmp(without_blanks(b)),
                oid::JSONB => crate::json::compare(a, b),
                _ => a.as_bytes().cmp(b.as_bytes()),
            }
        }
        (DatumRef::Text(a), DatumRef::Text(b)) if ty == oid::BPCHAR => without_blanks(a).cmp(without_blanks(b)),
        (DatumRef::Text(a), DatumRef::Text(b)) if ty == oid::JSONB => crate::json::compare(a, b),
        _ => compare(a, b),
    }
}

/// As [`compare_as`] of texts whose bytes these are; `None` for a type that is not compared by its bytes.
#[inline]
pub fn compare_text_bytes(ty: Oid, a: &[u8], b: &[u8]) -> Option<Ordering> {
    let shorter = a.len().min(b.len());
    if shorter > LONG {
        work::beat(work::bytes(shorter));
    }
    match ty {
        oid::JSONB => None,
        oid::BPCHAR => Some(trimmed(a).cmp(trimmed(b))),
        _ => Some(a.cmp(b)),
    }
}

/// A number that orders as [`compare_as`] does, as far as it goes: a lesser one is that of a lesser value, equal ones say
/// nothing. Sorts compare it first, which is one instruction (the key prefixes of Nyberg et al., "AlphaSort", 1994).
pub fn abbreviate(ty: Oid, value: &DatumRef<'_>) -> u64 {
    const SIGN: u64 = 1 << 63;
    let leading = |bytes: &[u8]| match bytes.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => bytes.iter().zip((0..8).rev()).fold(0, |sum, (byte, place)| sum | u64::from(*byte) << (8 * place)),
    };
    let signed = |v: i64| v as u64 ^ SIGN;
    let float = |v: f64| {
        // All NaNs are one value, the greatest; -0 equals 0.
        let bits = if v.is_nan() { f64::NAN.to_bits() & !SIGN } else { (v + 0.0).to_bits() };
        if bits & SIGN != 0 { !bits } else { bits | SIGN }
    };
    match *value {
        DatumRef::Bool(v) => u64::from(v),
        DatumRef::Int2(v) => signed(v.into()),
        DatumRef::Int4(v) | DatumRef::Date(v) => signed(v.into()),
        DatumRef::Int8(v) | DatumRef::Time(v) | DatumRef::Timestamp(v) | DatumRef::TimestampTz(v) => signed(v),
        DatumRef::Oid(v) => v.into(),
        DatumRef::Float4(v) => float(v.into()),
        DatumRef::Float8(v) => float(v),
        DatumRef::Numeric(v) => signed(v.abbreviated()),
        DatumRef::Text(text) if ty == oid::BPCHAR => leading(without_blanks(text)),
        DatumRef::Text(text) if ty != oid::JSONB => leading(text.as_bytes()),
        DatumRef::Bytea(bytes) => leading(bytes),
        DatumRef::Uuid(bytes) => leading(bytes),
        DatumRef::Mac(bytes) => leading(&bytes),
        DatumRef::Mac8(bytes) => leading(&bytes),
        DatumRef::Bits(held) => leading(crate::bits::bytes(held)),
        _ => 0,
    }
}

/// The difference of the first bytes that differ, as far as both go.
pub(crate) fn difference(a: &[u8], b: &[u8]) -> i32 {
    let pairs = a.iter().zip(b).counted(1).map(|(a, b)| i32::from(*a) - i32::from(*b));
    pairs.into_iter().find(|difference| *difference != 0).unwrap_or(0)
}

/// What of a `char(n)` takes part in comparisons.
pub(crate) fn without_blanks(text: &str) -> &[u8] {
    trimmed(text.as_bytes())
}

/// The bytes of a `char(n)` that take part in comparisons: those before trailing blanks.
#[inline]
pub fn trimmed(text: &[u8]) -> &[u8] {
    &text[..text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1)]
}

/// Bytes of texts beyond which comparing them is counted.
const LONG: usize = 4096;

fn compare_lists(a: &[crate::Datum], b: &[crate::Datum], element: Oid) -> Ordering {
    let unequal =
        a.iter().zip(b).counted(4).map(|(x, y)| compare_as(element, &x.as_ref(), &y.as_ref())).find(|o| o.is_ne());
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
        D::Inet(_) => 21,
        D::Mac(_) => 22,
        D::Mac8(_) => 23,
        D::Bits(_) => 24,
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
        D::Inet(v) => v.hash(state),
        D::Mac(v) => v.hash(state),
        D::Mac8(v) => v.hash(state),
        D::Bits(v) => v.hash(state),
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
    use crate::numeric::NumericRef;
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

    #[test]
    fn abbreviations_order_as_values_do() {
        let texts = ["", " ", "a", "a ", "ab", "abcdefg", "abcdefgh", "abcdefgh ", "abcdefghi", "b", "é", "\u{10ffff}"];
        let floats = [
            f64::NEG_INFINITY,
            -1e300,
            -1.5,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            1e-310,
            2.5,
            1e308,
            f64::INFINITY,
            f64::NAN,
        ];
        let whole = [i64::MIN, -256, -1, 0, 1, 255, 1 << 40, i64::MAX];
        let bits: [&'static [u8]; 6] = [&[0], &[1, 0], &[0, 0], &[7, 0x80], &[0, 0x80], &[7, 0x80, 0]];
        let uuids = [[0; 16], [9; 16], [0xff; 16]];
        let mut numbers: Vec<Numeric> = ["NaN", "Infinity", "-Infinity", "0", "0.000", "1.0000000000000000000000001"]
            .into_iter()
            .chain([
                "140737488355327",
                "140737488355328",
                "999999999999999999",
                "9223372036854775807000",
                "1e-30",
                "1e200",
            ])
            .chain(["0.00001", "0.00002", "1.5", "1.49999999", "1.50", "123456789.987654321", "1e-17", "1.23e-25"])
            .map(|text| Numeric::parse(text).unwrap())
            .collect();
        numbers.extend(numbers.clone().iter().map(|number| number.neg()));
        let numbers: &'static [Numeric] = Vec::leak(numbers);
        let of = |ty, values: Vec<DatumRef<'static>>| (ty, values);
        let texts = || texts.into_iter().map(DatumRef::Text).collect();
        let lists = [
            of(oid::TEXT, texts()),
            of(oid::BPCHAR, texts()),
            of(oid::JSONB, ["1", "[]", "null", "\"a\"", "{}"].into_iter().map(DatumRef::Text).collect()),
            of(oid::BYTEA, vec![DatumRef::Bytea(b""), DatumRef::Bytea(b"\0"), DatumRef::Bytea(b"\xff\0")]),
            of(oid::FLOAT8, floats.into_iter().chain([-f64::NAN]).map(DatumRef::Float8).collect()),
            of(oid::FLOAT4, floats.into_iter().map(|v| DatumRef::Float4(v as f32)).collect()),
            of(oid::NUMERIC, numbers.iter().map(|number| DatumRef::Numeric(NumericRef::of(number))).collect()),
            of(oid::INT8, whole.into_iter().map(DatumRef::Int8).collect()),
            of(oid::INT4, whole.into_iter().map(|v| DatumRef::Int4(v as i32)).collect()),
            of(oid::INT2, whole.into_iter().map(|v| DatumRef::Int2(v as i16)).collect()),
            of(oid::OID, vec![DatumRef::Oid(0), DatumRef::Oid(u32::MAX)]),
            of(oid::BOOL, vec![DatumRef::Bool(false), DatumRef::Bool(true)]),
            of(oid::VARBIT, bits.iter().map(|held| DatumRef::Bits(held)).collect()),
            of(oid::MACADDR, vec![DatumRef::Mac([0; 6]), DatumRef::Mac([0xff; 6])]),
            of(oid::MACADDR8, vec![DatumRef::Mac8([0; 8]), DatumRef::Mac8([0xff; 8])]),
            of(oid::UUID, uuids.each_ref().map(|v| DatumRef::Uuid(Box::leak(Box::new(*v)))).to_vec()),
        ];
        for (ty, values) in lists {
            for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
                let order = abbreviate(ty, a).cmp(&abbreviate(ty, b));
                assert!(order.is_eq() || order == compare_as(ty, a, b), "{ty}: {a:?} and {b:?}");
            }
        }
    }
}
