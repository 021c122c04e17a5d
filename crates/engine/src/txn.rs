//! One transaction: its view, its writes, its record for the log.
//!
//! Responsible for: commands and views, inserts, updates, deletes with their index entries, savepoints.
//! Not responsible for: outcomes of locks (`locks`), definitions (`catalog`), the way to durability (`commit`).
//! Invariant: `redo` says what `core` wrote, in the same order; savepoints cut both at the same place.

use std::borrow::Cow;
use std::sync::Arc;

use base::{CommandId, Ending, Error, LayoutId, Lsn, Oid, Result, RowId, SqlState, Timestamp, TxnId, Unseen, work};
use engine_api::{
    Catalog, CatalogObject, CommitOutcome, ConflictArbiter, Durability, Engine, InsertOutcome, Isolation, KeptView,
    MemoryKind, PreparedTransaction, RowBatch, RowLockMode, RowLockOutcome, Savepoint, Scan, ScanSpec, Step,
    TableLockMode, TableRef, Txn, TxnOptions, Wait, WaitCell, WaitPolicy,
};
use mvcc::index::{OrderedIndex as _, Rows};
use mvcc::{LockResult, Newest, Read, ReadVersion, TxnMark, View, ViewToken, pin};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::catalog::Definitions;
use crate::commit::{Look, Safety};
use crate::locks::concurrent;
use crate::reads::{ReadSet, Span};
use crate::shard::Shard;
use crate::storage::{IndexStore, TableHandle, storage_id};
use crate::throttle::{Pace, Purpose};
use crate::unique::{self, Entered};
use crate::{commit, prepared, record, scan};

/// Capacity of a buffer that the next transaction may have.
const KEPT_BYTES: usize = 16 << 10;

/// Writes that are undone in one part: less than a millisecond of work.
const UNDO_AT_ONCE: usize = 512;

/// What the lists of a transaction may grow by before that is charged to the budget.
const CHARGE_STEP: usize = 64 << 10;

/// Emptied buffers of long records, for the next ones: memory that is new to the process costs more than what is put into it.
#[derive(Default)]
pub(crate) struct LongRecords(Mutex<Vec<Vec<u8>>>);

impl LongRecords {
    /// Buffers that are kept, and how large they may be.
    const MOST: usize = 4;
    const BYTES_MAX: usize = 1 << 20;

    fn take(&self, capacity: usize) -> Option<Vec<u8>> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|buffer| buffer.capacity() >= capacity)?;
        Some(kept.swap_remove(at))
    }

    fn keep(&self, buffer: Vec<u8>) {
        let mut kept = self.0.lock();
        if kept.len() < LongRecords::MOST && buffer.capacity() <= LongRecords::BYTES_MAX {
            kept.push(buffer);
        }
    }
}

/// Where a savepoint cuts.
struct Mark {
    /// `None`: nothing was written or locked before.
    core: Option<TxnMark>,
    /// Bytes of the record, those gone ahead included.
    redo: u64,
    changes: usize,
    made: usize,
}

/// One transaction of a shard.
pub(crate) struct Transaction {
    pub shard: Shard,
    pub options: TxnOptions,
    /// There once something was written or locked.
    pub core: Option<mvcc::Transaction>,
    /// Held during a command; at REPEATABLE READ from the first command on.
    pub token: Option<ViewToken>,
    /// The transaction's view while a command has a newer one ([`Txn::begin_newest_command`]).
    pub held: Option<ViewToken>,
    pub command: CommandId,
    /// The newest command, while an older one goes on ([`Txn::resume_command`]).
    latest: CommandId,
    pub gate: Lsn,
    /// What was not sent ahead of the record.
    pub redo: Vec<u8>,
    /// Bytes of the record that are in the log already.
    pub redo_ahead: u64,
    pub definitions: Definitions,
    /// What it has read, if it is SERIALIZABLE and may write.
    pub reads: Option<Arc<Mutex<ReadSet>>>,
    /// Its place among the active SERIALIZABLE transactions.
    pub active: Option<commit::Number>,
    /// How far the look at `reads` before the commit has come.
    pub look: Look,
    /// How it waits for memory.
    pub pace: Pace,
    /// Bytes of its lists that are charged to the budget.
    charged: usize,
    /// It is committed, and this part of it is not finished.
    pub finishing: Option<Box<(mvcc::Transaction, Timestamp)>>,
    /// The record says that the transaction is prepared.
    pub is_sealed: bool,
    /// Nothing of it is left, and nothing has begun since: a second end has nothing to do.
    is_over: bool,
    /// It has said its id.
    is_id_shown: bool,
    /// What the view at this timestamp does not see, once that was asked for.
    unseen: Option<(Timestamp, Arc<Unseen>)>,
    marks: Vec<Mark>,
    scratch: Vec<u8>,
    /// Keys before and after a change, while it is entered.
    keys: (Vec<u8>, Vec<u8>),
    /// By index, keys that are computed before a row is written.
    ahead: Vec<Ahead>,
    rows: Rows,
    /// What [`Txn::take_unproven`] takes.
    unproven: Vec<(Oid, RowId)>,
}

/// A view that outlives its command.
struct Kept {
    shard: Shard,
    token: Option<ViewToken>,
    command: CommandId,
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            self.shard.0.store.end_view(token);
        }
    }
}

/// Empties a list of a transaction that ends, and gives back what the next one should not have to hold.
#[inline]
fn empty<T>(list: &mut Vec<T>) {
    list.clear();
    if list.capacity() > KEPT_BYTES / size_of::<T>() {
        list.shrink_to(KEPT_BYTES / size_of::<T>());
    }
}

/// Where a transaction notes what it reads, if it has to.
fn read_set(shard: &Shard, options: TxnOptions) -> Option<Arc<Mutex<ReadSet>>> {
    let tracks = options.isolation == Isolation::Serializable && !options.read_only;
    tracks.then(|| Arc::new(Mutex::new(ReadSet::new(shard.0.store.memory()))))
}

/// A key that may be long work, and whether one of its columns is NULL, or why it cannot be computed.
struct Ahead {
    key: Vec<u8>,
    has_null: Result<bool>,
}

/// Positions in a table's list of indexes.
type Entries = SmallVec<[usize; 8]>;

impl Transaction {
    pub fn new(shard: Shard, options: TxnOptions) -> Transaction {
        let reads = read_set(&shard, options);
        Transaction {
            shard,
            options,
            reads,
            active: None,
            look: Look::default(),
            pace: Pace::default(),
            charged: 0,
            finishing: None,
            is_sealed: false,
            is_over: false,
            is_id_shown: false,
            unseen: None,
            core: None,
            token: None,
            held: None,
            command: CommandId(0),
            latest: CommandId(0),
            gate: Lsn(0),
            redo: Vec::new(),
            redo_ahead: 0,
            definitions: Definitions::default(),
            marks: Vec::new(),
            scratch: Vec::new(),
            keys: (Vec::new(), Vec::new()),
            ahead: Vec::new(),
            rows: Rows::new(),
            unproven: Vec::new(),
        }
    }

    /// What the current command sees.
    pub fn view(&self) -> View {
        let read_ts = self.token.as_ref().map_or_else(|| self.shard.0.store.horizon(), ViewToken::read_ts);
        View { read_ts, own: self.core.as_ref().map(|c| c.id()), command: self.command }
    }

    /// Notes that something rests on the commit at `ts` (E2).
    #[inline]
    pub fn note(&mut self, ts: Timestamp) {
        if ts.0 != 0 {
            self.gate = self.gate.max(self.shard.0.gates.of(ts, self.shard.durable()));
        }
    }

    /// Notes that something rests on commits whose newest is that at `ts`.
    pub fn note_up_to(&mut self, ts: Timestamp) {
        if ts.0 != 0 {
            self.gate = self.gate.max(self.shard.0.gates.up_to(ts, self.shard.durable()));
        }
    }

    /// Notes that a command rests on the definitions in force.
    #[inline]
    fn note_catalog(&mut self) {
        self.note_up_to(self.shard.0.catalog_timestamp());
    }

    /// Takes an id, before the first write or lock.
    pub fn start_writing(&mut self) -> Result<()> {
        if self.core.is_none() {
            let core =
                self.shard.0.store.begin_txn_for(self.options.session).map_err(|_| {
                    Error::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, "too many transactions are active")
                })?;
            self.core = Some(core);
            self.is_over = false;
        }
        if self.command.0 > mvcc::COMMANDS_MAX {
            let message = "cannot have more than 2^31-1 commands in a transaction";
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(())
    }

    /// Makes room in a long record for so many bytes, in few steps: each of them copies it.
    #[cold]
    fn lengthen(&mut self, more: usize) {
        let capacity = 4 * self.redo.len() + more;
        match self.shard.0.long_records.take(capacity) {
            Some(mut longer) => {
                work::append_unstopped(&mut longer, &self.redo);
                self.redo = longer;
            }
            None => self.redo.reserve(capacity - self.redo.len()),
        }
    }

    /// The record is in the log.
    pub fn clear_record(&mut self) {
        self.redo.clear();
        self.redo_ahead = 0;
        if self.redo.capacity() > KEPT_BYTES {
            self.shard.0.long_records.keep(std::mem::take(&mut self.redo));
        }
    }

    /// Charges what the lists of a long transaction hold, a step at a time; those of a short one are its session's.
    #[inline]
    fn note_size(&mut self) {
        let held = self.redo.capacity() + self.core.as_ref().map_or(0, mvcc::Transaction::held_bytes);
        if held > self.charged + CHARGE_STEP {
            self.charge(held);
        }
    }

    /// Says what the lists hold from now on.
    fn charge(&mut self, held: usize) {
        let change = held as i64 - self.charged as i64;
        if change != 0 {
            self.shard.0.store.memory().charge_other(MemoryKind::Transactions as usize, change);
            self.charged = held;
        }
    }

    pub fn own_catalog(&mut self) -> Arc<Catalog> {
        let committed = self.shard.catalog();
        if self.definitions.changes.is_empty() { committed } else { self.definitions.catalog(committed) }
    }

    /// Takes the entries of a tuple out of these indexes again.
    fn remove_entries(handle: &TableHandle, entered: &[usize], row: RowId, layout: LayoutId, tuple: &[u8]) {
        let mut key = Vec::new();
        for index in entered.iter().map(|&at| &handle.indexes[at]) {
            key.clear();
            handle.shape.key(index, layout, tuple, &mut key);
            if !key.is_empty() {
                index.tree.remove(&key, row);
            }
        }
    }

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
        let own = self.own_catalog();
        let desc = own.table(opened.desc.oid).filter(|desc| storage_id(desc) == opened.store.id);
        match desc {
            Some(_) if opened.is_current() => Ok((layout, Cow::Borrowed(opened))),
            Some(desc) if !opened.store.is_abandoned() => {
                Ok((layout, Cow::Owned(TableHandle::open(desc.clone(), Arc::clone(&opened.store)))))
            }
            _ => Err(Error::internal(format!("table \"{}\" has other rows since it was opened", opened.desc.name))),
        }
    }

    /// Whether this transaction has dropped an index. Until it commits entries are made, but nothing is asked of them.
    #[inline]
    fn has_dropped(definitions: &Definitions, index: Oid) -> bool {
        let last = || definitions.changes.iter().rev().find(|(oid, _)| *oid == index);
        !definitions.changes.is_empty() && last().is_some_and(|(_, object)| object.is_none())
    }

    /// Gives up the wait that the last call returned.
    pub fn cancel_waiting(&mut self) {
        if let Some(core) = &mut self.core {
            self.shard.0.store.cancel_wait(core);
        }
    }

    /// Waits for the transaction that has not decided about a row that has a key.
    pub fn wait_for(&mut self, holder: TxnId, rows: &mvcc::Table, row: RowId) -> Result<Option<engine_api::Wait>> {
        let (wait, wake) = crate::locks::wakeup();
        let core = self.core.as_mut().expect("a writer has started");
        match self.shard.0.store.wait_for_txn(core, holder, rows, row, &wake) {
            LockResult::Wait => Ok(Some(wait)),
            LockResult::Deadlock(cycle) => Err(self.deadlock_error(&cycle)),
            LockResult::Granted { .. } | LockResult::WouldBlock | LockResult::Gone => Ok(None),
        }
    }

    /// Inserts a row and enters its keys. After a wait for a key's holder the call keeps its place in the line until it
    /// knows more.
    fn insert_row(&mut self, table: &TableRef, tuple: &[u8], arbiter: ConflictArbiter) -> Result<Step<InsertOutcome>> {
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

    /// Computes the keys of a tuple that may be long work into `ahead`; answers the first index whose key is.
    fn compute_ahead(&mut self, handle: &TableHandle, layout: LayoutId, tuple: &[u8]) -> Option<usize> {
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

    /// Inserts a row; `None` if that is to be tried again. What is long work is done while nothing is held.
    fn try_insert(
        &mut self,
        table: &TableRef,
        tuple: &[u8],
        arbiter: ConflictArbiter,
    ) -> Result<Option<Step<InsertOutcome>>> {
        self.start_writing()?;
        if let Some(wait) = self.ask_memory(Purpose::Grow, tuple.len())? {
            self.cancel_wait();
            return Ok(Some(Step::Wait(wait)));
        }
        if let Some(wait) = commit::send_ahead(self)? {
            self.cancel_wait();
            return Ok(Some(Step::Wait(wait)));
        }
        // Around the look at the definition too: an index build waits for who goes by the one before (`beside`).
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
        let own = core.id();
        let key = &mut self.keys.1;
        let mut entered = Entries::new();
        let mut free = Timestamp(0);
        let mut blocked = None;
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
                unique::enter_unasked(index, key, row);
                entered.push(at);
                continue;
            }
            let has_null = match computed {
                Ok(has_null) => has_null,
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            };
            match unique::enter(&self.shard.0.stripes, handle, index, key, has_null, row, own, &mut free) {
                Entered::Done(_) => entered.push(at),
                Entered::Unproven(_) => {
                    entered.push(at);
                    self.unproven.push((index.desc.oid, row));
                }
                other => {
                    blocked = Some((index, other));
                    break;
                }
            }
        }
        if blocked.is_some() || refused.is_some() {
            self.unproven.truncate(unproven);
        }
        if let Some(error) = refused {
            Transaction::remove_entries(handle, &entered, row, layout, tuple);
            self.shard.0.store.undo_to(core, mark);
            return Err(error);
        }
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
        Transaction::remove_entries(handle, &entered, row, layout, tuple);
        self.shard.0.store.undo_to(core, mark);
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

    /// Notes that ON CONFLICT rests on a row that is in the way.
    ///
    /// # Errors
    /// 40001 if the transaction's snapshot does not have it.
    fn check_in_snapshot(&mut self, handle: &TableHandle, row: RowId) -> Result<()> {
        let ts = self.note_row(handle, row);
        if self.options.isolation != Isolation::ReadCommitted && ts > self.view().read_ts {
            return Err(concurrent("update"));
        }
        self.note_read_row(handle, row, ts);
        Ok(())
    }

    /// What to do about a key – it is in `keys.1` – that could not be entered for `row`: fail, wait, or – if its holder has
    /// decided or taken it back meanwhile – try again.
    fn clear_the_way(
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
                let catalog = self.own_catalog();
                Err(unique::violation(&catalog, handle, index, layout, tuple))
            }
            Entered::Undecided { holder, row: other } => {
                let wait = self.wait_for(holder, &handle.store.rows, other)?;
                let own = self.core.as_ref().expect("a writer has started").id();
                let (shape, rows, mut free) = (&handle.shape, &handle.store.rows, Timestamp(0));
                // Found free, it is entered anew, and what that rests on is noted then.
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

    /// See [`engine_api::Txn::prove_unique`]; waits as [`Transaction::insert_row`] does.
    fn prove(&mut self, table: &TableRef, index: Oid, row: RowId) -> Result<Step<()>> {
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

    /// An error about a row rests on the commit that made it, which is returned (0: an own version, or none).
    fn note_row(&mut self, handle: &TableHandle, row: RowId) -> Timestamp {
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

    /// Replaces the newest version of a row and enters the keys that differ; waits as [`Transaction::insert_row`] does.
    fn update_row(&mut self, table: &TableRef, row: RowId, tuple: &[u8]) -> Result<Step<()>> {
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
    fn try_update(
        &mut self,
        table: &TableRef,
        row: RowId,
        tuple: &[u8],
        old: &mut Vec<u8>,
    ) -> Result<Option<Step<()>>> {
        self.start_writing()?;
        if let Some(wait) = self.ask_memory(Purpose::Change, tuple.len())? {
            self.cancel_wait();
            return Ok(Some(Step::Wait(wait)));
        }
        if let Some(wait) = commit::send_ahead(self)? {
            self.cancel_wait();
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
        let mut free = Timestamp(0);
        let mut blocked = None;
        let mut long = None;
        for index in handle.indexes.iter() {
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
                let conflict = unique::conflict(&handle.shape, &handle.store.rows, index, after, row, own, &mut free);
                blocked = conflict.map(|conflict| (index, conflict));
            }
            if blocked.is_some() {
                break;
            }
        }
        if let Some((index, layout, tuple, asked)) = long {
            drop((guard, whole));
            handle.shape.prepare(index, layout, tuple, asked)?;
            return Ok(None);
        }
        if blocked.is_none() {
            // The version comes before its entries: who finds an entry must find out that it is undecided.
            handle.store.rows.update(core, row, self.command, layout, tuple, differs, &guard);
            let mut entered = Entries::new();
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
                    if unique::enter_unasked(index, after, row) {
                        entered.push(at);
                    }
                    continue;
                }
                match unique::enter(&self.shard.0.stripes, handle, index, after, has_null, row, own, &mut free) {
                    // An entry of an older version of this row with the same key stays if this fails.
                    Entered::Done(true) => entered.push(at),
                    Entered::Done(false) => {}
                    Entered::Unproven(added) => {
                        if added {
                            entered.push(at);
                        }
                        self.unproven.push((index.desc.oid, row));
                    }
                    other => {
                        blocked = Some((index, other));
                        break;
                    }
                }
            }
            if blocked.is_some() {
                self.unproven.truncate(unproven);
                Transaction::remove_entries(handle, &entered, row, layout, tuple);
                self.shard.0.store.undo_to(core, mark);
            }
        }
        drop(guard);
        let Some((index, why)) = blocked else {
            self.note_up_to(free);
            self.rest_on(free);
            record::update(&mut self.redo, handle.store.id, row, layout, old, tuple);
            self.note_size();
            return Ok(Some(Step::Ready(())));
        };
        drop(whole);
        Ok(self.clear_the_way(handle, index, why, row, layout, tuple)?.map(Step::Wait))
    }

    /// Notes that a SERIALIZABLE transaction rests on a commit that its snapshot may not have.
    #[inline]
    fn rest_on(&self, ts: Timestamp) {
        if ts.0 != 0
            && let Some(reads) = &self.reads
        {
            reads.lock().rest_on(ts);
        }
    }

    /// Notes that a SERIALIZABLE transaction rests on a row as the commit at `ts` left it (0: its own).
    fn note_read_row(&self, handle: &TableHandle, row: RowId, ts: Timestamp) {
        if ts.0 != 0
            && let Some(reads) = &self.reads
        {
            reads.lock().add_row(&handle.store, row, ts);
        }
    }

    /// Notes what a SERIALIZABLE transaction read under a key: the row, if it is the only one that can have the key;
    /// otherwise all that have it, or will.
    fn note_read_key(
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

    /// Appends visible rows of a list found under `key` in an index (R6: only under the key of what is seen).
    fn push_visible(&mut self, handle: &TableHandle, index: &IndexStore, key: &[u8], newest: bool, out: &mut RowBatch) {
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
            }
        }
        if newest {
            self.rest_on(seen);
        }
        let is_one = rows.len() <= 1;
        self.rows = rows;
        if is_one { self.note(seen) } else { self.note_up_to(seen) }
    }

    /// Ends everything without a commit.
    pub fn undo_all(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.undo_what_is_left();
        }
    }

    fn undo_what_is_left(&mut self) {
        if self.redo_ahead > 0
            && let Some(core) = &self.core
        {
            self.shard.0.log.forget(core.id());
        }
        if let Some(finishing) = self.finishing.take() {
            self.shard.0.store.finish_commit(finishing.0, finishing.1);
        }
        self.leave_active();
        self.reads = None;
        // What is not charged any more must not be held: the session keeps this for its next transaction.
        empty(&mut self.redo);
        empty(&mut self.scratch);
        empty(&mut self.unproven);
        self.charge(0);
        self.redo_ahead = 0;
        self.marks.clear();
        let inner = &self.shard.0;
        if let Some(core) = &mut self.core {
            // Rows and entries go by the definitions that they were made by; these go before the locks that guard them.
            inner.store.abort_with(core, || self.definitions.undo_to(inner, 0, 0));
            self.core = None;
        }
        self.end_view();
    }

    /// Ends the transaction for its session: what it wrote, locked and defined, and what it has read, go to another place.
    pub fn hand_over(&mut self) -> (Option<mvcc::Transaction>, Option<Arc<Mutex<ReadSet>>>, Definitions) {
        self.end_view();
        self.leave_active();
        self.marks.clear();
        self.charge(0);
        self.redo.clear();
        self.redo_ahead = 0;
        (self.core.take(), self.reads.take(), self.definitions.hand_over())
    }

    /// The transaction has no part in the order of SERIALIZABLE ones any more.
    fn leave_active(&mut self) {
        if let Some(number) = self.active.take() {
            commit::leave(&self.shard.0, number);
        }
    }

    /// Takes the snapshot of a SERIALIZABLE transaction; `view` makes it.
    fn begin_serializable(&mut self, view: impl FnOnce(&mvcc::Store) -> ViewToken) -> ViewToken {
        let shard = self.shard.clone();
        let commit::Begun { number, view } = commit::begin(&shard.0, self.options.read_only, || view(&shard.0.store));
        self.leave_active();
        self.active = number;
        if number.is_none() {
            self.reads = None;
        } else {
            let reads = self.reads.get_or_insert_with(|| Arc::new(Mutex::new(ReadSet::new(shard.0.store.memory()))));
            reads.lock().set_snapshot(view.read_ts());
        }
        view
    }

    pub fn end_view(&mut self) {
        self.end_view_of_command();
        if let Some(token) = self.held.take() {
            self.shard.0.store.end_view(token);
        }
    }

    /// Makes the newest command the current one again.
    fn leave_resumed(&mut self) {
        self.command = self.command.max(self.latest);
    }

    fn end_view_of_command(&mut self) {
        if let Some(token) = self.token.take() {
            self.shard.0.store.end_view(token);
        }
    }
}

impl Txn for Transaction {
    fn engine(&self) -> &dyn Engine {
        &self.shard
    }

    fn id(&self) -> Option<TxnId> {
        self.core.as_ref().map(|c| c.id())
    }

    fn take_id(&mut self) -> Result<TxnId> {
        self.start_writing()?;
        self.is_id_shown = true;
        self.core.as_ref().map(mvcc::Transaction::id).ok_or_else(|| Error::internal("a transaction without an id"))
    }

    fn shown_id(&self) -> Option<TxnId> {
        let core = self.core.as_ref()?;
        let shown = self.is_id_shown || !self.definitions.changes.is_empty() || core.has_rows();
        shown.then(|| core.id())
    }

    fn unseen(&mut self) -> Result<Arc<Unseen>> {
        let view = self.view().read_ts;
        if let Some((at, unseen)) = &self.unseen
            && *at == view
        {
            return Ok(unseen.clone());
        }
        let unseen = self.shard.0.store.unseen(view).map_err(|mvcc::ViewTooOld| {
            Error::new(SqlState::SNAPSHOT_TOO_OLD, "snapshot too old")
                .detail("More transactions have committed since the snapshot was taken than are remembered.")
                .hint("Ask for the snapshot in the first statement of the transaction.")
        })?;
        let unseen = Arc::new(unseen);
        self.unseen = Some((view, unseen.clone()));
        Ok(unseen)
    }

    fn ending(&self, number: u64) -> Ending {
        self.shard.0.store.ending(number)
    }

    fn last_number(&self) -> TxnId {
        self.shard.0.store.last_txn()
    }

    fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    fn has_view(&self) -> bool {
        self.token.is_some()
    }

    fn catalog(&self) -> Arc<Catalog> {
        let committed = self.shard.catalog();
        if self.definitions.changes.is_empty() { committed } else { self.definitions.catalog_of(committed) }
    }

    fn has_definitions(&self) -> bool {
        !self.definitions.changes.is_empty()
    }

    fn begin_newest_command(&mut self) {
        self.is_over = false;
        self.leave_resumed();
        self.command.0 += 1;
        self.note_catalog();
        if self.options.isolation == Isolation::ReadCommitted || self.held.is_some() {
            self.end_view_of_command();
        } else {
            self.held = self.token.take();
        }
        self.token = Some(self.shard.0.store.begin_view_for(self.options.session));
    }

    fn begin_command(&mut self) {
        self.is_over = false;
        self.leave_resumed();
        self.command.0 += 1;
        self.note_catalog();
        if self.held.is_some() {
            self.end_view_of_command();
            self.token = self.held.take();
        }
        if self.options.isolation == Isolation::ReadCommitted {
            self.end_view();
        }
        if self.token.is_none() {
            let session = self.options.session;
            self.token = Some(match self.options.isolation {
                Isolation::Serializable => self.begin_serializable(|store| store.begin_view_for(session)),
                _ => self.shard.0.store.begin_view_for(session),
            });
        }
    }

    fn await_safe_snapshot(&mut self) -> Step<()> {
        let shard = self.shard.clone();
        loop {
            if self.token.is_none() {
                let session = self.options.session;
                self.token = Some(self.begin_serializable(|store| store.begin_view_for(session)));
            }
            let Some(number) = self.active else { return Step::Ready(()) };
            let cell = WaitCell::new();
            match commit::safety(&shard.0, number, &cell) {
                Safety::Open => return Step::Wait(Wait::for_snapshot(&cell)),
                Safety::Unsafe => self.end_view(),
                Safety::Safe => {
                    self.leave_active();
                    self.reads = None;
                }
            }
        }
    }

    fn keep_view(&mut self) -> KeptView {
        let store = &self.shard.0.store;
        let token = match &self.token {
            Some(held) => store.share_view(held),
            None => store.begin_view_for(self.options.session),
        };
        KeptView(Box::new(Kept { shard: self.shard.clone(), token: Some(token), command: self.command }))
    }

    fn adopt_view(&mut self, view: &KeptView) {
        let Some(kept) = view.0.downcast_ref::<Kept>() else { return };
        self.is_over = false;
        self.end_view();
        let Some(token) = &kept.token else { return };
        self.token = Some(match self.options.isolation {
            Isolation::Serializable => self.begin_serializable(|store| store.share_view(token)),
            _ => self.shard.0.store.share_view(token),
        });
    }

    fn resume_command(&mut self, view: &KeptView) {
        let Some(kept) = view.0.downcast_ref::<Kept>() else { return self.begin_command() };
        self.is_over = false;
        self.latest = self.latest.max(self.command);
        self.command = kept.command;
        self.note_catalog();
        if let Some(token) = self.held.take() {
            self.end_view_of_command();
            self.token = Some(token);
        }
        if self.options.isolation == Isolation::ReadCommitted {
            self.end_view();
            self.token = kept.token.as_ref().map(|token| self.shard.0.store.share_view(token));
        }
    }

    fn end_command(&mut self) {
        self.leave_resumed();
        if self.options.isolation == Isolation::ReadCommitted {
            self.end_view();
        }
    }

    fn gate(&self) -> Lsn {
        self.gate
    }

    fn raise_gate(&mut self, gate: Lsn) {
        self.gate = self.gate.max(gate);
    }

    fn open_table(&mut self, table: Oid) -> Result<TableRef> {
        let catalog = self.own_catalog();
        let desc = catalog.table(table).cloned().ok_or_else(|| Error::internal(format!("no table {table}")))?;
        let store = self.shard.0.storage(&desc)?;
        Ok(TableRef(Arc::new(TableHandle::open(desc, store))))
    }

    fn open_scan(&mut self, spec: ScanSpec) -> Result<Box<dyn Scan>> {
        scan::open(self, spec)
    }

    fn get(&mut self, table: &TableRef, index: Oid, key: &[u8], out: &mut RowBatch) -> Result<()> {
        let handle = TableHandle::of(table)?;
        let index = handle.index(index)?;
        let first = out.len();
        self.push_visible(handle, &index, key, false, out);
        if self.reads.is_some() {
            self.note_read_key(handle, &index, key, self.view().read_ts, out, first);
        }
        Ok(())
    }

    fn get_referenced(
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
        self.push_visible(handle, &index, key, newest, out);
        if self.reads.is_some() && out.len() == first {
            self.note_read_key(handle, &index, key, as_of, out, first);
        }
        Ok(())
    }

    fn fetch(&mut self, table: &TableRef, row: RowId, out: &mut RowBatch) -> Result<bool> {
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

    fn lock_table(&mut self, table: Oid, mode: TableLockMode, policy: WaitPolicy) -> Result<Step<()>> {
        self.lock_relation(table, mode, policy)
    }

    fn lock_row(
        &mut self,
        table: &TableRef,
        row: RowId,
        mode: RowLockMode,
        policy: WaitPolicy,
        out: &mut RowBatch,
    ) -> Result<Step<RowLockOutcome>> {
        if let Some(wait) = commit::send_ahead(self)? {
            return Ok(Step::Wait(wait));
        }
        self.lock_version(table, row, mode, policy, out)
    }

    fn insert(&mut self, table: &TableRef, tuple: &[u8], arbiter: ConflictArbiter) -> Result<Step<InsertOutcome>> {
        self.insert_row(table, tuple, arbiter)
    }

    fn update(&mut self, table: &TableRef, row: RowId, tuple: &[u8]) -> Result<Step<()>> {
        self.update_row(table, row, tuple)
    }

    fn take_unproven(&mut self, out: &mut Vec<(Oid, RowId)>) {
        out.append(&mut self.unproven);
    }

    fn prove_unique(&mut self, table: &TableRef, index: Oid, row: RowId) -> Result<Step<()>> {
        let result = self.prove(table, index, row);
        if !matches!(result, Ok(Step::Wait(_))) {
            self.cancel_wait();
        }
        result
    }

    fn delete(&mut self, table: &TableRef, row: RowId) -> Result<()> {
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

    fn fill_index(&mut self, index: Oid) -> Result<Step<()>> {
        self.fill(index)
    }

    fn cancel_wait(&mut self) {
        self.cancel_waiting();
    }

    fn savepoint(&mut self) -> Savepoint {
        self.definitions.last_put = None;
        self.marks.push(Mark {
            core: self.core.as_ref().map(|c| c.mark()),
            redo: self.redo_end(),
            changes: self.definitions.changes.len(),
            made: self.definitions.made.len(),
        });
        Savepoint(self.marks.len() as u64 - 1)
    }

    fn release(&mut self, savepoint: Savepoint) {
        self.marks.truncate(savepoint.0 as usize);
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        let at = savepoint.0 as usize;
        let Some(mark) = self.marks.get(at) else { return };
        let (redo, changes, made, core_mark) = (mark.redo, mark.changes, mark.made, mark.core);
        self.marks.truncate(at + 1);
        self.unproven.clear();
        self.definitions.last_put = None;
        if let Some(core) = &mut self.core {
            let inner = &self.shard.0;
            inner.store.cancel_wait(core);
            // It goes on under its id even if all of it is undone: what went ahead in the log has that id. Definitions go
            // as in `undo_all`.
            let definitions = &mut self.definitions;
            inner.store.undo_to_with(core, core_mark.unwrap_or_default(), || definitions.undo_to(inner, changes, made));
        }
        match redo.checked_sub(self.redo_ahead) {
            Some(kept) => self.redo.truncate(kept as usize),
            None => {
                // What went ahead cannot be taken back: the record says that it does not count. It may end inside of an
                // operation, which must be whole to be passed over, so the rest goes after it.
                record::undo_to(&mut self.redo, redo);
            }
        }
    }

    fn undo_some(&mut self, savepoint: Option<Savepoint>) -> bool {
        if !self.definitions.changes.is_empty() || !self.definitions.made.is_empty() {
            // They go first, before the table locks that were taken for them.
            return true;
        }
        let mark = savepoint.and_then(|point| self.marks.get(point.0 as usize)).and_then(|mark| mark.core);
        let Some(core) = &mut self.core else { return true };
        self.shard.0.store.cancel_wait(core);
        self.shard.0.store.undo_some(core, mark.unwrap_or_default(), UNDO_AT_ONCE)
    }

    fn put_object(&mut self, object: CatalogObject) -> Result<Step<()>> {
        self.start_writing()?;
        self.put(object)
    }

    fn drop_object(&mut self, object: Oid) -> Result<()> {
        self.drop_definition(object)
    }

    fn truncate(&mut self, table: Oid) -> Result<()> {
        self.truncate_table(table)
    }

    fn commit(&mut self, durability: Durability) -> Result<Step<CommitOutcome>> {
        commit::commit(self, durability)
    }

    fn finish_some(&mut self) -> bool {
        let store = &self.shard.0.store;
        match self.finishing.take() {
            None => true,
            Some(mut finishing) => {
                let is_done = store.finish_some(&mut finishing.0, finishing.1, commit::FINISH_AT_ONCE);
                if is_done {
                    store.finish_commit(finishing.0, finishing.1);
                } else {
                    self.finishing = Some(finishing);
                }
                is_done
            }
        }
    }

    fn prepare(&mut self, as_what: &PreparedTransaction) -> Result<Step<CommitOutcome>> {
        prepared::prepare(self, as_what)
    }

    fn rollback(&mut self) {
        self.undo_all();
    }

    fn begin_anew(&mut self, options: TxnOptions) {
        self.undo_all();
        self.reads = read_set(&self.shard, options);
        self.options = options;
        self.look = Look::default();
        self.pace = Pace::default();
        self.is_sealed = false;
        self.is_id_shown = false;
        self.unseen = None;
        (self.command, self.latest) = (CommandId(0), CommandId(0));
        self.gate = Lsn(0);
        self.definitions = Definitions::default();
    }

    fn layout(&self, table: &TableRef) -> LayoutId {
        TableHandle::of(table).map_or(LayoutId(0), |handle| handle.shape.newest_layout())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.undo_all();
    }
}
