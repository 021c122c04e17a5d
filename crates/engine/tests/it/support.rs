//! Shards on a simulated disk, one table of accounts, and what tests do with transactions.

use std::sync::Arc;

use base::{LayoutId, Oid, RowId};
use engine::{Shard, ShardOptions};
use engine_api::*;
use env::sim::SimDisk;
use env::{World, real};
use types::{ColumnType, Datum, RowLayout, RowRef, oid};

pub const ACCOUNTS: Oid = Oid(20000);
pub const BY_ID: Oid = Oid(20001);
pub const BY_BALANCE: Oid = Oid(20002);

pub fn world(disk: &SimDisk) -> World {
    World { disk: Arc::new(disk.clone()), clock: Arc::new(real::SystemClock::new()), spawn: Arc::new(real::Threads) }
}

pub fn open(disk: &SimDisk) -> Shard {
    open_with(disk, redo::FileOptions { segment_bytes: 256 << 10, batch_bytes_max: 32 << 10 })
}

pub fn open_with(disk: &SimDisk, log: redo::FileOptions) -> Shard {
    let options = ShardOptions { memory_limit: 1 << 30, log, ..ShardOptions::default() };
    Shard::open(&world(disk), options, Box::new(|_| {})).expect("the log opens").0
}

pub fn layout() -> RowLayout {
    RowLayout::new(&[ColumnType { oid: oid::INT4, typmod: -1 }, ColumnType { oid: oid::INT8, typmod: -1 }])
}

pub fn tuple(id: i32, balance: i64) -> Vec<u8> {
    let mut out = Vec::new();
    layout().encode(&[Datum::Int4(id), Datum::Int8(balance)], &mut out).unwrap();
    out
}

pub fn key(id: i32) -> Vec<u8> {
    let mut out = Vec::new();
    types::encode_key(types::DatumRef::Int4(id), oid::INT4, false, false, &mut out);
    out
}

pub fn column(number: i16, name: &str, type_oid: Oid) -> ColumnDesc {
    ColumnDesc { not_null: true, ..ColumnDesc::new(number, name, type_oid, -1) }
}

pub fn ready<T>(step: base::Result<Step<T>>) -> T {
    match step {
        Ok(Step::Ready(value)) => value,
        Ok(Step::Wait(_)) => panic!("it waits"),
        Err(error) => panic!("{error:?}"),
    }
}

pub fn waits<T: std::fmt::Debug>(step: base::Result<Step<T>>) -> Wait {
    match step {
        Ok(Step::Wait(wait)) => wait,
        other => panic!("it does not wait: {other:?}"),
    }
}

pub fn commit(shard: &Shard, mut txn: Box<dyn Txn>) {
    loop {
        match txn.commit(Durability::On).unwrap() {
            Step::Ready(outcome) => {
                assert!(shard.durable().block(outcome.gate));
                return;
            }
            Step::Wait(_) => std::thread::yield_now(),
        }
    }
}

/// The table of accounts, without its index.
pub fn accounts() -> TableDesc {
    let fields = vec![
        LayoutField { column: 1, type_oid: oid::INT4, typmod: -1 },
        LayoutField { column: 2, type_oid: oid::INT8, typmod: -1 },
    ];
    let columns = vec![column(1, "id", oid::INT4), column(2, "balance", oid::INT8)];
    let table = TableDesc::new(ACCOUNTS, oids::SCHEMA_PUBLIC, "accounts", oids::ROLE_POSTGRES, columns);
    TableDesc { layouts: vec![LayoutDesc { id: LayoutId(1), fields }].into(), ..table }
}

/// An index on their balances.
pub fn by_balance(unique: bool) -> CatalogObject {
    let keys = vec![IndexKey::ascending(2)];
    let index = IndexDesc::new(BY_BALANCE, oids::SCHEMA_PUBLIC, "accounts_balance", ACCOUNTS, keys);
    CatalogObject::Index(IndexDesc { unique, ..index })
}

pub fn define(shard: &Shard) {
    let index = IndexDesc::new(BY_ID, oids::SCHEMA_PUBLIC, "accounts_pkey", ACCOUNTS, vec![IndexKey::ascending(1)]);
    let index = IndexDesc { unique: true, primary: true, ..index };
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.put_object(CatalogObject::Table(accounts())));
    ready(txn.put_object(CatalogObject::Index(index)));
    commit(shard, txn);
}

pub fn begin(shard: &Shard, isolation: Isolation) -> Box<dyn Txn> {
    let mut txn = shard.begin(TxnOptions { isolation, ..TxnOptions::default() });
    txn.begin_command();
    txn
}

pub fn insert(txn: &mut dyn Txn, id: i32, balance: i64) -> base::Result<Step<InsertOutcome>> {
    let table = txn.open_table(ACCOUNTS)?;
    txn.insert(&table, &tuple(id, balance), ConflictArbiter::None)
}

/// (row, balance) of an id, as the transaction's command sees it.
pub fn find(txn: &mut dyn Txn, id: i32) -> Option<(RowId, i64)> {
    let table = txn.open_table(ACCOUNTS).unwrap();
    let mut batch = RowBatch::new();
    txn.get(&table, BY_ID, &key(id), &mut batch).unwrap();
    assert!(batch.len() <= 1);
    batch.iter().next().map(|row| (row.row, balance(row.tuple)))
}

pub fn balance(tuple: &[u8]) -> i64 {
    match RowRef::new(&layout(), tuple).get_owned(1) {
        Datum::Int8(value) => value,
        other => panic!("{other:?}"),
    }
}

/// Locks an account's newest version and writes what `change` makes of its balance. A wait is answered.
pub fn update(txn: &mut dyn Txn, id: i32, change: impl Fn(i64) -> i64) -> base::Result<Step<()>> {
    txn.begin_command();
    let (row, seen) = find(txn, id).expect("the account is there");
    let table = txn.open_table(ACCOUNTS)?;
    let mut moved = RowBatch::new();
    let newest = match txn.lock_row(&table, row, RowLockMode::NoKeyUpdate, WaitPolicy::Block, &mut moved)? {
        Step::Wait(wait) => return Ok(Step::Wait(wait)),
        Step::Ready(RowLockOutcome::Locked) => seen,
        Step::Ready(RowLockOutcome::Moved) => balance(moved.row(0).tuple),
        Step::Ready(other) => panic!("{other:?}"),
    };
    txn.update(&table, row, &tuple(id, change(newest)))
}

/// All (id, balance), in order of insertion.
pub fn all(shard: &Shard) -> Vec<(i32, i64)> {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    scan(&mut *txn, None)
}

pub fn scan(txn: &mut dyn Txn, index: Option<Oid>) -> Vec<(i32, i64)> {
    let table = txn.open_table(ACCOUNTS).unwrap();
    let mut scan = txn
        .open_scan(ScanSpec {
            table,
            index,
            range: KeyRange::all(),
            reverse: false,
            content: engine_api::RowContent::Tuple,
        })
        .unwrap();
    let mut batch = RowBatch::new();
    while scan.next(txn, 3, &mut batch).unwrap() {}
    let layout = layout();
    let read = |row: BatchRow<'_>| match RowRef::new(&layout, row.tuple).get_owned(0) {
        Datum::Int4(id) => (id, balance(row.tuple)),
        other => panic!("{other:?}"),
    };
    batch.iter().map(read).collect()
}

pub fn bank(disk: &SimDisk, accounts: i32) -> Shard {
    let shard = open(disk);
    define(&shard);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    for id in 0..accounts {
        assert!(matches!(ready(insert(&mut *txn, id, 100)), InsertOutcome::Inserted(_)));
    }
    commit(&shard, txn);
    shard
}

/// What the engine answers once there is space in the log.
pub fn with_space<T>(mut ask: impl FnMut() -> base::Result<Step<T>>) -> base::Result<T> {
    loop {
        match ask()? {
            Step::Ready(answer) => return Ok(answer),
            Step::Wait(wait) => {
                while !wait.is_over() {
                    std::thread::yield_now();
                }
            }
        }
    }
}

/// The next value of a sequence.
pub fn next_value(shard: &Shard, sequence: &SequenceDesc) -> base::Result<i64> {
    with_space(|| shard.sequence_draw(sequence)).map(|(value, _)| value)
}
