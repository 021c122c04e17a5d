//! Stage 2: timestamp, position, publication – one step (rule R2).

use std::sync::atomic::Ordering;

use base::{Lsn, Timestamp, TxnId};
use engine_api::Durability;
use redo::{RecordKind, Reservation};

use crate::catalog;
use crate::txn::Transaction;

/// Appends the transaction's last record. Inside: its timestamp, what replies about it wait for, the catalog, the view.
pub(super) fn stamp(txn: &mut Transaction, room: Reservation, durability: Durability) -> (Lsn, Timestamp) {
    let id = txn.core.as_ref().expect("a transaction with a record has written").id();
    stamp_as(txn, room, durability, RecordKind::Commit, id)
}

/// As [`stamp`], by a record of this kind that names the transaction `id`.
pub(crate) fn stamp_as(
    txn: &mut Transaction,
    room: Reservation,
    durability: Durability,
    kind: RecordKind,
    id: TxnId,
) -> (Lsn, Timestamp) {
    let inner = &*txn.shard.0;
    let core = txn.core.as_ref().expect("a transaction with a record has written");
    let changes = &txn.definitions.changes;
    inner.log.append(room, kind, id, &txn.redo, |end| {
        let ts = Timestamp(inner.last_ts.load(Ordering::Relaxed) + 1);
        inner.last_ts.store(ts.0, Ordering::Release);
        // Before publication: whoever sees the commit finds its position.
        inner.gates.set(ts, end, durability);
        if !changes.is_empty() {
            inner.catalog_ts.store(ts.0, Ordering::Release);
            inner.catalog.change(|catalog| catalog::apply(catalog, changes));
        }
        inner.store.publish(core, ts);
        *inner.newest_commit.lock() = (ts, end);
        (ts, ts)
    })
}
