//! MERGE.

use std::sync::Arc;

use base::{Error, Result, RowId, SqlState};
use engine_api::{ConflictArbiter, InsertOutcome, RowBatch, RowLockMode, Step};
use rustc_hash::FxHashSet;
use sql_ir::expr::{Code, all_true};
use sql_plan::{MergeNode, MergeWork, Target};
use types::Datum;

use super::super::cte::HasTarget;
use super::super::foreign_key::Constraints;
use super::super::lock_rows::row_in;
use super::super::{Cx, Next, Operator, operator};
use super::{Locked, changed, check, lock, new_values};

/// Does with each row of its input what the first clause says whose condition holds.
pub(crate) struct Merge {
    node: Arc<MergeNode>,
    input: Box<dyn Operator>,
    state: MergeState,
    /// Rows changed by this command.
    own: FxHashSet<u64>,
    constraints: Constraints,
    newest: RowBatch,
    tuple: Vec<u8>,
    /// The target's columns as the input gave them: it may go on from there.
    given: Vec<Datum>,
    /// The newest version of the row is in the registers, and is locked.
    newest_seen: bool,
    /// What the row to be locked is going to have.
    values: Vec<Datum>,
}

#[derive(Clone, Copy)]
enum MergeState {
    /// The next row is wanted.
    Reading,
    /// What is to be done with the row of the target in the registers is decided.
    Matched(RowId),
    /// The row is to be locked like this, for this action.
    Locking(RowId, usize, RowLockMode),
    /// The new tuple of the row is to be stored.
    Storing(RowId),
    /// The row of the source has no partner.
    Unmatched,
    /// The tuple is to be inserted.
    Inserting,
    /// All rows are done.
    Done,
}

impl HasTarget for Arc<MergeNode> {
    fn target(&self) -> &Target {
        &self.target
    }
}

fn twice() -> Error {
    Error::new(SqlState::CARDINALITY_VIOLATION, "MERGE command cannot affect row a second time")
        .hint("Ensure that not more than one source row matches any one target row.")
}

impl Merge {
    pub fn new(node: &Arc<MergeNode>) -> Merge {
        Merge {
            input: operator(&node.input),
            constraints: Constraints::new(&node.target),
            node: Arc::clone(node),
            state: MergeState::Reading,
            own: FxHashSet::default(),
            newest: RowBatch::new(),
            tuple: Vec::new(),
            given: Vec::new(),
            newest_seen: false,
            values: Vec::new(),
        }
    }

    /// The first action whose condition holds; `None` if there is nothing to do.
    fn choose(node: &MergeNode, matched: bool, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<Option<usize>> {
        for (number, action) in node.actions.iter().enumerate().filter(|(_, a)| a.matched == matched) {
            if all_true(&action.condition, cx, registers)? {
                return Ok((!matches!(action.kind, MergeWork::Nothing)).then_some(number));
            }
        }
        Ok(None)
    }

    /// Computes the new row into the target's slots and checks it; its tuple is made.
    fn compute(
        &mut self,
        node: &MergeNode,
        values: &[(usize, Code)],
        cx: &mut Cx<'_, '_>,
        registers: &mut [Datum],
    ) -> Result<()> {
        self.values.clear();
        for (_, code) in values {
            self.values.push(code.eval(cx, registers)?);
        }
        self.put(node, values, cx, registers)
    }

    /// Puts what was computed into the target's slots, as [`Merge::compute`].
    fn put(
        &mut self,
        node: &MergeNode,
        values: &[(usize, Code)],
        cx: &mut Cx<'_, '_>,
        registers: &mut [Datum],
    ) -> Result<()> {
        let target = &node.target;
        for ((column, _), value) in values.iter().zip(self.values.drain(..)) {
            registers[target.slots[*column] as usize] = value;
        }
        check(target, None, cx, registers)?;
        self.tuple.clear();
        target.writer.write(registers, &target.slots, &mut self.tuple)
    }

    /// Gives the input its row back.
    fn give_back(&mut self, registers: &mut [Datum]) {
        for (&slot, value) in self.node.target.slots.iter().zip(self.given.drain(..)) {
            registers[slot as usize] = value;
        }
        self.state = MergeState::Reading;
    }

    /// Locks the row for an action and, if it is still what it was, does it.
    fn lock_and_do(
        &mut self,
        row: RowId,
        action: usize,
        mode: RowLockMode,
        cx: &mut Cx<'_, '_>,
        registers: &mut [Datum],
    ) -> Result<Option<Next>> {
        let node = Arc::clone(&self.node);
        let target = &node.target;
        match lock(target, row, mode, cx, &mut self.newest, registers)? {
            Locked::Same => {}
            Locked::Moved if self.newest_seen => {}
            Locked::Moved => {
                self.newest_seen = true;
                // What is done with it is decided anew, if it is still a partner at all.
                let still = all_true(&node.recheck, cx, registers)?;
                self.state = if still { MergeState::Matched(row) } else { MergeState::Unmatched };
                if !still {
                    target.slots.iter().for_each(|slot| registers[*slot as usize] = Datum::Null);
                }
                return Ok(None);
            }
            Locked::Own | Locked::Gone => {
                target.slots.iter().for_each(|slot| registers[*slot as usize] = Datum::Null);
                self.state = MergeState::Unmatched;
                return Ok(None);
            }
            Locked::Wait(wait) => return Ok(Some(Next::Wait(wait))),
        }
        self.own.insert(row.0);
        if !cx.run.shared.touch(target, row) {
            self.give_back(registers);
            return Ok(None);
        }
        self.constraints.note_old(target, registers);
        if let MergeWork::Update(set) = &node.actions[action].kind {
            self.put(&node, &set.values, cx, registers)?;
            self.constraints.note_updated(target, row, registers, cx);
            self.state = MergeState::Storing(row);
            return Ok(None);
        }
        self.constraints.note_deleted(target);
        let table = target.table.open(cx.run.txn)?;
        cx.run.txn.delete(table, row)?;
        self.finish_row(cx, registers)
    }

    fn finish_row(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Option<Next>> {
        let node = Arc::clone(&self.node);
        let next = changed(&node.target, cx, registers)?;
        self.give_back(registers);
        Ok(next)
    }
}

impl Operator for Merge {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let node = Arc::clone(&self.node);
        let target = &node.target;
        loop {
            let next = match self.state {
                MergeState::Reading => match self.input.next(cx, registers)? {
                    Next::Row => {
                        self.newest_seen = false;
                        self.given.clear();
                        self.given.extend(target.slots.iter().map(|slot| registers[*slot as usize].clone()));
                        self.state =
                            row_in(registers, target.row_slot).map_or(MergeState::Unmatched, MergeState::Matched);
                        None
                    }
                    Next::Done => {
                        self.state = MergeState::Done;
                        None
                    }
                    wait => Some(wait),
                },
                MergeState::Matched(row) => {
                    match Merge::choose(&node, true, cx, registers)? {
                        Some(_) if self.own.contains(&row.0) => return Err(twice()),
                        Some(action) => {
                            let mode = match &node.actions[action].kind {
                                MergeWork::Update(set) => new_values(set, target, cx, registers, &mut self.values)?,
                                _ => RowLockMode::Update,
                            };
                            self.state = MergeState::Locking(row, action, mode);
                        }
                        None => self.give_back(registers),
                    }
                    None
                }
                MergeState::Locking(row, action, mode) => self.lock_and_do(row, action, mode, cx, registers)?,
                MergeState::Storing(row) => {
                    let table = target.table.open(cx.run.txn)?;
                    match cx.run.txn.update(table, row, &self.tuple)? {
                        Step::Ready(()) => self.finish_row(cx, registers)?,
                        Step::Wait(wait) => Some(Next::Wait(wait)),
                    }
                }
                MergeState::Unmatched => {
                    match Merge::choose(&node, false, cx, registers)?.map(|action| &node.actions[action].kind) {
                        Some(MergeWork::Insert(values)) => {
                            self.compute(&node, values, cx, registers)?;
                            self.state = MergeState::Inserting;
                        }
                        _ => self.give_back(registers),
                    }
                    None
                }
                MergeState::Inserting => {
                    let table = target.table.open(cx.run.txn)?;
                    match cx.run.txn.insert(table, &self.tuple, ConflictArbiter::None)? {
                        Step::Ready(InsertOutcome::Inserted(row)) => {
                            self.own.insert(row.0);
                            self.constraints.note_inserted(target, row, registers, cx);
                            self.finish_row(cx, registers)?
                        }
                        Step::Ready(InsertOutcome::Conflict(_)) => {
                            return Err(Error::internal("a conflict without an action"));
                        }
                        Step::Wait(wait) => Some(Next::Wait(wait)),
                    }
                }
                MergeState::Done => return self.constraints.finish(&node, cx),
            };
            if let Some(next) = next {
                return Ok(next);
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.state = MergeState::Reading;
        self.own.clear();
        self.given.clear();
        self.constraints.clear();
        self.input.rescan(forget);
    }
}
