//! From commit timestamps to the log positions that replies wait for (rule R1).
//!
//! Timestamps are dense, so a ring holds the position of each recent commit. An entry that was overwritten by a later commit
//! answers a later position: the reply waits longer than it must, never shorter.

use std::sync::atomic::{AtomicU64, Ordering};

use base::{Lsn, Timestamp};
use engine_api::Durability;
use redo::DurableWatch;

const RING: usize = 1 << 14;

/// Set in an entry whose commit raises no gate; the rest is its position.
const NO_GATE: u64 = 1 << 63;

/// Positions of recent commits.
#[derive(Debug)]
pub struct Gates {
    /// Written in the log's critical section (Release) before the commit is published; read by whoever has seen the commit.
    ring: Box<[AtomicU64]>,
    /// The newest commit in the ring, written before its entry: who reads an entry that was overwritten finds out.
    newest: AtomicU64,
    /// Commits up to here are known to be durable; may lag.
    durable: AtomicU64,
}

impl Gates {
    /// All commits up to `durable` are.
    pub fn new(durable: Timestamp) -> Gates {
        Gates {
            ring: (0..RING).map(|_| AtomicU64::new(0)).collect(),
            newest: AtomicU64::new(durable.0),
            durable: AtomicU64::new(durable.0),
        }
    }

    /// A commit at `ts` ends at `end`.
    pub fn set(&self, ts: Timestamp, end: Lsn, durability: Durability) {
        let tag = if durability == Durability::On { 0 } else { NO_GATE };
        self.newest.store(ts.0, Ordering::Relaxed);
        self.ring[ts.0 as usize % RING].store(end.0 | tag, Ordering::Release);
    }

    /// What a reply that rests on the commit at `ts` waits for; `Lsn(0)`: nothing.
    pub fn of(&self, ts: Timestamp, watch: &DurableWatch) -> Lsn {
        if ts.0 <= self.durable.load(Ordering::Acquire) {
            return Lsn(0);
        }
        let entry = self.ring[ts.0 as usize % RING].load(Ordering::Acquire);
        let end = Lsn(entry & !NO_GATE);
        if end <= watch.current() {
            self.durable.fetch_max(ts.0, Ordering::AcqRel);
            return Lsn(0);
        }
        // The tag of a later commit says nothing about this one.
        let is_own = self.newest.load(Ordering::Relaxed).saturating_sub(ts.0) < RING as u64;
        if entry & NO_GATE != 0 && is_own { Lsn(0) } else { end }
    }

    /// Commits known to be durable.
    pub fn durable(&self) -> Timestamp {
        Timestamp(self.durable.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_commit_that_raises_no_gate_does_not_open_that_of_an_earlier_one() {
        let watch = DurableWatch::default();
        let gates = Gates::new(Timestamp(0));
        gates.set(Timestamp(1), Lsn(10), Durability::On);
        gates.set(Timestamp(2), Lsn(20), Durability::Off);
        assert_eq!((gates.of(Timestamp(1), &watch), gates.of(Timestamp(2), &watch)), (Lsn(10), Lsn(0)));
        for ts in 3..=RING as u64 + 1 {
            gates.set(Timestamp(ts), Lsn(ts * 10), Durability::Off);
        }
        assert!(gates.of(Timestamp(1), &watch) >= Lsn(10));
        assert_eq!(gates.of(Timestamp(3), &watch), Lsn(0));
    }
}
