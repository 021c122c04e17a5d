//! Table locks: the three weak modes in the transaction's own slot, the strong ones in queues.
//!
//! AccessShare, RowShare and RowExclusive never exclude each other, and every statement takes one: they must not meet in
//! one cache line. PostgreSQL's fast path is the model. **Rule**:
//! - weak: write (OID, mode) into the own slot, then look at the partition's count of strong locks; if it is not zero,
//!   take the entry back and queue up like everybody else;
//! - strong (Share and above): raise the count, then move the entries of this table from all slots into the queue, then
//!   ask the queue.
//!
//! All of it SeqCst, so one of the two sees the other. Whoever gets an entry out of a slot by CAS decides: the owner that
//! finds it gone has been moved into the queue as a holder.
//! ShareUpdateExclusive excludes no weak mode and needs no counting.

use base::{Oid, TxnId};

use super::queue::{LockQueue, Request};
use super::{Asked, Deadlock, LockKey, Locks, OnConflict, STRONG_PARTITIONS};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::txns::Slot;

const WEAK_MAX: u8 = 2;
const STRONG_MIN: u8 = 4;

fn entry(table: Oid, modes: u16) -> u64 {
    u64::from(table.0) << 8 | u64::from(modes)
}

fn find(slot: &Slot, table: Oid) -> Option<(&AtomicU64, u64)> {
    let entries = slot.weak.iter().map(|at| (at, at.load(Ordering::SeqCst)));
    entries.into_iter().find(|&(_, now)| now != 0 && now >> 8 == u64::from(table.0))
}

impl Locks {
    fn strong_count(&self, table: Oid) -> &AtomicU32 {
        &self.strong[table.0 as usize % STRONG_PARTITIONS]
    }

    pub fn lock_table(&self, table: Oid, txn: TxnId, mode: u8, on: OnConflict<'_>) -> Result<Asked, Deadlock> {
        if mode <= WEAK_MAX
            && let Some(added) = self.try_weak(table, txn, mode)
        {
            return Ok(Asked::Granted { added });
        }
        let key = LockKey::Table(table);
        if mode >= STRONG_MIN {
            self.strong_count(table).fetch_add(1, Ordering::SeqCst);
        }
        let mut shard = self.shard(key).lock();
        let queue = shard.entry(key).or_default();
        if mode >= STRONG_MIN {
            self.gather_weak(table, queue);
        }
        let request = queue.request(key, txn, mode, on);
        Locks::fold(&mut shard, key, None);
        drop(shard);
        match request {
            Request::Granted { added } => {
                if !added {
                    self.unwant_strong(table, mode);
                }
                Ok(Asked::Granted { added })
            }
            Request::Refused => {
                self.unwant_strong(table, mode);
                Ok(Asked::Refused)
            }
            Request::Enqueued(waiter) => {
                self.block(key, None, waiter).inspect_err(|_| self.unwant_strong(table, mode))
            }
        }
    }

    /// The weak path: `Some(added)` if the lock is held now.
    fn try_weak(&self, table: Oid, txn: TxnId, mode: u8) -> Option<bool> {
        let slot = self.txns.slot(txn);
        let bit = 1u16 << mode;
        let (at, now) = match find(slot, table) {
            Some((_, now)) if now & u64::from(bit) != 0 => return Some(false),
            Some(found) => found,
            None => (slot.weak.iter().find(|at| at.load(Ordering::SeqCst) == 0)?, 0),
        };
        let new = if now == 0 { entry(table, bit) } else { now | u64::from(bit) };
        if self.strong_count(table).load(Ordering::SeqCst) != 0
            || at.compare_exchange(now, new, Ordering::SeqCst, Ordering::SeqCst).is_err()
        {
            return None;
        }
        if self.strong_count(table).load(Ordering::SeqCst) == 0 {
            return Some(true);
        }
        // A strong one came. If it has moved the entry, we hold the lock through the queue.
        match at.compare_exchange(new, now, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => None,
            Err(_) => Some(true),
        }
    }

    /// Moves the weak locks on `table` from all slots into its queue, whose latch the caller holds.
    fn gather_weak(&self, table: Oid, queue: &mut LockQueue) {
        for slot in self.txns.slots() {
            while let Some((at, now)) = find(slot, table) {
                if at.compare_exchange(now, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                    // The owner cannot end before it has released this lock, for which it needs our latch now: the
                    // slot's id is the owner's.
                    queue.hold(slot.id(), (now & 0xff) as u16);
                }
            }
        }
    }

    /// Takes one mode away.
    pub fn release_table(&self, table: Oid, txn: TxnId, mode: u8) {
        let bit = 1u64 << mode;
        while let Some((at, now)) = find(self.txns.slot(txn), table)
            && now & bit != 0
        {
            let left = now & !bit;
            let new = if left & 0xff == 0 { 0 } else { left };
            if at.compare_exchange(now, new, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return;
            }
        }
        self.release_queued(LockKey::Table(table), None, txn, 1 << mode);
        self.unwant_strong(table, mode);
    }

    /// A strong lock is no longer held or wanted.
    pub(super) fn unwant_strong(&self, table: Oid, mode: u8) {
        if mode >= STRONG_MIN {
            self.strong_count(table).fetch_sub(1, Ordering::SeqCst);
        }
    }
}
