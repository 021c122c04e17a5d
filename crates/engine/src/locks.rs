//! Locks as SQL asks for them, over those of `mvcc`.

use std::sync::Arc;

use base::{Error, Oid, Result, RowId, SqlState, Timestamp};
use engine_api::Txn as _;
use engine_api::{
    Isolation, RowBatch, RowLockMode, RowLockOutcome, Step, TableLockMode, TableRef, Wait, WaitCell, WaitPolicy,
};
use mvcc::{LockResult, Newest, Read, ReadVersion, WaitEdge, WaitTarget, Wakeup, pin};

use crate::planted::{self, Planted};
use crate::storage::TableHandle;
use crate::txn::Transaction;

/// Ends a wait of the session.
struct Wake(Arc<WaitCell>);

impl Wakeup for Wake {
    fn wake(&self) {
        self.0.wake();
    }
}

/// For calls that do not wait.
pub(crate) fn nobody() -> Arc<dyn Wakeup> {
    Arc::new(Wake(WaitCell::new()))
}

/// A fresh wait and the wakeup that ends it.
pub(crate) fn wakeup() -> (Wait, Arc<dyn Wakeup>) {
    let cell = WaitCell::new();
    let wake: Arc<dyn Wakeup> = Arc::new(Wake(Arc::clone(&cell)));
    (Wait::on(&cell), wake)
}

pub(crate) fn row_mode(mode: RowLockMode) -> mvcc::RowLockMode {
    match mode {
        RowLockMode::KeyShare => mvcc::RowLockMode::KeyShare,
        RowLockMode::Share => mvcc::RowLockMode::Share,
        RowLockMode::NoKeyUpdate => mvcc::RowLockMode::NoKeyUpdate,
        RowLockMode::Update => mvcc::RowLockMode::Update,
    }
}

pub(crate) fn table_mode(mode: TableLockMode) -> mvcc::TableLockMode {
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

/// 40P01
pub(crate) fn deadlock(cycle: &[WaitEdge]) -> Error {
    let lines: Vec<String> = cycle
        .iter()
        .map(|edge| {
            let what = match edge.target {
                WaitTarget::Row { .. } => format!("ShareLock on transaction {}", edge.holder),
                WaitTarget::Txn(of) => format!("ShareLock on transaction {of}"),
                WaitTarget::Table(oid) => format!("a lock on relation {oid}"),
                WaitTarget::Advisory(key) => format!(
                    "a lock on advisory lock [{},{},{},{}]",
                    key.database,
                    key.number >> 32,
                    key.number as u32,
                    if key.is_pair { 2 } else { 1 }
                ),
            };
            format!("Process {} waits for {what}; blocked by process {}.", edge.waiter_session, edge.holder_session)
        })
        .collect();
    Error::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
        .detail(lines.join("\n"))
        .hint("See server log for query details.")
}

/// 40001 of a REPEATABLE READ transaction whose row was changed by another.
pub(crate) fn concurrent(what: &str) -> Error {
    Error::new(SqlState::SERIALIZATION_FAILURE, format!("could not serialize access due to concurrent {what}"))
}

/// Whether who has such a lock may change the row.
fn changes(mode: mvcc::RowLockMode) -> bool {
    matches!(mode, mvcc::RowLockMode::NoKeyUpdate | mvcc::RowLockMode::Update)
}

/// The newest version as a lock finds it.
enum Found<'g> {
    /// The one the command sees.
    Seen(ReadVersion<'g>),
    /// Another one.
    Other(ReadVersion<'g>),
    /// None, by this commit (0: own).
    Gone(Timestamp),
    /// Written by an earlier look of the same command: left alone.
    OwnOfThisCommand,
}

impl Transaction {
    pub(crate) fn deadlock_error(&self, cycle: &[WaitEdge]) -> Error {
        deadlock(cycle)
    }

    /// See [`engine_api::Txn::lock_table`].
    pub(crate) fn lock_relation(&mut self, table: Oid, mode: TableLockMode, policy: WaitPolicy) -> Result<Step<()>> {
        self.start_writing()?;
        let (core, inner) = (self.core.as_mut().expect("started above"), &self.shard.0);
        let mode = table_mode(mode);
        // Mostly nobody is in the way, and then nothing is made to be woken by.
        let mut answer = LockResult::WouldBlock;
        if !core.is_waiting() {
            answer = inner.store.lock_table(core, table, mode, mvcc::WaitPolicy::Never, &inner.nobody);
        }
        let mut waiting = None;
        if answer == LockResult::WouldBlock && policy == WaitPolicy::Block {
            let (wait, wake) = wakeup();
            answer = inner.store.lock_table(core, table, mode, mvcc::WaitPolicy::Block, &wake);
            waiting = Some(wait);
        }
        match (answer, waiting) {
            (LockResult::Granted { .. }, _) => Ok(Step::Ready(())),
            (LockResult::Wait, Some(wait)) => Ok(Step::Wait(wait)),
            (LockResult::Deadlock(cycle), _) => Err(deadlock(&cycle)),
            (LockResult::Wait | LockResult::WouldBlock | LockResult::Gone, _) => {
                let catalog = self.catalog();
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
        let (core, inner) = (self.core.as_mut().expect("started above"), &self.shard.0);
        let mark = core.mark();
        let keeps_key = mode == RowLockMode::KeyShare;
        let (rows, mode) = (&handle.store.rows, row_mode(mode));
        let guard = pin();
        let mut answer = LockResult::WouldBlock;
        if !core.is_waiting() {
            answer = inner.store.lock_row(core, rows, row, mode, mvcc::WaitPolicy::Never, &inner.nobody);
        }
        if answer == LockResult::WouldBlock
            && let Some(error) = self.lost(handle, row, mode, &guard)
        {
            return Err(error);
        }
        let (core, inner) = (self.core.as_mut().expect("started above"), &self.shard.0);
        let mut waiting = None;
        if answer == LockResult::WouldBlock && policy == WaitPolicy::Block {
            let (wait, wake) = wakeup();
            answer = inner.store.lock_row(core, rows, row, mode, mvcc::WaitPolicy::Block, &wake);
            waiting = Some(wait);
        }
        match (answer, waiting) {
            (LockResult::Granted { .. }, _) => {}
            (LockResult::Wait, Some(wait)) => return Ok(Step::Wait(wait)),
            (LockResult::Deadlock(cycle), _) => return Err(deadlock(&cycle)),
            (LockResult::Gone, _) => return Ok(Step::Ready(RowLockOutcome::Gone)),
            (LockResult::Wait | LockResult::WouldBlock, _) if policy == WaitPolicy::Skip => {
                return Ok(Step::Ready(RowLockOutcome::Skipped));
            }
            (LockResult::Wait | LockResult::WouldBlock, _) => {
                return Err(Error::new(
                    SqlState::LOCK_NOT_AVAILABLE,
                    format!("could not obtain lock on row in relation \"{}\"", handle.desc.name),
                ));
            }
        }
        let view = self.view();
        let own = self.core.as_ref().map(|c| c.id());
        let found = match rows.newest(row, own, &guard) {
            Newest::Live(version) | Newest::Undecided { decided: Some(version), .. } => {
                match rows.read(row, &view, &guard) {
                    Read::Visible(seen) if std::ptr::eq(seen.tuple, version.tuple) => Found::Seen(version),
                    _ if version.ts == Timestamp(0) => Found::OwnOfThisCommand,
                    _ => Found::Other(version),
                }
            }
            Newest::Deleted(ts) => Found::Gone(ts),
            Newest::Undecided { decided: None, .. } | Newest::Absent => Found::Gone(Timestamp(0)),
        };
        let snapshot = self.options.isolation != Isolation::ReadCommitted;
        let outcome = match found {
            Found::Seen(_) if self.is_beyond_held(rows, row, own, mode, &guard) => Err(concurrent("update")),
            Found::Seen(version) => {
                if changes(mode) {
                    out.push(row, version.layout, version.writer, version.tuple);
                }
                Ok(RowLockOutcome::Locked)
            }
            Found::Other(version) if snapshot => {
                self.note(version.ts);
                self.lost(handle, row, mode, &guard).map_or(Ok(RowLockOutcome::Locked), Err)
            }
            Found::Gone(ts) if snapshot && ts > view.read_ts => {
                self.note(ts);
                Err(concurrent("delete"))
            }
            Found::Other(version) => {
                self.note(version.ts);
                out.push(row, version.layout, version.writer, version.tuple);
                Ok(RowLockOutcome::Moved)
            }
            Found::Gone(ts) => {
                self.note(ts);
                Ok(RowLockOutcome::Gone)
            }
            // A foreign key may point to a row of its own statement; other callers pass over what they made.
            Found::OwnOfThisCommand if keeps_key => Ok(RowLockOutcome::Own),
            Found::OwnOfThisCommand => Ok(RowLockOutcome::OwnUnlocked),
        };
        drop(guard);
        if matches!(outcome, Ok(RowLockOutcome::Gone | RowLockOutcome::OwnUnlocked))
            || planted::strikes(Planted::LockGoesEarly)
        {
            let core = self.core.as_mut().expect("started above");
            self.shard.0.store.undo_to(core, mark);
        }
        outcome.map(Step::Ready)
    }

    /// Why the transaction cannot have a row any more, whoever holds it now: another has changed or deleted it since the snapshot was
    /// taken. Nobody waits for what is lost.
    fn lost(
        &mut self,
        handle: &TableHandle,
        row: RowId,
        mode: mvcc::RowLockMode,
        guard: &mvcc::Guard,
    ) -> Option<Error> {
        if self.options.isolation == Isolation::ReadCommitted {
            return None;
        }
        let (view, rows) = (self.view(), &handle.store.rows);
        let (ts, what) = match rows.newest(row, view.own, guard) {
            Newest::Live(version) | Newest::Undecided { decided: Some(version), .. } => {
                match rows.read(row, &view, guard) {
                    // Who locks the key only is not concerned by other columns, as on PostgreSQL.
                    Read::Visible(seen) if mode == mvcc::RowLockMode::KeyShare && handle.same_keys(&seen, &version) => {
                        return None;
                    }
                    _ => (version.ts, "update"),
                }
            }
            Newest::Deleted(ts) => (ts, "delete"),
            Newest::Undecided { decided: None, .. } | Newest::Absent => return None,
        };
        if ts <= view.read_ts {
            return None;
        }
        self.note(ts);
        Some(concurrent(what))
    }

    /// Whether a row that a newest command ([`engine_api::Txn::begin_newest_command`]) is about to change was made or
    /// changed after the transaction's snapshot.
    fn is_beyond_held(
        &self,
        rows: &mvcc::Table,
        row: RowId,
        own: Option<base::TxnId>,
        mode: mvcc::RowLockMode,
        guard: &mvcc::Guard,
    ) -> bool {
        let Some(held) = &self.held else { return false };
        changes(mode) && matches!(rows.newest(row, own, guard), Newest::Live(version) if version.ts > held.read_ts())
    }
}
