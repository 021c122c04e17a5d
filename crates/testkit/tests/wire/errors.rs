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
