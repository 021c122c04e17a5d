//! Questions that definitions ask about the rows that are there, in bound form ([`sql_bind::own`]).
//!
//! REQUIRES that the definition holds a lock on the tables. No rights are asked: the definition has asked for its own.

use base::{Error, Oid, Result};
use sql_bind::own::{any_of, bind_own_query, first_of, rows_of, table_info};
use sql_bind::{BindContext, BoundStatement};
use sql_exec::{FirstRow, OutputRow, RowSink};
use sql_ir::{Expr, Query};
use types::Datum;

use super::Cx;

/// Whether a table has a row that a condition over it (rel 0) holds for.
///
/// # Errors
/// Those of binding the condition, and of evaluating it.
pub(super) async fn has_row(
    cx: &mut Cx<'_>,
    table: Oid,
    condition: &mut dyn FnMut(&mut BindContext<'_>) -> Result<Option<Expr>>,
) -> Result<bool> {
    let mut query = |cx: &mut BindContext<'_>| {
        let condition = condition(cx)?;
        Ok(any_of(rows_of(&table_info(&cx.catalog, table)?, condition)))
    };
    Ok(first_row(cx, &[table], &mut query).await?.is_some())
}

/// The first row of a query over these tables.
///
/// # Errors
/// Those of making the query, and of running it.
pub(super) async fn first_row(
    cx: &mut Cx<'_>,
    tables: &[Oid],
    query: &mut dyn FnMut(&mut BindContext<'_>) -> Result<Query>,
) -> Result<Option<Vec<Datum>>> {
    let mut first = FirstRow::default();
    all_rows(cx, tables, &mut |cx| query(cx).map(first_of), &mut first).await?;
    Ok(first.0)
}

/// Hands all rows of a query over these tables to `sink`.
///
/// # Errors
/// Those of making the query, of running it, and of the sink.
pub(super) async fn all_rows(
    cx: &mut Cx<'_>,
    tables: &[Oid],
    query: &mut dyn FnMut(&mut BindContext<'_>) -> Result<Query>,
    sink: &mut dyn RowSink,
) -> Result<()> {
    let mut bind = |cx: &mut BindContext<'_>| query(cx).and_then(|query| bind_own_query(query, tables, cx));
    cx.session.run_bound(&mut bind, sink).await.map(drop)
}

/// Runs a statement that changes rows. Answers how many.
///
/// # Errors
/// Those of making the statement, and of running it.
pub(super) async fn change(
    cx: &mut Cx<'_>,
    bind: &mut dyn FnMut(&mut BindContext<'_>) -> Result<BoundStatement>,
) -> Result<u64> {
    struct NoRows;
    impl RowSink for NoRows {
        fn row(&mut self, _: OutputRow<'_>) -> Result<bool> {
            Err(Error::internal("a change of a definition that returns rows"))
        }
    }
    cx.session.run_bound(bind, &mut NoRows).await
}
