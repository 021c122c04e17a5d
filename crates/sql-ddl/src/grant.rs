//! GRANT and REVOKE on objects.

use base::{Error, Oid, Result, SqlState};
use engine_api::{AclItem, Catalog, CatalogObject, Privileges, PrivilegesDesc, TableKind, TableLockMode};
use rupg_sql::nodes::{AccessPriv, DropBehavior, GrantStmt, GrantTargetType, Node, ObjectType, RoleSpecType};
use sql_ir::system_column::SystemColumn;
use sql_parse::privileges::acl::{self, Change};
use sql_parse::privileges::{self, Class, class_of, owner_of, roles};

use super::Cx;
use super::names::strings;
use super::role::{role_name, role_oid};

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

impl Request {
    /// What everybody has nobody can grant further.
    pub(super) fn refuse_options_for_public(&self) -> Result<()> {
        if self.is_grant && self.option && self.grantees.iter().any(|grantee| !grantee.is_valid()) {
            return Err(invalid("grant options can only be granted to roles"));
        }
        Ok(())
    }
}

pub(super) async fn grant(cx: &mut Cx<'_>, stmt: &GrantStmt) -> Result<&'static str> {
    let class = class_named(stmt.objtype)?;
    if let Some(grantor) = &stmt.grantor
        && role_oid(cx, grantor)? != cx.session.who().role
    {
        return Err(Error::unsupported("grantor must be current user"));
    }
    if matches!(class, Class::Function | Class::Type | Class::Language) {
        let request = request(cx, stmt, class)?;
        if class != Class::Type {
            request.refuse_options_for_public()?;
        }
        for oid in super::grant_open::keep(cx, stmt, &request, class)? {
            grant_on(cx, &request, class, oid).await?;
        }
        return Ok(if stmt.is_grant { "GRANT" } else { "REVOKE" });
    }
    let objects = objects(cx, stmt, class).await?;
    let request = request(cx, stmt, class)?;
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
        found.extend(catalog.walk().filter(inside).map(|o| o.oid()));
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
    // What decides about columns, too, is the list as it was.
    let before = privileges::items_of(&catalog, &object);
    let mut changed = false;
    if !wanted.is_empty() {
        let place = GrantTarget {
            object: &object,
            owner,
            class: actual,
            column: None,
            name: format!("\"{}\"", object.name()),
            wanted,
            all: request.whole.is_none(),
        };
        let mut items = before.clone();
        change(cx, &catalog, request, &place, &mut items, &[])?;
        // Whatever came of it, the list says from here on what it says.
        list.items = Some(items);
        changed = true;
    }
    for (column, wanted) in columns_of(request, &object, wanted)? {
        changed |= grant_on_column(cx, request, &object, &column, wanted, &before, &mut list)?;
    }
    if changed { cx.put(CatalogObject::Privileges(list)).await } else { Ok(()) }
}

/// A column as GRANT sees it: its number and its name.
type Column = (i16, String);

/// The columns that a statement is about, in their order, and what is asked for each: what is named, and what is revoked from
/// the whole relation.
fn columns_of(request: &Request, object: &CatalogObject, whole: Privileges) -> Result<Vec<(Column, Privileges)>> {
    let own: Vec<Column> = match object {
        CatalogObject::Table(table) => {
            table.live_columns().map(|column| (column.number, column.name.clone())).collect()
        }
        CatalogObject::Sequence(_) => {
            let names = ["last_value", "log_cnt", "is_called"];
            (1..).zip(names).map(|(number, name)| (number, name.to_string())).collect()
        }
        _ => return Ok(Vec::new()),
    };
    let is_view = matches!(object, CatalogObject::Table(table) if table.kind == TableKind::View);
    // A view has none of them.
    let system = SystemColumn::ALL.into_iter().rev().filter(|_| !is_view);
    let system = system.map(|column| (column.number(), column.name().to_string()));
    let from_all = if request.is_grant { Privileges::NONE } else { whole & Class::Column.all() };
    let mut all: Vec<_> = system.chain(own).map(|column| (column, from_all)).collect();
    for (wanted, names) in &request.columns {
        let wanted = wanted.unwrap_or(Class::Column.all());
        for name in names {
            let Some((_, asked)) = all.iter_mut().find(|((_, own), _)| own == name) else {
                let message = format!("column \"{name}\" of relation \"{}\" does not exist", object.name());
                return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
            };
            *asked = *asked | wanted;
        }
    }
    all.retain(|(_, asked)| !asked.is_empty());
    Ok(all)
}

/// What is to be changed, apart from the list.
struct GrantTarget<'a> {
    object: &'a CatalogObject,
    owner: Oid,
    class: Class,
    /// The number of the column that it is about.
    column: Option<i16>,
    /// What warnings call it.
    name: String,
    wanted: Privileges,
    /// All there are were asked for.
    all: bool,
}

impl GrantTarget<'_> {
    /// Whether a role may do anything here, so that it is only warned if it may not grant.
    fn is_open_to(&self, catalog: &Catalog, who: privileges::Who) -> bool {
        let all = self.class.all();
        let on_column = self.column.zip(Some(self.object.oid()));
        privileges::held(catalog, who, self.object).meets(all)
            || on_column
                .is_some_and(|(number, table)| privileges::held_on_column(catalog, who, table, number).meets(all))
    }

    fn denied(&self) -> Error {
        match self.column {
            Some(_) => {
                let message = format!("permission denied for {}", self.name);
                Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
            }
            // GRANT knows tables and sequences only.
            None => privileges::denied(self.class, self.object.name()),
        }
    }
}

/// Changes a list for all grantees in the name of the best grantor. Answers whether there was anything to give.
fn change(
    cx: &Cx<'_>,
    catalog: &Catalog,
    request: &Request,
    place: &GrantTarget<'_>,
    items: &mut Vec<AclItem>,
    above: &[AclItem],
) -> Result<bool> {
    let who = cx.session.who();
    let &GrantTarget { owner, wanted, all, .. } = place;
    let merged: Vec<AclItem> = above.iter().chain(items.iter()).copied().collect();
    let (grantor, available) = best_grantor(catalog, who, wanted, &merged, owner);
    if available.is_empty() && !place.is_open_to(catalog, privileges::Who { role: grantor, ..who }) {
        return Err(place.denied());
    }
    let given = wanted & available;
    let verb = if request.is_grant { "were granted" } else { "could be revoked" };
    let code = if request.is_grant { SqlState::PRIVILEGE_NOT_GRANTED } else { SqlState::PRIVILEGE_NOT_REVOKED };
    if given.is_empty() {
        cx.warning(code, format!("no privileges {verb} for {}", place.name));
    } else if !all && given != wanted {
        cx.warning(code, format!("not all privileges {verb} for {}", place.name));
    }
    request.refuse_options_for_public()?;
    for &grantee in &request.grantees {
        let none = Privileges::NONE;
        let privileges = if request.is_grant || !request.option { given } else { none };
        let grantable = if !request.is_grant || request.option { given } else { none };
        let (is_grant, cascade) = (request.is_grant, request.cascade);
        let change = Change { grantee, grantor, privileges, grantable, is_grant, cascade };
        acl::apply(items, owner, change, &|items, role| {
            privileges::options_by(catalog, privileges::Who { role, ..who }, items, owner)
        })?;
    }
    Ok(!given.is_empty())
}

/// In whose name a role grants: its own if it has all the options, else that of a role it has the rights of that has them, or
/// most of them. The owner has all.
fn best_grantor(
    catalog: &Catalog,
    who: privileges::Who,
    wanted: Privileges,
    items: &[AclItem],
    owner: Oid,
) -> (Oid, Privileges) {
    if who.role == owner || roles::is_superuser(catalog, who.role) {
        return (owner, wanted);
    }
    let mut best = (who.role, Privileges::NONE);
    for role in roles::with_privileges_of(catalog, who) {
        let own = items.iter().filter(|item| item.grantee == role);
        let granted = own.fold(Privileges::NONE, |sum, item| sum | item.grantable) & wanted;
        let options = if role == owner { wanted } else { granted };
        if options == wanted {
            return (role, options);
        }
        if options.0.count_ones() > best.1.0.count_ones() {
            best = (role, options);
        }
    }
    best
}

fn grant_on_column(
    cx: &Cx<'_>,
    request: &Request,
    object: &CatalogObject,
    (number, name): &Column,
    wanted: Privileges,
    above: &[AclItem],
    list: &mut PrivilegesDesc,
) -> Result<bool> {
    let catalog = cx.session.catalog();
    let place = GrantTarget {
        object,
        owner: owner_of(&catalog, object).unwrap_or(Oid::INVALID),
        class: Class::Column,
        column: Some(*number),
        name: format!("column \"{name}\" of relation \"{}\"", object.name()),
        wanted,
        all: wanted == Class::Column.all(),
    };
    let mut items = list.columns.remove(number).unwrap_or_default();
    let changed = change(cx, &catalog, request, &place, &mut items, above)?;
    if !items.is_empty() {
        list.columns.insert(*number, items);
    }
    Ok(changed)
}
