//! A full disk: writes are refused with 53100, all else goes on, and nothing acknowledged is lost.
//!
//! The data directory is a small tmpfs in a mount namespace of its own, so the test runs itself again inside of one.

use std::process::Command;
use std::time::{Duration, Instant};

use testkit::{Connection, Nyala};

use super::server::{number, run};

const INSIDE: &str = "NYALA_IN_NAMESPACE";

/// Megabytes: one segment of the log and some, then, without the ballast, one segment more.
const SIZE: usize = 160;
const BALLAST: usize = 72;

#[test]
fn a_full_disk_refuses_writes_and_nothing_else() {
    if testkit::Target::is_postgres() {
        println!("not run: there is no server whose disk could be full");
        return;
    }
    if std::env::var_os(INSIDE).is_some() {
        return fill();
    }
    let this = std::env::current_exe().expect("the test knows its own path");
    let can = |flags: &str| Command::new("unshare").args([flags, "true"]).output().is_ok_and(|o| o.status.success());
    let Some(flags) = ["-Urm", "-m"].into_iter().find(|flags| can(flags)) else {
        println!("not run: no namespaces here");
        return;
    };
    let output = Command::new("unshare")
        .args([flags, this.to_str().expect("the path is UTF-8")])
        .args(["--exact", "robust::disk::a_full_disk_refuses_writes_and_nothing_else", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare runs");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

fn fill() {
    let directory = tempfile::tempdir().expect("a directory for the server");
    let disk = directory.path();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={SIZE}M"), "tmpfs"])
        .arg(disk)
        .status()
        .expect("mount runs");
    if !mounted.success() {
        println!("not run: no tmpfs here");
        return;
    }
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![b'x'; BALLAST << 20]).expect("the ballast fits");
    let (data, port) = (disk.join("data"), Nyala::free_port());
    let server = Nyala::start(&data, port);
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    let acknowledged = insert_until_full(&mut connection, 1);
    println!("full after {} rows", acknowledged.len());
    reads_go_on(&server, &acknowledged);
    // A transaction that is larger than what is left is refused, too, and its rows are gone.
    let large = "INSERT INTO t SELECT i, repeat('y', 20000) FROM generate_series(5000001, 5005000) AS g (i)";
    assert_eq!(connection.query(large).code(), "53100");
    reads_go_on(&server, &acknowledged);
    assert_eq!(connection.query("BEGIN").code(), "00000");
    assert_eq!(connection.query(large).code(), "53100");
    run(&mut connection, "ROLLBACK");

    std::fs::remove_file(&ballast).expect("the ballast can be removed");
    // The first one to ask may be refused by what was known of the disk before it asked.
    let begun = Instant::now();
    while connection.query("INSERT INTO t VALUES (5000001, repeat('y', 20000))").code() != "00000" {
        assert!(begun.elapsed() < Duration::from_secs(20), "writes do not go on although there is space");
        std::thread::sleep(Duration::from_millis(50));
    }
    run(&mut connection, "INSERT INTO t SELECT i, repeat('y', 20000) FROM generate_series(5000002, 5001000) AS g (i)");
    run(&mut connection, "CREATE TABLE made_later (a int)");
    let mut acknowledged = acknowledged;
    acknowledged.extend(5_000_001..=5_001_000);
    acknowledged.extend(insert_until_full(&mut connection, 1_000_000));
    server.kill();
    // The disk is still full: it can be read all the same.
    let server = Nyala::start(&data, port);
    reads_go_on(&server, &acknowledged);
    run(&mut server.connect(), "SELECT * FROM made_later");
    assert!(!server.stderr().contains("panic"), "{}", server.stderr());
    assert_eq!(server.terminate(), 0);
    let _ = Command::new("umount").arg("-l").arg(disk).status();
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
