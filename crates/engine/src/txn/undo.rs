//! Savepoints, going back to them, and the end of a transaction.

use std::sync::Arc;

use engine_api::Savepoint;
use mvcc::TxnMark;
use parking_lot::Mutex;

use crate::catalog::Definitions;
use crate::reads::ReadSet;
use crate::{commit, record};

use super::{KEPT_BYTES, Transaction};

/// Writes that are undone in one part: less than a millisecond of work.
const UNDO_AT_ONCE: usize = 512;

/// Where a savepoint cuts.
pub(super) struct Mark {
    /// `None`: nothing was written or locked before.
    core: Option<TxnMark>,
    /// Bytes of the record, those gone ahead included.
    redo: u64,
    changes: usize,
    made: usize,
}

/// Empties a list of a transaction that ends, and gives back what the next one should not have to hold.
#[inline]
fn empty<T>(list: &mut Vec<T>) {
    list.clear();
    if list.capacity() > KEPT_BYTES / size_of::<T>() {
        list.shrink_to(KEPT_BYTES / size_of::<T>());
    }
}

impl Transaction {
    /// See [`engine_api::Txn::savepoint`].
    pub(super) fn set_mark(&mut self) -> Savepoint {
        self.definitions.last_put = None;
        self.marks.push(Mark {
            core: self.core.as_ref().map(|c| c.mark()),
            redo: self.redo_end(),
            changes: self.definitions.changes.len(),
            made: self.definitions.made.len(),
        });
        Savepoint(self.marks.len() as u64 - 1)
    }

    /// See [`engine_api::Txn::rollback_to`].
    pub(super) fn undo_to_mark(&mut self, savepoint: Savepoint) {
        let at = savepoint.0 as usize;
        let Some(mark) = self.marks.get(at) else { return };
        let (redo, changes, made, core_mark) = (mark.redo, mark.changes, mark.made, mark.core);
        self.marks.truncate(at + 1);
        self.unproven.clear();
        self.definitions.last_put = None;
        if let Some(core) = &mut self.core {
            let inner = &self.shard.0;
            inner.store.cancel_wait(core);
            // It goes on under its id even if all of it is undone: what went ahead in the log has that id. Definitions go
            // as in `undo_all`.
            let definitions = &mut self.definitions;
            inner.store.undo_to_with(core, core_mark.unwrap_or_default(), || definitions.undo_to(inner, changes, made));
        }
        match redo.checked_sub(self.redo_ahead) {
            Some(kept) => self.redo.truncate(kept as usize),
            None => {
                // What went ahead cannot be taken back: the record says that it does not count. It may end inside of an
                // operation, which must be whole to be passed over, so the rest goes after it.
                record::undo_to(&mut self.redo, redo);
            }
        }
    }

    /// See [`engine_api::Txn::undo_some`].
    pub(super) fn undo_part(&mut self, savepoint: Option<Savepoint>) -> bool {
        if !self.definitions.changes.is_empty() || !self.definitions.made.is_empty() {
            // They go first, before the table locks that were taken for them.
            return true;
        }
        let mark = savepoint.and_then(|point| self.marks.get(point.0 as usize)).and_then(|mark| mark.core);
        let Some(core) = &mut self.core else { return true };
        self.shard.0.store.cancel_wait(core);
        self.shard.0.store.undo_some(core, mark.unwrap_or_default(), UNDO_AT_ONCE)
    }

    /// See [`engine_api::Txn::finish_some`].
    pub(super) fn finish_part(&mut self) -> bool {
        let store = &self.shard.0.store;
        match self.finishing.take() {
            None => true,
            Some(mut finishing) => {
                let is_done = store.finish_some(&mut finishing.0, finishing.1, commit::FINISH_AT_ONCE);
                if is_done {
                    store.finish_commit(finishing.0, finishing.1);
                } else {
                    self.finishing = Some(finishing);
                }
                is_done
            }
        }
    }

    /// Ends everything without a commit.
    #[inline]
    pub fn undo_all(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.undo_what_is_left();
        }
    }

    pub(super) fn undo_what_is_left(&mut self) {
        if self.redo_ahead > 0
            && let Some(core) = &self.core
        {
            self.shard.0.log.forget(core.id());
        }
        if let Some(finishing) = self.finishing.take() {
            self.shard.0.store.finish_commit(finishing.0, finishing.1);
        }
        self.leave_active();
        self.reads = None;
        // What is not charged any more must not be held: the session keeps this for its next transaction.
        empty(&mut self.redo);
        empty(&mut self.scratch);
        empty(&mut self.unproven);
        self.charge(0);
        self.redo_ahead = 0;
        self.marks.clear();
        let inner = &self.shard.0;
        if let Some(core) = &mut self.core {
            // Rows and entries go by the definitions that they were made by; these go before the locks that guard them.
            inner.store.abort_with(core, || self.definitions.undo_to(inner, 0, 0));
            self.core = None;
        }
        self.end_view();
    }

    /// Ends the transaction for its session: what it wrote, locked and defined, and what it has read, go to another place.
    pub fn hand_over(&mut self) -> (Option<mvcc::Transaction>, Option<Arc<Mutex<ReadSet>>>, Definitions) {
        self.end_view();
        self.leave_active();
        self.marks.clear();
        self.charge(0);
        self.redo.clear();
        self.redo_ahead = 0;
        (self.core.take(), self.reads.take(), self.definitions.hand_over())
    }
}
