//! Start-up, negotiation, authentication.

use std::sync::Arc;

use base::{Error, SqlState};
use pgwire::scram::{Verifier, client_final};
use pgwire::{AuthPlan, Peer, Registry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fake::*;

const SSL: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
const GSSENC: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x30";

#[test]
fn trust_login_after_refused_encryption() {
    with_connection_of(1 << 16, async |client, _, _| {
        for request in [GSSENC, SSL] {
            client.send(request).await;
            assert_eq!(client.stream.read_u8().await.unwrap(), b'N');
        }
        client.send(&startup("user\0u\0database\0d\0")).await;
        assert_eq!(client.until('Z').await, "RSKZ");
    });
}

#[test]
fn a_second_request_for_encryption_is_a_protocol_version() {
    with_connection_of(1 << 16, async |client, _, _| {
        client.send(&[SSL, SSL].concat()).await;
        assert_eq!(client.stream.read_u8().await.unwrap(), b'N');
        let message = "unsupported frontend protocol 1234.5679: server supports 3.0 to 3.0";
        assert_eq!(client.rest_of_stream().await, format!("E(FATAL 0A000: {message})"));
    });
}

#[test]
fn newer_protocols_are_negotiated_down() {
    with_connection_of(1 << 16, async |client, _, _| {
        let mut packet = startup("user\0u\0_pq_.new\0on\0");
        packet[7] = 2;
        client.send(&packet).await;
        let (tag, body) = client.next().await.unwrap();
        assert_eq!((tag, &body[..]), ('v', &b"\0\x03\0\0\0\0\0\x01_pq_.new\0"[..]));
        assert_eq!(client.until('Z').await, "RSKZ");
    });
}

#[test]
fn refusals_are_fatal() {
    for (parameters, expected) in [
        ("user\0reject\0", "E(FATAL 28000: no)"),
        ("user\0u\0database\0missing\0", "RE(FATAL 3D000: database \"missing\" does not exist)"),
        ("database\0d\0", "E(FATAL 28000: no PostgreSQL user name specified in startup packet)"),
        ("user\0u\0replication\0database\0", "E(FATAL 0A000: replication connections are not supported)"),
    ] {
        with_connection_of(1 << 16, async |client, _, _| {
            client.send(&startup(parameters)).await;
            assert_eq!(client.rest_of_stream().await, expected);
        });
    }
}

/// Plays a SCRAM login; all the tags the server sends.
fn scram(plan: AuthPlan, password: &str) -> String {
    let mut tags = String::new();
    with_connection_of(1 << 16, async |client, world, _| {
        *world.verifier.lock() = Some(plan);
        client.send(&startup("user\0u\0")).await;
        assert_eq!(client.next().await.unwrap(), ('R', b"\0\0\0\x0aSCRAM-SHA-256\0\0".to_vec()));
        let first = b"SCRAM-SHA-256\0\0\0\0\x0cn,,n=,r=nonc";
        client.send(&message(b'p', first)).await;
        let (_, body) = client.next().await.unwrap();
        assert_eq!(body[..4], [0, 0, 0, 11]);
        let server_first = std::str::from_utf8(&body[4..]).unwrap();
        let last = client_final(password, "n=,r=nonc", server_first).unwrap();
        client.send(&message(b'p', last.as_bytes())).await;
        tags = client.until('Z').await;
    });
    tags
}

#[test]
fn scram_logins() {
    let verifier = Verifier::build("secret", &[5; 16], 4096);
    assert_eq!(scram(AuthPlan::Scram(Some(verifier.clone())), "secret"), "RRSKZ");
    let refused = "E(FATAL 28P01: password authentication failed for user \"u\")";
    assert_eq!(scram(AuthPlan::Scram(Some(verifier)), "wrong"), refused);
    assert_eq!(scram(AuthPlan::Scram(None), "secret"), refused);
}

#[test]
fn other_messages_during_a_login_are_refused() {
    with_connection_of(1 << 16, async |client, world, _| {
        *world.verifier.lock() = Some(AuthPlan::Scram(None));
        client.send(&[startup("user\0u\0"), query("SELECT 1")].concat()).await;
        assert_eq!(client.rest_of_stream().await, "RE(FATAL 08P01: expected SASL response, got message type 81)");
    });
}

#[test]
fn too_many_clients_and_slow_clients_are_told() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (registry, backend) = (Arc::new(Registry::new([1; 32])), Fake(Default::default()));
        let mut options = pgwire::conn::Options::default();
        let refuse = Error::fatal(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already");
        let (mut mine, theirs) = tokio::io::duplex(1 << 16);
        mine.write_all(&startup("user\0u\0")).await.unwrap();
        pgwire::conn::serve(theirs, &Peer::Unix, &backend, &registry, &options, Some(refuse)).await;
        assert_eq!(Client::new(mine).rest_of_stream().await, "E(FATAL 53300: sorry, too many clients already)");

        options.login_timeout = std::time::Duration::from_millis(20);
        let (mine, theirs) = tokio::io::duplex(1 << 16);
        pgwire::conn::serve(theirs, &Peer::Unix, &backend, &registry, &options, None).await;
        let message = "E(FATAL 57014: canceling authentication due to timeout)";
        assert_eq!(Client::new(mine).rest_of_stream().await, message);
    });
}
