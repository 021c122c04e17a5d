//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's half; over TLS with channel binding to the server's certificate.
//!
//! The server never sees a password at login: it compares hashes against a stored [`Verifier`], so a login costs a few
//! hashes and no key stretching. Only [`Verifier::build`] stretches; it takes milliseconds and belongs off the
//! connection's core.

use std::fmt;

use base::{Error, Result, SqlState};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::proto::violation;

/// The mechanism that is always offered.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// The one with channel binding, offered first where there is something to bind to.
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";
/// Rounds of PBKDF2 in new verifiers, as PostgreSQL has it.
pub const ITERATIONS: u32 = 4096;

type Key = [u8; 32];

/// What is stored instead of a password; [`fmt::Display`] and [`Verifier::parse`] use PostgreSQL's form
/// `SCRAM-SHA-256$4096:salt$StoredKey:ServerKey`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl Verifier {
    /// Stretches a password. `salt` must be random, 16 bytes in PostgreSQL.
    pub fn build(password: &str, salt: &[u8], iterations: u32) -> Verifier {
        // A password that SASLprep forbids is used as it is, here and in the clients.
        let password = stringprep::saslprep(password).unwrap_or(password.into());
        let mut salted = Key::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), salt, iterations, &mut salted);
        Verifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: sha256(&hmac(&salted, b"Client Key")),
            server_key: hmac(&salted, b"Server Key"),
        }
    }

    /// Reads the stored form.
    pub fn parse(stored: &str) -> Option<Verifier> {
        let rest = stored.strip_prefix("SCRAM-SHA-256$")?;
        let (head, keys) = rest.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let key = |text: &str| Key::try_from(BASE64.decode(text).ok()?).ok();
        Some(Verifier {
            iterations: iterations.parse().ok().filter(|&n| n > 0)?,
            salt: BASE64.decode(salt).ok()?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }

    /// Whether this is the verifier of `password`. Stretches, like [`Verifier::build`].
    pub fn matches(&self, password: &str) -> bool {
        same(&Verifier::build(password, &self.salt, self.iterations).server_key, &self.server_key)
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] = [&self.salt[..], &self.stored_key, &self.server_key].map(|b| BASE64.encode(b));
        write!(f, "{MECHANISM}${}:{salt}${stored}:{server}", self.iterations)
    }
}

/// What a login can be bound to, and whether the client chose that.
#[derive(Clone, Copy, Debug, Default)]
pub struct Channel<'a> {
    /// The hash of the server's certificate (`tls-server-end-point`).
    pub certificate: Option<&'a [u8]>,
    /// The client chose the mechanism with channel binding.
    pub is_bound: bool,
}

/// One exchange, after the client's first message.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    /// Whether the role can log in at all; otherwise the exchange is played to its refusal.
    known: bool,
    /// `c=` of the final message must be this.
    binding: String,
    nonce: String,
    /// Client-first-bare and server-first, joined by a comma: the start of the AuthMessage.
    transcript: String,
    server_first_len: usize,
}

impl Exchange {
    /// Reads client-first. Without a verifier, `mock_salt` (always the same for one role) stands in.
    pub fn start(
        client_first: &[u8],
        verifier: Option<Verifier>,
        mock_salt: &[u8; 32],
        random: &[u8; 32],
        channel: Channel<'_>,
    ) -> Result<Exchange> {
        let message = text(client_first)?;
        let (header, bare) = gs2_header(message, channel)?;
        let bound = channel.certificate.filter(|_| channel.is_bound).unwrap_or_default();
        let rest = if let Some(rest) = bare.strip_prefix("n=") {
            rest.split_once(',').map(|(_, rest)| rest)
        } else if bare.starts_with("m=") {
            return Err(Error::unsupported("client requires an unsupported SCRAM extension"));
        } else {
            None
        };
        let rest = rest.ok_or_else(|| malformed("Attribute \"n\" expected."))?;
        let nonce = rest.strip_prefix("r=").ok_or_else(|| malformed("Attribute \"r\" expected."))?;
        let nonce = nonce.split(',').next().unwrap_or_default();
        if nonce.is_empty() || !nonce.bytes().all(|b| (0x21..=0x7e).contains(&b)) {
            return Err(violation("non-printable characters in SCRAM nonce"));
        }
        let known = verifier.is_some();
        let verifier = verifier.unwrap_or_else(|| Verifier {
            iterations: ITERATIONS,
            salt: mock_salt[..16].to_vec(),
            stored_key: Key::default(),
            server_key: Key::default(),
        });
        let nonce = format!("{nonce}{}", BASE64.encode(&random[..18]));
        let server_first = format!("r={nonce},s={},i={}", BASE64.encode(&verifier.salt), verifier.iterations);
        Ok(Exchange {
            verifier,
            known,
            binding: BASE64.encode([header.as_bytes(), bound].concat()),
            nonce,
            server_first_len: server_first.len(),
            transcript: format!("{bare},{server_first}"),
        })
    }

    /// The answer to client-first.
    pub fn server_first(&self) -> &str {
        &self.transcript[self.transcript.len() - self.server_first_len..]
    }

    /// Reads client-final: server-final if the proof is right, `None` if it is not.
    pub fn finish(&self, client_final: &[u8]) -> Result<Option<String>> {
        let message = text(client_final)?;
        let binding = message.strip_prefix("c=").and_then(|m| m.split(',').next());
        if binding.ok_or_else(|| malformed("Attribute \"c\" expected."))? != self.binding {
            return Err(violation("unexpected SCRAM channel-binding attribute in client-final-message"));
        }
        let (without_proof, proof) =
            message.rsplit_once(",p=").ok_or_else(|| malformed("Malformed proof in client-final-message."))?;
        let nonce = without_proof.split(',').nth(1).and_then(|a| a.strip_prefix("r="));
        if nonce != Some(self.nonce.as_str()) {
            return Err(violation("invalid SCRAM response").detail("Nonce does not match."));
        }
        let proof = BASE64.decode(proof).ok().and_then(|p| Key::try_from(p).ok());
        let mut client_key = proof.ok_or_else(|| malformed("Malformed proof in client-final-message."))?;
        let auth_message = format!("{},{without_proof}", self.transcript);
        let signature = hmac(&self.verifier.stored_key, auth_message.as_bytes());
        client_key.iter_mut().zip(signature).for_each(|(k, s)| *k ^= s);
        let right = same(&sha256(&client_key), &self.verifier.stored_key) & self.known;
        let server_signature = hmac(&self.verifier.server_key, auth_message.as_bytes());
        Ok(right.then(|| format!("v={}", BASE64.encode(server_signature))))
    }
}

/// Splits client-first into its header, commas included, and its bare part.
fn gs2_header<'a>(message: &'a str, channel: Channel<'_>) -> Result<(&'a str, &'a str)> {
    let mut parts = message.splitn(3, ',');
    let (flag, authzid) = (parts.next().unwrap_or_default(), parts.next());
    match (flag, flag.strip_prefix("p="), channel.is_bound) {
        ("n" | "y", _, true) => {
            return Err(malformed(
                "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data.",
            ));
        }
        ("y", _, false) if channel.certificate.is_some() => {
            let code = SqlState::INVALID_AUTHORIZATION_SPECIFICATION;
            return Err(Error::new(code, "SCRAM channel binding negotiation error").detail(
                "The client supports SCRAM channel binding but thinks the server does not.  However, this server does \
                 support channel binding.",
            ));
        }
        ("n" | "y", _, false) | (_, Some("tls-server-end-point"), true) => {}
        (_, Some(kind), true) => {
            return Err(violation(format!("unsupported SCRAM channel-binding type \"{kind}\"")));
        }
        (_, Some(_), false) => {
            return Err(malformed(
                "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel \
                 binding data.",
            ));
        }
        _ => return Err(malformed("Unexpected channel-binding flag.")),
    }
    if authzid.is_some_and(|a| !a.is_empty()) {
        return Err(Error::unsupported("client uses authorization identity, but it is not supported"));
    }
    let bare = parts.next().ok_or_else(|| malformed("Comma expected."))?;
    Ok(message.split_at(message.len() - bare.len()))
}

fn text(message: &[u8]) -> Result<&str> {
    if message.is_empty() {
        return Err(malformed("The message is empty."));
    }
    if message.contains(&0) {
        return Err(malformed("Message length does not match input length."));
    }
    std::str::from_utf8(message).map_err(|_| malformed("The message is not UTF-8."))
}

#[cold]
fn malformed(detail: &str) -> Error {
    violation("malformed SCRAM message").detail(detail)
}

/// The refusal of a login, the same whatever was wrong.
#[cold]
pub(crate) fn refused(user: &str) -> Error {
    Error::fatal(SqlState::INVALID_PASSWORD, format!("password authentication failed for user \"{user}\""))
}

/// Compares secrets in time that depends on their length only.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && std::hint::black_box(a.iter().zip(b).fold(0, |diff, (a, b)| diff | (a ^ b))) == 0
}

fn hmac(key: &[u8], message: &[u8]) -> Key {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

fn sha256(bytes: &[u8]) -> Key {
    Sha256::digest(bytes).into()
}

/// The client's half, for tests here and in `tests/`.
#[doc(hidden)]
pub fn client_final(password: &str, client_first_bare: &str, server_first: &str) -> Option<String> {
    let field = |name: &str| server_first.split(',').find_map(|a| a.strip_prefix(name));
    let (nonce, salt) = (field("r=")?, BASE64.decode(field("s=")?).ok()?);
    let password = stringprep::saslprep(password).unwrap_or(password.into());
    let mut salted = Key::default();
    pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt, field("i=")?.parse().ok()?, &mut salted);
    let client_key = hmac(&salted, b"Client Key");
    let without_proof = format!("c=biws,r={nonce}");
    let auth_message = format!("{client_first_bare},{server_first},{without_proof}");
    let signature = hmac(&sha256(&client_key), auth_message.as_bytes());
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(k, s)| k ^ s).collect();
    Some(format!("{without_proof},p={}", BASE64.encode(proof)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3.
    #[test]
    fn rfc_7677_example() {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::build("pencil", &salt, 4096);
        let bare = "n=user,r=rOprNGfwEbeRWgbNEkqO";
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let server_first = format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let exchange = Exchange {
            verifier,
            known: true,
            binding: "biws".into(),
            nonce: nonce.into(),
            server_first_len: server_first.len(),
            transcript: format!("{bare},{server_first}"),
        };
        let last = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        assert_eq!(client_final("pencil", bare, exchange.server_first()).unwrap(), last);
        let server_final = exchange.finish(last.as_bytes()).unwrap().unwrap();
        assert_eq!(server_final, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn stored_form_round_trips() {
        let verifier = Verifier::build("s\u{e9}cret", &[1; 16], 4096);
        let stored = verifier.to_string();
        assert!(stored.starts_with("SCRAM-SHA-256$4096:AQEBAQEBAQEBAQEBAQEBAQ==$"));
        assert_eq!(Verifier::parse(&stored), Some(verifier.clone()));
        assert!(verifier.matches("s\u{e9}cret") && !verifier.matches("secret"));
        for broken in ["", "md5abc", "SCRAM-SHA-256$0:AQ==$AQ==:AQ==", "SCRAM-SHA-256$4096:AQ==$AQ==:AQ=="] {
            assert_eq!(Verifier::parse(broken), None);
        }
    }

    fn exchange(verifier: Option<Verifier>, password: &str) -> Result<Option<String>> {
        let exchange = Exchange::start(b"n,,n=,r=abc", verifier, &[3; 32], &[4; 32], Channel::default())?;
        exchange.finish(client_final(password, "n=,r=abc", exchange.server_first()).unwrap().as_bytes())
    }

    #[test]
    fn wrong_passwords_and_unknown_roles_are_refused_alike() {
        let verifier = Verifier::build("right", &[1; 16], 16);
        assert!(exchange(Some(verifier.clone()), "right").unwrap().is_some());
        assert_eq!(exchange(Some(verifier), "wrong").unwrap(), None);
        assert_eq!(exchange(None, "right").unwrap(), None);
    }

    #[test]
    fn malformed_messages() {
        let none = Channel::default();
        let start = |m: &[u8]| Exchange::start(m, None, &[0; 32], &[0; 32], none).unwrap_err().to_string();
        assert_eq!(start(b""), "ERROR 08P01: malformed SCRAM message");
        assert_eq!(start(b"n,,"), "ERROR 08P01: malformed SCRAM message");
        assert_eq!(start(b"n"), "ERROR 08P01: malformed SCRAM message");
        assert_eq!(start(b"x,,n=,r=a"), "ERROR 08P01: malformed SCRAM message");
        assert_eq!(start(b"p=tls-unique,,n=,r=a"), "ERROR 08P01: malformed SCRAM message");
        let bound = Channel { certificate: Some(b"hash"), is_bound: true };
        let start = |m: &[u8], c| Exchange::start(m, None, &[0; 32], &[0; 32], c).map_err(|e| e.to_string());
        let refused = start(b"p=tls-unique,,n=,r=a", bound).unwrap_err();
        assert_eq!(refused, "ERROR 08P01: unsupported SCRAM channel-binding type \"tls-unique\"");
        assert_eq!(start(b"n,,n=,r=a", bound).unwrap_err(), "ERROR 08P01: malformed SCRAM message");
        let unbound = Channel { is_bound: false, ..bound };
        let refused = start(b"y,,n=,r=a", unbound).unwrap_err();
        assert_eq!(refused, "ERROR 28000: SCRAM channel binding negotiation error");
        let exchange = start(b"p=tls-server-end-point,,n=,r=abc", bound).unwrap();
        assert_eq!(exchange.binding, BASE64.encode(b"p=tls-server-end-point,,hash"));
        let exchange = Exchange::start(b"y,,n=,r=abc", None, &[0; 32], &[0; 32], none).unwrap();
        let finish = |m: &str| exchange.finish(m.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            finish("c=biws,r=abc,p=AA=="),
            "ERROR 08P01: unexpected SCRAM channel-binding attribute in client-final-message"
        );
        assert_eq!(finish("c=eSws,r=abc,p=AA=="), "ERROR 08P01: invalid SCRAM response");
        assert_eq!(finish(&format!("c=eSws,r={},p=AA==", exchange.nonce)), "ERROR 08P01: malformed SCRAM message");
    }
}
