//! TPC-H (revision 3): its tables, a population by its rules, its 22 queries with validation parameters.
//!
//! A run: tables are loaded if they are not there ([`load`]), each query runs several times ([`run`]), with `--check`
//! its rows are compared with those of another server that has the same tables, everything is printed. The results are
//! derived from TPC-H and unaudited: random numbers are not those of the reference generator, there are no refresh
//! functions and no throughput test.

pub mod load;
pub mod queries;
pub mod rows;
pub mod run;
pub mod schema;
pub mod words;

use std::fmt::{self, Write as _};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::client::{Connection, Failure};
use crate::progress::Line;
use crate::result::{Machine, ServerFacts};
use crate::schema::drop_all;
use crate::target::Target;
use run::Timed;

/// The seed of a load that names none: at every scale from 0.01 on all queries find rows.
const SEED: u64 = 1;

/// Options of `bench tpch`.
#[derive(Args, Clone, Debug)]
pub struct TpchArgs {
    /// The server: `postgres://user[:password]@host:port/database`.
    #[arg(long, default_value = "postgres://postgres@127.0.0.1:5432/postgres")]
    pub target: Target,
    /// Scale factor, about 1 GB of text each [default: that of the tables there, or 0.1].
    #[arg(long, value_parser = scale)]
    pub scale: Option<f64>,
    /// Compare every result, row for row, with this server's; it is loaded too if need be.
    #[arg(long, value_name = "TARGET")]
    pub check: Option<Target>,
    /// How often each query runs; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub repeat: u16,
    /// Only these queries, like 1,6,13.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=22))]
    pub queries: Vec<u16>,
    /// Drop what is there and load anew. Without this, tables are loaded only if there are none.
    #[arg(long, conflicts_with = "drop")]
    pub load: bool,
    /// Load and stop.
    #[arg(long, conflicts_with = "drop")]
    pub load_only: bool,
    /// Drop the tables and stop.
    #[arg(long)]
    pub drop: bool,
    /// Connections of a load [default: one per CPU].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub load_connections: Option<u16>,
    /// Source of every value.
    #[arg(long, default_value_t = SEED)]
    pub seed: u64,
    /// Write everything as JSON to a file, or to stdout for "-"; the text then goes to stderr.
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,
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

/// Everything about one run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Always `tpch`.
    pub experiment: &'static str,
    /// Without the password.
    pub target: String,
    /// The server that results were compared with.
    pub check: Option<String>,
    /// Scale factor.
    pub scale: f64,
    /// Source of every value of a load.
    pub seed: u64,
    /// How often each query ran.
    pub repeat: u16,
    /// Against what.
    pub server: ServerFacts,
    /// On what.
    pub host: Machine,
    /// The load, if this run loaded.
    pub load: Option<load::LoadReport>,
    /// By query.
    pub queries: Vec<Timed>,
    /// Geometric mean of the medians of the queries that ran.
    pub geometric_mean_ms: Option<f64>,
}

impl Report {
    /// Whether every query ran and, if compared, answered alike.
    pub fn is_good(&self) -> bool {
        self.queries.iter().all(|q| q.error.is_none() && q.difference.is_none())
    }
}

/// Runs the experiment and prints its report. Fails if a query failed or differed.
pub fn main(args: TpchArgs) -> ExitCode {
    let written = experiment(&args).and_then(|report| {
        report.as_ref().map_or(Ok(()), |report| write(report, args.json.as_deref()))?;
        Ok(report)
    });
    match written {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(report)) if report.is_good() => ExitCode::SUCCESS,
        Ok(Some(_)) => ExitCode::FAILURE,
        Err(refusal) => {
            eprintln!("tpch: {refusal}");
            ExitCode::FAILURE
        }
    }
}

/// The experiment without its printing; no report if the tables were only dropped or loaded.
pub fn experiment(args: &TpchArgs) -> Result<Option<Report>, Refusal> {
    let mut progress = Line::new();
    let mut connection = Connection::open(&args.target)?;
    if args.drop {
        drop_all(&mut connection, &schema::TABLES)?;
        return Ok(None);
    }
    let (scale, load) = provide(args, &args.target, args.scale, &mut connection, &mut progress)?;
    let mut other = None;
    if let Some(target) = &args.check {
        let mut connection = Connection::open(target)?;
        provide(args, target, Some(scale), &mut connection, &mut progress)?;
        other = Some(connection);
    }
    if args.load_only {
        return Ok(None);
    }
    let server = ServerFacts::ask(&mut connection, args.target.dialect);
    let chosen =
        queries::QUERIES.iter().filter(|q| args.queries.is_empty() || args.queries.contains(&(q.number as u16)));
    let mut timed = Vec::new();
    for query in chosen {
        progress.show(|| format!("query {}", query.number));
        timed.push(run::run(query, scale, args.repeat, &mut connection, other.as_mut())?);
    }
    progress.clear();
    let medians: Vec<f64> = timed.iter().filter_map(|q| q.median_ms).collect();
    let mean = (medians.iter().map(|ms| ms.max(1e-3).ln()).sum::<f64>() / medians.len().max(1) as f64).exp();
    Ok(Some(Report {
        experiment: "tpch",
        target: args.target.to_string(),
        check: args.check.as_ref().map(Target::to_string),
        scale,
        seed: args.seed,
        repeat: args.repeat,
        server,
        host: Machine::this(),
        load,
        queries: timed,
        geometric_mean_ms: (!medians.is_empty()).then_some(mean),
    }))
}

/// Makes sure that there are tables; their scale, and what loading took.
fn provide(
    args: &TpchArgs,
    target: &Target,
    wanted: Option<f64>,
    connection: &mut Connection,
    progress: &mut Line,
) -> Result<(f64, Option<load::LoadReport>), Refusal> {
    match schema::loaded_parts(connection)? {
        Some(parts) if !args.load => {
            if let Some(wanted) = wanted
                && rows::Sizes::of(wanted).parts != parts
            {
                let there = parts as f64 / 200_000.0;
                let advice = "leave out --scale to use them, or --load to replace them";
                return Err(Refusal::Options(format!("the tables have scale {there}, not {wanted}: {advice}")));
            }
            Ok((wanted.unwrap_or(parts as f64 / 200_000.0), None))
        }
        _ => {
            let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
            let connections = args.load_connections.map_or(cpus, usize::from);
            let load = load::Load { target, scale: wanted.unwrap_or(0.1), connections, seed: args.seed };
            Ok((load.scale, Some(load::load(&load, progress)?)))
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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "TPC-H (derived from it, unaudited) at scale {}, seed {}", self.scale, self.seed)?;
        writeln!(f, "server    {}", self.server.version)?;
        writeln!(f, "target    {}", self.target)?;
        if let Some(load) = &self.load {
            let (rows, copy, index) = (load.rows, load.copy_seconds, load.index_seconds);
            writeln!(f, "load      {rows} rows in {copy:.1} s, indexes and statistics in {index:.1} s")?;
        }
        writeln!(
            f,
            "\nquery   rows   median ms      min ms{}",
            if self.check.is_some() { "    other ms  same" } else { "" }
        )?;
        for query in &self.queries {
            let mut line = format!("Q{:<4}", query.number);
            match (&query.error, query.median_ms, query.min_ms) {
                (None, Some(median), Some(min)) => write!(line, "{:>7}{median:>12.1}{min:>12.1}", query.rows)?,
                (error, ..) => write!(line, "  {}", error.as_deref().unwrap_or("did not run"))?,
            }
            if let Some(other) = query.other_ms {
                let same = query.difference.as_deref().unwrap_or("yes");
                write!(line, "{other:>12.1}  {same}")?;
            }
            writeln!(f, "{line}")?;
        }
        let total: f64 = self.queries.iter().filter_map(|q| q.median_ms).sum();
        write!(f, "\nsum of medians {total:.1} ms")?;
        match self.geometric_mean_ms {
            Some(mean) => writeln!(f, ", geometric mean {mean:.1} ms"),
            None => writeln!(f),
        }
    }
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.01..=300.0).contains(&scale) => Ok(scale),
        _ => Err("a scale factor is a number from 0.01 to 300".into()),
    }
}
