//! A small seeded generator, so that a failed run can be replayed from one number.

/// SplitMix64. Two generators with the same seed give the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator with a fixed seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The seed in the environment's `NYALA_SEED`, or one from the clock. Tests print it.
    pub fn seed() -> u64 {
        if let Ok(text) = std::env::var("NYALA_SEED") {
            return text.parse().expect("NYALA_SEED is a number");
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("the clock is past 1970");
        now.as_nanos() as u64
    }

    /// A generator of its own that goes out from here: what is asked of it changes nothing of what this one says next.
    pub fn aside(&self) -> Random {
        Random(!self.0)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// One of these, of which there is one at least.
    pub fn pick<'t, T: ?Sized>(&mut self, of: &[&'t T]) -> &'t T {
        of[self.below(of.len() as u64) as usize]
    }
}
