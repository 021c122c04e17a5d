//! kill -9 under load, again and again: what was acknowledged is there, nothing is there by half.
//!
//! Eight clients move money between accounts and write a journal row per transfer. The server dies at a random moment and
//! starts again on the same directory, in every other life beside checkpoints, twenty times over or as often as `NYALA_KILLS` says. After each start the journal must hold every acknowledged
//! transfer, only transfers that were tried, and explain every balance to the cent.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::{Connection, Nyala, Random, Reply, Target};

/// Without `NYALA_KILLS`.
const ROUNDS: u32 = 20;
const CLIENTS: u64 = 8;
const ACCOUNTS: u64 = 100;
const OPENING: u64 = 1000;

/// Transfers by number.
#[derive(Default)]
struct Transfers {
    tried: BTreeSet<u64>,
    acknowledged: BTreeSet<u64>,
    /// Prepared, and not ended.
    prepared: BTreeSet<u64>,
}

#[test]
fn acknowledged_transfers_survive() {
    if Target::is_postgres() {
        println!("not run: there is no server to kill");
        return;
    }
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let mut random = Random::new(seed);
    let directory = tempfile::tempdir().expect("a directory for the server");
    let (data, port) = (directory.path().join("data"), Nyala::free_port());
    let mut server = Nyala::start(&data, port);
    create(&mut server.connect());
    let numbers = AtomicU64::new(1);
    let mut all = Transfers::default();
    let rounds = std::env::var("NYALA_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    for round in 1..=rounds {
        let lifetime = Duration::from_millis(300 + random.below(500));
        let before = all.acknowledged.len();
        let checkpoints = round % 2 == 0;
        load_and_kill(server, lifetime, checkpoints, &mut random, &numbers, &mut all);
        let start = Instant::now();
        server = Nyala::start(&data, port);
        let (count, up_ms) = (all.acknowledged.len(), start.elapsed().as_millis());
        println!("round {round}: {} transfers acknowledged, up again in {up_ms} ms", count - before);
        finish_prepared(&mut server.connect(), &mut all);
        verify(&mut server.connect(), &all, round);
    }
    assert!(all.acknowledged.len() > rounds as usize * CLIENTS as usize, "hardly any transfers");
    assert_eq!(server.terminate(), 0, "SIGTERM is an orderly end");
    let server = Nyala::start(&data, port);
    verify(&mut server.connect(), &all, rounds + 1);
}

fn create(connection: &mut Connection) {
    for sql in [
        "CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))".to_owned(),
        "CREATE TABLE journal (id bigint PRIMARY KEY, source int NOT NULL, target int NOT NULL, amount int NOT NULL)"
            .to_owned(),
        format!("INSERT INTO accounts SELECT i, {OPENING} FROM generate_series(1, {ACCOUNTS}) AS g (i)"),
    ] {
        assert_eq!(connection.query(&sql).error(), None, "{sql}");
    }
}

fn load_and_kill(
    server: Nyala,
    lifetime: Duration,
    checkpoints: bool,
    random: &mut Random,
    numbers: &AtomicU64,
    all: &mut Transfers,
) {
    std::thread::scope(|scope| {
        if checkpoints {
            // One image after the other, so that the end comes at any place in the making of one.
            let mut connection = server.connect();
            scope.spawn(move || while connection.query("CHECKPOINT").status.is_some() {});
        }
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (connection, random) = (server.connect(), Random::new(random.number()));
                scope.spawn(move || client(connection, random, numbers))
            })
            .collect();
        std::thread::sleep(lifetime);
        server.kill();
        for client in clients {
            let transfers = client.join().expect("a client ends when its connection does");
            all.tried.extend(transfers.tried);
            all.acknowledged.extend(transfers.acknowledged);
            all.prepared.extend(transfers.prepared);
        }
    });
}

/// Transfers until the connection is lost.
fn client(mut connection: Connection, mut random: Random, numbers: &AtomicU64) -> Transfers {
    let mut done = Transfers::default();
    loop {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        done.tried.insert(number);
        let prepares = random.below(4) == 0;
        let reply = transfer(&mut connection, &mut random, number, prepares);
        if reply.status.is_none() {
            // An error before the end of the connection does not acknowledge anything; neither does COMMIT's tag without
            // ReadyForQuery, though it would be right to demand that the transfer is there.
            return done;
        }
        match reply.code() {
            "00000" if prepares => {
                // Some are left as they are, for the next start to find.
                if random.below(20) == 0 && done.prepared.len() < 2 {
                    done.prepared.insert(number);
                    continue;
                }
                let commits = random.below(4) > 0;
                let verb = if commits { "COMMIT" } else { "ROLLBACK" };
                let reply = connection.query(&format!("{verb} PREPARED '{number}'"));
                if reply.status.is_none() {
                    return done;
                }
                assert_eq!(reply.code(), "00000", "transfer {number}: {reply}");
                if commits {
                    done.acknowledged.insert(number);
                } else {
                    done.tried.remove(&number);
                }
            }
            "00000" => {
                done.acknowledged.insert(number);
            }
            // A deadlock, a serialization failure, an empty account.
            "40P01" | "40001" | "23514" | "55P03" => {
                connection.query("ROLLBACK");
            }
            _ => panic!("transfer {number}: {reply}"),
        }
    }
}

/// Ends what is prepared: those with an even number are committed, the others rolled back. What was acknowledged as prepared
/// is prepared still.
fn finish_prepared(connection: &mut Connection, all: &mut Transfers) {
    let prepared = connection.query("SELECT gid FROM pg_prepared_xacts ORDER BY gid");
    assert_eq!(prepared.error(), None);
    let names: BTreeSet<u64> = prepared.rows().map(|row| number(&row[0])).collect();
    let lost: Vec<_> = all.prepared.difference(&names).collect();
    assert!(lost.is_empty(), "prepared transfers are lost: {lost:?}");
    for name in names {
        assert!(all.tried.contains(&name), "transfer {name} is prepared and was never tried");
        let commits = name % 2 == 0;
        let verb = if commits { "COMMIT" } else { "ROLLBACK" };
        assert_eq!(connection.query(&format!("{verb} PREPARED '{name}'")).error(), None);
        if commits {
            all.acknowledged.insert(name);
        } else {
            all.tried.remove(&name);
        }
    }
    all.prepared.clear();
}

/// One transfer, as five messages or as one. The last answer, or the first that is an error.
fn transfer(connection: &mut Connection, random: &mut Random, number: u64, prepares: bool) -> Reply {
    let source = 1 + random.below(ACCOUNTS);
    let target = 1 + (source + random.below(ACCOUNTS - 1)) % ACCOUNTS;
    let amount = 1 + random.below(20);
    let statements = [
        // Rows of a transaction that stays prepared are locked until the next start.
        "BEGIN; SET LOCAL lock_timeout = 40".to_owned(),
        format!("UPDATE accounts SET balance = balance - {amount} WHERE id = {source}"),
        format!("UPDATE accounts SET balance = balance + {amount} WHERE id = {target}"),
        format!("INSERT INTO journal VALUES ({number}, {source}, {target}, {amount})"),
        if prepares { format!("PREPARE TRANSACTION '{number}'") } else { "COMMIT".to_owned() },
    ];
    if !prepares && random.below(3) == 0 {
        return connection.query(&statements[1..4].join("; "));
    }
    let mut last = Reply::default();
    for sql in &statements {
        last = connection.query(sql);
        if last.status.is_none() || last.error().is_some() {
            break;
        }
    }
    last
}

fn verify(connection: &mut Connection, all: &Transfers, round: u32) {
    let journal = connection.query("SELECT id FROM journal");
    assert_eq!(journal.error(), None);
    let present: BTreeSet<u64> = journal.rows().map(|row| number(&row[0])).collect();
    let lost: Vec<_> = all.acknowledged.difference(&present).collect();
    assert!(lost.is_empty(), "round {round}: {} acknowledged transfers are lost: {lost:?}", lost.len());
    let invented: Vec<_> = present.difference(&all.tried).collect();
    assert!(invented.is_empty(), "round {round}: transfers that nobody asked for: {invented:?}");
    let sum = connection.query("SELECT sum(balance), count(*) FROM accounts");
    let row: Vec<u64> = sum.rows().flatten().map(number).collect();
    assert_eq!(row, [ACCOUNTS * OPENING, ACCOUNTS], "round {round}: money or accounts came or went");
    let unexplained = connection.query(&format!(
        "SELECT a.id, a.balance, {OPENING} + coalesce(i.amount, 0) - coalesce(o.amount, 0)
         FROM accounts a
         LEFT JOIN (SELECT target, sum(amount) AS amount FROM journal GROUP BY target) AS i ON i.target = a.id
         LEFT JOIN (SELECT source, sum(amount) AS amount FROM journal GROUP BY source) AS o ON o.source = a.id
         WHERE a.balance <> {OPENING} + coalesce(i.amount, 0) - coalesce(o.amount, 0)"
    ));
    assert_eq!(unexplained.code(), "00000");
    assert_eq!(
        unexplained.rows().count(),
        0,
        "round {round}: balances that the journal does not explain\n{unexplained}"
    );
}

fn number(value: &Option<String>) -> u64 {
    value.as_deref().and_then(|text| text.parse().ok()).expect("a number")
}
