//! CREATE TABLE AS and SELECT INTO: a table of the columns of a query, filled with its rows.

use base::{Error, LayoutId, Result, SqlState};
use engine_api::{CatalogObject, ColumnDesc, TableDesc};
use rupg_sql::nodes::{CreateTableAsStmt, InsertStmt, IntoClause, Node, ObjectType, RangeVar, SelectStmt};
use sql_bind::collation;
use sql_ir::system_column;
use sql_parse::names::is_temporary;

use super::Cx;
use super::Source;
use super::create_table::{layout_of, on_commit, persistence};
use super::names::strings;
use super::storage;

pub(super) async fn create_table_as(cx: &mut Cx<'_>, stmt: &CreateTableAsStmt) -> Result<String> {
    if stmt.objtype == ObjectType::OBJECT_MATVIEW {
        return super::materialized::create(cx, stmt).await;
    }
    let into = stmt.into.as_deref().ok_or_else(|| Error::internal("CREATE TABLE AS without a table"))?;
    let source = match &stmt.query {
        Some(Node::ExecuteStmt(execute)) => {
            // An existing table is found before the statement is looked for.
            if let Some(name) = into.rel.as_deref()
                && let Ok(Some(schema)) = cx.permanent_schema(name)
                && !cx.check_free(schema, name.relname.as_deref().unwrap_or_default(), stmt.if_not_exists)?
            {
                return Ok("CREATE TABLE AS".to_string());
            }
            cx.session.executed_source(execute, cx.sql)?
        }
        Some(query) => own_source(cx, query.clone()),
        None => return Err(Error::internal("CREATE TABLE AS without a query")),
    };
    create(cx, into, source, stmt.if_not_exists).await
}

/// A query of the statement's own text.
fn own_source(cx: &Cx<'_>, node: Node) -> Source {
    Source { node, text: cx.sql.into(), arguments: cx.session.arguments(), executed: false }
}

/// `SELECT … INTO t`: the clause stands in the leftmost part of set operations.
pub(super) async fn select_into(cx: &mut Cx<'_>, select: &SelectStmt) -> Result<String> {
    let mut select = select.clone();
    let into = take_into(&mut select).ok_or_else(|| Error::internal("SELECT INTO without a table"))?;
    let source = own_source(cx, Node::SelectStmt(Box::new(select)));
    create(cx, &into, source, false).await
}

/// Takes the clause out of a SELECT.
pub fn take_into(select: &mut SelectStmt) -> Option<Box<IntoClause>> {
    match &mut select.larg {
        Some(left) => take_into(left),
        None => select.intoClause.take(),
    }
}

async fn create(cx: &mut Cx<'_>, into: &IntoClause, source: Source, if_not_exists: bool) -> Result<String> {
    let name = into.rel.as_deref().ok_or_else(|| Error::internal("CREATE TABLE AS without a name"))?;
    let Source { node: query, text, arguments, executed } = source;
    let bound = |cx: &mut Cx<'_>| match into.skipData {
        true => cx.session.bind_unrun(&query, &text, &arguments.types, false).map(|bound| bound.columns),
        false => cx.session.query_columns(&query, &text, &arguments, false),
    };
    let Some(columns) = cx.query_of_new(name, if_not_exists, bound)? else {
        return Ok("CREATE TABLE AS".to_string());
    };
    if matches!(cx.permanent_schema(name), Ok(None)) {
        super::temporary::may_create(cx)?;
    }
    // Who may not read gets to know that before anything is said about a permanent schema.
    if !into.skipData {
        cx.session.query_columns(&query, &text, &arguments, true)?;
    }
    let schema = cx.schema_of_new(name).await?;
    let relname = name.relname.as_deref().unwrap_or_default();
    if !cx.check_free(schema, relname, if_not_exists)? {
        return Ok("CREATE TABLE AS".to_string());
    }
    let names = strings(&into.colNames);
    if names.len() > columns.len() {
        return Err(Error::new(SqlState::SYNTAX_ERROR, "too many column names were specified"));
    }
    super::require_tablespace(into.tableSpaceName.as_deref())?;
    let temporary = is_temporary(&cx.catalog(), schema);
    let mut table = TableDesc {
        options: storage::given(&into.options, storage::Of::Table)?,
        persistence: persistence(name.relpersistence, temporary),
        on_commit: on_commit(cx, into.onCommit, temporary)?,
        ..TableDesc::new(cx.allocate(), schema, relname, cx.owner(), Vec::new())
    };
    let catalog = cx.catalog();
    let is_collated = columns.iter().any(|column| collation::of_type(&catalog, column.own.oid) != 0);
    let collations = if is_collated {
        cx.session.bind_unrun(&query, &text, &arguments.types, false)?.collations
    } else {
        Vec::new()
    };
    for (i, column) in columns.iter().enumerate() {
        let name = names.get(i).unwrap_or(&column.name);
        system_column::refuse_name(&table, name)?;
        if table.column(name).is_some() {
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, format!("column \"{name}\" specified more than once")));
        }
        super::refuse_pseudo_type(name, column.own.oid)?;
        let column = ColumnDesc::new(i as i16 + 1, name.clone(), column.own.oid, column.own.typmod);
        table.columns.push(super::view::collated(&catalog, column, collations.get(i).copied().unwrap_or(Some(0)))?);
    }
    cx.refuse_in_system_schema(schema, &table.name)?;
    let layout = layout_of(&table, LayoutId(1));
    table.layouts.push(layout);
    let empty = table.columns.is_empty();
    let schema_name = cx.catalog().get(schema).map(|s| s.name().to_string()).unwrap_or_default();
    cx.put(CatalogObject::Table(table)).await?;
    if into.skipData {
        return Ok(if executed { "SELECT 0" } else { "CREATE TABLE AS" }.to_string());
    }
    if empty {
        return Err(Error::unsupported("CREATE TABLE AS of a query without columns is not supported"));
    }
    let target = RangeVar {
        schemaname: Some(schema_name.into()),
        relname: Some(relname.into()),
        inh: true,
        relpersistence: b'p',
        location: -1,
        ..Default::default()
    };
    let insert = InsertStmt { relation: Some(Box::new(target)), selectStmt: Some(query), ..Default::default() };
    let rows = cx.session.run_internal(&Node::InsertStmt(Box::new(insert)), &text, arguments).await?;
    Ok(format!("SELECT {rows}"))
}
