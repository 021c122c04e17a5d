//! Who gets in: host rules, the certificate, and reading both again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use base::Error;
use engine_api::Catalog;
use pgwire::scram::Verifier;
use pgwire::{AuthPlan, Peer, Startup, Tls};
use sql_functions::LoginRule;

use crate::backend::{has_password, is_loopback};
use crate::config::ServeOptions;
use crate::hba::{self, Applicant, Method, Rules};

/// What decides about logins. Shared by all cores.
pub struct Access {
    rules_file: Option<PathBuf>,
    /// Replaced as a whole when the file is read again.
    rules: RwLock<Option<Arc<Rules>>>,
    certificate: Option<Certificate>,
    tls_required: bool,
}

struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    tls: Tls,
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

fn read_rules(path: &Path) -> Result<Rules, String> {
    let text = String::from_utf8(read(path)?).map_err(|_| format!("{} is not UTF-8", path.display()))?;
    Rules::parse(&text).map_err(|wrong| format!("{}, {wrong}", path.display()))
}

impl Access {
    /// As the options say.
    ///
    /// # Errors
    /// What is wrong with a file, in one line.
    pub fn open(options: &ServeOptions) -> Result<Access, String> {
        let rules = options.hba.as_deref().map(read_rules).transpose()?.map(Arc::new);
        let certificate = match (&options.tls_cert, &options.tls_key) {
            (Some(chain), Some(key)) => Some(Certificate {
                tls: Tls::new(&read(chain)?, &read(key)?).map_err(|e| format!("{}: {e}", chain.display()))?,
                chain: chain.clone(),
                key: key.clone(),
            }),
            _ => None,
        };
        let rules_file = options.hba.clone();
        Ok(Access { rules_file, rules: RwLock::new(rules), certificate, tls_required: options.tls_required })
    }

    /// The certificate, if there is one.
    pub fn tls(&self) -> Option<Tls> {
        self.certificate.as_ref().map(|certificate| certificate.tls.clone())
    }

    /// Whether a file says who gets in.
    pub fn has_rules(&self) -> bool {
        self.rules_file.is_some()
    }

    /// The host rules as their file has them now; what is wrong with a file that cannot be read is its only line.
    pub fn rules_in_file(&self) -> Vec<LoginRule> {
        let Some(path) = &self.rules_file else { return Vec::new() };
        match std::fs::read_to_string(path) {
            Ok(text) => hba::lines(&text),
            Err(error) => vec![LoginRule { error: Some(error.to_string()), ..LoginRule::default() }],
        }
    }

    /// Reads the files again. What cannot be understood stays as it was, and the log says why.
    pub fn reload(&self) {
        if let Some(path) = &self.rules_file {
            match read_rules(path) {
                Ok(rules) => *self.rules.write().unwrap_or_else(|e| e.into_inner()) = Some(Arc::new(rules)),
                Err(wrong) => tracing::error!("host rules are not loaded: {wrong}"),
            }
        }
        if let Some(Certificate { chain, key, tls }) = &self.certificate {
            let replaced = read(chain).and_then(|chain| tls.replace(&chain, &read(key)?));
            if let Err(wrong) = replaced {
                tracing::error!("the certificate is not loaded: {wrong}");
            }
        }
        tracing::info!("configuration files are read");
    }

    /// How a client has to log in. `now` is in microseconds since 2000.
    pub fn plan(&self, catalog: &Catalog, startup: &Startup, peer: &Peer, now: i64) -> AuthPlan {
        let rules = self.rules.read().unwrap_or_else(|e| e.into_inner()).clone();
        let applicant = Applicant { peer, user: &startup.user, database: &startup.database };
        let method = match rules {
            Some(rules) => rules.method(catalog, applicant),
            None if self.tls_required && matches!(peer, Peer::Tcp(_)) => Rules::default().method(catalog, applicant),
            None => return without_rules(catalog, &startup.user, is_local(peer), now),
        };
        plan_of(method, catalog, &startup.user, now)
    }
}

fn plan_of(method: Result<Method, Error>, catalog: &Catalog, user: &str, now: i64) -> AuthPlan {
    match method {
        Ok(Method::Trust) => AuthPlan::Trust,
        Ok(Method::Scram) => AuthPlan::Scram(verifier(catalog, user, now)),
        Ok(Method::Reject) => AuthPlan::Scram(None),
        Err(refusal) => AuthPlan::Reject(refusal),
    }
}

/// What a role's password is checked against; nothing once it is no longer valid.
fn verifier(catalog: &Catalog, user: &str, now: i64) -> Option<Verifier> {
    let role = catalog.role(user).filter(|role| role.valid_until.is_none_or(|until| until > now))?;
    Verifier::parse(role.password.as_deref()?)
}

fn is_local(peer: &Peer) -> bool {
    match peer {
        Peer::Unix => true,
        Peer::Tcp(address) | Peer::Tls(address, _) => is_loopback(address),
    }
}

/// How a client that says it is `user` logs in where no file says so. A role with a password always proves it. One without
/// gets in from this machine; so does a name that is no role, to be told so, as long as no password guards the server.
fn without_rules(catalog: &Catalog, user: &str, local: bool, now: i64) -> AuthPlan {
    let role = catalog.role(user);
    match role.and_then(|role| role.password.as_deref()) {
        Some(_) => AuthPlan::Scram(verifier(catalog, user, now)),
        None if local && (role.is_some() || !has_password(catalog)) => AuthPlan::Trust,
        None => AuthPlan::Scram(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::SUPERUSER;
    use base::Oid;
    use engine_api::{CatalogObject, RoleDesc};

    fn catalog(roles: &[(&str, Option<&str>)]) -> Catalog {
        let mut catalog = Catalog::default();
        for (i, (name, password)) in roles.iter().enumerate() {
            let role = RoleDesc { login: true, ..RoleDesc::new(Oid(10 + i as u32), *name) };
            let password = password.map(str::to_string);
            catalog.put(Arc::new(CatalogObject::Role(RoleDesc { password, ..role })));
        }
        catalog
    }

    fn answer(catalog: &Catalog, user: &str, local: bool) -> &'static str {
        match without_rules(catalog, user, local, 0) {
            AuthPlan::Trust => "trust",
            AuthPlan::Scram(Some(_)) => "password",
            AuthPlan::Scram(None) | AuthPlan::Reject(_) => "refused",
        }
    }

    #[test]
    fn passwords_are_asked_for_wherever_there_is_one() {
        let stored = crate::host::verifier("secret").unwrap();
        let open = catalog(&[(SUPERUSER, None), ("app", Some(&stored))]);
        assert_eq!(answer(&open, SUPERUSER, true), "trust");
        assert_eq!(answer(&open, SUPERUSER, false), "refused");
        assert_eq!(answer(&open, "app", true), "password");
        assert_eq!(answer(&open, "app", false), "password");
        assert_eq!(answer(&open, "nobody", true), "trust");
        assert_eq!(answer(&open, "nobody", false), "refused");
        let guarded = catalog(&[(SUPERUSER, Some(&stored)), ("app", None)]);
        assert_eq!(answer(&guarded, SUPERUSER, true), "password");
        assert_eq!(answer(&guarded, "nobody", true), "refused");
        assert_eq!(answer(&guarded, "app", true), "trust");
        assert_eq!(answer(&guarded, "app", false), "refused");
        let broken = catalog(&[(SUPERUSER, Some("not a verifier"))]);
        assert_eq!(answer(&broken, SUPERUSER, true), "refused");
    }

    #[test]
    fn a_password_is_good_until_it_is_not() {
        let stored = crate::host::verifier("secret").unwrap();
        let mut catalog = catalog(&[("app", Some(&stored))]);
        let role = RoleDesc { valid_until: Some(100), ..catalog.role("app").unwrap().clone() };
        catalog.put(Arc::new(CatalogObject::Role(role)));
        assert!(verifier(&catalog, "app", 99).is_some() && verifier(&catalog, "app", 100).is_none());
    }
}
