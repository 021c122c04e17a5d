//! Listing locks, for `pg_locks`.
//!
//! Responsible for: who holds and who waits for what, as far as there are queues or words in slots.
//! Not responsible for: row locks without waiters; they are words in the rows.

use base::{Oid, RowId, TxnId};

use super::{AdvisoryKey, LockKey, LockTable, Modes};
use crate::txns::TxnTable;

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockTarget {
    /// A table.
    Table(Oid),
    /// A row of a table.
    Row(Oid, RowId),
    /// An advisory lock.
    Advisory(AdvisoryKey),
    /// The end of a transaction.
    Txn(TxnId),
}

/// Modes of a lock, as bits in the order of PostgreSQL's tables of modes; those of rows are the four of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockModes(pub u8);

/// A lock that is held or waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockEntry {
    /// Who.
    pub txn: TxnId,
    /// For which session; 0 if none.
    pub session: u32,
    /// What.
    pub target: LockTarget,
    /// How.
    pub modes: LockModes,
    /// Held.
    pub is_granted: bool,
    /// Its place in the line of those who wait, from 0.
    pub place: usize,
    /// Held in the transaction's own slot.
    pub is_weak: bool,
}

impl LockKey {
    fn target(self) -> LockTarget {
        match self {
            LockKey::Row { oid, row, .. } => LockTarget::Row(oid, row),
            LockKey::Table(oid) => LockTarget::Table(oid),
            LockKey::Advisory(key) => LockTarget::Advisory(key),
        }
    }
}

impl LockTable {
    /// All locks in queues and slots.
    pub fn entries(&self, txns: &TxnTable) -> Vec<LockEntry> {
        let mut entries = Vec::new();
        let entry = |txn: TxnId, target: LockTarget, modes: Modes| LockEntry {
            txn,
            session: txns.owner(txn),
            target,
            modes: LockModes(modes),
            is_granted: true,
            place: 0,
            is_weak: false,
        };
        txns.each_used(|slot| {
            let Some(txn) = slot.current() else { return };
            slot.weak.each(|oid, modes| {
                entries.push(LockEntry { is_weak: true, ..entry(txn, LockTarget::Table(oid), modes) });
            });
        });
        for shard in &self.shards {
            for (key, queue) in shard.lock().iter() {
                queue.each_holder(|txn, modes| entries.push(entry(txn, key.target(), modes)));
                let mut place = 0;
                queue.each_waiter(|txn, wanted| {
                    entries.push(LockEntry { is_granted: false, place, ..entry(txn, key.target(), wanted) });
                    place += 1;
                });
            }
        }
        entries
    }
}
