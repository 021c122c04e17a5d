//! DELETE.

use std::sync::Arc;

use base::Result;
use engine_api::RowLockMode;
use sql_plan::{DeleteNode, Target};
use types::Datum;

use super::super::cte::HasTarget;
use super::super::foreign_key::Constraints;
use super::super::{Cx, Next, Operator};
use super::{LockedRows, NextLocked, changed, note_deleter};

/// Deletes the rows of its input.
pub(crate) struct Delete {
    node: Arc<DeleteNode>,
    rows: LockedRows,
    constraints: Constraints,
}

impl HasTarget for Arc<DeleteNode> {
    fn target(&self) -> &Target {
        &self.target
    }
}

impl Delete {
    pub fn new(node: &Arc<DeleteNode>) -> Delete {
        Delete {
            rows: LockedRows::new(&node.input),
            constraints: Constraints::new(&node.target),
            node: Arc::clone(node),
        }
    }
}

impl Operator for Delete {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let target = &self.node.target;
        loop {
            let row = match self.rows.next(target, &self.node.choice, cx, registers, |_, _| Ok(RowLockMode::Update))? {
                NextLocked::Row(row) => row,
                NextLocked::Done => return self.constraints.finish(&self.node, cx),
                NextLocked::Wait(wait) => return Ok(Next::Wait(wait)),
            };
            self.constraints.note_old(target, registers);
            self.constraints.note_deleted(target);
            let table = target.table.open(cx.run.txn)?;
            cx.run.txn.delete(table, row)?;
            note_deleter(target, cx, registers);
            if let Some(next) = changed(target, cx, registers)? {
                return Ok(next);
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.constraints.clear();
        self.rows.rescan(forget);
    }
}
