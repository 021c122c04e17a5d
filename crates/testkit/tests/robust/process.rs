//! The process and those who handle it: two servers on one directory, signals under load and at the start.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::{Connection, Nyala, Signal, Target};

use super::server::{number, run, start};

/// Time in which a server under load ends.
const END: Duration = Duration::from_secs(15);

#[test]
fn of_servers_that_start_together_on_a_directory_one_serves() {
    if Target::is_postgres() {
        println!("not run: there is no server to start");
        return;
    }
    for _ in 0..5 {
        let directory = tempfile::tempdir().expect("a directory for the server");
        let data = directory.path().join("data");
        std::fs::create_dir(&data).expect("a directory for the data");
        // Each has a name of its own for the directory, so that each has a log of its own.
        let starting: Vec<Nyala> = (0..4)
            .map(|n| {
                let link = directory.path().join(format!("link{n}"));
                std::os::unix::fs::symlink(&data, &link).expect("a link");
                Nyala::launch(&link, Nyala::free_port(), &["--http", "off"])
            })
            .collect();
        let begun = Instant::now();
        let served = |server: &Nyala| Connection::open(server.port(), "postgres").is_ok();
        while !starting.iter().any(served) {
            assert!(begun.elapsed() < Duration::from_secs(30), "none of them serves");
            std::thread::sleep(Duration::from_millis(20));
        }
        while starting.iter().filter(|server| !server.is_gone()).count() > 1 {
            assert!(begun.elapsed() < Duration::from_secs(30), "two of them live");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut lives = 0;
        for server in starting {
            let said = server.stderr();
            if served(&server) {
                lives += 1;
                run(&mut server.connect(), "CREATE TABLE t (a int)");
                assert_eq!(server.terminate(), 0);
                continue;
            }
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.contains("is in use by another server"), "{said}");
            assert_eq!(server.wait(), 1);
        }
        assert_eq!(lives, 1);
    }
}

/// While the first reads its log back, the directory is already taken.
#[test]
fn a_directory_is_taken_while_it_is_loaded() {
    let Some(server) = start(&[]) else { return };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int PRIMARY KEY, b text); CREATE INDEX ON t (b)");
    run(&mut connection, "INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 100000) AS g (i)");
    let (directory, nyala) = server.parts();
    let data = directory.path().join("data");
    let port = nyala.port();
    nyala.kill();
    let said = |data: &Path| std::fs::metadata(data.with_extension("stderr")).map_or(0, |file| file.len());
    let before = said(&data);
    let first = Nyala::launch(&data, port, &[]);
    // Its first words come when the directory is its own.
    while said(&data) == before {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut refused = 0;
    while Connection::open(port, "postgres").is_err() {
        let link = data.with_file_name("second");
        let _ = std::os::unix::fs::symlink(&data, &link);
        let second = Nyala::launch(&link, Nyala::free_port(), &["--http", "off"]);
        let begun = Instant::now();
        while !second.is_gone() && Connection::open(second.port(), "postgres").is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "neither refused nor serving");
        }
        let said = second.stderr();
        assert_eq!(second.wait(), 1);
        assert!(said.contains("is in use by another server"), "{said}");
        refused += 1;
    }
    println!("{refused} refused while the first was loading");
    drop(first);
    let server = Nyala::start(&data, port);
    assert_eq!(number(&mut server.connect(), "SELECT count(*) FROM t"), 100_000);
    assert_eq!(server.terminate(), 0);
}

/// Clients at work: inserts whose keys are known, one transaction that stays open, one that waits for its lock, a long query.
fn under_load(signals: &[Signal]) {
    let Some(server) = start(&["--checkpoint-log", "1MB"]) else { return };
    run(&mut server.connect(), "CREATE TABLE t (a bigint PRIMARY KEY, b text); CREATE TABLE locked (a int)");
    run(&mut server.connect(), "INSERT INTO locked VALUES (1)");
    let clients: Vec<_> = (0..6)
        .map(|me| {
            let mut connection = server.connect();
            std::thread::spawn(move || {
                let mut acknowledged = BTreeSet::new();
                for n in 0.. {
                    let key: i64 = n * 6 + me;
                    let reply = connection.query(&format!("INSERT INTO t VALUES ({key}, repeat('x', 300))"));
                    match (reply.status, reply.code()) {
                        (Some(_), "00000") => _ = acknowledged.insert(key),
                        (None, "57P01") => break,
                        _ => panic!("{reply}"),
                    }
                }
                acknowledged
            })
        })
        .collect();
    let mut holder = server.connect();
    run(&mut holder, "BEGIN; UPDATE locked SET a = 2");
    let mut waiter = server.connect();
    waiter.send("UPDATE locked SET a = 3");
    let mut long = server.connect();
    long.send("SELECT count(*) FROM generate_series(1, 1000000000)");
    let mut copy = server.connect();
    copy.send("COPY (SELECT * FROM generate_series(1, 1000000000)) TO STDOUT");
    std::thread::sleep(Duration::from_millis(700));
    let (directory, nyala) = server.parts();
    let data = directory.path().join("data");
    let port = nyala.port();
    let begun = Instant::now();
    for signal in signals {
        nyala.signal(*signal);
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = data.with_extension("stderr");
    assert_eq!(nyala.wait(), 0, "{}", std::fs::read_to_string(&said).unwrap_or_default());
    let took = begun.elapsed();
    println!("{signals:?}: ended after {took:?}");
    assert!(took < END, "{took:?}");
    let acknowledged: BTreeSet<i64> = clients.into_iter().flat_map(|c| c.join().expect("a client ends")).collect();
    let server = Nyala::start(&data, port);
    let reply = run(&mut server.connect(), "SELECT a FROM t");
    let found: BTreeSet<i64> = reply.rows().filter_map(|row| row[0].as_deref()?.parse().ok()).collect();
    assert!(acknowledged.is_subset(&found), "{} acknowledged, {} found", acknowledged.len(), found.len());
    assert!(found.len() <= acknowledged.len() + 6);
    assert_eq!(number(&mut server.connect(), "SELECT a FROM locked"), 1, "a transaction that was open is not there");
    let said = server.stderr();
    assert!(said.contains("ended; the log is durable") && !said.contains("panic"), "{said}");
    assert_eq!(server.terminate(), 0);
}

#[test]
fn sigterm_under_load_is_an_orderly_end() {
    under_load(&[Signal::TERM]);
}

#[test]
fn sigint_under_load_is_an_orderly_end() {
    under_load(&[Signal::INT]);
}

#[test]
fn more_signals_do_not_make_it_less_orderly() {
    under_load(&[Signal::TERM, Signal::INT, Signal::HUP, Signal::TERM]);
}

/// A client that does not read may delay the end by some seconds, unless a second signal says that nobody wants to wait.
#[test]
fn a_second_signal_does_not_wait_for_clients() {
    let Some(server) = start(&[]) else { return };
    run(&mut server.connect(), "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let mut lazy = super::wire::Wire::login(server.nyala.port());
    lazy.send(&super::wire::query("COPY (SELECT * FROM generate_series(1, 1000000000)) TO STDOUT"));
    std::thread::sleep(Duration::from_millis(500));
    let (directory, nyala) = server.parts();
    let port = nyala.port();
    let begun = Instant::now();
    nyala.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    // Its last words may have gone to the system by now, and the server with them.
    nyala.signal(Signal::TERM);
    assert_eq!(nyala.wait(), 0);
    println!("ended after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let server = Nyala::start(&directory.path().join("data"), port);
    assert_eq!(number(&mut server.connect(), "SELECT count(*) FROM t"), 1);
    assert_eq!(server.terminate(), 0);
}

/// SIGTERM at any moment of a start is an end: with 0 if the server was ready to take it, else by the signal, and the
/// directory is as it was.
#[test]
fn sigterm_while_it_starts() {
    let Some(server) = start(&[]) else { return };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int PRIMARY KEY, b text); CREATE INDEX ON t (b)");
    run(&mut connection, "INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 50000) AS g (i)");
    let (directory, nyala) = server.parts();
    let data = directory.path().join("data");
    let port = nyala.port();
    nyala.kill();
    for wait in [1, 5, 20, 50, 100, 200, 300, 400] {
        let starting = Nyala::launch(&data, port, &[]);
        std::thread::sleep(Duration::from_millis(wait));
        let begun = Instant::now();
        starting.signal(Signal::TERM);
        let code = starting.wait();
        println!("SIGTERM after {wait} ms: exit code {code} after {:?}", begun.elapsed());
        assert!(code == 0 || code == 143, "exit code {code}");
        assert!(begun.elapsed() < END);
    }
    let server = Nyala::start(&data, port);
    assert_eq!(number(&mut server.connect(), "SELECT count(*) FROM t"), 50_000);
    assert_eq!(server.terminate(), 0);
}

/// SIGHUP again and again, under load: files are read, nothing is lost and nobody is thrown out.
#[test]
fn sighup_under_load_changes_nothing() {
    let Some(server) = start(&[]) else { return };
    run(&mut server.connect(), "CREATE TABLE t (a bigint PRIMARY KEY)");
    let stop = AtomicBool::new(false);
    let done: i64 = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3)
            .map(|me| {
                let (mut connection, stop) = (server.connect(), &stop);
                scope.spawn(move || {
                    let mut done = 0;
                    while !stop.load(Ordering::Relaxed) {
                        run(&mut connection, &format!("INSERT INTO t VALUES ({})", done * 3 + me));
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        for _ in 0..50 {
            server.nyala.signal(Signal::HUP);
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().expect("a client ends")).sum()
    });
    assert_eq!(number(&mut server.connect(), "SELECT count(*) FROM t"), done);
    assert!(server.nyala.stderr().contains("configuration files are read"), "{}", server.nyala.stderr());
    server.assert_sound();
}
