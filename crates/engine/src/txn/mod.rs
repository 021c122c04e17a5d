//! One transaction: its view, its writes, its record for the log.
//!
//! Responsible for: commands and views (`views`), reads by key (`point_reads`), inserts, updates, deletes with their index entries (`write`), savepoints
//! (`undo`).
//! Not responsible for: outcomes of locks (`locks`), definitions (`catalog`), the way to durability (`commit`).
//! Invariant: `redo` says what `core` wrote, in the same order; savepoints cut both at the same place.

mod point_reads;
mod record_size;
mod undo;
mod views;
mod write;

use std::sync::Arc;

use base::{CommandId, Ending, Error, LayoutId, Lsn, Oid, Result, RowId, SqlState, Timestamp, TxnId, Unseen};
use engine_api::{
    Catalog, CatalogObject, CommitOutcome, ConflictArbiter, Durability, Engine, InsertOutcome, Isolation, KeptView,
    PreparedTransaction, RowBatch, RowLockMode, RowLockOutcome, Savepoint, Scan, ScanSpec, Step, TableLockMode,
    TableRef, Txn, TxnOptions, WaitPolicy,
};
use mvcc::index::RowIds;
use mvcc::{LockResult, ViewToken};
use parking_lot::Mutex;

use crate::catalog::Definitions;
use crate::commit::Look;
use crate::memory::throttle::Pace;
use crate::reads::ReadSet;
use crate::shard::Shard;
use crate::storage::TableHandle;
use crate::{commit, commit::prepared, reads::scan};

pub(crate) use record_size::LongRecords;
use undo::Mark;
use views::read_set;
use write::Ahead;

/// Capacity of a buffer that the next transaction may have.
const KEPT_BYTES: usize = 16 << 10;

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
    rows: RowIds,
    /// What [`Txn::take_unproven`] takes.
    unproven: Vec<(Oid, RowId)>,
}

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
            rows: RowIds::new(),
            unproven: Vec::new(),
        }
    }

    /// Takes an id, before the first write or lock.
    pub fn start_writing(&mut self) -> Result<()> {
        if self.core.is_none() {
            let Ok(core) = self.shard.0.store.begin_txn_for(self.options.session) else {
                return Err(Error::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, "too many transactions are active"));
            };
            self.core = Some(core);
            self.is_over = false;
        }
        if self.command.0 > mvcc::COMMANDS_MAX {
            let message = "cannot have more than 2^31-1 commands in a transaction";
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(())
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
        self.unseen_by_view()
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
        self.definitions.catalog(self.shard.catalog())
    }

    fn has_definitions(&self) -> bool {
        !self.definitions.changes.is_empty()
    }

    fn begin_newest_command(&mut self) {
        self.begin_newest_view();
    }

    fn begin_command(&mut self) {
        self.begin_command_view();
    }

    fn await_safe_snapshot(&mut self) -> Step<()> {
        self.await_safe()
    }

    fn keep_view(&mut self) -> KeptView {
        self.share_view()
    }

    fn adopt_view(&mut self, view: &KeptView) {
        self.adopt(view);
    }

    fn resume_command(&mut self, view: &KeptView) {
        self.resume(view);
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
        let catalog = self.catalog();
        let desc = catalog.table(table).cloned().ok_or_else(|| Error::internal(format!("no table {table}")))?;
        let store = self.shard.0.storage(&desc)?;
        Ok(TableRef(Arc::new(TableHandle::open(desc, store))))
    }

    fn open_scan(&mut self, spec: ScanSpec) -> Result<Box<dyn Scan>> {
        scan::open(self, spec)
    }

    fn get(&mut self, table: &TableRef, index: Oid, key: &[u8], out: &mut RowBatch) -> Result<()> {
        self.get_visible(table, index, key, usize::MAX, out)
    }

    fn get_any(&mut self, table: &TableRef, index: Oid, key: &[u8], out: &mut RowBatch) -> Result<()> {
        self.get_visible(table, index, key, 1, out)
    }

    fn get_referenced(
        &mut self,
        table: &TableRef,
        index: Oid,
        key: &[u8],
        newest: bool,
        out: &mut RowBatch,
    ) -> Result<()> {
        self.get_for_reference(table, index, key, newest, out)
    }

    fn fetch(&mut self, table: &TableRef, row: RowId, out: &mut RowBatch) -> Result<bool> {
        self.fetch_visible(table, row, out)
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
        self.delete_row(table, row)
    }

    fn fill_index(&mut self, index: Oid) -> Result<Step<()>> {
        self.fill(index)
    }

    fn cancel_wait(&mut self) {
        self.cancel_waiting();
    }

    fn savepoint(&mut self) -> Savepoint {
        self.set_mark()
    }

    fn release(&mut self, savepoint: Savepoint) {
        self.marks.truncate(savepoint.0 as usize);
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.undo_to_mark(savepoint);
    }

    fn undo_some(&mut self, savepoint: Option<Savepoint>) -> bool {
        self.undo_part(savepoint)
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
        self.finish_part()
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
        if !self.definitions.are_untouched() {
            self.definitions = Definitions::default();
        }
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
