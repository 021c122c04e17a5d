//! Clients that vanish, crowd, or lie: no session, lock or memory of theirs outlives them.

use std::time::{Duration, Instant};

use super::server::{Server, number, run, start};
use super::wire::{self, Wire};

/// Waits until another session can lock the table, which shows that nobody else holds it.
fn assert_unlocked(server: &Server, after: &str) {
    let mut connection = server.connect();
    run(&mut connection, "SET lock_timeout = '15s'");
    run(&mut connection, "BEGIN");
    let reply = connection.query("LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
    assert_eq!(reply.code(), "00000", "locks of a client that is gone: {after}");
    run(&mut connection, "ROLLBACK");
}

fn with_table(flags: &[&'static str]) -> Option<Server> {
    let server = start(flags)?;
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int, b text)");
    run(&mut connection, "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) AS g (i)");
    Some(server)
}

#[test]
fn clients_that_vanish_leave_nothing() {
    let Some(server) = with_table(&[]) else { return };
    let port = server.nyala.port();
    let before = server.resident_mib();
    let filler = wire::message(b'd', "1\tx\n".repeat(10_000).as_bytes());
    for round in 0..10 {
        // Amid a COPY, at a message's end and inside of one.
        let mut wire = Wire::login(port);
        wire.send(&[wire::query("COPY t FROM STDIN"), filler.clone(), filler[..100].to_vec()].concat());
        drop(wire);
        // Amid a result that nobody reads, closed and half closed.
        let mut wire = Wire::login(port);
        wire.send(&wire::query("BEGIN; SELECT * FROM t; SELECT * FROM t"));
        std::thread::sleep(Duration::from_millis(20));
        if round % 2 == 0 {
            wire.finish();
        }
        drop(wire);
        // Amid a transaction with locks, and amid a wait for one.
        let mut holder = Wire::login(port);
        holder.send(&wire::query("BEGIN; UPDATE t SET b = 'y' WHERE a = 1"));
        let mut waiter = Wire::login(port);
        waiter.send(&wire::query("BEGIN; UPDATE t SET b = 'z' WHERE a = 1"));
        std::thread::sleep(Duration::from_millis(20));
        drop(waiter);
        drop(holder);
        // Amid a pipeline, amid a message, before the login's end.
        let mut wire = Wire::login(port);
        wire.send(&[wire::parse("", "SELECT * FROM t FOR UPDATE"), wire::bind(&[]), wire::execute(10)].concat());
        drop(wire);
        let mut wire = Wire::login(port);
        wire.send(&wire::query("SELECT 1")[..7]);
        drop(wire);
        let mut wire = Wire::connect(port);
        wire.send(&wire::startup()[..10]);
        drop(wire);
    }
    assert_unlocked(&server, "after ten rounds");
    assert_eq!(number(&mut server.connect(), "SELECT count(*) FROM t"), 20_000);
    assert_eq!(number(&mut server.connect(), "SELECT count(*) FROM t WHERE length(b) = 1000"), 20_000);
    let after = server.resident_mib();
    assert!(after < before + 100, "{before} MiB before, {after} MiB after");
    server.assert_sound();
}

/// A client that does not read stops its own statement only, and costs little.
#[test]
fn clients_that_do_not_read_wait_alone() {
    let Some(server) = with_table(&["--cores", "1"]) else { return };
    let before = server.resident_mib();
    let lazy: Vec<Wire> = (0..20)
        .map(|_| {
            let mut wire = Wire::login(server.nyala.port());
            wire.send(&wire::query("SELECT x.* FROM t AS x, generate_series(1, 1000)"));
            wire
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    assert_eq!(number(&mut server.connect(), "SELECT count(*) FROM t"), 20_000);
    assert!(begun.elapsed() < Duration::from_secs(2));
    let after = server.resident_mib();
    assert!(after < before + 100, "{before} MiB before, {after} MiB with clients that do not read");
    drop(lazy);
    assert_unlocked(&server, "clients that did not read");
    server.assert_sound();
}

#[test]
fn a_crowd_comes_and_goes() {
    let Some(server) = start(&["--max-connections", "1100"]) else { return };
    let port = server.nyala.port();
    let crowd = || {
        let crowd: Vec<Wire> = (0..1000).map(|_| Wire::login(port)).collect();
        let with = server.resident_mib();
        drop(crowd);
        with
    };
    let first = crowd();
    assert_eq!(number(&mut server.connect(), "SELECT 1"), 1);
    let (quiet, mut with) = (server.resident_mib(), 0);
    for _ in 0..3 {
        with = crowd();
    }
    println!("{first} MiB with the first thousand, {quiet} MiB afterwards, {with} MiB with the last thousand");
    assert!(with < first + 30, "each thousand costs more: {first}, then {with} MiB");
    assert!(with < 300, "{with} MiB for a thousand idle connections");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        drop(Wire::connect(port));
        drop(Wire::login(port));
        let mut wire = Wire::login(port);
        wire.send(&wire::message(b'X', b""));
    }
    let after = server.resident_mib();
    assert!(after < with + 30, "{with} MiB before, {after} MiB after many short connections");
    server.assert_sound();
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let Some(server) = start(&["--max-connections", "20"]) else { return };
    let port = server.nyala.port();
    let held: Vec<Wire> = (0..20).map(|_| Wire::login(port)).collect();
    for _ in 0..100 {
        let mut wire = Wire::connect(port);
        wire.send(&wire::startup());
        let (answer, _) = wire.read_until(Duration::from_secs(10), |_| false);
        assert_eq!(wire::errors(&answer), ["53300"]);
    }
    drop(held);
    let begun = Instant::now();
    while testkit::Connection::open(port, "postgres").is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "no connection although all are gone");
    }
    server.assert_sound();
}

#[test]
fn cancel_requests_need_the_key() {
    let Some(server) = with_table(&[]) else { return };
    let mut connection = server.connect();
    connection.send("SELECT count(*) FROM t AS x, t AS y, t AS z");
    for pid in 0..2000u32 {
        let body = [80_877_102u32.to_be_bytes(), pid.to_be_bytes(), 4711u32.to_be_bytes()].concat();
        let mut wire = Wire::connect(server.nyala.port());
        wire.send(&[&16u32.to_be_bytes()[..], &body].concat());
    }
    assert_eq!(connection.receive(Duration::from_millis(200)), None, "cancelled with a wrong key");
    connection.cancel();
    let reply = connection.receive(Duration::from_secs(30)).expect("the right key cancels");
    assert_eq!(reply.code(), "57014");
    server.assert_sound();
}
