//! Applying what the log says of rows, with many threads and the result of one.
//!
//! **Rule**: all operations on a row go to one thread, in the order of the log; an operation names its row (rule R3), so nothing
//! else has an order. Definitions are the reader's: it hands storage to the threads before the first operation on it, and
//! refuses operations on storage that was never made.
//!
//! What is handed over goes round: a thread that is done with a batch gives its memory back, so that no more of it is touched than
//! is on its way.

use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};

use base::{RowId, Timestamp};
use env::{Joined, World};
use mvcc::{Guard, Loader, Newest, Table, pin};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::record::{Op, Ops, StorageId};
use crate::storage::TableStore;

/// Bytes of records that are handed over at once.
const BATCH: usize = 256 << 10;
/// Batches that may wait for a thread.
const QUEUE: usize = 8;
/// As many as there may be, for one that runs when it is joined.
const QUEUE_OF_ALL: usize = 1 << 14;
/// Rows that stay together, as a power of two: they share a chunk of headers.
const TOGETHER: u32 = 8;
/// Operations for which a thread keeps the guard, and counts together.
const TOGETHER_OPS: usize = 256;

/// An operation of a record that was not undone inside its transaction.
#[derive(Clone, Copy)]
pub(crate) struct KeptOperation {
    /// Where it begins.
    pub at: usize,
    /// The row that it changes, if it is not a definition.
    pub row: Option<(StorageId, RowId)>,
}

/// The operations of a record that were not undone inside their transaction.
///
/// # Errors
/// If it is malformed.
pub(crate) fn places(payload: &[u8], places: &mut Vec<KeptOperation>) -> Result<(), String> {
    places.clear();
    let mut ops = Ops::new(payload);
    loop {
        let at = payload.len() - ops.remaining();
        let Some(op) = ops.next() else { return Ok(()) };
        let row = match op.map_err(|malformed| malformed.0.to_string())? {
            Op::UndoTo { offset } => {
                places.retain(|place| (place.at as u64) < offset);
                continue;
            }
            Op::Insert { storage, row, .. } | Op::Update { storage, row, .. } | Op::Delete { storage, row } => {
                Some((storage, row))
            }
            _ => None,
        };
        places.push(KeptOperation { at, row });
    }
}

/// An operation in a batch.
struct Handed {
    ts: Timestamp,
    /// Where it begins.
    at: u32,
}

/// Records, and the memory of those that were applied.
#[derive(Clone, Default)]
struct Spare(Arc<Mutex<Vec<Vec<u8>>>>);

impl Spare {
    fn take(&self) -> Vec<u8> {
        self.0.lock().pop().unwrap_or_else(|| Vec::with_capacity(2 * BATCH))
    }

    /// Gives a batch back, if nobody else has it.
    fn give(&self, batch: Arc<Vec<u8>>) {
        // A large one was for a large row.
        if let Some(mut batch) = Arc::into_inner(batch).filter(|batch| batch.capacity() <= 4 * BATCH) {
            batch.clear();
            self.0.lock().push(batch);
        }
    }
}

enum Message {
    Storage(Arc<TableStore>),
    Batch(Arc<Vec<u8>>, Vec<Handed>),
}

struct Lane {
    sender: SyncSender<Message>,
    handed: Vec<Handed>,
    thread: Box<dyn Joined>,
}

/// The threads, and what has gathered for them.
pub(crate) struct Appliers {
    lanes: Vec<Lane>,
    batch: Vec<u8>,
    spare: Spare,
    /// The first thing that was wrong.
    error: Arc<Mutex<Option<String>>>,
}

impl Appliers {
    /// So many threads, at least one.
    pub fn start(world: &World, threads: usize) -> Appliers {
        let (error, spare) = (Arc::new(Mutex::new(None)), Spare::default());
        let queue = if world.spawn.runs_beside() { QUEUE } else { QUEUE_OF_ALL };
        let lanes = (0..threads.max(1)).map(|_| {
            let (sender, receiver) = mpsc::sync_channel(queue);
            let (error, spare) = (Arc::clone(&error), spare.clone());
            let thread = world.spawn.spawn("replay", Box::new(move || apply_all(&receiver, &spare, &error)));
            Lane { sender, handed: Vec::new(), thread }
        });
        let lanes = lanes.collect();
        Appliers { lanes, batch: spare.take(), spare, error }
    }

    /// Makes storage known. Storage that is dropped stays known: what was said of it before is applied, and goes with it.
    pub fn add_storage(&mut self, store: &Arc<TableStore>) {
        // Behind the operations that were gathered before, or it would not matter.
        self.lanes.iter().for_each(|lane| _ = lane.sender.send(Message::Storage(Arc::clone(store))));
    }

    /// Takes the operations on rows of one record, those that were not undone.
    ///
    /// # Errors
    /// What one of the threads has found wrong in what it was given before.
    pub fn push(&mut self, ts: Timestamp, payload: &[u8], places: &[KeptOperation]) -> Result<(), String> {
        // What is in the batch begins here in the payload.
        let mut from = 0;
        for place in places {
            let Some((storage, row)) = place.row else { continue };
            if self.batch.len() + (place.at - from) >= BATCH {
                self.batch.extend_from_slice(&payload[from..place.at]);
                from = place.at;
                self.hand_over()?;
            }
            let lane = ((row.0 >> TOGETHER) + u64::from(storage.table.0)) % self.lanes.len() as u64;
            let at = (self.batch.len() + (place.at - from)) as u32;
            self.lanes[lane as usize].handed.push(Handed { ts, at });
        }
        self.batch.extend_from_slice(&payload[from..]);
        if self.batch.len() >= BATCH { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), String> {
        let batch = Arc::new(std::mem::replace(&mut self.batch, self.spare.take()));
        for lane in &mut self.lanes {
            if !lane.handed.is_empty() {
                let room = Vec::with_capacity(lane.handed.len());
                let handed = std::mem::replace(&mut lane.handed, room);
                // A thread that has ended has said why.
                let _ = lane.sender.send(Message::Batch(Arc::clone(&batch), handed));
            }
        }
        self.spare.give(batch);
        self.error.lock().clone().map_or(Ok(()), Err)
    }

    /// Waits until everything is applied.
    ///
    /// # Errors
    /// As [`Appliers::push`].
    pub fn finish(mut self) -> Result<(), String> {
        let _ = self.hand_over();
        for Lane { sender, thread, .. } in self.lanes {
            drop(sender);
            thread.join();
        }
        self.error.lock().take().map_or(Ok(()), Err)
    }
}

fn apply_all(receiver: &mpsc::Receiver<Message>, spare: &Spare, error: &Mutex<Option<String>>) {
    let mut stores: FxHashMap<StorageId, Arc<TableStore>> = FxHashMap::default();
    let mut tuple = Vec::new();
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Storage(store) => _ = stores.insert(store.id, store),
            Message::Batch(bytes, handed) => {
                let applied =
                    handed.chunks(TOGETHER_OPS).try_for_each(|part| apply_part(&stores, &bytes, part, &mut tuple));
                if let Err(found) = applied {
                    error.lock().get_or_insert(found);
                    return;
                }
                spare.give(bytes);
            }
        }
    }
}

/// Applies operations under one guard.
fn apply_part(
    stores: &FxHashMap<StorageId, Arc<TableStore>>,
    bytes: &[u8],
    part: &[Handed],
    tuple: &mut Vec<u8>,
) -> Result<(), String> {
    let guard = pin();
    let mut open: Option<(StorageId, &Table, Loader<'_>)> = None;
    for Handed { ts, at } in part {
        let op = Ops::new(&bytes[*at as usize..]).next();
        let op = op.ok_or("an operation is cut short")?.map_err(|malformed| malformed.0.to_string())?;
        let (Op::Insert { storage, .. } | Op::Update { storage, .. } | Op::Delete { storage, .. }) = op else {
            continue;
        };
        let (rows, loader) = match &mut open {
            Some((id, rows, loader)) if *id == storage => (*rows, loader),
            other => {
                let missing = || format!("rows of {storage:?}, which was never made");
                let rows: &Table = &stores.get(&storage).ok_or_else(missing)?.rows;
                let (_, rows, loader) = other.insert((storage, rows, rows.loader(&guard)));
                (*rows, loader)
            }
        };
        apply(rows, loader, *ts, op, tuple, &guard)?;
    }
    Ok(())
}

fn apply(
    rows: &Table,
    loader: &mut Loader<'_>,
    ts: Timestamp,
    op: Op<'_>,
    tuple: &mut Vec<u8>,
    guard: &Guard,
) -> Result<(), String> {
    match op {
        Op::Insert { row, layout, tuple, .. } => loader.load(row, ts, layout, tuple),
        Op::Update { storage, row, layout, delta } => {
            let Newest::Live(old) = rows.newest(row, None, guard) else {
                return Err(format!("an update of row {row} of {storage:?}, which is not there"));
            };
            delta.apply(old.tuple, tuple).map_err(|malformed| malformed.0.to_string())?;
            rows.load(row, ts, layout, tuple, guard);
        }
        Op::Delete { row, .. } => _ = rows.load_delete(row, ts, guard),
        _ => {}
    }
    Ok(())
}
