//! Nested loop: the inner side runs for each outer row. With an index scan inside that reads the outer row: index join.

use std::sync::Arc;

use base::Result;
use sql_ir::expr::all_true;
use sql_plan::{JoinType, NestedLoopNode};
use types::Datum;

use super::team::{Copied, Parts};
use super::{Cx, Next, Operator, operator};

/// Joins two inputs.
pub(super) struct NestedLoop {
    node: Arc<NestedLoopNode>,
    outer: Box<dyn Operator>,
    inner: Box<dyn Operator>,
    /// An outer row is in the registers.
    has_outer: bool,
    /// That row has found a partner.
    matched: bool,
}

impl NestedLoop {
    pub fn new(node: &Arc<NestedLoopNode>) -> NestedLoop {
        NestedLoop {
            outer: operator(&node.outer),
            inner: operator(&node.inner),
            node: Arc::clone(node),
            has_outer: false,
            matched: false,
        }
    }
}

impl Operator for NestedLoop {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        loop {
            if !self.has_outer {
                match self.outer.next(cx, registers)? {
                    Next::Row => {
                        self.has_outer = true;
                        self.matched = false;
                        self.inner.rescan(self.node.anew);
                    }
                    other => return Ok(other),
                }
            }
            match self.inner.next(cx, registers)? {
                Next::Row => {
                    if all_true(&self.node.conditions, cx, registers)? {
                        self.matched = true;
                        match self.node.join {
                            // One partner says it all.
                            JoinType::Semi | JoinType::Anti => self.has_outer = false,
                            _ => return Ok(Next::Row),
                        }
                        if self.node.join == JoinType::Semi {
                            return Ok(Next::Row);
                        }
                        continue;
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                Next::Done => {
                    self.has_outer = false;
                    match self.node.join {
                        JoinType::Left if !self.matched => {
                            for &slot in &self.node.inner_slots {
                                registers[slot as usize] = Datum::Null;
                            }
                            return Ok(Next::Row);
                        }
                        JoinType::Anti => return Ok(Next::Row),
                        _ => {}
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                wait => return Ok(wait),
            }
        }
    }

    fn read_late(&mut self, registers: &mut [Datum]) -> Result<()> {
        self.outer.read_late(registers)
    }

    fn prepare(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        self.outer.prepare(cx, registers)
    }

    fn split(&mut self, cx: &mut Cx<'_, '_>, parts: &mut Option<Arc<Parts>>) -> Result<Copied> {
        let Some(outer) = self.outer.split(cx, parts)? else { return Ok(None) };
        Ok(Some(Box::new(NestedLoop { outer, ..NestedLoop::new(&self.node) })))
    }

    fn rescan(&mut self, forget: bool) {
        self.has_outer = false;
        self.outer.rescan(forget);
        self.inner.rescan(forget);
    }
}
