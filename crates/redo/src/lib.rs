//! The redo log of one shard: the only durable truth.
//!
//! Responsible for: records and their chunks, framing and checksums, segments, group commit, the durable position, reading
//! back what a crash left.
//! Not responsible for: what a record means (`engine`); when the log may be trimmed.
//! Invariants:
//! - (L1) Positions ([`base::Lsn`]) count record bytes, whatever segments or frames they lie in; the writer assigns them.
//! - (L2) Timestamp and position are taken in one step: log order is timestamp order (rule R2).
//! - (L3) `durable` only grows, and a position is durable only after the sync that covers it returned.
//! - (L4) What was once reported durable is read back, or [`Log::open`] refuses and says where the damage is (rule R5).
//!   A log that was closed ([`Log::close`]) is read back to exactly its end, or refused.
//! - (L5) Space for a record is set aside before it is stamped: an append does not fail for space.
//!
//! Layers: [`Log`] (front: records, groups, waiting) over a [`ReplicatedLog`] driver ([`FileLog`]: segments on a disk). The
//! formats are in docs/formats/log.md. Start at [`Log::append`]; read the crash test in `tests/it.rs` first.

#![forbid(unsafe_code)]

mod assembly;
mod database;
mod driver;
mod durable;
mod end;
mod file;
mod frame;
mod log;
mod record;
mod stream;

pub use assembly::{Inspected, ending, inspect};
pub use database::{belong_to, belongs_to, database_of};
pub use driver::{Batch, DriverError, Ending, Limits, Mark, ReplicatedLog};
pub use durable::DurableWatch;
pub use file::{FileLog, FileOptions};
pub use log::{GROUP_BUCKETS, Log, LogStats, Replayed, Reservation, Reserve};
pub use record::{Record, RecordKind};
