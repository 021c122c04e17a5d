//! Indexes that are made while transactions run: older views, older table references.

use base::SqlState;
use engine::Shard;
use engine_api::*;
use env::sim::SimDisk;
use types::oid;

use crate::support::*;

fn create_index(shard: &Shard, unique: bool) -> base::Result<()> {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.lock_table(ACCOUNTS, TableLockMode::Share, WaitPolicy::Block));
    txn.put_object(by_balance(unique))?;
    commit(shard, txn);
    Ok(())
}

fn balance_key(balance: i64) -> Vec<u8> {
    let mut out = Vec::new();
    types::encode_key(types::DatumRef::Int8(balance), oid::INT8, false, false, &mut out);
    out
}

/// How many rows a transaction finds under a balance.
fn with_balance(txn: &mut dyn Txn, balance: i64) -> usize {
    let table = txn.open_table(ACCOUNTS).unwrap();
    let mut batch = RowBatch::new();
    txn.get(&table, BY_BALANCE, &balance_key(balance), &mut batch).unwrap();
    batch.len()
}

fn change(shard: &Shard, id: i32, by: impl Fn(i64) -> i64) {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(update(&mut *txn, id, by));
    commit(shard, txn);
}

fn delete(shard: &Shard, id: i32) {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    let (row, _) = find(&mut *txn, id).unwrap();
    let table = txn.open_table(ACCOUNTS).unwrap();
    ready(txn.lock_row(&table, row, RowLockMode::Update, WaitPolicy::Block, &mut RowBatch::new()));
    txn.delete(&table, row).unwrap();
    commit(shard, txn);
}

/// The entries of the index: as many as a scan by a view would have to look at.
fn collect(shard: &Shard) {
    for _ in 0..20 {
        shard.collect_garbage(100);
    }
}

#[test]
fn a_view_older_than_an_index_finds_its_rows_through_it() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 4);
    let mut old = begin(&shard, Isolation::RepeatableRead);
    assert_eq!(scan(&mut *old, None).len(), 4);
    change(&shard, 1, |_| 7);
    change(&shard, 2, |_| 100);
    delete(&shard, 3);
    create_index(&shard, false).unwrap();
    let mut new = begin(&shard, Isolation::RepeatableRead);
    assert_eq!((with_balance(&mut *old, 100), with_balance(&mut *old, 7)), (4, 0));
    assert_eq!((with_balance(&mut *new, 100), with_balance(&mut *new, 7)), (2, 1));
    assert_eq!(scan(&mut *old, Some(BY_BALANCE)), [(0, 100), (1, 100), (2, 100), (3, 100)]);
    assert_eq!(scan(&mut *new, Some(BY_BALANCE)), [(1, 7), (0, 100), (2, 100)]);
    let full = shard.memory().rows;
    drop(old);
    collect(&shard);
    assert!(shard.memory().rows < full);
    assert_eq!(scan(&mut *new, Some(BY_BALANCE)), [(1, 7), (0, 100), (2, 100)]);
    // What is entered and removed again later shows that no entry of an old version stayed.
    change(&shard, 1, |_| 100);
    let mut newest = begin(&shard, Isolation::ReadCommitted);
    assert_eq!(scan(&mut *newest, Some(BY_BALANCE)), [(0, 100), (1, 100), (2, 100)]);
}

#[test]
fn a_unique_index_looks_at_newest_versions_for_duplicates() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 3);
    assert_eq!(create_index_error(&shard).code(), SqlState::UNIQUE_VIOLATION);
    let mut old = begin(&shard, Isolation::RepeatableRead);
    assert_eq!(scan(&mut *old, None).len(), 3);
    change(&shard, 0, |_| 1);
    change(&shard, 1, |_| 2);
    create_index(&shard, true).unwrap();
    assert_eq!(with_balance(&mut *old, 100), 3, "the older view sees all three under one key");
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let error = insert(&mut *txn, 9, 100).unwrap_err();
    assert_eq!(error.fields().detail.as_deref(), Some("Key (balance)=(100) already exists."));
    assert!(matches!(ready(insert(&mut *txn, 9, 3)), InsertOutcome::Inserted(_)));
}

fn create_index_error(shard: &Shard) -> base::Error {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.lock_table(ACCOUNTS, TableLockMode::Share, WaitPolicy::Block));
    let error = txn.put_object(by_balance(true)).unwrap_err();
    assert_eq!(error.fields().detail.as_deref(), Some("Key (balance)=(100) is duplicated."));
    error
}

#[test]
fn an_index_build_that_races_with_the_collector_leaves_no_entry_behind() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 200);
    for round in 0..20 {
        let old = begin(&shard, Isolation::RepeatableRead);
        for id in 0..200 {
            change(&shard, id, |b| b + 1 + i64::from(id));
        }
        std::thread::scope(|scope| {
            let collector = shard.clone();
            scope.spawn(move || {
                drop(old);
                for _ in 0..50 {
                    collector.collect_garbage(10);
                }
            });
            create_index(&shard, false).unwrap();
        });
        collect(&shard);
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        assert_eq!(scan(&mut *txn, Some(BY_BALANCE)).len(), 200);
        let empty = shard.memory().indexes;
        ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
        txn.drop_object(BY_BALANCE).unwrap();
        commit(&shard, txn);
        assert!(shard.memory().indexes < empty, "round {round}");
    }
}

#[test]
fn writers_with_an_older_table_reference_enter_rows_into_a_new_index() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let mut writer = begin(&shard, Isolation::ReadCommitted);
    let stale = writer.open_table(ACCOUNTS).unwrap();
    let (row, _) = find(&mut *writer, 0).unwrap();
    create_index(&shard, false).unwrap();
    writer.begin_command();
    ready(writer.lock_table(ACCOUNTS, TableLockMode::RowExclusive, WaitPolicy::Block));
    ready(writer.insert(&stale, &tuple(5, 55), ConflictArbiter::None));
    ready(writer.lock_row(&stale, row, RowLockMode::NoKeyUpdate, WaitPolicy::Block, &mut RowBatch::new()));
    ready(writer.update(&stale, row, &tuple(0, 66)));
    writer.begin_command();
    let mut batch = RowBatch::new();
    writer.get(&stale, BY_BALANCE, &balance_key(66), &mut batch).unwrap();
    assert_eq!(batch.len(), 1, "a read through the older reference finds the index too");
    commit(&shard, writer);
    let mut reader = begin(&shard, Isolation::ReadCommitted);
    assert_eq!(scan(&mut *reader, Some(BY_BALANCE)), [(5, 55), (0, 66), (1, 100)]);
}

#[test]
fn an_index_build_and_writers_exclude_each_other() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let mut writer = begin(&shard, Isolation::ReadCommitted);
    ready(writer.lock_table(ACCOUNTS, TableLockMode::RowExclusive, WaitPolicy::Block));
    ready(insert(&mut *writer, 7, 7));
    let mut definer = begin(&shard, Isolation::ReadCommitted);
    let wait = waits(definer.lock_table(ACCOUNTS, TableLockMode::Share, WaitPolicy::Block));
    commit(&shard, writer);
    assert!(wait.is_over());
    ready(definer.lock_table(ACCOUNTS, TableLockMode::Share, WaitPolicy::Block));
    ready(definer.put_object(by_balance(false)));
    let mut late = begin(&shard, Isolation::ReadCommitted);
    let wait = waits(late.lock_table(ACCOUNTS, TableLockMode::RowExclusive, WaitPolicy::Block));
    commit(&shard, definer);
    assert!(wait.is_over());
    ready(late.lock_table(ACCOUNTS, TableLockMode::RowExclusive, WaitPolicy::Block));
    late.begin_command();
    assert_eq!(with_balance(&mut *late, 7), 1);
}

#[test]
fn rows_of_a_truncated_table_are_not_written_through_an_older_reference() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let mut writer = begin(&shard, Isolation::ReadCommitted);
    let stale = writer.open_table(ACCOUNTS).unwrap();
    let mut other = begin(&shard, Isolation::ReadCommitted);
    let own = other.open_table(ACCOUNTS).unwrap();
    other.truncate(ACCOUNTS).unwrap();
    assert!(other.insert(&own, &tuple(8, 8), ConflictArbiter::None).is_err());
    ready(insert(&mut *other, 8, 8));
    commit(&shard, other);
    assert!(writer.insert(&stale, &tuple(9, 9), ConflictArbiter::None).is_err());
    writer.rollback();
    assert_eq!(all(&shard), [(8, 8)]);
    drop((writer, stale, own, shard));
    assert_eq!(all(&open(&disk)), [(8, 8)]);
}

#[test]
fn a_violation_names_an_index_as_it_is_called_now() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let mut renamed = txn.catalog().index(BY_ID).unwrap().clone();
    renamed.name = "accounts_by_id".to_string();
    ready(txn.put_object(CatalogObject::Index(renamed)));
    commit(&shard, txn);
    let error = insert(&mut *begin(&shard, Isolation::ReadCommitted), 0, 1).unwrap_err();
    assert_eq!(error.fields().message, "duplicate key value violates unique constraint \"accounts_by_id\"");
}
