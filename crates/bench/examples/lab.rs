//! The lab without the server: `cargo run --release -p bench --example lab -- sysbench --target postgres://…`.

use std::process::ExitCode;

use bench::command::{Command, main as run};
use clap::Parser;

#[derive(Parser)]
#[command(name = "lab")]
struct Options {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    run(Options::parse().command)
}
