//! Versions that no view can see (rule R12), and the rows that still have some.
//!
//! Responsible for: pruning one row's chain, the queue of rows to look at again.
//! Not responsible for: index entries; [`RowGarbage`] tells their owner what went.
//!
//! **Requirement**: a version superseded at `end` is freed once no active view reads in `[begin, end)`, even if older
//! views exist, so a dump does not grow a hot row's chain.
//! **Rule**: `end` is not after the horizon (views to come read at or after it), and no registered view lies between.
//! If freeing takes away the way to *find* the row (the row is deleted, or its keys diverged and index entries go), `end`
//! must also be durable: a reader that finds nothing has no timestamp to raise its gate by (rule R1).
//! **Queue**: a version that cannot go when it is superseded is queued once, by what holds it back then; when that is over
//! its row is pruned, and the version queued again if something else holds it. A row whose old version waits for an old view can
//! have younger ones that wait for something else: were rows queued, those would stay as long as the old one.

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

/// What [`prune`] left of the version that it was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing.
    Clean,
    /// Nothing, nor of the row: it is over.
    Nothing,
    /// This view can see it.
    HeldBy(Timestamp),
    /// It can go when this commit is durable (and the horizon has reached it).
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

/// Which versions of a row are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The one that the commit at this time superseded.
    SupersededAt(Timestamp),
    /// Those of the commit at this time that are superseded: of a transaction that changed the row again there are several.
    Of(Timestamp),
}

/// Frees what can be freed of one row, and answers what is left of a version, and of which commit it is. The last of a deleted row
/// to go is its tombstone, whichever version was asked about.
///
/// # Safety
/// The caller has the row exclusively (H1).
pub(crate) unsafe fn prune(
    header: &RowHeader,
    row: RowId,
    bounds: &Bounds,
    indexes: &dyn RowGarbage,
    account: &Account,
    asked: Asked,
    guard: &Guard,
) -> (Left, Timestamp) {
    let head = header.head(guard);
    let Some(newest) = head.newest else { return (Left::Nothing, Timestamp(0)) };
    let hides = head.diverged || newest.is_tombstone();
    let mut left = (Left::Clean, Timestamp(0));
    let mut is_first = true;
    let mut above = newest;
    while let Some(version) = above.older(guard) {
        let begin = match version.begin() {
            Begin::Committed(begin) => begin,
            _ => Timestamp(0),
        };
        let is_asked = match asked {
            Asked::Of(ts) => begin == ts,
            Asked::SupersededAt(ts) => begin != ts && std::mem::take(&mut is_first),
        };
        let held = match (version.begin(), above.begin()) {
            (Begin::Committed(begin), Begin::Committed(end)) => held_back(begin, end, hides, bounds),
            _ => Some(Left::Clean),
        };
        match held {
            Some(why) => {
                if is_asked {
                    left = (why, begin);
                }
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
                return (Left::Until(ts), ts);
            }
            account.note_gone(ts);
            // SAFETY: H1 by the caller.
            unsafe { header.pop(account, guard) };
            (Left::Nothing, ts)
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

/// A version that was superseded and could not go yet.
pub(crate) struct Waiting {
    pub table: Weak<Table>,
    pub row: RowId,
    /// Of which commit it is.
    pub begin: Timestamp,
}

/// Versions that could not go yet.
#[derive(Default)]
struct KeptVersions {
    ready: VecDeque<Waiting>,
    /// By the view that holds them back; not looked at until it ends.
    held: BTreeMap<Timestamp, Vec<Waiting>>,
    /// By the commit that must be durable first.
    until: BTreeMap<Timestamp, Vec<Waiting>>,
    len: usize,
}

const STRIPES: usize = 8;
/// A list as long as this is never shortened.
const SHORT: usize = 4096;

/// What threads of one stripe have queued.
#[derive(Default)]
struct Stripe {
    rows: Mutex<KeptVersions>,
    /// As many as `rows` has, written under its latch: an empty stripe is passed over without taking that. A look that
    /// comes too early only delays garbage.
    len: AtomicUsize,
}

/// Versions that wait to be freed, in stripes: a thread queues into its own and takes from its own first, so that cores that commit do
/// not meet at one latch. The background collector empties all.
#[derive(Default)]
pub(crate) struct GarbageQueue {
    stripes: [Padded<Stripe>; STRIPES],
}

impl GarbageQueue {
    pub fn add(&self, table: &Arc<Table>, row: RowId, begin: Timestamp, why: Left) {
        let Stripe { rows, len } = &self.stripes[stripe() % STRIPES].0;
        let mut rows = rows.lock();
        rows.len += 1;
        rows.put(Waiting { table: Arc::downgrade(table), row, begin }, why);
        len.store(rows.len, Ordering::Relaxed);
    }

    /// The view that most versions wait for, and how many.
    pub fn most_held(&self) -> Option<(Timestamp, usize)> {
        let mut counts: BTreeMap<Timestamp, usize> = BTreeMap::new();
        for stripe in &self.stripes {
            for (ts, list) in &stripe.0.rows.lock().held {
                *counts.entry(*ts).or_default() += list.len();
            }
        }
        counts.into_iter().max_by_key(|(_, count)| *count)
    }

    /// Bytes of the list, as long as it is.
    pub fn bytes(&self) -> usize {
        self.len() * size_of::<Waiting>()
    }

    /// Versions waiting.
    pub fn len(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.0.len.load(Ordering::Relaxed)).sum()
    }

    /// Moves what is no longer held back to what is ready and takes at most `budget` of that.
    pub fn take(&self, bounds: &Bounds, budget: usize) -> Vec<Waiting> {
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

impl KeptVersions {
    fn take(&mut self, bounds: &Bounds, budget: usize, taken: &mut Vec<Waiting>) {
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
        // After a large transaction the list is not to stay as long as it was.
        if self.ready.capacity() > SHORT && self.ready.len() < self.ready.capacity() / 4 {
            self.ready.shrink_to(self.ready.capacity() / 2);
        }
    }

    fn put(&mut self, row: Waiting, why: Left) {
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
    /// Versions whose rows were looked at.
    pub rows: usize,
    /// Of these, versions that are gone.
    pub cleaned: usize,
    /// Versions that are still queued.
    pub queued: usize,
}
