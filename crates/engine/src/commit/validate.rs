//! Stage 0: the read set of a SERIALIZABLE transaction is validated (rule R8).
//!
//! **Requirement**: SERIALIZABLE transactions have an order. **Rule**: if nothing a writer read was written by a commit between its reading
//! and its timestamp, it stands at its timestamp; otherwise [`super::order`] finds it a place before the writers, or it fails. The
//! last look and the stamp are one critical section among SERIALIZABLE writers.
//! **Interleaving that breaks it otherwise**: a reads x and writes y, b reads y and writes x. Both look, both find all as
//! it was, both are stamped: write skew.
//! Transactions of other levels are no part of this, as on PostgreSQL.
//!
//! A look does not keep others out: it is made before the section, and counts if no SERIALIZABLE writer was stamped since it
//! began; otherwise it is repeated inside. A long one is done in parts before the section, and only after two attempts inside it.

use std::sync::Arc;

use base::{Error, LayoutId, Lsn, Result, RowId, SqlState, Timestamp};
use engine_api::{Durability, Step, Wait};
use parking_lot::{Mutex, MutexGuard};
use redo::Reservation;

use super::order::{self, NoPlace, Number, Serial, Writes};
use crate::reads::{Cursor, ReadSet, Stale};
use crate::shard::Shard;
use crate::storage::TableHandle;
use crate::txn::Transaction;

/// Rows and entries looked at in one part: well below a millisecond.
const PART: usize = 4096;
/// Efforts outside of the section.
const EFFORTS: u32 = 2;

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
    found: Found,
}

/// 40001
fn failure(txn: &mut Transaction, seen: Timestamp) -> Error {
    txn.note(seen);
    Error::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access due to read/write dependencies among transactions",
    )
    .detail("Reason code: Canceled on identification as a pivot, during commit attempt.")
    .hint("The transaction might succeed if retried.")
}

/// What a look has found so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It goes on.
    NotYet,
    /// All is as it was read.
    AsItWas,
    /// Something was written since.
    Changed,
}

/// Looks at a part of the read set.
///
/// # Errors
/// 40001 if something has changed of which nobody can say any more who wrote it.
fn look(txn: &mut Transaction, cursor: &mut Cursor, mut budget: usize) -> Result<Found> {
    let Some(reads) = txn.reads.clone() else { return Ok(Found::AsItWas) };
    let (found, beyond) = {
        let reads = reads.lock();
        let found = reads.check(cursor, &mut budget);
        (found, found.err().and_then(|_| reads.is_beyond_look()))
    };
    match (found, beyond) {
        (Ok(false), _) => Ok(Found::NotYet),
        (Ok(true), _) => Ok(Found::AsItWas),
        (Err(_), None) => Ok(Found::Changed),
        (Err(_), Some(Stale(ts))) => Err(failure(txn, ts)),
    }
}

/// Before the error for a row that is there already: whether the transaction cannot succeed because of it, for those who stand after it
/// have looked for such a row. Then it must be told so (40001): the error would not be there in any serial order.
pub(crate) fn check_reads(txn: &mut Transaction, handle: &TableHandle, layout: LayoutId, tuple: &[u8]) -> Result<()> {
    if look(txn, &mut Cursor::default(), PART)? != Found::Changed {
        return Ok(());
    }
    let (shard, Some(reads)) = (txn.shard.clone(), txn.reads.clone()) else { return Ok(()) };
    let serial = shard.0.serial.lock();
    let place = place(txn, &serial, &reads);
    let is_pivot = match place {
        Ok(None) => false,
        Ok(Some(place)) => serial.is_looked_for(place, |reads| reads.would_find(handle, layout, tuple)),
        Err(NoPlace) => true,
    };
    drop(serial);
    if is_pivot { Err(failure(txn, shard.0.store.horizon())) } else { Ok(()) }
}

/// The place of a transaction that has read what others have written since.
fn place(txn: &Transaction, serial: &Serial, reads: &Mutex<ReadSet>) -> Result<Option<Timestamp>, NoPlace> {
    let mut reads = reads.lock();
    reads.settle();
    serial.place(&reads, txn.active.map_or(Timestamp(0), Number::snapshot))
}

/// Ends a SERIALIZABLE transaction that has written nothing.
pub(super) fn end_reader(txn: &mut Transaction) -> Result<()> {
    let shard = txn.shard.clone();
    let ended = order::end_reader(&shard.0, txn);
    ended.map_err(|NoPlace| failure(txn, shard.0.store.horizon()))
}

/// Goes on with a long look that has begun.
pub(crate) fn ahead(txn: &mut Transaction) -> Result<Option<Wait>> {
    let Some(mut effort) = txn.look.effort.take() else { return Ok(None) };
    if effort.found == Found::NotYet {
        effort.found = look(txn, &mut effort.cursor, PART)?;
    }
    let is_done = effort.found != Found::NotYet;
    txn.look.effort = Some(effort);
    Ok((!is_done).then(Wait::yield_now))
}

/// Looks, and stamps if there is a place. A wait is for a long look to go on.
pub(super) fn stamp(
    txn: &mut Transaction,
    room: Reservation,
    durability: Durability,
) -> Result<Step<(Lsn, Timestamp)>> {
    let shard = txn.shard.clone();
    let (found, mut serial) = match section(txn, &shard)? {
        Step::Ready(entered) => entered,
        Step::Wait(wait) => return Ok(Step::Wait(wait)),
    };
    let mut place = None;
    if found == Found::Changed
        && let Some(reads) = txn.reads.clone()
    {
        let found = self::place(txn, &serial, &reads);
        let checked = found.and_then(|found| {
            found.map_or(Ok(()), |place| serial.check_readers(place, &Writes::of(txn.core.as_ref())))?;
            Ok(found)
        });
        place = match checked {
            Ok(place) => place,
            Err(NoPlace) => {
                drop(serial);
                return Err(failure(txn, shard.0.store.horizon()));
            }
        };
    }
    let stamped = super::stamp::stamp(txn, room, durability);
    serial.last = stamped.1;
    serial.end(&shard.0, txn, stamped.1, place);
    Ok(Step::Ready(stamped))
}

/// Looks, and acts inside the section if all that was read is as it was. A wait is for a long look to go on.
pub(crate) fn guarded<R>(
    txn: &mut Transaction,
    act: impl FnOnce(&mut Transaction, &mut Serial) -> R,
) -> Result<Step<R>> {
    let shard = txn.shard.clone();
    match section(txn, &shard)? {
        Step::Wait(wait) => Ok(Step::Wait(wait)),
        Step::Ready((Found::Changed, serial)) => {
            drop(serial);
            Err(failure(txn, shard.0.store.horizon()))
        }
        Step::Ready((_, mut serial)) => Ok(Step::Ready(act(txn, &mut serial))),
    }
}

/// Looks at what was read, and enters the section with what is true there. A wait is for a long look to go on.
///
/// # Errors
/// 40001 if the transaction has written what a prepared one has read.
fn section<'s>(txn: &mut Transaction, shard: &'s Shard) -> Result<Step<(Found, MutexGuard<'s, Serial>)>> {
    if txn.look.effort.is_none() && txn.look.efforts < EFFORTS {
        let horizon = shard.0.store.horizon();
        let mut cursor = Cursor::default();
        let found = look(txn, &mut cursor, PART)?;
        txn.look.effort = Some(Effort { horizon, cursor, found });
        if found == Found::NotYet {
            txn.look.efforts += 1;
            return Ok(Step::Wait(Wait::yield_now()));
        }
    }
    let serial = shard.0.serial.lock();
    let covered = |effort: &Effort| {
        effort.found == Found::Changed || (effort.found == Found::AsItWas && effort.horizon >= serial.last)
    };
    let mut found = txn.look.effort.take().filter(covered).map_or(Found::NotYet, |effort| effort.found);
    if found == Found::NotYet {
        let budget = if txn.look.efforts < EFFORTS { PART } else { usize::MAX };
        let (horizon, mut cursor) = (shard.0.store.horizon(), Cursor::default());
        found = look(txn, &mut cursor, budget)?;
        if found == Found::NotYet {
            txn.look.efforts += 1;
            txn.look.effort = Some(Effort { horizon, cursor, found });
            return Ok(Step::Wait(Wait::yield_now()));
        }
    }
    if let Some(core) = &txn.core
        && serial.guards.iter().any(|(_, guard)| guard.lock().is_touched(writes(core), None))
    {
        drop(serial);
        return Err(failure(txn, Timestamp(0)));
    }
    Ok(Step::Ready((found, serial)))
}

/// The rows that a transaction has written.
pub(crate) fn writes(core: &mvcc::Transaction) -> impl Iterator<Item = (&Arc<mvcc::Table>, RowId)> {
    core.writes().map(|(table, row, _)| (table, row))
}

/// The transaction has read what a prepared one has written: whoever commits first, the other would be wrong.
pub(crate) fn between_prepared(txn: &mut Transaction) -> Error {
    failure(txn, Timestamp(0))
}
