//! TPC-C (revision 5.11) over interactive SQL: its tables, its population, its five transactions, its mix, and its
//! twelve consistency conditions. These hold also where a whole transaction is missing, so what clients were told is counted, too
//! ([`ledger`]).
//!
//! A run: tables are loaded if they are not there ([`load`]), clients run the mix ([`run`]), the conditions are checked
//! ([`check`]), everything is printed ([`report`]). What a client sends and in how many round trips is in
//! [`transactions`]. The results are derived from TPC-C and unaudited: without `--think` clients do not wait,
//! warehouses need not be ten times fewer than clients, and deliveries are not deferred.

pub mod check;
pub mod ledger;
pub mod load;
pub mod mix;
pub mod random;
pub mod report;
pub mod run;
pub mod schema;
pub mod transactions;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::client::{Connection, Failure};
use crate::options::{clock_seed, duration};
use crate::progress::Line;
use crate::target::Target;
use report::{Host, Report, Run, Server, Settings};

/// Warehouses of a load that names no number.
const WAREHOUSES: i64 = 4;
/// Clients of a run without think times that names no number.
const CLIENTS: usize = 8;

const NOTES: [&str; 2] = [
    "Delivery runs as an ordinary transaction at once, not from a deferred queue.",
    "3.3.2.11 counts deliveries since the load (C_DELIVERY_CNT), so that it can be checked at any time.",
];

/// Options of `bench tpcc`.
#[derive(Args, Clone, Debug)]
pub struct TpccArgs {
    /// The server: `postgres://user[:password]@host:port/database`.
    #[arg(long, default_value = "postgres://postgres@127.0.0.1:5432/postgres")]
    pub target: Target,
    /// Warehouses, about 100 MB each [default: those in the database, or 4].
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    pub warehouses: Option<i64>,
    /// Clients at once, one connection each [default: 8, or ten per warehouse with --think].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub clients: Option<u16>,
    /// How long to measure, like 30s or 5m; 0s loads and checks only.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub duration: Duration,
    /// How long to run before measuring.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub warmup: Duration,
    /// Drop what is there and load anew. Without this, tables are loaded only if there are none.
    #[arg(long, conflicts_with_all = ["no_load", "drop", "check_only"])]
    pub load: bool,
    /// Never load.
    #[arg(long)]
    pub no_load: bool,
    /// Drop the tables and stop.
    #[arg(long, conflicts_with = "check_only")]
    pub drop: bool,
    /// Check the consistency of what is there and stop.
    #[arg(long)]
    pub check_only: bool,
    /// Add foreign keys when loading.
    #[arg(long)]
    pub foreign_keys: bool,
    /// Connections of a load [default: one per CPU].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub load_connections: Option<u16>,
    /// Isolation level of every transaction.
    #[arg(long, value_enum, default_value_t = Isolation::ReadCommitted)]
    pub isolation: Isolation,
    /// Wait as people do who fill in forms and read answers (clause 5.2.5.7).
    #[arg(long)]
    pub think: bool,
    /// Source of every random value [default: taken from the clock, and printed].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Write everything as JSON to a file, or to stdout for "-"; the text then goes to stderr.
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,
}

/// Isolation levels under which the specification's conditions must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Isolation {
    /// A statement sees what was committed before it.
    ReadCommitted,
    /// A transaction sees what was committed before it.
    RepeatableRead,
    /// Transactions are as if they had run one after the other.
    Serializable,
}

impl Isolation {
    /// Its name in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        }
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The server.
    #[error("{0}")]
    Server(#[from] Failure),
    /// The report could not be written.
    #[error("{0}: {1}")]
    Output(PathBuf, std::io::Error),
    /// The options do not fit what is in the database.
    #[error("{0}")]
    Options(String),
}

/// Runs the experiment and prints its report. Fails if the data is inconsistent afterwards, or if nothing could run.
pub fn main(args: TpccArgs) -> ExitCode {
    let written = experiment(&args).and_then(|report| {
        report.as_ref().map_or(Ok(()), |report| write(report, args.json.as_deref()))?;
        Ok(report)
    });
    match written {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(report)) if report.is_good() => ExitCode::SUCCESS,
        Ok(Some(_)) => ExitCode::FAILURE,
        Err(refusal) => {
            eprintln!("tpcc: {refusal}");
            ExitCode::FAILURE
        }
    }
}

/// The experiment without its printing; no report if the tables were only dropped.
pub fn experiment(args: &TpccArgs) -> Result<Option<Report>, Refusal> {
    let mut progress = Line::new();
    let mut connection = Connection::open(&args.target)?;
    if args.drop {
        schema::drop_tables(&mut connection)?;
        return Ok(None);
    }
    let seed = args.seed.unwrap_or_else(clock_seed);
    eprintln!("tpcc: seed {seed}");
    let (warehouses, loaded) = provide(args, seed, &mut connection, &mut progress)?;
    let clients = args.clients.map_or(if args.think { warehouses as usize * 10 } else { CLIENTS }, usize::from);
    let server = Server::ask(&mut connection);
    let (mut measured, mut made) = (None, None);
    if !args.check_only && !args.duration.is_zero() {
        let plan = run::Plan {
            target: &args.target,
            warehouses,
            clients,
            warmup: args.warmup,
            duration: args.duration,
            isolation: args.isolation.sql(),
            think: args.think,
            seed,
        };
        let before = ledger::Counts::read(&mut connection)?;
        let run = run::run(&plan, &mut progress)?;
        made = Some((before, run.tally.made.clone()));
        measured = Some(Run::new(run));
    }
    // The connection may have died with the server meanwhile.
    let mut connection = Connection::open(&args.target)?;
    let mut consistency = check::check(&mut connection, |clause| progress.show(|| format!("checking {clause}")));
    if let Some((before, made)) = made {
        let after = ledger::Counts::read(&mut connection);
        consistency.extend(ledger::verdicts(&before, after, &made));
    }
    let report = Report {
        experiment: "tpcc",
        settings: Settings {
            target: args.target.to_string(),
            warehouses,
            clients,
            warmup_seconds: args.warmup.as_secs_f64(),
            duration_seconds: args.duration.as_secs_f64(),
            isolation: args.isolation.sql().to_lowercase(),
            think: args.think,
            foreign_keys: loaded.as_ref().map(|_| args.foreign_keys),
            seed,
        },
        server,
        host: Host::this(),
        load: loaded,
        run: measured,
        consistency,
        notes: NOTES.to_vec(),
    };
    progress.clear();
    Ok(Some(report))
}

/// Makes sure that there are tables; how many warehouses they have, and what loading took.
fn provide(
    args: &TpccArgs,
    seed: u64,
    connection: &mut Connection,
    progress: &mut Line,
) -> Result<(i64, Option<load::LoadReport>), Refusal> {
    // No warehouse in the table is a load that was cut short.
    let present = schema::loaded(connection)?.filter(|&count| count > 0);
    let may_load = !args.no_load && !args.check_only;
    match present {
        Some(count) if !args.load => {
            let wrong = args.warehouses.filter(|&wanted| wanted != count);
            wrong.map_or(Ok((count, None)), |wanted| {
                let advice = "leave out --warehouses to use them, or --load to replace them";
                Err(Refusal::Options(format!("the tables have {count} warehouses, not {wanted}: {advice}")))
            })
        }
        _ if !may_load => Err(Refusal::Options("there are no loaded tables".into())),
        _ => {
            let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
            let load = load::Load {
                target: &args.target,
                warehouses: args.warehouses.unwrap_or(WAREHOUSES),
                connections: args.load_connections.map_or(cpus, usize::from),
                seed,
                foreign_keys: args.foreign_keys,
            };
            Ok((load.warehouses, Some(load::load(&load, progress)?)))
        }
    }
}

fn write(report: &Report, json: Option<&Path>) -> Result<(), Refusal> {
    let print = |text: String| {
        std::io::stdout().write_all(text.as_bytes()).map_err(|error| Refusal::Output("stdout".into(), error))
    };
    let Some(path) = json else { return print(report.to_string()) };
    let text = serde_json::to_string_pretty(report).expect("a report has only names as keys") + "\n";
    if path == Path::new("-") {
        eprint!("{report}");
        return print(text);
    }
    std::fs::write(path, text).map_err(|error| Refusal::Output(path.into(), error))?;
    print(report.to_string())
}
