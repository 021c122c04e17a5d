//! The life of one connection.
//!
//! ```text
//!   login ─► read ─► execute every complete message ─► write once ─► read …
//!             ▲         │ session Pending: write what may leave
//!             └─────────┘
//! ```

mod link;
mod login;

use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::{Error, Fields, Result, Severity, work};
use tokio::io::{AsyncRead, AsyncWrite};
use types::encoding::Conversion;

pub(crate) use self::login::too_many;

use self::link::{Ahead, Ended, Input, Io, Link};
use crate::buffers::Counted;
use crate::proto::{self, Frame, Frontend, Long, Target, backend};
use crate::registry::{Registry, Ticket};
use crate::timers::timeout;
use crate::tls::Tls;
use crate::{Backend, Out, Peer, Session};

/// Queued bytes above which no further pipelined message is executed: a client that sends without reading stops here.
const PIPELINE_LIMIT: usize = 512 << 10;
/// Messages executed in a row before other connections of the core get their turn.
const TURN: u32 = 1024;

/// Batches after which a connection looks whether it would be better served elsewhere. Prime, so that it is not always the
/// same batch of a client that repeats itself.
const LOOK_EVERY: u32 = 61;

/// Time limits of a connection.
#[derive(Clone, Debug)]
pub struct Options {
    /// From the first byte to ReadyForQuery (`authentication_timeout`).
    pub login_timeout: Duration,
    /// How long the last replies may take to be delivered.
    pub linger: Duration,
    /// How long a statement may go on after its client has closed the connection.
    pub disconnect_grace: Duration,
    /// The certificate for clients that ask for encryption; without one they are told that there is none.
    pub tls: Option<Tls>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            login_timeout: Duration::from_secs(60),
            linger: Duration::from_secs(5),
            disconnect_grace: Duration::from_secs(5),
            tls: None,
        }
    }
}

/// Serves a connection to its end. `refuse` is told to a client that says who it is, instead of logging it in.
pub async fn serve<S, B>(
    stream: S,
    peer: &Peer,
    backend: &B,
    registry: &Arc<Registry>,
    options: &Options,
    refuse: Option<Error>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    B: Backend,
{
    let ticket = registry.register(peer);
    let arrival = Arrival::New { stream, ticket, newcomer: Newcomer { peer, registry, refuse } };
    let parked = serve_here(arrival, backend, options, |_| false).await;
    debug_assert!(parked.is_none(), "nobody wanted it to leave");
}

/// A connection between two messages: nothing is queued, nothing unread. All that another core needs to go on with it.
pub(crate) struct Parked<S, Se> {
    pub(crate) stream: S,
    ticket: Ticket,
    session: Se,
    conversion: Option<&'static Conversion>,
}

impl<S, Se> Parked<S, Se> {
    /// The same connection over the same socket in another guise.
    pub(crate) fn with_stream<T>(self, change: impl FnOnce(S) -> io::Result<T>) -> io::Result<Parked<T, Se>> {
        let Parked { stream, ticket, session, conversion } = self;
        Ok(Parked { stream: change(stream)?, ticket, session, conversion })
    }
}

/// How a connection comes to a core.
pub(crate) enum Arrival<'a, S, Se> {
    /// From its client.
    New { stream: S, ticket: Ticket, newcomer: Newcomer<'a> },
    /// From another core.
    Parked(Parked<S, Se>),
}

/// A client that has to log in.
pub(crate) struct Newcomer<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) registry: &'a Arc<Registry>,
    pub(crate) refuse: Option<Error>,
}

/// Serves a connection to its end, or until `leave` says, between two messages, that it should go on elsewhere.
pub(crate) async fn serve_here<S, B>(
    arrival: Arrival<'_, S, B::Session>,
    backend: &B,
    options: &Options,
    leave: impl FnMut(&S) -> bool,
) -> Option<Parked<S, B::Session>>
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: Backend,
{
    let out = Out::new();
    let (stream, ticket, arrived) = match arrival {
        Arrival::New { stream, ticket, newcomer } => (stream, ticket, Err(newcomer)),
        Arrival::Parked(Parked { stream, ticket, session, conversion }) => {
            out.set_conversion(conversion);
            (stream, ticket, Ok(session))
        }
    };
    let io = Io::new(stream);
    let session = attend(&io, &out, &ticket, arrived, backend, options, leave).await?;
    Some(Parked { stream: io.into_inner(), ticket, session, conversion: out.conversion() })
}

/// Serves the connection behind `io`; answers the session if the connection leaves.
async fn attend<S, B>(
    io: &Io<S>,
    out: &Out,
    ticket: &Ticket,
    arrived: Result<B::Session, Newcomer<'_>>,
    backend: &B,
    options: &Options,
    leave: impl FnMut(&S) -> bool,
) -> Option<B::Session>
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: Backend,
{
    poll_fn(|cx| {
        ticket.control.listen(cx.waker());
        Poll::Ready(())
    })
    .await;
    let writer = pin!(link::write_loop(io, out, backend.horizon()));
    let control = &*ticket.control;
    let ahead = Ahead::default();
    let mut link = Link { io, out, control, writer, options, ahead, shrink: None, counted: Counted::default() };
    let mut input = Input::default();
    // The session is dropped inside: what it holds is not held for a client that reads slowly.
    let ended = match arrived {
        Ok(session) => run(&mut link, &mut input, session, leave).await,
        Err(Newcomer { peer, registry, refuse }) => {
            let login = login::login(&mut link, &mut input, backend, registry, ticket, peer, refuse);
            match timeout(options.login_timeout, login).await {
                Ok(Ok(session)) => run(&mut link, &mut input, session, leave).await,
                Ok(Err(ended)) => Err(ended),
                Err(_) => Err(Ended::Fatal(login::timed_out())),
            }
        }
    };
    let ended = match ended {
        Ok(session) => return Some(session),
        Err(ended) => ended,
    };
    match ended {
        Ended::Lost => return None,
        Ended::Closed => {}
        Ended::Fatal(error) => out.error(&error.severity(Severity::Fatal)),
    }
    drop(input);
    let drained = poll_fn(|cx| match link.writer.as_mut().poll(cx) {
        Poll::Pending if out.unsent() > 0 => Poll::Pending,
        _ => Poll::Ready(()),
    });
    let _ = timeout(options.linger, async {
        drained.await;
        io.shutdown().await;
    })
    .await;
    None
}

/// Executes messages until the connection ends, or should go on elsewhere.
async fn run<S, W, Se>(
    link: &mut Link<'_, S, W>,
    input: &mut Input,
    mut session: Se,
    mut leave: impl FnMut(&S) -> bool,
) -> Result<Se, Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Future<Output = io::Error>,
    Se: Session,
{
    let mut skip_to_sync = false;
    let mut batch = 0u32;
    loop {
        batch = batch.wrapping_add(1);
        let need = run_buffered(link, input, &mut session, &mut skip_to_sync).await?;
        // It looks before it writes: the acknowledgement of what it wrote would arrive here, wherever the client is.
        if batch.is_multiple_of(LOOK_EVERY) && link.io.with(&mut leave) && input.is_empty() && !skip_to_sync {
            link.write().await?;
            if link.is_quiet() {
                return Ok(session);
            }
        }
        let out = link.out;
        if let Err(error) = input.reserve(need).await {
            let tag = input.refuse(need);
            if !skip_to_sync {
                link.drive(pin!(session.fail(&error)), &[]).await?;
                conclude(link, tag, Err(error), &session, &mut skip_to_sync)?;
            }
            continue;
        }
        let idle = async {
            match session.idle(out).await {
                Ok(()) => pending().await,
                Err(error) => error,
            }
        };
        if link.read(&mut input.buf, idle).await? == 0 {
            session.terminate().await;
            return Err(Ended::Closed);
        }
    }
}

/// Executes all complete messages of the buffer; the length the next one needs.
async fn run_buffered<S, W, Se>(
    link: &mut Link<'_, S, W>,
    input: &mut Input,
    session: &mut Se,
    skip_to_sync: &mut bool,
) -> Result<usize, Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Future<Output = io::Error>,
    Se: Session,
{
    let mut turn = 0;
    loop {
        if !input.skip() {
            return Ok(0);
        }
        let unread = &input.buf[input.pos..];
        let frame = match proto::frame(unread).map_err(Ended::Fatal)? {
            Ok(frame) => frame,
            Err(need) => return Ok(need),
        };
        let (total, rest) = (frame.total(), &unread[frame.total()..]);
        turn += 1;
        if turn % TURN == 0 {
            link.drive(pin!(tokio::task::yield_now()), rest).await?;
        }
        if link.out.unsent() > PIPELINE_LIMIT {
            link.drive(pin!(link.out.drain_below(PIPELINE_LIMIT / 2)), rest).await?;
        }
        if frame.body.len() > LONG && !*skip_to_sync && Long::holds(frame.tag) {
            Box::pin(run_long(link, input, session, skip_to_sync)).await?;
            continue;
        }
        if !*skip_to_sync || matches!(frame.tag, b'S' | b'X') {
            let out = link.out;
            let tag = frame.tag;
            *skip_to_sync &= tag != b'S';
            let mut recoded = Vec::new();
            let result = match parsed(frame, out, &mut recoded) {
                Ok(message) => match message {
                    // Moving a future is copying it: they are pinned where they are made. This one is large and seldom.
                    Frontend::Query(sql) => {
                        Some(link.drive(Box::pin(session.simple_query(sql, out)).as_mut(), rest).await?)
                    }
                    Frontend::Parse(parse) => {
                        Some(answered(out, b'1', link.drive(pin!(session.parse(parse, out)), rest).await?))
                    }
                    Frontend::Bind(bind) => {
                        Some(answered(out, b'2', link.drive(pin!(session.bind(bind, out)), rest).await?))
                    }
                    Frontend::Execute(portal, rows) => {
                        Some(link.drive(pin!(session.execute(portal, rows, out)), rest).await?)
                    }
                    Frontend::Sync => Some(link.drive(pin!(session.sync(out)), rest).await?),
                    Frontend::Describe(Target::Statement(name)) => {
                        Some(link.drive(pin!(session.describe_statement(name, out)), rest).await?)
                    }
                    Frontend::Describe(Target::Portal(name)) => {
                        Some(link.drive(pin!(session.describe_portal(name, out)), rest).await?)
                    }
                    Frontend::Close(Target::Statement(name)) => {
                        Some(answered(out, b'3', link.drive(pin!(session.close_statement(name, out)), rest).await?))
                    }
                    Frontend::Close(Target::Portal(name)) => {
                        Some(answered(out, b'3', link.drive(pin!(session.close_portal(name, out)), rest).await?))
                    }
                    Frontend::Terminate => {
                        link.drive(pin!(session.terminate()), rest).await?;
                        return Err(Ended::Closed);
                    }
                    // Flush asks for what the end of the batch does anyway.
                    _ => None,
                },
                Err(error) => {
                    link.drive(pin!(session.fail(&error)), rest).await?;
                    Some(Err(error))
                }
            };
            if let Some(result) = result {
                match result {
                    Err(error) if is_long(&error) => {
                        link.drive(Box::pin(session.report(&error, out)).as_mut(), rest).await?;
                        failed(link, tag, session, skip_to_sync);
                    }
                    result => conclude(link, tag, result, session, skip_to_sync)?,
                }
            }
        }
        input.consume(total, &mut link.ahead);
    }
}

/// Bytes of a message that another thread decodes: to look through them holds the core.
const LONG: usize = 1 << 20;

/// Executes the long message that is next in the buffer, which is freed before.
async fn run_long<S, W, Se>(
    link: &mut Link<'_, S, W>,
    input: &mut Input,
    session: &mut Se,
    skip_to_sync: &mut bool,
) -> Result<(), Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Future<Output = io::Error>,
    Se: Session,
{
    let out = link.out;
    // Reading goes on behind it: with the buffer goes the message.
    let (mut buf, pos) = (std::mem::take(&mut input.buf), std::mem::take(&mut input.pos));
    let (tag, conversion) = (buf[pos], out.conversion());
    let decoded = session.elsewhere(move || {
        let frame = proto::frame(&buf[pos..]).ok().and_then(std::result::Result::ok);
        let Some(frame) = frame else { return (buf, Err(Error::internal("a message that is not there"))) };
        let total = frame.total();
        let decoded = Long::decode(frame, conversion);
        (buf.split_off(pos + total), decoded)
    });
    let (rest, decoded) = link.drive(Box::pin(decoded).as_mut(), &[]).await?.map_err(Ended::Fatal)?;
    input.buf = rest;
    let rest = &input.buf[..];
    let result = match decoded.as_ref().map(Long::message) {
        Ok(Frontend::Query(sql)) => link.drive(Box::pin(session.simple_query(sql, out)).as_mut(), rest).await?,
        Ok(Frontend::Parse(parse)) => {
            answered(out, b'1', link.drive(Box::pin(session.parse(parse, out)).as_mut(), rest).await?)
        }
        Ok(_) => Ok(()),
        Err(error) => {
            link.drive(Box::pin(session.fail(error)).as_mut(), rest).await?;
            Err(error.clone())
        }
    };
    match result {
        Err(error) if is_long(&error) => {
            link.drive(Box::pin(session.report(&error, out)).as_mut(), rest).await?;
            failed(link, tag, session, skip_to_sync);
        }
        result => conclude(link, tag, result, session, skip_to_sync)?,
    }
    input.consume(0, &mut link.ahead);
    Ok(())
}

/// What a message says.
fn parsed<'m>(frame: Frame<'m>, out: &Out, recoded: &'m mut Vec<u8>) -> Result<Frontend<'m>> {
    // COPY data outside a COPY is what a client sent before it learned that its COPY had failed: ignored, not even read.
    if matches!(frame.tag, b'd' | b'c' | b'f') {
        return Ok(Frontend::Flush);
    }
    let frame = match out.conversion() {
        None => frame,
        Some(conversion) => {
            types::room::ask(4 * frame.body.len())?;
            *recoded = proto::recode(frame, conversion)?;
            Frame { tag: frame.tag, body: recoded }
        }
    };
    match proto::parse(frame)? {
        Frontend::FunctionCall => {
            Err(Error::unsupported("function calls by the fast-path interface are not supported"))
        }
        message => Ok(message),
    }
}

/// Queues the answer of a message that succeeded.
fn answered(out: &Out, tag: u8, result: Result<()>) -> Result<()> {
    result.inspect(|()| out.append(|buf| backend::empty(buf, tag)))
}

/// Whether queueing an error takes long.
fn is_long(error: &Error) -> bool {
    let Fields { message, detail, context, severity, .. } = error.fields();
    let beside = detail.iter().chain(context).map(String::len).sum::<usize>();
    message.len() + beside > work::STRETCH && !matches!(severity, Severity::Fatal | Severity::Panic)
}

/// Reports an error, and says ReadyForQuery where the protocol wants it. Inlined into the loop over messages, whatever else calls it: called, it is
/// 140 instructions more for each statement.
#[inline(always)]
fn conclude<S, W, Se: Session>(
    link: &Link<'_, S, W>,
    tag: u8,
    result: Result<()>,
    session: &Se,
    skip_to_sync: &mut bool,
) -> Result<(), Ended> {
    if let Err(error) = result {
        if matches!(error.fields().severity, Severity::Fatal | Severity::Panic) {
            return Err(Ended::Fatal(error));
        }
        link.out.error(&error);
        failed(link, tag, session, skip_to_sync);
    } else if !is_extended(tag) {
        ready(link, session);
    }
    Ok(())
}

/// What follows an error that was reported.
fn failed<S, W, Se: Session>(link: &Link<'_, S, W>, tag: u8, session: &Se, skip_to_sync: &mut bool) {
    if is_extended(tag) {
        *skip_to_sync = true;
        return;
    }
    session.tell_settings(link.out);
    ready(link, session);
}

/// Whether a message of this type is part of a batch that Sync ends.
fn is_extended(tag: u8) -> bool {
    matches!(tag, b'P' | b'B' | b'D' | b'C' | b'E' | b'H')
}

fn ready<S, W, Se: Session>(link: &Link<'_, S, W>, session: &Se) {
    link.out.append(|buf| backend::ready_for_query(buf, session.transaction_status() as u8));
    link.out.end_series();
}
