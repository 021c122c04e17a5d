//! Table locks: the weak modes in the transaction's own slot, everything else in queues.
//!
//! Responsible for: taking and giving back weak locks without a latch, moving them to the queue when it matters.
//! Not responsible for: who is granted in a queue (`queue`), what a transaction holds in all (`txn`).
//!
//! AccessShare, RowShare and RowExclusive do not conflict with each other, and every statement takes one of them. They are
//! words in the transaction's slot, which only the transaction writes. A table is *guarded* while a *strong* mode – one that
//! conflicts with a weak one – is held or awaited in its queue.
//!
//! - **F1** While a table is guarded, all its weak locks are in its queue.
//! - **F2** A word is cleared by its transaction, or moved to the queue under the queue's latch. Who fails to clear its own
//!   word finds the lock in the queue, once it has the latch. So the slot belongs to the holder for as long as a mover
//!   that has taken the word keeps the latch.
//!
//! Requirement: F1. Rule: who takes a weak lock stores the word and loads the guard count after; who guards raises the
//! count and loads the words after, all SeqCst. Otherwise: the reader's load passes its store, finds no guard, the one who
//! guards finds no word, and DROP TABLE goes ahead under a SELECT.

use std::sync::Arc;

use base::{Oid, TxnId};

use super::{Ask, ConflictTable, LockKey, LockTable, Modes, Queue, TableLockMode, Wakes, Wakeup};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::txns::TxnTable;

/// Weak locks of one transaction; further ones go to queues.
pub(crate) const WEAK_LOCKS: usize = if cfg!(shuttle) { 2 } else { 8 };

const GUARDS: usize = if cfg!(shuttle) { 2 } else { 512 };

const WEAK: Modes =
    1 << TableLockMode::AccessShare as u8 | 1 << TableLockMode::RowShare as u8 | 1 << TableLockMode::RowExclusive as u8;

const STRONG: Modes = 1 << TableLockMode::Share as u8
    | 1 << TableLockMode::ShareRowExclusive as u8
    | 1 << TableLockMode::Exclusive as u8
    | 1 << TableLockMode::AccessExclusive as u8;

/// Whether a mode may be held in the slot.
pub(crate) fn is_weak(modes: Modes) -> bool {
    modes & !WEAK == 0
}

/// The weak locks of the transaction in a slot: OID << 8 | modes, 0 if unused.
#[derive(Default)]
pub(crate) struct WeakLocks([AtomicU64; WEAK_LOCKS]);

fn word(oid: Oid, modes: Modes) -> u64 {
    if modes == 0 { 0 } else { u64::from(oid.0) << 8 | u64::from(modes) }
}

impl WeakLocks {
    fn swap(&self, at: usize, from: u64, to: u64) -> bool {
        self.0[at].compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Leaves `left` of the modes `held` in word `at`; `false`: the lock is in the queue.
    pub fn reduce(&self, at: usize, oid: Oid, held: Modes, left: Modes) -> bool {
        self.swap(at, word(oid, held), word(oid, left))
    }

    /// Visits the locks that are here.
    pub fn each(&self, mut visit: impl FnMut(Oid, Modes)) {
        for slot in &self.0 {
            let now = slot.load(Ordering::SeqCst);
            if now != 0 {
                visit(Oid((now >> 8) as u32), now as Modes);
            }
        }
    }

    /// Takes the lock of a table out, if there is one.
    fn take(&self, oid: Oid) -> Option<Modes> {
        self.0.iter().find_map(|slot| {
            let mut now = slot.load(Ordering::SeqCst);
            while now >> 8 == u64::from(oid.0) && now != 0 {
                match slot.compare_exchange(now, 0, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(_) => return Some(now as Modes),
                    // Its owner has added a mode, or is giving it back.
                    Err(other) => now = other,
                }
            }
            None
        })
    }
}

/// How many guarded tables there are, by OID modulo their number: a table that shares its count with a guarded one only
/// loses the short way.
pub(super) struct Guards([AtomicU32; GUARDS]);

impl Default for Guards {
    fn default() -> Guards {
        Guards(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}

impl Guards {
    fn of(&self, oid: Oid) -> &AtomicU32 {
        &self.0[oid.0 as usize % GUARDS]
    }
}

impl LockTable {
    /// Whether somebody may hold or wait for a lock of a table that is not weak. One that comes meanwhile need not be seen.
    pub fn may_be_guarded(&self, oid: Oid) -> bool {
        self.guards.of(oid).load(Ordering::Relaxed) != 0
    }

    /// Asks for a weak lock in word `at`, beside the modes `held` there; `false`: ask in the queue.
    pub fn ask_weak(&self, weak: &WeakLocks, at: usize, oid: Oid, held: Modes, wanted: Modes) -> bool {
        let guard = self.guards.of(oid);
        let (before, after) = (word(oid, held), word(oid, held | wanted));
        // The first look saves the way back; the second one counts.
        if guard.load(Ordering::SeqCst) != 0 || !weak.swap(at, before, after) {
            return false;
        }
        // What cannot be taken back was moved to the queue as held: it came before the guard.
        guard.load(Ordering::SeqCst) == 0 || !weak.swap(at, after, before)
    }

    /// Asks for a table lock in its queue. `weak`: the word that the transaction has for the table, and its modes.
    pub fn ask_table(
        &self,
        txns: &TxnTable,
        oid: Oid,
        txn: TxnId,
        weak: Option<(usize, Modes)>,
        wanted: Modes,
        wake: Option<&Arc<dyn Wakeup>>,
    ) -> Ask {
        let key = LockKey::Table(oid);
        let mut shard = self.shard(key);
        let queue = shard.entry(key).or_insert_with(|| Queue::new(ConflictTable::Table));
        if let Some((at, held)) = weak
            && txns.slot(txn).weak.reduce(at, oid, held, 0)
        {
            queue.grant(txn, held);
        }
        if wanted & STRONG != 0 && !queue.is_guarded {
            queue.is_guarded = true;
            self.guards.of(oid).fetch_add(1, Ordering::SeqCst);
            txns.each_used(|slot| {
                if let Some(modes) = slot.weak.take(oid) {
                    // By F2 the slot is still the holder's.
                    queue.grant(slot.holder(), modes);
                }
            });
        }
        let answer = queue.ask(txn, wanted, wake);
        self.settle_guard(oid, queue);
        if queue.is_idle() {
            shard.remove(&key);
        }
        answer
    }

    /// Leaves `txn` with `modes` of a table lock in its queue.
    pub fn reduce_table(&self, oid: Oid, txn: TxnId, modes: Modes, wakes: &mut Wakes) {
        self.change_table(oid, |queue| queue.reduce(txn, modes, wakes));
    }

    /// Gives up the wait for a table lock.
    pub fn cancel_table(&self, oid: Oid, txn: TxnId, wakes: &mut Wakes) {
        self.change_table(oid, |queue| queue.cancel(txn, wakes));
    }

    fn change_table(&self, oid: Oid, change: impl FnOnce(&mut Queue)) {
        let key = LockKey::Table(oid);
        let mut shard = self.shard(key);
        let Some(queue) = shard.get_mut(&key) else { return };
        change(queue);
        self.settle_guard(oid, queue);
        if queue.is_idle() {
            shard.remove(&key);
        }
    }

    /// Ends the guard of a table whose queue has no strong mode any more.
    fn settle_guard(&self, oid: Oid, queue: &mut Queue) {
        if queue.is_guarded && !queue.concerns(STRONG) {
            queue.is_guarded = false;
            self.guards.of(oid).fetch_sub(1, Ordering::SeqCst);
        }
    }
}
