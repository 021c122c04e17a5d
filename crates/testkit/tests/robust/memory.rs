//! A small memory limit: what does not fit is refused with 53200, and what goes makes room again.

use std::time::{Duration, Instant};

use testkit::Connection;

use super::server::{Server, number, run, start};

/// A large INSERT; about 10 MB.
const FILL: &str = "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 10000) AS g (i)";

fn small() -> Option<Server> {
    let server = start(&["--memory-limit", "64MB"])?;
    run(
        &mut server.connect(),
        "CREATE TABLE t (a int, b text); CREATE TABLE kept (a int PRIMARY KEY); INSERT INTO kept VALUES (1)",
    );
    Some(server)
}

/// Inserts until there is no room; how many times that worked.
fn fill(connection: &mut Connection) -> u32 {
    for count in 0.. {
        let reply = connection.query(FILL);
        match reply.code() {
            "00000" => assert!(count < 100, "a limit of 64 MB does not hold"),
            "53200" => return count,
            _ => panic!("{reply}"),
        }
    }
    unreachable!("the loop ends by a return")
}

/// There is room for a statement again, soon: of what the log holds back, sooner or later by the speed of its disk.
fn recovers(connection: &mut Connection, sql: &str, after: &str) {
    let begun = Instant::now();
    loop {
        let reply = connection.query(sql);
        if reply.code() == "00000" {
            return;
        }
        assert_eq!(reply.code(), "53200");
        assert!(begun.elapsed() < Duration::from_secs(20), "{after} makes no room");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What the server says that it holds, and what it holds, in MiB: a tenth or 64 MiB apart at most.
fn assert_told(server: &Server, connection: &mut Connection, when: &str) {
    let told = number(connection, "SELECT bytes FROM nyala_memory WHERE kind = 'total'") as u64 >> 20;
    let held = server.resident_mib();
    println!("{when}: {told} MiB told, {held} MiB resident");
    assert!(told.abs_diff(held) <= 64.max(held / 10), "{when}: {told} MiB told, {held} MiB resident");
}

#[test]
fn free_memory_between_rows_is_told_and_used_again() {
    let Some(server) = start(&["--memory-limit", "320MB"]) else { return };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    // In rows of many sizes.
    let rows = |from: u32| {
        format!(
            "INSERT INTO t SELECT i, repeat('x', 20 + i % 300) FROM generate_series({from}, {}) AS g (i)",
            from + 49_999
        )
    };
    for part in 0..7 {
        run(&mut connection, &rows(part * 50_000));
    }
    assert_told(&server, &mut connection, "loaded");
    for part in 0..4 {
        run(&mut connection, &format!("DELETE FROM t WHERE a % 7 = {part}"));
    }
    std::thread::sleep(Duration::from_secs(1));
    assert_told(&server, &mut connection, "four of seven deleted");
    assert!(number(&mut connection, "SELECT bytes >> 20 FROM nyala_memory WHERE kind = 'free'") > 16);
    // Rows are being put together, which takes memory too, until their old places are free. How much working memory is left then is
    // not known: the log keeps more buffers the slower its disk is.
    let begun = Instant::now();
    let mut working = || number(&mut connection, "SELECT bytes >> 20 FROM nyala_memory WHERE kind = 'working'");
    let mut before = i64::MAX;
    while before > 24 || working() + 1 < before {
        assert!(begun.elapsed() < Duration::from_secs(60), "rows are still put together: {before} MiB");
        before = working();
        std::thread::sleep(Duration::from_millis(500));
    }
    for part in 20..24 {
        run(&mut connection, &rows(part * 50_000));
    }
    assert_told(&server, &mut connection, "as many inserted");
    // What the log, the statistics and the sessions have used is given back in the course of seconds. Rows that did not use what was free
    // would leave more of it than the 64 MB that do not count.
    let begun = Instant::now();
    let mut free = || number(&mut connection, "SELECT bytes >> 20 FROM nyala_memory WHERE kind = 'free'");
    while free() >= 64 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} MiB free, {} MiB held", free(), server.resident_mib());
        std::thread::sleep(Duration::from_millis(100));
    }
    server.assert_sound();
}

#[test]
fn a_full_memory_refuses_and_recovers() {
    let Some(server) = small() else { return };
    let mut connection = server.connect();
    let fitting = fill(&mut connection);
    println!("{fitting} times fit, {} MiB resident", server.resident_mib());
    assert!(fitting >= 3, "64 MB hold {fitting} times 10 MB only");
    assert_eq!(number(&mut connection, "SELECT count(*) FROM t"), i64::from(fitting) * 10_000);
    assert_eq!(number(&mut server.connect(), "SELECT count(*) FROM kept"), 1);

    run(&mut connection, "DELETE FROM t");
    recovers(&mut connection, FILL, "DELETE");
    run(&mut connection, "TRUNCATE t");
    recovers(&mut connection, FILL, "TRUNCATE");
    run(&mut connection, "TRUNCATE t");

    for round in 0..3 {
        run(&mut connection, "BEGIN");
        fill(&mut connection);
        assert_eq!(connection.query("SELECT 1").code(), "25P02", "round {round}");
        run(&mut connection, "ROLLBACK");
        assert_eq!(number(&mut connection, "SELECT count(*) FROM t"), 0);
    }
    recovers(&mut connection, FILL, "ROLLBACK");
    run(&mut connection, "DROP TABLE t");
    run(&mut connection, "CREATE TABLE t (a int, b text)");
    recovers(&mut connection, FILL, "DROP TABLE");
    recovers(&mut connection, "CREATE INDEX ON t (b)", "INSERT");
    let server = server.restart_after_kill();
    let mut connection = server.connect();
    assert_eq!(number(&mut connection, "SELECT count(*) FROM t"), 10_000);
    // Reading the log back holds whole transactions, and what they filled before they were refused.
    assert!(server.resident_mib() < 600, "{} MiB resident", server.resident_mib());
    server.assert_sound();
}

#[test]
fn what_a_statement_keeps_is_limited() {
    let Some(server) = small() else { return };
    let mut connection = server.connect();
    for sql in [
        "SELECT count(*) FROM (SELECT i FROM generate_series(1, 100000000) AS g (i) ORDER BY -i) AS q",
        "SELECT count(*) FROM (SELECT DISTINCT i FROM generate_series(1, 100000000) AS g (i)) AS q",
        "SELECT count(*) FROM (SELECT i, count(*) FROM generate_series(1, 100000000) AS g (i) GROUP BY i) AS q",
        "SELECT count(DISTINCT i) FROM generate_series(1, 100000000) AS g (i)",
        "SELECT array_length(array_agg(i), 1) FROM generate_series(1, 100000000) AS g (i)",
        "SELECT length(string_agg('0123456789', '')) FROM generate_series(1, 100000000)",
        "SELECT length(string_agg('0123456789', '' ORDER BY i)) FROM generate_series(1, 100000000) AS g (i)",
        "SELECT count(*) FROM generate_series(1, 100000000) AS g (i) JOIN generate_series(1, 100000000) AS h (j) ON i = j",
        "SELECT count(*) FROM (SELECT i FROM generate_series(1, 100000000) AS g (i) EXCEPT SELECT 1) AS q",
        "SELECT 0 IN (SELECT i FROM generate_series(1, 100000000) AS g (i))",
        "SELECT cardinality(ARRAY(SELECT i FROM generate_series(1, 100000000) AS g (i)))",
    ] {
        connection.send(sql);
        let reply = connection.receive(Duration::from_secs(60)).unwrap_or_else(|| panic!("{sql} goes on for ever"));
        assert_eq!(reply.code(), "53200", "{sql}: {reply}");
        assert!(server.resident_mib() < 500, "{sql}: {} MiB resident", server.resident_mib());
    }
    // All of it has been given back.
    for _ in 0..20 {
        run(
            &mut connection,
            "SELECT count(*) FROM (SELECT i FROM generate_series(1, 50000) AS g (i) ORDER BY -i) AS q",
        );
    }
    server.assert_sound();
}

#[test]
fn sessions_that_rest_hold_no_garbage_back() {
    let Some(server) = start(&["--cores", "2"]) else { return };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE u (a int)");
    run(
        &mut connection,
        "INSERT INTO t SELECT g FROM generate_series(1, 10000) AS g; INSERT INTO u VALUES (1), (2), (3)",
    );
    // What they ask for is found before all of it is read.
    let asked = [
        "SELECT a FROM t ORDER BY a LIMIT 1",
        "SELECT a FROM t LIMIT 1",
        "SELECT min(a) FROM t",
        "SELECT 1 WHERE EXISTS (SELECT FROM t WHERE a > 0)",
        "SELECT a FROM u WHERE EXISTS (SELECT FROM t WHERE t.a > u.a) LIMIT 1",
        "SELECT (SELECT a FROM t WHERE t.a > u.a LIMIT 1) FROM u",
        "SELECT t.a FROM u JOIN t ON t.a > u.a LIMIT 1",
        "WITH w AS MATERIALIZED (SELECT a FROM t) SELECT a FROM w LIMIT 1",
        "BEGIN; SELECT a FROM t ORDER BY a LIMIT 1 FOR UPDATE; COMMIT",
    ];
    let resting: Vec<Connection> = asked
        .iter()
        .map(|sql| {
            let mut connection = server.connect();
            assert_eq!(connection.query(sql).error(), None, "{sql}");
            connection
        })
        .collect();
    run(&mut connection, "DELETE FROM t");
    let begun = Instant::now();
    let left = |connection: &mut Connection| {
        number(connection, "SELECT row_count FROM nyala_table_memory WHERE relname = 't'")
    };
    while left(&mut connection) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{} deleted rows stay", left(&mut connection));
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(resting);
}
