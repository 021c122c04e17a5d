//! Locks as SQL asks for them, over those of `mvcc`.

use std::sync::Arc;

use base::{Error, Oid, Result, RowId, SqlState, Timestamp};
use engine_api::{
    Isolation, RowBatch, RowLockMode, RowLockOutcome, Step, TableLockMode, TableRef, Wait, WaitCell, WaitPolicy,
};
use mvcc::{LockResult, Newest, Read, ReadVersion, WaitEdge, Wakeup, pin};

use crate::storage::TableHandle;
use crate::txn::Transaction;

/// Ends a wait of the session.
struct Wake(Arc<WaitCell>);

impl Wakeup for Wake {
    fn wake(&self) {
        self.0.wake();
    }
}

fn row_mode(mode: RowLockMode) -> mvcc::RowLockMode {
    match mode {
        RowLockMode::KeyShare => mvcc::RowLockMode::KeyShare,
        RowLockMode::Share => mvcc::RowLockMode::Share,
        RowLockMode::NoKeyUpdate => mvcc::RowLockMode::NoKeyUpdate,
        RowLockMode::Update => mvcc::RowLockMode::Update,
    }
}

fn table_mode(mode: TableLockMode) -> mvcc::TableLockMode {
    use TableLockMode as M;
    match mode {
        M::AccessShare => mvcc::TableLockMode::AccessShare,
        M::RowShare => mvcc::TableLockMode::RowShare,
        M::RowExclusive => mvcc::TableLockMode::RowExclusive,
        M::ShareUpdateExclusive => mvcc::TableLockMode::ShareUpdateExclusive,
        M::Share => mvcc::TableLockMode::Share,
        M::ShareRowExclusive => mvcc::TableLockMode::ShareRowExclusive,
        M::Exclusive => mvcc::TableLockMode::Exclusive,
        M::AccessExclusive => mvcc::TableLockMode::AccessExclusive,
    }
}

fn wait_policy(policy: WaitPolicy) -> mvcc::WaitPolicy {
    match policy {
        WaitPolicy::Block => mvcc::WaitPolicy::Block,
        WaitPolicy::Error | WaitPolicy::Skip => mvcc::WaitPolicy::Never,
    }
}

fn deadlock(cycle: &[WaitEdge]) -> Error {
    let lines: Vec<String> = cycle
        .iter()
        .map(|edge| {
            format!("Transaction {} waits for {:?}; blocked by transaction {}.", edge.waiter, edge.target, edge.holder)
        })
        .collect();
    Error::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
        .detail(lines.join("\n"))
        .hint("See server log for query details.")
}

/// 40001 of a REPEATABLE READ transaction whose row was changed by another.
fn concurrent(what: &str) -> Error {
    Error::new(SqlState::SERIALIZATION_FAILURE, format!("could not serialize access due to concurrent {what}"))
}

/// The newest version as a lock finds it.
enum Found<'g> {
    /// The one the command sees.
    Seen,
    /// Another one.
    Other(ReadVersion<'g>),
    /// None, by this commit (0: own).
    Gone(Timestamp),
    /// Written by an earlier look of the same command: left alone.
    OwnOfThisCommand,
}

impl Transaction {
    /// A fresh wait and the wakeup that ends it.
    pub(crate) fn wakeup(&mut self) -> (Wait, Arc<dyn Wakeup>) {
        let cell = WaitCell::new();
        let wake: Arc<dyn Wakeup> = Arc::new(Wake(Arc::clone(&cell)));
        (Wait::on(&cell), wake)
    }

    pub(crate) fn deadlock_error(&self, cycle: &[WaitEdge]) -> Error {
        deadlock(cycle)
    }

    /// See [`engine_api::Txn::lock_table`].
    pub(crate) fn lock_relation(&mut self, table: Oid, mode: TableLockMode, policy: WaitPolicy) -> Result<Step<()>> {
        self.start_writing()?;
        let (wait, wake) = self.wakeup();
        let shard = self.shard.clone();
        let core = self.core.as_mut().expect("started above");
        match shard.0.store.lock_table(core, table, table_mode(mode), wait_policy(policy), &wake) {
            LockResult::Granted { .. } => Ok(Step::Ready(())),
            LockResult::Wait => Ok(Step::Wait(wait)),
            LockResult::Deadlock(cycle) => Err(deadlock(&cycle)),
            LockResult::WouldBlock | LockResult::Gone => {
                let catalog = self.own_catalog();
                let name = catalog.get(table).map_or_else(|| table.to_string(), |o| o.name().to_string());
                Err(Error::new(SqlState::LOCK_NOT_AVAILABLE, format!("could not obtain lock on relation \"{name}\"")))
            }
        }
    }

    /// See [`engine_api::Txn::lock_row`].
    pub(crate) fn lock_version(
        &mut self,
        table: &TableRef,
        row: RowId,
        mode: RowLockMode,
        policy: WaitPolicy,
        out: &mut RowBatch,
    ) -> Result<Step<RowLockOutcome>> {
        self.start_writing()?;
        let handle = TableHandle::of(table)?;
        let (wait, wake) = self.wakeup();
        let shard = self.shard.clone();
        let core = self.core.as_mut().expect("started above");
        let mark = core.mark();
        let rows = &handle.store.rows;
        match shard.0.store.lock_row(core, rows, row, row_mode(mode), wait_policy(policy), &wake) {
            LockResult::Granted { .. } => {}
            LockResult::Wait => return Ok(Step::Wait(wait)),
            LockResult::Deadlock(cycle) => return Err(deadlock(&cycle)),
            LockResult::WouldBlock if policy == WaitPolicy::Skip => return Ok(Step::Ready(RowLockOutcome::Skipped)),
            LockResult::WouldBlock => {
                return Err(Error::new(
                    SqlState::LOCK_NOT_AVAILABLE,
                    format!("could not obtain lock on row in relation \"{}\"", handle.desc.name),
                ));
            }
            LockResult::Gone => return Ok(Step::Ready(RowLockOutcome::Gone)),
        }
        let guard = pin();
        let view = self.view();
        let own = self.core.as_ref().map(|c| c.id());
        let found = match rows.newest(row, own, &guard) {
            Newest::Live(version) | Newest::Undecided { decided: Some(version), .. } => {
                match rows.read(row, &view, &guard) {
                    Read::Visible(seen) if std::ptr::eq(seen.tuple, version.tuple) => Found::Seen,
                    _ if version.ts == Timestamp(0) => Found::OwnOfThisCommand,
                    _ => Found::Other(version),
                }
            }
            Newest::Deleted(ts) => Found::Gone(ts),
            Newest::Undecided { decided: None, .. } | Newest::Absent => Found::Gone(Timestamp(0)),
        };
        let snapshot = self.options.isolation != Isolation::ReadCommitted;
        let outcome = match found {
            Found::Seen => Ok(RowLockOutcome::Locked),
            Found::Other(_) if snapshot => Err(concurrent("update")),
            Found::Gone(ts) if snapshot && ts > view.read_ts => Err(concurrent("delete")),
            Found::Other(version) => {
                self.note(version.ts);
                out.push(row, version.layout, version.tuple);
                Ok(RowLockOutcome::Moved)
            }
            Found::Gone(ts) => {
                self.note(ts);
                Ok(RowLockOutcome::Gone)
            }
            Found::OwnOfThisCommand => Ok(RowLockOutcome::Gone),
        };
        drop(guard);
        if matches!(outcome, Ok(RowLockOutcome::Gone)) {
            let core = self.core.as_mut().expect("started above");
            shard.0.store.undo_to(core, mark);
        }
        outcome.map(Step::Ready)
    }
}
