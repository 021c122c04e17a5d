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
    /// For each that raises no gate: where the newest one before it ends that does. Written before its entry in the ring.
    before: Box<[AtomicU64]>,
    /// Where the newest one ends that raises a gate.
    newest_gate: AtomicU64,
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
            before: (0..RING).map(|_| AtomicU64::new(0)).collect(),
            newest_gate: AtomicU64::new(0),
            newest: AtomicU64::new(durable.0),
            durable: AtomicU64::new(durable.0),
        }
    }

    /// A commit at `ts` ends at `end`.
    pub fn set(&self, ts: Timestamp, end: Lsn, durability: Durability) {
        self.newest.store(ts.0, Ordering::Relaxed);
        let tag = match durability {
            Durability::On => {
                self.newest_gate.store(end.0, Ordering::Relaxed);
                0
            }
            Durability::Off => {
                let before = self.newest_gate.load(Ordering::Relaxed);
                self.before[ts.0 as usize % RING].store(before, Ordering::Relaxed);
                NO_GATE
            }
        };
        self.ring[ts.0 as usize % RING].store(end.0 | tag, Ordering::Release);
    }

    /// What a reply that depends on the commit at `ts` waits for; `Lsn(0)`: nothing.
    pub fn of(&self, ts: Timestamp, watch: &DurableWatch) -> Lsn {
        self.look(ts, watch, false)
    }

    /// What a reply waits for that depends on commits whose newest is that at `ts`. Those before it may raise a gate if
    /// it does not.
    pub fn up_to(&self, ts: Timestamp, watch: &DurableWatch) -> Lsn {
        self.look(ts, watch, true)
    }

    fn look(&self, ts: Timestamp, watch: &DurableWatch, with_earlier: bool) -> Lsn {
        if ts.0 <= self.durable.load(Ordering::Acquire) {
            return Lsn(0);
        }
        let entry = self.ring[ts.0 as usize % RING].load(Ordering::Acquire);
        let end = Lsn(entry & !NO_GATE);
        if end <= watch.current() {
            self.durable.fetch_max(ts.0, Ordering::AcqRel);
            return Lsn(0);
        }
        if entry & NO_GATE == 0 {
            return end;
        }
        let before = if with_earlier { Lsn(self.before[ts.0 as usize % RING].load(Ordering::Relaxed)) } else { Lsn(0) };
        // The tag of a later commit says nothing about this one.
        let is_own = self.newest.load(Ordering::Relaxed).saturating_sub(ts.0) < RING as u64;
        match is_own {
            true if before <= watch.current() => Lsn(0),
            true => before,
            false => end,
        }
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
    fn commits_that_raise_a_gate_are_waited_for_behind_one_that_does_not() {
        let watch = DurableWatch::default();
        let gates = Gates::new(Timestamp(0));
        gates.set(Timestamp(1), Lsn(10), Durability::Off);
        assert_eq!(gates.up_to(Timestamp(1), &watch), Lsn(0));
        gates.set(Timestamp(2), Lsn(20), Durability::On);
        gates.set(Timestamp(3), Lsn(30), Durability::Off);
        assert_eq!((gates.of(Timestamp(3), &watch), gates.up_to(Timestamp(3), &watch)), (Lsn(0), Lsn(20)));
    }

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
