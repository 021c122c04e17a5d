//! The progress of the opening of a shard, for clients that wait for it.
//!
//! A start has three sorts of work, each counted in its own unit: bytes of the image, bytes of the log, entries of indexes. A unit
//! weighs what it takes of time, measured once and roughly: the reported figure is a share of the whole, not a promise of seconds.
//!
//! Invariants: the share never falls and stays below 100: an open shard is not yet a server, and a client that asks is still waiting.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Nanoseconds that a byte of image takes to be read, checked and loaded, …
const IMAGE_BYTE: u64 = 3;
/// … a byte of log to be read and applied, …
const LOG_BYTE: u64 = 6;
/// … and an entry to be put into an index.
const INDEX_ENTRY: u64 = 400;
/// What a log holds besides changes of rows that indexes have: bytes for which one entry is expected while nothing else is known.
const LOG_BYTES_PER_ENTRY: u64 = 256;

/// A sort of work: how much there is and how much is done.
#[derive(Debug, Default)]
struct Work {
    total: AtomicU64,
    done: AtomicU64,
}

impl Work {
    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed).min(self.total())
    }

    fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

/// How far the opening of a shard is. Written by the threads that open it, read by anyone; nothing is ordered by it.
#[derive(Debug, Default)]
pub struct Progress {
    image: Work,
    log: Work,
    entries: Work,
    /// The largest share told.
    told: AtomicU8,
}

/// What a start is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The image of the last checkpoint is loaded.
    Image,
    /// The log from there on is replayed.
    Log,
    /// Indexes are built.
    Indexes,
}

impl Progress {
    /// The share that is done, in hundredths: at most 99.
    pub fn percent(&self) -> u8 {
        let parts = [(&self.image, IMAGE_BYTE), (&self.log, LOG_BYTE), (&self.entries, INDEX_ENTRY)];
        let (mut done, mut total) = (0u128, 0u128);
        for (work, weight) in parts {
            done += u128::from(work.done()) * u128::from(weight);
            total += u128::from(work.total()) * u128::from(weight);
        }
        let now = (done * 100).checked_div(total).map_or(0, |percent| percent.min(99) as u8);
        self.told.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// What is being done.
    pub fn stage(&self) -> Stage {
        match () {
            () if self.image.done() < self.image.total() => Stage::Image,
            () if self.log.done() < self.log.total() => Stage::Log,
            () => Stage::Indexes,
        }
    }

    /// An image of so many bytes is to be loaded, and so many entries will be made of its rows.
    pub(crate) fn expect_image(&self, bytes: u64, entries: u64) {
        self.image.total.store(bytes, Ordering::Relaxed);
        self.entries.total.fetch_add(entries, Ordering::Relaxed);
    }

    /// So many bytes of log are to be replayed.
    pub(crate) fn expect_log(&self, bytes: u64) {
        self.log.total.store(bytes, Ordering::Relaxed);
    }

    /// So many bytes of log will make entries, as many as they mostly do.
    pub(crate) fn expect_entries_of_log(&self, bytes: u64) {
        self.entries.total.fetch_add(bytes / LOG_BYTES_PER_ENTRY, Ordering::Relaxed);
    }

    /// So many entries are to be made, as is known now.
    pub(crate) fn expect_entries(&self, entries: u64) {
        self.log.done.store(u64::MAX, Ordering::Relaxed);
        self.entries.total.store(entries, Ordering::Relaxed);
    }

    /// So many more bytes of the image are loaded.
    pub(crate) fn loaded(&self, bytes: u64) {
        self.image.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The image is loaded.
    pub(crate) fn all_loaded(&self) {
        self.image.done.store(u64::MAX, Ordering::Relaxed);
    }

    /// The log is replayed up to so many bytes behind its beginning.
    pub(crate) fn replayed(&self, bytes: u64) {
        self.log.done.store(bytes, Ordering::Relaxed);
    }

    /// So many more entries are made.
    pub(crate) fn indexed(&self, entries: u64) {
        self.entries.done.fetch_add(entries, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_rises_to_the_end() {
        let progress = Progress::default();
        assert_eq!(progress.percent(), 0);
        progress.expect_image(1000, 100);
        progress.expect_log(2000);
        assert_eq!((progress.percent(), progress.stage()), (0, Stage::Image));
        progress.loaded(500);
        let half = progress.percent();
        progress.loaded(500);
        assert_eq!(progress.stage(), Stage::Log);
        assert!(progress.percent() > half);
        progress.replayed(1000);
        let before = progress.percent();
        // The log is longer than was thought: the share stays.
        progress.expect_log(200_000);
        assert_eq!(progress.percent(), before);
        progress.expect_entries(100);
        assert_eq!(progress.stage(), Stage::Indexes);
        progress.indexed(100);
        assert_eq!(progress.percent(), 99);
    }
}
