//! Sessions whose bytes are changed at random, cut short, or make no sense.

use std::time::Duration;

use testkit::Random;

use super::server::start;
use super::wire::{self, End, Wire};

const ROUNDS: u64 = 400;

/// One of everything: start-up, simple, extended, COPY in both directions, errors, a transaction.
fn session() -> Vec<Vec<u8>> {
    vec![
        wire::startup(),
        wire::query("CREATE TEMP TABLE IF NOT EXISTS s (a int, b text)"),
        wire::query("SELECT 1, 'two', NULL, 4.5; SELECT 5"),
        wire::parse("", "SELECT $1::int + 1, $2"),
        wire::message(b'D', b"S\0"),
        wire::bind(&["41", "text"]),
        wire::message(b'D', b"P\0"),
        wire::execute(0),
        wire::message(b'H', b""),
        wire::sync(),
        wire::parse("named", "SELECT g FROM generate_series(1, 100) AS g"),
        wire::message(b'B', b"portal\0named\0\0\x01\0\x01\0\0\0\x01\0\x01"),
        wire::message(b'E', b"portal\0\0\0\0\x0a"),
        wire::message(b'C', b"Pportal\0"),
        wire::message(b'C', b"Snamed\0"),
        wire::sync(),
        wire::query("BEGIN"),
        wire::query("CREATE TABLE c (a int, b text)"),
        wire::query("COPY c FROM STDIN"),
        wire::message(b'd', b"1\tone\n2\ttwo\n\\N\t\\N\n"),
        wire::message(b'd', b"3\tthr"),
        wire::message(b'd', b"ee\n"),
        wire::message(b'c', b""),
        wire::query("COPY c FROM STDIN (FORMAT csv, HEADER)"),
        wire::message(b'd', b"a,b\n1,\"x, \"\"y\"\"\"\n"),
        wire::message(b'f', b"no more\0"),
        wire::query("ROLLBACK"),
        wire::query("COPY (SELECT 1, 'x') TO STDOUT"),
        wire::message(b'F', &[0; 10]),
        wire::query("no such statement"),
        wire::query("SET client_encoding = 'UTF8'; SHOW ALL"),
        wire::message(b'X', b""),
    ]
}

/// Changes a session: bytes, lengths, order, whole messages.
fn mutate(mut messages: Vec<Vec<u8>>, random: &mut Random) -> Vec<u8> {
    let mut pick = |limit: usize| random.below(limit.max(1) as u64) as usize;
    for _ in 0..1 + pick(4) {
        let at = pick(messages.len());
        match pick(8) {
            0 => _ = messages.remove(at),
            1 => {
                let copy = messages[at].clone();
                messages.insert(pick(messages.len() + 1), copy);
            }
            2 => {
                let other = pick(messages.len());
                messages.swap(at, other);
            }
            3 => {
                let cut = pick(messages[at].len());
                messages[at].truncate(cut);
            }
            4 if messages[at].len() >= 5 => {
                let lengths = [0, 1, 3, 4, 5, 0x7fff_ffff, 0xffff_ffff, 0x4000_0000, 1 << 16];
                let length: u32 = lengths[pick(lengths.len())];
                messages[at][1..5].copy_from_slice(&length.to_be_bytes());
            }
            5 if !messages[at].is_empty() => {
                let place = pick(messages[at].len());
                messages[at][place] = [0, 0xff, 0xc3, 0x80, b'\'', b'"', b'$', b'\\'][pick(8)];
            }
            6 => {
                let place = pick(messages[at].len() + 1);
                messages[at].insert(place, pick(256) as u8);
            }
            _ => messages[at] = (0..pick(40)).map(|_| pick(256) as u8).collect(),
        }
        if messages.is_empty() {
            break;
        }
    }
    messages.concat()
}

#[test]
fn mutated_sessions_end() {
    let Some(server) = start(&["--cores", "1"]) else { return };
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let mut random = Random::new(seed);
    let mut waiting = 0;
    for round in 0..ROUNDS {
        let bytes = mutate(session(), &mut random);
        let mut wire = Wire::connect(server.nyala.port());
        wire.send(&bytes);
        if random.below(4) == 0 {
            // Not everybody says goodbye.
            waiting += 1;
            drop(wire);
            continue;
        }
        wire.finish();
        let (answer, end) = wire.read_until(Duration::from_secs(20), |_| false);
        assert_eq!(end, End::Closed, "round {round}: the server hangs on {bytes:?}");
        let errors = wire::errors(&answer);
        assert!(!errors.iter().any(|code| code == "XX000"), "round {round}: {errors:?} for {bytes:?}");
    }
    println!("{ROUNDS} sessions, {waiting} of them left without a word");
    let reply = server.connect().query("SELECT count(*) FROM information_schema.tables WHERE table_name = 'c'");
    assert!(reply.value().is_some(), "{reply}");
    assert!(server.resident_mib() < 300, "{} MiB resident", server.resident_mib());
    server.assert_sound();
}

#[test]
fn special_bytes() {
    let Some(server) = start(&["--cores", "1"]) else { return };
    let port = server.nyala.port();
    // Before a login: nothing of this gets an answer that costs much.
    for bytes in [
        &b""[..],
        b"\0",
        b"\0\0\0\0",
        b"\0\0\0\x04",
        b"\x7f\xff\xff\xff\0\x03\0\0",
        b"\xff\xff\xff\xff\0\x03\0\0",
        b"\0\0\0\x08\x04\xd2\x16\x2f",
        b"\0\0\0\x08\0\x03\0\0",
        b"\0\0\0\x09\0\x03\0\0\0",
        b"\0\0\0\x0d\0\x03\0\0user\0",
        b"\0\0\0\x08\0\x02\0\0",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
    ] {
        let mut wire = Wire::connect(port);
        wire.send(bytes);
        wire.finish();
        let (_, end) = wire.read_until(Duration::from_secs(10), |_| false);
        assert_eq!(end, End::Closed, "{bytes:?}");
    }
    // After it.
    for (bytes, codes) in [
        (wire::message(b'Q', b"SELECT '\xff\xfe'\0"), vec!["22021"]),
        (wire::message(b'Q', b"SELECT 1"), vec!["08P01"]),
        (wire::message(b'Q', b"SELECT 1\0\0"), vec!["08P01"]),
        (b"Q\0\0\0\0".to_vec(), vec!["08P01"]),
        (b"Q\0\0\0\x03".to_vec(), vec!["08P01"]),
        (b"Q\x7f\xff\xff\xff".to_vec(), vec!["08P01"]),
        (b"\0\0\0\0\x04".to_vec(), vec!["08P01"]),
        (wire::message(b'z', b"what"), vec!["08P01"]),
    ] {
        let mut wire = Wire::login(port);
        wire.send(&bytes);
        wire.finish();
        let (answer, end) = wire.read_until(Duration::from_secs(10), |_| false);
        assert_eq!(end, End::Closed, "{bytes:?}");
        let errors = wire::errors(&answer);
        assert!(errors == codes || errors.is_empty(), "{bytes:?}: {errors:?}");
    }
    server.assert_sound();
}

#[test]
fn ten_thousand_parses_without_a_sync() {
    let Some(server) = start(&["--cores", "1"]) else { return };
    let mut wire = Wire::login(server.nyala.port());
    for i in 0..10_000 {
        assert!(wire.send(&wire::parse(&format!("s{i}"), &format!("SELECT {i}, $1::text"))));
    }
    // Another client is served meanwhile.
    assert_eq!(server.connect().query("SELECT 1").code(), "00000");
    let bytes: Vec<u8> = (0..10_000).flat_map(|i| wire::message(b'C', format!("Ss{i}\0").as_bytes())).collect();
    assert!(wire.send(&[bytes, wire::sync()].concat()));
    let answer = wire.answer();
    assert_eq!(wire::errors(&answer), Vec::<String>::new());
    assert_eq!(answer.len(), 20_000 * 5 + 6);
    // Errors in a row: one is reported, the rest is skipped up to Sync.
    let broken: Vec<u8> = (0..10_000).flat_map(|_| wire::parse("", "no such statement")).collect();
    assert!(wire.send(&[broken, wire::sync()].concat()));
    let answer = wire.answer();
    assert_eq!(wire::errors(&answer), ["42601"]);
    drop(wire);
    server.assert_sound();
}
