//! crypt() and gen_salt() of pgcrypto: bcrypt, and the MD5 crypt of FreeBSD.
//!
//! The forms by DES are refused: they are broken in seconds.

use base::{Error, Result, SqlState, work};
use md5::{Digest, Md5};
use types::Datum;

use super::super::EvalContext;
use super::super::entry::mismatched;
use super::super::text::digest::feed;
use super::crypto::random;

/// Digits of bcrypt's salts and digests.
const BCRYPT: &[u8; 64] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Digits of the others.
const PLAIN: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Bytes of a password that bcrypt looks at.
const PASSWORD_MAX: usize = 72;
/// Digits of bcrypt's salt.
const SALT_DIGITS: usize = 22;
/// Most bytes of MD5 crypt's salt.
const SALT_MAX: usize = 8;
/// Powers of two that bcrypt may take.
const COSTS: std::ops::RangeInclusive<u32> = 4..=31;
/// The one of a salt for which none is said.
const COST: u32 = 6;
/// Units of work that taking in a key is.
const KEY: usize = 40_000;

fn invalid() -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, "invalid salt")
}

fn no_des() -> Error {
    Error::unsupported("passwords encrypted with DES are not supported").hint("Use gen_salt('bf').")
}

/// Bytes as digits of six bits, the highest first; a last digit is filled with zeros.
fn digits(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 1);
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        let digit = |at: usize| BCRYPT[(word >> (18 - 6 * at) & 63) as usize] as char;
        out.extend((0..=three.len()).map(digit));
    }
    out
}

/// The bytes that digits stand for.
fn salt_of(text: &[u8]) -> Option<[u8; 16]> {
    let mut salt = [0; 16];
    let mut at = 0;
    for four in text.get(..SALT_DIGITS)?.chunks(4) {
        let mut word = 0u32;
        for digit in four {
            word = word << 6 | BCRYPT.iter().position(|known| known == digit)? as u32;
        }
        word <<= 6 * (4 - four.len());
        for byte in 0..3 {
            if let Some(to) = salt.get_mut(at) {
                *to = (word >> (16 - 8 * byte)) as u8;
                at += 1;
            }
        }
    }
    Some(salt)
}

/// bcrypt (Provos and Mazières, 1999) of a password by a salt `$2a$cost$digits`.
fn bcrypt(password: &[u8], setting: &str) -> Result<String> {
    let rest = setting.strip_prefix("$2a$").ok_or_else(invalid)?.as_bytes();
    let cost = match rest {
        [tens @ b'0'..=b'3', ones @ b'0'..=b'9', b'$', ..] => u32::from(tens - b'0') * 10 + u32::from(ones - b'0'),
        _ => return Err(invalid()),
    };
    let salt = salt_of(&rest[3..]).filter(|_| COSTS.contains(&cost)).ok_or_else(invalid)?;
    let mut key = password[..password.len().min(PASSWORD_MAX)].to_vec();
    if key.len() < PASSWORD_MAX {
        key.push(0);
    }
    let mut state = <blowfish::Blowfish>::bc_init_state();
    state.salted_expand_key(&salt, &key);
    for _ in 0..1u64 << cost {
        work::step(2 * KEY)?;
        state.bc_expand_key(&key);
        state.bc_expand_key(&salt);
    }
    let (words, _) = b"OrpheanBeholderScryDoubt".as_chunks::<8>();
    let mut out = Vec::with_capacity(24);
    for word in words {
        let (halves, _) = word.as_chunks::<4>();
        let mut pair = [u32::from_be_bytes(halves[0]), u32::from_be_bytes(halves[1])];
        for _ in 0..64 {
            pair = state.bc_encrypt(pair);
        }
        out.extend(pair.iter().flat_map(|half| half.to_be_bytes()));
    }
    // The last byte was never shown.
    Ok(format!("$2a${cost:02}${}{}", digits(&salt), digits(&out[..23])))
}

/// MD5 crypt (Poul-Henning Kamp, 1994).
fn md5_crypt(password: &[u8], setting: &str) -> Result<String> {
    const ROUNDS: usize = 1000;
    let rest = setting.strip_prefix("$1$").ok_or_else(invalid)?;
    let salt: String = rest.chars().take_while(|c| *c != '$').take(SALT_MAX).collect();
    let digest = |parts: &[&[u8]]| -> Result<[u8; 16]> {
        let mut digest = Md5::new();
        for part in parts {
            feed(part, |part| digest.update(part))?;
        }
        Ok(digest.finalize().into())
    };
    let inner = digest(&[password, salt.as_bytes(), password])?;
    let mut first = Md5::new();
    feed(password, |part| first.update(part))?;
    first.update(b"$1$");
    first.update(salt.as_bytes());
    for part in password.chunks(16) {
        work::step(64)?;
        first.update(&inner[..part.len()]);
    }
    let mut length = password.len();
    while length > 0 {
        // As in the original: a zero, or the first letter of the password.
        first.update(if length & 1 == 1 { &[0][..] } else { &password[..1] });
        length >>= 1;
    }
    let mut sum: [u8; 16] = first.finalize().into();
    for round in 0..ROUNDS {
        let (odd, third, seventh) = (round % 2 == 1, !round.is_multiple_of(3), !round.is_multiple_of(7));
        let or = |is: bool, bytes| if is { bytes } else { &[][..] };
        sum = digest(&[
            if odd { password } else { &sum },
            or(third, salt.as_bytes()),
            or(seventh, password),
            if odd { &sum } else { password },
        ])?;
        work::step(256)?;
    }
    let mut out = format!("$1${salt}$");
    let mut put = |word: u32, count: usize| {
        out.extend((0..count).map(|at| PLAIN[(word >> (6 * at) & 63) as usize] as char));
    };
    let byte = |at: usize| u32::from(sum[at]);
    for (a, b, c) in [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)] {
        put(byte(a) << 16 | byte(b) << 8 | byte(c), 4);
    }
    put(byte(11), 2);
    Ok(out)
}

/// `crypt(password, salt)`
pub(super) fn crypt(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(password), Datum::Text(salt)] = args else { return mismatched(args) };
    let (password, salt) = (password.as_bytes(), &**salt);
    match salt {
        _ if salt.len() < 2 => Err(invalid()),
        _ if salt.starts_with("$2a$") => Ok(bcrypt(password, salt)?.into()),
        _ if salt.starts_with("$2x$") => Err(Error::unsupported("salts of form $2x$ are not supported")),
        _ if salt.starts_with("$2$") => Err(invalid()),
        _ if salt.starts_with("$1$") => Ok(md5_crypt(password, salt)?.into()),
        _ => Err(no_des()),
    }
}

/// `gen_salt(type [, rounds])`
pub(super) fn gen_salt(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (name, rounds) = match args {
        [Datum::Text(name)] => (name, 0),
        [Datum::Text(name), Datum::Int4(rounds)] => (name, *rounds),
        _ => return mismatched(args),
    };
    let bad_rounds = || Error::new(SqlState::INVALID_PARAMETER_VALUE, "gen_salt: Incorrect number of rounds");
    match name.to_ascii_lowercase().as_str() {
        "bf" => {
            let cost = if rounds == 0 { Some(COST) } else { u32::try_from(rounds).ok() };
            let cost = cost.filter(|cost| COSTS.contains(cost)).ok_or_else(bad_rounds)?;
            Ok(format!("$2a${cost:02}${}", digits(&random::<16>()?)).into())
        }
        "md5" if rounds == 0 || rounds == 1000 => {
            let salt = random::<SALT_MAX>()?.map(|byte| PLAIN[usize::from(byte & 63)] as char);
            Ok(format!("$1${}", String::from_iter(salt)).into())
        }
        "md5" => Err(bad_rounds()),
        "des" | "xdes" => Err(no_des()),
        _ => Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, "gen_salt: Unknown salt algorithm")),
    }
}
