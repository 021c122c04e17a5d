//! Rows in memory: versions, visibility, row and table locks, garbage.
//!
//! Responsible for: the rows of one shard with their versions, their visibility, locks, the waits-for graph,
//! freeing versions that no view can see, counting the bytes.
//! Not responsible for: commit timestamps and the log (`engine`, `redo`), what a tuple means (`types`), SQL. Does no IO
//! and reads no clock.
//!
//! Life of a transaction
//! 1. [`Store::begin_view`] gives the timestamp to read at; with it a [`View`] is made per command. [`pin`] a [`Guard`] per
//!    batch, then [`Table::read`], [`Table::scan`], [`Table::newest`]. No guard is held across a suspension.
//! 2. [`Store::begin_txn`] when it first writes or locks; the [`Transaction`] is its token and its list of writes.
//! 3. [`Store::lock_row`], [`Store::lock_table`], [`Store::wait_for_txn`]: `Wait` means that the [`Wakeup`] is called when
//!    the same call is to be made again, or [`Store::cancel_wait`] gives up.
//! 4. [`Table::insert`], [`Table::update`], [`Table::delete`] under the row's lock; [`Transaction::mark`] and
//!    [`Store::undo_to`] for savepoints and failed statements.
//! 5. Commit: inside the log's critical section [`Store::publish`], after it [`Store::finish_commit`]. Or [`Store::abort`],
//!    which unlinks the versions first. Then [`Store::end_view`].
//! 6. [`Store::raise_durable`] when the log is durable, [`Store::collect`] now and then.
//!
//! Invariants: a version is changed by its writer only (`version`, I2); a chain under the row's exclusive lock only
//! (`header`, H1); memory is freed when no guard can reach it (`version`, I1); a view is a prefix of the log. All unsafe
//! code is in `epoch`, `version`, `header`, `directory`, and the calls of `table` and `garbage` that prove H1.

pub mod epoch;
pub mod index;

mod density;
mod directory;
mod garbage;
mod header;
mod load;
mod locks;
mod log;
mod memory;
mod prefetch;
mod store;
mod sync;
mod table;
mod txn;
mod txns;
mod version;
mod views;
mod visible;

pub use density::Density;
pub use epoch::{Grace, Guard, pin, reclaim};
pub use garbage::{Collected, LaidOut, NoIndexes, RowGarbage};
pub use load::Loader;
pub use locks::{AdvisoryKey, AdvisoryMode, LockEntry, LockModes, LockTarget};
pub use locks::{LockResult, RowLockMode, TableLockMode, WaitEdge, WaitPolicy, WaitTarget, Wakeup};
pub use memory::{InUse, Memory, OTHER_KINDS, TableMemory, allocate_by, block_bytes};
pub use store::{Store, StoreOptions};
pub use table::Table;
pub use txn::{Transaction, TxnMark};
pub use txns::{TooManyTransactions, ViewTooOld};
pub use version::COMMANDS_MAX;
pub use views::ViewToken;
pub use visible::{Newest, Read, ReadVersion, Versions, View};
