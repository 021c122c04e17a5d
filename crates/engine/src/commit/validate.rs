//! Stage 0: what a SERIALIZABLE transaction read is looked at once more (rule R8).
//!
//! **Requirement**: a SERIALIZABLE writer is as if it had run at one moment, that of its timestamp. **Rule**: nothing it
//! read was written by a commit between its reading and its timestamp; the last look and the stamp are one critical
//! section among SERIALIZABLE writers. Then their order is the order of timestamps, and a reader, whose view is a prefix of
//! the log, needs no look at all.
//! **Interleaving that breaks it otherwise**: a reads x and writes y, b reads y and writes x. Both look, both find all as
//! it was, both are stamped: write skew.
//! Transactions of other levels are found by the look if they were stamped before it; they promise nothing.
//!
//! A look does not keep others out: it is made before the section, and counts if no SERIALIZABLE writer was stamped since it
//! began; otherwise it is made once more, inside. A long one goes ahead in parts, and only after two efforts is it made inside.

use std::sync::Arc;

use base::{Error, Lsn, Result, RowId, SqlState, Timestamp, TxnId};
use engine_api::{Durability, Step, Wait};
use parking_lot::Mutex;
use redo::Reservation;

use crate::reads::{Cursor, ReadSet, Stale};
use crate::txn::Transaction;

/// Rows and entries looked at in one part: well below a millisecond.
const PART: usize = 4096;
/// Efforts outside of the section.
const EFFORTS: u32 = 2;

/// What SERIALIZABLE writers share; held while one of them is stamped.
#[derive(Debug, Default)]
pub(crate) struct Serial {
    /// The newest commit of one.
    pub last: Timestamp,
    /// What prepared transactions have read. Who has written into it gives way: they must be able to commit.
    pub guards: Vec<(TxnId, Arc<Mutex<ReadSet>>)>,
}

/// A look that does not fit into the section.
#[derive(Debug, Default)]
pub(crate) struct Look {
    effort: Option<Effort>,
    efforts: u32,
}

#[derive(Debug)]
struct Effort {
    /// It covers commits up to here.
    horizon: Timestamp,
    cursor: Cursor,
    is_done: bool,
}

/// 40001
fn failure(txn: &mut Transaction, stale: Stale) -> Error {
    txn.note(stale.0);
    Error::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access due to read/write dependencies among transactions",
    )
    .detail("Reason code: Canceled on identification as a pivot, during commit attempt.")
    .hint("The transaction might succeed if retried.")
}

/// Looks at a part of the read set. `Ok(true)`: all is well up to the end.
fn look(txn: &mut Transaction, cursor: &mut Cursor, mut budget: usize) -> Result<bool> {
    let Some(reads) = txn.reads.clone() else { return Ok(true) };
    let found = reads.lock().check(cursor, &mut budget);
    found.map_err(|stale| failure(txn, stale))
}

/// Before another error: whether it comes from a commit that what was read does not have. Then the transaction cannot
/// succeed as it is, and must be told so (40001), for the error would not be there in any serial order.
pub(crate) fn check_reads(txn: &mut Transaction) -> Result<()> {
    look(txn, &mut Cursor::default(), PART).map(drop)
}

/// Goes on with a long look that has begun.
pub(crate) fn ahead(txn: &mut Transaction) -> Result<Option<Wait>> {
    let Some(mut effort) = txn.look.effort.take() else { return Ok(None) };
    if !effort.is_done {
        effort.is_done = look(txn, &mut effort.cursor, PART)?;
    }
    let is_done = effort.is_done;
    txn.look.effort = Some(effort);
    Ok((!is_done).then(Wait::yield_now))
}

/// Looks, and stamps if all is well. A wait is for a long look to go on.
pub(super) fn stamp(
    txn: &mut Transaction,
    room: Reservation,
    durability: Durability,
) -> Result<Step<(Lsn, Timestamp)>> {
    guarded(txn, |txn, serial| {
        let stamped = super::stamp::stamp(txn, room, durability);
        serial.last = stamped.1;
        stamped
    })
}

/// Looks, and acts inside the section if all is well. A wait is for a long look to go on.
pub(crate) fn guarded<R>(
    txn: &mut Transaction,
    act: impl FnOnce(&mut Transaction, &mut Serial) -> R,
) -> Result<Step<R>> {
    let shard = txn.shard.clone();
    if txn.look.effort.is_none() && txn.look.efforts < EFFORTS {
        let horizon = shard.0.store.horizon();
        let mut cursor = Cursor::default();
        let is_done = look(txn, &mut cursor, PART)?;
        txn.look.effort = Some(Effort { horizon, cursor, is_done });
        if !is_done {
            txn.look.efforts += 1;
            return Ok(Step::Wait(Wait::yield_now()));
        }
    }
    let mut serial = shard.0.serial.lock();
    let is_covered = txn.look.effort.take().is_some_and(|effort| effort.is_done && effort.horizon >= serial.last);
    if !is_covered {
        let budget = if txn.look.efforts < EFFORTS { PART } else { usize::MAX };
        let (horizon, mut cursor) = (shard.0.store.horizon(), Cursor::default());
        if !look(txn, &mut cursor, budget)? {
            txn.look.efforts += 1;
            txn.look.effort = Some(Effort { horizon, cursor, is_done: false });
            return Ok(Step::Wait(Wait::yield_now()));
        }
    }
    if let Some(core) = &txn.core
        && serial.guards.iter().any(|(_, guard)| guard.lock().is_touched(writes(core)))
    {
        return Err(failure(txn, Stale(Timestamp(0))));
    }
    Ok(Step::Ready(act(txn, &mut serial)))
}

/// The rows that a transaction has written.
pub(crate) fn writes(core: &mvcc::Transaction) -> impl Iterator<Item = (&Arc<mvcc::Table>, RowId)> {
    core.writes().map(|(table, row, _)| (table, row))
}

/// The transaction has read what a prepared one has written: whoever commits first, the other would be wrong.
pub(crate) fn between_prepared(txn: &mut Transaction) -> Error {
    failure(txn, Stale(Timestamp(0)))
}
