//! Errors amid a batch of the extended protocol.

use crate::*;

#[test]
fn what_follows_an_error_is_skipped_up_to_sync() {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE TABLE t (a int PRIMARY KEY)");
    let good = || [parse("", b"INSERT INTO t VALUES ($1) RETURNING a"), bind("", &[b"7"], 0), execute(0)].concat();
    for bad in [
        parse("", b"SELEC 1"),
        parse("", b"SELECT * FROM nowhere"),
        parse("", b"SELECT 1; SELECT 2"),
        [parse("", b"SELECT $1::int"), bind("", &[b"x"], 0)].concat(),
        [parse("", b"SELECT $1::int"), bind("", &[], 0)].concat(),
        [parse("", b"SELECT $1::int"), bind("", &[b"1", b"2"], 0)].concat(),
        [parse("", b"SELECT $1::int"), bind("", &[b"12345"], 1)].concat(),
        bind("nowhere", &[], 0),
        message(b'D', b"Snowhere\0"),
        message(b'D', b"Pnowhere\0"),
        [parse("", b"SELECT 1 / (g - 3) FROM generate_series(1, 5) AS g"), bind("", &[], 0), execute(0)].concat(),
    ] {
        // Flush brings the error at once, and nothing else until Sync.
        pair.same(&[good(), bad.clone(), flush(), good(), flush(), sync()], 1);
        for wire in pair.wires() {
            wire.send(&[bad.clone(), flush()]);
            let early = wire.answers_to('E');
            assert!(early.last().is_some_and(|m| m.starts_with('E')), "{early:?}");
        }
        let after = pair.same(&[good(), flush(), sync()], 1);
        assert_eq!(after, ["Z I"], "all of it is skipped");
        // What came before in the batch is undone with it.
        pair.query("SELECT count(*) FROM t");
        // In a block, it fails.
        pair.query("BEGIN");
        pair.same(&[bad.clone(), sync(), good(), sync()], 2);
        pair.query("ROLLBACK");
    }
    pair.same(&[good(), sync(), good(), sync(), query(b"SELECT * FROM t")], 3);
}

/// What has no name goes with what comes after it: the statement at once, the portal when there is another.
#[test]
fn what_has_no_name_is_forgotten_in_time() {
    let mut pair = Pair::new(&[]);
    let unnamed = || [parse("", b"SELECT 7"), bind("", &[], 0), sync()].concat();
    for between in
        ["SELECT nope", "SELEC 1", "SELECT 2", "", ";", "SAVEPOINT a", "SELECT 2; SELECT nope", "SELECT 2; SELEC"]
    {
        // The portal, in the block and behind an error.
        pair.query("BEGIN");
        pair.same(&[unnamed()], 1);
        pair.query(between);
        pair.same(&[execute(0), sync()], 1);
        pair.same(&[message(b'D', b"P\0"), sync()], 1);
        pair.query("ROLLBACK");
        // The statement.
        pair.same(&[unnamed()], 1);
        pair.query(between);
        pair.same(&[bind("", &[], 0), execute(0), sync()], 1);
    }
    for replaced in [parse("", b"SELECT nope"), parse("", b"SELEC"), parse("", b"SELECT 8"), parse("n", b"SELECT nope")]
    {
        pair.same(&[unnamed()], 1);
        pair.same(&[replaced, sync()], 1);
        pair.same(&[bind("", &[], 0), execute(0), sync()], 1);
    }
}

#[test]
fn notify_cannot_be_prepared() {
    let mut pair = Pair::new(&[]);
    pair.query("BEGIN; NOTIFY c; PREPARE TRANSACTION 'wire-n'");
    pair.query("BEGIN; LISTEN c; PREPARE TRANSACTION 'wire-l'");
    pair.query("BEGIN; UNLISTEN *; PREPARE TRANSACTION 'wire-u'");
    pair.query("BEGIN; SELECT pg_notify('c', 'x'); PREPARE TRANSACTION 'wire-p'");
    pair.query("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'wire-%'");
    pair.query("BEGIN; SAVEPOINT a; NOTIFY c; ROLLBACK TO a; PREPARE TRANSACTION 'wire-s'");
    pair.query("ROLLBACK PREPARED 'wire-s'");
}

/// Bind of a statement to a portal with a name.
fn bind_named(portal: &str, statement: &str) -> Vec<u8> {
    message(b'B', &[portal.as_bytes(), b"\0", statement.as_bytes(), &[0, 0, 0, 0, 0, 0, 0]].concat())
}

fn execute_named(portal: &str, rows: u32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), b"\0", &rows.to_be_bytes()].concat())
}

#[test]
fn nothing_runs_in_a_failed_block() {
    let mut pair = Pair::new(&[]);
    pair.same(
        &[parse("s", b"SELECT g FROM generate_series(1, 5) AS g"), parse("i", b"SET work_mem = '1MB'"), sync()],
        1,
    );
    pair.same(&[parse("b", b"COMMIT"), parse("e", b""), sync()], 1);
    pair.same(
        &[parse("f", b"SELECT 1 / (g - 2) FROM generate_series(1, 3) AS g"), parse("u", b"DROP TABLE nowhere"), sync()],
        1,
    );
    for failure in [
        query(b"SELECT nothing"),
        [parse("", b"SELEC"), sync()].concat(),
        [bind("nowhere", &[], 0), sync()].concat(),
        [execute_named("f", 0), sync()].concat(),
        [execute_named("f", 1), execute_named("f", 1), sync()].concat(),
        [execute_named("u", 0), sync()].concat(),
    ] {
        for tried in [
            execute_named("p", 0),
            execute_named("q", 0),
            execute_named("c", 0),
            execute_named("v", 0),
            execute_named("z", 0),
            execute_named("f", 0),
            execute_named("u", 0),
            message(b'D', b"Pf\0"),
            message(b'D', b"Pu\0"),
            message(b'C', b"Pf\0"),
            bind_named("f", "s"),
            message(b'D', b"Pp\0"),
            message(b'D', b"Pv\0"),
            message(b'D', b"Ss\0"),
            message(b'D', b"Si\0"),
            message(b'D', b"Sb\0"),
            message(b'C', b"Pp\0"),
            bind_named("n", "s"),
            bind_named("n", "i"),
            bind_named("n", "e"),
            parse("", b"SELECT 1"),
            parse("", b"ROLLBACK"),
            parse("", b""),
            parse("", b"SHOW work_mem"),
        ] {
            pair.query("BEGIN; DECLARE c CURSOR FOR SELECT 1");
            let bound = [("p", "s"), ("q", "s"), ("v", "i"), ("z", "b"), ("f", "f"), ("u", "u")]
                .map(|(p, s)| bind_named(p, s))
                .concat();
            pair.same(&[bound, execute_named("q", 2), bind("s", &[], 0), sync()], 1);
            pair.same(std::slice::from_ref(&failure), 1);
            pair.same(&[tried.clone(), sync()], 1);
            pair.query("SELECT 1");
            pair.query("ROLLBACK");
        }
    }
}

#[test]
fn changed_results_are_told_by_their_routine() {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE TABLE t (a int); PREPARE p AS SELECT * FROM t");
    pair.same(&[parse("s", b"SELECT * FROM t"), sync()], 1);
    pair.query("ALTER TABLE t ADD b int");
    let told = pair.same(&[bind("s", &[], 0), execute(0), sync()], 1);
    assert!(told.iter().any(|m| m.contains("RRevalidateCachedQuery")), "{told:?}");
    pair.query("EXECUTE p");
}
