//! One core's half of the server: who may log in, and new sessions.

use std::net::SocketAddr;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use engine::Shard;
use engine_api::Catalog;
use pgwire::{AuthPlan, BackendKey, Out, Peer, Registry, Startup};
use sql_parse::monitor::{ClientPlace, Encryption};
use sql_session::{Session, Shared};

use crate::access::Access;
use crate::garbage;
use crate::horizon::Horizon;
use crate::replies::Replies;
use crate::session::ClientSession;

/// The role that exists from the start.
pub const SUPERUSER: &str = "postgres";

/// Places that only superusers take: `superuser_reserved_connections`.
const RESERVED_CONNECTIONS: usize = 3;

/// What one core's connections share.
pub struct CoreBackend {
    shared: Arc<Shared>,
    access: Arc<Access>,
    registry: Arc<Registry>,
    horizon: Horizon<Shard>,
}

impl CoreBackend {
    /// The backend of the core whose thread this is called on.
    pub fn new(shared: Arc<Shared>, access: Arc<Access>, registry: Arc<Registry>, shard: Shard) -> CoreBackend {
        tokio::task::spawn_local(garbage::reclaim(shard.clone()));
        // What runs on the core outside of sessions reads values by what is committed.
        shared.types().stay();
        CoreBackend { shared, access, registry, horizon: Horizon::start(shard) }
    }

    /// The last places are for superusers. A role that does not exist is told so instead.
    fn check_reserved(&self, user: &str) -> Result<()> {
        let may_take_the_last = self.shared.engine.catalog().role(user).is_none_or(|role| role.superuser);
        if may_take_the_last || self.registry.free_places() >= RESERVED_CONNECTIONS {
            return Ok(());
        }
        let message = "remaining connection slots are reserved for non-replication superuser connections";
        Err(Error::fatal(SqlState::TOO_MANY_CONNECTIONS, message))
    }
}

impl pgwire::Backend for CoreBackend {
    type Session = ClientSession;
    type Horizon = Horizon<Shard>;

    fn horizon(&self) -> &Horizon<Shard> {
        &self.horizon
    }

    async fn authenticate(&self, startup: &Startup, peer: &Peer) -> AuthPlan {
        self.access.plan(&self.shared.engine.catalog(), startup, peer, self.shared.host.now())
    }

    async fn start(&self, startup: &Startup, peer: &Peer, key: BackendKey, out: &Out) -> Result<ClientSession> {
        self.check_reserved(&startup.user)?;
        let client = place_of(peer);
        let session =
            Session::new(&self.shared, &startup.user, &startup.database, &startup.parameters, client, key.pid)?;
        session.send_notices(&mut Replies::simple(out));
        for (name, value) in session.announced_settings() {
            out.parameter_status(name, &value);
        }
        out.set_conversion(session.conversion());
        tracing::debug!(pid = key.pid, user = startup.user, database = startup.database, ?peer, "session started");
        Ok(ClientSession::new(session, self.shared.types()))
    }
}

/// Whether only this machine reaches the address.
pub fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Where a client sits, as its session tells others.
fn place_of(peer: &Peer) -> ClientPlace {
    let (address, encryption) = match peer {
        Peer::Unix => return ClientPlace::default(),
        Peer::Tcp(address) => (address, None),
        Peer::Tls(address, e) => (address, Some(Encryption { version: e.version, cipher: e.cipher, bits: e.bits })),
    };
    ClientPlace { address: Some(address.ip().to_string()), port: Some(address.port()), encryption }
}

/// Whether the superuser has a password.
pub fn has_password(catalog: &Catalog) -> bool {
    catalog.role(SUPERUSER).is_some_and(|role| role.password.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
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
