//! Functions of strings of bits: `bit(n)`, `bit varying(n)`.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use types::oid::*;
use types::{Datum, bits};

use super::arithmetic::overflow_of;
use super::entry::{immutable, mismatched};
use super::text::negative_length;
use super::{EvalContext, Function};

/// A comparison.
macro_rules! compared {
    ($op:tt) => {
        |_, args| match args {
            [Datum::Bits(a), Datum::Bits(b)] => Ok(Datum::Bool(bits::compare(a, b) $op std::cmp::Ordering::Equal)),
            _ => mismatched(args),
        }
    };
}

/// A function of one string of bits.
macro_rules! one {
    (|$a:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Bits($a)] => Ok($value),
            _ => mismatched(args),
        }
    };
}

/// A function of two strings of bits.
macro_rules! two {
    (|$a:ident, $b:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Bits($a), Datum::Bits($b)] => Ok($value),
            _ => mismatched(args),
        }
    };
}

/// The bits from `start` (counted from 1, may be less) that are before `start + length`.
fn part(held: &[u8], start: i32, length: Option<i32>) -> Result<Arc<[u8]>> {
    let place = |at: i64| at.clamp(0, bits::len(held) as i64) as usize;
    let from = i64::from(start) - 1;
    let to = match length {
        None => i64::MAX,
        Some(length) if length < 0 => return Err(negative_length()),
        Some(length) => from + i64::from(length),
    };
    bits::slice(held, place(from), place(to).saturating_sub(place(from)))
}

fn substring(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Bits(held), Datum::Int4(start)] => Ok(Datum::Bits(part(held, *start, None)?)),
        [Datum::Bits(held), Datum::Int4(start), Datum::Int4(length)] => {
            Ok(Datum::Bits(part(held, *start, Some(*length))?))
        }
        _ => mismatched(args),
    }
}

fn overlay(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (held, new, from, count) = match args {
        [Datum::Bits(held), Datum::Bits(new), Datum::Int4(from)] => (held, new, *from, bits::len(new) as i32),
        [Datum::Bits(held), Datum::Bits(new), Datum::Int4(from), Datum::Int4(count)] => (held, new, *from, *count),
        _ => return mismatched(args),
    };
    if from <= 0 {
        return Err(negative_length());
    }
    let beyond = || overflow_of("integer");
    let behind = from.checked_add(count).ok_or_else(beyond)?;
    let (before, after) = (part(held, 1, Some(from - 1))?, part(held, behind, None)?);
    Ok(Datum::Bits(bits::join(&[&before, new, &after])?))
}

/// A place that must be within the value.
fn index(held: &[u8], n: i32) -> Result<usize> {
    match usize::try_from(n) {
        Ok(at) if at < bits::len(held) => Ok(at),
        _ => {
            let last = bits::len(held) as i64 - 1;
            let message = format!("bit index {n} out of valid range (0..{last})");
            Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message))
        }
    }
}

fn get_bit(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Bits(held), Datum::Int4(n)] => Ok(Datum::Int4(bits::get(held, index(held, *n)?).into())),
        _ => mismatched(args),
    }
}

fn set_bit(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bits(held), Datum::Int4(n), Datum::Int4(bit)] = args else { return mismatched(args) };
    let at = index(held, *n)?;
    match bit {
        0 | 1 => Ok(Datum::Bits(bits::with_bit(held, at, *bit == 1)?)),
        _ => Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, "new bit must be 0 or 1")),
    }
}

fn shifted(args: &[Datum], direction: i64) -> Result<Datum> {
    match args {
        [Datum::Bits(held), Datum::Int4(places)] => {
            Ok(Datum::Bits(bits::shifted(held, direction * i64::from(*places))?))
        }
        _ => mismatched(args),
    }
}

/// So many bits of a number as the type's modifier says; one if it says nothing.
fn from_number(args: &[Datum]) -> Result<Datum> {
    let (number, typmod) = match args {
        [Datum::Int4(number), Datum::Int4(typmod)] => (i64::from(*number), *typmod),
        [Datum::Int8(number), Datum::Int4(typmod)] => (*number, *typmod),
        _ => return mismatched(args),
    };
    let bits = usize::try_from(typmod).unwrap_or(0).max(1);
    Ok(Datum::Bits(bits::from_number(number, bits)?))
}

fn to_int4(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bits(held)] = args else { return mismatched(args) };
    let number = bits::to_number(held).and_then(|number| u32::try_from(number).ok());
    let fits = number.filter(|_| bits::len(held) <= 32);
    fits.map(|number| Datum::Int4(number as i32)).ok_or_else(|| overflow_of("integer"))
}

fn to_int8(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bits(held)] = args else { return mismatched(args) };
    bits::to_number(held).map(|number| Datum::Int8(number as i64)).ok_or_else(|| overflow_of("bigint"))
}

/// A value with its type's modifier applied.
fn limited(args: &[Datum], ty: base::Oid) -> Result<Datum> {
    match args {
        // Without a length any is right.
        [value, Datum::Int4(typmod), Datum::Bool(_)] if *typmod <= 0 => Ok(value.clone()),
        [value, Datum::Int4(typmod), Datum::Bool(explicit)] => {
            types::apply_typmod(value.clone(), ty, *typmod, *explicit)
        }
        _ => mismatched(args),
    }
}

fn length(held: &[u8]) -> Datum {
    Datum::Int4(bits::len(held) as i32)
}

/// The table, by OID.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(1581, "biteq", &[BIT, BIT], BOOL, compared!(==)).leakproof(),
    immutable(1582, "bitne", &[BIT, BIT], BOOL, compared!(!=)).leakproof(),
    immutable(1592, "bitge", &[BIT, BIT], BOOL, compared!(>=)).leakproof(),
    immutable(1593, "bitgt", &[BIT, BIT], BOOL, compared!(>)).leakproof(),
    immutable(1594, "bitle", &[BIT, BIT], BOOL, compared!(<=)).leakproof(),
    immutable(1595, "bitlt", &[BIT, BIT], BOOL, compared!(<)).leakproof(),
    immutable(1596, "bitcmp", &[BIT, BIT], INT4, two!(|a, b| Datum::Int4(bits::order(a, b)))).leakproof(),
    immutable(1666, "varbiteq", &[VARBIT, VARBIT], BOOL, compared!(==)).leakproof(),
    immutable(1667, "varbitne", &[VARBIT, VARBIT], BOOL, compared!(!=)).leakproof(),
    immutable(1668, "varbitge", &[VARBIT, VARBIT], BOOL, compared!(>=)).leakproof(),
    immutable(1669, "varbitgt", &[VARBIT, VARBIT], BOOL, compared!(>)).leakproof(),
    immutable(1670, "varbitle", &[VARBIT, VARBIT], BOOL, compared!(<=)).leakproof(),
    immutable(1671, "varbitlt", &[VARBIT, VARBIT], BOOL, compared!(<)).leakproof(),
    immutable(1672, "varbitcmp", &[VARBIT, VARBIT], INT4, two!(|a, b| Datum::Int4(bits::order(a, b))))
        .leakproof(),
    immutable(1673, "bitand", &[BIT, BIT], BIT, two!(|a, b| Datum::Bits(bits::combined(a, b, "AND", |a, b| a & b)?))),
    immutable(1674, "bitor", &[BIT, BIT], BIT, two!(|a, b| Datum::Bits(bits::combined(a, b, "OR", |a, b| a | b)?))),
    immutable(1675, "bitxor", &[BIT, BIT], BIT, two!(|a, b| Datum::Bits(bits::combined(a, b, "XOR", |a, b| a ^ b)?))),
    immutable(1676, "bitnot", &[BIT], BIT, one!(|a| Datum::Bits(bits::inverted(a)?))),
    immutable(1677, "bitshiftleft", &[BIT, INT4], BIT, |_, a| shifted(a, -1)),
    immutable(1678, "bitshiftright", &[BIT, INT4], BIT, |_, a| shifted(a, 1)),
    immutable(1679, "bitcat", &[VARBIT, VARBIT], VARBIT, two!(|a, b| Datum::Bits(bits::join(&[a, b])?))),
    immutable(1680, "substring", &[BIT, INT4, INT4], BIT, substring),
    immutable(1681, "length", &[BIT], INT4, one!(|a| length(a))),
    immutable(1682, "octet_length", &[BIT], INT4, one!(|a| Datum::Int4(bits::bytes(a).len() as i32))),
    immutable(1683, "bit", &[INT4, INT4], BIT, |_, a| from_number(a)),
    immutable(1684, "int4", &[BIT], INT4, to_int4),
    immutable(1685, "bit", &[BIT, INT4, BOOL], BIT, |_, a| limited(a, BIT)),
    immutable(1687, "varbit", &[VARBIT, INT4, BOOL], VARBIT, |_, a| limited(a, VARBIT)),
    immutable(1698, "position", &[BIT, BIT], INT4, two!(|a, b| Datum::Int4(bits::position(b, a) as i32))),
    immutable(1699, "substring", &[BIT, INT4], BIT, substring),
    immutable(1812, "bit_length", &[BIT], INT4, one!(|a| length(a))),
    immutable(2075, "bit", &[INT8, INT4], BIT, |_, a| from_number(a)),
    immutable(2076, "int8", &[BIT], INT8, to_int8),
    immutable(3030, "overlay", &[BIT, BIT, INT4, INT4], BIT, overlay),
    immutable(3031, "overlay", &[BIT, BIT, INT4], BIT, overlay),
    immutable(3032, "get_bit", &[BIT, INT4], INT4, get_bit),
    immutable(3033, "set_bit", &[BIT, INT4, INT4], BIT, set_bit),
    immutable(6162, "bit_count", &[BIT], INT8, one!(|a| Datum::Int8(bits::count(a)))),
];
