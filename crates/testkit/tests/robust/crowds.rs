//! More clients than there are places, clients that say nothing, clients that never read.

use std::time::{Duration, Instant};

use testkit::Connection;

use super::server::{Server, number, run, start};
use super::wire::{self, End, Wire};

const TOO_MANY: &str = "sorry, too many clients already";
const RESERVED: &str = "remaining connection slots are reserved for non-replication superuser connections";

/// Logs in as `user`; the text of the error if that is refused.
fn login(port: u16, user: &str) -> Result<Wire, String> {
    let mut wire = Wire::connect(port);
    wire.send(&wire::startup_of(user));
    let (answer, _) = wire.read_until(Duration::from_secs(30), |bytes| bytes.ends_with(b"Z\0\0\0\x05I"));
    if answer.ends_with(b"Z\0\0\0\x05I") { Ok(wire) } else { Err(String::from_utf8_lossy(&answer).replace('\0', "|")) }
}

fn assert_refused(answer: &Result<Wire, String>, with: &str) {
    let Err(said) = answer else { panic!("let in, although there is no place") };
    // As in PostgreSQL, who is told that the last places are not for him has proved who he is.
    assert!(said.contains("SFATAL|") && said.contains("C53300|"), "{said}");
    assert!(said.contains(&format!("M{with}|")), "{said}");
}

#[test]
fn the_last_places_are_for_superusers() {
    let Some(server) = start(&["--max-connections", "10"]) else { return };
    let port = server.nyala.port();
    run(&mut server.connect(), "CREATE ROLE app LOGIN");
    std::thread::sleep(Duration::from_millis(100));
    let mut apps: Vec<Wire> = (0..7).map(|_| login(port, "app").expect("a place")).collect();
    assert_refused(&login(port, "app"), RESERVED);
    let mut supers: Vec<Wire> = (0..3).map(|_| login(port, "postgres").expect("a place that is kept")).collect();
    for user in ["app", "postgres"] {
        assert_refused(&login(port, user), TOO_MANY);
    }
    // Ends of superusers make no place for others, ends of others do.
    supers.pop();
    std::thread::sleep(Duration::from_millis(200));
    assert_refused(&login(port, "app"), RESERVED);
    apps.truncate(4);
    std::thread::sleep(Duration::from_millis(200));
    apps.push(login(port, "app").expect("a place again"));
    assert_refused(&login(port, "app"), RESERVED);
    assert_eq!(number(&mut Connection::open(port, "postgres").expect("the last place"), "SELECT 1"), 1);
    drop((apps, supers));
    std::thread::sleep(Duration::from_millis(200));
    server.assert_sound();
}

/// Connections that never say who they are take no place from those that do.
#[test]
fn silent_connections_take_no_places() {
    let Some(server) = start(&["--max-connections", "10"]) else { return };
    let port = server.nyala.port();
    let mut silent: Vec<Wire> = (0..18).map(|_| Wire::connect(port)).collect();
    // The acceptor has looked at them in vain by then.
    std::thread::sleep(Duration::from_millis(1500));
    let clients: Vec<Wire> = (0..10).map(|_| login(port, "postgres").expect("a place")).collect();
    assert_refused(&login(port, "postgres"), TOO_MANY);
    drop(clients);
    for wire in &mut silent[..9] {
        wire.send(&wire::startup());
        let (answer, _) = wire.read_until(Duration::from_secs(10), |bytes| bytes.ends_with(b"Z\0\0\0\x05I"));
        assert!(answer.ends_with(b"I"), "a late one is let in");
    }
    drop(silent);
    std::thread::sleep(Duration::from_millis(200));
    server.assert_sound();
}

/// A connection that does not log in ends after a minute (`authentication_timeout`).
#[test]
fn silent_connections_end() {
    let Some(server) = start(&[]) else { return };
    let port = server.nyala.port();
    let begun = Instant::now();
    let mut silent = Wire::connect(port);
    let mut half = Wire::connect(port);
    half.send(&wire::startup()[..20]);
    for wire in [&mut silent, &mut half] {
        let (_, end) = wire.read_until(Duration::from_secs(75), |_| false);
        assert_eq!(end, End::Closed, "after {:?}", begun.elapsed());
    }
    assert!(begun.elapsed() > Duration::from_secs(55), "only {:?}", begun.elapsed());
    server.assert_sound();
}

/// Thousands come at once; those for whom there is no place are told so, and afterwards all is as before.
#[test]
fn a_storm_of_connections() {
    let Some(server) = start(&["--max-connections", "100"]) else { return };
    let port = server.nyala.port();
    let before = server.resident_mib();
    let begun = Instant::now();
    let (mut served, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let crowd: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(move || {
                    let (mut served, mut refused) = (0, 0);
                    for _ in 0..12 {
                        // So many are open at a time that all threads together have twice the places and more.
                        let mut wires: Vec<Wire> = (0..15).map(|_| Wire::connect(port)).collect();
                        wires.iter_mut().for_each(|wire| _ = wire.send(&wire::startup()));
                        for wire in &mut wires {
                            let (answer, _) =
                                wire.read_until(Duration::from_secs(30), |bytes| bytes.ends_with(b"Z\0\0\0\x05I"));
                            match wire::errors(&answer)[..] {
                                [] if answer.ends_with(b"Z\0\0\0\x05I") => served += 1,
                                [ref code] if code == "53300" => refused += 1,
                                _ => panic!("neither served nor refused: {:?}", String::from_utf8_lossy(&answer)),
                            }
                        }
                    }
                    (served, refused)
                })
            })
            .collect();
        for (s, r) in crowd.into_iter().map(|thread| thread.join().expect("each is answered")) {
            (served, refused) = (served + s, refused + r);
        }
    });
    println!("{served} served, {refused} refused in {:?}", begun.elapsed());
    assert!(served > 100, "{served} of {}", served + refused);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(
        number(&mut server.connect(), "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"),
        1
    );
    let after = server.resident_mib();
    assert!(after < before + 150, "{before} MiB before, {after} MiB after");
    server.assert_sound();
}

fn with_rows(flags: &[&'static str]) -> Option<Server> {
    let server = start(flags)?;
    run(&mut server.connect(), "CREATE TABLE t (a int PRIMARY KEY, b text)");
    run(&mut server.connect(), "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 10000) AS g (i)");
    Some(server)
}

/// A client that has asked for more than it will ever read holds its locks and its memory no longer than somebody lets it.
#[test]
fn a_client_that_stops_reading_can_be_ended() {
    let Some(server) = with_rows(&["--cores", "1"]) else { return };
    let port = server.nyala.port();
    let before = server.resident_mib();
    for sql in [
        "BEGIN; UPDATE t SET b = b WHERE a = 1; SELECT x.* FROM t AS x, t AS y",
        "COPY (SELECT x.* FROM t AS x, t AS y) TO STDOUT",
    ] {
        let mut lazy = login(port, "postgres").expect("a place");
        lazy.send(&wire::query(sql));
        std::thread::sleep(Duration::from_millis(500));
        let mut other = server.connect();
        let busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%t AS y%' AND pid <> pg_backend_pid()";
        assert_eq!(number(&mut other, busy), 1);
        assert!(server.resident_mib() < before + 50, "{} MiB, {before} before", server.resident_mib());
        // Its statement is not stopped by a cancel request as long as it waits for its client, but its connection can be ended.
        let begun = Instant::now();
        let end = "SELECT pg_terminate_backend(pid)::int FROM pg_stat_activity WHERE query LIKE '%t AS y%' AND pid <> pg_backend_pid()";
        assert_eq!(number(&mut other, end), 1);
        run(&mut other, "SET lock_timeout = '10s'");
        run(&mut other, "UPDATE t SET b = b WHERE a = 1");
        while number(&mut other, busy) > 0 {
            assert!(begun.elapsed() < Duration::from_secs(10), "it is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
        println!("{sql}: gone after {:?}", begun.elapsed());
        drop(lazy);
    }
    server.assert_sound();
}

/// Pipelines without end from clients that never read: they are not read any further, and others do not notice.
#[test]
fn pipelines_that_nobody_reads_are_held_back() {
    let Some(server) = with_rows(&["--cores", "1"]) else { return };
    let port = server.nyala.port();
    let before = server.resident_mib();
    let statement =
        [wire::parse("", "SELECT b FROM t WHERE a <= 100"), wire::bind(&[]), wire::execute(0), wire::sync()]
            .concat()
            .repeat(100);
    let senders: Vec<_> = (0..10)
        .map(|_| {
            let statement = statement.clone();
            std::thread::spawn(move || {
                let mut wire = login(port, "postgres").expect("a place");
                let begun = Instant::now();
                let mut sent = 0usize;
                while begun.elapsed() < Duration::from_secs(3) && sent < 1 << 30 {
                    wire.0.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout above zero is valid");
                    if !wire.send(&statement) {
                        break;
                    }
                    sent += statement.len();
                }
                (wire, sent)
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    let mut longest = Duration::ZERO;
    let mut other = server.connect();
    for _ in 0..50 {
        let begun = Instant::now();
        assert_eq!(number(&mut other, "SELECT count(*) FROM t WHERE a = 77"), 1);
        longest = longest.max(begun.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    let during = server.resident_mib();
    let sent: Vec<usize> = senders.into_iter().map(|sender| sender.join().expect("it sends").1).collect();
    println!("{before} MiB before, {during} MiB during; sent {sent:?}; the longest select beside took {longest:?}");
    assert!(during < before + 100, "{before} MiB before, {during} MiB with pipelines that nobody reads");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    server.assert_sound();
}
