//! `nyala bench …`: which experiment, or what to do with results.

use std::process::ExitCode;

use clap::Subcommand;

use crate::experiment::{self, Experiment};
use crate::sysbench::{Sysbench, SysbenchArgs};
use crate::{coldstart, report, tpcc, tpch};

/// What the lab can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// TPC-C: load it, run its transactions, check its consistency.
    Tpcc(tpcc::TpccArgs),
    /// TPC-H: load it, time its queries, compare their results with another server's.
    Tpch(tpch::TpchArgs),
    /// Cold start: fill a server of its own, start it with nothing in memory, against what the disk can read.
    Coldstart(coldstart::ColdstartArgs),
    /// Results as one page with charts, or as tables.
    Report(report::ReportArgs),
    /// An experiment whose runs can be compared, repeated by a suite, and reported together.
    #[command(flatten)]
    Workload(Workload),
}

/// Experiments that any server can be measured by.
#[derive(Clone, Debug, Subcommand)]
pub enum Workload {
    /// sysbench's OLTP workloads, and what RonDB's paper varies in them.
    Sysbench(SysbenchArgs),
}

impl Workload {
    /// The experiment with these options.
    pub fn experiment(self) -> Box<dyn Experiment> {
        match self {
            Workload::Sysbench(args) => Box::new(Sysbench::new(args)),
        }
    }
}

/// Does it.
pub fn main(command: Command) -> ExitCode {
    match command {
        Command::Tpcc(args) => tpcc::main(args),
        Command::Tpch(args) => tpch::main(args),
        Command::Coldstart(args) => coldstart::main(args),
        Command::Report(args) => report::main(args),
        Command::Workload(workload) => experiment::main(workload.experiment().as_mut()),
    }
}
