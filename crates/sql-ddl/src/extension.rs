//! CREATE, ALTER and DROP EXTENSION.
//!
//! Responsible for: which extension of the program ([`extensions`]) a database has, and in what schema.
//! Not responsible for: what depends on its functions ([`super::doomed`]).
//! Invariant: plpgsql is in every database, as PostgreSQL has it from the start, and cannot be dropped: it is no object of the catalog.

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, ExtensionDesc, Privileges, TableLockMode};
use rupg_sql::nodes::{AlterExtensionStmt, AlterObjectSchemaStmt, CreateExtensionStmt, Node};
use sql_catalog as system;
use sql_functions::extensions;
use sql_parse::names::is_temporary;
use sql_parse::privileges;

use super::{Cx, rights};

/// A word that an option of the statement has.
fn option<'a>(options: &'a [Option<Node>], wanted: &str) -> Option<&'a str> {
    let of = |node: &'a Node| match node {
        Node::DefElem(option) if option.defname.as_deref() == Some(wanted) => match &option.arg {
            Some(Node::String(value)) => Some(&**value),
            _ => None,
        },
        _ => None,
    };
    options.iter().flatten().find_map(of)
}

pub(super) fn missing(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_OBJECT, format!("extension \"{name}\" does not exist"))
}

fn bad_version(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

pub(super) async fn create(cx: &mut Cx<'_>, stmt: &CreateExtensionStmt) -> Result<&'static str> {
    const TAG: &str = "CREATE EXTENSION";
    let name = stmt.extname.as_deref().unwrap_or_default();
    let database = cx.database();
    if system::is_always_there(name) || cx.catalog().extension(database, name).is_some() {
        let message = format!("extension \"{name}\" already exists");
        if !stmt.if_not_exists {
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        cx.notice(SqlState::DUPLICATE_OBJECT, format!("{message}, skipping"));
        return Ok(TAG);
    }
    let Some(extension) = extensions::named(name) else {
        return Err(Error::unsupported(format!("extension \"{name}\" is not available"))
            .hint("The extension must first be installed on the system where PostgreSQL is running."));
    };
    if let Some(version) = option(&stmt.options, "new_version").filter(|version| *version != extension.version) {
        return Err(bad_version(format!(
            "extension \"{name}\" has no installation script nor update path for version \"{version}\""
        )));
    }
    let schema = match option(&stmt.options, "schema") {
        Some(schema) => {
            let catalog = cx.catalog();
            cx.schema_named(&catalog, schema)?.oid
        }
        None => creation_schema(cx)?,
    };
    // Both are trusted: whoever may make schemas may make them, and owns them.
    if rights::require_database(cx, Privileges::CREATE).is_err() {
        let message = format!("permission denied to create extension \"{name}\"");
        return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
            .hint("Must have CREATE privilege on current database to create this extension."));
    }
    cx.keep_schema(schema).await?;
    let made = ExtensionDesc {
        oid: cx.allocate(),
        database,
        name: name.to_string(),
        schema,
        owner: cx.owner(),
        version: extension.version.to_string(),
        comment: Some(extension.comment.into()),
    };
    cx.put(CatalogObject::Extension(made)).await?;
    Ok(TAG)
}

/// The first schema of the search path: whether the role may make anything there is not asked.
fn creation_schema(cx: &mut Cx<'_>) -> Result<Oid> {
    let catalog = cx.catalog();
    let path = cx.session.search_path(&catalog);
    let mut own = path
        .into_iter()
        .filter(|schema| *schema != engine_api::oids::SCHEMA_PG_CATALOG && !is_temporary(&catalog, *schema));
    own.next().ok_or_else(|| Error::new(SqlState::INVALID_SCHEMA_NAME, "no schema has been selected to create in"))
}

/// The extension of a name, to be changed: locked, and its owner's.
async fn own(cx: &mut Cx<'_>, name: &str) -> Result<ExtensionDesc> {
    let database = cx.database();
    if system::is_always_there(name) {
        return Err(Error::unsupported(format!("extension \"{name}\" cannot be altered")));
    }
    let find = |cx: &mut Cx<'_>| cx.catalog().extension(database, name).cloned().ok_or_else(|| missing(name));
    let found = find(cx)?;
    privileges::require_owner(&cx.catalog(), cx.session.who(), &CatalogObject::Extension(found.clone()))?;
    cx.lock(found.oid, TableLockMode::AccessExclusive).await?;
    find(cx)
}

/// ALTER EXTENSION … UPDATE: there is one version of each.
pub(super) async fn alter(cx: &mut Cx<'_>, stmt: &AlterExtensionStmt) -> Result<&'static str> {
    let name = stmt.extname.as_deref().unwrap_or_default();
    let extension = own(cx, name).await?;
    let known = extensions::named(name).map_or(&*extension.version, |extension| extension.version);
    let wanted = option(&stmt.options, "new_version").unwrap_or(known);
    if wanted == extension.version {
        cx.notice(
            SqlState::SUCCESSFUL_COMPLETION,
            format!("version \"{wanted}\" of extension \"{name}\" is already installed"),
        );
        return Ok("ALTER EXTENSION");
    }
    let from = &extension.version;
    Err(bad_version(format!("extension \"{name}\" has no update path from version \"{from}\" to version \"{wanted}\"")))
}

/// ALTER EXTENSION … SET SCHEMA
pub(super) async fn set_schema(cx: &mut Cx<'_>, stmt: &AlterObjectSchemaStmt) -> Result<&'static str> {
    let Some(Node::String(name)) = &stmt.object else { return Err(Error::internal("SET SCHEMA without a name")) };
    let catalog = cx.catalog();
    let schema = cx.schema_named(&catalog, stmt.newschema.as_deref().unwrap_or_default())?.oid;
    if !system::is_always_there(name) && catalog.extension(cx.database(), name).is_none() {
        return Err(missing(name));
    }
    rights::require_schema(cx, schema, Privileges::CREATE)?;
    let mut extension = own(cx, name).await?;
    if is_temporary(&cx.catalog(), schema) {
        return Err(Error::unsupported("cannot move objects into or out of temporary schemas"));
    }
    cx.keep_schema(schema).await?;
    extension.schema = schema;
    cx.put(CatalogObject::Extension(extension)).await?;
    Ok("ALTER EXTENSION")
}

/// The extension that DROP or COMMENT names, if there is one.
///
/// # Errors
/// It is always there, or another's.
pub(super) fn find(cx: &mut Cx<'_>, name: &str) -> Result<Option<ExtensionDesc>> {
    if system::is_always_there(name) {
        return Err(Error::unsupported(format!("extension \"{name}\" is always there and cannot be dropped")));
    }
    let found = cx.catalog().extension(cx.database(), name).cloned();
    if let Some(found) = &found {
        privileges::require_owner(&cx.catalog(), cx.session.who(), &CatalogObject::Extension(found.clone()))?;
    }
    Ok(found)
}
