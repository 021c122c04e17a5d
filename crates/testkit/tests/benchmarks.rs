//! pgbench and sysbench against the server under test, every step for a moment: `tests/clients/benchmarks.sh`.

use std::process::Command;

use testkit::Target;

#[test]
fn benchmarks_run_all_their_workloads() {
    let target = Target::start();
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/benchmarks.sh"))
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", target.port().to_string())
        .env("PGUSER", "postgres")
        .env("PGDATABASE", target.database())
        .output()
        .expect("bash runs");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(output.status.success(), "{said}\n{complained}");
    assert_eq!(target.panics(), Vec::<String>::new());
}
