//! COPY FROM … WHERE: which rows are kept.
//!
//! The condition is bound as that of a SELECT from one row whose columns are the values that came, and NULL for those that
//! did not.

use std::fmt::Write as _;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use engine_api::{Step, TableDesc};
use rupg_sql::nodes::Node;
use sql_exec::{ExecCx, Execution, Progress};
use sql_parse as parse;
use sql_parse::names::quote_name;
use types::Datum;

use crate::Session;
use crate::drive::NoRows;
use crate::statement::StatementBody;

/// A condition, ready to be tested.
pub(super) struct Condition {
    execution: Box<Execution>,
}

impl Condition {
    /// Binds the condition over rows of which `columns` come. Errors have their place in `sql`.
    pub fn bind(
        session: &mut Session,
        clause: &Node,
        table: &TableDesc,
        columns: &[usize],
        sql: &str,
    ) -> Result<Condition> {
        let mut text = "SELECT FROM (SELECT ".to_string();
        let mut left_out = Vec::new();
        for column in table.live_columns() {
            let value = match columns.iter().position(|&c| c + 1 == column.number as usize) {
                Some(at) => format!("${}", at + 1),
                None if column.default.is_none() && column.generated.is_none() => "NULL".to_string(),
                None => {
                    left_out.push(&column.name);
                    continue;
                }
            };
            let between = if text.ends_with("SELECT ") { "" } else { ", " };
            let ty = types::format_type(column.type_oid, column.typmod);
            let _ = write!(text, "{between}{value}::{ty} AS {}", quote_name(&column.name));
        }
        let _ = write!(text, ") AS {}", quote_name(&table.name));
        let types: Vec<_> = columns.iter().map(|&c| table.columns[c].type_oid).collect();
        let Some(Node::SelectStmt(mut select)) = parse::parse(&text)?.pop().map(|parsed| parsed.node) else {
            return Err(Error::internal("no SELECT of our own"));
        };
        select.whereClause = Some(clause.clone());
        let statement = session.bind_query(&Node::SelectStmt(select), sql, &types, 0, true).map_err(|mut error| {
            if error.code() == SqlState::UNDEFINED_COLUMN
                && left_out.iter().any(|name| error.fields().message.contains(&format!("\"{name}\"")))
            {
                return Error::unsupported("COPY FROM with WHERE on a column that gets its default is not supported");
            }
            let message = error.fields().message.replace(" in WHERE", " in COPY FROM WHERE conditions");
            error.fields_mut().message = message;
            error
        })?;
        let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
        Ok(Condition { execution: Execution::new(Arc::clone(&query.plan), Vec::new()) })
    }

    /// Takes the values of the next row.
    pub fn begin(&mut self, values: &[Datum]) {
        self.execution.reset(values.iter().cloned());
    }

    /// Whether the row is kept.
    pub fn test(&mut self, cx: &mut ExecCx<'_>) -> Result<Step<bool>> {
        loop {
            match self.execution.run(cx, &mut NoRows, 0)? {
                Progress::Done { rows } => return Ok(Step::Ready(rows > 0)),
                Progress::Wait(wait) => return Ok(Step::Wait(wait)),
                Progress::MaxRows { .. } | Progress::SinkFull => {}
            }
        }
    }
}
