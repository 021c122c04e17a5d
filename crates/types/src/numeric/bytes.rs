//! NUMERIC as bytes: the row form, the binary wire form and the order-preserving form.

use std::cmp::Ordering;

use base::{Error, Result, SqlState};
use num_bigint::BigInt;
use num_traits::{Signed, Zero};

use super::{Numeric, NumericRef, Repr, SCALE_MAX, Source, pow10};
use crate::io::Input;

impl Numeric {
    /// Appends the row form: a tag byte, then for a small value its scale and the fewest bytes of its mantissa.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::NaN => out.push(0xf0),
            Repr::Infinity => out.push(0xf1),
            Repr::NegInfinity => out.push(0xf2),
            Repr::Small(m, s) if *s < 30 => {
                // Scales below 30 share the tag byte with the form.
                out.push(*s as u8);
                let bytes = m.to_le_bytes();
                out.extend_from_slice(&bytes[..significant(*m)]);
            }
            _ => {
                let Some((m, s)) = self.parts() else { return };
                out.push(0xe0);
                out.extend_from_slice(&(s as u16).to_le_bytes());
                out.extend_from_slice(&m.to_signed_bytes_le());
            }
        }
    }

    /// Reads the binary wire form: base-10000 digits.
    ///
    /// # Errors
    /// 08P01, 22P03; 22003 for a number beyond the type's range.
    pub(crate) fn read_binary(input: &mut Input<'_>) -> Result<Numeric> {
        let invalid = |what: &str| {
            Error::new(SqlState::INVALID_BINARY_REPRESENTATION, format!("invalid {what} in external \"numeric\" value"))
        };
        let count = input.short()? as usize;
        let weight = i64::from(input.short()? as i16);
        let sign = input.short()?;
        if !matches!(sign, 0x0000 | 0x4000 | 0xc000 | 0xd000 | 0xf000) {
            return Err(invalid("sign"));
        }
        let scale = u32::from(input.short()?);
        if scale > SCALE_MAX {
            return Err(invalid("scale"));
        }
        let mut m = BigInt::zero();
        // What stands behind the scale is cut off, so it need not be computed.
        let wanted = (weight + 1 + i64::from(scale.div_ceil(4))).clamp(0, count as i64) as usize;
        for at in 0..count {
            base::work::step(1 + at / 16)?;
            let digit = input.short()?;
            if digit >= 10_000 {
                return Err(invalid("digit"));
            }
            if at < wanted {
                m = m * 10_000u32 + digit;
            }
        }
        match sign {
            0xc000 => return Ok(Numeric::NAN),
            0xd000 => return Ok(Numeric::INFINITY),
            0xf000 => return Ok(Numeric::NEG_INFINITY),
            _ => {}
        }
        // The last digit stands at 10000^(weight - wanted + 1).
        let exponent = 4 * (weight - wanted as i64 + 1) + i64::from(scale);
        let m = if exponent >= 0 { m * pow10(exponent as u32) } else { m / pow10((-exponent) as u32) };
        Numeric::checked(if sign == 0x4000 { -m } else { m }, scale)
    }

    /// Appends the binary wire form.
    pub fn write_binary(&self, out: &mut Vec<u8>) {
        let mut header = |count: u16, weight: i16, sign: u16, scale: u16| {
            for word in [count, weight as u16, sign, scale] {
                out.extend_from_slice(&word.to_be_bytes());
            }
        };
        if let Repr::Small(m, s) = self.0 {
            // The fraction padded to whole base-10000 digits; at most 22 decimal digits in all.
            let pad = (4 - s % 4) % 4;
            let mut rest = m.unsigned_abs() as u128 * 10u128.pow(pad as u32);
            let (mut digits, mut len, mut trailing) = ([0u16; 6], 0, 0);
            while rest > 0 {
                digits[len] = (rest % 10_000) as u16;
                rest /= 10_000;
                trailing += (trailing == len && digits[len] == 0) as usize;
                len += 1;
            }
            let weight = if len == 0 { 0 } else { len as i16 - ((s + pad) / 4) as i16 - 1 };
            header((len - trailing) as u16, weight, if m < 0 { 0x4000 } else { 0 }, s);
            for digit in digits[trailing..len].iter().rev() {
                out.extend_from_slice(&digit.to_be_bytes());
            }
            return;
        }
        let Some((m, s)) = self.parts() else {
            // The scales are what PostgreSQL's packed form of the infinities happens to show.
            return match self.0 {
                Repr::Infinity => header(0, 0, 0xd000, 0x20),
                Repr::NegInfinity => header(0, 0, 0xf000, 0x20),
                _ => header(0, 0, 0xc000, 0),
            };
        };
        // Pad the fraction to whole base-10000 digits.
        let pad = (4 - s % 4) % 4;
        let fraction_digits = (s + pad) / 4;
        let decimal = match m.is_zero() {
            true => String::new(),
            false => super::long::digits(&(m.abs() * pow10(pad))),
        };
        let of = |four: &[u8]| four.iter().fold(0u16, |n, digit| n * 10 + u16::from(digit - b'0'));
        let digits: Vec<u16> = decimal.as_bytes().rchunks(4).map(of).collect();
        let weight = digits.len() as i64 - fraction_digits as i64 - 1;
        let trailing = digits.iter().take_while(|d| **d == 0).count();
        let kept = &digits[trailing..];
        let weight = if kept.is_empty() { 0 } else { weight as i16 };
        header(kept.len() as u16, weight, if m.is_negative() { 0x4000 } else { 0 }, s as u16);
        for digit in kept.iter().rev() {
            out.extend_from_slice(&digit.to_be_bytes());
        }
    }

    /// Bytes that PostgreSQL's own form of it takes, with its length.
    pub fn stored_len(&self) -> usize {
        let mut binary = Vec::new();
        self.write_binary(&mut binary);
        let word = |at: usize| binary.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
        let (digits, weight, scale) = (usize::from(word(0)), word(2) as i16, word(6));
        let is_short = !self.is_finite() || (-64..64).contains(&weight) && scale < 64;
        4 + if is_short { 2 } else { 4 } + 2 * digits
    }

    /// Appends an order-preserving form without its display scale: sign, exponent, then two decimal digits a byte.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        match self.0 {
            Repr::NegInfinity => return out.push(0),
            Repr::Infinity => return out.push(4),
            Repr::NaN => return out.push(5),
            _ => {}
        }
        let Some(exponent) = self.exponent() else { return out.push(2) };
        let negative = self.signum() < 0;
        let (mut buffer, large);
        let mut digits: &[u8] = match &self.0 {
            Repr::Small(m, _) => {
                buffer = [0u8; 20];
                let at = super::decimal(m.unsigned_abs(), &mut buffer);
                &buffer[at..]
            }
            Repr::Large(b) => {
                large = super::long::digits(&b.0).into_bytes();
                &large
            }
            _ => return,
        };
        while let [rest @ .., b'0'] = digits {
            digits = rest;
        }
        out.push(if negative { 1 } else { 3 });
        let start = out.len();
        out.extend_from_slice(&((exponent as i32 as u32) ^ 0x8000_0000).to_be_bytes());
        for pair in digits.chunks(2) {
            let tens = pair[0] - b'0';
            let ones = pair.get(1).map_or(0, |d| d - b'0');
            // Never 0, so that the terminator sorts first.
            out.push(tens * 10 + ones + 1);
        }
        out.push(0);
        if negative {
            for byte in &mut out[start..] {
                *byte = !*byte;
            }
        }
    }
}

/// A mantissa from its bytes, eight at most.
#[inline]
fn mantissa(bytes: &[u8]) -> Option<i64> {
    Some(match *bytes {
        [a] => i64::from(a as i8),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c] => i64::from(i32::from_le_bytes([0, a, b, c]) >> 8),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e] => i64::from_le_bytes([0, 0, 0, a, b, c, d, e]) >> 24,
        [a, b, c, d, e, f] => i64::from_le_bytes([0, 0, a, b, c, d, e, f]) >> 16,
        [a, b, c, d, e, f, g] => i64::from_le_bytes([0, a, b, c, d, e, f, g]) >> 8,
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        [] => 0,
        _ => return None,
    })
}

/// Bytes needed to hold a mantissa in two's complement.
fn significant(m: i64) -> usize {
    let bits = 65 - (m ^ (m >> 63)).leading_zeros() as usize;
    bits.div_ceil(8)
}

impl<'a> NumericRef<'a> {
    /// A value.
    pub fn of(value: &'a Numeric) -> NumericRef<'a> {
        NumericRef(Source::Value(value))
    }

    /// The bytes of [`Numeric::encode`]; they may be anything.
    pub fn from_bytes(bytes: &'a [u8]) -> NumericRef<'a> {
        NumericRef(Source::Bytes(bytes))
    }

    /// Calls with the value where it is, or with what its bytes say.
    fn with<R>(&self, call: impl FnOnce(&Numeric) -> R) -> R {
        match self.0 {
            Source::Value(value) => call(value),
            Source::Bytes(_) => call(&self.get()),
        }
    }

    /// The order of two values.
    pub fn compare(&self, other: &NumericRef<'_>) -> Ordering {
        match (self.small(), other.small()) {
            (Some((a, s)), Some((b, t))) if s == t => a.cmp(&b),
            _ => self.with(|a| other.with(|b| a.cmp(b))),
        }
    }

    /// See [`Numeric::abbreviated`].
    pub fn abbreviated(&self) -> i64 {
        self.with(Numeric::abbreviated)
    }

    /// Appends the row form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self.0 {
            Source::Value(value) => value.encode(out),
            Source::Bytes(bytes) => out.extend_from_slice(bytes),
        }
    }

    /// Whether the bytes are what [`Numeric::encode`] writes.
    pub fn is_valid(&self) -> bool {
        match self.0 {
            Source::Value(_) => true,
            Source::Bytes([0..30, rest @ ..]) => (1..=8).contains(&rest.len()),
            Source::Bytes([0xe0, low, high, rest @ ..]) => {
                !rest.is_empty() && u16::from_le_bytes([*low, *high]) as u32 <= SCALE_MAX
            }
            Source::Bytes(bytes) => matches!(bytes, [0xf0..=0xf2]),
        }
    }

    /// Mantissa and scale of a value that has the inline form.
    #[inline]
    pub(super) fn small(&self) -> Option<(i64, u16)> {
        match self.0 {
            Source::Value(Numeric(Repr::Small(m, s))) => Some((*m, *s)),
            Source::Bytes([scale @ 0..30, rest @ ..]) => Some((mantissa(rest)?, u16::from(*scale))),
            _ => None,
        }
    }

    /// The value. Bytes that are no value read as NaN.
    #[inline]
    pub fn get(&self) -> Numeric {
        match self.small() {
            Some((m, s)) => Numeric::new(m, s),
            None => self.get_other(),
        }
    }

    fn get_other(&self) -> Numeric {
        let bytes = match self.0 {
            Source::Value(value) => return value.clone(),
            Source::Bytes(bytes) => bytes,
        };
        match bytes.split_first() {
            Some((0xe0, rest)) if rest.len() >= 2 => {
                let scale = u16::from_le_bytes([rest[0], rest[1]]);
                Numeric::from_big(BigInt::from_signed_bytes_le(&rest[2..]), scale as u32)
            }
            Some((0xf1, _)) => Numeric::INFINITY,
            Some((0xf2, _)) => Numeric::NEG_INFINITY,
            _ => Numeric::NAN,
        }
    }
}
