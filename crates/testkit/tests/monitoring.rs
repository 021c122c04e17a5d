//! What the server tells of its sessions and statements, and who may look and stop.

use std::time::{Duration, Instant};

use testkit::{Connection, Event, Nyala, Reply};

/// The rows of an answer as text, columns joined by `|`.
fn rows(connection: &mut Connection, sql: &str) -> Vec<String> {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
    let shown = |value: &Option<String>| value.clone().unwrap_or_default();
    let row = |event: &Event| match event {
        Event::Row(values) => Some(values.iter().map(shown).collect::<Vec<_>>().join("|")),
        _ => None,
    };
    reply.events.iter().filter_map(row).collect()
}

/// The SQLSTATE of an error.
fn code(reply: &Reply) -> Option<&str> {
    reply.error().map(|error| error.code.as_str())
}

fn one(connection: &mut Connection, sql: &str) -> String {
    rows(connection, sql).join("\n")
}

fn start(flags: &[&str]) -> (Nyala, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let mut all = vec!["--http", "off"];
    all.extend(flags);
    (Nyala::start_with(&directory.path().join("data"), Nyala::free_port(), &all), directory)
}

/// Asks until the answer is the one expected.
fn until(connection: &mut Connection, sql: &str, expected: &str) {
    let start = Instant::now();
    loop {
        let answer = one(connection, sql);
        if answer == expected {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{sql}\n{answer}\n{expected}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn sessions_say_what_they_do_and_can_be_stopped() {
    let (server, _directory) = start(&[]);
    let mut admin = server.connect();
    let mut worker = server.connect();
    let pid = one(&mut worker, "SELECT pg_backend_pid()");
    let state = format!(
        "SELECT state, query, wait_event_type, wait_event, application_name, xact_start IS NULL FROM pg_stat_activity WHERE pid = {pid}"
    );
    let idle = "idle|SELECT pg_backend_pid()|Client|ClientRead|testkit|t";
    assert_eq!(one(&mut admin, &state), idle);
    assert_eq!(worker.query("CREATE TABLE t (a int PRIMARY KEY, b int)").error(), None);
    assert_eq!(worker.query("INSERT INTO t VALUES (1, 1), (2, 2)").error(), None);
    assert_eq!(worker.query("BEGIN").error(), None);
    assert_eq!(one(&mut admin, &state), "idle in transaction|BEGIN|Client|ClientRead|testkit|f");
    let me = "SELECT state, usename, datname, backend_type, client_addr, query_start >= backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()";
    assert_eq!(one(&mut admin, me), "active|postgres|postgres|client backend|127.0.0.1|t");

    // A lock is waited for, and the wait is cancelled.
    assert_eq!(admin.query("BEGIN").error(), None);
    assert_eq!(admin.query("UPDATE t SET b = 5 WHERE a = 1").error(), None);
    worker.send("UPDATE t SET b = 6 WHERE a = 1");
    until(&mut admin, &state, "active|UPDATE t SET b = 6 WHERE a = 1|Lock|transactionid|testkit|f");
    assert_eq!(one(&mut admin, &format!("SELECT pg_cancel_backend({pid})")), "t");
    let reply = worker.receive(Duration::from_secs(10)).expect("the statement ends");
    assert_eq!(code(&reply), Some("57014"));
    assert_eq!(admin.query("ROLLBACK").error(), None);
    until(
        &mut admin,
        &state,
        "idle in transaction (aborted)|UPDATE t SET b = 6 WHERE a = 1|Client|ClientRead|testkit|f",
    );
    assert_eq!(worker.query("ROLLBACK").error(), None);
    assert_eq!(one(&mut admin, "SELECT pg_cancel_backend(1000000)"), "f");

    // Others see only who is there.
    assert_eq!(admin.query("CREATE ROLE ann").error(), None);
    assert_eq!(worker.query("SET ROLE ann").error(), None);
    let admin_pid = one(&mut admin, "SELECT pg_backend_pid()");
    let seen = format!("SELECT usename, state, query FROM pg_stat_activity WHERE pid = {admin_pid}");
    assert_eq!(one(&mut worker, &seen), "postgres||<insufficient privilege>");
    let refused = worker.query(&format!("SELECT pg_terminate_backend({admin_pid})"));
    assert_eq!(code(&refused), Some("42501"));
    assert_eq!(code(&worker.query("SELECT pg_reload_conf()")), Some("42501"));
    assert_eq!(admin.query("GRANT pg_read_all_stats TO ann").error(), None);
    assert!(one(&mut worker, &seen).starts_with("postgres|idle|"));

    assert_eq!(one(&mut admin, &format!("SELECT pg_terminate_backend({pid})")), "t");
    until(&mut admin, &format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"), "0");
    let database = "SELECT numbackends >= 1, sessions >= 3, xact_commit > 3, xact_rollback >= 2, tup_inserted, tup_updated FROM pg_stat_database WHERE datname = 'postgres'";
    assert_eq!(one(&mut admin, database), "t|t|t|t|2|1");
    assert_eq!(one(&mut admin, "SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 't'"), "2");
    assert_eq!(one(&mut admin, "SELECT indexrelname FROM pg_stat_user_indexes WHERE relname = 't'"), "t_pkey");
    assert_eq!(one(&mut admin, "SELECT pg_postmaster_start_time() <= now()"), "t");
}

#[test]
fn statements_are_counted_by_their_text() {
    let (server, _directory) = start(&[]);
    let mut admin = server.connect();
    assert_eq!(admin.query("CREATE TABLE t (a int PRIMARY KEY, b int)").error(), None);
    for n in 0..20 {
        assert_eq!(admin.query(&format!("INSERT INTO t VALUES ({n}, 1)")).error(), None);
    }
    for _ in 0..3 {
        assert_eq!(admin.extended("SELECT b FROM t WHERE a < $1", &[Some("5")]).error(), None);
    }
    let statements = "SELECT query, calls, rows FROM pg_stat_statements WHERE query LIKE '%FROM t %' OR query LIKE 'INSERT%' ORDER BY query";
    assert_eq!(
        rows(&mut admin, statements),
        ["INSERT INTO t VALUES ($1, $2)|20|20", "SELECT b FROM t WHERE a < $1|3|15"]
    );
    assert_eq!(admin.query("CREATE TABLE u AS SELECT * FROM t").error(), None);
    for sql in ["BEGIN", "COMMIT", "BEGIN", "PREPARE p AS SELECT 1", "EXECUTE p", "DEALLOCATE p", "COMMIT"] {
        assert_eq!(admin.query(sql).error(), None, "{sql}");
    }
    let utilities = "SELECT query, calls, rows, plans, total_plan_time FROM pg_stat_statements WHERE query ~ '^(BEGIN|COMMIT|CREATE|PREPARE|EXECUTE|DEALL)' ORDER BY query COLLATE \"C\"";
    assert_eq!(
        rows(&mut admin, utilities),
        [
            "BEGIN|2|0|0|0",
            "COMMIT|2|0|0|0",
            "CREATE TABLE t (a int PRIMARY KEY, b int)|1|0|0|0",
            "CREATE TABLE u AS SELECT * FROM t|1|20|0|0",
        ]
    );
    let times = "SELECT bool_and(min_exec_time <= mean_exec_time AND mean_exec_time <= max_exec_time AND total_exec_time >= max_exec_time) FROM pg_stat_statements";
    assert_eq!(one(&mut admin, times), "t");
    assert_eq!(admin.query("CREATE ROLE ann").error(), None);
    assert_eq!(admin.query("SET ROLE ann").error(), None);
    let of_others = "SELECT DISTINCT query FROM pg_stat_statements WHERE userid <> 'ann'::regrole";
    assert_eq!(one(&mut admin, of_others), "<insufficient privilege>");
    assert_eq!(code(&admin.query("SELECT pg_stat_statements_reset()")), Some("42501"));
    assert_eq!(admin.query("RESET ROLE").error(), None);
    assert_eq!(admin.query("SELECT pg_stat_statements_reset()").error(), None);
    assert!(rows(&mut admin, statements).is_empty());
}

#[test]
fn the_log_has_what_it_is_asked_for() {
    let (server, _directory) = start(&[]);
    let mut admin = server.connect();
    for sql in [
        "SELECT 'unlogged'",
        "SET log_statement = 'mod'",
        "CREATE TABLE logged_ddl (a int)",
        "INSERT INTO logged_ddl VALUES (1)",
        "SELECT 'still unlogged'",
        "SET log_statement = 'none'",
        "SET log_min_duration_statement = 20",
        "SELECT 'quick'",
        "SELECT 'slow', pg_sleep(0.05)",
        "SET log_min_duration_statement = -1",
    ] {
        assert_eq!(admin.query(sql).error(), None, "{sql}");
    }
    let log = server.stderr();
    assert!(log.contains("statement: CREATE TABLE logged_ddl (a int)"), "{log}");
    assert!(log.contains("postgres@postgres statement: INSERT INTO logged_ddl VALUES"), "{log}");
    assert!(log.contains(" ms  statement: SELECT "), "{log}");
    assert!(!log.contains("unlogged") && !log.contains("quick"), "{log}");
    // Logging is an administrator's business.
    assert_eq!(admin.query("CREATE ROLE ann").error(), None);
    assert_eq!(admin.query("SET ROLE ann").error(), None);
    assert_eq!(code(&admin.query("SET log_statement = 'none'")), Some("42501"));
}

#[test]
fn slow_statements_are_logged_with_their_parameters() {
    let (server, _directory) = start(&[]);
    let mut admin = server.connect();
    for sql in ["SET log_min_duration_statement = 20", "PREPARE p AS SELECT $1::int, pg_sleep(0.05)"] {
        assert_eq!(admin.query(sql).error(), None, "{sql}");
    }
    for sql in ["SELECT 'as it was said', pg_sleep(0.05)", "EXECUTE p (5)"] {
        assert_eq!(admin.query(sql).error(), None, "{sql}");
    }
    let values = [Some("it's"), None];
    assert_eq!(admin.extended("SELECT $1::text, $2::int, pg_sleep(0.05)", &values).error(), None);
    assert_eq!(admin.extended("SELECT $1::text", &[Some("quick")]).error(), None);
    assert_eq!(admin.query("SET log_min_duration_statement = -1").error(), None);
    let log = server.stderr();
    for line in [
        " ms  statement: SELECT 'as it was said', pg_sleep(0.05)",
        " ms  statement: EXECUTE p (5)",
        "postgres@postgres DETAIL:  prepare: PREPARE p AS SELECT $1::int, pg_sleep(0.05)",
        " ms  execute <unnamed>: SELECT $1::text, $2::int, pg_sleep(0.05)",
        "postgres@postgres DETAIL:  parameters: $1 = 'it''s', $2 = NULL",
    ] {
        assert!(log.contains(line), "{line}\n{log}");
    }
    assert!(!log.contains("quick"), "{log}");
}

#[test]
fn a_role_may_have_a_limit_of_connections() {
    let (server, _directory) = start(&[]);
    let mut admin = server.connect();
    assert_eq!(admin.query("CREATE ROLE one LOGIN CONNECTION LIMIT 1").error(), None);
    let connect = || {
        let conninfo = format!("host=127.0.0.1 port={} user=one dbname=postgres", server.port());
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'one'";
        let mut psql = std::process::Command::new("psql");
        psql.args(["-X", "-A", "-t", "-q", &conninfo, "-c", sql, "-c", "SELECT pg_sleep(2)"]);
        psql.env("LC_ALL", "C").stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        psql.spawn().expect("psql is installed")
    };
    let first = connect();
    until(&mut admin, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'one'", "1");
    let second = connect().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("FATAL:  too many connections for role \"one\""), "{said}");
    let first = first.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&first.stdout).trim(), "1");
}
