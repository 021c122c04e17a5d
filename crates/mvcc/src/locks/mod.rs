//! Locks of rows and tables, held by transactions, never by threads.
//!
//! Responsible for: the shards of contended locks, table locks, waiting without blocking a thread, deadlocks.
//! Not responsible for: the uncontended row lock, which is a word in the row header (`row`), and the weak table lock,
//! which is a word in the transaction's slot (`table`).
//!
//! Example. `a` holds row 7 in its word. `b` asks for it: the word becomes *inflated*, a queue with holder `a` and waiter
//! `b` appears in the shard, and `b` gets [`LockResult::Wait`]. `a` commits: under the shard's latch `b` becomes the
//! holder, then `b` is woken, asks again and reads [`LockResult::Granted`]. When the queue is empty the word is free again.

mod advisory;
mod graph;
mod list;
mod mode;
mod queue;
pub(crate) mod row;
pub(crate) mod table;

use base::{Oid, RowId, TxnId};
use rustc_hash::FxHashMap;

pub use advisory::{AdvisoryKey, AdvisoryMode};
pub use graph::{WaitEdge, WaitTarget};
pub use list::{LockEntry, LockModes, LockTarget};
pub use mode::{RowLockMode, TableLockMode, WaitPolicy};
pub use queue::Wakeup;

pub(crate) use graph::Graph;
pub(crate) use mode::{ConflictTable, Modes};
pub(crate) use queue::{Ask, Queue, Wakes};

use crate::sync::{Mutex, MutexGuard};

const SHARDS: usize = if cfg!(shuttle) { 2 } else { 64 };

/// The answer to a request for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockResult {
    /// Held. `newly`: the transaction did not hold this or a stronger mode before.
    Granted {
        /// Whether this call changed anything.
        newly: bool,
    },
    /// In the line; ask again when woken, or cancel the wait.
    Wait,
    /// Another transaction is in the way, and the policy forbids to wait.
    WouldBlock,
    /// Waiting would close this cycle (40P01); the request is withdrawn. The first edge is the requester's.
    Deadlock(Vec<WaitEdge>),
    /// The row does not exist: it was undone, or its deletion is durable and visible to all.
    Gone,
}

/// Names a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LockKey {
    /// `table` is the store's own number, so that the storage of a truncated table is not mixed up with its successor.
    Row {
        table: u64,
        oid: Oid,
        row: RowId,
    },
    Table(Oid),
    Advisory(AdvisoryKey),
}

pub(crate) type Shard = FxHashMap<LockKey, Queue>;

pub(crate) struct LockTable {
    shards: [Mutex<Shard>; SHARDS],
    guards: table::Guards,
}

impl LockTable {
    pub fn new() -> LockTable {
        LockTable { shards: std::array::from_fn(|_| Mutex::new(Shard::default())), guards: Default::default() }
    }

    pub fn shard(&self, key: LockKey) -> MutexGuard<'_, Shard> {
        let number = match key {
            LockKey::Row { table, row, .. } => row.0.wrapping_add(table.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            LockKey::Table(oid) => u64::from(oid.0),
            LockKey::Advisory(key) => key.number.wrapping_add(u64::from(key.database.0)),
        };
        self.shards[(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SHARDS].lock()
    }

    /// Changes the queue of a lock that is not a row's, if there is one.
    pub fn with_line<R>(&self, key: LockKey, change: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        match key {
            LockKey::Row { .. } => None,
            LockKey::Table(_) | LockKey::Advisory(_) => self.shard(key).get_mut(&key).map(change),
        }
    }

    /// Visits whom `waiter` waits for, as [`Queue::blockers`].
    pub fn blockers(&self, key: LockKey, waiter: TxnId, visit: impl FnMut(TxnId, bool)) {
        if let Some(queue) = self.shard(key).get(&key) {
            queue.blockers(waiter, visit);
        }
    }
}

/// Wakes; REQUIRES that no latch is held.
pub(crate) fn wake_all(wakes: Wakes) {
    wakes.iter().for_each(|wake| wake.wake());
}
