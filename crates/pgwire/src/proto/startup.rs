//! The first packets of a connection, which have no type byte.

use base::{Error, Result, SqlState};

use super::{Body, fatal_violation, text};

/// Longest start-up packet, its length word not counted.
pub const MAX_STARTUP_LEN: usize = 10_000;

const CANCEL: u32 = 1234 << 16 | 5678;
const SSL: u32 = 1234 << 16 | 5679;
const GSSENC: u32 = 1234 << 16 | 5680;

/// A packet before the session.
#[derive(Debug)]
pub enum Initial {
    /// May we speak TLS?
    Ssl,
    /// May we encrypt with GSSAPI?
    GssEnc,
    /// Cancel the statement of another connection.
    Cancel {
        /// Process number of BackendKeyData.
        pid: i32,
        /// Secret of BackendKeyData.
        secret: i32,
    },
    /// Start a session.
    Startup(Startup),
}

/// What a client says about itself and its session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Startup {
    /// The role.
    pub user: String,
    /// The database; the role's name if the client gave none.
    pub database: String,
    /// Everything else in order: `application_name`, `client_encoding`, `options`, any setting.
    pub parameters: Vec<(String, String)>,
    /// Protocol options (`_pq_.…`) that the server does not know.
    pub unknown_options: Vec<String>,
    /// Minor protocol version asked for.
    pub minor: u16,
}

impl Startup {
    /// A parameter by name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Whether the client has to be told what of its wishes is not understood.
    pub fn needs_negotiation(&self) -> bool {
        self.minor > 0 || !self.unknown_options.is_empty()
    }
}

/// The packet at the start of `buf` and its length, or `None` if it is not complete.
pub fn initial(buf: &[u8]) -> Result<Option<(Initial, usize)>> {
    let Some(length) = buf.first_chunk::<4>() else { return Ok(None) };
    let total = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
    if !(8..=MAX_STARTUP_LEN + 4).contains(&total) {
        return Err(fatal_violation("invalid length of startup packet"));
    }
    let Some(packet) = buf.get(4..total) else { return Ok(None) };
    let mut body = Body::new(packet);
    let initial = match body.i32()? as u32 {
        SSL => Initial::Ssl,
        GSSENC => Initial::GssEnc,
        CANCEL if packet.len() == 12 => Initial::Cancel { pid: body.i32()?, secret: body.i32()? },
        CANCEL => return Err(fatal_violation("invalid length of startup packet")),
        version if version >> 16 == 3 => Initial::Startup(startup(&mut body, version as u16)?),
        version => return Err(unsupported(version)),
    };
    Ok(Some((initial, total)))
}

/// The refusal of a protocol version.
#[cold]
fn unsupported(version: u32) -> Error {
    let (major, minor) = (version >> 16, version & 0xffff);
    let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
    Error::fatal(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// The refusal of a second SSLRequest or GSSENCRequest, which PostgreSQL reads as a version.
pub(crate) fn repeated_request(ssl: bool) -> Error {
    unsupported(if ssl { SSL } else { GSSENC })
}

fn startup(body: &mut Body<'_>, minor: u16) -> Result<Startup> {
    let layout = || fatal_violation("invalid startup packet layout: expected terminator as last byte");
    let fatal = |e: Error| e.severity(base::Severity::Fatal);
    let mut startup = Startup { minor, ..Startup::default() };
    loop {
        let name = body.cstr().map_err(|_| layout())?;
        if name.is_empty() {
            break;
        }
        let (name, value) = (text(name).map_err(fatal)?, text(body.cstr().map_err(|_| layout())?).map_err(fatal)?);
        match name {
            "user" => startup.user = value.to_owned(),
            "database" => startup.database = value.to_owned(),
            _ if name.starts_with("_pq_.") => startup.unknown_options.push(name.to_owned()),
            _ => startup.parameters.push((name.to_owned(), value.to_owned())),
        }
    }
    if !body.rest().is_empty() {
        return Err(layout());
    }
    if startup.user.is_empty() {
        let message = "no PostgreSQL user name specified in startup packet";
        return Err(Error::fatal(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message));
    }
    if startup.database.is_empty() {
        startup.database.clone_from(&startup.user);
    }
    Ok(startup)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(version: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = (body.len() as u32 + 8).to_be_bytes().to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn refusal(bytes: &[u8]) -> String {
        initial(bytes).unwrap_err().to_string()
    }

    #[test]
    fn startup_parameters() {
        let bytes = packet(3 << 16, b"user\0u\0application_name\0psql\0\0");
        let Some((Initial::Startup(startup), n)) = initial(&bytes).unwrap() else { panic!("not a startup") };
        assert_eq!(n, bytes.len());
        assert_eq!((startup.user.as_str(), startup.database.as_str()), ("u", "u"));
        assert_eq!(startup.get("application_name"), Some("psql"));
        assert!(!startup.needs_negotiation());
    }

    #[test]
    fn newer_minor_versions_and_options_are_negotiated() {
        let bytes = packet(3 << 16 | 2, b"user\0u\0database\0d\0_pq_.x\0on\0\0");
        let Some((Initial::Startup(startup), _)) = initial(&bytes).unwrap() else { panic!("not a startup") };
        assert_eq!((startup.minor, startup.unknown_options), (2, vec!["_pq_.x".to_owned()]));
    }

    #[test]
    fn special_requests() {
        assert!(matches!(initial(&packet(SSL, b"")), Ok(Some((Initial::Ssl, 8)))));
        assert!(matches!(initial(&packet(GSSENC, b"")), Ok(Some((Initial::GssEnc, 8)))));
        let cancel = packet(CANCEL, b"\0\0\0\x07\0\0\0\x09");
        assert!(matches!(initial(&cancel), Ok(Some((Initial::Cancel { pid: 7, secret: 9 }, 16)))));
        assert!(initial(&cancel[..15]).unwrap().is_none());
    }

    #[test]
    fn refusals() {
        assert_eq!(refusal(b"\0\0\x27\x15"), "FATAL 08P01: invalid length of startup packet");
        assert_eq!(refusal(b"GET / HTTP/1.1\r\n"), "FATAL 08P01: invalid length of startup packet");
        let layout = "FATAL 08P01: invalid startup packet layout: expected terminator as last byte";
        assert_eq!(refusal(&packet(3 << 16, b"user\0u\0")), layout);
        assert_eq!(refusal(&packet(3 << 16, b"user\0u\0\0x")), layout);
        let no_user = "FATAL 28000: no PostgreSQL user name specified in startup packet";
        assert_eq!(refusal(&packet(3 << 16, b"\0")), no_user);
        let version = "FATAL 0A000: unsupported frontend protocol 2.0: server supports 3.0 to 3.0";
        assert_eq!(refusal(&packet(2 << 16, b"")), version);
    }
}
