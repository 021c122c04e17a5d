//! A session whose "SQL" says what it shall do, a client that speaks bytes, and a stream that counts writes.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use base::{Error, Lsn, Oid, Result, SqlState};
use pgwire::conn::{Options, serve};
use pgwire::*;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::sync::Notify;

/// A value that tests and sessions share.
#[derive(Default)]
pub struct Cell<T>(Mutex<T>);

impl<T> Cell<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }

    pub fn set(&self, value: T) {
        *self.lock() = value;
    }
}

impl<T: Copy> Cell<T> {
    pub fn get(&self) -> T {
        *self.lock()
    }
}

/// What tests and sessions share.
#[derive(Default)]
pub struct World {
    pub calls: Cell<Vec<String>>,
    pub durable: Cell<u64>,
    pub moved: Notify,
    pub go: Notify,
    pub notify: Notify,
    pub writes: Cell<u64>,
    pub produced: Cell<u64>,
    pub dropped: Cell<bool>,
    pub verifier: Cell<Option<AuthPlan>>,
}

impl World {
    pub fn make_durable(&self, lsn: u64) {
        self.durable.set(lsn);
        self.moved.notify_waiters();
    }

    pub fn calls(&self) -> String {
        self.calls.lock().join("; ")
    }
}

#[derive(Clone)]
pub struct Fake(pub Arc<World>);

impl DurableHorizon for Fake {
    fn current(&self) -> Lsn {
        Lsn(self.0.durable.get())
    }

    async fn wait(&self, lsn: Lsn) {
        while self.current() < lsn {
            self.0.moved.notified().await;
        }
    }
}

impl Backend for Fake {
    type Session = FakeSession;
    type Horizon = Fake;

    fn horizon(&self) -> &Fake {
        self
    }

    async fn authenticate(&self, startup: &Startup, _: &Peer) -> AuthPlan {
        match startup.user.as_str() {
            "reject" => AuthPlan::Reject(Error::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, "no")),
            _ => self.0.verifier.lock().clone().unwrap_or(AuthPlan::Trust),
        }
    }

    async fn start(&self, startup: &Startup, _: &Peer, _: BackendKey, out: &Out) -> Result<FakeSession> {
        if startup.database == "missing" {
            return Err(Error::new(SqlState::INVALID_CATALOG_NAME, "database \"missing\" does not exist"));
        }
        out.parameter_status("server_version", "15.0");
        let (world, cancel) = (Arc::clone(&self.0), Arc::default());
        let (statements, portals) = (BTreeMap::new(), BTreeMap::new());
        Ok(FakeSession { world, statements, portals, failed: false, cancel })
    }
}

#[derive(Default)]
pub struct Cancel(AtomicU64, Notify);

impl CancelHandle for Cancel {
    fn cancel(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.1.notify_one();
    }
}

pub struct FakeSession {
    world: Arc<World>,
    statements: BTreeMap<String, String>,
    portals: BTreeMap<String, (String, u64)>,
    failed: bool,
    cancel: Arc<Cancel>,
}

impl Drop for FakeSession {
    fn drop(&mut self) {
        self.world.dropped.set(true);
    }
}

impl FakeSession {
    fn log(&self, call: impl Into<String>) {
        self.world.calls.lock().push(call.into());
    }

    /// Runs one script; `done` rows have been sent, at most `max` more may be.
    async fn script(&self, sql: &str, done: &mut u64, max: u32, out: &Out) -> Result<()> {
        let (verb, argument) = sql.split_once(' ').unwrap_or((sql, ""));
        let number = argument.parse::<u64>().unwrap_or(0);
        match verb {
            "" => out.empty_query(),
            "rows" => return self.rows(number, done, max, out).await,
            "gate" => {
                out.raise_gate(Lsn(number));
                out.command_complete("GATE");
            }
            "wait" => {
                self.world.go.notified().await;
                out.command_complete("WAIT");
            }
            "core" => {
                let thread = std::thread::current();
                out.data_row(1, |row| {
                    row.bytes(thread.name().unwrap_or_default().as_bytes());
                    Ok::<_, Error>(())
                })?;
                out.command_complete_rows("SELECT", 1);
            }
            "wide" => {
                out.data_row(1, |row| row.with(|buf| buf.resize(buf.len() + number as usize, b'x')))?;
                out.command_complete_rows("SELECT", 1);
            }
            "cancelled" => {
                self.cancel.1.notified().await;
                return Err(Error::new(SqlState::QUERY_CANCELED, "canceling statement due to user request"));
            }
            "fail" => return Err(Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")),
            "fatal" => return Err(Error::fatal(SqlState::ADMIN_SHUTDOWN, "the end")),
            "copyin" => return self.copy_in(out).await,
            "giveup" => {
                // Starts to wait for COPY data and for room, and thinks better of both.
                out.copy_in_response(Format::Text, 1);
                let mut chunk = Vec::new();
                tokio::select! {
                    biased;
                    _ = out.next_copy(&mut chunk) => {}
                    _ = out.flush() => {}
                    _ = tokio::task::yield_now() => {}
                }
                out.data_row(1, |row| row.with(|buf| buf.resize(buf.len() + (100 << 10), b'x')))?;
                tokio::select! {
                    biased;
                    _ = out.flush() => {}
                    _ = tokio::task::yield_now() => {}
                }
                self.world.go.notified().await;
                return Err(Error::new(SqlState::BAD_COPY_FILE_FORMAT, "gave up"));
            }
            "copyout" => {
                out.copy_out_response(Format::Text, 1);
                for i in 0..number {
                    out.copy_data(|buf| {
                        buf.extend(format!("{i}\n").bytes());
                        Ok(())
                    })?;
                }
                out.copy_done();
                out.command_complete_rows("COPY", number);
            }
            _ => out.command_complete(sql),
        }
        Ok(())
    }

    async fn rows(&self, number: u64, done: &mut u64, max: u32, out: &Out) -> Result<()> {
        let mut sent = 0;
        while *done < number {
            if max > 0 && sent == max {
                out.portal_suspended();
                return Ok(());
            }
            out.data_row(1, |row| {
                row.bytes(b"0123456789");
                Ok::<_, Error>(())
            })?;
            (*done, sent) = (*done + 1, sent + 1);
            self.world.produced.set(self.world.produced.get() + 1);
            if out.wants_flush() {
                out.flush().await;
            }
        }
        out.command_complete_rows("SELECT", u64::from(sent));
        Ok(())
    }

    async fn copy_in(&self, out: &Out) -> Result<()> {
        out.copy_in_response(Format::Text, 1);
        let (mut chunk, mut lines) = (Vec::new(), 0);
        while out.next_copy(&mut chunk).await? == CopyIn::Data {
            if chunk.starts_with(b"bad") {
                return Err(Error::new(SqlState::BAD_COPY_FILE_FORMAT, "bad line"));
            }
            lines += chunk.iter().filter(|&&b| b == b'\n').count() as u64;
            chunk.clear();
        }
        out.command_complete_rows("COPY", lines);
        Ok(())
    }
}

impl Session for FakeSession {
    async fn simple_query(&mut self, sql: &str, out: &Out) -> Result<()> {
        self.log(format!("query {sql}"));
        for sql in sql.split(';') {
            let sql = sql.trim();
            if sql.starts_with("rows") {
                let column = Column {
                    name: "a",
                    table: Oid(0),
                    attribute: 0,
                    type_oid: Oid(25),
                    type_len: -1,
                    type_mod: -1,
                    format: Format::Text,
                };
                out.row_description([column].into_iter())?;
            }
            self.script(sql, &mut 0, 0, out).await?;
        }
        Ok(())
    }

    async fn parse(&mut self, parse: Parse<'_>, _: &Out) -> Result<()> {
        self.log(format!("parse {}", parse.sql));
        if parse.sql == "syntax" {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "syntax error"));
        }
        self.statements.insert(parse.name.to_owned(), parse.sql.to_owned());
        Ok(())
    }

    async fn bind(&mut self, bind: Bind<'_>, _: &Out) -> Result<()> {
        let values: Vec<_> = bind.values.iter().map(|v| v.map(String::from_utf8_lossy)).collect();
        self.log(format!("bind {} {values:?}", bind.statement));
        let sql = self.statements.get(bind.statement).cloned();
        let sql = sql.ok_or_else(|| Error::new(SqlState::INVALID_SQL_STATEMENT_NAME, "no such statement"))?;
        self.portals.insert(bind.portal.to_owned(), (sql, 0));
        Ok(())
    }

    async fn describe_statement(&mut self, _: &str, out: &Out) -> Result<()> {
        out.parameter_description([Oid(23)].into_iter());
        out.no_data();
        Ok(())
    }

    async fn describe_portal(&mut self, _: &str, out: &Out) -> Result<()> {
        out.no_data();
        Ok(())
    }

    async fn execute(&mut self, portal: &str, max_rows: u32, out: &Out) -> Result<()> {
        self.log(format!("execute {portal}"));
        let found = self.portals.remove(portal);
        let (sql, mut done) = found.ok_or_else(|| Error::new(SqlState::INVALID_CURSOR_NAME, "no such portal"))?;
        let result = self.script(&sql, &mut done, max_rows, out).await;
        self.portals.insert(portal.to_owned(), (sql, done));
        result
    }

    async fn close_statement(&mut self, name: &str, _: &Out) -> Result<()> {
        self.statements.remove(name);
        Ok(())
    }

    async fn close_portal(&mut self, name: &str, _: &Out) -> Result<()> {
        self.portals.remove(name);
        Ok(())
    }

    async fn sync(&mut self, _: &Out) -> Result<()> {
        self.log("sync");
        Ok(())
    }

    async fn fail(&mut self, error: &Error) {
        self.log(format!("fail {error}"));
        self.failed = true;
    }

    async fn report(&mut self, error: &Error, out: &Out) {
        out.error(error);
    }

    async fn idle(&mut self, out: &Out) -> Result<()> {
        loop {
            self.world.notify.notified().await;
            out.notification(1, "channel", "payload");
        }
    }

    async fn terminate(&mut self) {
        self.log("terminate");
    }

    fn transaction_status(&self) -> TransactionStatus {
        if self.failed { TransactionStatus::Failed } else { TransactionStatus::Idle }
    }

    fn cancel_handle(&self) -> Arc<dyn CancelHandle> {
        self.cancel.clone()
    }
}

/// Counts the writes that took something.
struct Counting(DuplexStream, Arc<World>);

impl AsyncRead for Counting {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counting {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.0).poll_write(cx, bytes);
        self.1.writes.set(self.1.writes.get() + u64::from(result.is_ready()));
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A client over bytes.
pub struct Client<S = DuplexStream> {
    pub stream: S,
    received: Vec<u8>,
    /// What broke the stream off.
    broken: Option<std::io::ErrorKind>,
}

/// One message of the server.
pub type Message = (char, Vec<u8>);

/// A frontend message.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

/// Parse, Bind and Execute of an unnamed statement.
pub fn extended(sql: &str, max_rows: u8) -> Vec<u8> {
    let mut bytes = message(b'P', format!("\0{sql}\0\0\0").as_bytes());
    bytes.extend(message(b'B', b"\0\0\0\0\0\x01\0\0\0\x02hi\0\0"));
    bytes.extend(execute(max_rows));
    bytes
}

pub fn execute(max_rows: u8) -> Vec<u8> {
    message(b'E', &[0, 0, 0, 0, max_rows])
}

pub fn sync() -> Vec<u8> {
    message(b'S', b"")
}

pub fn startup(body: &str) -> Vec<u8> {
    let mut bytes = (body.len() as u32 + 9).to_be_bytes().to_vec();
    bytes.extend((3u32 << 16).to_be_bytes());
    bytes.extend(body.bytes());
    bytes.push(0);
    bytes
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub fn new(stream: S) -> Client<S> {
        Client { stream, received: Vec::new(), broken: None }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next message, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            if self.received.len() >= 5 {
                let n = u32::from_be_bytes(self.received[1..5].try_into().unwrap()) as usize + 1;
                if self.received.len() >= n {
                    let message = (self.received[0] as char, self.received[5..n].to_vec());
                    self.received.drain(..n);
                    return Some(message);
                }
            }
            let read = self.stream.read_buf(&mut self.received).await;
            // A connection that is reset is no end of a stream.
            self.broken = read.as_ref().err().map(std::io::Error::kind);
            let n = read.unwrap_or(0);
            if n == 0 {
                assert!(self.received.is_empty(), "the stream ended in a message: {:?}", self.received);
                return None;
            }
        }
    }

    /// The tags of all messages up to the first `last`, errors with their text.
    pub async fn until(&mut self, last: char) -> String {
        let mut tags = String::new();
        while let Some((tag, body)) = self.next().await {
            tags.push(tag);
            if tag == 'E' {
                tags.push_str(&format!("({})", error_text(&body)));
            }
            if tag == last {
                break;
            }
        }
        if let Some(kind) = self.broken {
            tags.push_str(&format!("({kind})"));
        }
        tags
    }

    /// All that is left until the server closes.
    pub async fn rest_of_stream(&mut self) -> String {
        self.until('\0').await
    }

    pub async fn login(&mut self) -> i32 {
        self.send(&startup("user\0u\0")).await;
        let mut pid = 0;
        while let Some((tag, body)) = self.next().await {
            match tag {
                'K' => pid = i32::from_be_bytes(body[..4].try_into().unwrap()),
                'Z' => return pid,
                'E' => panic!("{}", error_text(&body)),
                _ => {}
            }
        }
        panic!("closed during login")
    }
}

/// SQLSTATE and message of an ErrorResponse.
pub fn error_text(body: &[u8]) -> String {
    let field = |code| {
        let found = body.split(|&b| b == 0).find(|f| f.first() == Some(&code));
        String::from_utf8_lossy(found.map_or(&[], |f| &f[1..])).into_owned()
    };
    format!("{} {}: {}", field(b'S'), field(b'C'), field(b'M'))
}

/// Runs `test` against one connection with a pipe of `capacity` bytes. The third argument ends connections.
pub fn with_connection_of(capacity: usize, test: impl AsyncFnOnce(&mut Client, &Arc<World>, &Arc<Registry>)) {
    let runtime = tokio::runtime::LocalRuntime::new().unwrap();
    runtime.block_on(async {
        let (world, registry) = (Arc::new(World::default()), Arc::new(Registry::new([9; 32])));
        let (mine, theirs) = tokio::io::duplex(capacity);
        let (backend, stream) = (Fake(Arc::clone(&world)), Counting(theirs, Arc::clone(&world)));
        let shared = Arc::clone(&registry);
        tokio::task::spawn_local(async move {
            let limit = std::time::Duration::from_millis(100);
            let options = Options { login_timeout: limit * 50, linger: limit, disconnect_grace: limit, tls: None };
            serve(stream, &Peer::Unix, &backend, &shared, &options, None).await;
        });
        test(&mut Client::new(mine), &world, &registry).await;
    });
}

/// Runs `test` against one connection that has logged in.
pub fn with_session(test: impl AsyncFnOnce(&mut Client, &Arc<World>, &Arc<Registry>)) {
    with_connection_of(1 << 20, async |client, world, registry| {
        client.login().await;
        world.writes.set(0);
        test(client, world, registry).await;
    });
}

/// Lets the other tasks run until none can.
pub async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
