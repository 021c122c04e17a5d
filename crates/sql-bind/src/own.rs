//! Statements that nobody wrote, in bound form: what definitions and foreign keys ask of tables, and do to them.
//!
//! Responsible for: a table as the relation of such a statement, and the statement as it can be planned.
//! Not responsible for: the conditions and values in it, which are stored expressions (`dml`, `domain`) or those of keys
//! (`key_types`); who runs it.
//! Invariants: nothing is looked up by a name. A column is of the type that its values are held as. No rights are asked, except
//! for what the query of a view reads.

use std::sync::Arc;

use base::{Error, Oid, Result};
use engine_api::{Catalog, TableDesc, TableLockMode};
use sql_ir::{
    Column, ColumnSource, Delete, Expr, From, Insert, InsertSource, Query, Rel, RelColumn, RelKind, Statement,
    SubqueryKind, TableInfo, Target, ThroughViews, Ty,
};
use types::{Datum, oid};

use super::{BindContext, Binder, BoundStatement};

/// A table with its indexes, as a plan has it.
///
/// # Errors
/// XX000 if there is no such table.
pub fn table_info(catalog: &Catalog, table: Oid) -> Result<Arc<TableInfo>> {
    let desc = catalog.table(table).cloned().ok_or_else(|| Error::internal(format!("no table {table}")))?;
    let indexes = catalog.indexes(table).filter(|index| !index.invalid).cloned().collect();
    Ok(Arc::new(TableInfo { desc, indexes, codes: Vec::new() }))
}

/// The type that the values of a column (attribute number - 1) are held as.
pub fn held(table: &TableDesc, column: usize) -> Ty {
    let column = &table.columns[column];
    let (oid, typmod) = types::user::plain_type(column.type_oid, column.typmod);
    Ty { oid, typmod }
}

/// A column (attribute number - 1) of the one table of a query `level` levels up.
pub fn column(table: &TableDesc, column: usize, level: usize) -> Expr {
    Expr::Column(Column { level, rel: 0, column, ty: held(table, column) })
}

fn relation(table: &Arc<TableInfo>) -> Rel {
    let desc = &table.desc;
    let columns = desc.columns.iter().enumerate();
    let columns = columns.map(|(at, column)| RelColumn { name: column.name.clone(), ty: held(desc, at) });
    Rel {
        alias: desc.name.clone(),
        aliased: false,
        columns: columns.collect(),
        kind: RelKind::Table(Arc::clone(table)),
    }
}

/// The rows of a table that a condition over it (rel 0) holds for; no targets.
pub fn rows_of(table: &Arc<TableInfo>, condition: Option<Expr>) -> Query {
    Query { rels: vec![relation(table)], from: vec![From::Rel(0)], filter: condition, ..Query::default() }
}

/// A query that gives these values of its rows.
pub fn giving(mut query: Query, values: impl IntoIterator<Item = Expr>) -> Query {
    let target = |expr| Target { expr, name: "?column?".into(), junk: false };
    query.targets = values.into_iter().map(target).collect();
    query
}

/// A query that tells, by having a row, whether another one has any.
pub fn any_of(query: Query) -> Query {
    let one = Expr::Const(Datum::Int4(1), Ty::of(oid::INT4));
    first_of(giving(query, [one]))
}

/// A query that gives the first row of another one.
pub fn first_of(mut query: Query) -> Query {
    query.limit = Some(Expr::Const(Datum::Int8(1), Ty::of(oid::INT8)));
    query
}

/// Whether a query that reaches out to the one around it has no row.
pub fn exists_no(query: Query) -> Expr {
    let ty = Ty::of(oid::BOOL);
    Expr::Not(Box::new(Expr::Subquery { kind: SubqueryKind::Exists, query: Box::new(any_of(query)), ty }))
}

/// A query as it can be planned. `tables` are those that it reads.
///
/// # Errors
/// What its constants cannot be computed by.
pub fn bind_own_query(query: Query, tables: &[Oid], cx: &mut BindContext<'_>) -> Result<BoundStatement> {
    let locks = tables.iter().map(|table| (*table, TableLockMode::AccessShare)).collect();
    let bound = super::completed(Statement::Select(Box::new(query)), (locks, None), Vec::new(), None, cx);
    bound.refused.clone().map_or(Ok(bound), Err)
}

/// A statement that deletes all rows of a table.
///
/// # Errors
/// XX000 if there is no such table.
pub fn bind_delete_all(table: Oid, cx: &mut BindContext<'_>) -> Result<BoundStatement> {
    let info = table_info(&cx.catalog, table)?;
    let (query, through) = (rows_of(&info, None), ThroughViews::default());
    let delete = Delete { table: info, query, returning: Vec::new(), through };
    let locks = vec![(table, TableLockMode::RowExclusive)];
    Ok(super::completed(Statement::Delete(Box::new(delete)), (locks, None), Vec::new(), None, cx))
}

/// A statement that puts the rows of a materialized view's query into the view. What the query reads its owner must be allowed
/// to.
///
/// # Errors
/// Those of binding the query; the statement may be refused.
pub fn bind_fill(view: Oid, cx: &mut BindContext<'_>) -> Result<BoundStatement> {
    let mut info = TableInfo::clone(&*table_info(&cx.catalog, view)?);
    let desc = Arc::new(info.desc.clone());
    // The statement is what gives it rows of its own.
    info.desc.view.iter_mut().for_each(|view| view.populated = true);
    let info = Arc::new(info);
    let mut binder = Binder::new(cx, "");
    let query = binder.view_query(&desc)?;
    let (mut locks, refused) = (binder.tables, binder.refused);
    locks.push((view, TableLockMode::RowExclusive));
    let columns = 0..desc.columns.len();
    let insert = Insert {
        ctes: Vec::new(),
        source: InsertSource::Query(Box::new(query)),
        columns: columns.clone().map(ColumnSource::Source).collect(),
        tests: Vec::new(),
        named: columns.collect(),
        on_conflict: None,
        returning: Vec::new(),
        rels: vec![relation(&info)],
        checks: Vec::new(),
        view_checks: Vec::new(),
        generated: Vec::new(),
        through: ThroughViews::default(),
        table: info,
    };
    cx.spared = vec![view];
    let ask = Some(super::permissions::denied as super::Denied);
    let bound = super::completed(Statement::Insert(Box::new(insert)), (locks, refused), Vec::new(), ask, cx);
    cx.spared.clear();
    Ok(bound)
}
