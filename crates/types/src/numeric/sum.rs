//! Adding up many numbers, for `sum` and `avg`.

use base::Result;

use super::{Numeric, NumericRef, Repr};

/// A running sum. Small numbers of one scale, the usual column of money, are added in 128 bits without allocation.
#[derive(Clone, Debug)]
pub struct NumericSum {
    small: i128,
    scale: u16,
    /// The part that did not fit.
    rest: Option<Numeric>,
    /// How many NaN, Infinity and -Infinity were added; counted, so that they can be taken away again.
    special: [u64; 3],
}

impl NumericSum {
    /// Nothing added yet.
    pub const ZERO: NumericSum = NumericSum { small: 0, scale: 0, rest: None, special: [0; 3] };

    /// Adds one number.
    ///
    /// # Errors
    /// 22003 beyond the limits of NUMERIC.
    pub fn add(&mut self, value: &Numeric) -> Result<()> {
        self.add_ref(NumericRef::of(value))
    }

    /// The same, of a number where it lies.
    ///
    /// # Errors
    /// 22003 beyond the limits of NUMERIC.
    #[inline]
    pub fn add_ref(&mut self, value: NumericRef<'_>) -> Result<()> {
        if let Some((m, s)) = value.small()
            && s == self.scale
            && let Some(sum) = self.small.checked_add(m as i128)
        {
            self.small = sum;
            return Ok(());
        }
        self.add_slow(&value.get())
    }

    #[cold]
    fn add_slow(&mut self, value: &Numeric) -> Result<()> {
        if let Some(counter) = self.counter(value) {
            *counter += 1;
            return Ok(());
        }
        let total = self.finite()?.add(value)?;
        (self.small, self.scale, self.rest) = match total.0 {
            Repr::Small(m, scale) => (m as i128, scale, None),
            // What follows is likely of the same scale again.
            _ => (0, total.scale() as u16, Some(total)),
        };
        Ok(())
    }

    fn counter(&mut self, value: &Numeric) -> Option<&mut u64> {
        match value.0 {
            Repr::NaN => Some(&mut self.special[0]),
            Repr::Infinity => Some(&mut self.special[1]),
            Repr::NegInfinity => Some(&mut self.special[2]),
            _ => None,
        }
    }

    /// Takes one number away that was added before, as moving window frames do.
    ///
    /// # Errors
    /// 22003 beyond the limits of NUMERIC.
    pub fn sub(&mut self, value: &Numeric) -> Result<()> {
        if let Some(counter) = self.counter(value) {
            *counter = counter.saturating_sub(1);
            return Ok(());
        }
        self.add(&value.neg())
    }

    /// Adds what another sum has.
    ///
    /// # Errors
    /// 22003 beyond the limits of NUMERIC.
    pub fn combine(&mut self, other: &NumericSum) -> Result<()> {
        for (own, more) in self.special.iter_mut().zip(other.special) {
            *own += more;
        }
        self.add(&other.finite()?)
    }

    fn finite(&self) -> Result<Numeric> {
        let small = Numeric::from_i128(self.small, self.scale);
        match &self.rest {
            None => Ok(small),
            Some(rest) => rest.add(&small),
        }
    }

    /// The sum.
    ///
    /// # Errors
    /// 22003 beyond the limits of NUMERIC.
    pub fn total(&self) -> Result<Numeric> {
        match self.special {
            [0, 0, 0] => self.finite(),
            [0, _, 0] => Ok(Numeric::INFINITY),
            [0, 0, _] => Ok(Numeric::NEG_INFINITY),
            _ => Ok(Numeric::NAN),
        }
    }
}
