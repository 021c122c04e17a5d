//! The anomalies by name, at their edges: two writers at SERIALIZABLE of which the second must fail, and the neighbours
//! of each that must pass. Every schedule begins with t (id, v, u) of the ids 10, 20 … 100 with v = u = id.

use testkit::{Connection, Target};

/// Two sessions; each reads, then each writes, then both commit, `a` first.
struct Case {
    name: &'static str,
    reads: [&'static str; 2],
    writes: [&'static str; 2],
    /// Whether `b` must fail, at its write or at COMMIT.
    conflicts: bool,
}

const fn case(name: &'static str, reads: [&'static str; 2], writes: [&'static str; 2], conflicts: bool) -> Case {
    Case { name, reads, writes, conflicts }
}

const ALL: &str = "SELECT sum(v) FROM t";
const CASES: &[Case] = &[
    case(
        "write skew",
        ["SELECT v FROM t WHERE id IN (10, 20)", "SELECT v FROM t WHERE id IN (10, 20)"],
        ["UPDATE t SET v = 0 WHERE id = 10", "UPDATE t SET v = 0 WHERE id = 20"],
        true,
    ),
    case(
        "G2-item with one read each",
        ["SELECT v FROM t WHERE id = 20", "SELECT v FROM t WHERE id = 10"],
        ["UPDATE t SET v = 0 WHERE id = 10", "UPDATE t SET v = 0 WHERE id = 20"],
        true,
    ),
    case(
        "rows of their own",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE id = 20"],
        ["UPDATE t SET v = 0 WHERE id = 10", "UPDATE t SET v = 0 WHERE id = 20"],
        false,
    ),
    case("G2: two sums", [ALL, ALL], ["INSERT INTO t VALUES (1, 1, 1)", "INSERT INTO t VALUES (2, 2, 2)"], true),
    case(
        "phantom inside a range",
        ["SELECT v FROM t WHERE id BETWEEN 40 AND 60", "SELECT v FROM t WHERE id BETWEEN 40 AND 60"],
        ["INSERT INTO t VALUES (45, 1, 1)", "INSERT INTO t VALUES (55, 2, 2)"],
        true,
    ),
    case(
        "phantom at the closed end of a range",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE id > 30 AND id <= 45"],
        ["INSERT INTO t VALUES (45, 1, 1)", "UPDATE t SET v = 0 WHERE id = 10"],
        true,
    ),
    case(
        "beyond the closed end of a range",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE id > 30 AND id <= 45"],
        ["INSERT INTO t VALUES (46, 1, 1)", "UPDATE t SET v = 0 WHERE id = 10"],
        false,
    ),
    case(
        "at the open end of a range",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE id > 30 AND id < 45"],
        ["INSERT INTO t VALUES (45, 1, 1)", "UPDATE t SET v = 0 WHERE id = 10"],
        false,
    ),
    case(
        "a gap that nobody has filled",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE id BETWEEN 41 AND 49"],
        ["INSERT INTO t VALUES (49, 1, 1)", "UPDATE t SET v = 0 WHERE id = 10"],
        true,
    ),
    case(
        "after the last key",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE id > 90"],
        ["INSERT INTO t VALUES (1000, 1, 1)", "UPDATE t SET v = 0 WHERE id = 10"],
        true,
    ),
    case(
        "the largest, read backwards",
        ["SELECT v FROM t WHERE id = 10", "SELECT id FROM t ORDER BY id DESC LIMIT 1"],
        ["INSERT INTO t VALUES (1000, 1, 1)", "UPDATE t SET v = 0 WHERE id = 10"],
        true,
    ),
    case(
        "a delete from a range",
        ["SELECT v FROM t WHERE id = 10", "SELECT count(*) FROM t WHERE id BETWEEN 40 AND 60"],
        ["DELETE FROM t WHERE id = 50", "UPDATE t SET v = 0 WHERE id = 10"],
        true,
    ),
    case(
        "a delete of the row that was read",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE id = 50"],
        ["DELETE FROM t WHERE id = 50", "UPDATE t SET v = 0 WHERE id = 10"],
        true,
    ),
    case(
        "a key moves into a range",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE u BETWEEN 41 AND 59"],
        ["UPDATE t SET u = 45 WHERE id = 90", "UPDATE t SET v = 0 WHERE id = 10"],
        true,
    ),
    case(
        "a key moves out of a range",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE u BETWEEN 41 AND 59"],
        ["UPDATE t SET u = 500 WHERE id = 50", "UPDATE t SET v = 0 WHERE id = 10"],
        true,
    ),
    case(
        "a unique key that was not there",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE u = 45"],
        ["INSERT INTO t VALUES (45, 1, 45)", "UPDATE t SET v = 0 WHERE id = 10"],
        true,
    ),
    case(
        "the neighbour of a unique key that was not there",
        ["SELECT v FROM t WHERE id = 10", "SELECT v FROM t WHERE u = 45"],
        ["INSERT INTO t VALUES (45, 1, 46)", "UPDATE t SET v = 0 WHERE id = 10"],
        false,
    ),
    case(
        "an update that found nothing",
        ["SELECT v FROM t WHERE id = 10", "UPDATE t SET v = 1 WHERE id = 45"],
        ["INSERT INTO t VALUES (45, 1, 45)", "UPDATE t SET v = 0 WHERE id = 10"],
        true,
    ),
    case(
        "FOR UPDATE of other rows than those that are read",
        ["SELECT v FROM t WHERE id = 10 FOR UPDATE", "SELECT v FROM t WHERE id = 20 FOR UPDATE"],
        ["UPDATE t SET v = (SELECT v FROM t WHERE id = 30) WHERE id = 10", "UPDATE t SET v = 1 WHERE id = 20"],
        false,
    ),
    case(
        "FOR UPDATE of a range that a row comes into",
        ["SELECT v FROM t WHERE id = 20", "SELECT v FROM t WHERE id BETWEEN 40 AND 60 FOR UPDATE"],
        ["INSERT INTO t VALUES (45, 1, 45)", "UPDATE t SET v = 1 WHERE id = 20"],
        true,
    ),
    case(
        "the first alone has read what the other writes",
        [ALL, "SELECT v FROM t WHERE id = 10"],
        ["UPDATE t SET v = 0 WHERE id = 20", "UPDATE t SET v = 0 WHERE id = 10"],
        false,
    ),
    case(
        "the second alone has read what the other writes",
        ["SELECT v FROM t WHERE id = 50", ALL],
        ["UPDATE t SET v = 0 WHERE id = 20", "UPDATE t SET v = 0 WHERE id = 10"],
        false,
    ),
];

fn start(connection: &mut Connection) {
    for sql in [
        "DROP TABLE IF EXISTS t",
        "CREATE TABLE t (id int PRIMARY KEY, v int, u int UNIQUE)",
        "INSERT INTO t SELECT i, i, i FROM generate_series(10, 100, 10) AS i",
        // So that ranges are read by their index and not by all rows.
        "INSERT INTO t SELECT i, i, i FROM generate_series(100000, 100500) AS i",
        "ANALYZE t",
        "DELETE FROM t WHERE id >= 100000",
    ] {
        assert_eq!(connection.query(sql).error(), None, "{sql}");
    }
}

fn code(connection: &mut Connection, sql: &str) -> String {
    connection.query(sql).code().to_string()
}

#[test]
fn each_edge_of_what_was_read_counts_and_nothing_beyond() {
    let target = Target::start();
    let (mut a, mut b) = (target.connect(), target.connect());
    let mut wrong = Vec::new();
    for case in CASES {
        start(&mut a);
        let mut codes = Vec::new();
        for (session, read) in [&mut a, &mut b].into_iter().zip(case.reads) {
            codes.push(code(session, "BEGIN ISOLATION LEVEL SERIALIZABLE"));
            codes.push(code(session, read));
        }
        codes.push(code(&mut a, case.writes[0]));
        codes.push(code(&mut a, "COMMIT"));
        assert!(codes.iter().all(|code| code == "00000"), "{}: {codes:?}", case.name);
        let write = code(&mut b, case.writes[1]);
        let end = code(&mut b, "COMMIT");
        let failed = write == "40001" || end == "40001";
        if failed != case.conflicts {
            wrong.push(format!("{}: write {write}, COMMIT {end}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Fekete, O'Neil and O'Neil (2004): the reader sees the deposit and not the fee, so the fee must know of the deposit.
#[test]
fn the_read_only_anomaly() {
    let target = Target::start();
    let (mut fee, mut deposit, mut reader) = (target.connect(), target.connect(), target.connect());
    start(&mut fee);
    for sql in ["BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT v FROM t WHERE id IN (10, 20)"] {
        assert_eq!(code(&mut fee, sql), "00000");
    }
    let deposited = ["BEGIN ISOLATION LEVEL SERIALIZABLE", "UPDATE t SET v = v + 20 WHERE id = 20", "COMMIT"];
    deposited.iter().for_each(|sql| assert_eq!(code(&mut deposit, sql), "00000"));
    for modes in ["READ ONLY", "READ WRITE"] {
        assert_eq!(code(&mut reader, &format!("BEGIN ISOLATION LEVEL SERIALIZABLE, {modes}")), "00000");
        let sum = reader.query("SELECT sum(v) FROM t WHERE id IN (10, 20)");
        assert_eq!((sum.value(), code(&mut reader, "COMMIT").as_str()), (Some("50"), "00000"), "{modes}");
    }
    let write = code(&mut fee, "UPDATE t SET v = v - 11 WHERE id = 10");
    assert_eq!((write.as_str(), code(&mut fee, "COMMIT").as_str()), ("00000", "40001"));
}

/// A transaction that only reads neither fails nor waits, whatever others do to what it reads, unless one of them comes to stand before
/// another that it has seen.
#[test]
fn who_only_reads_is_not_disturbed() {
    let target = Target::start();
    let (mut reader, mut writer) = (target.connect(), target.connect());
    start(&mut reader);
    for modes in ["READ ONLY", "READ WRITE"] {
        // The writer holds a row while the reader begins, reads all, and commits.
        for sql in
            ["BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT sum(v) FROM t", "UPDATE t SET v = v + 1 WHERE id = 10"]
        {
            assert_eq!(code(&mut writer, sql), "00000");
        }
        assert_eq!(code(&mut reader, &format!("BEGIN ISOLATION LEVEL SERIALIZABLE, {modes}")), "00000");
        let before = reader.query(ALL).value().map(str::to_string);
        for sql in ["COMMIT", "DELETE FROM t WHERE id = 20", "INSERT INTO t VALUES (20, 20, 20)"] {
            assert_eq!(code(&mut writer, sql), "00000");
        }
        assert_eq!(reader.query(ALL).value().map(str::to_string), before, "{modes}");
        assert_eq!(code(&mut reader, "COMMIT"), "00000", "{modes}");
    }
}

/// Transactions of other levels promise nothing, and make nobody give way, as on PostgreSQL.
#[test]
fn levels_mix() {
    let target = Target::start();
    let (mut a, mut b) = (target.connect(), target.connect());
    for level in ["READ COMMITTED", "REPEATABLE READ"] {
        start(&mut a);
        assert_eq!(code(&mut a, "BEGIN ISOLATION LEVEL SERIALIZABLE"), "00000");
        assert_eq!(code(&mut a, ALL), "00000");
        assert_eq!(code(&mut b, &format!("BEGIN ISOLATION LEVEL {level}")), "00000");
        // What is only locked has not changed.
        for sql in ["SELECT v FROM t WHERE id = 20 FOR UPDATE", "UPDATE t SET v = 0 WHERE id = 30"] {
            assert_eq!(code(&mut b, sql), "00000");
        }
        assert_eq!(code(&mut a, "UPDATE t SET v = 0 WHERE id = 10"), "00000");
        assert_eq!((code(&mut b, "COMMIT"), code(&mut a, "COMMIT")), ("00000".into(), "00000".into()), "{level}");
        start(&mut a);
        for sql in ["BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT v FROM t WHERE id = 20"] {
            assert_eq!(code(&mut a, sql), "00000");
        }
        for sql in [&*format!("BEGIN ISOLATION LEVEL {level}"), "SELECT v FROM t WHERE id = 20 FOR UPDATE", "COMMIT"] {
            assert_eq!(code(&mut b, sql), "00000");
        }
        assert_eq!(code(&mut a, "UPDATE t SET v = 0 WHERE id = 10"), "00000");
        assert_eq!(code(&mut a, "COMMIT"), "00000", "a row that was only locked has not changed ({level})");
    }
}
