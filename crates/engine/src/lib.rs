//! One shard: transactions over the rows in memory, made durable by the log.
//!
//! Responsible for: the [`engine_api`] traits on one node – views and commands, row locks with their outcomes, index upkeep
//! and uniqueness, the commit pipeline, catalog and sequences, checkpoints, recovery from image and log.
//! Not responsible for: SQL, sockets, what a default or a check means.
//! Invariants:
//! - (E1) A transaction's log record is appended, its commit published and its catalog changes made visible in the one
//!   critical section of the log (rules R2, R10).
//! - (E2) What a reply rests on has raised the transaction's gate: every version seen or found gone is noted (rule R1).
//! - (E3) For every version in memory each index of its table has an entry (key, row); an entry goes only when no version
//!   of the row has its key, under the row's exclusive lock.
//! - (E4) Two transactions that write one key of a unique index meet: check and entry are made under the key's stripe.
//!
//! Start at [`Shard::open`] and the stages in `commit`; read `tests/it.rs` for the life of a transaction.

#![forbid(unsafe_code)]

mod accounts;
mod advisory;
mod ahead;
mod build;
mod catalog;
mod check;
mod checkpoint;
mod commit;
mod compaction;
mod concurrent_build;
mod figures;
mod fill;
mod fuzz;
mod gate;
#[doc(hidden)]
pub mod inspect;
mod known;
mod load;
mod locks;
#[doc(hidden)]
pub mod planted;
mod prepared;
mod progress;
mod reads;
mod record;
mod recovery;
mod replay;
mod scan;
mod sequence;
mod shape;
mod shard;
mod storage;
mod throttle;
mod txn;
mod unique;
mod working;

pub use check::{CheckError, CheckedTable, Sound, check};
pub use checkpoint::{Checkpoint, CheckpointFigures, CheckpointWriter};
pub use compaction::Compaction;
pub use figures::Figures;
pub use fuzz::fuzz_operations;
pub use mvcc::allocate_by;
pub use progress::{Progress, Stage};
pub use recovery::OpenTimes;
pub use shard::{Shard, ShardOptions};
pub use working::Process;
