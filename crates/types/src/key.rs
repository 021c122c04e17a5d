//! Keys whose byte order is the order of the values they stand for.
//!
//! Each column is a marker byte (NULL or not, placed by NULLS FIRST/LAST) and, if not NULL, the value's bytes, all
//! inverted for DESC. No value's bytes are a proper prefix of another's, so columns can be concatenated and a prefix of the
//! columns is a prefix of the bytes.

use base::{Oid, work};

use crate::cmp::{interval_key, timetz_key, without_blanks};
use crate::{Datum, DatumRef, oid};

/// Marker of a value; NULLs have one below or above it.
const VALUE: u8 = 2;
const NULL_FIRST: u8 = 1;
const NULL_LAST: u8 = 3;

/// Appends one column of a key. `ty` is the column's type: `char(n)` ignores trailing blanks. Long work is counted: that of
/// documents, and of lists, numbers and texts of more than a thousand elements or digits, or [`work::STRETCH`] bytes.
pub fn encode_key(value: DatumRef<'_>, ty: Oid, descending: bool, nulls_first: bool, out: &mut Vec<u8>) {
    if value.is_null() {
        return out.push(if nulls_first { NULL_FIRST } else { NULL_LAST });
    }
    out.push(VALUE);
    let start = out.len();
    match value {
        DatumRef::Text(text) if ty == oid::BPCHAR => write_bytes(without_blanks(text), out),
        DatumRef::Text(text) if ty == oid::JSONB => crate::json::write_key(text, out),
        value => write_value(value, out),
    }
    if descending {
        for part in out[start..].chunks_mut(work::STRETCH) {
            count_stretch(part);
            part.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

/// Counts what is done to bytes, if they are not few.
#[inline]
fn count_stretch(part: &[u8]) {
    if part.len() == work::STRETCH {
        work::beat(work::bytes(part.len()));
    }
}

fn write_value(value: DatumRef<'_>, out: &mut Vec<u8>) {
    match value {
        DatumRef::Null => {}
        DatumRef::Bool(v) => out.push(v as u8),
        DatumRef::Int2(v) => out.extend_from_slice(&((v as u16) ^ 0x8000).to_be_bytes()),
        DatumRef::Int4(v) | DatumRef::Date(v) => out.extend_from_slice(&((v as u32) ^ 0x8000_0000).to_be_bytes()),
        DatumRef::Int8(v) | DatumRef::Time(v) | DatumRef::Timestamp(v) | DatumRef::TimestampTz(v) => write_i64(v, out),
        DatumRef::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        DatumRef::Float4(v) => {
            let bits = if v.is_nan() { f32::NAN.to_bits() } else { (v + 0.0).to_bits() };
            let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        DatumRef::Float8(v) => {
            let bits = if v.is_nan() { f64::NAN.to_bits() } else { (v + 0.0).to_bits() };
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        DatumRef::Numeric(v) => v.get().write_key(out),
        DatumRef::Text(v) => write_bytes(v.as_bytes(), out),
        DatumRef::Bytea(v) => write_bytes(v, out),
        DatumRef::TimeTz(micros, west) => {
            write_i64(timetz_key(micros, west).0, out);
            out.extend_from_slice(&((west as u32) ^ 0x8000_0000).to_be_bytes());
        }
        DatumRef::Interval(v) => out.extend_from_slice(&((interval_key(&v) as u128) ^ 1 << 127).to_be_bytes()),
        DatumRef::Uuid(v) => out.extend_from_slice(v),
        DatumRef::Inet(v) => v.write_key(out),
        DatumRef::Mac(v) => out.extend_from_slice(&v),
        DatumRef::Mac8(v) => out.extend_from_slice(&v),
        DatumRef::Bits(v) => {
            write_bytes(crate::bits::bytes(v), out);
            // Of values of as many bytes the one with less bits in the last comes first.
            out.push(8 - v.first().copied().unwrap_or(0));
        }
        DatumRef::Enum(ty, mark) => crate::place::write_key(ty, mark, out),
        DatumRef::Array(v) => {
            let v = v.get();
            write_list(&v.values, v.element, out);
            out.push(v.dims.len() as u8);
            for n in v.dims.iter().map(|d| d.0).chain(v.dims.iter().map(|d| d.1)) {
                out.extend_from_slice(&((n as u32) ^ 0x8000_0000).to_be_bytes());
            }
        }
        DatumRef::Record(v) => write_list(v, Oid::INVALID, out),
    }
}

/// Whether the bytes of a key of this type say everything about the value, so that it can be read from them: equal keys are equal
/// to the last bit.
pub fn key_says_all(ty: Oid) -> bool {
    matches!(ty, oid::TEXT | oid::VARCHAR | oid::BYTEA) || fixed_width(ty).is_some()
}

/// Bytes of a value of such a type, if all have as many.
#[inline]
fn fixed_width(ty: Oid) -> Option<usize> {
    Some(match ty {
        oid::BOOL => 1,
        oid::INT2 => 2,
        oid::INT4 | oid::DATE | oid::OID => 4,
        oid::INT8 | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ => 8,
        oid::UUID => 16,
        oid::MACADDR => 6,
        oid::MACADDR8 => 8,
        _ => return None,
    })
}

/// Takes the first column off a key: answers its bytes, which [`decode_key`] reads, and the columns behind it. `None` if the key
/// does not begin with a column of this type, which is one of those that [`key_says_all`] of.
#[inline]
pub fn split_key(key: &[u8], ty: Oid, descending: bool) -> Option<(&[u8], &[u8])> {
    if *key.first()? != VALUE {
        return Some(key.split_at(1));
    }
    let end = match fixed_width(ty) {
        Some(width) => 1 + width,
        None => 1 + end_of_bytes(&key[1..], if descending { 0xff } else { 0 })?,
    };
    key.split_at_checked(end)
}

/// Where bytes of any content end, which were inverted by `mask`.
fn end_of_bytes(bytes: &[u8], mask: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == mask)? + 2;
        if *bytes.get(at - 1)? == 1 ^ mask {
            return Some(at);
        }
    }
}

/// Reads the bytes of one column, as [`split_key`] takes them off. `None` if they are no value of the type.
#[inline]
pub fn decode_key(column: &[u8], ty: Oid, descending: bool) -> Option<Datum> {
    let (&marker, value) = column.split_first()?;
    if marker != VALUE {
        return Some(Datum::Null);
    }
    let mask = if descending { 0xff } else { 0 };
    Some(match ty {
        oid::BOOL => Datum::Bool(fixed::<1>(value, mask)? != [0]),
        oid::INT2 => Datum::Int2((u16::from_be_bytes(fixed(value, mask)?) ^ 0x8000) as i16),
        oid::INT4 => Datum::Int4(read_i32(value, mask)?),
        oid::DATE => Datum::Date(read_i32(value, mask)?),
        oid::OID => Datum::Oid(u32::from_be_bytes(fixed(value, mask)?)),
        oid::INT8 => Datum::Int8(read_i64(value, mask)?),
        oid::TIME => Datum::Time(read_i64(value, mask)?),
        oid::TIMESTAMP => Datum::Timestamp(read_i64(value, mask)?),
        oid::TIMESTAMPTZ => Datum::TimestampTz(read_i64(value, mask)?),
        oid::UUID => Datum::Uuid(fixed(value, mask)?),
        oid::MACADDR => Datum::Mac(fixed(value, mask)?),
        oid::MACADDR8 => Datum::Mac8(fixed(value, mask)?),
        oid::TEXT | oid::VARCHAR => match value.split_last_chunk::<2>()?.0 {
            plain if mask == 0 && !plain.contains(&0) => Datum::Text(std::str::from_utf8(plain).ok()?.into()),
            _ => Datum::Text(String::from_utf8(read_bytes(value, mask)?).ok()?.into()),
        },
        oid::BYTEA => Datum::from(read_bytes(value, mask)?),
        _ => return None,
    })
}

fn fixed<const N: usize>(value: &[u8], mask: u8) -> Option<[u8; N]> {
    let bytes: [u8; N] = value.try_into().ok()?;
    Some(bytes.map(|byte| byte ^ mask))
}

fn read_i32(value: &[u8], mask: u8) -> Option<i32> {
    Some((u32::from_be_bytes(fixed(value, mask)?) ^ 0x8000_0000) as i32)
}

fn read_i64(value: &[u8], mask: u8) -> Option<i64> {
    Some((u64::from_be_bytes(fixed(value, mask)?) ^ 1 << 63) as i64)
}

/// What [`write_bytes`] wrote.
fn read_bytes(value: &[u8], mask: u8) -> Option<Vec<u8>> {
    let (content, _) = value.split_last_chunk::<2>()?;
    let mut out = Vec::with_capacity(content.len());
    let mut bytes = content.iter().map(|byte| byte ^ mask);
    while let Some(byte) = bytes.next() {
        out.push(byte);
        if byte == 0 {
            bytes.next().filter(|escape| *escape == 0xff)?;
        }
    }
    Some(out)
}

fn write_i64(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&((v as u64) ^ 1 << 63).to_be_bytes());
}

/// Bytes of any content: 0 becomes 0 255, the end is 0 1 – below every continuation.
pub(crate) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some((part, more)) = rest.split_at_checked(work::STRETCH) {
        count_stretch(part);
        write_part(part, out);
        rest = more;
    }
    write_part(rest, out);
    out.extend_from_slice(&[0, 1]);
}

#[inline]
fn write_part(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|b| *b == 0) {
        out.extend_from_slice(&rest[..zero]);
        out.extend_from_slice(&[0, 0xff]);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
}

/// Elements between two counts.
const LIST_PART: usize = 1024;

fn write_list(values: &[crate::Datum], element: Oid, out: &mut Vec<u8>) {
    for part in values.chunks(LIST_PART) {
        if part.len() == LIST_PART {
            work::beat(8 * LIST_PART);
        }
        part.iter().for_each(|value| encode_key(value.as_ref(), element, false, false, out));
    }
    // Below every marker: a list sorts before those it begins.
    out.push(0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Interval, Numeric, cmp::compare};

    fn key(d: &Datum, descending: bool) -> Vec<u8> {
        let mut out = Vec::new();
        encode_key(d.as_ref(), oid::TEXT, descending, false, &mut out);
        out
    }

    fn same_order(a: Datum, b: Datum) {
        let order = compare(&a.as_ref(), &b.as_ref());
        assert_eq!(key(&a, false).cmp(&key(&b, false)), order, "{a:?} {b:?}");
        assert_eq!(key(&a, true).cmp(&key(&b, true)), order.reverse(), "{a:?} {b:?} descending");
    }

    proptest! {
        #[test]
        fn integers(a: i64, b: i64) {
            same_order(a.into(), b.into());
            same_order((a as i32).into(), (b as i32).into());
            same_order((a as i16).into(), (b as i16).into());
        }

        #[test]
        fn floats(a: f64, b: f64) {
            same_order(a.into(), b.into());
            same_order((a as f32).into(), (b as f32).into());
        }

        #[test]
        fn bytes(a in "[\0ab]{0,4}", b in "[\0ab]{0,4}") {
            same_order(a.as_str().into(), b.as_str().into());
            same_order(a.as_bytes().into(), b.as_bytes().into());
        }

        #[test]
        fn keys_are_read_back(a: i64, b: u32, c in "[\0ab\u{ff}é]{0,5}", d: [u8; 16], e: bool) {
            let values = [
                (Datum::Int8(a), oid::INT8),
                (Datum::Int4(a as i32), oid::INT4),
                (Datum::Text(c.as_str().into()), oid::TEXT),
                (Datum::Int2(a as i16), oid::INT2),
                (Datum::Null, oid::INT4),
                (Datum::Bytea(c.as_bytes().into()), oid::BYTEA),
                (Datum::Oid(b), oid::OID),
                (Datum::Bytea(d.as_slice().into()), oid::BYTEA),
                (Datum::Uuid(d), oid::UUID),
                (Datum::Null, oid::TEXT),
                (Datum::Bool(e), oid::BOOL),
                (Datum::Text(c.as_str().into()), oid::VARCHAR),
                (Datum::Date(b as i32), oid::DATE),
                (Datum::Time(a), oid::TIME),
                (Datum::Timestamp(a), oid::TIMESTAMP),
                (Datum::TimestampTz(a), oid::TIMESTAMPTZ),
            ];
            let descends = |at: usize| b >> (at % 32) & 1 == 1;
            let mut key = Vec::new();
            for (at, (value, ty)) in values.iter().enumerate() {
                encode_key(value.as_ref(), *ty, descends(at), descends(at + 1), &mut key);
            }
            let mut rest = key.as_slice();
            for (at, (value, ty)) in values.iter().enumerate() {
                prop_assert!(key_says_all(*ty));
                let (column, behind) = split_key(rest, *ty, descends(at)).unwrap();
                prop_assert_eq!(&decode_key(column, *ty, descends(at)).unwrap(), value);
                rest = behind;
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn damaged_keys_are_refused_or_read(bytes in proptest::collection::vec(0u8..4, 0..12), descending: bool) {
            for ty in [oid::INT4, oid::TEXT, oid::BYTEA, oid::UUID, oid::BOOL, oid::NUMERIC] {
                if let Some((column, _)) = split_key(&bytes, ty, descending) {
                    let _ = decode_key(column, ty, descending);
                }
                let _ = decode_key(&bytes, ty, descending);
            }
        }

        #[test]
        fn numerics(a in -2000i64..2000, s in 0u16..5, b in -2000i64..2000, t in 0u16..5) {
            same_order(Numeric::new(a, s).into(), Numeric::new(b, t).into());
        }

        #[test]
        fn large_numerics(a: i64, s in 0u16..40, b: i64, t in 0u16..40) {
            same_order(Numeric::new(a, s).into(), Numeric::new(b, t).into());
        }

        #[test]
        fn intervals(a in -100i32..100, b in -100i32..100, m: i32, n: i32) {
            let one = Interval { micros: m as i64 * 1000, days: a, months: a / 7 };
            let other = Interval { micros: n as i64 * 1000, days: b, months: b / 7 };
            same_order(one.into(), other.into());
        }
    }

    #[test]
    fn arrays_are_in_order() {
        let array = |dims: &[(i32, i32)], values: &[Option<&str>]| {
            let values = values.iter().map(|v| (*v).into()).collect();
            Datum::Array(std::sync::Arc::new(crate::Array { element: oid::TEXT, dims: dims.to_vec(), values }))
        };
        let arrays = [
            array(&[], &[]),
            array(&[(1, 1)], &[Some("")]),
            array(&[(1, 1)], &[Some("a")]),
            array(&[(1, 0)], &[Some("a")]),
            array(&[(2, 1)], &[Some("a"), Some("b")]),
            array(&[(1, 1), (2, 1)], &[Some("a"), Some("b")]),
            array(&[(2, 1), (1, 1)], &[Some("a"), Some("b")]),
            array(&[(2, -5)], &[Some("a"), None]),
            array(&[(1, 1)], &[Some("ab")]),
            array(&[(1, 1)], &[None]),
        ];
        for a in &arrays {
            for b in &arrays {
                same_order(a.clone(), b.clone());
            }
        }
    }

    #[test]
    fn columns_can_be_concatenated() {
        let rows = [("", "b"), ("", "c"), ("a", ""), ("a", "z"), ("a\u{1}", ""), ("ab", ""), ("b", "")];
        let key = |(a, b): (&str, &str)| {
            let mut out = Vec::new();
            encode_key(DatumRef::Text(a), oid::TEXT, false, false, &mut out);
            encode_key(DatumRef::Text(b), oid::TEXT, false, false, &mut out);
            out
        };
        assert!(rows.windows(2).all(|w| key(w[0]) < key(w[1])));
    }

    #[test]
    fn special_values_are_in_order() {
        let floats = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
        for a in floats {
            for b in floats {
                same_order(a.into(), b.into());
            }
        }
        let numerics = [
            "-Infinity",
            "-1e20",
            "-1.5",
            "-0.001",
            "0",
            "0.00",
            "1.50",
            "1.5",
            "99999999999999999999",
            "Infinity",
            "NaN",
        ];
        for a in numerics {
            for b in numerics {
                same_order(Numeric::parse(a).unwrap().into(), Numeric::parse(b).unwrap().into());
            }
        }
    }

    #[test]
    fn nulls_go_where_they_are_told() {
        let mut first = Vec::new();
        encode_key(DatumRef::Null, oid::INT4, false, true, &mut first);
        let mut last = Vec::new();
        encode_key(DatumRef::Null, oid::INT4, true, false, &mut last);
        assert!(first < key(&Datum::Int4(i32::MIN), false));
        assert!(last > key(&Datum::Int4(i32::MIN), true));
    }

    #[test]
    fn char_ignores_trailing_blanks() {
        let of = |s: &str| {
            let mut out = Vec::new();
            encode_key(DatumRef::Text(s), oid::BPCHAR, false, false, &mut out);
            out
        };
        assert_eq!(of("a   "), of("a"));
        assert_ne!(of("a b"), of("ab"));
    }
}
