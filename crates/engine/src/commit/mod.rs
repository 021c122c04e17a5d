//! The way of a transaction to durability, one stage per file.
//!
//! 0. [`validate`]: a SERIALIZABLE transaction looks whether what it read still holds, and otherwise whether a place before those who
//!    have written into it is left ([`order`], rule R8).
//! 1. [`mod@reserve`]: space in the log is set aside; a full disk refuses here (53100), and nothing has happened yet.
//! 2. [`stamp`]: in the log's critical section the transaction takes its timestamp and position, is published, and its
//!    definitions become the catalog's (E1). From here on others see it.
//! 3. [`mod@publish`]: versions are stamped, row locks released, garbage handed over; of a large transaction in parts, when the
//!    outcome is known already. Other transactions continue before it is durable.
//! 4. Durable: the log's flusher, in its own time. The answer carries the position that the reply waits for (rule R1).
//!
//! A transaction that wrote nothing does none of this but, at SERIALIZABLE, the look whether its snapshot is a place in the order.

pub(crate) mod gate;
mod order;
pub(crate) mod prepared;
mod publish;
mod reserve;
mod stamp;
mod validate;

use base::{Error, Result, SqlState};
use engine_api::{CommitOutcome, Durability, Step, Txn};

use crate::txn::Transaction;

pub(crate) use order::{Active, Begun, Number, Safety, Serial, Writes, begin, leave, safety};
pub(crate) use publish::{FINISH_AT_ONCE, publish};
pub(crate) use reserve::{reserve, send_ahead};
pub(crate) use stamp::stamp_as;
pub(crate) use validate::{Look, ahead, between_prepared, check_reads, guarded, writes};

/// 53100
pub(crate) fn disk_full() -> Error {
    Error::new(SqlState::DISK_FULL, "could not write to the log: No space left on device")
        .hint("Free space on the disk of the data directory; nothing was committed.")
}

/// See [`engine_api::Txn::commit`].
pub(crate) fn commit(txn: &mut Transaction, durability: Durability) -> Result<Step<CommitOutcome>> {
    if txn.redo.is_empty() && txn.redo_ahead == 0 {
        if txn.active.is_some() {
            validate::end_reader(txn)?;
        }
        let gate = txn.gate;
        // Nobody asks how a transaction has ended whose id nobody was told.
        if let Some(core) = txn.core.as_ref().filter(|_| txn.shown_id().is_some()) {
            txn.shard.0.store.note_committed(core);
        }
        txn.undo_all();
        return Ok(Step::Ready(CommitOutcome { gate, position: None }));
    }
    if let Some(wait) = send_ahead(txn)? {
        return Ok(Step::Wait(wait));
    }
    if txn.reads.is_some()
        && let Some(wait) = ahead(txn)?
    {
        return Ok(Step::Wait(wait));
    }
    let room = match reserve(txn)? {
        Step::Ready(room) => room,
        Step::Wait(wait) => return Ok(Step::Wait(wait)),
    };
    let (end, ts) = match &txn.reads {
        None => stamp::stamp(txn, room, durability),
        Some(_) => match validate::stamp(txn, room, durability)? {
            Step::Ready(stamped) => stamped,
            Step::Wait(wait) => return Ok(Step::Wait(wait)),
        },
    };
    publish(txn, ts);
    let gate = if durability == Durability::On { txn.gate.max(end) } else { txn.gate };
    Ok(Step::Ready(CommitOutcome { gate, position: Some(end) }))
}
