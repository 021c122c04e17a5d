//! What messages may show of rows: only columns that the current role may read, or has written itself.
//!
//! A statement may be refused for what a row holds that the role cannot read: it may write through a view or into columns that
//! it has no SELECT on, and a key that is taken is another row's. PostgreSQL then leaves values out of the details
//! (`ExecBuildSlotValueDescription`, `BuildIndexValueDescription`, `ri_ReportViolation`). The owner of a view in between
//! counts for nothing: the message is read by the current role.
//!
//! Asked when a statement has failed, never before.

use std::sync::Arc;

use base::{Error, Oid, SqlState};
use engine_api::{Catalog, IndexDesc, Privileges};

use super::{Who, held, held_on_column};
/// Whether a role may read a table as a whole.
pub fn reads_table(catalog: &Catalog, who: Who, table: Oid) -> bool {
    catalog.get(table).is_some_and(|object| held(catalog, who, object).contains(Privileges::SELECT))
}

/// Whether a role may read a column, its table apart.
pub fn reads_column(catalog: &Catalog, who: Who, table: Oid, column: i16) -> bool {
    held_on_column(catalog, who, table, column).contains(Privileges::SELECT)
}

/// Whether a role may read all of these columns (attribute numbers).
pub fn reads_columns(catalog: &Catalog, who: Who, table: Oid, mut columns: impl Iterator<Item = i16>) -> bool {
    reads_table(catalog, who, table) || columns.all(|column| reads_column(catalog, who, table, column))
}

/// Whether a role may read what an index has of the rows. What it computes may be of any column.
fn reads_key(catalog: &Catalog, who: Who, index: &IndexDesc) -> bool {
    let columns = index.keys.iter().map(|key| key.column);
    reads_columns(catalog, who, index.table, columns)
}

/// Whether a role may read the key that a unique violation is about. An index that could not be built is not known any more: then
/// its table as a whole.
fn reads_violated(error: &Error, catalog: &Catalog, who: Who) -> Option<bool> {
    let fields = error.fields();
    let schema = catalog.schema(who.database, fields.schema.as_deref()?)?.oid;
    let table = catalog.table(catalog.relation(schema, fields.table.as_deref()?)?.oid())?;
    let index = catalog.indexes(table.oid).find(|index| Some(index.name.as_str()) == fields.constraint.as_deref());
    Some(index.map_or_else(|| reads_table(catalog, who, table.oid), |index| reads_key(catalog, who, index)))
}

/// A unique violation as its reader may see it: the storage below knows no roles, and names the key. Nothing is hidden from no reader, that is,
/// from a superuser.
#[cold]
pub fn within_rights(mut error: Error, reader: impl FnOnce() -> Option<(Arc<Catalog>, Who)>) -> Error {
    let fields = error.fields();
    let of_catalog = fields.schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
    if error.code() != SqlState::UNIQUE_VIOLATION || fields.detail.is_none() || of_catalog {
        return error;
    }
    // What is not found may be hidden.
    if let Some((catalog, who)) = reader()
        && !reads_violated(&error, &catalog, who).unwrap_or(false)
    {
        let builds = error.fields().message.starts_with("could not create unique index");
        error.fields_mut().detail = builds.then(|| "Duplicate keys exist.".to_string());
    }
    error
}
