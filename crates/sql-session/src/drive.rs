//! Driving executions: what they run with, where their rows go, and the waits between.

use std::sync::Arc;

use base::{Result, work};
use engine_api::Catalog;
use sql_exec::{ExecCx, Execution, Held, MemoryBudget, OutputRow, Progress, RowSink, datum_bytes};
use sql_functions::{self as functions, EvalContext};
use types::{Datum, OutputSettings};

use super::context::StatementContext;
use super::statement::Query;
use super::{Output, ResultColumn, Session};

/// Hands rows to the connection.
struct RowsOut<'a> {
    out: &'a mut dyn Output,
    columns: &'a [ResultColumn],
    settings: &'a OutputSettings,
    eval: &'a StatementContext<'a>,
    /// Some columns are names in the catalog.
    named: bool,
}

impl RowSink for RowsOut<'_> {
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool> {
        let environment = self.eval.environment;
        if !environment.notices.borrow().is_empty() {
            // What an expression of the row had to say comes before it.
            let notices = environment.notices.take();
            let settings = environment.settings.borrow();
            notices.iter().filter(|notice| settings.wants(notice)).for_each(|notice| self.out.notice(notice));
        }
        if self.named {
            let values = with_names(row, self.columns, self.eval, |i| self.out.wants_text(i));
            self.out.row(OutputRow::of(&values), self.columns, self.settings);
            return Ok(self.out.is_full());
        }
        self.out.row(row, self.columns, self.settings);
        Ok(self.out.is_full())
    }
}

/// A row whose values that are shown as names are these names, in the columns that are wanted as text.
fn with_names(
    row: OutputRow<'_>,
    columns: &[ResultColumn],
    eval: &dyn EvalContext,
    as_text: impl Fn(usize) -> bool,
) -> Vec<Datum> {
    let shown = |(i, (value, column)): (usize, (Datum, &ResultColumn))| {
        let text = as_text(i).then(|| functions::name_in_catalog(eval, column.ty.oid, &value)).flatten();
        text.unwrap_or(value)
    };
    row.owned().zip(columns).enumerate().map(shown).collect()
}

/// Rows of texts, for a sink that knows no catalog.
struct Texts<'a> {
    sink: &'a mut dyn RowSink,
    columns: &'a [ResultColumn],
    eval: &'a dyn EvalContext,
}

impl RowSink for Texts<'_> {
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool> {
        self.sink.row(OutputRow::of(&with_names(row, self.columns, self.eval, |_| true)))
    }
}

fn named(columns: &[ResultColumn]) -> bool {
    columns.iter().any(|column| functions::has_names_of_catalog(column.ty.oid))
}

/// Collects rows.
#[derive(Default)]
pub(crate) struct RowList(pub Vec<Vec<Datum>>);

impl RowSink for RowList {
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool> {
        self.0.push(row.owned().collect());
        Ok(false)
    }
}

/// Rows sent between two looks at whether the connection is full.
const ROWS_AT_ONCE: usize = 128;

/// The rows of a change, value after value.
struct Gathered<'a> {
    values: Vec<Datum>,
    held: Held,
    budget: &'a Arc<MemoryBudget>,
}

impl Drop for Gathered<'_> {
    fn drop(&mut self) {
        work::discard(&mut self.values);
    }
}

impl RowSink for Gathered<'_> {
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool> {
        let from = self.values.len();
        self.values.extend(row.owned());
        self.held.charge(self.values[from..].iter().map(datum_bytes).sum(), self.budget)?;
        Ok(false)
    }
}

/// Takes no rows.
pub(crate) struct NoRows;

impl RowSink for NoRows {
    fn row(&mut self, _: OutputRow<'_>) -> Result<bool> {
        Ok(false)
    }
}

impl Session {
    /// Runs `step` with what executions of the open transaction work with. `own` is the transaction's catalog if it has
    /// definitions of its own.
    pub(super) fn step<T>(
        &mut self,
        own: Option<&Arc<Catalog>>,
        step: impl FnOnce(&mut ExecCx<'_>, &StatementContext<'_>) -> Result<T>,
    ) -> Result<T> {
        self.environment.is_at_work();
        let eval = match own {
            Some(catalog) => StatementContext::new(&self.environment, Arc::clone(catalog)),
            None => StatementContext::of_committed(&self.environment),
        };
        let host = &self.environment.host;
        let mut cx = ExecCx {
            txn: &mut **self.txn.as_mut().expect("a running query has a transaction"),
            eval: &eval,
            cancel: self.environment.cancel.flag(),
            now: &|| host.monotonic_nanos(),
            deadline: self.environment.stop.deadline(),
            memory: &self.shared.memory,
            deferrals: Some(&self.environment.deferred),
        };
        work::caught(|| step(&mut cx, &eval))
    }

    /// The transaction's catalog if it has definitions of its own.
    pub(super) fn changed_catalog(&self) -> Option<Arc<Catalog>> {
        self.has_own_ddl().then(|| self.catalog())
    }

    /// Runs an execution, rows to the connection. Answers their number and whether it is done (else `max_rows` were sent).
    pub(super) async fn drive(
        &mut self,
        execution: &mut Execution,
        query: &Query,
        max_rows: u64,
        out: &mut dyn Output,
    ) -> Result<(u64, bool)> {
        if query.plan.fills {
            return self.drive_change(execution, query, out).await;
        }
        let own = self.changed_catalog();
        loop {
            let progress = self.step(own.as_ref(), |cx, eval| {
                let columns = &query.columns;
                let mut sink = RowsOut { out: &mut *out, columns, settings: &eval.output, eval, named: named(columns) };
                execution.run(cx, &mut sink, max_rows)
            })?;
            match progress {
                Progress::Done { rows } => return Ok((rows, true)),
                Progress::MaxRows { rows } => return Ok((rows, false)),
                Progress::SinkFull => self.flush_rows(out).await?,
                Progress::Wait(wait) => self.wait_for_lock(wait).await?,
            }
        }
    }

    /// Runs a change with RETURNING: its rows leave when all of it has succeeded, as PostgreSQL's do.
    async fn drive_change(
        &mut self,
        execution: &mut Execution,
        query: &Query,
        out: &mut dyn Output,
    ) -> Result<(u64, bool)> {
        let mut gathered =
            Gathered { values: Vec::new(), held: Held::default(), budget: &Arc::clone(&self.shared.memory) };
        let changed = self.drive_into(execution, &mut gathered).await?;
        let columns = &query.columns;
        let own = self.changed_catalog();
        for rows in gathered.values.chunks(columns.len().max(1) * ROWS_AT_ONCE) {
            let eval = match &own {
                Some(catalog) => StatementContext::new(&self.environment, Arc::clone(catalog)),
                None => StatementContext::of_committed(&self.environment),
            };
            let mut full = false;
            let mut sink =
                RowsOut { out: &mut *out, columns, settings: &eval.output, eval: &eval, named: named(columns) };
            for row in rows.chunks(columns.len().max(1)) {
                full = sink.row(OutputRow::of(row))?;
            }
            if full {
                self.flush_rows(out).await?;
            }
        }
        Ok((changed, true))
    }

    /// Writes what is queued, behind the gate of what the rows depend on.
    pub(super) async fn flush_rows(&mut self, out: &mut dyn Output) -> Result<()> {
        let gate = self.txn.as_ref().map_or(self.gate, |txn| txn.gate());
        out.gate(gate);
        out.flush().await
    }

    /// Sends rows that were kept.
    pub(super) fn send_kept(
        &mut self,
        rows: &[Vec<Datum>],
        columns: &[ResultColumn],
        out: &mut dyn Output,
    ) -> Result<()> {
        let eval = match self.changed_catalog() {
            Some(catalog) => StatementContext::new(&self.environment, catalog),
            None => StatementContext::of_committed(&self.environment),
        };
        let mut sink = RowsOut { out, columns, settings: &eval.output, eval: &eval, named: named(columns) };
        rows.iter().try_for_each(|row| sink.row(OutputRow::of(row)).map(drop))
    }

    /// Runs an execution on, rows into `sink`, until it is done, `max_rows` (0 = all) are out, or the sink is full.
    /// Never answers [`Progress::Wait`].
    pub(crate) async fn advance(
        &mut self,
        execution: &mut Execution,
        sink: &mut dyn RowSink,
        max_rows: u64,
    ) -> Result<Progress> {
        let own = self.changed_catalog();
        loop {
            match self.step(own.as_ref(), |cx, _| execution.run(cx, sink, max_rows))? {
                Progress::Wait(wait) => self.wait_for_lock(wait).await?,
                progress => return Ok(progress),
            }
        }
    }

    /// As [`Session::advance`] without a bound, of rows that are written as text: names of the catalog are in them.
    pub(crate) async fn advance_texts(
        &mut self,
        execution: &mut Execution,
        columns: &[ResultColumn],
        sink: &mut dyn RowSink,
    ) -> Result<Progress> {
        if !named(columns) {
            return self.advance(execution, sink, 0).await;
        }
        let own = self.changed_catalog();
        loop {
            let step = self
                .step(own.as_ref(), |cx, eval| execution.run(cx, &mut Texts { sink: &mut *sink, columns, eval }, 0));
            match step? {
                Progress::Wait(wait) => self.wait_for_lock(wait).await?,
                progress => return Ok(progress),
            }
        }
    }

    /// Runs an execution to its end, rows into `sink`. Answers the number of rows (returned, or changed).
    pub(crate) async fn drive_into(&mut self, execution: &mut Execution, sink: &mut dyn RowSink) -> Result<u64> {
        loop {
            if let Progress::Done { rows } = self.advance(execution, sink, 0).await? {
                return Ok(rows);
            }
        }
    }
}
