//! Averages of floats, variances and standard deviations.
//!
//! Floats are added by the method of Youngs and Cramer, decimals as exact sums of values and of squares, both as
//! PostgreSQL does it, so that the digits agree.

use base::{Oid, Result};
use types::oid::{FLOAT4, FLOAT8};
use types::{Datum, Numeric, NumericSum};

use super::super::entry::mismatch;
use super::super::{Accumulator, EvalContext};
use super::{float, float_overflow, other_of};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    Mean,
    /// Of a sample, and whether the root is drawn.
    Sample(bool),
    /// Of a whole population, and whether the root is drawn.
    Population(bool),
}

struct Floats {
    count: f64,
    sum: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    measure: Measure,
}

impl Accumulator for Floats {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let value = args.first().and_then(float).ok_or_else(|| mismatch("variance"))?;
        let before = (self.count, self.sum);
        self.count += 1.0;
        self.sum += value;
        if before.0 > 0.0 {
            let distance = value * self.count - self.sum;
            self.squares += distance * distance / (self.count * before.0);
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !before.1.is_infinite() && !value.is_infinite() {
                    return Err(float_overflow());
                }
                self.squares = f64::NAN;
            }
        } else if !value.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }

    fn combine(&mut self, other: &mut dyn Accumulator) -> Result<()> {
        let other = other_of::<Floats>(other)?;
        if other.count == 0.0 || self.count == 0.0 {
            if self.count == 0.0 {
                (self.count, self.sum, self.squares) = (other.count, other.sum, other.squares);
            }
            return Ok(());
        }
        let count = self.count + other.count;
        let distance = self.sum / self.count - other.sum / other.count;
        let between = self.count * other.count * distance * distance / count;
        self.squares = squares(self.squares, other.squares, between)?;
        self.sum = sum(self.sum, other.sum)?;
        self.count = count;
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        let (root, divisor) = match self.measure {
            Measure::Mean if self.count > 0.0 => return Ok(Datum::Float8(self.sum / self.count)),
            Measure::Sample(root) if self.count > 1.0 => (root, self.count - 1.0),
            Measure::Population(root) if self.count > 0.0 => (root, self.count),
            _ => return Ok(Datum::Null),
        };
        let variance = self.squares / divisor;
        Ok(Datum::Float8(if root { variance.sqrt() } else { variance }))
    }
}

/// The sum of two sums.
///
/// # Errors
/// 22003 if it is not finite and they are.
pub(super) fn sum(a: f64, b: f64) -> Result<f64> {
    let sum = a + b;
    if sum.is_infinite() && !a.is_infinite() && !b.is_infinite() { Err(float_overflow()) } else { Ok(sum) }
}

/// The squared distances from the mean of all rows, by those from the means of two parts and what the means are apart.
///
/// # Errors
/// 22003 if they are not finite and those of the parts are.
pub(super) fn squares(a: f64, b: f64, between: f64) -> Result<f64> {
    let squares = a + b + between;
    if squares.is_infinite() && !a.is_infinite() && !b.is_infinite() { Err(float_overflow()) } else { Ok(squares) }
}

/// Exact sums. Those of `smallint` and `integer` fit 128 bits, squares included.
enum Sums {
    Whole { sum: i128, squares: i128 },
    Decimal { sum: NumericSum, squares: NumericSum },
}

/// The same sums, of any size.
fn exact(sum: i128, squares: i128) -> Result<(NumericSum, NumericSum)> {
    let (mut exact, mut exact_squares) = (NumericSum::ZERO, NumericSum::ZERO);
    exact.add(&Numeric::from_i128(sum, 0))?;
    exact_squares.add(&Numeric::from_i128(squares, 0))?;
    Ok((exact, exact_squares))
}

impl Sums {
    /// The same, of any size.
    fn of_any_size(&self) -> Result<(NumericSum, NumericSum)> {
        match self {
            Sums::Whole { sum, squares } => exact(*sum, *squares),
            Sums::Decimal { sum, squares } => Ok((sum.clone(), squares.clone())),
        }
    }
}

struct Decimals {
    count: i64,
    sums: Sums,
    measure: Measure,
}

impl Accumulator for Decimals {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let value = args.first().ok_or_else(|| mismatch("variance"))?;
        self.count += 1;
        match &mut self.sums {
            Sums::Whole { sum, squares } => {
                let value = i128::from(value.integer().ok_or_else(|| mismatch("variance"))?);
                *sum += value;
                match squares.checked_add(value * value) {
                    Some(total) => *squares = total,
                    None => {
                        let (sum, mut squares) = exact(*sum, *squares)?;
                        squares.add(&Numeric::from_i128(value * value, 0))?;
                        self.sums = Sums::Decimal { sum, squares };
                    }
                }
            }
            Sums::Decimal { sum, squares } => {
                let small;
                let value = match value {
                    Datum::Numeric(value) => value,
                    other => {
                        small = Numeric::new(other.integer().ok_or_else(|| mismatch("variance"))?, 0);
                        &small
                    }
                };
                sum.add(value)?;
                squares.add(&value.mul(value)?)?;
            }
        }
        Ok(())
    }

    fn combine(&mut self, other: &mut dyn Accumulator) -> Result<()> {
        let other = other_of::<Decimals>(other)?;
        self.count += other.count;
        if let (Sums::Whole { sum, squares }, Sums::Whole { sum: more, squares: more_squares }) =
            (&mut self.sums, &other.sums)
            && let Some(total) = squares.checked_add(*more_squares)
        {
            *sum += more;
            *squares = total;
            return Ok(());
        }
        let ((mut sum, mut squares), (more, more_squares)) = (self.sums.of_any_size()?, other.sums.of_any_size()?);
        sum.combine(&more)?;
        squares.combine(&more_squares)?;
        self.sums = Sums::Decimal { sum, squares };
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        let (root, divisor) = match self.measure {
            Measure::Sample(root) if self.count > 1 => (root, self.count - 1),
            Measure::Population(root) if self.count > 0 => (root, self.count),
            _ => return Ok(Datum::Null),
        };
        let (sum, squares) = match &self.sums {
            Sums::Whole { sum, squares } => (Numeric::from_i128(*sum, 0), Numeric::from_i128(*squares, 0)),
            Sums::Decimal { sum, squares } => (sum.total()?, squares.total()?),
        };
        if !sum.is_finite() {
            return Ok(Datum::Numeric(Numeric::NAN));
        }
        let count = Numeric::new(self.count, 0);
        let numerator = count.mul(&squares)?.sub(&sum.mul(&sum)?)?;
        if numerator.signum() <= 0 {
            return Ok(Datum::Numeric(Numeric::ZERO));
        }
        let variance = numerator.div(&count.mul(&Numeric::new(divisor, 0))?)?;
        if !root {
            return Ok(Datum::Numeric(variance));
        }
        // PostgreSQL draws the root to the digits of the quotient.
        let scale = variance.scale() as i32;
        Ok(Datum::Numeric(variance.sqrt()?.round(scale)))
    }
}

fn create(types: &[Oid], measure: Measure) -> Box<dyn Accumulator> {
    match types.first() {
        Some(&(FLOAT4 | FLOAT8)) => Box::new(Floats { count: 0.0, sum: 0.0, squares: 0.0, measure }),
        Some(&types::oid::NUMERIC) => Box::new(Decimals {
            count: 0,
            sums: Sums::Decimal { sum: NumericSum::ZERO, squares: NumericSum::ZERO },
            measure,
        }),
        _ => Box::new(Decimals { count: 0, sums: Sums::Whole { sum: 0, squares: 0 }, measure }),
    }
}

pub(super) fn avg_float(types: &[Oid]) -> Box<dyn Accumulator> {
    create(types, Measure::Mean)
}

pub(super) fn var_samp(types: &[Oid]) -> Box<dyn Accumulator> {
    create(types, Measure::Sample(false))
}

pub(super) fn var_pop(types: &[Oid]) -> Box<dyn Accumulator> {
    create(types, Measure::Population(false))
}

pub(super) fn stddev_samp(types: &[Oid]) -> Box<dyn Accumulator> {
    create(types, Measure::Sample(true))
}

pub(super) fn stddev_pop(types: &[Oid]) -> Box<dyn Accumulator> {
    create(types, Measure::Population(true))
}
