//! Experiments against a PostgreSQL of their own: what verification finds, and how a run ends that cannot go on.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use bench::command::{self, Command, Workload};
use bench::result::{RunFile, Verdict};
use clap::Parser;

use crate::postgres::Postgres;
use crate::proxy::Proxy;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

const SHORT: [(&str, &str); 3] = [("--warmup", "200ms"), ("--duration", "1s"), ("--seed", "7")];

fn command(name: &str, target: &str, rest: &[&str]) -> Command {
    let defaults = SHORT.iter().filter(|(option, _)| !rest.contains(option));
    let own = defaults.flat_map(|(option, value)| [*option, *value]).chain(rest.iter().copied());
    let all = ["lab", name, "--target", target].into_iter().chain(own);
    Options::parse_from(all).command
}

fn workload(name: &str, target: &str, rest: &[&str]) -> Workload {
    match command(name, target, rest) {
        Command::Workload(workload) => workload,
        other => panic!("not a workload: {other:?}"),
    }
}

fn run(name: &str, target: &str, rest: &[&str]) -> RunFile {
    let run = bench::experiments::run(workload(name, target, rest).task());
    run.unwrap_or_else(|refusal| panic!("{name} is refused: {refusal}")).expect("it measures")
}

fn refused(name: &str, target: &str, rest: &[&str]) -> String {
    let why = match bench::experiments::run(workload(name, target, rest).task()) {
        Err(refusal) => refusal.to_string(),
        Ok(_) => panic!("{name} {rest:?} is not refused"),
    };
    assert!(!why.is_empty() && !why.contains('\n'), "one line: {why}");
    assert_eq!(command::main(command(name, target, rest)), ExitCode::FAILURE);
    why
}

fn broken(run: &RunFile) -> Vec<&Verdict> {
    run.verdicts.iter().filter(|verdict| !verdict.holds).collect()
}

/// Options of runs that are small and verified.
const VERIFIED: [(&str, &[&str]); 8] = [
    ("hotrow", &["--verify"]),
    ("hotrow", &["--verify", "--load", "--counters", "50", "--pipelined", "10"]),
    ("ingest", &["--verify", "--threads", "8", "--rows", "5003", "--mode", "insert,pipelined,copy"]),
    ("bank", &["--verify", "--accounts", "500", "--readers", "20"]),
    ("bank", &["--verify", "--accounts", "500", "--locking", "update", "--isolation", "serializable"]),
    ("tpcb", &["--verify", "--scale", "1"]),
    ("ycsb", &["--verify", "--records", "500"]),
    ("keylookup", &["--verify", "--rows", "2000", "--threads", "1;4"]),
];

#[test]
fn every_experiment_verifies_what_it_has_done() {
    let server = Postgres::start();
    let target = server.url("postgres", None);
    for (name, options) in VERIFIED {
        let run = run(name, &target, options);
        assert!(run.is_good() && !run.verdicts.is_empty(), "{name} {options:?}: {:#?}", run.verdicts);
        assert!(run.points.iter().all(|point| point.errors.is_empty()), "{name}: {:?}", run.points);
    }
    // Again, on the tables that are there.
    let again = run("bank", &target, &["--verify", "--accounts", "500", "--no-load", "--threads", "2;4"]);
    assert!(again.is_good() && again.load.is_none(), "{:#?}", again.verdicts);
    for (name, ..) in VERIFIED {
        assert_eq!(command::main(command(name, &target, &["--drop"])), ExitCode::SUCCESS);
    }
    assert_eq!(refused("bank", &target, &["--no-load"]), "there are no loaded tables");
}

/// Changes that somebody else makes during a run, by a trigger, and what they break.
#[test]
fn a_row_that_was_changed_behind_an_experiment_is_found() {
    let server = Postgres::start();
    let target = server.url("postgres", None);
    let mut admin = bench::client::Connection::open(&target.parse().unwrap()).unwrap();
    admin
        .query(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN IF random() < 0.1 THEN RETURN NULL; END IF; RETURN NEW; END'",
        )
        .unwrap();
    let cases: [(&str, &str, &str, &[&str]); 5] = [
        ("hotrow", "hotrow_counter", "UPDATE", &["--verify"]),
        ("ingest", "ingest_row", "INSERT", &["--verify", "--rows", "5000", "--threads", "4"]),
        ("tpcb", "tpcb_history", "INSERT", &["--verify", "--scale", "1"]),
        ("ycsb", "usertable", "INSERT", &["--verify", "--records", "500", "--workload", "d,e"]),
        ("bank", "bank_transfer", "INSERT", &["--verify", "--accounts", "500"]),
    ];
    for (name, table, event, options) in cases {
        assert!(run(name, &target, options).is_good());
        let trigger = format!("CREATE TRIGGER t BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()");
        admin.query(&trigger).unwrap();
        let run = run(name, &target, options);
        assert!(!run.is_good() && !broken(&run).is_empty(), "{name}: {:#?}", run.verdicts);
        assert!(broken(&run).iter().any(|verdict| verdict.found.contains("LOST")), "{name}: {:#?}", run.verdicts);
    }
}

#[test]
fn a_commit_that_never_was_is_found() {
    let server = Postgres::start();
    let direct = server.url("postgres", None);
    let bank = ["--accounts", "1000", "--verify"];
    assert_eq!(command::main(command("bank", &direct, &bank)), ExitCode::SUCCESS);
    let tpcc = ["--warehouses", "1", "--threads", "4", "--duration", "3s"];
    assert_eq!(command::main(command("tpcc", &direct, &tpcc)), ExitCode::SUCCESS);
    for (name, options) in [("bank", &bank[..]), ("tpcc", &tpcc[..])] {
        let honest = Proxy::start(server.port(), 0);
        assert_eq!(command::main(command(name, &honest.url(), options)), ExitCode::SUCCESS, "{name}");
        assert!(honest.counts().0 > 20, "{name} commits: {:?}", honest.counts());
        let lying = Proxy::start(server.port(), 20);
        assert_eq!(command::main(command(name, &lying.url(), options)), ExitCode::FAILURE, "{name}");
        assert_eq!(lying.counts().1, 1, "{name}");
    }
    // Only the one that was dropped.
    let lying = Proxy::start(server.port(), 30);
    let run = run("bank", &lying.url(), &bank);
    let [verdict] = broken(&run)[..] else { panic!("{:#?}", run.verdicts) };
    assert!(verdict.found.contains(", 1 LOST, the first "), "{verdict:?}");
}

#[test]
fn a_run_that_cannot_begin_says_why_in_one_line() {
    let server = Postgres::start();
    let nobody = "postgres://postgres@127.0.0.1:1/postgres";
    assert!(refused("hotrow", nobody, &[]).contains("Connection refused"));
    let mut admin = bench::client::Connection::open(&server.url("postgres", None).parse().unwrap()).unwrap();
    admin.query("CREATE ROLE scram LOGIN PASSWORD 'right'").unwrap();
    let wrong = refused("hotrow", &server.url("scram", Some("wrong")), &[]);
    assert_eq!(wrong, "password authentication failed for user \"scram\" (SQLSTATE 28P01)");
    let target = server.url("postgres", None);
    assert_eq!(refused("hotrow", &target, &["--no-load"]), "there are no loaded tables");
    assert!(run("hotrow", &target, &["--counters", "3"]).is_good());
    let why = refused("hotrow", &target, &["--counters", "5"]);
    assert_eq!(why, "counters: 3, not 5: --counters 3 to use them, or --load to replace them");
}

#[test]
fn what_was_measured_before_the_server_died_is_kept() {
    let server = Postgres::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.json");
    let target = server.url("postgres", None);
    let options = ["--verify", "--threads", "2;3;4", "--json", path.to_str().unwrap()];
    let options = command("hotrow", &target, &options);
    let ended = thread::scope(|scope| {
        let run = scope.spawn(|| command::main(options));
        // The file is there with the first point.
        while !path.exists() {
            assert!(!run.is_finished(), "it ended before a point was kept");
            thread::sleep(Duration::from_millis(10));
        }
        server.kill();
        run.join().unwrap()
    });
    assert_eq!(ended, ExitCode::FAILURE);
    let run = RunFile::read(&path).unwrap();
    let why = run.ended.as_ref().expect("it says why it ended");
    assert!(["connection lost", "shutting down"].iter().any(|part| why.contains(part)), "{why}");
    assert!(!why.contains('\n') && run.verdicts.is_empty(), "{why}");
    assert!((1..3).contains(&run.points.len()) && run.points[0].transactions > 0, "{:?}", run.points);
}

/// Waits until so many clients of a run are connected, and a little longer, so that they are at work.
fn await_clients(target: &str, count: i64) {
    let mut admin = bench::client::Connection::open(&target.parse().unwrap()).unwrap();
    let others =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nyala bench' AND pid <> pg_backend_pid()";
    while admin.query_one(others).unwrap().unwrap().parse::<i64>().unwrap() < count {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(400));
}

/// The server dies in the only point, which is over before its clients give up.
#[test]
fn a_server_that_is_away_at_the_end_ends_the_run() {
    let server = Postgres::start();
    let target = server.url("postgres", None);
    assert_eq!(command::main(command("hotrow", &target, &["--threads", "2"])), ExitCode::SUCCESS);
    let run = thread::scope(|scope| {
        let run = scope.spawn(|| run("hotrow", &target, &["--threads", "2", "--duration", "2s", "--warmup", "0s"]));
        await_clients(&target, 2);
        server.kill();
        run.join().unwrap()
    });
    assert!(!run.is_good() && run.points[0].transactions > 0, "{run:?}");
    assert!(!run.points[0].errors.is_empty(), "{run:?}");
    assert!(run.ended.is_some_and(|why| why.contains("connection lost")));
}

/// Money that appears and a row that goes while clients look: the run fails without being asked to verify.
#[test]
fn wrong_answers_under_load_fail_the_run() {
    let server = Postgres::start();
    let target = server.url("postgres", None);
    let cases: [(&str, &[&str], &str, &str); 2] = [
        (
            "bank",
            &["--accounts", "500", "--readers", "50"],
            "UPDATE bank_account SET balance = balance + 1",
            "WRONG SUMS",
        ),
        ("keylookup", &["--rows", "1000", "--threads", "4"], "DELETE FROM keylookup_row", "WRONG ANSWER"),
    ];
    for (name, options, change, why) in cases {
        assert!(run(name, &target, options).is_good(), "{name}");
        let run = thread::scope(|scope| {
            let run = scope.spawn(|| run(name, &target, options));
            await_clients(&target, 2);
            let mut admin = bench::client::Connection::open(&target.parse().unwrap()).unwrap();
            admin.query(&format!("{change} WHERE id = 7")).unwrap();
            run.join().unwrap()
        });
        assert!(!run.is_good() && run.ended.as_ref().is_some_and(|said| said.contains(why)), "{name}: {:?}", run.ended);
    }
}
