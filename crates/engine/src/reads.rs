//! What a SERIALIZABLE transaction has read (rule R8).
//!
//! Responsible for: rows and ranges read, coarser when there are many, and looking whether they are still as they were.
//! Not responsible for: when to look (`commit::validate`).
//!
//! An item says: at `as_of` this was so. It still is if no commit after `as_of` has written a row of it. Most items are as
//! of the transaction's snapshot; what foreign keys look at is read newer.
//! - A row that was found by its unique key is an item by itself: no other row can have the key while it stays.
//! - A range of an index covers the keys visited. The snapshot keeps the old versions of its rows, and these keep their
//!   entries (E3), so a row that left the range since is found under its old key. What a newer view showed is not kept,
//!   so its rows are items as well.
//! - Own writes are no items: the row's lock was taken when its newest version was the one seen.

use std::ops::Bound;
use std::sync::Arc;

use base::{RowId, Timestamp};
use mvcc::index::{self, Direction, EntryBatch, OrderedIndex as _};
use mvcc::{Memory, pin};
use rustc_hash::FxHashMap;

use crate::record::StorageId;
use crate::scan::bytes;
use crate::storage::{IndexStore, TableHandle, TableStore};

/// Items before those of the table that has most become one: the whole table.
const ITEMS_MAX: usize = 1 << 15;
/// What a row in the map and a range cost, roughly.
const ROW_BYTES: i64 = 32;
const RANGE_BYTES: i64 = 96;
/// Index entries taken at once.
const ENTRIES: usize = 128;

/// What was read of a table, other than single rows.
#[derive(Clone, Debug)]
pub(crate) enum Span {
    /// The rows below this one; all that there are and will be if it is the largest.
    Rows { below: RowId },
    /// Keys of an index.
    Keys { index: Arc<IndexStore>, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>> },
}

impl Span {
    /// Every row, those to come included.
    pub const ALL: Span = Span::Rows { below: RowId(u64::MAX) };

    /// One key of an index.
    pub fn point(index: &Arc<IndexStore>, key: &[u8]) -> Span {
        let bound = Bound::Included(key.to_vec());
        Span::Keys { index: Arc::clone(index), lower: bound.clone(), upper: bound }
    }

    fn key_bytes(&self) -> i64 {
        let len = |bound: &Bound<Vec<u8>>| bytes(bound).map(<[u8]>::len);
        match self {
            Span::Rows { .. } => 0,
            Span::Keys { lower, upper, .. } => [len(lower), len(upper)]
                .into_iter()
                .map(|len| match len {
                    Bound::Included(len) | Bound::Excluded(len) => len as i64,
                    Bound::Unbounded => 0,
                })
                .sum(),
        }
    }
}

#[derive(Debug)]
struct Range {
    table: u16,
    as_of: Timestamp,
    span: Span,
}

#[derive(Debug)]
struct Known {
    store: Arc<TableStore>,
    /// It is one item, as of this time.
    whole: Option<Timestamp>,
}

/// A range that grows while a scan goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growing {
    at: usize,
    coarsened: u32,
}

/// Where a look at a read set has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cursor {
    rows_done: bool,
    range: usize,
    row: RowId,
    resume: Option<(Vec<u8>, RowId)>,
}

/// A later commit has written what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stale(pub Timestamp);

/// The read set of one transaction.
pub(crate) struct ReadSet {
    tables: Vec<Known>,
    rows: FxHashMap<(u16, RowId), Timestamp>,
    ranges: Vec<Range>,
    /// How often items were made one: ranges have other places since.
    coarsened: u32,
    memory: Arc<Memory>,
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
            tables: Vec::new(),
            rows: FxHashMap::default(),
            ranges: Vec::new(),
            coarsened: 0,
            memory: Arc::clone(memory),
            charged: 0,
        }
    }

    fn charge(&mut self, bytes: i64) {
        self.memory.charge(bytes);
        self.charged += bytes;
    }

    fn number_of(&mut self, store: &Arc<TableStore>) -> u16 {
        let at = self.tables.iter().rposition(|known| Arc::ptr_eq(&known.store, store)).unwrap_or_else(|| {
            self.tables.push(Known { store: Arc::clone(store), whole: None });
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
        if self.is_whole(table, as_of) {
            return;
        }
        let mut is_new = false;
        let known = self.rows.entry((table, row)).or_insert_with(|| {
            is_new = true;
            as_of
        });
        *known = (*known).min(as_of);
        if is_new {
            self.charge(ROW_BYTES);
            self.keep_small();
        }
    }

    /// Notes a range.
    pub fn add_range(&mut self, store: &Arc<TableStore>, span: Span, as_of: Timestamp) -> Option<Growing> {
        let table = self.number_of(store);
        if self.is_whole(table, as_of) {
            return None;
        }
        if matches!(span, Span::Rows { below: RowId(u64::MAX) }) {
            self.make_whole(table, as_of);
            return None;
        }
        self.charge(RANGE_BYTES + span.key_bytes());
        self.ranges.push(Range { table, as_of, span });
        let coarsened = self.coarsened;
        self.keep_small();
        Some(Growing { at: self.ranges.len().saturating_sub(1), coarsened })
    }

    /// Puts a wider range in the place of one that a scan noted before, and answers its place.
    pub fn grow(
        &mut self,
        growing: Option<Growing>,
        store: &Arc<TableStore>,
        span: Span,
        as_of: Timestamp,
    ) -> Option<Growing> {
        let known = growing.filter(|growing| growing.coarsened == self.coarsened);
        let whole = matches!(span, Span::Rows { below: RowId(u64::MAX) });
        match known.and_then(|growing| self.ranges.get_mut(growing.at)) {
            Some(range) if !whole => {
                let more = span.key_bytes() - range.span.key_bytes();
                range.span = span;
                self.charge(more);
                known
            }
            _ => self.add_range(store, span, as_of),
        }
    }

    /// Makes the items of the table that has most into one.
    fn keep_small(&mut self) {
        if self.rows.len() + self.ranges.len() <= ITEMS_MAX {
            return;
        }
        let mut counts = vec![0usize; self.tables.len()];
        self.rows.keys().for_each(|(table, _)| counts[*table as usize] += 1);
        self.ranges.iter().for_each(|range| counts[range.table as usize] += 1);
        if let Some(most) = (0..counts.len()).max_by_key(|table| counts[*table]) {
            self.make_whole(most as u16, Timestamp(u64::MAX));
        }
    }

    fn make_whole(&mut self, table: u16, as_of: Timestamp) {
        let mut oldest = as_of;
        let mut freed = 0;
        self.rows.retain(|(of, _), at| {
            let stays = *of != table;
            if !stays {
                oldest = oldest.min(*at);
                freed += ROW_BYTES;
            }
            stays
        });
        self.ranges.retain(|range| {
            let stays = range.table != table;
            if !stays {
                oldest = oldest.min(range.as_of);
                freed += RANGE_BYTES + range.span.key_bytes();
            }
            stays
        });
        self.coarsened += 1;
        self.tables[table as usize].whole = Some(oldest);
        self.charge(-freed);
    }

    /// Looks at `budget` more rows and entries, roughly, whether they are as they were read; `true` when all are done.
    ///
    /// # Errors
    /// [`Stale`] with the commit that was found.
    pub fn check(&self, cursor: &mut Cursor, budget: &mut usize) -> Result<bool, Stale> {
        if !cursor.rows_done {
            self.check_rows()?;
            *budget = budget.saturating_sub(self.rows.len());
            cursor.rows_done = true;
        }
        let wholes = self.tables.iter().filter_map(|known| Some((&known.store, known.whole?, &Span::ALL)));
        let ranges = self.ranges.iter().map(|range| (self.store_of(range), range.as_of, &range.span));
        for (store, as_of, span) in wholes.chain(ranges).skip(cursor.range) {
            if !check_span(store, as_of, span, cursor, budget)? {
                return Ok(false);
            }
            cursor.range += 1;
            cursor.row = RowId(0);
            cursor.resume = None;
        }
        Ok(true)
    }

    fn store_of(&self, range: &Range) -> &Arc<TableStore> {
        &self.tables[range.table as usize].store
    }

    fn check_rows(&self) -> Result<(), Stale> {
        let guard = pin();
        for ((table, row), as_of) in &self.rows {
            let store = &self.tables[*table as usize].store;
            match store.rows.last_commit(*row, &guard) {
                Some(ts) if ts <= *as_of && !store.is_abandoned() => {}
                Some(ts) => return Err(Stale(ts)),
                // It was there, and is gone for all.
                None => return Err(Stale(*as_of)),
            }
        }
        Ok(())
    }

    /// Whether one of these writes lies in what was read.
    pub fn is_touched<'a>(&self, writes: impl Iterator<Item = (&'a Arc<mvcc::Table>, RowId)>) -> bool {
        writes.into_iter().any(|(table, row)| {
            self.tables.iter().enumerate().filter(|(_, known)| Arc::ptr_eq(&known.store.rows, table)).any(
                |(number, known)| {
                    let number = number as u16;
                    let mut ranges = self.ranges.iter().filter(|range| range.table == number);
                    known.whole.is_some()
                        || self.rows.contains_key(&(number, row))
                        || ranges.any(|range| is_in_span(&known.store, row, &range.span))
                },
            )
        })
    }
}

/// A read set in the log.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Written {
    tables: Vec<WrittenTable>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct WrittenTable {
    oid: u32,
    generation: u32,
    whole: bool,
    rows: Vec<u64>,
    below: Vec<u64>,
    keys: Vec<WrittenKeys>,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct WrittenKeys {
    index: u32,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
}

impl ReadSet {
    /// As it is written to the log.
    pub fn written(&self) -> Written {
        let tables = self.tables.iter().enumerate().map(|(number, known)| {
            let number = number as u16;
            let mut written = WrittenTable {
                oid: known.store.id.table.0,
                generation: known.store.id.generation,
                whole: known.whole.is_some(),
                rows: self.rows.keys().filter(|(table, _)| *table == number).map(|(_, row)| row.0).collect(),
                below: Vec::new(),
                keys: Vec::new(),
            };
            written.rows.sort_unstable();
            for range in self.ranges.iter().filter(|range| range.table == number) {
                match &range.span {
                    Span::Rows { below } => written.below.push(below.0),
                    Span::Keys { index, lower, upper } => written.keys.push(WrittenKeys {
                        index: index.desc.oid.0,
                        lower: lower.clone(),
                        upper: upper.clone(),
                    }),
                }
            }
            written
        });
        Written { tables: tables.collect() }
    }

    /// Adds what the log says. Tables and indexes that are gone are passed over: they were read in a part that was rolled
    /// back.
    pub fn read(&mut self, written: Written, find: impl Fn(StorageId) -> Option<Arc<TableStore>>) {
        let as_of = Timestamp(0);
        for table in written.tables {
            let id = StorageId { table: base::Oid(table.oid), generation: table.generation };
            let Some(store) = find(id) else { continue };
            table.rows.iter().for_each(|row| self.add_row(&store, RowId(*row), as_of));
            for below in table.below {
                self.add_range(&store, Span::Rows { below: RowId(below) }, as_of);
            }
            let definition = store.upkeep.current();
            for WrittenKeys { index, lower, upper } in table.keys {
                let known = definition.indexes.iter().find(|known| known.desc.oid.0 == index);
                let span = known.map_or(Span::ALL, |index| Span::Keys { index: Arc::clone(index), lower, upper });
                self.add_range(&store, span, as_of);
            }
            if table.whole {
                self.add_range(&store, Span::ALL, as_of);
            }
        }
    }
}

impl Drop for ReadSet {
    fn drop(&mut self) {
        self.memory.charge(-self.charged);
    }
}

/// Goes on with one range; `false`: the budget is used up.
fn check_span(
    store: &Arc<TableStore>,
    as_of: Timestamp,
    span: &Span,
    cursor: &mut Cursor,
    budget: &mut usize,
) -> Result<bool, Stale> {
    if store.is_abandoned() {
        // Read in a part that was rolled back, its table lock with it; somebody has emptied the table since.
        return Err(Stale(as_of));
    }
    match span {
        Span::Keys { index, lower, upper } if is_kept_up(store, index) => {
            check_keys(store, as_of, index, (lower, upper), cursor, budget)
        }
        Span::Keys { .. } => check_all(store, as_of, RowId(u64::MAX), cursor, budget),
        Span::Rows { below } => check_all(store, as_of, *below, cursor, budget),
    }
}

/// Whether an index is one of its table still.
fn is_kept_up(store: &TableStore, index: &Arc<IndexStore>) -> bool {
    store.upkeep.current().indexes.iter().any(|known| Arc::ptr_eq(known, index))
}

fn check_all(
    store: &TableStore,
    as_of: Timestamp,
    below: RowId,
    cursor: &mut Cursor,
    budget: &mut usize,
) -> Result<bool, Stale> {
    let end = below.min(store.rows.end());
    while *budget > 0 {
        let count = ENTRIES.min(*budget);
        *budget -= count;
        let found = {
            let guard = pin();
            store.rows.find_commit_after(cursor.row, end, as_of, count, &guard)
        };
        if let Some(ts) = found.1 {
            return Err(Stale(ts));
        }
        cursor.row = found.0;
        if cursor.row >= end {
            return Ok(true);
        }
    }
    Ok(false)
}

fn check_keys(
    store: &TableStore,
    as_of: Timestamp,
    index: &IndexStore,
    (lower, upper): (&Bound<Vec<u8>>, &Bound<Vec<u8>>),
    cursor: &mut Cursor,
    budget: &mut usize,
) -> Result<bool, Stale> {
    let range = index::KeyRange::bounds(bytes(lower), bytes(upper));
    let mut entries = EntryBatch::new();
    while *budget > 0 {
        let count = ENTRIES.min(*budget);
        *budget -= count;
        entries.clear();
        let resume = cursor.resume.as_ref().map(|(key, row)| (key.as_slice(), *row));
        let more = index.tree.scan(&range, Direction::Forward, resume, count, &mut entries);
        {
            let guard = pin();
            for row in entries.rows() {
                if let Some(ts) = store.rows.last_commit(*row, &guard).filter(|ts| *ts > as_of) {
                    return Err(Stale(ts));
                }
            }
        }
        let last = entries.last().map(|(key, row)| (key.to_vec(), row));
        if !more || last.is_none() {
            return Ok(true);
        }
        cursor.resume = last;
    }
    Ok(false)
}

/// Whether a version of a row has, or had, a key in a range.
fn is_in_span(store: &Arc<TableStore>, row: RowId, span: &Span) -> bool {
    match span {
        Span::Rows { below } => row < *below,
        Span::Keys { index, .. } if !is_kept_up(store, index) => true,
        Span::Keys { index, lower, upper } => {
            let range = index::KeyRange::bounds(bytes(lower), bytes(upper));
            let guard = pin();
            let shape = &store.upkeep.current().shape;
            let mut key = Vec::new();
            store.rows.versions(row, &guard).iter().any(|(layout, tuple)| {
                key.clear();
                shape.key(index, *layout, tuple, &mut key);
                !key.is_empty() && range.contains(&key)
            })
        }
    }
}

impl TableHandle {
    /// The range that a scan of an index has read when it has come to `last`; the whole if it was exhausted.
    pub(crate) fn span_of(
        index: &Arc<IndexStore>,
        range: &engine_api::KeyRange,
        reverse: bool,
        last: Option<&[u8]>,
    ) -> Span {
        let (mut lower, mut upper) = (range.lower.clone(), range.upper.clone());
        if let Some(last) = last {
            *if reverse { &mut lower } else { &mut upper } = Bound::Included(last.to_vec());
        }
        Span::Keys { index: Arc::clone(index), lower, upper }
    }
}
