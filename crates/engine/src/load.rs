//! Many threads at a start: the rows of an image, then the entries of indexes.
//!
//! Both are lists of parts that do not touch each other – blocks of rows, indexes –, and each thread takes the next part until
//! there is none. An index is filled by one thread in the order of rows: keys that rise with them, as most primary keys do, fill
//! its pages to the brim. Two threads that fill two ranges of it leave pages half full, and everything that uses it later
//! slower by a tenth.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{RowId, Timestamp};
use checkpoint::{Holds, Image, ImageError, Scratch};
use engine_api::{Catalog, IndexCompiler};
use env::World;
use mvcc::index::OrderedIndex as _;
use mvcc::{Newest, Store, pin};
use parking_lot::Mutex;
use redo::DriverError;

use crate::checkpoint::table_of;
use crate::progress::Progress;
use crate::record::StorageId;
use crate::shape::Shape;
use crate::storage::{IndexStore, TableStore};

/// What an image's error means to whoever opens the shard.
pub(crate) fn image_error(error: ImageError) -> DriverError {
    match error {
        ImageError::Io(error) => DriverError::Failed(error),
        other => DriverError::Refused(other.to_string()),
    }
}

/// Work in numbered parts.
trait Parts: Send + Sync + 'static {
    /// Does a part; `Ok(false)` if there is none of this number.
    fn part(&self, number: usize, scratch: &mut Scratch) -> Result<bool, DriverError>;
}

/// Does all parts with so many threads; the first error ends it.
fn run<P: Parts>(world: &World, threads: usize, name: &str, parts: P) -> Result<(), DriverError> {
    let shared = Arc::new((parts, AtomicUsize::new(0), Mutex::new(None)));
    let work = |shared: Arc<(P, AtomicUsize, Mutex<Option<DriverError>>)>| {
        let (parts, next, error) = &*shared;
        let mut scratch = Scratch::default();
        loop {
            match parts.part(next.fetch_add(1, Ordering::Relaxed), &mut scratch) {
                Ok(true) if error.lock().is_none() => {}
                Ok(_) => break,
                Err(found) => {
                    error.lock().get_or_insert(found);
                    break;
                }
            }
        }
    };
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let shared = Arc::clone(&shared);
            world.spawn.spawn(name, Box::new(move || work(shared)))
        })
        .collect();
    work(Arc::clone(&shared));
    others.into_iter().for_each(|thread| thread.join());
    let error = shared.2.lock().take();
    error.map_or(Ok(()), Err)
}

struct Rows {
    image: Image,
    tables: BTreeMap<StorageId, Arc<TableStore>>,
    ts: Timestamp,
    progress: Arc<Progress>,
}

impl Parts for Rows {
    fn part(&self, number: usize, scratch: &mut Scratch) -> Result<bool, DriverError> {
        let Some(block) = self.image.blocks().get(number) else { return Ok(false) };
        let Holds::Rows { table, .. } = &block.holds else { return Ok(true) };
        let id = table_of(*table);
        let missing = || DriverError::Corrupt(format!("a checkpoint has rows of {id:?}, which it does not define"));
        let store = self.tables.get(&id).ok_or_else(missing)?;
        let guard = pin();
        let each = |row, layout, tuple: &[u8]| _ = store.rows.load(row, self.ts, layout, tuple, &guard);
        self.image.rows(block, scratch, each).map_err(image_error)?;
        self.progress.loaded(block.bytes());
        Ok(true)
    }
}

/// Loads the rows of an image.
pub(crate) fn rows(
    world: &World,
    threads: usize,
    image: Image,
    tables: &BTreeMap<StorageId, Arc<TableStore>>,
    ts: Timestamp,
    progress: &Arc<Progress>,
) -> Result<(), DriverError> {
    let rows = Rows { image, tables: tables.clone(), ts, progress: Arc::clone(progress) };
    run(world, threads, "load-rows", rows)?;
    progress.all_loaded();
    Ok(())
}

/// An index to be filled.
struct Entries {
    store: Arc<TableStore>,
    shape: Arc<Shape>,
    index: Arc<IndexStore>,
    progress: Arc<Progress>,
}

/// Rows after which an index tells how far it is.
const TELL: u64 = 1 << 12;

impl Parts for Vec<Entries> {
    fn part(&self, number: usize, _: &mut Scratch) -> Result<bool, DriverError> {
        let Some(Entries { store, shape, index, progress }) = self.get(number) else { return Ok(false) };
        let mut key = Vec::new();
        let guard = pin();
        for row in (0..store.rows.end().0).map(RowId) {
            if row.0 % TELL == TELL - 1 {
                progress.indexed(TELL);
            }
            if let Newest::Live(version) = store.rows.newest(row, None, &guard) {
                key.clear();
                shape.key(index, version.layout, version.tuple, &mut key);
                // A partial index does not have every row.
                if !key.is_empty() {
                    let added = index.tree.insert(&key, row);
                    base::invariant!(added.is_ok(), "a key of row {row} was accepted once");
                }
            }
        }
        Ok(true)
    }
}

/// Gives tables their shapes and their indexes the entries.
pub(crate) fn indexes(
    world: &World,
    threads: usize,
    memory: &Store,
    compiler: Option<&dyn IndexCompiler>,
    catalog: &Catalog,
    tables: &BTreeMap<StorageId, Arc<TableStore>>,
    progress: &Arc<Progress>,
) -> Result<(), DriverError> {
    let mut entries: Vec<Entries> = Vec::new();
    for store in tables.values() {
        let Some(table) = catalog.table(store.id.table) else { continue };
        let shape = Arc::new(Shape::of(table));
        store.upkeep.replace_shape(Arc::clone(&shape));
        for desc in catalog.indexes(table.oid).filter(|desc| !desc.unready) {
            let index = IndexStore::empty(memory, compiler, catalog, table, desc.clone())
                .map_err(|error| DriverError::Corrupt(error.to_string()))?;
            entries.push(Entries {
                store: Arc::clone(store),
                shape: Arc::clone(&shape),
                index: Arc::clone(&index),
                progress: Arc::clone(progress),
            });
            store.add_index(index);
        }
    }
    progress.expect_entries(entries.iter().map(|entries| entries.store.rows.end().0).sum());
    // The largest first, so that no thread is left alone with one at the end.
    entries.sort_by_key(|entries| std::cmp::Reverse(entries.store.rows.row_count()));
    run(world, threads, "load-indexes", entries)
}
