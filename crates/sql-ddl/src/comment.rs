//! COMMENT ON relations, their columns and constraints, types and domains, roles, schemas and databases. Comments on other
//! objects, which are built in, are taken and not kept.

use std::sync::Arc;

use base::{Error, Result, SqlState, work};
use engine_api::{CatalogObject, TableKind, TableLockMode, TypeKind};
use rupg_sql::nodes::{CommentStmt, Node, ObjectType, RangeVar};
use sql_ir::system_column;
use sql_parse::privileges;

use super::Cx;
use super::names::{display, strings};
use super::types::range;

pub(super) async fn comment(cx: &mut Cx<'_>, stmt: &CommentStmt) -> Result<&'static str> {
    use ObjectType as T;
    let text = stmt.comment.as_deref().filter(|text| !text.is_empty()).map(|text| {
        let mut copy = String::with_capacity(text.len());
        work::append_text(&mut copy, text);
        ::types::shared(copy)
    });
    match stmt.objtype {
        T::OBJECT_SCHEMA | T::OBJECT_DATABASE => on_namespace(cx, stmt, text).await?,
        T::OBJECT_TABLE | T::OBJECT_VIEW | T::OBJECT_MATVIEW | T::OBJECT_COLUMN => on_table(cx, stmt, text).await?,
        T::OBJECT_INDEX | T::OBJECT_SEQUENCE => on_other(cx, stmt, text).await?,
        T::OBJECT_TABCONSTRAINT => on_constraint(cx, stmt, text).await?,
        T::OBJECT_TYPE | T::OBJECT_DOMAIN => on_type(cx, stmt, text).await?,
        T::OBJECT_DOMCONSTRAINT => on_domain_constraint(cx, stmt, text).await?,
        T::OBJECT_ROLE => on_role(cx, stmt, text).await?,
        T::OBJECT_EXTENSION => on_extension(cx, stmt, text).await?,
        _ => {}
    }
    Ok("COMMENT")
}

/// The comment on the one that is always there is taken and forgotten, as those on all that is built in.
async fn on_extension(cx: &mut Cx<'_>, stmt: &CommentStmt, text: Option<Arc<str>>) -> Result<()> {
    let Some(Node::String(name)) = &stmt.object else { return Ok(()) };
    if sql_catalog::is_always_there(name) {
        return Ok(());
    }
    let mut extension = super::extension::find(cx, name)?.ok_or_else(|| super::extension::missing(name))?;
    extension.comment = text;
    cx.put(CatalogObject::Extension(extension)).await
}

fn range_of(mut names: Vec<String>) -> RangeVar {
    RangeVar {
        relname: names.pop().map(Into::into),
        schemaname: names.pop().map(Into::into),
        location: -1,
        ..Default::default()
    }
}

async fn on_namespace(cx: &mut Cx<'_>, stmt: &CommentStmt, text: Option<Arc<str>>) -> Result<()> {
    let Some(Node::String(name)) = &stmt.object else { return Ok(()) };
    let (catalog, database) = (cx.catalog(), cx.database());
    let object =
        if stmt.objtype == ObjectType::OBJECT_SCHEMA {
            let mut schema = catalog.schema(database, name).cloned().ok_or_else(|| {
                Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
            })?;
            // An empty comment hides the one that `public` has from the start.
            schema.comment = Some(text.unwrap_or_default());
            CatalogObject::Schema(schema)
        } else {
            let mut database = catalog.database(name).cloned().ok_or_else(|| {
                Error::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))
            })?;
            database.comment = text;
            CatalogObject::Database(database)
        };
    cx.put(object).await
}

async fn on_table(cx: &mut Cx<'_>, stmt: &CommentStmt, text: Option<Arc<str>>) -> Result<()> {
    let Some(Node::List(names)) = &stmt.object else { return Ok(()) };
    let mut names = strings(names);
    let column = if stmt.objtype == ObjectType::OBJECT_COLUMN { names.pop() } else { None };
    let range = range_of(names);
    let mut table = match stmt.objtype {
        ObjectType::OBJECT_TABLE => cx.locked_table(&range, TableLockMode::ShareUpdateExclusive).await?,
        _ => cx.locked_relation(&range, TableLockMode::ShareUpdateExclusive).await?,
    };
    let wanted = match stmt.objtype {
        ObjectType::OBJECT_VIEW => Some((TableKind::View, "a view")),
        ObjectType::OBJECT_MATVIEW => Some((TableKind::MaterializedView, "a materialized view")),
        _ => None,
    };
    if let Some((_, what)) = wanted.filter(|(kind, _)| *kind != table.kind) {
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not {what}", table.name)));
    }
    let number = match column {
        None => 0,
        Some(column) => system_column::number_of(&table, &column).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{column}\" of relation \"{}\" does not exist", display(&range)),
            )
        })?,
    };
    match text {
        Some(text) => table.comments.insert(number, text),
        None => table.comments.remove(&number),
    };
    cx.put(CatalogObject::Table(table)).await
}

async fn on_other(cx: &mut Cx<'_>, stmt: &CommentStmt, text: Option<Arc<str>>) -> Result<()> {
    let Some(Node::List(names)) = &stmt.object else { return Ok(()) };
    let range = range_of(strings(names));
    let index = stmt.objtype == ObjectType::OBJECT_INDEX;
    let object = match cx.find_relation(&range)?.map(|o| (*o).clone()) {
        Some(CatalogObject::Index(mut desc)) if index => {
            desc.comment = text;
            CatalogObject::Index(desc)
        }
        Some(CatalogObject::Sequence(mut desc)) if !index => {
            desc.comment = text;
            CatalogObject::Sequence(desc)
        }
        Some(other) => {
            let what = if index { "an index" } else { "a sequence" };
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not {what}", other.name())));
        }
        None => {
            let message = format!("relation \"{}\" does not exist", display(&range));
            return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
        }
    };
    cx.put(object).await
}

async fn on_constraint(cx: &mut Cx<'_>, stmt: &CommentStmt, text: Option<Arc<str>>) -> Result<()> {
    let Some(Node::List(names)) = &stmt.object else { return Ok(()) };
    let mut names = strings(names);
    let name = names.pop().unwrap_or_default();
    let mut table = cx.locked_table(&range_of(names), TableLockMode::ShareUpdateExclusive).await?;
    let Some(constraint) = table.constraints.iter_mut().find(|c| c.name == name) else {
        let message = format!("constraint \"{name}\" for table \"{}\" does not exist", table.name);
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    };
    constraint.comment = text;
    let object = CatalogObject::Table(table);
    if !privileges::owns(&cx.catalog(), cx.session.who(), &object) {
        return Err(privileges::not_owner("relation", object.name()));
    }
    cx.put(object).await
}

/// The name of a type as COMMENT has it.
fn type_names(node: Option<&Node>) -> Option<&[Option<Node>]> {
    match node {
        Some(Node::TypeName(name)) => Some(&name.names),
        Some(Node::List(names)) => Some(names),
        _ => None,
    }
}

async fn on_type(cx: &mut Cx<'_>, stmt: &CommentStmt, text: Option<Arc<str>>) -> Result<()> {
    let Some(names) = type_names(stmt.object.as_ref()) else { return Ok(()) };
    let name = range(names);
    if let Some(Node::TypeName(written)) = &stmt.object
        && cx.find_type(&name)?.is_none()
        && cx.column_type(written).is_ok()
    {
        // A built-in one keeps the comment it has.
        return Ok(());
    }
    let mut desc = cx.locked_type(&name).await?;
    if stmt.objtype == ObjectType::OBJECT_DOMAIN && !matches!(desc.kind, TypeKind::Domain(_)) {
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not a domain", display(&name))));
    }
    super::rights::own_type(cx, &desc)?;
    desc.comment = text;
    cx.put(CatalogObject::Type(desc)).await
}

async fn on_domain_constraint(cx: &mut Cx<'_>, stmt: &CommentStmt, text: Option<Arc<str>>) -> Result<()> {
    let Some(Node::List(parts)) = &stmt.object else { return Ok(()) };
    let (Some(names), Some(Some(Node::String(constraint)))) =
        (type_names(parts.first().and_then(Option::as_ref)), parts.get(1))
    else {
        return Ok(());
    };
    let written = range(names);
    let mut desc = cx.locked_type(&written).await?;
    let (shown, whole) = (cx.session.shown_type(desc.oid, -1), desc.clone());
    let TypeKind::Domain(domain) = &mut desc.kind else {
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not a domain", display(&written))));
    };
    let Some(check) = domain.checks.iter_mut().find(|check| check.name == **constraint) else {
        let message = format!("constraint \"{constraint}\" for domain {shown} does not exist");
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    };
    check.comment = text;
    super::rights::own_type(cx, &whole)?;
    cx.put(CatalogObject::Type(desc)).await
}

async fn on_role(cx: &mut Cx<'_>, stmt: &CommentStmt, text: Option<Arc<str>>) -> Result<()> {
    let Some(Node::String(name)) = &stmt.object else { return Ok(()) };
    let mut role = cx.catalog().role(name).cloned().ok_or_else(|| super::role::unknown_role(name))?;
    if role.superuser && !cx.session.is_superuser() {
        return Err(super::role::denied("must be superuser"));
    }
    if !super::role::may_create_roles(cx) {
        return Err(super::role::denied("must have CREATEROLE privilege"));
    }
    role.comment = text;
    cx.put(CatalogObject::Role(role)).await
}
