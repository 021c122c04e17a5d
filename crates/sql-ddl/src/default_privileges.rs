//! ALTER DEFAULT PRIVILEGES, and what new objects get by it.

use base::{Error, Oid, Result, SqlState};
use engine_api::{
    AclItem, Catalog, CatalogObject, DefaultPrivileges, Privileges, PrivilegesDesc, RoleDesc, TableLockMode,
};
use rupg_sql::nodes::{AlterDefaultPrivilegesStmt, Node, ObjectType};
use sql_parse::privileges::acl::{self, Change};
use sql_parse::privileges::{self, Class, class_of, owner_of};

use super::Cx;
use super::grant::{Request, request};
use super::names::strings;
use super::role::{each_role, require_member, role_list};

/// The kinds of objects that have default privileges, with the letters of `pg_default_acl`.
const KINDS: [(Class, char); 5] =
    [(Class::Table, 'r'), (Class::Sequence, 'S'), (Class::Function, 'f'), (Class::Type, 'T'), (Class::Schema, 'n')];

fn class_and_letter(kind: ObjectType) -> Result<(Class, char)> {
    use ObjectType as T;
    let [table, sequence, function, ty, schema] = KINDS;
    Ok(match kind {
        T::OBJECT_TABLE => table,
        T::OBJECT_SEQUENCE => sequence,
        T::OBJECT_FUNCTION | T::OBJECT_ROUTINE | T::OBJECT_PROCEDURE => function,
        T::OBJECT_TYPE => ty,
        T::OBJECT_SCHEMA => schema,
        _ => return Err(Error::unsupported("default privileges of this kind of object are not supported")),
    })
}

/// The list of new objects of a kind that nobody has said anything about; in a schema, what comes on top of it.
fn usual(kind: char, schema: Oid, creator: Oid) -> Vec<AclItem> {
    let class = KINDS.iter().find(|(_, letter)| *letter == kind).filter(|_| !schema.is_valid());
    class.map_or_else(Vec::new, |(class, _)| acl::initial(*class, creator))
}

fn letter(class: Class) -> Option<char> {
    KINDS.iter().find(|(known, _)| *known == class).map(|(_, letter)| *letter)
}

pub(super) async fn alter(cx: &mut Cx<'_>, stmt: &AlterDefaultPrivilegesStmt) -> Result<&'static str> {
    const TAG: &str = "ALTER DEFAULT PRIVILEGES";
    let action = stmt.action.as_deref().ok_or_else(|| Error::internal("default privileges without an action"))?;
    let (class, kind) = class_and_letter(action.objtype)?;
    let request = request(cx, action, class)?;
    if class == Class::Function && !request.is_grant {
        // Everybody may use every one of them (`grant_open`).
        let message = format!("default privileges that take rights on a {} away are not supported", class.name());
        return Err(Error::unsupported(message));
    }
    if let Some(wrong) = request.whole.map(|whole| whole.without(class.all())).filter(|extra| !extra.is_empty()) {
        let extra = wrong.each().next().unwrap_or_default();
        let shown = Privileges::NAMES.iter().find(|n| Privileges::named(n.1) == Some(extra)).map_or("", |n| n.1);
        let message =
            format!("invalid privilege type {shown} for {}", if kind == 'r' { "relation" } else { class.name() });
        return Err(Error::new(SqlState::INVALID_GRANT_OPERATION, message));
    }
    let (mut creators, mut schemas) = (vec![cx.session.who().role], vec![Oid::INVALID]);
    for node in stmt.options.iter().flatten() {
        let Node::DefElem(option) = node else { continue };
        let Some(Node::List(list)) = &option.arg else { continue };
        match option.defname.as_deref().unwrap_or_default() {
            "roles" => {
                creators = role_list(cx, list)?;
                for &creator in &creators {
                    require_member(cx, creator)?;
                }
            }
            _ => schemas = schemas_named(cx, &strings(list))?,
        }
    }
    if kind == 'n' && schemas != [Oid::INVALID] {
        let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
        return Err(Error::new(SqlState::INVALID_GRANT_OPERATION, message));
    }
    for creator in creators {
        for &schema in &schemas {
            alter_one(cx, creator, schema, (class, kind), &request).await?;
        }
    }
    Ok(TAG)
}

fn schemas_named(cx: &mut Cx<'_>, names: &[String]) -> Result<Vec<Oid>> {
    let (catalog, database) = (cx.catalog(), cx.database());
    let find = |name: &String| {
        catalog
            .schema(database, name)
            .map(|schema| schema.oid)
            .ok_or_else(|| Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist")))
    };
    names.iter().map(find).collect()
}

async fn alter_one(
    cx: &mut Cx<'_>,
    creator: Oid,
    schema: Oid,
    (class, kind): (Class, char),
    request: &Request,
) -> Result<()> {
    cx.lock(creator, TableLockMode::ShareRowExclusive).await?;
    let database = cx.database();
    let catalog = cx.catalog();
    let role = catalog.role_by_oid(creator).cloned();
    let mut role = role.ok_or_else(|| super::role::unknown_role(&creator.to_string()))?;
    let usual = usual(kind, schema, creator);
    let is_this = |d: &DefaultPrivileges| d.is_in(database) && d.schema == schema && d.kind == kind;
    let at = role.default_privileges.iter().position(is_this);
    let mut items = at.map_or_else(|| usual.clone(), |at| role.default_privileges[at].items.clone());
    let given = request.whole.unwrap_or(class.all());
    request.refuse_options_for_public()?;
    for &grantee in &request.grantees {
        let none = Privileges::NONE;
        let privileges = if request.is_grant || !request.option { given } else { none };
        let grantable = if !request.is_grant || request.option { given } else { none };
        let (is_grant, cascade) = (request.is_grant, request.cascade);
        let change = Change { grantee, grantor: creator, privileges, grantable, is_grant, cascade };
        acl::apply(&mut items, creator, change, &|items, role| {
            privileges::options_by(&catalog, privileges::Who { role, database }, items, creator)
        })?;
    }
    sort(&mut items);
    if let Some(at) = at {
        role.default_privileges.remove(at);
    }
    // A list that says what would be anyway is not kept.
    if !same(&items, &usual) {
        role.default_privileges.push(DefaultPrivileges { database, schema, kind, items });
    }
    cx.put(CatalogObject::Role(role)).await
}

/// Default lists are kept in the order of grantees.
fn sort(items: &mut [AclItem]) {
    items.sort_by_key(|item| (item.grantee, item.grantor));
}

/// Whether two lists say the same, in whatever order.
fn same(a: &[AclItem], b: &[AclItem]) -> bool {
    a.len() == b.len() && a.iter().all(|item| b.contains(item))
}

/// Takes away the default privileges in a schema or a database that goes.
pub(super) async fn forget_place(cx: &mut Cx<'_>, gone: Oid) -> Result<()> {
    let catalog = cx.catalog();
    let is_there = |d: &DefaultPrivileges| d.schema == gone || d.database == gone;
    for role in each_role(&catalog).filter(|role| role.default_privileges.iter().any(is_there)) {
        cx.lock(role.oid, TableLockMode::ShareRowExclusive).await?;
        let Some(mut role) = cx.catalog().role_by_oid(role.oid).cloned() else { continue };
        role.default_privileges.retain(|d| !is_there(d));
        cx.put(CatalogObject::Role(role)).await?;
    }
    Ok(())
}

/// Takes a role out of the default privileges of another in a database, as DROP OWNED does. Its own go with it.
pub(super) fn forget_role(creator: &mut RoleDesc, role: Oid, database: Oid) {
    let oid = creator.oid;
    creator.default_privileges.retain_mut(|d| {
        if !d.is_in(database) || oid != role && !d.names(role) {
            return true;
        }
        d.items.retain(|item| !item.names(role));
        oid != role && !same(&d.items, &usual(d.kind, d.schema, oid))
    });
}

/// The access list that a new object begins with, if its creator has said so.
pub(super) fn of_new(catalog: &Catalog, object: &CatalogObject, database: Oid) -> Option<PrivilegesDesc> {
    let class = class_of(object)?;
    let kind = letter(class)?;
    let owner = owner_of(catalog, object)?;
    let role = catalog.role_by_oid(owner).filter(|role| !role.default_privileges.is_empty())?;
    let is_for = |d: &&DefaultPrivileges, schema: Oid| d.is_in(database) && d.schema == schema && d.kind == kind;
    let find = |schema: Oid| role.default_privileges.iter().find(|d| is_for(d, schema));
    let everywhere = find(Oid::INVALID);
    let here = if class == Class::Schema { None } else { find(object.namespace().1) };
    if everywhere.is_none() && here.is_none() {
        return None;
    }
    let usual = usual(kind, Oid::INVALID, owner);
    let mut items = everywhere.map_or_else(|| usual.clone(), |d| d.items.clone());
    for item in here.iter().flat_map(|d| &d.items) {
        match items.iter_mut().find(|i| i.grantee == item.grantee && i.grantor == item.grantor) {
            Some(own) => {
                own.privileges = own.privileges | item.privileges;
                own.grantable = own.grantable | item.grantable;
            }
            None => items.push(*item),
        }
    }
    if items.is_empty() {
        // As PostgreSQL: a list of which everything was taken away says nothing about new objects.
        return None;
    }
    sort(&mut items);
    let list = PrivilegesDesc { items: Some(items), ..PrivilegesDesc::initial(object.oid()) };
    (!same(list.items.as_deref().unwrap_or_default(), &usual)).then_some(list)
}
