//! SET LOGGED and SET UNLOGGED. An unlogged relation is logged as others are; what it is said to be is kept, shown and dumped.

use base::{Error, Oid, Result, SqlState};
use engine_api::{Catalog, CatalogObject, ConstraintDesc, ConstraintKind, Persistence, SequenceDesc, TableDesc};
use rupg_sql::nodes::{AlterTableCmd, AlterTableType};
use sql_parse::names::is_temporary;

use super::Cx;

/// Of a table, and of the sequences of as many of its columns: those that the statement adds are made as the table was.
pub(super) async fn of_table(cx: &mut Cx<'_>, mut table: TableDesc, columns: usize, unlogged: bool) -> Result<()> {
    let wanted = if unlogged { Persistence::Unlogged } else { Persistence::Permanent };
    if table.persistence == Persistence::Temporary {
        return Err(cannot_change(&cx.catalog(), table.schema, &table.name));
    }
    if table.persistence == wanted {
        return Ok(());
    }
    let catalog = cx.catalog();
    if let Some((key, other)) = key_between(&catalog, &table, unlogged) {
        let (to, is) = if unlogged { ("unlogged", "logged") } else { ("logged", "unlogged") };
        let message = format!(
            "could not change table \"{}\" to {to} because it references {is} table \"{}\"",
            table.name, other.name
        );
        let error = Error::new(SqlState::INVALID_TABLE_DEFINITION, message);
        return Err(of_relation(error, &catalog, table.schema, &table.name).constraint(&key.name));
    }
    table.persistence = wanted;
    let is_old = |column: i16| usize::try_from(column).is_ok_and(|column| column <= columns);
    let owned = |s: &&SequenceDesc| s.owned_by.is_some_and(|(owner, column)| owner == table.oid && is_old(column));
    let owned: Vec<SequenceDesc> =
        catalog.walk().filter_map(|o| catalog.sequence(o.oid())).filter(owned).cloned().collect();
    cx.put(CatalogObject::Table(table)).await?;
    for sequence in owned {
        cx.put(CatalogObject::Sequence(SequenceDesc { unlogged, ..sequence })).await?;
    }
    Ok(())
}

/// Whether a command of ALTER TABLE is one of these.
pub(super) fn is_said(kind: AlterTableType) -> bool {
    matches!(kind, AlterTableType::AT_SetLogged | AlterTableType::AT_SetUnLogged)
}

/// Refuses to change a table twice.
pub(super) fn refuse_twice<'s>(table: &TableDesc, commands: impl Iterator<Item = &'s AlterTableCmd>) -> Result<()> {
    let is_other = |kind| (kind == AlterTableType::AT_SetUnLogged) != (table.persistence == Persistence::Unlogged);
    let said = commands.map(|cmd| cmd.subtype).filter(|kind| is_said(*kind));
    if said.skip_while(|kind| !is_other(*kind)).nth(1).is_some() {
        return Err(Error::unsupported("cannot change persistence setting twice"));
    }
    Ok(())
}

/// Of a sequence alone.
pub(super) async fn of_sequence(cx: &mut Cx<'_>, sequence: SequenceDesc, unlogged: bool) -> Result<()> {
    let catalog = cx.catalog();
    if is_temporary(&catalog, sequence.schema) {
        return Err(cannot_change(&catalog, sequence.schema, &sequence.name));
    }
    cx.put(CatalogObject::Sequence(SequenceDesc { unlogged, ..sequence })).await
}

fn cannot_change(catalog: &Catalog, schema: Oid, name: &str) -> Error {
    let message = format!("cannot change logged status of table \"{name}\" because it is temporary");
    of_relation(Error::new(SqlState::INVALID_TABLE_DEFINITION, message), catalog, schema, name)
}

fn of_relation(error: Error, catalog: &Catalog, schema: Oid, name: &str) -> Error {
    let schema = catalog.get(schema).map(|schema| schema.name().to_string()).unwrap_or_default();
    error.schema(schema).table(name)
}

/// A foreign key that keeps the table from changing, and the other table: a logged table may refer to logged ones only.
fn key_between<'c>(
    catalog: &'c Catalog,
    table: &'c TableDesc,
    unlogged: bool,
) -> Option<(&'c ConstraintDesc, &'c TableDesc)> {
    let target = |key: &ConstraintDesc| match key.kind {
        ConstraintKind::ForeignKey { table, .. } => Some(table),
        _ => None,
    };
    let is_other =
        |other: &TableDesc| other.oid != table.oid && (other.persistence == Persistence::Unlogged) != unlogged;
    if !unlogged {
        let mut keys = table.constraints.iter().filter_map(|key| Some((key, catalog.table(target(key)?)?)));
        return keys.find(|(_, other)| is_other(other));
    }
    let others = catalog.walk().filter_map(|object| catalog.table(object.oid())).filter(|other| is_other(other));
    let mut keys = others.flat_map(|other| other.constraints.iter().map(move |key| (key, other)));
    keys.find(|(key, _)| target(key) == Some(table.oid))
}
