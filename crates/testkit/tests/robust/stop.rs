//! Long statements end soon after `statement_timeout` or a cancel request, whatever they are doing.

use std::time::{Duration, Instant};

use super::server::{Server, run, start};
use testkit::Connection;

/// When a statement is stopped.
const AFTER: Duration = Duration::from_millis(300);

/// How much longer it may take, on a busy machine and unoptimized.
const SLACK: Duration = Duration::from_secs(5);

/// Statements that would run for ages, or wait for ever.
const ENDLESS: [(&str, &str); 21] = [
    ("a sort", "SELECT count(*) FROM (SELECT x.b FROM t AS x, generate_series(1, 1000) AS g ORDER BY x.b || g) AS q"),
    (
        "a sort in a subquery",
        "SELECT (SELECT max(s) FROM (SELECT x.b || g AS s FROM t AS x, generate_series(1, 1000) AS g ORDER BY 1) AS q)",
    ),
    ("a cross join", "SELECT count(*) FROM t AS x, t AS y, t AS z"),
    ("a series", "SELECT count(*) FROM generate_series(1, 1000000000)"),
    ("a series with rows", "SELECT generate_series(1, 1000000000)"),
    ("groups", "SELECT x.b || g, count(*) FROM t AS x, generate_series(1, 1000000) AS g GROUP BY 1"),
    ("distinct", "SELECT count(DISTINCT x.a) FROM t AS x, generate_series(1, 1000000) AS g"),
    ("a set operation", "SELECT count(*) FROM (SELECT x.a * y.a FROM t AS x, t AS y, t AS z EXCEPT SELECT 1) AS q"),
    (
        "a correlated subquery",
        "SELECT count(*) FROM t AS x WHERE EXISTS (SELECT 1 FROM t AS y, t AS z WHERE y.b = x.b || z.b)",
    ),
    ("a hash join", "SELECT count(*) FROM t AS x JOIN t AS y ON x.a % 2 = y.a % 2 JOIN t AS z ON y.a % 2 = z.a % 2"),
    ("EXPLAIN ANALYZE", "EXPLAIN ANALYZE SELECT count(*) FROM t AS x, t AS y, t AS z"),
    ("COPY TO", "COPY (SELECT x.a FROM t AS x, t AS y, t AS z) TO STDOUT"),
    ("INSERT SELECT", "INSERT INTO u SELECT x.a FROM t AS x, t AS y, t AS z"),
    ("an update", "UPDATE t SET b = (SELECT max(x.b || y.b) FROM t AS x, t AS y) || b"),
    ("a delete", "DELETE FROM t WHERE (SELECT count(*) FROM t AS x, t AS y WHERE x.a <> t.a) > 0"),
    (
        "a regular expression",
        "SELECT count(*) FROM t AS x, t AS y, t AS z WHERE x.b || y.b || z.b ~ '(r|ro|row)*( |  )*([0-9]*)*z'",
    ),
    ("a row lock", "UPDATE locked SET a = a"),
    ("SELECT FOR UPDATE", "SELECT * FROM locked FOR UPDATE"),
    ("a table lock", "ALTER TABLE locked ADD COLUMN b int"),
    ("a key that is being inserted", "INSERT INTO locked VALUES (2)"),
    ("a check of all rows", "ALTER TABLE t ADD CHECK ((SELECT true) AND a > 0)"),
];

#[test]
fn statements_end_when_they_are_told_to() {
    // With one core a cancel request cannot be read by another one.
    let Some(server) = start(&["--cores", "1"]) else { return };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int, b text); CREATE TABLE u (a int)");
    run(&mut connection, "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 2000) AS g (i)");
    run(&mut connection, "CREATE TABLE locked (a int PRIMARY KEY); INSERT INTO locked VALUES (1)");
    let mut holder = server.connect();
    run(&mut holder, "BEGIN");
    run(&mut holder, "UPDATE locked SET a = 1");
    run(&mut holder, "INSERT INTO locked VALUES (2)");
    for (what, sql) in ENDLESS {
        for by_cancel in [false, true] {
            stopped(&mut connection, what, sql, by_cancel);
        }
    }
    run(&mut holder, "ROLLBACK");
    run(&mut connection, "RESET statement_timeout");
    run(&mut connection, "SELECT * FROM locked FOR UPDATE");
    assert_eq!(connection.query("SELECT count(*), max(a) FROM t").value(), Some("2000"));
    server.assert_sound();
}

fn stopped(connection: &mut Connection, what: &str, sql: &str, by_cancel: bool) {
    let timeout = if by_cancel { 0 } else { AFTER.as_millis() };
    run(connection, &format!("SET statement_timeout = {timeout}"));
    let begun = Instant::now();
    connection.send(sql);
    if by_cancel {
        // The answer is read meanwhile: a server that waits for its client to read is not stopped.
        let early = connection.receive(AFTER);
        if let Some(reply) = early {
            assert_eq!(reply.code(), "0A000", "{what} is over too soon: {}", reply.events.len());
            return;
        }
        connection.cancel();
    }
    let reply = connection.receive(Duration::from_secs(60)).unwrap_or_else(|| panic!("{what} goes on for ever"));
    let took = begun.elapsed();
    if reply.code() == "0A000" {
        return;
    }
    assert_eq!(reply.code(), "57014", "{what}: {:?}", reply.error());
    let reason = if by_cancel { "due to user request" } else { "due to statement timeout" };
    assert!(reply.error().is_some_and(|error| error.message.ends_with(reason)), "{what}: {:?}", reply.error());
    assert!(took < AFTER + SLACK, "{what} took {took:?}");
}

/// A definition of a table with many rows can be stopped and leaves nothing.
#[test]
fn an_index_build_can_be_stopped() {
    let Some(server) = start(&[]) else { return };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int, b text)");
    run(&mut connection, "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 200000) AS g (i)");
    run(&mut connection, "SET statement_timeout = 50");
    for sql in ["CREATE INDEX stopped ON t (b, a)", "ALTER TABLE t ADD CONSTRAINT stopped UNIQUE (a, b)"] {
        let begun = Instant::now();
        let reply = connection.query(sql);
        assert_eq!(reply.code(), "57014", "{sql} after {:?}", begun.elapsed());
        assert!(begun.elapsed() < AFTER + SLACK);
    }
    run(&mut connection, "RESET statement_timeout");
    run(&mut connection, "CREATE INDEX stopped ON t (b, a)");
    assert_eq!(connection.query("SELECT a FROM t WHERE b = 'row 777'").value(), Some("777"));
    server.assert_sound();
}

/// Other sessions of the core get their turn while a statement runs (rule R9).
#[test]
fn point_selects_do_not_wait_for_long_statements() {
    let Some(server) = start(&["--cores", "1"]) else { return };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    run(&mut connection, "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 20000) AS g (i)");
    for sql in [
        "SELECT count(*) FROM t AS x, t AS y",
        "SELECT count(*) FROM (SELECT x.b FROM t AS x, generate_series(1, 100) AS g ORDER BY x.b || g) AS q",
        "SELECT x.a % 7, count(*) FROM t AS x, t AS y GROUP BY 1",
        "UPDATE t SET b = b || 'x'",
    ] {
        // The best of some runs counts: the machine is not this test's alone.
        let is_prompt = (0..5).any(|_| longest_beside(&server, &mut connection, sql) < Duration::from_millis(500));
        assert!(is_prompt, "{sql}: others wait for their turn");
    }
    server.assert_sound();
}

/// The longest that a point select took while another session ran a statement.
fn longest_beside(server: &Server, connection: &mut Connection, sql: &str) -> Duration {
    let mut busy = server.connect();
    run(&mut busy, "SET statement_timeout = 1500");
    busy.send(sql);
    let (mut longest, mut count) = (Duration::ZERO, 0);
    while busy.receive(Duration::from_millis(1)).is_none() {
        let begun = Instant::now();
        run(connection, "SELECT b FROM t WHERE a = 4711");
        longest = longest.max(begun.elapsed());
        count += 1;
    }
    println!("{sql}: {count} selects beside it, the longest {longest:?}");
    longest
}
