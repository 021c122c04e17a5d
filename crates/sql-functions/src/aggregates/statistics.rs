//! Averages of floats, variances and standard deviations.
//!
//! Floats are added by the method of Youngs and Cramer, decimals as exact sums of values and of squares, both as
//! PostgreSQL does it, so that the digits agree.

use base::{Oid, Result};
use types::oid::{FLOAT4, FLOAT8};
use types::{Datum, Numeric, NumericSum};

use super::super::entry::mismatch;
use super::super::{Accumulator, EvalContext};
use super::{float, float_overflow};

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

/// Exact sums. Those of `smallint` and `integer` fit 128 bits, squares included.
enum Sums {
    Whole { sum: i128, squares: i128 },
    Decimal { sum: NumericSum, squares: NumericSum },
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
                        let (mut exact, mut exact_squares) = (NumericSum::ZERO, NumericSum::ZERO);
                        exact.add(&Numeric::from_i128(*sum, 0))?;
                        exact_squares.add(&Numeric::from_i128(*squares, 0))?;
                        exact_squares.add(&Numeric::from_i128(value * value, 0))?;
                        self.sums = Sums::Decimal { sum: exact, squares: exact_squares };
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
