//! Savepoints: locks and records on either side of them.

use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use base::{LayoutId, Oid};
use engine::Shard;
use engine_api::*;
use env::sim::SimDisk;

use crate::support::*;

const ASIDE: Oid = Oid(30000);

/// Accounts with a third column, in a layout of its own.
fn wider() -> CatalogObject {
    let mut table = accounts();
    table.columns.push(ColumnDesc { not_null: false, ..column(3, "note", types::oid::INT4) });
    let mut fields = table.layouts[0].fields.clone();
    fields.push(LayoutField { column: 3, type_oid: types::oid::INT4, typmod: -1 });
    table.layouts.push(LayoutDesc { id: LayoutId(2), fields });
    CatalogObject::Table(table)
}

/// Opens the accounts when it is woken, and notes the layout that they are written in.
struct Opens(Shard, Mutex<Option<LayoutId>>);

impl Wake for Opens {
    fn wake(self: Arc<Opens>) {
        let mut txn = begin(&self.0, Isolation::ReadCommitted);
        let table = txn.open_table(ACCOUNTS).unwrap();
        *self.1.lock().unwrap() = Some(txn.layout(&table));
    }
}

/// Who gets a table's lock because definitions were rolled back finds the definitions from before.
#[test]
fn definitions_go_back_before_the_locks_that_guard_them() {
    for to_savepoint in [true, false] {
        let disk = SimDisk::new();
        let shard = bank(&disk, 2);
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        let point = txn.savepoint();
        ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
        ready(txn.put_object(wider()));
        let opens = Arc::new(Opens(shard.clone(), Mutex::default()));
        let mut other = begin(&shard, Isolation::ReadCommitted);
        let mut wait = waits(other.lock_table(ACCOUNTS, TableLockMode::RowExclusive, WaitPolicy::Block));
        let waker = Waker::from(Arc::clone(&opens));
        assert!(Future::poll(std::pin::Pin::new(&mut wait), &mut Context::from_waker(&waker)).is_pending());
        if to_savepoint {
            txn.rollback_to(point)
        } else {
            txn.rollback()
        }
        assert_eq!(*opens.1.lock().unwrap(), Some(LayoutId(1)), "to a savepoint: {to_savepoint}");
    }
}

/// Entries are found by the definitions that made them, so these go last.
#[test]
fn rows_of_a_definition_that_is_rolled_back_leave_no_entries() {
    for to_savepoint in [true, false] {
        let disk = SimDisk::new();
        let shard = bank(&disk, 2);
        let before = shard.memory();
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        let point = txn.savepoint();
        ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
        ready(txn.put_object(wider()));
        let table = txn.open_table(ACCOUNTS).unwrap();
        let layout = types::RowLayout::new(
            &[types::oid::INT4, types::oid::INT8, types::oid::INT4].map(|oid| types::ColumnType { oid, typmod: -1 }),
        );
        for id in 10..5000 {
            let mut tuple = Vec::new();
            layout.encode(&[types::Datum::Int4(id), types::Datum::Int8(0), types::Datum::Null], &mut tuple).unwrap();
            ready(txn.insert(&table, &tuple, ConflictArbiter::None));
        }
        if to_savepoint {
            txn.rollback_to(point)
        } else {
            txn.rollback()
        }
        let after = shard.memory();
        assert_eq!(after.indexes, before.indexes, "to a savepoint: {to_savepoint}");
    }
}

#[test]
fn locks_taken_before_a_savepoint_stay_and_later_ones_go() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(txn.lock_table(ACCOUNTS, TableLockMode::RowExclusive, WaitPolicy::Block));
    let point = txn.savepoint();
    ready(txn.lock_table(ASIDE, TableLockMode::Share, WaitPolicy::Block));
    ready(txn.lock_table(ACCOUNTS, TableLockMode::ShareRowExclusive, WaitPolicy::Block));
    ready(insert(&mut *txn, 5, 5));
    txn.rollback_to(point);

    let mut other = begin(&shard, Isolation::ReadCommitted);
    ready(other.lock_table(ASIDE, TableLockMode::AccessExclusive, WaitPolicy::Error));
    ready(other.lock_table(ACCOUNTS, TableLockMode::RowExclusive, WaitPolicy::Error));
    let wait = waits(other.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
    txn.rollback();
    assert!(wait.is_over());
    ready(other.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
}

#[test]
fn a_transaction_keeps_its_id_when_it_goes_back_to_its_beginning() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let point = txn.savepoint();
    ready(insert(&mut *txn, 5, 5));
    let id = txn.id();
    txn.rollback_to(point);
    let mut other = begin(&shard, Isolation::ReadCommitted);
    ready(insert(&mut *other, 5, 6));
    commit(&shard, other);
    ready(insert(&mut *txn, 7, 7));
    assert_eq!(txn.id(), id);
    commit(&shard, txn);
    assert_eq!(all(&shard), [(0, 100), (1, 100), (5, 6), (7, 7)]);
}

/// A long record that went ahead, taken back to before the first write, with further savepoints behind.
#[test]
fn what_went_ahead_before_a_rollback_to_the_beginning_does_not_count() {
    const LARGE: redo::FileOptions = redo::FileOptions { segment_bytes: 8 << 20, batch_bytes_max: 2 << 20 };
    let disk = SimDisk::new();
    let shard = open_with(&disk, LARGE);
    define(&shard);
    let fill = |txn: &mut dyn Txn, from: i32, count: i32| {
        for id in from..from + count {
            while let Step::Wait(_) = insert(txn, id, i64::from(id)).unwrap() {
                std::thread::yield_now();
            }
        }
    };
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let beginning = txn.savepoint();
    fill(&mut *txn, 1000, 60_000);
    txn.rollback_to(beginning);
    fill(&mut *txn, 0, 3);
    let later = txn.savepoint();
    fill(&mut *txn, 1000, 60_000);
    txn.rollback_to(later);
    fill(&mut *txn, 3, 2);
    commit(&shard, txn);
    let expected = all(&shard);
    assert_eq!(expected, [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);
    drop(shard);
    assert_eq!(all(&open_with(&disk, LARGE)), expected);
}

fn wide(columns: i16) -> CatalogObject {
    let mut table = accounts();
    table.columns.extend((3..columns).map(|n| column(n, &format!("note {n}"), types::oid::INT4)));
    CatalogObject::Table(table)
}

fn columns(catalog: &Catalog) -> usize {
    catalog.table(ACCOUNTS).unwrap().columns.len()
}

/// A definition that is put again and again is in the record once, but for what a savepoint may go back to.
#[test]
fn what_is_put_again_at_once_is_kept_once() {
    let bytes = |puts: usize| {
        let disk = SimDisk::new();
        let shard = bank(&disk, 2);
        let before = shard.log_end();
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
        (0..puts).for_each(|_| ready(txn.put_object(wide(200))));
        commit(&shard, txn);
        shard.log_end().0 - before.0
    };
    assert_eq!(bytes(1), bytes(50));

    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
    ready(txn.put_object(wide(10)));
    ready(txn.put_object(wide(20)));
    let first = txn.savepoint();
    ready(txn.put_object(wide(30)));
    let second = txn.savepoint();
    ready(txn.put_object(wide(40)));
    ready(txn.put_object(wide(50)));
    txn.rollback_to(second);
    assert_eq!(columns(&txn.catalog()), 29);
    txn.rollback_to(first);
    assert_eq!(columns(&txn.catalog()), 19);
    ready(txn.put_object(wide(60)));
    ready(insert(&mut *txn, 7, 7));
    ready(txn.put_object(wide(70)));
    ready(txn.put_object(wide(80)));
    commit(&shard, txn);
    assert_eq!(columns(&shard.catalog()), 79);
    drop(shard);
    let shard = open(&disk);
    assert_eq!(columns(&shard.catalog()), 79);
    assert_eq!(all(&shard).len(), 3);
}
