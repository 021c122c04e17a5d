//! A full disk: writes are refused with 53100, everything else continues, and nothing acknowledged is lost.

use std::time::{Duration, Instant};

use testkit::{Connection, Nyala};

use super::namespace::{SmallDisk, is_inside};
use super::server::{number, run};

/// Megabytes: one segment of the log and some, then, without the ballast, one segment more.
const SIZE: usize = 160;
const BALLAST: usize = 72;

#[test]
fn a_full_disk_refuses_writes_and_nothing_else() {
    let name = "robust::disk::a_full_disk_refuses_writes_and_nothing_else";
    if !is_inside(name) {
        return;
    }
    let Some(disk) = SmallDisk::in_memory(name, SIZE) else { return };
    let ballast = disk.ballast(BALLAST);
    let (data, port) = (disk.path().join("data"), Nyala::free_port());
    let server = Nyala::start(&data, port);
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    let acknowledged = insert_until_full(&mut connection, 1);
    println!("full after {} rows", acknowledged.len());
    reads_go_on(&server, &acknowledged);
    // A transaction that is larger than what is left is refused, too, and its rows are gone.
    let large = "INSERT INTO t SELECT i, repeat('y', 20000) FROM generate_series(5000001, 5005000) AS g (i)";
    assert_eq!(connection.query(large).code(), "53100");
    let line = "\t".to_owned() + &"y".repeat(20000) + "\n";
    let lines: String = (6_000_001..6_000_500).map(|i| format!("{i}{line}")).collect();
    assert_eq!(connection.copy("COPY t FROM STDIN", &lines).code(), "53100");
    reads_go_on(&server, &acknowledged);
    assert_eq!(connection.query("BEGIN").code(), "00000");
    assert_eq!(connection.query(large).code(), "53100");
    run(&mut connection, "ROLLBACK");
    let defined = define_until_full(&mut connection);
    println!("{defined} tables defined on what is left");
    let definitions = [
        "CREATE INDEX gone_index ON t (left(b, 9))",
        "ALTER TABLE t ADD COLUMN gone int DEFAULT 1",
        "TRUNCATE t",
        "DROP TABLE t",
    ];
    for sql in definitions {
        // The definition may fit; the transaction does not.
        let sql = format!(
            "BEGIN; CREATE TABLE gone (a int, b text); {sql}; INSERT INTO gone VALUES (1, repeat('y', 40000)); COMMIT"
        );
        assert_eq!(connection.query(&sql).code(), "53100", "{sql}");
        connection.query("ROLLBACK");
    }
    assert_eq!(connection.query("SELECT gone FROM t").code(), "42703");
    assert_eq!(connection.query("SELECT * FROM gone").code(), "42P01");
    assert_eq!(connection.query("DROP INDEX gone_index").code(), "42704");
    reads_go_on(&server, &acknowledged);
    assert_eq!(number(&mut connection, "SELECT count(*) FROM pg_class WHERE relname LIKE 'defined%'"), defined);

    std::fs::remove_file(&ballast).expect("the ballast can be removed");
    // The first one to ask may be refused by what was known of the disk before it asked.
    let begun = Instant::now();
    while connection.query("INSERT INTO t VALUES (5000001, repeat('y', 20000))").code() != "00000" {
        assert!(begun.elapsed() < Duration::from_secs(20), "writes do not go on although there is space");
        std::thread::sleep(Duration::from_millis(50));
    }
    run(&mut connection, "INSERT INTO t SELECT i, repeat('y', 20000) FROM generate_series(5000002, 5000800) AS g (i)");
    assert_eq!(connection.copy("COPY t FROM STDIN", &lines[..line.len() * 100 + 700]).code(), "00000");
    run(&mut connection, "CREATE TABLE made_later (a int)");
    let mut acknowledged = acknowledged;
    acknowledged.extend(5_000_001..=5_000_800);
    acknowledged.extend(6_000_001..=6_000_100);
    acknowledged.extend(insert_until_full(&mut connection, 1_000_000));
    server.kill();
    // The disk is still full: it can be read all the same.
    let server = Nyala::start(&data, port);
    reads_go_on(&server, &acknowledged);
    run(&mut server.connect(), "SELECT * FROM made_later");
    assert!(!server.stderr().contains("panic"), "{}", server.stderr());
    assert_eq!(server.terminate(), 0);
}

/// Makes tables until a definition is refused; how many there are.
fn define_until_full(connection: &mut Connection) -> i64 {
    for count in 0.. {
        let reply = connection.query(&format!("CREATE TABLE defined{count} (a int, b text DEFAULT 'something')"));
        match reply.code() {
            "00000" => {}
            "53100" => return count,
            _ => panic!("{reply}"),
        }
    }
    unreachable!("the loop ends by a return")
}

/// Inserts large rows one by one until a write is refused; the keys that were acknowledged.
fn insert_until_full(connection: &mut Connection, first: i64) -> Vec<i64> {
    let mut acknowledged = Vec::new();
    for key in first.. {
        let reply = connection.query(&format!("INSERT INTO t VALUES ({key}, repeat('x', 20000))"));
        match reply.code() {
            "00000" => acknowledged.push(key),
            "53100" => break,
            _ => panic!("{reply}"),
        }
    }
    assert!(acknowledged.len() > 100, "full after {} rows", acknowledged.len());
    acknowledged
}

fn reads_go_on(server: &Nyala, acknowledged: &[i64]) {
    let mut connection = server.connect();
    let reply = run(&mut connection, "SELECT a FROM t ORDER BY a");
    let mut expected = acknowledged.to_vec();
    expected.sort_unstable();
    let found: Vec<i64> = reply.rows().map(|row| row[0].as_deref().unwrap_or("").parse().expect("a number")).collect();
    assert!(found == expected, "{} rows, {} acknowledged", found.len(), expected.len());
    assert_eq!(number(&mut connection, "SELECT min(length(b)) FROM t"), 20000);
}
