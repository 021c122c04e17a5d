//! Who a session acts as: SET ROLE, SET SESSION AUTHORIZATION, and the identity that follows from them.
//!
//! Both are settings, so that a rollback takes them back; the identity is made anew from them whenever one changes, or
//! the catalog does.

use base::{Error, Oid, Result, SqlState};
use engine_api::Catalog;
use rupg_sql::nodes::VariableSetStmt;

use super::Session;
use super::block::text_of;
use crate::privileges::{Who, roles};

/// The value of `role` that means: the session's own.
const NONE: &str = "none";

/// Whether a setting says who the session is.
pub(super) fn is_identity(name: &str) -> bool {
    name == "role" || name == "session_authorization"
}

impl Session {
    /// Who asks, to privileges.
    pub(crate) fn who(&self) -> Who {
        let identity = self.environment.identity.borrow();
        Who { role: identity.role, database: identity.database_oid }
    }

    /// Whether the current role bypasses checks.
    pub(crate) fn is_superuser(&self) -> bool {
        self.environment.identity.borrow().superuser
    }

    /// `SET ROLE name` and `SET SESSION AUTHORIZATION name`; the other forms are those of all settings.
    pub(super) fn set_identity(&mut self, stmt: &VariableSetStmt) -> Result<()> {
        let setting = stmt.name.as_deref().unwrap_or_default();
        let name = stmt.args.iter().flatten().find_map(text_of).unwrap_or_default();
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        let level = self.savepoint_level();
        let mut changes = vec![(setting, name.as_str())];
        if setting == "role" {
            if name != NONE {
                let wanted = role_named(&catalog, &name)?;
                let session = self.environment.settings.borrow().show("session_authorization").unwrap_or_default();
                let who = Who { role: self.role_of_setting(&catalog, &session), ..self.who() };
                if !roles::is_member(&catalog, who, wanted) {
                    return Err(denied(format!("permission denied to set role \"{name}\"")));
                }
                self.named_roles.insert(name.clone(), wanted);
            }
        } else {
            let wanted = role_named(&catalog, &name)?;
            // What counts is whom the client logged in as.
            let login = self.login_role;
            if wanted != login && !roles::is_superuser(&catalog, login) {
                return Err(denied("permission denied to set session authorization".to_string()));
            }
            self.named_roles.insert(name.clone(), wanted);
            changes.push(("role", NONE));
        }
        for (setting, value) in changes {
            self.environment.settings.borrow_mut().set_checked(setting, value, stmt.is_local, level)?;
        }
        self.refresh_binding(&catalog);
        Ok(())
    }

    /// Adopts the identity that settings say, if they have changed.
    pub(super) fn follow_settings(&mut self) {
        let generation = self.environment.settings.borrow().binding_generation;
        if self.binding.as_ref().is_some_and(|binding| binding.generation != generation) {
            let catalog = self.catalog();
            self.refresh_binding(&catalog);
        }
    }

    /// The role that a setting names: the one that had the name when it was set.
    fn role_of_setting(&self, catalog: &Catalog, name: &str) -> Oid {
        let known = self.named_roles.get(name).copied();
        known.or_else(|| catalog.role(name).map(|role| role.oid)).unwrap_or(Oid::INVALID)
    }

    /// Makes the identity anew from the settings and the catalog.
    pub(super) fn adopt_identity(&mut self, catalog: &Catalog) {
        let mut settings = self.environment.settings.borrow_mut();
        let session = settings.show("session_authorization").unwrap_or_default();
        let role = settings.show("role").filter(|role| role != NONE);
        let current = role.unwrap_or_else(|| session.clone());
        let of_session = self.role_of_setting(catalog, &session);
        let found = catalog.role_by_oid(self.role_of_setting(catalog, &current));
        let superuser = found.is_some_and(|role| role.superuser);
        settings.derive("is_superuser", if superuser { "on" } else { "off" });
        let mut identity = self.environment.identity.borrow_mut();
        // A role that has been dropped may do nothing.
        identity.role = found.map_or(Oid::INVALID, |role| role.oid);
        identity.superuser = superuser;
        identity.current_user = found.map_or(current, |role| role.name.clone());
        identity.session_user = catalog.role_by_oid(of_session).map_or(session, |role| role.name.clone());
        self.role = identity.role;
    }
}

fn role_named(catalog: &Catalog, name: &str) -> Result<Oid> {
    catalog
        .role(name)
        .map(|role| role.oid)
        .ok_or_else(|| Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("role \"{name}\" does not exist")))
}

fn denied(message: String) -> Error {
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}
