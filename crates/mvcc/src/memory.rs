//! What rows and indexes cost (rule R18): one counted interface for row headers and versions, tagged (table, kind), and
//! one budget that index nodes, and what others say they hold, are charged to as well.
//!
//! Responsible for: striped counters per table and kind, the budget, what a block takes in the allocator.
//! Not responsible for: what to do when the budget is used up (`engine` delays, then answers 53200), figures of one index
//! (each counts its own and charges them here).
//! Invariants: bytes are counted when allocated and un-counted when retired, so memory that only waits for a reader's
//! guard to end is not in the figures. Counters are statistics: all accesses are Relaxed and order nothing, but those of
//! [`Account::gone`].

use std::alloc::{Layout, alloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use base::Timestamp;

use crate::sync::{AtomicI64, AtomicU64, Mutex, Ordering, stripe};

const STRIPES: usize = 8;
/// A stripe hands its sum over when it reaches this many bytes, so the settled total is off by at most `STRIPES` times.
const SETTLE_BYTES: i64 = 64 << 10;
/// Kinds of memory beside rows and indexes; what they are is their owners' business.
pub const OTHER_KINDS: usize = 10;

/// Its own cache line, so that two cores do not write to the same one.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub T);

/// Bytes that the allocator gives for a block of `size`: mimalloc's classes are 16 bytes apart up to 64, then four to each
/// doubling. What is counted is what is gone.
#[inline]
pub const fn block_bytes(size: usize) -> usize {
    /// Beyond this, blocks are whole pages.
    const CLASSES_END: usize = 512 << 10;
    match size {
        0..=8 => 8,
        9..=64 => size.next_multiple_of(16),
        _ if size > CLASSES_END => size.next_multiple_of(4 << 10),
        _ => {
            let last = size.div_ceil(8) - 1;
            let step = last.ilog2() - 2;
            ((last >> step) + 1) << step << 3
        }
    }
}

/// Where rows and index nodes are allocated; the global allocator if nobody says.
static PLACE: OnceLock<fn(Layout) -> *mut u8> = OnceLock::new();

/// From now on rows and index nodes of all stores are allocated by `place`, which must do what [`std::alloc::alloc`] does: the global allocator
/// frees what it gives, on any thread. The first call counts.
pub fn allocate_by(place: fn(Layout) -> *mut u8) {
    let _ = PLACE.set(place);
}

/// Memory for a row, a version or a node, which [`std::alloc::dealloc`] frees.
///
/// # Safety
/// The size is not zero.
#[inline]
pub(crate) unsafe fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: the caller's word.
    let block = PLACE.get().map_or_else(|| unsafe { alloc(layout) }, |place| place(layout));
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
}

/// As [`Box::new`], where rows are.
#[inline]
pub(crate) fn boxed<T>(value: T) -> Box<T> {
    const { assert!(size_of::<T>() > 0, "there is something to keep") };
    // SAFETY: the size is not zero; the block is as large and as aligned as a `T`, and of the global allocator.
    unsafe {
        let block = allocate(Layout::new::<T>()).cast::<T>();
        block.write(value);
        Box::from_raw(block.as_ptr())
    }
}

/// Memory of one store: rows, versions, index nodes and what else is charged to it.
pub struct Memory {
    limit: AtomicU64,
    /// Where it begins to be tight.
    tight: AtomicU64,
    /// Bytes that were in use when the limit was set.
    floor: AtomicU64,
    settled: AtomicI64,
    stripes: [Padded<AtomicI64>; STRIPES],
    others: [AtomicI64; OTHER_KINDS],
    /// What counts of the kind that counts in part: see [`Memory::set_other_beyond`].
    beyond: AtomicI64,
    /// Held while a measured kind and the total change: [`Memory::in_use`] sees both or neither.
    measuring: Mutex<()>,
}

/// What is in use at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    /// Bytes in use of all kinds.
    pub total: u64,
    /// Those of the kind asked for.
    pub kind: u64,
    /// Those of the kind that counts in part.
    pub beyond: u64,
}

impl Memory {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Memory {
        let memory = Memory {
            limit: AtomicU64::new(limit),
            tight: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            settled: AtomicI64::new(0),
            stripes: Default::default(),
            others: Default::default(),
            beyond: AtomicI64::new(0),
            measuring: Mutex::new(()),
        };
        memory.set_limit(limit);
        memory
    }

    /// Adds (or takes back) bytes under the budget.
    pub fn charge(&self, bytes: i64) {
        let own = &self.stripes[stripe() % STRIPES].0;
        let sum = own.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if sum.abs() >= SETTLE_BYTES {
            self.settled.fetch_add(own.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// As [`Memory::charge`], for one of the other kinds. For what changes seldom: all threads share its counter.
    pub fn charge_other(&self, kind: usize, bytes: i64) {
        self.others[kind].fetch_add(bytes, Ordering::Relaxed);
        self.charge(bytes);
    }

    /// Says what one of the other kinds holds now. For those that are measured now and then, by one thread at a time.
    pub fn set_other(&self, kind: usize, bytes: u64) {
        let _whole = self.measuring.lock();
        let before = self.others[kind].swap(bytes as i64, Ordering::Relaxed);
        self.charge(bytes as i64 - before);
    }

    /// As [`Memory::set_other`], for the one kind of which the first `spared` bytes do not count against the budget.
    pub fn set_other_beyond(&self, kind: usize, bytes: u64, spared: u64) {
        let _whole = self.measuring.lock();
        self.others[kind].store(bytes as i64, Ordering::Relaxed);
        let beyond = bytes.saturating_sub(spared) as i64;
        self.charge(beyond - self.beyond.swap(beyond, Ordering::Relaxed));
    }

    /// What counts of that kind.
    pub fn beyond(&self) -> u64 {
        self.beyond.load(Ordering::Relaxed).max(0) as u64
    }

    /// What one of the other kinds holds.
    pub fn other(&self, kind: usize) -> u64 {
        self.others[kind].load(Ordering::Relaxed).max(0) as u64
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        let open: i64 = self.stripes.iter().map(|s| s.0.load(Ordering::Relaxed)).sum();
        (self.settled.load(Ordering::Relaxed) + open).max(0) as u64
    }

    /// The total and what is in it of a measured kind, which belong together: megabytes of such a kind come and go at once, and who takes
    /// them off a total of before or after is as wrong.
    pub fn in_use(&self, kind: usize) -> InUse {
        let _whole = self.measuring.lock();
        InUse { total: self.used(), kind: self.other(kind), beyond: self.beyond() }
    }

    /// Bytes allowed.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Where it begins to be tight: nine tenths of the budget.
    pub fn tight_from(&self) -> u64 {
        self.tight.load(Ordering::Relaxed)
    }

    /// The limit, or what was in use when that was set, if it is more: a limit below what is held must not keep anybody from
    /// freeing.
    pub fn limit_or_floor(&self) -> u64 {
        self.limit().max(self.floor.load(Ordering::Relaxed))
    }

    /// Changes the budget.
    pub fn set_limit(&self, bytes: u64) {
        self.floor.store(self.used(), Ordering::Relaxed);
        self.limit.store(bytes, Ordering::Relaxed);
        self.tight.store(bytes - bytes / 10, Ordering::Relaxed);
    }

    /// Whether the budget is nearly used up, or more. Two loads of one cache line; the last few bytes that stripes have not
    /// settled are not seen.
    #[inline]
    pub fn is_tight(&self) -> bool {
        self.settled.load(Ordering::Relaxed).max(0) as u64 >= self.tight.load(Ordering::Relaxed)
    }
}

/// Bytes of one table, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// Row headers and the directory that finds them.
    pub headers: u64,
    /// Row versions.
    pub versions: u64,
    /// Rows: undecided and deleted ones count until they are gone.
    pub rows: u64,
    /// Versions; those beyond one per row are undecided, or wait until nobody can see them.
    pub version_count: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum MemoryClass {
    Header,
    Version,
}

/// The account of one table; everything in it is also in the store's total.
pub(crate) struct Account {
    total: Arc<Memory>,
    /// Per stripe: bytes of headers, bytes of versions, rows, versions made, versions gone. One cache line.
    stripes: [Padded<[AtomicI64; 5]>; STRIPES],
    /// The newest commit that deleted a row of which nothing is left.
    gone: AtomicU64,
}

impl Account {
    pub fn new(total: Arc<Memory>) -> Account {
        Account { total, stripes: Default::default(), gone: AtomicU64::new(0) }
    }

    /// Notes that what is left of a row deleted by this commit goes. REQUIRES that it has not gone yet: who finds nothing of the row
    /// finds this (Release; pairs with Acquire in [`Account::gone`]).
    pub fn note_gone(&self, ts: Timestamp) {
        self.gone.fetch_max(ts.0, Ordering::Release);
    }

    /// The newest commit whose deletion left nothing.
    pub fn gone(&self) -> Timestamp {
        Timestamp(self.gone.load(Ordering::Acquire))
    }

    /// Counts rows that begin (or cease) to exist.
    pub fn count_rows(&self, rows: i64) {
        self.stripes[stripe() % STRIPES].0[2].fetch_add(rows, Ordering::Relaxed);
    }

    fn sum(&self, what: usize) -> u64 {
        self.stripes.iter().map(|s| s.0[what].load(Ordering::Relaxed)).sum::<i64>().max(0) as u64
    }

    /// Rows that exist, roughly: undecided and deleted ones count until they are gone.
    pub fn rows(&self) -> u64 {
        self.sum(2)
    }

    /// Versions that were ever made: how much a table has changed between two looks.
    pub fn versions_made(&self) -> u64 {
        self.sum(3)
    }

    /// Counts rows that were loaded, of one version each, and the bytes of the versions.
    pub fn count_loaded(&self, rows: i64, bytes: i64) {
        let own = &self.stripes[stripe() % STRIPES].0;
        own[2].fetch_add(rows, Ordering::Relaxed);
        own[3].fetch_add(rows, Ordering::Relaxed);
        self.charge(MemoryClass::Version, bytes);
    }

    #[inline]
    pub fn charge(&self, kind: MemoryClass, bytes: i64) {
        self.stripes[stripe() % STRIPES].0[kind as usize].fetch_add(bytes, Ordering::Relaxed);
        self.total.charge(bytes);
    }

    /// Counts a version of so many bytes that was made.
    #[inline]
    pub fn made_version(&self, bytes: i64) {
        self.stripes[stripe() % STRIPES].0[3].fetch_add(1, Ordering::Relaxed);
        self.charge(MemoryClass::Version, bytes);
    }

    /// Counts a version of so many bytes that went.
    #[inline]
    pub fn gone_version(&self, bytes: i64) {
        self.stripes[stripe() % STRIPES].0[4].fetch_add(1, Ordering::Relaxed);
        self.charge(MemoryClass::Version, -bytes);
    }

    pub fn used(&self) -> TableMemory {
        // Versions that went are read first, so that none is missing.
        let gone = self.sum(4);
        TableMemory {
            headers: self.sum(MemoryClass::Header as usize),
            versions: self.sum(MemoryClass::Version as usize),
            rows: self.rows(),
            version_count: self.versions_made().saturating_sub(gone),
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let left = self.used();
        self.total.charge(-((left.headers + left.versions) as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_of_the_allocators_classes() {
        for (size, block) in [
            (1, 8),
            (8, 8),
            (9, 16),
            (24, 32),
            (64, 64),
            (65, 80),
            (80, 80),
            (81, 96),
            (113, 128),
            (129, 160),
            (217, 224),
            (225, 256),
            (4096, 4096),
            (4097, 5120),
            (131_073, 163_840),
            (524_289, 528_384),
        ] {
            assert_eq!(block_bytes(size), block, "{size}");
        }
    }

    // Shuttle's atomics live in its schedules only.
    #[cfg(not(shuttle))]
    #[test]
    fn other_kinds_are_in_the_total() {
        let memory = Memory::new(1000);
        memory.charge_other(1, 300);
        memory.set_other(2, 500);
        memory.set_other(2, 400);
        assert_eq!((memory.other(1), memory.other(2), memory.used()), (300, 400, 700));
        memory.charge_other(1, -300);
        assert_eq!(memory.used(), 400);
        memory.set_other_beyond(3, 70, 50);
        assert_eq!((memory.other(3), memory.beyond(), memory.used()), (70, 20, 420));
        memory.set_other_beyond(3, 30, 50);
        assert_eq!((memory.other(3), memory.beyond(), memory.used()), (30, 0, 400));
        memory.set_limit(100 << 20);
        memory.charge(91 << 20);
        assert!(memory.is_tight() && memory.used() < memory.limit());
    }
}
