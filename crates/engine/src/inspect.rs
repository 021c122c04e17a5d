//! Looks at a whole shard for tests: whether what must always hold does, what versions there are, what the log says.

use base::{Lsn, Oid, RowId};
use env::World;
use mvcc::index::{Direction, EntryBatch, KeyRange, OrderedIndex as _};
use mvcc::{Newest, pin};

use crate::record::{Delta, Op, Ops};
use crate::shard::Shard;

/// Whether each index has an entry for every version of its table's rows, and no other (E3). REQUIRES that no other thread
/// writes.
///
/// # Errors
/// What is not so.
pub fn check(shard: &Shard) -> Result<(), String> {
    let mut tables: Vec<_> = shard.0.tables.read().values().cloned().collect();
    tables.sort_by_key(|store| (store.id.table, store.id.storage));
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

/// The rows of a table, a line for each: who has decided about it, and the tuples of its versions as `shown` shows them, newest first.
pub fn versions(shard: &Shard, table: Oid, shown: &dyn Fn(&[u8]) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    for store in shard.0.tables.read().values().filter(|store| store.id.table == table) {
        let guard = pin();
        for row in (0..store.rows.end().0).map(RowId) {
            let state = match store.rows.newest(row, None, &guard) {
                Newest::Live(version) => format!("committed at {}", version.ts.0),
                Newest::Deleted(ts) => format!("deleted at {}", ts.0),
                Newest::Undecided { decided: Some(version), .. } => {
                    format!("undecided above the commit at {}", version.ts.0)
                }
                Newest::Undecided { decided: None, .. } => "undecided".to_string(),
                Newest::Absent => continue,
            };
            let all: Vec<String> = store.rows.versions(row, &guard).iter().map(|(_, tuple)| shown(tuple)).collect();
            lines.push(format!("row {}: {state}: {}", row.0, all.join(", ")));
        }
    }
    lines
}

/// The records of the log on a disk from a position on, as a start would read them, a line for each operation. `shown` shows tuples.
///
/// # Errors
/// What is wrong with it.
pub fn log(world: &World, from: Lsn, shown: &dyn Fn(&[u8]) -> String) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let found = redo::inspect(&world.disk, from, Lsn(0), &mut |record| {
        lines.push(format!("{:?} at {}", record.kind, record.ts.0));
        if matches!(record.kind, redo::RecordKind::Commit | redo::RecordKind::Prepare) {
            for op in Ops::new(record.payload) {
                let op = op.map_err(|malformed| malformed.0.to_string())?;
                lines.push(format!("  {}", operation(&op, shown)));
            }
        }
        Ok(())
    });
    let found = found.map_err(|error| error.to_string())?;
    lines.extend(found.cut.map(|_| "something behind its end, which an opening cuts off".to_string()));
    lines.extend(found.was_closed.filter(|closed| *closed).map(|_| "closed".to_string()));
    Ok(lines)
}

fn operation(op: &Op<'_>, shown: &dyn Fn(&[u8]) -> String) -> String {
    match op {
        Op::Insert { row, tuple, .. } => format!("insert row {}: {}", row.0, shown(tuple)),
        Op::Update { row, delta: Delta::Runs(_), .. } => format!("update row {}: other bytes in places", row.0),
        Op::Update { row, delta: Delta::Splice { .. }, .. } => format!("update row {}: another middle", row.0),
        Op::Delete { row, .. } => format!("delete row {}", row.0),
        Op::PutObject { .. } => "a definition".to_string(),
        Op::DropObject { oid } => format!("object {oid} is gone"),
        Op::UndoTo { .. } => "undo what was sent ahead".to_string(),
        Op::Prepared { .. } => "what a prepared transaction is".to_string(),
    }
}
