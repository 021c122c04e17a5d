//! Statements for which several threads read: that they do, and that they end with the statement. What they answer is compared with PostgreSQL in
//! `tests/slt/parallel.slt`.

use std::fs;
use std::time::{Duration, Instant};

use testkit::{Connection, Target};

const TABLE: &str =
    "CREATE TABLE big AS SELECT g AS id, g % 10 AS k, repeat('x', g % 50) AS t FROM generate_series(1, 100000) g";

/// An aggregation that takes some seconds.
const LONG: &str = "SELECT count(*) FROM big WHERE regexp_replace(repeat(t, 20), '(x+)(x+)y', 'z') = md5(t)";

fn filled() -> (Target, Connection) {
    let target = Target::start();
    let mut connection = target.connect();
    assert_eq!(connection.query(TABLE).error(), None);
    assert_eq!(connection.query("ANALYZE big").error(), None);
    (target, connection)
}

/// Threads that work for statements.
fn assistants(target: &Target) -> usize {
    let Target::Nyala { server, .. } = target else { return 0 };
    let tasks = fs::read_dir(format!("/proc/{}/task", server.pid())).expect("the server lives");
    let names = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "assistant").count()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what} takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn several_threads_read() {
    let (target, mut connection) = filled();
    if Target::is_postgres() || std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("not run: there are no threads to spare");
        return;
    }
    let launched = |connection: &mut Connection, sql: &str| {
        let plan = connection.query(&format!("EXPLAIN ANALYZE {sql}")).to_string();
        assert!(plan.contains("Workers Planned: 2") && plan.contains("Parallel Seq Scan on big"), "{sql}\n{plan}");
        plan.contains("Workers Launched: 1")
    };
    for sql in [
        "SELECT k, count(*) FROM big GROUP BY k",
        "SELECT * FROM big WHERE t = 'xxx' AND k = 4",
        "SELECT count(*) FROM big a JOIN big b USING (id) WHERE b.k = 3",
    ] {
        // The worker of the statement before may not have ended, and the machine may have one to spare only.
        wait_until(&format!("a worker for {sql}"), || launched(&mut connection, sql));
    }
    // A transaction that has changed something reads alone.
    assert_eq!(connection.query("BEGIN; INSERT INTO big VALUES (0, 0, '')").error(), None);
    assert!(!launched(&mut connection, "SELECT count(*) FROM big"));
    assert_eq!(connection.query("ROLLBACK").error(), None);
    wait_until("the end of the workers", || assistants(&target) == 0);
}

#[test]
fn workers_end_with_their_statement() {
    let (target, mut connection) = filled();
    assert_eq!(connection.query("SET statement_timeout = 200").error(), None);
    assert_eq!(connection.query(LONG).code(), "57014");
    assert_eq!(connection.query("RESET statement_timeout").error(), None);
    wait_until("the end of the workers", || assistants(&target) == 0);
    // One that fails stops the others; the session goes on.
    assert_eq!(connection.query("SELECT sum(1 / (id - 99000)) FROM big").code(), "22012");
    assert_eq!(connection.query("SELECT sum(1 / (id - 3)) FROM big").code(), "22012");
    assert_eq!(connection.query("SELECT count(*) FROM big").value(), Some("100000"));
    // The client goes in the middle of it.
    wait_until("the end of the workers", || assistants(&target) == 0);
    let mut gone = target.connect();
    gone.send(LONG);
    if !Target::is_postgres() && std::thread::available_parallelism().is_ok_and(|all| all.get() > 1) {
        wait_until("the beginning of the workers", || assistants(&target) > 0);
    }
    drop(gone);
    assert_eq!(connection.query("DROP TABLE big").error(), None);
    wait_until("the end of the workers", || assistants(&target) == 0);
    assert_eq!(connection.query(TABLE).error(), None);
    assert_eq!(connection.query("SELECT count(*), max(length(t)) FROM big WHERE k = 3").rows().count(), 1);
}
