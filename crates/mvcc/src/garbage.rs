//! Which versions nobody can see any more (rule R12), and the rows that still have some.
//!
//! Responsible for: pruning one row's chain, the queue of rows to look at again.
//! Not responsible for: index entries; [`RowGarbage`] tells their owner what went.
//!
//! **Requirement**: a version superseded at `end` is freed once no active view reads in `[begin, end)`, even if older
//! views exist, so a dump does not grow a hot row's chain.
//! **Rule**: `end` is not after the horizon (views to come read at or after it), and no registered view lies between.
//! If freeing takes away the way to *find* the row (the row is deleted, or its keys diverged and index entries go), `end`
//! must also be durable: a reader that finds nothing has no timestamp to raise its gate by (rule R1).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use base::{LayoutId, RowId, Timestamp};
use smallvec::SmallVec;

use crate::epoch::Guard;
use crate::header::RowHeader;
use crate::memory::{Account, Padded};
use crate::sync::{AtomicUsize, Mutex, Ordering, stripe};
use crate::table::Table;
use crate::version::{Begin, VersionRef};
use crate::views::ActiveViews;

/// A tuple with the layout it is written in.
pub type LaidOut<'a> = (LayoutId, &'a [u8]);

/// Told when a version of a row went and took index keys with it. One per table; the owner of its indexes.
///
/// Called under the row's exclusive lock (or the collector's), for an undone version too; must not call back into the
/// store. Not called if the row's keys never diverged and a version is left, because then no entry can be dropped.
pub trait RowGarbage: Send + Sync {
    /// `removed` is unlinked; drop the entries of its keys that none of `remaining` has.
    fn removed(&self, row: RowId, removed: LaidOut<'_>, remaining: &[LaidOut<'_>]);
}

/// For tables without indexes.
#[derive(Debug)]
pub struct NoIndexes;

impl RowGarbage for NoIndexes {
    fn removed(&self, _: RowId, _: LaidOut<'_>, _: &[LaidOut<'_>]) {}
}

/// What [`prune`] left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// One version, or none that is superseded.
    Clean,
    /// Nothing: the row is over.
    Nothing,
    /// Garbage that this view can see.
    HeldBy(Timestamp),
    /// Garbage that can go when this commit is durable (and the horizon has reached it).
    Until(Timestamp),
}

/// What allows garbage to go.
pub(crate) struct Bounds {
    pub views: ActiveViews,
    pub durable: Timestamp,
}

/// Tells the owner of the indexes that `gone` was unlinked from `header`.
pub(crate) fn report(header: &RowHeader, row: RowId, gone: VersionRef<'_>, indexes: &dyn RowGarbage, guard: &Guard) {
    if gone.is_tombstone() {
        return;
    }
    let head = header.head(guard);
    let mut remaining: SmallVec<[LaidOut<'_>; 4]> = SmallVec::new();
    let mut next = head.newest;
    while let Some(version) = next {
        if !version.is_tombstone() {
            remaining.push((version.layout(), version.bytes()));
        }
        next = version.older(guard);
    }
    if head.diverged || remaining.is_empty() {
        indexes.removed(row, (gone.layout(), gone.bytes()), &remaining);
    }
}

/// Frees what can be freed of one row.
///
/// # Safety
/// The caller has the row exclusively (H1).
pub(crate) unsafe fn prune(
    header: &RowHeader,
    row: RowId,
    bounds: &Bounds,
    indexes: &dyn RowGarbage,
    account: &Account,
    guard: &Guard,
) -> Left {
    let head = header.head(guard);
    let Some(newest) = head.newest else { return Left::Nothing };
    let hides = head.diverged || newest.is_tombstone();
    let mut left = Left::Clean;
    let mut above = newest;
    while let Some(version) = above.older(guard) {
        let held = match (version.begin(), above.begin()) {
            (Begin::Committed(begin), Begin::Committed(end)) => held_back(begin, end, hides, bounds),
            _ => Some(Left::Clean),
        };
        match held {
            Some(why) => {
                left = if left == Left::Clean { why } else { left };
                above = version;
            }
            None => {
                // SAFETY: H1 by the caller; `above` is linked here.
                unsafe { header.unlink_below(above, account, guard) };
                report(header, row, version, indexes, guard);
            }
        }
    }
    match newest.begin() {
        Begin::Committed(ts) if newest.is_tombstone() && newest.older(guard).is_none() => {
            if ts > bounds.durable || ts > bounds.views.horizon {
                return Left::Until(ts);
            }
            account.note_gone(ts);
            // SAFETY: H1 by the caller.
            unsafe { header.pop(account, guard) };
            Left::Nothing
        }
        _ => left,
    }
}

fn held_back(begin: Timestamp, end: Timestamp, hides: bool, bounds: &Bounds) -> Option<Left> {
    if end > bounds.views.horizon || (hides && end > bounds.durable) {
        return Some(Left::Until(end));
    }
    bounds.views.reader_in(begin, end).map(Left::HeldBy)
}

type GarbageRow = (Weak<Table>, RowId);

/// Rows with garbage that could not go yet.
#[derive(Default)]
struct Rows {
    ready: VecDeque<GarbageRow>,
    /// By the view that holds them back; not looked at until it ends.
    held: BTreeMap<Timestamp, Vec<GarbageRow>>,
    /// By the commit that must be durable first.
    until: BTreeMap<Timestamp, Vec<GarbageRow>>,
    len: usize,
}

const STRIPES: usize = 8;

/// What threads of one stripe have queued.
#[derive(Default)]
struct Stripe {
    rows: Mutex<Rows>,
    /// As many as `rows` has, written under its latch: an empty stripe is passed over without taking that. A look that
    /// comes too early only delays garbage.
    len: AtomicUsize,
}

/// Rows with garbage, in stripes: a thread queues into its own and takes from its own first, so that cores that commit do
/// not meet at one latch. The background collector empties all.
#[derive(Default)]
pub(crate) struct GarbageQueue {
    stripes: [Padded<Stripe>; STRIPES],
}

impl GarbageQueue {
    pub fn add(&self, table: &Arc<Table>, row: RowId, why: Left) {
        let Stripe { rows, len } = &self.stripes[stripe() % STRIPES].0;
        let mut rows = rows.lock();
        rows.len += 1;
        rows.put((Arc::downgrade(table), row), why);
        len.store(rows.len, Ordering::Relaxed);
    }

    /// Rows waiting.
    pub fn len(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.0.len.load(Ordering::Relaxed)).sum()
    }

    /// Moves what is no longer held back to the ready rows and takes at most `budget` of them.
    pub fn take(&self, bounds: &Bounds, budget: usize) -> Vec<GarbageRow> {
        let mut taken = Vec::new();
        let own = stripe();
        for at in 0..STRIPES {
            let Stripe { rows, len } = &self.stripes[(own + at) % STRIPES].0;
            if taken.len() == budget {
                break;
            }
            if len.load(Ordering::Relaxed) > 0 {
                let mut rows = rows.lock();
                rows.take(bounds, budget - taken.len(), &mut taken);
                len.store(rows.len, Ordering::Relaxed);
            }
        }
        taken
    }
}

impl Rows {
    fn take(&mut self, bounds: &Bounds, budget: usize, taken: &mut Vec<GarbageRow>) {
        let settled = Timestamp(bounds.durable.0.min(bounds.views.horizon.0));
        if self.until.first_key_value().is_some_and(|(ts, _)| *ts <= settled) {
            let later = self.until.split_off(&Timestamp(settled.0 + 1));
            let until = std::mem::replace(&mut self.until, later);
            self.ready.extend(until.into_values().flatten());
        }
        let ended: Vec<Timestamp> =
            self.held.keys().copied().filter(|ts| bounds.views.reads.binary_search(ts).is_err()).collect();
        for ts in ended {
            let list = self.held.remove(&ts).unwrap_or_default();
            self.ready.extend(list);
        }
        let count = budget.min(self.ready.len());
        self.len -= count;
        taken.extend(self.ready.drain(..count));
    }

    fn put(&mut self, row: GarbageRow, why: Left) {
        match why {
            Left::HeldBy(ts) => self.held.entry(ts).or_default().push(row),
            Left::Until(ts) => self.until.entry(ts).or_default().push(row),
            Left::Clean | Left::Nothing => self.ready.push_back(row),
        }
    }
}

/// What [`Store::collect`](crate::Store::collect) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Rows looked at.
    pub rows: usize,
    /// Of these, rows that have nothing left to free.
    pub cleaned: usize,
    /// Rows with garbage that are still queued.
    pub queued: usize,
}
