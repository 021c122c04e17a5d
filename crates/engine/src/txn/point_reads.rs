//! Reading rows by a key of an index or by their number, and noting what a SERIALIZABLE transaction has read.

use std::sync::Arc;

use base::{Oid, Result, RowId, Timestamp};
use engine_api::{RowBatch, TableRef};
use mvcc::index::OrderedIndex as _;
use mvcc::{Newest, Read, ReadVersion, pin};

use crate::reads::Span;
use crate::storage::{IndexStore, TableHandle};

use super::Transaction;

impl Transaction {
    /// See [`engine_api::Txn::get`]: at most so many rows.
    pub(super) fn get_visible(
        &mut self,
        table: &TableRef,
        index: Oid,
        key: &[u8],
        most: usize,
        out: &mut RowBatch,
    ) -> Result<()> {
        let handle = TableHandle::of(table)?;
        let index = handle.index(index)?;
        let first = out.len();
        self.push_visible(handle, &index, key, most, false, out);
        if self.reads.is_some() {
            self.note_read_key(handle, &index, key, self.view().read_ts, out, first);
        }
        Ok(())
    }

    /// See [`engine_api::Txn::get_referenced`].
    pub(super) fn get_for_reference(
        &mut self,
        table: &TableRef,
        index: Oid,
        key: &[u8],
        newest: bool,
        out: &mut RowBatch,
    ) -> Result<()> {
        let handle = TableHandle::of(table)?;
        let index = handle.index(index)?;
        let first = out.len();
        // Before the look: what comes after it was not seen.
        let as_of = if newest { self.shard.0.store.horizon() } else { self.view().read_ts };
        self.push_visible(handle, &index, key, usize::MAX, newest, out);
        if self.reads.is_some() && out.len() == first {
            self.note_read_key(handle, &index, key, as_of, out, first);
        }
        Ok(())
    }

    /// See [`engine_api::Txn::fetch`].
    pub(super) fn fetch_visible(&mut self, table: &TableRef, row: RowId, out: &mut RowBatch) -> Result<bool> {
        let handle = TableHandle::of(table)?;
        let view = self.view();
        let (ts, found) = {
            let guard = pin();
            match handle.store.rows.read(row, &view, &guard) {
                Read::Visible(version) => {
                    out.push(row, version.layout, version.writer, version.tuple);
                    if version.ts.0 != 0
                        && let Some(reads) = &self.reads
                    {
                        reads.lock().add_row(&handle.store, row, view.read_ts);
                    }
                    (version.ts, true)
                }
                Read::Gone(ts) => (ts, false),
                Read::Absent => (Timestamp(0), false),
            }
        };
        self.note(ts);
        Ok(found)
    }

    /// Appends visible rows of a list found under `key` in an index, at most so many (R6: only under the key of what is seen).
    pub(super) fn push_visible(
        &mut self,
        handle: &TableHandle,
        index: &IndexStore,
        key: &[u8],
        most: usize,
        newest: bool,
        out: &mut RowBatch,
    ) {
        let first = out.len();
        let view = self.view();
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        let mut seen = Timestamp(0);
        {
            // Around both: to pin again inside is cheap.
            let guard = pin();
            index.tree.get(key, &mut rows);
            let mut scratch = Vec::new();
            for &row in &rows {
                let version: Option<ReadVersion<'_>> = if newest {
                    match handle.store.rows.newest(row, view.own, &guard) {
                        Newest::Live(version) => Some(version),
                        Newest::Undecided { decided, .. } => decided,
                        Newest::Deleted(ts) => {
                            seen = seen.max(ts);
                            None
                        }
                        Newest::Absent => None,
                    }
                } else {
                    match handle.store.rows.read(row, &view, &guard) {
                        Read::Visible(version) => Some(version),
                        Read::Gone(ts) => {
                            seen = seen.max(ts);
                            None
                        }
                        Read::Absent => None,
                    }
                };
                let Some(version) = version else { continue };
                seen = seen.max(version.ts);
                if version.keys_diverged {
                    scratch.clear();
                    handle.shape.key(index, version.layout, version.tuple, &mut scratch);
                    if scratch != key {
                        continue;
                    }
                }
                out.push(row, version.layout, version.writer, version.tuple);
                if out.len() - first == most {
                    break;
                }
            }
        }
        if newest {
            self.rest_on(seen);
        }
        let is_one = rows.len() <= 1;
        self.rows = rows;
        if is_one { self.note(seen) } else { self.note_up_to(seen) }
    }

    /// An error about a row depends on the commit that made it, which is returned (0: an own version, or none).
    pub(super) fn note_row(&mut self, handle: &TableHandle, row: RowId) -> Timestamp {
        let own = self.core.as_ref().map(|c| c.id());
        let ts = {
            let guard = pin();
            match handle.store.rows.newest(row, own, &guard) {
                Newest::Live(version) | Newest::Undecided { decided: Some(version), .. } => version.ts,
                _ => Timestamp(0),
            }
        };
        self.note(ts);
        ts
    }

    /// Notes that a SERIALIZABLE transaction depends on a commit that its snapshot may not have.
    #[inline]
    pub(super) fn rest_on(&self, ts: Timestamp) {
        if ts.0 != 0
            && let Some(reads) = &self.reads
        {
            reads.lock().rest_on(ts);
        }
    }

    /// Notes that a SERIALIZABLE transaction depends on a row as the commit at `ts` left it (0: its own).
    pub(super) fn note_read_row(&self, handle: &TableHandle, row: RowId, ts: Timestamp) {
        if ts.0 != 0
            && let Some(reads) = &self.reads
        {
            reads.lock().add_row(&handle.store, row, ts);
        }
    }

    /// Notes what a SERIALIZABLE transaction read under a key: the row, if it is the only one that can have the key;
    /// otherwise all that have it, or will.
    pub(super) fn note_read_key(
        &self,
        handle: &TableHandle,
        index: &Arc<IndexStore>,
        key: &[u8],
        as_of: Timestamp,
        out: &RowBatch,
        first: usize,
    ) {
        let Some(reads) = &self.reads else { return };
        let is_only = index.desc.is_immediate() && out.len() == first + 1 && {
            let row = out.row(first);
            !handle.shape.has_null_key(index, row.layout, row.tuple)
        };
        let mut reads = reads.lock();
        if !is_only {
            reads.add_range(&handle.store, Span::point(index, key), as_of);
        }
        if is_only || self.held.is_some() {
            let guard = pin();
            for row in (first..out.len()).map(|at| out.row(at).row) {
                // Own rows are kept by their locks.
                if handle.store.rows.last_commit(row, &guard).is_some() {
                    reads.add_row(&handle.store, row, as_of);
                }
            }
        }
    }
}
