//! The data directory stays small, however much is written.

use std::path::Path;
use std::process::Command;

use testkit::{Nyala, Target};

/// Bytes that the data directory may have: of the log what is written until a checkpoint is made, the segments in use and next,
/// and two images.
const BOUND: u64 = 12 << 20;
/// Bytes of log that are written at least.
const WRITTEN: f64 = 8.0 * BOUND as f64;

fn size(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).expect("it is there").flatten();
    // A file may go meanwhile.
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

fn sample(http: u16, name: &str) -> f64 {
    let url = format!("http://127.0.0.1:{http}/metrics");
    let curl = Command::new("curl").args(["-sS", "--max-time", "10", &url]).output().expect("curl is installed");
    let page = String::from_utf8(curl.stdout).expect("pages are UTF-8");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().expect("samples are numbers")
}

#[test]
fn disk_use_is_bounded_under_endless_load() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory for the server");
    let (data, port, http) = (directory.path().join("data"), Nyala::free_port(), Nyala::free_port());
    let address = format!("127.0.0.1:{http}");
    let flags = ["--log-segment", "1MB", "--checkpoint-log", "1MB", "--http", &address];
    let server = Nyala::start_with(&data, port, &flags);
    let mut connection = server.connect();
    let mut run = |sql: &str| {
        let reply = connection.query(sql);
        assert_eq!(reply.error(), None, "{sql}");
        reply
    };
    run("CREATE TABLE t (id int PRIMARY KEY, b text)");
    run("INSERT INTO t SELECT n, '' FROM generate_series(1, 100) AS n");
    // One that stays prepared all the time does not keep the log.
    run("CREATE TABLE kept (id int PRIMARY KEY)");
    run("BEGIN; INSERT INTO kept VALUES (1); PREPARE TRANSACTION 'kept'");
    let mut most = 0;
    let mut rounds = 0u32;
    while !rounds.is_multiple_of(20) || sample(http, "nyala_log_position_bytes") < WRITTEN {
        run("UPDATE t SET b = repeat(md5(random()::text), 40)");
        most = most.max(size(&data));
        rounds += 1;
    }
    println!("{rounds} rounds; {most} bytes at most");
    assert!(most < BOUND, "{most} bytes");
    assert!(sample(http, "nyala_checkpoints_total") >= 8.0);
    assert_eq!(sample(http, "nyala_checkpoint_failures_total"), 0.0);
    assert!(sample(http, "nyala_checkpoint_duration_seconds") > 0.0);
    assert!(sample(http, "nyala_checkpoint_bytes") > 0.0);
    assert!(sample(http, "nyala_checkpoint_age_seconds") < 600.0);
    server.kill();
    let server = Nyala::start_with(&data, port, &flags);
    let mut connection = server.connect();
    assert_eq!(connection.query("COMMIT PREPARED 'kept'").error(), None);
    assert_eq!(connection.query("SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM kept)").value(), Some("101"));
}
