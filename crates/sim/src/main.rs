//! Runs seeds: `cargo run -p sim -- --seeds 1000`.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use sim::{Options, Report, run};

/// Runs the simulator from seeds and says which of them fail.
#[derive(Parser, Debug)]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first one.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// This one only, with its whole trace.
    #[arg(long)]
    seed: Option<u64>,
    /// Steps of a run.
    #[arg(long, default_value_t = Options::default().steps)]
    steps: u64,
    /// Lines of the trace that are shown of a failure.
    #[arg(long, default_value_t = 40)]
    lines: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A panic is reported with its seed.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let options = Options { steps: arguments.steps, prints: arguments.seed.is_some(), ..Options::default() };
    let first = arguments.seed.unwrap_or(arguments.from);
    let seeds = if arguments.seed.is_some() { 1 } else { arguments.seeds };
    let (began, mut total, mut failures) = (Instant::now(), Report::default(), 0);
    for seed in first..first + seeds {
        match run(seed, &options) {
            Ok(report) => total.add(&report),
            Err(failure) => {
                failures += 1;
                let skipped = failure.tail.len().saturating_sub(arguments.lines);
                failure.tail.iter().skip(skipped).for_each(|line| println!("    {line}"));
                println!("seed {seed} fails: {}", failure.what);
            }
        }
    }
    println!("{seeds} seeds, {failures} failures, {:.1} s", began.elapsed().as_secs_f64());
    println!("{total:#?}");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
