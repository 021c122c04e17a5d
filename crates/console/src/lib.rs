//! The server's HTTP side: whether it lives, whether it serves, and its figures.
//!
//! Responsible for: a listener of its own, `/healthz`, `/readyz`, `/metrics` in Prometheus' text format.
//! Not responsible for: where the figures come from ([`Source`] is the server's), the PostgreSQL protocol.
//! Invariants: a request reads figures and changes nothing; a slow or silent client holds nothing but its own connection,
//! of which there is a bounded number; the server's cores never wait for a request.
//!
//! Start at [`Server::run`].

#![forbid(unsafe_code)]

mod exposition;
mod http;
mod statements;

use std::borrow::Cow;

pub use exposition::{Exposition, FamilyKind};
pub use http::Server;
pub use statements::expose_statements;

/// What the server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It serves.
    Ready,
    /// It does not, for this reason.
    NotReady(Cow<'static, str>),
}

/// Where answers come from.
pub trait Source: Send + Sync + 'static {
    /// Whether statements are served.
    fn state(&self) -> ServerState;
    /// All figures.
    fn metrics(&self, out: &mut Exposition);
}
