//! `pg_catalog` and `information_schema`: relations computed from the catalog, row by row, when a query reads them.
//!
//! Responsible for: their columns ([`schema`]) and rows (one module per group of relations).
//! Not responsible for: reading them – to the planner they are relations like any other, some with keys ([`keys`]) instead of indexes.
//! Invariant: a row function sets columns by name, so that a column it does not know is NULL and none is misplaced.

mod access;
mod activity;
mod aggregate_facts;
mod constraints;
mod counters;
mod definitions;
pub(crate) mod deparse;
mod deparse_documents;
mod deparse_query;
mod deparse_stored;
pub(crate) mod depend;
mod descriptions;
mod domains;
mod extensions;
mod grants;
mod information;
mod internal_functions;
pub(crate) mod keys;
mod kinds;
mod locks;
pub mod login_rules;
mod memory;
mod names;
pub(crate) mod operator_classes;
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
use types::Datum;

use crate::functions::EvalContext;

use schema::all;

pub(crate) use definitions::relation_text;
pub use definitions::{constraint_definition, index_definition};
pub use deparse::{
    check_text, columns_used, default_text, domain_check_text, generated_text, index_text, view_columns_writable,
    view_is_writable, view_text,
};
pub(crate) use descriptions::comment;
pub(crate) use extensions::is_always_there;
pub(crate) use internal_functions::internal_function;
pub(crate) use kinds::LANGUAGES;
pub(crate) use names::TABLESPACES;
pub(crate) use procedures::{function_arguments, function_name, functions_named, is_strict};
pub(crate) use relations::column_of_node;

/// A relation computed from the catalog.
pub struct SystemRelation {
    /// PostgreSQL's OID of the relation.
    pub oid: Oid,
    /// Schema: `pg_catalog` or `information_schema`.
    pub schema: &'static str,
    /// Name.
    pub name: &'static str,
    /// Columns: name and type.
    pub columns: &'static [(&'static str, Oid)],
    /// Its rows now.
    pub rows: fn(&SystemRelation, &dyn EvalContext) -> Result<Vec<Vec<Datum>>>,
}

impl SystemRelation {
    /// Whether PostgreSQL has it as a view; those of `pg_catalog` have OIDs that initdb gave out.
    pub fn is_view(&self) -> bool {
        self.schema == "information_schema" || self.oid.0 >= 12_000
    }

    /// Whether a column of a catalog is never NULL. Of PostgreSQL's the fixed parts are not, nor the keys among the rest.
    fn is_not_null(&self, ty: Oid) -> bool {
        use types::oid::{BOOL, CHAR, FLOAT4, INT2, INT2VECTOR, INT4, INT8, NAME, OID, OIDVECTOR, REGPROC, XID};
        const FIXED: [Oid; 12] = [BOOL, CHAR, FLOAT4, INT2, INT2VECTOR, INT4, INT8, NAME, OID, OIDVECTOR, REGPROC, XID];
        !self.is_view() && FIXED.contains(&ty)
    }

    /// The modifier of a column's type: the domain `yes_or_no` is a `varchar(3)`.
    pub fn typmod(&self, column: usize) -> i32 {
        const FLAGS: [&str; 6] =
            ["identity_cycle", "initially_deferred", "enforced", "nulls_distinct", "with_hierarchy", "cycle_option"];
        let (name, ty) = self.columns[column];
        let is_flag = self.schema == "information_schema"
            && ty == types::oid::VARCHAR
            && (FLAGS.contains(&name) || name.starts_with("is_") && name != "is_generated");
        if is_flag { 3 + 4 } else { -1 }
    }
}

impl std::fmt::Debug for SystemRelation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// A system relation by schema and name.
pub fn relation(schema: &str, name: &str) -> Option<&'static SystemRelation> {
    all().find(|r| r.name == name && r.schema == schema)
}

/// A system relation by OID.
pub fn relation_by_oid(oid: Oid) -> Option<&'static SystemRelation> {
    all().find(|r| r.oid == oid)
}

type Rows = Result<Vec<Vec<Datum>>>;

/// Relations about things that Nyala does not have.
fn empty(_: &SystemRelation, _: &dyn EvalContext) -> Rows {
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
