//! Looking whether what was read is still as it was.

use std::ops::Bound;
use std::sync::Arc;

use base::{LayoutId, RowId, Timestamp};
use mvcc::index::{self, Direction, EntryBatch, OrderedIndex as _};
use mvcc::pin;

use super::{Key, Known, ReadSet, Span, borrowed};
use crate::storage::{IndexStore, TableHandle, TableStore};

/// Index entries and rows taken at once.
const ENTRIES: usize = 128;

/// Where a look at a read set has come.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// Items of the list of rows.
    item: usize,
    /// Whole tables and ranges.
    range: usize,
    row: RowId,
    resume: Option<(Key, RowId)>,
}

/// A later commit has written what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stale(pub Timestamp);

impl ReadSet {
    /// Before a look that takes more than one part: nothing is noted any more, and what was noted twice is looked at once.
    pub fn settle(&mut self) {
        let freed = self.rows.settle();
        if freed != 0 {
            self.charge(-freed);
        }
    }

    /// Looks at `budget` more rows and entries, roughly, whether they are as they were read; `true` when all are done.
    ///
    /// # Errors
    /// [`Stale`] with the commit that was found.
    pub fn check(&self, cursor: &mut Cursor, budget: &mut usize) -> Result<bool, Stale> {
        if !self.check_rows(cursor, budget)? {
            return Ok(false);
        }
        let wholes = self.tables.iter().filter_map(|known| Some((&known.store, known.whole?, &Span::ALL)));
        let ranges =
            self.ranges.iter().map(|range| (&self.tables[range.table as usize].store, range.as_of, &range.span));
        let mut entries = EntryBatch::rows_only();
        for (store, as_of, span) in wholes.chain(ranges).skip(cursor.range) {
            if !check_span(store, as_of, span, cursor, budget, &mut entries)? {
                return Ok(false);
            }
            cursor.range += 1;
            cursor.row = RowId(0);
            cursor.resume = None;
        }
        // Last: a row that was not found above had gone before.
        for known in &self.tables {
            let gone = known.store.rows.newest_gone();
            if known.loose.is_some_and(|loose| gone > loose) {
                return Err(Stale(gone));
            }
        }
        Ok(true)
    }

    fn check_rows(&self, cursor: &mut Cursor, budget: &mut usize) -> Result<bool, Stale> {
        while cursor.item < self.rows.len() {
            if *budget == 0 {
                return Ok(false);
            }
            let guard = pin();
            for item in self.rows.iter().skip(cursor.item).take(ENTRIES) {
                if *budget == 0 {
                    break;
                }
                let Known { store, block, .. } = &self.tables[item.table as usize];
                *budget = budget.saturating_sub(1 << block);
                cursor.item += 1;
                if store.is_abandoned() {
                    return Err(Stale(item.as_of));
                }
                let found = match block {
                    // It was there: if it is gone for all, that is a later commit too.
                    0 => Some(store.rows.last_commit(item.row, &guard).unwrap_or(Timestamp(u64::MAX))),
                    _ => {
                        let first = RowId(item.row.0 << block);
                        let end = RowId((item.row.0 + 1) << block).min(store.rows.end());
                        store.rows.find_commit_after(first, end, item.as_of, 1 << block, &guard).1
                    }
                };
                match found {
                    Some(ts) if ts > item.as_of => return Err(Stale(if ts.0 == u64::MAX { item.as_of } else { ts })),
                    _ => {}
                }
            }
        }
        Ok(true)
    }

    /// Whether nothing can be said any more of a part of what was read: somebody has emptied a table that was read in a part that
    /// was rolled back, or a row of a block has gone without a trace.
    pub fn is_beyond_look(&self) -> Option<Stale> {
        self.tables.iter().find_map(|known| {
            let gone = known.store.rows.newest_gone();
            let is_loose = known.loose.is_some_and(|loose| gone > loose);
            (is_loose || known.store.is_abandoned()).then_some(Stale(gone))
        })
    }

    /// Whether one of these writes lies in what was read. REQUIRES [`ReadSet::settle`] for speed only.
    ///
    /// `at`: the commit that they are of; what was read after it has seen them. `None`: they are not decided, and nobody has.
    pub fn is_touched<'a>(
        &self,
        writes: impl IntoIterator<Item = (&'a Arc<mvcc::Table>, RowId)>,
        at: Option<Timestamp>,
    ) -> bool {
        let end = at.unwrap_or(Timestamp(u64::MAX));
        let mut last = None;
        writes.into_iter().any(|(table, row)| {
            let number = match last {
                Some((known, number)) if std::ptr::eq(known, Arc::as_ptr(table)) => number,
                _ => self.tables.iter().position(|known| Arc::ptr_eq(&known.store.rows, table)),
            };
            last = Some((Arc::as_ptr(table), number));
            let Some(number) = number else { return false };
            let known = &self.tables[number];
            let number = number as u16;
            let mut ranges = self.ranges.iter().filter(|range| range.table == number && range.as_of < end);
            known.whole.is_some_and(|as_of| as_of < end)
                || self.rows.contains(number, RowId(row.0 >> known.block), end)
                || ranges.any(|range| is_in_span(&known.store, row, &range.span, at))
        })
    }

    /// Whether anything of a table was read.
    pub fn concerns(&self, table: &Arc<mvcc::Table>) -> bool {
        self.tables.iter().any(|known| Arc::ptr_eq(&known.store.rows, table))
    }

    /// Whether a row with this tuple would have been found by what was read.
    pub fn would_find(&self, handle: &TableHandle, layout: LayoutId, tuple: &[u8]) -> bool {
        let Some(number) = self.tables.iter().position(|known| Arc::ptr_eq(&known.store, &handle.store)) else {
            return false;
        };
        let mut key = Vec::new();
        let mut finds = |span: &Span| match span {
            Span::Rows { below } => below.0 == u64::MAX,
            Span::Keys { index, .. } if handle.shape.may_be_long(index, tuple) => true,
            Span::Keys { index, lower, upper } => {
                key.clear();
                handle.shape.key(index, layout, tuple, &mut key);
                !key.is_empty() && index::KeyRange::bounds(borrowed(lower), borrowed(upper)).contains(&key)
            }
        };
        let mut ranges = self.ranges.iter().filter(|range| usize::from(range.table) == number);
        self.tables[number].whole.is_some() || ranges.any(|range| finds(&range.span))
    }
}

/// Goes on with one range; `false`: the budget is used up.
fn check_span(
    store: &Arc<TableStore>,
    as_of: Timestamp,
    span: &Span,
    cursor: &mut Cursor,
    budget: &mut usize,
    entries: &mut EntryBatch,
) -> Result<bool, Stale> {
    if store.is_abandoned() {
        // Read in a part that was rolled back, its table lock with it; somebody has emptied the table since.
        return Err(Stale(as_of));
    }
    match span {
        Span::Keys { index, lower, upper } if is_kept_up(store, index) => {
            check_keys(store, as_of, index, (lower, upper), cursor, budget, entries)
        }
        Span::Keys { .. } => check_all(store, as_of, RowId(u64::MAX), cursor, budget),
        Span::Rows { below } => check_all(store, as_of, *below, cursor, budget),
    }
}

/// Whether an index is one of its table still.
fn is_kept_up(store: &TableStore, index: &Arc<IndexStore>) -> bool {
    store.upkeep.with_current(|now| now.indexes.iter().any(|known| Arc::ptr_eq(known, index)))
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
    (lower, upper): (&Bound<Key>, &Bound<Key>),
    cursor: &mut Cursor,
    budget: &mut usize,
    entries: &mut EntryBatch,
) -> Result<bool, Stale> {
    let range = index::KeyRange::bounds(borrowed(lower), borrowed(upper));
    while *budget > 0 {
        let count = ENTRIES.min(*budget);
        entries.clear();
        let resume = cursor.resume.as_ref().map(|(key, row)| (key.as_slice(), *row));
        let more = index.tree.scan(&range, Direction::Forward, resume, count, entries);
        *budget -= entries.len().clamp(1, count);
        {
            let guard = pin();
            for row in entries.rows() {
                if let Some(ts) = store.rows.last_commit(*row, &guard).filter(|ts| *ts > as_of) {
                    return Err(Stale(ts));
                }
            }
        }
        match entries.last() {
            Some((key, row)) if more => cursor.resume = Some((Key::from_slice(key), row)),
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// Whether a version of a row has, or had, a key in a range. What the commit `at` wrote may have been superseded and freed; then
/// nobody knows its key.
fn is_in_span(store: &Arc<TableStore>, row: RowId, span: &Span, at: Option<Timestamp>) -> bool {
    match span {
        Span::Rows { below } => row < *below,
        Span::Keys { index, .. } if !is_kept_up(store, index) => true,
        Span::Keys { index, lower, upper } => {
            let range = index::KeyRange::bounds(borrowed(lower), borrowed(upper));
            let guard = pin();
            if at.is_some_and(|at| !store.rows.has_version_of(row, at, &guard)) {
                return true;
            }
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
