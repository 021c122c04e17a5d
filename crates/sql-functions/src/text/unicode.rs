//! Escapes and normal forms of Unicode, and names as SQL writes them.

use base::work::{self, Count};
use base::{Error, Result, SqlState};
use types::oid::*;
use types::{Array, Datum};
use unicode_normalization::UnicodeNormalization;

use super::super::entry::{immutable, mismatched};
use super::super::{EvalContext, Function};

/// The table.
#[rustfmt::skip]
pub(in super::super) static FUNCTIONS: &[Function] = &[
    immutable(1268, "parse_ident", &[TEXT, BOOL], TEXT_ARRAY, parse_ident).or(&[Datum::Bool(true)]).named(&["str", "strict"]),
    immutable(6198, "unistr", &[TEXT], TEXT, unistr),
    immutable(4350, "normalize", &[TEXT, TEXT], TEXT, normalize),
    immutable(9550, "normalize", &[TEXT], TEXT, normalize),
    immutable(4351, "is_normalized", &[TEXT, TEXT], BOOL, is_normalized),
    immutable(9551, "is_normalized", &[TEXT], BOOL, is_normalized),
];

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Takes a dotted name apart.
fn parse_ident(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(name), Datum::Bool(strict)] = args else { return mismatched(args) };
    let bad = || invalid(format!("string is not a valid identifier: \"{name}\""));
    let mut parts = work::List::new();
    let mut rest = name.trim_start_matches(is_blank);
    let mut after_dot = false;
    loop {
        work::beat(32);
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted_end(quoted).ok_or_else(|| bad().detail("String has unclosed double quotes."))?;
            let part = undoubled(&quoted[..end]);
            if part.is_empty() {
                return Err(bad().detail("Quoted identifier must not be empty."));
            }
            parts.push(Datum::text(&part));
            rest = &quoted[end + 1..];
        } else if rest.starts_with(is_start) {
            let mut chars = rest.char_indices().counted(2);
            let end = chars.find(|(_, c)| !is_part(*c)).map_or(rest.len(), |(at, _)| at);
            parts.push(Datum::text(&rest[..end].to_ascii_lowercase()));
            rest = &rest[end..];
        } else {
            let error = bad();
            return Err(match rest.chars().next() {
                Some('.') => error.detail("No valid identifier before \".\"."),
                _ if after_dot => error.detail("No valid identifier after \".\"."),
                _ => error,
            });
        }
        rest = rest.trim_start_matches(is_blank);
        match rest.strip_prefix('.') {
            Some(more) => {
                after_dot = true;
                rest = more.trim_start_matches(is_blank);
            }
            None if rest.is_empty() || !strict => break,
            None => return Err(bad()),
        }
    }
    let dims = vec![(parts.len() as i32, 1)];
    Ok(Datum::Array(Array { element: TEXT, dims, values: parts.done() }.into()))
}

fn is_blank(c: char) -> bool {
    work::beat(1);
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn is_start(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic() || !c.is_ascii()
}

fn is_part(c: char) -> bool {
    is_start(c) || c.is_ascii_digit() || c == '$'
}

/// What stands between quotes, with one quote for two.
fn undoubled(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('"') {
        work::beat(8 + at);
        out.push_str(&rest[..=at]);
        rest = &rest[at + 2..];
    }
    out + rest
}

/// Where the quote is that ends a quoted name.
fn quoted_end(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let end = at + text[at..].find('"')?;
        work::beat(8 + end - at);
        if !text[end + 1..].starts_with('"') {
            return Some(end);
        }
        at = end + 2;
    }
}

/// Resolves `\XXXX`, `\+XXXXXX`, `\uXXXX`, `\UXXXXXXXX` and `\\\\`.
fn unistr(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text)] = args else { return mismatched(args) };
    let bad = || {
        Error::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape")
            .hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
    };
    let bad_pair = || Error::new(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair");
    let mut out = String::with_capacity(text.len());
    let mut high: Option<u32> = None;
    let mut rest: &str = text;
    while let Some(at) = rest.find('\\') {
        work::step(8 + work::bytes(at))?;
        let (plain, escape) = rest.split_at(at);
        if high.is_some() && !plain.is_empty() {
            return Err(bad_pair());
        }
        out.push_str(plain);
        let escape = &escape[1..];
        if let Some(after) = escape.strip_prefix('\\') {
            if high.is_some() {
                return Err(bad_pair());
            }
            out.push('\\');
            rest = after;
            continue;
        }
        let (skip, digits) = match escape.as_bytes().first() {
            Some(b'+') => (1, 6),
            Some(b'u') => (1, 4),
            Some(b'U') => (1, 8),
            _ => (0, 4),
        };
        let code = escape.get(skip..skip + digits).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = code.and_then(|d| u32::from_str_radix(d, 16).ok()).ok_or_else(bad)?;
        rest = &escape[skip + digits..];
        match (high.take(), code) {
            (None, 0xd800..=0xdbff) => high = Some(code),
            (Some(first), 0xdc00..=0xdfff) => {
                let code = 0x10000 + ((first & 0x3ff) << 10) + (code & 0x3ff);
                out.extend(char::from_u32(code));
            }
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(bad_pair()),
            (None, code) => match char::from_u32(code).filter(|c| *c != '\0') {
                Some(c) => out.push(c),
                None => {
                    return Err(invalid(format!("invalid Unicode code point: {code:04X}")));
                }
            },
        }
    }
    if high.is_some() {
        return Err(bad_pair());
    }
    out.push_str(rest);
    Ok(Datum::from(out))
}

fn in_form(text: &str, form: Option<&Datum>) -> Result<String> {
    let form = match form {
        Some(Datum::Text(form)) => form,
        _ => "NFC",
    };
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => text.chars().counted(16).nfc().collect(),
        "NFD" => text.chars().counted(16).nfd().collect(),
        "NFKC" => text.chars().counted(16).nfkc().collect(),
        "NFKD" => text.chars().counted(16).nfkd().collect(),
        _ => return Err(invalid(format!("invalid normalization form: {form}"))),
    })
}

fn normalize(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), form @ ..] = args else { return mismatched(args) };
    in_form(text, form.first()).map(Datum::from)
}

fn is_normalized(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), form @ ..] = args else { return mismatched(args) };
    Ok(Datum::Bool(in_form(text, form.first())? == **text))
}
