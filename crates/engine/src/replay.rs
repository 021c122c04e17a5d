//! Applying what the log says of rows, with many threads and the result of one.
//!
//! **Rule**: all operations on a row go to one thread, in the order of the log; an operation names its row (rule R3), so nothing
//! else has an order. Definitions are the reader's: it hands storage to the threads before the first operation on it, and
//! refuses operations on storage that was never made.

use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};

use base::Timestamp;
use env::{Joined, World};
use mvcc::{Guard, Newest, pin};
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

/// An operation in a batch.
struct Place {
    ts: Timestamp,
    /// Where it begins.
    at: u32,
}

enum Message {
    Storage(Arc<TableStore>),
    Batch(Arc<Vec<u8>>, Vec<Place>),
}

struct Lane {
    sender: SyncSender<Message>,
    places: Vec<Place>,
    thread: Box<dyn Joined>,
}

/// The threads, and what has gathered for them.
pub(crate) struct Appliers {
    lanes: Vec<Lane>,
    batch: Vec<u8>,
    /// The first thing that was wrong.
    error: Arc<Mutex<Option<String>>>,
}

impl Appliers {
    /// So many threads, at least one.
    pub fn start(world: &World, threads: usize) -> Appliers {
        let error = Arc::new(Mutex::new(None));
        let queue = if world.spawn.runs_beside() { QUEUE } else { QUEUE_OF_ALL };
        let lanes = (0..threads.max(1)).map(|_| {
            let (sender, receiver) = mpsc::sync_channel(queue);
            let error = Arc::clone(&error);
            let thread = world.spawn.spawn("replay", Box::new(move || apply_all(&receiver, &error)));
            Lane { sender, places: Vec::new(), thread }
        });
        Appliers { lanes: lanes.collect(), batch: Vec::new(), error }
    }

    /// Makes storage known. Storage that is dropped stays known: what was said of it before is applied, and goes with it.
    pub fn add_storage(&mut self, store: &Arc<TableStore>) {
        // Behind the operations that were gathered before, or it would not matter.
        self.lanes.iter().for_each(|lane| _ = lane.sender.send(Message::Storage(Arc::clone(store))));
    }

    /// Takes operations on rows of one record: `live` are the places in `payload` where they begin.
    ///
    /// # Errors
    /// What one of the threads has found wrong in what it was given before.
    pub fn push<'o>(
        &mut self,
        ts: Timestamp,
        payload: &[u8],
        live: impl Iterator<Item = (u64, &'o Op<'o>)>,
    ) -> Result<(), String> {
        let base = self.batch.len();
        for (at, op) in live {
            let (Op::Insert { storage, row, .. } | Op::Update { storage, row, .. } | Op::Delete { storage, row }) = op
            else {
                continue;
            };
            let lane = ((row.0 >> TOGETHER) + u64::from(storage.table.0)) % self.lanes.len() as u64;
            self.lanes[lane as usize].places.push(Place { ts, at: (base + at as usize) as u32 });
        }
        self.batch.extend_from_slice(payload);
        if self.batch.len() >= BATCH { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), String> {
        let batch = Arc::new(std::mem::take(&mut self.batch));
        for lane in &mut self.lanes {
            let places = std::mem::take(&mut lane.places);
            if !places.is_empty() {
                // A thread that has ended has said why.
                let _ = lane.sender.send(Message::Batch(Arc::clone(&batch), places));
            }
        }
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

fn apply_all(receiver: &mpsc::Receiver<Message>, error: &Mutex<Option<String>>) {
    let mut stores: FxHashMap<StorageId, Arc<TableStore>> = FxHashMap::default();
    let mut tuple = Vec::new();
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Storage(store) => _ = stores.insert(store.id, store),
            Message::Batch(bytes, places) => {
                for part in places.chunks(64) {
                    let guard = pin();
                    let applied = part.iter().try_for_each(|place| {
                        let op = Ops::new(&bytes[place.at as usize..]).next();
                        let op = op.ok_or("an operation is cut short")?.map_err(|malformed| malformed.0.to_string())?;
                        apply(&stores, place.ts, op, &mut tuple, &guard)
                    });
                    if let Err(found) = applied {
                        error.lock().get_or_insert(found);
                        return;
                    }
                }
            }
        }
    }
}

fn apply(
    stores: &FxHashMap<StorageId, Arc<TableStore>>,
    ts: Timestamp,
    op: Op<'_>,
    tuple: &mut Vec<u8>,
    guard: &Guard,
) -> Result<(), String> {
    let rows_of = |storage: StorageId| {
        stores
            .get(&storage)
            .map(|store| &store.rows)
            .ok_or_else(|| format!("rows of {storage:?}, which was never made"))
    };
    match op {
        Op::Insert { storage, row, layout, tuple } => _ = rows_of(storage)?.load(row, ts, layout, tuple, guard),
        Op::Update { storage, row, layout, delta } => {
            let rows = rows_of(storage)?;
            let Newest::Live(old) = rows.newest(row, None, guard) else {
                return Err(format!("an update of row {row} of {storage:?}, which is not there"));
            };
            delta.apply(old.tuple, tuple).map_err(|malformed| malformed.0.to_string())?;
            rows.load(row, ts, layout, tuple, guard);
        }
        Op::Delete { storage, row } => _ = rows_of(storage)?.load_delete(row, ts, guard),
        _ => {}
    }
    Ok(())
}
