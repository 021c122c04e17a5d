//! Rows for which all conditions are true.

use std::sync::Arc;

use base::Result;
use sql_ir::expr::all_true;
use sql_plan::FilterNode;
use types::Datum;

use super::team::{Copied, Parts};
use super::{Cx, Next, Operator, operator};

/// WHERE, HAVING and conditions above outer joins.
pub(super) struct Filter {
    node: Arc<FilterNode>,
    input: Box<dyn Operator>,
}

impl Filter {
    pub fn new(node: &Arc<FilterNode>) -> Filter {
        Filter { node: Arc::clone(node), input: operator(&node.input) }
    }
}

impl Operator for Filter {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        loop {
            match self.input.next(cx, registers)? {
                Next::Row if all_true(&self.node.conditions, cx, registers)? => return Ok(Next::Row),
                Next::Row => {
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                other => return Ok(other),
            }
        }
    }

    fn read_late(&mut self, registers: &mut [Datum]) -> Result<()> {
        self.input.read_late(registers)
    }

    fn prepare(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        self.input.prepare(cx, registers)
    }

    fn split(&mut self, cx: &mut Cx<'_, '_>, parts: &mut Option<Arc<Parts>>) -> Result<Copied> {
        let input = self.input.split(cx, parts)?;
        Ok(input.map(|input| Box::new(Filter { node: Arc::clone(&self.node), input }) as Box<dyn Operator>))
    }

    fn rescan(&mut self, forget: bool) {
        self.input.rescan(forget);
    }
}
