//! A suite against a server that is there and one that is not.

use std::process::ExitCode;

use bench::command::{Command, main};
use bench::report::read_all;
use clap::Parser;

use crate::postgres::Postgres;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

fn lab(words: &[&str]) -> bool {
    let code = main(Options::parse_from([&["lab"], words].concat()).command);
    format!("{code:?}") == format!("{:?}", ExitCode::SUCCESS)
}

const FILE: &str = "[defaults]\nduration = '300ms'\nwarmup = '0s'\nrows = 100\nrepeat = 2\nload = true\nverify = true\n\
                    [[target]]\nname = 'Gone'\nurl = 'postgres://postgres@127.0.0.1:1/x'\n\
                    [[experiment]]\nname = 'sysbench'\nthreads = [1, 2]\nworkload = 'oltp_point_select'\n\
                    [[experiment]]\nname = 'sysbench'\nthreads = 1\ntargets = ['Postgres']\n";

#[test]
fn a_suite_keeps_what_it_has() {
    let server = Postgres::start();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    let there = format!("Postgres={}", server.url("postgres", None));
    std::fs::write(path("suite.toml"), FILE).unwrap();
    let words = ["suite", &path("suite.toml"), "--json", &path("results"), "--target", &there];
    assert!(lab(&[&words[..], &["--dry-run"]].concat()));
    assert!(!directory.path().join("results").exists());

    assert!(!lab(&words), "one of the servers is not there");
    let runs = read_all(&[path("results").into()]).unwrap();
    let points: Vec<usize> = runs.iter().map(|run| run.points.len()).collect();
    assert_eq!(points, [4, 2]);
    assert!(runs.iter().all(|run| run.label == "Postgres" && run.is_good() && !run.verdicts.is_empty()));
    let page = std::fs::read_to_string(path("results/report.html")).unwrap();
    assert!(page.contains("sysbench · oltp_point_select") && page.contains("sysbench · oltp_read_write"));
    assert!(lab(&["diff", &path("results"), &path("results")]));
    assert!(lab(&["report", &path("results"), "--markdown", &path("report.md")]));
    assert!(std::fs::read_to_string(path("report.md")).unwrap().contains("not durable"));
}
