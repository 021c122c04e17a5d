//! Indexes that a start fills, sorted or in the order of rows, by one thread or several, against those that inserts have filled.

use std::sync::Arc;

use base::Oid;
use engine::{Shard, ShardOptions};
use engine_api::*;
use env::sim::{Crash, SimDisk, SimRandom};
use types::Datum;

use crate::support::*;

const SOME: Oid = Oid(20003);

/// Every third balance, and those that are NULL.
#[derive(Debug)]
struct Thirds;

impl IndexCode for Thirds {
    fn columns(&self) -> &[i16] {
        &[2]
    }

    fn compute(&self, row: &[Datum], _: &mut Vec<Datum>) -> base::Result<bool> {
        Ok(match row[1] {
            Datum::Int8(balance) => balance % 3 == 0,
            _ => true,
        })
    }

    fn shown(&self, _: &TableDesc) -> Vec<String> {
        Vec::new()
    }
}

struct Compiler;

impl IndexCompiler for Compiler {
    fn compile(&self, _: &Catalog, _: &TableDesc, _: &IndexDesc) -> base::Result<Arc<dyn IndexCode>> {
        Ok(Arc::new(Thirds))
    }
}

fn open_by(disk: &SimDisk, threads: usize) -> Shard {
    let options = ShardOptions {
        memory_limit: 1 << 30,
        log: redo::FileOptions { segment_bytes: 4 << 20, batch_bytes_max: 1 << 20 },
        threads,
        compiler: Some(Arc::new(Compiler)),
        ..ShardOptions::default()
    };
    Shard::open(&world(disk), options, Box::new(|_| {})).expect("it opens").0
}

fn index(oid: Oid, columns: &[(i16, bool)], predicate: Option<Expression>) -> CatalogObject {
    let key = |&(column, descending)| IndexKey { column, descending, nulls_first: descending };
    let keys = columns.iter().map(key).collect();
    let index = IndexDesc::new(oid, oids::SCHEMA_PUBLIC, format!("accounts_{oid}"), ACCOUNTS, keys);
    CatalogObject::Index(IndexDesc { predicate, ..index })
}

fn row(id: i32, balance: Option<i64>) -> Vec<u8> {
    let mut out = Vec::new();
    layout().encode(&[Datum::Int4(id), balance.map_or(Datum::Null, Datum::Int8)], &mut out).unwrap();
    out
}

/// Entries in the order of an index, as the rows they lead to.
fn through(shard: &Shard, index: Oid) -> Vec<(u64, Vec<u8>)> {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    let table = txn.open_table(ACCOUNTS).unwrap();
    let content = engine_api::RowContent::Tuple;
    let spec = ScanSpec { table, index: Some(index), range: KeyRange::all(), reverse: false, content };
    let mut scan = txn.open_scan(spec).unwrap();
    let mut batch = RowBatch::new();
    while scan.next(&mut *txn, 1000, &mut batch).unwrap() {}
    batch.iter().map(|row| (row.row.0, row.tuple.to_vec())).collect()
}

/// Makes an index, in as many turns as it takes.
fn create(shard: &Shard, index: CatalogObject) -> base::Result<()> {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.lock_table(ACCOUNTS, TableLockMode::Share, WaitPolicy::Block));
    while let Step::Wait(_) = txn.put_object(index.clone())? {}
    commit(shard, txn);
    Ok(())
}

fn compare(shard: &Shard, expected: &[(Oid, Vec<(u64, Vec<u8>)>)], what: &str) {
    for (index, expected) in expected {
        let found = through(shard, *index);
        assert_eq!(found.len(), expected.len(), "{what}: entries of {index}");
        assert!(found == *expected, "{what}: {index} has other rows or another order");
    }
}

/// The next of some numbers without order.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// `count` rows whose ids rise with rows or not.
fn check(count: u64, rises: bool) {
    println!("{count} rows, ids {}", if rises { "rise" } else { "do not rise" });
    let disk = SimDisk::new();
    let shard = open_by(&disk, 2);
    define(&shard);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(txn.put_object(index(BY_BALANCE, &[(2, true), (1, false)], None)));
    ready(txn.put_object(index(SOME, &[(2, false)], Some("thirds".into()))));
    commit(&shard, txn);
    let mut random = count;
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let table = txn.open_table(ACCOUNTS).unwrap();
    for n in 0..count {
        // An odd factor gives every id once.
        let id = if rises { n as i32 } else { (n as u32).wrapping_mul(0x9e37_79b1) as i32 };
        let balance = (!next(&mut random).is_multiple_of(10)).then(|| (next(&mut random) % 5000) as i64 - 2500);
        ready(txn.insert(&table, &row(id, balance), ConflictArbiter::None));
    }
    commit(&shard, txn);
    // Gaps among the rows, some of them whole chunks.
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    for at in (0..count).filter(|at| at % 17 == 3 || (at / 300) % 11 == 5) {
        ready(txn.lock_row(&table, base::RowId(at), RowLockMode::Update, WaitPolicy::Block, &mut RowBatch::new()));
        txn.delete(&table, base::RowId(at)).unwrap();
    }
    commit(&shard, txn);
    let expected: Vec<_> = [BY_ID, BY_BALANCE, SOME].map(|index| (index, through(&shard, index))).into();
    drop(shard);
    let ways = [(2, false), (3, true), (1, false), (1, true)];
    // A large one takes its time.
    for (threads, from_image) in ways.into_iter().take(if count > 10_000 { 2 } else { 4 }) {
        let what = format!("{threads} threads, from {}", if from_image { "an image" } else { "the log" });
        let copy = disk.after_crash(Crash::KeepAll, &mut SimRandom::new(1));
        let mut shard = open_by(&copy, threads);
        if from_image {
            let going = shard.begin_checkpoint().expect("no other is being made");
            let mut writer = going.writer(0).unwrap();
            while writer.step().unwrap() {}
            let files = vec![writer.finish().unwrap()];
            going.commit(files).unwrap();
            drop((going, shard));
            shard = open_by(&copy, threads);
        }
        compare(&shard, &expected, &what);
        // Those that are made of a table that is there have the same entries.
        for (like, made, columns, predicate) in [
            (BY_BALANCE, Oid(20010), &[(2, true), (1, false)][..], None),
            (SOME, Oid(20011), &[(2, false)][..], Some("thirds".into())),
            (BY_ID, Oid(20012), &[(1, false)][..], None),
        ] {
            create(&shard, index(made, columns, predicate)).unwrap();
            assert!(through(&shard, made) == through(&shard, like), "{what}: {made} made like {like}");
        }
        // What is written now is found too, and finds its place.
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        let table = txn.open_table(ACCOUNTS).unwrap();
        for n in 0..500 {
            ready(txn.insert(&table, &row(i32::MAX - n, Some(i64::from(n) * 3)), ConflictArbiter::None));
        }
        commit(&shard, txn);
        let more = expected.iter().map(|(_, rows)| rows.len() + 500).collect::<Vec<_>>();
        let found: Vec<_> = expected.iter().map(|(index, _)| through(&shard, *index).len()).collect();
        assert_eq!(found, more, "{what}, written to");
    }
}

#[test]
fn filled_indexes_are_those_that_inserts_make() {
    // None, one, a chunk and its neighbours, one thread's work, and more than one range of rows and of keys.
    for count in [0, 1, 255, 257, 3000] {
        check(count, true);
        check(count, false);
    }
    check(70_000, true);
    check(70_000, false);
}

#[test]
fn a_unique_index_refuses_duplicates_after_it_was_filled() {
    let disk = SimDisk::new();
    drop(bank(&disk, 1000));
    let shard = open(&disk);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    for id in [0, 1, 500, 999] {
        assert!(insert(&mut *txn, id, 1).is_err(), "account {id} is there");
    }
    assert!(matches!(ready(insert(&mut *txn, 1000, 1)), InsertOutcome::Inserted(_)));
}

#[test]
fn a_unique_index_of_many_rows_names_the_first_duplicate() {
    let disk = SimDisk::new();
    let shard = open_by(&disk, 1);
    define(&shard);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let table = txn.open_table(ACCOUNTS).unwrap();
    let count = 50_000i64;
    // Balances without order, each once but those of the rows 40,000, 30,000 (twice more) and 20,000, and many that are NULL.
    let balance = |n: i64| match n {
        40_000 => Some(700),
        30_000 | 45_000 => Some(999),
        20_000 => Some(3),
        _ if n % 10 == 5 => None,
        _ => Some((n * 7919) % 100_003),
    };
    let twice = [700i64, 999, 3];
    for n in 0..count {
        let value = balance(n).filter(|value| n >= 20_000 && n % 5000 == 0 || !twice.contains(value));
        ready(txn.insert(&table, &row(n as i32, value), ConflictArbiter::None));
    }
    for (at, value) in (count..).zip([700, 3, 999]) {
        ready(txn.insert(&table, &row(at as i32, Some(value)), ConflictArbiter::None));
    }
    commit(&shard, txn);
    let unique = |oid, nulls_not_distinct| match index(oid, &[(2, false)], None) {
        CatalogObject::Index(desc) => CatalogObject::Index(IndexDesc { unique: true, nulls_not_distinct, ..desc }),
        other => other,
    };
    let detail = |error: base::Error| error.fields().detail.clone().unwrap_or_default();
    let held = || shard.memory().others[MemoryKind::Statements as usize];
    let before = held();
    for (nulls_not_distinct, expected) in [(false, 999), (true, -1)] {
        let error = create(&shard, unique(Oid(20020), nulls_not_distinct)).unwrap_err();
        let expected = if expected < 0 { "null".to_string() } else { expected.to_string() };
        assert_eq!(detail(error), format!("Key (balance)=({expected}) is duplicated."));
    }
    assert_eq!(held(), before, "what a build that failed has held is given back");
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    for id in [30_000, 45_000, 40_000, 20_000] {
        txn.begin_command();
        let (row, _) = find(&mut *txn, id).unwrap();
        ready(txn.lock_row(&table, row, RowLockMode::Update, WaitPolicy::Block, &mut RowBatch::new()));
        txn.delete(&table, row).unwrap();
    }
    commit(&shard, txn);
    create(&shard, unique(Oid(20021), false)).unwrap();
    assert_eq!(through(&shard, Oid(20021)).len(), count as usize + 3 - 4);
}
