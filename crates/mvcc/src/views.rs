//! Which timestamps are being read at.
//!
//! Responsible for: the visible horizon, registering views, listing the active ones for garbage collection.
//! Not responsible for: what a view sees (`visible`).
//!
//! **Requirement**: a version is freed only if no active view, and none that can come, lies in its time (rule R12).
//! **Rule**: a view stores the horizon into its slot and reads the horizon again until both agree; a collector reads the
//! horizon H first and the slots after. All of these are SeqCst. Then a view that the collector did not see re-read the
//! horizon after the collector did and reads at H or later.
//! **Interleaving that breaks it otherwise**: view loads horizon 5, collector loads horizon 9 and finds no view, frees
//! what was replaced at 7, view stores 5 into its slot and misses the row.
//! A list stays valid for ever: views it lacks read at its H or later.
//!
//! Slots are striped by core, so that registering touches the core's own cache lines: one CAS and one store.

use std::sync::OnceLock;

use base::Timestamp;
use smallvec::SmallVec;

use crate::memory::Padded;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, stripe};

const STRIPES: usize = if cfg!(shuttle) { 2 } else { 16 };
const SLOTS: usize = if cfg!(shuttle) { 2 } else { 64 };
const FREE: u64 = u64::MAX;

struct Block {
    slots: [AtomicU64; SLOTS],
    /// The session of each slot's view, 0 if it has none. Relaxed: for messages.
    owners: [AtomicU32; SLOTS],
    /// Slots ever used; raised before a slot is taken.
    used: AtomicUsize,
    next: OnceLock<Box<Block>>,
}

impl Default for Block {
    fn default() -> Block {
        Block {
            slots: std::array::from_fn(|_| AtomicU64::new(FREE)),
            owners: std::array::from_fn(|_| AtomicU32::new(0)),
            used: AtomicUsize::new(0),
            next: OnceLock::new(),
        }
    }
}

/// A registered view. Give it back with `Store::end_view`; dropping it instead pins garbage for ever.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a view that is not ended pins garbage"]
pub struct ViewToken {
    ts: Timestamp,
    stripe: u16,
    block: u16,
    slot: u16,
}

impl ViewToken {
    /// The timestamp it reads at: everything committed up to there.
    pub fn read_ts(&self) -> Timestamp {
        self.ts
    }
}

pub(crate) struct Views {
    horizon: Padded<AtomicU64>,
    /// Counts shared registrations; a scan that saw it move begins again.
    shared: AtomicU64,
    /// A bit for each stripe that was ever used; raised before a slot of it is taken.
    touched: AtomicU32,
    stripes: [Padded<Block>; STRIPES],
}

/// The views at one moment, for deciding what is garbage.
#[derive(Clone, Debug)]
pub(crate) struct ActiveViews {
    /// Views that are not listed read here or later.
    pub horizon: Timestamp,
    /// Ascending.
    pub reads: SmallVec<[Timestamp; 16]>,
}

impl ActiveViews {
    /// The oldest view that reads in `[begin, end)`.
    pub fn reader_in(&self, begin: Timestamp, end: Timestamp) -> Option<Timestamp> {
        let at = self.reads.partition_point(|&ts| ts < begin);
        self.reads.get(at).copied().filter(|&ts| ts < end)
    }
}

impl Views {
    pub fn new(horizon: Timestamp) -> Views {
        Views {
            horizon: Padded(AtomicU64::new(horizon.0)),
            shared: AtomicU64::new(0),
            touched: AtomicU32::new(0),
            stripes: std::array::from_fn(|_| Padded::default()),
        }
    }

    pub fn horizon(&self) -> Timestamp {
        Timestamp(self.horizon.0.load(Ordering::SeqCst))
    }

    /// Moves the horizon. SeqCst as the rule above asks; who reads the new horizon sees the slot of the commit that
    /// moved it.
    pub fn advance(&self, ts: Timestamp) {
        let before = self.horizon.0.swap(ts.0, Ordering::SeqCst);
        base::invariant!(before <= ts.0, "the visible horizon only moves forward: {before} then {ts}");
    }

    /// Registers a view of a session, 0 if it is of none.
    pub fn register(&self, owner: u32) -> ViewToken {
        let mut ts = self.horizon();
        let (mut token, slot) = self.claim(ts, owner);
        loop {
            let now = self.horizon();
            if now == ts {
                token.ts = ts;
                return token;
            }
            ts = now;
            slot.store(ts.0, Ordering::SeqCst);
        }
    }

    /// Registers a second view at the time of one that is held.
    pub fn share(&self, held: &ViewToken) -> ViewToken {
        let owner = self.block_of(held).owners[held.slot as usize].load(Ordering::Relaxed);
        let token = self.claim(held.ts, owner).0;
        // A scan that passed the new slot before and reaches the old one after it is given back would miss both.
        self.shared.fetch_add(1, Ordering::SeqCst);
        token
    }

    fn claim(&self, ts: Timestamp, owner: u32) -> (ViewToken, &AtomicU64) {
        let stripe = stripe() % STRIPES;
        // SeqCst: what a collector did not see raised is raised after it read the horizon.
        if self.touched.load(Ordering::SeqCst) & 1 << stripe == 0 {
            self.touched.fetch_or(1 << stripe, Ordering::SeqCst);
        }
        let mut block = &self.stripes[stripe].0;
        for depth in 0..=u16::MAX {
            for (index, slot) in block.slots.iter().enumerate() {
                if slot.load(Ordering::Relaxed) != FREE {
                    continue;
                }
                if block.used.load(Ordering::Relaxed) <= index {
                    block.used.fetch_max(index + 1, Ordering::SeqCst);
                }
                if slot.compare_exchange(FREE, ts.0, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                    block.owners[index].store(owner, Ordering::Relaxed);
                    return (ViewToken { ts, stripe: stripe as u16, block: depth, slot: index as u16 }, slot);
                }
            }
            block = block.next.get_or_init(Box::default);
        }
        unreachable!("millions of views on one stripe")
    }

    fn block_of(&self, token: &ViewToken) -> &Block {
        let mut block = &self.stripes[token.stripe as usize].0;
        for _ in 0..token.block {
            block = block.next.get().expect("the token's block was made when it was registered");
        }
        block
    }

    /// The sessions that have views of this time; 0 stands for those of none.
    pub fn owners(&self, ts: Timestamp) -> Vec<u32> {
        let mut owners = Vec::new();
        for stripe in &self.stripes {
            let mut block = Some(&stripe.0);
            while let Some(now) = block {
                let used = now.used.load(Ordering::SeqCst);
                let here = now.slots[..used].iter().zip(&now.owners);
                let here = here.filter(|(slot, _)| slot.load(Ordering::Relaxed) == ts.0);
                owners.extend(here.map(|(_, owner)| owner.load(Ordering::Relaxed)));
                block = now.next.get().map(Box::as_ref);
            }
        }
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    pub fn end(&self, token: ViewToken) {
        // Release: what the view read is read before the slot is seen free.
        self.block_of(&token).slots[token.slot as usize].store(FREE, Ordering::Release);
    }

    pub fn active(&self) -> ActiveViews {
        loop {
            let shared = self.shared.load(Ordering::SeqCst);
            let mut views = ActiveViews { horizon: self.horizon(), reads: SmallVec::new() };
            let mut touched = self.touched.load(Ordering::SeqCst);
            while touched != 0 {
                let mut block = Some(&self.stripes[touched.trailing_zeros() as usize].0);
                touched &= touched - 1;
                while let Some(now) = block {
                    let used = now.used.load(Ordering::SeqCst);
                    for slot in &now.slots[..used] {
                        let ts = slot.load(Ordering::SeqCst);
                        if ts != FREE {
                            views.reads.push(Timestamp(ts));
                        }
                    }
                    block = now.next.get().map(Box::as_ref);
                }
            }
            if self.shared.load(Ordering::SeqCst) == shared {
                views.reads.sort_unstable();
                return views;
            }
        }
    }
}
