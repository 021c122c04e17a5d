//! The budget of memory.

use base::{LayoutId, Oid, SqlState};
use engine::{Shard, ShardOptions};
use engine_api::*;
use env::sim::SimDisk;
use types::{ColumnType, Datum, RowLayout, oid};

use crate::support::*;

const WIDE: Oid = Oid(20010);
const BY_TEXT: Oid = Oid(20011);

/// A table of one TEXT column with an index on it that is not unique.
fn define_wide(shard: &Shard) {
    let fields = vec![LayoutField { column: 1, type_oid: oid::TEXT, typmod: -1 }];
    let columns = vec![column(1, "t", oid::TEXT)];
    let table = TableDesc::new(WIDE, oids::SCHEMA_PUBLIC, "wide", oids::ROLE_POSTGRES, columns);
    let table = TableDesc { layouts: vec![LayoutDesc { id: LayoutId(1), fields }].into(), ..table };
    let indexes = (0..4).map(|n| {
        let keys = vec![IndexKey::ascending(1)];
        IndexDesc::new(Oid(BY_TEXT.0 + n), oids::SCHEMA_PUBLIC, format!("wide_{n}"), WIDE, keys)
    });
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.put_object(CatalogObject::Table(table)));
    for index in indexes {
        ready(txn.put_object(CatalogObject::Index(index)));
    }
    commit(shard, txn);
}

/// Inserts rows with keys of 1500 bytes until the shard refuses or `most` are in; answers how many are.
fn fill_wide(txn: &mut dyn Txn, from: usize, most: usize) -> (usize, Option<base::Error>) {
    let layout = RowLayout::new(&[ColumnType { oid: oid::TEXT, typmod: -1 }]);
    let table = txn.open_table(WIDE).unwrap();
    for n in 0..most {
        let mut tuple = Vec::new();
        layout.encode(&[Datum::Text(format!("{:08}{:1492}", from + n, "").into())], &mut tuple).unwrap();
        loop {
            match txn.insert(&table, &tuple, ConflictArbiter::None) {
                Ok(Step::Ready(_)) => break,
                Ok(Step::Wait(_)) => std::thread::yield_now(),
                Err(error) => return (n, Some(error)),
            }
        }
    }
    (most, None)
}

#[test]
fn index_nodes_count_against_the_memory_limit_and_come_back() {
    const LIMIT: u64 = 24 << 20;
    let disk = SimDisk::new();
    let log = redo::FileOptions { segment_bytes: 16 << 20, batch_bytes_max: 4 << 20 };
    let options = ShardOptions { memory_limit: LIMIT, log, ..ShardOptions::default() };
    let shard = Shard::open(&world(&disk), options, Box::new(|_| {})).unwrap().0;
    define_wide(&shard);
    // A row costs some 1.5 KB once and its keys four times.
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let (rows, error) = fill_wide(&mut *txn, 0, 1 << 20);
    let error = error.expect("the limit is reached");
    assert_eq!(error.code(), SqlState::OUT_OF_MEMORY, "{error:?}");
    let used = shard.memory();
    assert!(used.indexes > 2 * used.rows, "{used:?}");
    assert!(used.rows + used.indexes < LIMIT + (1 << 20), "{used:?}");
    txn.rollback();
    drop(txn);
    let after = shard.memory();
    assert!(after.rows + after.indexes < 2 << 20, "a rollback gives back rows and entries: {after:?}");

    let mut txn = begin(&shard, Isolation::ReadCommitted);
    assert!(fill_wide(&mut *txn, 0, rows / 2).1.is_none());
    commit(&shard, txn);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    assert!(fill_wide(&mut *txn, rows / 2, rows).1.is_some());
    txn.rollback();
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let table = txn.open_table(WIDE).unwrap();
    let spec = ScanSpec {
        table: table.clone(),
        index: None,
        range: KeyRange::all(),
        reverse: false,
        content: engine_api::RowContent::Tuple,
    };
    let mut scan = txn.open_scan(spec).unwrap();
    let mut batch = RowBatch::new();
    while scan.next(&mut *txn, 1000, &mut batch).unwrap() {}
    drop(scan);
    for row in batch.iter() {
        let mode = RowLockMode::Update;
        ready(txn.lock_row(&table, row.row, mode, WaitPolicy::Block, &mut RowBatch::new()));
        txn.delete(&table, row.row).unwrap();
    }
    commit(&shard, txn);
    for _ in 0..100 {
        shard.collect_garbage(1000);
    }
    let after = shard.memory();
    assert!(after.rows + after.indexes < 2 << 20, "deleted rows are collected with their entries: {after:?}");
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    assert!(fill_wide(&mut *txn, 0, rows * 3 / 4).1.is_none());
    commit(&shard, txn);
}

/// Commits without pause that nobody waits for: what they delete is freed all the same.
#[test]
fn garbage_goes_while_the_log_never_catches_up() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 0);
    let mut most = 0;
    for id in 0..20_000 {
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        ready(insert(&mut *txn, id, 1));
        if id >= 10 {
            let table = txn.open_table(ACCOUNTS).unwrap();
            let (row, _) = find(&mut *txn, id - 10).unwrap();
            ready(txn.lock_row(&table, row, RowLockMode::Update, WaitPolicy::Block, &mut RowBatch::new()));
            txn.delete(&table, row).unwrap();
        }
        while let Step::Wait(_) = txn.commit(Durability::Off).unwrap() {
            std::thread::yield_now();
        }
        most = most.max(shard.memory().rows);
    }
    assert!(most < 256 << 10, "{most} bytes for ten rows");
}

fn delete_all(shard: &Shard) {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    let table = txn.open_table(ACCOUNTS).unwrap();
    let spec = ScanSpec {
        table: table.clone(),
        index: None,
        range: KeyRange::all(),
        reverse: false,
        content: engine_api::RowContent::Tuple,
    };
    let mut scan = txn.open_scan(spec).unwrap();
    let mut batch = RowBatch::new();
    while scan.next(&mut *txn, 1000, &mut batch).unwrap() {}
    drop(scan);
    for row in batch.iter() {
        ready(txn.lock_row(&table, row.row, RowLockMode::Update, WaitPolicy::Block, &mut RowBatch::new()));
        txn.delete(&table, row.row).unwrap();
    }
    commit(shard, txn);
    for _ in 0..200 {
        shard.collect_garbage(1000);
    }
}

/// Ids of rows that were gone before a restart take no memory after it, and do not hold back that of rows beside them.
#[test]
fn rows_that_are_gone_take_no_memory_after_a_restart() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 10_000);
    delete_all(&shard);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(insert(&mut *txn, 1, 1));
    commit(&shard, txn);
    let before = shard.memory();
    drop(shard);
    let shard = open(&disk);
    let after = shard.memory();
    assert!(after.rows <= before.rows + (1 << 10), "{before:?}, then {after:?}");
    // Fills up the chunk that the restart has left half used.
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    (2..1000).for_each(|id| assert!(matches!(ready(insert(&mut *txn, id, 1)), InsertOutcome::Inserted(_))));
    commit(&shard, txn);
    delete_all(&shard);
    assert!(shard.memory().rows <= before.rows + (8 << 10), "{before:?}, in the end {:?}", shard.memory());
}

/// What was made and dropped again is not counted any more.
#[test]
fn counted_bytes_return_to_where_they_were() {
    let disk = SimDisk::new();
    let shard = open(&disk);
    let empty = shard.memory();
    define(&shard);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    (0..5000).for_each(|id| assert!(matches!(ready(insert(&mut *txn, id, 1)), InsertOutcome::Inserted(_))));
    commit(&shard, txn);
    (0..500).for_each(|_| {
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        (0..10).for_each(|id| ready(update(&mut *txn, id, |b| b + 1)));
        commit(&shard, txn);
    });
    assert!(shard.memory().rows > empty.rows && shard.memory().indexes > 0);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
    txn.drop_object(BY_ID).unwrap();
    txn.drop_object(ACCOUNTS).unwrap();
    commit(&shard, txn);
    for _ in 0..10 {
        shard.collect_garbage(10_000);
    }
    let after = shard.memory();
    assert_eq!((after.rows, after.indexes), (empty.rows, empty.indexes));
}
