//! CREATE INDEX CONCURRENTLY under writers: no transaction waits for the build, and the index agrees with the table.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::{Connection, Nyala, Random, Target};

const ROWS: u64 = 60_000;
const WRITERS: u64 = 3;

fn done(connection: &mut Connection, sql: &str) {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
}

fn number(connection: &mut Connection, sql: &str) -> u64 {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
    let value = reply.rows().next().and_then(|row| row[0].clone());
    value.and_then(|text| text.parse().ok()).expect("a number")
}

fn prepare(connection: &mut Connection, rows: u64) {
    done(connection, "CREATE TABLE big (id int PRIMARY KEY, a int, b text)");
    let insert = format!("INSERT INTO big SELECT i, i, 'row ' || i FROM generate_series(1, {rows}) i");
    done(connection, &insert);
}

/// Changes keys of rows, adds rows, deletes rows, and gives some of it up, until told to stop. Answers the longest wait.
fn write(mut connection: Connection, mut random: Random, fresh: &AtomicU64, stop: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let (id, key) = (1 + random.below(ROWS), fresh.fetch_add(1, Ordering::Relaxed));
        let sql = match random.below(5) {
            0 => format!("UPDATE big SET a = {key} WHERE id = {id}"),
            1 => format!("INSERT INTO big VALUES ({key}, {key}, 'new')"),
            2 => format!("DELETE FROM big WHERE id = {id}"),
            3 => format!("BEGIN; UPDATE big SET a = {key} WHERE id = {id}; ROLLBACK"),
            _ => format!("UPDATE big SET b = b || '.' WHERE id = {id}"),
        };
        let start = Instant::now();
        let reply = connection.query(&sql);
        longest = longest.max(start.elapsed());
        assert!(reply.error().is_none() || reply.code() == "40P01", "{sql}: {reply}");
    }
    longest
}

/// What the index finds and what the table has, key by key.
fn compare(connection: &mut Connection) {
    let rows = number(connection, "SELECT count(*) FROM big");
    let found = number(
        connection,
        "SELECT count(*) FROM big t WHERE EXISTS (SELECT 1 FROM big i WHERE i.a = t.a AND i.id = t.id)",
    );
    assert_eq!(found, rows, "rows that the index does not lead to");
    let ordered = number(connection, "SELECT count(*) FROM (SELECT a FROM big WHERE a >= 0 ORDER BY a) AS x");
    assert_eq!(ordered, rows, "rows more than once in the index, or not at all");
    let plan = connection.query("EXPLAIN SELECT * FROM big WHERE a = 5");
    assert!(format!("{plan}").contains("big_a"), "the index is of use: {plan}");
}

#[test]
fn writers_go_on_while_an_index_is_built() {
    for unique in ["", "UNIQUE "] {
        let target = Target::start();
        let mut connection = target.connect();
        prepare(&mut connection, ROWS);
        let (fresh, stop) = (AtomicU64::new(10_000_000), AtomicBool::new(false));
        let mut random = Random::new(Random::seed());
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| {
                    let (writer, random) = (target.connect(), Random::new(random.number()));
                    scope.spawn(|| write(writer, random, &fresh, &stop))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(50));
            let (first, start) = (fresh.load(Ordering::Relaxed), Instant::now());
            let reply = connection.query(&format!("CREATE {unique}INDEX CONCURRENTLY big_a ON big (a)"));
            let (took, written) = (start.elapsed(), fresh.load(Ordering::Relaxed) - first);
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
            let waits = writers.into_iter().map(|w| w.join().expect("a writer ends"));
            let longest = waits.max().expect("there are writers");
            println!("{unique}index in {took:?}, {written} writes meanwhile, the longest took {longest:?}");
            assert_eq!(reply.error(), None);
            assert!(written > WRITERS, "writers went on");
        });
        assert_eq!(number(&mut connection, "SELECT count(*) FROM pg_index WHERE NOT indisvalid"), 0);
        done(&mut connection, "ANALYZE big");
        compare(&mut connection);
    }
}

#[test]
fn an_open_transaction_does_not_slip_by() {
    let target = Target::start();
    let (mut connection, mut writer) = (target.connect(), target.connect());
    prepare(&mut connection, 1000);
    done(&mut writer, "BEGIN");
    done(&mut writer, "INSERT INTO big VALUES (5001, 7, 'twice')");
    connection.send("CREATE UNIQUE INDEX CONCURRENTLY big_a ON big (a)");
    assert!(connection.receive(Duration::from_millis(300)).is_none(), "the build waits for what is not decided");
    let mut other = target.connect();
    done(&mut other, "INSERT INTO big VALUES (5002, 5002, 'meanwhile')");
    done(&mut writer, "COMMIT");
    let reply = connection.receive(Duration::from_secs(10)).expect("the build ends");
    assert_eq!(reply.code(), "23505", "{reply}");
    assert_eq!(number(&mut connection, "SELECT count(*) FROM pg_index WHERE NOT indisvalid"), 1);
    // Nobody is checked against what has failed.
    done(&mut other, "INSERT INTO big VALUES (5003, 5002, 'also twice')");
    done(&mut connection, "DELETE FROM big WHERE id IN (5001, 5003)");
    done(&mut connection, "DROP INDEX big_a");
    done(&mut connection, "CREATE UNIQUE INDEX CONCURRENTLY big_a ON big (a)");
    compare(&mut connection);
}

#[test]
fn a_kill_in_the_middle_leaves_an_index_that_is_not_valid_or_none() {
    if Target::is_postgres() {
        println!("not run: there is no server to kill");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory for the server");
    let (data, port) = (directory.path().join("data"), Nyala::free_port());
    let mut server = Nyala::start(&data, port);
    prepare(&mut server.connect(), ROWS);
    let mut random = Random::new(Random::seed());
    for round in 0..4 {
        let mut builder = server.connect();
        builder.send("CREATE INDEX CONCURRENTLY big_a ON big (a)");
        let ended = builder.receive(Duration::from_millis(random.below(40))).is_some();
        server.kill();
        server = Nyala::start(&data, port);
        let mut connection = server.connect();
        let invalid = number(&mut connection, "SELECT count(*) FROM pg_index WHERE NOT indisvalid");
        let valid = number(
            &mut connection,
            "SELECT count(*) FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relname = 'big_a' AND indisvalid",
        );
        println!("round {round}: the build had ended: {ended}; valid: {valid}, not valid: {invalid}");
        assert!(!ended || valid == 1, "an index that was there is there");
        done(&mut connection, "INSERT INTO big SELECT 1000000 + count(*), 1000000 + count(*), 'after' FROM big");
        if invalid == 1 {
            done(&mut connection, "REINDEX INDEX big_a");
        }
        if valid + invalid == 0 {
            done(&mut connection, "CREATE INDEX big_a ON big (a)");
        }
        done(&mut connection, "ANALYZE big");
        compare(&mut connection);
        done(&mut connection, "DROP INDEX big_a");
    }
    server.kill();
}
