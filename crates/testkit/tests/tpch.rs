//! The 22 queries of TPC-H: the server under test must answer as PostgreSQL does, row for row.
//!
//! The lab loads both and compares. `NYALA_TPCH_SCALE` is the scale factor (0.01), `NYALA_SEED` the seed of the data.

use std::process::Command;

use testkit::{Nyala, Oracle, Target};

/// Seed whose data gives every query rows at every scale from 0.01 on.
const SEED: &str = "1";

#[test]
fn all_queries_agree_with_postgresql() {
    let scale = std::env::var("NYALA_TPCH_SCALE").unwrap_or_else(|_| "0.01".to_owned());
    let seed = std::env::var("NYALA_SEED").unwrap_or_else(|_| SEED.to_owned());
    println!("NYALA_TPCH_SCALE={scale} NYALA_SEED={seed}");
    let subject = Target::start();
    let oracle = Oracle::shared();
    let reference = oracle.fresh_database();
    let url = |port: u16, database: &str| format!("postgres://postgres@127.0.0.1:{port}/{database}");
    let output = Command::new(Nyala::binary())
        .args(["bench", "tpch", "--repeat", "1", "--scale", &scale, "--seed", &seed])
        .args(["--target", &url(subject.port(), subject.database())])
        .args(["--check", &url(oracle.port(), &reference)])
        .output()
        .expect("the lab can be started");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(output.status.success(), "{said}\n{complained}");
    let answers: Vec<Vec<&str>> =
        said.lines().filter(|l| l.starts_with('Q')).map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(answers.len(), 22, "{said}");
    if seed == SEED {
        for answer in answers {
            assert_ne!(answer[1], "0", "{} finds no rows: it proves nothing", answer[0]);
        }
    }
    assert_eq!(subject.panics(), Vec::<String>::new());
}
