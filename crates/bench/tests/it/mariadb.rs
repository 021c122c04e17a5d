//! Experiments against MariaDB: the same clients over the other protocol and dialect.

use std::path::Path;

use bench::command::Workload;
use bench::experiments::run;
use bench::servers::{Product, Scratch, Server};
use clap::Parser;

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Options {
    #[command(subcommand)]
    workload: Workload,
}

/// Small, one after the other on one server: the last finds the tables of the first, and updates that change nothing.
const RUNS: [&str; 9] = [
    "sysbench --rows 1000 --workload oltp_read_write,oltp_point_select",
    "sysbench --rows 1000 --workload oltp_read_only --in-list 10 --range-kinds filter --secondary",
    "tpcc --warehouses 1",
    "tpcc --pipelined",
    "hotrow --pipelined 3",
    "bank --accounts 100",
    "tpcb --scale 1",
    "ycsb --records 500 --workload a,d,e,f",
    "ingest --rows 500 --mode insert,pipelined,copy",
];

#[test]
fn every_experiment_runs_and_verifies() {
    let scratch = Scratch::new(None).unwrap();
    let server = Server::start(Product::Mariadb, Path::new("/nowhere"), scratch.path()).unwrap();
    let target = server.target().to_string();
    for line in RUNS.into_iter().chain(["keylookup --rows 1000 --keys 20", "sysbench --rows 1000"]) {
        let common =
            ["--target", &target, "--threads", "3", "--duration", "1s", "--warmup", "0s", "--seed", "7", "--verify"];
        let words = line.split(' ').chain(common);
        let workload = Options::try_parse_from(words).unwrap_or_else(|e| panic!("{line}: {e}")).workload;
        let said = || std::fs::read_to_string(server.directory().join("log")).unwrap_or_default();
        let result = run(workload.task()).unwrap_or_else(|e| panic!("{line}: {e:?}; the server said: {}", said()));
        let result = result.expect("it reports");
        assert!(result.is_good(), "{line}: {result:?}");
        assert!(result.points.iter().all(|point| point.errors.is_empty()), "{line}: {result:?}");
        assert!(result.points.iter().all(|p| !p.figures.contains_key("missed_records")), "{line}: {result:?}");
        assert!(!result.verdicts.is_empty() && result.server.product == "MariaDB", "{line}: {result:?}");
        assert_eq!(result.server.durable, Some(true));
    }
}
