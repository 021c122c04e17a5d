//! Stage 1: space in the log.

use std::sync::Arc;

use base::Result;
use engine_api::{Step, Wait, WaitCell};
use redo::{Reservation, Reserve};

use crate::txn::{REDO_AHEAD_BYTES, Transaction};

/// Asks for room for `bytes`; a wait ends when asking again makes sense.
fn ask(txn: &Transaction, bytes: usize) -> Result<Step<Reservation>> {
    let cell = WaitCell::new();
    let waking = Arc::clone(&cell);
    match txn.shard.0.log.reserve(bytes, move || Box::new(move || waking.wake())) {
        Reserve::Ready(room) => Ok(Step::Ready(room)),
        Reserve::Later => Ok(Step::Wait(Wait::on(&cell))),
        Reserve::Full => Err(super::disk_full()),
    }
}

/// Sets space aside for what is left of the transaction's record.
pub(super) fn reserve(txn: &Transaction) -> Result<Step<Reservation>> {
    ask(txn, txn.redo.len())
}

/// Sends a long record ahead in parts, so that it neither piles up in memory nor asks for all its space at once. A wait is
/// for space, or for the flusher to catch up.
pub(crate) fn send_ahead(txn: &mut Transaction) -> Result<Option<Wait>> {
    if txn.redo.len() < REDO_AHEAD_BYTES {
        return Ok(None);
    }
    let Some(id) = txn.core.as_ref().map(|c| c.id()) else { return Ok(None) };
    let room = match ask(txn, txn.redo.len())? {
        Step::Ready(room) => room,
        Step::Wait(wait) => return Ok(Some(wait)),
    };
    let cell = WaitCell::new();
    let waking = Arc::clone(&cell);
    let sent = txn.shard.0.log.append_chunk(room, id, &txn.redo, move || Box::new(move || waking.wake()));
    if !sent {
        return Ok(Some(Wait::on(&cell)));
    }
    txn.redo_ahead += txn.redo.len() as u64;
    txn.redo.clear();
    Ok(None)
}
