//! What a connection asks of the layers above it. All of it runs on one core, so no future has to be `Send`.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use base::{Error, Lsn, Result};

use crate::Out;
use crate::auth::scram::Verifier;
use crate::proto::{Bind, Parse, Startup};
use crate::registry::{BackendKey, CancelHandle};
use crate::tls::Encryption;

/// Where a client sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Connected by TCP.
    Tcp(SocketAddr),
    /// Connected by TCP and encrypted.
    Tls(SocketAddr, Encryption),
    /// Connected by a Unix socket.
    Unix,
}

/// For the log.
impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Tcp(address) => write!(f, "{address}"),
            Peer::Tls(address, _) => write!(f, "{address} (TLS)"),
            Peer::Unix => f.write_str("the Unix socket"),
        }
    }
}

/// How a client has to prove who it is.
#[derive(Clone, Debug)]
pub enum AuthPlan {
    /// It does not.
    Trust,
    /// SCRAM-SHA-256 against this verifier. `None` plays the exchange through and refuses, so that a client cannot tell
    /// an unknown role, or one without a password, from a wrong password.
    Scram(Option<Verifier>),
    /// Not at all; the error is sent as FATAL.
    Reject(Error),
}

/// The position up to which the log is durable.
pub trait DurableHorizon {
    /// The position now. Never goes back.
    fn current(&self) -> Lsn;
    /// Completes once `current() >= lsn`.
    fn wait(&self, lsn: Lsn) -> impl Future<Output = ()>;
}

/// One per core: makes sessions.
#[allow(async_fn_in_trait, reason = "sessions live on one core; their futures need not be Send")]
pub trait Backend {
    /// What it makes.
    type Session: Session;
    /// What opens gates.
    type Horizon: DurableHorizon;

    /// What opens gates.
    fn horizon(&self) -> &Self::Horizon;

    /// How this client has to log in.
    async fn authenticate(&self, startup: &Startup, peer: &Peer) -> AuthPlan;

    /// Starts a session after a successful login. Queues the ParameterStatus messages and may queue notices;
    /// BackendKeyData and ReadyForQuery follow by themselves. An error is sent as FATAL.
    async fn start(&self, startup: &Startup, peer: &Peer, key: BackendKey, out: &Out) -> Result<Self::Session>;
}

/// The transaction status in ReadyForQuery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    Idle = b'I',
    /// In a transaction block.
    InTransaction = b'T',
    /// In a failed transaction block.
    Failed = b'E',
}

/// One client's session.
///
/// The connection loop sends ParseComplete, BindComplete, CloseComplete, ReadyForQuery and, for an `Err`, ErrorResponse;
/// everything else a method answers it queues itself. After an `Err` of an extended-protocol method no other method is
/// called until [`sync`](Session::sync). An `Err` of severity FATAL ends the connection.
///
/// A method may suspend; what is queued and whose gate is open is written meanwhile. If the client vanishes or the server
/// shuts down, the pending future and the session are dropped: `Drop` rolls back.
#[allow(async_fn_in_trait, reason = "sessions live on one core; their futures need not be Send")]
pub trait Session {
    /// Runs all statements of a simple query, with RowDescription, rows and CommandComplete (or EmptyQueryResponse) each,
    /// in one implicit transaction unless a block is open.
    async fn simple_query(&mut self, sql: &str, out: &Out) -> Result<()>;

    /// Prepares a statement.
    async fn parse(&mut self, parse: Parse<'_>, out: &Out) -> Result<()>;

    /// Makes a portal. Checks the number of parameters and result formats against the statement.
    async fn bind(&mut self, bind: Bind<'_>, out: &Out) -> Result<()>;

    /// ParameterDescription, then RowDescription (formats all text) or NoData.
    async fn describe_statement(&mut self, name: &str, out: &Out) -> Result<()>;

    /// RowDescription or NoData.
    async fn describe_portal(&mut self, name: &str, out: &Out) -> Result<()>;

    /// Runs a portal: rows (no RowDescription), then CommandComplete, EmptyQueryResponse or, once `max_rows` rows have
    /// been sent and it is not 0, PortalSuspended.
    async fn execute(&mut self, portal: &str, max_rows: u32, out: &Out) -> Result<()>;

    /// Forgets a statement; one that does not exist is no error.
    async fn close_statement(&mut self, name: &str, out: &Out) -> Result<()>;

    /// Forgets a portal; one that does not exist is no error.
    async fn close_portal(&mut self, name: &str, out: &Out) -> Result<()>;

    /// Ends an extended-protocol batch: commits or rolls back the implicit transaction.
    async fn sync(&mut self, out: &Out) -> Result<()>;

    /// The connection found an error itself (a malformed message, bytes that are not UTF-8) and reports it: the
    /// transaction fails as if a statement had.
    async fn fail(&mut self, error: &Error);

    /// Queues a long error with [`Out::error`], so that the other connections of the core have their turns meanwhile.
    async fn report(&mut self, error: &Error, out: &Out);

    /// Runs work on another thread, so that the other connections of the core have their turns meanwhile. Nothing stops it. An `Err` is FATAL.
    async fn elsewhere<T: Send + 'static>(&mut self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        Ok(work())
    }

    /// Runs while the connection waits for the client, and is dropped when a message comes, so it must do its work
    /// between suspensions. May queue notifications; an `Err` (an idle timeout) is FATAL.
    async fn idle(&mut self, out: &Out) -> Result<()> {
        let _ = out;
        std::future::pending().await
    }

    /// The client said good-bye, or closed the connection between statements.
    async fn terminate(&mut self) {}

    /// Queues what an error outside of a batch has changed of the settings that clients are told of, behind the error.
    fn tell_settings(&self, out: &Out) {
        let _ = out;
    }

    /// The status for ReadyForQuery.
    fn transaction_status(&self) -> TransactionStatus;

    /// What a CancelRequest for this session calls.
    fn cancel_handle(&self) -> Arc<dyn CancelHandle>;
}
