//! The deterministic simulator (rule R17): engine, log, checkpoints and recovery in one thread, on a disk and a clock that
//! inject faults.
//!
//! Responsible for: the choice of the next participant, workloads, faults, and the report of what was wrong.
//! Not responsible for: sockets and SQL (`testkit` has real processes); threads inside of `mvcc` (its schedules under shuttle).
//! Invariants:
//! - (D1) A seed replays a run exactly: every choice comes from the seed, nothing reads the real clock or starts a thread.
//! - (D2) The model is told of a commit before anything else happens, in the order of the log. What a start finds must be the
//!   model at the end of the log that it found, no more and no less.
//!
//! A run is some lives of one shard. In a life sessions run random transactions, beside them the log's flusher and its preparer,
//! the collector of garbage, checkpoints, and the source of failures; the seed orders their steps as it
//! says. A life ends by a crash at an operation of the disk or between two steps, by the death of the process, or in order.
//!
//! Start at [`run()`]; what is right is said in [`model`] and asked in `session` and `check`.

#![forbid(unsafe_code)]

mod background;
mod check;
mod faults;
mod life;
pub mod model;
mod program;
mod run;
mod schema;
mod session;
mod trace;

pub use run::{Failure, Options, Planted, Report, run};
