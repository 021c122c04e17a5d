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
use crate::memory::Account;
use crate::sync::Mutex;
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

#[derive(Default)]
pub(crate) struct GarbageQueue {
    rows: Mutex<Rows>,
}

impl GarbageQueue {
    pub fn add(&self, table: &Arc<Table>, row: RowId, why: Left) {
        let mut rows = self.rows.lock();
        rows.len += 1;
        rows.put((Arc::downgrade(table), row), why);
    }

    /// Rows waiting.
    pub fn len(&self) -> usize {
        self.rows.lock().len
    }

    /// Moves what is no longer held back to the ready rows and takes at most `budget` of them.
    pub fn take(&self, bounds: &Bounds, budget: usize) -> Vec<GarbageRow> {
        let mut rows = self.rows.lock();
        let settled = Timestamp(bounds.durable.0.min(bounds.views.horizon.0));
        let later = rows.until.split_off(&Timestamp(settled.0 + 1));
        let until = std::mem::replace(&mut rows.until, later);
        rows.ready.extend(until.into_values().flatten());
        let ended: Vec<Timestamp> =
            rows.held.keys().copied().filter(|ts| bounds.views.reads.binary_search(ts).is_err()).collect();
        for ts in ended {
            let list = rows.held.remove(&ts).unwrap_or_default();
            rows.ready.extend(list);
        }
        let count = budget.min(rows.ready.len());
        rows.len -= count;
        rows.ready.drain(..count).collect()
    }
}

impl Rows {
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
