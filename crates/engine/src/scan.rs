//! Scans: over the rows in order of insertion, or over an index.

use std::ops::Bound;
use std::sync::Arc;

use base::{Result, RowId, Timestamp};
use engine_api::{KeyRange, RowBatch, Scan, ScanSpec, TableRef, Txn};
use mvcc::index::{self, Direction, EntryBatch, OrderedIndex as _};
use mvcc::{Read, View, ViewToken, pin};

use crate::shard::Shard;
use crate::storage::{IndexStore, TableHandle};
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
        None => store.begin_view(),
    };
    let seeing = Seeing { shard: txn.shard.clone(), table: spec.table.clone(), view, token: Some(token) };
    Ok(match spec.index {
        None => Box::new(RowScan { end: handle.store.rows.end(), next: RowId(0), seeing }),
        Some(oid) => Box::new(IndexScan {
            index: handle.index(oid)?.into_owned(),
            range: spec.range,
            reverse: spec.reverse,
            last: None,
            entries: EntryBatch::new(),
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
}

impl Drop for Seeing {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            self.shard.0.store.end_view(token);
        }
    }
}

/// Raises a transaction's gate to a commit. The scan is opened by a transaction of this engine, so it is read by one.
fn note(seeing: &Seeing, txn: &mut dyn Txn, ts: Timestamp) {
    if ts.0 != 0 {
        txn.raise_gate(seeing.shard.0.gates.of(ts, seeing.shard.durable()));
    }
}

struct RowScan {
    seeing: Seeing,
    next: RowId,
    end: RowId,
}

impl Scan for RowScan {
    fn next(&mut self, txn: &mut dyn Txn, max: usize, out: &mut RowBatch) -> Result<bool> {
        let handle = TableHandle::of(&self.seeing.table)?;
        let mut newest = Timestamp(0);
        let mut taken = 0;
        {
            let guard = pin();
            self.next = handle.store.rows.scan(self.next, self.end, &self.seeing.view, &guard, |row, read| {
                match read {
                    Read::Visible(version) => {
                        newest = newest.max(version.ts);
                        out.push(row, version.layout, version.tuple);
                        taken += 1;
                    }
                    Read::Gone(ts) => newest = newest.max(ts),
                    Read::Absent => {}
                }
                taken < max
            });
        }
        note(&self.seeing, txn, newest);
        Ok(self.next < self.end)
    }
}

/// A bound of a range, borrowed.
fn bytes(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
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
    /// The entry visited last.
    last: Option<(Vec<u8>, RowId)>,
    entries: EntryBatch,
}

impl Scan for IndexScan {
    fn next(&mut self, txn: &mut dyn Txn, max: usize, out: &mut RowBatch) -> Result<bool> {
        let handle = TableHandle::of(&self.seeing.table)?;
        self.entries.clear();
        let range = index::KeyRange::bounds(bytes(&self.range.lower), bytes(&self.range.upper));
        let direction = if self.reverse { Direction::Backward } else { Direction::Forward };
        let resume = self.last.as_ref().map(|(key, row)| (key.as_slice(), *row));
        let more = self.index.tree.scan(&range, direction, resume, ENTRIES.min(max), &mut self.entries);
        let Some((key, row)) = self.entries.last() else { return Ok(false) };
        self.last = Some((key.to_vec(), row));
        let mut newest = Timestamp(0);
        {
            let guard = pin();
            let mut scratch = Vec::new();
            for (key, row) in self.entries.iter() {
                match handle.store.rows.read(row, &self.seeing.view, &guard) {
                    Read::Visible(version) => {
                        newest = newest.max(version.ts);
                        if version.keys_diverged {
                            scratch.clear();
                            handle.shape.key(&self.index.desc, version.layout, version.tuple, &mut scratch);
                            if scratch != key {
                                continue;
                            }
                        }
                        out.push(row, version.layout, version.tuple);
                    }
                    Read::Gone(ts) => newest = newest.max(ts),
                    Read::Absent => {}
                }
            }
        }
        note(&self.seeing, txn, newest);
        Ok(more)
    }
}
