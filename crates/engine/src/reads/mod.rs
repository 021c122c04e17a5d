//! What a SERIALIZABLE transaction has read (rule R8).
//!
//! Responsible for: rows and ranges read, coarser when there are many ([`ReadSet`]); whether they are still as they were
//! ([`look`]); what the log says of them ([`written`]).
//! Not responsible for: when to look (`commit::validate`).
//!
//! An item says: at `as_of` this was so. It still is if no commit after `as_of` has written a row of it. Most items are as
//! of the transaction's snapshot; what foreign keys look at is read newer.
//! - A row that was found by its unique key is an item by itself: no other row can have the key while it stays.
//! - A range of an index covers the keys visited. The snapshot keeps the old versions of its rows, and these keep their
//!   entries (E3), so a row that left the range since is found under its old key. What a newer view showed is not kept,
//!   so its rows are items as well.
//! - Own writes are no items: the row's lock was taken when its newest version was the one seen.
//!
//! A point read appends one item of 24 bytes to a list ([`rows`]) and allocates nothing but the list's growth. When there
//! are too many, the rows of the table that has most become blocks of rows, larger step by step, and at last the table.
//! A block does not say which rows were in it: one that a newer view showed may be deleted and gone without a trace. So a table
//! remembers the oldest such row that was made part of a block, and a deletion after it of which nothing is left
//! ([`mvcc::Table::newest_gone`]) counts as one of that row.

mod look;
mod rows;
pub(crate) mod scan;
mod written;

use std::ops::Bound;
use std::sync::Arc;

use base::{RowId, Timestamp};
use engine_api::{KeyRange, MemoryKind};
use mvcc::Memory;
use smallvec::SmallVec;

use crate::storage::{IndexStore, TableStore};

pub(crate) use look::{Cursor, Stale};
use rows::{Item, RowItems};
pub(crate) use written::Written;

/// Items before those of the table that has most become coarser.
const ITEMS_MAX: usize = 1 << 15;
/// How many times larger blocks of rows become, as a power of two, and how large they may be.
const BLOCK_STEP: u8 = 4;
const BLOCK_MAX: u8 = 8;

/// A key of an index; short ones are kept in place.
type Key = SmallVec<[u8; 24]>;

/// What was read of a table, other than single rows.
#[derive(Clone, Debug)]
pub(crate) enum Span {
    /// The rows below this one; all that there are and will be if it is the largest.
    Rows { below: RowId },
    /// Keys of an index.
    Keys { index: Arc<IndexStore>, lower: Bound<Key>, upper: Bound<Key> },
}

impl Span {
    /// Every row, those to come included.
    pub const ALL: Span = Span::Rows { below: RowId(u64::MAX) };

    /// One key of an index.
    pub fn point(index: &Arc<IndexStore>, key: &[u8]) -> Span {
        let bound = Bound::Included(Key::from_slice(key));
        Span::Keys { index: Arc::clone(index), lower: bound.clone(), upper: bound }
    }

    /// A range of an index.
    pub fn keys(index: &Arc<IndexStore>, range: &KeyRange) -> Span {
        let own = |bound: &Bound<Vec<u8>>| crate::reads::scan::bytes(bound).map(Key::from_slice);
        Span::Keys { index: Arc::clone(index), lower: own(&range.lower), upper: own(&range.upper) }
    }

    /// What it has allocated.
    fn bytes_apart(&self) -> i64 {
        let apart = |bound: &Bound<Key>| match bound {
            Bound::Included(key) | Bound::Excluded(key) if key.spilled() => key.capacity() as i64,
            _ => 0,
        };
        match self {
            Span::Rows { .. } => 0,
            Span::Keys { lower, upper, .. } => apart(lower) + apart(upper),
        }
    }
}

/// A bound, borrowed.
fn borrowed(bound: &Bound<Key>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

#[derive(Debug)]
struct Range {
    table: u16,
    as_of: Timestamp,
    span: Span,
}

const RANGE_BYTES: i64 = size_of::<Range>() as i64;

#[derive(Debug)]
struct Known {
    store: Arc<TableStore>,
    /// It is one item, as of this time.
    whole: Option<Timestamp>,
    /// Its items in the list are blocks of so many rows, as a power of two.
    block: u8,
    /// When the first of its rows was read by a newer view than the snapshot and is no item by itself any more.
    loose: Option<Timestamp>,
}

impl Known {
    /// A row is no item by itself any more.
    fn loosen(&mut self, as_of: Timestamp, snapshot: Timestamp) {
        if as_of > snapshot {
            self.loose = Some(self.loose.map_or(as_of, |known| known.min(as_of)));
        }
    }
}

/// A range that grows while a scan goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growing {
    at: usize,
    coarsened: u32,
}

/// What a read set may change by before that is charged to the budget.
const CHARGE_STEP: i64 = 16 << 10;

/// The read set of one transaction.
pub(crate) struct ReadSet {
    tables: SmallVec<[Known; 4]>,
    rows: RowItems,
    ranges: Vec<Range>,
    /// Rows that were read as of this time or before keep their versions while the transaction lasts.
    snapshot: Timestamp,
    /// The newest time that something was read as of.
    newest: Timestamp,
    /// How often items were made one: ranges have other places since.
    coarsened: u32,
    memory: Arc<Memory>,
    /// Bytes of its lists, and how many of them are charged to the budget.
    held: i64,
    charged: i64,
}

impl std::fmt::Debug for ReadSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadSet({} rows, {:?})", self.rows.len(), self.ranges)
    }
}

impl ReadSet {
    /// Nothing was read. What will be is charged to `memory`.
    pub fn new(memory: &Arc<Memory>) -> ReadSet {
        ReadSet {
            tables: SmallVec::new(),
            rows: RowItems::default(),
            ranges: Vec::new(),
            snapshot: Timestamp(0),
            newest: Timestamp(0),
            coarsened: 0,
            memory: Arc::clone(memory),
            held: 0,
            charged: 0,
        }
    }

    /// The transaction has its snapshot.
    pub fn set_snapshot(&mut self, ts: Timestamp) {
        self.snapshot = ts;
    }

    /// The newest commit that what was read can depend on.
    pub fn newest(&self) -> Timestamp {
        self.newest.max(self.snapshot)
    }

    /// Nothing was read.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// What was done depends on this commit, beyond what was read.
    pub fn rest_on(&mut self, ts: Timestamp) {
        self.newest = self.newest.max(ts);
    }

    /// Rows and ranges in it.
    pub fn len(&self) -> usize {
        self.rows.len() + self.ranges.len()
    }

    fn charge(&mut self, bytes: i64) {
        self.held += bytes;
        let change = self.held - self.charged;
        // All threads share the counter.
        if change.abs() >= CHARGE_STEP {
            self.memory.charge_other(MemoryKind::Transactions as usize, change);
            self.charged = self.held;
        }
    }

    fn number_of(&mut self, store: &Arc<TableStore>) -> u16 {
        let at = self.tables.iter().rposition(|known| Arc::ptr_eq(&known.store, store)).unwrap_or_else(|| {
            self.tables.push(Known { store: Arc::clone(store), whole: None, block: 0, loose: None });
            self.tables.len() - 1
        });
        u16::try_from(at).expect("a transaction reads fewer than 65536 tables")
    }

    /// Whether a table is one item; then it is as of `as_of` at the latest.
    fn is_whole(&mut self, table: u16, as_of: Timestamp) -> bool {
        match &mut self.tables[table as usize].whole {
            Some(known) => {
                *known = (*known).min(as_of);
                true
            }
            None => false,
        }
    }

    /// Notes a row.
    pub fn add_row(&mut self, store: &Arc<TableStore>, row: RowId, as_of: Timestamp) {
        let table = self.number_of(store);
        self.newest = self.newest.max(as_of);
        let (snapshot, known) = (self.snapshot, &mut self.tables[table as usize]);
        if known.block > 0 || known.whole.is_some() {
            known.loosen(as_of, snapshot);
        }
        let row = RowId(row.0 >> known.block);
        if self.is_whole(table, as_of) {
            return;
        }
        let more = self.rows.push(Item { table, row, as_of });
        if more != 0 {
            // The list has grown: seldom.
            self.charge(more);
            self.keep_small();
        }
    }

    /// Notes a range.
    pub fn add_range(&mut self, store: &Arc<TableStore>, span: Span, as_of: Timestamp) -> Option<Growing> {
        let table = self.number_of(store);
        self.newest = self.newest.max(as_of);
        if self.is_whole(table, as_of) {
            return None;
        }
        if matches!(span, Span::Rows { below: RowId(u64::MAX) }) {
            self.make_whole(table, as_of);
            return None;
        }
        self.charge(RANGE_BYTES + span.bytes_apart());
        self.ranges.push(Range { table, as_of, span });
        let coarsened = self.coarsened;
        self.keep_small();
        Some(Growing { at: self.ranges.len().saturating_sub(1), coarsened })
    }

    fn known(&mut self, growing: Option<Growing>) -> Option<&mut Range> {
        let growing = growing.filter(|growing| growing.coarsened == self.coarsened)?;
        self.ranges.get_mut(growing.at)
    }

    /// Notes that a scan of the rows, noted before as `growing`, has come to `below`; answers its place now.
    pub fn grow_rows(
        &mut self,
        growing: Option<Growing>,
        store: &Arc<TableStore>,
        below: RowId,
        as_of: Timestamp,
    ) -> Option<Growing> {
        match self.known(growing) {
            Some(range) if below.0 != u64::MAX => {
                range.span = Span::Rows { below };
                growing
            }
            _ => self.add_range(store, Span::Rows { below }, as_of),
        }
    }

    /// Notes that a scan of an index has come to the key `last`, or to the end of its range; answers its place now.
    pub fn grow_keys(
        &mut self,
        growing: Option<Growing>,
        store: &Arc<TableStore>,
        scanned: Scanned<'_>,
        as_of: Timestamp,
    ) -> Option<Growing> {
        let Scanned { index, range, reverse, last } = scanned;
        let end = || match (last, reverse) {
            (Some(last), _) => Bound::Included(Key::from_slice(last)),
            (None, true) => crate::reads::scan::bytes(&range.lower).map(Key::from_slice),
            (None, false) => crate::reads::scan::bytes(&range.upper).map(Key::from_slice),
        };
        if let Some(known) = self.known(growing) {
            let before = known.span.bytes_apart();
            if let Span::Keys { lower, upper, .. } = &mut known.span {
                *if reverse { lower } else { upper } = end();
            }
            let more = known.span.bytes_apart() - before;
            if more != 0 {
                self.charge(more);
            }
            return growing;
        }
        let mut span = Span::keys(index, range);
        if let (Some(_), Span::Keys { lower, upper, .. }) = (last, &mut span) {
            *if reverse { lower } else { upper } = end();
        }
        self.add_range(store, span, as_of)
    }

    /// Makes the items of the table that has most coarser, as long as there are too many.
    fn keep_small(&mut self) {
        while self.rows.len() + self.ranges.len() > ITEMS_MAX {
            let freed = self.rows.settle();
            self.charge(-freed);
            if self.rows.len() + self.ranges.len() <= ITEMS_MAX {
                return;
            }
            // (rows, ranges) of each table
            let mut counts = vec![(0usize, 0usize); self.tables.len()];
            self.rows.iter().for_each(|item| counts[item.table as usize].0 += 1);
            self.ranges.iter().for_each(|range| counts[range.table as usize].1 += 1);
            let Some(most) = (0..counts.len()).max_by_key(|table| counts[*table].0 + counts[*table].1) else { return };
            let (rows, ranges) = counts[most];
            if ranges > rows || self.tables[most].block >= BLOCK_MAX {
                self.make_whole(most as u16, Timestamp(u64::MAX));
            } else {
                self.loosen_all(most as u16);
                self.tables[most].block += BLOCK_STEP;
                self.rows.coarsen(most as u16, BLOCK_STEP);
            }
        }
    }

    /// The rows of a table are no items by themselves any more.
    fn loosen_all(&mut self, table: u16) {
        let (snapshot, known) = (self.snapshot, &mut self.tables[table as usize]);
        self.rows.iter().filter(|item| item.table == table).for_each(|item| known.loosen(item.as_of, snapshot));
    }

    fn make_whole(&mut self, table: u16, as_of: Timestamp) {
        self.loosen_all(table);
        let mut oldest = as_of;
        let mut freed = self.rows.remove(table, &mut oldest);
        self.ranges.retain(|range| {
            let stays = range.table != table;
            if !stays {
                oldest = oldest.min(range.as_of);
                freed += RANGE_BYTES + range.span.bytes_apart();
            }
            stays
        });
        self.coarsened += 1;
        self.tables[table as usize].whole = Some(oldest);
        self.charge(-freed);
    }
}

/// How far a scan of an index has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanned<'a> {
    pub index: &'a Arc<IndexStore>,
    pub range: &'a KeyRange,
    pub reverse: bool,
    /// The last key visited; `None` if the range was exhausted.
    pub last: Option<&'a [u8]>,
}

impl Drop for ReadSet {
    fn drop(&mut self) {
        self.memory.charge_other(MemoryKind::Transactions as usize, -self.charged);
    }
}
