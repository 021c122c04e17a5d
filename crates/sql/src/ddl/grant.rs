//! GRANT and REVOKE on objects.

use base::{Error, Oid, Result, SqlState};
use engine_api::{AclItem, Catalog, CatalogObject, Privileges, PrivilegesDesc, TableLockMode};
use rupg_sql::nodes::{AccessPriv, DropBehavior, GrantStmt, GrantTargetType, Node, ObjectType, RoleSpecType};

use super::Cx;
use super::names::strings;
use super::role::{role_name, role_oid};
use crate::privileges::acl::{self, Change};
use crate::privileges::{self, Class, class_of, owner_of, roles};

/// What a statement asks for.
pub(super) struct Request {
    pub is_grant: bool,
    /// WITH GRANT OPTION, GRANT OPTION FOR.
    pub option: bool,
    pub cascade: bool,
    /// `Oid::INVALID` is PUBLIC.
    pub grantees: Vec<Oid>,
    /// The privileges on whole objects; `None` is ALL.
    pub whole: Option<Privileges>,
    /// Privileges on columns, by name; `None` is ALL.
    columns: Vec<(Option<Privileges>, Vec<String>)>,
}

pub(super) async fn grant(cx: &mut Cx<'_>, stmt: &GrantStmt) -> Result<&'static str> {
    let class = class_named(stmt.objtype)?;
    let request = request(cx, stmt, class)?;
    if let Some(grantor) = &stmt.grantor
        && role_oid(cx, grantor)? != cx.session.who().role
    {
        return Err(Error::unsupported("grantor must be current user"));
    }
    if matches!(class, Class::Function | Class::Type | Class::Language) {
        super::grant_open::keep(cx, stmt, &request, class)?;
        return Ok(if stmt.is_grant { "GRANT" } else { "REVOKE" });
    }
    let objects = objects(cx, stmt, class).await?;
    for object in objects {
        grant_on(cx, &request, class, object).await?;
    }
    Ok(if stmt.is_grant { "GRANT" } else { "REVOKE" })
}

fn class_named(kind: ObjectType) -> Result<Class> {
    use ObjectType as T;
    Ok(match kind {
        T::OBJECT_TABLE => Class::Table,
        T::OBJECT_SEQUENCE => Class::Sequence,
        T::OBJECT_SCHEMA => Class::Schema,
        T::OBJECT_DATABASE => Class::Database,
        T::OBJECT_FUNCTION | T::OBJECT_PROCEDURE | T::OBJECT_ROUTINE => Class::Function,
        T::OBJECT_TYPE | T::OBJECT_DOMAIN => Class::Type,
        T::OBJECT_LANGUAGE => Class::Language,
        _ => return Err(Error::unsupported("GRANT and REVOKE on this kind of object are not supported")),
    })
}

/// Reads privileges and grantees.
pub(super) fn request(cx: &mut Cx<'_>, stmt: &GrantStmt, class: Class) -> Result<Request> {
    let mut grantees = Vec::with_capacity(stmt.grantees.len());
    for node in stmt.grantees.iter().flatten() {
        let Node::RoleSpec(spec) = node else { continue };
        let is_public = spec.roletype == RoleSpecType::ROLESPEC_PUBLIC;
        grantees.push(match is_public || role_name(cx, spec) == "public" {
            true => Oid::INVALID,
            false => role_oid(cx, spec)?,
        });
    }
    let mut request = Request {
        is_grant: stmt.is_grant,
        option: stmt.grant_option,
        cascade: stmt.behavior == DropBehavior::DROP_CASCADE,
        grantees,
        whole: if stmt.privileges.is_empty() { None } else { Some(Privileges::NONE) },
        columns: Vec::new(),
    };
    for node in stmt.privileges.iter().flatten() {
        let Node::AccessPriv(one) = node else { continue };
        if !one.cols.is_empty() {
            if class != Class::Table {
                return Err(invalid("column privileges are only valid for relations"));
            }
            let wanted = privilege(one, Class::Column)?;
            request.columns.push((wanted, strings(&one.cols)));
            continue;
        }
        match (privilege(one, class)?, &mut request.whole) {
            (Some(wanted), Some(whole)) => *whole = *whole | wanted,
            _ => request.whole = None,
        }
    }
    if request.is_grant && request.option && request.grantees.iter().any(|grantee| !grantee.is_valid()) {
        return Err(invalid("grant options can only be granted to roles"));
    }
    Ok(request)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_GRANT_OPERATION, message)
}

/// A privilege by its name; `None` is ALL.
fn privilege(one: &AccessPriv, class: Class) -> Result<Option<Privileges>> {
    let Some(name) = one.priv_name.as_deref() else { return Ok(None) };
    let upper = name.to_ascii_uppercase();
    let Some(found) = Privileges::named(&upper) else {
        return Err(Error::new(SqlState::SYNTAX_ERROR, format!("unrecognized privilege type \"{name}\"")));
    };
    // GRANT … ON TABLE may name a sequence.
    let usual = class.all() | if class == Class::Table { Class::Sequence.all() } else { Privileges::NONE };
    if usual.contains(found) && (class != Class::Table || found != Privileges::USAGE) {
        return Ok(Some(found));
    }
    // Whether it is one of tables or of a sequence is seen with the object.
    if class == Class::Table && found == Privileges::USAGE {
        return Ok(Some(found));
    }
    let shown = Privileges::NAMES.iter().find(|(_, known)| Privileges::named(known) == Some(found)).map_or("", |n| n.1);
    Err(invalid(format!("invalid privilege type {shown} for {}", class.name())))
}

/// The objects a statement is about.
async fn objects(cx: &mut Cx<'_>, stmt: &GrantStmt, class: Class) -> Result<Vec<Oid>> {
    if stmt.targtype == GrantTargetType::ACL_TARGET_ALL_IN_SCHEMA {
        return all_in_schemas(cx, stmt, class);
    }
    let mut found = Vec::with_capacity(stmt.objects.len());
    for node in stmt.objects.iter().flatten() {
        match (class, node) {
            (Class::Table | Class::Sequence, Node::RangeVar(name)) => {
                let Some(object) = cx.find_relation(name)? else {
                    let message = format!("relation \"{}\" does not exist", super::names::display(name));
                    return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
                };
                check_kind(&object, class)?;
                found.push(object.oid());
            }
            (Class::Schema, Node::String(name)) => {
                let database = cx.database();
                let schema = cx.catalog().schema(database, name).map(|schema| schema.oid);
                found.push(schema.ok_or_else(|| {
                    Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
                })?);
            }
            (Class::Database, Node::String(name)) => {
                let database = cx.catalog().database(name).map(|database| database.oid);
                found.push(database.ok_or_else(|| {
                    Error::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))
                })?);
            }
            _ => return Err(Error::internal("GRANT on an object without a name")),
        }
    }
    Ok(found)
}

fn check_kind(object: &CatalogObject, class: Class) -> Result<()> {
    let wrong = |what: &str| {
        let message = format!("\"{}\" is {what}", object.name());
        Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message))
    };
    match object {
        CatalogObject::Index(_) => wrong("an index"),
        CatalogObject::Sequence(_) => Ok(()),
        _ if class == Class::Sequence => wrong("not a sequence"),
        _ => Ok(()),
    }
}

fn all_in_schemas(cx: &mut Cx<'_>, stmt: &GrantStmt, class: Class) -> Result<Vec<Oid>> {
    let catalog = cx.catalog();
    let database = cx.database();
    let mut found = Vec::new();
    for node in stmt.objects.iter().flatten() {
        let Node::String(name) = node else { continue };
        let Some(schema) = catalog.schema(database, name) else {
            return Err(Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist")));
        };
        super::rights::require_schema(cx, schema.oid, Privileges::USAGE)?;
        let inside = |o: &&std::sync::Arc<CatalogObject>| o.namespace().1 == schema.oid && class_of(o) == Some(class);
        found.extend(catalog.objects().filter(inside).map(|o| o.oid()));
    }
    Ok(found)
}

/// Changes the access list of one object.
async fn grant_on(cx: &mut Cx<'_>, request: &Request, class: Class, oid: Oid) -> Result<()> {
    cx.lock(PrivilegesDesc::oid_for(oid), TableLockMode::ShareRowExclusive).await?;
    let catalog = cx.catalog();
    let Some(object) = catalog.get(oid).cloned() else { return Ok(()) };
    let owner = owner_of(&catalog, &object).unwrap_or(Oid::INVALID);
    let actual = class_of(&object).unwrap_or(class);
    let mut wanted = request.whole.unwrap_or(actual.all());
    if class == Class::Table && actual == Class::Sequence && !actual.all().contains(wanted) {
        let name = object.name();
        let message = format!("sequence \"{name}\" only supports USAGE, SELECT, and UPDATE privileges");
        cx.warning(SqlState::INVALID_GRANT_OPERATION, message);
        wanted = wanted & actual.all();
    } else if !actual.all().contains(wanted) {
        let extra = wanted.without(actual.all()).each().next().unwrap_or_default();
        let shown = Privileges::NAMES.iter().find(|n| Privileges::named(n.1) == Some(extra)).map_or("", |n| n.1);
        return Err(invalid(format!("invalid privilege type {shown} for {}", actual.name())));
    }
    let mut list = catalog.privileges(oid).cloned().unwrap_or_else(|| PrivilegesDesc::initial(oid));
    let items = privileges::items_of(&catalog, &object);
    let mut changed = false;
    if !wanted.is_empty() {
        let all = request.whole.is_none();
        let denied = || privileges::denied(actual, object.name());
        let place = Place { owner, class: actual, name: object.name(), wanted, all };
        let mut items = items.clone();
        if let Some(given) = change(cx, &catalog, request, &place, &mut items, &[], denied)? {
            changed = true;
            if !request.is_grant && actual == Class::Table {
                revoke_from_columns(request, owner, given, &mut list)?;
            }
        }
        list.items = Some(items);
    }
    for (wanted, names) in &request.columns {
        changed |= grant_on_columns(cx, request, &object, *wanted, names, &items, &mut list)?;
    }
    if changed { cx.put(CatalogObject::Privileges(list)).await } else { Ok(()) }
}

/// What is to be changed, apart from the list.
struct Place<'a> {
    owner: Oid,
    class: Class,
    name: &'a str,
    wanted: Privileges,
    /// ALL was said.
    all: bool,
}

/// Changes a list for all grantees in the name of the best grantor. Answers who granted and what.
fn change(
    cx: &Cx<'_>,
    catalog: &Catalog,
    request: &Request,
    place: &Place<'_>,
    items: &mut Vec<AclItem>,
    above: &[AclItem],
    denied: impl Fn() -> Error,
) -> Result<Option<(Oid, Privileges)>> {
    let who = cx.session.who();
    let &Place { owner, class, name, wanted, all } = place;
    let merged: Vec<AclItem> = above.iter().chain(items.iter()).copied().collect();
    let (grantor, available) = best_grantor(catalog, who, wanted, &merged, owner);
    if available.is_empty() {
        let mine = roles::with_privileges_of(catalog, who);
        let any = merged.iter().any(|item| {
            let counts = !item.grantee.is_valid() || mine.contains(&item.grantee);
            counts && (item.privileges | item.grantable).meets(class.all())
        });
        if !any {
            return Err(denied());
        }
    }
    let given = wanted & available;
    let verb = if request.is_grant { "were granted" } else { "could be revoked" };
    let code = if request.is_grant { SqlState::PRIVILEGE_NOT_GRANTED } else { SqlState::PRIVILEGE_NOT_REVOKED };
    if given.is_empty() {
        cx.warning(code, format!("no privileges {verb} for \"{name}\""));
    } else if !all && given != wanted {
        cx.warning(code, format!("not all privileges {verb} for \"{name}\""));
    }
    for &grantee in &request.grantees {
        let none = Privileges::NONE;
        let privileges = if request.is_grant || !request.option { given } else { none };
        let grantable = if !request.is_grant || request.option { given } else { none };
        let (is_grant, cascade) = (request.is_grant, request.cascade);
        acl::apply(items, owner, Change { grantee, grantor, privileges, grantable, is_grant, cascade })?;
    }
    Ok((!given.is_empty()).then_some((grantor, given)))
}

/// In whose name a role grants: the owner's if it can act for it, else that of the role it is with the most options.
fn best_grantor(
    catalog: &Catalog,
    who: privileges::Who,
    wanted: Privileges,
    items: &[AclItem],
    owner: Oid,
) -> (Oid, Privileges) {
    if roles::has_privileges_of(catalog, who, owner) {
        return (owner, wanted);
    }
    let mut best = (who.role, Privileges::NONE);
    for role in roles::with_privileges_of(catalog, who) {
        let own = items.iter().filter(|item| item.grantee == role);
        let options = own.fold(Privileges::NONE, |sum, item| sum | item.grantable) & wanted;
        if options == wanted {
            return (role, options);
        }
        if options.0.count_ones() > best.1.0.count_ones() {
            best = (role, options);
        }
    }
    best
}

fn grant_on_columns(
    cx: &Cx<'_>,
    request: &Request,
    object: &CatalogObject,
    wanted: Option<Privileges>,
    names: &[String],
    above: &[AclItem],
    list: &mut PrivilegesDesc,
) -> Result<bool> {
    let CatalogObject::Table(table) = object else {
        return Err(invalid("column privileges are only valid for relations"));
    };
    let mut changed = false;
    let catalog = cx.session.transaction_catalog();
    for name in names {
        let Some(column) = table.column(name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
        };
        let denied = || {
            let message = format!("permission denied for column \"{name}\" of relation \"{}\"", table.name);
            Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
        };
        let all = wanted.is_none();
        let place = Place {
            owner: table.owner,
            class: Class::Column,
            name,
            wanted: wanted.unwrap_or(Class::Column.all()),
            all,
        };
        let mut items = list.columns.remove(&column.number).unwrap_or_default();
        changed |= change(cx, &catalog, request, &place, &mut items, above, denied)?.is_some();
        if !items.is_empty() {
            list.columns.insert(column.number, items);
        }
    }
    Ok(changed)
}

/// What is revoked from a table is revoked from its columns.
fn revoke_from_columns(
    request: &Request,
    owner: Oid,
    (grantor, given): (Oid, Privileges),
    list: &mut PrivilegesDesc,
) -> Result<()> {
    let given = given & Class::Column.all();
    for items in list.columns.values_mut() {
        for &grantee in &request.grantees {
            let privileges = if request.option { Privileges::NONE } else { given };
            let change =
                Change { grantee, grantor, privileges, grantable: given, is_grant: false, cascade: request.cascade };
            acl::apply(items, owner, change)?;
        }
    }
    list.columns.retain(|_, items| !items.is_empty());
    Ok(())
}
