//! Memory is what the limit says: whatever a session of an ordinary role asks for, the process stays within it, the session is
//! refused with 53200 or 54000, and other sessions continue.
//!
//! `make test` does it with a small limit and looks at the peak of the resident size. `make chaos` does it also in a control
//! group of 1 GB, in which the server takes its limit from the group and the kernel kills what goes beyond.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use testkit::Connection;

use super::group::Group;
use super::server::{Server, run, shortened, start, start_in};

const MB: usize = 1 << 20;

/// What a server holds that has done nothing, beside what the limit counts: its program, stacks.
fn idle(server: &Server) -> u64 {
    server.resident_mib()
}

/// One kind of demand, made again and again until it is refused.
struct Demand {
    what: &'static str,
    /// Statements before the first.
    before: String,
    /// The statement of a number.
    sql: Box<dyn Fn(usize) -> String>,
    /// How often it is made at most; it must be refused before.
    most: usize,
}

fn demand(what: &'static str, before: &str, most: usize, sql: impl Fn(usize) -> String + 'static) -> Demand {
    Demand { what, before: before.to_string(), sql: Box::new(sql), most }
}

/// What is refused for its size, however much memory there is, before anything of it is made.
const TOO_LONG: &[&str] = &[
    "SELECT repeat('x', 1100000000)",
    "SELECT repeat('abc', 400000000)",
    "SELECT lpad('x', 1100000000)",
    "SELECT rpad('x', 1100000000, 'yz')",
    "SELECT lpad('x', 600000000, 'äö')",
    "SELECT replace(repeat('a', 1000000), 'a', repeat('b', 2000))",
    "SELECT format('%1100000000s', 'x')",
    "SELECT array_fill(1, ARRAY[200000000])",
    "SELECT array_fill(1, ARRAY[20000, 20000])",
    "UPDATE a SET a[150000000] = 1",
];

#[test]
fn values_beyond_the_limit_of_one_are_refused_before_they_are_made() {
    let Some(server) = start(&["--memory-limit", "256MB"]) else { return };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE a (a int[]); INSERT INTO a VALUES ('{1}')");
    let idle = idle(&server);
    for sql in TOO_LONG {
        assert_eq!(connection.query(sql).code(), "54000", "{sql}");
        assert!(server.peak_mib() < idle + 64, "{sql}: {} MiB at most, {idle} before", server.peak_mib());
    }
    server.assert_sound();
}

/// Demands of a session in units of `unit` bytes, each far below what a statement may have.
fn demands(unit: usize) -> Vec<Demand> {
    let large = move |n: usize| format!("repeat('{}', {unit})", n % 10);
    vec![
        // Values under evaluation.
        demand("a text that is put together", "", 1, {
            let part = format!("repeat('x', {})", 40 * unit);
            move |_| format!("SELECT length({part} || {part} || {part} || {part})")
        }),
        demand("nested lpad", "", 1, move |_| {
            format!(
                "SELECT length(lpad(lpad(lpad(lpad('x', {}, 'a'), {}, 'b'), {}, 'c'), {}, 'd'))",
                10 * unit,
                30 * unit,
                60 * unit,
                90 * unit
            )
        }),
        demand("many columns of large values", "", 1, move |_| {
            let columns: Vec<String> = (0..200).map(large).collect();
            format!("SELECT {}", columns.join(", "))
        }),
        demand("many padded columns", "", 1, move |_| {
            let columns: Vec<String> = (0..200).map(|n| format!("'{n}'::char({unit})")).collect();
            format!("SELECT {}", columns.join(", "))
        }),
        demand("a record of large values", "", 1, move |_| {
            let columns: Vec<String> = (0..200).map(large).collect();
            format!("SELECT ROW({})::text", columns.join(", "))
        }),
        demand("an array of large values", "", 1, move |_| {
            let columns: Vec<String> = (0..200).map(large).collect();
            format!("SELECT ARRAY[{}]", columns.join(", "))
        }),
        demand("string_agg", "", 1, move |_| {
            format!("SELECT string_agg(repeat('x', {unit}), ',') FROM generate_series(1, 2000)")
        }),
        demand("string_agg, sorted", "", 1, move |_| {
            format!("SELECT string_agg(repeat('x', {unit}) || g, ',' ORDER BY g) FROM generate_series(1, 2000) AS g")
        }),
        demand("array_agg", "", 1, move |_| {
            format!("SELECT array_agg(repeat('x', {unit}) || g) FROM generate_series(1, 2000) AS g")
        }),
        demand("array_agg of numbers", "", 1, move |_| {
            format!("SELECT array_agg(g) FROM generate_series(1, {}) AS g", 40 * unit)
        }),
        demand("json_agg", "", 1, move |_| {
            format!("SELECT json_agg(repeat('x', {unit})) FROM generate_series(1, 2000)")
        }),
        demand("jsonb_object_agg", "", 1, move |_| {
            format!("SELECT jsonb_object_agg(g, repeat('x', {unit})) FROM generate_series(1, 2000) AS g")
        }),
        demand("string_to_array", "", 1, move |_| format!("SELECT string_to_array(repeat('a,', {}), ',')", 6 * unit)),
        demand("regexp_split_to_array", "", 1, move |_| {
            format!("SELECT regexp_split_to_array(repeat('a,', {}), ',')", 6 * unit)
        }),
        demand("regexp_matches", "", 1, move |_| {
            format!("SELECT count(*) FROM regexp_matches(repeat('a', {}), 'a', 'g')", 6 * unit)
        }),
        demand("string_to_table", "", 1, move |_| {
            format!("SELECT count(*) FROM string_to_table(repeat('a,', {}), ',')", 8 * unit)
        }),
        demand("regexp_replace", "", 1, move |_| {
            format!("SELECT regexp_replace(repeat('a', {}), 'a', repeat('b', 2000), 'g')", unit / 10)
        }),
        demand("jsonb", "", 1, move |_| format!("SELECT ('[' || repeat('1,', {}) || '1]')::jsonb", 8 * unit)),
        demand("numbers of jsonb", "", 1, move |_| {
            format!("SELECT ('[' || repeat('1e100000,', {}) || '1]')::jsonb", unit / 500)
        }),
        demand("jsonb_pretty", "", 1, move |_| {
            let nested = format!("repeat('[', 500) || repeat('1,', {}) || '1' || repeat(']', 500)", unit / 10);
            format!("SELECT jsonb_pretty(({nested})::jsonb)")
        }),
        demand("json_array_elements", "", 1, move |_| {
            format!("SELECT count(*) FROM json_array_elements(('[' || repeat('1,', {}) || '1]')::json)", 8 * unit)
        }),
        demand("a literal of an array", "", 1, move |_| {
            format!("SELECT ('{{' || repeat('1,', {}) || '1}}')::text[]", 8 * unit)
        }),
        demand("an array of one more element, again and again", "", 1, move |_| {
            format!(
                "WITH RECURSIVE r (a) AS (SELECT array_fill(1, ARRAY[{unit}]) UNION ALL SELECT a || a FROM r \
                 WHERE cardinality(a) < 1000000000) SELECT count(*) FROM r"
            )
        }),
        demand("bytes in hexadecimal digits", "", 1, move |_| {
            format!("SELECT decode(repeat('00', {}), 'hex')", 40 * unit)
        }),
        demand("bytes escaped", "", 1, move |_| {
            format!("SELECT encode(decode(repeat('00', {}), 'hex'), 'escape')", 20 * unit)
        }),
        // What a session keeps.
        demand("settings", "", 3000, move |n| format!("SELECT set_config('my.setting_{n}', {}, false)", large(n))),
        demand("settings of one transaction", "BEGIN", 3000, move |n| {
            format!("SELECT set_config('my.setting_{n}', {}, true)", large(n))
        }),
        demand("cursors that hold rows", "", 3000, move |n| {
            format!("DECLARE c{n} CURSOR WITH HOLD FOR SELECT repeat('x', {unit}) || g FROM generate_series(1, 4) AS g")
        }),
        demand("prepared statements", "", 20_000, move |n| {
            let list: Vec<String> = (0..2000).map(|i| format!("{}", i + n)).collect();
            format!("PREPARE p{n} AS SELECT 1 WHERE 1 IN ({})", list.join(", "))
        }),
        demand("notifications", "", 1, move |_| {
            "SELECT count(pg_notify('c', repeat('x', 7000) || g)) FROM generate_series(1, 1000000) AS g".to_string()
        }),
        demand("advisory locks", "", 1, move |_| {
            "SELECT count(pg_advisory_lock(g)) FROM generate_series(1, 100000000) AS g".to_string()
        }),
        demand("rows of a temporary table", "CREATE TEMPORARY TABLE kept (a text)", 3000, move |_| {
            format!("INSERT INTO kept SELECT repeat('x', {unit}) FROM generate_series(1, 4)")
        }),
        demand("a large row", "CREATE TEMPORARY TABLE row (a text, b text, c text, d text)", 3000, move |n| {
            let part = format!("repeat('{n}', {})", 2 * unit);
            format!("INSERT INTO row VALUES ({part}, {part}, {part}, {part})")
        }),
        // Statements as such.
        demand("a statement of many tokens", "", 1, move |_| {
            let list: Vec<String> = (0..unit).map(|i| i.to_string()).collect();
            format!("SELECT 1 WHERE 1 IN ({})", list.join(", "))
        }),
        demand("a statement of many conditions", "", 1, move |_| {
            let list: Vec<String> = (0..unit / 2).map(|i| format!("{i} = {}", i + 1)).collect();
            format!("SELECT 1 WHERE {}", list.join(" OR "))
        }),
        demand("a statement with a large literal", "", 1, move |_| {
            format!("SELECT length('{}')", "x".repeat(40 * unit))
        }),
    ]
}

/// Makes the demand in a session of its own; whether it was refused as it should be.
fn make(server: &Server, demand: &Demand) {
    let mut connection = server.connect();
    if !demand.before.is_empty() {
        run(&mut connection, &demand.before);
    }
    for n in 0..demand.most {
        let sql = (demand.sql)(n);
        connection.send(&sql);
        let reply = connection.receive(Duration::from_secs(300));
        let reply = reply.unwrap_or_else(|| panic!("{} goes on for ever", demand.what));
        match reply.code() {
            "53200" | "54000" => return,
            "00000" => {}
            _ => panic!("{}: {}: {reply}", demand.what, shortened(&sql)),
        }
    }
    panic!("{} is not refused", demand.what);
}

/// Small statements of another session, until told to stop; how many there were.
fn goes_on(server: &Server, stop: &AtomicBool) -> u64 {
    let mut connection = server.connect();
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        for sql in [
            "SELECT count(*) FROM small WHERE a > 5",
            "SELECT a, b FROM small ORDER BY b DESC",
            "SELECT b, count(*) FROM small GROUP BY b",
        ] {
            assert_eq!(connection.query(sql).error(), None, "{sql}, beside others");
        }
        count += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    count
}

/// Makes all demands while another session goes on, and hands the server to `check` after each.
fn all(server: &Server, demands: &[Demand], check: impl Fn(&Demand)) {
    run(
        &mut server.connect(),
        "CREATE TABLE small (a int PRIMARY KEY, b text); INSERT INTO small SELECT g, 'text ' || g FROM generate_series(1, 100) AS g",
    );
    let (stop, beside) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| beside.store(goes_on(server, &stop), Ordering::Relaxed));
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for demand in demands {
                make(server, demand);
                check(demand);
            }
        }));
        stop.store(true, Ordering::Relaxed);
        let beside = other.join();
        made.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        beside.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert!(beside.into_inner() > 0, "the other session has done nothing");
}

#[test]
fn a_session_gets_what_the_limit_says_and_no_more() {
    const LIMIT: u64 = 96;
    let Some(server) = start(&["--memory-limit", "96MB", "--cores", "2"]) else { return };
    server.connect();
    let idle = idle(&server);
    all(&server, &demands(MB / 5), |demand| {
        let peak = server.peak_mib();
        println!("{}: {peak} MiB at most, of {idle} before", demand.what);
        assert!(peak <= idle + LIMIT + 64, "{}: {peak} MiB at most, {idle} before", demand.what);
        server.forget_peak();
    });
    server.assert_sound();
}

/// Scans, statistics and COPY take large rows a few at a time.
#[test]
fn large_rows_are_read_a_few_at_a_time() {
    let Some(server) = start(&["--memory-limit", "512MB", "--cores", "2"]) else { return };
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (id int PRIMARY KEY, b text)");
    for n in 0..100 {
        run(&mut connection, &format!("INSERT INTO t VALUES ({n}, repeat('{}', {MB}))", n % 10));
    }
    // The keys of some rows have changed: both are looked at.
    let mut reader = server.connect();
    run(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
    run(&mut connection, "UPDATE t SET id = id + 1000 WHERE id % 3 = 0");
    let ids = |connection: &mut Connection, sql: &str| -> Vec<i64> {
        let reply = run(connection, sql);
        reply.rows().map(|row| row[0].as_deref().and_then(|id| id.parse().ok()).expect("a number")).collect()
    };
    let mut changed: Vec<i64> = (0..100).map(|n| if n % 3 == 0 { n + 1000 } else { n }).collect();
    changed.sort_unstable();
    server.forget_peak();
    let before = server.peak_mib();
    for round in 0..2 {
        for (sql, order) in [
            ("SELECT id FROM t WHERE octet_length(b) > 5", 0),
            ("SELECT id FROM t WHERE id >= 0 AND octet_length(b) > 5 ORDER BY id", 1),
            ("SELECT id FROM t WHERE id >= 0 AND octet_length(b) > 5 ORDER BY id DESC", -1),
        ] {
            run(&mut connection, if round == 0 { "SET enable_seqscan = on" } else { "SET enable_seqscan = off" });
            for (who, expected) in [(&mut connection, changed.clone()), (&mut reader, (0..100).collect())] {
                let mut found = ids(who, sql);
                match order {
                    0 => found.sort_unstable(),
                    -1 => found.reverse(),
                    _ => {}
                }
                assert_eq!(found, expected, "{sql}");
            }
        }
    }
    run(&mut connection, "ANALYZE t");
    assert_eq!(connection.query("COPY (SELECT b FROM t) TO STDOUT").code(), "00000");
    let peak = server.peak_mib();
    println!("{peak} MiB at most, {before} before");
    assert!(peak < before + 48, "{peak} MiB at most, {before} before");
    run(&mut reader, "COMMIT");
    server.assert_sound();
}

/// In a group of 1 GB, with the limit that the server takes from that.
#[test]
fn no_demand_gets_the_server_killed() {
    if std::env::var_os("NYALA_LARGE").is_none() {
        return;
    }
    let Some(group) = Group::new("no_demand_gets_the_server_killed", 1 << 30) else { return };
    let Some(server) = start_in(group.path(), &[]) else { return };
    server.connect();
    let limit = {
        let mut connection: Connection = server.connect();
        run(&mut connection, "SHOW memory_limit").value().map(str::to_owned)
    };
    println!("the limit is {limit:?}");
    all(&server, &demands(2 * MB), |demand| {
        println!("{}: {} MiB at most", demand.what, server.peak_mib());
        assert_eq!(group.kills(), 0, "{}", demand.what);
        server.forget_peak();
    });
    for sql in TOO_LONG.iter().filter(|sql| sql.starts_with("SELECT")) {
        assert_eq!(server.connect().query(sql).code(), "54000", "{sql}");
    }
    server.assert_sound();
}
