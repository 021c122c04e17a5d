//! The buffer of a transaction's record: how it grows, what of it is charged to the budget.

use base::work;
use engine_api::MemoryKind;
use parking_lot::Mutex;

use super::{KEPT_BYTES, Transaction};

/// What the lists of a transaction may grow by before that is charged to the budget.
const CHARGE_STEP: usize = 64 << 10;

/// Emptied buffers of long records, for the next ones: memory that is new to the process costs more than what is put into it.
#[derive(Default)]
pub(crate) struct LongRecords(Mutex<Vec<Vec<u8>>>);

impl LongRecords {
    /// Buffers that are kept, and how large they may be.
    const MOST: usize = 4;
    const BYTES_MAX: usize = 1 << 20;

    fn take(&self, capacity: usize) -> Option<Vec<u8>> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|buffer| buffer.capacity() >= capacity)?;
        Some(kept.swap_remove(at))
    }

    fn keep(&self, buffer: Vec<u8>) {
        let mut kept = self.0.lock();
        if kept.len() < LongRecords::MOST && buffer.capacity() <= LongRecords::BYTES_MAX {
            kept.push(buffer);
        }
    }
}

impl Transaction {
    /// Makes room in a long record for so many bytes, in few steps: each of them copies it.
    #[cold]
    pub(super) fn lengthen(&mut self, more: usize) {
        let capacity = 4 * self.redo.len() + more;
        match self.shard.0.long_records.take(capacity) {
            Some(mut longer) => {
                work::append_unstopped(&mut longer, &self.redo);
                self.redo = longer;
            }
            None => self.redo.reserve(capacity - self.redo.len()),
        }
    }

    /// The record is in the log.
    pub fn clear_record(&mut self) {
        self.redo.clear();
        self.redo_ahead = 0;
        if self.redo.capacity() > KEPT_BYTES {
            self.shard.0.long_records.keep(std::mem::take(&mut self.redo));
        }
    }

    /// Charges what the lists of a long transaction hold, a step at a time; those of a short one are its session's.
    #[inline]
    pub(super) fn note_size(&mut self) {
        let held = self.redo.capacity() + self.core.as_ref().map_or(0, mvcc::Transaction::held_bytes);
        if held > self.charged + CHARGE_STEP {
            self.charge(held);
        }
    }

    /// Says what the lists hold from now on.
    pub(super) fn charge(&mut self, held: usize) {
        let change = held as i64 - self.charged as i64;
        if change != 0 {
            self.shard.0.store.memory().charge_other(MemoryKind::Transactions as usize, change);
            self.charged = held;
        }
    }
}
