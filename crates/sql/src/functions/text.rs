//! Functions of text: length, parts, case, padding, searching, joining and splitting. Patterns, regular expressions, bytea
//! and digests have files of their own.
//!
//! Positions and lengths count characters. Text that is ASCII, as most is, is cut without counting.

mod are;
pub(super) mod bytes;
pub(super) mod digest;
pub(super) mod join;
pub(super) mod like;
pub(super) mod names;
pub(super) mod pattern;
pub(super) mod regexp;
pub(super) mod unicode;

use base::{Error, Result, SqlState};
use types::Datum;
use types::oid::*;

use super::entry::{immutable, mismatched};
use super::{EvalContext, Function};

/// Bytes of the longest text that is built.
const LONGEST: usize = 0x3fff_ffff;

#[cold]
fn negative_length() -> Error {
    Error::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed")
}

#[cold]
fn too_long() -> Error {
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

/// Number of characters.
fn characters(text: &str) -> usize {
    text.as_bytes().iter().filter(|&&b| b & 0xc0 != 0x80).count()
}

/// Byte offset of the character of a number from 0; the end if there are not so many.
fn byte_at(text: &str, character: usize) -> usize {
    if character >= text.len() {
        return text.len();
    }
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

/// A function of one text.
macro_rules! one {
    (|$a:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Text($a)] => Ok(Datum::from($value)),
            _ => mismatched(args),
        }
    };
}

/// A function of two texts.
macro_rules! two {
    (|$a:ident, $b:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Text($a), Datum::Text($b)] => Ok(Datum::from($value)),
            _ => mismatched(args),
        }
    };
}

/// A function of a text and a number.
macro_rules! counted {
    (|$a:ident, $n:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Text($a), Datum::Int4($n)] => {
                let $n = *$n;
                Ok(Datum::from($value))
            }
            _ => mismatched(args),
        }
    };
}

fn lower(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().map(like::lower).collect() }
}

fn upper(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_uppercase() } else { text.chars().map(like::upper).collect() }
}

fn initcap(text: &str) -> String {
    let mut inside = false;
    let each = |c: char| {
        let cased = if inside { like::lower(c) } else { like::upper(c) };
        inside = c.is_alphanumeric();
        cased
    };
    text.chars().map(each).collect()
}

/// The characters from `start` (counted from 1, may be less) that are before `start + length`.
fn part(text: &str, start: i32, length: Option<i32>) -> Result<&str> {
    let from = (i64::from(start) - 1).max(0) as usize;
    let to = match length {
        None => usize::MAX,
        Some(length) if length < 0 => return Err(negative_length()),
        Some(length) => (i64::from(start) - 1 + i64::from(length)).max(0) as usize,
    };
    if to <= from {
        return Ok("");
    }
    if text.is_ascii() {
        return Ok(&text[from.min(text.len())..to.min(text.len())]);
    }
    let rest = &text[byte_at(text, from)..];
    Ok(&rest[..byte_at(rest, to - from)])
}

fn substring(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(text), Datum::Int4(start)] => Ok(part(text, *start, None)?.into()),
        [Datum::Text(text), Datum::Int4(start), Datum::Int4(length)] => Ok(part(text, *start, Some(*length))?.into()),
        _ => mismatched(args),
    }
}

/// `overlay(text, new, from [, count])`
fn overlay(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (text, new, from, count) = match args {
        [Datum::Text(text), Datum::Text(new), Datum::Int4(from)] => (text, new, *from, characters(new) as i32),
        [Datum::Text(text), Datum::Text(new), Datum::Int4(from), Datum::Int4(count)] => (text, new, *from, *count),
        _ => return mismatched(args),
    };
    if from <= 0 {
        return Err(negative_length());
    }
    let beyond = || Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
    let behind = from.checked_add(count).ok_or_else(beyond)?;
    let (before, after) = (part(text, 1, Some(from - 1))?, part(text, behind, None)?);
    Ok([before, new, after].concat().into())
}

fn position(text: &str, wanted: &str) -> i32 {
    match memchr::memmem::find(text.as_bytes(), wanted.as_bytes()) {
        Some(at) => characters(&text[..at]) as i32 + 1,
        None => 0,
    }
}

fn left(text: &str, n: i32) -> &str {
    if n >= 0 {
        return &text[..byte_at(text, n as usize)];
    }
    let keep = characters(text).saturating_sub(n.unsigned_abs() as usize);
    &text[..byte_at(text, keep)]
}

fn right(text: &str, n: i32) -> &str {
    if n == i32::MIN {
        return text; // It has no opposite; PostgreSQL's stays negative, and cuts nothing.
    }
    if n < 0 {
        return &text[byte_at(text, n.unsigned_abs() as usize)..];
    }
    &text[byte_at(text, characters(text).saturating_sub(n as usize))..]
}

/// What `lpad` and `rpad` add, and what they keep of the text.
fn padding<'t>(text: &'t str, length: i32, fill: &str) -> Result<(&'t str, String)> {
    let length = length.max(0) as usize;
    if length > LONGEST {
        return Err(too_long());
    }
    let has = characters(text);
    if has >= length || fill.is_empty() {
        return Ok((&text[..byte_at(text, length)], String::new()));
    }
    Ok((text, fill.chars().cycle().take(length - has).collect()))
}

fn pad_arguments(args: &[Datum]) -> Option<(&str, i32, &str)> {
    match args {
        [Datum::Text(text), Datum::Int4(length)] => Some((text, *length, " ")),
        [Datum::Text(text), Datum::Int4(length), Datum::Text(fill)] => Some((text, *length, fill)),
        _ => None,
    }
}

fn lpad(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let Some((text, length, fill)) = pad_arguments(args) else { return mismatched(args) };
    let (kept, mut added) = padding(text, length, fill)?;
    added.push_str(kept);
    Ok(added.into())
}

fn rpad(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let Some((text, length, fill)) = pad_arguments(args) else { return mismatched(args) };
    let (kept, added) = padding(text, length, fill)?;
    Ok([kept, &added].concat().into())
}

fn repeat(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Int4(n)] = args else { return mismatched(args) };
    let n = (*n).max(0) as usize;
    if text.len().checked_mul(n).is_none_or(|len| len > LONGEST) {
        return Err(too_long());
    }
    Ok(text.repeat(n).into())
}

fn replace(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [text @ Datum::Text(_), Datum::Text(from), Datum::Text(_)] if from.is_empty() => Ok(text.clone()),
        [Datum::Text(text), Datum::Text(from), Datum::Text(to)] => Ok(text.replace(&**from, to).into()),
        _ => mismatched(args),
    }
}

fn translate(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(from), Datum::Text(to)] = args else { return mismatched(args) };
    let to: Vec<char> = to.chars().collect();
    let map = |c: char| match from.chars().position(|f| f == c) {
        None => Some(c),
        Some(at) => to.get(at).copied(),
    };
    Ok(text.chars().filter_map(map).collect::<String>().into())
}

fn ascii(text: &str) -> i32 {
    text.chars().next().map_or(0, |c| c as i32)
}

fn chr(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Int4(n)] = args else { return mismatched(args) };
    let refused = |message: String| Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    match *n {
        0 => refused("null character not permitted".to_string()),
        n if n < 0 => Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, "character number must be positive")),
        n if n > 0x10_ffff => refused(format!("requested character too large for encoding: {n}")),
        n => match char::from_u32(n as u32) {
            Some(c) => Ok(Datum::text(c.encode_utf8(&mut [0; 4]))),
            None => refused(format!("requested character not valid for encoding: {n}")),
        },
    }
}

fn split_part(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(delimiter), Datum::Int4(field)] = args else { return mismatched(args) };
    let number = field.unsigned_abs() as usize;
    if number == 0 {
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, "field position must not be zero"));
    }
    let found = if text.is_empty() {
        None
    } else if delimiter.is_empty() {
        (number == 1).then_some(&**text)
    } else if *field > 0 {
        text.split(&**delimiter).nth(number - 1)
    } else {
        let fields = text.split(&**delimiter).count();
        fields.checked_sub(number).and_then(|at| text.split(&**delimiter).nth(at))
    };
    Ok(found.unwrap_or_default().into())
}

fn to_hex(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Int4(n)] => Ok(format!("{n:x}").into()),
        [Datum::Int8(n)] => Ok(format!("{n:x}").into()),
        _ => mismatched(args),
    }
}

fn among(set: &str) -> impl Fn(char) -> bool {
    move |c| set.contains(c)
}

fn textcat(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(a), Datum::Text(b)] => Ok([&**a, &**b].concat().into()),
        _ => mismatched(args),
    }
}

fn text_larger(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(a), Datum::Text(b)] => Ok(args[usize::from(a.as_bytes() <= b.as_bytes())].clone()),
        _ => mismatched(args),
    }
}

fn text_smaller(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(a), Datum::Text(b)] => Ok(args[usize::from(a.as_bytes() >= b.as_bytes())].clone()),
        _ => mismatched(args),
    }
}

/// Characters of a `char(n)`, without its padding.
fn unpadded(text: &str) -> i32 {
    characters(text.trim_end_matches(' ')) as i32
}

/// The table, by OID.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(458, "text_larger", &[TEXT, TEXT], TEXT, text_larger),
    immutable(459, "text_smaller", &[TEXT, TEXT], TEXT, text_smaller),
    immutable(849, "position", &[TEXT, TEXT], INT4, two!(|a, b| position(a, b))),
    immutable(868, "strpos", &[TEXT, TEXT], INT4, two!(|a, b| position(a, b))),
    immutable(870, "lower", &[TEXT], TEXT, one!(|a| lower(a))),
    immutable(871, "upper", &[TEXT], TEXT, one!(|a| upper(a))),
    immutable(872, "initcap", &[TEXT], TEXT, one!(|a| initcap(a))),
    immutable(873, "lpad", &[TEXT, INT4, TEXT], TEXT, lpad),
    immutable(874, "rpad", &[TEXT, INT4, TEXT], TEXT, rpad),
    immutable(875, "ltrim", &[TEXT, TEXT], TEXT, two!(|a, b| a.trim_start_matches(among(b)))),
    immutable(876, "rtrim", &[TEXT, TEXT], TEXT, two!(|a, b| a.trim_end_matches(among(b)))),
    immutable(877, "substr", &[TEXT, INT4, INT4], TEXT, substring),
    immutable(878, "translate", &[TEXT, TEXT, TEXT], TEXT, translate),
    immutable(879, "lpad", &[TEXT, INT4], TEXT, lpad),
    immutable(880, "rpad", &[TEXT, INT4], TEXT, rpad),
    immutable(881, "ltrim", &[TEXT], TEXT, one!(|a| a.trim_start_matches(' '))),
    immutable(882, "rtrim", &[TEXT], TEXT, one!(|a| a.trim_end_matches(' '))),
    immutable(883, "substr", &[TEXT, INT4], TEXT, substring),
    immutable(884, "btrim", &[TEXT, TEXT], TEXT, two!(|a, b| a.trim_start_matches(among(b)).trim_end_matches(among(b)))),
    immutable(885, "btrim", &[TEXT], TEXT, one!(|a| a.trim_matches(' '))),
    immutable(936, "substring", &[TEXT, INT4, INT4], TEXT, substring),
    immutable(937, "substring", &[TEXT, INT4], TEXT, substring),
    immutable(1257, "textlen", &[TEXT], INT4, one!(|a| characters(a) as i32)),
    immutable(1258, "textcat", &[TEXT, TEXT], TEXT, textcat),
    immutable(1282, "quote_ident", &[TEXT], TEXT, one!(|a| names::quote_identifier(a))),
    immutable(1317, "length", &[TEXT], INT4, one!(|a| characters(a) as i32)),
    immutable(1318, "length", &[BPCHAR], INT4, one!(|a| unpadded(a))),
    immutable(1367, "character_length", &[BPCHAR], INT4, one!(|a| unpadded(a))),
    immutable(1369, "character_length", &[TEXT], INT4, one!(|a| characters(a) as i32)),
    immutable(1372, "char_length", &[BPCHAR], INT4, one!(|a| unpadded(a))),
    immutable(1374, "octet_length", &[TEXT], INT4, one!(|a| a.len() as i32)),
    immutable(1375, "octet_length", &[BPCHAR], INT4, one!(|a| a.len() as i32)),
    immutable(1381, "char_length", &[TEXT], INT4, one!(|a| characters(a) as i32)),
    immutable(1404, "overlay", &[TEXT, TEXT, INT4, INT4], TEXT, overlay),
    immutable(1405, "overlay", &[TEXT, TEXT, INT4], TEXT, overlay),
    immutable(1620, "ascii", &[TEXT], INT4, one!(|a| ascii(a))),
    immutable(1621, "chr", &[INT4], TEXT, chr),
    immutable(1622, "repeat", &[TEXT, INT4], TEXT, repeat),
    immutable(1811, "bit_length", &[TEXT], INT4, one!(|a| a.len() as i32 * 8)),
    immutable(2087, "replace", &[TEXT, TEXT, TEXT], TEXT, replace),
    immutable(2088, "split_part", &[TEXT, TEXT, INT4], TEXT, split_part),
    immutable(2089, "to_hex", &[INT4], TEXT, to_hex),
    immutable(2090, "to_hex", &[INT8], TEXT, to_hex),
    immutable(3060, "left", &[TEXT, INT4], TEXT, counted!(|a, n| left(a, n))),
    immutable(3061, "right", &[TEXT, INT4], TEXT, counted!(|a, n| right(a, n))),
    immutable(3062, "reverse", &[TEXT], TEXT, one!(|a| a.chars().rev().collect::<String>())),
    immutable(3696, "starts_with", &[TEXT, TEXT], BOOL, two!(|a, b| a.starts_with(&**b))),
];
