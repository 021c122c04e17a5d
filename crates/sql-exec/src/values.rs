//! Rows without a table: one empty row, VALUES.

use std::sync::Arc;

use base::{Result, work};
use sql_plan::ValuesNode;
use types::Datum;

use super::{Cx, Next, Operator};

/// One row without columns: SELECT without FROM.
#[derive(Default)]
pub(super) struct OneRow {
    done: bool,
}

impl Operator for OneRow {
    fn next(&mut self, _: &mut Cx<'_, '_>, _: &mut [Datum]) -> Result<Next> {
        let done = std::mem::replace(&mut self.done, true);
        Ok(if done { Next::Done } else { Next::Row })
    }

    fn rescan(&mut self, _: bool) {
        self.done = false;
    }
}

/// VALUES lists.
pub(super) struct Values {
    node: Arc<ValuesNode>,
    at: usize,
}

impl Values {
    pub fn new(node: &Arc<ValuesNode>) -> Values {
        Values { node: Arc::clone(node), at: 0 }
    }
}

impl Operator for Values {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let Some(row) = self.node.rows.get(self.at) else { return Ok(Next::Done) };
        self.at += 1;
        work::step(16 * row.len())?;
        for (code, &slot) in row.iter().zip(&self.node.slots) {
            registers[slot as usize] = code.eval(cx, registers)?;
        }
        Ok(Next::Row)
    }

    fn rescan(&mut self, _: bool) {
        self.at = 0;
    }
}
