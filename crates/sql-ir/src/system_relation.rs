//! Relations that are computed from the catalog, as a statement names them.
//!
//! Responsible for: what is known of one before its rows are asked for, and finding it by its name.
//! Not responsible for: which there are, and their rows. `system` says so once, before the first statement is bound ([`offer`]).

use std::sync::OnceLock;

use base::{Oid, Result};
use sql_functions::EvalContext;
use types::Datum;

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
    pub fn is_not_null(&self, ty: Oid) -> bool {
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

    /// The key that a column is.
    pub fn key(&self, column: usize) -> Option<&'static Key> {
        let (name, _) = self.columns.get(column)?;
        offered().keys.iter().find(|key| key.column == *name && key.relation == self.name)
    }
}

impl std::fmt::Debug for SystemRelation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// The objects whose rows are asked for.
#[derive(Clone, Copy)]
pub enum Asked<'a> {
    /// Of every one.
    All,
    /// Of the one with this number.
    Of(Oid),
    /// Of those with this name.
    Named(&'a str),
}

impl Asked<'_> {
    /// Whether an object is asked for.
    pub fn takes(self, oid: Oid, name: &str) -> bool {
        match self {
            Asked::All => true,
            Asked::Of(wanted) => oid == wanted,
            Asked::Named(wanted) => name == wanted,
        }
    }
}

/// A column by whose values rows can be found. What it gives may have more rows than match, never fewer.
pub struct Key {
    /// The relation.
    pub relation: &'static str,
    /// Its column.
    pub column: &'static str,
    /// Rows with one value, roughly.
    pub rows: f64,
    /// The rows of the objects that are asked for.
    pub read: fn(&SystemRelation, &dyn EvalContext, Asked<'_>) -> Result<Vec<Vec<Datum>>>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.relation, self.column)
    }
}

impl Key {
    /// The rows with a value, and maybe others.
    pub fn read(&self, relation: &SystemRelation, value: &Datum, cx: &dyn EvalContext) -> Result<Vec<Vec<Datum>>> {
        match value {
            Datum::Null => Ok(Vec::new()),
            Datum::Oid(oid) => (self.read)(relation, cx, Asked::Of(Oid(*oid))),
            Datum::Text(name) => (self.read)(relation, cx, Asked::Named(name)),
            _ => (relation.rows)(relation, cx),
        }
    }
}

/// What there is.
struct Offered {
    relations: Vec<&'static SystemRelation>,
    keys: &'static [Key],
}

static OFFERED: OnceLock<Offered> = OnceLock::new();

/// Says which relations there are, and which columns are keys. What was said first stands.
pub fn offer(relations: impl Iterator<Item = &'static SystemRelation>, keys: &'static [Key]) {
    OFFERED.get_or_init(|| Offered { relations: relations.collect(), keys });
}

fn offered() -> &'static Offered {
    const NONE: &Offered = &Offered { relations: Vec::new(), keys: &[] };
    debug_assert!(cfg!(test) || OFFERED.get().is_some(), "a system relation is asked for before there are any");
    OFFERED.get().unwrap_or(NONE)
}

/// A relation by schema and name.
pub fn named(schema: &str, name: &str) -> Option<&'static SystemRelation> {
    offered().relations.iter().copied().find(|relation| relation.name == name && relation.schema == schema)
}

/// A relation by its number.
pub fn numbered(oid: Oid) -> Option<&'static SystemRelation> {
    offered().relations.iter().copied().find(|relation| relation.oid == oid)
}
