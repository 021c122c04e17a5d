//! TLS on a connection: the answer to SSLRequest, the handshake, what the session may know of it.
//!
//! An encrypted connection stays on the core that made the handshake: its cipher's state does not move with its socket.

use std::io;
use std::sync::{Arc, RwLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CipherSuite, ProtocolVersion, ServerConfig};
use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::proto::{self, Initial};
use crate::timers;

/// Bytes of SSLRequest and of GSSENCRequest.
const REQUEST: usize = 8;

/// The hash of the server's certificate that SCRAM binds a login to (`tls-server-end-point`, RFC 5929).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateHash {
    bytes: [u8; 64],
    len: usize,
}

impl CertificateHash {
    /// The hash.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// By the hash function of the certificate's signature; SHA-256 for those that are too weak.
    fn of(certificate: &[u8]) -> Option<CertificateHash> {
        let hash = match signature_hash(certificate)? {
            256 => Sha256::digest(certificate).to_vec(),
            384 => Sha384::digest(certificate).to_vec(),
            _ => Sha512::digest(certificate).to_vec(),
        };
        let mut bytes = [0; 64];
        bytes[..hash.len()].copy_from_slice(&hash);
        Some(CertificateHash { bytes, len: hash.len() })
    }
}

/// The bits of the hash function that a certificate is signed with; `None` if it names none (Ed25519).
fn signature_hash(certificate: &[u8]) -> Option<u32> {
    /// The DER of the object identifiers of signature algorithms, and their hash functions.
    const ALGORITHMS: [(&[u8], u32); 8] = [
        (&[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b], 256),
        (&[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c], 384),
        (&[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d], 512),
        (&[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05], 256),
        (&[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02], 256),
        (&[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03], 384),
        (&[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04], 512),
        (&[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01], 256),
    ];
    // The algorithm is named at the start of what is signed, and once more behind it; nothing before the first place can
    // look like it but the serial number, which is too short.
    let head = &certificate[..certificate.len().min(96)];
    let named = |(id, _): &&(&[u8], u32)| head.windows(id.len()).any(|window| window == *id);
    ALGORITHMS.iter().find(named).map(|(_, bits)| *bits)
}

/// What a session may know of the encryption of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The cipher as OpenSSL names it.
    pub cipher: &'static str,
    /// Bits of its key.
    pub bits: i32,
    /// What SCRAM can bind a login to.
    pub binding: Option<CertificateHash>,
}

struct Identity {
    acceptor: TlsAcceptor,
    binding: Option<CertificateHash>,
}

/// The server's certificate and key. Clones are the same one.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Arc<Identity>>>);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// From a chain of certificates, the server's first, and its private key, both in PEM.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Tls, String> {
        Ok(Tls(Arc::new(RwLock::new(Arc::new(identity(certificates, key)?)))))
    }

    /// Takes others for connections from now on.
    ///
    /// # Errors
    /// What is wrong; then nothing changes.
    pub fn replace(&self, certificates: &[u8], key: &[u8]) -> Result<(), String> {
        let fresh = Arc::new(identity(certificates, key)?);
        *self.0.write().unwrap_or_else(|e| e.into_inner()) = fresh;
        Ok(())
    }

    fn identity(&self) -> Arc<Identity> {
        Arc::clone(&self.0.read().unwrap_or_else(|e| e.into_inner()))
    }

    /// Encrypts the connection if its client asks for that before anything else.
    pub(crate) async fn greet(&self, mut stream: TcpStream) -> io::Result<Greeted> {
        let mut gss = false;
        loop {
            match first_request(&stream).await? {
                Some(Initial::GssEnc) if !gss => {
                    gss = true;
                    stream.read_exact(&mut [0; REQUEST]).await?;
                    stream.write_all(b"N").await?;
                }
                Some(Initial::Ssl) => {
                    stream.read_exact(&mut [0; REQUEST]).await?;
                    stream.write_all(b"S").await?;
                    let identity = self.identity();
                    let stream = identity.acceptor.accept(stream).await?;
                    let encryption = encryption(&stream, identity.binding);
                    return Ok(Greeted::Encrypted(Box::new(stream), encryption));
                }
                _ => return Ok(Greeted::Plain(stream)),
            }
        }
    }
}

/// A connection whose client has said whether it wants to be encrypted.
pub(crate) enum Greeted {
    /// It does not.
    Plain(TcpStream),
    /// It is.
    Encrypted(Box<TlsStream<TcpStream>>, Encryption),
}

/// What the first bytes ask for; left to be read again. `None` for what is not a request of this kind.
async fn first_request(stream: &TcpStream) -> io::Result<Option<Initial>> {
    let mut bytes = [0; REQUEST];
    loop {
        let seen = stream.peek(&mut bytes).await?;
        match proto::initial(&bytes[..seen]) {
            Ok(Some((request, _))) => return Ok(Some(request)),
            // A longer packet is a start-up packet; an ended connection is for others to deal with.
            Ok(None) if seen == 0 || seen == REQUEST => return Ok(None),
            Err(_) => return Ok(None),
            // What is there stays there, so the socket would say at once that there is something.
            Ok(None) => timers::sleep(std::time::Duration::from_millis(2)).await,
        }
    }
}

fn identity(certificates: &[u8], key: &[u8]) -> Result<Identity, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(|e| format!("the certificate cannot be read: {e}"))?;
    let first = chain.first().ok_or("there is no certificate in the file")?;
    let binding = CertificateHash::of(first);
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| format!("the private key cannot be read: {e}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| format!("the certificate and the key do not fit: {e}"))?;
    Ok(Identity { acceptor: TlsAcceptor::from(Arc::new(config)), binding })
}

fn encryption(stream: &TlsStream<TcpStream>, binding: Option<CertificateHash>) -> Encryption {
    let connection = stream.get_ref().1;
    let version = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        _ => "TLSv1.3",
    };
    let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
    let (cipher, bits) = match suite {
        Some(CipherSuite::TLS13_AES_128_GCM_SHA256) => ("TLS_AES_128_GCM_SHA256", 128),
        Some(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256) => ("TLS_CHACHA20_POLY1305_SHA256", 256),
        Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256) => ("ECDHE-ECDSA-AES128-GCM-SHA256", 128),
        Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384) => ("ECDHE-ECDSA-AES256-GCM-SHA384", 256),
        Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256) => ("ECDHE-ECDSA-CHACHA20-POLY1305", 256),
        Some(CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) => ("ECDHE-RSA-AES128-GCM-SHA256", 128),
        Some(CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384) => ("ECDHE-RSA-AES256-GCM-SHA384", 256),
        Some(CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256) => ("ECDHE-RSA-CHACHA20-POLY1305", 256),
        _ => ("TLS_AES_256_GCM_SHA384", 256),
    };
    Encryption { version, cipher, bits, binding }
}
