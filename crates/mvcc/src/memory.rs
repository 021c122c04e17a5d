//! What rows and indexes cost (rule R18): one counted interface for row headers and versions, tagged (table, kind), and
//! one budget that index nodes are charged to as well.
//!
//! Responsible for: striped counters per table and kind, the budget, [`MemoryFull`].
//! Not responsible for: what to do when the budget is used up (`engine` answers 53200), figures of one index (each counts
//! its own and charges them here).
//! Invariants: bytes are counted when allocated and un-counted when retired, so memory that only waits for a reader's
//! guard to end is not in the figures. Counters are statistics: all accesses are Relaxed and order nothing.

use std::sync::Arc;

use crate::sync::{AtomicI64, AtomicU64, Ordering, stripe};

const STRIPES: usize = 8;
/// A stripe hands its sum over when it reaches this many bytes, so the settled total is off by at most `STRIPES` times.
const SETTLE_BYTES: i64 = 64 << 10;

/// Its own cache line, so that two cores do not write to the same one.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub T);

/// The budget refused a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFull {
    /// Bytes in use.
    pub used: u64,
    /// Bytes allowed.
    pub limit: u64,
}

/// Memory of one store: rows, versions, index nodes and what else is charged to it.
pub struct Memory {
    limit: AtomicU64,
    settled: AtomicI64,
    stripes: [Padded<AtomicI64>; STRIPES],
}

impl Memory {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Memory {
        Memory { limit: AtomicU64::new(limit), settled: AtomicI64::new(0), stripes: Default::default() }
    }

    /// Adds (or takes back) bytes under the budget.
    pub fn charge(&self, bytes: i64) {
        let own = &self.stripes[stripe() % STRIPES].0;
        let sum = own.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if sum.abs() >= SETTLE_BYTES {
            self.settled.fetch_add(own.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        let open: i64 = self.stripes.iter().map(|s| s.0.load(Ordering::Relaxed)).sum();
        (self.settled.load(Ordering::Relaxed) + open).max(0) as u64
    }

    /// Bytes allowed.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the budget.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Refuses when the budget is used up. One load: the last few bytes that stripes have not settled are not seen.
    ///
    /// # Errors
    /// [`MemoryFull`].
    #[inline]
    pub fn check(&self) -> Result<(), MemoryFull> {
        let settled = self.settled.load(Ordering::Relaxed).max(0) as u64;
        if settled < self.limit() { Ok(()) } else { Err(MemoryFull { used: self.used(), limit: self.limit() }) }
    }
}

/// Bytes of one table, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// Row headers and the directory that finds them.
    pub headers: u64,
    /// Row versions.
    pub versions: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Header,
    Version,
}

/// The account of one table; everything in it is also in the store's total.
pub(crate) struct Account {
    total: Arc<Memory>,
    /// Per stripe: bytes of headers, bytes of versions, rows, versions made. One cache line.
    stripes: [Padded<[AtomicI64; 4]>; STRIPES],
}

impl Account {
    pub fn new(total: Arc<Memory>) -> Account {
        Account { total, stripes: Default::default() }
    }

    /// Counts rows that begin (or cease) to exist.
    pub fn count_rows(&self, rows: i64) {
        self.stripes[stripe() % STRIPES].0[2].fetch_add(rows, Ordering::Relaxed);
    }

    /// Rows that exist, roughly: undecided and deleted ones count until they are gone.
    pub fn rows(&self) -> u64 {
        self.stripes.iter().map(|s| s.0[2].load(Ordering::Relaxed)).sum::<i64>().max(0) as u64
    }

    /// Versions that were ever made: how much a table has changed between two looks.
    pub fn versions_made(&self) -> u64 {
        self.stripes.iter().map(|s| s.0[3].load(Ordering::Relaxed)).sum::<i64>() as u64
    }

    /// Counts a version that was made.
    #[inline]
    pub fn count_version(&self) {
        self.stripes[stripe() % STRIPES].0[3].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts rows that were loaded, of one version each, and the bytes of the versions.
    pub fn count_loaded(&self, rows: i64, bytes: i64) {
        let own = &self.stripes[stripe() % STRIPES].0;
        own[2].fetch_add(rows, Ordering::Relaxed);
        own[3].fetch_add(rows, Ordering::Relaxed);
        self.charge(Kind::Version, bytes);
    }

    #[inline]
    pub fn charge(&self, kind: Kind, bytes: i64) {
        self.stripes[stripe() % STRIPES].0[kind as usize].fetch_add(bytes, Ordering::Relaxed);
        self.total.charge(bytes);
    }

    pub fn used(&self) -> TableMemory {
        let sum = |kind: Kind| {
            let sum: i64 = self.stripes.iter().map(|s| s.0[kind as usize].load(Ordering::Relaxed)).sum();
            sum.max(0) as u64
        };
        TableMemory { headers: sum(Kind::Header), versions: sum(Kind::Version) }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let left = self.used();
        self.total.charge(-((left.headers + left.versions) as i64));
    }
}
