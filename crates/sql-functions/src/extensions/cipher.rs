//! encrypt() and decrypt() of pgcrypto: AES and Blowfish by CBC or ECB.

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockCipher, BlockDecrypt, BlockEncrypt, KeyInit};
use base::{Error, Result, SqlState, work};
use types::Datum;

use super::super::EvalContext;
use super::super::entry::mismatched;
use super::crypto::{bytes_of, cannot_use};

/// How a cipher is to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    cipher: Cipher,
    /// Blocks are chained (CBC), not each for itself (ECB).
    chained: bool,
    /// The last block is filled up (PKCS #7).
    padded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cipher {
    Aes,
    Blowfish,
}

/// `algorithm [ - mode ] [ / pad: padding ]`
fn way(text: &str) -> Result<Way> {
    let lower = text.to_ascii_lowercase();
    let (name, options) = lower.split_once('/').map_or((&*lower, None), |(name, options)| (name, Some(options)));
    let mut padded = true;
    for option in options.iter().flat_map(|options| options.split('/')) {
        match option.split_once(':') {
            Some(("pad", "pkcs")) => padded = true,
            Some(("pad", "none")) => padded = false,
            Some(("pad", _)) => return Err(cannot_use(text, "No such cipher algorithm")),
            Some(_) => return Err(cannot_use(text, "Unknown option")),
            None => return Err(cannot_use(text, "Badly formatted type")),
        }
    }
    let (cipher, chained) = match name {
        "aes" | "aes-cbc" | "rijndael" | "rijndael-cbc" => (Cipher::Aes, true),
        "aes-ecb" | "rijndael-ecb" => (Cipher::Aes, false),
        "bf" | "bf-cbc" | "blowfish" | "blowfish-cbc" => (Cipher::Blowfish, true),
        "bf-ecb" | "blowfish-ecb" => (Cipher::Blowfish, false),
        "bf-cfb" | "blowfish-cfb" | "des" | "des-cbc" | "des-ecb" | "des3" | "3des" | "des3-cbc" | "3des-cbc"
        | "des3-ecb" | "3des-ecb" | "cast5" | "cast5-cbc" | "cast5-ecb" => {
            return Err(Error::unsupported(format!("cipher \"{name}\" is not supported")));
        }
        _ => return Err(cannot_use(text, "No such cipher algorithm")),
    };
    Ok(Way { cipher, chained, padded })
}

fn failed(what: &str) -> Error {
    let message = match what {
        "encrypt" => "encrypt error: Encryption failed",
        _ => "decrypt error: Decryption failed",
    };
    Error::new(SqlState::EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, message)
}

/// Units of work that a block is.
const BLOCK: usize = 32;

fn encrypted<C: BlockCipher + BlockEncrypt>(cipher: &C, way: Way, iv: &[u8], data: &[u8]) -> Result<Datum> {
    let size = C::block_size();
    let padding = if way.padded { size - data.len() % size } else { 0 };
    if !(data.len() + padding).is_multiple_of(size) {
        return Err(failed("encrypt"));
    }
    let mut out = Vec::with_capacity(data.len() + padding);
    work::append(&mut out, data);
    out.resize(data.len() + padding, padding as u8);
    let mut before = first_block(iv, size);
    for block in out.chunks_exact_mut(size) {
        work::step(BLOCK)?;
        if way.chained {
            block.iter_mut().zip(&before).for_each(|(byte, other)| *byte ^= other);
        }
        cipher.encrypt_block(GenericArray::from_mut_slice(block));
        before.copy_from_slice(block);
    }
    Ok(Datum::Bytea(out.into()))
}

fn decrypted<C: BlockCipher + BlockDecrypt>(cipher: &C, way: Way, iv: &[u8], data: &[u8]) -> Result<Datum> {
    let size = C::block_size();
    if !data.len().is_multiple_of(size) || (data.is_empty() && way.padded) {
        return Err(failed("decrypt"));
    }
    let mut out = Vec::with_capacity(data.len());
    work::append(&mut out, data);
    let mut before = first_block(iv, size);
    for (block, sealed) in out.chunks_exact_mut(size).zip(data.chunks_exact(size)) {
        work::step(BLOCK)?;
        cipher.decrypt_block(GenericArray::from_mut_slice(block));
        if way.chained {
            block.iter_mut().zip(&before).for_each(|(byte, other)| *byte ^= other);
        }
        before.copy_from_slice(sealed);
    }
    if way.padded {
        let padding = out.last().map_or(0, |last| usize::from(*last));
        let is_padding = |end: &[u8]| end.iter().all(|byte| usize::from(*byte) == padding);
        let kept = out.len().checked_sub(padding).filter(|_| (1..=size).contains(&padding));
        match kept.filter(|&kept| is_padding(&out[kept..])) {
            Some(kept) => out.truncate(kept),
            None => return Err(failed("decrypt")),
        }
    }
    Ok(Datum::Bytea(out.into()))
}

/// What the first block is chained to: missing bytes are zeros.
fn first_block(iv: &[u8], size: usize) -> Vec<u8> {
    let mut block = iv[..iv.len().min(size)].to_vec();
    block.resize(size, 0);
    block
}

/// A key of the next length that there is; missing bytes are zeros, and what is too much is left out.
fn padded_key(key: &[u8], lengths: &[usize]) -> Vec<u8> {
    let most = lengths.last().copied().unwrap_or_default();
    let length = lengths.iter().copied().find(|length| *length >= key.len()).unwrap_or(most);
    first_block(key, length)
}

/// Shorter keys than 4 bytes are no keys of the library, but the cipher repeats a key anyway.
fn repeated_key(key: &[u8]) -> Vec<u8> {
    const MOST: usize = 56;
    let key = if key.is_empty() { &[0][..] } else { &key[..key.len().min(MOST)] };
    if key.len() < 4 { key.repeat(4) } else { key.to_vec() }
}

fn run(args: &[Datum], what: &str) -> Result<Datum> {
    let bytes: Option<Vec<&[u8]>> = args.iter().map(bytes_of).collect();
    let (data, key, iv) = match bytes.as_deref() {
        Some([data, key, _]) => (*data, *key, &[][..]),
        Some([data, key, iv, _]) => (*data, *key, *iv),
        _ => return mismatched(args),
    };
    let Some(Datum::Text(name)) = args.last() else { return mismatched(args) };
    let way = way(name)?;
    let bad_key = |_| Error::internal("a key of a length that the cipher has");
    macro_rules! with {
        ($cipher:ty, $key:expr) => {{
            let cipher = <$cipher>::new_from_slice(&$key).map_err(bad_key)?;
            match what {
                "encrypt" => encrypted(&cipher, way, iv, data),
                _ => decrypted(&cipher, way, iv, data),
            }
        }};
    }
    match way.cipher {
        Cipher::Aes => {
            let key = padded_key(key, &[16, 24, 32]);
            match key.len() {
                16 => with!(aes::Aes128, key),
                24 => with!(aes::Aes192, key),
                _ => with!(aes::Aes256, key),
            }
        }
        Cipher::Blowfish => with!(blowfish::Blowfish, repeated_key(key)),
    }
}

/// `encrypt(data, key, type)`, `encrypt_iv(data, key, iv, type)`
pub(super) fn encrypt(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    run(args, "encrypt")
}

/// `decrypt(data, key, type)`, `decrypt_iv(data, key, iv, type)`
pub(super) fn decrypt(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    run(args, "decrypt")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Blowfish's author: a key, a block, and what it becomes.
    #[test]
    fn blowfish_is_blowfish() {
        let way = way("bf-ecb/pad:none").unwrap();
        let cipher = <blowfish::Blowfish>::new_from_slice(&[0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]).unwrap();
        let sealed = encrypted(&cipher, way, &[], &[0x11; 8]).unwrap();
        assert_eq!(sealed, Datum::Bytea([0x61, 0xf9, 0xc3, 0x80, 0x22, 0x81, 0xb0, 0x96][..].into()));
    }

    #[test]
    fn short_keys_repeat() {
        assert_eq!(repeated_key(b"abc"), b"abcabcabcabc");
        assert_eq!(repeated_key(b"abcd"), b"abcd");
        assert_eq!(padded_key(b"k", &[16, 24, 32]).len(), 16);
        assert_eq!(padded_key(&[1; 17], &[16, 24, 32]).len(), 24);
        assert_eq!(padded_key(&[1; 40], &[16, 24, 32]).len(), 32);
    }
}
