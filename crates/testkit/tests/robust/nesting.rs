//! Statements that nest deep, or are long and wide: each is answered or refused, and the server lives.

use super::server::{Server, number, run, shortened, start};
use super::wire::{self, Wire};

use std::time::Duration;

/// What an answer may be besides success.
const REFUSALS: [&str; 6] = ["54001", "54000", "54011", "42601", "2201B", "0A000"];

fn nested(open: &str, inner: &str, close: &str, count: usize) -> String {
    format!("{}{inner}{}", open.repeat(count), close.repeat(count))
}

/// Deep at many depths, so that some are just below every bound.
fn deep(count: usize) -> Vec<String> {
    let chained = |operator: &str| format!("SELECT 1{}", operator.repeat(count));
    vec![
        format!("SELECT {}", nested("(", "1", ")", count)),
        format!("SELECT {}", nested("- ", "1", "", count)),
        format!("SELECT {}", nested("NOT ", "true", "", count)),
        format!("SELECT {}", nested("abs(", "1", ")", count)),
        format!("SELECT {}", nested("coalesce(", "1", ")", count)),
        format!("SELECT {}", nested("CASE WHEN true THEN ", "1", " END", count)),
        format!("SELECT {}", nested("ARRAY[", "1", "]", count)),
        format!("SELECT {}", nested("(SELECT ", "1", ")", count)),
        format!("SELECT {}", nested("EXISTS (SELECT 1 WHERE ", "true", ")", count)),
        format!("SELECT {}", nested("1 IN (", "1", ")", count)),
        format!("SELECT * FROM {}", nested("(SELECT * FROM ", "(SELECT 1) AS x", ") AS x", count)),
        format!("SELECT * FROM {}", nested("(", "(SELECT 1) AS x", ")", count)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(count)),
        format!("SELECT 1{}", " INTERSECT SELECT 1".repeat(count)),
        format!("SELECT * FROM (SELECT 1) AS x{}", " CROSS JOIN (SELECT 1) AS y".repeat(count)),
        chained("+1"),
        chained("::int"),
        chained(" IS NULL"),
        chained(" AND true"),
        chained(" COLLATE \"C\""),
        format!("SELECT '{}'::json", nested("[", "1", "]", count)),
        format!("SELECT '{}'::jsonb", nested("{\"a\":", "1", "}", count)),
        format!("SELECT '{}'::int[]", nested("{", "1", "}", count)),
        format!("SELECT 'a' ~ '{}'", nested("(", "a", ")", count)),
        format!("SELECT to_json(ARRAY{}1{})", "[".repeat(count), "]".repeat(count)),
        format!("WITH c0 AS (SELECT 1 AS x){} SELECT * FROM c{count}", chain_of_ctes(count)),
        format!("SELECT null::int{}", "[]".repeat(count)),
        format!("SELECT {}a", "a.".repeat(count)),
        format!("{}SELECT 1", "EXPLAIN ".repeat(count)),
        format!("CREATE TABLE nested (a int CHECK ({}))", nested("(", "a > 0", ")", count)),
        "DROP TABLE IF EXISTS nested".to_owned(),
        format!("CREATE TABLE nested (a int DEFAULT 1{})", "+1".repeat(count)),
        "INSERT INTO nested DEFAULT VALUES".to_owned(),
        "DROP TABLE IF EXISTS nested".to_owned(),
    ]
}

fn chain_of_ctes(count: usize) -> String {
    (1..=count).map(|i| format!(", c{i} AS (SELECT x FROM c{})", i - 1)).collect()
}

#[test]
fn deep_statements_are_answered_or_refused() {
    let Some(server) = start(&[]) else { return };
    let mut connection = server.connect();
    for count in [6, 25, 99, 100, 399, 400, 1499, 1500, 4999, 5_990, 6_600, 9_990, 100_000] {
        for sql in deep(count) {
            if count > 10_000 && sql.starts_with("WITH") {
                continue;
            }
            let reply = connection.query(&sql);
            let code = reply.code();
            let known = code == "00000" || REFUSALS.contains(&code) || code.starts_with("42");
            assert!(known && !connection.is_closed(), "{count}: {}: {reply}", shortened(&sql));
            assert!(count > 90 || code != "54001", "{count}: {}: {reply}", shortened(&sql));
        }
    }
    server.assert_sound();
}

/// What PostgreSQL takes with the stack that it has by default, and generators of SQL write.
#[test]
fn nesting_that_is_usual_is_answered() {
    let Some(server) = start(&[]) else { return };
    let mut connection = server.connect();
    let joins: String = (1..100).map(|i| format!(" JOIN joined AS j{i} USING (a)")).collect();
    let listed: Vec<String> = (0..100).map(|i| format!("joined AS j{i}")).collect();
    for sql in [
        format!("SELECT count(*) FROM (SELECT 1{}) AS x", " UNION ALL SELECT 1".repeat(3999)),
        format!("SELECT length('a'{})", " || 'a'".repeat(3999)),
        format!("SELECT length(v{}) FROM (VALUES ('a')) AS t (v)", " || v".repeat(3999)),
        format!("SELECT 1{}", " + 1".repeat(3999)),
        format!("SELECT * FROM {}", nested("(SELECT * FROM ", "(SELECT 1) AS x", ") AS x", 999)),
        format!("SELECT {}", nested("(SELECT ", "1", ")", 999)),
        format!("SELECT {}", nested("CASE WHEN true THEN ", "1", " END", 999)),
        format!("SELECT {}", nested("abs(", "1", ")", 999)),
        "CREATE TABLE joined (a int PRIMARY KEY)".to_owned(),
        "INSERT INTO joined VALUES (1)".to_owned(),
        format!("SELECT count(*) FROM joined AS j0{joins}"),
        format!("SELECT count(*) FROM {}", listed.join(", ")),
    ] {
        connection.send(&sql);
        let reply = connection.receive(Duration::from_secs(120)).unwrap_or_else(|| panic!("{}", shortened(&sql)));
        assert_eq!(reply.code(), "00000", "{}: {reply}", shortened(&sql));
    }
    server.assert_sound();
}

#[test]
fn statements_that_multiply_are_answered_or_refused_in_time() {
    let Some(server) = start(&[]) else { return };
    let mut connection = server.connect();
    // Each query refers to the one before twice, and is kept for that; each record doubles the quotes of the one inside.
    let ctes: String = (1..40).map(|i| format!(", c{i} AS (SELECT p.x FROM c{0} AS p, c{0} AS q)", i - 1)).collect();
    let doubling = format!("WITH c0 AS (SELECT 1 AS x){ctes} SELECT * FROM c39");
    assert_eq!(connection.query(&doubling).code(), "00000");
    connection.send(&format!("SELECT {}", nested("ROW(", "1", ")", 390)));
    let reply = connection.receive(Duration::from_secs(120)).expect("an answer");
    assert_eq!(reply.code(), "54000", "{reply}");
    server.assert_sound();
}

#[test]
fn wide_and_long_statements() {
    let Some(server) = start(&[]) else { return };
    let mut connection = server.connect();
    let numbers = |count: usize| (0..count).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let columns = |count: usize| (0..count).map(|i| format!("c{i} int")).collect::<Vec<_>>().join(", ");
    for (sql, code) in [
        (format!("SELECT 59999 IN ({})", numbers(60_000)), "00000"),
        (format!("SELECT true{}", " AND true".repeat(60_000)), "00000"),
        (format!("SELECT {}", numbers(1664)), "00000"),
        (format!("SELECT {}", numbers(1665)), "54011"),
        (format!("CREATE TABLE wide ({})", columns(1601)), "54011"),
        (format!("CREATE TABLE wide ({})", columns(1600)), "00000"),
        ("ALTER TABLE wide ADD COLUMN one_more int".to_owned(), "54011"),
        (format!("INSERT INTO wide VALUES ({})", numbers(1600)), "00000"),
        ("SELECT * FROM wide".to_owned(), "00000"),
        ("SELECT * FROM wide AS a, wide AS b".to_owned(), "54011"),
        (format!("SELECT length('{}')", "x".repeat(50 << 20)), "00000"),
        ("SELECT length(repeat('x', 1100000000))".to_owned(), "54000"),
        ("SELECT repeat('x', 400000000), repeat('y', 400000000), repeat('z', 400000000)".to_owned(), "54000"),
        (";".repeat(1_000_000), ""),
        ("SELECT 1;".repeat(2_000), "00000"),
    ] {
        connection.send(&sql);
        let reply = connection.receive(Duration::from_secs(120)).unwrap_or_else(|| panic!("{}", shortened(&sql)));
        let is_fine = code.is_empty() || reply.code() == code;
        assert!(is_fine, "{}: {}", shortened(&sql), shortened(&reply.to_string()));
    }
    large_rows(&server);
    many_parameters(&server);
    definitions_without_end(&server);
    server.assert_sound();
}

/// A value of 50 MB is stored, found again after a crash, and goes away.
fn large_rows(server: &Server) {
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE large (a int PRIMARY KEY, b text)");
    run(&mut connection, "INSERT INTO large SELECT 1, repeat('x', 50000000)");
    run(&mut connection, "UPDATE large SET b = b || 'y'");
    assert_eq!(number(&mut connection, "SELECT length(b) FROM large"), 50_000_001);
    // An entry of an index must be short.
    let reply = connection.query("CREATE INDEX ON large (b)");
    assert_eq!(reply.code(), "54000", "{reply}");
    run(&mut connection, "DELETE FROM large");
}

/// 65,535 parameters are as many as a message can hold; a statement that has fewer refuses them.
fn many_parameters(server: &Server) {
    let mut wire = Wire::login(server.nyala.port());
    let list = (1..=65_535).map(|i| format!("${i}")).collect::<Vec<_>>().join(", ");
    let values = vec!["7"; 65_535];
    let sql = format!("SELECT 7 IN ({list})");
    let bytes = [wire::parse("", &sql), wire::bind(&values), wire::execute(0), wire::sync()].concat();
    assert!(wire.send(&bytes));
    let answer = wire.answer();
    assert_eq!(wire::errors(&answer), Vec::<String>::new());
    let bytes = [wire::parse("", "SELECT $1::int"), wire::bind(&values), wire::execute(0), wire::sync()].concat();
    assert!(wire.send(&bytes));
    let answer = wire.answer();
    assert_eq!(wire::errors(&answer), ["08P01"]);
}

/// A condition of a domain speaks of the domain: what asks for it is refused, and it can be taken away.
fn definitions_without_end(server: &Server) {
    let mut connection = server.connect();
    run(&mut connection, "CREATE DOMAIN own AS int; CREATE DOMAIN upon AS int CHECK (VALUE IS NULL OR VALUE::own > 0)");
    run(&mut connection, "CREATE TABLE of_own (a int, b int, c own, d upon); INSERT INTO of_own VALUES (1, 2, 3, 4)");
    run(&mut connection, "ALTER DOMAIN own ADD CONSTRAINT again CHECK (VALUE <> 5::own)");
    for sql in [
        "SELECT 1::own",
        "SELECT 1::upon",
        "SELECT '{1}'::own[]",
        "SELECT a::own FROM of_own",
        "UPDATE of_own SET c = 7",
        "INSERT INTO of_own (d) VALUES (1)",
        "CREATE DOMAIN another AS own CHECK (VALUE < 9)",
    ] {
        assert!(["54001", "00000"].contains(&connection.query(sql).code()), "{sql}: {}", connection.query(sql));
    }
    assert_eq!(connection.query("SELECT 1::own").code(), "54001");
    run(&mut connection, "ALTER DOMAIN own DROP CONSTRAINT again");
    assert_eq!(number(&mut connection, "SELECT 1::own"), 1);
}
