//! Words that every part of Nyala shares: identifiers, SQLSTATEs, the user-visible error, invariant macros.
//!
//! Responsible for: newtypes of ids and positions, [`SqlState`], [`Error`].
//! Not responsible for: anything that acts. This crate does no IO, holds no state and knows no SQL.
//! Invariants: an id is never converted to another kind of id except by naming both types.

#![forbid(unsafe_code)]

mod error;
mod ids;
mod sqlstate;

pub use error::{Error, Fields, Notice, Result, Severity};
pub use ids::{CommandId, Epoch, LayoutId, Lsn, Oid, RowId, ShardId, Timestamp, TxnId};
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
