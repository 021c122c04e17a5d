//! The transaction table: who is undecided, and at what timestamp it committed before its versions are stamped.
//!
//! Responsible for: TxnIds, slots, publication in O(1).
//! Not responsible for: a transaction's writes and locks (`txn`).
//!
//! A TxnId is `number << SLOT_BITS | slot`. Numbers are given to slots in blocks, so that no two transactions have the same one
//! and the counter of blocks is written seldom. A version of a running transaction names its TxnId; a reader looks into
//! the slot. Publication stores one number there, and with it all versions of the transaction are committed at once.
//!
//! Interleaving to fear: a reader loads `begin` = undecided(t), is delayed, and looks into the slot when t is over and
//! the slot belongs to u. **Rule**: the reader loads `commit_ts` first and `id` after; u stores `commit_ts = 0` before
//! `id = u` (Release). If `id` still says t, the timestamp was t's. If not, t has stamped or marked all of its versions
//! before it left the slot (Release/Acquire on `id`), so reading `begin` again gives the final word.

use std::sync::OnceLock;

use base::{Timestamp, TxnId};

use crate::locks::table::WeakLocks;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};

const SLOT_BITS: u32 = TxnId::PLACE_BITS;
const SLOTS: u32 = 1 << SLOT_BITS;
const CHUNK: u32 = if cfg!(shuttle) { 8 } else { 256 };
/// TxnIds stay below this: the lock word has four bits for modes beside the id, `begin` has one for the tag.
const TXN_BITS: u32 = 59;
/// Numbers that a slot takes at once.
const BLOCK: u64 = 64;
/// Numbers passed over at a start: those of commits that were seen and that a crash has lost.
const SKIPPED: u64 = 1 << 16;
/// PostgreSQL has no ordinary transaction with a lower number.
const FIRST_TAG: u64 = 3;

/// All slots are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyTransactions;

#[repr(align(128))]
pub(crate) struct Slot {
    /// The transaction in this slot, 0 if none. Written by its owner.
    id: AtomicU64,
    /// Its commit timestamp, 0 while undecided.
    commit_ts: AtomicU64,
    /// Somebody waits for its end; see `locks`. SeqCst against `id`.
    pub waited: AtomicBool,
    /// Weak table locks; see `locks::table`. All unused when the slot is.
    pub weak: WeakLocks,
    next_free: AtomicU32,
    /// The session it works for, 0 if none; for listing, and to know transactions of one session as one. Written before
    /// `id`.
    owner: AtomicU32,
    /// The number of its next transaction; a multiple of BLOCK: it takes the next block first. Written by who has the slot.
    next: AtomicU64,
}

/// What a slot says about a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Undecided,
    Committed(Timestamp),
    /// No longer in the table: its versions say it themselves.
    Over,
}

#[cfg(not(shuttle))]
const _: () = assert!(size_of::<Slot>() == 128);

impl Slot {
    /// The transaction in the slot now, if there is one.
    pub fn current(&self) -> Option<TxnId> {
        let id = self.id.load(Ordering::SeqCst);
        (id != 0).then_some(TxnId(id))
    }

    /// The transaction in the slot. REQUIRES that it cannot leave now.
    pub fn holder(&self) -> TxnId {
        TxnId(self.id.load(Ordering::Acquire))
    }
}

pub(crate) struct TxnTable {
    chunks: [OnceLock<Box<[Slot]>>; (SLOTS / CHUNK) as usize],
    /// Slots ever used.
    used: AtomicU32,
    /// Treiber stack of free slots: change count << 32 | slot + 1. The count defeats ABA.
    free: AtomicU64,
    /// The next block of numbers.
    next_block: AtomicU64,
    /// What versions show that were loaded.
    loaded: AtomicU32,
}

impl TxnTable {
    pub fn new() -> TxnTable {
        let table = TxnTable {
            chunks: [const { OnceLock::new() }; (SLOTS / CHUNK) as usize],
            used: AtomicU32::new(0),
            free: AtomicU64::new(0),
            next_block: AtomicU64::new(0),
            loaded: AtomicU32::new(0),
        };
        table.start_after(TxnId(0));
        table
    }

    /// Makes all numbers greater than that of `last`, and than those of transactions that nothing is left of. REQUIRES that no
    /// transaction has begun.
    pub fn start_after(&self, last: TxnId) {
        base::invariant!(self.used.load(Ordering::Acquire) == 0, "ids move on while transactions run");
        let number = ((last.0 >> SLOT_BITS) + SKIPPED).next_multiple_of(BLOCK);
        self.next_block.fetch_max(number, Ordering::AcqRel);
        self.loaded.store(TxnId(self.take_block() << SLOT_BITS).tag(), Ordering::Release);
    }

    /// The tag that versions show that were loaded: of no transaction.
    #[inline]
    pub fn tag_of_loaded(&self) -> u32 {
        // Relaxed: set before anybody reads.
        self.loaded.load(Ordering::Relaxed)
    }

    /// An id that no transaction before this call has exceeded.
    pub fn last_id(&self) -> TxnId {
        TxnId(self.next_block.load(Ordering::Acquire) << SLOT_BITS)
    }

    /// The first number of a block that is the caller's.
    fn take_block(&self) -> u64 {
        let block = self.next_block.fetch_add(BLOCK, Ordering::AcqRel);
        if TxnId(block << SLOT_BITS).tag() == 0 { block + FIRST_TAG } else { block }
    }

    fn at(&self, index: u32) -> &Slot {
        let chunk = self.chunks[(index / CHUNK) as usize].get_or_init(|| {
            (0..CHUNK)
                .map(|_| Slot {
                    id: AtomicU64::new(0),
                    commit_ts: AtomicU64::new(0),
                    waited: AtomicBool::new(false),
                    weak: WeakLocks::default(),
                    next_free: AtomicU32::new(0),
                    owner: AtomicU32::new(0),
                    next: AtomicU64::new(0),
                })
                .collect()
        });
        &chunk[(index % CHUNK) as usize]
    }

    pub fn slot(&self, txn: TxnId) -> &Slot {
        self.at(txn.0 as u32 & (SLOTS - 1))
    }

    /// Visits all slots ever used. SeqCst: a slot that is not visited is taken after what the caller stored before.
    pub fn each_used(&self, mut visit: impl FnMut(&Slot)) {
        let used = self.used.load(Ordering::SeqCst).min(SLOTS);
        (0..used).for_each(|index| visit(self.at(index)));
    }

    /// The session that a running transaction works for; 0 if none.
    pub fn owner(&self, txn: TxnId) -> u32 {
        let slot = self.slot(txn);
        let owner = slot.owner.load(Ordering::Relaxed);
        // The slot may be another's by now.
        if slot.id.load(Ordering::SeqCst) == txn.0 { owner } else { 0 }
    }

    /// The transaction works for no session any more.
    pub fn disown(&self, txn: TxnId) {
        self.slot(txn).owner.store(0, Ordering::Relaxed);
    }

    /// Takes a slot.
    pub fn begin(&self, owner: u32) -> Result<TxnId, TooManyTransactions> {
        let index = self.take_slot()?;
        let slot = self.at(index);
        // Relaxed: whoever had the slot before has left it through `free`.
        let number = match slot.next.load(Ordering::Relaxed) {
            end if end % BLOCK == 0 => self.take_block(),
            number => number,
        };
        slot.next.store(number + 1, Ordering::Relaxed);
        let id = TxnId(number << SLOT_BITS | u64::from(index));
        base::invariant!(id.0 >> TXN_BITS == 0, "transaction ids fit their field");
        slot.waited.store(false, Ordering::Relaxed);
        slot.owner.store(owner, Ordering::Relaxed);
        slot.commit_ts.store(0, Ordering::Release);
        slot.id.store(id.0, Ordering::Release);
        Ok(id)
    }

    fn take_slot(&self) -> Result<u32, TooManyTransactions> {
        loop {
            let free = self.free.load(Ordering::Acquire);
            let Some(index) = (free as u32).checked_sub(1) else { break };
            let next = self.at(index).next_free.load(Ordering::Relaxed);
            let new = ((free >> 32) + 1) << 32 | u64::from(next);
            if self.free.compare_exchange(free, new, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(index);
            }
        }
        let index = self.used.fetch_add(1, Ordering::SeqCst);
        if index >= SLOTS {
            self.used.fetch_sub(1, Ordering::SeqCst);
            return Err(TooManyTransactions);
        }
        Ok(index)
    }

    /// Makes all versions of `txn` committed at `ts`.
    pub fn publish(&self, txn: TxnId, ts: Timestamp) {
        self.slot(txn).commit_ts.store(ts.0, Ordering::Release);
    }

    /// Leaves the slot; `true` if somebody waits for it. REQUIRES that all versions are stamped or marked.
    pub fn end(&self, txn: TxnId) -> bool {
        let slot = self.slot(txn);
        // SeqCst with the waiter's: either it sees the slot left, or we see its flag.
        slot.id.store(0, Ordering::SeqCst);
        slot.waited.load(Ordering::SeqCst)
    }

    /// Gives the slot to others. After [`TxnTable::end`], when its waiters are woken.
    pub fn release(&self, txn: TxnId) {
        let index = txn.0 as u32 & (SLOTS - 1);
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            self.at(index).next_free.store(free as u32, Ordering::Relaxed);
            let new = ((free >> 32) + 1) << 32 | u64::from(index + 1);
            match self.free.compare_exchange(free, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => free = now,
            }
        }
    }

    /// Whether `txn` is still in its slot.
    pub fn is_active(&self, txn: TxnId) -> bool {
        self.slot(txn).id.load(Ordering::SeqCst) == txn.0
    }

    pub fn fate(&self, txn: TxnId) -> Fate {
        let slot = self.slot(txn);
        let ts = slot.commit_ts.load(Ordering::Acquire);
        if slot.id.load(Ordering::Acquire) != txn.0 {
            return Fate::Over;
        }
        if ts == 0 { Fate::Undecided } else { Fate::Committed(Timestamp(ts)) }
    }
}
