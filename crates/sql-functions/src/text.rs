//! Functions of text: length, parts, case, padding, searching, joining and splitting. Patterns, regular expressions, bytea
//! and digests have files of their own.
//!
//! Positions and lengths count characters. Text that is ASCII, as most is, is cut without counting.

pub(super) mod bytes;
pub(super) mod digest;
pub(super) mod join;
pub(super) mod like;
mod linear;
pub(super) mod pattern;
pub(super) mod regexp;
pub(super) mod search;
pub(super) mod unicode;

use std::borrow::Cow;

use base::work::{self, Count};
use base::{Error, Result, SqlState};
use rustc_hash::{FxHashMap, FxHashSet};
use types::Datum;
use types::oid::*;
use types::room::{self, Room as _};

use super::entry::{immutable, mismatched};
use super::{EvalContext, Function};
use search::Wanted;

#[cold]
pub(super) fn negative_length() -> Error {
    Error::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed")
}

#[cold]
fn too_long() -> Error {
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

/// Number of characters.
fn characters(text: &str) -> usize {
    let count = |part: &[u8]| {
        work::beat(work::bytes(part.len()));
        part.iter().filter(|&&b| b & 0xc0 != 0x80).count()
    };
    text.as_bytes().chunks(work::STRETCH).map(count).sum()
}

/// Byte offset of the character of a number from 0; the end if there are not so many.
fn byte_at(text: &str, character: usize) -> usize {
    if character >= text.len() {
        return text.len();
    }
    text.char_indices().counted(1).nth(character).map_or(text.len(), |(at, _)| at)
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

/// The lower case of a text, which is lent if it is that already.
fn lower(text: &str) -> Cow<'_, str> {
    if !text.is_ascii() {
        return Cow::Owned(text.chars().counted(4).map(like::lower).collect());
    }
    let changes = text.bytes().any(|b| b.is_ascii_uppercase());
    if changes { Cow::Owned(text.to_ascii_lowercase()) } else { Cow::Borrowed(text) }
}

/// The upper case of a text, which is lent if it is that already.
fn upper(text: &str) -> Cow<'_, str> {
    if !text.is_ascii() {
        return Cow::Owned(text.chars().counted(4).map(like::upper).collect());
    }
    let changes = text.bytes().any(|b| b.is_ascii_lowercase());
    if changes { Cow::Owned(text.to_ascii_uppercase()) } else { Cow::Borrowed(text) }
}

/// A function that makes a text of another one, which may be as it is.
macro_rules! change {
    ($oid:literal, $name:literal, $f:ident) => {
        immutable($oid, $name, &[TEXT], TEXT, |_, args| match args {
            [Datum::Text(text)] => Ok(match $f(text) {
                Cow::Borrowed(_) => args[0].clone(),
                Cow::Owned(changed) => changed.into(),
            }),
            _ => mismatched(args),
        })
        .on_text($f)
    };
}

fn initcap(text: &str) -> String {
    let mut inside = false;
    let each = |c: char| {
        let cased = if inside { like::lower(c) } else { like::upper(c) };
        inside = c.is_alphanumeric();
        cased
    };
    text.chars().counted(4).map(each).collect()
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
    room::for_value(before.len() + new.len() + after.len())?;
    let mut whole = String::with_capacity(before.len() + new.len() + after.len());
    for part in [before, new, after] {
        work::append_text(&mut whole, part);
    }
    Ok(whole.into())
}

fn position(text: &str, wanted: &str) -> i32 {
    match Wanted::new(wanted.as_bytes()).find(text.as_bytes()) {
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

/// Asks for room for a text of so many bytes.
fn asked(bytes: Option<usize>) -> Result<usize> {
    let bytes = bytes.filter(|&bytes| bytes <= room::VALUE_MAX).ok_or_else(too_long)?;
    room::for_value(bytes)?;
    Ok(bytes)
}

/// The text with `fill` again and again on one side, so that it has `length` characters, or cut to them.
fn padded(text: &str, length: i32, fill: &str, left: bool) -> Result<String> {
    let length = length.max(0) as usize;
    let has = characters(text);
    if has >= length || fill.is_empty() {
        return Ok(text[..byte_at(text, length)].to_string());
    }
    let added = length - has;
    let (whole, rest) = (added / characters(fill), added % characters(fill));
    let rest = &fill[..byte_at(fill, rest)];
    let bytes = fill.len().checked_mul(whole).and_then(|bytes| bytes.checked_add(rest.len() + text.len()));
    let mut out = String::with_capacity(asked(bytes)?);
    if !left {
        out.push_str(text);
    }
    out.extend(std::iter::repeat_n(fill, whole).counted(work::bytes(fill.len()) + 1));
    out.push_str(rest);
    if left {
        out.push_str(text);
    }
    Ok(out)
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
    Ok(padded(text, length, fill, true)?.into())
}

fn rpad(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let Some((text, length, fill)) = pad_arguments(args) else { return mismatched(args) };
    Ok(padded(text, length, fill, false)?.into())
}

fn repeat(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Int4(n)] = args else { return mismatched(args) };
    let n = (*n).max(0) as usize;
    asked(text.len().checked_mul(n))?;
    let mut all = String::with_capacity(text.len() * n);
    // Short texts are put together before they are counted.
    let times = (work::STRETCH / text.len().max(1)).clamp(1, n.max(1));
    let block = text.repeat(times);
    for _ in 0..n / times {
        work::step(work::bytes(block.len()))?;
        all.push_str(&block);
    }
    all.push_str(&block[..text.len() * (n % times)]);
    Ok(all.into())
}

fn replace(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [text @ Datum::Text(_), Datum::Text(from), Datum::Text(_)] if from.is_empty() => Ok(text.clone()),
        [Datum::Text(text), Datum::Text(from), Datum::Text(to)] => {
            if to.len() > from.len() && text.len().saturating_mul(to.len()) >= room::LARGE {
                let wanted = Wanted::new(from.as_bytes());
                let (mut count, mut at) = (0, 0);
                while let Some(found) = wanted.find(&text.as_bytes()[at..]) {
                    work::step(8 + work::bytes(found))?;
                    count += 1;
                    at += found + from.len();
                }
                asked((to.len() - from.len()).checked_mul(count).and_then(|more| more.checked_add(text.len())))?;
            }
            replaced(text, from, to)
        }
        _ => mismatched(args),
    }
}

fn replaced(text: &str, from: &str, to: &str) -> Result<Datum> {
    let mut out = String::new();
    let mut copied = 0;
    let wanted = Wanted::new(from.as_bytes());
    while let Some(at) = wanted.find(&text.as_bytes()[copied..]) {
        work::step(8 + work::bytes(at + to.len()))?;
        out.make_room(at + to.len())?;
        work::append_text(&mut out, &text[copied..copied + at]);
        work::append_text(&mut out, to);
        copied += at + from.len();
    }
    out.make_room(text.len() - copied)?;
    work::append_text(&mut out, &text[copied..]);
    Ok(out.into())
}

fn translate(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(from), Datum::Text(to)] = args else { return mismatched(args) };
    let to: Vec<char> = to.chars().counted(4).collect();
    let mut changes: FxHashMap<char, Option<char>> = FxHashMap::default();
    for (at, c) in from.chars().counted(8).enumerate() {
        changes.entry(c).or_insert_with(|| to.get(at).copied());
    }
    let map = |c: char| changes.get(&c).copied().unwrap_or(Some(c));
    let mut out = String::with_capacity(text.len());
    for c in text.chars().counted(8).filter_map(map) {
        out.make_room(c.len_utf8())?;
        out.push(c);
    }
    Ok(out.into())
}

fn reversed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    out.extend(text.chars().rev().counted(2));
    out
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
        Wanted::new(delimiter.as_bytes()).split(text).counted(8).nth(number - 1)
    } else {
        let wanted = Wanted::new(delimiter.as_bytes());
        let fields = wanted.split(text).counted(8).count();
        fields.checked_sub(number).and_then(|at| wanted.split(text).counted(8).nth(at))
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

/// Characters of a set beyond which they are looked up by hash.
const FEW: usize = 64;

fn among(set: &str) -> impl Fn(char) -> bool {
    let many = (set.len() > FEW).then(|| set.chars().counted(4).collect::<FxHashSet<char>>());
    move |c| {
        work::beat(8);
        many.as_ref().map_or_else(|| set.contains(c), |many| many.contains(&c))
    }
}

fn textcat(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(a), Datum::Text(b)] => {
            room::for_value(a.len() + b.len())?;
            let mut both = String::with_capacity(a.len() + b.len());
            for part in [a, b] {
                work::append_text(&mut both, part);
            }
            Ok(both.into())
        }
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
    immutable(458, "text_larger", &[TEXT, TEXT], TEXT, text_larger).leakproof(),
    immutable(459, "text_smaller", &[TEXT, TEXT], TEXT, text_smaller).leakproof(),
    immutable(849, "position", &[TEXT, TEXT], INT4, two!(|a, b| position(a, b))),
    immutable(868, "strpos", &[TEXT, TEXT], INT4, two!(|a, b| position(a, b))),
    change!(870, "lower", lower),
    change!(871, "upper", upper),
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
    immutable(1282, "quote_ident", &[TEXT], TEXT, one!(|a| sql_parse::names::quote_name(a))),
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
    immutable(3062, "reverse", &[TEXT], TEXT, one!(|a| reversed(a))),
    immutable(3696, "starts_with", &[TEXT, TEXT], BOOL, two!(|a, b| a.starts_with(&**b))).leakproof(),
];
