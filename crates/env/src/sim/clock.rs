//! A clock that advances on request.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::Clock;

/// A simulated clock. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct SimClock(Arc<Times>);

#[derive(Debug, Default)]
struct Times {
    nanos: AtomicU64,
    /// What the wall clock has been set forward or back, in microseconds.
    offset: AtomicI64,
}

/// 2026-01-01 00:00 UTC.
const START_MICROS: i64 = 1_767_225_600_000_000;

impl SimClock {
    /// A clock at its start.
    pub fn new() -> SimClock {
        SimClock::default()
    }

    /// Time goes on.
    pub fn advance(&self, nanos: u64) {
        self.0.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Somebody sets the wall clock forward or back.
    pub fn jump(&self, micros: i64) {
        self.0.offset.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now_micros(&self) -> i64 {
        START_MICROS + (self.monotonic_nanos() / 1000) as i64 + self.0.offset.load(Ordering::Relaxed)
    }

    fn monotonic_nanos(&self) -> u64 {
        self.0.nanos.load(Ordering::Relaxed)
    }
}
