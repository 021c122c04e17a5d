//! Scans: over the rows in order of insertion, or over an index.

use std::ops::Bound;
use std::sync::Arc;

use base::{LayoutId, Result, RowId, Timestamp};
use engine_api::{BatchRow, KeyRange, RowBatch, RowContent, Scan, ScanSpec, TableRef, Txn};
use mvcc::index::{self, Direction, EntryBatch, OrderedIndex as _};
use mvcc::{Read, View, ViewToken, pin};
use parking_lot::Mutex;

use crate::reads::{Growing, ReadSet, Scanned};
use crate::shard::Shard;
use crate::storage::{IndexStore, TableHandle, TableStore};
use crate::txn::Transaction;

/// Index entries taken at once.
const ENTRIES: usize = 128;

/// Opens a scan for the current command of a transaction.
pub(crate) fn open(txn: &mut Transaction, spec: ScanSpec) -> Result<Box<dyn Scan>> {
    let handle = TableHandle::of(&spec.table)?;
    let view = txn.view();
    // The scan may outlive the command (a portal read in parts), so it keeps the view itself.
    let store = &txn.shard.0.store;
    let token = match &txn.token {
        Some(held) => store.share_view(held),
        None => store.begin_view_for(txn.options.session),
    };
    let reading = txn.reads.clone().map(|reads| Reading { reads, growing: None, is_newer: txn.held.is_some() });
    let seeing = Seeing { shard: txn.shard.clone(), table: spec.table.clone(), view, token: Some(token), reading };
    Ok(match spec.index {
        None => Box::new(RowScan {
            end: handle.store.rows.end(),
            whole_end: handle.store.rows.end(),
            next: RowId(0),
            tuples: spec.content == RowContent::Tuple,
            seeing,
        }),
        Some(oid) => Box::new(IndexScan {
            index: handle.index(oid)?.into_owned(),
            range: spec.range,
            reverse: spec.reverse,
            content: spec.content,
            last: None,
            entries: if spec.content == RowContent::Key { EntryBatch::new() } else { EntryBatch::rows_only() },
            is_done: false,
            seeing,
        }),
    })
}

/// What both kinds of scan see, and by which view.
struct Seeing {
    shard: Shard,
    table: TableRef,
    view: View,
    token: Option<ViewToken>,
    /// There if the transaction's reads are noted.
    reading: Option<Reading>,
}

/// What a scan of a SERIALIZABLE transaction notes.
struct Reading {
    reads: Arc<Mutex<ReadSet>>,
    growing: Option<Growing>,
    /// By a newer view than the transaction's, which ends before it: rows are noted as well.
    is_newer: bool,
}

impl Reading {
    /// A scan of rows has come to `below`, and has read these.
    fn note_rows(&mut self, store: &Arc<TableStore>, below: RowId, view: &View, rows: &[RowId]) {
        let mut reads = self.reads.lock();
        self.growing = reads.grow_rows(self.growing, store, below, view.read_ts);
        note_newer(&mut reads, store, view, rows);
    }

    /// As [`Reading::note_rows`] for a scan of an index.
    fn note_keys(&mut self, store: &Arc<TableStore>, scanned: Scanned<'_>, view: &View, rows: &[RowId]) {
        let mut reads = self.reads.lock();
        self.growing = reads.grow_keys(self.growing, store, scanned, view.read_ts);
        note_newer(&mut reads, store, view, rows);
    }
}

fn note_newer(reads: &mut ReadSet, store: &Arc<TableStore>, view: &View, rows: &[RowId]) {
    if rows.is_empty() {
        return;
    }
    let guard = pin();
    let committed = rows.iter().filter(|row| store.rows.last_commit(**row, &guard).is_some());
    committed.for_each(|row| reads.add_row(store, *row, view.read_ts));
}

impl Seeing {
    /// Whether the rows that are read are noted one by one.
    fn notes_rows(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| reading.is_newer)
    }
}

impl Drop for Seeing {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            self.shard.0.store.end_view(token);
        }
    }
}

/// Raises a transaction's gate to commits whose newest is that at `ts`. The scan is opened by a transaction of this engine, so it is read by one.
fn note(seeing: &Seeing, txn: &mut dyn Txn, ts: Timestamp) {
    if ts.0 != 0 {
        txn.raise_gate(seeing.shard.0.gates.up_to(ts, seeing.shard.durable()));
    }
}

struct RowScan {
    seeing: Seeing,
    next: RowId,
    /// Where the part ends, and where the rows do.
    end: RowId,
    whole_end: RowId,
    /// The rows are wanted with their tuples.
    tuples: bool,
}

impl RowScan {
    #[inline]
    fn advance(
        &mut self,
        txn: &mut dyn Txn,
        max: usize,
        mut takes: impl FnMut(BatchRow<'_>) -> bool,
        out: &mut RowBatch,
    ) -> Result<(bool, usize)> {
        let handle = TableHandle::of(&self.seeing.table)?;
        let mut newest = Timestamp(0);
        let mut looked = 0;
        let (notes_rows, mut noted) = (self.seeing.notes_rows(), Vec::new());
        let tuples = self.tuples;
        {
            let guard = pin();
            self.next = handle.store.rows.scan(self.next, self.end, tuples, &self.seeing.view, &guard, |row, read| {
                match read {
                    Read::Visible(version) => {
                        newest = newest.max(version.ts);
                        let tuple = if tuples { version.tuple } else { &[] };
                        if takes(BatchRow { row, layout: version.layout, writer: version.writer, tuple }) {
                            out.push(row, version.layout, version.writer, tuple);
                        }
                        if notes_rows {
                            noted.push(row);
                        }
                        looked += 1;
                    }
                    Read::Gone(ts) => newest = newest.max(ts),
                    Read::Absent => {}
                }
                looked < max && !out.is_full()
            });
        }
        note(&self.seeing, txn, newest);
        if let Some(reading) = &mut self.seeing.reading {
            let below = if self.next < self.whole_end { self.next } else { RowId(u64::MAX) };
            reading.note_rows(&handle.store, below, &self.seeing.view, &noted);
        }
        Ok((self.next < self.end, looked))
    }
}

impl Scan for RowScan {
    fn next(&mut self, txn: &mut dyn Txn, max: usize, out: &mut RowBatch) -> Result<bool> {
        Ok(self.advance(txn, max, |_| true, out)?.0)
    }

    fn next_taken(
        &mut self,
        txn: &mut dyn Txn,
        max: usize,
        takes: &mut dyn FnMut(BatchRow<'_>) -> bool,
        out: &mut RowBatch,
    ) -> Result<(bool, usize)> {
        self.advance(txn, max, takes, out)
    }

    fn ahead(&self) -> Option<u64> {
        Some(self.end.0.saturating_sub(self.next.0))
    }

    fn take_part(&mut self, from: u64, until: u64) {
        self.next = RowId(from).min(self.whole_end);
        self.end = RowId(until).min(self.whole_end);
    }

    fn enter(&mut self, _range: KeyRange) {}

    fn skip(&mut self, numbers: u64) {
        self.next = RowId(self.next.0.saturating_add(numbers).min(self.end.0));
    }
}

/// A bound of a range, borrowed.
pub(crate) fn bytes(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

struct IndexScan {
    seeing: Seeing,
    index: Arc<IndexStore>,
    range: KeyRange,
    reverse: bool,
    content: RowContent,
    /// Where it goes on: after this entry.
    last: Option<(Vec<u8>, RowId)>,
    entries: EntryBatch,
    is_done: bool,
}

impl IndexScan {
    /// Takes the next entries; whether there may be more.
    fn take(&mut self, max: usize) -> bool {
        self.entries.clear();
        let range = index::KeyRange::bounds(bytes(&self.range.lower), bytes(&self.range.upper));
        let direction = if self.reverse { Direction::Backward } else { Direction::Forward };
        let resume = self.last.as_ref().map(|(key, row)| (key.as_slice(), *row));
        self.index.tree.scan(&range, direction, resume, ENTRIES.min(max), &mut self.entries)
    }

    /// Appends what the view sees of the entries' rows and `takes` lets through, until `out` is full; the newest commit this depends on,
    /// and how many entries were read. `noted` gets the rows seen, if they are noted one by one. `None`, and nothing is appended, if an
    /// entry's key is needed and the entries were taken without.
    #[inline]
    fn read(
        &self,
        takes: &mut impl FnMut(BatchRow<'_>) -> bool,
        noted: &mut Vec<RowId>,
        out: &mut RowBatch,
    ) -> Result<Option<(Timestamp, usize)>> {
        let handle = TableHandle::of(&self.seeing.table)?;
        let first = out.len();
        let notes_rows = self.seeing.notes_rows();
        let mut newest = Timestamp(0);
        let guard = pin();
        let mut scratch = Vec::new();
        let mut key_is_missing = false;
        let rows = self.entries.rows();
        let tuples = self.content == RowContent::Tuple;
        let read = handle.store.rows.read_each(rows, tuples, &self.seeing.view, &guard, |at, read| match read {
            Read::Visible(version) => {
                newest = newest.max(version.ts);
                if version.keys_diverged {
                    match self.is_of(handle, at, version.layout, version.tuple, &mut scratch) {
                        Some(true) => {}
                        Some(false) => return true,
                        None => {
                            key_is_missing = true;
                            return false;
                        }
                    }
                }
                // The key of an entry is that of the version seen: one that has another was left out above.
                let content = match self.content {
                    RowContent::Tuple => version.tuple,
                    RowContent::Key => self.entries.key(at),
                    RowContent::Nothing => &[],
                };
                if takes(BatchRow { row: rows[at], layout: version.layout, writer: version.writer, tuple: content }) {
                    out.push(rows[at], version.layout, version.writer, content);
                }
                if notes_rows {
                    noted.push(rows[at]);
                }
                !out.is_full()
            }
            Read::Gone(ts) => {
                newest = newest.max(ts);
                true
            }
            Read::Absent => true,
        });
        // It goes on behind the last one that was read, which has a key only if all have.
        key_is_missing |= read < rows.len() && self.entries.get_key(read - 1).is_none();
        if key_is_missing {
            out.truncate(first);
            noted.clear();
            return Ok(None);
        }
        Ok(Some((newest, read)))
    }

    /// Whether the key of entry `at` is that of this version; `None` if the entries were taken without keys.
    #[inline(never)]
    fn is_of(
        &self,
        handle: &TableHandle,
        at: usize,
        layout: LayoutId,
        tuple: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Option<bool> {
        let key = self.entries.get_key(at)?;
        scratch.clear();
        handle.shape.key(&self.index, layout, tuple, scratch);
        Some(scratch == key)
    }
}

impl IndexScan {
    #[inline]
    fn advance(
        &mut self,
        txn: &mut dyn Txn,
        max: usize,
        mut takes: impl FnMut(BatchRow<'_>) -> bool,
        out: &mut RowBatch,
    ) -> Result<(bool, usize)> {
        if self.is_done {
            return Ok((false, 0));
        }
        let mut noted = Vec::new();
        self.is_done = !self.take(max);
        let (newest, read) = match self.read(&mut takes, &mut noted, out)? {
            Some(newest) => newest,
            None => {
                // Rows whose keys have changed are few: keys are copied only where there is one.
                self.entries = EntryBatch::new();
                self.is_done = !self.take(max);
                self.read(&mut takes, &mut noted, out)?.expect("the entries have their keys")
            }
        };
        let rows = self.entries.rows();
        self.is_done &= read == rows.len();
        let more = !self.is_done;
        self.last = match read < rows.len() {
            true => Some((self.entries.key(read - 1).to_vec(), rows[read - 1])),
            false => self.entries.last().filter(|_| more).map(|(key, row)| (key.to_vec(), row)),
        };
        note(&self.seeing, txn, newest);
        if let Some(reading) = &mut self.seeing.reading {
            let last = self.last.as_ref().map(|(key, _)| key.as_slice());
            let scanned = Scanned { index: &self.index, range: &self.range, reverse: self.reverse, last };
            let handle = TableHandle::of(&self.seeing.table)?;
            reading.note_keys(&handle.store, scanned, &self.seeing.view, &noted);
        }
        Ok((more, read))
    }
}

impl Scan for IndexScan {
    fn next(&mut self, txn: &mut dyn Txn, max: usize, out: &mut RowBatch) -> Result<bool> {
        Ok(self.advance(txn, max, |_| true, out)?.0)
    }

    fn next_taken(
        &mut self,
        txn: &mut dyn Txn,
        max: usize,
        takes: &mut dyn FnMut(BatchRow<'_>) -> bool,
        out: &mut RowBatch,
    ) -> Result<(bool, usize)> {
        self.advance(txn, max, takes, out)
    }

    fn ahead(&self) -> Option<u64> {
        None
    }

    fn take_part(&mut self, _from: u64, _until: u64) {}

    fn enter(&mut self, range: KeyRange) {
        self.range = range;
        self.last = None;
        self.entries.clear();
        self.is_done = false;
        if let Some(reading) = &mut self.seeing.reading {
            reading.growing = None;
        }
    }

    fn skip(&mut self, _numbers: u64) {}
}
