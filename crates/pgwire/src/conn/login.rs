//! From the first byte to the first ReadyForQuery.

use std::future::{Future, pending};
use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use base::{Error, Result, Severity, SqlState};
use tokio::io::{AsyncRead, AsyncWrite};

use super::link::{Ended, Input, Link};
use crate::auth::guesses::Turn;
use crate::auth::scram::{self, Channel, Exchange, MECHANISM, MECHANISM_PLUS, Verifier};
use crate::proto::{self, Body, Initial, Startup, backend, fatal_violation};
use crate::registry::{BackendKey, Registry, Ticket};
use crate::timers;
use crate::{AuthPlan, Backend, Peer, Session};

/// Longest SASL message, as in PostgreSQL.
const MAX_SASL: usize = 1024;
/// How often one that waits looks whether it still has to.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Bytes of a role's name in the log.
const NAME_SHOWN: usize = 64;

/// AuthenticationOk, and the SASL requests.
const OK: i32 = 0;
const SASL: i32 = 10;
const SASL_CONTINUE: i32 = 11;
const SASL_FINAL: i32 = 12;

/// Logs a client in and starts its session.
pub(super) async fn login<S, W, B>(
    link: &mut Link<'_, S, W>,
    input: &mut Input,
    backend: &B,
    registry: &Registry,
    ticket: &Ticket,
    peer: &Peer,
    refuse: Option<Error>,
) -> Result<B::Session, Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Future<Output = io::Error>,
    B: Backend,
{
    let startup = startup(link, input, registry).await?;
    if let Some(error) = refuse {
        return Err(Ended::Fatal(error));
    }
    // Those for whom there is no place need not prove who they are; those who have not proved it take none from others.
    if registry.free_places() == 0 {
        return Err(Ended::Fatal(too_many()));
    }
    if startup.get("replication").is_some_and(|v| !matches!(v, "false" | "off" | "no" | "0")) {
        return Err(fatal(Error::unsupported("replication connections are not supported")));
    }
    if startup.needs_negotiation() {
        link.out.append(|buf| backend::negotiate_protocol_version(buf, &startup.unknown_options));
    }
    match link.drive(pin!(backend.authenticate(&startup, peer)), &[]).await? {
        AuthPlan::Trust => {}
        AuthPlan::Reject(error) => return Err(fatal(error)),
        AuthPlan::Scram(verifier) => {
            authenticate(link, input, registry, &startup.user, verifier, peer).await?;
        }
    }
    if !ticket.take_place() {
        return Err(Ended::Fatal(too_many()));
    }
    link.out.append(|buf| backend::authentication(buf, OK, b""));
    let session = link.drive(pin!(backend.start(&startup, peer, ticket.key, link.out)), &[]).await?;
    let session = session.map_err(|error| not_let_in(error, &startup.user, peer))?;
    ticket.set_cancel(session.cancel_handle());
    let BackendKey { pid, secret } = ticket.key;
    link.out.append(|buf| {
        backend::backend_key_data(buf, pid, secret);
        backend::ready_for_query(buf, session.transaction_status() as u8);
    });
    Ok(session)
}

/// What a client is told for whom there is no place.
pub(crate) fn too_many() -> Error {
    Error::fatal(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
}

/// A client that has proved who it is, or need not, and gets no session all the same: the log says so if it is for who it is.
#[cold]
fn not_let_in(error: Error, user: &str, peer: &Peer) -> Ended {
    if error.code() == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        tracing::warn!(user = shown(user), %peer, "login refused: {}", error.fields().message);
    }
    fatal(error)
}

/// Before there is a session, every error is FATAL.
fn fatal(error: Error) -> Ended {
    Ended::Fatal(error.severity(Severity::Fatal))
}

/// Reads the start-up packet, answering what may come before it.
async fn startup<S, W>(link: &mut Link<'_, S, W>, input: &mut Input, registry: &Registry) -> Result<Startup, Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Future<Output = io::Error>,
{
    let (mut ssl, mut gss) = (false, false);
    loop {
        let Some((packet, n)) = proto::initial(&input.buf[input.pos..]).map_err(fatal)? else {
            more(link, input).await?;
            continue;
        };
        input.pos += n;
        match packet {
            Initial::Ssl if !ssl => ssl = true,
            Initial::GssEnc if !gss => gss = true,
            Initial::Ssl => return Err(fatal(proto::repeated_request(true))),
            Initial::GssEnc => return Err(fatal(proto::repeated_request(false))),
            Initial::Cancel { pid, secret } => {
                registry.cancel_with_secret(BackendKey { pid, secret });
                return Err(Ended::Closed);
            }
            Initial::Startup(startup) => return Ok(startup),
        }
        link.out.append(|buf| buf.push(b'N'));
    }
}

async fn more<S, W>(link: &mut Link<'_, S, W>, input: &mut Input) -> Result<(), Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Future<Output = io::Error>,
{
    input.reserve(0).await.map_err(Ended::Fatal)?;
    match link.read(&mut input.buf, pending()).await? {
        0 => Err(Ended::Closed),
        _ => Ok(()),
    }
}

async fn authenticate<S, W>(
    link: &mut Link<'_, S, W>,
    input: &mut Input,
    registry: &Registry,
    user: &str,
    verifier: Option<Verifier>,
    peer: &Peer,
) -> Result<(), Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Future<Output = io::Error>,
{
    let binding = match peer {
        Peer::Tls(_, encryption) => encryption.binding,
        Peer::Tcp(_) | Peer::Unix => None,
    };
    let offered = match binding {
        Some(_) => format!("{MECHANISM_PLUS}\0{MECHANISM}\0\0"),
        None => format!("{MECHANISM}\0\0"),
    };
    link.out.append(|buf| backend::authentication(buf, SASL, offered.as_bytes()));
    let n = response(link, input).await?;
    let body = &input.buf[input.pos + 5..input.pos + n];
    let is_hopeless = verifier.is_none();
    let (salt, random) = (registry.mock_salt(user), registry.random("nonce"));
    let certificate = binding.as_ref().map(|binding| binding.bytes());
    let (message, is_bound) = client_first(body, certificate.is_some()).map_err(fatal)?;
    let channel = Channel { certificate, is_bound };
    let exchange = Exchange::start(message, verifier, &salt, &random, channel).map_err(fatal)?;
    input.pos += n;
    link.out.append(|buf| backend::authentication(buf, SASL_CONTINUE, exchange.server_first().as_bytes()));
    let n = response(link, input).await?;
    wait_for_turn(link, registry, peer, user).await?;
    let last = exchange.finish(&input.buf[input.pos + 5..input.pos + n]).map_err(fatal)?;
    input.pos += n;
    let Some(last) = last else {
        registry.guesses.failed(peer, user, Instant::now());
        let why = if is_hopeless { "no password lets it in" } else { "the password is wrong" };
        tracing::warn!(user = shown(user), %peer, "password authentication failed: {why}");
        return Err(Ended::Fatal(scram::refused(user)));
    };
    registry.guesses.succeeded(peer, user, Instant::now());
    link.out.append(|buf| backend::authentication(buf, SASL_FINAL, last.as_bytes()));
    Ok(())
}

/// Waits as long as wrong passwords before cost (see `auth::guesses`).
async fn wait_for_turn<S, W>(
    link: &mut Link<'_, S, W>,
    registry: &Registry,
    peer: &Peer,
    user: &str,
) -> Result<(), Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Future<Output = io::Error>,
{
    let mut proof = Proof { peer, user, unheard: Some("its connection ended before its turn") };
    let waiting = match registry.guesses.turn(peer, user, Instant::now()) {
        Turn::Now => return proof.is_heard(),
        Turn::Wait(waiting) => waiting,
        Turn::Never => return proof.has_no_place(),
    };
    // It has a place, if not that of a client.
    link.control.set_stays(true);
    loop {
        match waiting.remaining(Instant::now()) {
            None => return proof.has_no_place(),
            Some(left) if left.is_zero() => return proof.is_heard(),
            Some(left) => link.drive(pin!(timers::sleep(left.min(LOOK_AGAIN))), &[]).await?,
        }
        if link.has_ended() {
            return Err(Ended::Closed);
        }
    }
}

/// A proof that waits. If it waits in vain, for whatever reason, the log says so.
struct Proof<'a> {
    peer: &'a Peer,
    user: &'a str,
    /// Why it was not looked at, if it ends now.
    unheard: Option<&'static str>,
}

impl Proof<'_> {
    fn is_heard(&mut self) -> Result<(), Ended> {
        self.unheard = None;
        Ok(())
    }

    /// It is no secret that a proof was not looked at: that says nothing of the password, and who had the right one should try again.
    #[cold]
    fn has_no_place(&mut self) -> Result<(), Ended> {
        self.unheard = Some("too many logins wait");
        Err(Ended::Fatal(Error::fatal(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many logins are waiting already")))
    }
}

impl Drop for Proof<'_> {
    fn drop(&mut self) {
        if let Some(why) = self.unheard {
            tracing::warn!(user = shown(self.user), peer = %self.peer, "a password was not looked at: {why}");
        }
    }
}

/// A name for the log: a client may send thousands of bytes.
fn shown(user: &str) -> &str {
    &user[..user.floor_char_boundary(NAME_SHOWN)]
}

/// The SCRAM message, and whether the client chose the mechanism with channel binding.
fn client_first(body: &[u8], can_bind: bool) -> Result<(&[u8], bool)> {
    let mut body = Body::new(body);
    let mechanism = body.cstr()?;
    let is_bound = can_bind && mechanism == MECHANISM_PLUS.as_bytes();
    if !is_bound && mechanism != MECHANISM.as_bytes() {
        return Err(fatal_violation("client selected an invalid SASL authentication mechanism"));
    }
    let length = body.i32()?;
    let message = body.bytes(usize::try_from(length).unwrap_or(0))?;
    body.end()?;
    Ok((message, is_bound))
}

/// Waits for a SASL response at the read position; its length with the header.
async fn response<S, W>(link: &mut Link<'_, S, W>, input: &mut Input) -> Result<usize, Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Future<Output = io::Error>,
{
    loop {
        let unread = &input.buf[input.pos..];
        if let Some(tag) = unread.first().filter(|tag| **tag != b'p') {
            return Err(Ended::Fatal(fatal_violation(format!("expected SASL response, got message type {tag}"))));
        }
        match proto::frame_within(unread, MAX_SASL).map_err(fatal)? {
            Ok(frame) => return Ok(frame.total()),
            Err(_) => more(link, input).await?,
        }
    }
}

/// The refusal of a client that takes too long.
#[cold]
pub(super) fn timed_out() -> Error {
    Error::fatal(SqlState::QUERY_CANCELED, "canceling authentication due to timeout")
}
