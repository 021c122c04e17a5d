//! A disk that is too full for a checkpoint, and one that the log has filled.

use std::path::Path;
use std::time::{Duration, Instant};

use testkit::{Connection, Nyala};

use super::namespace::{SmallDisk, files, is_inside};
use super::server::{number, run};

/// Rows that hardly compress, about 10 MB.
const FILL: &str = "INSERT INTO t SELECT #0000 + i, (SELECT string_agg(md5((i * 1000 + j)::text), '') FROM generate_series(1, 31) AS h (j)) \
                    FROM generate_series(1, 10000) AS g (i)";

/// How long the server may take to find out that there is space again.
const PATIENCE: Duration = Duration::from_secs(40);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn images(data: &Path) -> Vec<String> {
    files(data, &[".image", "manifest", "manifest.new"])
}

fn fill(connection: &mut Connection, number: i64) {
    run(connection, &FILL.replace('#', &number.to_string()));
}

#[test]
fn a_checkpoint_that_does_not_fit_changes_nothing_and_is_made_later() {
    let name = "robust::disk_checkpoint::a_checkpoint_that_does_not_fit_changes_nothing_and_is_made_later";
    if !is_inside(name) {
        return;
    }
    // Two segments of the log, an image of 30 MB while another one is made, and some.
    let Some(disk) = SmallDisk::in_memory(name, 260) else { return };
    let (data, port) = (disk.path().join("data"), Nyala::free_port());
    let flags = ["--checkpoint-log", "16MB"];
    let server = Nyala::start_with(&data, port, &flags);
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int PRIMARY KEY, b text); CREATE INDEX ON t (left(b, 20))");
    until("the next segment is not prepared", || files(&data, &["spare"]).len() == 1);
    let ballast = disk.ballast((disk.free() - 4) as usize);
    (1..=3).for_each(|n| fill(&mut connection, n));
    // It is due by now, and asked for as well.
    let reply = connection.query("CHECKPOINT");
    assert_eq!(reply.code(), "53100", "{reply}");
    assert_eq!(images(&data), [""; 0], "leftovers of an image that did not fit");
    run(&mut connection, "INSERT INTO t VALUES (1, 'written beside a checkpoint that failed')");
    assert_eq!(number(&mut connection, "SELECT count(*) FROM t"), 30_001);
    // Nobody has to ask again.
    std::fs::remove_file(&ballast).expect("the ballast can be removed");
    until("no checkpoint is made although there is space", || !files(&data, &["manifest"]).is_empty());
    until("a checkpoint goes on for ever", || server.stderr().contains("checkpoint 2") || images(&data).len() > 1);
    let first = images(&data);

    // A second one that does not fit leaves the first, and the log is read on from there.
    let ballast = disk.ballast((disk.free() - 4) as usize);
    run(&mut connection, "INSERT INTO t VALUES (2, 'after the image')");
    run(&mut connection, "CREATE TABLE later (a int)");
    let reply = connection.query("CHECKPOINT");
    assert_eq!(reply.code(), "53100", "{reply}");
    assert_eq!(images(&data), first, "the image before is not as it was");
    server.kill();
    let server = Nyala::start_with(&data, port, &flags);
    let mut connection = server.connect();
    assert_eq!(number(&mut connection, "SELECT count(*) FROM t"), 30_002);
    assert_eq!(number(&mut connection, "SELECT count(*) FROM t WHERE left(b, 20) = 'after the image'"), 1);
    run(&mut connection, "SELECT * FROM later");
    assert_eq!(images(&data), first);

    // The log goes on being cut where an image makes it needless.
    std::fs::remove_file(&ballast).expect("the ballast can be removed");
    for n in 10..28 {
        until("the log is full although it can be cut", || {
            let copy = format!("INSERT INTO t SELECT a + {n}00000, b FROM t WHERE a BETWEEN 10001 AND 20000");
            let reply = connection.query(&copy);
            assert!(["00000", "53100"].contains(&reply.code()), "{reply}");
            reply.code() == "00000"
        });
        run(&mut connection, "DELETE FROM t WHERE a > 1000000");
    }
    run(&mut connection, "CHECKPOINT");
    run(&mut connection, "INSERT INTO later VALUES (1)");
    until("the log is not cut", || files(&data, &[".log"]).len() <= 2);
    assert!(!server.stderr().contains("panic"), "{}", server.stderr());
    server.kill();
    let server = Nyala::start_with(&data, port, &flags);
    assert_eq!(number(&mut server.connect(), "SELECT count(*) FROM t"), 30_002);
    assert_eq!(server.terminate(), 0);
}

/// The log has filled the disk, and what it tells of is small: a checkpoint makes room, and nobody has to do anything.
#[test]
fn a_log_that_fills_the_disk_is_replaced_by_an_image() {
    let name = "robust::disk_checkpoint::a_log_that_fills_the_disk_is_replaced_by_an_image";
    if !is_inside(name) {
        return;
    }
    let Some(disk) = SmallDisk::in_memory(name, 220) else { return };
    let (data, port) = (disk.path().join("data"), Nyala::free_port());
    // By its size alone, no checkpoint would ever be due.
    let server = Nyala::start(&data, port);
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int PRIMARY KEY, n int, b text)");
    run(&mut connection, "INSERT INTO t SELECT i, 0, '' FROM generate_series(1, 50) AS g (i)");
    let (mut refused, mut rounds) = (0, 0);
    // 300 MB and more.
    for n in 1..=330 {
        rounds = n;
        let sql = format!("UPDATE t SET n = {n}, b = repeat('{}', 20000)", n % 10);
        until("updates do not go on although a checkpoint would make room", || {
            let reply = connection.query(&sql);
            assert!(["00000", "53100"].contains(&reply.code()), "{reply}");
            refused += u32::from(reply.code() == "53100");
            reply.code() == "00000"
        });
    }
    println!("{refused} refusals on the way");
    assert!(server.stderr().contains("; the log is kept from"), "{}", server.stderr());
    server.kill();
    let server = Nyala::start(&data, port);
    let sql = format!("SELECT count(*) FROM t WHERE n = {rounds} AND length(b) = 20000");
    assert_eq!(number(&mut server.connect(), &sql), 50);
    assert_eq!(server.terminate(), 0);
}

/// A directory on a disk without any space: a server that has been there before starts, and a new one says why it cannot.
#[test]
fn a_start_on_a_full_disk() {
    let name = "robust::disk_checkpoint::a_start_on_a_full_disk";
    if !is_inside(name) {
        return;
    }
    let Some(disk) = SmallDisk::in_memory(name, 200) else { return };
    let (data, port) = (disk.path().join("data"), Nyala::free_port());
    let server = Nyala::start(&data, port);
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)");
    until("the next segment is not prepared", || files(&data, &["spare"]).len() == 1);
    // Its messages need some.
    let ballast = disk.ballast(disk.free() as usize - 1);
    server.kill();
    let server = Nyala::start(&data, port);
    let mut connection = server.connect();
    assert_eq!(number(&mut connection, "SELECT count(*) FROM t"), 1);
    run(&mut connection, "INSERT INTO t VALUES (2)");
    assert_eq!(server.terminate(), 0);
    let other = disk.path().join("other");
    let server = Nyala::launch(&other, port, &[]);
    let stderr = disk.path().join("other.stderr");
    assert_ne!(server.wait(), 0);
    let said = std::fs::read_to_string(&stderr).unwrap_or_default();
    println!("a new directory on a full disk: {said}");
    std::fs::remove_file(&ballast).expect("the ballast can be removed");
    let server = Nyala::start(&other, port);
    run(&mut server.connect(), "CREATE TABLE t (a int)");
    assert_eq!(server.terminate(), 0);
}
