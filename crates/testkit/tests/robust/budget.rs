//! The limit of memory, with several clients: growth is slowed down before it and refused at it, by name; reads, deletes and
//! administration continue; freed memory can be used again. Nothing is ended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::pages::{get, sample};
use testkit::{Connection, Nyala, Reply};

use super::server::{Server, number, run, start};

/// About 1 MB.
const SOME: &str = "INSERT INTO filler SELECT i, repeat('x', 1000) FROM generate_series(1, 1000) AS g (i)";
const LIMIT: i64 = 64 << 20;

fn small() -> Option<Server> {
    small_with(&[])
}

fn small_with(flags: &[&str]) -> Option<Server> {
    let server = start(&[&["--memory-limit", "64MB"], flags].concat())?;
    run(
        &mut server.connect(),
        "CREATE TABLE filler (a int, b text); CREATE INDEX filler_a ON filler (a); \
         CREATE TABLE hot (a int PRIMARY KEY, n int NOT NULL, b text); \
         INSERT INTO hot SELECT i, 0, repeat('h', 200) FROM generate_series(1, 100) AS g (i)",
    );
    Some(server)
}

fn kind(connection: &mut Connection, kind: &str) -> i64 {
    number(connection, &format!("SELECT bytes FROM nyala_memory WHERE kind = '{kind}'"))
}

/// What counts against the limit, but for what is free beyond what may be.
fn used(connection: &mut Connection) -> i64 {
    number(
        connection,
        "SELECT sum(bytes) FILTER (WHERE kind = 'total') - sum(bytes) FILTER (WHERE kind = 'free') FROM nyala_memory",
    )
}

/// The refusal says what is full and of what.
fn names_what_is_full(reply: &Reply) {
    let error = reply.error().expect("it is refused");
    assert_eq!(error.message, "out of memory for rows and indexes");
    let detail = error.detail.as_deref().unwrap_or_default();
    assert!(detail.contains("row versions"), "{detail}");
    assert!(detail.contains("The largest table is \"public.filler\""), "{detail}");
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("memory_limit")), "{reply}");
}

/// Several clients insert until each was refused, and one then until nothing fits into what the refused ones gave back;
/// how many statements of the several went through.
fn fill(server: &Server) -> usize {
    let insert = || {
        let mut connection = server.connect();
        for done in 0..200 {
            let reply = connection.query(SOME);
            match reply.code() {
                "00000" => {}
                "53200" => {
                    names_what_is_full(&reply);
                    return done;
                }
                _ => panic!("{reply}"),
            }
        }
        panic!("a limit of 64 MB does not hold");
    };
    let done = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(insert)).collect();
        clients.into_iter().map(|client| client.join().expect("a client")).sum()
    });
    let mut connection = server.connect();
    let mut refused = 0;
    while refused < 2 {
        refused = if connection.query(SOME).code() == "53200" { refused + 1 } else { 0 };
        // What refused statements leave goes in its own time.
        std::thread::sleep(Duration::from_millis(300));
    }
    done
}

/// There is room for a statement again, soon.
fn recovers(connection: &mut Connection, after: &str) {
    let begun = Instant::now();
    while connection.query(SOME).code() == "53200" {
        assert!(begun.elapsed() < Duration::from_secs(30), "{after} makes no room");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn clients_are_slowed_down_then_refused_and_reading_goes_on() {
    let http = Nyala::free_port();
    let Some(server) = small_with(&["--http", &format!("127.0.0.1:{http}")]) else { return };
    let waits = |end: &str| {
        let (_, page) = get(http, "/metrics").expect("figures are told");
        sample(&page, &format!("nyala_memory_waits_total{{end=\"{end}\"}}"))
    };
    assert_eq!((waits("delayed"), waits("refused")), (0.0, 0.0));
    let done = fill(&server);
    assert!(done > 30, "{done} MB fit only");
    let mut connection = server.connect();
    let used = used(&mut connection);
    assert!(used > LIMIT * 9 / 10 && used < LIMIT * 17 / 16, "{used}");
    // More waits than refusals: growth waited before it was refused. How long is tested where the clock is simulated (`engine::memory::throttle`).
    let (delayed, refused) = (waits("delayed"), waits("refused"));
    assert!(refused >= 5.0 && delayed > refused, "{delayed} delayed, {refused} refused");
    println!("{done} MB fit; {} MiB resident", server.resident_mib());

    // Reading, monitoring, new sessions, savepoints, settings.
    let mut other = server.connect();
    assert_eq!(number(&mut other, "SELECT count(*) FROM hot"), 100);
    assert!(number(&mut other, "SELECT count(*) FROM filler") >= 30_000);
    assert_eq!(number(&mut other, "SELECT count(*) FROM (SELECT a FROM filler ORDER BY a DESC LIMIT 10) AS q"), 10);
    let largest = "SELECT relname FROM nyala_table_memory ORDER BY total_bytes DESC LIMIT 1";
    assert_eq!(run(&mut other, largest).value(), Some("filler"));
    assert!(number(&mut other, "SELECT count(*) FROM pg_stat_activity") >= 2);
    assert_eq!(run(&mut other, "SHOW memory_limit").value(), Some("64MB"));
    run(&mut other, "BEGIN; SAVEPOINT s");
    assert_eq!(other.query(SOME).code(), "53200");
    run(&mut other, "ROLLBACK TO s; DELETE FROM hot WHERE a = 1; COMMIT");
    run(&mut other, "CREATE ROLE somebody; ALTER TABLE hot ALTER COLUMN b SET DEFAULT 'x'; CHECKPOINT; ANALYZE hot");
    // Whatever makes memory grow is refused, in its own way.
    assert_eq!(other.query("CREATE INDEX ON filler (b)").code(), "53200");
    assert_eq!(other.query("CREATE TABLE copied AS SELECT * FROM filler").code(), "53200");
    assert_eq!(other.query("INSERT INTO hot SELECT i, 0 FROM generate_series(101, 100000) AS g (i)").code(), "53200");
    let line = format!("{}\t{}\n", 1, "y".repeat(1000));
    assert_eq!(other.copy("COPY filler FROM STDIN", &line.repeat(5000)).code(), "53200");
    assert_eq!(number(&mut other, "SELECT count(*) FROM hot"), 99);

    // A delete is never refused, and makes room.
    for _ in 0..5 {
        run(&mut connection, "DELETE FROM filler WHERE a % 5 = 0");
        run(&mut connection, "DELETE FROM filler WHERE a <= 500");
    }
    recovers(&mut connection, "DELETE");
    run(&mut connection, "TRUNCATE filler");
    recovers(&mut connection, "TRUNCATE");
    assert!(server.peak_mib() < 64 + 160, "{} MiB at most", server.peak_mib());
    server.assert_sound();
}

/// Rows that change again and again need no more memory than their versions that somebody may see.
#[test]
fn hot_rows_change_at_the_limit() {
    let Some(server) = small() else { return };
    fill(&server);
    let mut connection = server.connect();
    let (done, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in 0..3 {
            let (done, refused, stop, server) = (&done, &refused, &stop, &server);
            scope.spawn(move || {
                let mut connection = server.connect();
                while !stop.load(Ordering::Relaxed) {
                    let sql = format!("UPDATE hot SET n = n + 1, b = repeat('u', 200) WHERE a = {}", client + 1);
                    match connection.query(&sql).code() {
                        "00000" => done.fetch_add(1, Ordering::Relaxed),
                        "53200" => refused.fetch_add(1, Ordering::Relaxed),
                        code => panic!("{code}"),
                    };
                }
            });
        }
        // A reader that pins versions makes it no worse than that.
        let mut reader = server.connect();
        run(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert_eq!(number(&mut reader, "SELECT sum(n) FROM hot WHERE a > 3"), 0);
        std::thread::sleep(Duration::from_secs(3));
        let used = used(&mut connection);
        run(&mut reader, "COMMIT");
        stop.store(true, Ordering::Relaxed);
        assert!(used < LIMIT * 9 / 8, "{used}");
    });
    let (done, refused) = (done.into_inner(), refused.into_inner());
    println!("{done} updates at the limit, {refused} refused");
    assert!(done > 0, "updates fit into what is kept for them");
    assert_eq!(number(&mut connection, "SELECT sum(n) FROM hot"), done as i64);
    run(&mut connection, "DELETE FROM filler");
    recovers(&mut connection, "DELETE");
    server.assert_sound();
}

/// A writer that an old view leaves no room for is told so, and by whose view; other garbage goes meanwhile.
#[test]
fn a_writer_beside_an_old_view_is_refused_and_told_whose_it_is() {
    let Some(server) = start(&["--memory-limit", "64MB"]) else { return };
    let mut connection = server.connect();
    run(
        &mut connection,
        "CREATE TABLE t (a int PRIMARY KEY, n int, b text); \
         INSERT INTO t SELECT i, 0, repeat('x', 180) FROM generate_series(1, 100000) AS g (i)",
    );
    let mut reader = server.connect();
    run(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(number(&mut reader, "SELECT sum(n) FROM t"), 0);
    let pid = number(&mut reader, "SELECT pg_backend_pid()");
    run(&mut connection, "UPDATE t SET n = n + 1");
    // Parts of the table change again and again: of their versions two are seen, by the reader and by all others.
    for _ in 0..5 {
        run(&mut connection, "UPDATE t SET n = n + 1 WHERE a <= 10000");
    }
    let versions = "SELECT version_count FROM nyala_table_memory WHERE relname = 't'";
    let begun = Instant::now();
    while number(&mut connection, versions) > 200_000 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} versions stay", number(&mut connection, versions));
        std::thread::sleep(Duration::from_millis(50));
    }
    connection.send("UPDATE t SET n = n + 1");
    let reply = connection.receive(Duration::from_secs(120)).expect("it does not wait without end");
    assert_eq!(reply.code(), "53200", "{reply}");
    let error = reply.error().expect("it is refused");
    let detail = error.detail.as_deref().unwrap_or_default();
    assert!(detail.contains(&format!("old versions stay for the view of the process with PID {pid}.")), "{detail}");
    assert!(
        error.hint.as_deref().is_some_and(|hint| hint.contains(&format!("End the transaction of {pid}"))),
        "{reply}"
    );
    assert_eq!(number(&mut reader, "SELECT sum(n) FROM t"), 0);
    run(&mut reader, "COMMIT");
    let begun = Instant::now();
    while connection.query("UPDATE t SET n = n + 1").code() == "53200" {
        assert!(begun.elapsed() < Duration::from_secs(60), "the end of the view makes no room");
        std::thread::sleep(Duration::from_millis(100));
    }
    server.assert_sound();
}

/// Who waits for memory can be cancelled and times out, and is seen.
#[test]
fn waits_for_memory_end_by_cancel_and_timeout() {
    let Some(server) = small() else { return };
    fill(&server);
    let mut connection = server.connect();
    run(&mut connection, "SET statement_timeout = 100");
    let begun = Instant::now();
    assert_eq!(connection.query(SOME).code(), "57014", "it waits longer than that before it is refused");
    assert!(begun.elapsed() < Duration::from_secs(5));
    run(&mut connection, "SET statement_timeout = 0");
    let refused = Instant::now();
    assert_eq!(connection.query(SOME).code(), "53200");
    assert!(refused.elapsed() >= Duration::from_millis(200), "refused at once: {:?}", refused.elapsed());
    // It is not forgotten that room came while somebody waited.
    run(&mut server.connect(), "TRUNCATE filler");
    recovers(&mut connection, "TRUNCATE");
    server.assert_sound();
}

/// The limit is a setting of the server: raised, what was refused goes on.
#[test]
fn the_limit_is_changed_while_the_server_runs() {
    let Some(server) = small() else { return };
    fill(&server);
    let mut connection = server.connect();
    assert_eq!(connection.query("SET memory_limit = '1GB'").code(), "55P02");
    run(&mut connection, "ALTER SYSTEM SET memory_limit = '128MB'");
    // Refused statements give back what they took in their own time, so that a few more fit; not twice as many as fill it.
    assert!((0..10).any(|_| connection.query(SOME).code() == "53200"), "a limit holds that nobody has loaded");
    run(&mut connection, "SELECT pg_reload_conf()");
    assert_eq!(run(&mut connection, "SHOW memory_limit").value(), Some("128MB"));
    run(&mut connection, SOME);
    let server = server.restart_after_kill();
    let mut connection = server.connect();
    assert_eq!(run(&mut connection, "SHOW memory_limit").value(), Some("128MB"));
    run(&mut connection, "ALTER SYSTEM RESET memory_limit");
    run(&mut connection, "SELECT pg_reload_conf()");
    assert_eq!(number(&mut connection, "SELECT limit_bytes FROM nyala_memory WHERE kind = 'total'"), LIMIT);
    server.assert_sound();
}

/// Every kind of operator that keeps rows has a budget; beyond it the statement fails and the session goes on.
#[test]
fn operators_have_a_budget() {
    let Some(server) = small() else { return };
    let mut connection = server.connect();
    let many = "generate_series(1, 5000000) AS g (i)";
    for (operator, sql) in [
        ("sort", format!("SELECT count(*) FROM (SELECT i FROM {many} ORDER BY -i) AS q")),
        ("hash join", format!("SELECT count(*) FROM {many} JOIN generate_series(1, 5000000) AS h (j) ON i = j")),
        ("aggregate", format!("SELECT count(*) FROM (SELECT i, count(*) FROM {many} GROUP BY i) AS q")),
        ("window", format!("SELECT max(w) FROM (SELECT sum(i) OVER (ORDER BY -i) AS w FROM {many}) AS q")),
        ("CTE", format!("WITH q AS MATERIALIZED (SELECT i FROM {many}) SELECT count(*) FROM q JOIN q AS r USING (i)")),
        ("DISTINCT", format!("SELECT count(*) FROM (SELECT DISTINCT i FROM {many}) AS q")),
        (
            "recursion",
            "WITH RECURSIVE q (i) AS (VALUES (1) UNION SELECT i + 1 FROM q WHERE i < 5000000) SELECT count(*) FROM q"
                .to_string(),
        ),
    ] {
        connection.send(&sql);
        let reply =
            connection.receive(Duration::from_secs(120)).unwrap_or_else(|| panic!("{operator} goes on for ever"));
        assert_eq!(reply.code(), "53200", "{operator}: {reply}");
        let left = kind(&mut connection, "statements");
        assert!(left < 1 << 20, "{operator} leaves {left} bytes");
    }
    assert_eq!(
        number(
            &mut connection,
            "SELECT count(*) FROM (SELECT i FROM generate_series(1, 50000) AS g (i) ORDER BY -i) AS q"
        ),
        50_000
    );
    server.assert_sound();
}
