//! Advisory locks, and the list of all locks.

use base::{Oid, Result, RowId, TxnId};

use crate::{RowLockMode, Step, TableLockMode, WaitPolicy};

/// The name of an advisory lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct AdvisoryKey {
    /// Each database has its own.
    pub database: Oid,
    /// A bigint, or two integers, the first one in the upper half.
    pub number: u64,
    /// Two integers: another space than that of bigints.
    pub is_pair: bool,
}

/// The advisory locks of one session. They count: what was taken twice is given back twice.
pub trait AdvisoryLocks: Send {
    /// Takes a lock, until the end of the transaction or of the session. `Ready(false)`: others have it, and the policy is
    /// not to wait.
    ///
    /// # Errors
    /// 40P01; 53200 if there are too many.
    fn lock(
        &mut self,
        key: AdvisoryKey,
        is_shared: bool,
        of_transaction: bool,
        policy: WaitPolicy,
    ) -> Result<Step<bool>>;

    /// Gives back a lock that is the session's; `false` if it is not.
    fn unlock(&mut self, key: AdvisoryKey, is_shared: bool) -> bool;

    /// Gives back all that are the session's.
    fn unlock_all(&mut self);

    /// What the transaction holds, and whether shared.
    ///
    /// # Errors
    /// 0A000 if the session holds one of them as well: the transaction cannot take it with it.
    fn of_transaction(&self) -> Result<Vec<(AdvisoryKey, bool)>>;

    /// A point to go back to.
    fn mark(&self) -> usize;

    /// Gives back what the transaction took since `mark`; all of it at 0.
    fn release_since(&mut self, mark: usize);

    /// Gives up the wait that the last call returned.
    fn cancel_wait(&mut self);
}

/// What a lock is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// A table.
    Table(Oid, TableLockMode),
    /// A row that somebody waits for.
    Row(Oid, RowId, RowLockMode),
    /// The end of a transaction.
    Txn(TxnId, TableLockMode),
    /// A name.
    Advisory(AdvisoryKey, TableLockMode),
}

/// One lock that is held or waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRow {
    /// Whose.
    pub txn: TxnId,
    /// Of which session; 0: of a prepared transaction.
    pub session: u32,
    /// What, and how.
    pub locked: Locked,
    /// Held.
    pub is_granted: bool,
    /// Held without the table of locks.
    pub is_fast: bool,
}
