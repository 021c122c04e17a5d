//! ALTER … SET SCHEMA.

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, Privileges, TableLockMode, TypeKind};
use rupg_sql::nodes::{AlterObjectSchemaStmt, Node, ObjectType};
use sql_parse::names::is_temporary;

use super::names::display;
use super::{Cx, rights};

pub(super) async fn set_schema(cx: &mut Cx<'_>, stmt: &AlterObjectSchemaStmt) -> Result<&'static str> {
    let tag = match stmt.objectType {
        ObjectType::OBJECT_TYPE | ObjectType::OBJECT_DOMAIN => return move_type(cx, stmt).await,
        ObjectType::OBJECT_EXTENSION => return super::extension::set_schema(cx, stmt).await,
        ObjectType::OBJECT_TABLE => "ALTER TABLE",
        ObjectType::OBJECT_SEQUENCE => "ALTER SEQUENCE",
        ObjectType::OBJECT_VIEW => "ALTER VIEW",
        ObjectType::OBJECT_MATVIEW => "ALTER MATERIALIZED VIEW",
        _ => return Err(Error::unsupported("SET SCHEMA of this kind of object is not supported")),
    };
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("SET SCHEMA without a name"))?;
    let Some(object) = cx.find_altered(name, stmt.missing_ok)? else {
        let message = format!("relation \"{}\" does not exist", display(name));
        if stmt.missing_ok {
            cx.skip_missing(name);
            return Ok(tag);
        }
        return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
    };
    super::rename::check_kind(&object, stmt.objectType)?;
    let catalog = cx.catalog();
    let schema = stmt.newschema.as_deref().unwrap_or_default();
    let schema = cx.schema_named(&catalog, schema)?.oid;
    // An owned sequence is refused below, wherever it should go.
    if !matches!(&*object, CatalogObject::Sequence(sequence) if sequence.owned_by.is_some()) {
        rights::require_schema(cx, schema, Privileges::CREATE)?;
    }
    if is_temporary(&catalog, schema) || is_temporary(&catalog, object.namespace().1) {
        return Err(Error::unsupported("cannot move objects into or out of temporary schemas"));
    }
    match &*object {
        CatalogObject::Table(table) => {
            cx.lock(table.oid, TableLockMode::AccessExclusive).await?;
            move_to(cx, table.oid, schema).await?;
            let catalog = cx.catalog();
            let indexes = catalog.indexes(table.oid).map(|i| i.oid);
            let owned = catalog.walk().filter_map(|o| catalog.sequence(o.oid()));
            let sequences = owned.filter(|s| s.owned_by.is_some_and(|(t, _)| t == table.oid)).map(|s| s.oid);
            for part in indexes.chain(sequences).collect::<Vec<_>>() {
                move_to(cx, part, schema).await?;
            }
        }
        CatalogObject::Sequence(sequence) if sequence.owned_by.is_some() => {
            let table = sequence.owned_by.and_then(|(table, _)| catalog.table(table)).map_or("", |table| &table.name);
            let detail = format!("Sequence \"{}\" is linked to table \"{table}\".", sequence.name);
            return Err(Error::unsupported("cannot move an owned sequence into another schema").detail(detail));
        }
        CatalogObject::Sequence(sequence) => {
            cx.lock(sequence.oid, TableLockMode::AccessExclusive).await?;
            move_to(cx, sequence.oid, schema).await?;
        }
        other => {
            let message = format!("\"{}\" is not a table", other.name());
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
    }
    Ok(tag)
}

/// ALTER TYPE and ALTER DOMAIN … SET SCHEMA: what uses the type knows it by its number.
async fn move_type(cx: &mut Cx<'_>, stmt: &AlterObjectSchemaStmt) -> Result<&'static str> {
    let Some(Node::List(names)) = &stmt.object else { return Err(Error::internal("SET SCHEMA without a type")) };
    let mut desc = cx.locked_type(&super::types::range(names)).await?;
    let domain = stmt.objectType == ObjectType::OBJECT_DOMAIN;
    if domain && !matches!(desc.kind, TypeKind::Domain(_)) {
        return Err(super::types::not_a_domain(cx, desc.oid));
    }
    let catalog = cx.catalog();
    let name = stmt.newschema.as_deref().unwrap_or_default();
    let schema = cx.schema_named(&catalog, name)?.oid;
    rights::require_schema(cx, schema, Privileges::CREATE)?;
    rights::own_type(cx, &desc)?;
    if is_temporary(&catalog, schema) || is_temporary(&catalog, desc.schema) {
        return Err(Error::unsupported("cannot move objects into or out of temporary schemas"));
    }
    if desc.schema != schema {
        if catalog.type_named(schema, &desc.name).is_some() || catalog.relation(schema, &desc.name).is_some() {
            let message = format!("type \"{}\" already exists in schema \"{name}\"", desc.name);
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        desc.schema = schema;
        cx.put(CatalogObject::Type(desc)).await?;
    }
    Ok(if domain { "ALTER DOMAIN" } else { "ALTER TYPE" })
}

async fn move_to(cx: &mut Cx<'_>, oid: Oid, to: Oid) -> Result<()> {
    let catalog = cx.catalog();
    let Some(object) = catalog.get(oid) else { return Ok(()) };
    if object.namespace().1 == to {
        return Ok(());
    }
    if catalog.relation(to, object.name()).is_some() {
        let schema = catalog.get(to).map(|s| s.name().to_string()).unwrap_or_default();
        return Err(Error::new(
            SqlState::DUPLICATE_TABLE,
            format!("relation \"{}\" already exists in schema \"{schema}\"", object.name()),
        ));
    }
    let mut object = (**object).clone();
    match &mut object {
        CatalogObject::Table(table) => table.schema = to,
        CatalogObject::Index(index) => index.schema = to,
        CatalogObject::Sequence(sequence) => sequence.schema = to,
        _ => return Ok(()),
    }
    cx.put(object).await
}
