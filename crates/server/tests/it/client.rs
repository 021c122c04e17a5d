//! A client that speaks the protocol byte by byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pgwire::scram;

/// One message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub tag: u8,
    pub body: Vec<u8>,
}

impl Message {
    /// The fields of an error, as `SEVERITY code: message`.
    pub fn error(&self) -> String {
        let field = |code: u8| {
            let found = self.body.split(|b| *b == 0).find(|f| f.first() == Some(&code));
            found.map(|f| String::from_utf8_lossy(&f[1..]).into_owned()).unwrap_or_default()
        };
        format!("{} {}: {}", field(b'S'), field(b'C'), field(b'M'))
    }

    fn number(&self) -> i32 {
        i32::from_be_bytes(self.body[..4].try_into().unwrap())
    }
}

/// A connection.
pub struct Client<S = TcpStream> {
    pub stream: S,
    /// Parameter statuses of the start-up.
    pub parameters: Vec<(String, String)>,
}

/// Connects and logs in; the error's text if the server refuses.
pub fn connect(address: SocketAddr, user: &str, password: Option<&str>) -> Result<Client, String> {
    let stream = TcpStream::connect(address).map_err(|e| e.to_string())?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Client::login(stream, user, password)
}

impl<S: Read + Write> Client<S> {
    /// Logs in over a stream.
    pub fn login(stream: S, user: &str, password: Option<&str>) -> Result<Client<S>, String> {
        let mut client = Client { stream, parameters: Vec::new() };
        let body = format!("user\0{user}\0database\0postgres\0application_name\0test\0\0");
        let mut packet = (body.len() as u32 + 8).to_be_bytes().to_vec();
        packet.extend((3u32 << 16).to_be_bytes());
        packet.extend(body.as_bytes());
        client.stream.write_all(&packet).unwrap();
        loop {
            let message = client.receive().ok_or("the server closed the connection")?;
            match message.tag {
                b'R' => client.authenticate(&message, password)?,
                b'S' => {
                    let mut parts = message.body.split(|b| *b == 0).map(|p| String::from_utf8_lossy(p).into_owned());
                    client.parameters.push((parts.next().unwrap(), parts.next().unwrap()));
                }
                b'E' => return Err(message.error()),
                b'Z' => return Ok(client),
                _ => {}
            }
        }
    }

    fn authenticate(&mut self, request: &Message, password: Option<&str>) -> Result<(), String> {
        const FIRST: &str = "n=,r=fyko+d2lbbFgONRv9qkxdawL";
        match request.number() {
            0 => Ok(()),
            10 => {
                password.ok_or("a password is wanted")?;
                let mut body = b"SCRAM-SHA-256\0".to_vec();
                body.extend((FIRST.len() as u32 + 3).to_be_bytes());
                body.extend(format!("n,,{FIRST}").as_bytes());
                self.send(b'p', &body);
                Ok(())
            }
            11 => {
                let server_first = std::str::from_utf8(&request.body[4..]).unwrap();
                let last = scram::client_final(password.unwrap_or_default(), FIRST, server_first).unwrap();
                self.send(b'p', last.as_bytes());
                Ok(())
            }
            12 => Ok(()),
            other => Err(format!("authentication request {other}")),
        }
    }

    /// Sends one message.
    pub fn send(&mut self, tag: u8, body: &[u8]) {
        let mut message = vec![tag];
        message.extend((body.len() as u32 + 4).to_be_bytes());
        message.extend(body);
        self.stream.write_all(&message).unwrap();
    }

    /// The next message; `None` at the end of the connection.
    pub fn receive(&mut self) -> Option<Message> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes(header[1..].try_into().unwrap());
        let mut body = vec![0; length as usize - 4];
        self.stream.read_exact(&mut body).ok()?;
        Some(Message { tag: header[0], body })
    }

    /// Messages up to and with ReadyForQuery, or to the end.
    pub fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.receive() {
            let ready = message.tag == b'Z';
            messages.push(message);
            if ready {
                break;
            }
        }
        messages
    }

    /// Runs a simple query: its answer as one line, fields as text.
    pub fn query(&mut self, sql: &str) -> String {
        self.send(b'Q', format!("{sql}\0").as_bytes());
        describe(&self.until_ready())
    }
}

/// Messages as one line.
pub fn describe(messages: &[Message]) -> String {
    let one = |m: &Message| match m.tag {
        b'D' => row(&m.body),
        b'C' => String::from_utf8_lossy(m.body.strip_suffix(b"\0").unwrap()).into_owned(),
        b'E' | b'N' => m.error(),
        b'Z' => format!("[{}]", m.body[0] as char),
        tag => (tag as char).to_string(),
    };
    messages.iter().map(one).collect::<Vec<_>>().join(" | ")
}

fn row(body: &[u8]) -> String {
    let (mut fields, mut rest) = (Vec::new(), &body[2..]);
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length);
        let (value, tail) = tail.split_at(length.max(0) as usize);
        fields.push(if length < 0 { "NULL".to_string() } else { String::from_utf8_lossy(value).into_owned() });
        rest = tail;
    }
    format!("({})", fields.join(","))
}
