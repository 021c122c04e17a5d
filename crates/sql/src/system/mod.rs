//! `pg_catalog` and `information_schema`: relations computed from the catalog, row by row, when a query reads them.

use base::{Oid, Result};
use types::Datum;

use crate::functions::EvalContext;

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
    pub rows: fn(&dyn EvalContext) -> Result<Vec<Vec<Datum>>>,
}

impl std::fmt::Debug for SystemRelation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}
