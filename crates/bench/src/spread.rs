//! A figure that was measured several times.

/// Its median, and how far it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The one in the middle, or the mean of the two there.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// How many.
    pub count: usize,
}

impl Spread {
    /// Of figures in any order; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut all: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        all.sort_by(f64::total_cmp);
        let (&min, &max) = (all.first()?, all.last()?);
        let (low, high) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
        Some(Spread { median: low.midpoint(high), min, max, count: all.len() })
    }

    /// The least and the greatest, if they are of several measurements.
    pub fn range(self) -> Option<(f64, f64)> {
        (self.count > 1).then_some((self.min, self.max))
    }
}

/// The median; 0 of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values).unwrap_or_default().median
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_two_is_their_mean() {
        assert_eq!(Spread::of([3.0, 1.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0, count: 2 }));
        assert_eq!((median([1.0, 9.0, 2.0]), median([])), (2.0, 0.0));
        assert_eq!(Spread::of([f64::NAN]), None);
    }
}
