//! One core's half of the server: who may log in, and new sessions.

use std::net::SocketAddr;
use std::sync::Arc;

use base::Result;
use engine::Shard;
use engine_api::Catalog;
use pgwire::scram::Verifier;
use pgwire::{AuthPlan, BackendKey, Out, Peer, Startup};
use sql::session::{Session, Shared};

use crate::garbage;
use crate::horizon::Horizon;
use crate::session::ClientSession;

/// The role that exists from the start.
pub const SUPERUSER: &str = "postgres";

/// What one core's connections share.
pub struct CoreBackend {
    shared: Arc<Shared>,
    horizon: Horizon<Shard>,
}

impl CoreBackend {
    /// The backend of the core whose thread this is called on.
    pub fn new(shared: Arc<Shared>, shard: Shard) -> CoreBackend {
        tokio::task::spawn_local(garbage::reclaim(shard.clone()));
        CoreBackend { shared, horizon: Horizon::start(shard) }
    }
}

impl pgwire::Backend for CoreBackend {
    type Session = ClientSession;
    type Horizon = Horizon<Shard>;

    fn horizon(&self) -> &Horizon<Shard> {
        &self.horizon
    }

    async fn authenticate(&self, startup: &Startup, peer: &Peer) -> AuthPlan {
        plan(&self.shared.engine.catalog(), &startup.user, is_local(peer))
    }

    async fn start(&self, startup: &Startup, peer: &Peer, key: BackendKey, out: &Out) -> Result<ClientSession> {
        let address = match peer {
            Peer::Tcp(address) => Some(address.ip().to_string()),
            Peer::Unix => None,
        };
        let session =
            Session::new(&self.shared, &startup.user, &startup.database, &startup.parameters, address, key.pid)?;
        for (name, value) in session.announced_settings() {
            out.parameter_status(name, &value);
        }
        tracing::debug!(pid = key.pid, user = startup.user, database = startup.database, ?peer, "session started");
        Ok(ClientSession::new(session))
    }
}

fn is_local(peer: &Peer) -> bool {
    match peer {
        Peer::Unix => true,
        Peer::Tcp(address) => is_loopback(address),
    }
}

/// Whether only this machine reaches the address.
pub fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// How a client that says it is `user` logs in. A role with a password always proves it. One without gets in from this
/// machine; so does a name that is no role, to be told so, as long as no password guards the server.
fn plan(catalog: &Catalog, user: &str, local: bool) -> AuthPlan {
    let role = catalog.role(user);
    match role.and_then(|role| role.password.as_deref()) {
        Some(stored) => AuthPlan::Scram(Verifier::parse(stored)),
        None if local && (role.is_some() || !has_password(catalog)) => AuthPlan::Trust,
        None => AuthPlan::Scram(None),
    }
}

/// Whether the superuser has a password.
pub fn has_password(catalog: &Catalog) -> bool {
    catalog.role(SUPERUSER).is_some_and(|role| role.password.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Oid;
    use engine_api::{CatalogObject, RoleDesc};

    fn catalog(roles: &[(&str, Option<&str>)]) -> Catalog {
        let mut catalog = Catalog::default();
        for (i, (name, password)) in roles.iter().enumerate() {
            catalog.put(Arc::new(CatalogObject::Role(RoleDesc {
                oid: Oid(10 + i as u32),
                name: name.to_string(),
                login: true,
                superuser: false,
                password: password.map(str::to_string),
            })));
        }
        catalog
    }

    fn answer(catalog: &Catalog, user: &str, local: bool) -> &'static str {
        match plan(catalog, user, local) {
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
    fn loopback() {
        for (address, loopback) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("10.0.0.1:1", false),
        ] {
            assert_eq!(is_loopback(&address.parse().unwrap()), loopback, "{address}");
        }
    }
}
