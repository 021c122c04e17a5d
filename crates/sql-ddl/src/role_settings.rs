//! ALTER ROLE … SET, ALTER DATABASE … SET, ALTER SYSTEM: what sessions begin with.

use base::{Error, Oid, Result, SqlState};
use engine_api::oids::ROLE_POSTGRES;
use engine_api::{CatalogObject, RoleDesc, RoleSetting, TableLockMode};
use rupg_sql::nodes::{
    AlterDatabaseSetStmt, AlterRoleSetStmt, AlterSystemStmt, RoleSpecType, VariableSetKind, VariableSetStmt,
};
use sql_parse::privileges;

use super::Cx;
use super::role::{denied, may_create_roles, role_name, unknown_role};

pub(super) async fn alter_role_set(cx: &mut Cx<'_>, stmt: &AlterRoleSetStmt) -> Result<&'static str> {
    let set = stmt.setstmt.as_deref().ok_or_else(|| Error::internal("ALTER ROLE SET of nothing"))?;
    let Some(spec) = stmt.role.as_deref() else {
        match stmt.database.as_deref() {
            Some(name) => set_in_database(cx, set, name).await?,
            None if !cx.session.is_superuser() => return Err(denied("must be superuser to alter settings globally")),
            None => change_first(cx, set, |role| &mut role.settings_of_all).await?,
        }
        return Ok("ALTER ROLE");
    };
    let name = role_name(cx, spec);
    if name.starts_with("pg_") && spec.roletype == RoleSpecType::ROLESPEC_CSTRING {
        return Err(Error::new(SqlState::RESERVED_NAME, format!("role name \"{name}\" is reserved"))
            .detail("Cannot alter reserved roles."));
    }
    let found = cx.catalog().role(&name).map(|role| role.oid).ok_or_else(|| unknown_role(&name))?;
    cx.lock(found, TableLockMode::ShareRowExclusive).await?;
    let mut role = cx.catalog().role_by_oid(found).cloned().ok_or_else(|| unknown_role(&name))?;
    if role.superuser && !cx.session.is_superuser() {
        return Err(denied("must be superuser to alter superusers"));
    }
    if !may_create_roles(cx) && found != cx.session.who().role {
        return Err(denied("permission denied"));
    }
    let database = match stmt.database.as_deref() {
        Some(name) => database_named(cx, name)?,
        None => Oid::INVALID,
    };
    change(cx, set, database, &mut role.settings)?;
    cx.put(CatalogObject::Role(role)).await?;
    Ok("ALTER ROLE")
}

pub(super) async fn alter_database_set(cx: &mut Cx<'_>, stmt: &AlterDatabaseSetStmt) -> Result<&'static str> {
    let set = stmt.setstmt.as_deref().ok_or_else(|| Error::internal("ALTER DATABASE SET of nothing"))?;
    set_in_database(cx, set, stmt.dbname.as_deref().unwrap_or_default()).await?;
    Ok("ALTER DATABASE")
}

/// ALTER SYSTEM: takes effect when the configuration is read again.
pub(super) async fn alter_system(cx: &mut Cx<'_>, stmt: &AlterSystemStmt) -> Result<&'static str> {
    let set = stmt.setstmt.as_deref().ok_or_else(|| Error::internal("ALTER SYSTEM of nothing"))?;
    let name = set.name.as_deref().unwrap_or_default();
    if !cx.session.is_superuser() {
        return Err(match set.kind {
            VariableSetKind::VAR_RESET_ALL => denied("permission denied to perform ALTER SYSTEM RESET ALL"),
            _ => denied(format!("permission denied to set parameter \"{name}\"")),
        });
    }
    if set.kind != VariableSetKind::VAR_RESET_ALL {
        let is_servers = cx.session.check_for_system(name)?;
        match set.kind {
            _ if !is_servers => {}
            // It is never said here.
            VariableSetKind::VAR_RESET | VariableSetKind::VAR_SET_DEFAULT => return Ok("ALTER SYSTEM"),
            _ => {
                let message = format!("ALTER SYSTEM of parameter \"{name}\" is not supported");
                return Err(Error::unsupported(message));
            }
        }
    }
    change_first(cx, set, |role| &mut role.settings_of_system).await?;
    Ok("ALTER SYSTEM")
}

/// Changes a list that hangs on the first role, which nobody can drop.
async fn change_first(
    cx: &mut Cx<'_>,
    set: &VariableSetStmt,
    list: impl FnOnce(&mut RoleDesc) -> &mut Vec<RoleSetting>,
) -> Result<()> {
    cx.lock(ROLE_POSTGRES, TableLockMode::ShareRowExclusive).await?;
    let first = cx.catalog().role_by_oid(ROLE_POSTGRES).cloned();
    let mut first = first.ok_or_else(|| Error::internal("the first role is gone"))?;
    change(cx, set, Oid::INVALID, list(&mut first))?;
    cx.put(CatalogObject::Role(first)).await
}

async fn set_in_database(cx: &mut Cx<'_>, set: &VariableSetStmt, name: &str) -> Result<()> {
    let oid = database_named(cx, name)?;
    cx.lock(oid, TableLockMode::ShareRowExclusive).await?;
    let catalog = cx.catalog();
    let Some(object) = catalog.get(oid) else { return Ok(()) };
    privileges::require_owner(&catalog, cx.session.who(), object)?;
    let CatalogObject::Database(database) = &**object else { return Ok(()) };
    let mut database = database.clone();
    change(cx, set, oid, &mut database.settings)?;
    cx.put(CatalogObject::Database(database)).await
}

fn database_named(cx: &mut Cx<'_>, name: &str) -> Result<Oid> {
    cx.catalog()
        .database(name)
        .map(|database| database.oid)
        .ok_or_else(|| Error::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist")))
}

/// Applies SET, RESET or RESET ALL to a list of settings.
fn change(cx: &Cx<'_>, set: &VariableSetStmt, database: Oid, settings: &mut Vec<RoleSetting>) -> Result<()> {
    use VariableSetKind as K;
    let given = set.name.as_deref().unwrap_or_default();
    let same = |s: &RoleSetting| s.database == database && s.name.eq_ignore_ascii_case(given);
    let value = match set.kind {
        K::VAR_RESET_ALL => {
            // What the role may not set it does not take away either.
            settings.retain(|s| s.database != database || cx.session.may_change_setting(&s.name).is_err());
            return Ok(());
        }
        K::VAR_RESET | K::VAR_SET_DEFAULT => {
            // Where there is nothing nothing is taken away.
            if settings.iter().any(|s| s.database == database) {
                cx.session.may_change_setting(given)?;
            }
            None
        }
        K::VAR_SET_VALUE => Some(cx.session.checked_setting(given, &set.args)?),
        K::VAR_SET_CURRENT => {
            let value = cx.session.current_setting(given)?;
            cx.session.may_change_setting(given)?;
            Some(value)
        }
        _ => return Err(Error::unsupported("this kind of SET is not supported here")),
    };
    match (value, settings.iter_mut().find(|s| same(s))) {
        (Some(value), Some(setting)) => setting.value = value,
        (Some(value), None) => {
            settings.push(RoleSetting { database, name: cx.session.setting_name(given), value });
        }
        (None, _) => settings.retain(|s| !same(s)),
    }
    Ok(())
}
