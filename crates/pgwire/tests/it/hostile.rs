//! Random and mutated bytes against the decoder and the whole loop.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fake::*;

/// xorshift64: a failure names its seed and comes back with it.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// As many seeds as are asked for, from `NYALA_SEED` on if it is set.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let first = std::env::var("NYALA_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1u64).max(1);
    first..first + count
}

/// A stream of mostly sensible messages with some bytes changed, lost or doubled.
fn stream(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(30) {
        bytes.extend(match random.below(14) {
            0 => query("rows 3; ONE"),
            1 => extended("rows 5", 2),
            2 => sync(),
            3 => message(b'd', b"1\n2\n"),
            4 => message(b'c', b""),
            5 => message(b'f', b"no\0"),
            6 => query("copyin"),
            7 => message(b'H', b""),
            8 => message(b'C', b"Sx\0"),
            9 => message(b'D', b"P\0"),
            10 => query("fail"),
            11 => query("gate 3"),
            12 => message(b'p', b"SCRAM-SHA-256\0\0\0\0\x0cn,,n=,r=nonc"),
            _ => (0..random.below(20)).map(|_| random.below(256) as u8).collect(),
        });
    }
    for _ in 0..random.below(6) {
        let at = random.below(bytes.len().max(1)).min(bytes.len());
        match random.below(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.below(256) as u8),
            2 if at < bytes.len() => _ = bytes.remove(at),
            _ if at < bytes.len() => bytes[at] = random.below(256) as u8,
            _ => {}
        }
    }
    bytes
}

#[test]
fn the_decoder_survives_anything() {
    for seed in seeds(20_000) {
        let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        pgwire::fuzz_decode(&stream(random));
        let noise: Vec<u8> = (0..random.below(60)).map(|_| random.below(256) as u8).collect();
        pgwire::fuzz_decode(&noise);
    }
}

#[test]
fn the_loop_survives_anything_and_answers_in_whole_messages() {
    for seed in seeds(1500) {
        with_connection_of(1 << 16, async |client, world, registry| {
            let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            world.make_durable(5);
            if random.below(8) > 0 {
                client.login().await;
            }
            let bytes = stream(random);
            let (mut reader, mut writer) =
                tokio::io::split(std::mem::replace(&mut client.stream, tokio::io::duplex(1).0));
            let piece = 1 + random.below(200);
            let send = async {
                for piece in bytes.chunks(piece) {
                    if writer.write_all(piece).await.is_err() {
                        break;
                    }
                }
                let _ = writer.shutdown().await;
            };
            let mut answer = Vec::new();
            let (_, read) = tokio::join!(send, reader.read_to_end(&mut answer));
            read.unwrap();
            assert!(answer.len() < 1 << 16, "seed {seed}: the answer grows");
            let mut rest = &answer[..];
            while let Some(header) = rest.first_chunk::<5>() {
                let n = u32::from_be_bytes(header[1..].try_into().unwrap()) as usize + 1;
                assert!(n >= 5 && n <= rest.len(), "seed {seed}: a broken message");
                rest = &rest[n..];
            }
            assert!(rest.iter().all(|&b| b == b'N'), "seed {seed}: a broken tail {rest:?}");
            settle().await;
            assert_eq!(registry.len(), 0, "seed {seed}: the connection lives on");
        });
    }
}

#[test]
fn a_declared_length_costs_nothing() {
    with_session(async |client, _, registry| {
        client.send(b"Q\x3f\xff\xff\xffSELECT").await;
        settle().await;
        assert_eq!(registry.len(), 1);
        client.send(&vec![b'x'; 300 << 10]).await;
        settle().await;
    });
}
