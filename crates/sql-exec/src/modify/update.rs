//! UPDATE.

use std::sync::Arc;

use base::{Error, Result, RowId};
use engine_api::Step;
use sql_plan::{Target, UpdateNode};
use types::Datum;

use super::super::cte::HasTarget;
use super::super::foreign_key::Constraints;
use super::super::{Cx, Next, Operator};
use super::{LockedRows, NextLocked, changed, check, new_values, note_system};

/// Changes the rows of its input.
pub(crate) struct Update {
    node: Arc<UpdateNode>,
    rows: LockedRows,
    /// What the row in the registers is going to have.
    values: Vec<Datum>,
    /// The row whose new tuple is to be stored yet.
    storing: Option<RowId>,
    constraints: Constraints,
    tuple: Vec<u8>,
}

impl HasTarget for Arc<UpdateNode> {
    fn target(&self) -> &Target {
        &self.target
    }
}

impl Update {
    pub fn new(node: &Arc<UpdateNode>) -> Update {
        Update {
            rows: LockedRows::new(&node.input),
            values: Vec::new(),
            storing: None,
            constraints: Constraints::new(&node.target),
            node: Arc::clone(node),
            tuple: Vec::new(),
        }
    }

    /// Puts the new row into the registers and makes its tuple, of the one that was locked; the old row's keys are noted.
    fn compute(&mut self, node: &UpdateNode, row: RowId, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<()> {
        let target = &node.target;
        if self.rows.newest.is_empty() {
            return Err(Error::internal("a row is locked to be changed and not shown"));
        }
        let old = self.rows.newest.row(0);
        self.constraints.note_old(target, registers);
        for ((column, _), value) in node.set.values.iter().zip(self.values.drain(..)) {
            registers[target.slots[*column] as usize] = value;
        }
        check(target, Some(old), cx, registers)?;
        if !target.view_checks.is_empty() {
            // They are looked at when the row has been stored, and may have to show all of it.
            target.rest.read(old, registers);
        }
        self.constraints.note_updated(target, row, registers, cx);
        self.tuple.clear();
        if target.writer.rewrite(old, &node.places, registers, &mut self.tuple)? {
            return Ok(());
        }
        target.rest.read(old, registers);
        target.writer.write(registers, &target.slots, &mut self.tuple)
    }
}

impl Operator for Update {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let node = Arc::clone(&self.node);
        let target = &node.target;
        loop {
            let row = match self.storing.take() {
                Some(row) => row,
                None => {
                    let values = &mut self.values;
                    let mode =
                        |cx: &mut Cx<'_, '_>, registers: &[Datum]| new_values(&node.set, target, cx, registers, values);
                    match self.rows.next(target, &node.choice, cx, registers, mode)? {
                        NextLocked::Row(row) => {
                            self.compute(&node, row, cx, registers)?;
                            row
                        }
                        NextLocked::Done => return self.constraints.finish(&node, cx),
                        NextLocked::Wait(wait) => return Ok(Next::Wait(wait)),
                    }
                }
            };
            let table = target.table.open(cx.run.txn)?;
            if let Step::Wait(wait) = cx.run.txn.update(table, row, &self.tuple)? {
                self.storing = Some(row);
                return Ok(Next::Wait(wait));
            }
            note_system(target, row, false, cx, registers);
            if let Some(next) = changed(target, cx, registers)? {
                return Ok(next);
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.storing = None;
        self.constraints.clear();
        self.rows.rescan(forget);
    }
}
