//! Columns that joins did not need, read of the rows that are left.

use std::sync::Arc;

use base::Result;
use types::Datum;

use super::team::{Copied, Parts};
use super::{Cx, Next, Operator};

/// Passes rows on, with all their columns.
pub(super) struct Late {
    input: Box<dyn Operator>,
}

impl Late {
    pub fn new(input: Box<dyn Operator>) -> Late {
        Late { input }
    }
}

impl Operator for Late {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let next = self.input.next(cx, registers)?;
        if matches!(next, Next::Row) {
            self.input.read_late(registers)?;
        }
        Ok(next)
    }

    fn prepare(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        self.input.prepare(cx, registers)
    }

    fn split(&mut self, cx: &mut Cx<'_, '_>, parts: &mut Option<Arc<Parts>>) -> Result<Copied> {
        let input = self.input.split(cx, parts)?;
        Ok(input.map(|input| Box::new(Late::new(input)) as Box<dyn Operator>))
    }

    fn rescan(&mut self, forget: bool) {
        self.input.rescan(forget);
    }
}
