//! Computes values into slots.

use std::sync::Arc;

use base::Result;
use sql_plan::ProjectNode;
use types::Datum;

use super::team::{Copied, Parts};
use super::{Cx, Next, Operator, operator};

/// The select list, where it is more than columns.
pub(super) struct Project {
    node: Arc<ProjectNode>,
    input: Box<dyn Operator>,
}

impl Project {
    pub fn new(node: &Arc<ProjectNode>) -> Project {
        Project { node: Arc::clone(node), input: operator(&node.input) }
    }
}

impl Operator for Project {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let next = self.input.next(cx, registers)?;
        if matches!(next, Next::Row) {
            for (slot, code) in &self.node.targets {
                registers[*slot as usize] = code.eval(cx, registers)?;
            }
        }
        Ok(next)
    }

    fn read_late(&mut self, registers: &mut [Datum]) -> Result<()> {
        self.input.read_late(registers)
    }

    fn prepare(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        self.input.prepare(cx, registers)
    }

    fn split(&mut self, cx: &mut Cx<'_, '_>, parts: &mut Option<Arc<Parts>>) -> Result<Copied> {
        let input = self.input.split(cx, parts)?;
        Ok(input.map(|input| Box::new(Project { node: Arc::clone(&self.node), input }) as Box<dyn Operator>))
    }

    fn rescan(&mut self, forget: bool) {
        self.input.rescan(forget);
    }
}
