//! CREATE MATERIALIZED VIEW and REFRESH.

use std::collections::BTreeSet;

use base::{Error, LayoutId, Oid, Result, SqlState, work};
use engine_api::{Catalog, CatalogObject, TableDesc, TableKind, TableLockMode, ViewDesc};
use rupg_sql::nodes::{CreateTableAsStmt, RefreshMatViewStmt};
use sql_bind::own::{bind_delete_all, bind_fill};
use sql_ir::system_column;
use sql_parse::names::quote_name;

use super::Arguments;
use super::Cx;
use super::create_table::layout_of;
use super::names::{display, strings};
use super::query::change;
use super::storage;
use super::view;

pub(super) async fn create(cx: &mut Cx<'_>, stmt: &CreateTableAsStmt) -> Result<String> {
    let into = stmt.into.as_deref().ok_or_else(|| Error::internal("CREATE MATERIALIZED VIEW without a name"))?;
    let name = into.rel.as_deref().ok_or_else(|| Error::internal("CREATE MATERIALIZED VIEW without a name"))?;
    let node = stmt.query.as_ref().ok_or_else(|| Error::internal("CREATE MATERIALIZED VIEW without a query"))?;
    let arguments = Arguments::default();
    let bound = |cx: &mut Cx<'_>| match into.skipData {
        true => cx.session.bind_unrun(node, cx.sql, &[], false).map(|bound| bound.columns),
        false => cx.session.query_columns(node, cx.sql, &arguments, false),
    };
    if cx.query_of_new(name, stmt.if_not_exists, bound)?.is_none() {
        return Ok("CREATE MATERIALIZED VIEW".to_string());
    }
    if name.relpersistence == b'u' {
        return Err(Error::unsupported("materialized views cannot be unlogged"));
    }
    // Who may not read gets to know that before anything is said about the schema.
    if !into.skipData {
        cx.session.query_columns(node, cx.sql, &arguments, true)?;
    }
    let schema = cx.schema_of_new(name).await?;
    let relname = name.relname.as_deref().unwrap_or_default();
    if !cx.check_free(schema, relname, stmt.if_not_exists)? {
        return Ok("CREATE MATERIALIZED VIEW".to_string());
    }
    super::require_tablespace(into.tableSpaceName.as_deref())?;
    let text = view::query_text(cx.sql, name, &[]);
    let (bound, temporary) = view::bind(cx, node).await?;
    if temporary {
        let message = "materialized views must not use temporary tables or views";
        return Err(Error::unsupported(message));
    }
    let columns = view::named_columns(&cx.catalog(), &bound, &strings(&into.colNames), true)?;
    let mut desc = TableDesc {
        kind: TableKind::MaterializedView,
        options: storage::given(&into.options, storage::Of::Table)?,
        view: Some(ViewDesc { query: text.into(), populated: false, ..bound.desc }),
        ..TableDesc::new(cx.allocate(), schema, relname, cx.owner(), columns)
    };
    desc.columns.iter().try_for_each(|column| system_column::refuse_name(&desc, &column.name))?;
    cx.refuse_in_system_schema(schema, &desc.name)?;
    let layout = layout_of(&desc, LayoutId(1));
    desc.layouts.push(layout);
    let oid = desc.oid;
    cx.put(CatalogObject::Table(desc)).await?;
    if into.skipData {
        return Ok("CREATE MATERIALIZED VIEW".to_string());
    }
    let rows = fill(cx, oid, false).await?;
    Ok(format!("SELECT {rows}"))
}

/// REFRESH MATERIALIZED VIEW.
pub(super) async fn refresh(cx: &mut Cx<'_>, stmt: &RefreshMatViewStmt) -> Result<&'static str> {
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("REFRESH without a name"))?;
    let view = match cx.find_relation(name)?.as_deref() {
        Some(CatalogObject::Table(view)) if view.kind == TableKind::MaterializedView => view.clone(),
        Some(other) => {
            let what = match other {
                CatalogObject::Table(t) if t.kind == TableKind::Table => "is not a materialized view",
                _ => "is not a table or materialized view",
            };
            let message = format!("\"{}\" {what}", other.name());
            return Err(match other {
                CatalogObject::Table(t) if t.kind == TableKind::Table => Error::unsupported(message),
                _ => Error::new(SqlState::WRONG_OBJECT_TYPE, message),
            });
        }
        None => {
            let message = format!("relation \"{}\" does not exist", display(name));
            return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
        }
    };
    if stmt.concurrent && stmt.skipData {
        let message = "CONCURRENTLY and WITH NO DATA options cannot be used together";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    let mode = if stmt.concurrent { TableLockMode::Exclusive } else { TableLockMode::AccessExclusive };
    cx.lock(view.oid, mode).await?;
    if cx.catalog().table(view.oid).is_none() {
        return Err(Error::new(SqlState::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", view.name)));
    }
    if view.view.as_ref().is_some_and(|view| view.populated) && !stmt.skipData && reads_itself(&cx.catalog(), view.oid)
    {
        // Its rows go before its query runs, which should read them.
        return Err(Error::unsupported("REFRESH of a materialized view that reads itself is not supported"));
    }
    if stmt.concurrent {
        check_concurrently(cx, view.oid)?;
    } else {
        cx.txn().truncate(view.oid)?;
    }
    if !stmt.skipData {
        fill(cx, view.oid, stmt.concurrent).await?;
        return Ok("REFRESH MATERIALIZED VIEW");
    }
    set_populated(cx, view.oid, false).await?;
    Ok("REFRESH MATERIALIZED VIEW")
}

/// Whether the query of a materialized view leads back to it, through views. Of another materialized view it reads the rows, not the query.
fn reads_itself(catalog: &Catalog, oid: Oid) -> bool {
    let mut waiting = vec![oid];
    let mut seen = BTreeSet::new();
    while let Some(next) = waiting.pop() {
        let is_read_through = |table: &&TableDesc| table.oid == oid || table.kind == TableKind::View;
        let Some(view) = catalog.table(next).filter(is_read_through).and_then(|table| table.view.as_ref()) else {
            continue;
        };
        for relation in &view.relations {
            work::beat(1);
            if relation.oid == oid {
                return true;
            }
            if seen.insert(relation.oid) {
                waiting.push(relation.oid);
            }
        }
    }
    false
}

/// What CONCURRENTLY needs.
fn check_concurrently(cx: &mut Cx<'_>, oid: Oid) -> Result<()> {
    let catalog = cx.catalog();
    let Some(desc) = catalog.table(oid) else { return Ok(()) };
    if !desc.view.as_ref().is_some_and(|view| view.populated) {
        let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
        return Err(Error::unsupported(message));
    }
    let usable = |i: &engine_api::IndexDesc| i.unique && !i.invalid && !i.needs_code();
    if !catalog.indexes(oid).any(usable) {
        let schema = quote_name(&super::constraint::schema_of(&catalog, desc));
        let name = quote_name(&desc.name);
        let message = format!("cannot refresh materialized view \"{schema}.{name}\" concurrently");
        let hint = "Create a unique index with no WHERE clause on one or more columns of the materialized view.";
        return Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(hint));
    }
    Ok(())
}

async fn set_populated(cx: &mut Cx<'_>, oid: Oid, populated: bool) -> Result<()> {
    let mut desc = cx.catalog().table(oid).cloned().ok_or_else(|| Error::internal("the view went away"))?;
    if let Some(view) = &mut desc.view {
        view.populated = populated;
    }
    cx.put(CatalogObject::Table(desc)).await
}

/// Fills the empty view with the rows of its query.
///
/// `concurrently`: readers go on meanwhile, and what is there is deleted instead of truncated.
async fn fill(cx: &mut Cx<'_>, oid: Oid, concurrently: bool) -> Result<u64> {
    let owner = cx.catalog().table(oid).map(|view| view.owner).ok_or_else(|| Error::internal("the view went away"))?;
    // As in PostgreSQL the view counts as populated before its query runs, which may read it through other views.
    set_populated(cx, oid, true).await?;
    if concurrently {
        change(cx, &mut |binder| bind_delete_all(oid, binder)).await?;
    }
    // What the query calls has the rights of the view's owner, not of who refreshes it.
    cx.session.begin_restricted(owner);
    let rows = change(cx, &mut |binder| bind_fill(oid, binder)).await;
    cx.session.end_restricted();
    // PostgreSQL builds the indexes when all rows are there.
    let rows = if concurrently { rows } else { rows.map_err(super::rewrite::not_built) }?;
    let catalog = cx.catalog();
    if let Some(view) = catalog.table(oid) {
        for index in catalog.indexes(oid) {
            super::constraint::test_domains(cx, view, index).await?;
        }
    }
    Ok(rows)
}
