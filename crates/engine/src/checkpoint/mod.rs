//! Checkpoints of a shard: an image of what one view sees, made beside the writers.
//!
//! Responsible for: the moment of the view, what belongs to an image beside the rows, sharing the work among threads, the
//! switch to the image, telling the log what is not needed any more.
//! Not responsible for: the form of images (crate `checkpoint`), when one is made and how fast (`server`).
//!
//! **Requirement**: image and the log from `upto` on are the shard. **Rule**: view, catalog and position are taken together in
//! the log's critical section, where commits are published (rule R2): a commit is in the view exactly if its record ends at or
//! before `upto`. The states of sequences are those of their last records before it, for their latch is held meanwhile.
//! What the view sees may not be durable yet; the switch waits until it is, or a crash would leave an image that is ahead of
//! its log.
//!
//! Transactions that are prepared at that moment are not in the view: the image carries them beside its rows (rule R13), read
//! under the registry's lock, which they cannot leave meanwhile. Those that have written ahead are not in it either: their
//! records stay in the log, which is kept from the oldest of them on.

pub(crate) mod compaction;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{CommandId, Error, Lsn, Result, RowId, SqlState};
use checkpoint::{Manifest, ManifestFile, PartWriter, remove_unnamed};
use engine_api::{Step, Wait, WaitCell};
use mvcc::{View, ViewToken};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::commit::prepared;
use crate::record::StorageId;
use crate::shard::{Inner, Shard};
use crate::storage::TableStore;

/// Names of the engine's own bytes in an image.
pub(crate) const META_OBJECTS: u64 = 1;
pub(crate) const META_STATE: u64 = 2;
pub(crate) const META_PREPARED: u64 = 3;

/// Row numbers that a thread takes at once.
const UNIT_ROWS: u64 = 1 << 15;

/// What an image says beside rows and definitions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ImageState {
    /// The next OID to hand out.
    pub next_oid: u32,
    /// (OID, last value logged, whether it was handed out)
    pub sequences: Vec<(u32, i64, bool)>,
    /// (table OID, storage, the next RowId): ids of rows that are gone are not used again (rule R3).
    pub tables: Vec<(u32, u32, u64)>,
}

/// A table's name in an image.
pub(crate) fn table_name(id: StorageId) -> u64 {
    u64::from(id.table.0) << 32 | u64::from(id.storage)
}

/// As [`table_name`] was made.
pub(crate) fn table_of(name: u64) -> StorageId {
    StorageId { table: base::Oid((name >> 32) as u32), storage: name as u32 }
}

/// What a shard knows of its images.
#[derive(Default)]
pub(crate) struct Images {
    /// The one that counts.
    pub last: Mutex<Option<Manifest>>,
    /// Those of which it is not known whether the disk takes them for the one that counts: their switch failed half way.
    unsure: Mutex<Vec<Manifest>>,
    turns: Mutex<Turns>,
}

/// Who asks for checkpoints, and how far they are. They are numbered from 1 on as they begin, in the life of a process.
#[derive(Default)]
struct Turns {
    wanted: u64,
    begun: u64,
    ended: u64,
    /// The newest number that files have: none is used twice, for the files of one that failed may still be there.
    number: u64,
    /// Why the last one failed, if it did.
    failure: Option<(io::ErrorKind, String)>,
    figures: CheckpointFigures,
    waiting: Vec<Arc<WaitCell>>,
}

/// What checkpoints have come to in the life of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointFigures {
    /// Those that became the one that counts.
    pub made: u64,
    /// Those that did not, given up ones included.
    pub failed: u64,
    /// How long the last of the former took.
    pub last_nanos: u64,
}

impl Images {
    /// With what a start has found.
    pub fn new(last: Option<Manifest>) -> Images {
        let turns = Turns { number: last.as_ref().map_or(0, |last| last.checkpoint), ..Turns::default() };
        Images { last: Mutex::new(last), unsure: Mutex::default(), turns: Mutex::new(turns) }
    }

    /// See [`engine_api::Engine::request_checkpoint`].
    pub fn request(&self) -> u64 {
        let mut turns = self.turns.lock();
        turns.wanted = turns.begun + 1;
        turns.wanted
    }

    /// See [`engine_api::Engine::checkpoint_done`].
    pub fn done(&self, number: u64) -> Result<Step<()>> {
        let mut turns = self.turns.lock();
        if turns.ended < number {
            let cell = WaitCell::new();
            turns.waiting.push(Arc::clone(&cell));
            return Ok(Step::Wait(Wait::on(&cell)));
        }
        match &turns.failure {
            None => Ok(Step::Ready(())),
            Some((kind, why)) => {
                let is_full = matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
                let state = if is_full { SqlState::DISK_FULL } else { SqlState::IO_ERROR };
                Err(Error::new(state, "checkpoint request failed")
                    .detail(why.clone())
                    .hint("Consult recent messages in the server log for details."))
            }
        }
    }

    /// The number of a new image, if none is being made.
    fn begin(&self) -> Option<u64> {
        let mut turns = self.turns.lock();
        if turns.begun != turns.ended {
            return None;
        }
        turns.begun += 1;
        turns.number += 1;
        Some(turns.number)
    }

    fn end(&self, failure: Option<(io::ErrorKind, String)>, nanos: u64) {
        let waiting = {
            let mut turns = self.turns.lock();
            match failure {
                None => (turns.figures.made, turns.figures.last_nanos) = (turns.figures.made + 1, nanos),
                Some(_) => turns.figures.failed += 1,
            }
            turns.ended = turns.begun;
            turns.failure = failure;
            std::mem::take(&mut turns.waiting)
        };
        waiting.iter().for_each(|cell| cell.wake());
    }
}

/// Rows of a table that one thread writes.
struct Unit {
    table: u64,
    store: Arc<TableStore>,
    from: RowId,
    end: RowId,
}

/// A checkpoint that is being made. Dropped before [`Checkpoint::commit`], it leaves the image before as the one that counts.
pub struct Checkpoint {
    shard: Shard,
    /// When it did, on the monotonic clock.
    began: u64,
    manifest: Manifest,
    view: View,
    token: Option<ViewToken>,
    units: Vec<Unit>,
    next: AtomicUsize,
    objects: Vec<u8>,
    state: Vec<u8>,
    /// See [`prepared::carried`].
    prepared: Vec<u8>,
    failure: Mutex<Option<(io::ErrorKind, String)>>,
}

impl Shard {
    /// Begins a checkpoint: the view is now. `None` if one is being made.
    pub fn begin_checkpoint(&self) -> Option<Arc<Checkpoint>> {
        let inner = &self.0;
        let number = inner.images.begin()?;
        let began = inner.world.clock.monotonic_nanos();
        let mut state = ImageState::default();
        let at_end = |upto: Lsn, log_from: Lsn| {
            let token = inner.store.begin_view();
            let last_txn = inner.store.last_txn();
            let (catalog, tables) = (inner.catalog.get(), inner.tables.read().clone());
            (upto, log_from, token, last_txn, catalog, tables)
        };
        let registry = inner.prepared.lock();
        let (upto, log_from, token, last_txn, catalog, tables) =
            inner.sequences.hold(&mut state.sequences, || inner.log.at_end(at_end));
        let prepared = prepared::carried(inner, &registry);
        drop(registry);
        state.next_oid = inner.next_oid.load(Ordering::Relaxed);
        let mut objects = Vec::new();
        for object in catalog.objects() {
            // Descriptors are plain data: they have a JSON form.
            let json = serde_json::to_vec(&**object).unwrap_or_default();
            objects.extend_from_slice(&(json.len() as u32).to_le_bytes());
            objects.extend_from_slice(&json);
        }
        let mut units = Vec::new();
        for (id, store) in tables {
            // Storage of transactions that are not committed is there already, and has nothing that the view sees.
            let is_of_view = catalog.table(id.table).is_some_and(|table| crate::storage::storage_id(table) == id);
            if !is_of_view {
                continue;
            }
            let end = store.rows.end();
            state.tables.push((id.table.0, id.storage, end.0));
            units.extend((0..end.0).step_by(UNIT_ROWS as usize).map(|from| Unit {
                table: table_name(id),
                store: Arc::clone(&store),
                from: RowId(from),
                end: RowId(end.0.min(from + UNIT_ROWS)),
            }));
        }
        units.sort_unstable_by_key(|unit| (unit.table, unit.from));
        state.tables.sort_unstable();
        let manifest = Manifest {
            checkpoint: number,
            ts: token.read_ts().0,
            upto: upto.0,
            log_from: log_from.0,
            last_txn: last_txn.0,
            made_at: inner.world.clock.now_micros(),
            files: Vec::new(),
        };
        let view = View { read_ts: token.read_ts(), own: None, command: CommandId(0) };
        Some(Arc::new(Checkpoint {
            shard: self.clone(),
            began,
            manifest,
            view,
            token: Some(token),
            units,
            next: AtomicUsize::new(0),
            objects,
            state: serde_json::to_vec(&state).unwrap_or_default(),
            prepared,
            failure: Mutex::new(Some((io::ErrorKind::Interrupted, "It was given up.".to_string()))),
        }))
    }

    /// Whether somebody waits for a checkpoint that has not begun.
    pub fn is_checkpoint_wanted(&self) -> bool {
        let turns = self.0.images.turns.lock();
        turns.wanted > turns.begun
    }

    /// What checkpoints have come to since the shard was opened.
    pub fn checkpoint_figures(&self) -> CheckpointFigures {
        self.0.images.turns.lock().figures
    }

    /// The image that counts, if there is one.
    pub fn last_checkpoint(&self) -> Option<Manifest> {
        self.0.images.last.lock().clone()
    }
}

impl Checkpoint {
    fn inner(&self) -> &Inner {
        &self.shard.0
    }

    /// A writer of file number `part`; part 0 has what is not rows.
    ///
    /// # Errors
    /// Of the disk.
    pub fn writer(self: &Arc<Self>, part: u32) -> io::Result<CheckpointWriter> {
        let (disk, number) = (&*self.inner().world.disk, self.manifest.checkpoint);
        let mut file = PartWriter::create(disk, number, part)?;
        if part == 0 {
            file.write_meta(META_OBJECTS, &self.objects)?;
            file.write_meta(META_STATE, &self.state)?;
            file.write_meta(META_PREPARED, &self.prepared)?;
        }
        Ok(CheckpointWriter { checkpoint: Arc::clone(self), file, unit: None })
    }

    /// Waits until all that is in the image is durable in the log, and makes it the one that counts. Blocks.
    ///
    /// # Errors
    /// Of the disk, or if the log has failed.
    pub fn commit(&self, files: Vec<ManifestFile>) -> io::Result<Manifest> {
        let committed = self.switch(files);
        *self.failure.lock() = committed.as_ref().err().map(|error| (error.kind(), error.to_string()));
        committed
    }

    /// Whether [`Checkpoint::commit`] would go on without waiting: all that is in the image is durable in the log.
    ///
    /// # Errors
    /// If the log has failed.
    pub fn is_durable(&self) -> io::Result<bool> {
        let durable = self.inner().log.durable();
        if durable.has_failed() {
            return Err(io::Error::other("the log has failed"));
        }
        Ok(durable.current() >= Lsn(self.manifest.upto))
    }

    /// Says why it is given up, to those who wait for it.
    pub fn fail(&self, error: &io::Error) {
        *self.failure.lock() = Some((error.kind(), error.to_string()));
    }

    fn switch(&self, files: Vec<ManifestFile>) -> io::Result<Manifest> {
        let inner = self.inner();
        if !inner.log.durable().block(Lsn(self.manifest.upto)) {
            return Err(io::Error::other("the log has failed"));
        }
        let manifest = Manifest { files, ..self.manifest.clone() };
        manifest.prepare(&*inner.world.disk)?;
        // If this fails half way, both images stay until another one counts for certain.
        Manifest::switch(&*inner.world.disk).inspect_err(|_| inner.images.unsure.lock().push(manifest.clone()))?;
        *inner.images.last.lock() = Some(manifest.clone());
        inner.images.unsure.lock().clear();
        inner.log.trim(Lsn(manifest.log_from));
        Ok(manifest)
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            self.inner().store.end_view(token);
        }
        let images = &self.inner().images;
        // The image before, or what there is of this one. What cannot be removed now goes with the next, or at a start.
        let (last, unsure) = (images.last.lock().clone(), images.unsure.lock().clone());
        let _ = remove_unnamed(&*self.inner().world.disk, last.iter().chain(&unsure));
        let nanos = self.inner().world.clock.monotonic_nanos().saturating_sub(self.began);
        images.end(self.failure.lock().take(), nanos);
    }
}

/// Writes one file of a checkpoint; each may be driven by a thread of its own.
pub struct CheckpointWriter {
    checkpoint: Arc<Checkpoint>,
    file: PartWriter,
    /// The unit that is being written, and where it goes on.
    unit: Option<(usize, RowId)>,
}

impl CheckpointWriter {
    /// Writes a block, of a quarter of a megabyte or less; `false` when nothing is left to write.
    ///
    /// # Errors
    /// Of the disk.
    pub fn step(&mut self) -> io::Result<bool> {
        let Checkpoint { units, next, view, .. } = &*self.checkpoint;
        let (number, from) = match self.unit.take() {
            Some(unit) => unit,
            None => {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(unit) = units.get(number) else { return Ok(false) };
                (number, unit.from)
            }
        };
        let unit = &units[number];
        let on = self.file.write_rows(unit.table, &unit.store.rows, from, unit.end, view)?;
        self.unit = (on < unit.end).then_some((number, on));
        Ok(true)
    }

    /// Makes the file durable.
    ///
    /// # Errors
    /// Of the disk.
    pub fn finish(self) -> io::Result<ManifestFile> {
        self.file.finish()
    }
}
