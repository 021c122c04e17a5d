//! Which rows a transaction asks for.

use clap::ValueEnum;

use crate::rng::Rng;

/// Distributions of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Distribution {
    /// sysbench's default: of four keys, three are of the hundredth in the middle, and one is near the middle.
    Special,
    /// Every key as often.
    Uniform,
}

/// Numbers whose mean makes the fourth of `Special` gather in the middle.
const SUMMED: u32 = 12;

impl Distribution {
    /// A key from 1 to `rows`.
    pub fn draw(self, rows: u32, rng: &mut Rng) -> i64 {
        let rows = i64::from(rows);
        match self {
            Distribution::Uniform => rng.uniform(1, rows),
            Distribution::Special if rng.uniform(1, 4) > 1 => {
                let hot = (rows / 100).max(1);
                (rows - hot) / 2 + rng.uniform(1, hot)
            }
            Distribution::Special => {
                let sum: f64 = (0..SUMMED).map(|_| rng.unit()).sum();
                1 + (sum / f64::from(SUMMED) * (rows - 1) as f64) as i64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_four_special_keys_are_of_the_middle_hundredth() {
        let mut rng = Rng::new(1, 0);
        let keys: Vec<i64> = (0..40_000).map(|_| Distribution::Special.draw(100_000, &mut rng)).collect();
        assert!(keys.iter().all(|key| (1..=100_000).contains(key)));
        let hot = keys.iter().filter(|&&key| (49_501..=50_500).contains(&key)).count();
        assert!((29_800..31_800).contains(&hot), "{hot}");
    }

    #[test]
    fn few_rows_are_enough() {
        let mut rng = Rng::new(1, 0);
        for rows in [1, 2, 100] {
            for keys in [Distribution::Special, Distribution::Uniform] {
                assert!((0..1000).all(|_| (1..=i64::from(rows)).contains(&keys.draw(rows, &mut rng))));
            }
        }
    }
}
