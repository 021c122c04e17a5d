//! The programs of `tests/clients` against PostgreSQL, which proves them, and against the server under test.
//!
//! The drivers come from their registries the first time; without them this test fails. `CLIENTS="psql pgx"` chooses.

use std::process::Command;

use testkit::Target;

#[test]
fn clients_work() {
    for target in [Target::reference(), Target::start()] {
        let chosen = std::env::var("CLIENTS").unwrap_or_default();
        let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/run.sh"))
            .args(chosen.split_whitespace())
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", target.port().to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", target.database())
            .output()
            .expect("bash runs");
        let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        println!("{}:\n{said}", target.name());
        assert!(output.status.success(), "{}:\n{said}\n{complained}", target.name());
        assert_eq!(target.panics(), Vec::<String>::new());
    }
}
