//! A small, fast generator whose sequence never changes: reports name a seed, and the seed must keep its meaning.

/// xoshiro256++ by Blackman and Vigna, seeded through SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator number `stream` of a run: streams of one seed are unrelated.
    pub fn new(seed: u64, stream: u64) -> Rng {
        let mut mixed = seed ^ stream.wrapping_mul(0xd1342543de82ef95).rotate_left(32);
        let state = std::array::from_fn(|_| {
            mixed = mixed.wrapping_add(0x9e3779b97f4a7c15);
            let mut z = mixed;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
            z ^ (z >> 31)
        });
        Rng { state }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Uniform in `low..=high`.
    pub fn uniform(&mut self, low: i64, high: i64) -> i64 {
        debug_assert!(low <= high);
        let span = high.wrapping_sub(low) as u64 + 1;
        // The bias of the multiplication is below 2^-40 for every span used here.
        low + ((u128::from(self.bits()) * u128::from(span)) >> 64) as i64
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: i64) -> bool {
        self.uniform(1, 100) <= percent
    }

    /// Uniform in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fisher and Yates.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.uniform(0, last as i64) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_keeps_its_meaning() {
        let mut rng = Rng::new(42, 0);
        let first: Vec<i64> = (0..5).map(|_| rng.uniform(1, 1000)).collect();
        let mut again = Rng::new(42, 0);
        assert_eq!(first, (0..5).map(|_| again.uniform(1, 1000)).collect::<Vec<_>>());
        let mut other = Rng::new(42, 1);
        assert_ne!(first, (0..5).map(|_| other.uniform(1, 1000)).collect::<Vec<_>>());
    }

    #[test]
    fn uniform_covers_its_range_evenly() {
        let mut rng = Rng::new(1, 1);
        let mut hits = [0; 10];
        for _ in 0..100_000 {
            hits[rng.uniform(5, 14) as usize - 5] += 1;
        }
        assert!(hits.iter().all(|h| (9_500..10_500).contains(h)), "{hits:?}");
        assert_eq!(rng.uniform(3, 3), 3);
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<i32> = (0..100).collect();
        Rng::new(3, 0).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
