//! Stage 3: versions stamped, locks released, garbage handed over.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Timestamp;
use engine_api::CatalogObject;
use rustc_hash::FxHashSet;

use crate::storage::{TableStore, storage_id};
use crate::txn::Transaction;

/// Commits between two looks at the garbage, and the rows looked at.
const COLLECT_EVERY: u64 = 16;
const COLLECT_ROWS: usize = 64;

/// Steps of the end of a transaction that are made in one part: less than a millisecond of work.
pub(crate) const FINISH_AT_ONCE: usize = 2048;

/// Finishes a transaction that was published at `ts`, a large one as far as it goes at once.
pub(crate) fn publish(txn: &mut Transaction, ts: Timestamp) {
    // The own view first, or it would pin what this transaction replaced.
    txn.end_view();
    // Before the table locks go: who gets one next must find that what it has open was replaced.
    let unused = if txn.definitions.changes.is_empty() { Vec::new() } else { drop_unused(txn) };
    let inner = &txn.shard.0;
    match &mut txn.core {
        // Others of this core go on between its parts ([`engine_api::Txn::finish_some`]).
        Some(core) if core.size() > FINISH_AT_ONCE => {
            txn.finishing = txn.core.take().map(|core| Box::new((core, ts)));
        }
        Some(core) => {
            inner.store.finish(core, ts);
            txn.core = None;
        }
        None => {}
    }
    // A large table takes its time to free: nobody waits for that.
    drop(unused);
    txn.clear_record();
    let inner = &txn.shard.0;
    if inner.commits.fetch_add(1, Ordering::Relaxed).is_multiple_of(COLLECT_EVERY) {
        inner.collect(COLLECT_ROWS);
    }
}

/// Forgets storage, indexes and sequences that the catalog no longer speaks of, and answers the storage. Readers that still
/// have it open keep it alive.
fn drop_unused(txn: &mut Transaction) -> Vec<Arc<TableStore>> {
    let inner = &txn.shard.0;
    let catalog = inner.catalog.get();
    let changed: FxHashSet<_> = txn.definitions.changes.iter().map(|(oid, _)| *oid).collect();
    let mut unused = Vec::new();
    // An index that is gone no longer says whose it was.
    let some_gone = changed.iter().any(|oid| catalog.get(*oid).is_none());
    inner.tables.write().retain(|id, store| {
        let changed_here = changed.contains(&id.table);
        if !changed_here && !some_gone {
            return true;
        }
        if let Some(table) = catalog.table(id.table) {
            if changed_here && storage_id(table) != *id {
                store.abandon();
                unused.push(Arc::clone(store));
                return false;
            }
            let gone: Vec<_> = {
                let indexes = store.upkeep.current().indexes.clone();
                let own = indexes.iter().map(|i| i.desc.oid);
                own.filter(|oid| changed.contains(oid) && catalog.index(*oid).is_none()).collect()
            };
            gone.into_iter().for_each(|oid| store.remove_index(oid));
            return true;
        }
        if changed_here {
            store.abandon();
            unused.push(Arc::clone(store));
        }
        !changed_here
    });
    for oid in &changed {
        if catalog.get(*oid).is_none_or(|object| matches!(&**object, CatalogObject::Sequence(_))) {
            inner.sequences.forget_others(*oid, catalog.sequence(*oid));
        }
    }
    txn.definitions = Default::default();
    unused
}
