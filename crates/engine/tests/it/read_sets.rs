//! What a SERIALIZABLE transaction has read, when it is more than its read set keeps row by row.

use base::SqlState;
use engine::Shard;
use engine_api::*;
use env::sim::SimDisk;

use crate::support::*;

/// More than there may be items.
const ROWS: i32 = 40_000;

/// Deletes a row, having looked for the one that is going to be inserted.
fn deleted(shard: &Shard, id: i32, isolation: Isolation) {
    let mut txn = begin(shard, isolation);
    assert!(find(&mut *txn, ROWS + 2).is_none());
    let (row, _) = find(&mut *txn, id).expect("it is there");
    let table = txn.open_table(ACCOUNTS).unwrap();
    let mut moved = RowBatch::new();
    ready(txn.lock_row(&table, row, RowLockMode::Update, WaitPolicy::Block, &mut moved));
    txn.delete(&table, row).unwrap();
    commit(shard, txn);
}

fn inserted(shard: &Shard, id: i32) {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    assert!(matches!(ready(insert(&mut *txn, id, 1)), InsertOutcome::Inserted(_)));
    commit(shard, txn);
}

fn outcome(mut txn: Box<dyn Txn>) -> Option<SqlState> {
    loop {
        match txn.commit(Durability::On) {
            Ok(Step::Ready(_)) => return None,
            Ok(Step::Wait(_)) => std::thread::yield_now(),
            Err(error) => return Some(error.code()),
        }
    }
}

/// A transaction that reads by its snapshot one row, then by a newer view `seen` that came after it, then `many` rows by
/// their keys; `seen` is deleted by another, and collected; the transaction writes and ends.
fn read_and_gone(many: i32, seen: Option<i32>, newer_last: bool) -> Option<SqlState> {
    let disk = SimDisk::new();
    let shard = open_with(&disk, redo::FileOptions { segment_bytes: 16 << 20, batch_bytes_max: 1 << 20 });
    define(&shard);
    let mut filling = begin(&shard, Isolation::ReadCommitted);
    for id in 0..ROWS {
        assert!(matches!(ready(insert(&mut *filling, id, 100)), InsertOutcome::Inserted(_)));
    }
    commit(&shard, filling);
    let mut txn = begin(&shard, Isolation::Serializable);
    assert!(find(&mut *txn, 1).is_some());
    inserted(&shard, ROWS + 1);
    let newer = |txn: &mut dyn Txn| {
        if let Some(id) = seen {
            txn.begin_newest_command();
            assert!(find(txn, id).is_some(), "a newer view sees it");
            txn.begin_command();
            assert!(find(txn, ROWS + 1).is_none(), "the snapshot does not");
        }
    };
    if !newer_last {
        newer(&mut *txn);
    }
    // Every second one: not a range.
    for id in (0..many).map(|n| n * 7919 % ROWS) {
        assert!(find(&mut *txn, id).is_some());
    }
    if newer_last {
        newer(&mut *txn);
    }
    // Of others than SERIALIZABLE ones nobody takes notice, unless it cannot be told any more who it was.
    deleted(&shard, ROWS + 1, if seen.is_some() { Isolation::Serializable } else { Isolation::ReadCommitted });
    shard.collect_garbage(usize::MAX);
    txn.begin_command();
    assert!(matches!(ready(insert(&mut *txn, ROWS + 2, 1)), InsertOutcome::Inserted(_)));
    outcome(txn)
}

#[test]
fn a_row_that_is_gone_is_missed_by_who_has_read_it() {
    let failure = Some(SqlState::SERIALIZATION_FAILURE);
    assert_eq!(read_and_gone(10, Some(ROWS + 1), false), failure, "an item by itself");
    assert_eq!(read_and_gone(ROWS, Some(ROWS + 1), false), failure, "part of a block");
    assert_eq!(read_and_gone(ROWS, Some(ROWS + 1), true), failure, "read when there were blocks");
    assert_eq!(read_and_gone(ROWS, None, false), None, "nobody has read it");
}
