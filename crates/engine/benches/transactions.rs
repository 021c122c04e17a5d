//! What one small transaction costs the thread that runs it, without SQL: locks, point reads, updates, inserts.
//!
//! `cargo bench -p engine --bench transactions [case] [transactions]` prints nanoseconds of processor time per transaction,
//! the least of five rounds, for one thread and for two. Each thread works on rows of its own; commits are asynchronous,
//! so that the log's disk is not measured, and the log's threads are not counted. `points` (ten point reads and an update) and
//! `ranges` (with four scans of twenty keys besides) run at REPEATABLE READ and, as `points:s`, at SERIALIZABLE.
//! With a third argument the transactions run once, in one thread, without a clock: the difference of two such runs under
//! `valgrind --tool=callgrind` by the difference of their transactions is the number of instructions of one.

use std::path::Path;

use base::{LayoutId, Oid, RowId};
use engine::{Shard, ShardOptions};
use engine_api::*;
use env::real;
use types::{ColumnType, Datum, RowLayout, oid};

#[global_allocator]
static ALLOCATOR: env::Allocator = env::Allocator;

const TABLE: Oid = Oid(20000);
const BY_ID: Oid = Oid(20001);
const ROWS: u64 = 100_000;

fn column(number: i16, name: &str, type_oid: Oid) -> ColumnDesc {
    ColumnDesc { not_null: true, ..ColumnDesc::new(number, name, type_oid, -1) }
}

fn table() -> TableDesc {
    let types = [oid::INT4, oid::INT8, oid::TEXT];
    let fields = (1..).zip(types).map(|(column, type_oid)| LayoutField { column, type_oid, typmod: -1 }).collect();
    let columns = (1..).zip(["id", "k", "c"]).zip(types);
    let columns = columns.map(|((number, name), ty)| column(number, name, ty)).collect();
    let table = TableDesc::new(TABLE, oids::SCHEMA_PUBLIC, "t", oids::ROLE_POSTGRES, columns);
    TableDesc { layouts: vec![LayoutDesc { id: LayoutId(1), fields }].into(), ..table }
}

fn index() -> IndexDesc {
    let index = IndexDesc::new(BY_ID, oids::SCHEMA_PUBLIC, "t_pkey", TABLE, vec![IndexKey::ascending(1)]);
    IndexDesc { unique: true, primary: true, ..index }
}

fn tuple(id: u64, k: u64) -> Vec<u8> {
    let layout = RowLayout::new(&[oid::INT4, oid::INT8, oid::TEXT].map(|oid| ColumnType { oid, typmod: -1 }));
    let mut out = Vec::new();
    let values = [Datum::Int4(id as i32), Datum::Int8(k as i64), Datum::Text("x".repeat(120).into())];
    layout.encode(&values, &mut out).expect("the values fit the layout");
    out
}

fn key(id: u64, out: &mut Vec<u8>) {
    out.clear();
    types::encode_key(types::DatumRef::Int4(id as i32), oid::INT4, false, false, out);
}

fn ready<T>(mut call: impl FnMut() -> base::Result<Step<T>>) -> T {
    loop {
        match call().expect("nothing here fails") {
            Step::Ready(value) => return value,
            Step::Wait(_) => std::thread::yield_now(),
        }
    }
}

fn open(directory: &Path) -> Shard {
    let world = real::world(directory).expect("the directory can be made");
    let shard = Shard::open(&world, ShardOptions::default(), Box::new(|_| {})).expect("an empty log opens").0;
    let mut txn = begin(&shard);
    ready(|| txn.put_object(CatalogObject::Table(table())));
    ready(|| txn.put_object(CatalogObject::Index(index())));
    let open = txn.open_table(TABLE).expect("just made");
    for id in 0..ROWS {
        ready(|| txn.insert(&open, &tuple(id, id), ConflictArbiter::None));
    }
    ready(|| txn.commit(Durability::Off));
    shard
}

fn begin(shard: &Shard) -> Box<dyn Txn> {
    begin_at(shard, Isolation::ReadCommitted)
}

fn begin_at(shard: &Shard, isolation: Isolation) -> Box<dyn Txn> {
    let mut txn = shard.begin(TxnOptions { isolation, ..TxnOptions::default() });
    txn.begin_command();
    txn
}

/// What a thread keeps between transactions, as a session does.
struct Session<'a> {
    shard: &'a Shard,
    table: TableRef,
    key: Vec<u8>,
    batch: RowBatch,
    tuple: Vec<u8>,
    thread: u64,
}

impl Session<'_> {
    fn lock(&mut self, txn: &mut dyn Txn, mode: TableLockMode) {
        ready(|| txn.lock_table(TABLE, mode, WaitPolicy::Block));
    }

    fn find(&mut self, txn: &mut dyn Txn, n: u64) -> RowId {
        key(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (ROWS / 2) * 2 + self.thread, &mut self.key);
        self.batch.clear();
        txn.get(&self.table, BY_ID, &self.key, &mut self.batch).expect("the table is open");
        self.batch.row(0).row
    }

    /// Reads twenty keys of a range.
    fn scan(&mut self, txn: &mut dyn Txn, n: u64) {
        let first = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (ROWS - 20);
        let bound = |id| {
            let mut bytes = Vec::new();
            key(id, &mut bytes);
            std::ops::Bound::Included(bytes)
        };
        let range = KeyRange { lower: bound(first), upper: bound(first + 19) };
        let spec = ScanSpec {
            table: self.table.clone(),
            index: Some(BY_ID),
            range,
            reverse: false,
            content: engine_api::RowContent::Tuple,
        };
        let mut scan = txn.open_scan(spec).expect("the table is open");
        self.batch.clear();
        while scan.next(txn, 128, &mut self.batch).expect("the table is open") {}
    }

    fn update(&mut self, txn: &mut dyn Txn, n: u64) {
        let row = self.find(txn, n);
        let mode = RowLockMode::NoKeyUpdate;
        ready(|| txn.lock_row(&self.table, row, mode, WaitPolicy::Block, &mut self.batch));
        self.tuple.clear();
        self.tuple.extend_from_slice(self.batch.row(0).tuple);
        // The last byte of the text: the key stays.
        *self.tuple.last_mut().expect("a tuple has bytes") = b'a' + (n % 26) as u8;
        ready(|| txn.update(&self.table, row, &self.tuple));
    }

    /// One transaction; at SERIALIZABLE it may be refused.
    fn run(&mut self, case: &str, n: u64) {
        let (case, isolation) = match (case, case.strip_suffix(":s")) {
            (_, Some(case)) => (case, Isolation::Serializable),
            ("points" | "ranges", None) => (case, Isolation::RepeatableRead),
            _ => (case, Isolation::ReadCommitted),
        };
        let mut txn = begin_at(self.shard, isolation);
        match case {
            "points" | "ranges" => {
                self.lock(&mut *txn, TableLockMode::RowExclusive);
                (1..=10).for_each(|other| _ = self.find(&mut *txn, n + other * 7919));
                if case == "ranges" {
                    (1..=4).for_each(|other| self.scan(&mut *txn, n + other * 104_729));
                }
                self.update(&mut *txn, n);
            }
            "empty" => {}
            "lock" => self.lock(&mut *txn, TableLockMode::AccessShare),
            "read" => _ = self.find(&mut *txn, n),
            "lock+read" => {
                self.lock(&mut *txn, TableLockMode::AccessShare);
                self.find(&mut *txn, n);
            }
            "update" => {
                self.lock(&mut *txn, TableLockMode::RowExclusive);
                self.update(&mut *txn, n);
            }
            "insert" => {
                self.lock(&mut *txn, TableLockMode::RowExclusive);
                self.tuple = tuple(ROWS + n * 2 + self.thread, n);
                ready(|| txn.insert(&self.table, &self.tuple, ConflictArbiter::None));
            }
            other => panic!("no case {other}"),
        }
        loop {
            match txn.commit(Durability::Off) {
                Ok(Step::Wait(_)) => std::thread::yield_now(),
                Ok(Step::Ready(_)) => return,
                Err(error) => {
                    assert_eq!(error.code(), base::SqlState::SERIALIZATION_FAILURE);
                    return;
                }
            }
        }
    }
}

/// Nanoseconds that the calling thread has run.
fn processor_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn session(shard: &Shard, thread: u64) -> Session<'_> {
    let table = begin(shard).open_table(TABLE).expect("it was made");
    Session { shard, table, key: Vec::new(), batch: RowBatch::new(), tuple: Vec::new(), thread }
}

/// Nanoseconds of processor time per transaction.
fn round(shard: &Shard, case: &str, threads: u64, first: u64, transactions: u64) -> f64 {
    let work = |thread| {
        let mut session = session(shard, thread);
        let start = processor_nanos();
        (first..first + transactions).for_each(|n| session.run(case, n));
        processor_nanos() - start
    };
    let work = &work;
    let nanos: u64 = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        running.into_iter().map(|thread| thread.join().expect("a round ends")).sum()
    });
    nanos as f64 / (transactions * threads) as f64
}

fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let all = ["empty", "lock", "read", "lock+read", "update", "insert", "points", "points:s", "ranges", "ranges:s"];
    let cases: Vec<&str> = match arguments.first() {
        Some(case) => vec![case],
        None => all.to_vec(),
    };
    let transactions: u64 = arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("transactions-{}", std::process::id()));
    if arguments.len() > 2 {
        let shard = open(&directory);
        let mut session = session(&shard, 0);
        cases.iter().for_each(|case| (0..transactions).for_each(|n| session.run(case, n)));
    } else {
        let shard = open(&directory);
        println!("{:12}{:>12}{:>12}  ns per transaction", "", "1 thread", "2 threads");
        for case in cases {
            print!("{case:12}");
            for threads in [1, 2] {
                let mut rounds: Vec<f64> = (0..5)
                    .map(|r| round(&shard, case, threads, (threads * 5 + r) * transactions, transactions))
                    .collect();
                rounds.sort_by(f64::total_cmp);
                print!("{:>12.0}", rounds[0]);
            }
            println!();
        }
    }
    std::fs::remove_dir_all(&directory).expect("the bench made it");
}
