//! ALTER … SET SCHEMA.

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, TableLockMode};
use rupg_sql::nodes::{AlterObjectSchemaStmt, ObjectType};

use super::Cx;
use super::names::display;

pub(super) async fn set_schema(cx: &mut Cx<'_>, stmt: &AlterObjectSchemaStmt) -> Result<&'static str> {
    let tag = match stmt.objectType {
        ObjectType::OBJECT_TABLE => "ALTER TABLE",
        ObjectType::OBJECT_SEQUENCE => "ALTER SEQUENCE",
        ObjectType::OBJECT_VIEW => "ALTER VIEW",
        ObjectType::OBJECT_MATVIEW => "ALTER MATERIALIZED VIEW",
        _ => return Err(Error::unsupported("SET SCHEMA of this kind of object is not supported")),
    };
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("SET SCHEMA without a name"))?;
    let Some(object) = cx.find_relation(name)? else {
        let message = format!("relation \"{}\" does not exist", display(name));
        if stmt.missing_ok {
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
            return Ok(tag);
        }
        return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
    };
    super::rename::check_kind(&object, stmt.objectType)?;
    let catalog = cx.catalog();
    let schema = stmt.newschema.as_deref().unwrap_or_default();
    let schema = cx.schema_named(&catalog, schema)?.oid;
    if super::temporary::is_temporary(&catalog, schema)
        || super::temporary::is_temporary(&catalog, object.namespace().1)
    {
        return Err(Error::unsupported("cannot move objects into or out of temporary schemas"));
    }
    match &*object {
        CatalogObject::Table(table) => {
            cx.lock(table.oid, TableLockMode::AccessExclusive).await?;
            move_to(cx, table.oid, schema).await?;
            let catalog = cx.catalog();
            let indexes = catalog.indexes(table.oid).map(|i| i.oid);
            let owned = catalog.objects().filter_map(|o| catalog.sequence(o.oid()));
            let sequences = owned.filter(|s| s.owned_by.is_some_and(|(t, _)| t == table.oid)).map(|s| s.oid);
            for part in indexes.chain(sequences).collect::<Vec<_>>() {
                move_to(cx, part, schema).await?;
            }
        }
        CatalogObject::Sequence(sequence) if sequence.owned_by.is_some() => {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot move an owned sequence into another schema",
            ));
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
