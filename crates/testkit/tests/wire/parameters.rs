//! Parameters of statements that hold a query and are none themselves.

use crate::*;

/// Parse and Describe of a statement, then Bind, Describe and Execute with these values.
fn run(sql: &str, values: &[&[u8]]) -> Vec<Vec<u8>> {
    vec![parse("", sql.as_bytes()), message(b'D', b"S\0"), bind("", values, 0), describe(), execute(0), sync()]
}

#[test]
fn of_cursors() {
    let mut pair = Pair::new(&[]);
    pair.query(
        "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT g, 'b' || g FROM generate_series(1, 100) g",
    );
    pair.query("BEGIN");
    pair.same(&run("DECLARE c CURSOR FOR SELECT * FROM t WHERE a > $1 ORDER BY a", &[b"90"]), 1);
    pair.query("FETCH 3 FROM c");
    pair.same(&run("FETCH 2 FROM c", &[]), 1);
    pair.same(
        &run("DECLARE s SCROLL CURSOR WITH HOLD FOR SELECT $1 || b, $2::numeric FROM t WHERE a < 4", &[b"x", b"1.50"]),
        1,
    );
    pair.query("FETCH ALL FROM s; FETCH BACKWARD 2 FROM s");
    pair.same(&run("DECLARE b BINARY CURSOR FOR SELECT $1::int4, $2", &[b"7", b"text"]), 1);
    pair.query("FETCH ALL FROM b");
    pair.query("COMMIT");
    pair.query("FETCH FIRST FROM s; FETCH ABSOLUTE 3 FROM s; CLOSE s");
    pair.query("BEGIN");
    pair.query("SAVEPOINT s");
    for (sql, values) in [
        ("DECLARE c CURSOR FOR SELECT $1", &[b"x" as &[u8]][..]),
        ("DECLARE c2 CURSOR FOR SELECT $1 + $2", &[b"1", b"2"]),
        ("DECLARE c3 CURSOR FOR SELECT $1::int", &[b"x"]),
        ("DECLARE c3 CURSOR FOR SELECT $1::int", &[]),
        ("DECLARE c4 CURSOR FOR SELECT $2::int", &[b"1", b"2"]),
        ("DECLARE c5 CURSOR FOR SELECT a FROM t WHERE b = $1 FOR UPDATE", &[b"b5"]),
        ("DECLARE c6 CURSOR FOR SELECT nothing FROM t WHERE b = $1", &[b"b5"]),
        ("DECLARE c7 CURSOR WITH HOLD FOR SELECT a FROM t WHERE b = $1 FOR UPDATE", &[b"b5"]),
    ] {
        pair.same(&run(sql, values), 1);
        pair.query("ROLLBACK TO s");
    }
    pair.query("DECLARE c CURSOR FOR SELECT $1");
    pair.query("ROLLBACK");
    pair.same(&run("DECLARE c CURSOR FOR SELECT $1::int", &[b"1"]), 1);
}

#[test]
fn keep_their_types_while_definitions_change() {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)");
    pair.same(&[parse("d", b"DECLARE c CURSOR FOR SELECT * FROM t WHERE a = $1"), sync()], 1);
    for _ in 0..2 {
        pair.query("BEGIN");
        pair.same(&[message(b'D', b"Sd\0"), bind("d", &[b"2"], 0), execute(0), sync()], 1);
        pair.query("FETCH ALL FROM c; COMMIT");
        pair.query("ALTER TABLE t ADD b text DEFAULT 'x'");
    }
    pair.query("DROP TABLE t; CREATE TABLE t (a text); INSERT INTO t VALUES ('2')");
    pair.query("BEGIN");
    pair.same(&run("DECLARE c CURSOR FOR SELECT * FROM t WHERE a = $1", &[b"2"]), 1);
    pair.query("FETCH ALL FROM c; COMMIT");
}

#[test]
fn of_relations_made_of_queries() {
    let mut pair = Pair::new(&[]);
    for (sql, values) in [
        ("CREATE TABLE a AS SELECT $1::int AS x, $2 AS y", &[b"5" as &[u8], b"text"][..]),
        ("SELECT * FROM a", &[]),
        ("SELECT x + $1 AS z INTO b FROM a", &[b"1"]),
        ("SELECT * FROM b", &[]),
        ("CREATE TABLE c (k, l) AS SELECT g, g * $1 FROM generate_series(1, $2::int) g WITH DATA", &[b"3", b"4"]),
        ("SELECT * FROM c", &[]),
        ("CREATE TABLE d AS SELECT $1::date AS x WITH NO DATA", &[b"2020-01-02"]),
        ("SELECT * FROM d", &[]),
        ("CREATE TABLE IF NOT EXISTS d AS SELECT $1::date AS x", &[b"2020-01-02"]),
        ("CREATE TABLE e AS SELECT $1::int / $2", &[b"1", b"0"]),
        ("CREATE TABLE e AS SELECT $1 + $2", &[b"1", b"0"]),
        ("CREATE TABLE e AS SELECT nothing", &[]),
        ("CREATE MATERIALIZED VIEW m AS SELECT $1::int AS a", &[b"1"]),
        ("CREATE MATERIALIZED VIEW m AS SELECT 1 AS a", &[]),
        ("CREATE VIEW v AS SELECT $1::int AS a", &[]),
        ("CREATE VIEW v AS SELECT $1::int AS a", &[b"1"]),
        ("PREPARE p AS SELECT $1::int", &[]),
        ("EXECUTE p ($1)", &[b"1"]),
        ("EXECUTE p ($1)", &[]),
        ("COPY (SELECT $1::int) TO STDOUT", &[b"1"]),
        ("COPY (SELECT $1::int) TO STDOUT", &[]),
    ] {
        pair.same(&run(sql, values), 1);
    }
    pair.query("CREATE TABLE f AS SELECT $1::int");
    pair.query("CREATE MATERIALIZED VIEW n AS SELECT $1::int");
}

#[test]
fn of_what_is_explained() {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE TABLE t (a int PRIMARY KEY); PREPARE p (int) AS SELECT * FROM t WHERE a = $1");
    for (sql, values) in [
        ("EXPLAIN (COSTS OFF) SELECT 1 WHERE $1 = 5", &[b"x" as &[u8]][..]),
        ("EXPLAIN SELECT nothing FROM t WHERE a = $1", &[b"1"]),
        ("EXPLAIN SELECT * FROM t WHERE a = $1", &[]),
        ("EXPLAIN SELECT $1 + $2", &[b"1", b"2"]),
        ("EXPLAIN DECLARE c CURSOR FOR SELECT $1 + $2", &[b"1", b"2"]),
        ("EXPLAIN CREATE TABLE x AS SELECT $1 + $2", &[b"1", b"2"]),
        ("EXPLAIN EXECUTE p ($1)", &[]),
        ("EXPLAIN EXECUTE p (1)", &[b"1"]),
        ("EXPLAIN EXECUTE p", &[]),
        ("EXPLAIN EXECUTE nothing", &[]),
    ] {
        pair.same(&run(sql, values), 1);
    }
    // Plans are each server's own: that there is one is what must be the same.
    for sql in [
        "EXPLAIN (COSTS OFF) SELECT * FROM t WHERE a = $1",
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) INSERT INTO t VALUES ($1::int + 1), ($1)",
        "EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR SELECT * FROM t WHERE a = $1::int",
        "EXPLAIN (COSTS OFF) CREATE TABLE x AS SELECT * FROM t WHERE a = $1",
        "EXPLAIN (COSTS OFF, FORMAT JSON) UPDATE t SET a = $1",
    ] {
        for wire in pair.wires() {
            wire.send(&run(sql, &[b"41"]));
            let answers = wire.answers(1);
            assert!(answers.iter().any(|answer| answer.starts_with("C EXPLAIN")), "{sql}: {answers:?}");
            assert!(
                answers.iter().any(|answer| answer.starts_with("t ") && answer.contains("\\x17")),
                "{sql}: {answers:?}"
            );
        }
    }
    pair.query("SELECT * FROM t");
}
