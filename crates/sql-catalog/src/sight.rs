//! What of the database the current role sees in views that show each role its own: `information_schema`, `pg_stats`.
//!
//! Each view has a rule of its own in PostgreSQL (`information_schema.sql`, `system_views.sql`); these are the parts they are
//! made of.

use base::Oid;
use engine_api::{Catalog, CatalogObject, Privileges, TableDesc};
use sql_functions::EvalContext;
use sql_parse::privileges::{self, Who, roles};

/// The eyes of the current role.
pub(super) struct Sight<'c> {
    /// What there is to see.
    pub catalog: &'c Catalog,
    who: Who,
    superuser: bool,
}

impl<'c> Sight<'c> {
    /// Of whoever asks.
    pub fn new(catalog: &'c Catalog, cx: &dyn EvalContext) -> Sight<'c> {
        let identity = cx.identity();
        let who = identity.who();
        Sight { catalog, who, superuser: roles::is_superuser(catalog, who.role) }
    }

    /// Whether the current role has the rights of another (`pg_has_role(…, 'USAGE')`).
    pub fn has_role(&self, role: Oid) -> bool {
        self.superuser || roles::has_privileges_of(self.catalog, self.who, role)
    }

    /// Whether it has any of `wanted` on an object.
    pub fn has(&self, object: Oid, wanted: Privileges) -> bool {
        let held = |object| privileges::held(self.catalog, self.who, object).meets(wanted);
        self.superuser || self.catalog.get(object).is_some_and(|object| held(object))
    }

    /// Whether it has any of `wanted` on a column, be it by the table.
    pub(crate) fn has_column(&self, table: &TableDesc, number: i16, wanted: Privileges) -> bool {
        let on_column = || privileges::held_on_column(self.catalog, self.who, table.oid, number).meets(wanted);
        self.has(table.oid, wanted) || on_column()
    }

    /// Whether a column of a table is its owner's, or it may do anything with it.
    pub fn column(&self, table: &TableDesc, number: i16) -> bool {
        use Privileges as P;
        self.has_role(table.owner) || self.has_column(table, number, P::SELECT | P::INSERT | P::UPDATE | P::REFERENCES)
    }

    /// Whether a table is its own, or it may do anything with it or a part of it.
    pub fn table(&self, table: &TableDesc) -> bool {
        use Privileges as P;
        let on_column = P::SELECT | P::INSERT | P::UPDATE | P::REFERENCES;
        self.table_for(table, on_column | P::DELETE | P::TRUNCATE | P::TRIGGER, on_column)
    }

    /// Whether it sees the constraints of a table: reading alone does not do.
    pub fn constraints(&self, table: &TableDesc) -> bool {
        use Privileges as P;
        let on_column = P::INSERT | P::UPDATE | P::REFERENCES;
        self.table_for(table, on_column | P::DELETE | P::TRUNCATE | P::TRIGGER, on_column)
    }

    fn table_for(&self, table: &TableDesc, on_table: Privileges, on_column: Privileges) -> bool {
        self.has_role(table.owner)
            || self.has(table.oid, on_table)
            || table.live_columns().any(|column| self.has_column(table, column.number, on_column))
    }

    /// Whether a schema is its own, or it may use it or make something in it.
    pub fn schema(&self, schema: Oid) -> bool {
        let owner = match self.catalog.get(schema).map(|object| &**object) {
            Some(CatalogObject::Schema(schema)) => schema.owner,
            _ => return false,
        };
        self.has_role(owner) || self.has(schema, Privileges::CREATE | Privileges::USAGE)
    }
}
