//! One shard: transactions over the rows in memory, made durable by the log.
//!
//! Responsible for: the [`engine_api`] traits on one node – views and commands, row locks with their outcomes, index upkeep
//! and uniqueness, the commit pipeline, catalog and sequences, checkpoints, recovery from image and log.
//! Not responsible for: SQL, sockets, what a default or a check means.
//! Invariants:
//! - (E1) A transaction's log record is appended, its commit published and its catalog changes made visible in the one
//!   critical section of the log (rules R2, R10).
//! - (E2) What a reply depends on has raised the transaction's gate: every version seen or found gone is noted (rule R1).
//! - (E3) For every version in memory each index of its table has an entry (key, row); an entry is removed only when
//!   no version of the row has its key, under the row's exclusive lock.
//! - (E4) Of two transactions that write the same key of a unique index, the second finds the entry of the first: the
//!   check and the insertion of the entry are one step under the latch of the key's stripe.
//!
//! Start at [`Shard::open`] and the stages in `commit`; read `tests/it.rs` for the life of a transaction.

#![forbid(unsafe_code)]

mod advisory;
mod catalog;
mod checkpoint;
mod commit;
mod fuzz;
mod index_build;
#[doc(hidden)]
pub mod inspect;
mod locks;
mod memory;
#[doc(hidden)]
pub mod planted;
mod reads;
mod record;
mod sequence;
mod shard;
mod start;
mod storage;
mod txn;

pub use checkpoint::compaction::Compaction;
pub use checkpoint::{Checkpoint, CheckpointFigures, CheckpointWriter};
pub use fuzz::fuzz_operations;
pub use memory::figures::Figures;
pub use memory::working::Process;
pub use mvcc::allocate_by;
pub use shard::{Shard, ShardOptions};
pub use start::check::{CheckError, CheckedTable, Sound, check};
pub use start::progress::{Progress, Stage};
pub use start::recovery::OpenTimes;
