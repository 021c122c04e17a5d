//! GRANT role TO role, REVOKE role FROM role.

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, Membership, RoleDesc, TableLockMode, oids};
use rupg_sql::nodes::{AccessPriv, GrantRoleStmt, Node};
use sql_parse::number_of;
use sql_parse::privileges::{Who, roles};

use super::Cx;
use super::role::{denied, may_create_roles, role_list, unknown_role};

pub(super) async fn grant_roles(cx: &mut Cx<'_>, stmt: &GrantRoleStmt) -> Result<&'static str> {
    let members = role_list(cx, &stmt.grantee_roles)?;
    let mut admin = false;
    for node in stmt.opt.iter().flatten() {
        let Node::DefElem(option) = node else { continue };
        match option.defname.as_deref().unwrap_or_default() {
            // REVOKE says false: the option is what goes.
            "admin" => admin = !stmt.is_grant || option.arg.as_ref().is_none_or(|arg| number_of(arg) != Some(0)),
            // Said of single memberships only since PostgreSQL 16.
            other => {
                return Err(Error::new(SqlState::SYNTAX_ERROR, format!("unrecognized role option \"{other}\""))
                    .at_byte(cx.sql, option.location));
            }
        }
    }
    let grantor = match &stmt.grantor {
        Some(grantor) => super::role::role_oid(cx, grantor)?,
        None => cx.session.who().role,
    };
    for node in stmt.granted_roles.iter().flatten() {
        let Node::AccessPriv(granted) = node else { continue };
        let role = granted_role(cx, granted)?;
        check_admin(cx, &role, grantor)?;
        if stmt.is_grant {
            check_has_members(&role)?;
        }
        if stmt.is_grant && grantor != cx.session.who().role && !cx.session.is_superuser() {
            return Err(denied("must be superuser to set grantor"));
        }
        for &member in &members {
            if stmt.is_grant {
                add(cx, role.oid, member, admin).await?;
            } else {
                remove(cx, role.oid, member, admin).await?;
            }
        }
    }
    Ok(if stmt.is_grant { "GRANT ROLE" } else { "REVOKE ROLE" })
}

fn granted_role(cx: &mut Cx<'_>, granted: &AccessPriv) -> Result<RoleDesc> {
    let name = granted.priv_name.as_deref().unwrap_or_default();
    if !granted.cols.is_empty() {
        let message = "column names cannot be included in GRANT/REVOKE ROLE";
        return Err(Error::new(SqlState::INVALID_GRANT_OPERATION, message));
    }
    cx.catalog().role(name).cloned().ok_or_else(|| unknown_role(name))
}

/// Refuses to give members to the role that is each database's owner.
fn check_has_members(role: &RoleDesc) -> Result<()> {
    match role.oid {
        oids::ROLE_DATABASE_OWNER => {
            Err(Error::internal(format!("role \"{}\" cannot have explicit members", role.name)))
        }
        _ => Ok(()),
    }
}

/// Whether the current role may say who is a member of another, in the name of `grantor`.
fn check_admin(cx: &mut Cx<'_>, role: &RoleDesc, grantor: Oid) -> Result<()> {
    if cx.session.is_superuser() {
        return Ok(());
    }
    if role.superuser {
        return Err(denied("must be superuser to alter superusers"));
    }
    let who = Who { role: grantor, ..cx.session.who() };
    let catalog = cx.catalog();
    let is_admin = roles::is_superuser(&catalog, grantor) || roles::is_admin(&catalog, who, role.oid);
    if !may_create_roles(cx) && !is_admin {
        return Err(denied(format!("must have admin option on role \"{}\"", role.name)));
    }
    Ok(())
}

async fn locked_role(cx: &mut Cx<'_>, oid: Oid) -> Result<RoleDesc> {
    cx.lock(oid, TableLockMode::ShareRowExclusive).await?;
    cx.catalog().role_by_oid(oid).cloned().ok_or_else(|| unknown_role(&oid.to_string()))
}

/// Makes a role a member of another, if the current role may, whichever statement asks for it.
pub(super) async fn add(cx: &mut Cx<'_>, role: Oid, member: Oid, admin: bool) -> Result<()> {
    let granted = cx.catalog().role_by_oid(role).cloned().ok_or_else(|| unknown_role(&role.to_string()))?;
    let grantor = cx.session.who().role;
    check_admin(cx, &granted, grantor)?;
    let mut desc = locked_role(cx, member).await?;
    let catalog = cx.catalog();
    let name = |oid: Oid| catalog.role_by_oid(oid).map(|role| role.name.clone()).unwrap_or_default();
    check_has_members(&granted)?;
    if member == oids::ROLE_DATABASE_OWNER {
        return Err(Error::internal(format!("role \"{}\" cannot be a member of any role", name(member))));
    }
    if roles::would_circle(&catalog, role, member) {
        let message = format!("role \"{}\" is a member of role \"{}\"", name(role), name(member));
        return Err(Error::new(SqlState::INVALID_GRANT_OPERATION, message));
    }
    match desc.member_of.iter_mut().find(|m| m.role == role) {
        Some(known) if known.admin || !admin => {
            let message = format!("role \"{}\" is already a member of role \"{}\"", desc.name, name(role));
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
            return Ok(());
        }
        Some(known) => (known.admin, known.grantor) = (true, grantor),
        None => desc.member_of.push(Membership { role, grantor, admin }),
    }
    cx.put(CatalogObject::Role(desc)).await
}

/// Takes a role's membership, or only its admin option.
pub(super) async fn remove(cx: &mut Cx<'_>, role: Oid, member: Oid, admin_only: bool) -> Result<()> {
    let mut desc = locked_role(cx, member).await?;
    let Some(at) = desc.member_of.iter().position(|m| m.role == role) else {
        let catalog = cx.catalog();
        let other = catalog.role_by_oid(role).map(|role| role.name.as_str()).unwrap_or_default();
        let message = format!("role \"{}\" is not a member of role \"{other}\"", desc.name);
        cx.warning(SqlState::WARNING, message);
        return Ok(());
    };
    if admin_only {
        desc.member_of[at].admin = false;
    } else {
        desc.member_of.remove(at);
    }
    cx.put(CatalogObject::Role(desc)).await
}
