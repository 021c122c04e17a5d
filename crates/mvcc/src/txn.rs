//! What one transaction has written and locked, in order.
//!
//! Responsible for: the token that writes go through, its log of writes and locks, savepoints over it.
//! Not responsible for: the transaction's fate (`store`).
//! Invariants
//! - **T1** There is one token per TxnId and it cannot be copied; every write borrows it mutably.
//! - **T2** The log names every lock held, except one handed over of which the transaction has not taken notice: that is
//!   `waiting`.

use std::sync::Arc;

use base::{Oid, RowId, TxnId};
use smallvec::SmallVec;

use crate::locks::table::WEAK_LOCKS;
use crate::locks::{AdvisoryKey, Modes};
use crate::log::Log;
use crate::store::Shared;
use crate::table::Table;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    Inserted { table: u16, row: RowId },
    Wrote { table: u16, row: RowId },
    RowLock { table: u16, row: RowId, before: Modes },
    TableLock { oid: Oid, before: Modes },
}

/// A table lock that is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableLock {
    pub oid: Oid,
    pub modes: Modes,
    /// The word of the slot that it is in, unless somebody has moved it to the queue meanwhile; `None`: in the queue.
    pub weak: Option<usize>,
}

/// What a blocked transaction stands in line for.
#[derive(Clone, Debug)]
pub(crate) enum Waiting {
    Row(Arc<Table>, RowId),
    Table(Oid),
    End(TxnId),
    Advisory(AdvisoryKey),
}

/// A point in a transaction that it can go back to; by default its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TxnMark(usize);

/// A transaction that may write and lock. End it with [`Store::finish_commit`](crate::Store::finish_commit) or
/// [`Store::abort`](crate::Store::abort); dropping it otherwise leaves its locks and its slot behind.
#[derive(Debug)]
#[must_use = "a transaction that is not ended keeps its locks"]
pub struct Transaction {
    id: TxnId,
    /// Address of the store it belongs to.
    store: usize,
    tables: SmallVec<[Arc<Table>; 2]>,
    pub(crate) log: Log,
    table_locks: SmallVec<[TableLock; 4]>,
    pub(crate) waiting: Option<Waiting>,
    /// Steps done of its end, once it is published: see [`Store::finish_some`](crate::Store::finish_some).
    pub(crate) finished: usize,
}

impl Transaction {
    #[inline]
    pub(crate) fn new(id: TxnId, shared: &Arc<Shared>) -> Transaction {
        Transaction {
            id,
            store: Arc::as_ptr(shared).addr(),
            tables: SmallVec::new(),
            log: Log::default(),
            table_locks: SmallVec::new(),
            waiting: None,
            finished: 0,
        }
    }

    /// Its id.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// A point to go back to with [`Store::undo_to`](crate::Store::undo_to).
    pub fn mark(&self) -> TxnMark {
        TxnMark(self.log.len())
    }

    /// Bytes of its list of writes and locks, if that is long.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.log.held_bytes()
    }

    /// How much it has written and locked: its end takes as long.
    pub fn size(&self) -> usize {
        self.log.len()
    }

    /// Where it was `count` entries ago, if it has as many.
    pub(crate) fn mark_before(&self, count: usize) -> Option<TxnMark> {
        self.log.len().checked_sub(count).map(TxnMark)
    }

    /// Whether it has written rows.
    pub fn has_writes(&self) -> bool {
        self.log.iter().any(|e| matches!(e, Entry::Inserted { .. } | Entry::Wrote { .. }))
    }

    /// Whether it has written or locked rows.
    pub fn has_rows(&self) -> bool {
        self.log.iter().any(|e| !matches!(e, Entry::TableLock { .. }))
    }

    /// Its writes in order, one per version: the table, the row, and whether it was inserted here. A row can come more
    /// than once.
    pub fn writes(&self) -> impl Iterator<Item = (&Arc<Table>, RowId, bool)> + '_ {
        self.log.iter().filter_map(|entry| match *entry {
            Entry::Inserted { table, row } => Some((&self.tables[table as usize], row, true)),
            Entry::Wrote { table, row } => Some((&self.tables[table as usize], row, false)),
            Entry::RowLock { .. } | Entry::TableLock { .. } => None,
        })
    }

    /// The tables it has locked, with the modes as bits.
    pub fn table_locks(&self) -> impl Iterator<Item = (Oid, u8)> + '_ {
        self.table_locks.iter().map(|lock| (lock.oid, lock.modes))
    }

    pub(crate) fn held_tables(&self) -> &[TableLock] {
        &self.table_locks
    }

    /// Whether a call of it stands in line.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// A token of another store would prove nothing.
    pub(crate) fn check(&self, shared: &Arc<Shared>) {
        base::invariant!(self.store == Arc::as_ptr(shared).addr(), "{:?} belongs to another store", self.id);
    }

    fn number_of(&mut self, table: &Arc<Table>) -> u16 {
        // From the end: the table written last is the likely one.
        if let Some(at) = self.tables.iter().rposition(|t| Arc::ptr_eq(t, table)) {
            return at as u16;
        }
        self.tables.push(table.clone());
        u16::try_from(self.tables.len() - 1).expect("a transaction touches fewer than 65536 tables")
    }

    pub(crate) fn table(&self, number: u16) -> Arc<Table> {
        self.tables[number as usize].clone()
    }

    pub(crate) fn table_ref(&self, number: u16) -> &Arc<Table> {
        &self.tables[number as usize]
    }

    pub(crate) fn note_insert(&mut self, table: &Arc<Table>, row: RowId) {
        let table = self.number_of(table);
        self.log.push(Entry::Inserted { table, row });
    }

    pub(crate) fn note_write(&mut self, table: &Arc<Table>, row: RowId) {
        let table = self.number_of(table);
        self.log.push(Entry::Wrote { table, row });
    }

    pub(crate) fn note_row_lock(&mut self, table: &Arc<Table>, row: RowId, before: Modes) {
        let table = self.number_of(table);
        self.log.push(Entry::RowLock { table, row, before });
    }

    /// Takes down a lock of a table of which `before` was held.
    pub(crate) fn note_table_lock(&mut self, before: TableLock, lock: TableLock) {
        self.log.push(Entry::TableLock { oid: before.oid, before: before.modes });
        match before.modes {
            0 => self.table_locks.push(lock),
            _ => self.set_table_lock(lock),
        }
    }

    /// Replaces what is known of a table's lock.
    pub(crate) fn set_table_lock(&mut self, lock: TableLock) {
        match self.table_locks.iter().position(|known| known.oid == lock.oid) {
            Some(at) if lock.modes == 0 => drop(self.table_locks.swap_remove(at)),
            Some(at) => self.table_locks[at] = lock,
            None if lock.modes == 0 => {}
            None => self.table_locks.push(lock),
        }
    }

    /// What is held of a table; no modes if nothing is.
    pub(crate) fn table_lock(&self, oid: Oid) -> TableLock {
        let known = self.table_locks.iter().find(|lock| lock.oid == oid);
        known.copied().unwrap_or(TableLock { oid, modes: 0, weak: None })
    }

    /// A word of the slot for a weak lock on `table`: the one it has, or a free one.
    pub(crate) fn weak_word(&self, table: TableLock) -> Option<usize> {
        if table.modes != 0 {
            return table.weak;
        }
        let used = self.table_locks.iter().filter_map(|lock| lock.weak).fold(0u32, |used, at| used | 1 << at);
        let free = used.trailing_ones() as usize;
        (free < WEAK_LOCKS).then_some(free)
    }

    /// The places in the log of what came after `mark`.
    pub(crate) fn since(&self, mark: TxnMark) -> std::ops::Range<usize> {
        mark.0.min(self.log.len())..self.log.len()
    }

    pub(crate) fn pop_to(&mut self, mark: TxnMark) -> Option<Entry> {
        if self.log.len() > mark.0 { self.log.pop() } else { None }
    }

    pub(crate) const START: TxnMark = TxnMark(0);
}
