//! From commit timestamps to the log positions that replies wait for (rule R1).
//!
//! Timestamps are dense, so a ring holds the position of each recent commit. An entry that was overwritten by a later commit
//! answers a later position: the reply waits longer than it must, never shorter.

use std::sync::atomic::{AtomicU64, Ordering};

use base::{Lsn, Timestamp};
use redo::DurableWatch;

const RING: usize = 1 << 14;

/// Positions of recent commits.
#[derive(Debug)]
pub struct Gates {
    /// Written in the log's critical section (Release) before the commit is published; read by whoever has seen the commit.
    ring: Box<[AtomicU64]>,
    /// Commits up to here are known to be durable; may lag.
    durable: AtomicU64,
}

impl Gates {
    /// All commits up to `durable` are.
    pub fn new(durable: Timestamp) -> Gates {
        Gates { ring: (0..RING).map(|_| AtomicU64::new(0)).collect(), durable: AtomicU64::new(durable.0) }
    }

    /// A commit at `ts` ends at `end`. `Lsn(0)` for one that raises no gate.
    pub fn set(&self, ts: Timestamp, end: Lsn) {
        self.ring[ts.0 as usize % RING].store(end.0, Ordering::Release);
    }

    /// What a reply that rests on the commit at `ts` waits for; `Lsn(0)`: nothing.
    pub fn of(&self, ts: Timestamp, watch: &DurableWatch) -> Lsn {
        if ts.0 <= self.durable.load(Ordering::Acquire) {
            return Lsn(0);
        }
        let end = Lsn(self.ring[ts.0 as usize % RING].load(Ordering::Acquire));
        if end > watch.current() {
            return end;
        }
        // An entry of 0 says nothing about earlier commits; another one is durable with all before it.
        if end > Lsn(0) {
            self.durable.fetch_max(ts.0, Ordering::AcqRel);
        }
        Lsn(0)
    }

    /// Commits known to be durable.
    pub fn durable(&self) -> Timestamp {
        Timestamp(self.durable.load(Ordering::Acquire))
    }
}
