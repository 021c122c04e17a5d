//! Digests and hashes: MD5, SHA-2, and the hash functions that PostgreSQL shows.

use base::Result;
use base::work::{self, Count};
use sha2::Digest;
use types::Datum;
use types::oid::*;

use super::super::entry::{immutable, mismatched};
use super::super::{EvalContext, Function};

/// The first bytes of a SHA-256.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&sha2::Sha256::digest(bytes)[..16]);
    out
}

/// Rotations of MD5's rounds.
const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// MD5 (RFC 1321).
fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize((message.len() + 8).next_multiple_of(64) - 8, 0);
    message.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let (blocks, _) = message.as_chunks::<64>();
    for block in blocks.iter().counted(128) {
        let (words, _) = block.as_chunks::<4>();
        let [mut a, mut b, mut c, mut d] = state;
        for i in 0..64 {
            let (mixed, word) = match i / 16 {
                0 => (b & c | !b & d, i),
                1 => (d & b | !d & c, (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), 7 * i % 16),
            };
            // The constants are the sines of whole numbers.
            let constant = ((i as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mixed).wrapping_add(constant).wrapping_add(u32::from_le_bytes(words[word]));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(TURNS[i / 16][i % 4]));
        }
        for (s, v) in state.iter_mut().zip([a, b, c, d]) {
            *s = s.wrapping_add(v);
        }
    }
    let mut out = [0; 16];
    for (to, word) in out.chunks_exact_mut(4).zip(state) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    out
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |n: u8| DIGITS[usize::from(n)] as char;
    bytes.iter().counted(2).flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}

/// The mixing steps of Jenkins' hash, which PostgreSQL uses.
struct Mixer(u32, u32, u32);

impl Mixer {
    fn new(length: usize) -> Mixer {
        let start = 0x9e37_79b9_u32.wrapping_add(length as u32).wrapping_add(3_923_095);
        Mixer(start, start, start)
    }

    fn mix(&mut self) {
        let Mixer(a, b, c) = self;
        let step = |x: &mut u32, y: &mut u32, z: &mut u32, by: u32| {
            *x = x.wrapping_sub(*z) ^ z.rotate_left(by);
            *z = z.wrapping_add(*y);
        };
        step(a, b, c, 4);
        step(b, c, a, 6);
        step(c, a, b, 8);
        step(a, b, c, 16);
        step(b, c, a, 19);
        step(c, a, b, 4);
    }

    fn finish(mut self) -> (u32, u32) {
        let Mixer(a, b, c) = &mut self;
        let step = |x: &mut u32, y: u32, by: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(by));
        step(c, *b, 14);
        step(a, *c, 11);
        step(b, *a, 25);
        step(c, *b, 16);
        step(a, *c, 4);
        step(b, *a, 14);
        step(c, *b, 24);
        (self.1, self.2)
    }
}

/// `hash_any` of PostgreSQL, with a seed its extended form; both words of the state.
fn hash_bytes(bytes: &[u8], seed: u64) -> (u32, u32) {
    let mut mixer = Mixer::new(bytes.len());
    if seed != 0 {
        mixer.0 = mixer.0.wrapping_add((seed >> 32) as u32);
        mixer.1 = mixer.1.wrapping_add(seed as u32);
        mixer.mix();
    }
    let word = |b: &[u8]| b.iter().rev().fold(0u32, |n, &b| n << 8 | u32::from(b));
    let mut blocks = bytes.chunks_exact(12);
    for block in (&mut blocks).counted(8) {
        mixer.0 = mixer.0.wrapping_add(word(&block[..4]));
        mixer.1 = mixer.1.wrapping_add(word(&block[4..8]));
        mixer.2 = mixer.2.wrapping_add(word(&block[8..]));
        mixer.mix();
    }
    let rest = blocks.remainder();
    let piece = |from: usize| word(rest.get(from.min(rest.len())..(from + 4).min(rest.len())).unwrap_or(&[]));
    mixer.0 = mixer.0.wrapping_add(piece(0));
    mixer.1 = mixer.1.wrapping_add(piece(4));
    // The lowest byte of the last word is left for the length.
    mixer.2 = mixer.2.wrapping_add(piece(8) << 8);
    mixer.finish()
}

fn hash_word(word: u32) -> i32 {
    let mut mixer = Mixer::new(4);
    mixer.0 = mixer.0.wrapping_add(word);
    mixer.finish().1 as i32
}

fn hashtext(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(text)] => Ok(Datum::Int4(hash_bytes(text.as_bytes(), 0).1 as i32)),
        _ => mismatched(args),
    }
}

fn hashtextextended(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(text), Datum::Int8(seed)] => {
            let (b, c) = hash_bytes(text.as_bytes(), *seed as u64);
            Ok(Datum::Int8((u64::from(b) << 32 | u64::from(c)) as i64))
        }
        _ => mismatched(args),
    }
}

fn hashint(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Int4(n)] => Ok(Datum::Int4(hash_word(*n as u32))),
        // Equal numbers of any width hash equally.
        [Datum::Int8(n)] => {
            let (high, low) = ((*n >> 32) as u32, *n as u32);
            Ok(Datum::Int4(hash_word(low ^ if *n >= 0 { high } else { !high })))
        }
        _ => mismatched(args),
    }
}

fn md5_hex(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(text)] => Ok(hex(&md5(text.as_bytes())).into()),
        [Datum::Bytea(bytes)] => Ok(hex(&md5(bytes)).into()),
        _ => mismatched(args),
    }
}

macro_rules! sha {
    ($kind:ident) => {
        |_, args| match args {
            [Datum::Bytea(bytes)] => {
                let mut digest = sha2::$kind::new();
                for part in bytes.chunks(4096) {
                    work::step(2 * part.len())?;
                    digest.update(part);
                }
                Ok(Datum::Bytea(digest.finalize()[..].into()))
            }
            _ => mismatched(args),
        }
    };
}

/// The table, by OID.
pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    immutable(400, "hashtext", &[TEXT], INT4, hashtext),
    immutable(448, "hashtextextended", &[TEXT, INT8], INT8, hashtextextended),
    immutable(450, "hashint4", &[INT4], INT4, hashint),
    immutable(949, "hashint8", &[INT8], INT4, hashint),
    immutable(2311, "md5", &[TEXT], TEXT, md5_hex).leakproof(),
    immutable(2321, "md5", &[BYTEA], TEXT, md5_hex).leakproof(),
    immutable(3419, "sha224", &[BYTEA], BYTEA, sha!(Sha224)).leakproof(),
    immutable(3420, "sha256", &[BYTEA], BYTEA, sha!(Sha256)).leakproof(),
    immutable(3421, "sha384", &[BYTEA], BYTEA, sha!(Sha384)).leakproof(),
    immutable(3422, "sha512", &[BYTEA], BYTEA, sha!(Sha512)).leakproof(),
];
