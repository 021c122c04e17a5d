//! Text input.

use super::calendar::valid_julian;
use super::decode::{Decoded, decode_time, decode_timestamp};
use super::{
    Civil, DATE_END, DATE_INFINITY, DATE_MIN, DATE_NEG_INFINITY, MICROS_PER_SEC, TIMESTAMP_INFINITY,
    TIMESTAMP_NEG_INFINITY, UNIX_EPOCH_MICROS, in_range, overflow,
};
use crate::settings::InputContext;
use base::Result;

/// Reads a `date`.
pub fn parse_date(text: &str, cx: &InputContext<'_>) -> Result<i32> {
    if let Some((c, "")) = iso_date(text) {
        return Ok(c.days() as i32);
    }
    match decode_timestamp(text, cx).map_err(|bad| bad.error(text, "date"))? {
        Decoded::Infinity => Ok(DATE_INFINITY),
        Decoded::NegInfinity => Ok(DATE_NEG_INFINITY),
        Decoded::Epoch => Ok((UNIX_EPOCH_MICROS / super::MICROS_PER_DAY) as i32),
        Decoded::At(c, _) => {
            let days = if valid_julian(c.year, c.month) { c.days() } else { i64::MAX };
            if !(i64::from(DATE_MIN)..i64::from(DATE_END)).contains(&days) {
                return Err(overflow(format!("date out of range: \"{text}\"")));
            }
            Ok(days as i32)
        }
    }
}

/// Reads a `time`: microseconds since midnight. A zone is read and ignored.
pub fn parse_time(text: &str, cx: &InputContext<'_>) -> Result<i64> {
    let (c, _) = decode_time(text, cx).map_err(|bad| bad.error(text, "time"))?;
    Ok(c.time_micros())
}

/// Reads a `timetz`: microseconds since midnight, seconds west of UTC.
pub fn parse_timetz(text: &str, cx: &InputContext<'_>) -> Result<(i64, i32)> {
    let (c, west) = decode_time(text, cx).map_err(|bad| bad.error(text, "time with time zone"))?;
    Ok((c.time_micros(), west))
}

/// Reads a `timestamp`. A zone is read and ignored.
pub fn parse_timestamp(text: &str, cx: &InputContext<'_>) -> Result<i64> {
    if let Some((c, "")) = iso_timestamp(text) {
        return Ok(c.days() * super::MICROS_PER_DAY + c.time_micros());
    }
    match decode_timestamp(text, cx).map_err(|bad| bad.error(text, "timestamp"))? {
        Decoded::Infinity => Ok(TIMESTAMP_INFINITY),
        Decoded::NegInfinity => Ok(TIMESTAMP_NEG_INFINITY),
        Decoded::Epoch => Ok(UNIX_EPOCH_MICROS),
        Decoded::At(c, _) => c.timestamp().ok_or_else(|| out_of_range(text)),
    }
}

/// Reads a `timestamptz`; without a zone it is local time of the session's zone.
pub fn parse_timestamptz(text: &str, cx: &InputContext<'_>) -> Result<i64> {
    match decode_timestamp(text, cx).map_err(|bad| bad.error(text, "timestamp with time zone"))? {
        Decoded::Infinity => Ok(TIMESTAMP_INFINITY),
        Decoded::NegInfinity => Ok(TIMESTAMP_NEG_INFINITY),
        Decoded::Epoch => Ok(UNIX_EPOCH_MICROS),
        Decoded::At(c, west) => to_utc(&c, west).ok_or_else(|| out_of_range(text)),
    }
}

/// The instant of a local time with its offset.
pub(crate) fn to_utc(c: &Civil, west: i32) -> Option<i64> {
    if !valid_julian(c.year, c.month) {
        return None;
    }
    let local = c.days().checked_mul(super::MICROS_PER_DAY)?.checked_add(c.time_micros())?;
    let t = local.checked_add(i64::from(west) * MICROS_PER_SEC)?;
    in_range(t).then_some(t)
}

#[cold]
fn out_of_range(text: &str) -> base::Error {
    overflow(format!("timestamp out of range: \"{text}\""))
}

/// `N` digits at `at`.
fn fixed<const N: usize>(b: &[u8], at: usize) -> Option<i32> {
    let mut n = 0;
    for &d in b.get(at..at + N)? {
        if !d.is_ascii_digit() {
            return None;
        }
        n = n * 10 + i32::from(d - b'0');
    }
    Some(n)
}

/// The usual form `YYYY-MM-DD` without a detour, and the rest of the text; `None` sends the text to the full decoder.
fn iso_date(text: &str) -> Option<(Civil, &str)> {
    let b = text.as_bytes();
    let (year, month, day) = (fixed::<4>(b, 0)?, fixed::<2>(b, 5)?, fixed::<2>(b, 8)?);
    if b[4] != b'-' || b[7] != b'-' || year == 0 || !(1..=12).contains(&month) {
        return None;
    }
    if day < 1 || day > super::calendar::days_in_month(year, month) {
        return None;
    }
    Some((Civil { year, month, day, ..Civil::default() }, text.get(10..)?))
}

/// `YYYY-MM-DD[ HH:MM:SS[.f]]`
fn iso_timestamp(text: &str) -> Option<(Civil, &str)> {
    let (mut c, rest) = iso_date(text)?;
    if rest.is_empty() {
        return Some((c, rest));
    }
    let b = rest.as_bytes();
    let (hour, minute, second) = (fixed::<2>(b, 1)?, fixed::<2>(b, 4)?, fixed::<2>(b, 7)?);
    if !matches!(b[0], b' ' | b'T') || b[3] != b':' || b[6] != b':' || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    (c.hour, c.minute, c.second) = (hour, minute, second);
    let rest = rest.get(9..)?;
    let Some(digits) = rest.strip_prefix('.') else { return Some((c, rest)) };
    let n = digits.bytes().take_while(u8::is_ascii_digit).count();
    // More digits need rounding.
    if n == 0 || n > 6 {
        return None;
    }
    let scale = 10i32.pow(6 - n as u32);
    c.micro = digits.as_bytes()[..n].iter().fold(0, |m, d| m * 10 + i32::from(d - b'0')) * scale;
    Some((c, &digits[n..]))
}
