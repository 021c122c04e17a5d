//! Names given as text: taking them apart, finding what they mean.

use base::{Error, Oid, Result, SqlState};
use engine_api::Privileges;
use sql_functions::EvalContext;
use sql_ir::system_relation;
use sql_parse::names::{self, split_name};
use sql_parse::privileges::{self};

/// The relation of a schema.
fn relation_in(cx: &dyn EvalContext, schema: Oid, name: &str) -> Option<Oid> {
    let catalog = cx.catalog();
    if let Some(found) = catalog.relation(schema, name) {
        return Some(found.oid());
    }
    let schema = names::schema_name(&catalog, schema)?;
    system_relation::named(schema, name).map(|r| r.oid)
}

/// Refuses to look into a schema that the current role may not use.
pub(super) fn require_usage(cx: &dyn EvalContext, schema: Oid) -> Result<()> {
    let identity = cx.identity();
    if identity.superuser {
        return Ok(());
    }
    let catalog = cx.catalog();
    let who = identity.who();
    catalog.get(schema).map_or(Ok(()), |object| privileges::require(&catalog, who, object, Privileges::USAGE))
}

/// The relation a name means: along the search path unless it names a schema.
///
/// # Errors
/// 42602 for text that is no name; 42501 for a schema that is not the current role's to look into.
pub(super) fn find_relation(cx: &dyn EvalContext, text: &str) -> Result<Option<Oid>> {
    let parts = split_name(text)?;
    let identity = cx.identity();
    let catalog = cx.catalog();
    Ok(match &parts[..] {
        [name] => identity.search_path.iter().find_map(|&s| relation_in(cx, s, name)),
        [schema, name] => match catalog.schema(identity.database_oid, schema) {
            Some(s) => {
                require_usage(cx, s.oid)?;
                relation_in(cx, s.oid, name)
            }
            None => system_relation::named(schema, name).map(|r| r.oid),
        },
        [database, schema, name] if *database == identity.database => {
            match catalog.schema(identity.database_oid, schema) {
                Some(s) => {
                    require_usage(cx, s.oid)?;
                    relation_in(cx, s.oid, name)
                }
                None => None,
            }
        }
        _ => None,
    })
}

/// The error of a name that [`find_relation`] has not found.
pub(super) fn missing_relation(cx: &dyn EvalContext, text: &str) -> Error {
    let (catalog, database) = (cx.catalog(), cx.identity().database_oid);
    let is_system = |schema: &str| ["pg_catalog", "information_schema"].contains(&schema);
    let parts = split_name(text);
    // Messages have the parts as they are, without the quotes that the text needs.
    let shown = parts.as_ref().map_or_else(|_| text.to_string(), |parts| parts.join("."));
    match parts.as_deref() {
        Ok([schema, _]) if catalog.schema(database, schema).is_none() && !is_system(schema) => {
            Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"))
        }
        _ => Error::new(SqlState::UNDEFINED_TABLE, format!("relation \"{shown}\" does not exist")),
    }
}

/// Whether an OID is one of a relation.
pub(super) fn relation_exists(cx: &dyn EvalContext, oid: Oid) -> bool {
    relation_place(cx, oid).is_some()
}

/// Schema and name of a relation.
pub(super) fn relation_place(cx: &dyn EvalContext, oid: Oid) -> Option<(Oid, String)> {
    let catalog = cx.catalog();
    if let Some(found) = catalog.get(oid) {
        let (class, schema) = found.namespace();
        return (class == 3).then(|| (schema, found.name().to_string()));
    }
    let found = system_relation::numbered(oid)?;
    let schema = match found.schema {
        "pg_catalog" => engine_api::oids::SCHEMA_PG_CATALOG,
        _ => engine_api::oids::SCHEMA_INFORMATION_SCHEMA,
    };
    Some((schema, found.name.to_string()))
}

/// Whether a relation is found by its name alone; `None` if there is no such relation.
pub(super) fn is_visible(cx: &dyn EvalContext, oid: Oid) -> Option<bool> {
    let (_, name) = relation_place(cx, oid)?;
    Some(cx.identity().search_path.iter().find_map(|&s| relation_in(cx, s, &name)) == Some(oid))
}

#[cold]
pub(super) fn no_column(name: &str, table: &str) -> Error {
    Error::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" of relation \"{table}\" does not exist"))
}

#[cold]
pub(super) fn no_role(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}
