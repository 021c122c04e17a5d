//! Building an index while others write to its table (CREATE INDEX CONCURRENTLY).
//!
//! Requirement: when it is done, every row is found under the keys of all its versions, and in a unique index no two live rows
//! share a key. No transaction waits for the build.
//! Rules:
//! - The index is part of the table's definition, empty, before the build begins: who writes enters his own keys.
//! - A grace period passes first. A write pins itself before it looks which definition is in force, so when the period is over no
//!   write goes on that does not know of the index; what such writes left has a number below the table's end by then.
//! - In a unique index the check and the entry of a row's key are one step, under the key's latch, and the row is looked at again
//!   under it. The build waits for the writer of an undecided row: the row may have been written without a check.
//! - What aborts or is collected between the look at a row and the entry is found by a second look. A writer of the same key
//!   meanwhile may have found the entry that goes then, so a third look puts it back.
//!
//! If it fails, the index stays as it is: writers maintain and check it, and no statement reads it.

use std::sync::Arc;

use base::{Error, LayoutId, Oid, Result, RowId, Timestamp, TxnId, work};
use engine_api::Txn as _;
use engine_api::{Step, Wait};
use mvcc::index::OrderedIndex as _;
use mvcc::{Grace, Newest, pin};

use crate::index_build::build::{CannotEnter, Keys, keys_of};
use crate::memory::throttle::{PER_ENTRY, Purpose};
use crate::storage::shape::Shape;
use crate::storage::unique::{self, Entered, Stripes};
use crate::storage::{IndexStore, TableStore};
use crate::txn::Transaction;

/// Rows looked at between two turns for other connections.
const ROWS_PER_STEP: u64 = 1024;

/// What a row is of work: its versions are found, its keys made and entered.
const UNITS_PER_ROW: usize = 512;

/// A concurrent index build that goes on.
#[derive(Debug)]
pub(crate) struct Filling {
    index: Arc<IndexStore>,
    store: Arc<TableStore>,
    grace: Grace,
    next: RowId,
    /// Known once the grace period is over.
    end: Option<RowId>,
}

/// What became of one row.
enum Row {
    Entered,
    /// It changed while it was looked at.
    Again,
    /// The key of a version of it is to be prepared before.
    Long(LayoutId, Vec<u8>),
    /// `holder` has not decided about `row`.
    Undecided {
        holder: TxnId,
        row: RowId,
    },
}

impl Filling {
    fn enter(
        &self,
        shape: &Shape,
        stripes: &Stripes,
        row: RowId,
        own: TxnId,
        keys: &mut Keys,
    ) -> Result<Row, CannotEnter> {
        let (index, rows) = (&*self.index, &self.store.rows);
        let guard = pin();
        let versions = rows.versions(row, &guard);
        if let Some((layout, tuple)) = shape.first_long(index, &versions) {
            return Ok(Row::Long(layout, tuple.to_vec()));
        }
        match rows.newest(row, Some(own), &guard) {
            Newest::Undecided { holder, .. } if index.desc.unique => return Ok(Row::Undecided { holder, row }),
            Newest::Live(version) => {
                let mut key = Vec::new();
                let has_null = shape
                    .new_key(index, version.layout, version.tuple, &mut key)
                    .map_err(|error| CannotEnter::Refused(Box::new(error)))?;
                // It came meanwhile.
                let Some(has_null) = has_null else { return Ok(Row::Again) };
                let counts = !key.is_empty() && (!has_null || index.desc.nulls_not_distinct);
                if index.desc.unique && counts {
                    let _latch = stripes.latch(index, &key);
                    let is_same = matches!(rows.newest(row, Some(own), &guard),
                        Newest::Live(now) if std::ptr::eq(now.tuple, version.tuple));
                    if !is_same {
                        return Ok(Row::Again);
                    }
                    match unique::conflict(shape, rows, index, &key, row, own, &mut Timestamp(0)) {
                        Some(Entered::Undecided { holder, row }) => return Ok(Row::Undecided { holder, row }),
                        Some(Entered::Duplicate(_)) => {
                            return Err(CannotEnter::Duplicate(version.layout, version.tuple.to_vec()));
                        }
                        _ => {}
                    }
                    index.tree.insert(&key, row).map_err(CannotEnter::TooLong)?;
                }
            }
            _ => {}
        }
        let mut versions = rows.versions(row, &guard);
        keys_of(index, shape, &versions, keys);
        loop {
            if keys.len() > 1 {
                rows.mark_keys_diverged(row, &guard);
            }
            for key in keys.iter().filter(|key| !key.is_empty()) {
                index.tree.insert(key, row).map_err(CannotEnter::TooLong)?;
            }
            let entered = std::mem::take(keys);
            versions = rows.versions(row, &guard);
            keys_of(index, shape, &versions, keys);
            let gone = entered.iter().filter(|key| !key.is_empty() && !keys.contains(key));
            let mut any = false;
            for key in gone {
                rows.mark_keys_diverged(row, &guard);
                index.tree.remove(key, row);
                any = true;
            }
            if !any {
                return Ok(Row::Entered);
            }
            versions = rows.versions(row, &guard);
            keys_of(index, shape, &versions, keys);
        }
    }
}

impl Transaction {
    /// See [`engine_api::Txn::fill_index`].
    pub(crate) fn fill(&mut self, oid: Oid) -> Result<Step<()>> {
        self.start_writing()?;
        self.cancel_waiting();
        let mut filling = match self.definitions.filling.take() {
            Some(filling) => filling,
            None => self.begin_filling(oid)?,
        };
        if !filling.grace.is_over() {
            self.definitions.filling = Some(filling);
            return Ok(Step::Wait(Wait::yield_now()));
        }
        if let Some(wait) = self.ask_memory(Purpose::Grow, ROWS_PER_STEP as usize * PER_ENTRY)? {
            self.definitions.filling = Some(filling);
            return Ok(Step::Wait(wait));
        }
        let end = *filling.end.get_or_insert_with(|| filling.store.rows.end());
        let own = self.core.as_ref().expect("just started").id();
        let shape = filling.store.upkeep.current().shape.clone();
        let step = filling.next.0.saturating_add(ROWS_PER_STEP).min(end.0);
        let mut keys = Keys::new();
        while filling.next.0 < step {
            let row = filling.next;
            work::step(UNITS_PER_ROW)?;
            match filling.enter(&shape, &self.shard.0.stripes, row, own, &mut keys) {
                Ok(Row::Entered) => filling.next.0 += 1,
                Ok(Row::Again) => {}
                Ok(Row::Long(layout, tuple)) => shape.prepare(&filling.index, layout, &tuple, true)?,
                Ok(Row::Undecided { holder, row }) => {
                    let wait = self.wait_for(holder, &filling.store.rows, row)?;
                    if let Some(wait) = wait {
                        self.definitions.filling = Some(filling);
                        return Ok(Step::Wait(wait));
                    }
                }
                Err(why) => return Err(self.cannot_build(&filling.index, &shape, why)),
            }
        }
        if filling.next < end {
            self.definitions.filling = Some(filling);
            return Ok(Step::Wait(Wait::yield_now()));
        }
        Ok(Step::Ready(()))
    }

    fn begin_filling(&mut self, oid: Oid) -> Result<Filling> {
        let catalog = self.catalog();
        let gone = || Error::internal(format!("the index {oid} to be filled is not there"));
        let table = catalog.index(oid).and_then(|index| catalog.table(index.table)).ok_or_else(gone)?;
        let store = self.shard.0.storage(table)?;
        let index = store.upkeep.current().indexes.iter().find(|index| index.desc.oid == oid).cloned();
        let index = index.ok_or_else(gone)?;
        Ok(Filling { index, store, grace: Grace::begin(), next: RowId(0), end: None })
    }
}
