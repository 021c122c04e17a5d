//! Text forms of what identifies transactions, commands and places of rows: `xid`, `xid8`, `cid`, `tid`.
//!
//! A `tid` is held as [`Datum::Int8`], the block above 16 bits of the offset; an `xid8` as one whose highest bit is inverted. So
//! both have the order of their numbers.

use base::{Result, work};

use super::{invalid_syntax, write_int};
use crate::Datum;

/// Bits of the offset in a `tid`.
const OFFSET_BITS: u32 = 16;
/// What makes the order of numbers without a sign that of numbers with one.
const HIGHEST: u64 = 1 << 63;

/// Digits that are read between two counts of the work.
const DIGITS_AT_ONCE: usize = 1 << 12;

/// A `tid`.
pub fn tid(block: u32, offset: u16) -> Datum {
    Datum::Int8((i64::from(block) << OFFSET_BITS) | i64::from(offset))
}

/// Block and offset of a `tid`.
pub fn tid_parts(tid: i64) -> (u32, u16) {
    ((tid >> OFFSET_BITS) as u32, tid as u16)
}

/// An `xid8`.
pub fn xid8(number: u64) -> Datum {
    Datum::Int8((number ^ HIGHEST) as i64)
}

/// The number of an `xid8`.
pub fn xid8_number(xid8: i64) -> u64 {
    xid8 as u64 ^ HIGHEST
}

/// C's `strtoul`: a number in front, decimal, octal behind `0` or hexadecimal behind `0x` if `based`; and what follows it. A
/// number that is too large is the largest, and said to be wrong.
pub(crate) fn strtoul(text: &[u8], based: bool) -> (u64, bool, &[u8]) {
    let blanks = text.iter().take_while(|b| b.is_ascii_whitespace() || **b == 0x0b).count();
    let (negative, unsigned) = match &text[blanks..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (base, digits) = match unsigned {
        [b'0', b'x' | b'X', rest @ ..] if based && rest.first().is_some_and(u8::is_ascii_hexdigit) => (16, rest),
        [b'0', ..] if based => (8, unsigned),
        _ => (10, unsigned),
    };
    let (mut value, mut fits, mut len) = (0u64, true, 0);
    while let Some(digit) = digits.get(len).and_then(|b| char::from(*b).to_digit(base)) {
        let next = value.checked_mul(base.into()).and_then(|v| v.checked_add(digit.into()));
        (value, fits) = (next.unwrap_or(u64::MAX), fits && next.is_some());
        len += 1;
        if len.is_multiple_of(DIGITS_AT_ONCE) {
            work::beat(DIGITS_AT_ONCE);
        }
    }
    // Without a digit nothing was taken.
    let rest = if len == 0 { text } else { &digits[len..] };
    (if negative && fits { value.wrapping_neg() } else { value }, fits, rest)
}

/// A transaction or command id.
pub(super) fn parse_xid(text: &str) -> u32 {
    strtoul(text.as_bytes(), true).0 as u32
}

/// A whole transaction number.
pub(super) fn parse_xid8(text: &str) -> Datum {
    xid8(strtoul(text.as_bytes(), true).0)
}

/// `(block,offset)`, with whatever behind.
pub(super) fn parse_tid(text: &str) -> Result<Datum> {
    let invalid = || invalid_syntax("tid", text);
    let bytes = text.as_bytes();
    // As PostgreSQL looks for the two numbers: the first behind a parenthesis, the other behind a comma.
    let (mut starts, mut found) = ([0usize; 2], 0);
    for (at, byte) in bytes.iter().enumerate() {
        if found == 2 || *byte == b')' {
            break;
        }
        if *byte == b',' || *byte == b'(' && found == 0 {
            starts[found] = at + 1;
            found += 1;
        }
    }
    if found < 2 {
        return Err(invalid());
    }
    let (block, fits, rest) = strtoul(&bytes[starts[0]..], false);
    let is_block = block == u64::from(block as u32) || block == block as i32 as u64;
    if !fits || rest.first() != Some(&b',') || !is_block {
        return Err(invalid());
    }
    let (offset, fits, rest) = strtoul(&bytes[starts[1]..], false);
    match u16::try_from(offset) {
        Ok(offset) if fits && rest.first() == Some(&b')') => Ok(tid(block as u32, offset)),
        _ => Err(invalid()),
    }
}

pub(super) fn write_tid(value: i64, out: &mut Vec<u8>) {
    let (block, offset) = tid_parts(value);
    out.push(b'(');
    write_int(block.into(), out);
    out.push(b',');
    write_int(offset.into(), out);
    out.push(b')');
}

pub(super) fn write_xid8(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(xid8_number(value)).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(parse_xid("12x"), 12);
        assert_eq!(parse_xid(" -1"), u32::MAX);
        assert_eq!(parse_xid("0x10"), 16);
        assert_eq!(parse_xid("010"), 8);
        assert_eq!(parse_xid("x"), 0);
        assert_eq!(strtoul(b"99999999999999999999", true), (u64::MAX, false, &b""[..]));
    }

    #[test]
    fn places_are_in_the_order_of_their_numbers() {
        let order = ["(0,1)", "(0,65535)", "(1,0)", "(2147483648,1)", "(-1,1)"];
        let values: Vec<i64> = order.iter().filter_map(|text| parse_tid(text).ok()?.integer()).collect();
        assert!(values.len() == order.len() && values.is_sorted());
        for wrong in ["", "1,2", "(1,2", "(1 ,2)", "(1,2,3)", "(1,65536)", "(4294967296,1)", "(,)"] {
            assert_eq!(parse_tid(wrong).ok(), (wrong == "(,)").then(|| tid(0, 0)), "{wrong}");
        }
    }
}
