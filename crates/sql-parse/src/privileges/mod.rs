//! Roles and privileges: who may do what with an object.
//!
//! Responsible for: memberships ([`roles`]), access lists ([`acl`]), the questions that binding, definitions and the
//! `has_*_privilege` functions ask, and PostgreSQL's refusals.
//! Not responsible for: when a question is asked. A query is checked once when it is bound (`sql_bind::permissions`), a
//! definition before it is run (`sql_ddl::rights`); nothing is asked per row.
//! Invariant: an object without an access list of its own has the one that its kind begins with ([`acl::initial`]).

pub mod acl;
pub mod roles;
pub mod shown;

use base::{Error, Oid, Result, SqlState};
use engine_api::{AclItem, Catalog, CatalogObject, Privileges, TableDesc, TableKind, TypeDesc, oids};

/// Kinds of objects as privileges know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A table, and what is read like one.
    Table,
    /// A column.
    Column,
    /// A sequence.
    Sequence,
    /// A schema.
    Schema,
    /// A database.
    Database,
    /// A function.
    Function,
    /// A type.
    Type,
    /// A language.
    Language,
}

impl Class {
    /// What can be granted on it.
    pub fn all(self) -> Privileges {
        use Privileges as P;
        match self {
            Class::Table => P::INSERT | P::SELECT | P::UPDATE | P::DELETE | P::TRUNCATE | P::REFERENCES | P::TRIGGER,
            Class::Column => P::INSERT | P::SELECT | P::UPDATE | P::REFERENCES,
            Class::Sequence => P::USAGE | P::SELECT | P::UPDATE,
            Class::Schema => P::USAGE | P::CREATE,
            Class::Database => P::CREATE | P::TEMPORARY | P::CONNECT,
            Class::Function => P::EXECUTE,
            Class::Type | Class::Language => P::USAGE,
        }
    }

    /// As messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Class::Table => "table",
            Class::Column => "column",
            Class::Sequence => "sequence",
            Class::Schema => "schema",
            Class::Database => "database",
            Class::Function => "function",
            Class::Type => "type",
            Class::Language => "language",
        }
    }
}

/// A role that asks, and the database it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// The role.
    pub role: Oid,
    /// The database: its owner is the member of `pg_database_owner`.
    pub database: Oid,
}

/// What an object is to privileges; `None` for what has none.
pub fn class_of(object: &CatalogObject) -> Option<Class> {
    match object {
        CatalogObject::Table(_) => Some(Class::Table),
        CatalogObject::Sequence(_) => Some(Class::Sequence),
        CatalogObject::Schema(_) => Some(Class::Schema),
        CatalogObject::Database(_) => Some(Class::Database),
        CatalogObject::Type(_) => Some(Class::Type),
        _ => None,
    }
}

/// Who owns an object.
pub fn owner_of(catalog: &Catalog, object: &CatalogObject) -> Option<Oid> {
    match object {
        CatalogObject::Table(o) => Some(o.owner),
        CatalogObject::Sequence(o) => Some(o.owner),
        CatalogObject::Schema(o) => Some(o.owner),
        CatalogObject::Database(o) => Some(o.owner),
        CatalogObject::Type(o) => Some(o.owner),
        CatalogObject::Extension(o) => Some(o.owner),
        CatalogObject::Index(o) => catalog.table(o.table).map(|t| t.owner),
        _ => None,
    }
}

/// The object with another owner; `None` if it has none of its own.
pub fn with_owner(object: &CatalogObject, owner: Oid) -> Option<CatalogObject> {
    let mut object = object.clone();
    match &mut object {
        CatalogObject::Table(o) => o.owner = owner,
        CatalogObject::Sequence(o) => o.owner = owner,
        CatalogObject::Schema(o) => o.owner = owner,
        CatalogObject::Database(o) => o.owner = owner,
        CatalogObject::Type(o) => o.owner = owner,
        CatalogObject::Extension(o) => o.owner = owner,
        _ => return None,
    }
    Some(object)
}

/// The access list of an object.
pub fn items_of(catalog: &Catalog, object: &CatalogObject) -> Vec<AclItem> {
    if let Some(items) = catalog.privileges(object.oid()).and_then(|p| p.items.as_ref()) {
        return items.clone();
    }
    match (class_of(object), owner_of(catalog, object)) {
        (Some(class), Some(owner)) => acl::initial(class, owner),
        _ => Vec::new(),
    }
}

/// What a role may do with an object, by itself, by what it is a member of, and as everybody may.
pub fn held(catalog: &Catalog, who: Who, object: &CatalogObject) -> Privileges {
    let Some(class) = class_of(object) else { return Privileges::NONE };
    if roles::is_superuser(catalog, who.role) {
        return class.all();
    }
    let roles = roles::with_privileges_of(catalog, who);
    let mut held = sum(&items_of(catalog, object), &roles, |item| item.privileges);
    let has = |role| roles.contains(&role);
    match class {
        Class::Table if !in_system_schema(object) => {
            if has(oids::ROLE_READ_ALL_DATA) {
                held = held | Privileges::SELECT;
            }
            if has(oids::ROLE_WRITE_ALL_DATA) {
                held = held | Privileges::INSERT | Privileges::UPDATE | Privileges::DELETE;
            }
        }
        Class::Schema if has(oids::ROLE_READ_ALL_DATA) || has(oids::ROLE_WRITE_ALL_DATA) => {
            held = held | Privileges::USAGE;
        }
        Class::Sequence => {
            if has(oids::ROLE_READ_ALL_DATA) {
                held = held | Privileges::SELECT;
            }
            if has(oids::ROLE_WRITE_ALL_DATA) {
                held = held | Privileges::UPDATE;
            }
        }
        _ => {}
    }
    held
}

fn in_system_schema(object: &CatalogObject) -> bool {
    [oids::SCHEMA_PG_CATALOG, oids::SCHEMA_INFORMATION_SCHEMA].contains(&object.namespace().1)
}

/// What a role may grant on an object: its owner everything.
pub fn grantable(catalog: &Catalog, who: Who, object: &CatalogObject) -> Privileges {
    let Some(class) = class_of(object) else { return Privileges::NONE };
    if owns(catalog, who, object) {
        return class.all();
    }
    let roles = roles::with_privileges_of(catalog, who);
    sum(&items_of(catalog, object), &roles, |item| item.grantable)
}

/// What a role may grant by an access list of an object with this owner.
pub fn options_by(catalog: &Catalog, who: Who, items: &[AclItem], owner: Oid) -> Privileges {
    if roles::has_privileges_of(catalog, who, owner) {
        return Privileges::ALL;
    }
    sum(items, &roles::with_privileges_of(catalog, who), |item| item.grantable)
}

/// What a role may do with a column, its table apart.
pub fn held_on_column(catalog: &Catalog, who: Who, table: Oid, column: i16) -> Privileges {
    match catalog.privileges(table).and_then(|p| p.columns.get(&column)) {
        Some(items) => sum(items, &roles::with_privileges_of(catalog, who), |item| item.privileges),
        None => Privileges::NONE,
    }
}

/// What a role may grant on a column, its table apart: by the list that the column has of its own.
pub fn grantable_on_column(catalog: &Catalog, who: Who, table: &TableDesc, column: i16) -> Privileges {
    match catalog.privileges(table.oid).and_then(|p| p.columns.get(&column)) {
        Some(items) => options_by(catalog, who, items, table.owner),
        None => Privileges::NONE,
    }
}

fn sum(items: &[AclItem], roles: &[Oid], part: impl Fn(&AclItem) -> Privileges) -> Privileges {
    let counts = |item: &&AclItem| !item.grantee.is_valid() || roles.contains(&item.grantee);
    items.iter().filter(counts).map(part).fold(Privileges::NONE, |sum, part| sum | part)
}

/// Whether a role counts as the owner of an object.
pub fn owns(catalog: &Catalog, who: Who, object: &CatalogObject) -> bool {
    owner_of(catalog, object).is_some_and(|owner| roles::has_privileges_of(catalog, who, owner))
}

/// Refuses unless a role has all of `wanted` on an object.
///
/// # Errors
/// 42501
pub fn require(catalog: &Catalog, who: Who, object: &CatalogObject, wanted: Privileges) -> Result<()> {
    if held(catalog, who, object).contains(wanted) {
        return Ok(());
    }
    Err(denied_on(object))
}

/// The type that a role may not name for want of USAGE, if a type is one or of arrays of one.
pub fn unusable_type(catalog: &Catalog, who: Who, ty: Oid) -> Option<&TypeDesc> {
    let made = catalog.user_type(types::oid::element_of(ty).unwrap_or(ty))?;
    let object = catalog.get(made.oid)?;
    (!held(catalog, who, object).contains(Privileges::USAGE)).then_some(made)
}

/// Refuses unless a role owns an object.
///
/// # Errors
/// 42501
pub fn require_owner(catalog: &Catalog, who: Who, object: &CatalogObject) -> Result<()> {
    if owns(catalog, who, object) {
        return Ok(());
    }
    Err(not_owner(noun(object), object.name()))
}

/// What an object is called in messages.
pub fn noun(object: &CatalogObject) -> &'static str {
    match object {
        CatalogObject::Index(_) => "index",
        CatalogObject::Extension(_) => "extension",
        CatalogObject::Table(table) => table_noun(table),
        object => class_of(object).map_or("object", Class::name),
    }
}

/// What is read like a table is called by what it is.
pub(crate) fn table_noun(table: &TableDesc) -> &'static str {
    match table.kind {
        TableKind::View => "view",
        TableKind::MaterializedView => "materialized view",
        _ => "table",
    }
}

/// The refusal of what nobody has granted on an object.
#[cold]
pub fn denied_on(object: &CatalogObject) -> Error {
    let message = format!("permission denied for {} {}", noun(object), object.name());
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

/// The refusal of what only an owner may do.
#[cold]
pub fn not_owner(what: &str, name: &str) -> Error {
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, format!("must be owner of {what} {name}"))
}

/// The refusal of what nobody has granted.
#[cold]
pub fn denied(class: Class, name: &str) -> Error {
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, format!("permission denied for {} {name}", class.name()))
}

/// System relations that only superusers may read; of views over a function that is the superusers' own, the function; and the role
/// that may read it as well.
const SECRET: [(&str, Option<&str>, Option<Oid>); 12] = [
    ("pg_authid", None, None),
    ("pg_config", Some("pg_config"), None),
    ("pg_file_settings", Some("pg_show_all_file_settings"), None),
    ("pg_hba_file_rules", Some("pg_hba_file_rules"), None),
    ("pg_ident_file_mappings", Some("pg_ident_file_mappings"), None),
    ("pg_largeobject", None, None),
    ("pg_replication_origin_status", Some("pg_show_replication_origin_status"), None),
    ("pg_shadow", None, None),
    ("pg_shmem_allocations", Some("pg_get_shmem_allocations"), Some(oids::ROLE_READ_ALL_STATS)),
    ("pg_statistic", None, None),
    ("pg_statistic_ext_data", None, None),
    ("pg_user_mapping", None, None),
];

/// The role that may read a system relation that only superusers may read otherwise.
pub fn reader_of(relation: &str) -> Option<Oid> {
    SECRET.iter().find(|(name, ..)| *name == relation)?.2
}

/// Whether only superusers may read a system relation.
pub fn is_secret(relation: &str) -> bool {
    SECRET.iter().any(|(name, ..)| *name == relation)
}

/// The refusal of a system relation that only superusers may read, and some of them whoever may read all data.
pub fn hidden(catalog: &Catalog, who: Who, relation: &str, is_view: bool) -> Option<Error> {
    if roles::is_superuser(catalog, who.role) {
        return None;
    }
    let (_, function, reader) = SECRET.iter().find(|(name, ..)| *name == relation)?;
    if reader.is_some_and(|role| roles::has_privileges_of(catalog, who, role)) {
        return None;
    }
    let may_read = roles::has_privileges_of(catalog, who, oids::ROLE_READ_ALL_DATA);
    match function {
        Some(function) if may_read => Some(denied(Class::Function, function)),
        _ if may_read => None,
        _ => Some(denied_on_system(relation, is_view)),
    }
}

/// The refusal of what nobody has granted on a system relation.
#[cold]
pub fn denied_on_system(relation: &str, is_view: bool) -> Error {
    let noun = if is_view { "view" } else { Class::Table.name() };
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, format!("permission denied for {noun} {relation}"))
}
