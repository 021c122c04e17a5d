//! DISTINCT and DISTINCT ON: the first row of each key.

use std::sync::Arc;

use base::{Oid, Result};
use sql_plan::DistinctNode;
use types::Datum;

use super::rows::KeyTable;
use super::{Cx, Next, Operator, operator};

/// Passes the first row of each key.
pub(super) struct Distinct {
    node: Arc<DistinctNode>,
    input: Box<dyn Operator>,
    seen: KeyTable,
    key: Vec<Datum>,
}

impl Distinct {
    pub fn new(node: &Arc<DistinctNode>) -> Distinct {
        let types: Vec<Oid> = node.keys.iter().map(|(_, ty)| *ty).collect();
        Distinct { input: operator(&node.input), node: Arc::clone(node), seen: KeyTable::new(&types), key: Vec::new() }
    }
}

impl Operator for Distinct {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        loop {
            let next = self.input.next(cx, registers)?;
            if !matches!(next, Next::Row) {
                return Ok(next);
            }
            self.key.clear();
            self.key.extend(self.node.keys.iter().map(|(slot, _)| registers[*slot as usize].clone()));
            if self.seen.insert(&self.key).1 {
                cx.run.charge(self.seen.entry_bytes())?;
                return Ok(Next::Row);
            }
            if let Some(wait) = cx.run.tick(1)? {
                return Ok(Next::Wait(wait));
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.seen.clear();
        self.input.rescan(forget);
    }
}
