//! LIKE and ILIKE on text and bytea, and what turns other escape characters into the backslash.

use std::borrow::Cow;

use base::work::{self, Count};
use base::{Error, Result, SqlState};
use types::Datum;
use types::oid::*;

use super::super::entry::{immutable, mismatched};
use super::super::{EvalContext, Function};

#[cold]
fn trailing_escape() -> Error {
    let message = "LIKE pattern must not end with escape character";
    Error::new(SqlState::INVALID_ESCAPE_SEQUENCE, message)
}

/// Length of the UTF-8 character that begins with this byte.
fn width(first: u8) -> usize {
    match first {
        0..0xc0 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

/// Matches bytes with a pattern. `FOLD` ignores the case of ASCII letters; `CHARS` lets `_` stand for a whole character.
///
/// Only the last `%` is ever retried: what an earlier one skipped was the least possible already.
fn matches<const FOLD: bool, const CHARS: bool>(text: &[u8], pattern: &[u8]) -> Result<bool> {
    let same = |a: u8, b: u8| if FOLD { a.eq_ignore_ascii_case(&b) } else { a == b };
    let step = |at: usize| if CHARS { width(text[at]) } else { 1 };
    let (mut t, mut p) = (0, 0);
    // Where to go on after a mismatched: behind the last `%`, and the text that it has not swallowed yet.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        work::step(2)?;
        let advanced = match pattern.get(p) {
            Some(b'%') => {
                p += 1;
                if p == pattern.len() {
                    return Ok(true);
                }
                retry = Some((p, t));
                continue;
            }
            None if t >= text.len() => return Ok(true),
            None => false,
            Some(_) if t >= text.len() => return Ok(false),
            Some(b'_') => {
                p += 1;
                t += step(t);
                true
            }
            Some(b'\\') => {
                let literal = *pattern.get(p + 1).ok_or_else(trailing_escape)?;
                let equal = same(text[t], literal);
                p += 2;
                t += 1;
                equal
            }
            Some(&literal) => {
                let equal = same(text[t], literal);
                p += 1;
                t += 1;
                equal
            }
        };
        if advanced {
            continue;
        }
        let Some((behind, from)) = retry else { return Ok(false) };
        if from >= text.len() {
            return Ok(false);
        }
        let mut next = from + step(from);
        // Jump to where the literal after `%` can begin.
        if !FOLD && !matches!(pattern[behind], b'_' | b'\\' | b'%') {
            match memchr::memchr(pattern[behind], text.get(next..).unwrap_or(&[])) {
                Some(skip) => {
                    work::step(work::bytes(skip))?;
                    next += skip;
                }
                None => return Ok(false),
            }
        }
        (p, t) = (behind, next);
        retry = Some((behind, next));
    }
}

/// The lower case of every character that has one of a single character.
pub(super) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|b| b.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    Cow::Owned(text.chars().counted(4).map(lower).collect())
}

/// Simple lower case of a character, as C's `towlower` has it.
pub(super) fn lower(c: char) -> char {
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        // Only U+0130 has more than one: its simple form is the dotted i.
        (Some(one), Some(_)) => one,
        _ => c,
    }
}

/// Simple upper case of a character, as C's `towupper` has it.
pub(super) fn upper(c: char) -> char {
    let mut all = c.to_uppercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn like(text: &str, pattern: &str) -> Result<bool> {
    matches::<false, true>(text.as_bytes(), pattern.as_bytes())
}

fn ilike(text: &str, pattern: &str) -> Result<bool> {
    if text.is_ascii() && pattern.is_ascii() {
        return matches::<true, false>(text.as_bytes(), pattern.as_bytes());
    }
    like(&fold(text), &fold(pattern))
}

/// A function that tests a text with a pattern.
macro_rules! text {
    ($oid:literal, $name:literal, $ty:ident, $f:ident, $holds:literal) => {
        immutable($oid, $name, &[$ty, TEXT], BOOL, |_, args| match args {
            [Datum::Text(text), Datum::Text(pattern)] => Ok(Datum::Bool($f(text, pattern)? == $holds)),
            _ => mismatched(args),
        })
        .on_texts(|text, pattern| Ok($f(text, pattern)? == $holds))
    };
}

macro_rules! bytes {
    ($holds:literal) => {
        |_, args| match args {
            [Datum::Bytea(text), Datum::Bytea(pattern)] => {
                Ok(Datum::Bool(matches::<false, false>(text, pattern)? == $holds))
            }
            _ => mismatched(args),
        }
    };
}

/// A pattern whose escape character is another than the backslash, as one whose is.
fn like_escape(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(pattern), Datum::Text(escape)] = args else { return mismatched(args) };
    let mut characters = escape.chars();
    let escape = match (characters.next(), characters.next()) {
        (_, Some(_)) => {
            return Err(Error::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
                .hint("Escape string must be empty or one character."));
        }
        (Some('\\'), None) => return Ok(args[0].clone()),
        (escape, None) => escape,
    };
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut escaped = false;
    for c in pattern.chars() {
        if Some(c) == escape && !escaped {
            out.push('\\');
            escaped = true;
        } else {
            if c == '\\' && !escaped {
                out.push('\\');
            }
            out.push(c);
            escaped = false;
        }
    }
    Ok(out.into())
}

fn like_escape_bytea(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(pattern), Datum::Bytea(escape)] = args else { return mismatched(args) };
    let escape = match escape[..] {
        [] => None,
        [b'\\'] => return Ok(args[0].clone()),
        [escape] => Some(escape),
        _ => {
            return Err(Error::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
                .hint("Escape string must be empty or one character."));
        }
    };
    let mut out = Vec::with_capacity(pattern.len() + 8);
    let mut escaped = false;
    for &b in pattern.iter() {
        if Some(b) == escape && !escaped {
            out.push(b'\\');
            escaped = true;
        } else {
            if b == b'\\' && !escaped {
                out.push(b'\\');
            }
            out.push(b);
            escaped = false;
        }
    }
    Ok(Datum::from(out))
}

/// The table, by OID.
pub(crate) static FUNCTIONS: &[Function] = &[
    text!(850, "textlike", TEXT, like, true),
    text!(851, "textnlike", TEXT, like, false),
    text!(858, "namelike", NAME, like, true),
    text!(859, "namenlike", NAME, like, false),
    text!(1569, "like", TEXT, like, true),
    text!(1570, "notlike", TEXT, like, false),
    text!(1571, "like", NAME, like, true),
    text!(1572, "notlike", NAME, like, false),
    text!(1631, "bpcharlike", BPCHAR, like, true),
    text!(1632, "bpcharnlike", BPCHAR, like, false),
    text!(1633, "texticlike", TEXT, ilike, true),
    text!(1634, "texticnlike", TEXT, ilike, false),
    text!(1635, "nameiclike", NAME, ilike, true),
    text!(1636, "nameicnlike", NAME, ilike, false),
    immutable(1637, "like_escape", &[TEXT, TEXT], TEXT, like_escape),
    text!(1660, "bpchariclike", BPCHAR, ilike, true),
    text!(1661, "bpcharicnlike", BPCHAR, ilike, false),
    immutable(2005, "bytealike", &[BYTEA, BYTEA], BOOL, bytes!(true)),
    immutable(2006, "byteanlike", &[BYTEA, BYTEA], BOOL, bytes!(false)),
    immutable(2007, "like", &[BYTEA, BYTEA], BOOL, bytes!(true)),
    immutable(2008, "notlike", &[BYTEA, BYTEA], BOOL, bytes!(false)),
    immutable(2009, "like_escape", &[BYTEA, BYTEA], BYTEA, like_escape_bytea),
];
