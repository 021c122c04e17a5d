//! Inserts, updates and deletes with their index entries.
//!
//! Invariants: what is long work is done while nothing is held. A version and its entries are there together or not at all when a call
//! answers; what is written is in the record.

use std::borrow::Cow;
use std::sync::Arc;

use base::{Error, LayoutId, Oid, Result, RowId, Timestamp, TxnId, work};
use engine_api::{ConflictArbiter, InsertOutcome, Isolation, Step, TableRef, Txn, Wait};
use mvcc::index::OrderedIndex as _;
use mvcc::{Newest, pin};
use smallvec::SmallVec;

use crate::catalog::Definitions;
use crate::locks::concurrent;
use crate::memory::throttle::Purpose;
use crate::storage::unique::{self, Entered, Stripes};
use crate::storage::{IndexStore, TableHandle, storage_id};
use crate::{commit, record};

use super::{KEPT_BYTES, Transaction};

/// A key that may be long work, and whether one of its columns is NULL, or why it cannot be computed.
pub(super) struct Ahead {
    key: Vec<u8>,
    has_null: Result<bool>,
}

/// The entries of a new version, while they are made.
struct Entering<'e> {
    stripes: &'e Stripes,
    handle: &'e TableHandle,
    row: RowId,
    own: TxnId,
    /// Positions of the indexes that have got one.
    entered: SmallVec<[usize; 8]>,
    /// The newest commit among those that made the keys free.
    free: Timestamp,
    /// What stands in the way of a key, and the place of its index.
    blocked: Option<(usize, Entered)>,
}

impl<'e> Entering<'e> {
    fn new(stripes: &'e Stripes, handle: &'e TableHandle, row: RowId, own: TxnId) -> Entering<'e> {
        Entering { stripes, handle, row, own, entered: SmallVec::new(), free: Timestamp(0), blocked: None }
    }

    /// Makes the entry of a key in the index at a place; `false` if something stands in its way. An entry that is there already is of an
    /// older version of the row and stays whatever comes.
    #[inline]
    fn enter(&mut self, at: usize, key: &[u8], has_null: bool, unproven: &mut Vec<(Oid, RowId)>) -> bool {
        let index = &self.handle.indexes[at];
        let is_added =
            match unique::enter(self.stripes, self.handle, index, key, has_null, self.row, self.own, &mut self.free) {
                Entered::Done(is_added) => is_added,
                Entered::Unproven(is_added) => {
                    unproven.push((index.desc.oid, self.row));
                    is_added
                }
                other => {
                    self.blocked = Some((at, other));
                    return false;
                }
            };
        if is_added {
            self.entered.push(at);
        }
        true
    }

    /// Makes the entry of a key of which nothing is asked: the transaction has dropped the index.
    fn enter_unasked(&mut self, at: usize, key: &[u8]) {
        if unique::enter_unasked(&self.handle.indexes[at], key, self.row) {
            self.entered.push(at);
        }
    }

    /// Takes the entries of a tuple out again.
    #[cold]
    fn undo(&self, layout: LayoutId, tuple: &[u8]) {
        let mut key = Vec::new();
        for index in self.entered.iter().map(|&at| &self.handle.indexes[at]) {
            key.clear();
            self.handle.shape.key(index, layout, tuple, &mut key);
            if !key.is_empty() {
                index.tree.remove(&key, self.row);
            }
        }
    }
}

impl Transaction {
    /// What to write through: the table as it was opened, or as it is defined now if that has changed since – an index may
    /// have been made –, and the layout that the caller's tuples are in. The table's lock keeps it so until the end of the
    /// transaction.
    ///
    /// # Errors
    /// XX000 if the table was truncated or dropped since it was opened: the rows would be lost.
    pub fn open_to_write<'t>(&mut self, table: &'t TableRef) -> Result<(LayoutId, Cow<'t, TableHandle>)> {
        let opened = TableHandle::of(table)?;
        let layout = opened.shape.newest_layout();
        if opened.is_current() && self.definitions.changes.is_empty() {
            return Ok((layout, Cow::Borrowed(opened)));
        }
        let own = self.catalog();
        let desc = own.table(opened.desc.oid).filter(|desc| storage_id(desc) == opened.store.id);
        match desc {
            Some(_) if opened.is_current() => Ok((layout, Cow::Borrowed(opened))),
            Some(desc) if !opened.store.is_abandoned() => {
                Ok((layout, Cow::Owned(TableHandle::open(desc.clone(), Arc::clone(&opened.store)))))
            }
            _ => Err(Error::internal(format!("table \"{}\" has other rows since it was opened", opened.desc.name))),
        }
    }

    /// Begins a write of so many bytes: it may have to wait for memory or for the log.
    #[inline]
    fn begin_write(&mut self, purpose: Purpose, bytes: usize) -> Result<Option<Wait>> {
        self.start_writing()?;
        let wait = match self.ask_memory(purpose, bytes)? {
            None => commit::send_ahead(self)?,
            wait => wait,
        };
        if wait.is_some() {
            self.cancel_wait();
        }
        Ok(wait)
    }

    /// Inserts a row and enters its keys. After a wait for a key's holder the call keeps its place in the line until it
    /// knows more.
    pub(super) fn insert_row(
        &mut self,
        table: &TableRef,
        tuple: &[u8],
        arbiter: ConflictArbiter,
    ) -> Result<Step<InsertOutcome>> {
        let result = loop {
            if let Some(result) = self.try_insert(table, tuple, arbiter).transpose() {
                break result;
            }
        };
        if !matches!(result, Ok(Step::Wait(_))) {
            self.cancel_wait();
        }
        result
    }

    /// Inserts a row; `None` if that is to be tried again. What is long work is done while nothing is held.
    pub(super) fn try_insert(
        &mut self,
        table: &TableRef,
        tuple: &[u8],
        arbiter: ConflictArbiter,
    ) -> Result<Option<Step<InsertOutcome>>> {
        if let Some(wait) = self.begin_write(Purpose::Grow, tuple.len())? {
            return Ok(Some(Step::Wait(wait)));
        }
        // Around the look at the definition too: an index build waits for who goes by the one before (`concurrent_build`).
        let guard = pin();
        let (layout, handle) = self.open_to_write(table)?;
        let handle = &*handle;
        let any_long = handle.indexes.iter().any(|index| handle.shape.may_be_long(index, tuple));
        if any_long && let Some(at) = self.compute_ahead(handle, layout, tuple) {
            let index = &handle.indexes[at];
            drop(guard);
            let asked = !Transaction::has_dropped(&self.definitions, index.desc.oid);
            handle.shape.prepare(index, layout, tuple, asked)?;
            return Ok(None);
        }
        // A row that the arbiter finds is the answer, whatever else the new one would violate.
        let arbiter_first = match arbiter {
            ConflictArbiter::Index(oid) => handle.indexes.iter().position(|index| index.desc.oid == oid),
            _ => None,
        };
        let core = self.core.as_mut().expect("started above");
        let mark = core.mark();
        let row = handle.store.rows.insert(core, self.command, layout, tuple, &guard);
        let mut entering = Entering::new(&self.shard.0.stripes, handle, row, core.id());
        let key = &mut self.keys.1;
        let mut refused = None;
        let unproven = self.unproven.len();
        for at in arbiter_first.into_iter().chain((0..handle.indexes.len()).filter(|at| Some(*at) != arbiter_first)) {
            let index = &handle.indexes[at];
            key.clear();
            let computed = if any_long && handle.shape.may_be_long(index, tuple) {
                let ahead = &mut self.ahead[at];
                key.extend_from_slice(&ahead.key);
                std::mem::replace(&mut ahead.has_null, Ok(false))
            } else {
                Ok(handle.shape.plain_key(&index.desc, layout, tuple, key))
            };
            if Transaction::has_dropped(&self.definitions, index.desc.oid) {
                entering.enter_unasked(at, key);
                continue;
            }
            let has_null = match computed {
                Ok(has_null) => has_null,
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            };
            if !entering.enter(at, key, has_null, &mut self.unproven) {
                break;
            }
        }
        if refused.is_some() || entering.blocked.is_some() {
            self.unproven.truncate(unproven);
            entering.undo(layout, tuple);
            self.shard.0.store.undo_to(core, mark);
        }
        if let Some(error) = refused {
            return Err(error);
        }
        let Entering { free, blocked, .. } = entering;
        let Some((index, why)) = blocked else {
            self.note_up_to(free);
            self.rest_on(free);
            if self.redo.len() >= KEPT_BYTES && self.redo.capacity() - self.redo.len() < tuple.len() + KEPT_BYTES / 64 {
                self.lengthen(tuple.len());
            }
            record::insert(&mut self.redo, handle.store.id, row, layout, tuple);
            self.note_size();
            return Ok(Some(Step::Ready(InsertOutcome::Inserted(row))));
        };
        let index = &handle.indexes[index];
        let takes = match arbiter {
            ConflictArbiter::None => false,
            ConflictArbiter::Any => true,
            ConflictArbiter::Index(oid) => oid == index.desc.oid,
        };
        match why {
            Entered::Duplicate(other) if takes => {
                self.check_in_snapshot(handle, other)?;
                Ok(Some(Step::Ready(InsertOutcome::Conflict(other))))
            }
            why => {
                drop(guard);
                Ok(self.clear_the_way(handle, index, why, row, layout, tuple)?.map(Step::Wait))
            }
        }
    }

    /// Replaces the newest version of a row and enters the keys that differ; waits as [`Transaction::insert_row`] does.
    pub(super) fn update_row(&mut self, table: &TableRef, row: RowId, tuple: &[u8]) -> Result<Step<()>> {
        let mut old = std::mem::take(&mut self.scratch);
        let result = loop {
            if let Some(result) = self.try_update(table, row, tuple, &mut old).transpose() {
                break result;
            }
        };
        self.scratch = old;
        if !matches!(result, Ok(Step::Wait(_))) {
            self.cancel_wait();
        }
        result
    }

    /// See [`Transaction::try_insert`].
    pub(super) fn try_update(
        &mut self,
        table: &TableRef,
        row: RowId,
        tuple: &[u8],
        old: &mut Vec<u8>,
    ) -> Result<Option<Step<()>>> {
        if let Some(wait) = self.begin_write(Purpose::Change, tuple.len())? {
            return Ok(Some(Step::Wait(wait)));
        }
        let whole = pin();
        let (layout, handle) = self.open_to_write(table)?;
        let handle = &*handle;
        let own = self.core.as_ref().expect("started above").id();
        old.clear();
        let old_layout = {
            let guard = pin();
            match handle.store.rows.newest(row, Some(own), &guard) {
                Newest::Live(version) => {
                    work::append_unstopped(old, version.tuple);
                    version.layout
                }
                _ => return Err(Error::internal(format!("update of row {row} that is not there"))),
            }
        };
        // Keys that are computed may be refused: that is known before anything is written.
        let any_long = handle
            .indexes
            .iter()
            .any(|index| handle.shape.may_be_long(index, tuple) || handle.shape.may_be_long(index, old));
        // Who has waited looks first whether the way is free: to write and undo again would wake others for nothing.
        let look_first = self.core.as_ref().is_some_and(|core| core.is_waiting());
        let guard = pin();
        let core = self.core.as_mut().expect("started above");
        let mark = core.mark();
        let (before, after) = &mut self.keys;
        let mut differs = false;
        let mut entering = Entering::new(&self.shard.0.stripes, handle, row, own);
        let mut long = None;
        for (at, index) in handle.indexes.iter().enumerate() {
            if old_layout == layout && handle.shape.keeps_key(index, layout, old, tuple) {
                continue;
            }
            before.clear();
            after.clear();
            let is_dropped = Transaction::has_dropped(&self.definitions, index.desc.oid);
            if handle.shape.old_key(index, old_layout, old, before).is_none() {
                long = Some((index, old_layout, &old[..], false));
                break;
            }
            let Some(has_null) = handle
                .shape
                .new_key(index, layout, tuple, after)
                .or_else(|error| if is_dropped { Ok(Some(false)) } else { Err(error) })?
            else {
                long = Some((index, layout, tuple, !is_dropped));
                break;
            };
            if is_dropped {
                differs |= before != after;
                continue;
            }
            if before == after {
                continue;
            }
            differs = true;
            if !look_first && !any_long {
                break;
            }
            let counts = !has_null || index.desc.nulls_not_distinct;
            if look_first && index.desc.is_immediate() && counts && !after.is_empty() {
                let free = &mut entering.free;
                let conflict = unique::conflict(&handle.shape, &handle.store.rows, index, after, row, own, free);
                entering.blocked = conflict.map(|conflict| (at, conflict));
            }
            if entering.blocked.is_some() {
                break;
            }
        }
        if let Some((index, layout, tuple, asked)) = long {
            drop((guard, whole));
            handle.shape.prepare(index, layout, tuple, asked)?;
            return Ok(None);
        }
        if entering.blocked.is_none() {
            // The version comes before its entries: who finds an entry must find out that it is undecided.
            handle.store.rows.update(core, row, self.command, layout, tuple, differs, &guard);
            let unproven = self.unproven.len();
            let changing = if differs { &handle.indexes[..] } else { &[] };
            for (at, index) in changing.iter().enumerate() {
                before.clear();
                after.clear();
                handle.shape.key(index, old_layout, old, before);
                let has_null = handle.shape.key(index, layout, tuple, after);
                if before == after {
                    continue;
                }
                if Transaction::has_dropped(&self.definitions, index.desc.oid) {
                    entering.enter_unasked(at, after);
                } else if !entering.enter(at, after, has_null, &mut self.unproven) {
                    break;
                }
            }
            if entering.blocked.is_some() {
                self.unproven.truncate(unproven);
                entering.undo(layout, tuple);
                self.shard.0.store.undo_to(core, mark);
            }
        }
        let Entering { free, blocked, .. } = entering;
        drop(guard);
        let Some((index, why)) = blocked else {
            self.note_up_to(free);
            self.rest_on(free);
            record::update(&mut self.redo, handle.store.id, row, layout, old, tuple);
            self.note_size();
            return Ok(Some(Step::Ready(())));
        };
        drop(whole);
        Ok(self.clear_the_way(handle, &handle.indexes[index], why, row, layout, tuple)?.map(Step::Wait))
    }

    /// Ends a row; never a wait: this is what makes room.
    pub(super) fn delete_row(&mut self, table: &TableRef, row: RowId) -> Result<()> {
        self.start_writing()?;
        // Never a wait: this is what makes room.
        let _none = self.ask_memory(Purpose::Shrink, 0)?;
        let (_, handle) = self.open_to_write(table)?;
        let core = self.core.as_mut().expect("started above");
        let guard = pin();
        handle.store.rows.delete(core, row, self.command, &guard);
        record::delete(&mut self.redo, handle.store.id, row);
        self.note_size();
        Ok(())
    }

    /// See [`engine_api::Txn::prove_unique`]; waits as [`Transaction::insert_row`] does.
    pub(super) fn prove(&mut self, table: &TableRef, index: Oid, row: RowId) -> Result<Step<()>> {
        let (_, handle) = self.open_to_write(table)?;
        let handle = &*handle;
        let Some(index) = handle.indexes.iter().find(|i| i.desc.oid == index) else { return Ok(Step::Ready(())) };
        let Some(own) = self.core.as_ref().map(|core| core.id()) else { return Ok(Step::Ready(())) };
        let (shape, rows) = (&handle.shape, &handle.store.rows);
        let (layout, tuple) = {
            let guard = pin();
            match rows.newest(row, Some(own), &guard) {
                Newest::Live(version) => (version.layout, version.tuple.to_vec()),
                _ => return Ok(Step::Ready(())),
            }
        };
        loop {
            let key = &mut self.keys.1;
            key.clear();
            let Some(has_null) = shape.old_key(index, layout, &tuple, key) else {
                shape.prepare(index, layout, &tuple, true)?;
                continue;
            };
            if key.is_empty() || (has_null && !index.desc.nulls_not_distinct) {
                return Ok(Step::Ready(()));
            }
            let mut free = Timestamp(0);
            let Some(why) = unique::conflict(shape, rows, index, key, row, own, &mut free) else {
                self.note_up_to(free);
                return Ok(Step::Ready(()));
            };
            if let Some(wait) = self.clear_the_way(handle, index, why, row, layout, &tuple)? {
                return Ok(Step::Wait(wait));
            }
        }
    }

    /// What to do about a key – it is in `keys.1` – that could not be entered for `row`: fail, wait, or – if its holder has
    /// decided or taken it back meanwhile – try again.
    pub(super) fn clear_the_way(
        &mut self,
        handle: &TableHandle,
        index: &IndexStore,
        why: Entered,
        row: RowId,
        layout: LayoutId,
        tuple: &[u8],
    ) -> Result<Option<engine_api::Wait>> {
        match why {
            Entered::Duplicate(other) => {
                let ts = self.note_row(handle, other);
                commit::check_reads(self, handle, layout, tuple)?;
                self.note_read_row(handle, other, ts);
                let catalog = self.catalog();
                Err(unique::violation(&catalog, handle, index, layout, tuple))
            }
            Entered::Undecided { holder, row: other } => {
                let wait = self.wait_for(holder, &handle.store.rows, other)?;
                let own = self.core.as_ref().expect("a writer has started").id();
                let (shape, rows, mut free) = (&handle.shape, &handle.store.rows, Timestamp(0));
                // If it is found free, it is entered anew, and what that depends on is noted then.
                let again = unique::conflict(shape, rows, index, &self.keys.1, row, own, &mut free);
                if again == Some(Entered::Undecided { holder, row: other }) {
                    return Ok(wait);
                }
                // It went before the holder could know that somebody waits.
                self.cancel_wait();
                Ok(None)
            }
            Entered::TooLong(key) => Err(unique::too_long(index, key)),
            Entered::Done(_) | Entered::Unproven(_) => Ok(None),
        }
    }

    /// Notes that ON CONFLICT depends on a row that is in the way.
    ///
    /// # Errors
    /// 40001 if the transaction's snapshot does not have it.
    pub(super) fn check_in_snapshot(&mut self, handle: &TableHandle, row: RowId) -> Result<()> {
        let ts = self.note_row(handle, row);
        if self.options.isolation != Isolation::ReadCommitted && ts > self.view().read_ts {
            return Err(concurrent("update"));
        }
        self.note_read_row(handle, row, ts);
        Ok(())
    }

    /// Computes the keys of a tuple that may be long work into `ahead`; answers the first index whose key is.
    pub(super) fn compute_ahead(&mut self, handle: &TableHandle, layout: LayoutId, tuple: &[u8]) -> Option<usize> {
        self.ahead.resize_with(handle.indexes.len(), || Ahead { key: Vec::new(), has_null: Ok(false) });
        self.ahead.iter_mut().zip(handle.indexes.iter()).position(|(ahead, index)| {
            ahead.key.clear();
            if !handle.shape.may_be_long(index, tuple) {
                return false;
            }
            let has_null = handle.shape.new_key(index, layout, tuple, &mut ahead.key).transpose();
            let is_long = has_null.is_none();
            ahead.has_null = has_null.unwrap_or(Ok(false));
            is_long
        })
    }

    /// Whether this transaction has dropped an index. Until it commits entries are made, but nothing is asked of them.
    #[inline]
    pub(super) fn has_dropped(definitions: &Definitions, index: Oid) -> bool {
        let last = || definitions.changes.iter().rev().find(|(oid, _)| *oid == index);
        !definitions.changes.is_empty() && last().is_some_and(|(_, object)| object.is_none())
    }
}
