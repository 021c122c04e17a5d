//! Rows of the catalog's relations by a key: those that PostgreSQL has an index for, and that clients ask for again and again.
//!
//! Responsible for: which columns are keys, and the rows with a value of one.
//! Not responsible for: testing the condition. What a key gives may have more rows than match, never fewer.

use base::Oid;
use engine_api::{Catalog, CatalogObject, TableDesc};
use types::Datum;

use super::relations::{in_database, tables_of};
use super::{Rows, SystemRelation, constraints, information, relations};
use crate::functions::EvalContext;

/// The objects whose rows are asked for.
#[derive(Clone, Copy)]
pub(super) enum Asked<'a> {
    All,
    Of(Oid),
    Named(&'a str),
}

impl Asked<'_> {
    pub fn takes(self, oid: Oid, name: &str) -> bool {
        match self {
            Asked::All => true,
            Asked::Of(wanted) => oid == wanted,
            Asked::Named(wanted) => name == wanted,
        }
    }

    /// The objects of all databases that are asked for.
    pub fn objects(self, catalog: &Catalog) -> Vec<&CatalogObject> {
        match self {
            Asked::Of(oid) => catalog.get(oid).map(|object| &**object).into_iter().collect(),
            _ => {
                let all = catalog.walk().map(|object| &**object);
                all.filter(|object| self.takes(object.oid(), object.name())).collect()
            }
        }
    }

    /// The tables of the session's database that are asked for.
    pub fn tables<'c>(self, catalog: &'c Catalog, cx: &dyn EvalContext) -> Vec<&'c TableDesc> {
        match self {
            Asked::Of(oid) => {
                catalog.table(oid).filter(|table| in_database(catalog, table.schema, cx)).into_iter().collect()
            }
            _ => tables_of(catalog, cx).into_iter().filter(|table| self.takes(table.oid, &table.name)).collect(),
        }
    }
}

/// A column by whose values rows can be found.
pub(crate) struct Key {
    relation: &'static str,
    column: &'static str,
    /// Rows with one value, roughly.
    pub rows: f64,
    read: fn(&SystemRelation, &dyn EvalContext, Asked<'_>) -> Rows,
}

const fn key(
    relation: &'static str,
    column: &'static str,
    rows: f64,
    read: fn(&SystemRelation, &dyn EvalContext, Asked<'_>) -> Rows,
) -> Key {
    Key { relation, column, rows, read }
}

static KEYS: [Key; 8] = [
    key("pg_class", "oid", 1.0, relations::classes_of),
    key("pg_class", "relname", 1.0, relations::classes_of),
    key("pg_attribute", "attrelid", 12.0, relations::attributes_of),
    key("pg_attrdef", "adrelid", 2.0, relations::defaults_of),
    key("pg_index", "indrelid", 2.0, relations::indexes_of),
    key("pg_index", "indexrelid", 1.0, relations::index_of),
    key("pg_constraint", "conrelid", 2.0, constraints::constraints_of),
    key("columns", "table_name", 12.0, information::columns_of),
];

/// The key that a column is.
pub(crate) fn of(relation: &SystemRelation, column: usize) -> Option<&'static Key> {
    let (name, _) = relation.columns.get(column)?;
    KEYS.iter().find(|key| key.column == *name && key.relation == relation.name)
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.relation, self.column)
    }
}

impl Key {
    /// The rows with a value, and maybe others.
    pub fn read(&self, relation: &SystemRelation, value: &Datum, cx: &dyn EvalContext) -> Rows {
        match value {
            Datum::Null => Ok(Vec::new()),
            Datum::Oid(oid) => (self.read)(relation, cx, Asked::Of(Oid(*oid))),
            Datum::Text(name) => (self.read)(relation, cx, Asked::Named(name)),
            _ => (relation.rows)(relation, cx),
        }
    }
}
