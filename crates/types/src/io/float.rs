//! Text forms of `real` and `double precision`.

use std::borrow::Cow;
use std::sync::OnceLock;

use base::{Error, Result, SqlState};
use num_bigint::BigUint;

use super::long_number::{LONG, LongNumber};
use super::{invalid_syntax, trim, write_int};

/// The words for special floats; `None` if it is a number.
fn special_float(text: &str) -> Option<f64> {
    let (negative, word) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    // The longest of the words.
    if word.len() > "infinity".len() {
        return None;
    }
    let value = match word.to_ascii_lowercase().as_str() {
        "nan" => f64::NAN,
        "inf" | "infinity" => f64::INFINITY,
        _ => return None,
    };
    Some(if negative { -value } else { value })
}

fn is_float_syntax(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) && text.bytes().any(|b| b.is_ascii_digit())
}

/// The same number in a text that is not long; `None` if it is none.
fn short(text: &str) -> Option<Cow<'_, str>> {
    match text.len() > LONG {
        true => LongNumber::read(text).map(|number| Cow::Owned(number.for_float())),
        false => is_float_syntax(text).then_some(Cow::Borrowed(text)),
    }
}

fn has_nonzero_digit(text: &str) -> bool {
    text.split(['e', 'E']).next().unwrap_or("").bytes().any(|b| (b'1'..=b'9').contains(&b))
}

/// Parses `double precision`.
pub fn parse_float8(text: &str) -> Result<f64> {
    let t = trim(text);
    if let Some(value) = special_float(t) {
        return Ok(value);
    }
    let number = short(t).ok_or_else(|| invalid_syntax("double precision", text))?;
    let value: f64 = number.parse().map_err(|_| invalid_syntax("double precision", text))?;
    if value.is_infinite() || (value == 0.0 && has_nonzero_digit(&number)) {
        let message = format!("\"{t}\" is out of range for type double precision");
        return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(value)
}

/// Parses `real`.
pub fn parse_float4(text: &str) -> Result<f32> {
    let t = trim(text);
    if let Some(value) = special_float(t) {
        return Ok(value as f32);
    }
    let number = short(t).ok_or_else(|| invalid_syntax("real", text))?;
    let value: f32 = number.parse().map_err(|_| invalid_syntax("real", text))?;
    if value.is_infinite() || (value == 0.0 && has_nonzero_digit(&number)) {
        let message = format!("\"{t}\" is out of range for type real");
        return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(value)
}

/// Appends what has no digits, and 0.
fn write_special(value: f64, out: &mut Vec<u8>) -> bool {
    if value == 0.0 {
        out.extend_from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
        return true;
    }
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
    }
    !value.is_finite()
}

/// Appends `double precision` as PostgreSQL prints it.
pub fn write_float8(value: f64, extra_digits: i32, out: &mut Vec<u8>) {
    if write_special(value, out) {
    } else if extra_digits > 0 {
        let bits = value.to_bits();
        let parts =
            Parts { negative: value < 0.0, mantissa: bits & ((1 << 52) - 1), exponent: (bits >> 52) as i32 & 0x7ff };
        parts.write_shortest(52, 1023, 15, out);
    } else {
        write_general(value, (15 + extra_digits).max(1) as usize, out);
    }
}

/// Appends `real` as PostgreSQL prints it.
pub fn write_float4(value: f32, extra_digits: i32, out: &mut Vec<u8>) {
    if write_special(value as f64, out) {
    } else if extra_digits > 0 {
        let bits = value.to_bits();
        let mantissa = (bits & ((1 << 23) - 1)) as u64;
        let parts = Parts { negative: value < 0.0, mantissa, exponent: (bits >> 23) as i32 & 0xff };
        parts.write_shortest(23, 127, 6, out);
    } else {
        write_general(value as f64, (6 + extra_digits).max(1) as usize, out);
    }
}

/// A finite float that is not 0, as its bits have it.
struct Parts {
    negative: bool,
    mantissa: u64,
    exponent: i32,
}

impl Parts {
    /// Appends the shortest digits that read back the same: positional unless the decimal exponent is below -4 or at
    /// least `positional_max`.
    fn write_shortest(&self, mantissa_bits: i32, bias: i32, positional_max: i32, out: &mut Vec<u8>) {
        let (m, e) = match self.exponent {
            0 => (self.mantissa, 1 - bias - mantissa_bits),
            e => (self.mantissa | 1 << mantissa_bits, e - bias - mantissa_bits),
        };
        // The gap below a power of two is half of the one above.
        let even_gaps = self.mantissa != 0 || self.exponent <= 1;
        let (mut digits, mut exponent) = match m {
            // Whole numbers that are all exact are their own shortest form.
            m if e <= 0 && e > -53 && m.trailing_zeros() as i32 >= -e => (m >> -e, 0),
            m => shortest(m, e - 2, even_gaps),
        };
        while digits % 10 == 0 {
            digits /= 10;
            exponent += 1;
        }
        let mut buffer = [0u8; 20];
        let mut at = buffer.len();
        while digits > 0 {
            at -= 1;
            buffer[at] = b'0' + (digits % 10) as u8;
            digits /= 10;
        }
        let digits = &buffer[at..];
        let exponent = exponent + digits.len() as i32 - 1;
        if self.negative {
            out.push(b'-');
        }
        if exponent < -4 || exponent >= positional_max {
            write_scientific(digits, exponent, out);
        } else {
            write_positional(digits, exponent, out);
        }
    }
}

/// Bits kept of each power of five and of each inverse.
const POWER_BITS: i32 = 125;

/// Powers of five for [`shortest`]: 2^k / 5^q, and 5^i cut to its leading bits.
struct Powers {
    inverse: Vec<u128>,
    direct: Vec<u128>,
}

fn powers() -> &'static Powers {
    static POWERS: OnceLock<Powers> = OnceLock::new();
    POWERS.get_or_init(|| {
        let low_bits = |n: BigUint| n.iter_u64_digits().rev().fold(0u128, |value, digit| value << 64 | digit as u128);
        let (mut inverse, mut direct) = (Vec::new(), Vec::new());
        let mut power = BigUint::from(1u8);
        for i in 0..326 {
            let len = power.bits() as i32;
            if i < 292 {
                inverse.push(low_bits((BigUint::from(1u8) << (len - 1 + POWER_BITS)) / &power) + 1);
            }
            let shift = len - POWER_BITS;
            direct.push(low_bits(if shift >= 0 { &power >> shift } else { &power << -shift }));
            power *= 5u8;
        }
        Powers { inverse, direct }
    })
}

/// `m × factor / 2^shift`
fn scaled(m: u64, factor: u128, shift: i32) -> u64 {
    let low = m as u128 * (factor as u64) as u128;
    let high = m as u128 * (factor >> 64);
    (((low >> 64) + high) >> (shift - 64)) as u64
}

/// The shortest decimal that is nearer to `4m × 2^e` than to its neighbours (Ulf Adams's Ryū). PostgreSQL's variant: a
/// decimal exactly between two floats is not taken, whatever rounding to even would make of it.
fn shortest(m: u64, e: i32, even_gaps: bool) -> (u64, i32) {
    let value = 4 * m;
    let (above, below) = (value + 2, value - 1 - even_gaps as u64);
    let power_of_5_bits = |n: i32| ((n as u32 * 1_217_359) >> 19) as i32 + 1;
    let is_multiple_of_5 = |n: u64, power: i32| (0..power).try_fold(n, |n, _| (n % 5 == 0).then_some(n / 5)).is_some();
    let (mut v, mut high, mut low, decimal);
    // Whether all that was cut off `v` so far is zero.
    let mut exact = false;
    if e >= 0 {
        let q = ((e as u32 * 78_913) >> 18) as i32 - (e > 3) as i32;
        let shift = -e + q + POWER_BITS + power_of_5_bits(q) - 1;
        let factor = powers().inverse[q as usize];
        (v, high, low) = (scaled(value, factor, shift), scaled(above, factor, shift), scaled(below, factor, shift));
        decimal = q;
        if q <= 21 {
            if value.is_multiple_of(5) {
                exact = is_multiple_of_5(value, q);
            } else {
                high -= is_multiple_of_5(above, q) as u64;
            }
        }
    } else {
        let q = ((-e as u32 * 732_923) >> 20) as i32 - (-e > 1) as i32;
        let i = -e - q;
        let shift = q - (power_of_5_bits(i) - POWER_BITS);
        let factor = powers().direct[i as usize];
        (v, high, low) = (scaled(value, factor, shift), scaled(above, factor, shift), scaled(below, factor, shift));
        decimal = q + e;
        if q <= 1 {
            exact = true;
            high -= 1;
        } else if q < 63 {
            exact = value.trailing_zeros() as i32 >= q - 1;
        }
    }
    let (mut removed, mut last) = (0, 0);
    while high / 10 > low / 10 {
        exact &= last == 0;
        last = v % 10;
        (v, high, low) = (v / 10, high / 10, low / 10);
        removed += 1;
    }
    // Exactly half is rounded to even.
    let up = last > 5 || (last == 5 && !(exact && v % 2 == 0));
    (v + (v == low || up) as u64, decimal + removed)
}

fn write_scientific(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    out.push(digits[0]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    out.push(b'e');
    out.push(if exponent < 0 { b'-' } else { b'+' });
    let exponent = exponent.unsigned_abs();
    if exponent < 10 {
        out.push(b'0');
    }
    write_int(exponent as i64, out);
}

fn write_positional(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend_from_slice(digits);
        return;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', whole - digits.len()));
    } else {
        out.extend_from_slice(&digits[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits[whole..]);
    }
}

/// C's `%.*g`.
fn write_general(value: f64, precision: usize, out: &mut Vec<u8>) {
    let text = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let mut digits: Vec<u8> = mantissa.bytes().filter(|b| *b != b'.').collect();
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    if negative {
        out.push(b'-');
    }
    if exponent < -4 || exponent >= precision as i32 {
        write_scientific(&digits, exponent, out);
    } else {
        write_positional(&digits, exponent, out);
    }
}
