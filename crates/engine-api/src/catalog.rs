//! The catalog: descriptors of everything that has a name, and the immutable snapshot of all of them.
//!
//! Descriptors are serialised as JSON into catalog rows, so a field added later needs a `#[serde(default)]`.
//! Expressions (defaults, checks) are kept as [`Expression`]s: the binder compiles them, storage never reads them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use base::work::Count;
use base::{LayoutId, Oid};
use rpds::RedBlackTreeMapSync;
use serde::{Deserialize, Serialize};
use types::user::Types;

use crate::expression::Expression;
use crate::privileges::{PrivilegesDesc, RoleDesc, RoleSetting};
use crate::shared::Shared;

/// OIDs that exist from the start, as in PostgreSQL.
pub mod oids {
    use base::Oid;
    /// Database `template1`.
    pub const DATABASE_TEMPLATE1: Oid = Oid(1);
    /// Database `template0`, which nobody can connect to.
    pub const DATABASE_TEMPLATE0: Oid = Oid(4);
    /// Database `postgres`.
    pub const DATABASE_POSTGRES: Oid = Oid(5);
    /// Schema `pg_catalog`.
    pub const SCHEMA_PG_CATALOG: Oid = Oid(11);
    /// Schema `public` of database `postgres`.
    pub const SCHEMA_PUBLIC: Oid = Oid(2200);
    /// Schema `public` of database `template1`.
    pub const SCHEMA_PUBLIC_TEMPLATE1: Oid = Oid(9901);
    /// Schema `public` of database `template0`.
    pub const SCHEMA_PUBLIC_TEMPLATE0: Oid = Oid(9904);
    /// Schema `information_schema`.
    pub const SCHEMA_INFORMATION_SCHEMA: Oid = Oid(13000);
    /// Role `postgres`.
    pub const ROLE_POSTGRES: Oid = Oid(10);
    /// Role `pg_database_owner`, whose one member is the owner of the current database.
    pub const ROLE_DATABASE_OWNER: Oid = Oid(6171);
    /// Role `pg_read_all_data`.
    pub const ROLE_READ_ALL_DATA: Oid = Oid(6181);
    /// Role `pg_write_all_data`.
    pub const ROLE_WRITE_ALL_DATA: Oid = Oid(6182);
    /// Role `pg_monitor`.
    pub const ROLE_MONITOR: Oid = Oid(3373);
    /// Role `pg_read_all_settings`.
    pub const ROLE_READ_ALL_SETTINGS: Oid = Oid(3374);
    /// Role `pg_read_all_stats`.
    pub const ROLE_READ_ALL_STATS: Oid = Oid(3375);
    /// Role `pg_signal_backend`.
    pub const ROLE_SIGNAL_BACKEND: Oid = Oid(4200);
    /// `pg_checkpoint`: may ask for checkpoints.
    pub const ROLE_CHECKPOINT: Oid = Oid(4544);
    /// The first OID of user objects.
    pub const FIRST_USER: Oid = Oid(16384);
}

/// A database: a namespace in the one engine (rule R19).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DatabaseDesc {
    /// Identity.
    pub oid: Oid,
    /// Name.
    pub name: String,
    /// Owning role.
    pub owner: Oid,
    /// COMMENT ON DATABASE.
    #[serde(default)]
    pub comment: Option<Arc<str>>,
    /// What sessions in it begin with.
    #[serde(default)]
    pub settings: Vec<RoleSetting>,
}

impl DatabaseDesc {
    /// One of the two that others are made like: it cannot be dropped, and anyone who may make databases may name it.
    pub fn is_template(&self) -> bool {
        matches!(self.oid, oids::DATABASE_TEMPLATE0 | oids::DATABASE_TEMPLATE1)
    }

    /// Whether clients may connect to it.
    pub fn takes_connections(&self) -> bool {
        self.oid != oids::DATABASE_TEMPLATE0
    }
}

/// A schema.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SchemaDesc {
    /// Identity.
    pub oid: Oid,
    /// Database it belongs to; `pg_catalog` and `information_schema` belong to all (`Oid::INVALID`).
    pub database: Oid,
    /// Name.
    pub name: String,
    /// Owning role.
    pub owner: Oid,
    /// COMMENT ON SCHEMA.
    #[serde(default)]
    pub comment: Option<Arc<str>>,
}

/// An extension that a database has. What is in it is the program's (`sql::functions::extensions`).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExtensionDesc {
    /// Identity.
    pub oid: Oid,
    /// Database it belongs to.
    pub database: Oid,
    /// Name.
    pub name: String,
    /// Schema in which its functions are.
    pub schema: Oid,
    /// Owning role.
    pub owner: Oid,
    /// Version.
    pub version: String,
    /// COMMENT ON EXTENSION.
    #[serde(default)]
    pub comment: Option<Arc<str>>,
}

/// What a relation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableKind {
    /// An ordinary table.
    Table,
    /// A view: columns, and the query they come from; no rows of its own.
    View,
    /// A materialized view: the rows that its query had when it was last refreshed.
    MaterializedView,
}

/// How long a relation's rows live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Persistence {
    /// Until they are deleted.
    #[default]
    Permanent,
    /// UNLOGGED: kept as permanent ones are, and shown as what it is.
    Unlogged,
    /// Until the session ends; nobody else sees them.
    Temporary,
}

/// What a commit does to a temporary table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnCommit {
    /// PRESERVE ROWS
    #[default]
    Preserve,
    /// DELETE ROWS
    Delete,
    /// DROP
    Drop,
}

/// The query of a view, and what the names in its text meant when it was made: renaming or adding anything later does not
/// change what the view is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ViewDesc {
    /// The query. Names of relations and columns in it mean what `relations` says.
    pub query: Expression,
    /// The search path it is bound under.
    pub search_path: Vec<Oid>,
    /// The relations that its text names.
    pub relations: Vec<ViewRelation>,
    /// Whether `relations` has everything that the query reads. Earlier versions left out sequences, and the columns that only a
    /// WITH query reads.
    #[serde(default)]
    pub lists_all: bool,
    /// Primary keys without which GROUP BY would not do.
    #[serde(default)]
    pub keys: Vec<Oid>,
    /// WITH CHECK OPTION.
    #[serde(default)]
    pub check_option: Option<CheckOption>,
    /// A materialized view that has been filled.
    #[serde(default)]
    pub populated: bool,
}

/// A relation as the text of a view names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRelation {
    /// The schema, if the text names one.
    pub schema: Option<String>,
    /// The name in the text.
    pub name: String,
    /// What it means.
    pub oid: Oid,
    /// The schema's name then.
    pub schema_name: String,
    /// The columns there were then, by attribute number, and their names.
    pub columns: Vec<(i16, String)>,
    /// The columns that the view uses: these cannot go without it.
    pub used: Vec<i16>,
}

/// Which conditions rows must meet that are written through a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckOption {
    /// The view's own.
    Local,
    /// Those of all views below it too.
    Cascaded,
}

/// A table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableDesc {
    /// Identity.
    pub oid: Oid,
    /// Its schema.
    pub schema: Oid,
    /// Name.
    pub name: String,
    /// Owning role.
    pub owner: Oid,
    /// What it is.
    pub kind: TableKind,
    /// Columns by attribute number (column `n` at index `n - 1`), dropped ones included.
    pub columns: Shared<Vec<ColumnDesc>>,
    /// Every layout its rows may have (rule R3), oldest first; rows are written with the last.
    pub layouts: Shared<Vec<LayoutDesc>>,
    /// Constraints.
    pub constraints: Shared<Vec<ConstraintDesc>>,
    /// Storage parameters, kept and shown.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// COMMENT ON the table (number 0) and its columns, by attribute number.
    #[serde(default)]
    pub comments: Shared<BTreeMap<i16, Arc<str>>>,
    /// Rises with TRUNCATE: the storage that belongs to this descriptor.
    #[serde(default)]
    pub storage: u32,
    /// The query of a view or materialized view.
    #[serde(default)]
    pub view: Option<ViewDesc>,
    /// How long its rows live.
    #[serde(default)]
    pub persistence: Persistence,
    /// What a commit does to it, if it is temporary.
    #[serde(default)]
    pub on_commit: OnCommit,
    /// DISABLE TRIGGER ALL: foreign keys of the table and those that point to it are not looked at when its rows change.
    #[serde(default)]
    pub triggers_off: bool,
}

/// A column.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ColumnDesc {
    /// Attribute number, from 1.
    pub number: i16,
    /// Name.
    pub name: String,
    /// Type.
    pub type_oid: Oid,
    /// Type modifier, -1 for none.
    pub typmod: i32,
    /// NOT NULL.
    pub not_null: bool,
    /// Default expression.
    pub default: Option<Expression>,
    /// Dropped: keeps its number, answers no name.
    pub dropped: bool,
    /// Value of rows written before the column existed: PostgreSQL text form; `None` is NULL.
    #[serde(default)]
    pub missing: Option<String>,
    /// The same as a row of one column has it, for types whose text forms change: enums and what is made of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_row: Option<Vec<u8>>,
    /// GENERATED AS IDENTITY; its default is the sequence's next value.
    #[serde(default)]
    pub identity: Option<Identity>,
    /// GENERATED ALWAYS AS (…) STORED: the expression.
    #[serde(default)]
    pub generated: Option<Expression>,
    /// Identity of its default, or of what it is generated from; those of before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_oid: Option<Oid>,
    /// COLLATE, if that is not the collation that its type has: the number in `pg_collation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<u32>,
}

/// Whether an identity column takes values that were not generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// ALWAYS: only with OVERRIDING SYSTEM VALUE.
    Always,
    /// BY DEFAULT
    ByDefault,
}

/// One shape of stored tuples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutDesc {
    /// Identity within the table.
    pub id: LayoutId,
    /// The stored fields in order.
    pub fields: Vec<LayoutField>,
}

/// One field of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutField {
    /// Attribute number of the column.
    pub column: i16,
    /// A built-in type that is stored as the column's was at the time of the layout ([`types::stored_as`]).
    pub type_oid: Oid,
    /// Modifier at the time of the layout.
    pub typmod: i32,
}

/// What a foreign key does to referencing rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForeignKeyAction {
    /// NO ACTION: error at the end of the statement.
    NoAction,
    /// RESTRICT: error at once.
    Restrict,
    /// CASCADE
    Cascade,
    /// SET NULL
    SetNull,
    /// SET DEFAULT
    SetDefault,
}

/// A table constraint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConstraintDesc {
    /// Identity.
    pub oid: Oid,
    /// Name.
    pub name: String,
    /// Columns (attribute numbers) it is about.
    pub columns: Vec<i16>,
    /// What it demands.
    pub kind: ConstraintKind,
    /// DEFERRABLE
    #[serde(default)]
    pub deferrable: bool,
    /// INITIALLY DEFERRED
    #[serde(default)]
    pub deferred: bool,
    /// NOT VALID: rows that were there before may break it.
    #[serde(default)]
    pub not_valid: bool,
    /// NO INHERIT of a CHECK, which says nothing here but is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_inherit: bool,
    /// COMMENT ON CONSTRAINT.
    #[serde(default)]
    pub comment: Option<Arc<str>>,
}

/// What a constraint demands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ConstraintKind {
    /// CHECK
    Check {
        /// The expression.
        expression: Expression,
    },
    /// PRIMARY KEY, enforced by an index.
    PrimaryKey {
        /// The index.
        index: Oid,
    },
    /// UNIQUE, enforced by an index.
    Unique {
        /// The index.
        index: Oid,
    },
    /// FOREIGN KEY.
    ForeignKey {
        /// Referenced table.
        table: Oid,
        /// Referenced columns, in the order of the constraint's columns.
        columns: Vec<i16>,
        /// Unique index over them.
        index: Oid,
        /// ON DELETE.
        on_delete: ForeignKeyAction,
        /// ON UPDATE.
        on_update: ForeignKeyAction,
        /// MATCH FULL.
        match_full: bool,
        /// The columns that ON DELETE SET NULL or SET DEFAULT sets; empty: all.
        #[serde(default)]
        set_columns: Vec<i16>,
    },
}

/// An ordered index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexDesc {
    /// Identity.
    pub oid: Oid,
    /// Its schema (the table's).
    pub schema: Oid,
    /// Name.
    pub name: String,
    /// The table.
    pub table: Oid,
    /// Key columns.
    pub keys: Vec<IndexKey>,
    /// No two live rows with one key (NULLs are distinct, unless `nulls_not_distinct`).
    pub unique: bool,
    /// Enforces the primary key.
    pub primary: bool,
    /// The expressions among its keys, in order: those of the keys whose column is 0.
    #[serde(default)]
    pub expressions: Vec<IndexExpression>,
    /// WHERE: the condition of the rows it has.
    #[serde(default)]
    pub predicate: Option<Expression>,
    /// INCLUDE: columns that are not part of the key.
    #[serde(default)]
    pub include: Vec<i16>,
    /// Duplicates are an error at the end of the statement or of the transaction, not at once.
    #[serde(default)]
    pub deferrable: bool,
    /// NULLS NOT DISTINCT: NULLs in a key are equal.
    #[serde(default)]
    pub nulls_not_distinct: bool,
    /// A build beside writers has not come to its end: rows may be missing, so nothing is read through it.
    #[serde(default)]
    pub invalid: bool,
    /// Its build has failed: nothing is entered into it either.
    #[serde(default)]
    pub unready: bool,
    /// Operator classes of the keys, 0 for the default one of its type; empty if all are that.
    #[serde(default)]
    pub classes: Vec<u32>,
    /// Collations of the keys, 0 for that of its column or expression; empty if all are that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collations: Vec<u32>,
    /// It was made as a hash index, and is shown as one; its keys are ordered all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hash: bool,
    /// WITH (…), kept and shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
    /// COMMENT ON INDEX.
    #[serde(default)]
    pub comment: Option<Arc<str>>,
}

/// An expression that an index is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexExpression {
    /// The expression.
    pub text: Expression,
    /// Its type.
    pub type_oid: Oid,
    /// What the key column is called.
    pub name: String,
    /// The collation that it is of by what stands in it, if that is not the one of its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<u32>,
}

/// One column of an index key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexKey {
    /// Attribute number; 0 for an expression.
    pub column: i16,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}

/// A sequence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SequenceDesc {
    /// Identity.
    pub oid: Oid,
    /// Its schema.
    pub schema: Oid,
    /// Name.
    pub name: String,
    /// Owning role.
    pub owner: Oid,
    /// Type: int2, int4 or int8.
    pub type_oid: Oid,
    /// START WITH
    pub start: i64,
    /// INCREMENT BY
    pub increment: i64,
    /// MINVALUE
    pub min: i64,
    /// MAXVALUE
    pub max: i64,
    /// CYCLE
    pub cycle: bool,
    /// Column it is dropped with: (table, attribute number).
    pub owned_by: Option<(Oid, i16)>,
    /// CACHE, kept and shown.
    #[serde(default = "one")]
    pub cache: i64,
    /// COMMENT ON SEQUENCE.
    #[serde(default)]
    pub comment: Option<Arc<str>>,
    /// What its state is kept under since it was restarted, a new OID each time: a state that nobody sees before the
    /// restart is committed. `None`: under its own OID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Oid>,
    /// UNLOGGED, kept and shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlogged: bool,
}

impl SequenceDesc {
    /// A sequence that counts from 1 to `max`.
    pub fn new(oid: Oid, schema: Oid, name: impl Into<String>, owner: Oid, type_oid: Oid, max: i64) -> SequenceDesc {
        SequenceDesc {
            oid,
            schema,
            name: name.into(),
            owner,
            type_oid,
            start: 1,
            increment: 1,
            min: 1,
            max,
            cycle: false,
            owned_by: None,
            cache: 1,
            comment: None,
            state: None,
            unlogged: false,
        }
    }

    /// What its state is kept under.
    pub fn state_id(&self) -> Oid {
        self.state.unwrap_or(self.oid)
    }
}

fn one() -> i64 {
    1
}

/// A type that a statement made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TypeDesc {
    /// Identity.
    pub oid: Oid,
    /// Identity of the type of arrays of it.
    pub array: Oid,
    /// Its schema.
    pub schema: Oid,
    /// Name.
    pub name: String,
    /// Owning role.
    pub owner: Oid,
    /// What it is made of.
    pub kind: TypeKind,
    /// COMMENT ON TYPE
    #[serde(default)]
    pub comment: Option<Arc<str>>,
    /// What values need of it.
    #[serde(skip)]
    pub made: MadeOnce,
}

/// What values need of a type, made when the type is first put into a catalog. A copy, which may be changed, has none.
#[derive(Debug, Default)]
pub struct MadeOnce(OnceLock<Arc<types::user::Made>>);

impl Clone for MadeOnce {
    fn clone(&self) -> MadeOnce {
        MadeOnce::default()
    }
}

/// What a type is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum TypeKind {
    /// An enum: its labels in their order.
    Enum(Vec<EnumLabel>),
    /// A domain.
    Domain(DomainDesc),
}

/// A label of an enum.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnumLabel {
    /// Identity.
    pub oid: Oid,
    /// What values of the label hold; its place in the order unless `path` is there. It never changes.
    pub order: f32,
    /// The label.
    pub name: String,
    /// Place in the order of the labels where a number does not say it; it never changes.
    #[serde(default)]
    pub path: Vec<f32>,
    /// The number that catalogs show as its place.
    #[serde(default)]
    pub shown: Option<f32>,
    /// It was added after the type was made, and since the server has started.
    #[serde(skip)]
    pub added: bool,
}

/// A domain: a type with conditions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DomainDesc {
    /// The type, which may be a domain too.
    pub base: Oid,
    /// Its modifier.
    pub typmod: i32,
    /// NOT NULL
    pub not_null: bool,
    /// DEFAULT
    pub default: Option<Expression>,
    /// Without a default it has none, whatever the domain below has; with one, it was not taken over from the domain below when this one
    /// was made. Domains of earlier servers, which do not say, have that of the domain below if they have none.
    #[serde(default)]
    pub default_is_own: bool,
    /// The type that a default which was taken over was written for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_of: Option<Oid>,
    /// CHECK constraints.
    pub checks: Vec<DomainCheck>,
    /// COLLATE, if that is not the collation that the type below has: the number in `pg_collation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<u32>,
}

/// A CHECK constraint of a domain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DomainCheck {
    /// Identity.
    pub oid: Oid,
    /// Name.
    pub name: String,
    /// The condition about VALUE.
    pub expression: Expression,
    /// COMMENT ON CONSTRAINT … ON DOMAIN.
    #[serde(default)]
    pub comment: Option<Arc<str>>,
    /// Values from before it was added have not been looked at.
    #[serde(default)]
    pub not_valid: bool,
}

impl EnumLabel {
    /// A label at a new place.
    pub fn new(oid: Oid, name: String, place: Vec<f32>, shown: f32, names: usize) -> EnumLabel {
        let (order, path) = match place[..] {
            [number] => (number, Vec::new()),
            _ => (types::place::name(names), place),
        };
        EnumLabel { oid, order, name, path, shown: (shown != order).then_some(shown), added: false }
    }

    /// Its place in the order of the labels.
    pub fn place(&self) -> &[f32] {
        if self.path.is_empty() { std::slice::from_ref(&self.order) } else { &self.path }
    }

    /// The number that catalogs show as its place.
    pub fn shown(&self) -> f32 {
        self.shown.unwrap_or(self.order)
    }
}

impl TypeDesc {
    /// All identities that the type has taken.
    pub fn oids(&self) -> impl Iterator<Item = Oid> {
        let (labels, checks) = match &self.kind {
            TypeKind::Enum(labels) => (labels.as_slice(), &[][..]),
            TypeKind::Domain(domain) => (&[][..], domain.checks.as_slice()),
        };
        let parts = labels.iter().map(|l| l.oid).chain(checks.iter().map(|c| c.oid));
        [self.oid, self.array].into_iter().chain(parts).collect::<Vec<_>>().into_iter()
    }

    /// What values need of the type, in a catalog that has these types besides.
    fn made(&self, others: &Types) -> &Arc<types::user::Made> {
        self.made.0.get_or_init(|| Arc::new(types::user::Made::new(self.of_values(), others)))
    }

    fn of_values(&self) -> types::user::UserType {
        let kind = match &self.kind {
            TypeKind::Enum(labels) => {
                let label = |l: &EnumLabel| types::user::Label {
                    mark: l.order,
                    path: l.path.clone(),
                    name: l.name.clone(),
                    added: l.added,
                };
                types::user::UserKind::Enum(labels.iter().map(label).collect())
            }
            TypeKind::Domain(domain) => types::user::UserKind::Domain { base: domain.base, typmod: domain.typmod },
        };
        types::user::UserType { oid: self.oid, array: self.array, name: self.name.clone(), kind }
    }
}

/// Class of the names of types.
const TYPES: u8 = 5;
/// The class of extensions' names.
const EXTENSIONS: u8 = 6;

/// Anything in the catalog.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CatalogObject {
    /// A database.
    Database(DatabaseDesc),
    /// A schema.
    Schema(SchemaDesc),
    /// A role.
    Role(RoleDesc),
    /// A table.
    Table(TableDesc),
    /// An index.
    Index(IndexDesc),
    /// A sequence.
    Sequence(SequenceDesc),
    /// A type.
    Type(TypeDesc),
    /// An access list.
    Privileges(PrivilegesDesc),
    /// An extension.
    Extension(ExtensionDesc),
}

impl CatalogObject {
    /// Its identity.
    pub fn oid(&self) -> Oid {
        match self {
            CatalogObject::Database(o) => o.oid,
            CatalogObject::Schema(o) => o.oid,
            CatalogObject::Role(o) => o.oid,
            CatalogObject::Table(o) => o.oid,
            CatalogObject::Index(o) => o.oid,
            CatalogObject::Sequence(o) => o.oid,
            CatalogObject::Type(o) => o.oid,
            CatalogObject::Privileges(o) => o.oid,
            CatalogObject::Extension(o) => o.oid,
        }
    }

    /// The OIDs of what is part of it and no object of its own: constraints, defaults, labels, types of arrays.
    pub fn oids_of_parts(&self) -> Vec<Oid> {
        let mut parts = self.constraints();
        match self {
            CatalogObject::Table(table) => parts.extend(table.columns.iter().filter_map(|column| column.default_oid)),
            CatalogObject::Type(ty) => {
                parts.push(ty.array);
                if let TypeKind::Enum(labels) = &ty.kind {
                    parts.extend(labels.iter().map(|label| label.oid));
                }
            }
            _ => {}
        }
        parts
    }

    /// Its constraints, if it is a table or a domain.
    fn constraints(&self) -> Vec<Oid> {
        match self {
            CatalogObject::Table(table) => table.constraints.iter().map(|constraint| constraint.oid).collect(),
            CatalogObject::Type(ty) => match &ty.kind {
                TypeKind::Domain(domain) => domain.checks.iter().map(|check| check.oid).collect(),
                TypeKind::Enum(_) => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            CatalogObject::Database(o) => &o.name,
            CatalogObject::Schema(o) => &o.name,
            CatalogObject::Role(o) => &o.name,
            CatalogObject::Table(o) => &o.name,
            CatalogObject::Index(o) => &o.name,
            CatalogObject::Sequence(o) => &o.name,
            CatalogObject::Type(o) => &o.name,
            CatalogObject::Privileges(o) => &o.name,
            CatalogObject::Extension(o) => &o.name,
        }
    }

    /// The namespace in which its name is unique: (class, parent). Relations of a schema share one.
    pub fn namespace(&self) -> (u8, Oid) {
        match self {
            CatalogObject::Database(_) => (0, Oid::INVALID),
            CatalogObject::Role(_) => (1, Oid::INVALID),
            CatalogObject::Schema(o) => (2, o.database),
            CatalogObject::Table(o) => (3, o.schema),
            CatalogObject::Index(o) => (3, o.schema),
            CatalogObject::Sequence(o) => (3, o.schema),
            CatalogObject::Type(o) => (TYPES, o.schema),
            CatalogObject::Extension(o) => (EXTENSIONS, o.database),
            // Far from the numbers of classes in which users give names.
            CatalogObject::Privileges(_) => (200, Oid::INVALID),
        }
    }
}

/// An immutable snapshot of the catalog. Snapshots share what they have in common: a copy, and a change of a copy, cost
/// little however many objects there are.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Rises with every committed DDL; a transaction's own DDL keeps the committed number.
    pub version: u64,
    objects: RedBlackTreeMapSync<Oid, Arc<CatalogObject>>,
    names: RedBlackTreeMapSync<(u8, Oid, Arc<str>), Oid>,
    indexes_of: RedBlackTreeMapSync<Oid, Vec<Oid>>,
    /// Tables and domains by their constraints.
    constrained: RedBlackTreeMapSync<Oid, Oid>,
    types: Arc<Types>,
}

impl Catalog {
    /// What values need of the types that statements made.
    pub fn types(&self) -> &Arc<Types> {
        &self.types
    }

    /// The object, whatever it is.
    pub fn get(&self, oid: Oid) -> Option<&Arc<CatalogObject>> {
        self.objects.get(&oid)
    }

    /// Adds or replaces an object.
    pub fn put(&mut self, object: Arc<CatalogObject>) {
        let old = self.take(object.oid());
        let (before, after) = (old.as_ref().map_or(Vec::new(), |old| old.constraints()), object.constraints());
        // Most changes leave constraints alone, or add the last one.
        let same = before.iter().zip(&after).take_while(|(old, new)| old == new).count();
        before[same..].iter().for_each(|constraint| _ = self.constrained.remove_mut(constraint));
        after[same..].iter().for_each(|constraint| self.constrained.insert_mut(*constraint, object.oid()));
        let (class, parent) = object.namespace();
        self.names.insert_mut((class, parent, object.name().into()), object.oid());
        if let CatalogObject::Index(index) = &*object {
            let mut all = self.indexes_of.get(&index.table).cloned().unwrap_or_default();
            // One that is changed stays where it is.
            if let Err(place) = all.binary_search(&index.oid) {
                all.insert(place, index.oid);
            }
            self.indexes_of.insert_mut(index.table, all);
        }
        if let CatalogObject::Type(ty) = &*object {
            let types = Arc::make_mut(&mut self.types);
            let made = Arc::clone(ty.made(types));
            types.put(&made);
        }
        self.objects.insert_mut(object.oid(), object);
    }

    /// Removes an object; nothing happens if it is not there.
    pub fn remove(&mut self, oid: Oid) {
        if let Some(object) = self.take(oid) {
            object.constraints().iter().for_each(|constraint| _ = self.constrained.remove_mut(constraint));
            if matches!(&*object, CatalogObject::Type(_)) {
                Arc::make_mut(&mut self.types).remove(oid);
            }
        }
    }

    /// Removes an object, but not what is known of its constraints.
    fn take(&mut self, oid: Oid) -> Option<Arc<CatalogObject>> {
        let object = self.objects.get(&oid).cloned()?;
        self.objects.remove_mut(&oid);
        let (class, parent) = object.namespace();
        self.names.remove_mut(&(class, parent, object.name().into()));
        if let CatalogObject::Index(index) = &*object
            && let Some(list) = self.indexes_of.get(&index.table)
        {
            match list.iter().copied().filter(|&other| other != oid).collect::<Vec<_>>() {
                none if none.is_empty() => _ = self.indexes_of.remove_mut(&index.table),
                others => self.indexes_of.insert_mut(index.table, others),
            }
        }
        Some(object)
    }

    fn named(&self, class: u8, parent: Oid, name: &str) -> Option<&Arc<CatalogObject>> {
        self.objects.get(self.names.get(&(class, parent, name.into()))?)
    }

    /// The object that has a name in a namespace ([`CatalogObject::namespace`]).
    pub fn holder_of(&self, (class, parent): (u8, Oid), name: &str) -> Option<&Arc<CatalogObject>> {
        self.named(class, parent, name)
    }

    /// A database by name.
    pub fn database(&self, name: &str) -> Option<&DatabaseDesc> {
        match &**self.named(0, Oid::INVALID, name)? {
            CatalogObject::Database(o) => Some(o),
            _ => None,
        }
    }

    /// A role by name.
    pub fn role(&self, name: &str) -> Option<&RoleDesc> {
        match &**self.named(1, Oid::INVALID, name)? {
            CatalogObject::Role(o) => Some(o),
            _ => None,
        }
    }

    /// A schema of a database by name; the system schemas belong to every database.
    pub fn schema(&self, database: Oid, name: &str) -> Option<&SchemaDesc> {
        let found = self.named(2, database, name).or_else(|| self.named(2, Oid::INVALID, name))?;
        match &**found {
            CatalogObject::Schema(o) => Some(o),
            _ => None,
        }
    }

    /// A table, index or sequence of a schema by name.
    pub fn relation(&self, schema: Oid, name: &str) -> Option<&Arc<CatalogObject>> {
        self.named(3, schema, name)
    }

    /// A table by OID.
    pub fn table(&self, oid: Oid) -> Option<&TableDesc> {
        match &**self.get(oid)? {
            CatalogObject::Table(o) => Some(o),
            _ => None,
        }
    }

    /// An index by OID.
    pub fn index(&self, oid: Oid) -> Option<&IndexDesc> {
        match &**self.get(oid)? {
            CatalogObject::Index(o) => Some(o),
            _ => None,
        }
    }

    /// A sequence by OID.
    pub fn sequence(&self, oid: Oid) -> Option<&SequenceDesc> {
        match &**self.get(oid)? {
            CatalogObject::Sequence(o) => Some(o),
            _ => None,
        }
    }

    /// A type by OID.
    pub fn user_type(&self, oid: Oid) -> Option<&TypeDesc> {
        match &**self.get(oid)? {
            CatalogObject::Type(o) => Some(o),
            _ => None,
        }
    }

    /// A type of a schema by name.
    pub fn type_named(&self, schema: Oid, name: &str) -> Option<&TypeDesc> {
        match &**self.named(TYPES, schema, name)? {
            CatalogObject::Type(o) => Some(o),
            _ => None,
        }
    }

    /// An extension of a database by name.
    pub fn extension(&self, database: Oid, name: &str) -> Option<&ExtensionDesc> {
        match &**self.named(EXTENSIONS, database, name)? {
            CatalogObject::Extension(o) => Some(o),
            _ => None,
        }
    }

    /// The sequence that makes the values of an identity column: the one that its default reads. Other sequences may belong to the
    /// column as well.
    pub fn identity_sequence(&self, column: &ColumnDesc) -> Option<&SequenceDesc> {
        column.identity?;
        column.default.iter().flat_map(Expression::references).find_map(|reference| self.sequence(reference.object()?))
    }

    /// Whether a sequence makes the values of an identity column, and is a part of its table for that.
    pub fn is_identity_sequence(&self, sequence: &SequenceDesc) -> bool {
        let column = sequence.owned_by.and_then(|(table, number)| self.table(table)?.columns.get(number as usize - 1));
        column.and_then(|column| self.identity_sequence(column)).is_some_and(|own| own.oid == sequence.oid)
    }

    /// The indexes of a table, in order of creation.
    pub fn indexes(&self, table: Oid) -> impl Iterator<Item = &IndexDesc> {
        self.indexes_of.get(&table).into_iter().flatten().filter_map(|&oid| self.index(oid))
    }

    /// The table or domain that has a constraint.
    pub fn constrained_by(&self, constraint: Oid) -> Option<&Arc<CatalogObject>> {
        self.get(*self.constrained.get(&constraint)?)
    }

    /// All objects in order of OID.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<CatalogObject>> {
        self.objects.values()
    }

    /// As [`Catalog::objects`], each a step that is counted ([`base::work`]): for what a session does.
    pub fn walk(&self) -> impl Iterator<Item = &Arc<CatalogObject>> {
        self.objects.values().counted(16)
    }
}

impl ColumnDesc {
    /// A column that may be NULL, without a default.
    pub fn new(number: i16, name: impl Into<String>, type_oid: Oid, typmod: i32) -> ColumnDesc {
        ColumnDesc {
            number,
            name: name.into(),
            type_oid,
            typmod,
            not_null: false,
            default: None,
            dropped: false,
            missing: None,
            missing_row: None,
            identity: None,
            generated: None,
            default_oid: None,
            collation: None,
        }
    }
}

impl ConstraintDesc {
    /// A constraint that is valid and always looked at at once.
    pub fn new(oid: Oid, name: impl Into<String>, columns: Vec<i16>, kind: ConstraintKind) -> ConstraintDesc {
        let name = name.into();
        ConstraintDesc {
            oid,
            name,
            columns,
            kind,
            deferrable: false,
            deferred: false,
            not_valid: false,
            no_inherit: false,
            comment: None,
        }
    }
}

impl IndexKey {
    /// In the order that a constraint's index has.
    pub fn ascending(column: i16) -> IndexKey {
        IndexKey { column, descending: false, nulls_first: false }
    }
}

impl IndexDesc {
    /// An index over columns, of all rows, neither unique nor of a constraint.
    pub fn new(oid: Oid, schema: Oid, name: impl Into<String>, table: Oid, keys: Vec<IndexKey>) -> IndexDesc {
        IndexDesc {
            oid,
            schema,
            name: name.into(),
            table,
            keys,
            unique: false,
            primary: false,
            expressions: Vec::new(),
            predicate: None,
            include: Vec::new(),
            deferrable: false,
            nulls_not_distinct: false,
            invalid: false,
            unready: false,
            classes: Vec::new(),
            collations: Vec::new(),
            hash: false,
            options: Vec::new(),
            comment: None,
        }
    }

    /// The kind of the constraint that it enforces, if it is that of a key.
    pub fn demand(&self) -> ConstraintKind {
        match self.primary {
            true => ConstraintKind::PrimaryKey { index: self.oid },
            false => ConstraintKind::Unique { index: self.oid },
        }
    }

    /// Whether its entries need code: it is over expressions, or has some rows only.
    pub fn needs_code(&self) -> bool {
        self.predicate.is_some() || !self.expressions.is_empty()
    }

    /// Whether at no time two live rows have one key.
    pub fn is_immediate(&self) -> bool {
        self.unique && !self.deferrable
    }

    /// Whether a key is in the order that a constraint's index has it.
    pub fn is_default_order(&self, key: usize) -> bool {
        let class = self.classes.get(key).copied().unwrap_or(0);
        class == 0 && self.keys.get(key).is_none_or(|k| !k.descending && !k.nulls_first)
    }

    /// The expression that a key stands for, if it is one.
    pub fn expression(&self, key: usize) -> Option<&IndexExpression> {
        let before = self.keys.get(..key)?.iter().filter(|k| k.column == 0).count();
        self.keys.get(key).filter(|k| k.column == 0)?;
        self.expressions.get(before)
    }
}

impl TableDesc {
    /// An ordinary table; it has no layout yet.
    pub fn new(oid: Oid, schema: Oid, name: impl Into<String>, owner: Oid, columns: Vec<ColumnDesc>) -> TableDesc {
        TableDesc {
            oid,
            schema,
            name: name.into(),
            owner,
            kind: TableKind::Table,
            columns: columns.into(),
            layouts: Shared::default(),
            constraints: Shared::default(),
            options: Vec::new(),
            comments: Shared::default(),
            storage: 1,
            view: None,
            persistence: Persistence::default(),
            on_commit: OnCommit::default(),
            triggers_off: false,
        }
    }

    /// A live column by name.
    pub fn column(&self, name: &str) -> Option<&ColumnDesc> {
        self.columns.iter().find(|c| !c.dropped && c.name == name)
    }

    /// Live columns in order.
    pub fn live_columns(&self) -> impl Iterator<Item = &ColumnDesc> {
        self.columns.iter().filter(|c| !c.dropped)
    }

    /// Whether it has rows of its own.
    pub fn is_stored(&self) -> bool {
        self.kind != TableKind::View
    }

    /// The layout new rows are written with.
    pub fn newest_layout(&self) -> &LayoutDesc {
        self.layouts.last().expect("a table has at least one layout")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_lead_to_what_has_them() {
        let check =
            |oid| ConstraintDesc::new(Oid(oid), "c", vec![], ConstraintKind::Check { expression: "true".into() });
        let table = |oid, checks: &[u32]| {
            let mut table = TableDesc::new(Oid(oid), Oid(1), format!("t{oid}"), Oid(10), vec![]);
            table.constraints = checks.iter().map(|oid| check(*oid)).collect();
            Arc::new(CatalogObject::Table(table))
        };
        let mut catalog = Catalog::default();
        let owners = |catalog: &Catalog| {
            [100, 101, 102].map(|oid| catalog.constrained_by(Oid(oid)).map(|object| object.oid().0))
        };
        catalog.put(table(20, &[100, 101]));
        catalog.put(table(21, &[102]));
        assert_eq!(owners(&catalog), [Some(20), Some(20), Some(21)]);
        let before = catalog.clone();
        catalog.put(table(20, &[101]));
        catalog.remove(Oid(21));
        assert_eq!((owners(&catalog), owners(&before)), ([None, Some(20), None], [Some(20), Some(20), Some(21)]));
        let counted = base::work::total();
        assert_eq!((before.walk().count(), before.objects().count()), (2, 2));
        assert!(base::work::total() - counted >= 32);
    }
}
