//! A client that sends bytes, not messages.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// A raw connection.
pub struct Wire(pub TcpStream);

/// How a connection ended, or did not.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The server closed it.
    Closed,
    /// Nothing came for the whole time.
    Silent,
}

impl Wire {
    /// Connects, sends nothing.
    pub fn connect(port: u16) -> Wire {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server accepts connections");
        stream.set_nodelay(true).expect("a new connection takes options");
        stream.set_write_timeout(Some(Duration::from_secs(5))).expect("a timeout above zero is valid");
        Wire(stream)
    }

    /// Connects and logs in.
    pub fn login(port: u16) -> Wire {
        let mut wire = Wire::connect(port);
        assert!(wire.send(&startup()));
        let answer = wire.answer();
        assert!(answer.ends_with(b"I"), "no login: {answer:?}");
        wire
    }

    /// Sends; `false` if the server is not interested any more.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    /// Says that nothing more will be sent.
    pub fn finish(&mut self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }

    /// What comes until the session is idle again.
    pub fn answer(&mut self) -> Vec<u8> {
        let is_whole = |bytes: &[u8]| bytes.ends_with(b"Z\0\0\0\x05I");
        let (answer, _) = self.read_until(Duration::from_secs(60), is_whole);
        assert!(is_whole(&answer), "no whole answer: {} bytes", answer.len());
        answer
    }

    /// Reads until `enough`, the end, or the limit.
    pub fn read_until(&mut self, limit: Duration, enough: impl Fn(&[u8]) -> bool) -> (Vec<u8>, End) {
        let (mut answer, mut chunk, deadline) = (Vec::new(), vec![0; 64 << 10], Instant::now() + limit);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || enough(&answer) {
                return (answer, End::Silent);
            }
            self.0.set_read_timeout(Some(left)).expect("a timeout above zero is valid");
            match self.0.read(&mut chunk) {
                Ok(0) => return (answer, End::Closed),
                Ok(n) => answer.extend_from_slice(&chunk[..n]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return (answer, End::Closed),
            }
        }
    }
}

/// A message of this type.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// The start-up packet of user `postgres`.
pub fn startup() -> Vec<u8> {
    startup_of("postgres")
}

/// The start-up packet of a user.
pub fn startup_of(user: &str) -> Vec<u8> {
    let names = format!("user\0{user}\0database\0postgres\0application_name\0robust\0\0");
    let body = [&196_608u32.to_be_bytes()[..], names.as_bytes()].concat();
    [&(body.len() as u32 + 4).to_be_bytes()[..], &body].concat()
}

/// A simple query.
pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

/// Parse of an unnamed or named statement without parameter types.
pub fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{sql}\0\0\0").as_bytes())
}

/// Bind of the unnamed statement to the unnamed portal with text parameters.
pub fn bind(parameters: &[&str]) -> Vec<u8> {
    let mut body = b"\0\0\0\0".to_vec();
    body.extend((parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        body.extend((parameter.len() as u32).to_be_bytes());
        body.extend(parameter.as_bytes());
    }
    body.extend([0, 0]);
    message(b'B', &body)
}

/// Execute of the unnamed portal.
pub fn execute(rows: u32) -> Vec<u8> {
    message(b'E', &[&[0][..], &rows.to_be_bytes()].concat())
}

/// Sync.
pub fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// SQLSTATEs of the errors in an answer, as far as it consists of messages.
pub fn errors(mut answer: &[u8]) -> Vec<String> {
    let mut codes = Vec::new();
    while let Some(header) = answer.first_chunk::<5>() {
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize + 1;
        let Some(message) = answer.get(..length.max(5)) else { break };
        if header[0] == b'E' {
            let fields = message[5..].split(|&byte| byte == 0);
            let code = fields.filter_map(|field| field.strip_prefix(b"C")).next().unwrap_or(b"none");
            codes.push(String::from_utf8_lossy(code).into_owned());
        }
        answer = &answer[message.len()..];
    }
    codes
}
