//! ALTER … OWNER TO, REASSIGN OWNED, DROP OWNED.

use std::collections::BTreeSet;

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, Privileges, PrivilegesDesc, RoleDesc, TableLockMode, oids};
use rupg_sql::nodes::{
    AlterOwnerStmt, AlterTableStmt, AlterTableType, DropBehavior, DropOwnedStmt, Node, ObjectType, ReassignOwnedStmt,
};
use sql_parse::privileges::{self, acl, class_of, owner_of, with_owner};

use super::dependents::{database_of, is_dropped, mentions};
use super::role::{denied, require_member, role_list, role_oid};
use super::{Cx, drop, rights};

/// The OWNER TO of ALTER TABLE, INDEX, SEQUENCE.
pub(super) async fn change_in(cx: &mut Cx<'_>, stmt: &AlterTableStmt) -> Result<()> {
    let Some(name) = stmt.relation.as_deref() else { return Ok(()) };
    for node in stmt.cmds.iter().flatten() {
        let Node::AlterTableCmd(cmd) = node else { continue };
        let (AlterTableType::AT_ChangeOwner, Some(owner)) = (cmd.subtype, cmd.newowner.as_deref()) else { continue };
        let Some(object) = cx.find_altered(name, stmt.missing_ok)? else { continue };
        let owner = role_oid(cx, owner)?;
        if let CatalogObject::Index(index) = &*object {
            let message = format!("cannot change owner of index \"{}\"", index.name);
            cx.warning(SqlState::WRONG_OBJECT_TYPE, message);
            continue;
        }
        if let CatalogObject::Sequence(sequence) = &*object
            && let Some((table, _)) = sequence.owned_by
            && owner != sequence.owner
        {
            let catalog = cx.catalog();
            let table = catalog.table(table).map_or("", |table| &table.name);
            let message = format!("cannot change owner of sequence \"{}\"", sequence.name);
            let detail = format!("Sequence \"{}\" is linked to table \"{table}\".", sequence.name);
            return Err(Error::unsupported(message).detail(detail));
        }
        change(cx, object.oid(), owner, true).await?;
    }
    Ok(())
}

pub(super) async fn alter_owner(cx: &mut Cx<'_>, stmt: &AlterOwnerStmt) -> Result<&'static str> {
    let owner = stmt.newowner.as_deref().ok_or_else(|| Error::internal("OWNER TO nobody"))?;
    let owner = role_oid(cx, owner)?;
    let name = match &stmt.object {
        Some(Node::List(names)) if matches!(stmt.objectType, ObjectType::OBJECT_TYPE | ObjectType::OBJECT_DOMAIN) => {
            let domain = stmt.objectType == ObjectType::OBJECT_DOMAIN;
            return super::types::change_owner(cx, names, domain, owner).await;
        }
        Some(Node::String(name)) => name.to_string(),
        _ => return Err(Error::unsupported("this kind of OWNER TO is not supported")),
    };
    let database = cx.database();
    let (found, tag, missing) = match stmt.objectType {
        ObjectType::OBJECT_SCHEMA => (
            cx.catalog().schema(database, &name).map(|schema| schema.oid),
            "ALTER SCHEMA",
            Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist")),
        ),
        ObjectType::OBJECT_DATABASE => (
            cx.catalog().database(&name).map(|database| database.oid),
            "ALTER DATABASE",
            Error::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist")),
        ),
        _ => return Err(Error::unsupported("this kind of OWNER TO is not supported")),
    };
    change(cx, found.ok_or(missing)?, owner, true).await?;
    Ok(tag)
}

/// Gives an object to another role, and what belongs to it; `check` whether the current role may.
async fn change(cx: &mut Cx<'_>, oid: Oid, owner: Oid, check: bool) -> Result<()> {
    if oid >= oids::FIRST_USER || cx.catalog().table(oid).is_some() {
        cx.lock(oid, TableLockMode::AccessExclusive).await?;
    }
    let catalog = cx.catalog();
    let Some(object) = catalog.get(oid) else { return Ok(()) };
    let Some(old) = owner_of(&catalog, object).filter(|old| *old != owner) else { return Ok(()) };
    if check && !cx.session.is_superuser() {
        check_change(cx, object, owner)?;
    }
    if let Some(changed) = with_owner(object, owner) {
        cx.put(changed).await?;
    }
    change_grantor(cx, oid, old, owner).await?;
    // Sequences of a table's columns are its owner's.
    for sequence in catalog.walk().filter_map(|o| catalog.sequence(o.oid())) {
        if sequence.owned_by.is_some_and(|(table, _)| table == oid) {
            Box::pin(change(cx, sequence.oid, owner, false)).await?;
        }
    }
    Ok(())
}

/// What an owner has granted on an object its new owner has granted.
pub(super) async fn change_grantor(cx: &mut Cx<'_>, oid: Oid, old: Oid, owner: Oid) -> Result<()> {
    let catalog = cx.catalog();
    let Some(mut list) = catalog.privileges(oid).cloned() else { return Ok(()) };
    list.items = list.items.map(|items| acl::change_owner(&items, old, owner));
    let is_live = |number: i16| catalog.get(oid).is_none_or(|object| !is_dropped(object, number));
    for (_, items) in list.columns.iter_mut().filter(|(number, _)| is_live(**number)) {
        *items = acl::change_owner(items, old, owner);
    }
    cx.put(CatalogObject::Privileges(list)).await
}

fn check_change(cx: &mut Cx<'_>, object: &CatalogObject, owner: Oid) -> Result<()> {
    let catalog = cx.catalog();
    privileges::require_owner(&catalog, cx.session.who(), object)?;
    require_member(cx, owner)?;
    match object {
        CatalogObject::Database(_) => {
            let may = |role: &RoleDesc| role.superuser || role.create_database;
            if !catalog.role_by_oid(cx.session.who().role).is_some_and(may) {
                return Err(denied("permission denied to change owner of database"));
            }
        }
        CatalogObject::Schema(_) => rights::require_database(cx, Privileges::CREATE)?,
        object => {
            let schema = object.namespace().1;
            let who = privileges::Who { role: owner, ..cx.session.who() };
            if let Some(schema) = catalog.get(schema) {
                privileges::require(&catalog, who, schema, Privileges::CREATE)?;
            }
        }
    }
    Ok(())
}

/// What a role owns in the session's database, databases aside.
fn owned(cx: &mut Cx<'_>, role: Oid) -> Vec<Oid> {
    let (catalog, database) = (cx.catalog(), cx.database());
    let is_own = |o: &&std::sync::Arc<CatalogObject>| {
        !matches!(&***o, CatalogObject::Index(_))
            && owner_of(&catalog, o) == Some(role)
            && database_of(&catalog, o) == Some(database)
    };
    catalog.walk().filter(is_own).map(|o| o.oid()).collect()
}

pub(super) async fn reassign_owned(cx: &mut Cx<'_>, stmt: &ReassignOwnedStmt) -> Result<&'static str> {
    let from = role_list(cx, &stmt.roles)?;
    let to = stmt.newrole.as_deref().ok_or_else(|| Error::internal("REASSIGN OWNED to nobody"))?;
    let who = cx.session.who();
    let may = |cx: &mut Cx<'_>, role: Oid| match privileges::roles::has_privileges_of(&cx.catalog(), who, role) {
        true => Ok(()),
        false => Err(denied("permission denied to reassign objects")),
    };
    from.iter().try_for_each(|&role| may(cx, role))?;
    let to = role_oid(cx, to)?;
    may(cx, to)?;
    for role in from {
        check_not_first(cx, role)?;
        let mut all = owned(cx, role);
        let catalog = cx.catalog();
        let databases = catalog.walk().filter(|o| matches!(&***o, CatalogObject::Database(d) if d.owner == role));
        all.extend(databases.map(|o| o.oid()));
        for oid in all {
            // A schema changes hands as by ALTER SCHEMA.
            let is_schema = matches!(catalog.get(oid).map(|object| &**object), Some(CatalogObject::Schema(_)));
            change(cx, oid, to, is_schema).await?;
        }
    }
    Ok("REASSIGN OWNED")
}

fn check_not_first(cx: &mut Cx<'_>, role: Oid) -> Result<()> {
    if role >= oids::FIRST_USER {
        return Ok(());
    }
    let catalog = cx.catalog();
    let name = catalog.role_by_oid(role).map_or("", |role| &role.name);
    let message = format!(
        "cannot reassign ownership of objects owned by role {name} because they are required by the database system"
    );
    Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message))
}

pub(super) async fn drop_owned(cx: &mut Cx<'_>, stmt: &DropOwnedStmt) -> Result<&'static str> {
    let roles = role_list(cx, &stmt.roles)?;
    let who = cx.session.who();
    for &role in &roles {
        if !privileges::roles::has_privileges_of(&cx.catalog(), who, role) {
            return Err(denied("permission denied to drop objects"));
        }
        if role < oids::FIRST_USER {
            let catalog = cx.catalog();
            let name = catalog.role_by_oid(role).map_or("", |role| &role.name);
            let message =
                format!("cannot drop objects owned by role {name} because they are required by the database system");
            return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
        }
    }
    let mut objects = BTreeSet::new();
    for &role in &roles {
        forget_grants(cx, role).await?;
        objects.extend(owned(cx, role));
    }
    drop::drop_all(cx, objects, stmt.behavior == DropBehavior::DROP_CASCADE).await?;
    Ok("DROP OWNED")
}

/// Takes back all that was granted to a role or by it, in the session's database and on databases.
async fn forget_grants(cx: &mut Cx<'_>, role: Oid) -> Result<()> {
    let (catalog, database) = (cx.catalog(), cx.database());
    for object in catalog.walk() {
        if database_of(&catalog, object).is_some_and(|d| d != database) || !mentions(&catalog, object, role) {
            continue;
        }
        if owner_of(&catalog, object) == Some(role) {
            continue;
        }
        let mut list =
            catalog.privileges(object.oid()).cloned().unwrap_or_else(|| PrivilegesDesc::initial(object.oid()));
        // It says what it says from here on, even if that is what it began with.
        if class_of(object).is_some() && list.items.is_none() {
            list.items = Some(privileges::items_of(&catalog, object));
        }
        if let Some(items) = &mut list.items {
            items.retain(|item| !item.names(role));
        }
        list.columns.retain(|number, items| {
            if is_dropped(object, *number) {
                return true;
            }
            items.retain(|item| !item.names(role));
            !items.is_empty()
        });
        cx.put(CatalogObject::Privileges(list)).await?;
    }
    for other in super::role::each_role(&catalog) {
        if other.default_privileges.iter().any(|d| d.is_in(database) && (other.oid == role || d.names(role))) {
            let mut other = other.clone();
            super::default_privileges::forget_role(&mut other, role, database);
            cx.put(CatalogObject::Role(other)).await?;
        }
    }
    Ok(())
}
