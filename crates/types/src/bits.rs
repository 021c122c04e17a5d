//! Strings of bits: `bit(n)`, `bit varying(n)`.
//!
//! A value is held as the number of bits that its last byte does not use (0 to 7), and its bytes. Functions take and give that form.
//! Invariants: unused bits are 0; a value of no bits is one byte, 0. Bytes of a row that keep neither are read as if they did.

use std::cmp::Ordering;
use std::sync::Arc;

use base::work::{self, Count};
use base::{Error, Result, SqlState};

use crate::datum::shared_bytes;
use crate::room;

/// Bits of the longest value.
pub const BITS_MAX: usize = i32::MAX as usize - 7;

/// Bytes of a value beyond which comparing it is counted.
const LONG: usize = 4096;

/// A value of `len` bits that are in the front of `bytes`; bits behind them are cleared.
pub fn from_bytes(bytes: &[u8], len: usize) -> Arc<[u8]> {
    let mut held = Vec::with_capacity(1 + len.div_ceil(8));
    held.push(0);
    work::append(&mut held, &bytes[..len.div_ceil(8)]);
    finish(held, len)
}

/// Sets what is held of a value beside its bits.
fn finish(mut held: Vec<u8>, len: usize) -> Arc<[u8]> {
    let unused = len.div_ceil(8) * 8 - len;
    held[0] = unused as u8;
    if let Some(last) = held[1..].last_mut() {
        *last &= 0xff << unused;
    }
    shared_bytes(held)
}

/// So many bits, all 0: the form that [`finish`] takes.
///
/// # Errors
/// 54000, 53200
fn zeros(len: usize) -> Result<Vec<u8>> {
    if len > BITS_MAX {
        let message = format!("bit string length exceeds the maximum allowed ({BITS_MAX})");
        return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    room::for_value(1 + len.div_ceil(8))?;
    Ok(vec![0; 1 + len.div_ceil(8)])
}

/// The bytes of a value.
pub fn bytes(held: &[u8]) -> &[u8] {
    held.get(1..).unwrap_or(&[])
}

/// Its bits.
pub fn len(held: &[u8]) -> usize {
    (bytes(held).len() * 8).saturating_sub(held.first().map_or(0, |unused| usize::from(*unused)))
}

/// Bit `i`, counted from the left; behind the end there are none set.
pub fn get(held: &[u8], i: usize) -> bool {
    bytes(held).get(i / 8).is_some_and(|byte| byte & (0x80 >> (i % 8)) != 0)
}

/// By bytes, then by length.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let least = bytes(a).len().min(bytes(b).len());
    if least > LONG {
        work::beat(work::bytes(least));
    }
    bytes(a)[..least].cmp(&bytes(b)[..least]).then(len(a).cmp(&len(b)))
}

/// The order as the number that `bitcmp` answers: the difference of the first bytes that differ.
pub fn order(a: &[u8], b: &[u8]) -> i32 {
    match crate::cmp::difference(bytes(a), bytes(b)) {
        0 => len(a).cmp(&len(b)) as i32,
        difference => difference,
    }
}

fn wrong_digit(digit: char, kind: &str) -> Error {
    Error::new(SqlState::INVALID_TEXT_REPRESENTATION, format!("\"{digit}\" is not a valid {kind} digit"))
}

/// Reads digits, binary (`b` may stand before them) or behind `x` hexadecimal.
///
/// # Errors
/// 22P02, 54000, 53200
pub fn parse(text: &str) -> Result<Arc<[u8]>> {
    if let Some(digits) = text.strip_prefix(['x', 'X']) {
        let mut held = zeros(digits.len().saturating_mul(4))?;
        for (i, digit) in digits.chars().enumerate() {
            work::step(1)?;
            let value = digit.to_digit(16).ok_or_else(|| wrong_digit(digit, "hexadecimal"))?;
            held[1 + i / 2] |= (value as u8) << if i % 2 == 0 { 4 } else { 0 };
        }
        return Ok(finish(held, digits.len() * 4));
    }
    let digits = text.strip_prefix(['b', 'B']).unwrap_or(text);
    let mut held = zeros(digits.len())?;
    for (i, digit) in digits.chars().enumerate() {
        work::step(1)?;
        match digit {
            '0' => {}
            '1' => held[1 + i / 8] |= 0x80 >> (i % 8),
            digit => return Err(wrong_digit(digit, "binary")),
        }
    }
    Ok(finish(held, digits.len()))
}

/// Appends the binary digits.
///
/// # Errors
/// 54000, 53200
pub fn write(held: &[u8], out: &mut Vec<u8>) -> Result<()> {
    use crate::room::Room as _;
    out.make_room(len(held))?;
    out.extend((0..len(held)).counted(1).map(|i| b'0' + u8::from(get(held, i))));
    Ok(())
}

/// `len` bits from place `from` on; behind the end of the value there are zeros.
///
/// # Errors
/// 54000, 53200
pub fn slice(held: &[u8], from: usize, len: usize) -> Result<Arc<[u8]>> {
    let mut made = zeros(len)?;
    copy(held, from, &mut made, 0, len);
    Ok(finish(made, len))
}

/// Adds `len` bits of a value from place `from` to what is 0 there.
fn copy(held: &[u8], from: usize, made: &mut [u8], to: usize, len: usize) {
    let source = bytes(held);
    let byte = |i: usize| u16::from(source.get(i).copied().unwrap_or(0));
    let mut done = 0;
    while done < len {
        work::beat(1);
        let (at, place) = (from + done, to + done);
        // As many bits as the byte at the place has room for.
        let count = (8 - place % 8).min(len - done);
        let pair = byte(at / 8) << 8 | byte(at / 8 + 1);
        let bits = ((pair << (at % 8)) >> 8) as u8;
        let bits = bits & !(0xff_u16 >> count) as u8;
        made[1 + place / 8] |= bits >> (place % 8);
        done += count;
    }
}

/// One value behind the other.
///
/// # Errors
/// 54000, 53200
pub fn join(parts: &[&[u8]]) -> Result<Arc<[u8]>> {
    let whole = parts.iter().map(|part| len(part)).sum();
    let mut made = zeros(whole)?;
    let mut at = 0;
    for part in parts {
        copy(part, 0, &mut made, at, len(part));
        at += len(part);
    }
    Ok(finish(made, whole))
}

/// Moved by so many places to the right, to the left if it is negative; as long as before.
///
/// # Errors
/// 53200
pub fn shifted(held: &[u8], places: i64) -> Result<Arc<[u8]>> {
    let whole = len(held);
    let by = usize::try_from(places.unsigned_abs()).unwrap_or(usize::MAX).min(whole);
    let mut made = zeros(whole)?;
    match places < 0 {
        true => copy(held, by, &mut made, 0, whole - by),
        false => copy(held, 0, &mut made, by, whole - by),
    }
    Ok(finish(made, whole))
}

/// Bit by bit.
///
/// # Errors
/// 22026 for values of different lengths.
pub fn combined(a: &[u8], b: &[u8], verb: &str, combine: fn(u8, u8) -> u8) -> Result<Arc<[u8]>> {
    if len(a) != len(b) {
        let message = format!("cannot {verb} bit strings of different sizes");
        return Err(Error::new(SqlState::STRING_DATA_LENGTH_MISMATCH, message));
    }
    let mut made = zeros(len(a))?;
    for (to, (a, b)) in made[1..].iter_mut().zip(bytes(a).iter().zip(bytes(b))).counted(1) {
        *to = combine(*a, *b);
    }
    Ok(finish(made, len(a)))
}

/// All bits turned round.
///
/// # Errors
/// 53200
pub fn inverted(held: &[u8]) -> Result<Arc<[u8]>> {
    combined(held, held, "", |a, _| !a)
}

/// A copy with one bit set or cleared.
///
/// # Errors
/// 53200
pub fn with_bit(held: &[u8], i: usize, bit: bool) -> Result<Arc<[u8]>> {
    let mut made = zeros(len(held))?;
    copy(held, 0, &mut made, 0, len(held));
    let mask = 0x80 >> (i % 8);
    match bit {
        true => made[1 + i / 8] |= mask,
        false => made[1 + i / 8] &= !mask,
    }
    Ok(finish(made, len(held)))
}

/// How many bits are set.
pub fn count(held: &[u8]) -> i64 {
    bytes(held).iter().counted(1).map(|byte| i64::from(byte.count_ones())).sum()
}

/// Where a value is in another, counted from 1; 0 if nowhere. An empty one is at the beginning of what is not empty.
pub fn position(part: &[u8], held: &[u8]) -> usize {
    let (wanted, whole) = (len(part), len(held));
    if whole == 0 || wanted > whole {
        return 0;
    }
    let is_at = |at: usize| (0..wanted).counted(1).all(|i| get(part, i) == get(held, at + i));
    (0..=whole - wanted).counted(1).find(|at| is_at(*at)).map_or(0, |at| at + 1)
}

/// `bits` of a whole number, the lowest last; more than it has repeat its sign.
///
/// # Errors
/// 53200
pub fn from_number(number: i64, bits: usize) -> Result<Arc<[u8]>> {
    let mut made = zeros(bits)?;
    let fill = if number < 0 { 0xff } else { 0 };
    // The bits of the number stand at the end.
    let own = bits.min(64);
    let shifted = if own == 0 { 0 } else { (number as u64) << (64 - own) };
    made[1..].iter_mut().counted(1).for_each(|byte| *byte = fill);
    let start = bits - own;
    for i in 0..own {
        let (at, mask) = (1 + (start + i) / 8, 0x80 >> ((start + i) % 8));
        match shifted << i >> 63 {
            1 => made[at] |= mask,
            _ => made[at] &= !mask,
        }
    }
    Ok(finish(made, bits))
}

/// The whole number of at most 64 bits that a value is; `None` if it has more.
pub fn to_number(held: &[u8]) -> Option<u64> {
    let whole = len(held);
    (whole <= 64).then(|| (0..whole).fold(0, |number, i| number << 1 | u64::from(get(held, i))))
}

/// Makes a value as long as `bit(n)` says, or not longer than `bit varying(n)` does. An explicit cast cuts and fills.
///
/// # Errors
/// 22026, 22001
pub fn fit(held: Arc<[u8]>, most: usize, varies: bool, explicit: bool) -> Result<Arc<[u8]>> {
    let whole = len(&held);
    if whole == most || varies && whole < most {
        return Ok(held);
    }
    match (explicit, varies) {
        (true, _) => slice(&held, 0, most),
        (false, true) => Err(Error::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("bit string too long for type bit varying({most})"),
        )),
        (false, false) => Err(Error::new(
            SqlState::STRING_DATA_LENGTH_MISMATCH,
            format!("bit string length {whole} does not match type bit({most})"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(held: &[u8]) -> String {
        let mut out = Vec::new();
        write(held, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn bits_are_moved_across_bytes() {
        let value = parse("110100111000111100001").unwrap();
        let digits = text(&value);
        for from in 0..=21 {
            for length in 0..=21 - from {
                assert_eq!(text(&slice(&value, from, length).unwrap()), digits[from..from + length]);
            }
            let places = from as i64;
            assert_eq!(
                text(&shifted(&value, places).unwrap()),
                format!("{}{}", "0".repeat(from), &digits[..21 - from])
            );
            assert_eq!(text(&shifted(&value, -places).unwrap()), format!("{}{}", &digits[from..], "0".repeat(from)));
            let head = slice(&value, 0, from).unwrap();
            assert_eq!(text(&join(&[&head, &value]).unwrap()), format!("{}{digits}", &digits[..from]));
        }
        assert_eq!(text(&parse("x1fA").unwrap()), "000111111010");
        assert_eq!(position(&parse("0011").unwrap(), &value), 5);
    }

    #[test]
    fn numbers_have_their_bits() {
        for (number, bits, digits) in
            [(5, 4, "0101"), (-1, 10, "1111111111"), (-2, 3, "110"), (9, 3, "001"), (1, 0, "")]
        {
            assert_eq!(text(&from_number(number, bits).unwrap()), digits);
        }
        let long = text(&from_number(-2, 70).unwrap());
        assert_eq!(long, format!("{}0", "1".repeat(69)));
        assert_eq!(to_number(&parse("101").unwrap()), Some(5));
    }
}
