//! A subquery in FROM: a machine of its own, whose columns go to slots here.

use std::sync::Arc;

use base::Result;
use sql_plan::SubqueryNode;
use types::Datum;

use super::{Cx, Machine, Next, Operator};

/// Reads a subquery.
pub(super) struct SubqueryScan {
    node: Arc<SubqueryNode>,
    machine: Option<Machine>,
    started: bool,
}

impl SubqueryScan {
    pub fn new(node: &Arc<SubqueryNode>) -> SubqueryScan {
        SubqueryScan { node: Arc::clone(node), machine: None, started: false }
    }
}

impl Operator for SubqueryScan {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let subplan = &self.node.subplan;
        let machine = self.machine.get_or_insert_with(|| Machine::inside(subplan, registers));
        if !self.started {
            machine.take_args(subplan, cx, registers)?;
            self.started = true;
        }
        let next = machine.next(cx.run)?;
        if matches!(next, Next::Row) {
            let row = machine.row();
            for &(column, slot) in &self.node.columns {
                registers[slot as usize] = row.get_owned(column);
            }
        }
        Ok(next)
    }

    fn rescan(&mut self, _: bool) {
        // A reset execution may have other parameters: the machine is made anew.
        self.machine = None;
        self.started = false;
    }
}
