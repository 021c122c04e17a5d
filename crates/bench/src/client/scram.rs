//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the client's half, without channel binding.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// The mechanism's name on the wire.
pub const MECHANISM: &str = "SCRAM-SHA-256";

/// An exchange whose first message is written.
pub struct Exchange {
    password: String,
    nonce: String,
    /// What the server must send last; known once its first message is answered.
    server_final: String,
}

impl Exchange {
    /// `random` makes the client's nonce.
    pub fn new(password: &str, random: &[u8; 18]) -> Exchange {
        // A password that SASLprep forbids is used as it is, as servers do.
        let password = stringprep::saslprep(password).map_or(password.to_string(), |p| p.into_owned());
        Exchange { password, nonce: BASE64.encode(random), server_final: String::new() }
    }

    /// The client's first message. The user is the one of the start-up message.
    pub fn client_first(&self) -> String {
        format!("n,,{}", self.client_first_bare())
    }

    fn client_first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// Answers the server's first message.
    pub fn client_final(&mut self, server_first: &str) -> Result<String, String> {
        let mut parts = server_first.split(',');
        let mut part = |name: &str| parts.next().and_then(|p| p.strip_prefix(name)).map(str::to_string);
        let (nonce, salt, rounds) = match (part("r="), part("s="), part("i=")) {
            (Some(nonce), Some(salt), Some(rounds)) => (nonce, salt, rounds),
            _ => return Err("the server's SCRAM message is malformed".into()),
        };
        if !nonce.starts_with(&self.nonce) {
            return Err("the server's SCRAM nonce does not continue ours".into());
        }
        let salt = BASE64.decode(salt).map_err(|_| "the server's SCRAM salt is not base64")?;
        // The bound keeps a hostile server from stretching for hours; PostgreSQL has 4096.
        let rounds = rounds.parse().ok().filter(|rounds| (1..=10_000_000).contains(rounds));
        let rounds = rounds.ok_or("the server's SCRAM iteration count is not acceptable")?;
        let mut salted = [0; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(self.password.as_bytes(), &salt, rounds, &mut salted);
        let without_proof = format!("c=biws,r={nonce}");
        let transcript = format!("{},{server_first},{without_proof}", self.client_first_bare());
        let client_key = hmac(&salted, b"Client Key");
        let signature = hmac(&Sha256::digest(client_key), transcript.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, sign)| key ^ sign).collect();
        let server_key = hmac(&salted, b"Server Key");
        self.server_final = format!("v={}", BASE64.encode(hmac(&server_key, transcript.as_bytes())));
        Ok(format!("{without_proof},p={}", BASE64.encode(proof)))
    }

    /// Whether the server's last message proves that it knows the password too.
    pub fn server_is_right(&self, server_final: &str) -> bool {
        !self.server_final.is_empty() && server_final.split(',').next() == Some(&self.server_final)
    }
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That the proof is right is shown by logging in to PostgreSQL, in the tests beside the crate.
    #[test]
    fn messages_have_the_rfc_shape_and_the_server_is_checked() {
        let mut exchange = Exchange::new("pencil", &[7; 18]);
        assert_eq!(exchange.client_first(), format!("n,,n=,r={}", BASE64.encode([7; 18])));
        let server_first = format!("r={}more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", BASE64.encode([7; 18]));
        let last = exchange.client_final(&server_first).unwrap();
        assert!(last.starts_with(&format!("c=biws,r={}more,p=", BASE64.encode([7; 18]))));
        assert!(!exchange.server_is_right("v=AAAA"));
        let right = exchange.server_final.clone();
        assert!(exchange.server_is_right(&right));
        assert!(exchange.client_final("r=other,s=AA==,i=1").is_err());
        assert!(exchange.client_final("e=nonsense").is_err());
        let zero = server_first.replace("i=4096", "i=0");
        assert!(exchange.client_final(&zero).is_err());
    }
}
