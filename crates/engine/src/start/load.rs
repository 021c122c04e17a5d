//! Many threads at a start: the rows of an image, then the entries of indexes.
//!
//! Both are lists of parts that do not touch each other – blocks of rows, ranges of rows or of keys –, and each thread takes the
//! next part until there is none. Blocks are read ahead of the threads, some at once ([`crate::start::ahead`]). How an index is cut
//! into parts is [`crate::index_build::fill`]'s.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Timestamp;
use checkpoint::{BlockRef, Holds, Image, ImageError, Piece, PieceBytes, Scratch};
use engine_api::{Catalog, IndexCompiler};
use env::{DiskFile, World};
use mvcc::{Store, pin};
use parking_lot::Mutex;
use redo::DriverError;
use types::user::{Types, reading_by};

use crate::checkpoint::table_of;
use crate::index_build::fill::{self, Entries};
use crate::record::StorageId;
use crate::start::ahead::{self, Pieces};
use crate::start::progress::Progress;
use crate::storage::shape::Shape;
use crate::storage::{IndexStore, TableStore, storage_id};

/// What an image's error means to whoever opens the shard.
pub(crate) fn image_error(error: ImageError) -> DriverError {
    match error {
        ImageError::Io(error) => DriverError::Failed(error),
        other => DriverError::Refused(other.to_string()),
    }
}

/// Work in numbered parts.
pub(crate) trait Parts: Send + Sync + 'static {
    /// Does a part; `Ok(false)` if there is none of this number.
    fn part(&self, number: usize, scratch: &mut Scratch) -> Result<bool, DriverError>;
}

impl<P: Parts + ?Sized> Parts for Arc<P> {
    fn part(&self, number: usize, scratch: &mut Scratch) -> Result<bool, DriverError> {
        P::part(self, number, scratch)
    }
}

/// Does all parts with so many threads, which read values by these types; the first error ends it.
pub(crate) fn run<P: Parts>(
    world: &World,
    threads: usize,
    name: &str,
    types: &Arc<Types>,
    parts: P,
) -> Result<(), DriverError> {
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
            let types = Arc::clone(types);
            world.spawn.spawn(name, Box::new(move || reading_by(&types, || work(shared))))
        })
        .collect();
    reading_by(types, || work(Arc::clone(&shared)));
    others.into_iter().for_each(|thread| thread.join());
    let error = shared.2.lock().take();
    error.map_or(Ok(()), Err)
}

/// Bytes of blocks that are read at once.
const PIECE: u64 = 1 << 20;
/// Larger pieces, each a block of one row mostly, are not read ahead: as many of them as there are workers are in memory at once.
const PIECE_AHEAD_MAX: u64 = 4 << 20;

/// Rows that are to be loaded.
pub(crate) struct ImageRows {
    pub image: Image,
    pub tables: BTreeMap<StorageId, Arc<TableStore>>,
    /// When they were committed.
    pub ts: Timestamp,
    pub progress: Arc<Progress>,
    /// A file that is read next, and its bytes: the disk begins with it meanwhile.
    pub next: Option<(Arc<dyn DiskFile>, u64)>,
}

struct LoadedRows {
    of: ImageRows,
    pieces: Vec<Piece>,
}

impl LoadedRows {
    fn block(&self, block: &BlockRef, bytes: &PieceBytes, scratch: &mut Scratch) -> Result<(), DriverError> {
        let Holds::Rows { table, .. } = &block.holds else { return Ok(()) };
        let id = table_of(*table);
        let missing = || DriverError::Corrupt(format!("a checkpoint has rows of {id:?}, which it does not define"));
        let store = self.of.tables.get(&id).ok_or_else(missing)?;
        let guard = pin();
        let mut loader = store.rows.loader(&guard);
        let each = |row, layout, tuple: &[u8]| loader.load(row, self.of.ts, layout, tuple);
        self.of.image.rows_of(block, bytes, scratch, each).map_err(image_error)?;
        self.of.progress.loaded(block.bytes());
        Ok(())
    }

    /// Says of a share of the file that is read next that it will be.
    fn hint(&self, number: usize) {
        if let Some((file, len)) = &self.of.next {
            let place = |number: usize| (u128::from(*len) * number as u128 / self.pieces.len() as u128) as u64;
            file.will_read(place(number), place(number + 1) - place(number));
        }
    }
}

impl Pieces for LoadedRows {
    type Bytes = PieceBytes;

    fn count(&self) -> usize {
        self.pieces.len()
    }

    fn read(&self, number: usize, into: &mut PieceBytes) -> Result<(), DriverError> {
        let piece = &self.pieces[number];
        self.hint(number);
        if piece.bytes() > PIECE_AHEAD_MAX {
            return Ok(());
        }
        self.of.image.read_piece(piece, into).map_err(image_error)
    }

    fn work(&self, number: usize, bytes: &mut PieceBytes, scratch: &mut Scratch) -> Result<(), DriverError> {
        let piece = &self.pieces[number];
        if piece.bytes() > PIECE_AHEAD_MAX {
            self.of.image.read_piece(piece, bytes).map_err(image_error)?;
        }
        let loaded = self.of.image.blocks_of(piece).iter().try_for_each(|block| self.block(block, bytes, scratch));
        // Pieces that are read ahead do not keep what a large one needed.
        if bytes.capacity() as u64 > 2 * PIECE_AHEAD_MAX {
            (*bytes, *scratch) = (PieceBytes::default(), Scratch::default());
        }
        loaded
    }
}

/// Loads the rows of an image.
pub(crate) fn rows(world: &World, threads: usize, rows: ImageRows) -> Result<(), DriverError> {
    let progress = Arc::clone(&rows.progress);
    let pieces = rows.image.pieces(PIECE);
    ahead::run(world, threads, "load-rows", LoadedRows { of: rows, pieces })?;
    progress.all_loaded();
    Ok(())
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
        // What a prepared transaction has made gets its own when that is brought back.
        let Some(table) = catalog.table(store.id.table).filter(|table| storage_id(table) == store.id) else { continue };
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
    fill::all(world, threads, catalog.types(), entries)
}
