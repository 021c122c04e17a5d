//! Bytes against bytes: both servers get the same messages and must answer the same, message by message.
//!
//! What differs by nature is left out: the source lines in errors, process ids, secrets.

mod wire {
    pub mod encodings;
    pub mod endings;
    pub mod errors;
    pub mod parameters;
    pub mod roles;
    pub mod snapshots;
    pub mod texts;
    pub mod timeouts;
}

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use testkit::Target;

/// A connection of bytes.
pub struct Wire {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// Both servers, with a connection to each.
pub struct Pair {
    targets: [Target; 2],
    wires: [Wire; 2],
}

impl Pair {
    /// Connects to both, with these start-up parameters.
    pub fn new(parameters: &[(&str, &str)]) -> Pair {
        let targets = [Target::reference(), Target::start()];
        let wires = [Wire::login(&targets[0], parameters), Wire::login(&targets[1], parameters)];
        Pair { targets, wires }
    }

    /// Another connection to each server.
    pub fn more(&self, parameters: &[(&str, &str)]) -> [Wire; 2] {
        [Wire::login(&self.targets[0], parameters), Wire::login(&self.targets[1], parameters)]
    }

    /// Sends the messages to both and compares the answers up to so many ReadyForQuery, or the end of the connection.
    #[track_caller]
    pub fn same(&mut self, messages: &[Vec<u8>], readies: usize) -> Vec<String> {
        same(&mut self.wires, messages, readies)
    }

    /// A simple query, compared.
    #[track_caller]
    pub fn query(&mut self, sql: &str) -> Vec<String> {
        self.same(&[query(sql.as_bytes())], 1)
    }

    /// The connections.
    pub fn wires(&mut self) -> &mut [Wire; 2] {
        &mut self.wires
    }
}

/// See [`Pair::same`].
#[track_caller]
pub fn same(wires: &mut [Wire; 2], messages: &[Vec<u8>], readies: usize) -> Vec<String> {
    for wire in wires.iter_mut() {
        wire.send(messages);
    }
    let [of_postgres, of_nyala] = [wires[0].answers(readies), wires[1].answers(readies)];
    assert_eq!(of_nyala, of_postgres, "got (Nyala) and expected (PostgreSQL)");
    of_nyala
}

impl Wire {
    /// Logs in, past the first ReadyForQuery.
    pub fn login(target: &Target, parameters: &[(&str, &str)]) -> Wire {
        let stream = TcpStream::connect(("127.0.0.1", target.port())).expect("the server accepts connections");
        stream.set_nodelay(true).expect("a new connection takes options");
        let mut wire = Wire { stream, unread: Vec::new() };
        let mut body = 196_608u32.to_be_bytes().to_vec();
        for (name, value) in [("user", "postgres"), ("database", target.database())].iter().chain(parameters) {
            body.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        }
        body.push(0);
        wire.send(&[[&(body.len() as u32 + 4).to_be_bytes()[..], &body].concat()]);
        let answers = wire.answers(1);
        assert!(answers.last().is_some_and(|last| last.starts_with('Z')), "no login: {answers:?}");
        wire
    }

    /// Sends; a server that is gone is found out by its answers.
    pub fn send(&mut self, messages: &[Vec<u8>]) {
        let _ = self.stream.write_all(&messages.concat());
    }

    /// The answers up to so many ReadyForQuery, or the end of the connection, which is an answer too.
    pub fn answers(&mut self, readies: usize) -> Vec<String> {
        self.answers_until(|shown, seen| shown.starts_with('Z') && seen + 1 == readies)
    }

    /// The answers up to the first of this type.
    pub fn answers_to(&mut self, tag: char) -> Vec<String> {
        self.answers_until(|shown, _| shown.starts_with(tag))
    }

    fn answers_until(&mut self, is_last: impl Fn(&str, usize) -> bool) -> Vec<String> {
        let (mut answers, mut seen, deadline) = (Vec::new(), 0, Instant::now() + Duration::from_secs(30));
        loop {
            while let Some(message) = take_message(&mut self.unread) {
                let shown = show(&message);
                let last = is_last(&shown, seen);
                seen += usize::from(shown.starts_with('Z'));
                if !shown.is_empty() {
                    answers.push(shown);
                }
                if last {
                    return answers;
                }
            }
            let mut chunk = vec![0; 64 << 10];
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(left)).expect("a timeout above zero is valid");
            match self.stream.read(&mut chunk) {
                Ok(n) if n > 0 => self.unread.extend_from_slice(&chunk[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    answers.push("(silence)".to_owned());
                    return answers;
                }
                _ => {
                    answers.push("(end)".to_owned());
                    return answers;
                }
            }
        }
    }
}

fn take_message(unread: &mut Vec<u8>) -> Option<Vec<u8>> {
    let header = unread.first_chunk::<5>()?;
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize + 1;
    (unread.len() >= length).then(|| unread.drain(..length).collect())
}

/// A message as text, bytes beyond ASCII escaped; empty if it is not compared.
fn show(message: &[u8]) -> String {
    let (tag, body) = (char::from(message[0]), &message[5..]);
    match tag {
        'K' | 'R' => String::new(),
        // Parameters that only one of them announces, or that name versions.
        'S' if !COMPARED.iter().any(|name| body.starts_with(name.as_bytes())) => String::new(),
        'E' | 'N' => {
            let is_compared = |f: &&[u8]| f.first().is_some_and(|code| !b"FLR".contains(code)) || ROUTINES.contains(f);
            let fields = body.split(|b| *b == 0).filter(is_compared);
            // Where a row lies is the server's own business.
            let fields = fields.filter(|field| !field.starts_with(b"Wwhile "));
            let fields: Vec<String> = fields.map(|field| field.escape_ascii().to_string()).collect();
            format!("{tag} {}", fields.join(" | "))
        }
        'T' => format!("T {}", without_tables(body).escape_ascii()),
        // The process is the server's.
        'A' => format!("{tag} {}", body[4..].escape_ascii()),
        _ => format!("{tag} {}", body.escape_ascii()),
    }
}

/// A RowDescription without the OIDs of tables, which are the database's own.
fn without_tables(body: &[u8]) -> Vec<u8> {
    let mut shown = body.to_vec();
    let mut at = 2;
    while let Some(end) = shown.get(at..).and_then(|rest| rest.iter().position(|b| *b == 0)) {
        let Some(table) = shown.get_mut(at + end + 1..at + end + 5) else { break };
        table.fill(0);
        at += end + 19;
    }
    shown
}

/// Functions of PostgreSQL that clients look for.
const ROUTINES: [&[u8]; 1] = [b"RRevalidateCachedQuery"];

const COMPARED: [&str; 5] = ["client_encoding", "DateStyle", "IntervalStyle", "TimeZone", "application_name"];

/// A message of this type.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// A simple query.
pub fn query(sql: &[u8]) -> Vec<u8> {
    message(b'Q', &[sql, b"\0"].concat())
}

/// Parse without parameter types.
pub fn parse(name: &str, sql: &[u8]) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), b"\0", sql, b"\0\0\0"].concat())
}

/// Bind of a statement to the unnamed portal, parameters and results in one format.
pub fn bind(statement: &str, parameters: &[&[u8]], format: u8) -> Vec<u8> {
    let mut body = [b"\0", statement.as_bytes(), &[0, 0, 1, 0, format]].concat();
    body.extend((parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        body.extend((parameter.len() as u32).to_be_bytes());
        body.extend(*parameter);
    }
    body.extend([0, 1, 0, format]);
    message(b'B', &body)
}

/// Describe of the unnamed portal.
pub fn describe() -> Vec<u8> {
    message(b'D', b"P\0")
}

/// Execute of the unnamed portal.
pub fn execute(rows: u32) -> Vec<u8> {
    message(b'E', &[&[0][..], &rows.to_be_bytes()].concat())
}

/// Flush.
pub fn flush() -> Vec<u8> {
    message(b'H', b"")
}

/// Sync.
pub fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// COPY data and its end.
pub fn copy_data(data: &[u8]) -> Vec<u8> {
    [message(b'd', data), message(b'c', b"")].concat()
}
