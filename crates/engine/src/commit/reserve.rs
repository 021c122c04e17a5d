//! Stage 1: space in the log.

use std::sync::Arc;

use base::{Result, TxnId, work};
use engine_api::{Step, Wait, WaitCell};
use redo::{Reservation, Reserve};

use crate::txn::Transaction;

/// Asks for room for `bytes`; a wait ends when asking again makes sense.
fn ask(txn: &Transaction, bytes: usize) -> Result<Step<Reservation>> {
    let cell = WaitCell::new();
    let waking = Arc::clone(&cell);
    match txn.shard.0.log.reserve(bytes, move || Box::new(move || waking.wake())) {
        Reserve::Ready(room) => Ok(Step::Ready(room)),
        Reserve::Later => Ok(Step::Wait(Wait::for_space(&cell))),
        Reserve::Full => Err(super::disk_full()),
    }
}

/// Sets space aside for what is left of the transaction's record.
pub(crate) fn reserve(txn: &Transaction) -> Result<Step<Reservation>> {
    ask(txn, txn.redo.len())
}

/// Sends a long record ahead in parts, so that it neither piles up in memory nor asks for more space at once than the log
/// sets aside. A wait is for space, or for the flusher to catch up.
pub(crate) fn send_ahead(txn: &mut Transaction) -> Result<Option<Wait>> {
    if txn.redo.len() < txn.shard.0.log.chunk_bytes_max() {
        return Ok(None);
    }
    let Some(id) = txn.core.as_ref().map(|c| c.id()) else { return Ok(None) };
    let mut sent = 0;
    let result = send_parts(txn, id, &mut sent);
    txn.redo.drain(..sent);
    txn.redo_ahead += sent as u64;
    result
}

/// Sends whole parts of the record; what is left belongs to the next one, or to the last.
fn send_parts(txn: &Transaction, id: TxnId, sent: &mut usize) -> Result<Option<Wait>> {
    let log = &txn.shard.0.log;
    while let Some(part) = txn.redo[*sent..].get(..log.chunk_bytes_max()) {
        work::unstopped(|| work::beat(work::bytes(part.len())));
        let room = match ask(txn, part.len())? {
            Step::Ready(room) => room,
            Step::Wait(wait) => return Ok(Some(wait)),
        };
        let cell = WaitCell::new();
        let waking = Arc::clone(&cell);
        if !log.append_chunk(room, id, part, move || Box::new(move || waking.wake())) {
            return Ok(Some(Wait::for_space(&cell)));
        }
        *sent += part.len();
    }
    Ok(None)
}
