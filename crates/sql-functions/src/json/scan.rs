//! Taking documents apart without parsing them: the parts of a valid document are stretches of its text.
//!
//! REQUIRES text that `json` or `jsonb` accepted; anything else gives wrong parts, but nothing worse.

use base::Result;
use base::work::{self, Count};
use types::Datum;
use types::json::{Value, parse};
use types::room;

use super::super::text::search::Wanted;

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum DocumentKind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

fn blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r')
}

/// What a document is, by its first byte.
pub(in super::super) fn kind(text: &str) -> DocumentKind {
    match text.bytes().counted(1).find(|&b| !blank(b)) {
        Some(b'{') => DocumentKind::Object,
        Some(b'[') => DocumentKind::Array,
        Some(b'"') => DocumentKind::String,
        Some(b't' | b'f') => DocumentKind::Bool,
        Some(b'n') => DocumentKind::Null,
        _ => DocumentKind::Number,
    }
}

/// Where the value that begins at `at` ends.
fn end_of_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0usize;
    while let Some(&b) = bytes.get(at) {
        work::beat(1);
        match b {
            b'"' => {
                at = end_of_string(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            b if depth == 0 && blank(b) => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Where the string that begins at `at` ends, with its quote.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(&b) = bytes.get(at) {
        work::beat(1);
        match b {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn skip(bytes: &[u8], mut at: usize, what: impl Fn(u8) -> bool) -> usize {
    while bytes.get(at).is_some_and(|&b| what(b)) {
        work::beat(1);
        at += 1;
    }
    at
}

/// The text of a document without the blanks around it.
pub(in super::super) fn trimmed(text: &str) -> &str {
    let is_blank = |c: char| {
        work::beat(1);
        c.is_ascii() && blank(c as u8)
    };
    text.trim_matches(is_blank)
}

/// The elements of an array, each as its text.
///
/// # Errors
/// 54000, 53200 for too many.
pub(in super::super) fn elements(text: &str) -> Result<Vec<&str>> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let mut at = skip(bytes, 0, blank) + 1;
    loop {
        at = skip(bytes, at, |b| blank(b) || b == b',');
        if at >= bytes.len() || bytes[at] == b']' {
            return Ok(parts);
        }
        let end = end_of_value(bytes, at);
        work::beat(8);
        room::in_list(&mut parts, 1)?;
        parts.push(text.get(at..end).unwrap_or(""));
        at = end.max(at + 1);
    }
}

/// The fields of an object: key without quotes and escapes, text of the value.
pub(in super::super) fn fields(text: &str) -> Result<Vec<(String, &str)>> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let mut at = skip(bytes, 0, blank) + 1;
    loop {
        at = skip(bytes, at, |b| blank(b) || b == b',');
        if at >= bytes.len() || bytes[at] == b'}' {
            return Ok(parts);
        }
        let end = end_of_string(bytes, at);
        let key = unescape(text.get(at..end).unwrap_or(""))?;
        at = skip(bytes, end, |b| blank(b) || b == b':');
        let end = end_of_value(bytes, at);
        room::in_list(&mut parts, 1)?;
        parts.push((key, text.get(at..end).unwrap_or("")));
        at = end.max(at + 1);
    }
}

/// Demands that all strings of a `json` have a meaning: a text may have halves of characters in it, which only what looks into
/// strings complains of, as PostgreSQL does of all of them at once.
pub(in super::super) fn check_escapes(text: &str) -> Result<()> {
    let escapes = Wanted::new(b"\\u").find(text.as_bytes());
    escapes.map_or(Ok(()), |_| parse(text).map(drop))
}

/// What a string in quotes says.
fn unescape(text: &str) -> Result<String> {
    match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => Ok(inner.to_string()),
        _ => Ok(match parse(text)? {
            Value::String(s) => s,
            _ => text.to_string(),
        }),
    }
}

/// A value as `->>` answers it: strings without quotes, `null` as NULL.
pub(in super::super) fn to_text(text: &str) -> Result<Datum> {
    Ok(match kind(text) {
        DocumentKind::Null => Datum::Null,
        DocumentKind::String => Datum::from(unescape(trimmed(text))?),
        _ => Datum::from(text),
    })
}
