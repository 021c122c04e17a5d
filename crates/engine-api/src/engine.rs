//! What SQL may ask of storage.

use std::any::Any;
use std::ops::Bound;
use std::sync::Arc;

use base::{Ending, LayoutId, Lsn, Oid, Result, RowId, TxnId, Unseen};

use types::user::Committed;

use crate::{AdvisoryKey, AdvisoryLocks, BatchRow, Catalog, CatalogObject, LockRow, RowBatch, SequenceDesc, Step};

/// A transactional engine: one shard, or many behind one face.
pub trait Engine: Committed + 'static {
    /// The newest committed catalog.
    fn catalog(&self) -> Arc<Catalog>;

    /// [`Catalog::version`] of the newest committed catalog. Cheap.
    fn catalog_version(&self) -> u64;

    /// The log position that the newest committed catalog waits for: a reply that depends on what is defined, or on what
    /// is not, raises its gate to it (rule R1). Commands of transactions do so by themselves; an error before the first
    /// one does not. `Lsn(0)`: nothing to wait for. Cheap.
    fn catalog_gate(&self) -> Lsn;

    /// Starts a transaction. It takes no view and no id before its first command.
    fn begin(&self, options: TxnOptions) -> Box<dyn Txn>;

    /// The prepared transactions, in the order of their names.
    fn prepared(&self) -> Vec<PreparedTransaction>;

    /// Ends a prepared transaction. What a large one leaves to do after a commit is done by the transaction that is answered:
    /// [`Txn::finish_some`].
    ///
    /// # Errors
    /// 42704 if there is none of this name; 53100.
    fn finish_prepared(&self, name: &str, commits: bool) -> Result<Step<(CommitOutcome, Box<dyn Txn>)>>;

    /// The advisory locks of a session; dropping them gives all back.
    ///
    /// # Errors
    /// 53400 if too many transactions are active.
    fn advisory_locks(&self, session: u32) -> Result<Box<dyn AdvisoryLocks>>;

    /// Who holds and waits for what, for `pg_locks`.
    fn locks(&self) -> Vec<LockRow>;

    /// Whether somebody may hold or wait for a lock of a table that stands against readers or writers. Cheap; may say so of a table
    /// that nobody has locked.
    fn may_be_locked(&self, table: Oid) -> bool;

    /// The sessions that a session waits for, 0 standing for a prepared transaction.
    fn blockers_of(&self, session: u32) -> Vec<u32>;

    /// A fresh OID for a new catalog object; never handed out twice.
    fn allocate_oid(&self) -> Oid;

    /// Advances a sequence and returns the new value, with its gate as [`Engine::sequence_gate`] says it; not undone by rollback.
    /// The log runs ahead of the values handed out (record kind Sequence).
    ///
    /// Some log space is kept aside for sequences; a wait is for more that is being prepared.
    ///
    /// # Errors
    /// 2200H at the limit of a sequence that does not cycle; 53100 if the log's disk is full.
    fn sequence_draw(&self, sequence: &SequenceDesc) -> Result<Step<(i64, Lsn)>>;

    /// The log position that covers every value of a sequence handed out so far, `setval` included: a reply that shows a
    /// value, or depends on one, raises its gate ([`Txn::raise_gate`]) to this after [`Engine::sequence_draw`] or
    /// [`Engine::sequence_set`]. Otherwise a value that was shown and that no durable commit uses can come again after a
    /// crash. `Lsn(0)`: nothing to wait for. Cheap.
    fn sequence_gate(&self, sequence: &SequenceDesc) -> Lsn;

    /// Sets a sequence, as `setval` does. A wait is for log space.
    ///
    /// # Errors
    /// 53100 if the log's disk is full.
    fn sequence_set(&self, sequence: &SequenceDesc, state: SequenceState) -> Result<Step<()>>;

    /// Sets what a restart brings: the state of a definition that was put with a new one ([`SequenceDesc::state`]). Others
    /// go on in the state before until that definition is committed. A wait is for log space.
    ///
    /// # Errors
    /// 53100 if the log's disk is full.
    fn sequence_restart(&self, sequence: &SequenceDesc, state: SequenceState) -> Result<Step<()>>;

    /// The state of a sequence, as `SELECT last_value, is_called` shows it.
    fn sequence_get(&self, sequence: &SequenceDesc) -> Result<SequenceState>;

    /// Rows of a table, roughly, for the planner. Cheap.
    fn row_count(&self, table: Oid) -> u64;

    /// Changes of a table's rows since it was opened, roughly; falls back to little with TRUNCATE. Cheap.
    fn changes(&self, table: Oid) -> u64;

    /// Bytes that a table's rows, or an index's nodes, take; `None` for what holds no rows.
    fn relation_bytes(&self, _relation: Oid) -> Option<u64> {
        None
    }

    /// Asks for a checkpoint that begins from now on, and answers its number for [`Engine::checkpoint_done`].
    fn request_checkpoint(&self) -> u64;

    /// Whether that checkpoint, or a later one, counts.
    ///
    /// # Errors
    /// 58030, 53100 if it failed.
    fn checkpoint_done(&self, number: u64) -> Result<Step<()>>;

    /// Memory held, by kind (rule R18).
    fn memory(&self) -> MemoryUse;

    /// Memory that tables hold, each on its own.
    fn table_memory(&self) -> Vec<TableMemoryUse> {
        Vec::new()
    }

    /// Counts memory of a kind that the caller has taken, or given back, against the limit. For what changes seldom.
    fn charge_memory(&self, _kind: MemoryKind, _bytes: i64) {}

    /// Says what a kind of memory that is measured now and then holds at present.
    fn set_memory(&self, _kind: MemoryKind, _bytes: u64) {}

    /// Bytes counted against the limit, and the limit. Cheap.
    fn memory_level(&self) -> (u64, u64) {
        let memory = self.memory();
        (memory.used, memory.limit)
    }

    /// Changes the limit.
    fn set_memory_limit(&self, _bytes: u64) {}
}

/// State of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceState {
    /// The last value handed out, or the one to hand out next if `!is_called`.
    pub last_value: i64,
    /// Whether `last_value` was handed out.
    pub is_called: bool,
}

/// Memory held by an engine, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryUse {
    /// Row headers and versions, those included of tables that no catalog names.
    pub rows: u64,
    /// Row headers of tables.
    pub headers: u64,
    /// Row versions of tables.
    pub versions: u64,
    /// Index nodes.
    pub indexes: u64,
    /// The rest, by [`MemoryKind`].
    pub others: [u64; MemoryKind::ALL.len()],
    /// All of it.
    pub held: u64,
    /// What counts against the budget: all but an eighth of the budget of what is free.
    pub used: u64,
    /// Budget; writes are refused with 53200 beyond it.
    pub limit: u64,
}

/// What memory is held for, beside rows and indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Lists of what open transactions have written, and what SERIALIZABLE ones have read.
    Transactions,
    /// Log records that are not durable yet.
    LogBuffers,
    /// Definitions.
    Catalog,
    /// Sessions.
    Sessions,
    /// What running statements keep: sorts, hash tables, groups, results that wait to be sent.
    Statements,
    /// Statements that are bound and planned, for all sessions.
    Plans,
    /// Messages of clients and replies to them.
    Connections,
    /// All that the process has allocated beside what is counted: values under evaluation, parse trees, settings.
    Working,
    /// Lists of versions that wait to be freed.
    Garbage,
    /// What the process holds beside: blocks that are free in pages that are in use, what blocks are larger than was asked for, stacks.
    Free,
}

impl MemoryKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [MemoryKind; 10] = [
        MemoryKind::Transactions,
        MemoryKind::LogBuffers,
        MemoryKind::Catalog,
        MemoryKind::Sessions,
        MemoryKind::Statements,
        MemoryKind::Plans,
        MemoryKind::Connections,
        MemoryKind::Working,
        MemoryKind::Garbage,
        MemoryKind::Free,
    ];

    /// Its name in views and metrics.
    pub fn name(self) -> &'static str {
        match self {
            MemoryKind::Transactions => "transactions",
            MemoryKind::LogBuffers => "log_buffers",
            MemoryKind::Catalog => "catalog",
            MemoryKind::Sessions => "sessions",
            MemoryKind::Statements => "statements",
            MemoryKind::Plans => "plan_cache",
            MemoryKind::Connections => "connection_buffers",
            MemoryKind::Working => "working",
            MemoryKind::Garbage => "garbage",
            MemoryKind::Free => "free",
        }
    }

    /// Its name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            MemoryKind::LogBuffers => "log buffers",
            MemoryKind::Plans => "cached plans",
            MemoryKind::Connections => "connection buffers",
            MemoryKind::Working => "working memory",
            MemoryKind::Garbage => "lists of garbage",
            MemoryKind::Free => "free memory between rows",
            other => other.name(),
        }
    }
}

/// Memory that a table holds, in bytes if nothing else is said.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableMemoryUse {
    /// The table.
    pub table: Oid,
    /// Number of rows: undecided and deleted ones count until they are gone.
    pub rows: u64,
    /// Row headers and the directory that finds them.
    pub headers: u64,
    /// Number of versions; those beyond one per row are undecided, or wait until nobody can see them.
    pub version_count: u64,
    /// Row versions.
    pub versions: u64,
    /// Nodes of its indexes.
    pub indexes: u64,
}

impl TableMemoryUse {
    /// All of it.
    pub fn bytes(&self) -> u64 {
        self.headers + self.versions + self.indexes
    }
}

/// Isolation level with PostgreSQL's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Isolation {
    /// A view per command; waits and re-checks on conflict.
    #[default]
    ReadCommitted,
    /// One view; 40001 on a write conflict.
    RepeatableRead,
    /// As if one after the other: one view, and at the commit of a writer a look whether what it read still holds.
    Serializable,
}

/// How a transaction starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct TxnOptions {
    /// Isolation level.
    pub isolation: Isolation,
    /// Writes are refused by the caller; the engine may take a cheaper path.
    pub read_only: bool,
    /// The number of the session, 0 if none: what one session holds is never in its own way.
    pub session: u32,
}

/// When a commit may be acknowledged (`synchronous_commit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// When its log record is durable.
    #[default]
    On,
    /// At once.
    Off,
}

/// PostgreSQL's four row-lock strengths, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowLockMode {
    /// FOR KEY SHARE
    KeyShare,
    /// FOR SHARE
    Share,
    /// FOR NO KEY UPDATE
    NoKeyUpdate,
    /// FOR UPDATE
    Update,
}

/// PostgreSQL's eight table-lock modes, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableLockMode {
    /// SELECT
    AccessShare,
    /// SELECT FOR UPDATE
    RowShare,
    /// INSERT, UPDATE, DELETE
    RowExclusive,
    /// VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY
    ShareUpdateExclusive,
    /// CREATE INDEX
    Share,
    /// CREATE TRIGGER, ADD FOREIGN KEY
    ShareRowExclusive,
    /// REFRESH CONCURRENTLY
    Exclusive,
    /// ALTER, DROP, TRUNCATE
    AccessExclusive,
}

/// What to do about a lock that another transaction holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WaitPolicy {
    /// Wait.
    #[default]
    Block,
    /// NOWAIT: 55P03.
    Error,
    /// SKIP LOCKED.
    Skip,
}

/// A table as the engine has it open. Cheap to clone; kept in cached plans. Stays valid until the table is dropped,
/// truncated or altered, which changes the table's version in the catalog.
#[derive(Clone)]
pub struct TableRef(pub Arc<dyn Any + Send + Sync>);

impl std::fmt::Debug for TableRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TableRef")
    }
}

/// A range of encoded index keys (concatenated columns, key codec of `types`).
#[derive(Clone, Debug)]
pub struct KeyRange {
    /// Where it begins. `Included` of a prefix begins at the first key with that prefix.
    pub lower: Bound<Vec<u8>>,
    /// Where it ends. A prefix range ends before the prefix's successor: `Excluded(successor)`.
    pub upper: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Everything.
    pub fn all() -> KeyRange {
        KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        let upper = match KeyRange::successor(prefix) {
            Some(successor) => Bound::Excluded(successor),
            None => Bound::Unbounded,
        };
        KeyRange { lower: Bound::Included(prefix.to_vec()), upper }
    }

    /// The first byte string after all that begin with `prefix`; `None` if there is none.
    pub fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
        let last = prefix.iter().rposition(|&b| b != 0xff)?;
        let mut end = prefix[..=last].to_vec();
        end[last] += 1;
        Some(end)
    }
}

/// What a scan hands out of each row that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RowContent {
    /// Its tuple.
    #[default]
    Tuple,
    /// Its key in the index that is scanned, in the tuple's place. Without an index as [`RowContent::Nothing`].
    Key,
    /// No bytes: only that it is there, and its identity.
    Nothing,
}

/// A scan to open.
#[derive(Clone, Debug)]
pub struct ScanSpec {
    /// The table.
    pub table: TableRef,
    /// Index to walk in key order; `None` walks the rows in insertion order.
    pub index: Option<Oid>,
    /// Keys to visit; ignored without an index.
    pub range: KeyRange,
    /// Descending.
    pub reverse: bool,
    /// What is wanted of the rows.
    pub content: RowContent,
}

/// An open scan. Sees what the command that opened it sees (rule R6), whatever the transaction does afterwards.
pub trait Scan: Send {
    /// Appends at most `max` further rows to `out`; `false` when there are no more. Never waits for other transactions.
    fn next(&mut self, txn: &mut dyn Txn, max: usize, out: &mut RowBatch) -> Result<bool>;

    /// As [`Scan::next`] of the rows that `takes` lets through. It is called for each visible row where the row lies, before its tuple is copied.
    /// At most `max` rows are read, those that it refuses included. Returns also how many were read. REQUIRES a scan of tuples.
    fn next_taken(
        &mut self,
        txn: &mut dyn Txn,
        max: usize,
        takes: &mut dyn FnMut(BatchRow<'_>) -> bool,
        out: &mut RowBatch,
    ) -> Result<(bool, usize)>;

    /// Row numbers ahead, those of rows that are gone among them, in a scan in insertion order; `None` in one over an index.
    fn ahead(&self) -> Option<u64>;

    /// Goes on with the row numbers from `from` to before `until`, of a scan in insertion order: several of one view share the rows of a
    /// table so. [`Scan::next`] answers `false` at the end of the part. REQUIRES a scan in insertion order.
    fn take_part(&mut self, from: u64, until: u64);

    /// Begins another range of the index, as if the scan were opened for it: many short ranges cost less so. REQUIRES a scan over an index.
    fn enter(&mut self, range: KeyRange);

    /// Passes over so many row numbers of a scan in insertion order without looking at the rows (a sample's way through a
    /// large table). Does nothing in one over an index.
    fn skip(&mut self, numbers: u64);
}

/// What [`Txn::lock_row`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLockOutcome {
    /// Locked; the newest version is the one the command's view shows. It is appended to `out` if the lock lets it be changed.
    Locked,
    /// Locked; the newest version is another one, appended to `out`: re-evaluate the qualification on it (rule R7).
    Moved,
    /// Locked for its key only; this command has made the newest version, which its view does not show.
    Own,
    /// This command has made the newest version, which its view does not show; nothing is locked.
    OwnUnlocked,
    /// The row is gone in its newest version; nothing is locked.
    Gone,
    /// Held by another transaction, and the policy was Skip.
    Skipped,
}

/// Which unique indexes turn a duplicate into an outcome instead of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictArbiter {
    /// None: 23505.
    None,
    /// Any unique index (ON CONFLICT DO NOTHING without a target).
    Any,
    /// This one.
    Index(Oid),
}

/// What [`Txn::insert`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    /// The new row.
    Inserted(RowId),
    /// An arbiter found this row, committed (or our own) and live.
    Conflict(RowId),
}

/// What a command sees, kept beyond its end ([`Txn::keep_view`]). Holds garbage back until it is dropped.
pub struct KeptView(pub Box<dyn Any + Send>);

impl std::fmt::Debug for KeptView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeptView")
    }
}

/// A point in a transaction that it can go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub u64);

/// A transaction between the phases of its commit.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PreparedTransaction {
    /// Its name (`gid`).
    pub name: String,
    /// The role that prepared it.
    pub owner: String,
    /// The database it belongs to.
    pub database: Oid,
    /// When it was prepared, in microseconds since 2000-01-01 00:00 UTC.
    pub prepared_at: i64,
    /// Its id, for listing; set by the engine.
    pub txn: u64,
    /// The advisory locks that it has taken, and whether shared: they are held until it is ended.
    #[serde(default)]
    pub advisory: Vec<(AdvisoryKey, bool)>,
}

/// The most prepared transactions there may be at a time (`max_prepared_transactions`).
pub const PREPARED_MAX: usize = 256;

/// What a commit answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitOutcome {
    /// The reply may leave when the log is durable up to here (rule R1).
    pub gate: Lsn,
    /// Where its record ends in the log; commits are in this order. `None` if there was nothing to log.
    pub position: Option<Lsn>,
}

/// One transaction. Dropping it rolls it back.
pub trait Txn: Send {
    /// The engine this belongs to.
    fn engine(&self) -> &dyn Engine;

    /// Its id, once it has written or locked something.
    fn id(&self) -> Option<TxnId>;

    /// Its id, which it gets now if it has none.
    ///
    /// # Errors
    /// 53400 if too many transactions are active.
    fn take_id(&mut self) -> Result<TxnId>;

    /// Its id, once it has changed something, locked a row, or been asked for it ([`Txn::take_id`]).
    fn shown_id(&self) -> Option<TxnId>;

    /// The transactions that its view does not see, itself among them if it has an id. The same for the same view.
    ///
    /// # Errors
    /// 72000 if more has committed since the view was taken than is remembered.
    fn unseen(&mut self) -> Result<Arc<Unseen>>;

    /// How the transaction has ended that has this number ([`TxnId::xid8`]).
    fn ending(&self, number: u64) -> Ending;

    /// A number that no transaction has exceeded so far.
    fn last_number(&self) -> TxnId;

    /// Its isolation level.
    fn isolation(&self) -> Isolation;

    /// Whether it has taken a view that outlives the command (REPEATABLE READ after its first command).
    fn has_view(&self) -> bool;

    /// The newest committed catalog plus its own DDL (rule R10).
    fn catalog(&self) -> Arc<Catalog>;

    /// Whether it has changed definitions, so that [`Txn::catalog`] is its own.
    fn has_definitions(&self) -> bool;

    /// Starts a command: the command number rises, and at READ COMMITTED the view is taken anew.
    fn begin_command(&mut self);

    /// For SERIALIZABLE READ ONLY DEFERRABLE, before the first command: takes a snapshot, and waits until no transaction that was
    /// under way can come to stand before it with changes that it does not have. From then on nothing it reads can make it fail. Call
    /// again after a wait.
    fn await_safe_snapshot(&mut self) -> Step<()>;

    /// Starts a command that sees the newest committed state also at REPEATABLE READ: what the queries behind foreign keys
    /// look at. The next [`Txn::begin_command`] returns to the transaction's view.
    fn begin_newest_command(&mut self);

    /// The view of the current command, for a cursor or portal that goes on after others. REQUIRES a command.
    fn keep_view(&mut self) -> KeptView;

    /// Sees what the transaction saw that kept the view, but for its own changes, from the first command on. REQUIRES that
    /// there has been none, and REPEATABLE READ or SERIALIZABLE.
    fn adopt_view(&mut self, view: &KeptView);

    /// Goes on with a command whose view was kept: sees what it saw. It must not write.
    fn resume_command(&mut self, view: &KeptView);

    /// Ends the command's view, so that it stops holding garbage back while the client thinks (READ COMMITTED).
    fn end_command(&mut self);

    /// The log position that replies depending on what was seen so far must wait for (rule R1).
    fn gate(&self) -> Lsn;

    /// Raises the gate: something outside of this trait's calls depends on a position (a scan's rows).
    fn raise_gate(&mut self, gate: Lsn);

    /// Opens a table by OID.
    ///
    /// # Errors
    /// XX000 if there is no such table in [`Txn::catalog`].
    fn open_table(&mut self, table: Oid) -> Result<TableRef>;

    /// Opens a scan for the current command.
    fn open_scan(&mut self, spec: ScanSpec) -> Result<Box<dyn Scan>>;

    /// Appends to `out` the visible rows whose key in `index` is exactly `key` (all columns). The point-read path.
    fn get(&mut self, table: &TableRef, index: Oid, key: &[u8], out: &mut RowBatch) -> Result<()>;

    /// As [`Txn::get`], if it is enough to know whether there is such a row: one is appended at most.
    fn get_any(&mut self, table: &TableRef, index: Oid, key: &[u8], out: &mut RowBatch) -> Result<()>;

    /// Appends to `out` the visible version of `row`; `false` if there is none.
    fn fetch(&mut self, table: &TableRef, row: RowId, out: &mut RowBatch) -> Result<bool>;

    /// Like [`Txn::get`], for the row that a foreign key points to; `newest`: on the newest committed (or own) versions
    /// instead of the view. REQUIRES that the caller locks with KEY SHARE what it finds: the lock, not the read set of a
    /// SERIALIZABLE transaction, keeps the key in place, so that changes of its other columns are no conflict.
    fn get_referenced(
        &mut self,
        table: &TableRef,
        index: Oid,
        key: &[u8],
        newest: bool,
        out: &mut RowBatch,
    ) -> Result<()>;

    /// Locks a table until the end of the transaction.
    ///
    /// # Errors
    /// 55P03 with [`WaitPolicy::Error`]; 40P01.
    fn lock_table(&mut self, table: Oid, mode: TableLockMode, policy: WaitPolicy) -> Result<Step<()>>;

    /// Locks a row until the end of the transaction (rule R7).
    ///
    /// # Errors
    /// 40001 at REPEATABLE READ if the newest version is not in the view; 55P03; 40P01.
    fn lock_row(
        &mut self,
        table: &TableRef,
        row: RowId,
        mode: RowLockMode,
        policy: WaitPolicy,
        out: &mut RowBatch,
    ) -> Result<Step<RowLockOutcome>>;

    /// Inserts a tuple of the table's newest layout, with its index entries.
    ///
    /// # Errors
    /// 23505 with PostgreSQL's message and detail; 53100; 53200.
    fn insert(&mut self, table: &TableRef, tuple: &[u8], arbiter: ConflictArbiter) -> Result<Step<InsertOutcome>>;

    /// Replaces the newest version of a row. REQUIRES a lock of NoKeyUpdate (Update if a unique key column that a
    /// foreign key can point at changes) held by this transaction.
    ///
    /// # Errors
    /// As for [`Txn::insert`].
    fn update(&mut self, table: &TableRef, row: RowId, tuple: &[u8]) -> Result<Step<()>>;

    /// Moves to `out` what inserts and updates since the last call have entered into deferrable unique indexes beside another
    /// row that has the key, or may get it: (index, row).
    fn take_unproven(&mut self, out: &mut Vec<(Oid, RowId)>);

    /// Whether a row, if it is there still, is the only one with its key in a unique index.
    ///
    /// # Errors
    /// 23505
    fn prove_unique(&mut self, table: &TableRef, index: Oid, row: RowId) -> Result<Step<()>>;

    /// Deletes a row. REQUIRES a lock of mode Update held by this transaction.
    fn delete(&mut self, table: &TableRef, row: RowId) -> Result<()>;

    /// Gives up the wait that the last call returned (cancel, timeout).
    fn cancel_wait(&mut self);

    /// A point to go back to.
    fn savepoint(&mut self) -> Savepoint;

    /// Forgets `savepoint` and those after it; what was done since stays.
    fn release(&mut self, savepoint: Savepoint);

    /// Undoes everything since `savepoint` and releases the row locks taken since. The savepoint stays usable.
    fn rollback_to(&mut self, savepoint: Savepoint);

    /// Undoes a part of what is newer than `savepoint`, or of all; `true` if so little is left that [`Txn::rollback_to`] or
    /// [`Txn::rollback`] need no time to speak of. One of them must follow, with nothing between.
    fn undo_some(&mut self, savepoint: Option<Savepoint>) -> bool;

    /// Adds or replaces a catalog object. A new table gets storage; a new index is built in steps over the rows.
    ///
    /// # Errors
    /// 23505 if an index build finds duplicates.
    fn put_object(&mut self, object: CatalogObject) -> Result<Step<()>>;

    /// Enters into an index that was put as `invalid`, in a transaction before, the rows that were there already; others write to
    /// the table meanwhile. To be called until it is ready; then the index may be put as valid.
    ///
    /// # Errors
    /// As for [`Txn::put_object`].
    fn fill_index(&mut self, index: Oid) -> Result<Step<()>>;

    /// Drops one catalog object (the caller resolves dependencies).
    fn drop_object(&mut self, object: Oid) -> Result<()>;

    /// Empties a table. REQUIRES AccessExclusive.
    fn truncate(&mut self, table: Oid) -> Result<()>;

    /// Commits. On `Ready` the transaction is over; the reply waits for the outcome's gate.
    ///
    /// # Errors
    /// 53100 if the log's disk is full, 40001; the transaction is then rolled back.
    fn commit(&mut self, durability: Durability) -> Result<Step<CommitOutcome>>;

    /// After [`Txn::commit`]: does a part of what a large transaction leaves to do – others see it as committed already –,
    /// and answers whether all is done. A caller with others to serve gives them a turn between two calls; a transaction
    /// that is dropped before does the rest at once.
    fn finish_some(&mut self) -> bool;

    /// The first phase of a commit in two: on `Ready` the transaction is over for the caller, and its locks and writes are the
    /// engine's, restarts included, until [`Engine::finish_prepared`].
    ///
    /// # Errors
    /// 42710 if the name is in use; 53200 if there are too many; 0A000 if temporary objects were used; as for [`Txn::commit`].
    fn prepare(&mut self, as_what: &PreparedTransaction) -> Result<Step<CommitOutcome>>;

    /// Rolls back; gives up what is left of a transaction that has ended. Never fails.
    fn rollback(&mut self);

    /// Begins another transaction in the place of this one, as [`Engine::begin`] would; what this one has not ended is rolled
    /// back.
    fn begin_anew(&mut self, options: TxnOptions);

    /// The layout in which the newest tuples of a table are written.
    fn layout(&self, table: &TableRef) -> LayoutId;
}
