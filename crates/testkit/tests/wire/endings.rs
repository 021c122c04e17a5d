//! Sessions that others end, statements that others cancel.

use std::thread::sleep;

use crate::*;

fn pids(wires: &mut [Wire; 2]) -> [String; 2] {
    wires.each_mut().map(|wire| {
        wire.send(&[query(b"SELECT 'pid ' || pg_backend_pid()")]);
        let row = wire.answers(1).into_iter().find(|m| m.starts_with("D ")).expect("a row");
        row.rsplit(' ').next().expect("a number").to_owned()
    })
}

/// Calls a function on the process of each server's other session.
fn call(pair: &mut Pair, function: &str, pids: &[String; 2]) {
    for (wire, pid) in pair.wires().iter_mut().zip(pids) {
        wire.send(&[query(format!("SELECT {function}({pid})").as_bytes())]);
        let answer = wire.answers(1);
        assert!(answer.iter().any(|m| m.ends_with("\\x01t")), "{answer:?}");
    }
}

#[track_caller]
fn alike(wires: &mut [Wire; 2], code: &str) {
    let [of_postgres, of_nyala] = wires.each_mut().map(|wire| wire.answers(1));
    assert_eq!(of_nyala, of_postgres);
    assert!(of_nyala.iter().any(|m| m.contains(&format!("C{code}"))), "{of_nyala:?}");
}

fn held() -> Pair {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 1)");
    pair.query("BEGIN; UPDATE t SET b = 2");
    pair
}

#[test]
fn an_idle_session_is_terminated() {
    let mut pair = held();
    let mut victims = pair.more(&[]);
    let of_victims = pids(&mut victims);
    call(&mut pair, "pg_terminate_backend", &of_victims);
    alike(&mut victims, "57P01");
    // One in a transaction gives back what it holds.
    pair.query("COMMIT");
    let mut victims = pair.more(&[]);
    let of_victims = pids(&mut victims);
    same(&mut victims, &[query(b"BEGIN; UPDATE t SET b = 9")], 1);
    call(&mut pair, "pg_terminate_backend", &of_victims);
    alike(&mut victims, "57P01");
    pair.query("UPDATE t SET b = b + 1 RETURNING b");
}

#[test]
fn a_waiting_session_is_cancelled_and_terminated() {
    let mut pair = held();
    let mut victims = pair.more(&[]);
    let of_victims = pids(&mut victims);
    for (function, code) in [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")] {
        victims.iter_mut().for_each(|wire| wire.send(&[query(b"UPDATE t SET b = 3")]));
        sleep(Duration::from_millis(300));
        call(&mut pair, function, &of_victims);
        alike(&mut victims, code);
    }
    pair.query("COMMIT");
    pair.query("SELECT * FROM t");
}

#[test]
fn a_running_session_is_cancelled_and_terminated() {
    let mut pair = held();
    let mut victims = pair.more(&[]);
    let of_victims = pids(&mut victims);
    for sql in ["SELECT count(*) FROM generate_series(1, 2000000000) AS g", "SELECT pg_sleep(60)"] {
        victims.iter_mut().for_each(|wire| wire.send(&[query(sql.as_bytes())]));
        sleep(Duration::from_millis(300));
        call(&mut pair, "pg_cancel_backend", &of_victims);
        alike(&mut victims, "57014");
    }
    victims
        .iter_mut()
        .for_each(|wire| wire.send(&[query(b"SELECT count(*) FROM generate_series(1, 2000000000) AS g")]));
    sleep(Duration::from_millis(300));
    call(&mut pair, "pg_terminate_backend", &of_victims);
    alike(&mut victims, "57P01");
    // A cancellation that comes when nothing runs is forgotten.
    let mut victims = pair.more(&[]);
    let of_victims = pids(&mut victims);
    call(&mut pair, "pg_cancel_backend", &of_victims);
    sleep(Duration::from_millis(100));
    same(&mut victims, &[query(b"SELECT 1")], 1);
}

#[test]
fn sessions_that_end_themselves() {
    for function in ["pg_cancel_backend", "pg_terminate_backend"] {
        let sql = format!("SELECT {function}(pg_backend_pid())");
        let simple = query(sql.as_bytes());
        let extended = [query(b"BEGIN"), parse("", sql.as_bytes()), bind("", &[], 0), execute(0), sync()].concat();
        for (messages, readies) in [(simple, 1), (extended, 2)] {
            let mut pair = Pair::new(&[]);
            let ends = pair.wires().each_mut().map(|wire| {
                wire.send(std::slice::from_ref(&messages));
                // Whether the row leaves before the signal is seen is PostgreSQL's own matter.
                let mut answers = wire.answers(readies);
                answers.retain(|message| message.starts_with(['E', 'Z', '(']));
                answers
            });
            assert_eq!(ends[1], ends[0]);
            pair.query("SELECT 1");
        }
    }
}
