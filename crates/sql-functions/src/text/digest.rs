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

/// Gives a message to a digest, part by part: it may be long.
///
/// # Errors
/// Why the statement should stop.
pub(crate) fn feed(message: &[u8], mut update: impl FnMut(&[u8])) -> Result<()> {
    /// Bytes between two looks at the time.
    const PART: usize = 4096;
    for part in message.chunks(PART) {
        work::step(2 * part.len())?;
        update(part);
    }
    Ok(())
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
    let message = match args {
        [Datum::Text(text)] => text.as_bytes(),
        [Datum::Bytea(bytes)] => bytes,
        _ => return mismatched(args),
    };
    let mut digest = md5::Md5::new();
    feed(message, |part| digest.update(part))?;
    Ok(hex(&digest.finalize()).into())
}

macro_rules! sha {
    ($kind:ident) => {
        |_, args| match args {
            [Datum::Bytea(bytes)] => {
                let mut digest = sha2::$kind::new();
                feed(bytes, |part| digest.update(part))?;
                Ok(Datum::Bytea(digest.finalize()[..].into()))
            }
            _ => mismatched(args),
        }
    };
}

/// The table, by OID.
pub(crate) static FUNCTIONS: &[Function] = &[
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
