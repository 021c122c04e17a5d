//! Statements without a text, in bound form: the queries and changes of definitions, COPY and foreign keys.
//!
//! Responsible for: a table as the relation of such a statement, and the statement as it can be planned.
//! Not responsible for: the conditions and values in it, which are stored expressions (`dml`, `domain`) or those of keys
//! (`key_types`); who runs it.
//! Invariants: nothing is looked up by a name. A column is of the type that its values are held as. No rights are asked, except
//! those of COPY, and for what the query of a view reads.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use engine_api::{Catalog, TableDesc, TableLockMode};
use rupg_sql::nodes::Node;
use sql_ir::{
    Column, ColumnSource, Delete, Expr, From, Insert, InsertSource, Query, Rel, RelColumn, RelKind, Statement,
    SubqueryKind, TableInfo, Target, ThroughViews, Ty,
};
use types::{Datum, oid};

use super::dml::value_type;
use super::scope::{ClauseKind, Scope};
use super::{BindContext, Binder, BoundStatement, ResultColumn};

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
    let bound = super::completed(Statement::Select(Box::new(query)), (locks, None), Vec::new(), false, cx);
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
    Ok(super::completed(Statement::Delete(Box::new(delete)), (locks, None), Vec::new(), false, cx))
}

/// A statement that puts the rows of a materialized view's query into the view. What the query reads its owner must be allowed
/// to.
///
/// # Errors
/// Those of binding the query; the statement may be refused.
pub fn bind_fill(view: Oid, cx: &mut BindContext<'_>) -> Result<BoundStatement> {
    let info = table_info(&cx.catalog, view)?;
    let desc = Arc::new(info.desc.clone());
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
    let bound = super::completed(Statement::Insert(Box::new(insert)), (locks, refused), Vec::new(), true, cx);
    cx.spared.clear();
    Ok(bound)
}

/// The rows of a table for COPY TO: these columns (attribute number - 1).
///
/// # Errors
/// XX000 if there is no such table; the statement is refused to those who may not read the columns.
pub fn bind_copied(table: Oid, columns: &[usize], cx: &mut BindContext<'_>) -> Result<BoundStatement> {
    let info = table_info(&cx.catalog, table)?;
    let desc = &info.desc;
    let mut query = rows_of(&info, None);
    let target = |&at: &usize| Target { expr: column(desc, at, 0), name: desc.columns[at].name.clone(), junk: false };
    query.targets = columns.iter().map(target).collect();
    let result = |&at: &usize| {
        let column = &desc.columns[at];
        let own = Ty { oid: column.type_oid, typmod: column.typmod };
        ResultColumn { table, column: column.number, ..ResultColumn::new(column.name.clone(), own) }
    };
    let result = columns.iter().map(result).collect();
    let locks = vec![(table, TableLockMode::AccessShare)];
    let statement = Statement::Select(Box::new(query));
    Ok(super::completed(statement, (locks, None), result, true, cx))
}

/// The INSERT that COPY FROM puts its rows into a table with: parameter i is the value of the ith of these columns (attribute
/// number - 1), as one of what is under its domain. The statement has named the columns `named`.
///
/// # Errors
/// Those of binding defaults and constraints; the statement is refused to those who may not insert into the named columns.
pub fn bind_copy(table: Oid, columns: &[usize], named: &[usize], cx: &mut BindContext<'_>) -> Result<BoundStatement> {
    let info = table_info(&cx.catalog, table)?;
    let desc = &info.desc;
    cx.param_types = columns.iter().map(|&at| value_type(&desc.columns[at]).oid).collect();
    cx.copies = true;
    let mut binder = Binder::new(cx, "");
    let mut values = Vec::with_capacity(columns.len());
    for (number, &at) in columns.iter().enumerate() {
        values.push(binder.copied_value(Expr::Param(number, Ty::of(value_type(&desc.columns[at]).oid)), desc, at)?);
    }
    let mut sources = Vec::with_capacity(desc.columns.len());
    for (at, column) in desc.columns.iter().enumerate() {
        sources.push(match columns.iter().position(|&given| given == at) {
            Some(number) => ColumnSource::Source(number),
            None if column.dropped => ColumnSource::Default(Expr::Const(Datum::Null, value_type(&desc.columns[at]))),
            None => ColumnSource::Default(binder.column_default(column)?),
        });
    }
    // The value of a domain is tested before the values of later columns are computed. Generated columns are tested last. A column
    // that is not named and has no default is NULL, which PostgreSQL does not test.
    let (later, at_once): (Vec<usize>, Vec<usize>) =
        (0..desc.columns.len()).partition(|&at| desc.columns[at].generated.is_some());
    let is_null = |&at: &usize| {
        let column = &desc.columns[at];
        !named.contains(&at)
            && column.default.is_none()
            && super::domain::default_of(column.type_oid, binder.cx).is_none()
    };
    let untested: Vec<usize> = later.iter().copied().chain(at_once.iter().copied().filter(is_null)).collect();
    let insert = Insert {
        ctes: Vec::new(),
        source: InsertSource::Values(vec![values]),
        columns: sources,
        tests: super::domain::column_tests(desc, &untested, binder.cx)?,
        named: named.to_vec(),
        on_conflict: None,
        returning: Vec::new(),
        rels: vec![relation(&info)],
        checks: binder.checks(desc, &at_once, None)?,
        view_checks: Vec::new(),
        generated: super::dml::generated(desc, binder.cx)?,
        through: ThroughViews::default(),
        table: Arc::clone(&info),
    };
    let locks = vec![(table, TableLockMode::RowExclusive)];
    Ok(super::completed(Statement::Insert(Box::new(insert)), (locks, None), Vec::new(), true, cx))
}

/// The condition of COPY FROM, as a query that has a row if it holds: the values of [`stored_columns`]. Parameter i is the value of
/// the ith of these columns (attribute number - 1), as one of what is under its domain; the others have their defaults.
///
/// # Errors
/// Those of binding the condition; 42P10 if it speaks of a generated column.
pub fn bind_copy_condition(
    clause: &Node,
    sql: &str,
    table: Oid,
    columns: &[usize],
    cx: &mut BindContext<'_>,
) -> Result<BoundStatement> {
    let info = table_info(&cx.catalog, table)?;
    let desc = &info.desc;
    let (mut row, mut named, mut generated) = (Query::default(), Vec::new(), Vec::new());
    let mut binder = Binder::new(cx, sql);
    binder.params_forbidden = true;
    for (at, column) in desc.columns.iter().enumerate().filter(|(_, column)| !column.dropped) {
        let own = Ty { oid: column.type_oid, typmod: column.typmod };
        let value = match columns.iter().position(|&given| given == at) {
            Some(number) => {
                super::domain::made(Expr::Param(number, value_type(&desc.columns[at])), own, true, binder.cx)?
            }
            None if column.generated.is_some() => {
                generated.push(named.len());
                Expr::Const(Datum::Null, own)
            }
            None => binder.column_default(column)?,
        };
        row.targets.push(Target { expr: value, name: column.name.clone(), junk: false });
        named.push(RelColumn { name: column.name.clone(), ty: own });
    }
    let mut query = super::select::wrap(row, named);
    query.rels[0].alias.clone_from(&desc.name);
    let condition = binder.copy_condition(clause, &query.rels[0], table)?;
    let (mut read, mut reads_all) = (Vec::new(), false);
    super::visit::walk(&condition, 0, &mut |expr, _| match expr {
        Expr::Column(column) => read.push(column.column),
        Expr::WholeRow { .. } => reads_all = true,
        _ => {}
    });
    let is_read = |at: &usize| reads_all || read.contains(at);
    if let Some(&at) = generated.iter().find(|at| is_read(at)) {
        let message = "generated columns are not supported in COPY FROM WHERE conditions";
        return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message)
            .detail(format!("Column \"{}\" is a generated column.", query.rels[0].columns[at].name)));
    }
    let stored = (0..query.rels[0].columns.len()).filter(|at| !generated.contains(at));
    let value = |column| Expr::Column(Column { level: 0, rel: 0, column, ty: query.rels[0].columns[column].ty });
    let values: Vec<_> = stored.map(value).collect();
    query = giving(query, values);
    query.filter = Some(condition);
    let (locks, refused) = (binder.tables, binder.refused);
    cx.param_types = columns.iter().map(|&at| value_type(&desc.columns[at]).oid).collect();
    Ok(super::completed(Statement::Select(Box::new(query)), (locks, refused), Vec::new(), false, cx))
}

/// The columns (attribute number - 1) of a table whose values are given, and not generated.
pub fn stored_columns(table: &TableDesc) -> Vec<usize> {
    let stored = table.live_columns().filter(|column| column.generated.is_none());
    stored.map(|column| column.number as usize - 1).collect()
}

impl<'a> Binder<'a, '_> {
    /// WHERE of COPY FROM over a row, which goes by the name of its table.
    fn copy_condition(&mut self, clause: &'a Node, row: &Rel, table: Oid) -> Result<Expr> {
        let mut scope = Scope::new(None);
        scope.items.push(super::from::target_item(0, row, Some(table)));
        scope.rels.push(row.clone());
        scope.real_names.push(Some(row.alias.clone()));
        self.scopes.push(scope);
        let found = self.at_place(ClauseKind::CopyWhere, |b| b.expr(clause))?;
        self.coerce_to_boolean(found, "WHERE")
    }
}
