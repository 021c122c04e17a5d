//! FOR UPDATE and the like: locks the rows of some tables and looks again at those that have moved (rule R7).

use std::sync::Arc;

use base::{Error, Result, RowId, SqlState};
use engine_api::{RowBatch, RowLockMode, RowLockOutcome, Step, TableRef, Txn, WaitPolicy};
use sql_ir::expr::all_true;
use sql_plan::{LockRowsNode, LockTarget};
use types::Datum;

use super::{Cx, Next, Operator, operator};

/// Locks what it passes on.
pub(super) struct LockRows {
    node: Arc<LockRowsNode>,
    input: Box<dyn Operator>,
    /// The next table of the row in the registers to lock; `None` between rows.
    target: Option<usize>,
    moved: bool,
    newest: RowBatch,
}

/// A row lock that is waited for.
pub(crate) struct Awaited {
    table: TableRef,
    row: RowId,
    mode: RowLockMode,
}

impl Awaited {
    /// Asks for the lock again: whoever has waited for it must take it before asking for any other.
    pub fn take(&self, txn: &mut dyn Txn) -> Result<Step<RowLockOutcome>> {
        let answer = txn.lock_row(&self.table, self.row, self.mode, WaitPolicy::Block, &mut RowBatch::new());
        answer.map_err(only_locks)
    }
}

impl LockRows {
    pub fn new(node: &Arc<LockRowsNode>) -> LockRows {
        LockRows {
            input: operator(&node.input),
            node: Arc::clone(node),
            target: None,
            moved: false,
            newest: RowBatch::new(),
        }
    }
}

/// The identity of a row that a slot holds; `None` for the empty side of an outer join.
pub(super) fn row_in(registers: &[Datum], slot: u32) -> Option<RowId> {
    match registers[slot as usize] {
        Datum::Int8(row) => Some(RowId(row as u64)),
        _ => None,
    }
}

fn lock(target: &LockTarget, row: RowId, txn: &mut dyn Txn, newest: &mut RowBatch) -> Result<Step<RowLockOutcome>> {
    newest.clear();
    let table = target.table.open(txn)?;
    txn.lock_row(table, row, target.mode, target.policy, newest).map_err(only_locks)
}

/// To PostgreSQL a row that is gone has been updated as well, for who only wants to lock it.
pub(super) fn only_locks(error: Error) -> Error {
    if error.code() != SqlState::SERIALIZATION_FAILURE {
        return error;
    }
    Error::new(SqlState::SERIALIZATION_FAILURE, "could not serialize access due to concurrent update")
}

impl Operator for LockRows {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let node = Arc::clone(&self.node);
        'rows: loop {
            let mut at = match self.target {
                Some(at) => at,
                None => match self.input.next(cx, registers)? {
                    Next::Row => {
                        self.moved = false;
                        0
                    }
                    other => return Ok(other),
                },
            };
            while let Some(target) = node.targets.get(at) {
                self.target = Some(at);
                at += 1;
                let Some(row) = row_in(registers, target.row_slot) else { continue };
                match lock(target, row, cx.run.txn, &mut self.newest)? {
                    Step::Ready(RowLockOutcome::Locked) => {}
                    Step::Ready(RowLockOutcome::Moved) => {
                        target.reader.read(self.newest.row(0), registers);
                        self.moved = true;
                    }
                    Step::Ready(
                        RowLockOutcome::Own
                        | RowLockOutcome::OwnUnlocked
                        | RowLockOutcome::Gone
                        | RowLockOutcome::Skipped,
                    ) => {
                        self.target = None;
                        continue 'rows;
                    }
                    Step::Wait(wait) => {
                        let table = target.table.open(cx.run.txn)?.clone();
                        cx.run.awaited = Some(Awaited { table, row, mode: target.mode });
                        return Ok(Next::Wait(wait));
                    }
                }
            }
            self.target = None;
            if !self.moved {
                return Ok(Next::Row);
            }
            if all_true(&node.recheck, cx, registers)? {
                for (slot, code) in &node.recompute {
                    registers[*slot as usize] = code.eval(cx, registers)?;
                }
                return Ok(Next::Row);
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.target = None;
        self.input.rescan(forget);
    }
}
