//! INSERT, with ON CONFLICT.

use std::sync::Arc;

use base::{Error, Result, RowId, SqlState};
use engine_api::{ConflictArbiter, InsertOutcome, RowBatch, Step};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use sql_ir::expr::{Code, all_true};
use sql_plan::{ConflictAction, InsertNode, InsertRows, Target};
use types::Datum;

use super::super::cte::HasTarget;
use super::super::foreign_key::Constraints;
use super::super::{Cx, Next, Operator, operator};
use super::{Locked, changed, check, lock, note_system};

/// Inserts the rows of its source.
pub(crate) struct Insert {
    node: Arc<InsertNode>,
    input: Option<Box<dyn Operator>>,
    /// The next row of VALUES.
    at: usize,
    state: InsertState,
    /// Rows made or changed by this command (ON CONFLICT DO UPDATE).
    own: FxHashSet<u64>,
    constraints: Constraints,
    newest: RowBatch,
    tuple: Vec<u8>,
}

#[derive(Clone, Copy)]
enum InsertState {
    /// The next row is wanted.
    Reading,
    /// The tuple is to be inserted.
    Inserting,
    /// A row is in the way and is to be locked.
    Locking(RowId),
    /// Its new tuple is to be stored.
    Updating(RowId),
    /// All rows are done.
    Done,
}

impl HasTarget for Arc<InsertNode> {
    fn target(&self) -> &Target {
        &self.target
    }
}

impl Insert {
    pub fn new(node: &Arc<InsertNode>) -> Insert {
        let input = match &node.source {
            InsertRows::Values { .. } => None,
            InsertRows::Query(input) => Some(operator(input)),
        };
        Insert {
            input,
            constraints: Constraints::new(&node.target),
            node: Arc::clone(node),
            at: 0,
            state: InsertState::Reading,
            own: FxHashSet::default(),
            newest: RowBatch::new(),
            tuple: Vec::new(),
        }
    }

    /// Puts the next source row into the registers.
    fn read(&mut self, node: &InsertNode, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if let Some(input) = &mut self.input {
            return input.next(cx, registers);
        }
        let InsertRows::Values { rows, slots } = &node.source else { return Ok(Next::Done) };
        if self.at == rows.len() && cx.run.next_parameter_row(registers) {
            self.at = 0;
        }
        let Some(row) = rows.get(self.at) else { return Ok(Next::Done) };
        self.at += 1;
        for (code, &slot) in row.iter().zip(slots) {
            let value = code.value(cx, registers)?.into_owned();
            registers[slot as usize].put(value);
        }
        Ok(Next::Row)
    }

    /// Computes the columns and the tuple of a new row.
    fn compute(&mut self, node: &InsertNode, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<()> {
        let target = &node.target;
        for (slot, code) in &node.columns {
            let value = code.value(cx, registers)?.into_owned();
            registers[*slot as usize].put(value);
        }
        check(target, None, cx, registers)?;
        self.tuple.clear();
        target.writer.write(registers, &target.slots, &mut self.tuple)
    }

    /// Moves the proposed row to `excluded`.
    fn exclude(node: &InsertNode, registers: &mut [Datum]) {
        if let Some(ConflictAction::Update { excluded, .. }) = &node.on_conflict {
            for (&from, &to) in node.target.slots.iter().zip(excluded) {
                registers[to as usize] = registers[from as usize].clone();
            }
        }
    }

    /// Brings the proposed row back from `excluded`.
    fn include(node: &InsertNode, registers: &mut [Datum]) {
        if let Some(ConflictAction::Update { excluded, .. }) = &node.on_conflict {
            for (&to, &from) in node.target.slots.iter().zip(excluded) {
                registers[to as usize] = registers[from as usize].clone();
            }
        }
    }

    /// Locks the row in the way and computes what becomes of it.
    fn conflict(
        &mut self,
        node: &InsertNode,
        row: RowId,
        cx: &mut Cx<'_, '_>,
        registers: &mut [Datum],
    ) -> Result<Next> {
        let Some(ConflictAction::Update { set, filter, mode, .. }) = &node.on_conflict else {
            return Err(Error::internal("a conflict without an action"));
        };
        if self.own.contains(&row.0) {
            return Err(second_time());
        }
        let target = &node.target;
        let readable = match lock(target, row, *mode, cx, &mut self.newest, registers)? {
            Locked::Moved => true,
            Locked::Same => {
                self.newest.clear();
                let table = target.table.open(cx.run.txn)?;
                let found = cx.run.txn.fetch(table, row, &mut self.newest)?;
                if found {
                    target.reader.read(self.newest.row(0), registers);
                }
                found
            }
            // Another part of the statement has written it.
            Locked::Own => return Err(second_time()),
            Locked::Gone => false,
            Locked::Wait(wait) => return Ok(Next::Wait(wait)),
        };
        if !readable {
            // It was deleted meanwhile: the proposed row is tried again.
            Insert::include(node, registers);
            self.state = InsertState::Inserting;
            return Ok(cx.run.tick(1)?.map_or(Next::Row, Next::Wait));
        }
        if !all_true(filter, cx, registers)? {
            self.state = InsertState::Reading;
            return Ok(Next::Row);
        }
        self.apply(node, row, set, cx, registers)?;
        self.state = InsertState::Updating(row);
        Ok(Next::Row)
    }

    fn apply(
        &mut self,
        node: &InsertNode,
        row: RowId,
        set: &[(usize, Code)],
        cx: &mut Cx<'_, '_>,
        registers: &mut [Datum],
    ) -> Result<()> {
        let target = &node.target;
        let mut values: SmallVec<[Datum; 8]> = SmallVec::new();
        for (_, code) in set {
            values.push(code.eval(cx, registers)?);
        }
        self.constraints.note_old(target, registers);
        for ((column, _), value) in set.iter().zip(values) {
            registers[target.slots[*column] as usize] = value;
        }
        check(target, None, cx, registers)?;
        self.constraints.note_updated(target, row, registers, cx);
        self.tuple.clear();
        target.writer.write(registers, &target.slots, &mut self.tuple)
    }
}

impl Operator for Insert {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let node = Arc::clone(&self.node);
        let target = &node.target;
        let updates = matches!(node.on_conflict, Some(ConflictAction::Update { .. }));
        loop {
            match self.state {
                InsertState::Reading => match self.read(&node, cx, registers)? {
                    Next::Row => {
                        self.compute(&node, cx, registers)?;
                        self.state = InsertState::Inserting;
                    }
                    Next::Done => self.state = InsertState::Done,
                    wait => return Ok(wait),
                },
                InsertState::Inserting => {
                    let table = target.table.open(cx.run.txn)?;
                    let arbiter = match &node.by_values {
                        None => node.arbiter,
                        Some(choice) => {
                            let values = choice.params.iter().map(|(_, code)| code.eval(cx, registers));
                            ConflictArbiter::Index(choice.chosen(&values.collect::<Result<Vec<_>>>()?)?)
                        }
                    };
                    match cx.run.txn.insert(table, &self.tuple, arbiter)? {
                        Step::Ready(InsertOutcome::Inserted(row)) => {
                            self.state = InsertState::Reading;
                            if updates {
                                self.own.insert(row.0);
                            }
                            self.constraints.note_inserted(target, row, registers, cx);
                            note_system(target, row, false, cx, registers);
                            if let Some(next) = changed(target, cx, registers)? {
                                return Ok(next);
                            }
                        }
                        Step::Ready(InsertOutcome::Conflict(row)) if updates => {
                            Insert::exclude(&node, registers);
                            self.state = InsertState::Locking(row);
                        }
                        Step::Ready(InsertOutcome::Conflict(_)) => self.state = InsertState::Reading,
                        Step::Wait(wait) => return Ok(Next::Wait(wait)),
                    }
                }
                InsertState::Locking(row) => {
                    if let Next::Wait(wait) = self.conflict(&node, row, cx, registers)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                InsertState::Updating(row) => {
                    let table = target.table.open(cx.run.txn)?;
                    match cx.run.txn.update(table, row, &self.tuple)? {
                        Step::Ready(()) => {}
                        Step::Wait(wait) => return Ok(Next::Wait(wait)),
                    }
                    self.own.insert(row.0);
                    self.state = InsertState::Reading;
                    note_system(target, row, true, cx, registers);
                    if let Some(next) = changed(target, cx, registers)? {
                        return Ok(next);
                    }
                }
                InsertState::Done => return self.constraints.finish(&node, cx),
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.at = 0;
        self.state = InsertState::Reading;
        self.own.clear();
        self.constraints.clear();
        if let Some(input) = &mut self.input {
            input.rescan(forget);
        }
    }
}

fn second_time() -> Error {
    Error::new(SqlState::CARDINALITY_VIOLATION, "ON CONFLICT DO UPDATE command cannot affect row a second time")
        .hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
}
