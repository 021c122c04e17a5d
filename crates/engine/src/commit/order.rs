//! The order of SERIALIZABLE transactions (rule R8, decision 0008).
//!
//! Responsible for: the active transactions, the reads and writes of transactions that were concurrent with an active one, and
//! whether a place in the order is left for one that ends.
//! Not responsible for: what was read ([`crate::reads`]), the section in which a writer ends ([`super::validate`]).
//!
//! **Requirement**: the committed SERIALIZABLE transactions are as if they had run one after the other.
//! **Rule**: a transaction stands at its timestamp if what it read still holds then. If others have written into it, it stands
//! *before* the first of them: its *place* is the least place of those. It has one if
//! - the place lies after all that it has seen, and
//! - no concurrent transaction that stands after the place has read what it writes: such a reader must stand before it.
//!
//! A transaction that writes nothing stands at its snapshot, and may find there that a transaction that stands before it has overwritten what it
//! read. The first of two that ends succeeds, the second fails.
//! **Interleaving that breaks it otherwise**: a reads x; b writes x and commits; c begins, sees b, reads y and commits; a writes y. a must
//! stand before b, and after c, which has seen b.
//!
//! The reads and writes of a transaction are kept while one is active that began before it ended. Beyond [`PAST_MAX`] the oldest are *lost*: a transaction that
//! depends on them fails.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{RowId, Timestamp, TxnId};
use engine_api::WaitCell;
use parking_lot::Mutex;

use crate::reads::ReadSet;
use crate::shard::Inner;
use crate::txn::Transaction;

/// Transactions of the past that are kept, and what they may have read in all.
const PAST_MAX: usize = 1024;
const ITEMS_MAX: usize = 1 << 19;
/// Rows of one table that a transaction has written before it counts as having written all.
const ROWS_MAX: usize = 4096;

/// The rows that a transaction has written.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    rows: Vec<(Arc<mvcc::Table>, RowId)>,
    /// Of these there are too many.
    tables: Vec<Arc<mvcc::Table>>,
}

impl Writes {
    /// Those of a transaction.
    pub fn of(core: Option<&mvcc::Transaction>) -> Writes {
        let mut writes = Writes::default();
        let Some(core) = core else { return writes };
        for (table, row) in super::writes(core) {
            if writes.rows.len() < ROWS_MAX {
                writes.rows.push((Arc::clone(table), row));
            } else if !writes.tables.iter().any(|known| Arc::ptr_eq(known, table)) {
                writes.tables.push(Arc::clone(table));
            }
        }
        writes
    }

    /// Whether they lie in what was read; `at` as for [`ReadSet::is_touched`].
    fn touch(&self, reads: &ReadSet, at: Option<Timestamp>) -> bool {
        self.tables.iter().any(|table| reads.concerns(table))
            || reads.is_touched(self.rows.iter().map(|(table, row)| (table, *row)), at)
    }
}

/// What is known of a transaction that has ended.
#[derive(Debug)]
struct Past {
    /// Its timestamp; that of its snapshot if it has written nothing.
    at: Timestamp,
    /// Where it stands.
    place: Timestamp,
    writes: Writes,
    reads: Arc<Mutex<ReadSet>>,
    items: usize,
}

/// Transactions that are no longer known one by one.
#[derive(Debug, Default)]
struct Lost {
    /// The newest of them.
    at: Timestamp,
    /// The first place of those that stand before their timestamps, and the newest of these timestamps.
    place: Timestamp,
    placed_at: Timestamp,
}

/// What SERIALIZABLE transactions share; held while one of them ends.
#[derive(Debug, Default)]
pub(crate) struct Serial {
    /// The newest commit of one.
    pub last: Timestamp,
    /// What prepared transactions have read. Who has written into it gives way: they must be able to commit.
    pub guards: Vec<(TxnId, Arc<Mutex<ReadSet>>)>,
    past: VecDeque<Past>,
    items: usize,
    lost: Lost,
}

/// There is no place left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoPlace;

impl Serial {
    /// The place of a transaction with this snapshot that has read what others may have written since; `None`: its own timestamp.
    pub fn place(&self, reads: &ReadSet, snapshot: Timestamp) -> Result<Option<Timestamp>, NoPlace> {
        if self.lost.at > snapshot {
            return Err(NoPlace);
        }
        let others = self.past.iter().filter(|other| other.at > snapshot);
        let place = others.filter(|other| other.writes.touch(reads, Some(other.at))).map(|other| other.place).min();
        match place {
            Some(place) if place <= reads.newest() => Err(NoPlace),
            place => Ok(place),
        }
    }

    /// Whether `place` is not before a reader of what is written now.
    pub fn check_readers(&self, place: Timestamp, writes: &Writes) -> Result<(), NoPlace> {
        let mut after = self.past.iter().filter(|other| other.at >= place);
        if after.any(|reader| writes.touch(&reader.reads.lock(), None)) { Err(NoPlace) } else { Ok(()) }
    }

    /// Whether one of those that stand after `place` would have found a row; `finds` says it.
    pub fn is_looked_for(&self, place: Timestamp, finds: impl Fn(&ReadSet) -> bool) -> bool {
        self.past.iter().any(|reader| reader.at >= place && finds(&reader.reads.lock()))
    }

    /// Whether a reader's view lies after the place of somebody who committed beyond it, and `touches` something of it.
    fn is_amid(&self, view: Timestamp, touches: impl Fn(&Past) -> bool) -> bool {
        (self.lost.placed_at > view && self.lost.place <= view)
            || self.past.iter().any(|other| other.at > view && other.place <= view && touches(other))
    }

    /// Notes a transaction that has ended at `at`, if somebody is active who began before; then it is not active any more.
    pub fn end(&mut self, inner: &Inner, txn: &mut Transaction, at: Timestamp, place: Option<Timestamp>) {
        let Some(reads) = txn.reads.clone() else { return };
        let number = txn.active.take();
        self.end_as(inner, number, reads, at, place.unwrap_or(at), || Writes::of(txn.core.as_ref()));
    }

    /// As [`Serial::end`], of one that may be nobody's any more.
    pub fn end_as(
        &mut self,
        inner: &Inner,
        number: Option<Number>,
        reads: Arc<Mutex<ReadSet>>,
        at: Timestamp,
        place: Timestamp,
        writes: impl FnOnce() -> Writes,
    ) {
        let mut active = inner.active.lock();
        let oldest = active.oldest_but(number);
        self.forget(oldest);
        if oldest.is_some_and(|oldest| oldest < at) {
            let items = {
                let mut reads = reads.lock();
                reads.settle();
                reads.len()
            };
            self.items += items;
            self.past.push_back(Past { at, place, writes: writes(), reads, items });
            while self.past.len() > PAST_MAX || self.items > ITEMS_MAX {
                self.lose();
            }
        }
        // Before it leaves: who finds nobody active must find it here.
        inner.past.store(self.known(), Ordering::Release);
        active.leave(number);
    }

    /// How many are known, or were.
    fn known(&self) -> usize {
        self.past.len() + usize::from(self.lost.at.0 != 0)
    }

    /// Forgets what nobody needs who began at `oldest` or later. Readers are noted with their snapshots, so the order is not quite
    /// that of `at`, and some stay longer.
    fn forget(&mut self, oldest: Option<Timestamp>) {
        let is_needed = |at: Timestamp| oldest.is_some_and(|oldest| at > oldest);
        while let Some(first) = self.past.front().filter(|past| !is_needed(past.at)) {
            self.items -= first.items;
            self.past.pop_front();
        }
        if !is_needed(self.lost.at) {
            self.lost = Lost::default();
        }
    }

    fn lose(&mut self) {
        let Some(past) = self.past.pop_front() else { return };
        self.items -= past.items;
        self.lost.at = self.lost.at.max(past.at);
        if past.place < past.at {
            let is_first = self.lost.placed_at.0 == 0;
            self.lost.place = if is_first { past.place } else { self.lost.place.min(past.place) };
            self.lost.placed_at = self.lost.placed_at.max(past.at);
        }
    }
}

/// Who is active: its snapshot, and a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number {
    snapshot: Timestamp,
    number: u64,
}

impl Number {
    /// Its snapshot.
    pub fn snapshot(self) -> Timestamp {
        self.snapshot
    }
}

/// The SERIALIZABLE transactions that have a snapshot and have not ended. Taken after [`Serial`].
#[derive(Debug, Default)]
pub(crate) struct Active {
    /// Those that may write.
    writers: BTreeSet<Number>,
    /// Those that do not, and that had no safe snapshot when they began.
    readers: BTreeSet<Number>,
    numbers: u64,
    /// Woken when a writer ends.
    waiting: Vec<Arc<WaitCell>>,
}

impl Active {
    fn enter(&mut self, snapshot: Timestamp, is_reader: bool) -> Number {
        self.numbers += 1;
        let number = Number { snapshot, number: self.numbers };
        if is_reader {
            self.readers.insert(number)
        } else {
            self.writers.insert(number)
        };
        number
    }

    /// The oldest snapshot of the others.
    fn oldest_but(&self, number: Option<Number>) -> Option<Timestamp> {
        let oldest = |set: &BTreeSet<Number>| set.iter().find(|other| Some(**other) != number).map(|n| n.snapshot);
        match (oldest(&self.writers), oldest(&self.readers)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether somebody else may write who has an older snapshot than `view`.
    fn has_older_writer(&self, view: Timestamp, own: Number) -> bool {
        self.writers.iter().take_while(|other| other.snapshot < view).any(|other| *other != own)
    }

    /// Whether somebody may write who began before `own`. One with the same snapshot is no danger, but PostgreSQL's readers wait for
    /// him, too.
    fn has_earlier_writer(&self, own: Number) -> bool {
        self.writers.range(..own).any(|other| other.number < own.number)
    }

    fn leave(&mut self, number: Option<Number>) {
        let Some(number) = number else { return };
        if self.writers.remove(&number) {
            self.waiting.drain(..).for_each(|cell| cell.wake());
        } else {
            self.readers.remove(&number);
        }
    }
}

/// How a transaction has begun.
pub(crate) struct Begun {
    /// `None`: it reads only, and no place in the order can come before it.
    pub number: Option<Number>,
    pub view: mvcc::ViewToken,
}

/// Takes the snapshot of a SERIALIZABLE transaction and enters it among the active ones. Both are one step: of a writer that commits after
/// the snapshot and is not found active by it, there is nothing to fear.
pub(crate) fn begin(inner: &Inner, is_reader: bool, view: impl FnOnce() -> mvcc::ViewToken) -> Begun {
    let mut active = inner.active.lock();
    let view = view();
    let snapshot = view.read_ts();
    let is_safe = is_reader && active.writers.first().is_none_or(|oldest| oldest.snapshot > snapshot);
    let number = (!is_safe).then(|| active.enter(snapshot, is_reader));
    Begun { number, view }
}

/// Whether a reader's snapshot has become safe: all who could have been placed before it have ended.
pub(crate) enum Safety {
    Safe,
    /// One of them was.
    Unsafe,
    /// Not known before one of them ends.
    Open,
}

/// Looks whether the snapshot of a reader is safe; `cell` is woken when it may be.
pub(crate) fn safety(inner: &Inner, number: Number, cell: &Arc<WaitCell>) -> Safety {
    let serial = inner.serial.lock();
    let mut active = inner.active.lock();
    if serial.is_amid(number.snapshot, |_| true) {
        return Safety::Unsafe;
    }
    if active.has_earlier_writer(number) {
        active.waiting.push(Arc::clone(cell));
        return Safety::Open;
    }
    Safety::Safe
}

/// Ends a transaction that gives up, or was a reader that nothing can happen to.
pub(crate) fn leave(inner: &Inner, number: Number) {
    let oldest = {
        let mut active = inner.active.lock();
        active.leave(Some(number));
        active.oldest_but(None)
    };
    // What was kept for it goes, if that can be done at once; otherwise somebody else is about to.
    if oldest.is_none_or(|oldest| oldest > number.snapshot)
        && inner.past.load(Ordering::Acquire) != 0
        && let Some(mut serial) = inner.serial.try_lock()
    {
        let oldest = inner.active.lock().oldest_but(None);
        serial.forget(oldest);
        inner.past.store(serial.known(), Ordering::Release);
    }
}

/// Ends a transaction that has written nothing. It stands where its view is.
pub(crate) fn end_reader(inner: &Inner, txn: &mut Transaction) -> Result<(), NoPlace> {
    let (Some(number), Some(reads)) = (txn.active, txn.reads.clone()) else { return Ok(()) };
    let view = number.snapshot;
    let has_newer = {
        let reads = reads.lock();
        if reads.is_empty() {
            return Ok(());
        }
        reads.newest() > view
    };
    let has_older = inner.active.lock().has_older_writer(view, number);
    if !has_older && !has_newer && inner.past.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let mut serial = inner.serial.lock();
    let at = {
        let mut reads = reads.lock();
        reads.settle();
        if has_newer {
            // It has seen more than its snapshot, and ends as a writer of nothing.
            serial.place(&reads, view)?;
            inner.store.horizon()
        } else if serial.is_amid(view, |other| other.writes.touch(&reads, Some(other.at))) {
            return Err(NoPlace);
        } else {
            view
        }
    };
    txn.active = None;
    serial.end_as(inner, Some(number), reads, at, at, Writes::default);
    Ok(())
}
