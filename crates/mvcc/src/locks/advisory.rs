//! Advisory locks: names that mean something to the application only.
//!
//! Responsible for: their keys and modes, requests and releases.
//! Not responsible for: how often a session holds one, and until when (`engine`).
//! They are queues like those of tables, with the two modes that PostgreSQL uses for them.

use std::sync::Arc;

use base::{Oid, TxnId};

use super::{Ask, ConflictTable, LockKey, LockTable, Modes, Queue, TableLockMode, Wakes, Wakeup};

/// The name of an advisory lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdvisoryKey {
    /// Each database has its own.
    pub database: Oid,
    /// A bigint, or two integers.
    pub number: u64,
    /// Two integers: another space than that of bigints.
    pub is_pair: bool,
}

/// How an advisory lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvisoryMode {
    /// With others that share it.
    Shared,
    /// Alone.
    Exclusive,
}

impl AdvisoryMode {
    pub(crate) fn bit(self) -> Modes {
        match self {
            AdvisoryMode::Shared => TableLockMode::Share.bit(),
            AdvisoryMode::Exclusive => TableLockMode::Exclusive.bit(),
        }
    }
}

impl LockTable {
    /// Asks for an advisory lock.
    pub fn ask_advisory(&self, key: AdvisoryKey, txn: TxnId, wanted: Modes, wake: Option<&Arc<dyn Wakeup>>) -> Ask {
        let key = LockKey::Advisory(key);
        let mut shard = self.shard(key);
        let queue = shard.entry(key).or_insert_with(|| Queue::new(ConflictTable::Table));
        let answer = queue.ask(txn, wanted, wake);
        if queue.is_idle() {
            shard.remove(&key);
        }
        answer
    }

    /// Makes `txn` a holder beside those there are, whatever they hold.
    pub fn give_advisory(&self, key: AdvisoryKey, txn: TxnId, modes: Modes) {
        let key = LockKey::Advisory(key);
        self.shard(key).entry(key).or_insert_with(|| Queue::new(ConflictTable::Table)).grant(txn, modes);
    }

    /// Leaves `txn` with `modes` in a queue without guards.
    pub fn reduce_queue(&self, key: LockKey, txn: TxnId, modes: Modes, wakes: &mut Wakes) {
        self.change_queue(key, |queue| queue.reduce(txn, modes, wakes));
    }

    /// Gives up a wait in a queue without guards.
    pub fn cancel_queue(&self, key: LockKey, txn: TxnId, wakes: &mut Wakes) {
        self.change_queue(key, |queue| queue.cancel(txn, wakes));
    }

    fn change_queue(&self, key: LockKey, change: impl FnOnce(&mut Queue)) {
        let mut shard = self.shard(key);
        let Some(queue) = shard.get_mut(&key) else { return };
        change(queue);
        if queue.is_idle() {
            shard.remove(&key);
        }
    }
}
