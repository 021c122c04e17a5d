//! `pg_catalog` and `information_schema`: relations computed from the catalog, row by row, when a query reads them.
//!
//! Responsible for: their columns ([`schema`]) and rows (one module per group of relations); functions that read the catalog; stored
//! definitions as text; expressions of indexes for the engine ([`index_code`]); catalogs of earlier releases ([`conversion`]).
//! Not responsible for: reading the relations – to the planner they are relations like any other, some with keys ([`keys`]) instead of indexes;
//! changing the catalog (`sql-ddl`).
//! Invariant: a row function sets columns by name, so that a column it does not know is NULL and none is misplaced.

#![forbid(unsafe_code)]

mod access;
mod activity;
mod aggregate_facts;
mod constraints;
pub mod conversion;
mod counters;
mod definitions;
pub mod deparse;
mod deparse_documents;
mod deparse_query;
mod deparse_stored;
pub mod depend;
mod descriptions;
mod domains;
mod extensions;
mod functions;
mod grants;
pub mod index_code;
mod information;
mod internal_functions;
pub(crate) mod keys;
mod kinds;
mod locks;
mod login_rules;
mod memory;
mod names;
pub mod operator_classes;
mod operator_facts;
mod procedures;
mod relations;
mod schema;
mod settings;
mod sight;
mod standard;
mod statistics;
mod time_zones;
mod views;

use base::{Oid, Result};
use schema::all;
use sql_functions::{EvalContext, Function};
use sql_ir::system_relation::{self, SystemRelation};
use types::Datum;

pub(crate) use definitions::relation_text;
pub(crate) use definitions::{constraint_definition, index_definition};
pub use deparse::{check_text, default_text, index_text};
pub(crate) use deparse::{
    columns_used, domain_check_definition, generated_text, view_columns_writable, view_is_writable, view_text,
};
pub(crate) use descriptions::comment;
pub use extensions::is_always_there;
pub(crate) use internal_functions::internal_function;
pub(crate) use kinds::LANGUAGES;
pub(crate) use names::TABLESPACES;
pub(crate) use procedures::{function_arguments, function_name, functions_named, is_strict};
pub(crate) use relations::column_of_node;

/// Says which relations there are and which functions know the catalog. To be called before anything is bound; again, it does nothing.
pub fn install() {
    system_relation::offer(all(), &keys::KEYS);
    static TABLES: [&[Function]; 1] = [functions::FUNCTIONS];
    sql_functions::complete(&TABLES);
}

type SystemRows = Result<Vec<Vec<Datum>>>;

/// Relations about things that Nyala does not have.
fn empty(_: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    Ok(Vec::new())
}

/// A row of `relation` from its columns by name; the rest is NULL.
fn row(relation: &SystemRelation, values: Vec<(&str, Datum)>) -> Vec<Datum> {
    // Its texts have been made before, its columns are looked for now.
    base::work::beat(32 * values.len());
    let mut row = vec![Datum::Null; relation.columns.len()];
    let mut next = 0;
    for (name, value) in values {
        // Most values are given in the order of the columns.
        let at = match relation.columns.get(next) {
            Some((n, _)) if *n == name => Some(next),
            _ => relation.columns.iter().position(|(n, _)| *n == name),
        };
        debug_assert!(at.is_some(), "{relation:?} has no column {name}");
        if let Some(at) = at {
            row[at] = value;
            next = at + 1;
        }
    }
    row
}

fn text(s: impl AsRef<str>) -> Datum {
    Datum::from(s.as_ref())
}

fn oid(o: Oid) -> Datum {
    Datum::Oid(o.0)
}
