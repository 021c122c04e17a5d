//! `nyala`: configuration, wiring, life cycle.
//!
//! Responsible for: the command line, opening a data directory, carrying replies and waits between the wire (`pgwire`),
//! SQL (`sql-session`) and the shard (`engine`), background work, signals, the log on stderr, exit codes.
//! Not responsible for: logic. What a statement means, when a lock is free, which bytes a message has: the crates below.
//! Invariants:
//! - One process owns a data directory.
//! - Unless host rules say otherwise, a client without a password gets in only over loopback or the Unix socket, and only
//!   as a role that has no password.
//! - A panic inside one session ends that session; anywhere else it ends the process, as does a failed log.
//! - The process ends with 0 only when everything appended to the log is durable.
//!
//! Start at `serve::run`; how a statement flows is in `session`.

#![forbid(unsafe_code)]

mod access;
mod backend;
mod check;
mod checkpointer;
mod config;
mod config_file;
mod definitions;
mod directory;
mod garbage;
mod hba;
mod health;
mod horizon;
mod host;
mod identity;
mod init;
mod listen;
mod memory;
mod password;
mod replies;
mod serve;
mod session;
mod starting;
mod statistics;
mod stderr;
mod watchdog;

use std::process::ExitCode;

use clap::Parser;

/// Rows, versions and statements are many small allocations, freed on other threads than made them.
#[global_allocator]
static ALLOCATOR: env::Allocator = env::Allocator;

fn main() -> ExitCode {
    let arguments = match config_file::arguments() {
        Ok(arguments) => arguments,
        Err(wrong) => {
            eprintln!("nyala: {wrong}");
            return ExitCode::FAILURE;
        }
    };
    match config::Cli::parse_from(arguments).command {
        config::Command::Serve(options) => serve::run(&options),
        config::Command::Init(options) => init::main(&options),
        config::Command::Check(options) => check::main(&options),
        config::Command::Bench(command) => {
            bench::result::set_version(env!("NYALA_VERSION"));
            bench::command::main(command)
        }
    }
}
