//! Aggregates of pairs: covariance, correlation, linear regression. Added up by the method of Youngs and Cramer, as
//! PostgreSQL does it, so that the digits agree.

use base::{Oid, Result};
use types::Datum;

use super::super::entry::mismatch;
use super::super::{Accumulator, EvalContext};
use super::statistics::{squares, sum};
use super::{float, float_overflow, other_of};

/// What is asked of the pairs (y, x).
#[derive(Clone, Copy)]
enum Measure {
    Count,
    SquaresX,
    SquaresY,
    Products,
    MeanX,
    MeanY,
    Slope,
    Intercept,
    Fit,
    Correlation,
    CovariancePopulation,
    CovarianceSample,
}

#[derive(Clone, Copy)]
struct Pairs {
    count: f64,
    sum_x: f64,
    squares_x: f64,
    sum_y: f64,
    squares_y: f64,
    products: f64,
    measure: Measure,
}

impl Accumulator for Pairs {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let [y, x] = args else { return Err(mismatch("regression")) };
        let (Some(y), Some(x)) = (float(y), float(x)) else { return Err(mismatch("regression")) };
        let (before, sum_x, sum_y) = (self.count, self.sum_x, self.sum_y);
        self.count += 1.0;
        self.sum_x += x;
        self.sum_y += y;
        if before > 0.0 {
            let distance_x = x * self.count - self.sum_x;
            let distance_y = y * self.count - self.sum_y;
            let scale = 1.0 / (self.count * before);
            self.squares_x += distance_x * distance_x * scale;
            self.squares_y += distance_y * distance_y * scale;
            self.products += distance_x * distance_y * scale;
            self.check_overflow(sum_x, sum_y, x, y)?;
        } else {
            if !x.is_finite() {
                self.squares_x = f64::NAN;
                self.products = f64::NAN;
            }
            if !y.is_finite() {
                self.squares_y = f64::NAN;
                self.products = f64::NAN;
            }
        }
        Ok(())
    }

    fn combine(&mut self, other: &mut dyn Accumulator) -> Result<()> {
        let other = other_of::<Pairs>(other)?;
        if other.count == 0.0 || self.count == 0.0 {
            if self.count == 0.0 {
                *self = *other;
            }
            return Ok(());
        }
        let before = *self;
        self.count += other.count;
        self.sum_x = sum(before.sum_x, other.sum_x)?;
        self.sum_y = sum(before.sum_y, other.sum_y)?;
        let distance_x = before.sum_x / before.count - other.sum_x / other.count;
        let distance_y = before.sum_y / before.count - other.sum_y / other.count;
        let scale = before.count * other.count / self.count;
        self.squares_x = squares(before.squares_x, other.squares_x, scale * distance_x * distance_x)?;
        self.squares_y = squares(before.squares_y, other.squares_y, scale * distance_y * distance_y)?;
        self.products = squares(before.products, other.products, scale * distance_x * distance_y)?;
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        Ok(self.value().map_or(Datum::Null, Datum::Float8)).map(|value| match (self.measure, value) {
            (Measure::Count, _) => Datum::Int8(self.count as i64),
            (_, value) => value,
        })
    }
}

impl Pairs {
    fn check_overflow(&mut self, sum_x: f64, sum_y: f64, x: f64, y: f64) -> Result<()> {
        let infinite = [self.sum_x, self.squares_x, self.sum_y, self.squares_y, self.products];
        if !infinite.iter().any(|v| v.is_infinite()) {
            return Ok(());
        }
        let (odd_x, odd_y) = (sum_x.is_infinite() || x.is_infinite(), sum_y.is_infinite() || y.is_infinite());
        let overflown = |value: f64, explained: bool| value.is_infinite() && !explained;
        if overflown(self.sum_x, odd_x)
            || overflown(self.squares_x, odd_x)
            || overflown(self.sum_y, odd_y)
            || overflown(self.squares_y, odd_y)
            || overflown(self.products, odd_x || odd_y)
        {
            return Err(float_overflow());
        }
        for value in [&mut self.squares_x, &mut self.squares_y, &mut self.products] {
            if value.is_infinite() {
                *value = f64::NAN;
            }
        }
        Ok(())
    }

    fn value(&self) -> Option<f64> {
        let some = self.count >= 1.0;
        match self.measure {
            Measure::Count => None,
            Measure::SquaresX => some.then_some(self.squares_x),
            Measure::SquaresY => some.then_some(self.squares_y),
            Measure::Products => some.then_some(self.products),
            Measure::MeanX => some.then(|| self.sum_x / self.count),
            Measure::MeanY => some.then(|| self.sum_y / self.count),
            Measure::CovariancePopulation => some.then(|| self.products / self.count),
            Measure::CovarianceSample => (self.count >= 2.0).then(|| self.products / (self.count - 1.0)),
            Measure::Correlation => (some && self.squares_x != 0.0 && self.squares_y != 0.0)
                .then(|| self.products / (self.squares_x * self.squares_y).sqrt()),
            Measure::Fit if !some || self.squares_x == 0.0 => None,
            Measure::Fit if self.squares_y == 0.0 => Some(1.0),
            Measure::Fit => Some((self.products * self.products) / (self.squares_x * self.squares_y)),
            Measure::Slope => (some && self.squares_x != 0.0).then(|| self.products / self.squares_x),
            Measure::Intercept => (some && self.squares_x != 0.0)
                .then(|| (self.sum_y - self.sum_x * self.products / self.squares_x) / self.count),
        }
    }
}

fn create(measure: Measure) -> Box<dyn Accumulator> {
    let nothing = 0.0;
    Box::new(Pairs {
        count: nothing,
        sum_x: nothing,
        squares_x: nothing,
        sum_y: nothing,
        squares_y: nothing,
        products: nothing,
        measure,
    })
}

macro_rules! measures {
    ($($name:ident = $measure:ident;)+) => {
        $(pub(super) fn $name(_: &[Oid]) -> Box<dyn Accumulator> {
            create(Measure::$measure)
        })+
    };
}

measures! {
    regr_count = Count;
    regr_sxx = SquaresX;
    regr_syy = SquaresY;
    regr_sxy = Products;
    regr_avgx = MeanX;
    regr_avgy = MeanY;
    regr_r2 = Fit;
    regr_slope = Slope;
    regr_intercept = Intercept;
    covar_pop = CovariancePopulation;
    covar_samp = CovarianceSample;
    corr = Correlation;
}
