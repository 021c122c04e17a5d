//! Verifying a data directory without opening it.
//!
//! Responsible for: reading all that a start would read – manifest, image, log –, with checksums and decoding, and whether the
//! parts fit: files and rows as the manifest says, rows of tables that are defined, a log that begins and ends where the image needs it.
//! Not responsible for: keeping others from the directory meanwhile.
//! Invariants: nothing is changed on the disk, and no row is kept in memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use base::{Lsn, Oid, RowId, TxnId};
use checkpoint::{Holds, Image, ImageError, Manifest, Scratch};
use engine_api::{Catalog, CatalogObject};
use env::World;
use redo::{DriverError, FileLog, FileOptions, Record, RecordKind};

use crate::catalog;
use crate::checkpoint::{ImageState, META_OBJECTS, META_PREPARED, META_STATE, table_of};
use crate::commit::prepared;
use crate::record::{Op, StorageId};
use crate::start::progress::Progress;
use crate::start::recovery::{live_ops, manifest};
use crate::storage::storage_id;

/// Why a directory is not sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// Something is not as it was written: what, with file and byte.
    Damaged(String),
    /// It could not be read: of another version, or the disk failed.
    Unreadable(String),
}

/// A table of a sound directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedTable {
    /// With its schema.
    pub name: String,
    /// Rows in the image.
    pub image_rows: u64,
    /// Rows that a start would find.
    pub rows: u64,
}

/// A directory in which nothing is wrong.
#[derive(Clone, Debug, Default)]
pub struct Sound {
    /// The image that counts.
    pub checkpoint: Option<Manifest>,
    /// Tables with rows of their own, by name.
    pub tables: Vec<CheckedTable>,
    /// Objects of the catalog.
    pub objects: usize,
    /// The catalog.
    pub catalog: Arc<Catalog>,
    /// Names of transactions that are prepared.
    pub prepared: Vec<String>,
    /// Bytes of log that a start reads back.
    pub log_bytes: u64,
    /// Records in them.
    pub log_records: u64,
    /// Where something lies behind the log's end that a start would cut off; whether it was acknowledged cannot be told.
    pub cut: Option<String>,
    /// Whether the log was closed at its end; one of an earlier version does not say.
    pub was_closed: Option<bool>,
}

impl From<ImageError> for CheckError {
    fn from(error: ImageError) -> CheckError {
        match error {
            ImageError::Damaged(place) => CheckError::Damaged(place),
            other => CheckError::Unreadable(other.to_string()),
        }
    }
}

impl From<DriverError> for CheckError {
    fn from(error: DriverError) -> CheckError {
        match error {
            DriverError::Corrupt(place) => CheckError::Damaged(place),
            other => CheckError::Unreadable(other.to_string()),
        }
    }
}

/// Verifies the directory of `world`; `progress` tells how far that is.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(world: &World, progress: &Progress) -> Result<Sound, CheckError> {
    let mut checking = Checking::default();
    let manifest = manifest(world)?;
    let log_from = Lsn(manifest.as_ref().map_or(0, |manifest| manifest.log_from));
    progress.expect_log(FileLog::new(Arc::clone(&world.disk), FileOptions::default()).bytes_from(log_from)?);
    match &manifest {
        Some(manifest) => checking.image(world, manifest, progress)?,
        None => catalog::initial().objects().for_each(|object| checking.put(CatalogObject::clone(object))),
    }
    let upto = Lsn(manifest.as_ref().map_or(0, |manifest| manifest.upto));
    let found = redo::inspect(&world.disk, log_from, upto, &mut |record| {
        progress.replayed(record.end.0 - log_from.0);
        checking.record(record, upto)
    })?;
    checking.references()?;
    let prepared = checking.prepared.values().map(|(name, _)| name.clone()).collect();
    Ok(Sound {
        tables: checking.named(),
        objects: checking.catalog.objects().count(),
        catalog: Arc::new(checking.catalog),
        checkpoint: manifest,
        prepared,
        log_bytes: found.end.0 - log_from.0,
        log_records: found.records,
        cut: found.cut,
        was_closed: found.was_closed,
    })
}

/// Rows of a table's storage.
#[derive(Default)]
struct CheckedRows {
    image: u64,
    now: u64,
}

fn object_in(json: &[u8]) -> Result<CatalogObject, String> {
    serde_json::from_slice(json).map_err(|e| format!("a catalog object cannot be read: {e}"))
}

/// What is known while a directory is read.
#[derive(Default)]
struct Checking {
    catalog: Catalog,
    storages: BTreeMap<StorageId, CheckedRows>,
    /// Names and payloads of transactions that are prepared and not ended.
    prepared: BTreeMap<TxnId, (String, Vec<u8>)>,
}

impl Checking {
    fn image(&mut self, world: &World, manifest: &Manifest, progress: &Progress) -> Result<(), CheckError> {
        let image = Image::open(&*world.disk, manifest)?;
        progress.expect_image(manifest.bytes(), 0);
        let place = |name: u64| {
            let block = image.blocks().iter().find(|block| block.holds == Holds::Meta(name));
            block.map_or_else(|| "manifest at byte 0".to_string(), |block| image.place_of(block))
        };
        let malformed = |name: u64, what: &str| CheckError::Damaged(format!("{}: {what} cannot be read", place(name)));
        let objects = image.meta(META_OBJECTS)?;
        let mut rest = &objects[..];
        while let Some((len, tail)) = rest.split_first_chunk() {
            let json = tail.split_at_checked(u32::from_le_bytes(*len) as usize);
            let (json, tail) = json.ok_or_else(|| malformed(META_OBJECTS, "the catalog"))?;
            self.put(serde_json::from_slice(json).map_err(|e| malformed(META_OBJECTS, &format!("an object ({e})")))?);
            rest = tail;
        }
        if !rest.is_empty() {
            return Err(malformed(META_OBJECTS, "the catalog"));
        }
        catalog::templates(&self.catalog).into_iter().for_each(|object| self.put(object));
        let state = image.meta(META_STATE)?;
        let _: ImageState = serde_json::from_slice(&state).map_err(|_| malformed(META_STATE, "its state"))?;
        self.blocks(&image, manifest, progress)?;
        let carried = image.meta(META_PREPARED)?;
        let wrong = || malformed(META_PREPARED, "a prepared transaction");
        for (id, payload) in prepared::uncarried(&carried).ok_or_else(wrong)? {
            self.prepare(id, payload).map_err(|_| wrong())?;
        }
        progress.all_loaded();
        Ok(())
    }

    /// All blocks, and what the manifest says of each file.
    fn blocks(&mut self, image: &Image, manifest: &Manifest, progress: &Progress) -> Result<(), CheckError> {
        let mut scratch = Scratch::default();
        let mut found = vec![(0, 0, 0); manifest.files.len()];
        let mut ranges: BTreeMap<(StorageId, RowId), Range<RowId>> = BTreeMap::new();
        for block in image.blocks() {
            let content = image.verify(block, &mut scratch)?;
            let (blocks, rows, bytes) = &mut found[image.file_of(block)];
            *blocks += 1;
            *bytes += content;
            if let Holds::Rows { table, range, rows: count } = &block.holds {
                *rows += u64::from(*count);
                let id = table_of(*table);
                let storage = self.storages.get_mut(&id).ok_or_else(|| {
                    let place = image.place_of(block);
                    CheckError::Damaged(format!("{place}: rows of {id:?}, which is not defined"))
                })?;
                storage.image += u64::from(*count);
                storage.now += u64::from(*count);
                let before = ranges.range(..=(id, range.start)).next_back().filter(|((other, _), _)| *other == id);
                let is_twice = before.is_some_and(|(_, before)| before.end > range.start)
                    || ranges.insert((id, range.start), range.clone()).is_some();
                if is_twice {
                    return Err(CheckError::Damaged(format!("{}: rows that another block has", image.place_of(block))));
                }
            }
            progress.loaded(block.bytes());
        }
        for (file, found) in manifest.files.iter().zip(found) {
            if found != (file.blocks, file.rows, file.content) {
                let (blocks, rows, bytes) = found;
                return Err(CheckError::Damaged(format!(
                    "manifest at byte 0: {} has {blocks} blocks, {rows} rows, {bytes} bytes, not {}, {}, {}",
                    file.name, file.blocks, file.rows, file.content
                )));
            }
        }
        Ok(())
    }

    fn put(&mut self, object: CatalogObject) {
        if let CatalogObject::Table(table) = &object
            && table.is_stored()
        {
            self.storages.entry(storage_id(table)).or_default();
        }
        self.catalog.put(Arc::new(object));
    }

    fn record(&mut self, record: Record<'_>, upto: Lsn) -> Result<(), String> {
        let is_new = record.end > upto;
        match record.kind {
            RecordKind::Commit if is_new => self.committed(record.payload),
            RecordKind::Commit => live_ops(record.payload).map(drop),
            RecordKind::Prepare => self.prepare(record.txn, record.payload),
            RecordKind::CommitPrepared => match self.prepared.remove(&record.txn) {
                Some((_, payload)) if is_new => self.committed(&payload),
                None if is_new => Err(format!("transaction {} is committed and was not prepared", record.txn)),
                _ => Ok(()),
            },
            RecordKind::RollbackPrepared => {
                self.prepared.remove(&record.txn);
                Ok(())
            }
            RecordKind::Sequence if record.payload.len() < 12 => Err("a sequence record is malformed".to_string()),
            RecordKind::Sequence | RecordKind::Noop | RecordKind::Message => Ok(()),
            RecordKind::Chunk => Err("a chunk where a record must be".to_string()),
        }
    }

    fn prepare(&mut self, id: TxnId, payload: &[u8]) -> Result<(), String> {
        let ops = live_ops(payload)?;
        for (_, op) in &ops {
            if let Op::PutObject { json } = op {
                object_in(json)?;
            }
        }
        let state = prepared::state_in(&ops);
        let name = state.and_then(prepared::name_in).ok_or("a prepared transaction does not say what it is")?;
        self.prepared.insert(id, (name, payload.to_vec()));
        Ok(())
    }

    fn committed(&mut self, payload: &[u8]) -> Result<(), String> {
        for (_, op) in live_ops(payload)? {
            match op {
                Op::Insert { storage, .. } => self.rows(storage)?.now += 1,
                Op::Update { storage, row, .. } => {
                    if self.rows(storage)?.now == 0 {
                        return Err(format!("an update of row {row} of {storage:?}, which is not there"));
                    }
                }
                Op::Delete { storage, row } => {
                    let rows = self.rows(storage)?;
                    let missing = || format!("a delete of row {row} of {storage:?}, which is not there");
                    rows.now = rows.now.checked_sub(1).ok_or_else(missing)?;
                }
                Op::PutObject { json } => self.put(object_in(json)?),
                Op::DropObject { oid } => self.catalog.remove(oid),
                Op::UndoTo { .. } | Op::Prepared { .. } => {}
            }
        }
        Ok(())
    }

    fn rows(&mut self, storage: StorageId) -> Result<&mut CheckedRows, String> {
        self.storages.get_mut(&storage).ok_or_else(|| format!("rows of {storage:?}, which was never made"))
    }

    /// Whether what the objects of the catalog speak of is there.
    fn references(&self) -> Result<(), CheckError> {
        let missing = |what: &str, name: &str, oid: Oid| {
            CheckError::Damaged(format!("catalog: {what} \"{name}\" speaks of object {oid}, which is not there"))
        };
        for object in self.catalog.objects() {
            match &**object {
                CatalogObject::Index(index) if self.catalog.table(index.table).is_none() => {
                    return Err(missing("index", &index.name, index.table));
                }
                CatalogObject::Table(table) if self.catalog.get(table.schema).is_none() => {
                    return Err(missing("table", &table.name, table.schema));
                }
                CatalogObject::Sequence(sequence) if self.catalog.get(sequence.schema).is_none() => {
                    return Err(missing("sequence", &sequence.name, sequence.schema));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn named(&self) -> Vec<CheckedTable> {
        let tables = self.catalog.objects().filter_map(|object| match &**object {
            CatalogObject::Table(table) if table.is_stored() => Some(table),
            _ => None,
        });
        let mut named: Vec<CheckedTable> = tables
            .map(|table| {
                let rows = self.storages.get(&storage_id(table));
                let schema = self.catalog.get(table.schema).map_or("?", |schema| schema.name());
                CheckedTable {
                    name: format!("{schema}.{}", table.name),
                    image_rows: rows.map_or(0, |rows| rows.image),
                    rows: rows.map_or(0, |rows| rows.now),
                }
            })
            .collect();
        named.sort_by(|a, b| a.name.cmp(&b.name));
        named
    }
}
