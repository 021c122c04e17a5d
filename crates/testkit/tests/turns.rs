//! On one core, statements that take long give others their turn and are stopped wherever they are.

use std::time::{Duration, Instant};

use testkit::{Connection, Event, Nyala, Reply};

/// What ends a test that hangs. Nothing is measured.
const PATIENCE: Duration = Duration::from_secs(120);

fn start() -> (Nyala, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["--http", "off", "--cores", "1"];
    let server = Nyala::start_with(&directory.path().join("data"), Nyala::free_port(), &flags);
    let made = server.connect().query(&format!(
        "CREATE TABLE keyed (t text); CREATE INDEX ON keyed (({KEY})); INSERT INTO keyed VALUES ('a');
         CREATE TABLE picked (t text); CREATE INDEX ON picked (length(t)) WHERE t LIKE '%' || repeat('a', 100000) || 'b%';
         CREATE TABLE unkeyed AS SELECT {} AS t;",
        unequal()
    ));
    assert_eq!(made.error(), None);
    (server, directory)
}

/// What takes minutes to compute of the text of [`unequal`].
const KEY: &str = r"regexp_replace(t, '(a+)b\1a\1c', 'x')";

/// A text whose second run of letters is no repetition of the first one and one more.
fn unequal() -> &'static str {
    "(repeat('a', 100000) || 'b' || repeat('a', 60000) || 'c')"
}

fn code(reply: &Reply) -> Option<&str> {
    reply.error().map(|error| error.code.as_str())
}

fn one(connection: &mut Connection, sql: &str) -> String {
    connection.send(sql);
    let reply = connection.receive(PATIENCE).unwrap_or_else(|| panic!("no answer to {sql}"));
    assert_eq!(reply.error(), None, "{sql}");
    let row = |event: &Event| match event {
        Event::Row(values) => values.first().cloned().flatten(),
        _ => None,
    };
    reply.events.iter().find_map(row).unwrap_or_default()
}

/// Statements that take minutes in one call, or in the middle of an expression, on any machine.
fn endless() -> Vec<(&'static str, String)> {
    let numbers = "SELECT array_agg(i) FROM generate_series(1, 30000) i";
    let unequal = unequal();
    vec![
        ("back references", format!(r"SELECT {unequal} ~ '(a+)b\1a\1c'")),
        ("look-ahead", "SELECT repeat('a', 200000) ~ 'a(?=.*z)'".into()),
        ("many states", format!("SELECT repeat('ab', 100000) ~ '{}c'", "(a|b|ab|ba){255}".repeat(5))),
        ("replacing", format!(r"SELECT length(regexp_replace({unequal}, '(a+)b\1a\1c', 'x', 'g'))")),
        ("LIKE", "SELECT repeat('a', 3000000) LIKE '%' || repeat('a', 100000) || 'b%'".into()),
        ("containment", format!(
            "SELECT (SELECT jsonb_agg(jsonb_build_array(i)) FROM generate_series(1, 20000) i)
                 @> (SELECT jsonb_agg(jsonb_build_array(i)) FROM generate_series(20000, 1, -1) i) FROM ({numbers}) x"
        )),
        ("a subquery of an expression",
         "SELECT (SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a + b = i) FROM generate_series(1, 3) i".into()),
        ("a path", "SELECT jsonb_path_exists((SELECT jsonb_agg(i) FROM generate_series(1, 20000) i), '$[*] ? (@ == $.size() + $[*])')".into()),
        ("numbers", "SELECT sum(length((repeat('7', 60000)::numeric * i)::text)) FROM generate_series(1, 1000000) i".into()),
        ("a sort of long texts",
         "SELECT count(*) FROM (SELECT repeat('a', 100000) || i AS t FROM generate_series(1, 6000) i ORDER BY 1) x".into()),
        ("a key", format!("INSERT INTO keyed VALUES ({unequal})")),
        ("a changed key", format!("UPDATE keyed SET t = {unequal}")),
        ("the condition of an index", "INSERT INTO picked VALUES (repeat('a', 3000000))".into()),
        ("an index", format!("CREATE INDEX ON unkeyed (({KEY}))")),
        ("joined orders", "SELECT string_agg(i::text, ',' ORDER BY repeat('b', 200) || i % 7, i) FROM generate_series(1, 5000000) i".to_owned()),
        ("a format", "SELECT sum(length(to_char(now(), repeat('YYYY ', 200000)))) FROM generate_series(1, 100000) i".into()),
        ("a sliding frame",
         "SELECT max(t) FROM (SELECT max('text ' || i) OVER (ORDER BY i ROWS BETWEEN 30000 PRECEDING AND CURRENT ROW) t FROM generate_series(1, 60000) i) x".into()),
        ("a frame without its row",
         "SELECT max(t) FROM (SELECT sum(i) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) t FROM generate_series(1, 50000) i) x".into()),
        ("partners that do not fit",
         "SELECT count(*) FROM generate_series(1, 50000) a JOIN generate_series(1, 50000) b ON a % 1 = b % 1 AND a + b < 0".into()),
        ("grouping sets", format!(
            "SELECT count(*) FROM (SELECT 1 FROM generate_series(1, 1000000) i GROUP BY CUBE ({})) x",
            (2..14).map(|n| format!("i % {n}")).collect::<Vec<_>>().join(", ")
        )),
        ("conditions", format!(
            "SELECT count(*) FROM generate_series(1, 10000000) i WHERE {}",
            (1..3000).map(|n| format!("i <> -{n}")).collect::<Vec<_>>().join(" AND ")
        )),
    ]
}

/// What no transaction block may have.
fn alone() -> Vec<(&'static str, String)> {
    vec![("an index beside writers", format!("CREATE INDEX CONCURRENTLY ON unkeyed (({KEY}))"))]
}

#[test]
fn others_have_their_turn_and_cancel_acts() {
    let (server, _directory) = start();
    let (mut worker, mut other) = (server.connect(), server.connect());
    let pid = one(&mut worker, "SELECT pg_backend_pid()");
    for (name, sql) in endless().into_iter().chain(alone()) {
        worker.send(&sql);
        for n in 0..20 {
            assert_eq!(one(&mut other, &format!("SELECT {n} + 1")), (n + 1).to_string(), "beside {name}");
        }
        // A login, too.
        assert_eq!(one(&mut server.connect(), "SELECT 1"), "1", "beside {name}");
        let running = one(&mut other, &format!("SELECT state FROM pg_stat_activity WHERE pid = {pid}"));
        assert_eq!(running, "active", "{name} is over too early to show anything");
        assert_eq!(one(&mut other, &format!("SELECT pg_cancel_backend({pid})")), "t");
        let reply = worker.receive(PATIENCE).unwrap_or_else(|| panic!("{name} was not stopped"));
        assert_eq!(code(&reply), Some("57014"), "{name}");
        assert_eq!(one(&mut worker, "SELECT 'goes on'"), "goes on", "after {name}");
    }
}

#[test]
fn timeouts_and_the_end_of_a_session_act() {
    let (server, _directory) = start();
    let (mut worker, mut other) = (server.connect(), server.connect());
    assert_eq!(worker.query("SET statement_timeout = '50ms'").error(), None);
    for (name, sql) in endless().into_iter().chain(alone()) {
        worker.send(&sql);
        let reply = worker.receive(PATIENCE).unwrap_or_else(|| panic!("{name} was not stopped"));
        assert_eq!(code(&reply), Some("57014"), "{name}");
    }
    for (name, sql) in endless() {
        let mut victim = server.connect();
        let pid = one(&mut victim, "SELECT pg_backend_pid()");
        assert_eq!(victim.query("BEGIN").error(), None);
        victim.send(&sql);
        assert_eq!(one(&mut other, "SELECT 1"), "1");
        assert_eq!(one(&mut other, &format!("SELECT pg_terminate_backend({pid})")), "t");
        let reply = victim.receive(PATIENCE).unwrap_or_else(|| panic!("the session with {name} was not ended"));
        assert_eq!(code(&reply), Some("57P01"), "{name}");
    }
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()";
    assert_eq!(one(&mut other, sessions), "0");
}

/// Texts that are parsed by another thread, and what waits for them.
#[test]
fn a_long_text_is_parsed_beside() {
    let (server, _directory) = start();
    let (mut worker, mut other) = (server.connect(), server.connect());
    let tests = |count: usize| (0..count).map(|n| format!("i = {n}")).collect::<Vec<_>>().join(" OR ");
    let text = format!("SELECT count(*) FROM generate_series(1, 10) i WHERE {}", tests(50_000));
    worker.send(&text);
    for n in 0..20 {
        assert_eq!(one(&mut other, &format!("SELECT {n} + 1")), (n + 1).to_string());
    }
    let reply = worker.receive(PATIENCE).expect("an answer");
    assert_eq!(reply.error(), None);
    assert_eq!(one(&mut worker, &text), "10");
    assert_eq!(code(&worker.query(&format!("{text} OR )"))), Some("42601"));
    assert_eq!(worker.query("SET statement_timeout = '1ms'").error(), None);
    worker.send(&text);
    let reply = worker.receive(PATIENCE).expect("an answer");
    assert_eq!(code(&reply), Some("57014"));
    assert_eq!(worker.query("SET statement_timeout = 0").error(), None);
    assert_eq!(one(&mut worker, "SELECT 1"), "1");
}

/// A key that was computed is not computed again by who undoes, reads or collects, and a statement that was stopped at one
/// leaves its transaction sound.
#[test]
fn long_keys_are_undone_and_found() {
    let (server, _directory) = start();
    let (mut worker, mut other) = (server.connect(), server.connect());
    // A key of a tenth of a second or so.
    let text = "repeat('a', 120) || 'b' || repeat('a', 80) || 'c'";
    for sql in ["BEGIN", "SAVEPOINT s", "SET LOCAL statement_timeout = '100ms'"] {
        assert_eq!(worker.query(sql).error(), None);
    }
    assert_eq!(code(&worker.query(&format!("INSERT INTO keyed VALUES ('b'), ({})", unequal()))), Some("57014"));
    assert_eq!(worker.query("ROLLBACK TO s").error(), None);
    assert_eq!(worker.query(&format!("INSERT INTO keyed VALUES ('c'), ({text}), ({text})")).error(), None);
    assert_eq!(worker.query("ROLLBACK TO s").error(), None);
    assert_eq!(worker.query(&format!("INSERT INTO keyed VALUES ('d'), ({text})")).error(), None);
    assert_eq!(worker.query(&format!("UPDATE keyed SET t = t || 'e' WHERE {KEY} = 'd'")).error(), None);
    assert_eq!(worker.query("COMMIT").error(), None);
    let found =
        format!("SELECT string_agg(left(t, 2), ' ' ORDER BY t) FROM keyed WHERE {KEY} IN ('a', 'b', 'c', 'd', 'de')");
    assert_eq!(one(&mut other, &format!("SET enable_seqscan = off; {found}")), "a de");
    assert_eq!(one(&mut other, "DELETE FROM keyed WHERE length(t) > 9; SELECT count(*) FROM keyed"), "2");
}

/// Statements that are long because a text, a list, a view or a table is, and what they need.
fn long() -> Vec<(&'static str, Vec<String>, String)> {
    let wide = (0..1600).map(|n| format!("c{n} int")).collect::<Vec<_>>().join(", ");
    let over = |n: usize| if n == 0 { "wide".to_owned() } else { format!("v{}", n - 1) };
    let mut views = vec![format!("CREATE TABLE wide ({wide})")];
    views.extend((0..30).map(|n| format!("CREATE VIEW v{n} AS SELECT * FROM {}", over(n))));
    let joined = (0..30).map(|n| format!("wide w{n}")).collect::<Vec<_>>().join(" CROSS JOIN ");
    let rows = (0..300_000).map(|n| format!("({n}, 'a{n}')")).collect::<Vec<_>>().join(", ");
    let numbers = (0..500_000).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let params = (1..=500_000).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ");
    let of_params = (1..=250_000).map(|n| format!("(${n}, 7)")).collect::<Vec<_>>().join(", ");
    let table = "CREATE TABLE many AS SELECT i, md5(i::text) t, repeat('y', 50) u FROM generate_series(1, 1000000) i";
    let many = || vec![table.to_owned()];
    let x = "repeat('x', 50000000)";
    vec![
        ("views over views", views.clone(), "SELECT * FROM v29 WHERE c1599 > 5 ORDER BY c7".into()),
        ("joined tables of many columns", views.clone(), format!("SELECT w0.* FROM {joined}")),
        ("a view over views goes", views, "DROP TABLE wide CASCADE".into()),
        ("a number that is none", Vec::new(), format!("SELECT {x}::int")),
        ("a date that is none", Vec::new(), format!("SELECT {x}::date")),
        ("a document that is none", Vec::new(), format!("SELECT {x}::jsonb")),
        ("an array that is none", Vec::new(), format!("SELECT ('{{' || {x})::int[]")),
        ("a name of nothing", Vec::new(), format!("SELECT {x}::regclass")),
        ("a long text", Vec::new(), format!("SELECT length('{}')", "x".repeat(100_000_000))),
        ("a long comment", Vec::new(), format!("SELECT 1 /*{}*/", "x".repeat(100_000_000))),
        ("a text without end", Vec::new(), format!("SELECT '{}", "x".repeat(100_000_000))),
        ("columns of the catalog", Vec::new(), "SELECT * FROM information_schema.columns".into()),
        ("VALUES", Vec::new(), format!("SELECT count(*) FROM (VALUES {rows}) v")),
        ("new rows", vec!["CREATE TABLE news (i int, t text)".into()], format!("INSERT INTO news VALUES {rows}")),
        ("parameters", Vec::new(), format!("DEALLOCATE ALL; PREPARE many AS SELECT 7 IN ({params})")),
        (
            "rows of parameters",
            vec!["CREATE TABLE news (i int, t text)".into()],
            format!("DEALLOCATE ALL; PREPARE many AS INSERT INTO news (t, i) VALUES {of_params}"),
        ),
        ("IN", many(), format!("SELECT count(*) FROM many WHERE i IN ({numbers})")),
        ("an array", Vec::new(), format!("SELECT array[{numbers}]")),
        ("an index", many(), "CREATE INDEX ON many (t)".into()),
        ("changed rows", many(), "UPDATE many SET u = u || 'z'".into()),
        ("removed rows", many(), "DELETE FROM many".into()),
        ("rewritten rows", many(), "ALTER TABLE many ALTER u TYPE varchar(100)".into()),
        ("a new column", many(), "ALTER TABLE many ADD q text DEFAULT md5(random()::text)".into()),
        ("statistics", many(), "ANALYZE many".into()),
        ("a table that goes", many(), "DROP TABLE many".into()),
        ("a table that is emptied", many(), "TRUNCATE many".into()),
    ]
}

/// The longest that another session waited for an answer beside a statement.
fn longest_beside(server: &Nyala, worker: &mut Connection, other: &mut Connection, sql: &str) -> Duration {
    worker.send(sql);
    let mut longest = Duration::ZERO;
    loop {
        let began = Instant::now();
        assert_eq!(one(other, "SELECT 1"), "1");
        longest = longest.max(began.elapsed());
        if worker.receive(Duration::from_micros(300)).is_some() {
            break;
        }
        assert!(!server.is_gone(), "{}", &sql[..sql.len().min(100)]);
    }
    longest
}

/// Only where builds and arguments are as in earnest. The best of some runs counts: the machine is not this test's alone.
#[test]
fn no_long_statement_holds_the_core() {
    const LIMIT: Duration = Duration::from_millis(50);
    if std::env::var_os("NYALA_LARGE").is_none() {
        return;
    }
    let (server, _directory) = start();
    let (mut worker, mut other) = (server.connect(), server.connect());
    let mut late = Vec::new();
    for (name, needs, sql) in long() {
        let mut best = Duration::MAX;
        for _ in 0..5 {
            assert_eq!(worker.query("DROP TABLE IF EXISTS wide, news, many CASCADE").error(), None);
            for sql in &needs {
                assert_eq!(worker.query(sql).error(), None, "{name}");
            }
            best = best.min(longest_beside(&server, &mut worker, &mut other, &sql));
            if best < LIMIT {
                break;
            }
        }
        println!("{name}: {:.1} ms", best.as_secs_f64() * 1e3);
        if best >= LIMIT {
            late.push(name);
        }
    }
    assert!(late.is_empty(), "others waited for longer than {LIMIT:?} beside {late:?}");
}
