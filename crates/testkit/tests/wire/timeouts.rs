//! Limits of time.

use std::thread::sleep;

use crate::*;

/// Sends to both, and compares what comes before the servers hang up.
fn hung_up(pair: &mut Pair, sql: &str, code: &str) {
    pair.query(sql);
    let [of_postgres, of_nyala] = pair.wires().each_mut().map(|wire| wire.answers(1));
    assert_eq!(of_nyala, of_postgres);
    assert!(of_nyala[0].contains(&format!("C{code}")) && of_nyala.last().is_some_and(|m| m == "(end)"), "{of_nyala:?}");
}

#[test]
fn idle_in_a_transaction() {
    hung_up(&mut Pair::new(&[]), "SET idle_in_transaction_session_timeout = 150; BEGIN; SELECT 1", "25P03");
    let mut pair = Pair::new(&[]);
    pair.query("SET idle_in_transaction_session_timeout = 150");
    hung_up(&mut pair, "BEGIN; SELECT nothing", "25P03");
    let mut pair = Pair::new(&[]);
    pair.query("SET idle_in_transaction_session_timeout = 100");
    sleep(Duration::from_millis(300));
    pair.query("SELECT 'outside of a transaction it may be idle'");
}

#[test]
fn settings_of_a_failed_block() {
    // What was set in the message before BEGIN belongs to the block, and ends when the block fails.
    let mut pair = Pair::new(&[]);
    pair.query("SET idle_in_transaction_session_timeout = 150; BEGIN; SELECT nothing");
    sleep(Duration::from_millis(400));
    pair.query("ROLLBACK");
    pair.query("SHOW idle_in_transaction_session_timeout");
    pair.query("SET application_name = 'a'; BEGIN; SET application_name = 'b'; SELECT nothing");
    pair.query("ROLLBACK; SHOW application_name");
    pair.query("BEGIN; SET application_name = 'c'; SAVEPOINT s");
    pair.query("SET application_name = 'd'; SELECT nothing");
    pair.query("ROLLBACK TO s");
    pair.query("SHOW application_name");
    pair.query("SET application_name = 'e'; SELECT nothing");
    pair.query("COMMIT; SHOW application_name");
    pair.query("SET application_name = 'f'; BEGIN; COMMIT");
    pair.query("SELECT nothing");
    pair.query("SHOW application_name");
}

#[test]
fn idle_session() {
    hung_up(&mut Pair::new(&[]), "SET idle_session_timeout = 150", "57P05");
    let mut pair = Pair::new(&[]);
    pair.query("SET idle_session_timeout = 150; BEGIN");
    sleep(Duration::from_millis(400));
    pair.query("SELECT 'a transaction may be idle'");
    hung_up(&mut pair, "COMMIT", "57P05");
}

#[test]
fn statements() {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE TABLE t (a int)");
    pair.query("SET statement_timeout = 200");
    let slow = b"SELECT pg_sleep(20)";
    let ended = pair.same(&[query(slow)], 1);
    assert!(ended.iter().any(|m| m.contains("C57014")), "{ended:?}");
    let ended = pair.same(&[parse("", slow), bind("", &[], 0), execute(0), sync()], 1);
    assert!(ended.iter().any(|m| m.contains("C57014")), "{ended:?}");
    pair.query("BEGIN");
    pair.same(&[query(slow)], 1);
    pair.query("SELECT 1");
    pair.query("ROLLBACK");
    // A statement in the time is not touched, and the time between statements is the client's.
    pair.query("SELECT pg_sleep(0.05)");
    sleep(Duration::from_millis(300));
    pair.query("SELECT 1");
    pair.query("SELECT 1; SELECT pg_sleep(20); SELECT 2");
    let busy = "SELECT count(*) FROM generate_series(1, 2000000000) AS g";
    let ended = pair.query(busy);
    assert!(ended.iter().any(|m| m.contains("C57014")), "{ended:?}");
    let ended = pair.query(&format!("COPY ({busy}) TO STDOUT"));
    assert!(ended.iter().any(|m| m.contains("C57014")), "{ended:?}");
    // A COPY that waits for its client.
    for wire in pair.wires() {
        wire.send(&[query(b"COPY t FROM STDIN")]);
        wire.answers_to('G');
    }
    sleep(Duration::from_millis(500));
    for wire in pair.wires() {
        wire.send(&[copy_data(b"1\n")]);
        let ended = wire.answers(1);
        assert!(ended.iter().any(|m| m.contains("C57014")), "{ended:?}");
    }
    pair.query("SET statement_timeout = 0; SELECT count(*) FROM t");
}

#[test]
fn locks() {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 1)");
    let mut waiting = pair.more(&[]);
    pair.query("BEGIN; UPDATE t SET b = 2");
    same(&mut waiting, &[query(b"SET lock_timeout = 150")], 1);
    let change = b"UPDATE t SET b = 3";
    let ended = same(&mut waiting, &[query(change)], 1);
    assert!(ended.iter().any(|m| m.contains("C55P03")), "{ended:?}");
    same(&mut waiting, &[parse("", change), bind("", &[], 0), execute(0), sync()], 1);
    same(&mut waiting, &[query(b"LOCK TABLE t")], 1);
    same(&mut waiting, &[query(b"BEGIN; LOCK TABLE t")], 1);
    same(&mut waiting, &[query(b"ROLLBACK")], 1);
    same(&mut waiting, &[query(b"INSERT INTO t VALUES (2, 2); SELECT * FROM t FOR UPDATE")], 1);
    same(&mut waiting, &[query(b"SET lock_timeout = 0; SET statement_timeout = 150"), query(change)], 2);
    pair.query("COMMIT");
    same(&mut waiting, &[query(b"SET statement_timeout = 0; SET lock_timeout = '10s'"), query(change)], 2);
    pair.query("SELECT * FROM t");
}

/// Parse waits for who changes a table, and tells of the table as it is then.
#[test]
fn parse_waits_for_definitions() {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE TABLE p (a int); INSERT INTO p VALUES (1)");
    let mut others = pair.more(&[]);
    let described = || [parse("", b"SELECT * FROM p WHERE a = $1"), message(b'D', b"S\0"), flush()].concat();
    for (change, end) in [
        ("ALTER TABLE p ADD b text DEFAULT 'b'", "COMMIT"),
        ("ALTER TABLE p ADD c text", "ROLLBACK"),
        ("LOCK TABLE p", "COMMIT"),
    ] {
        pair.query(&format!("BEGIN; {change}"));
        others.iter_mut().for_each(|wire| wire.send(&[described()]));
        sleep(Duration::from_millis(200));
        pair.query(end);
        let [expected, got] = others.each_mut().map(|wire| wire.answers_to('T'));
        assert_eq!(got, expected, "after {change}");
        same(&mut others, &[bind("", &[b"1"], 0), execute(0), sync()], 1);
    }
    same(&mut others, &[query(b"SET lock_timeout = 100; SET statement_timeout = 0")], 1);
    for timeouts in
        ["SET lock_timeout = 0; SET statement_timeout = 150", "SET statement_timeout = 150; SET lock_timeout = 50"]
    {
        same(&mut others, &[query(timeouts.as_bytes())], 1);
        pair.query("BEGIN; LOCK TABLE p");
        let [expected, got] = others.each_mut().map(|wire| {
            wire.send(&[described(), sync()]);
            let answers = wire.answers(1);
            answers
                .iter()
                .map(|message| message.split(" | P").next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        });
        assert_eq!(got, expected, "{timeouts}");
        pair.query("COMMIT");
    }
    // A block that has failed so goes no further.
    pair.query("BEGIN; LOCK TABLE p");
    same(&mut others, &[query(b"BEGIN")], 1);
    others.iter_mut().for_each(|wire| wire.send(&[described(), sync(), query(b"SELECT 1"), query(b"ROLLBACK")]));
    let [expected, got] = others.each_mut().map(|wire| wire.answers(3).len());
    assert_eq!(got, expected);
}

/// The time of a statement runs from its first message on, while the client sends the others, to the end of Execute or Sync.
#[test]
fn statements_that_come_in_parts() {
    let pause = || sleep(Duration::from_millis(600));
    let begun = || [parse("", b"SELECT 1"), flush()].concat();
    let rest = || [bind("", &[], 0), execute(0)].concat();
    let mut pair = Pair::new(&[]);
    pair.query("SET statement_timeout = 300");
    for (first, then) in [
        (begun(), [rest(), sync()].concat()),
        (begun(), sync()),
        ([begun(), bind("", &[], 0), flush()].concat(), [execute(0), sync()].concat()),
        // What was executed, and Sync, end the time.
        ([begun(), rest(), flush()].concat(), [rest(), sync()].concat()),
        ([begun(), rest(), flush()].concat(), sync()),
        (query(b"SELECT 1"), [begun(), rest(), sync()].concat()),
    ] {
        let readies = if first[0] == b'Q' { 2 } else { 1 };
        for block in ["", "BEGIN"] {
            pair.query(block);
            for wire in pair.wires() {
                wire.send(std::slice::from_ref(&first));
            }
            pause();
            pair.same(std::slice::from_ref(&then), readies);
            pair.query("ROLLBACK");
        }
    }
    pair.same(&[begun(), sync()], 1);
    pause();
    pair.same(&[rest(), sync()], 1);
    // Each of several has its own.
    let sleeps = || [parse("", b"SELECT pg_sleep(0.2) IS NULL"), bind("", &[], 0), execute(0)].concat();
    pair.same(&[sleeps(), sleeps(), sleeps(), sync()], 1);
    pair.same(&[parse("", b"SELECT pg_sleep(2)"), bind("", &[], 0), execute(0), sync()], 1);
    pair.query("SELECT pg_sleep(0.2) IS NULL; SELECT pg_sleep(0.2) IS NULL");
}
