//! Looks at a whole shard for tests: whether what must always hold does.

use base::RowId;
use mvcc::index::{Direction, EntryBatch, KeyRange, OrderedIndex as _};
use mvcc::pin;

use crate::shard::Shard;

/// Whether each index has an entry for every version of its table's rows, and no other (E3). REQUIRES that no other thread
/// writes.
///
/// # Errors
/// What is not so.
pub fn check(shard: &Shard) -> Result<(), String> {
    let mut tables: Vec<_> = shard.0.tables.read().values().cloned().collect();
    tables.sort_by_key(|store| (store.id.table, store.id.generation));
    for store in tables {
        let definition = store.upkeep.current();
        for index in definition.indexes.iter() {
            let guard = pin();
            let mut expected = Vec::new();
            for row in (0..store.rows.end().0).map(RowId) {
                let versions = store.rows.versions(row, &guard);
                for (layout, tuple) in versions.iter() {
                    let mut key = Vec::new();
                    definition.shape.key(index, *layout, tuple, &mut key);
                    if !key.is_empty() {
                        expected.push((key, row));
                    }
                }
            }
            expected.sort();
            expected.dedup();
            let mut found: Vec<(Vec<u8>, RowId)> = Vec::new();
            loop {
                let mut batch = EntryBatch::new();
                let resume = found.last().map(|(key, row)| (&key[..], *row));
                let has_more = index.tree.scan(&KeyRange::all(), Direction::Forward, resume, 4096, &mut batch);
                found.extend(batch.iter().map(|(key, row)| (key.to_vec(), row)));
                if !has_more {
                    break;
                }
            }
            let differ = |of: &[(Vec<u8>, RowId)], not_in: &[(Vec<u8>, RowId)]| {
                of.iter().find(|entry| not_in.binary_search(entry).is_err()).cloned()
            };
            if let Some((key, row)) = differ(&expected, &found) {
                return Err(format!("index {} lacks row {row} under {key:?}", index.desc.oid));
            }
            if let Some((key, row)) = differ(&found, &expected) {
                return Err(format!("index {} has row {row} under {key:?}, where it never was", index.desc.oid));
            }
            if index.tree.len() != found.len() {
                return Err(format!("index {} says {} of {} entries", index.desc.oid, index.tree.len(), found.len()));
            }
        }
    }
    Ok(())
}
