//! CREATE ROLE, ALTER ROLE, DROP ROLE: names, LOGIN, SUPERUSER, PASSWORD.

use base::{Error, Result, SqlState};
use engine_api::{CatalogObject, RoleDesc, TableLockMode, oids};
use rupg_sql::nodes::{AlterRoleStmt, CreateRoleStmt, DropRoleStmt, Node, RoleSpec, RoleSpecType, RoleStmtType};

use super::Cx;
use crate::session::{number_of, text_of};

/// The error of a role that is not there.
pub(super) fn unknown_role(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}

pub(super) async fn create_role(cx: &mut Cx<'_>, stmt: &CreateRoleStmt) -> Result<&'static str> {
    let name = stmt.role.as_deref().unwrap_or_default();
    require_superuser(cx, "permission denied to create role")?;
    if cx.catalog().role(name).is_some() {
        return Err(Error::new(SqlState::DUPLICATE_OBJECT, format!("role \"{name}\" already exists")));
    }
    if name.starts_with("pg_") {
        return Err(Error::new(SqlState::RESERVED_NAME, format!("role name \"{name}\" is reserved"))
            .detail("Role names starting with \"pg_\" are reserved."));
    }
    let mut role = RoleDesc {
        oid: cx.allocate(),
        name: name.to_string(),
        login: stmt.stmt_type == RoleStmtType::ROLESTMT_USER,
        superuser: false,
        password: None,
    };
    apply_options(cx, &mut role, &stmt.options)?;
    cx.put(CatalogObject::Role(role)).await?;
    Ok("CREATE ROLE")
}

fn role_name(cx: &Cx<'_>, spec: &RoleSpec) -> String {
    match spec.roletype {
        RoleSpecType::ROLESPEC_CSTRING => spec.rolename.as_deref().unwrap_or_default().to_string(),
        _ => cx.session.identity().current_user,
    }
}

pub(super) async fn alter_role(cx: &mut Cx<'_>, stmt: &AlterRoleStmt) -> Result<&'static str> {
    let spec = stmt.role.as_deref().ok_or_else(|| Error::internal("ALTER ROLE without a role"))?;
    let name = role_name(cx, spec);
    let found = cx.catalog().role(&name).map(|role| role.oid).ok_or_else(|| unknown_role(&name))?;
    cx.lock(found, TableLockMode::ShareRowExclusive).await?;
    let mut role = cx.catalog().role(&name).cloned().ok_or_else(|| unknown_role(&name))?;
    if name != cx.session.identity().current_user {
        require_superuser(cx, "permission denied")?;
    }
    apply_options(cx, &mut role, &stmt.options)?;
    cx.put(CatalogObject::Role(role)).await?;
    Ok("ALTER ROLE")
}

pub(super) async fn drop_roles(cx: &mut Cx<'_>, stmt: &DropRoleStmt) -> Result<&'static str> {
    require_superuser(cx, "permission denied to drop role")?;
    for node in stmt.roles.iter().flatten() {
        let Node::RoleSpec(spec) = node else { continue };
        let name = role_name(cx, spec);
        if let Some(oid) = cx.catalog().role(&name).map(|role| role.oid) {
            cx.lock(oid, TableLockMode::AccessExclusive).await?;
        }
        let catalog = cx.catalog();
        let Some(role) = catalog.role(&name) else {
            if !stmt.missing_ok {
                return Err(unknown_role(&name));
            }
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("role \"{name}\" does not exist, skipping"));
            continue;
        };
        if name == cx.session.identity().current_user {
            return Err(Error::new(SqlState::OBJECT_IN_USE, "current user cannot be dropped"));
        }
        let owns = |o: &CatalogObject| match o {
            CatalogObject::Table(t) => t.owner == role.oid,
            CatalogObject::Sequence(s) => s.owner == role.oid,
            CatalogObject::Schema(s) => s.owner == role.oid,
            CatalogObject::Database(d) => d.owner == role.oid,
            _ => false,
        };
        if role.oid == oids::ROLE_POSTGRES || catalog.objects().any(|o| owns(o)) {
            return Err(Error::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("role \"{name}\" cannot be dropped because some objects depend on it"),
            ));
        }
        let oid = role.oid;
        cx.drop_one(oid)?;
    }
    Ok("DROP ROLE")
}

fn require_superuser(cx: &mut Cx<'_>, message: &str) -> Result<()> {
    let user = cx.session.identity().current_user;
    match cx.catalog().role(&user) {
        Some(role) if role.superuser => Ok(()),
        _ => Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)),
    }
}

fn apply_options(cx: &mut Cx<'_>, role: &mut RoleDesc, options: &[Option<Node>]) -> Result<()> {
    for node in options.iter().flatten() {
        let Node::DefElem(option) = node else { continue };
        let on = || option.arg.as_ref().and_then(number_of) != Some(0);
        match option.defname.as_deref().unwrap_or_default() {
            "password" => {
                role.password = match option.arg.as_ref().and_then(text_of) {
                    Some(password) if !password.is_empty() => Some(cx.session.password_verifier(&password)?),
                    _ => None,
                };
            }
            "canlogin" => role.login = on(),
            "superuser" => {
                require_superuser(cx, "must be superuser to alter superuser roles or change superuser attribute")?;
                role.superuser = on();
            }
            // Rights that every role has, or that nothing reads.
            "inherit" | "createdb" | "createrole" | "isreplication" | "bypassrls" | "connectionlimit" => {}
            other => return Err(Error::unsupported(format!("role option \"{other}\" is not supported"))),
        }
    }
    Ok(())
}
