//! Ctrl-C while a run is under way, in a process of its own: the program of these tests, started again.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench::client::Connection;
use bench::command;
use bench::result::RunFile;
use clap::Parser;
use rustix::process::{Pid, Signal, kill_process};

use crate::postgres::Postgres;

/// What the lab is told in the process of its own.
const WORDS: &str = "BENCH_IT_WORDS";

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: command::Command,
}

/// Nothing by itself.
#[test]
fn child() {
    if let Ok(words) = std::env::var(WORDS) {
        let good = command::main(Options::parse_from(words.split(' ')).command) == std::process::ExitCode::SUCCESS;
        std::process::exit(if good { 0 } else { 3 });
    }
}

/// Waits until a query answers with some hundreds, so that every client has done something.
fn await_work(target: &str, query: &str) {
    let mut admin = Connection::open(&target.parse().unwrap()).unwrap();
    // At first there is no such table.
    let mut done = || admin.query_one(query).ok().flatten().and_then(|text| text.parse::<i64>().ok());
    while done().unwrap_or(0) < 300 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_run_that_is_interrupted_is_kept_and_verified() {
    let (server, directory) = (Postgres::start(), tempfile::tempdir().unwrap());
    let target = server.url("postgres", None);
    let runs = [
        ("hotrow", "--duration 60s --warmup 0s", "SELECT sum(value) FROM hotrow_counter"),
        ("ingest", "--rows 100000000", "SELECT count(*) FROM ingest_row"),
    ];
    for (name, options, done) in runs {
        let path = directory.path().join(name).with_extension("json");
        let words = format!("lab {name} --target {target} --threads 3 {options} --verify --json {}", path.display());
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "interrupt::child", "--nocapture"]).env(WORDS, words).stdout(Stdio::null());
        let mut child = program.spawn().unwrap();
        await_work(&target, done);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let asked = Instant::now();
        assert_eq!(child.wait().unwrap().code(), Some(3), "{name}");
        assert!(asked.elapsed() < Duration::from_secs(30), "{name} took {:?} to end", asked.elapsed());
        let run = RunFile::read(&path).unwrap();
        assert_eq!(run.ended.as_deref(), Some("interrupted"), "{name}");
        assert!(run.points[0].transactions > 0 && !run.points[0].series.is_empty(), "{name}: {run:?}");
        assert!(!run.verdicts.is_empty() && run.verdicts.iter().all(|verdict| verdict.holds), "{name}: {run:?}");
    }
}
