//! A client of PostgreSQL's protocol that costs little CPU: one buffer each way, parameters written straight into the buffer,
//! results read where they arrived. It blocks its thread, or waits in the thread's reactor, as the caller wants ([`Reading`]).
//!
//! Statements are prepared once per connection under a name and run by the extended protocol with text parameters and
//! text results, as libpq does. [`Connection::bind`] queues a statement, [`Connection::run`] sends what is queued with
//! one Sync in one write and waits for the whole answer, so a caller decides what shares a round trip. Connecting asks
//! the server for nothing but the connection: no catalog is read, no setting is changed.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rustix::net::RecvFlags;

use super::row::Row;
use super::text::{parse_int, push_cents, push_int};
use super::{Failure, Param, nonsense, scram};
use crate::reactor::{self, PATIENCE};
use crate::target::Target;

/// One system call sends at most so many bytes. COPY data is gathered in pieces of about this size.
const PIECE_BYTES: usize = 256 << 10;

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}

/// Who waits while nothing arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// The thread: what reads so is never pending.
    Blocking,
    /// The task, in the thread's reactor.
    Pending,
}

struct Stream {
    socket: Socket,
    /// The reactor tells of what arrives.
    watched: bool,
    /// All that has arrived has been read, as far as is known.
    drained: bool,
}

impl Stream {
    fn open(target: &Target) -> io::Result<Stream> {
        let socket = if let Some(path) = target.socket_path() {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Socket::Unix(socket)
        } else {
            let socket = TcpStream::connect((target.host.trim_matches(['[', ']']), target.port))?;
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Socket::Tcp(socket)
        };
        Ok(Stream { socket, watched: false, drained: true })
    }

    async fn read(&mut self, into: &mut [u8], reading: Reading) -> io::Result<usize> {
        if reading == Reading::Blocking {
            return match &mut self.socket {
                Socket::Tcp(socket) => socket.read(into),
                Socket::Unix(socket) => socket.read(into),
            };
        }
        if !self.watched {
            reactor::watch(self.socket.as_fd())?;
            self.watched = true;
        }
        loop {
            if self.drained {
                reactor::news().await?;
            }
            let length = into.len();
            match rustix::net::recv(&self.socket, &mut *into, RecvFlags::DONTWAIT) {
                Ok((read, _)) => {
                    self.drained = read < length;
                    return Ok(read);
                }
                Err(rustix::io::Errno::AGAIN) => self.drained = true,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends long data by several system calls. A kernel without preemption gives the processor to no other thread during one call: a call for 100 MB held it
    /// for up to 25 ms.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(PIECE_BYTES).try_for_each(|piece| match &mut self.socket {
            Socket::Tcp(socket) => socket.write_all(piece),
            Socket::Unix(socket) => socket.write_all(piece),
        })
    }
}

/// What blocks its thread is never pending.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("it was to block"),
    }
}

/// Bytes from the server that are not read yet, at `start..end` of one buffer.
struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// One message: its kind and where its body lies in the inbox.
type Message = (u8, std::ops::Range<usize>);

impl Inbox {
    /// The next message. The bodies of messages stay in place until [`Inbox::forget`].
    async fn next(&mut self, stream: &mut Stream, reading: Reading) -> Result<Message, Failure> {
        self.have(stream, 5, reading).await?;
        let head = &self.bytes[self.start..self.start + 5];
        let (kind, length) = (head[0], i32::from_be_bytes([head[1], head[2], head[3], head[4]]));
        // A row of this lab has a few kilobytes; a length beyond a gigabyte is not one.
        let length = usize::try_from(length).ok().filter(|n| (4..1 << 30).contains(n));
        let length = length.ok_or_else(|| nonsense("a message's length"))?;
        self.have(stream, 1 + length, reading).await?;
        let body = self.start + 5..self.start + 1 + length;
        self.start = body.end;
        Ok((kind, body))
    }

    async fn have(&mut self, stream: &mut Stream, wanted: usize, reading: Reading) -> Result<(), Failure> {
        while self.end - self.start < wanted {
            if self.end == self.bytes.len() || self.start + wanted > self.bytes.len() {
                self.bytes.resize((self.bytes.len() * 2).max(self.start + wanted), 0);
            }
            match stream.read(&mut self.bytes[self.end..], reading).await {
                Ok(0) => return Err(Failure::Lost("the server closed the connection".into())),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Makes room: no earlier message is looked at any more.
    fn forget(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
    }
}

/// A connection to a server.
pub(super) struct Connection {
    stream: Stream,
    outbox: Vec<u8>,
    inbox: Inbox,
    /// Where the rows of the last answer lie in the inbox.
    rows: Vec<std::ops::Range<usize>>,
    affected: u64,
    transaction: u8,
    server_version: String,
}

impl Connection {
    /// Connects and logs in.
    pub fn open(target: &Target) -> Result<Connection, Failure> {
        let stream = Stream::open(target).map_err(|e| Failure::Lost(format!("{target}: {e}")))?;
        let mut connection = Connection {
            stream,
            outbox: Vec::with_capacity(4096),
            inbox: Inbox { bytes: vec![0; 64 << 10], start: 0, end: 0 },
            rows: Vec::new(),
            affected: 0,
            transaction: b'I',
            server_version: String::new(),
        };
        connection.log_in(target)?;
        Ok(connection)
    }

    /// What the server called its version at start-up.
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// Whether a transaction is open, healthy or not.
    pub fn in_transaction(&self) -> bool {
        self.transaction != b'I'
    }

    /// Rows that the last command of the last answer changed or returned.
    pub fn affected(&self) -> u64 {
        self.affected
    }

    /// Number of rows in the last answer.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Row `index` of the last answer.
    ///
    /// # Panics
    /// If the answer has no such row: look at [`Connection::row_count`] first.
    pub fn row(&self, index: usize) -> Row<'_> {
        Row { cells: &self.inbox.bytes[self.rows[index].clone()] }
    }

    fn log_in(&mut self, target: &Target) -> Result<(), Failure> {
        let at = self.outbox.len();
        self.outbox.extend_from_slice(&[0; 4]);
        self.outbox.extend_from_slice(&(3u32 << 16).to_be_bytes());
        for (name, value) in [
            ("user", target.user.as_str()),
            ("database", &target.database),
            ("application_name", "nyala bench"),
            ("client_encoding", "UTF8"),
        ] {
            for text in [name, value] {
                self.outbox.extend_from_slice(text.as_bytes());
                self.outbox.push(0);
            }
        }
        self.outbox.push(0);
        end_message(&mut self.outbox, at);
        self.send()?;
        let mut exchange = None;
        loop {
            self.inbox.forget();
            let (kind, body) = now(self.inbox.next(&mut self.stream, Reading::Blocking))?;
            match kind {
                b'R' => self.authenticate(body, target, &mut exchange)?,
                b'S' => self.note_parameter(body),
                b'E' => return Err(failure(&self.inbox.bytes[body])),
                b'Z' => return Ok(()),
                // BackendKeyData, NegotiateProtocolVersion, notices.
                _ => {}
            }
        }
    }

    fn authenticate(
        &mut self,
        body: std::ops::Range<usize>,
        target: &Target,
        exchange: &mut Option<scram::Exchange>,
    ) -> Result<(), Failure> {
        let body = &self.inbox.bytes[body];
        let (code, rest) = body.split_first_chunk::<4>().ok_or_else(|| nonsense("authentication"))?;
        let refuse = |why: &str| Failure::Lost(format!("cannot log in: {why}"));
        let password = || target.password.as_deref().ok_or_else(|| refuse("the server asks for a password"));
        let started = || exchange.is_some().then_some(()).ok_or_else(|| nonsense("SCRAM out of order"));
        match u32::from_be_bytes(*code) {
            0 => return Ok(()),
            3 => {
                let at = begin_message(&mut self.outbox, b'p');
                self.outbox.extend_from_slice(password()?.as_bytes());
                self.outbox.push(0);
                end_message(&mut self.outbox, at);
            }
            10 => {
                if !rest.split(|&b| b == 0).any(|name| name == scram::MECHANISM.as_bytes()) {
                    return Err(refuse("the server offers no SCRAM-SHA-256"));
                }
                let mut random = [0; 18];
                File::open("/dev/urandom")?.read_exact(&mut random)?;
                let new = scram::Exchange::new(password()?, &random);
                let first = new.client_first();
                let at = begin_message(&mut self.outbox, b'p');
                self.outbox.extend_from_slice(scram::MECHANISM.as_bytes());
                self.outbox.push(0);
                self.outbox.extend_from_slice(&(first.len() as i32).to_be_bytes());
                self.outbox.extend_from_slice(first.as_bytes());
                end_message(&mut self.outbox, at);
                *exchange = Some(new);
            }
            11 => {
                started()?;
                let server_first = String::from_utf8_lossy(rest);
                let answer = exchange.as_mut().map(|e| e.client_final(&server_first)).expect("checked above");
                let at = begin_message(&mut self.outbox, b'p');
                self.outbox.extend_from_slice(answer.map_err(Failure::Lost)?.as_bytes());
                end_message(&mut self.outbox, at);
            }
            12 => {
                let server_final = String::from_utf8_lossy(rest);
                if !exchange.as_ref().is_some_and(|e| e.server_is_right(&server_final)) {
                    return Err(refuse("the server does not know the password either"));
                }
                return Ok(());
            }
            5 => return Err(refuse("the server asks for MD5, which is not supported; use SCRAM-SHA-256")),
            other => return Err(refuse(&format!("the server asks for method {other}, which is not supported"))),
        }
        self.send()
    }

    fn note_parameter(&mut self, body: std::ops::Range<usize>) {
        let mut parts = self.inbox.bytes[body].split(|&b| b == 0);
        if parts.next() == Some(b"server_version") {
            self.server_version = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        }
    }

    /// Prepares `statements`; statement `i` is then known to [`Connection::bind`] as `i`.
    pub fn prepare(&mut self, statements: &[String]) -> Result<(), Failure> {
        for (id, sql) in statements.iter().enumerate() {
            let at = begin_message(&mut self.outbox, b'P');
            push_name(&mut self.outbox, id);
            self.outbox.extend_from_slice(sql.as_bytes());
            self.outbox.extend_from_slice(&[0, 0, 0]);
            end_message(&mut self.outbox, at);
        }
        self.run()
    }

    /// Queues prepared statement `id` with its parameters, in the order of its `$n`.
    pub fn bind(&mut self, id: usize, params: &[Param<'_>]) {
        let out = &mut self.outbox;
        let at = begin_message(out, b'B');
        // The unnamed portal, and no list of formats: everything is text.
        out.push(0);
        push_name(out, id);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(params.len() as u16).to_be_bytes());
        for param in params {
            push_param(out, *param);
        }
        out.extend_from_slice(&[0, 0]);
        end_message(out, at);
        // Execute the unnamed portal without a limit of rows.
        out.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0");
    }

    /// Sends what is queued in one write and waits for the whole answer. All rows of it can then be looked at.
    pub fn run(&mut self) -> Result<(), Failure> {
        self.send_queue()?;
        now(self.receive(Reading::Blocking))
    }

    /// The same in a reactor.
    pub async fn run_in_turn(&mut self) -> Result<(), Failure> {
        self.send_queue()?;
        self.receive(Reading::Pending).await
    }

    /// Runs SQL text through the simple protocol.
    pub fn query(&mut self, sql: &str) -> Result<(), Failure> {
        self.push_query(sql);
        self.send()?;
        now(self.receive(Reading::Blocking))
    }

    /// The same in a reactor.
    pub async fn query_in_turn(&mut self, sql: &str) -> Result<(), Failure> {
        self.push_query(sql);
        self.send()?;
        self.receive(Reading::Pending).await
    }

    fn send_queue(&mut self) -> Result<(), Failure> {
        self.outbox.extend_from_slice(b"S\0\0\0\x04");
        self.send()
    }

    /// Sends rows to `COPY … FROM STDIN`. `fill` appends rows in text format to the buffer until it answers `false`; it
    /// is called again each time the buffer was sent. Returns the rows that the server counted.
    pub fn copy_in(&mut self, copy: &str, mut fill: impl FnMut(&mut Vec<u8>) -> bool) -> Result<u64, Failure> {
        self.push_query(copy);
        self.send()?;
        self.inbox.forget();
        loop {
            match now(self.inbox.next(&mut self.stream, Reading::Blocking))? {
                (b'G', _) => break,
                (b'E', body) => {
                    let error = failure(&self.inbox.bytes[body]);
                    now(self.receive(Reading::Blocking))?;
                    return Err(error);
                }
                (b'Z', _) => return Err(nonsense("COPY ended before it began")),
                _ => {}
            }
        }
        let mut more = true;
        while more {
            let at = begin_message(&mut self.outbox, b'd');
            while more && self.outbox.len() < PIECE_BYTES {
                more = fill(&mut self.outbox);
            }
            end_message(&mut self.outbox, at);
            self.send()?;
        }
        self.outbox.extend_from_slice(b"c\0\0\0\x04");
        self.send()?;
        now(self.receive(Reading::Blocking))?;
        Ok(self.affected)
    }

    fn push_query(&mut self, sql: &str) {
        let at = begin_message(&mut self.outbox, b'Q');
        self.outbox.extend_from_slice(sql.as_bytes());
        self.outbox.push(0);
        end_message(&mut self.outbox, at);
    }

    fn send(&mut self) -> Result<(), Failure> {
        let sent = self.stream.write_all(&self.outbox);
        self.outbox.clear();
        Ok(sent?)
    }

    /// Reads up to ReadyForQuery. The first error is the answer.
    async fn receive(&mut self, reading: Reading) -> Result<(), Failure> {
        self.inbox.forget();
        self.rows.clear();
        self.affected = 0;
        let mut error = None;
        loop {
            let (kind, body) = match (self.inbox.next(&mut self.stream, reading).await, &error) {
                (Ok(message), _) => message,
                // A server that ends a connection says why before it closes.
                (Err(_), Some(why)) => return Err(Failure::Lost(format!("{why}"))),
                (Err(lost), None) => return Err(lost),
            };
            match kind {
                b'D' => self.rows.push(body),
                b'C' => self.affected = affected(&self.inbox.bytes[body]),
                b'E' => error = error.or_else(|| Some(failure(&self.inbox.bytes[body]))),
                b'Z' => {
                    self.transaction = *self.inbox.bytes[body].first().ok_or_else(|| nonsense("ReadyForQuery"))?;
                    return error.map_or(Ok(()), Err);
                }
                b'S' => self.note_parameter(body),
                // ParseComplete, BindComplete, RowDescription, NoData, EmptyQueryResponse, notices, notifications.
                b'1' | b'2' | b'3' | b'T' | b'n' | b'I' | b'N' | b'A' | b't' => {}
                other => return Err(nonsense(&format!("message {:?}", char::from(other)))),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Terminate, so that the server does not log a lost client. It is no loss if it does not arrive.
        let _ = self.stream.write_all(b"X\0\0\0\x04");
    }
}

/// The count at the end of a command tag.
fn affected(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
    let last = tag.rsplit(|&b| b == b' ').next().unwrap_or_default();
    parse_int(last).map_or(0, |n| n as u64)
}

fn failure(body: &[u8]) -> Failure {
    let field = |kind: u8| body.split(|&b| b == 0).find(|f| f.first() == Some(&kind)).map(|f| &f[1..]);
    let state = field(b'C').and_then(|c| c.try_into().ok()).unwrap_or(*b"XX000");
    let mut message = String::from_utf8_lossy(field(b'M').unwrap_or(b"no message")).into_owned();
    if let Some(detail) = field(b'D') {
        message = format!("{message}: {}", String::from_utf8_lossy(detail));
    }
    Failure::Server { state, message }
}

fn begin_message(out: &mut Vec<u8>, kind: u8) -> usize {
    out.push(kind);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

fn end_message(out: &mut [u8], at: usize) {
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn push_name(out: &mut Vec<u8>, id: usize) {
    out.push(b's');
    push_int(out, id as i64);
    out.push(0);
}

fn push_param(out: &mut Vec<u8>, param: Param<'_>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    match param {
        Param::Int(value) => push_int(out, value),
        Param::Cents(value) => push_cents(out, value),
        Param::Text(text) => out.extend_from_slice(text),
        Param::Null => return out[at..].fill(0xff),
    }
    // The length of a parameter does not count itself.
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bind_is_byte_for_byte_what_the_protocol_says() {
        let mut out = Vec::new();
        push_param(&mut out, Param::Cents(-150));
        assert_eq!(out, b"\0\0\0\x05-1.50");
        let mut out = Vec::new();
        push_param(&mut out, Param::Null);
        assert_eq!(out, [0xff; 4]);
        let mut out = Vec::new();
        push_name(&mut out, 12);
        assert_eq!(out, b"s12\0");
        let at = begin_message(&mut out, b'Q');
        out.push(0);
        end_message(&mut out, at);
        assert_eq!(&out[4..], b"Q\0\0\0\x05\0");
    }

    #[test]
    fn tags_and_errors_are_read() {
        assert_eq!(affected(b"INSERT 0 5\0"), 5);
        assert_eq!(affected(b"COPY 100000\0"), 100_000);
        assert_eq!(affected(b"BEGIN\0"), 0);
        let error = failure(b"SERROR\0C40001\0Mcould not\0Dwhy\0\0");
        assert_eq!((error.state(), error.is_conflict()), ("40001", true));
        assert_eq!(error.to_string(), "could not: why (SQLSTATE 40001)");
        assert_eq!(failure(b"").state(), "XX000");
    }
}
