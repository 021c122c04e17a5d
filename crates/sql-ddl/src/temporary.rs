//! Temporary relations: the schema of a session's own, and what happens to it at a commit and at the session's end.
//!
//! The schema is `pg_temp_` and the session's number. It comes first in the search path, and goes with its relations when the
//! session ends; what a crash leaves of it is not there after the next start.

use std::collections::BTreeSet;

use base::{Error, Oid, Result, SqlState};
use engine_api::{Catalog, CatalogObject, OnCommit, Privileges, SchemaDesc, TableLockMode};
use sql_bind::own::bind_delete_all;
use sql_parse::privileges;

use super::Session;
use super::query::change;
use super::{Cx, drop};

/// The relations of a schema that are no parts of others.
fn relations_of(catalog: &Catalog, schema: Oid) -> BTreeSet<Oid> {
    let inside = |object: &CatalogObject| match object {
        CatalogObject::Table(t) => t.schema == schema,
        CatalogObject::Sequence(s) => s.schema == schema && s.owned_by.is_none(),
        _ => false,
    };
    catalog.walk().filter(|o| inside(o)).map(|o| o.oid()).collect()
}

/// The schema in which the session's temporary relations are made; it is made when it is first needed.
pub(super) async fn schema(cx: &mut Cx<'_>) -> Result<Oid> {
    let (database, name) = (cx.database(), cx.session.temporary_schema_name());
    let found = cx.catalog().schema(database, &name).map(|s| s.oid);
    may_create(cx)?;
    let first = !cx.session.may_have_temporary();
    cx.session.note_temporary();
    if let Some(oid) = found {
        if first {
            // Another session of this number left it behind.
            drop_relations(cx, oid).await?;
        }
        return Ok(oid);
    }
    let oid = cx.allocate();
    // It is the session's, whatever role it acts as.
    let owner = engine_api::oids::ROLE_POSTGRES;
    cx.put(CatalogObject::Schema(SchemaDesc { oid, database, name, owner, comment: None })).await?;
    Ok(oid)
}

/// Whether the current role may have temporary relations, or more of them.
pub(super) fn may_create(cx: &mut Cx<'_>) -> Result<()> {
    let (catalog, database) = (cx.catalog(), cx.database());
    let has_some = catalog.schema(database, &cx.session.temporary_schema_name()).is_some();
    let Some(object) = catalog.get(database) else { return Ok(()) };
    if privileges::held(&catalog, cx.session.who(), object).contains(Privileges::TEMPORARY) {
        return Ok(());
    }
    let message = if has_some {
        format!("permission denied for schema {}", cx.session.temporary_schema_name())
    } else {
        format!("permission denied to create temporary tables in database \"{}\"", object.name())
    };
    Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
}

async fn drop_relations(cx: &mut Cx<'_>, schema: Oid) -> Result<()> {
    let targets = relations_of(&cx.catalog(), schema);
    if !targets.is_empty() {
        let said = cx.session.notices();
        drop::drop_all(cx, targets, true).await?;
        cx.session.forget_notices_after(said);
    }
    Ok(())
}

/// DISCARD TEMP.
pub async fn discard(session: &mut dyn Session) -> Result<()> {
    let mut cx = Cx { session, sql: "" };
    let (database, name) = (cx.database(), cx.session.temporary_schema_name());
    let found = cx.catalog().schema(database, &name).map(|s| s.oid);
    match found {
        Some(schema) => drop_relations(&mut cx, schema).await,
        None => Ok(()),
    }
}

/// What ON COMMIT asks for, before the transaction commits.
pub async fn on_commit(session: &mut dyn Session) -> Result<()> {
    let mut cx = Cx { session, sql: "" };
    let (database, name) = (cx.database(), cx.session.temporary_schema_name());
    let catalog = cx.catalog();
    let Some(schema) = catalog.schema(database, &name).map(|s| s.oid) else { return Ok(()) };
    let tables = catalog.walk().filter_map(|o| catalog.table(o.oid())).filter(|t| t.schema == schema);
    let (mut emptied, mut dropped) = (BTreeSet::new(), BTreeSet::new());
    for table in tables {
        match table.on_commit {
            OnCommit::Preserve => {}
            OnCommit::Delete => _ = emptied.insert(table.oid),
            OnCommit::Drop => _ = dropped.insert(table.oid),
        }
    }
    if !dropped.is_empty() {
        let said = cx.session.notices();
        drop::drop_all(&mut cx, dropped, true).await?;
        cx.session.forget_notices_after(said);
    }
    let catalog = cx.catalog();
    check_references(&catalog, &emptied)?;
    let referenced: BTreeSet<Oid> =
        emptied.iter().filter_map(|&oid| catalog.table(oid)).flat_map(super::truncate::references).collect();
    for &oid in emptied.intersection(&referenced) {
        // A row of which one is left that refers to it cannot be deleted.
        cx.lock(oid, TableLockMode::AccessExclusive).await?;
        cx.txn().truncate(oid)?;
    }
    for table in emptied.difference(&referenced).filter_map(|&oid| catalog.table(oid)) {
        change(&mut cx, &mut |binder| bind_delete_all(table.oid, binder)).await?;
    }
    Ok(())
}

/// Refuses to empty tables that others refer to, which keep their rows.
fn check_references(catalog: &Catalog, emptied: &BTreeSet<Oid>) -> Result<()> {
    if emptied.is_empty() {
        return Ok(());
    }
    let Some((table, referenced)) = super::truncate::outside_reference(catalog, emptied) else { return Ok(()) };
    let detail = format!(
        "Table \"{}\" references \"{referenced}\", but they do not have the same ON COMMIT setting.",
        table.name
    );
    Err(Error::unsupported("unsupported ON COMMIT and foreign key combination").detail(detail))
}

/// The objects that go with a session, parts before wholes.
pub fn doomed(catalog: &Catalog, database: Oid, name: &str) -> Vec<Oid> {
    let Some(schema) = catalog.schema(database, name).map(|s| s.oid) else { return Vec::new() };
    let inside = |o: &CatalogObject| o.namespace().1 == schema && !matches!(o, CatalogObject::Schema(_));
    let mut oids: Vec<(u8, Oid)> = Vec::new();
    for object in catalog.walk().filter(|o| inside(o)) {
        let rank = match &**object {
            CatalogObject::Index(_) => 0,
            CatalogObject::Sequence(_) => 1,
            _ => 2,
        };
        oids.push((rank, object.oid()));
    }
    oids.push((3, schema));
    oids.sort_unstable();
    oids.into_iter().map(|(_, oid)| oid).collect()
}
