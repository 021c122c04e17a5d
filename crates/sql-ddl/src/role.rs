//! CREATE ROLE, ALTER ROLE, DROP ROLE and their spellings USER and GROUP.

use base::{Error, Oid, Result, SqlState};
use engine_api::{Catalog, CatalogObject, RoleDesc, TableLockMode, oids};
use rupg_sql::nodes::{
    AlterRoleStmt, CreateRoleStmt, DefElem, DropRoleStmt, Node, RenameStmt, RoleSpec, RoleSpecType, RoleStmtType,
};
use sql_ir::Ty;
use sql_parse::privileges::roles;
use sql_parse::{number_of, text_of};
use types::{Datum, oid};

use super::{Cx, dependents, membership};

/// The error of a role that is not there.
pub(super) fn unknown_role(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}

#[cold]
pub(super) fn denied(message: impl Into<String>) -> Error {
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

/// The name that a role specification means.
pub(super) fn role_name(cx: &Cx<'_>, spec: &RoleSpec) -> String {
    match spec.roletype {
        RoleSpecType::ROLESPEC_CSTRING => spec.rolename.as_deref().unwrap_or_default().to_string(),
        RoleSpecType::ROLESPEC_SESSION_USER => cx.session.identity().session_user,
        RoleSpecType::ROLESPEC_PUBLIC => "public".to_string(),
        _ => cx.session.identity().current_user,
    }
}

/// The role that a specification means.
///
/// # Errors
/// 42704
pub(super) fn role_oid(cx: &mut Cx<'_>, spec: &RoleSpec) -> Result<Oid> {
    let name = role_name(cx, spec);
    let catalog = cx.catalog();
    let role = match spec.roletype {
        // Not by its name: another role may have it by now.
        RoleSpecType::ROLESPEC_CURRENT_USER | RoleSpecType::ROLESPEC_CURRENT_ROLE => {
            catalog.role_by_oid(cx.session.who().role)
        }
        _ => catalog.role(&name),
    };
    role.map(|role| role.oid).ok_or_else(|| unknown_role(&name))
}

/// The roles of a list.
pub(super) fn role_list(cx: &mut Cx<'_>, list: &[Option<Node>]) -> Result<Vec<Oid>> {
    let mut found = Vec::with_capacity(list.len());
    for node in list.iter().flatten() {
        if let Node::RoleSpec(spec) = node {
            found.push(role_oid(cx, spec)?);
        }
    }
    Ok(found)
}

/// Whether the current role may make and change roles.
pub(super) fn may_create_roles(cx: &mut Cx<'_>) -> bool {
    let who = cx.session.who();
    cx.catalog().role_by_oid(who.role).is_some_and(|role| role.superuser || role.create_role)
}

pub(super) async fn create_role(cx: &mut Cx<'_>, stmt: &CreateRoleStmt) -> Result<&'static str> {
    let name = stmt.role.as_deref().unwrap_or_default();
    check_repeated(cx, &stmt.options)?;
    let mut role = RoleDesc::new(Oid::INVALID, name);
    role.login = stmt.stmt_type == RoleStmtType::ROLESTMT_USER;
    apply_options(cx, &mut role, &stmt.options)?;
    if !cx.session.is_superuser() {
        if role.superuser {
            return Err(denied("must be superuser to create superusers"));
        }
        if role.replication {
            return Err(denied("must be superuser to create replication users"));
        }
        if role.bypass_row_security {
            return Err(denied("must be superuser to create bypassrls users"));
        }
        if !may_create_roles(cx) {
            return Err(denied("permission denied to create role"));
        }
    }
    check_reserved(name)?;
    if cx.catalog().role(name).is_some() {
        return Err(Error::new(SqlState::DUPLICATE_OBJECT, format!("role \"{name}\" already exists")));
    }
    role.oid = cx.allocate();
    let oid = role.oid;
    cx.put(CatalogObject::Role(role)).await?;
    for (key, admin) in [("addroleto", false), ("rolemembers", false), ("adminmembers", true)] {
        let Some(list) = option_list(&stmt.options, key) else { continue };
        let others = role_list(cx, list)?;
        for other in others {
            let (role, member) = if key == "addroleto" { (other, oid) } else { (oid, other) };
            membership::add(cx, role, member, admin).await?;
        }
    }
    Ok("CREATE ROLE")
}

/// Names that mean something else.
fn check_reserved(name: &str) -> Result<()> {
    let reserved = |name: &str| Error::new(SqlState::RESERVED_NAME, format!("role name \"{name}\" is reserved"));
    if name.starts_with("pg_") {
        return Err(reserved(name).detail("Role names starting with \"pg_\" are reserved."));
    }
    if name == "public" || name == "none" { Err(reserved(name)) } else { Ok(()) }
}

fn option_list<'a>(options: &'a [Option<Node>], key: &str) -> Option<&'a [Option<Node>]> {
    options.iter().flatten().find_map(|node| match node {
        Node::DefElem(option) if option.defname.as_deref() == Some(key) => match &option.arg {
            Some(Node::List(list)) => Some(list.as_slice()),
            _ => None,
        },
        _ => None,
    })
}

/// No option may be given twice.
fn check_repeated(cx: &Cx<'_>, options: &[Option<Node>]) -> Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    for node in options.iter().flatten() {
        let Node::DefElem(option) = node else { continue };
        let name = option.defname.as_deref().unwrap_or_default();
        if seen.contains(&name) {
            let error = Error::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options");
            return Err(error.at_byte(cx.sql, option.location));
        }
        seen.push(name);
    }
    Ok(())
}

pub(super) async fn alter_role(cx: &mut Cx<'_>, stmt: &AlterRoleStmt) -> Result<&'static str> {
    let spec = stmt.role.as_deref().ok_or_else(|| Error::internal("ALTER ROLE without a role"))?;
    let name = role_name(cx, spec);
    check_repeated(cx, &stmt.options)?;
    if name.starts_with("pg_") && spec.roletype == RoleSpecType::ROLESPEC_CSTRING {
        return Err(Error::new(SqlState::RESERVED_NAME, format!("role name \"{name}\" is reserved"))
            .detail("Cannot alter reserved roles."));
    }
    let found = cx.catalog().role(&name).map(|role| role.oid).ok_or_else(|| unknown_role(&name))?;
    cx.lock(found, TableLockMode::ShareRowExclusive).await?;
    let mut role = cx.catalog().role(&name).cloned().ok_or_else(|| unknown_role(&name))?;
    check_alteration(cx, &role, &stmt.options)?;
    apply_options(cx, &mut role, &stmt.options)?;
    cx.put(CatalogObject::Role(role)).await?;
    if let Some(list) = option_list(&stmt.options, "rolemembers") {
        for member in role_list(cx, list)? {
            if stmt.action > 0 {
                membership::add(cx, found, member, false).await?;
            } else {
                membership::remove(cx, found, member, false).await?;
            }
        }
    }
    Ok("ALTER ROLE")
}

/// Whether the current role may change a role so.
fn check_alteration(cx: &mut Cx<'_>, role: &RoleDesc, options: &[Option<Node>]) -> Result<()> {
    if cx.session.is_superuser() {
        return Ok(());
    }
    let names: Vec<&str> = options
        .iter()
        .flatten()
        .filter_map(|node| match node {
            Node::DefElem(option) => option.defname.as_deref(),
            _ => None,
        })
        .collect();
    if role.superuser || names.contains(&"superuser") {
        return Err(denied("must be superuser to alter superuser roles or change superuser attribute"));
    }
    if role.replication || names.contains(&"isreplication") {
        return Err(denied("must be superuser to alter replication roles or change replication attribute"));
    }
    if names.contains(&"bypassrls") {
        return Err(denied("must be superuser to change bypassrls attribute"));
    }
    let own_password = role.oid == cx.session.who().role && names.iter().all(|name| *name == "password");
    if !may_create_roles(cx) && !own_password {
        return Err(denied("permission denied"));
    }
    Ok(())
}

pub(super) async fn rename_role(cx: &mut Cx<'_>, stmt: &RenameStmt, new_name: &str) -> Result<&'static str> {
    let name = stmt.subname.as_deref().unwrap_or_default();
    let found = cx.catalog().role(name).map(|role| role.oid).ok_or_else(|| unknown_role(name))?;
    cx.lock(found, TableLockMode::ShareRowExclusive).await?;
    let mut role = cx.catalog().role_by_oid(found).cloned().ok_or_else(|| unknown_role(name))?;
    let identity = cx.session.identity();
    for (own, what) in [(&identity.session_user, "session"), (&identity.current_user, "current")] {
        if own == name {
            return Err(Error::unsupported(format!("{what} user cannot be renamed")));
        }
    }
    if cx.catalog().role(new_name).is_some() {
        return Err(Error::new(SqlState::DUPLICATE_OBJECT, format!("role \"{new_name}\" already exists")));
    }
    check_reserved(name)?;
    check_reserved(new_name)?;
    if role.superuser && !cx.session.is_superuser() {
        return Err(denied("must be superuser to rename superusers"));
    }
    if !may_create_roles(cx) {
        return Err(denied("permission denied to rename role"));
    }
    role.name = new_name.to_string();
    cx.put(CatalogObject::Role(role)).await?;
    Ok("ALTER ROLE")
}

pub(super) async fn drop_roles(cx: &mut Cx<'_>, stmt: &DropRoleStmt) -> Result<&'static str> {
    if !may_create_roles(cx) {
        return Err(denied("permission denied to drop role"));
    }
    for node in stmt.roles.iter().flatten() {
        let Node::RoleSpec(spec) = node else { continue };
        if spec.roletype != RoleSpecType::ROLESPEC_CSTRING {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "cannot use special role specifier in DROP ROLE",
            ));
        }
        let name = role_name(cx, spec);
        if let Some(oid) = cx.catalog().role(&name).map(|role| role.oid) {
            cx.lock(oid, TableLockMode::AccessExclusive).await?;
        }
        let Some(role) = cx.catalog().role(&name).cloned() else {
            if !stmt.missing_ok {
                return Err(unknown_role(&name));
            }
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("role \"{name}\" does not exist, skipping"));
            continue;
        };
        check_drop(cx, &role)?;
        forget_member(cx, role.oid).await?;
        cx.drop_one(role.oid)?;
    }
    Ok("DROP ROLE")
}

fn check_drop(cx: &mut Cx<'_>, role: &RoleDesc) -> Result<()> {
    let identity = cx.session.identity();
    for (own, what) in [(&identity.current_user, "current"), (&identity.session_user, "session")] {
        if *own == role.name {
            return Err(Error::new(SqlState::OBJECT_IN_USE, format!("{what} user cannot be dropped")));
        }
    }
    if role.superuser && !cx.session.is_superuser() {
        return Err(denied("must be superuser to drop superusers"));
    }
    if role.oid < oids::FIRST_USER {
        let message = format!("cannot drop role {} because it is required by the database system", role.name);
        return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
    }
    let catalog = cx.catalog();
    let path = cx.session.search_path(&catalog);
    let dependents = dependents::of_role(&catalog, &path, role.oid, cx.database());
    if dependents.is_empty() {
        return Ok(());
    }
    let message = format!("role \"{}\" cannot be dropped because some objects depend on it", role.name);
    Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message).detail(dependents.join("\n")))
}

/// Takes a role that goes out of the lists of all others.
async fn forget_member(cx: &mut Cx<'_>, gone: Oid) -> Result<()> {
    let catalog = cx.catalog();
    for role in each_role(&catalog) {
        if role.member_of.iter().any(|m| m.role == gone) {
            let mut role = role.clone();
            role.member_of.retain(|m| m.role != gone);
            cx.put(CatalogObject::Role(role)).await?;
        }
    }
    Ok(())
}

/// All roles.
pub(super) fn each_role(catalog: &Catalog) -> impl Iterator<Item = &RoleDesc> {
    catalog.walk().filter_map(|o| catalog.role_by_oid(o.oid()))
}

fn apply_options(cx: &mut Cx<'_>, role: &mut RoleDesc, options: &[Option<Node>]) -> Result<()> {
    for node in options.iter().flatten() {
        let Node::DefElem(option) = node else { continue };
        apply_option(cx, role, option)?;
    }
    Ok(())
}

fn apply_option(cx: &mut Cx<'_>, role: &mut RoleDesc, option: &DefElem) -> Result<()> {
    let on = || option.arg.as_ref().and_then(number_of) != Some(0);
    match option.defname.as_deref().unwrap_or_default() {
        "password" => {
            role.password = match option.arg.as_ref().and_then(text_of) {
                Some(password) if password.is_empty() => {
                    let message = "empty string is not a valid password, clearing password";
                    cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
                    None
                }
                Some(password) => Some(cx.session.password_verifier(&password)?),
                None => None,
            };
        }
        "canlogin" => role.login = on(),
        "superuser" => role.superuser = on(),
        "inherit" => role.inherit = on(),
        "createdb" => role.create_database = on(),
        "createrole" => role.create_role = on(),
        "isreplication" => role.replication = on(),
        "bypassrls" => role.bypass_row_security = on(),
        "connectionlimit" => {
            let limit = option.arg.as_ref().and_then(number_of).unwrap_or(-1);
            if limit < -1 {
                let message = format!("invalid connection limit: {limit}");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
            role.connection_limit = limit as i32;
        }
        "validUntil" => {
            let text = option.arg.as_ref().and_then(text_of).unwrap_or_default();
            role.valid_until = match cx.session.parse_value(Ty::of(oid::TIMESTAMPTZ), &text)? {
                Datum::TimestampTz(time) => Some(time),
                _ => None,
            };
        }
        "sysid" => cx.notice(SqlState::SUCCESSFUL_COMPLETION, "SYSID can no longer be specified"),
        "addroleto" | "rolemembers" | "adminmembers" => {}
        other => return Err(Error::unsupported(format!("role option \"{other}\" is not supported"))),
    }
    Ok(())
}

/// Refuses unless the current role is a member of another, to which something is to belong.
///
/// # Errors
/// 42501
pub(super) fn require_member(cx: &mut Cx<'_>, role: Oid) -> Result<()> {
    let who = cx.session.who();
    let catalog = cx.catalog();
    if roles::is_member(&catalog, who, role) {
        return Ok(());
    }
    let name = catalog.role_by_oid(role).map(|role| role.name.clone()).unwrap_or_default();
    Err(denied(format!("must be member of role \"{name}\"")))
}
