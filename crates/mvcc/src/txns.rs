//! The transaction table: who is undecided, and at what timestamp it committed before its versions are stamped.
//!
//! Responsible for: TxnIds, slots, publication in O(1); which transactions a view does not see, and how recent ones have ended.
//! Not responsible for: a transaction's writes and locks (`txn`).
//!
//! A TxnId is `number << SLOT_BITS | slot`. Numbers are given to slots in blocks, so that no two transactions have the same one
//! and the counter of blocks is written seldom. A version of a running transaction names its TxnId; a reader looks into
//! the slot. Publication stores one number there, and with it all versions of the transaction are committed atomically.
//!
//! **What a view does not see** ([`TxnTable::unseen`]) is given as numbers: a limit, and those below it that were not
//! committed when the view was taken. For that no number below the limit may be given afterwards, so the rest of every block
//! is taken away from its slot. *Rule*: who takes a number stores it in `id` before it moves `next` on, by compare-and-swap;
//! so whoever has changed `next` in his place finds in `id` what was taken before. Who takes a block says so in `next`
//! before he moves the counter of blocks. Transactions that have committed since the view are found in `recent`.
//!
//! Interleaving to fear: a reader loads `begin` = undecided(t), is delayed, and looks into the slot when t is over and
//! the slot belongs to u. **Rule**: the reader loads `commit_ts` first and `id` after; u stores `commit_ts = 0` before
//! `id = u` (Release). If `id` still says t, the timestamp was t's. If not, t has stamped or marked all of its versions
//! before it left the slot (Release/Acquire on `id`), so reading `begin` again gives the final word.

use std::sync::OnceLock;

use base::{Ending, Timestamp, TxnId, Unseen};

use crate::locks::table::WeakLocks;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, spin};

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
/// In [`Slot::next`]: a block is being taken.
const TAKING: u64 = u64::MAX;
/// How many of the last commits are known by their numbers.
const RECENT: usize = if cfg!(shuttle) { 8 } else { 1 << 16 };
/// Numbers whose endings stand in one word, below the count of how often the word has been another's.
const ENDINGS: u64 = 32;
/// Words of endings: those of the last half million numbers.
const ENDED: u64 = if cfg!(shuttle) { 8 } else { 1 << 14 };

/// All slots are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyTransactions;

/// A view is older than the commits that are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewTooOld;

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
    /// The number of its next transaction; a multiple of BLOCK: it takes the next block first; or TAKING. Moved on by who has
    /// the slot, and to the block's end by who asks what a view does not see.
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
    /// The first number since the start.
    first: AtomicU64,
    /// By timestamp, modulo the length: the transaction of each recent commit. Written before the view's horizon reaches it.
    recent: Box<[AtomicU64]>,
    /// By number: a bit for each transaction that has committed; see [`ENDINGS`].
    ended: Box<[AtomicU64]>,
}

fn zeroes(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// The number that [`TxnId::xid8`] shows as this; `None`: there is none.
fn number_of(xid8: u64) -> Option<u64> {
    let (high, low) = (xid8 >> 32, xid8 & u64::from(u32::MAX));
    let tag = low & ((1 << TxnId::TAG_BITS) - 1);
    (tag == low).then_some(high << TxnId::TAG_BITS | tag)
}

fn xid8_of(number: u64) -> u64 {
    TxnId(number << SLOT_BITS).xid8()
}

impl TxnTable {
    pub fn new() -> TxnTable {
        let table = TxnTable {
            chunks: [const { OnceLock::new() }; (SLOTS / CHUNK) as usize],
            used: AtomicU32::new(0),
            free: AtomicU64::new(0),
            next_block: AtomicU64::new(0),
            loaded: AtomicU32::new(0),
            first: AtomicU64::new(0),
            recent: zeroes(RECENT),
            ended: zeroes(ENDED as usize),
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
        self.first.store(self.next_block.load(Ordering::Acquire), Ordering::Release);
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
        for number in (block..block + BLOCK).step_by(ENDINGS as usize) {
            let (word, turn) = self.ended_of(number);
            word.store(turn << ENDINGS, Ordering::Release);
        }
        TxnTable::first_of(block)
    }

    /// The first number of a block that is given to a transaction.
    fn first_of(block: u64) -> u64 {
        if TxnId(block << SLOT_BITS).tag() == 0 { block + FIRST_TAG } else { block }
    }

    /// The word where a number's ending stands, and the count that it has as long as it does.
    #[inline]
    fn ended_of(&self, number: u64) -> (&AtomicU64, u64) {
        let at = number / ENDINGS;
        (&self.ended[(at % ENDED) as usize], (at / ENDED) & u64::from(u32::MAX))
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
        slot.waited.store(false, Ordering::Relaxed);
        slot.owner.store(owner, Ordering::Relaxed);
        slot.commit_ts.store(0, Ordering::Release);
        let number = slot.next.load(Ordering::Relaxed);
        if !number.is_multiple_of(BLOCK) {
            let id = TxnId(number << SLOT_BITS | u64::from(index));
            slot.id.store(id.0, Ordering::Release);
            // AcqRel: who takes the rest of the block away finds the id, and if he was here first, his limit is known here.
            if slot.next.compare_exchange(number, number + 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Ok(id);
            }
        }
        Ok(self.begin_block(slot, index))
    }

    /// Takes a block for a slot, and its first number.
    #[cold]
    fn begin_block(&self, slot: &Slot, index: u32) -> TxnId {
        // Before the counter of blocks moves: who has seen it moved waits for what comes.
        slot.next.store(TAKING, Ordering::Release);
        let number = self.take_block();
        let id = TxnId(number << SLOT_BITS | u64::from(index));
        base::invariant!(id.0 >> TXN_BITS == 0, "transaction ids fit their field");
        slot.id.store(id.0, Ordering::Release);
        slot.next.store(number + 1, Ordering::Release);
        id
    }

    /// What a view that was taken at `view` does not see; `horizon` tells the timestamp of the last commit published.
    ///
    /// # Errors
    /// If more has committed since than is remembered.
    pub fn unseen(&self, view: Timestamp, horizon: impl Fn() -> Timestamp) -> Result<Unseen, ViewTooOld> {
        let limit = self.next_block.load(Ordering::SeqCst);
        let mut below = Vec::new();
        let mut note = |id: u64| {
            if id != 0 && id >> SLOT_BITS < limit {
                below.push(xid8_of(id >> SLOT_BITS));
            }
        };
        self.each_used(|slot| {
            self.end_block(slot, limit);
            let id = slot.id.load(Ordering::Acquire);
            match self.fate(TxnId(id)) {
                Fate::Undecided => note(id),
                Fate::Committed(ts) if ts > view => note(id),
                // It has ended since: if it has committed after the view, it is among the recent.
                Fate::Committed(_) | Fate::Over => {}
            }
        });
        let last = horizon();
        let is_too_old = |last: Timestamp| last.0.saturating_sub(view.0) >= RECENT as u64;
        if is_too_old(last) {
            return Err(ViewTooOld);
        }
        (view.0 + 1..=last.0).for_each(|ts| note(self.recent[ts as usize % RECENT].load(Ordering::Acquire)));
        // An entry that was read might have been overwritten.
        if is_too_old(horizon()) {
            return Err(ViewTooOld);
        }
        below.sort_unstable();
        below.dedup();
        Ok(Unseen { limit: xid8_of(TxnTable::first_of(limit)), below })
    }

    /// Takes away from a slot what is left of its block, if that is below `limit`.
    fn end_block(&self, slot: &Slot, limit: u64) {
        for round in 0.. {
            match slot.next.load(Ordering::Acquire) {
                TAKING => spin(round),
                next if next.is_multiple_of(BLOCK) || next >= limit => return,
                next => {
                    let end = next.next_multiple_of(BLOCK);
                    if slot.next.compare_exchange(next, end, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                        return;
                    }
                }
            }
        }
    }

    /// How the transaction has ended whose number is shown as this.
    pub fn ending(&self, xid8: u64) -> Ending {
        let limit = self.next_block.load(Ordering::SeqCst);
        if xid8 >= xid8_of(limit) {
            return Ending::Future;
        }
        let Some(number) = number_of(xid8).filter(|number| *number >= self.first.load(Ordering::Acquire)) else {
            return Ending::Forgotten;
        };
        let mut found = None;
        self.each_used(|slot| {
            // If nobody has it now, nobody ever will.
            self.end_block(slot, limit);
            let id = slot.id.load(Ordering::Acquire);
            if id != 0 && id >> SLOT_BITS == number {
                found = Some(self.fate(TxnId(id)));
            }
        });
        match found {
            Some(Fate::Undecided) => return Ending::Running,
            Some(Fate::Committed(_)) => return Ending::Committed,
            Some(Fate::Over) | None => {}
        }
        let (word, turn) = self.ended_of(number);
        match word.load(Ordering::Acquire) {
            word if word >> ENDINGS != turn => Ending::Forgotten,
            word if word & 1 << (number % ENDINGS) != 0 => Ending::Committed,
            _ => Ending::Undone,
        }
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
        self.recent[ts.0 as usize % RECENT].store(txn.0, Ordering::Release);
        self.note_committed(txn);
        self.slot(txn).commit_ts.store(ts.0, Ordering::Release);
    }

    /// `txn` counts as committed; called by itself if it has written nothing.
    pub fn note_committed(&self, txn: TxnId) {
        let number = txn.0 >> SLOT_BITS;
        let (word, turn) = self.ended_of(number);
        let mut seen = word.load(Ordering::Relaxed);
        // The word of an old transaction is that of others by now.
        while seen >> ENDINGS == turn {
            let with = seen | 1 << (number % ENDINGS);
            match word.compare_exchange(seen, with, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
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
