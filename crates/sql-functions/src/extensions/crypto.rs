//! pgcrypto: digests, passwords, ciphers and random bytes. What it has of PGP is refused.

use base::{Error, Result, SqlState};
use hmac::Mac;
use hmac::digest::DynDigest;
use types::Datum;
use types::oid::*;

use super::super::entry::{immutable, mismatched, volatile};
use super::super::text::digest::feed;
use super::super::{EvalContext, Function};
use super::{cipher, password};

/// Most bytes that one call makes.
const RANDOM_MAX: i32 = 1024;

/// Random bytes of the system.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| {
        Error::new(SqlState::INTERNAL_ERROR, "could not generate a random number").detail(error.to_string())
    })
}

/// The error of a name that is none of these.
pub(super) fn cannot_use(name: &str, why: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("Cannot use \"{name}\": {why}"))
}

/// Of a text, its bytes.
pub(super) fn bytes_of(value: &Datum) -> Option<&[u8]> {
    match value {
        Datum::Text(text) => Some(text.as_bytes()),
        Datum::Bytea(bytes) => Some(bytes),
        _ => None,
    }
}

fn digest(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [message, Datum::Text(name)] = args else { return mismatched(args) };
    let Some(message) = bytes_of(message) else { return mismatched(args) };
    Ok(Datum::Bytea(digested(message, name)?[..].into()))
}

/// The digest of a message by an algorithm.
///
/// # Errors
/// 22023 for a name that is none; why the statement should stop.
fn digested(message: &[u8], name: &str) -> Result<Box<[u8]>> {
    let name = name.to_ascii_lowercase();
    let mut digest: Box<dyn DynDigest> = match name.as_str() {
        "md5" => Box::<md5::Md5>::default(),
        "sha1" => Box::<sha1::Sha1>::default(),
        "sha224" => Box::<sha2::Sha224>::default(),
        "sha256" => Box::<sha2::Sha256>::default(),
        "sha384" => Box::<sha2::Sha384>::default(),
        "sha512" => Box::<sha2::Sha512>::default(),
        _ => return Err(cannot_use(&name, "No such hash algorithm")),
    };
    feed(message, |part| digest.update(part))?;
    Ok(digest.finalize())
}

fn authenticated<M: Mac + hmac::digest::KeyInit>(message: &[u8], key: &[u8]) -> Result<Datum> {
    let mut mac =
        <M as Mac>::new_from_slice(key).map_err(|_| Error::internal("a key of any length is a key of an HMAC"))?;
    feed(message, |part| mac.update(part))?;
    Ok(Datum::Bytea(mac.finalize().into_bytes()[..].into()))
}

fn hmac(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [message, key, Datum::Text(name)] = args else { return mismatched(args) };
    let (Some(message), Some(key)) = (bytes_of(message), bytes_of(key)) else { return mismatched(args) };
    let name = name.to_ascii_lowercase();
    let block = if matches!(name.as_str(), "sha384" | "sha512") { 128 } else { 64 };
    // An HMAC digests a longer key at once.
    let short = if key.len() > block { Some(digested(key, &name)?) } else { None };
    let key = short.as_deref().unwrap_or(key);
    match name.as_str() {
        "md5" => authenticated::<hmac::Hmac<md5::Md5>>(message, key),
        "sha1" => authenticated::<hmac::Hmac<sha1::Sha1>>(message, key),
        "sha224" => authenticated::<hmac::Hmac<sha2::Sha224>>(message, key),
        "sha256" => authenticated::<hmac::Hmac<sha2::Sha256>>(message, key),
        "sha384" => authenticated::<hmac::Hmac<sha2::Sha384>>(message, key),
        "sha512" => authenticated::<hmac::Hmac<sha2::Sha512>>(message, key),
        _ => Err(cannot_use(&name, "No such hash algorithm")),
    }
}

fn gen_random_bytes(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Int4(count)] = args else { return mismatched(args) };
    if !(1..=RANDOM_MAX).contains(count) {
        return Err(Error::new(SqlState::EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "Length not in range"));
    }
    let mut bytes = vec![0; *count as usize];
    fill(&mut bytes)?;
    Ok(Datum::Bytea(bytes.into()))
}

fn pgp(_: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Err(Error::unsupported("the PGP functions of pgcrypto are not supported"))
}

/// The table, by number.
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(15_101, "digest", &[TEXT, TEXT], BYTEA, digest),
    immutable(15_102, "digest", &[BYTEA, TEXT], BYTEA, digest),
    immutable(15_103, "hmac", &[TEXT, TEXT, TEXT], BYTEA, hmac),
    immutable(15_104, "hmac", &[BYTEA, BYTEA, TEXT], BYTEA, hmac),
    immutable(15_105, "crypt", &[TEXT, TEXT], TEXT, password::crypt),
    volatile(15_106, "gen_salt", &[TEXT], TEXT, password::gen_salt),
    volatile(15_107, "gen_salt", &[TEXT, INT4], TEXT, password::gen_salt),
    immutable(15_108, "encrypt", &[BYTEA, BYTEA, TEXT], BYTEA, cipher::encrypt),
    immutable(15_109, "decrypt", &[BYTEA, BYTEA, TEXT], BYTEA, cipher::decrypt),
    immutable(15_110, "encrypt_iv", &[BYTEA, BYTEA, BYTEA, TEXT], BYTEA, cipher::encrypt),
    immutable(15_111, "decrypt_iv", &[BYTEA, BYTEA, BYTEA, TEXT], BYTEA, cipher::decrypt),
    volatile(15_112, "gen_random_bytes", &[INT4], BYTEA, gen_random_bytes),
    volatile(15_113, "gen_random_uuid", &[], UUID, super::uuid::uuid_generate_v4).lax(),
    volatile(15_114, "pgp_sym_encrypt", &[TEXT, TEXT], BYTEA, pgp),
    volatile(15_115, "pgp_sym_encrypt_bytea", &[BYTEA, TEXT], BYTEA, pgp),
    volatile(15_116, "pgp_sym_encrypt", &[TEXT, TEXT, TEXT], BYTEA, pgp),
    volatile(15_117, "pgp_sym_encrypt_bytea", &[BYTEA, TEXT, TEXT], BYTEA, pgp),
    immutable(15_118, "pgp_sym_decrypt", &[BYTEA, TEXT], TEXT, pgp),
    immutable(15_119, "pgp_sym_decrypt_bytea", &[BYTEA, TEXT], BYTEA, pgp),
    immutable(15_120, "pgp_sym_decrypt", &[BYTEA, TEXT, TEXT], TEXT, pgp),
    immutable(15_121, "pgp_sym_decrypt_bytea", &[BYTEA, TEXT, TEXT], BYTEA, pgp),
    volatile(15_122, "pgp_pub_encrypt", &[TEXT, BYTEA], BYTEA, pgp),
    volatile(15_123, "pgp_pub_encrypt_bytea", &[BYTEA, BYTEA], BYTEA, pgp),
    volatile(15_124, "pgp_pub_encrypt", &[TEXT, BYTEA, TEXT], BYTEA, pgp),
    volatile(15_125, "pgp_pub_encrypt_bytea", &[BYTEA, BYTEA, TEXT], BYTEA, pgp),
    immutable(15_126, "pgp_pub_decrypt", &[BYTEA, BYTEA], TEXT, pgp),
    immutable(15_127, "pgp_pub_decrypt_bytea", &[BYTEA, BYTEA], BYTEA, pgp),
    immutable(15_128, "pgp_pub_decrypt", &[BYTEA, BYTEA, TEXT], TEXT, pgp),
    immutable(15_129, "pgp_pub_decrypt_bytea", &[BYTEA, BYTEA, TEXT], BYTEA, pgp),
    immutable(15_130, "pgp_pub_decrypt", &[BYTEA, BYTEA, TEXT, TEXT], TEXT, pgp),
    immutable(15_131, "pgp_pub_decrypt_bytea", &[BYTEA, BYTEA, TEXT, TEXT], BYTEA, pgp),
    immutable(15_132, "pgp_key_id", &[BYTEA], TEXT, pgp),
    immutable(15_133, "armor", &[BYTEA], TEXT, pgp),
    immutable(15_134, "armor", &[BYTEA, TEXT_ARRAY, TEXT_ARRAY], TEXT, pgp),
    immutable(15_135, "dearmor", &[TEXT], BYTEA, pgp),
];
