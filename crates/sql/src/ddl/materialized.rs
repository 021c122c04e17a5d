//! CREATE MATERIALIZED VIEW and REFRESH.

use base::{Error, LayoutId, Oid, Result, SqlState};
use engine_api::{CatalogObject, Persistence, TableDesc, TableKind, TableLockMode, ViewDesc};
use rupg_sql::nodes::{CreateTableAsStmt, RefreshMatViewStmt};

use super::Cx;
use super::create_table::{layout_of, storage_options};
use super::names::{display, strings};
use super::view;

pub(super) async fn create(cx: &mut Cx<'_>, stmt: &CreateTableAsStmt) -> Result<String> {
    let into = stmt.into.as_deref().ok_or_else(|| Error::internal("CREATE MATERIALIZED VIEW without a name"))?;
    let name = into.rel.as_deref().ok_or_else(|| Error::internal("CREATE MATERIALIZED VIEW without a name"))?;
    let node = stmt.query.as_ref().ok_or_else(|| Error::internal("CREATE MATERIALIZED VIEW without a query"))?;
    let schema = cx.creation_schema(name).await?;
    let relname = name.relname.as_deref().unwrap_or_default();
    if !cx.check_free(schema, relname, stmt.if_not_exists)? {
        return Ok("CREATE MATERIALIZED VIEW".to_string());
    }
    let text = view::query_text(cx.sql, name, &[]);
    let (bound, temporary) = view::bind(cx, node).await?;
    if temporary {
        let message = "materialized views must not use temporary tables or views";
        return Err(Error::unsupported(message));
    }
    let columns = view::named_columns(&bound, &strings(&into.colNames), "too many column names were specified")?;
    let mut desc = TableDesc {
        oid: cx.allocate(),
        schema,
        name: relname.to_string(),
        owner: cx.owner(),
        kind: TableKind::MaterializedView,
        columns,
        layouts: Vec::new(),
        constraints: Vec::new(),
        options: storage_options(&into.options),
        comments: Default::default(),
        storage: 1,
        view: Some(ViewDesc { query: text, populated: false, ..bound.desc }),
        persistence: Persistence::Permanent,
        on_commit: Default::default(),
    };
    desc.layouts.push(layout_of(&desc, LayoutId(1)));
    let oid = desc.oid;
    cx.put(CatalogObject::Table(desc)).await?;
    if into.skipData {
        return Ok("CREATE MATERIALIZED VIEW".to_string());
    }
    let rows = fill(cx, oid).await?;
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
        let message = "REFRESH options CONCURRENTLY and WITH NO DATA cannot be used together";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    if stmt.concurrent {
        return Err(Error::unsupported("REFRESH MATERIALIZED VIEW CONCURRENTLY is not supported"));
    }
    cx.lock(view.oid, TableLockMode::AccessExclusive).await?;
    if cx.catalog().table(view.oid).is_none() {
        return Err(Error::new(SqlState::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", view.name)));
    }
    cx.txn().truncate(view.oid)?;
    if !stmt.skipData {
        fill(cx, view.oid).await?;
        return Ok("REFRESH MATERIALIZED VIEW");
    }
    set_populated(cx, view.oid, false).await?;
    Ok("REFRESH MATERIALIZED VIEW")
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
/// While it is filled it stands in the catalog as a table, and its query as a view that ends with the statement: so the rows
/// come from the query as it was stored, whatever its names mean today.
async fn fill(cx: &mut Cx<'_>, oid: Oid) -> Result<u64> {
    let mut desc = cx.catalog().table(oid).cloned().ok_or_else(|| Error::internal("the view went away"))?;
    let whole = desc.clone();
    let source = TableDesc {
        oid: cx.allocate(),
        name: format!("{} (query)", whole.name),
        kind: TableKind::View,
        comments: Default::default(),
        ..whole.clone()
    };
    let (source_oid, schema) = (source.oid, super::constraint::schema_of(&cx.catalog(), &whole));
    cx.put(CatalogObject::Table(source.clone())).await?;
    desc.kind = TableKind::Table;
    cx.put(CatalogObject::Table(desc)).await?;
    let quoted = |name: &str| format!("{}.{}", super::quote_name(&schema), super::quote_name(name));
    let insert = format!("INSERT INTO {} SELECT * FROM {}", quoted(&whole.name), quoted(&source.name));
    let mut parsed = crate::parse::parse(&insert)?;
    let node = parsed.pop().ok_or_else(|| Error::internal("no INSERT of our own"))?.node;
    let rows = cx.session.run_internal(&node, &insert).await?;
    cx.drop_one(source_oid)?;
    let mut desc = cx.catalog().table(oid).cloned().ok_or_else(|| Error::internal("the view went away"))?;
    desc.kind = TableKind::MaterializedView;
    cx.put(CatalogObject::Table(desc)).await?;
    set_populated(cx, oid, true).await?;
    Ok(rows)
}
