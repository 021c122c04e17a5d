//! Random transactions of several clients on a few lists, recorded and judged, at all levels.
//!
//! The seed fixes what each client does (not how the server interleaves it) and is printed: `NYALA_SEED=n` repeats it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use testkit::history::{Fate, Key, Level, Op, Transaction, Value, check};
use testkit::{Connection, Random, Reply, Target};

const CLIENTS: u64 = 8;
const TRANSACTIONS: u64 = 150;
const LISTS: u64 = 6;

/// What all clients share.
struct Workload<'a> {
    target: &'a Target,
    level: &'a str,
    clock: AtomicU64,
    next_value: AtomicU64,
}

#[test]
fn read_committed() {
    run("READ COMMITTED", Level::ReadCommitted);
}

#[test]
fn repeatable_read() {
    run("REPEATABLE READ", Level::Snapshot);
}

#[test]
fn serializable() {
    for clients in [2, 3, 8, 16] {
        run_with("SERIALIZABLE", Level::Serializable, clients);
    }
}

fn run(level: &str, promised: Level) {
    run_with(level, promised, CLIENTS);
}

fn run_with(level: &str, promised: Level, clients: u64) {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let target = Target::start();
    let mut connection = target.connect();
    expect_ok(&connection.query("CREATE TABLE lists (k int PRIMARY KEY, v text NOT NULL)"));
    // Half of the lists are there, the others come with their first append.
    expect_ok(
        &connection.query(&format!("INSERT INTO lists SELECT k, '' FROM generate_series(1, {}) AS k", LISTS / 2)),
    );
    let workload = Workload { target: &target, level, clock: AtomicU64::new(1), next_value: AtomicU64::new(1) };
    let history: Vec<Transaction> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients)
            .map(|client| {
                let workload = &workload;
                scope.spawn(move || workload.client(Random::new(seed ^ (client << 56))))
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client runs to its end")).collect()
    });
    let last: BTreeMap<Key, Vec<Value>> =
        (1..=LISTS).map(|key| (key, read(&mut connection, key).expect("idle"))).collect();
    let committed = history.iter().filter(|transaction| transaction.fate == Fate::Committed).count();
    println!("{level}, {clients} clients: {committed} of {} committed", history.len());
    assert!(committed * 4 > history.len(), "hardly anything commits");
    let anomalies = check(&history, &last);
    let (broken, allowed): (Vec<_>, Vec<_>) = anomalies.iter().partition(|anomaly| promised.forbids(anomaly));
    allowed.iter().for_each(|anomaly| println!("allowed at {level}: {anomaly}"));
    let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
    if !broken.is_empty() {
        history.iter().enumerate().for_each(|(id, transaction)| println!("T{id}: {transaction:?}"));
    }
    assert!(broken.is_empty(), "NYALA_SEED={seed} {level}:\n{}", broken.join("\n"));
}

impl Workload<'_> {
    fn client(&self, mut random: Random) -> Vec<Transaction> {
        let mut connection = self.target.connect();
        (0..TRANSACTIONS).map(|_| self.transaction(&mut connection, &mut random)).collect()
    }

    fn transaction(&self, connection: &mut Connection, random: &mut Random) -> Transaction {
        let started = self.clock.fetch_add(1, Ordering::SeqCst);
        let mut ops = Vec::new();
        expect_ok(&connection.query(&format!("BEGIN ISOLATION LEVEL {}", self.level)));
        let mut fate = None;
        for _ in 0..1 + random.below(4) {
            match self.operation(connection, random) {
                Ok(op) => ops.push(op),
                Err(attempted) => {
                    ops.extend(attempted);
                    fate = Some(Fate::Aborted);
                    break;
                }
            }
        }
        let give_up = fate.is_some() || random.below(20) == 0;
        let reply = connection.query(if give_up { "ROLLBACK" } else { "COMMIT" });
        let fate = match (give_up, reply.error()) {
            (false, None) => Fate::Committed,
            (false, Some(fields)) if fields.code == "40001" => Fate::Aborted,
            (false, Some(fields)) => panic!("COMMIT: {fields}"),
            (true, _) => Fate::Aborted,
        };
        Transaction { ops, fate, started, ended: self.clock.fetch_add(1, Ordering::SeqCst) }
    }

    /// One statement. If the server refuses it with a code that asks for a retry, what was tried is still told, so that
    /// a value that shows up nevertheless has an owner.
    fn operation(&self, connection: &mut Connection, random: &mut Random) -> Result<Op, Option<Op>> {
        let key = 1 + random.below(LISTS);
        let kind = random.below(10);
        if kind < 5 {
            return read(connection, key).map(|list| Op::Read(key, list)).ok_or(None);
        }
        let value = self.next_value.fetch_add(1, Ordering::SeqCst);
        let append = Op::Append(key, value);
        let sql = if kind < 7 && key <= LISTS / 2 {
            format!("UPDATE lists SET v = v || ',{value}' WHERE k = {key}")
        } else {
            format!(
                "INSERT INTO lists VALUES ({key}, ',{value}') ON CONFLICT (k) DO UPDATE SET v = lists.v || excluded.v"
            )
        };
        let reply = connection.query(&sql);
        match reply.code() {
            "00000" => Ok(append),
            "40001" | "40P01" => Err(Some(append)),
            _ => panic!("{sql}\n{reply}"),
        }
    }
}

/// The list, or nothing if the server asks for a retry.
fn read(connection: &mut Connection, key: Key) -> Option<Vec<Value>> {
    let reply = connection.query(&format!("SELECT v FROM lists WHERE k = {key}"));
    match reply.code() {
        "00000" => {}
        "40001" | "40P01" => return None,
        _ => panic!("{reply}"),
    }
    let values = reply.value().unwrap_or_default().split(',').filter(|text| !text.is_empty());
    Some(values.map(|text| text.parse().expect("lists hold numbers")).collect())
}

fn expect_ok(reply: &Reply) {
    assert_eq!(reply.error(), None);
}
