//! Who a session acts as: `role` and `session_authorization`, and the identity that follows from them.
//!
//! Responsible for: whether the session may take a value of the two settings, whichever way it comes: SET, set_config, RESET,
//! DISCARD, start-up parameters, settings of roles and databases.
//! Not responsible for: what the identity may do (`privileges`).
//! Invariants: settings take a value of the two only as an [`Allowed`], which is made here alone, after memberships have been
//! looked at; the identity is that of the two settings and of the newest catalog seen. Both are settings, so that a rollback
//! takes them back, without another look: the session has had what it goes back to.

use std::sync::Arc;

use base::{Error, Oid, Result, Severity, SqlState};
use engine_api::Catalog;
use rupg_sql::nodes::VariableSetStmt;
use sql_parse::privileges::{Who, roles};
use sql_parse::text_of;

use super::Session;
use super::context::Environment;
use super::settings::Initial;

/// The value of `role` that means: the session's own.
pub(super) const NONE: &str = "none";

/// A setting that says who the session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Role,
    SessionAuthorization,
}

impl Setting {
    /// The setting of a name.
    pub fn of(name: &str) -> Option<Setting> {
        let is = |setting: &Setting| setting.name().eq_ignore_ascii_case(name);
        [Setting::Role, Setting::SessionAuthorization].into_iter().find(is)
    }

    pub fn name(self) -> &'static str {
        match self {
            Setting::Role => "role",
            Setting::SessionAuthorization => "session_authorization",
        }
    }

    /// As refusals name it.
    fn noun(self) -> &'static str {
        match self {
            Setting::Role => "role",
            Setting::SessionAuthorization => "session authorization",
        }
    }
}

/// A value of one of the two settings that the session may take.
pub(super) struct Allowed {
    setting: Setting,
    value: Arc<str>,
    /// The role of that name; none for `none`.
    role: Option<Oid>,
    /// It is what the session began with.
    is_first: bool,
}

impl Allowed {
    pub fn setting(&self) -> Setting {
        self.setting
    }

    pub fn value(&self) -> &Arc<str> {
        &self.value
    }
}

impl Environment {
    /// Who asks, to privileges.
    pub(super) fn who(&self) -> Who {
        let identity = self.identity.borrow();
        identity.who()
    }

    /// Gives one of the two settings a value, or the one that the session began with.
    ///
    /// # Errors
    /// 22023 if there is no such role; 42501 if the session may not become it.
    pub(super) fn change_identity(
        &self,
        catalog: &Catalog,
        setting: Setting,
        value: Option<&str>,
        local: bool,
    ) -> Result<()> {
        if self.acting.get().is_some() {
            let message = format!("cannot set parameter \"{}\" within security-restricted operation", setting.name());
            return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        let allowed = match value {
            Some(value) => self.allowed(catalog, setting, value)?,
            None => self.allowed_at_first(catalog, setting)?,
        };
        self.take(catalog, &allowed, local);
        if setting == Setting::SessionAuthorization {
            let role = match value {
                Some(_) => Ok(none()),
                None => self.allowed_at_first(catalog, Setting::Role),
            };
            // What the session began with it may have lost since.
            let role = role.unwrap_or_else(|error| {
                self.notices.borrow_mut().push(error.severity(Severity::Warning));
                none()
            });
            self.take(catalog, &role, local);
        }
        Ok(())
    }

    /// Adopts the role that the configuration and the start-up packet ask for. `session_authorization` stays that of the login.
    ///
    /// # Errors
    /// What the start-up packet asks for and is refused. What the configuration says and is refused is a warning.
    pub(super) fn begin_identity(
        &self,
        catalog: &Catalog,
        configured: &[Initial],
        startup: &[(String, String)],
    ) -> Result<()> {
        let mut role = None;
        for (name, value) in startup {
            if let Some(setting) = Setting::of(name) {
                let allowed = self.allowed(catalog, setting, value).map_err(|e| e.severity(Severity::Fatal))?;
                if setting == Setting::Role {
                    role = Some((allowed, "client"));
                }
            }
        }
        // The strongest word comes last.
        for Initial { name, value, source } in configured.iter().rev() {
            let Some(setting) = Setting::of(name) else { continue };
            match self.allowed(catalog, setting, value) {
                Ok(allowed) if setting == Setting::Role => drop(role.get_or_insert((allowed, source))),
                Ok(_) => {}
                Err(error) => self.notices.borrow_mut().push(error.severity(Severity::Warning)),
            }
        }
        if let Some((role, source)) = role {
            self.take(catalog, &role, false);
            self.settings.borrow_mut().begins_so(role.setting.name(), source);
        }
        Ok(())
    }

    /// Says what will come of a value of one of the two settings that other sessions are to begin with.
    pub(super) fn foretell(&self, catalog: &Catalog, setting: Setting, value: &str) {
        let Err(mut error) = self.allowed(catalog, setting, value) else { return };
        let fields = error.fields_mut();
        if fields.code == SqlState::INSUFFICIENT_PRIVILEGE {
            fields.message = format!("permission will be denied to set {} \"{value}\"", setting.noun());
        } else {
            fields.code = SqlState::UNDEFINED_OBJECT;
        }
        self.notices.borrow_mut().push(error.severity(Severity::Notice));
    }

    fn allowed(&self, catalog: &Catalog, setting: Setting, value: &str) -> Result<Allowed> {
        let role = match (setting, value) {
            (Setting::Role, NONE) => return Ok(none()),
            _ => catalog.role(value).map(|role| role.oid),
        };
        self.allowed_role(catalog, setting, value.into(), role)
    }

    /// What RESET gives a setting. The role is the one that had the name then.
    fn allowed_at_first(&self, catalog: &Catalog, setting: Setting) -> Result<Allowed> {
        let value = self.settings.borrow().first_value(setting.name());
        if setting == Setting::Role && &*value == NONE {
            return Ok(none());
        }
        let role = self.role_of_setting(catalog, &value);
        let allowed = self.allowed_role(catalog, setting, value, role.is_valid().then_some(role))?;
        Ok(Allowed { is_first: true, ..allowed })
    }

    /// The one place that decides whom a session may become.
    fn allowed_role(&self, catalog: &Catalog, setting: Setting, value: Arc<str>, role: Option<Oid>) -> Result<Allowed> {
        let Some(oid) = role else {
            let message = format!("role \"{value}\" does not exist");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        };
        let may = match setting {
            Setting::Role => {
                let session = self.settings.borrow().show("session_authorization").unwrap_or_default();
                let who = Who { role: self.role_of_setting(catalog, &session), ..self.who() };
                roles::is_member(catalog, who, oid)
            }
            // What counts is whom the client logged in as.
            Setting::SessionAuthorization => oid == self.login_role || roles::is_superuser(catalog, self.login_role),
        };
        if may {
            return Ok(Allowed { setting, value, role, is_first: false });
        }
        let message = format!("permission denied to set {} \"{value}\"", setting.noun());
        Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
    }

    fn take(&self, catalog: &Catalog, allowed: &Allowed, local: bool) {
        if let Some(role) = allowed.role {
            self.named_roles.borrow_mut().insert(allowed.value.to_string(), role);
        }
        let is_superuser = match allowed.role {
            Some(role) if allowed.is_first && role == self.login_role => self.login_superuser,
            Some(role) => roles::is_superuser(catalog, role),
            None => false,
        };
        self.settings.borrow_mut().assume(allowed, is_superuser, local);
        self.adopt_identity(catalog);
    }

    /// The role that a setting names: the one that had the name when it was set.
    fn role_of_setting(&self, catalog: &Catalog, name: &str) -> Oid {
        let known = self.named_roles.borrow().get(name).copied();
        known.or_else(|| catalog.role(name).map(|role| role.oid)).unwrap_or(Oid::INVALID)
    }

    /// Makes the identity anew from the settings and the catalog.
    pub(super) fn adopt_identity(&self, catalog: &Catalog) {
        let mut settings = self.settings.borrow_mut();
        let session = settings.show("session_authorization").unwrap_or_default();
        let role = settings.show("role").filter(|role| role != NONE);
        let current = role.unwrap_or_else(|| session.clone());
        let of_session = self.role_of_setting(catalog, &session);
        let of_setting = self.role_of_setting(catalog, &current);
        let found = catalog.role_by_oid(self.acting.get().unwrap_or(of_setting));
        let superuser = found.is_some_and(|role| role.superuser);
        settings.follow_identity(superuser);
        let mut identity = self.identity.borrow_mut();
        // A role that has been dropped may do nothing.
        identity.role = found.map_or(Oid::INVALID, |role| role.oid);
        identity.superuser = superuser;
        identity.current_user = found.map_or(current, |role| role.name.clone());
        identity.session_user = catalog.role_by_oid(of_session).map_or(session, |role| role.name.clone());
    }
}

/// `role` is the session's own, which it always may be.
fn none() -> Allowed {
    Allowed { setting: Setting::Role, value: NONE.into(), role: None, is_first: false }
}

impl Session {
    /// Who asks, to privileges.
    pub(crate) fn who(&self) -> Who {
        self.environment.who()
    }

    /// Whoever may use which sequence is to be looked up anew: the transaction changes definitions, which the catalog's version does not
    /// tell.
    pub(crate) fn forget_rights(&self) {
        self.environment.sequence_rights.set(None);
    }

    /// Whether the current role bypasses checks.
    pub(crate) fn is_superuser(&self) -> bool {
        self.environment.identity.borrow().superuser
    }

    /// Begins a security-restricted operation in a role's name: what runs until [`Session::end_restricted`] has its rights and no
    /// others, cannot become anybody else, and leaves settings as they were. They do not nest.
    pub(crate) fn begin_restricted(&mut self, role: Oid) {
        self.environment.acting.set(Some(role));
        let catalog = self.catalog();
        self.binding = None;
        self.refresh_binding(&catalog);
        let mut settings = self.environment.settings.borrow_mut();
        settings.depth += 1;
    }

    /// The operation is over, whatever came of it.
    pub(crate) fn end_restricted(&mut self) {
        {
            let mut settings = self.environment.settings.borrow_mut();
            let depth = settings.depth;
            settings.rollback_to(depth);
            settings.depth = depth - 1;
        }
        self.environment.acting.set(None);
        let catalog = self.catalog();
        self.binding = None;
        self.refresh_binding(&catalog);
    }

    /// `SET ROLE name`, `SET SESSION AUTHORIZATION name`, and their RESET if there is no name.
    pub(super) fn set_identity(&mut self, setting: Setting, stmt: &VariableSetStmt) -> Result<()> {
        let name = stmt.args.iter().flatten().find_map(text_of);
        let catalog = self.catalog();
        self.refresh_binding(&catalog);
        self.environment.change_identity(&catalog, setting, name.as_deref(), stmt.is_local)?;
        self.refresh_binding(&catalog);
        Ok(())
    }

    /// Adopts the identity that settings say, if they have changed.
    pub(super) fn follow_settings(&mut self) {
        let settings_version = self.environment.settings.borrow().binding_version;
        // Without a binding it is not known whether the settings are followed.
        if self.binding.as_ref().is_none_or(|binding| binding.settings_version != settings_version || binding.of_own) {
            let catalog = self.catalog();
            self.refresh_binding(&catalog);
        }
    }
}
