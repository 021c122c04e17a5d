//! What a shard holds and has done, for metrics.

use std::sync::atomic::Ordering;

use crate::shard::Shard;
use engine_api::{Engine as _, MemoryKind};

/// Figures of a shard. Each is right for some instant, not all for the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Commits since the shard was opened that changed something.
    pub commits: u64,
    /// Rows of all tables, undecided and deleted ones that are still held included.
    pub rows: u64,
    /// Bytes of row headers and directories.
    pub header_bytes: u64,
    /// Bytes of row versions.
    pub version_bytes: u64,
    /// Bytes of index nodes.
    pub index_bytes: u64,
    /// Bytes of all that is held, and how many there may be.
    pub held_bytes: u64,
    /// The budget.
    pub limit_bytes: u64,
    /// Rows with versions that wait to be freed.
    pub garbage_rows: u64,
    /// What is held beside rows and indexes, by [`MemoryKind`].
    pub other_bytes: [u64; MemoryKind::ALL.len()],
    /// Calls that had to wait for memory, and those that were refused it.
    pub memory_delays: u64,
    /// See there.
    pub memory_refusals: u64,
    /// Views that statements and transactions have open.
    pub views: u64,
    /// Transactions that wait for another one's lock.
    pub lock_waits: u64,
}

impl Shard {
    /// Whether commits are refused for want of space on the disk, as far as is known.
    pub fn is_disk_full(&self) -> bool {
        self.0.log.is_full()
    }

    /// What it holds and has done. Walks all tables; for a scrape every few seconds.
    pub fn figures(&self) -> Figures {
        let inner = &*self.0;
        let memory = self.memory();
        Figures {
            commits: inner.commits.load(Ordering::Relaxed),
            rows: inner.tables.read().values().map(|table| table.rows.row_count()).sum(),
            header_bytes: memory.headers,
            version_bytes: memory.versions,
            index_bytes: memory.indexes,
            other_bytes: memory.others,
            memory_delays: inner.throttle.delays.load(Ordering::Relaxed),
            memory_refusals: inner.throttle.refusals.load(Ordering::Relaxed),
            held_bytes: memory.held,
            limit_bytes: memory.limit,
            garbage_rows: inner.store.garbage_len() as u64,
            views: inner.store.active_views().len() as u64,
            lock_waits: inner.store.waits().len() as u64,
        }
    }
}
