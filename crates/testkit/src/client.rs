//! A PostgreSQL client that hides nothing: every message of an answer becomes an [`Event`].
//!
//! It sends a message and waits for ReadyForQuery; it can also send now and read later, which is how schedules
//! find out that a statement is blocked.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::reply::{Column, Event, Fields, Inside, Reply, known_type, without_session};

/// How long [`Connection::query`] waits before it gives the connection up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection on which one exchange at a time is under way.
pub struct Connection {
    stream: TcpStream,
    port: u16,
    received: Vec<u8>,
    pending: Vec<Event>,
    copy_data: Vec<u8>,
    key: Option<(u32, u32)>,
    closed: bool,
    binary: bool,
}

impl Connection {
    /// Connects as user `postgres`, without a password.
    pub fn open(port: u16, database: &str) -> io::Result<Connection> {
        let parameters = [("user", "postgres"), ("database", database), ("application_name", "testkit")];
        match Connection::open_with(port, &parameters)? {
            (connection, reply) if reply.status.is_some() => Ok(connection),
            (_, reply) => Err(io::Error::other(reply.to_string())),
        }
    }

    /// Connects with these start-up parameters, without a password; the answer, which may be a refusal.
    pub fn open_with(port: u16, parameters: &[(&str, &str)]) -> io::Result<(Connection, Reply)> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let mut connection = Connection {
            stream,
            port,
            received: Vec::new(),
            pending: Vec::new(),
            copy_data: Vec::new(),
            key: None,
            closed: false,
            binary: false,
        };
        let mut body = 196_608u32.to_be_bytes().to_vec();
        for (name, value) in parameters {
            put_text(&mut body, name);
            put_text(&mut body, value);
        }
        body.push(0);
        connection.stream.write_all(&framed(&body))?;
        let reply = connection.receive(PATIENCE).ok_or(ErrorKind::TimedOut)?;
        Ok((connection, reply))
    }

    /// Sends a simple Query and waits for the whole answer, at most half a minute.
    pub fn query(&mut self, sql: &str) -> Reply {
        self.send(sql);
        self.patiently()
    }

    /// Like [`Connection::query`]; if the server asks for COPY data, it gets `data`.
    pub fn copy(&mut self, sql: &str, data: &str) -> Reply {
        self.copy_data = data.as_bytes().to_vec();
        let reply = self.query(sql);
        self.copy_data.clear();
        reply
    }

    /// Parses, describes, binds with text parameters, executes and syncs one statement; rows come as text.
    pub fn extended(&mut self, sql: &str, parameters: &[Option<&str>]) -> Reply {
        self.prepared(sql, parameters, 0)
    }

    /// Like [`Connection::extended`], but rows come in binary form and are shown in hexadecimal.
    pub fn binary(&mut self, sql: &str, parameters: &[Option<&str>]) -> Reply {
        self.binary = true;
        let reply = self.prepared(sql, parameters, 1);
        self.binary = false;
        reply
    }

    fn prepared(&mut self, sql: &str, parameters: &[Option<&str>], result_format: u16) -> Reply {
        let mut messages = Vec::new();
        put_parse(&mut messages, sql);
        put_message(&mut messages, b'D', b"S\0");
        let mut bind = b"\0\0\0\0".to_vec();
        bind.extend((parameters.len() as u16).to_be_bytes());
        for parameter in parameters {
            match parameter {
                Some(text) => {
                    bind.extend((text.len() as u32).to_be_bytes());
                    bind.extend(text.as_bytes());
                }
                None => bind.extend((-1i32).to_be_bytes()),
            }
        }
        bind.extend(1u16.to_be_bytes());
        bind.extend(result_format.to_be_bytes());
        put_message(&mut messages, b'B', &bind);
        put_message(&mut messages, b'E', b"\0\0\0\0\0");
        put_message(&mut messages, b'S', b"");
        self.write(&messages);
        self.patiently()
    }

    /// Like [`Connection::extended`] with one parameter in binary form.
    pub fn with_binary(&mut self, sql: &str, parameter: &[u8]) -> Reply {
        let mut messages = Vec::new();
        put_parse(&mut messages, sql);
        let mut bind = b"\0\0\0\x01\0\x01\0\x01".to_vec();
        bind.extend((parameter.len() as u32).to_be_bytes());
        bind.extend(parameter);
        bind.extend(0u16.to_be_bytes());
        put_message(&mut messages, b'B', &bind);
        put_message(&mut messages, b'E', b"\0\0\0\0\0");
        put_message(&mut messages, b'S', b"");
        self.write(&messages);
        self.patiently()
    }

    /// Parses and describes many statements without running them, each with an answer of its own.
    pub fn describe(&mut self, statements: &[String]) -> Vec<Reply> {
        let mut messages = Vec::new();
        for sql in statements {
            put_parse(&mut messages, sql);
            put_message(&mut messages, b'D', b"S\0");
            put_message(&mut messages, b'S', b"");
        }
        self.write(&messages);
        statements.iter().map(|_| self.patiently()).collect()
    }

    fn patiently(&mut self) -> Reply {
        if let Some(reply) = self.receive(PATIENCE) {
            return reply;
        }
        self.closed = true;
        let mut events = std::mem::take(&mut self.pending);
        events.push(Event::NoAnswer);
        Reply { events, status: None }
    }

    /// Sends a simple Query without waiting.
    pub fn send(&mut self, sql: &str) {
        let mut body = Vec::new();
        put_text(&mut body, sql);
        let mut message = Vec::new();
        put_message(&mut message, b'Q', &body);
        self.write(&message);
    }

    /// The answer to what was sent, or `None` if it is not complete within `limit`.
    pub fn receive(&mut self, limit: Duration) -> Option<Reply> {
        let deadline = Instant::now() + limit;
        loop {
            while let Some((kind, body)) = self.next_message() {
                if let Some(status) = self.accept(kind, &body) {
                    return Some(Reply { events: std::mem::take(&mut self.pending), status: Some(status) });
                }
            }
            if self.closed {
                return Some(Reply { events: std::mem::take(&mut self.pending), status: None });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.read_some(left);
        }
    }

    /// Waits, without having sent anything, until `count` messages have come, the connection is closed, or `limit` is over.
    pub fn listen(&mut self, count: usize, limit: Duration) -> Vec<Event> {
        let deadline = Instant::now() + limit;
        loop {
            while let Some((kind, body)) = self.next_message() {
                self.accept(kind, &body);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if self.pending.len() >= count || self.closed || left.is_zero() {
                return std::mem::take(&mut self.pending);
            }
            self.read_some(left);
        }
    }

    /// Asks the server, over another connection, to cancel what this one is running.
    pub fn cancel(&self) {
        let (pid, secret) = self.key.expect("the server has sent a cancel key");
        let mut body = 80_877_102u32.to_be_bytes().to_vec();
        body.extend(pid.to_be_bytes());
        body.extend(secret.to_be_bytes());
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server accepts connections");
        stream.write_all(&framed(&body)).expect("a new connection takes a cancel request");
        let _ = stream.read(&mut [0]);
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Running servers notice a failed write as a closed connection at the next read.
    fn write(&mut self, bytes: &[u8]) {
        if self.stream.write_all(bytes).is_err() {
            self.closed = true;
        }
    }

    fn read_some(&mut self, limit: Duration) {
        let mut chunk = [0; 16 * 1024];
        let limit = limit.max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(limit)).expect("a timeout above zero is valid");
        match self.stream.read(&mut chunk) {
            Ok(0) => self.closed = true,
            Ok(count) => self.received.extend(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.closed = true,
        }
    }

    fn next_message(&mut self) -> Option<(u8, Vec<u8>)> {
        let header = self.received.get(..5)?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let kind = header[0];
        let body = self.received.get(5..1 + length)?.to_vec();
        self.received.drain(..1 + length);
        Some((kind, body))
    }

    /// Takes one message in; the transaction status if the answer is complete with it.
    fn accept(&mut self, kind: u8, body: &[u8]) -> Option<char> {
        let mut body = Body(body);
        match kind {
            b'Z' => return Some(body.byte() as char),
            b'K' => self.key = Some((body.u32(), body.u32())),
            b'R' => {
                let method = body.u32();
                if method != 0 {
                    panic!("the server wants authentication method {method}, tests use trust");
                }
            }
            b'G' => {
                self.pending.push(Event::CopyIn);
                let mut messages = Vec::new();
                put_message(&mut messages, b'd', &self.copy_data);
                put_message(&mut messages, b'c', b"");
                self.write(&messages);
            }
            b'1' | b'2' | b'3' | b'H' | b'c' => {}
            b'D' if self.binary => {
                let row = (0..body.u16()).map(|_| body.bytes().map(|bytes| hexadecimal(&bytes)));
                self.pending.push(Event::Row(row.collect()));
            }
            _ => self.pending.push(event(kind, &mut body)),
        }
        None
    }
}

fn event(kind: u8, body: &mut Body<'_>) -> Event {
    match kind {
        b'T' => Event::Columns((0..body.u16()).map(|_| column(body)).collect()),
        b't' => Event::Parameters((0..body.u16()).map(|_| known_type(body.u32())).collect()),
        b'D' => Event::Row((0..body.u16()).map(|_| body.value()).collect()),
        b'd' => Event::Copied(body.rest()),
        b'C' => Event::Done(body.text()),
        b'I' => Event::Empty,
        b'n' => Event::NoData,
        b'S' => Event::Setting(body.text(), body.text()),
        b'A' => {
            body.u32();
            Event::Notified(body.text(), body.text())
        }
        b'N' => Event::Notice(fields(body)),
        b'E' => Event::Error(fields(body)),
        other => panic!("the server sent a message of kind {:?}, which no test asks for", other as char),
    }
}

fn column(body: &mut Body<'_>) -> Column {
    let name = body.text();
    let (_table, _number) = (body.u32(), body.u16());
    let type_oid = known_type(body.u32());
    let _size = body.u16();
    let modifier = body.u32() as i32;
    let _format = body.u16();
    Column { name, type_oid, modifier }
}

fn fields(body: &mut Body<'_>) -> Fields {
    let mut fields = Fields::default();
    loop {
        let kind = body.byte();
        if kind == 0 {
            return fields;
        }
        let text = body.text();
        match kind {
            b'V' => fields.severity = text,
            b'C' => fields.code = text,
            b'M' => fields.message = text,
            b'D' => fields.detail = Some(text),
            b'H' => fields.hint = Some(text),
            b'P' => fields.position = Some(text),
            b'q' | b'W' => fields.inside = Inside(Some(text)),
            b's' => fields.objects[0] = Some(without_session(text)),
            b't' => fields.objects[1] = Some(text),
            b'c' => fields.objects[2] = Some(text),
            b'd' => fields.objects[3] = Some(text),
            b'n' => fields.objects[4] = Some(text),
            _ => {}
        }
    }
}

/// A message body that is read from the front. A server that sends less than it announces fails the test by a panic.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn take(&mut self, count: usize) -> &[u8] {
        let (taken, rest) = self.0.split_at_checked(count).expect("the message is as long as its parts");
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().expect("two bytes"))
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn text(&mut self) -> String {
        let length = self.0.iter().position(|byte| *byte == 0).expect("a string ends with a zero byte");
        let text = String::from_utf8_lossy(self.take(length)).into_owned();
        self.take(1);
        text
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.u32() as i32).ok()?;
        Some(self.take(length).to_vec())
    }

    fn value(&mut self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn rest(&mut self) -> String {
        String::from_utf8_lossy(self.take(self.0.len())).into_owned()
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    body.extend(text.as_bytes());
    body.push(0);
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32 + 4).to_be_bytes().to_vec();
    bytes.extend(body);
    bytes
}

/// A Parse message for the unnamed statement, the types of its parameters left open.
fn put_parse(out: &mut Vec<u8>, sql: &str) {
    let mut parse = Vec::new();
    put_text(&mut parse, "");
    put_text(&mut parse, sql);
    parse.extend(0u16.to_be_bytes());
    put_message(out, b'P', &parse);
}

fn put_message(messages: &mut Vec<u8>, kind: u8, body: &[u8]) {
    messages.push(kind);
    messages.extend(framed(body));
}
