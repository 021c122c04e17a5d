//! Searching texts and bytes for others.
//!
//! Responsible for: finding where a string occurs in another one, and the parts between its occurrences, in steps that are counted.
//! Not responsible for: patterns.
//! Invariants: the time is linear in both strings whatever they are, except with a probability that a user cannot influence; no step is longer than
//! [`work::STRETCH`] bytes.
//!
//! What is wanted is usually short: `memmem` finds it, stretch by stretch. It would prepare and compare a long one in one step. That one is found by
//! a rolling hash (Karp and Rabin 1987) with a random base.

use std::hash::{BuildHasher, RandomState};

use base::work;
use memchr::memmem::Finder;

/// What is wanted.
pub(crate) enum Wanted<'w> {
    Short(Finder<'w>),
    Long(Long<'w>),
}

impl<'w> Wanted<'w> {
    pub(crate) fn new(wanted: &'w [u8]) -> Wanted<'w> {
        if wanted.len() > work::STRETCH {
            Wanted::Long(Long::new(wanted, RandomState::new().hash_one(0)))
        } else {
            Wanted::Short(Finder::new(wanted))
        }
    }

    fn len(&self) -> usize {
        match self {
            Wanted::Short(finder) => finder.needle().len(),
            Wanted::Long(long) => long.wanted.len(),
        }
    }

    /// Where it occurs first.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Wanted::Short(finder) => find_short(finder, bytes),
            Wanted::Long(long) => long.find(bytes),
        }
    }

    /// The parts of a text before, between and behind its occurrences, as [`str::split`] has them. It must be text and not be empty.
    pub(crate) fn split<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut rest = Some(text);
        std::iter::from_fn(move || {
            let text = rest?;
            let Some(at) = self.find(text.as_bytes()) else { return rest.take() };
            rest = Some(&text[at + self.len()..]);
            Some(&text[..at])
        })
    }
}

fn find_short(finder: &Finder<'_>, bytes: &[u8]) -> Option<usize> {
    let overlap = finder.needle().len().saturating_sub(1);
    let stretch = work::STRETCH.max(2 * overlap);
    let mut from = 0;
    loop {
        let part = &bytes[from..bytes.len().min(from + stretch)];
        if let Some(at) = finder.find(part) {
            work::beat(at / 4);
            return Some(from + at);
        }
        if from + part.len() == bytes.len() {
            return None;
        }
        work::beat(part.len() / 4);
        from += part.len() - overlap;
    }
}

/// A long string, as the value of a polynomial modulo [`PRIME`] with its bytes as coefficients.
pub(crate) struct Long<'w> {
    wanted: &'w [u8],
    hash: u64,
    base: u64,
    /// What a byte counts that leaves the window.
    leaving: u64,
}

const PRIME: u64 = (1 << 61) - 1;

fn product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let sum = (product as u64 & PRIME) + (product >> 61) as u64;
    if sum >= PRIME { sum - PRIME } else { sum }
}

/// Bytes that are hashed between two counts.
const AT_ONCE: usize = 4096;

impl<'w> Long<'w> {
    fn new(wanted: &'w [u8], random: u64) -> Long<'w> {
        let base = 256 + random % (PRIME - 256);
        let mut leaving = 1;
        let mut hash = 0;
        for part in wanted.chunks(AT_ONCE) {
            work::beat(2 * part.len());
            for byte in part {
                hash = (product(hash, base) + u64::from(*byte)) % PRIME;
                leaving = product(leaving, base);
            }
        }
        Long { wanted, hash, base, leaving }
    }

    fn find(&self, bytes: &[u8]) -> Option<usize> {
        let len = self.wanted.len();
        if bytes.len() < len {
            return None;
        }
        let mut hash = 0;
        for (number, part) in bytes.chunks(AT_ONCE).enumerate() {
            work::beat(2 * part.len());
            for (at, byte) in part.iter().enumerate() {
                let end = number * AT_ONCE + at + 1;
                hash = (product(hash, self.base) + u64::from(*byte)) % PRIME;
                let Some(from) = end.checked_sub(len) else { continue };
                if let Some(before) = from.checked_sub(1) {
                    hash = (hash + PRIME - product(self.leaving, u64::from(bytes[before]))) % PRIME;
                }
                if hash == self.hash && is_same(&bytes[from..end], self.wanted) {
                    return Some(from);
                }
            }
        }
        None
    }
}

/// Whether strings of the same length are the same.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.chunks(work::STRETCH).zip(b.chunks(work::STRETCH)).all(|(a, b)| {
        work::beat(work::bytes(a.len()));
        a == b
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_strings_are_found_where_short_ones_are() {
        let texts = ["", "a", "aab", "aaaaaaaab", "abababac", "aacaabaacaab", "\u{e4}\u{e4}a\u{e4}"];
        let wanted = ["a", "b", "aa", "ab", "aab", "aac", "abab", "\u{e4}", "\u{e4}a", "aacaabaacaab", "aacaabaacaabb"];
        for text in texts.map(|text| text.repeat(700)).iter().map(String::as_str).chain(texts) {
            for wanted in wanted {
                for random in [0, 1, u64::MAX] {
                    let long = Wanted::Long(Long::new(wanted.as_bytes(), random));
                    assert_eq!(long.find(text.as_bytes()), text.find(wanted), "{wanted} in {text}");
                    let parts: Vec<&str> = long.split(text).collect();
                    assert_eq!(parts, text.split(wanted).collect::<Vec<_>>(), "{wanted} in {text}");
                }
                let parts: Vec<&str> = Wanted::new(wanted.as_bytes()).split(text).collect();
                assert_eq!(parts, text.split(wanted).collect::<Vec<_>>(), "{wanted} in {text}");
            }
        }
    }

    #[test]
    fn a_long_string_is_found_in_short_steps() {
        let text = "a".repeat(3 * work::STRETCH);
        let wanted = format!("{}b", "a".repeat(work::STRETCH + 7));
        let whole = format!("{text}b");
        work::largest();
        assert_eq!(Wanted::new(wanted.as_bytes()).find(text.as_bytes()), None);
        let at = whole.len() - wanted.len();
        assert_eq!(Wanted::new(wanted.as_bytes()).find(whole.as_bytes()), Some(at));
        assert!(work::largest() <= 1 << 16);
    }
}
