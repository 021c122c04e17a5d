//! Words that every part of Nyala shares: identifiers, SQLSTATEs, the user-visible error, invariant macros.
//!
//! Responsible for: newtypes of ids and positions, [`SqlState`], [`Error`], counting work that may be long ([`work`]),
//! what a thread notes of what it does ([`watch`]).
//! Not responsible for: anything that acts. This crate does no IO, knows no SQL, and holds no state but the thread's count of work
//! and notes.
//! Invariants: an id is never converted to another kind of id except by naming both types.

#![forbid(unsafe_code)]

mod error;
mod ids;
mod sqlstate;
pub mod watch;
pub mod work;

pub use error::{Error, Fields, Notice, Result, Severity};
pub use ids::{CommandId, Ending, LayoutId, Lsn, Oid, RowId, ShardId, Timestamp, TxnId, Unseen, WriterEpoch};
pub use sqlstate::SqlState;

/// An `assert!` that stays on in release builds and names the broken invariant.
///
/// Used at transitions of the log, the commit pipeline and recovery, where going on would write a lie to disk.
#[macro_export]
macro_rules! invariant {
    ($cond:expr, $($arg:tt)+) => {
        assert!($cond, "invariant broken: {}", format_args!($($arg)+))
    };
}
