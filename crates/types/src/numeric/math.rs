//! Roots, powers, logarithms and number theory of NUMERIC.
//!
//! Result scales follow `numeric.c` step by step, since they are visible. The digits are computed in binary fixed point
//! with enough guard bits that rounding to the result scale is the rounding of the exact value.

use std::f64::consts::{LN_2, LN_10, LOG10_E};

use base::{Error, Result, SqlState};
use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};

use super::long::{div_rem, will_multiply};
use super::{Numeric, RESULT_SCALE_MAX, Repr, SIGNIFICANT_DIGITS_MIN, div_round, division_by_zero, overflow, pow10};

/// Limit of the digits that `exp` and `power` reckon with (`NUMERIC_MAX_RESULT_SCALE`).
const LOG_SCALE_MAX: i32 = 2000;
/// Beyond this magnitude `exp` overflows or is 0.
const EXP_ARGUMENT_MAX: f64 = LOG_SCALE_MAX as f64 * 3.0;
/// Code of `width_bucket`'s errors.
const WIDTH_BUCKET: &str = "2201G";

fn power_error(message: &str) -> Error {
    Error::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message)
}

fn log_error(message: &str) -> Error {
    Error::new(SqlState::INVALID_ARGUMENT_FOR_LOG, message)
}

fn result_scale(weight: i64, at_least: u32) -> u32 {
    (SIGNIFICANT_DIGITS_MIN - weight).max(at_least as i64).clamp(0, RESULT_SCALE_MAX) as u32
}

/// Bits that hold `digits` decimal digits and the rounding errors of a series.
fn bits_for(digits: i64) -> u64 {
    (digits.max(0) as u64 + 10) * 3322 / 1000 + 96
}

/// `value / 2^bits`, rounded to `scale` decimal digits.
fn from_fixed(value: BigInt, bits: u64, scale: u32) -> Result<Numeric> {
    let scaled: BigInt = value * pow10(scale);
    let half = BigInt::one() << (bits - 1);
    let rounded: BigInt = (scaled.abs() + half) >> bits;
    Numeric::checked(if scaled.is_negative() { -rounded } else { rounded }, scale)
}

/// atanh(1/n) × 2^bits.
fn atanh_of_inverse(n: u32, bits: u64) -> BigInt {
    let mut term = (BigInt::one() << bits) / n;
    let mut sum = term.clone();
    let mut divisor = 1u32;
    while !term.is_zero() {
        will_multiply(&term, &sum);
        term /= n * n;
        divisor += 2;
        sum += &term / divisor;
    }
    sum
}

/// ln(2) × 2^bits.
fn ln_2(bits: u64) -> BigInt {
    let guarded = bits + 32;
    let parts = [(18, 26), (-2, 4801), (8, 8749)].map(|(factor, n)| atanh_of_inverse(n, guarded) * factor);
    parts.into_iter().sum::<BigInt>() >> 32u32
}

/// ln(m × 10^-s) × 2^bits. REQUIRES m > 0.
fn ln_fixed(m: &BigInt, s: u32, bits: u64) -> BigInt {
    let roots = ((bits as f64).sqrt() / 2.0) as u64;
    let work = bits + roots + 64;
    let ten = pow10(s);
    // m × 10^-s = y × 2^k with y between 1/2 and 2.
    let k = m.bits() as i64 - ten.bits() as i64;
    let shift = work as i64 - k;
    let mut y = if shift >= 0 { (m << shift as u64) / ten } else { m / (ten << (-shift) as u64) };
    // Square roots bring y near 1, where the series is short.
    for _ in 0..roots {
        will_multiply(&y, &y);
        y = (y << work).sqrt();
    }
    let one = BigInt::one() << work;
    let z = ((&y - &one) << work) / (y + one);
    let square: BigInt = (&z * &z) >> work;
    let (mut term, mut sum, mut divisor) = (z.clone(), z, 1u32);
    while !term.is_zero() && term != BigInt::from(-1) {
        will_multiply(&term, &square);
        term = (term * &square) >> work;
        divisor += 2;
        sum += &term / divisor;
    }
    let ln_y: BigInt = sum << (roots + 1);
    (ln_y + ln_2(work) * k) >> (work - bits)
}

impl Numeric {
    /// The absolute value's logarithm, rounded to `scale` (`ln_var`).
    ///
    /// # Errors
    /// 2201E for zero and negative numbers.
    fn ln_to_scale(&self, scale: u32) -> Result<Numeric> {
        match self.signum() {
            0 => return Err(log_error("cannot take logarithm of zero")),
            -1 => return Err(log_error("cannot take logarithm of a negative number")),
            _ => {}
        }
        let (m, s) = self.parts().ok_or_else(overflow)?;
        let bits = bits_for(scale as i64);
        from_fixed(ln_fixed(&m, s, bits), bits, scale)
    }

    /// `exp_var`
    fn exp_to_scale(&self, scale: u32) -> Result<Numeric> {
        let value = self.to_f64();
        if value.abs() >= EXP_ARGUMENT_MAX {
            return if value > 0.0 { Err(overflow()) } else { Ok(Numeric::from_big(BigInt::zero(), scale)) };
        }
        let (m, s) = self.parts().ok_or_else(overflow)?;
        let digits = scale as i64 + (value * LOG10_E).max(0.0) as i64;
        let halvings = (bits_for(digits) as f64).sqrt() as u64 / 2;
        let work = bits_for(digits) + 2 * halvings;
        // e^x = 2^n × e^f with f small.
        let n = (value / LN_2).round() as i64;
        let x = if m.is_zero() { m } else { (m << work) / pow10(s) };
        let f: BigInt = (x - ln_2(work) * n) >> halvings;
        let one = BigInt::one() << work;
        let (mut term, mut sum, mut divisor) = (one.clone(), one, 0u32);
        loop {
            divisor += 1;
            will_multiply(&term, &f);
            term = ((term * &f) >> work) / divisor;
            if term.is_zero() || term == BigInt::from(-1) {
                break;
            }
            sum += &term;
        }
        for _ in 0..halvings {
            will_multiply(&sum, &sum);
            sum = (&sum * &sum) >> work;
        }
        from_fixed(sum, (work as i64 - n) as u64, scale)
    }

    /// Decimal exponent of ln(self), approximately (`estimate_ln_dweight`).
    fn ln_exponent(&self) -> i64 {
        if self.signum() <= 0 {
            return 0;
        }
        let near_one = *self >= Numeric::new(9, 1) && *self <= Numeric::new(11, 1);
        if near_one {
            let distance = self.sub(&Numeric::new(1, 0)).ok();
            return distance.and_then(|d| d.exponent()).unwrap_or(0);
        }
        let (digits, weight) = self.first_digits(2);
        (digits.ln() + weight as f64 * LN_10).abs().log10() as i64
    }

    /// The first `count` base-10000 digits as one number, and the power of ten it is to be multiplied by.
    fn first_digits(&self, count: i64) -> (f64, i64) {
        let (weight, _) = self.leading();
        let (m, s) = self.parts().unwrap_or_default();
        // As many digits as the value has, so that 0.5 is 5000 × 10^-4 and not 50000000 × 10^-8.
        let lowest = -(self.min_scale() as i64 + 3).div_euclid(4);
        let last = (weight - count + 1).max(lowest.min(weight));
        let shift = s as i64 + 4 * last;
        let digits =
            if shift >= 0 { div_rem(&m.abs(), &pow10(shift as u32)).0 } else { m.abs() * pow10((-shift) as u32) };
        (digits.to_string().parse().unwrap_or(0.0), 4 * last)
    }

    /// Square root.
    ///
    /// # Errors
    /// 2201F for negative numbers.
    pub fn sqrt(&self) -> Result<Numeric> {
        if self.signum() < 0 {
            return Err(power_error("cannot take square root of a negative number"));
        }
        if !self.is_finite() {
            return Ok(self.clone());
        }
        let scale = result_scale(2 * self.leading().0 + 1, self.scale());
        // One digit more than is shown decides the rounding, as the exact root never ends in a lone 5 there.
        let (m, s) = self.parts().ok_or_else(overflow)?;
        let shift = 2 * (scale as i64 + 1) - s as i64;
        let m = if shift >= 0 { m * pow10(shift as u32) } else { m / pow10((-shift) as u32) };
        Numeric::checked(div_round(&m.sqrt(), &BigInt::from(10u8)), scale)
    }

    /// e to the power of the number.
    ///
    /// # Errors
    /// 22003
    pub fn exp(&self) -> Result<Numeric> {
        match self.0 {
            Repr::NegInfinity => return Ok(Numeric::ZERO),
            Repr::NaN | Repr::Infinity => return Ok(self.clone()),
            _ => {}
        }
        let bound = LOG_SCALE_MAX as f64;
        let weight = (self.to_f64() * LOG10_E).clamp(-bound, bound) as i64;
        self.exp_to_scale(result_scale(weight, self.scale()))
    }

    /// Natural logarithm.
    ///
    /// # Errors
    /// 2201E for zero and negative numbers.
    pub fn ln(&self) -> Result<Numeric> {
        match self.0 {
            Repr::NegInfinity => Err(log_error("cannot take logarithm of a negative number")),
            Repr::NaN | Repr::Infinity => Ok(self.clone()),
            _ => self.ln_to_scale(result_scale(self.ln_exponent(), self.scale())),
        }
    }

    /// Logarithm to the base 10.
    ///
    /// # Errors
    /// 2201E for zero and negative numbers.
    pub fn log10(&self) -> Result<Numeric> {
        Numeric::log(&Numeric::new(10, 0), self)
    }

    /// Logarithm of `value` to `base`.
    ///
    /// # Errors
    /// 2201E for zero and negative numbers, 22012 for base 1.
    pub fn log(base: &Numeric, value: &Numeric) -> Result<Numeric> {
        if base.is_nan() || value.is_nan() {
            return Ok(Numeric::NAN);
        }
        if !base.is_finite() || !value.is_finite() {
            return Numeric::log_of_infinity(base, value);
        }
        let (base_weight, value_weight) = (base.ln_exponent(), value.ln_exponent());
        let weight = value_weight - base_weight;
        let scale = result_scale(weight, base.scale().max(value.scale()));
        let guarded = |own: i64| (scale as i64 + weight - own + 8).max(0) as u32;
        let ln_base = base.ln_to_scale(guarded(base_weight))?;
        let ln_value = value.ln_to_scale(guarded(value_weight))?;
        if ln_base.is_zero() {
            return Err(division_by_zero());
        }
        ln_value.div_to_scale(&ln_base, scale)
    }

    fn log_of_infinity(base: &Numeric, value: &Numeric) -> Result<Numeric> {
        if base.signum() < 0 || value.signum() < 0 {
            return Err(log_error("cannot take logarithm of a negative number"));
        }
        if base.signum() == 0 || value.signum() == 0 {
            return Err(log_error("cannot take logarithm of zero"));
        }
        Ok(match (base.is_finite(), value.is_finite()) {
            (false, false) => Numeric::NAN,
            (false, true) => Numeric::ZERO,
            _ => Numeric::INFINITY,
        })
    }

    /// Whether nothing stands after the point; infinities count as whole.
    fn is_integral(&self) -> bool {
        self.min_scale() == 0
    }

    /// To the power of `exponent`.
    ///
    /// # Errors
    /// 2201F where the result is undefined or complex, 22003 on overflow.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        let one = Numeric::new(1, 0);
        if self.is_nan() || exponent.is_nan() {
            // As in POSIX: 1 to the power of anything, and anything to the power of 0, is 1.
            let is_one = (self.is_nan() && exponent.is_zero()) || (exponent.is_nan() && *self == one);
            return Ok(if is_one { one } else { Numeric::NAN });
        }
        if self.is_zero() && exponent.signum() < 0 {
            return Err(power_error("zero raised to a negative power is undefined"));
        }
        if self.signum() < 0 && !exponent.is_integral() {
            return Err(power_error("a negative number raised to a non-integer power yields a complex result"));
        }
        if !self.is_finite() || !exponent.is_finite() {
            return Ok(self.power_of_infinity(exponent));
        }
        self.power_finite(exponent)
    }

    fn power_of_infinity(&self, exponent: &Numeric) -> Numeric {
        let one = Numeric::new(1, 0);
        if *self == one || exponent.is_zero() {
            return one;
        }
        if self.is_zero() {
            return Numeric::ZERO;
        }
        let grows = exponent.signum() > 0;
        if !exponent.is_finite() {
            let magnitude = self.abs();
            if magnitude == one {
                return one;
            }
            return if (magnitude > one) == grows { Numeric::INFINITY } else { Numeric::ZERO };
        }
        if !grows {
            return Numeric::ZERO;
        }
        let odd = !exponent.rem(&Numeric::new(2, 0)).is_ok_and(|r| r.is_zero());
        if self.signum() < 0 && odd { Numeric::NEG_INFINITY } else { Numeric::INFINITY }
    }

    fn power_finite(&self, exponent: &Numeric) -> Result<Numeric> {
        if exponent.is_integral()
            && let Ok(n) = exponent.to_i32()
        {
            return self.power_integer(n, result_scale(0, self.scale()));
        }
        if self.is_zero() {
            return Ok(Numeric::new(0, SIGNIFICANT_DIGITS_MIN as u16));
        }
        // A negative base has a whole exponent here, and the sign of the result depends on its parity.
        let negative = self.signum() < 0 && !exponent.rem(&Numeric::new(2, 0))?.is_zero();
        let base = self.abs();
        let ln_weight = base.ln_exponent();
        let product = |scale: u32| -> Result<Numeric> {
            let product = base.ln_to_scale(scale)?.mul(exponent)?;
            Ok(product.rescale(scale as i32, true))
        };
        let mut value = product((8 - ln_weight).max(0) as u32)?.to_f64();
        if value.abs() > LOG_SCALE_MAX as f64 * 3.01 {
            return if value > 0.0 { Err(overflow()) } else { Ok(Numeric::new(0, RESULT_SCALE_MAX as u16)) };
        }
        value *= LOG10_E;
        let scale = result_scale(value as i64, self.scale().max(exponent.scale()));
        let digits = (scale as i64 + value as i64).max(0);
        let result = product((digits - ln_weight + 8).max(0) as u32)?.exp_to_scale(scale)?;
        Ok(if negative { result.neg() } else { result })
    }

    /// `power_var_int`: repeated squaring, keeping as many digits as the result shows.
    fn power_integer(&self, exponent: i32, scale: u32) -> Result<Numeric> {
        let one = Numeric::new(1, 0);
        match exponent {
            0 => return Ok(one.rescale(scale as i32, true)),
            1 => return Ok(self.rescale(scale as i32, true)),
            -1 if self.is_zero() => return Err(division_by_zero()),
            -1 => return one.div_to_scale(self, scale),
            2 => return Ok(self.mul(self)?.rescale(scale as i32, true)),
            _ if self.is_zero() && exponent < 0 => return Err(division_by_zero()),
            _ if self.is_zero() => return Ok(Numeric::from_big(BigInt::zero(), scale)),
            _ => {}
        }
        let (digits, weight) = self.first_digits(4);
        let estimate = exponent as f64 * (digits.log10() + weight as f64);
        if estimate > 3.0 * 32767.0 * 4.0 {
            return Err(overflow());
        }
        if estimate + 1.0 < -(scale as f64) {
            return Ok(Numeric::from_big(BigInt::zero(), scale));
        }
        let keep = (1 + scale as i64 + estimate as i64).max(0) + (exponent.unsigned_abs() as f64).ln() as i64 + 24;
        let (m, s) = self.parts().ok_or_else(overflow)?;
        let mut square = Scientific { mantissa: m, exponent: -(s as i64) };
        let mut product = Scientific { mantissa: BigInt::one(), exponent: 0 };
        let mut bits = exponent.unsigned_abs();
        loop {
            if bits & 1 == 1 {
                product = product.mul(&square, keep);
            }
            bits >>= 1;
            if bits == 0 {
                break;
            }
            square = square.mul(&square, keep);
        }
        if exponent < 0 { product.inverse_to_scale(scale) } else { product.to_scale(scale) }
    }

    /// Greatest common divisor; NaN if either is not finite.
    pub fn gcd(&self, other: &Numeric) -> Numeric {
        let Some((a, b, scale)) = self.big_align(other) else { return Numeric::NAN };
        let (mut a, mut b) = (a.abs(), b.abs());
        while !b.is_zero() {
            let rest = div_rem(&a, &b).1;
            (a, b) = (b, rest);
        }
        Numeric::from_big(a, scale)
    }

    /// Least common multiple; NaN if either is not finite.
    ///
    /// # Errors
    /// 22003
    pub fn lcm(&self, other: &Numeric) -> Result<Numeric> {
        let Some((a, b, scale)) = self.big_align(other) else { return Ok(Numeric::NAN) };
        if a.is_zero() || b.is_zero() {
            return Ok(Numeric::from_big(BigInt::zero(), scale));
        }
        let (divisor, _) = self.gcd(other).rescale(scale as i32, true).parts().ok_or_else(overflow)?;
        Numeric::checked((div_rem(&a, &divisor).0 * b).abs(), scale)
    }

    /// n!
    ///
    /// # Errors
    /// 22003
    pub fn factorial(n: i64) -> Result<Numeric> {
        if n < 0 {
            let message = "factorial of a negative number is undefined";
            return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        // 32178! has more digits than NUMERIC.
        if n > 32177 {
            return Err(overflow());
        }
        let product = (2..=n).fold(BigInt::one(), |product, i| {
            base::work::beat(1 + product.bits() as usize / 256);
            product * i
        });
        Numeric::checked(product, 0)
    }

    /// -1, 0, 1 or NaN.
    pub fn sign(&self) -> Numeric {
        if self.is_nan() { Numeric::NAN } else { Numeric::new(self.signum() as i64, 0) }
    }

    /// The bucket of a histogram with `count` equal buckets between `low` and `high` that the number falls in.
    ///
    /// # Errors
    /// 2201G for a histogram that is none, 22003 if the bucket's number is too large.
    pub fn width_bucket(&self, low: &Numeric, high: &Numeric, count: i32) -> Result<i32> {
        let invalid = |message: &str| {
            let code = SqlState::parse(WIDTH_BUCKET).unwrap_or(SqlState::DATA_EXCEPTION);
            Err(Error::new(code, message))
        };
        if count <= 0 {
            return invalid("count must be greater than zero");
        }
        if self.is_nan() || low.is_nan() || high.is_nan() {
            return invalid("operand, lower bound, and upper bound cannot be NaN");
        }
        if !low.is_finite() || !high.is_finite() {
            return invalid("lower and upper bounds must be finite");
        }
        if low == high {
            return invalid("lower bound cannot equal upper bound");
        }
        let rising = low < high;
        if if rising { self < low } else { self > low } {
            return Ok(0);
        }
        if if rising { self >= high } else { self <= high } {
            let out_of_range = || Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
            return count.checked_add(1).ok_or_else(out_of_range);
        }
        let count = Numeric::from(count);
        let distance = self.sub(low)?.abs().mul(&count)?;
        let quotient = distance.div(&high.sub(low)?.abs())?;
        // Rounding may lift the quotient to the number of buckets.
        if quotient >= count { count.to_i32() } else { quotient.floor().to_i32().map(|n| n + 1) }
    }
}

/// `mantissa × 10^exponent`, good for a stated number of digits.
struct Scientific {
    mantissa: BigInt,
    exponent: i64,
}

impl Scientific {
    fn mul(&self, other: &Scientific, keep: i64) -> Scientific {
        will_multiply(&self.mantissa, &other.mantissa);
        let product = &self.mantissa * &other.mantissa;
        let exponent = self.exponent + other.exponent;
        let digits = product.bits() as i64 * 30103 / 100_000;
        let excess = digits - keep;
        if excess <= 8 {
            return Scientific { mantissa: product, exponent };
        }
        Scientific { mantissa: div_rem(&product, &pow10(excess as u32)).0, exponent: exponent + excess }
    }

    fn to_scale(&self, scale: u32) -> Result<Numeric> {
        let shift = self.exponent + scale as i64;
        if shift > 200_000 {
            return Err(overflow());
        }
        let scaled = match shift {
            0.. => &self.mantissa * pow10(shift as u32),
            _ => div_round(&self.mantissa, &pow10((-shift) as u32)),
        };
        Numeric::checked(scaled, scale)
    }

    fn inverse_to_scale(&self, scale: u32) -> Result<Numeric> {
        let shift = scale as i64 - self.exponent;
        if shift < -200_000 {
            return Ok(Numeric::from_big(BigInt::zero(), scale));
        }
        let quotient = match shift {
            0.. => div_round(&pow10(shift as u32), &self.mantissa),
            _ => div_round(&BigInt::one(), &(&self.mantissa * pow10((-shift) as u32))),
        };
        Numeric::checked(quotient, scale)
    }
}
