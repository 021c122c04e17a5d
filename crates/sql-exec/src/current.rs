//! WHERE CURRENT OF: the row of a table that a cursor is on, as the command sees it.

use std::sync::Arc;

use base::Result;
use engine_api::RowBatch;
use sql_plan::CurrentNode;

use super::{Cx, Next, Operator};

/// At most one row.
pub(super) struct Current {
    node: Arc<CurrentNode>,
    batch: RowBatch,
    done: bool,
}

impl Current {
    pub fn new(node: &Arc<CurrentNode>) -> Current {
        Current { node: Arc::clone(node), batch: RowBatch::new(), done: false }
    }
}

impl Operator for Current {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [types::Datum]) -> Result<Next> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(Next::Done);
        }
        let desc = &self.node.table.info.desc;
        let row = cx.run.eval.cursor_row(&self.node.cursor, desc.oid, &desc.name)?;
        let table = self.node.table.open(cx.run.txn)?.clone();
        self.batch.clear();
        // What the cursor saw may be gone by now.
        if !cx.run.txn.fetch(&table, row, &mut self.batch)? {
            return Ok(Next::Done);
        }
        self.node.reader.read(self.batch.row(0), registers);
        Ok(Next::Row)
    }

    fn rescan(&mut self, _: bool) {
        self.done = false;
    }
}
