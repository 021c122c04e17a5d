//! What is counted is what is held: after random work everything is counted anew, row by row and node by node.

use base::LayoutId;
use engine::Shard;
use engine_api::*;
use env::sim::SimDisk;
use types::{ColumnType, Datum, RowLayout, oid};

use crate::support::*;

/// xorshift64*
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}

/// Accounts with a note of any length, in a layout of its own.
fn wider() -> CatalogObject {
    let mut table = accounts();
    table.columns.push(ColumnDesc { not_null: false, ..column(3, "note", oid::TEXT) });
    let mut fields = table.layouts[0].fields.clone();
    fields.push(LayoutField { column: 3, type_oid: oid::TEXT, typmod: -1 });
    table.layouts.push(LayoutDesc { id: LayoutId(2), fields });
    CatalogObject::Table(table)
}

/// A tuple of the newest layout.
fn wide_tuple(id: i32, balance: i64, note: usize) -> Vec<u8> {
    let column = |oid| ColumnType { oid, typmod: -1 };
    let layout = RowLayout::new(&[column(oid::INT4), column(oid::INT8), column(oid::TEXT)]);
    let mut out = Vec::new();
    let values = [Datum::Int4(id), Datum::Int8(balance), Datum::Text("n".repeat(note).into())];
    layout.encode(&values, &mut out).unwrap();
    out
}

fn define_in_one(shard: &Shard, what: impl FnOnce(&mut dyn Txn)) {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
    what(&mut *txn);
    commit(shard, txn);
}

/// One change of a row; ids below `next` may be there.
fn change(txn: &mut dyn Txn, rng: &mut Rng, next: &mut i32) {
    txn.begin_command();
    let table = txn.open_table(ACCOUNTS).unwrap();
    let balance = rng.below(50) as i64;
    let note = if rng.below(40) == 0 { 5000 } else { rng.below(300) };
    if *next < 300 || rng.below(3) == 0 {
        ready(txn.insert(&table, &wide_tuple(*next, balance, note), ConflictArbiter::None));
        *next += 1;
        return;
    }
    let id = rng.below(*next as usize) as i32;
    let mut batch = RowBatch::new();
    txn.get(&table, BY_ID, &key(id), &mut batch).unwrap();
    let Some(row) = batch.iter().next().map(|row| row.row) else { return };
    ready(txn.lock_row(&table, row, RowLockMode::Update, WaitPolicy::Block, &mut RowBatch::new()));
    match rng.below(3) {
        0 => txn.delete(&table, row).unwrap(),
        _ => ready(txn.update(&table, row, &wide_tuple(id, balance, note))),
    }
}

/// Changes, savepoints that are gone back to, commits and rollbacks.
fn work(shard: &Shard, rng: &mut Rng, next: &mut i32) {
    let before = *next;
    let mut txn = begin(shard, Isolation::ReadCommitted);
    for _ in 0..rng.below(20) {
        if rng.below(5) == 0 {
            let (point, before) = (txn.savepoint(), *next);
            (0..rng.below(6)).for_each(|_| change(&mut *txn, rng, next));
            if rng.below(2) == 0 {
                txn.rollback_to(point);
                *next = before;
            }
        }
        change(&mut *txn, rng, next);
    }
    if rng.below(4) == 0 {
        txn.rollback();
        *next = before;
    } else {
        commit(shard, txn);
    }
}

#[test]
fn what_is_counted_is_what_is_held() {
    let disk = SimDisk::new();
    let mut shard = open(&disk);
    define(&shard);
    define_in_one(&shard, |txn| ready(txn.put_object(wider())));
    let mut rng = Rng(0x5eed_cafe);
    let mut next = 0;
    let mut reader = None;
    let mut indexed = false;
    for round in 0..400 {
        work(&shard, &mut rng, &mut next);
        match rng.below(30) {
            // A reader keeps what others replace.
            0 => {
                let mut txn = begin(&shard, Isolation::RepeatableRead);
                find(&mut *txn, 1);
                reader = Some(txn);
            }
            1 => drop(reader.take()),
            2 if indexed => {
                define_in_one(&shard, |txn| txn.drop_object(BY_BALANCE).unwrap());
                indexed = false;
            }
            3 if !indexed => {
                define_in_one(&shard, |txn| while let Step::Wait(_) = txn.put_object(by_balance(false)).unwrap() {});
                indexed = true;
            }
            4 => {
                let mut txn = begin(&shard, Isolation::ReadCommitted);
                ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
                if indexed {
                    txn.drop_object(BY_BALANCE).unwrap();
                } else {
                    while let Step::Wait(_) = txn.put_object(by_balance(false)).unwrap() {}
                }
                txn.rollback();
            }
            5 => {
                reader = None;
                drop(shard);
                shard = open(&disk);
            }
            6..12 => shard.collect_garbage(1000),
            _ => {}
        }
        assert_eq!(shard.audit(), Vec::<String>::new(), "round {round}");
    }
    drop(reader);
    (0..100).for_each(|_| shard.collect_garbage(1000));
    assert_eq!(shard.audit(), Vec::<String>::new());
    let held = &shard.table_memory()[0];
    assert_eq!(held.version_count, held.rows, "nothing old is left: {held:?}");
    assert_eq!(held.rows as usize, all_rows(&shard));
}

fn all_rows(shard: &Shard) -> usize {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    let table = txn.open_table(ACCOUNTS).unwrap();
    let content = RowContent::Nothing;
    let spec = ScanSpec { table, index: None, range: KeyRange::all(), reverse: false, content };
    let mut scan = txn.open_scan(spec).unwrap();
    let mut batch = RowBatch::new();
    while scan.next(&mut *txn, 1000, &mut batch).unwrap() {}
    batch.len()
}

/// A transaction of many rows is charged with what it remembers of them.
#[test]
fn long_transactions_are_charged() {
    let disk = SimDisk::new();
    let shard = open(&disk);
    define(&shard);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    (0..20_000).for_each(|id| {
        while let Step::Wait(_) = insert(&mut *txn, id, 1).unwrap() {
            std::thread::yield_now();
        }
    });
    let list = shard.memory().others[MemoryKind::Transactions as usize];
    assert!(list > 20_000 * 16, "{list}");
    txn.rollback();
    assert_eq!(shard.memory().others[MemoryKind::Transactions as usize], 0);
}
