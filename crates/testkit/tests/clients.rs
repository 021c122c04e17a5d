//! The programs of `tests/clients` against the server under test.
//!
//! psql runs always. The drivers need a network the first time; `CLIENTS="psycopg pgx node-postgres pgjdbc"` adds them.

use std::process::Command;

use testkit::Target;

#[test]
fn clients_work() {
    let target = Target::start();
    let chosen = std::env::var("CLIENTS").unwrap_or_default();
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/run.sh"))
        .arg("psql")
        .args(chosen.split_whitespace())
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", target.port().to_string())
        .env("PGUSER", "postgres")
        .env("PGDATABASE", target.database())
        .output()
        .expect("bash runs");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(output.status.success(), "{said}\n{complained}");
}
