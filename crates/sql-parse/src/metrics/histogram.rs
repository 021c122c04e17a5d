//! Times by size: two buckets for each doubling, from a microsecond to half a minute.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets, the one for everything longer included.
pub const BUCKETS: usize = 51;

/// A histogram that one thread writes and others read: a plain load and a plain store each, no locked instruction.
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_micros: AtomicU64,
}

/// Adds to a counter that only the calling thread writes.
pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum_micros: AtomicU64::new(0) }
    }
}

/// The bucket of a time: its highest bit and the one after it.
fn bucket_of(micros: u64) -> usize {
    if micros < 2 {
        return micros as usize;
    }
    let octave = micros.ilog2() as usize;
    let half = (micros >> (octave - 1)) as usize & 1;
    (2 * octave + half).min(BUCKETS - 1)
}

/// The largest time of a bucket.
fn bound_of(bucket: usize) -> u64 {
    match bucket {
        0 | 1 => bucket as u64,
        _ => ((3 + bucket as u64 % 2) << (bucket / 2 - 1)) - 1,
    }
}

impl Histogram {
    /// Counts one. Only ever called by one thread.
    #[inline]
    pub fn record(&self, micros: u64) {
        add(&self.buckets[bucket_of(micros)], 1);
        add(&self.sum_micros, micros);
    }

    /// Adds what is counted so far to `times`.
    pub fn add_to(&self, times: &mut Times) {
        for (sum, bucket) in times.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.load(Ordering::Relaxed);
        }
        times.sum_micros += self.sum_micros.load(Ordering::Relaxed);
    }
}

/// What histograms have counted.
#[derive(Clone, Debug)]
pub struct Times {
    buckets: [u64; BUCKETS],
    sum_micros: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times { buckets: [0; BUCKETS], sum_micros: 0 }
    }
}

impl Times {
    /// How many.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// How long in all.
    pub fn sum_micros(&self) -> u64 {
        self.sum_micros
    }

    /// The largest time of each bucket in microseconds, and how many are in it; the last one, which has no bound, is
    /// left out.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..BUCKETS - 1).map(|bucket| (bound_of(bucket), self.buckets[bucket]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_below_the_bound_of_its_bucket_and_above_the_one_before() {
        for micros in (0..10_000).chain([65_535, 65_536, 98_303, 98_304, 1 << 24, (1 << 25) - 1]) {
            let bucket = bucket_of(micros);
            assert!(micros <= bound_of(bucket), "{micros}");
            assert!(bucket == 0 || micros > bound_of(bucket - 1), "{micros}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn what_is_recorded_is_counted() {
        let histogram = Histogram::default();
        for micros in [1, 1, 7, 1000, u64::MAX / 2] {
            histogram.record(micros);
        }
        let mut times = Times::default();
        histogram.add_to(&mut times);
        assert_eq!(times.count(), 5);
        let below: u64 = times.buckets().filter(|(bound, _)| *bound < 2000).map(|(_, n)| n).sum();
        assert_eq!(below, 4);
    }
}
