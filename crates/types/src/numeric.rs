//! NUMERIC: exact decimals of any size, with PostgreSQL's display scales, NaN and the infinities.
//!
//! A value is a mantissa and a display scale: `mantissa × 10^-scale`. Mantissas of up to 18 digits are held inline and
//! computed in `i128`; larger ones use a big integer. Which scale a result has follows `numeric.c` (PostgreSQL 15).
//! Invariant: a mantissa that fits the inline form is never kept in the large one, so equal values of equal scale have
//! one representation.

mod bytes;
mod convert;
mod long;
mod math;
mod sum;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

pub use sum::NumericSum;

use crate::io::long_number::{self, LONG, LongNumber};
use base::{Error, Result, SqlState};
use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive};

/// Largest display scale and largest number of digits before the point, as in PostgreSQL.
const SCALE_MAX: u32 = 16383;
const INTEGER_DIGITS_MAX: i64 = 131_072;
/// Significant digits that division and the transcendental functions keep (`NUMERIC_MIN_SIG_DIGITS`).
const SIGNIFICANT_DIGITS_MIN: i64 = 16;
/// `NUMERIC_MAX_DISPLAY_SCALE`
const RESULT_SCALE_MAX: i64 = 1000;

/// A NUMERIC value. 16 bytes; small values allocate nothing.
#[derive(Clone, Debug)]
pub struct Numeric(Repr);

#[derive(Clone, Debug)]
enum Repr {
    Small(i64, u16),
    Large(Box<(BigInt, u16)>),
    NaN,
    Infinity,
    NegInfinity,
}

/// A borrowed NUMERIC: a value, or the bytes of [`Numeric::encode`] as they lie in a row.
#[derive(Clone, Copy, Debug)]
pub struct NumericRef<'a>(Source<'a>);

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Value(&'a Numeric),
    Bytes(&'a [u8]),
}

fn overflow() -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

fn pow10(n: u32) -> BigInt {
    BigInt::from(10u8).pow(n)
}

/// The powers of ten up to the 18th.
const TENS: [i128; 19] = {
    let mut tens = [1; 19];
    let mut n = 1;
    while n < tens.len() {
        tens[n] = tens[n - 1] * 10;
        n += 1;
    }
    tens
};

fn pow10_i128(n: u32) -> Option<i128> {
    10i128.checked_pow(n)
}

/// `a / b` rounded half away from zero.
fn div_round(a: &BigInt, b: &BigInt) -> BigInt {
    let (quotient, remainder) = long::div_rem(a, b);
    if remainder.abs() * 2u8 >= b.abs() {
        if (a.sign() == Sign::Minus) == (b.sign() == Sign::Minus) { quotient + 1u8 } else { quotient - 1u8 }
    } else {
        quotient
    }
}

fn div_round_i128(a: i128, b: i128) -> i128 {
    let (quotient, remainder) = (a / b, a % b);
    if remainder.unsigned_abs() * 2 >= b.unsigned_abs() {
        if (a < 0) == (b < 0) { quotient + 1 } else { quotient - 1 }
    } else {
        quotient
    }
}

impl Numeric {
    /// 0
    pub const ZERO: Numeric = Numeric(Repr::Small(0, 0));
    /// Not a number: equal to itself and greater than everything.
    pub const NAN: Numeric = Numeric(Repr::NaN);
    /// Infinity
    pub const INFINITY: Numeric = Numeric(Repr::Infinity);
    /// -Infinity
    pub const NEG_INFINITY: Numeric = Numeric(Repr::NegInfinity);

    /// `mantissa × 10^-scale`.
    pub fn new(mantissa: i64, scale: u16) -> Numeric {
        Numeric(Repr::Small(mantissa, scale))
    }

    /// `mantissa × 10^-scale`.
    pub fn from_i128(mantissa: i128, scale: u16) -> Numeric {
        match i64::try_from(mantissa) {
            Ok(small) => Numeric(Repr::Small(small, scale)),
            Err(_) => Numeric(Repr::Large(Box::new((mantissa.into(), scale)))),
        }
    }

    fn from_big(mantissa: BigInt, scale: u32) -> Numeric {
        let scale = scale.min(SCALE_MAX) as u16;
        match mantissa.to_i64() {
            Some(small) => Numeric(Repr::Small(small, scale)),
            None => Numeric(Repr::Large(Box::new((mantissa, scale)))),
        }
    }

    /// From a big mantissa, checked against PostgreSQL's limit of digits.
    fn checked(mantissa: BigInt, scale: u32) -> Result<Numeric> {
        // A bit is worth between 0.301 and 0.302 digits, which decides all but the numbers near the limit.
        let limit = INTEGER_DIGITS_MAX + scale as i64;
        let bits = mantissa.bits() as i64;
        if bits * 302 / 1000 >= limit && (bits * 301 / 1000 > limit || long::count_of_digits(&mantissa) > limit) {
            return Err(overflow());
        }
        Ok(Numeric::from_big(mantissa, scale))
    }

    fn parts(&self) -> Option<(BigInt, u32)> {
        match &self.0 {
            Repr::Small(m, s) => Some((BigInt::from(*m), *s as u32)),
            Repr::Large(b) => Some((b.0.clone(), b.1 as u32)),
            _ => None,
        }
    }

    /// Neither NaN nor infinite.
    pub fn is_finite(&self) -> bool {
        matches!(self.0, Repr::Small(..) | Repr::Large(_))
    }

    /// NaN
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }

    /// A number that orders as values do, as far as it goes: of two values the lesser has no greater one. It is the value in units of 2^-16,
    /// cut, and no further than the ends of `i64`.
    pub fn abbreviated(&self) -> i64 {
        const BITS: u32 = 16;
        match &self.0 {
            Repr::NaN | Repr::Infinity => return i64::MAX,
            Repr::NegInfinity => return i64::MIN,
            Repr::Small(mantissa, scale) => {
                if let (Some(units), Some(ten)) = (mantissa.checked_mul(1 << BITS), TENS.get(usize::from(*scale))) {
                    return units / *ten as i64;
                }
            }
            Repr::Large(_) => {}
        }
        let in_128_bits = || {
            let (mantissa, scale) = self.wide()?;
            mantissa.checked_mul(1 << BITS)?.checked_div(pow10_i128(scale)?)
        };
        let in_more = || {
            let (mantissa, scale) = self.parts()?;
            ((mantissa << BITS) / pow10(scale)).to_i128()
        };
        let units = in_128_bits().or_else(in_more).and_then(|units| i64::try_from(units).ok());
        units.unwrap_or(if self.signum() < 0 { i64::MIN } else { i64::MAX })
    }

    /// Exactly zero.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Small(0, _))
    }

    /// -1, 0 or 1; NaN is 0.
    pub fn signum(&self) -> i32 {
        match &self.0 {
            Repr::Small(m, _) => m.signum() as i32,
            Repr::Large(b) => {
                if b.0.is_negative() {
                    -1
                } else {
                    1
                }
            }
            Repr::NaN => 0,
            Repr::Infinity => 1,
            Repr::NegInfinity => -1,
        }
    }

    /// The display scale; 0 for the special values.
    pub fn scale(&self) -> u32 {
        match &self.0 {
            Repr::Small(_, s) => *s as u32,
            Repr::Large(b) => b.1 as u32,
            _ => 0,
        }
    }

    /// The least scale that shows the value exactly.
    pub fn min_scale(&self) -> u32 {
        self.trim_scale().scale()
    }

    /// The value without trailing zeros after the point.
    pub fn trim_scale(&self) -> Numeric {
        match &self.0 {
            Repr::Small(0, _) => Numeric::ZERO,
            Repr::Small(m, s) => {
                let (mut m, mut s) = (*m, *s);
                while s > 0 && m % 10 == 0 {
                    m /= 10;
                    s -= 1;
                }
                Numeric::new(m, s)
            }
            Repr::Large(b) => {
                let (m, s) = (&b.0, b.1 as u32);
                let digits = long::digits(m).into_bytes();
                let zeros = digits.iter().rev().take_while(|d| **d == b'0').count().min(s as usize) as u32;
                if zeros == 0 { self.clone() } else { Numeric::from_big(long::div_rem(m, &pow10(zeros)).0, s - zeros) }
            }
            _ => self.clone(),
        }
    }

    /// Parses PostgreSQL's text form.
    ///
    /// # Errors
    /// 22P02 for what is no number, 22003 for one too large.
    pub fn parse(text: &str) -> Result<Numeric> {
        if text.len() > LONG {
            return Numeric::parse_long(text);
        }
        Numeric::parse_short(text)
    }

    /// Reads a text that may have more digits than count: zeros in front, digits that are too many, blanks.
    #[cold]
    fn parse_long(text: &str) -> Result<Numeric> {
        // Infinities with many blanks, and errors.
        let Some(number) = LongNumber::read(text) else { return Numeric::parse_short(long_number::trim(text)) };
        let scale = number.fraction.len() as i64 - number.exponent;
        if number.exponent.abs() > i32::MAX as i64 / 2 {
            return Err(overflow());
        }
        if number.is_zero() {
            return match usize::try_from(scale) {
                Err(_) | Ok(0) => Ok(Numeric::ZERO),
                Ok(scale) if scale <= SCALE_MAX as usize => Numeric::parse_short(&format!("0.{}", "0".repeat(scale))),
                Ok(_) => Err(overflow()),
            };
        }
        if number.whole.len() as i64 + number.exponent > INTEGER_DIGITS_MAX || scale > SCALE_MAX as i64 {
            return Err(overflow());
        }
        let sign = if number.negative { "-" } else { "" };
        Numeric::parse_short(&format!("{sign}0{}.{}e{}", number.whole, number.fraction, number.exponent))
    }

    fn parse_short(text: &str) -> Result<Numeric> {
        let invalid = || crate::io::invalid_syntax("numeric", text);
        let t = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        let (negative, body) = match t.as_bytes().first() {
            Some(b'-') => (true, &t[1..]),
            Some(b'+') => (false, &t[1..]),
            _ => (false, t),
        };
        if body.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) {
            let is = |word: &str| body.eq_ignore_ascii_case(word);
            return match () {
                () if is("nan") && t.len() == 3 => Ok(Numeric::NAN),
                () if is("inf") || is("infinity") => {
                    Ok(if negative { Numeric::NEG_INFINITY } else { Numeric::INFINITY })
                }
                () => Err(invalid()),
            };
        }
        let (number, exponent) = match body.find(['e', 'E']) {
            Some(at) => {
                let e = &body[at + 1..];
                let digits = e.strip_prefix(['+', '-']).unwrap_or(e);
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(invalid());
                }
                (&body[..at], e.parse::<i64>().map_err(|_| overflow())?)
            }
            None => (body, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
            return Err(invalid());
        }
        if exponent.abs() > i32::MAX as i64 / 2 {
            return Err(overflow());
        }
        let scale = fraction.len() as i64 - exponent;
        let significant = number.trim_start_matches(['0', '.']);
        if significant.is_empty() && scale <= 0 {
            return Ok(Numeric::ZERO);
        }
        if whole.trim_start_matches('0').len() as i64 + exponent > INTEGER_DIGITS_MAX && !significant.is_empty() {
            return Err(overflow());
        }
        if whole.len() + fraction.len() <= 18 && (0..=SCALE_MAX as i64).contains(&scale) {
            let digits = whole.bytes().chain(fraction.bytes());
            let m = digits.fold(0i64, |m, b| m * 10 + (b - b'0') as i64);
            return Ok(Numeric::new(if negative { -m } else { m }, scale as u16));
        }
        let digits = format!("{whole}{fraction}");
        let mut m = long::parse(digits.as_bytes()).ok_or_else(invalid)?;
        if negative {
            m = -m;
        }
        if scale < 0 {
            return Numeric::checked(m * pow10((-scale) as u32), 0);
        }
        if scale > SCALE_MAX as i64 {
            return Err(overflow());
        }
        Numeric::checked(m, scale as u32)
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (digits, negative, scale) = match &self.0 {
            Repr::NaN => return out.extend_from_slice(b"NaN"),
            Repr::Infinity => return out.extend_from_slice(b"Infinity"),
            Repr::NegInfinity => return out.extend_from_slice(b"-Infinity"),
            Repr::Small(m, s) => {
                let mut buffer = [0u8; 20];
                let at = decimal(m.unsigned_abs(), &mut buffer);
                return write_digits(&buffer[at..], *m < 0, *s as usize, out);
            }
            Repr::Large(b) => (long::digits(&b.0), b.0.is_negative(), b.1 as usize),
        };
        write_digits(digits.as_bytes(), negative, scale, out);
    }

    fn align(&self, other: &Numeric) -> Option<(i128, i128, u32)> {
        let (Repr::Small(a, s), Repr::Small(b, t)) = (&self.0, &other.0) else { return None };
        let (s, t) = (*s as u32, *t as u32);
        let (a, b) = (i128::from(*a), i128::from(*b));
        // 18 digits more fit beside those of 64 bits.
        let times = |digits: u32| TENS.get(digits as usize).copied();
        Some(match s.cmp(&t) {
            Ordering::Equal => (a, b, s),
            Ordering::Less => (a * times(t - s)?, b, t),
            Ordering::Greater => (a, b * times(s - t)?, s),
        })
    }

    /// Mantissa and scale, if the mantissa is not larger than that.
    fn wide(&self) -> Option<(i128, u32)> {
        match &self.0 {
            Repr::Small(mantissa, scale) => Some((i128::from(*mantissa), u32::from(*scale))),
            Repr::Large(large) => Some((large.0.to_i128()?, u32::from(large.1))),
            Repr::NaN | Repr::Infinity | Repr::NegInfinity => None,
        }
    }

    fn big_align(&self, other: &Numeric) -> Option<(BigInt, BigInt, u32)> {
        let ((a, s), (b, t)) = (self.parts()?, other.parts()?);
        let scale = s.max(t);
        // Both are copied, and looked at once more.
        base::work::beat(8 + (a.bits() + b.bits()) as usize / 32);
        Some((a * pow10(scale - s), b * pow10(scale - t), scale))
    }

    /// Sum.
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        if let Some((a, b, scale)) = self.align(other) {
            return Ok(Numeric::from_i128(a + b, scale as u16));
        }
        if let Some((a, b, scale)) = self.big_align(other) {
            return Numeric::checked(a + b, scale);
        }
        Ok(match (&self.0, &other.0) {
            (Repr::NaN, _) | (_, Repr::NaN) => Numeric::NAN,
            (Repr::Infinity, Repr::NegInfinity) | (Repr::NegInfinity, Repr::Infinity) => Numeric::NAN,
            (Repr::Infinity, _) | (_, Repr::Infinity) => Numeric::INFINITY,
            _ => Numeric::NEG_INFINITY,
        })
    }

    /// Difference.
    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        if let Some((a, b, scale)) = self.align(other) {
            return Ok(Numeric::from_i128(a - b, scale as u16));
        }
        self.add(&other.neg())
    }

    /// Negation.
    pub fn neg(&self) -> Numeric {
        match &self.0 {
            Repr::Small(m, s) => Numeric::from_i128(-(*m as i128), *s),
            Repr::Large(b) => Numeric::from_big(-b.0.clone(), b.1 as u32),
            Repr::NaN => Numeric::NAN,
            Repr::Infinity => Numeric::NEG_INFINITY,
            Repr::NegInfinity => Numeric::INFINITY,
        }
    }

    /// Absolute value.
    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 { self.neg() } else { self.clone() }
    }

    /// Product.
    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (Repr::Small(a, s), Repr::Small(b, t)) = (&self.0, &other.0)
            && *s as u32 + *t as u32 <= SCALE_MAX
        {
            return Ok(Numeric::from_i128(*a as i128 * *b as i128, s + t));
        }
        if let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) {
            long::will_multiply(&a, &b);
            let product = a * b;
            let scale = s + t;
            if scale > SCALE_MAX {
                return Numeric::checked(div_round(&product, &pow10(scale - SCALE_MAX)), SCALE_MAX);
            }
            return Numeric::checked(product, scale);
        }
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        Ok(match self.signum() * other.signum() {
            0 => Numeric::NAN,
            s if s > 0 => Numeric::INFINITY,
            _ => Numeric::NEG_INFINITY,
        })
    }

    /// Exponent of the leading digit: the value is between 10^e and 10^(e+1). `None` for zero and the special values.
    fn exponent(&self) -> Option<i64> {
        match &self.0 {
            Repr::Small(m, s) => m.unsigned_abs().checked_ilog10().map(|e| e as i64 - *s as i64),
            Repr::Large(b) => Some(long::count_of_digits(&b.0) - 1 - b.1 as i64),
            _ => None,
        }
    }

    /// Weight and value of the first base-10000 digit, in which `numeric.c` reckons result scales.
    fn leading(&self) -> (i64, i64) {
        let Some(e) = self.exponent() else { return (0, 0) };
        let weight = e.div_euclid(4);
        // The digit is the value over 10000^weight, cut.
        let shift = self.scale() as i64 + 4 * weight;
        let digit = match &self.0 {
            Repr::Small(m, _) if shift >= 0 => m.unsigned_abs() as i64 / 10i64.pow(shift as u32),
            Repr::Small(m, _) => m.abs() * 10i64.pow(-shift as u32),
            Repr::Large(b) if shift >= 0 => long::div_rem(&b.0.abs(), &pow10(shift as u32)).0.to_i64().unwrap_or(0),
            Repr::Large(b) => (b.0.magnitude() * pow10(-shift as u32).magnitude()).to_i64().unwrap_or(0),
            _ => 0,
        };
        (weight, digit)
    }

    /// `select_div_scale`
    fn division_scale(&self, other: &Numeric) -> u32 {
        let ((w1, d1), (w2, d2)) = (self.leading(), other.leading());
        let mut weight = w1 - w2;
        if d1 <= d2 {
            weight -= 1;
        }
        let scale = SIGNIFICANT_DIGITS_MIN - weight * 4;
        scale.max(self.scale() as i64).max(other.scale() as i64).clamp(0, RESULT_SCALE_MAX) as u32
    }

    /// Quotient.
    ///
    /// # Errors
    /// 22012
    pub fn div(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        match (self.is_finite(), other.is_finite()) {
            (false, false) => return Ok(Numeric::NAN),
            (true, false) => return Ok(Numeric::ZERO),
            (false, true) => {
                let positive = self.signum() * other.signum() > 0;
                return Ok(if positive { Numeric::INFINITY } else { Numeric::NEG_INFINITY });
            }
            (true, true) => {}
        }
        self.div_to_scale(other, self.division_scale(other))
    }

    /// Quotient rounded to `scale`. REQUIRES finite operands and a divisor that is not zero.
    fn div_to_scale(&self, other: &Numeric, scale: u32) -> Result<Numeric> {
        if let (Repr::Small(a, s), Repr::Small(b, t)) = (&self.0, &other.0) {
            let shift = scale as i64 + *t as i64 - *s as i64;
            // The dividend must stay in range when its last digit is doubled for rounding.
            if let Ok(shift @ 0..=37) = u32::try_from(shift)
                && let Some(a) = pow10_i128(shift).and_then(|p| p.checked_mul(*a as i128))
            {
                return Ok(Numeric::from_i128(div_round_i128(a, *b as i128), scale as u16));
            }
        }
        let ((a, s), (b, t)) = (self.parts().ok_or_else(overflow)?, other.parts().ok_or_else(overflow)?);
        // a·10^-s / (b·10^-t) · 10^scale
        let shift = scale as i64 + t as i64 - s as i64;
        let (a, b) = if shift >= 0 { (a * pow10(shift as u32), b) } else { (a, b * pow10((-shift) as u32)) };
        Numeric::checked(div_round(&a, &b), scale)
    }

    /// Quotient without its fraction (`div(a, b)`).
    ///
    /// # Errors
    /// 22012
    pub fn div_trunc(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        match self.big_align(other) {
            Some((a, b, _)) => Numeric::checked(long::div_rem(&a, &b).0, 0),
            None => self.div(other),
        }
    }

    /// Remainder, with the sign of the dividend.
    ///
    /// # Errors
    /// 22012
    pub fn rem(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        if !self.is_finite() {
            return Ok(Numeric::NAN);
        }
        if !other.is_finite() {
            return Ok(self.clone());
        }
        if let Some((a, b, scale)) = self.align(other) {
            return Ok(Numeric::from_i128(a % b, scale as u16));
        }
        let (a, b, scale) = self.big_align(other).ok_or_else(overflow)?;
        Numeric::checked(long::div_rem(&a, &b).1, scale)
    }

    /// Rounded half away from zero to `scale` digits after the point; negative scales round before it.
    pub fn round(&self, scale: i32) -> Numeric {
        self.rescale(scale, true)
    }

    /// Cut off at `scale` digits after the point.
    pub fn trunc(&self, scale: i32) -> Numeric {
        self.rescale(scale, false)
    }

    /// The number itself, unless it has more digits than a NUMERIC may have: rounding can add one.
    ///
    /// # Errors
    /// 22003
    pub fn within_limits(self) -> Result<Numeric> {
        match &self.0 {
            Repr::Large(big) => Numeric::checked(big.0.clone(), big.1 as u32),
            _ => Ok(self),
        }
    }

    fn rescale(&self, scale: i32, rounding: bool) -> Numeric {
        let scale = scale.clamp(-(INTEGER_DIGITS_MAX as i32) - 1, SCALE_MAX as i32);
        if let (Repr::Small(m, s), true) = (&self.0, scale >= 0) {
            let (m, s, target) = (*m as i128, *s as i32, scale);
            if target <= s {
                let drop = (s - target) as u32;
                let result = match pow10_i128(drop.min(38)) {
                    Some(p) if drop <= 37 => {
                        if rounding {
                            div_round_i128(m, p)
                        } else {
                            m / p
                        }
                    }
                    _ => 0,
                };
                return Numeric::from_i128(result, scale as u16);
            }
            if target - s <= 18
                && let Some(p) = pow10_i128((target - s) as u32)
            {
                return Numeric::from_i128(m * p, scale as u16);
            }
        }
        let Some((m, s)) = self.parts() else { return self.clone() };
        let drop = s as i64 - scale as i64;
        if drop <= 0 {
            return Numeric::from_big(m * pow10((-drop) as u32), scale as u32);
        }
        let unit = pow10(drop as u32);
        let cut = if rounding { div_round(&m, &unit) } else { long::div_rem(&m, &unit).0 };
        if scale >= 0 {
            Numeric::from_big(cut, scale as u32)
        } else {
            Numeric::from_big(cut * pow10((-scale) as u32), 0)
        }
    }

    /// Smallest whole number not below.
    pub fn ceil(&self) -> Numeric {
        self.floor_or_ceil(1)
    }

    /// Largest whole number not above.
    pub fn floor(&self) -> Numeric {
        self.floor_or_ceil(-1)
    }

    fn floor_or_ceil(&self, direction: i32) -> Numeric {
        if !self.is_finite() {
            return self.clone();
        }
        let cut = self.trunc(0);
        if self.signum() == direction && cut != *self {
            let one = Numeric::new(direction as i64, 0);
            return cut.add(&one).unwrap_or(cut);
        }
        cut
    }
}

/// Writes a number's digits to the end of `buffer`; where they begin.
fn decimal(mut rest: u64, buffer: &mut [u8; 20]) -> usize {
    let mut at = buffer.len();
    while rest > 0 || at == buffer.len() {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    at
}

fn write_digits(digits: &[u8], negative: bool, scale: usize, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
    if digits.len() > scale {
        out.extend_from_slice(&digits[..digits.len() - scale]);
    } else {
        out.push(b'0');
    }
    if scale > 0 {
        out.push(b'.');
        out.extend(std::iter::repeat_n(b'0', scale.saturating_sub(digits.len())));
        out.extend_from_slice(&digits[digits.len().saturating_sub(scale)..]);
    }
}

macro_rules! from_integers {
    ($($t:ty),+) => {
        $(impl From<$t> for Numeric {
            fn from(value: $t) -> Numeric {
                Numeric::new(value.into(), 0)
            }
        })+
    };
}

from_integers!(i16, i32, i64, u32);

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.write(&mut out);
        f.write_str(std::str::from_utf8(&out).unwrap_or("NaN"))
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order of two values by mantissa and scale; `None` if it takes more than 128 bits.
fn compare_wide((a, s): (i128, u32), (b, t): (i128, u32)) -> Option<Ordering> {
    Some(match s.cmp(&t) {
        Ordering::Equal => a.cmp(&b),
        Ordering::Less => a.checked_mul(pow10_i128(t - s)?)?.cmp(&b),
        Ordering::Greater => a.cmp(&b.checked_mul(pow10_i128(s - t)?)?),
    })
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        if let Some((a, b, _)) = self.align(other) {
            return a.cmp(&b);
        }
        let rank = |n: &Numeric| match n.0 {
            Repr::NegInfinity => 0,
            Repr::Infinity => 2,
            Repr::NaN => 3,
            _ => 1,
        };
        if let (Some(a), Some(b)) = (self.wide(), other.wide())
            && let Some(order) = compare_wide(a, b)
        {
            return order;
        }
        match rank(self).cmp(&rank(other)) {
            Ordering::Equal => match self.big_align(other) {
                Some((a, b, _)) => a.cmp(&b),
                None => Ordering::Equal,
            },
            unequal => unequal,
        }
    }
}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let trimmed = self.trim_scale();
        match &trimmed.0 {
            Repr::Small(m, s) => (0u8, m, s).hash(state),
            Repr::Large(b) => (1u8, &b.0, b.1).hash(state),
            Repr::NaN => 2u8.hash(state),
            Repr::Infinity => 3u8.hash(state),
            Repr::NegInfinity => 4u8.hash(state),
        }
    }
}

const _: () = assert!(size_of::<Numeric>() == 16);
