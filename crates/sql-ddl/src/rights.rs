//! Whether the current role may define what a statement defines. Asked before the statement is run, for whoever is no
//! superuser; what is not there is left to the statement to complain about.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, ColumnDesc, Privileges, TableDesc, TableKind, TypeDesc, TypeKind, oids};
use rupg_sql::nodes::{
    CommentStmt, CreateSchemaStmt, CreateStmt, DropStmt, Node, ObjectType, RangeVar, ReindexObjectType, ReindexStmt,
    RenameStmt, TruncateStmt,
};
use sql_bind as bind;
use sql_parse::names::quote_name;
use sql_parse::privileges;

use super::Cx;
use super::names::strings;
use super::role::{denied, require_member};

/// What the current role is asked for before a statement.
type Check<'n> = Box<dyn FnOnce(&mut Cx<'_>) -> Result<()> + 'n>;

/// Refuses what the current role may not do. Answers whether the statement is a definition: one that has no entry here is not run.
///
/// # Errors
/// 42501
pub(super) fn check(cx: &mut Cx<'_>, node: &Node) -> Result<bool> {
    match of(node) {
        None => Ok(false),
        Some(_) if cx.session.is_superuser() => Ok(true),
        Some(check) => check(cx).map(|()| true),
    }
}

/// The check before a definition; `None` if the statement is none.
fn of(node: &Node) -> Option<Check<'_>> {
    Some(match node {
        Node::AlterTableStmt(stmt) => Box::new(|cx| own_relation(cx, stmt.relation.as_deref())),
        Node::AlterObjectSchemaStmt(stmt) => Box::new(|cx| own_relation(cx, stmt.relation.as_deref())),
        Node::AlterSeqStmt(stmt) => Box::new(|cx| own_relation(cx, stmt.sequence.as_deref())),
        Node::IndexStmt(stmt) => Box::new(|cx| create_index(cx, stmt.relation.as_deref())),
        Node::CreateTrigStmt(stmt) => Box::new(|cx| on_relation(cx, stmt.relation.as_deref(), Privileges::TRIGGER)),
        Node::RenameStmt(stmt) => Box::new(|cx| rename(cx, stmt)),
        Node::DropStmt(stmt) => Box::new(|cx| own_all(cx, stmt)),
        Node::CommentStmt(stmt) => Box::new(|cx| own_commented(cx, stmt)),
        Node::TruncateStmt(stmt) => Box::new(|cx| truncate(cx, stmt)),
        Node::CreateStmt(stmt) => Box::new(|cx| create_table(cx, stmt)),
        Node::CreateSchemaStmt(stmt) => Box::new(|cx| create_schema(cx, stmt)),
        Node::CreatedbStmt(stmt) => Box::new(|cx| {
            super::database::named_owner(cx, stmt)?;
            create_database(cx)
        }),
        Node::DropdbStmt(stmt) => Box::new(|cx| own_database(cx, stmt.dbname.as_deref())),
        Node::AlterDatabaseStmt(stmt) => Box::new(|cx| own_database(cx, stmt.dbname.as_deref())),
        Node::ReindexStmt(stmt) => Box::new(|cx| own_reindexed(cx, stmt)),
        Node::RefreshMatViewStmt(stmt) => Box::new(|cx| own_stored(cx, stmt.relation.as_deref())),
        // They ask for themselves, once they know what they are about.
        Node::CreateTableAsStmt(_)
        | Node::SelectStmt(_)
        | Node::ViewStmt(_)
        | Node::CreateExtensionStmt(_)
        | Node::AlterExtensionStmt(_)
        | Node::AlterOwnerStmt(_)
        | Node::ReassignOwnedStmt(_)
        | Node::DropOwnedStmt(_)
        | Node::AlterRoleSetStmt(_)
        | Node::AlterSystemStmt(_)
        | Node::AlterDatabaseSetStmt(_)
        | Node::GrantStmt(_)
        | Node::GrantRoleStmt(_)
        | Node::AlterDefaultPrivilegesStmt(_)
        | Node::CreateEnumStmt(_)
        | Node::AlterEnumStmt(_)
        | Node::CreateDomainStmt(_)
        | Node::AlterDomainStmt(_)
        | Node::CreateSeqStmt(_)
        | Node::CreateRoleStmt(_)
        | Node::AlterRoleStmt(_)
        | Node::DropRoleStmt(_) => Box::new(|_| Ok(())),
        _ => return None,
    })
}

fn create_index(cx: &mut Cx<'_>, table: Option<&RangeVar>) -> Result<()> {
    own_relation(cx, table)?;
    match found(cx, table)?.as_deref() {
        Some(CatalogObject::Table(table)) if table.is_stored() => require_schema(cx, table.schema, Privileges::CREATE),
        _ => Ok(()),
    }
}

fn rename(cx: &mut Cx<'_>, stmt: &RenameStmt) -> Result<()> {
    match stmt.renameType {
        ObjectType::OBJECT_SCHEMA => {
            own_schema(cx, stmt.subname.as_deref())?;
            let (catalog, database) = (cx.catalog(), cx.database());
            match stmt.subname.as_deref().and_then(|name| catalog.schema(database, name)) {
                Some(_) => require_database(cx, Privileges::CREATE),
                None => Ok(()),
            }
        }
        ObjectType::OBJECT_DATABASE => rename_database(cx, stmt.subname.as_deref()),
        // A type is looked at by the statement, once it knows which of its kinds it is.
        ObjectType::OBJECT_ROLE
        | ObjectType::OBJECT_TYPE
        | ObjectType::OBJECT_DOMAIN
        | ObjectType::OBJECT_DOMCONSTRAINT => Ok(()),
        ObjectType::OBJECT_COLUMN | ObjectType::OBJECT_TABCONSTRAINT => own_relation(cx, stmt.relation.as_deref()),
        // A new name is a new one in the schema.
        _ => {
            own_relation(cx, stmt.relation.as_deref())?;
            create_in_schema_of(cx, stmt.relation.as_deref())
        }
    }
}

/// What a name means, if anything: a name that is wrong is for the statement to complain of. A schema that is closed comes first.
fn found(cx: &mut Cx<'_>, name: Option<&RangeVar>) -> Result<Option<Arc<CatalogObject>>> {
    match name.map(|name| cx.find_relation(name)) {
        Some(Err(error)) if error.code() == SqlState::INSUFFICIENT_PRIVILEGE => Err(error),
        Some(Ok(object)) => Ok(object),
        _ => Ok(None),
    }
}

fn own_relation(cx: &mut Cx<'_>, name: Option<&RangeVar>) -> Result<()> {
    let Some(object) = found(cx, name)? else { return Ok(()) };
    privileges::require_owner(&cx.catalog(), cx.session.who(), &object)
}

/// What comes into the schema of a relation needs CREATE there.
fn create_in_schema_of(cx: &mut Cx<'_>, name: Option<&RangeVar>) -> Result<()> {
    let Some(object) = found(cx, name)? else { return Ok(()) };
    require_schema(cx, object.namespace().1, Privileges::CREATE)
}

fn on_relation(cx: &mut Cx<'_>, name: Option<&RangeVar>, wanted: Privileges) -> Result<()> {
    let Some(object) = found(cx, name)? else { return Ok(()) };
    privileges::require(&cx.catalog(), cx.session.who(), &object, wanted)
}

fn own_schema(cx: &mut Cx<'_>, name: Option<&str>) -> Result<()> {
    let (catalog, database) = (cx.catalog(), cx.database());
    let found = name.and_then(|name| catalog.schema(database, name)).and_then(|schema| catalog.get(schema.oid));
    found.map_or(Ok(()), |object| privileges::require_owner(&catalog, cx.session.who(), object))
}

fn own_database(cx: &mut Cx<'_>, name: Option<&str>) -> Result<()> {
    let catalog = cx.catalog();
    let found = name.and_then(|name| catalog.database(name)).and_then(|database| catalog.get(database.oid));
    found.map_or(Ok(()), |object| privileges::require_owner(&catalog, cx.session.who(), object))
}

fn rename_database(cx: &mut Cx<'_>, name: Option<&str>) -> Result<()> {
    own_database(cx, name)?;
    let role = cx.session.who().role;
    if name.is_none_or(|name| cx.catalog().database(name).is_none())
        || cx.catalog().role_by_oid(role).is_some_and(|role| role.create_database)
    {
        return Ok(());
    }
    Err(denied("permission denied to rename database"))
}

/// Rows are refreshed by who owns the relation; of what has none the statement complains.
fn own_stored(cx: &mut Cx<'_>, name: Option<&RangeVar>) -> Result<()> {
    match found(cx, name)?.as_deref() {
        Some(object @ CatalogObject::Table(table)) if table.is_stored() => {
            privileges::require_owner(&cx.catalog(), cx.session.who(), object)
        }
        _ => Ok(()),
    }
}

fn own_reindexed(cx: &mut Cx<'_>, stmt: &ReindexStmt) -> Result<()> {
    match stmt.kind {
        ReindexObjectType::REINDEX_OBJECT_SCHEMA => own_schema(cx, stmt.name.as_deref()),
        ReindexObjectType::REINDEX_OBJECT_INDEX => match found(cx, stmt.relation.as_deref())?.as_deref() {
            Some(index @ CatalogObject::Index(_)) => privileges::require_owner(&cx.catalog(), cx.session.who(), index),
            _ => Ok(()),
        },
        ReindexObjectType::REINDEX_OBJECT_TABLE => own_stored(cx, stmt.relation.as_deref()),
        // Of the system's catalogs, or of another database than this one: that is refused by the statement.
        _ => {
            let own = cx.session.identity().database;
            match stmt.name.as_deref() {
                Some(name) if !name.is_empty() && name != own => Ok(()),
                _ => own_database(cx, Some(&own)),
            }
        }
    }
}

/// Refuses unless the current role owns a made type.
pub(super) fn own_type(cx: &mut Cx<'_>, desc: &TypeDesc) -> Result<()> {
    let who = cx.session.who();
    let catalog = cx.catalog();
    if privileges::roles::has_privileges_of(&catalog, who, desc.owner) {
        return Ok(());
    }
    Err(privileges::not_owner("type", &shown_type(cx, desc)))
}

/// A made type as messages show it: with its schema unless it is found without.
fn shown_type(cx: &mut Cx<'_>, desc: &TypeDesc) -> String {
    let catalog = cx.catalog();
    let path = cx.session.search_path(&catalog);
    let name = quote_name(&desc.name);
    match catalog.get(desc.schema).filter(|_| !bind::is_type_visible(&catalog, &path, &desc.name, desc.oid)) {
        Some(schema) => format!("{}.{name}", quote_name(schema.name())),
        None => name,
    }
}

/// A relation is dropped by its owner or that of its schema; so is a type.
fn own_all(cx: &mut Cx<'_>, stmt: &DropStmt) -> Result<()> {
    use ObjectType as T;
    for node in stmt.objects.iter().flatten() {
        match (stmt.removeType, node) {
            (T::OBJECT_SCHEMA, Node::String(name)) => own_schema(cx, Some(name))?,
            (
                T::OBJECT_TABLE | T::OBJECT_INDEX | T::OBJECT_SEQUENCE | T::OBJECT_VIEW | T::OBJECT_MATVIEW,
                Node::List(list),
            ) => {
                let Some(object) = cx.find_relation(&range_of(strings(list)))? else { continue };
                if is_of_kind(&object, stmt.removeType) && !owns_schema(cx, object.namespace().1) {
                    privileges::require_owner(&cx.catalog(), cx.session.who(), &object)?;
                }
            }
            (T::OBJECT_TYPE | T::OBJECT_DOMAIN, Node::TypeName(name)) => {
                let Some(desc) = cx.find_type(&super::types::range(&name.names))? else { continue };
                let fits = stmt.removeType == T::OBJECT_TYPE || matches!(desc.kind, engine_api::TypeKind::Domain(_));
                if fits && !owns_schema(cx, desc.schema) {
                    own_type(cx, &desc)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn owns_schema(cx: &mut Cx<'_>, schema: Oid) -> bool {
    let (catalog, who) = (cx.catalog(), cx.session.who());
    catalog.get(schema).is_some_and(|schema| privileges::owns(&catalog, who, schema))
}

/// Whether a relation is what a statement calls it; if not, the statement says so, whoever owns it.
fn is_of_kind(object: &CatalogObject, kind: ObjectType) -> bool {
    use ObjectType as T;
    let of = |wanted: TableKind| matches!(object, CatalogObject::Table(table) if table.kind == wanted);
    match kind {
        T::OBJECT_TABLE => of(TableKind::Table),
        T::OBJECT_VIEW => of(TableKind::View),
        T::OBJECT_MATVIEW => of(TableKind::MaterializedView),
        T::OBJECT_INDEX => matches!(object, CatalogObject::Index(_)),
        T::OBJECT_SEQUENCE => matches!(object, CatalogObject::Sequence(_)),
        _ => true,
    }
}

fn own_commented(cx: &mut Cx<'_>, stmt: &CommentStmt) -> Result<()> {
    use ObjectType as T;
    let mut names = match &stmt.object {
        Some(Node::List(list)) => strings(list),
        Some(Node::String(name)) => vec![name.to_string()],
        _ => return Ok(()),
    };
    match stmt.objtype {
        T::OBJECT_SCHEMA => own_schema(cx, names.first().map(String::as_str)),
        T::OBJECT_DATABASE => own_database(cx, names.first().map(String::as_str)),
        T::OBJECT_COLUMN => {
            let column = names.pop().unwrap_or_default();
            let found = cx.find_relation(&range_of(names))?;
            match found.as_deref() {
                Some(object @ CatalogObject::Table(table)) if table.column(&column).is_some() => {
                    own_under_name(cx, object)
                }
                _ => Ok(()),
            }
        }
        T::OBJECT_TABLE | T::OBJECT_INDEX | T::OBJECT_SEQUENCE | T::OBJECT_VIEW | T::OBJECT_MATVIEW => {
            match cx.find_relation(&range_of(names))? {
                Some(object) if is_of_kind(&object, stmt.objtype) => {
                    privileges::require_owner(&cx.catalog(), cx.session.who(), &object)
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Refuses unless the current role owns a relation, for what PostgreSQL calls one whatever its kind: its columns.
fn own_under_name(cx: &mut Cx<'_>, object: &CatalogObject) -> Result<()> {
    if privileges::owns(&cx.catalog(), cx.session.who(), object) {
        return Ok(());
    }
    Err(privileges::not_owner("relation", object.name()))
}

fn range_of(mut names: Vec<String>) -> RangeVar {
    RangeVar {
        relname: names.pop().map(Into::into),
        schemaname: names.pop().map(Into::into),
        location: -1,
        ..Default::default()
    }
}

fn truncate(cx: &mut Cx<'_>, stmt: &TruncateStmt) -> Result<()> {
    for node in stmt.relations.iter().flatten() {
        // What is no table is refused as that, whoever may do what with it.
        let Node::RangeVar(name) = node else { continue };
        match cx.table_named(name) {
            Err(error) if error.code() != SqlState::INSUFFICIENT_PRIVILEGE => break,
            _ => on_relation(cx, Some(name), Privileges::TRUNCATE)?,
        }
    }
    Ok(())
}

/// The schema of a new table has to be open, before anything is said about what is in it.
fn create_table(cx: &mut Cx<'_>, stmt: &CreateStmt) -> Result<()> {
    let Some(name) = stmt.relation.as_deref() else { return Ok(()) };
    match cx.permanent_schema(name) {
        Err(error) if error.code() == SqlState::INSUFFICIENT_PRIVILEGE => Err(error.at_byte(cx.sql, name.location)),
        Ok(None) => super::temporary::may_create(cx).map_err(|error| error.at_byte(cx.sql, name.location)),
        _ => Ok(()),
    }
}

/// Whether a foreign key may point where it does: REFERENCES on the table, or on all of the columns.
pub(super) fn may_reference(cx: &mut Cx<'_>, table: &TableDesc, columns: &[i16]) -> Result<()> {
    let (catalog, who) = (cx.catalog(), cx.session.who());
    let Some(object) = catalog.get(table.oid) else { return Ok(()) };
    let on_column =
        |&number: &i16| privileges::held_on_column(&catalog, who, table.oid, number).contains(Privileges::REFERENCES);
    if !columns.is_empty() && columns.iter().all(on_column) {
        return Ok(());
    }
    privileges::require(&catalog, who, object, Privileges::REFERENCES)
}

fn create_schema(cx: &mut Cx<'_>, stmt: &CreateSchemaStmt) -> Result<()> {
    let role = stmt.authrole.as_ref().map(|role| super::role::role_oid(cx, role)).transpose()?;
    require_database(cx, Privileges::CREATE)?;
    role.map_or(Ok(()), |role| require_member(cx, role))
}

fn create_database(cx: &mut Cx<'_>) -> Result<()> {
    let role = cx.session.who().role;
    if cx.catalog().role_by_oid(role).is_some_and(|role| role.create_database) {
        return Ok(());
    }
    Err(denied("permission denied to create database"))
}

/// Refuses to make an object, or to change one into it, of types that a role may not use: those of new columns, that of a domain.
pub(super) fn require_types(cx: &mut Cx<'_>, before: Option<&CatalogObject>, object: &CatalogObject) -> Result<()> {
    match object {
        CatalogObject::Table(table) => {
            let old = match before {
                Some(CatalogObject::Table(table)) => table.columns.as_slice(),
                _ => &[],
            };
            require_types_of_columns(cx, old, &table.columns)
        }
        CatalogObject::Type(TypeDesc { kind: TypeKind::Domain(domain), .. }) if before.is_none() => {
            require_type(cx, domain.base)
        }
        _ => Ok(()),
    }
}

/// The same of columns: of those that are new, or of another type than before. For a new relation PostgreSQL looks at them before it looks whether the
/// relation's name is taken.
pub(super) fn require_types_of_columns(cx: &mut Cx<'_>, before: &[ColumnDesc], columns: &[ColumnDesc]) -> Result<()> {
    let is_new = |(at, column): &(usize, &ColumnDesc)| {
        !column.dropped && before.get(*at).is_none_or(|old| old.type_oid != column.type_oid)
    };
    let mut new = columns.iter().enumerate().filter(is_new);
    new.try_for_each(|(_, column)| require_type(cx, column.type_oid))
}

/// Refuses whoever may not use a type. A statement asks before it looks at the rows, or at what depends on a column.
pub(super) fn require_type(cx: &mut Cx<'_>, ty: Oid) -> Result<()> {
    match privileges::unusable_type(&cx.catalog(), cx.session.who(), ty) {
        None => Ok(()),
        Some(desc) => Err(privileges::denied(privileges::Class::Type, &shown_type(cx, desc))),
    }
}

/// Refuses unless the current role has a privilege on the session's database.
pub(super) fn require_database(cx: &mut Cx<'_>, wanted: Privileges) -> Result<()> {
    let (catalog, database) = (cx.catalog(), cx.database());
    match catalog.get(database) {
        Some(object) => privileges::require(&catalog, cx.session.who(), object, wanted),
        None => Err(Error::new(SqlState::INVALID_CATALOG_NAME, "the session's database does not exist")),
    }
}

/// The name of a schema that all databases share and no catalog has.
fn system_schema(schema: Oid) -> Option<&'static str> {
    match schema {
        oids::SCHEMA_PG_CATALOG => Some("pg_catalog"),
        oids::SCHEMA_INFORMATION_SCHEMA => Some("information_schema"),
        _ => None,
    }
}

/// Whether a schema is every database's.
pub(super) fn is_system_schema(schema: Oid) -> bool {
    system_schema(schema).is_some()
}

/// Nobody makes anything in a schema that is every database's.
fn closed_schema(cx: &Cx<'_>, name: &str) -> Error {
    match cx.session.is_superuser() {
        true => Error::unsupported(format!("objects of one's own in schema {name} are not supported")),
        false => Error::new(SqlState::INSUFFICIENT_PRIVILEGE, format!("permission denied for schema {name}")),
    }
}

/// Refuses unless the current role has a privilege on a schema.
pub(super) fn require_schema(cx: &mut Cx<'_>, schema: Oid, wanted: Privileges) -> Result<()> {
    let creates = wanted.contains(Privileges::CREATE);
    if let Some(name) = system_schema(schema) {
        return if creates { Err(closed_schema(cx, name)) } else { Ok(()) };
    }
    if cx.session.is_superuser() {
        return Ok(());
    }
    let catalog = cx.catalog();
    let own = cx.session.temporary_schema_name();
    if catalog.get(schema).is_some_and(|object| object.name() == own) {
        return if creates { super::temporary::may_create(cx) } else { Ok(()) };
    }
    let Some(object) = catalog.get(schema).filter(|o| matches!(&***o, CatalogObject::Schema(_))) else { return Ok(()) };
    privileges::require(&catalog, cx.session.who(), object, wanted)
}

/// Whether a relation is the current role's to maintain, and whether it can be; says so if not.
pub(super) fn may_maintain(cx: &mut Cx<'_>, table: &TableDesc, verb: &str) -> bool {
    let (catalog, database, who) = (cx.catalog(), cx.database(), cx.session.who());
    let may = |oid: Oid| catalog.get(oid).is_some_and(|object| privileges::owns(&catalog, who, object));
    let message = if !may(table.oid) && !may(database) {
        format!("skipping \"{}\" --- only table or database owner can {verb} it", table.name)
    } else if table.kind == TableKind::View {
        format!("skipping \"{}\" --- cannot {verb} non-tables or special system tables", table.name)
    } else {
        return true;
    };
    cx.warning(SqlState::WARNING, message);
    false
}
