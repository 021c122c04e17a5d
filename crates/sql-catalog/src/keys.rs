//! Rows of the catalog's relations by a key: those that PostgreSQL has an index for, and that clients ask for again and again.
//!
//! Responsible for: which columns are keys, and the rows with a value of one.
//! Not responsible for: testing the condition.

use engine_api::{Catalog, CatalogObject, TableDesc};
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use sql_ir::system_relation::{Asked, Key};

use super::relations::{in_database, tables_of};
use super::{SystemRows, constraints, information, relations};

/// The objects of all databases that are asked for.
pub(super) fn objects<'c>(asked: Asked<'_>, catalog: &'c Catalog) -> Vec<&'c CatalogObject> {
    match asked {
        Asked::Of(oid) => catalog.get(oid).map(|object| &**object).into_iter().collect(),
        _ => {
            let all = catalog.walk().map(|object| &**object);
            all.filter(|object| asked.takes(object.oid(), object.name())).collect()
        }
    }
}

/// The tables of the session's database that are asked for.
pub(super) fn tables<'c>(asked: Asked<'_>, catalog: &'c Catalog, cx: &dyn EvalContext) -> Vec<&'c TableDesc> {
    match asked {
        Asked::Of(oid) => {
            catalog.table(oid).filter(|table| in_database(catalog, table.schema, cx)).into_iter().collect()
        }
        _ => tables_of(catalog, cx).into_iter().filter(|table| asked.takes(table.oid, &table.name)).collect(),
    }
}

const fn key(
    relation: &'static str,
    column: &'static str,
    rows: f64,
    read: fn(&SystemRelation, &dyn EvalContext, Asked<'_>) -> SystemRows,
) -> Key {
    Key { relation, column, rows, read }
}

pub(super) static KEYS: [Key; 8] = [
    key("pg_class", "oid", 1.0, relations::classes_of),
    key("pg_class", "relname", 1.0, relations::classes_of),
    key("pg_attribute", "attrelid", 12.0, relations::attributes_of),
    key("pg_attrdef", "adrelid", 2.0, relations::defaults_of),
    key("pg_index", "indrelid", 2.0, relations::indexes_of),
    key("pg_index", "indexrelid", 1.0, relations::index_of),
    key("pg_constraint", "conrelid", 2.0, constraints::constraints_of),
    key("columns", "table_name", 12.0, information::columns_of),
];
