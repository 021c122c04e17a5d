//! `bench compare`: one experiment against throwaway servers, measured in turns.
//!
//! Responsible for: starting the servers, loading each, alternating points (A B C, then C B A, so that what changes with time
//! touches all alike), medians, spread and ratios.
//! Not responsible for: the experiment, which any of [`Workload`] is.
//! Invariants: every server gets the same options and the same seed; only one is under load at a time; nothing is left
//! when it ends.

mod summary;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::command::Workload;
use crate::experiments::ceiling;
use crate::experiments::{Refusal, Session};
use crate::options::clock_seed;
use crate::servers::{Product, Scratch, Server, pinning};
use crate::table;

/// Options of `bench compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArgs {
    /// Servers, the first being what others are compared with.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "postgres,nyala")]
    servers: Vec<Product>,
    /// Measurements of each point on each server, in turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// The program of Nyala [default: this one].
    #[arg(long, value_name = "PATH")]
    nyala: Option<PathBuf>,
    /// Where data directories are made [default: the directory for temporary files].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// The experiment and its options, but for --target, --label and --repeat.
    #[command(subcommand)]
    workload: Workload,
}

/// Compares, and prints the ratios. Fails if a run fails or its data is wrong.
pub fn main(args: CompareArgs) -> ExitCode {
    match compare(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(refusal) => {
            eprintln!("compare: {refusal}");
            ExitCode::FAILURE
        }
    }
}

/// One server with the experiment under way against it.
struct Contender {
    // Dropped before the server is.
    session: Session,
    _server: Server,
}

fn compare(args: &CompareArgs) -> Result<bool, Refusal> {
    let scratch = Scratch::new(args.scratch.as_deref())?;
    let own = std::env::current_exe().map_err(|e| Refusal::Output(format!("this program: {e}")))?;
    let nyala = args.nyala.as_deref().unwrap_or(&own);
    let mut contenders = Vec::new();
    let seed = clock_seed();
    for &product in &args.servers {
        let server = Server::start(product, nyala, scratch.path())?;
        let mut task = args.workload.clone().task();
        let common = &mut task.common;
        (common.target, common.label) = (server.target().clone(), Some(product.label().into()));
        common.seed = common.seed.or(Some(seed));
        // One file each, whatever the path.
        common.json = common.json.take().map(|path| path.join(""));
        let mut session = Session::open(task)?;
        session.prepare()?;
        print!("{}", table::head(&session.run));
        contenders.push(Contender { session, _server: server });
    }
    let measured = pinning::of_generator(|| measure(args, &mut contenders));
    for Contender { session, .. } in &mut contenders {
        session.end()?;
        session.run.notes.push(pinning::told());
        print!("{}", summary::verdict(&session.run));
    }
    measured?;
    let runs: Vec<_> = contenders.iter().map(|contender| &contender.session.run).collect();
    print!("\n{}", summary::table(&runs));
    ceiling(args);
    Ok(runs.iter().all(|run| run.is_good()))
}

/// What the generator alone would allow, for the first point. An experiment that looks at every answer cannot be told by
/// canned ones.
fn ceiling(args: &CompareArgs) {
    match ceiling::first(&args.workload) {
        Ok((at, point)) => {
            print!("ceiling of {} with {} clients: {}", at.variant, at.threads, ceiling::told(&point));
        }
        Err(why) => println!("the ceiling is not known, canned replies do not suffice: {why}"),
    }
}

/// Every point, in turns. Ends early if a server has gone.
fn measure(args: &CompareArgs, contenders: &mut [Contender]) -> Result<(), Refusal> {
    let places = contenders.first().map(|first| first.session.places(usize::from(args.rounds)));
    for at in places.unwrap_or_default() {
        let mut turn: Vec<&mut Contender> = contenders.iter_mut().collect();
        if at.repetition % 2 == 0 {
            turn.reverse();
        }
        for Contender { session, .. } in turn {
            print!("{:<11}", session.run.label);
            if !session.point(&at)? {
                return Ok(());
            }
        }
    }
    Ok(())
}
