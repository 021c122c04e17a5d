//! `nyala bench …`: which experiment, or what to do with results.

use std::process::ExitCode;

use clap::Subcommand;

use crate::experiments::bank::{Bank, BankArgs};
use crate::experiments::hotrow::{Hotrow, HotrowArgs};
use crate::experiments::ingest::{Ingest, IngestArgs};
use crate::experiments::keylookup::{Keylookup, KeylookupArgs};
use crate::experiments::sysbench::{Sysbench, SysbenchArgs};
use crate::experiments::tpcb::{Tpcb, TpcbArgs};
use crate::experiments::tpcc::{self, Tpcc, TpccArgs};
use crate::experiments::ycsb::{Ycsb, YcsbArgs};
use crate::experiments::{self, Task};
use crate::experiments::{ceiling, coldstart, fair, queries, tpch};
use crate::{compare, diff, interrupt, report, suite};

/// What the lab can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// TPC-H: load it, time its queries, compare their results with another server's.
    Tpch(tpch::TpchArgs),
    /// Cold start: fill a server of its own, start it with nothing in memory, against what the disk can read.
    Coldstart(coldstart::ColdstartArgs),
    /// What the generator itself costs, against a server that answers with canned replies.
    Ceiling(ceiling::CeilingArgs),
    /// The experiments of a file, each against several servers in turns, and a report.
    Suite(suite::SuiteArgs),
    /// Results as one page with charts, or as tables.
    Report(report::ReportArgs),
    /// What has changed from one set of results to another.
    Diff(diff::DiffArgs),
    /// One experiment against throwaway servers, measured in turns: medians, spread, ratios.
    Compare(compare::CompareArgs),
    /// Point reads beside heavy statements of one other client, kind by kind, on servers of its own.
    Fair(fair::FairArgs),
    /// The statements of ordinary applications, on PostgreSQL and Nyala: times in turns, every row compared, the worst with both plans.
    Queries(queries::QueriesArgs),
    /// An experiment whose runs can be compared, repeated by a suite, and reported together.
    #[command(flatten)]
    Workload(Workload),
}

/// Experiments that any server can be measured by.
#[derive(Clone, Debug, Subcommand)]
pub enum Workload {
    /// TPC-C: load it, run its transactions, check its consistency.
    Tpcc(TpccArgs),
    /// sysbench's OLTP workloads, and what RonDB's paper varies in them.
    Sysbench(SysbenchArgs),
    /// One counter that many clients add to.
    Hotrow(HotrowArgs),
    /// Rows as fast as they come in, over many connections.
    Ingest(IngestArgs),
    /// Transfers between accounts, beside readers that sum all of them.
    Bank(BankArgs),
    /// pgbench's transaction.
    Tpcb(TpcbArgs),
    /// YCSB's workloads A to F.
    Ycsb(YcsbArgs),
    /// Lookups of many keys at once, as many as come within a limit of time.
    Keylookup(KeylookupArgs),
}

impl Workload {
    /// The experiment with these options.
    pub fn task(self) -> Task {
        match self {
            Workload::Tpcc(args) => Task::new(args.common.clone(), Tpcc::new(args)),
            Workload::Sysbench(args) => Task::new(args.common.clone(), Sysbench::new(args)),
            Workload::Hotrow(args) => Task::new(args.common.clone(), Hotrow::new(args)),
            Workload::Ingest(args) => Task::new(args.common.clone(), Ingest::new(args)),
            Workload::Bank(args) => Task::new(args.common.clone(), Bank::new(args)),
            Workload::Tpcb(args) => Task::new(args.common.clone(), Tpcb::new(args)),
            Workload::Ycsb(args) => Task::new(args.common.clone(), Ycsb::new(args)),
            Workload::Keylookup(args) => Task::new(args.common.clone(), Keylookup::new(args)),
        }
    }
}

/// Does it.
pub fn main(command: Command) -> ExitCode {
    if matches!(command, Command::Workload(_) | Command::Compare(_) | Command::Suite(_) | Command::Queries(_)) {
        interrupt::arm();
    }
    match command {
        Command::Tpch(args) => tpch::main(args),
        Command::Coldstart(args) => coldstart::main(args),
        Command::Ceiling(args) => ceiling::main(args),
        Command::Suite(args) => suite::main(args),
        Command::Report(args) => report::main(args),
        Command::Diff(args) => diff::main(args),
        Command::Compare(args) => compare::main(args),
        Command::Fair(args) => fair::main(args),
        Command::Queries(args) => queries::main(args),
        Command::Workload(Workload::Tpcc(args)) => tpcc::main(args),
        Command::Workload(workload) => experiments::main(workload.task()),
    }
}
