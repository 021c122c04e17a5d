//! The lock word of a row: free, held by one transaction, or inflated into a queue.
//!
//! ```text
//!  63            4 3..0
//! | TxnId          | modes |   held by one transaction (modes ≠ 0)
//! | 0              | 0     |   FREE
//! | 1, 2, 3        | 0     |   INFLATED, COLLECTOR, DEAD
//! ```
//! Responsible for: transitions of the word.
//! Not responsible for: bookkeeping of what a transaction holds (`txn`).
//!
//! Invariants
//! - **L1** FREE → held, COLLECTOR, INFLATED and held → anything by CAS. INFLATED changes only under the latch of the
//!   key's shard, and the queue exists exactly while the word is INFLATED. COLLECTOR is left by the one who set it.
//! - **L2** DEAD is for ever: set when the chain is empty and the lock has no holder and no waiter; who sets it counts the
//!   row as gone, once.

use std::sync::Arc;

use base::TxnId;

use super::{Ask, ConflictTable, LockKey, LockTable, Modes, Queue, Wakes, Wakeup};
use crate::sync::{AtomicU64, Ordering, spin};

const FREE: u64 = 0;
const INFLATED: u64 = 1 << 4;
const COLLECTOR: u64 = 2 << 4;
const DEAD: u64 = 3 << 4;
const MODES: u64 = 0b1111;
/// NoKeyUpdate or Update: the holder may change the chain.
const EXCLUSIVE: Modes = 0b1100;

/// The lock of one row.
#[derive(Clone, Copy)]
pub(crate) struct RowLock<'a> {
    pub word: &'a AtomicU64,
    pub key: LockKey,
    pub locks: &'a LockTable,
}

pub(crate) enum RowAsk {
    /// Held; the modes held before.
    Granted(Modes),
    Waiting,
    WouldBlock,
    Dead,
}

/// What became of the word when a lock was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    Alive,
    /// The caller has made the word DEAD and must count the row as gone.
    Dead,
}

fn held_by(word: u64) -> Option<(TxnId, Modes)> {
    let modes = (word & MODES) as Modes;
    (modes != 0).then_some((TxnId(word >> 4), modes))
}

fn held_word(txn: TxnId, modes: Modes) -> u64 {
    txn.0 << 4 | u64::from(modes)
}

/// Makes a fresh row's word held by `txn`. REQUIRES that the row has no version yet.
pub(crate) fn lock_fresh(word: &AtomicU64, txn: TxnId) {
    // Relaxed: published by the Release store of the row's first version.
    word.store(held_word(txn, 0b1000), Ordering::Relaxed);
}

impl RowLock<'_> {
    pub fn ask(self, txn: TxnId, wanted: Modes, wake: Option<&Arc<dyn Wakeup>>) -> RowAsk {
        for round in 0.. {
            let word = self.word.load(Ordering::Acquire);
            match word {
                FREE => {
                    if self.swap(word, held_word(txn, wanted)) {
                        return RowAsk::Granted(0);
                    }
                }
                DEAD => return RowAsk::Dead,
                // The collector is about to leave: it holds rows for a few instructions and never suspends.
                COLLECTOR => spin(round),
                _ => match held_by(word) {
                    Some((holder, held)) if holder == txn => {
                        if ConflictTable::Row.covers(held, wanted) || self.swap(word, held_word(txn, held | wanted)) {
                            return RowAsk::Granted(held);
                        }
                    }
                    _ => {
                        if let Some(answer) = self.ask_queue(word, txn, wanted, wake) {
                            return answer;
                        }
                    }
                },
            }
        }
        unreachable!("the loop ends by returning")
    }

    fn swap(self, from: u64, to: u64) -> bool {
        self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// `None`: the word changed, look again.
    fn ask_queue(self, word: u64, txn: TxnId, wanted: Modes, wake: Option<&Arc<dyn Wakeup>>) -> Option<RowAsk> {
        if let Some((_, held)) = held_by(word)
            && wake.is_none()
            && ConflictTable::Row.conflict(held, wanted)
        {
            return Some(RowAsk::WouldBlock);
        }
        let mut shard = self.locks.shard(self.key);
        if let Some((holder, held)) = held_by(word) {
            if !self.swap(word, INFLATED) {
                return None;
            }
            let mut queue = Queue::new(ConflictTable::Row);
            queue.add_holder(holder, held);
            shard.insert(self.key, queue);
        }
        // Absent: the queue was dissolved since the word was read.
        let queue = shard.get_mut(&self.key)?;
        Some(match queue.ask(txn, wanted, wake) {
            Ask::Granted(before) => RowAsk::Granted(before),
            Ask::Waiting => RowAsk::Waiting,
            Ask::WouldBlock => RowAsk::WouldBlock,
        })
    }

    /// Leaves `txn` with `modes` (0: nothing). `empty` says whether the row's chain is empty.
    pub fn reduce(self, txn: TxnId, modes: Modes, empty: impl Fn() -> bool, wakes: &mut Wakes) -> Released {
        loop {
            let word = self.word.load(Ordering::Acquire);
            let Some((holder, _)) = held_by(word) else {
                return self.change_queue(|queue| queue.reduce(txn, modes, wakes), empty);
            };
            if holder != txn {
                return Released::Alive;
            }
            // The only holder: nobody can fill or empty the chain between the look and the swap.
            let dead = modes == 0 && empty();
            let to = if modes != 0 {
                held_word(txn, modes)
            } else if dead {
                DEAD
            } else {
                FREE
            };
            if self.swap(word, to) {
                return if dead { Released::Dead } else { Released::Alive };
            }
        }
    }

    /// Gives up a wait.
    pub fn cancel(self, txn: TxnId, empty: impl Fn() -> bool, wakes: &mut Wakes) -> Released {
        self.change_queue(|queue| queue.cancel(txn, wakes), empty)
    }

    fn change_queue(self, change: impl FnOnce(&mut Queue), empty: impl Fn() -> bool) -> Released {
        let mut shard = self.locks.shard(self.key);
        let Some(queue) = shard.get_mut(&self.key) else { return Released::Alive };
        change(queue);
        if !queue.is_idle() {
            return Released::Alive;
        }
        let dead = empty();
        shard.remove(&self.key);
        self.word.store(if dead { DEAD } else { FREE }, Ordering::Release);
        if dead { Released::Dead } else { Released::Alive }
    }

    /// Whether `txn` may change the chain (invariant H1 of the header).
    #[inline]
    pub fn is_exclusive_of(self, txn: TxnId) -> bool {
        let word = self.word.load(Ordering::Acquire);
        if let Some((holder, modes)) = held_by(word) {
            return holder == txn && modes & EXCLUSIVE != 0;
        }
        word == INFLATED && self.locks.shard(self.key).get(&self.key).is_some_and(|q| q.held(txn) & EXCLUSIVE != 0)
    }

    /// The modes that `txn` holds.
    pub fn held(self, txn: TxnId) -> Modes {
        let word = self.word.load(Ordering::Acquire);
        if let Some((holder, modes)) = held_by(word) {
            return if holder == txn { modes } else { 0 };
        }
        if word == INFLATED { self.locks.shard(self.key).get(&self.key).map_or(0, |queue| queue.held(txn)) } else { 0 }
    }

    /// Whether the row is over.
    pub fn is_dead(self) -> bool {
        self.word.load(Ordering::Acquire) == DEAD
    }

    /// Takes a free row for the collector.
    pub fn try_collect(self) -> bool {
        self.swap(FREE, COLLECTOR)
    }

    /// Ends [`RowLock::try_collect`].
    pub fn end_collect(self, dead: bool) {
        self.word.store(if dead { DEAD } else { FREE }, Ordering::Release);
    }
}
