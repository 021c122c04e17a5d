//! `bench tpcc` alone, for development: `cargo run -p bench --release --example tpcc -- --help`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use bench::tpcc::{TpccArgs, main as tpcc};
use clap::Parser;

#[derive(Parser)]
#[command(name = "tpcc", about = "TPC-C against any server that speaks PostgreSQL's protocol")]
struct Options {
    #[command(flatten)]
    args: TpccArgs,
}

fn main() -> ExitCode {
    tpcc(Options::parse().args)
}
