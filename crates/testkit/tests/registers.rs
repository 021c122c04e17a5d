//! Random transactions of several clients on rows that come, change, move between groups and go, with reads by key and by
//! predicate, recorded and judged.
//!
//! The seed fixes what each client does (not how the server interleaves it) and is printed: `NYALA_SEED=n` repeats it.
//! `NYALA_TRANSACTIONS` says how many each client runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use testkit::history::Fate;
use testkit::history::registers::{Anomaly, Op, Row, Transaction, Version, check};
use testkit::{Connection, Random, Reply, Target};

/// Keys of a bucket; the last one is a neighbour of the next bucket's first.
const BUCKET: u64 = 100;
const BUCKETS: u64 = 5;
const GROUPS: u64 = 6;
/// Bucket 0 has no more rows than this: who inserts there counts first.
const FULL: usize = 4;
/// Among so many of the newest rows a client chooses what to touch.
const RECENT: usize = 16;

struct Workload<'a> {
    target: &'a Target,
    level: &'a str,
    transactions: u64,
    clock: AtomicU64,
    next_version: AtomicU64,
    /// Keys ever inserted, and in the order of their insertion.
    rows: Mutex<(BTreeSet<Row>, Vec<Row>)>,
}

#[test]
fn serializable() {
    for clients in [2, 4, 8, 16] {
        let (history, anomalies) = run("SERIALIZABLE", clients);
        let text: Vec<String> = anomalies.iter().map(ToString::to_string).collect();
        for anomaly in &anomalies {
            if let Anomaly::Cycle(cycle) = anomaly {
                cycle.iter().for_each(|id| println!("T{id}: {:?}", history[*id]));
            }
        }
        assert!(anomalies.is_empty(), "{clients} clients:\n{}", text.join("\n"));
        for (id, transaction) in history.iter().enumerate().filter(|(_, t)| t.fate == Fate::Committed) {
            for op in &transaction.ops {
                if let Op::Range { first: 0, last, seen } = op {
                    let too_many = *last == BUCKET - 1 && seen.len() > FULL;
                    assert!(!too_many, "T{id} found {} rows where {FULL} fit: two counted the same", seen.len());
                }
            }
        }
    }
}

/// The same without SERIALIZABLE must be judged too: lost updates and invented versions are forbidden there as well.
#[test]
fn repeatable_read() {
    let (_, anomalies) = run("REPEATABLE READ", 8);
    let (allowed, broken): (Vec<_>, Vec<_>) =
        anomalies.iter().partition(|anomaly| matches!(anomaly, Anomaly::Cycle(_)));
    allowed.iter().for_each(|anomaly| println!("allowed at REPEATABLE READ: {anomaly}"));
    assert!(broken.is_empty(), "{broken:?}");
}

fn run(level: &str, clients: u64) -> (Vec<Transaction>, Vec<Anomaly>) {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let transactions = std::env::var("NYALA_TRANSACTIONS").map_or(60, |text| text.parse().expect("a number"));
    let target = Target::start();
    let mut connection = target.connect();
    ok(&connection.query("DROP TABLE IF EXISTS registers"));
    ok(&connection.query("CREATE TABLE registers (k int PRIMARY KEY, v int NOT NULL, old int, g int NOT NULL)"));
    ok(&connection.query("CREATE INDEX ON registers (g)"));
    let workload = Workload {
        target: &target,
        level,
        transactions,
        clock: AtomicU64::new(2),
        next_version: AtomicU64::new(1),
        rows: Mutex::new((BTreeSet::new(), Vec::new())),
    };
    let mut history = vec![workload.first(&mut connection)];
    history.extend(std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients)
            .map(|client| {
                let workload = &workload;
                scope.spawn(move || workload.client(Random::new(seed ^ (client << 56))))
            })
            .collect();
        let histories = clients.into_iter().map(|client| client.join().expect("a client runs to its end"));
        histories.flatten().collect::<Vec<_>>()
    }));
    // What is there in the end is a read like others.
    let all = read_rows(&mut connection, "SELECT k, v FROM registers").expect("idle");
    let (started, ended) = (workload.tick(), workload.tick());
    let ops = vec![Op::Range { first: 0, last: Row::MAX, seen: all }];
    history.push(Transaction { ops, fate: Fate::Committed, started, ended });
    let committed = history.iter().filter(|transaction| transaction.fate == Fate::Committed).count();
    println!("{level}, {clients} clients: {committed} of {} committed", history.len());
    assert!(committed * 10 > history.len(), "hardly anything commits");
    let anomalies = check(&history);
    (history, anomalies)
}

impl Workload<'_> {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn version(&self) -> Version {
        self.next_version.fetch_add(1, Ordering::SeqCst)
    }

    fn first(&self, connection: &mut Connection) -> Transaction {
        let rows = (1..BUCKETS).flat_map(|bucket| [bucket * BUCKET, bucket * BUCKET + 50, (bucket + 1) * BUCKET - 1]);
        let mut ops = Vec::new();
        for row in rows {
            let (version, group) = (self.version(), row % GROUPS);
            ok(&connection.query(&format!("INSERT INTO registers VALUES ({row}, {version}, NULL, {group})")));
            ops.push(Op::Insert { row, version, group });
            let mut known = self.rows.lock().expect("no client panicked");
            known.0.insert(row);
            known.1.push(row);
        }
        Transaction { ops, fate: Fate::Committed, started: 0, ended: 1 }
    }

    fn client(&self, mut random: Random) -> Vec<Transaction> {
        let mut connection = self.target.connect();
        (0..self.transactions).map(|_| self.transaction(&mut connection, &mut random)).collect()
    }

    fn transaction(&self, connection: &mut Connection, random: &mut Random) -> Transaction {
        let started = self.tick();
        let reads_only = random.below(6) == 0;
        let mode = if reads_only { ", READ ONLY" } else { "" };
        ok(&connection.query(&format!("BEGIN ISOLATION LEVEL {}{mode}", self.level)));
        let mut ops = Vec::new();
        let mut failed = false;
        for _ in 0..1 + random.below(4) {
            match self.operation(connection, random, reads_only) {
                Some(op) => ops.extend(op),
                None => {
                    failed = true;
                    break;
                }
            }
        }
        let give_up = failed || random.below(20) == 0;
        let reply = connection.query(if give_up { "ROLLBACK" } else { "COMMIT" });
        let fate = match (give_up, reply.code()) {
            (true, _) => Fate::Aborted,
            (false, "00000") => Fate::Committed,
            (false, "40001") => Fate::Aborted,
            (false, code) => panic!("COMMIT: {code}"),
        };
        Transaction { ops, fate, started, ended: self.tick() }
    }

    /// One operation, or nothing if the transaction failed.
    fn operation(&self, connection: &mut Connection, random: &mut Random, reads_only: bool) -> Option<Vec<Op>> {
        let row = self.recent(random);
        match random.below(if reads_only { 5 } else { 12 }) {
            0 => self.read(connection, row, ""),
            1 | 2 => {
                let bucket = random.below(BUCKETS);
                let length = 1 + random.below(2);
                let (first, last) = (bucket * BUCKET, (bucket + length) * BUCKET - 1);
                let order = ["", " ORDER BY k DESC", " ORDER BY v"][random.below(3) as usize];
                let sql = format!("SELECT k, v FROM registers WHERE k BETWEEN {first} AND {last}{order}");
                Some(vec![Op::Range { first, last, seen: read_rows(connection, &sql)? }])
            }
            3 | 4 => {
                let group = random.below(GROUPS);
                // By the index, and by all rows.
                let column = ["g", "g + 0"][random.below(2) as usize];
                let sql = format!("SELECT k, v FROM registers WHERE {column} = {group}");
                Some(vec![Op::Members { group, seen: read_rows(connection, &sql)? }])
            }
            5 => self.read(connection, row, " FOR UPDATE"),
            6 => {
                let reply = connection.query(&format!("DELETE FROM registers WHERE k = {row} RETURNING v"));
                passed(&reply)?;
                let over = reply.value().map(|text| text.parse().expect("a version"));
                Some(vec![over.map_or(Op::Read { row, seen: None }, |over| Op::Delete { row, over })])
            }
            7 | 8 => self.insert(connection, random),
            _ => {
                let (version, group) = (self.version(), random.below(GROUPS));
                let sql =
                    format!("UPDATE registers SET old = v, v = {version}, g = {group} WHERE k = {row} RETURNING old");
                let reply = connection.query(&sql);
                passed(&reply)?;
                let over = reply.value().map(|text| text.parse().expect("a version"));
                Some(vec![over.map_or(Op::Read { row, seen: None }, |over| Op::Update { row, over, version, group })])
            }
        }
    }

    fn read(&self, connection: &mut Connection, row: Row, lock: &str) -> Option<Vec<Op>> {
        let reply = connection.query(&format!("SELECT v FROM registers WHERE k = {row}{lock}"));
        passed(&reply)?;
        Some(vec![Op::Read { row, seen: reply.value().map(|text| text.parse().expect("a version")) }])
    }

    /// Inserts a row that never was; into bucket 0 only if it is not full.
    fn insert(&self, connection: &mut Connection, random: &mut Random) -> Option<Vec<Op>> {
        let bucket = random.below(BUCKETS);
        let mut ops = Vec::new();
        if bucket == 0 {
            let sql = format!("SELECT count(*) FROM registers WHERE k < {BUCKET}");
            let reply = connection.query(&sql);
            passed(&reply)?;
            if reply.value() >= Some(&FULL.to_string()) {
                return Some(ops);
            }
        }
        let row = {
            let mut known = self.rows.lock().expect("no client panicked");
            let row = bucket * BUCKET + random.below(BUCKET);
            if !known.0.insert(row) {
                return Some(ops);
            }
            known.1.push(row);
            row
        };
        let (version, group) = (self.version(), random.below(GROUPS));
        passed(&connection.query(&format!("INSERT INTO registers VALUES ({row}, {version}, NULL, {group})")))?;
        ops.push(Op::Insert { row, version, group });
        Some(ops)
    }

    fn recent(&self, random: &mut Random) -> Row {
        let known = self.rows.lock().expect("no client panicked");
        let from = known.1.len().saturating_sub(RECENT);
        known.1[from + random.below((known.1.len() - from) as u64) as usize]
    }
}

/// Whether a statement succeeded; a transaction that the server wants to be tried again did not.
fn passed(reply: &Reply) -> Option<()> {
    match reply.code() {
        "00000" => Some(()),
        "40001" | "40P01" => None,
        _ => panic!("{reply}"),
    }
}

/// Keys and versions.
fn read_rows(connection: &mut Connection, sql: &str) -> Option<BTreeMap<Row, Version>> {
    let reply = connection.query(sql);
    passed(&reply)?;
    let number = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok()).expect("a number");
    Some(reply.rows().map(|row| (number(&row[0]), number(&row[1]))).collect())
}

fn ok(reply: &Reply) {
    assert_eq!(reply.error(), None);
}
