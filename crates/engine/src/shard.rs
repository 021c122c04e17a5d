//! The shard: what its transactions share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use base::{Error, Lsn, Oid, Result, Timestamp};
use engine_api::{
    AdvisoryLocks, Catalog, CommitOutcome, Engine, IndexCompiler, LockRow, MemoryKind, MemoryUse, PreparedTransaction,
    SequenceDesc, SequenceState, Step, TableDesc, TableMemoryUse, Txn, TxnOptions,
};
use env::World;
use mvcc::Store;
use mvcc::index::OrderedIndex as _;
use parking_lot::{Mutex, RwLock};
use redo::{DriverError, DurableWatch, Log, LogStats, Replayed};
use rustc_hash::FxHashMap;
use types::user::{Committed, Current, Types};

use crate::advisory;
use crate::checkpoint::Images;
use crate::commit::gate::Gates;
use crate::commit::prepared::{self, Prepared};
use crate::commit::{Active, Serial};
use crate::memory::throttle::Throttle;
use crate::record::StorageId;
use crate::sequence::Sequences;
use crate::start::progress::Progress;
use crate::start::recovery::{self, OpenTimes};
use crate::storage::unique::Stripes;
use crate::storage::{TableStore, storage_id};
use crate::txn::{LongRecords, Transaction};

/// How a shard is opened.
#[derive(Clone)]
pub struct ShardOptions {
    /// Budget of memory in bytes: writers wait before it and are refused beyond it (53200), see `throttle`.
    pub memory_limit: u64,
    /// Sizes of the log's files.
    pub log: redo::FileOptions,
    /// Threads that load an image and build indexes at the start.
    pub threads: usize,
    /// Told how far the opening is.
    pub progress: Arc<Progress>,
    /// Makes the code of indexes over expressions and of partial ones; without it there are none.
    pub compiler: Option<Arc<dyn IndexCompiler>>,
}

impl std::fmt::Debug for ShardOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardOptions").field("memory_limit", &self.memory_limit).field("log", &self.log).finish()
    }
}

impl Default for ShardOptions {
    fn default() -> ShardOptions {
        ShardOptions {
            memory_limit: 8 << 30,
            log: redo::FileOptions::default(),
            threads: 2,
            progress: Arc::default(),
            compiler: None,
        }
    }
}

/// A commit and where it ends in the log.
pub(crate) type Position = (Timestamp, Lsn);

/// The newest committed catalog. Replaced in the log's critical section only.
///
/// Its version stands beside it: every statement compares it, and reading it must not write to memory that all cores share.
pub(crate) struct CurrentCatalog {
    version: AtomicU64,
    catalog: RwLock<Arc<Catalog>>,
}

impl CurrentCatalog {
    pub fn new(catalog: Catalog) -> CurrentCatalog {
        CurrentCatalog { version: AtomicU64::new(catalog.version), catalog: RwLock::new(Arc::new(catalog)) }
    }

    pub fn get(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
    }

    /// Version of the catalog that [`get`](CurrentCatalog::get) answers, or of the one before while it is being replaced.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Puts a changed copy in its place, with the next version.
    pub fn change(&self, change: impl FnOnce(&mut Catalog)) {
        let mut current = self.catalog.write();
        let mut catalog = Catalog::clone(&current);
        change(&mut catalog);
        catalog.version += 1;
        self.version.store(catalog.version, Ordering::Release);
        *current = Arc::new(catalog);
    }
}

/// State of the shard behind all transactions.
pub(crate) struct Inner {
    pub world: World,
    pub images: Images,
    pub opened: OpenTimes,
    pub compiler: Option<Arc<dyn IndexCompiler>>,
    pub store: Store,
    pub log: Log,
    pub gates: Gates,
    pub catalog: CurrentCatalog,
    /// The commit that made the catalog. Written before it is replaced.
    pub catalog_ts: AtomicU64,
    pub tables: RwLock<FxHashMap<StorageId, Arc<TableStore>>>,
    pub stripes: Stripes,
    /// Transactions between the phases of their commit, by name. Taken before `serial`.
    pub prepared: Mutex<BTreeMap<String, Prepared>>,
    /// Where SERIALIZABLE writers commit, one at a time.
    pub serial: Mutex<Serial>,
    /// The SERIALIZABLE transactions under way. Taken after `serial`.
    pub active: Mutex<Active>,
    /// How many that have ended are known to `serial`.
    pub past: AtomicUsize,
    pub sequences: Sequences,
    /// Written in the log's critical section only.
    pub last_ts: AtomicU64,
    pub next_oid: AtomicU32,
    pub commits: AtomicU64,
    pub long_records: LongRecords,
    /// Those who wait for memory.
    pub throttle: Throttle,
    /// Named in calls that do not wait.
    pub nobody: Arc<dyn mvcc::Wakeup>,
    /// The newest commit and its position, and an earlier one: the store's durable horizon is raised by the first of them that
    /// the log has reached. Under load the newest never is.
    pub newest_commit: Mutex<Position>,
    pub awaited_commit: Mutex<Position>,
}

impl Inner {
    /// The timestamp of the newest commit.
    pub fn last_timestamp(&self) -> Timestamp {
        Timestamp(self.last_ts.load(Ordering::Acquire))
    }

    /// The timestamp of the commit that made the catalog.
    pub fn catalog_timestamp(&self) -> Timestamp {
        Timestamp(self.catalog_ts.load(Ordering::Acquire))
    }

    /// The storage of a table, as its descriptor says.
    pub fn storage(&self, table: &TableDesc) -> Result<Arc<TableStore>> {
        self.tables
            .read()
            .get(&storage_id(table))
            .cloned()
            .ok_or_else(|| Error::internal(format!("table \"{}\" has no storage", table.name)))
    }

    /// Collects garbage: a little after every commit, so that it keeps up with the load that makes it.
    pub fn collect(&self, budget: usize) {
        let durable = self.log.durable().current();
        let newest = *self.newest_commit.lock();
        if let Some(mut awaited) = self.awaited_commit.try_lock() {
            for commit in [*awaited, newest].into_iter().filter(|commit| commit.1 <= durable) {
                self.store.raise_durable(commit.0);
                *awaited = newest;
            }
        }
        self.store.raise_durable(self.gates.durable());
        self.store.collect(budget);
    }
}

/// One shard. Clones are the same shard.
#[derive(Clone)]
pub struct Shard(pub(crate) Arc<Inner>);

impl Shard {
    /// Opens a shard: reads the log back and starts to serve.
    ///
    /// `on_failure` is called if the log fails: the process is expected to end and to recover when it starts again.
    ///
    /// # Errors
    /// If the log is damaged where it was durable, or cannot be read or written.
    pub fn open(
        world: &World,
        options: ShardOptions,
        on_failure: Box<dyn FnOnce(DriverError) + Send>,
    ) -> Result<(Shard, Replayed), DriverError> {
        recovery::open(world, options, on_failure)
    }

    /// Where the time of opening it went.
    pub fn open_times(&self) -> OpenTimes {
        self.0.opened
    }

    /// The durable position of the log, for the gates of replies.
    pub fn durable(&self) -> &DurableWatch {
        self.0.log.durable()
    }

    /// The end of what was appended to the log.
    pub fn log_end(&self) -> Lsn {
        self.0.log.end()
    }

    /// Makes everything durable and closes the log there, so that the next start finds exactly that. Nothing may be changed any
    /// more.
    ///
    /// # Errors
    /// Of the disk.
    pub fn close(&self) -> Result<(), DriverError> {
        self.0.log.close()
    }

    /// Figures of the log.
    pub fn log_stats(&self) -> LogStats {
        self.0.log.stats()
    }

    /// Frees at most `budget` rows' worth of versions that nobody can see any more. For a background task; transactions
    /// do a little of it themselves.
    pub fn collect_garbage(&self, budget: usize) {
        let _entered = Current::of(Arc::new(self.clone())).entered();
        self.0.collect(budget);
    }

    /// Frees some of the memory that was unlinked and that no thread can still look at. For a background task; threads
    /// that read do a little of it themselves.
    pub fn reclaim(&self) {
        mvcc::reclaim();
    }
}

impl Committed for Shard {
    fn types(&self) -> Arc<Types> {
        Arc::clone(self.0.catalog.get().types())
    }
}

impl Engine for Shard {
    fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog.get()
    }

    fn catalog_version(&self) -> u64 {
        self.0.catalog.version()
    }

    fn catalog_gate(&self) -> Lsn {
        self.0.gates.up_to(self.0.catalog_timestamp(), self.durable())
    }

    fn begin(&self, options: TxnOptions) -> Box<dyn Txn> {
        Box::new(Transaction::new(self.clone(), options))
    }

    fn prepared(&self) -> Vec<PreparedTransaction> {
        self.0.prepared.lock().values().map(Prepared::described).collect()
    }

    fn finish_prepared(&self, name: &str, commits: bool) -> Result<Step<(CommitOutcome, Box<dyn Txn>)>> {
        prepared::finish(self, name, commits)
    }

    fn advisory_locks(&self, session: u32) -> Result<Box<dyn AdvisoryLocks>> {
        advisory::of_session(self, session)
    }

    fn locks(&self) -> Vec<LockRow> {
        advisory::list(self)
    }

    fn may_be_locked(&self, table: Oid) -> bool {
        self.0.store.may_be_locked(table)
    }

    fn blockers_of(&self, session: u32) -> Vec<u32> {
        advisory::blockers_of(self, session)
    }

    fn allocate_oid(&self) -> Oid {
        Oid(self.0.next_oid.fetch_add(1, Ordering::Relaxed))
    }

    fn sequence_draw(&self, sequence: &SequenceDesc) -> Result<Step<(i64, Lsn)>> {
        self.0.sequences.next(&self.0, sequence)
    }

    fn sequence_gate(&self, sequence: &SequenceDesc) -> Lsn {
        self.0.sequences.gate(&self.0, sequence)
    }

    fn request_checkpoint(&self) -> u64 {
        self.0.images.request()
    }

    fn checkpoint_done(&self, number: u64) -> Result<Step<()>> {
        self.0.images.done(number)
    }

    fn sequence_set(&self, sequence: &SequenceDesc, state: SequenceState) -> Result<Step<()>> {
        self.0.sequences.set(&self.0, sequence, state)
    }

    fn sequence_restart(&self, sequence: &SequenceDesc, state: SequenceState) -> Result<Step<()>> {
        self.0.sequences.set_ahead(&self.0, sequence, state)
    }

    fn sequence_get(&self, sequence: &SequenceDesc) -> Result<SequenceState> {
        Ok(self.0.sequences.get(&self.0, sequence))
    }

    fn row_count(&self, table: Oid) -> u64 {
        let catalog = self.catalog();
        let storage = catalog.table(table).and_then(|desc| self.0.storage(desc).ok());
        storage.map_or(0, |s| s.rows.row_count())
    }

    fn changes(&self, table: Oid) -> u64 {
        let catalog = self.catalog();
        let storage = catalog.table(table).and_then(|desc| self.0.storage(desc).ok());
        storage.map_or(0, |s| s.rows.changes())
    }

    fn relation_bytes(&self, relation: Oid) -> Option<u64> {
        let catalog = self.catalog();
        if let Some(desc) = catalog.table(relation) {
            let held = self.0.storage(desc).ok()?.rows.memory();
            return Some(held.headers + held.versions);
        }
        let index = catalog.index(relation)?;
        let storage = self.0.storage(catalog.table(index.table)?).ok()?;
        let current = storage.upkeep.current();
        current.indexes.iter().find(|i| i.desc.oid == relation).map(|i| i.tree.memory_bytes() as u64)
    }

    fn memory(&self) -> MemoryUse {
        self.0.memory_use()
    }

    fn table_memory(&self) -> Vec<TableMemoryUse> {
        self.0.table_memory()
    }

    fn charge_memory(&self, kind: MemoryKind, bytes: i64) {
        self.0.store.memory().charge_other(kind as usize, bytes);
    }

    fn set_memory(&self, kind: MemoryKind, bytes: u64) {
        self.0.store.memory().set_other(kind as usize, bytes);
    }

    fn memory_level(&self) -> (u64, u64) {
        let memory = self.0.store.memory();
        (memory.used(), memory.limit())
    }

    fn set_memory_limit(&self, bytes: u64) {
        self.0.store.memory().set_limit(bytes);
    }
}
