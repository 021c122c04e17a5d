//! Opening a shard: the image of the last checkpoint, if there is one, and the log from there on.
//!
//! The image brings definitions, sequences, rows and what was prepared. Of records that end behind it, definitions are applied in
//! order, rows by many threads ([`crate::start::replay`]); of those before, which an image of version 1 needs, only transactions that are
//! prepared and not ended count. Indexes are
//! built at the end, from the rows that are left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use base::{Lsn, Oid, RowId, Timestamp, TxnId};
use checkpoint::{Holds, Image, ImageError, Manifest, is_image_file, remove_unnamed};
use engine_api::{Catalog, CatalogObject, PrivilegesDesc, SequenceState, oids};
use env::{DiskFile, World};
use mvcc::{Newest, Store, StoreOptions, pin};
use parking_lot::{Mutex, RwLock};
use redo::{DriverError, FileLog, FileOptions, Log, Record, RecordKind, Replayed};
use rustc_hash::FxHashMap;
use types::user::Current;

use crate::catalog;
use crate::checkpoint::{ImageState, Images, META_OBJECTS, META_PREPARED, META_STATE, table_of};
use crate::commit::gate::Gates;
use crate::commit::prepared::{self, Filler, Prepared, PreparedRows, Restored, Restoring};
use crate::record::{Op, Ops, StorageId};
use crate::sequence::Sequences;
use crate::shard::{CurrentCatalog, Inner, Shard, ShardOptions};
use crate::start::load::{ImageRows, image_error};
use crate::start::replay::{self, Appliers, KeptOperation};
use crate::storage::shape::settle_layouts;
use crate::storage::unique::Stripes;
use crate::storage::{TableStore, storage_id};
use crate::txn::LongRecords;

/// Where the time of opening a shard went, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenTimes {
    /// Reading the image.
    pub image_ms: u64,
    /// Reading the log, and bringing back what is prepared.
    pub log_ms: u64,
    /// Building indexes.
    pub indexes_ms: u64,
}

/// Tells phases apart.
struct PhaseClock<'w> {
    world: &'w World,
    began: u64,
}

impl PhaseClock<'_> {
    fn start(world: &World) -> PhaseClock<'_> {
        PhaseClock { world, began: world.clock.monotonic_nanos() }
    }

    /// Milliseconds since the last call.
    fn lap(&mut self) -> u64 {
        let now = self.world.clock.monotonic_nanos();
        (now - std::mem::replace(&mut self.began, now)) / 1_000_000
    }
}

/// The shard while its log is read.
struct Replay {
    store: Store,
    catalog: Catalog,
    tables: BTreeMap<StorageId, Arc<TableStore>>,
    sequences: Sequences,
    next_oid: u32,
    /// Payloads of prepared transactions that are not ended.
    prepared: BTreeMap<TxnId, Vec<u8>>,
    /// While the log is read.
    appliers: Option<Appliers>,
    /// Those of the record that is being read.
    places: Vec<KeptOperation>,
}

impl Replay {
    /// Takes over an image; `next` will be read behind it.
    fn image(
        &mut self,
        world: &World,
        options: &ShardOptions,
        manifest: &Manifest,
        next: Option<(Arc<dyn DiskFile>, u64)>,
    ) -> Result<(), DriverError> {
        let image = Image::open(&*world.disk, manifest).map_err(image_error)?;
        let malformed = |what: &str| DriverError::Corrupt(format!("a checkpoint's {what} cannot be read"));
        self.catalog = Catalog::default();
        self.catalog.version = 1;
        let objects = image.meta(META_OBJECTS).map_err(image_error)?;
        let (mut rest, mut defined) = (&objects[..], Vec::<CatalogObject>::new());
        while let Some((len, tail)) = rest.split_first_chunk() {
            let (json, tail) = tail.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or(malformed("objects"))?;
            defined.push(serde_json::from_slice(json).map_err(|_| malformed("objects"))?);
            rest = tail;
        }
        // A column may be of a type that is younger than its table.
        defined.sort_by_key(|object| !matches!(object, CatalogObject::Type(_)));
        defined.into_iter().for_each(|object| self.put(object));
        crate::catalog::templates(&self.catalog).into_iter().for_each(|object| self.put(object));
        let state = image.meta(META_STATE).map_err(image_error)?;
        let state: ImageState = serde_json::from_slice(&state).map_err(|_| malformed("state"))?;
        self.next_oid = self.next_oid.max(state.next_oid);
        let carried = image.meta(META_PREPARED).map_err(image_error)?;
        let carried = prepared::uncarried(&carried).ok_or(malformed("prepared transactions"))?;
        self.prepared.extend(carried.into_iter().map(|(id, payload)| (id, payload.to_vec())));
        for (oid, last_value, is_called) in state.sequences {
            self.sequences.restore(Oid(oid), SequenceState { last_value, is_called });
        }
        options.progress.expect_image(manifest.bytes(), self.entries_of(&image));
        let (tables, progress) = (self.tables.clone(), Arc::clone(&options.progress));
        crate::start::load::rows(
            world,
            options.threads,
            ImageRows { image, tables, ts: Timestamp(manifest.ts), progress, next },
        )?;
        for (table, storage, next) in state.tables {
            if let Some(store) = self.tables.get(&StorageId { table: Oid(table), storage }) {
                store.rows.set_next_row_id(RowId(next));
            }
        }
        Ok(())
    }

    /// How many entries the indexes will have of an image's rows.
    fn entries_of(&self, image: &Image) -> u64 {
        let entries = image.blocks().iter().map(|block| match &block.holds {
            Holds::Rows { table, rows, .. } => {
                u64::from(*rows) * self.catalog.indexes(table_of(*table).table).count() as u64
            }
            _ => 0,
        });
        entries.sum()
    }

    /// A record that the image has: only what is open between the phases of a commit is not in the rows. An image carries that
    /// beside them, so that this says of it what is known; one of version 1 does not. What the image carries is whole. The record may be the
    /// end of a chain that begins before the place that the log is read from, which is kept for what was open when the image was begun.
    fn old_record(&mut self, record: Record<'_>) {
        match record.kind {
            RecordKind::Prepare => _ = self.prepared.entry(record.txn).or_insert_with(|| record.payload.to_vec()),
            RecordKind::CommitPrepared | RecordKind::RollbackPrepared => _ = self.prepared.remove(&record.txn),
            _ => {}
        }
    }

    fn record(&mut self, record: Record<'_>) -> Result<(), String> {
        match record.kind {
            RecordKind::Commit => self.committed(record.payload, record.ts),
            RecordKind::Prepare => {
                self.prepared.insert(record.txn, record.payload.to_vec());
                Ok(())
            }
            RecordKind::CommitPrepared => {
                let missing = || format!("transaction {} is committed and was not prepared", record.txn);
                let payload = self.prepared.remove(&record.txn).ok_or_else(missing)?;
                self.committed(&payload, record.ts)
            }
            RecordKind::RollbackPrepared => {
                self.prepared.remove(&record.txn);
                Ok(())
            }
            RecordKind::Sequence => {
                let oid = self.sequences.replay(record.payload).ok_or("a sequence record is malformed")?;
                // Its transaction may be lost: another sequence of the same OID would go on where this one was.
                self.next_oid = self.next_oid.max(oid.0.saturating_add(1));
                Ok(())
            }
            RecordKind::Noop | RecordKind::Message => Ok(()),
            RecordKind::Chunk => Err("a chunk where a record must be".to_string()),
        }
    }

    /// Applies a payload: definitions at once, rows by the threads.
    fn committed(&mut self, payload: &[u8], ts: Timestamp) -> Result<(), String> {
        let mut places = std::mem::take(&mut self.places);
        replay::places(payload, &mut places)?;
        let mut known = None;
        for place in &places {
            match place.row {
                // Rows of one table mostly follow each other.
                Some((storage, _)) if known == Some(storage) => {}
                Some((storage, _)) => {
                    self.rows(storage)?;
                    known = Some(storage);
                }
                None => {
                    known = None;
                    let op = Ops::new(&payload[place.at..]).next().and_then(Result::ok);
                    self.definition(&op.ok_or("an operation is cut short")?)?;
                }
            }
        }
        let Some(appliers) = &mut self.appliers else { return Err("rows behind the end of the log".to_string()) };
        let pushed = appliers.push(ts, payload, &places);
        self.places = places;
        pushed
    }

    /// What the operations of a prepared transaction make of rows. REQUIRES that all rows are applied. One that defines, too, may
    /// have given up storage that it had made: rows of that are left out.
    fn rows_of(&self, ops: Vec<(u64, Op<'_>)>, defines: bool) -> Result<PreparedRows, String> {
        let mut rows = PreparedRows::default();
        for (_, op) in ops {
            if let Op::Insert { storage, .. } | Op::Update { storage, .. } | Op::Delete { storage, .. } = &op
                && (!defines || self.tables.contains_key(storage))
            {
                self.row_of(op, &mut rows)?;
            }
        }
        Ok(rows)
    }

    /// Begins to bring back what is prepared.
    fn restore(&mut self) -> Result<Vec<Restoring>, String> {
        let mut restoring = Vec::new();
        for (id, payload) in std::mem::take(&mut self.prepared) {
            let ops = live_ops(&payload)?;
            let json = prepared::state_in(&ops).ok_or("a prepared transaction does not say what it is")?;
            let mut definitions = Restored::read(&ops, &self.catalog)?;
            if let Some(definitions) = &mut definitions {
                definitions.oids().for_each(|oid| self.count_oid(oid));
                definitions.storage(&self.store, &mut self.tables);
            }
            let rows = self.rows_of(ops, definitions.is_some())?;
            restoring.push(Restoring::begin(&self.store, &self.tables, id, json, rows, definitions)?);
        }
        Ok(restoring)
    }

    fn rows(&self, storage: StorageId) -> Result<&Arc<TableStore>, String> {
        self.tables.get(&storage).ok_or_else(|| format!("rows of {storage:?}, which was never made"))
    }

    fn row_of(&self, op: Op<'_>, rows: &mut PreparedRows) -> Result<(), String> {
        match op {
            Op::Insert { storage, row, layout, tuple } => {
                self.rows(storage)?;
                rows.insert((storage, row), Some((layout, tuple.to_vec())));
            }
            Op::Update { storage, row, layout, delta } => {
                let missing = || format!("an update of row {row} of {storage:?}, which is not there");
                let mut tuple = Vec::new();
                match rows.get(&(storage, row)) {
                    Some(Some((_, old))) => delta.apply(old, &mut tuple).map_err(|e| e.0.to_string())?,
                    Some(None) => return Err(missing()),
                    None => {
                        let guard = pin();
                        match self.rows(storage)?.rows.newest(row, None, &guard) {
                            Newest::Live(old) => delta.apply(old.tuple, &mut tuple).map_err(|e| e.0.to_string())?,
                            _ => return Err(missing()),
                        }
                    }
                }
                rows.insert((storage, row), Some((layout, tuple)));
            }
            Op::Delete { storage, row } => {
                self.rows(storage)?;
                rows.insert((storage, row), None);
            }
            _ => {}
        }
        Ok(())
    }

    fn definition(&mut self, op: &Op<'_>) -> Result<(), String> {
        match op {
            Op::PutObject { json } => {
                let object: CatalogObject =
                    serde_json::from_slice(json).map_err(|e| format!("a catalog object cannot be read: {e}"))?;
                self.put(object);
            }
            Op::DropObject { oid } => {
                self.catalog.remove(*oid);
                self.tables.retain(|id, _| id.table != *oid);
            }
            _ => {}
        }
        Ok(())
    }

    /// Temporary relations went with the sessions that had them.
    fn forget_temporary(&mut self) {
        let schemas = |o: &CatalogObject| matches!(o, CatalogObject::Schema(s) if s.name.starts_with("pg_temp_"));
        let temporary: Vec<Oid> = self.catalog.objects().filter(|o| schemas(o)).map(|o| o.oid()).collect();
        let inside = |o: &CatalogObject| temporary.contains(&o.oid()) || temporary.contains(&o.namespace().1);
        let gone: Vec<Oid> = self.catalog.objects().filter(|o| inside(o)).map(|o| o.oid()).collect();
        for oid in gone {
            self.catalog.remove(oid);
            self.tables.retain(|id, _| id.table != oid);
        }
    }

    /// An OID is taken.
    fn count_oid(&mut self, oid: Oid) {
        if oid.0 & PrivilegesDesc::ATTACHED == 0 {
            self.next_oid = self.next_oid.max(oid.0.saturating_add(1));
        }
    }

    fn put(&mut self, mut object: CatalogObject) {
        let _entered = Current::by(self.catalog.types()).entered();
        if let CatalogObject::Table(table) = &mut object {
            settle_layouts(table, self.catalog.table(table.oid));
        }
        self.count_oid(object.oid());
        object.oids_of_parts().into_iter().for_each(|oid| self.count_oid(oid));
        if let CatalogObject::Type(ty) = &object {
            ty.oids().for_each(|oid| self.count_oid(oid));
        }
        if let CatalogObject::Table(table) = &object
            && table.is_stored()
        {
            let id = storage_id(table);
            let store = &self.store;
            self.tables.retain(|other, _| other.table != id.table || *other == id);
            if !self.tables.contains_key(&id) {
                let made = Arc::new(TableStore::new(store, table, Vec::new()));
                self.appliers.iter_mut().for_each(|appliers| appliers.add_storage(&made));
                self.tables.insert(id, made);
            }
        }
        self.catalog.put(Arc::new(object));
    }
}

/// The operations of a record that were not undone inside their transaction, each with the byte where it begins.
pub(crate) fn live_ops(payload: &[u8]) -> Result<Vec<(u64, Op<'_>)>, String> {
    let mut live: Vec<(u64, Op<'_>)> = Vec::new();
    let mut ops = Ops::new(payload);
    loop {
        let offset = (payload.len() - ops.remaining()) as u64;
        let Some(op) = ops.next() else { break };
        match op.map_err(|e| e.0.to_string())? {
            Op::UndoTo { offset: to } => live.retain(|(at, _)| *at < to),
            op => live.push((offset, op)),
        }
    }
    Ok(live)
}

/// Which image counts, if there is one. Without a manifest, files of images are beginnings, which the log does not need: it has all
/// from its first byte on. If it has not, the manifest is lost.
///
/// # Errors
/// All.
pub(crate) fn manifest(world: &World) -> Result<Option<Manifest>, ImageError> {
    let manifest = Manifest::read(&*world.disk)?;
    let log = FileLog::new(Arc::clone(&world.disk), FileOptions::default());
    if manifest.is_none() && log.segment_at(Lsn(0)).is_none() {
        let names = world.disk.list()?;
        if let Some(image) = names.iter().find(|name| is_image_file(name)) {
            let lost = format!("manifest is missing: there is {image}, and the log does not begin at position 0");
            return Err(ImageError::Damaged(lost));
        }
    }
    Ok(manifest)
}

/// See [`Shard::open`].
pub(crate) fn open(
    world: &World,
    options: ShardOptions,
    on_failure: Box<dyn FnOnce(DriverError) + Send>,
) -> Result<(Shard, Replayed), DriverError> {
    let mut clock = PhaseClock::start(world);
    let manifest = manifest(world).map_err(image_error)?;
    remove_unnamed(&*world.disk, manifest.as_ref()).map_err(DriverError::Failed)?;
    let progress = &options.progress;
    let store = StoreOptions { horizon: Timestamp(0), memory_limit: options.memory_limit };
    let mut replay = Replay {
        store: Store::new(store),
        catalog: catalog::initial(),
        tables: BTreeMap::new(),
        sequences: Sequences::default(),
        next_oid: oids::FIRST_USER.0,
        prepared: BTreeMap::new(),
        appliers: None,
        places: Vec::new(),
    };
    let (mut upto, mut log_from) = (Lsn(0), Lsn(0));
    if let Some(manifest) = &manifest {
        (upto, log_from) = (Lsn(manifest.upto), Lsn(manifest.log_from));
    }
    let driver = FileLog::new(Arc::clone(&world.disk), options.log);
    let driver = Box::new(driver.read_ahead_by(Arc::clone(&world.spawn)).durable_up_to(upto));
    let log_bytes = driver.bytes_from(log_from)?;
    progress.expect_log(log_bytes);
    progress.expect_entries_of_log(log_bytes);
    if let Some(manifest) = &manifest {
        replay.image(world, &options, manifest, driver.segment_at(log_from))?;
    }
    let mut times = OpenTimes { image_ms: clock.lap(), ..OpenTimes::default() };
    let mut appliers = Appliers::start(world, options.threads);
    replay.tables.values().for_each(|store| appliers.add_storage(store));
    replay.appliers = Some(appliers);
    let mut apply = |record: Record<'_>| {
        progress.replayed(record.end.0 - log_from.0);
        match record.end <= upto {
            true => {
                replay.old_record(record);
                Ok(())
            }
            false => replay.record(record),
        }
    };
    let (log, mut replayed) = Log::open(world, driver, log_from, &mut apply, on_failure)?;
    replay.appliers.take().map_or(Ok(()), Appliers::finish).map_err(DriverError::Corrupt)?;
    // Segments that a crash kept from being removed.
    log.trim(log_from);
    if let Some(manifest) = &manifest {
        replayed.last_ts = replayed.last_ts.max(Timestamp(manifest.ts));
        replayed.last_txn = replayed.last_txn.max(TxnId(manifest.last_txn));
    }
    replay.store.start_ids_after(replayed.last_txn);
    let restoring = replay.restore().map_err(DriverError::Corrupt)?;
    let compiler = options.compiler.clone();
    replay.forget_temporary();
    let Replay { store, catalog, mut tables, sequences, next_oid, .. } = replay;
    store.advance_horizon(replayed.last_ts);
    store.raise_durable(replayed.last_ts);
    for rows in tables.values_mut() {
        let alone = Arc::get_mut(rows);
        base::invariant!(alone.is_some(), "nobody has a table open while its log is read");
        alone.into_iter().for_each(TableStore::settle);
    }
    times.log_ms = clock.lap();
    let _entered = Current::by(catalog.types()).entered();
    crate::start::load::indexes(world, options.threads, &store, compiler.as_deref(), &catalog, &tables, progress)?;
    times.indexes_ms = clock.lap();
    let inner = Inner {
        world: world.clone(),
        opened: times,
        images: Images::new(manifest),
        compiler,
        store,
        log,
        gates: Gates::new(replayed.last_ts),
        catalog: CurrentCatalog::new(catalog),
        catalog_ts: AtomicU64::new(replayed.last_ts.0),
        tables: RwLock::new(tables.into_iter().collect::<FxHashMap<_, _>>()),
        stripes: Stripes::new(),
        prepared: Mutex::default(),
        serial: Mutex::default(),
        active: Mutex::default(),
        past: AtomicUsize::new(0),
        sequences,
        last_ts: AtomicU64::new(replayed.last_ts.0),
        next_oid: AtomicU32::new(next_oid),
        commits: AtomicU64::new(0),
        long_records: LongRecords::default(),
        throttle: Default::default(),
        nobody: crate::locks::nobody(),
        newest_commit: Mutex::new((replayed.last_ts, replayed.end)),
        awaited_commit: Mutex::new((replayed.last_ts, replayed.end)),
    };
    let shard = Shard(Arc::new(inner));
    let filler = Filler { world, threads: options.threads, progress };
    for prepared in restoring {
        prepared.finish(&shard, &filler).map_err(DriverError::Corrupt)?;
    }
    settle_sequences(&shard);
    Ok((shard, replayed))
}

/// Forgets the states of sequences that no definition speaks of, be it committed or prepared: their transactions are lost.
fn settle_sequences(shard: &Shard) {
    let inner = &shard.0;
    let catalog = inner.catalog.get();
    let prepared = inner.prepared.lock();
    let committed = catalog.objects().filter_map(|object| catalog.sequence(object.oid()));
    inner.sequences.settle(committed.chain(prepared.values().flat_map(Prepared::sequences)));
}
