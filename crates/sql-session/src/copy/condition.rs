//! COPY FROM … WHERE: which rows are kept.
//!
//! The condition is bound as that of a query of one row, which has the values that came and the defaults of the other columns
//! ([`sql_bind::own::bind_copy_condition`]).

use base::{Oid, Result};
use engine_api::Step;
use rupg_sql::nodes::Node;
use sql_bind::own::bind_copy_condition;
use sql_exec::{ExecCx, Execution, FirstRow, Progress};
use types::Datum;

use crate::Session;

/// A condition, ready to be tested.
pub(super) struct Condition {
    execution: Box<Execution>,
    row: FirstRow,
}

impl Condition {
    /// Binds the condition over rows of which `columns` come. Errors have their place in `sql`.
    pub async fn bind(
        session: &mut Session,
        clause: &Node,
        table: Oid,
        columns: &[usize],
        sql: &str,
    ) -> Result<Condition> {
        let rows = session.begin_own(&mut |cx| bind_copy_condition(clause, sql, table, columns, cx)).await?;
        Ok(Condition { execution: Execution::new(rows.plan, Vec::new()), row: FirstRow::default() })
    }

    /// Takes the values of the next row.
    pub fn begin(&mut self, values: &[Datum]) {
        self.execution.reset(values.iter().cloned());
    }

    /// The values of the stored columns if the row is kept.
    pub fn test(&mut self, cx: &mut ExecCx<'_>) -> Result<Step<Option<Vec<Datum>>>> {
        loop {
            match self.execution.run(cx, &mut self.row, 0)? {
                Progress::Done { .. } => return Ok(Step::Ready(self.row.0.take())),
                Progress::Wait(wait) => return Ok(Step::Wait(wait)),
                Progress::MaxRows { .. } | Progress::SinkFull => {}
            }
        }
    }
}
