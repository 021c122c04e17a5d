//! `bench queries`: the statements of ordinary applications, or random ones over their tables, on PostgreSQL and on Nyala.
//!
//! Responsible for: servers of its own with the databases of all schemas, executing each statement on both in turns, comparing every
//! row, ratios and their geometric mean, the worst with both plans.
//! Not responsible for: throughput, and several clients at once; other experiments measure these.
//! Invariants: both servers have the same rows and get the same texts; a statement whose answers differ fails the run, whatever
//! its time; changes are rolled back, so that each execution finds what the first has found.

pub mod list;
mod load;
pub mod random;
mod run;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::client::Connection;
use crate::experiments::Refusal;
use crate::interrupt::{self, INTERRUPTED};
use crate::options::clock_seed;
use crate::progress::Line;
use crate::result::{RunFile, ServerFacts};
use crate::servers::{Product, Scratch, Server, pinning};
use crate::target::Target;
use list::{SCHEMAS, Schema};
use run::{Effort, Side};

pub use run::Judged;
pub use tables::{figures, summary, worst};

/// Options of `bench queries`.
#[derive(Args, Clone, Debug)]
pub struct QueriesArgs {
    /// Schemas [default: all].
    #[arg(long, value_delimiter = ',')]
    schemas: Vec<String>,
    /// Only statements whose `schema/name` or origin has this in it.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Instead of the list, this many random statements over the tables of the schemas.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    random: Option<u32>,
    /// Source of the random statements [default: taken from the clock, and printed].
    #[arg(long, value_name = "S", requires = "random")]
    seed: Option<u64>,
    /// Executions of each statement on each server; the median counts [default: 15, or 5 with --random].
    #[arg(long, value_parser = clap::value_parser!(u16).range(3..))]
    executions: Option<u16>,
    /// Seconds after which a slow statement is not begun again [default: 60, or 4 with --random].
    #[arg(long, value_name = "SECONDS")]
    patience: Option<u64>,
    /// Leave out ANALYZE: the statements meet tables as a user has loaded them.
    #[arg(long)]
    no_analyze: bool,
    /// How many of the worst are shown with their plans.
    #[arg(long, value_name = "N", default_value_t = 10)]
    worst: usize,
    /// The program of Nyala [default: this one].
    #[arg(long, value_name = "PATH")]
    nyala: Option<PathBuf>,
    /// Where data directories are made [default: the directory for temporary files].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Keep the result as JSON, for `bench report`: a file, or a directory.
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
}

/// Runs the statements and prints what they took. Fails if one does not run on both servers with the same rows, or if a random one is a
/// [finding](Judged::is_finding).
pub fn main(args: QueriesArgs) -> ExitCode {
    match measure(&args) {
        Ok(run) if run.is_good() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(refusal) => {
            eprintln!("queries: {refusal}");
            ExitCode::FAILURE
        }
    }
}

/// PostgreSQL as somebody sets it up who cares: hashes and sorts of this size stay in memory.
const POSTGRES_SETTINGS: [&str; 1] = ["SET work_mem = '64MB'"];

fn measure(args: &QueriesArgs) -> Result<RunFile, Refusal> {
    let schemas = chosen(&args.schemas)?;
    let scratch = Scratch::new(args.scratch.as_deref())?;
    let own = std::env::current_exe().map_err(|e| Refusal::Output(format!("this program: {e}")))?;
    let nyala = args.nyala.as_deref().unwrap_or(&own);
    let baseline = Server::start(Product::Postgres, nyala, scratch.path())?;
    let server = Server::start(Product::Nyala, nyala, scratch.path())?;
    let facts = ServerFacts::ask(&mut Connection::open(server.target())?, server.target().dialect);
    let mut run = RunFile::begin("queries", server.target(), Some(server.product().label()), facts);
    run.settings.insert("analyze".into(), (!args.no_analyze).to_string());
    run.settings.insert("executions".into(), args.effort().executions.to_string());
    let mut progress = Line::new();
    let seed = args.seed.unwrap_or_else(clock_seed);
    if let Some(count) = args.random {
        run.settings.insert("random".into(), count.to_string());
        run.settings.insert("seed".into(), seed.to_string());
        println!("random statements of --seed {seed}");
    }
    let shares = random::shares(args.random.unwrap_or_default(), schemas.len(), seed);
    for (schema, share) in schemas.into_iter().zip(shares) {
        if args.random.is_some() && share == 0 {
            continue;
        }
        for target in [baseline.target(), server.target()] {
            progress.show(|| format!("{}: loading", schema.name));
            load::load(schema, target, !args.no_analyze)?;
        }
        let targets = [baseline.target(), server.target()].map(|target| load::database(target, schema.name));
        pinning::of_generator(|| match args.random {
            Some(_) => random::ask(args, schema, (seed, share), &targets, &mut progress, &mut run),
            None => ask(args, schema, &targets, &mut progress, &mut run),
        })?;
        if let Some(path) = &args.json {
            let place = run.place(path);
            run.write(&place).map_err(|error| Refusal::Output(format!("{}: {error}", place.display())))?;
        }
        if run.ended.is_some() {
            break;
        }
    }
    progress.clear();
    tables::keep_worst(&mut run.queries, args.worst);
    print!("{}{}", tables::summary(&run.queries), tables::worst(&run.queries));
    Ok(run)
}

impl QueriesArgs {
    /// How often a statement is executed.
    fn effort(&self) -> Effort {
        let (executions, patience, first_counts) = match self.random {
            Some(_) => (5, 4, Some(Duration::from_secs(1))),
            None => (15, 60, None),
        };
        Effort {
            executions: usize::from(self.executions.unwrap_or(executions)),
            patience: Duration::from_secs(self.patience.unwrap_or(patience)),
            first_counts,
        }
    }

    /// Whether a statement is one of those that were asked for.
    fn wants(&self, schema: &Schema, name: &str, origin: &str) -> bool {
        match &self.only {
            Some(text) => format!("{}/{name}", schema.name).contains(text) || origin.contains(text),
            None => true,
        }
    }
}

/// The schemas with these names, or all.
fn chosen(names: &[String]) -> Result<Vec<&'static Schema>, Refusal> {
    if names.is_empty() {
        return Ok(SCHEMAS.iter().collect());
    }
    let find = |name: &String| {
        let unknown = || {
            let known: Vec<&str> = SCHEMAS.iter().map(|schema| schema.name).collect();
            Refusal::Options(format!("there is no schema \"{name}\", but {}", known.join(", ")))
        };
        SCHEMAS.iter().find(|schema| schema.name == name).ok_or_else(unknown)
    };
    names.iter().map(find).collect()
}

/// Measures the statements of a schema and prints a line for each.
fn ask(
    args: &QueriesArgs,
    schema: &Schema,
    targets: &[Target; 2],
    progress: &mut Line,
    run: &mut RunFile,
) -> Result<(), Refusal> {
    let labels = [Product::Postgres.label(), Product::Nyala.label()];
    for statement in schema.statements().map_err(Refusal::Options)? {
        let origin = statement.origin.to_string();
        if !args.wants(schema, statement.name, &origin) {
            continue;
        }
        if interrupt::asked() {
            run.ended = Some(INTERRUPTED.into());
            return Ok(());
        }
        progress.show(|| format!("{}/{}", schema.name, statement.name));
        let sides = || {
            let none: &[&str] = &[];
            [Side::open(&targets[0], &POSTGRES_SETTINGS, &statement), Side::open(&targets[1], none, &statement)]
        };
        let mut judged = run::judge(sides(), labels, args.effort())?;
        (judged.schema, judged.name, judged.origin) = (schema.name.into(), statement.name.into(), origin);
        progress.clear();
        print!("{}", tables::line(&judged));
        // Plans are asked for at once: the databases of later schemas take the memory that plans depend on.
        if tables::is_among_worst(&judged, &run.queries, args.worst) {
            let [first, second] = sides().map(|side| side.and_then(|mut side| side.plan()));
            let told = |plan: Result<String, crate::client::Failure>| plan.unwrap_or_else(|error| error.to_string());
            (judged.baseline_plan, judged.plan) = (Some(told(first)), Some(told(second)));
        }
        run.queries.push(judged);
    }
    Ok(())
}
