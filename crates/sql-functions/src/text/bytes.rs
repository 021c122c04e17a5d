//! Functions of bytea, and its encodings as text.

use base::work::{self, Count};
use base::{Error, Result, SqlState};
use types::Datum;
use types::encoding::{Conversion, Encoding, utf8_text};
use types::oid::*;
use types::room;

use super::super::entry::{immutable, mismatched, stable};
use super::super::{EvalContext, Function};
use super::digest::hex;
use super::negative_length;
use super::search::Wanted;

/// A function of bytes.
macro_rules! one {
    (|$a:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Bytea($a)] => Ok(Datum::from($value)),
            _ => mismatched(args),
        }
    };
}

/// A function of two strings of bytes.
macro_rules! two {
    (|$a:ident, $b:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Bytea($a), Datum::Bytea($b)] => Ok(Datum::from($value)),
            _ => mismatched(args),
        }
    };
}

fn invalid_parameter(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The bytes from `start` (counted from 1, may be less) that are before `start + length`.
fn part(bytes: &[u8], start: i32, length: Option<i32>) -> Result<&[u8]> {
    let place = |at: i64| at.clamp(0, bytes.len() as i64) as usize;
    let from = i64::from(start) - 1;
    let to = match length {
        None => bytes.len() as i64,
        Some(length) if length < 0 => return Err(negative_length()),
        Some(length) => from + i64::from(length),
    };
    Ok(bytes.get(place(from)..place(to)).unwrap_or(&[]))
}

fn substring(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Bytea(bytes), Datum::Int4(start)] => Ok(part(bytes, *start, None)?.into()),
        [Datum::Bytea(bytes), Datum::Int4(start), Datum::Int4(length)] => {
            Ok(part(bytes, *start, Some(*length))?.into())
        }
        _ => mismatched(args),
    }
}

fn overlay(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (bytes, new, from, count) = match args {
        [Datum::Bytea(bytes), Datum::Bytea(new), Datum::Int4(from)] => (bytes, new, *from, new.len() as i32),
        [Datum::Bytea(bytes), Datum::Bytea(new), Datum::Int4(from), Datum::Int4(count)] => (bytes, new, *from, *count),
        _ => return mismatched(args),
    };
    if from <= 0 {
        return Err(negative_length());
    }
    let beyond = || Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
    let behind = from.checked_add(count).ok_or_else(beyond)?;
    let parts = [part(bytes, 1, Some(from - 1))?, new, part(bytes, behind, None)?];
    room::for_value(parts.iter().map(|part| part.len()).sum())?;
    let whole = joined(&parts);
    Ok(Datum::from(whole))
}

/// The parts one behind the other.
fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| work::append(&mut whole, part));
    whole
}

fn position(bytes: &[u8], wanted: &[u8]) -> i32 {
    Wanted::new(wanted).find(bytes).map_or(0, |at| at as i32 + 1)
}

fn trim<'b>(bytes: &'b [u8], set: &[u8], left: bool, right: bool) -> &'b [u8] {
    let mut is_in = [false; 256];
    set.iter().counted(1).for_each(|b| is_in[usize::from(*b)] = true);
    let keep = |b: &u8| {
        work::beat(1);
        !is_in[usize::from(*b)]
    };
    let from = if left { bytes.iter().position(keep).unwrap_or(bytes.len()) } else { 0 };
    let to = if right { bytes.iter().rposition(keep).map_or(from, |at| at + 1) } else { bytes.len() };
    &bytes[from..to.max(from)]
}

fn concat(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Bytea(a), Datum::Bytea(b)] => {
            room::for_value(a.len() + b.len())?;
            Ok(Datum::from(joined(&[a, b])))
        }
        _ => mismatched(args),
    }
}

/// An index that must be within so many bytes or bits.
fn index(n: i64, length: usize) -> Result<usize> {
    match usize::try_from(n) {
        Ok(at) if at < length => Ok(at),
        _ => {
            let last = length as i64 - 1;
            let message = format!("index {n} out of valid range, 0..{last}");
            Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message))
        }
    }
}

fn get_byte(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Bytea(bytes), Datum::Int4(n)] => Ok(Datum::Int4(bytes[index(i64::from(*n), bytes.len())?].into())),
        _ => mismatched(args),
    }
}

fn set_byte(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(bytes), Datum::Int4(n), Datum::Int4(value)] = args else { return mismatched(args) };
    let at = index(i64::from(*n), bytes.len())?;
    let mut bytes = joined(&[bytes]);
    bytes[at] = *value as u8;
    Ok(Datum::from(bytes))
}

fn get_bit(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(bytes), Datum::Int8(n)] = args else { return mismatched(args) };
    let at = index(*n, bytes.len() * 8)?;
    Ok(Datum::Int4((bytes[at / 8] >> (at % 8) & 1).into()))
}

fn set_bit(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(bytes), Datum::Int8(n), Datum::Int4(value)] = args else { return mismatched(args) };
    let at = index(*n, bytes.len() * 8)?;
    if *value != 0 && *value != 1 {
        return Err(invalid_parameter("new bit must be 0 or 1"));
    }
    let mut bytes = joined(&[bytes]);
    let bit = 1 << (at % 8);
    bytes[at / 8] = bytes[at / 8] & !bit | if *value == 1 { bit } else { 0 };
    Ok(Datum::from(bytes))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 in lines of 76 characters (RFC 2045).
fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 8);
    for (number, group) in bytes.chunks(3).counted(4).enumerate() {
        if number > 0 && number % 19 == 0 {
            out.push('\n');
        }
        let bits = group.iter().fold(0u32, |n, &b| n << 8 | u32::from(b)) << (8 * (3 - group.len()));
        for at in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= group.len() { digit as char } else { '=' });
        }
    }
    out
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut digits, mut padding) = (0u32, 0, 0);
    for c in text.chars().counted(8) {
        let digit = match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '=' => {
                if padding == 0 && digits < 2 {
                    let message = "unexpected \"=\" while decoding base64 sequence";
                    return Err(invalid_parameter(message));
                }
                padding += 1;
                0
            }
            c => match u8::try_from(c).ok().and_then(|b| BASE64.iter().position(|&d| d == b)) {
                Some(digit) if padding == 0 => digit as u32,
                _ => {
                    return Err(invalid_parameter(format!(
                        "invalid symbol \"{c}\" found while decoding base64 sequence"
                    )));
                }
            },
        };
        bits = bits << 6 | digit;
        digits += 1;
        if digits == 4 {
            let group = bits.to_be_bytes();
            out.extend_from_slice(&group[1..4 - padding.min(2)]);
            (bits, digits, padding) = (0, 0, 0);
        }
    }
    if digits != 0 {
        let error = invalid_parameter("invalid base64 end sequence");
        return Err(error.hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for c in text.chars().counted(2).filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r')) {
        let digit =
            c.to_digit(16).ok_or_else(|| invalid_parameter(format!("invalid hexadecimal digit: \"{c}\"")))? as u8;
        match high.take() {
            None => high = Some(digit),
            Some(high) => out.push(high << 4 | digit),
        }
    }
    if high.is_some() { Err(invalid_parameter("invalid hexadecimal data: odd number of digits")) } else { Ok(out) }
}

/// Zero bytes and those beyond ASCII in octal, backslashes twice.
fn to_escape(bytes: &[u8]) -> Result<String> {
    let length = |b: &u8| match b {
        0 | 0x80.. => 4,
        b'\\' => 2,
        _ => 1,
    };
    let length = bytes.iter().counted(4).map(length).sum();
    room::for_value(length)?;
    let mut out = String::with_capacity(length);
    for &b in bytes.iter().counted(8) {
        match b {
            0 | 0x80.. => out.push_str(&format!("\\{b:03o}")),
            b'\\' => out.push_str("\\\\"),
            b => out.push(b as char),
        }
    }
    Ok(out)
}

fn from_escape(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        work::step(1)?;
        match *rest {
            [] => return Ok(out),
            [b'\\', b'\\', ..] => {
                out.push(b'\\');
                rest = &rest[2..];
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = &rest[4..];
            }
            [b'\\', ..] => {
                return Err(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea"));
            }
            [b, ..] => {
                out.push(b);
                rest = &rest[1..];
            }
        }
    }
}

fn unknown_encoding(name: &str) -> Error {
    invalid_parameter(format!("unrecognized encoding: \"{name}\""))
}

fn encode(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(bytes), Datum::Text(encoding)] = args else { return mismatched(args) };
    match encoding.to_ascii_lowercase().as_str() {
        "hex" => {
            room::for_values(bytes.len(), 2)?;
            Ok(hex(bytes).into())
        }
        "base64" => {
            // Four digits for three bytes, and line feeds.
            room::for_value(bytes.len().div_ceil(3) * 4 + bytes.len() / 57)?;
            Ok(to_base64(bytes).into())
        }
        "escape" => Ok(to_escape(bytes)?.into()),
        _ => Err(unknown_encoding(encoding)),
    }
}

fn decode(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(encoding)] = args else { return mismatched(args) };
    let bytes = match encoding.to_ascii_lowercase().as_str() {
        "hex" => from_hex(text)?,
        "base64" => from_base64(text)?,
        "escape" => from_escape(text)?,
        _ => return Err(unknown_encoding(encoding)),
    };
    Ok(Datum::from(bytes))
}

/// The encoding of this name; `what` it is.
fn encoding_of(name: &str, what: &str) -> Result<Encoding> {
    Encoding::from_name(name).ok_or_else(|| invalid_parameter(format!("invalid {what} encoding name \"{name}\"")))
}

fn no_conversion(from: Encoding, to: Encoding) -> Error {
    let message =
        format!("default conversion function for encoding \"{}\" to \"{}\" does not exist", from.name(), to.name());
    Error::new(SqlState::UNDEFINED_FUNCTION, message)
}

/// The conversion between UTF-8 and an encoding; `None` if bytes stay as they are.
fn conversion_of(encoding: Encoding, from: Encoding, to: Encoding) -> Result<Option<&'static Conversion>> {
    match encoding.conversion() {
        None if !encoding.is_plain() && encoding.name() == "MULE_INTERNAL" => Err(no_conversion(from, to)),
        None if !encoding.is_plain() => {
            Err(Error::unsupported(format!("conversion of encoding \"{}\" is not supported", encoding.name())))
        }
        conversion => Ok(conversion),
    }
}

fn convert_from(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(bytes), Datum::Text(name)] = args else { return mismatched(args) };
    let from = encoding_of(name, "source")?;
    match conversion_of(from, from, Encoding::UTF8)? {
        None => Ok(utf8_text(bytes)?.into()),
        Some(conversion) => Ok(conversion.decoded(bytes)?.into()),
    }
}

fn convert_to(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(name)] = args else { return mismatched(args) };
    let to = encoding_of(name, "destination")?;
    match conversion_of(to, Encoding::UTF8, to)? {
        None => Ok(text.as_bytes().into()),
        Some(conversion) => Ok(Datum::from(conversion.encoded(text)?)),
    }
}

/// As PostgreSQL, by a conversion that it has: to or from UTF-8, or none at all.
fn convert(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(bytes), Datum::Text(from), Datum::Text(to)] = args else { return mismatched(args) };
    let (from, to) = (encoding_of(from, "source")?, encoding_of(to, "destination")?);
    let plain = from == to || from == Encoding::SQL_ASCII || to == Encoding::SQL_ASCII;
    if plain {
        let checked = if from == Encoding::SQL_ASCII { to } else { from };
        match conversion_of(checked, from, to)? {
            None if checked == Encoding::UTF8 => drop(utf8_text(bytes)?),
            _ => {}
        }
        return Ok(Datum::Bytea(bytes.clone()));
    }
    match (from, to) {
        (Encoding::UTF8, to) => {
            let text = utf8_text(bytes)?;
            let conversion = conversion_of(to, from, to)?.ok_or_else(|| no_conversion(from, to))?;
            Ok(Datum::from(conversion.encoded(text)?))
        }
        (from, Encoding::UTF8) => {
            let conversion = conversion_of(from, from, to)?.ok_or_else(|| no_conversion(from, to))?;
            Ok(Datum::from(conversion.decoded(bytes)?.into_bytes()))
        }
        _ if is_related(from, to) => {
            let (decoder, encoder) = (conversion_of(from, from, to)?, conversion_of(to, from, to)?);
            let (Some(decoder), Some(encoder)) = (decoder, encoder) else { return Err(no_conversion(from, to)) };
            let text = decoder.decoded(bytes)?;
            let bytes = encoder.encoded(&text).map_err(|_| {
                Error::unsupported(format!(
                    "conversion from \"{}\" to \"{}\" of a character that only one of them has is not supported",
                    from.name(),
                    to.name()
                ))
            })?;
            Ok(Datum::from(bytes))
        }
        _ => Err(no_conversion(from, to)),
    }
}

/// Whether PostgreSQL converts between two encodings directly.
fn is_related(from: Encoding, to: Encoding) -> bool {
    const CYRILLIC: [&str; 4] = ["KOI8R", "WIN1251", "WIN866", "ISO_8859_5"];
    let both = |names: &[&str]| names.contains(&from.name()) && names.contains(&to.name());
    both(&CYRILLIC) || both(&["LATIN2", "WIN1250"]) || both(&["EUC_JP", "SJIS"])
}

/// `length(bytea, name)`: characters in an encoding.
fn length_in(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Bytea(bytes), Datum::Text(name)] = args else { return mismatched(args) };
    let Some(encoding) = Encoding::from_name(name) else {
        return Err(invalid_parameter(format!("invalid encoding name \"{name}\"")));
    };
    let length = match conversion_of(encoding, encoding, Encoding::UTF8)? {
        None if encoding == Encoding::SQL_ASCII => bytes.len(),
        None => utf8_text(bytes)?.chars().count(),
        Some(conversion) => conversion.decoded(bytes)?.chars().count(),
    };
    Ok(Datum::Int4(length as i32))
}

/// The table, by OID.
#[rustfmt::skip]
pub(crate) static FUNCTIONS: &[Function] = &[
    immutable(720, "octet_length", &[BYTEA], INT4, one!(|a| a.len() as i32)),
    immutable(721, "get_byte", &[BYTEA, INT4], INT4, get_byte),
    immutable(722, "set_byte", &[BYTEA, INT4, INT4], BYTEA, set_byte),
    immutable(723, "get_bit", &[BYTEA, INT8], INT4, get_bit),
    immutable(724, "set_bit", &[BYTEA, INT8, INT4], BYTEA, set_bit),
    immutable(749, "overlay", &[BYTEA, BYTEA, INT4, INT4], BYTEA, overlay),
    immutable(752, "overlay", &[BYTEA, BYTEA, INT4], BYTEA, overlay),
    stable(1713, "length", &[BYTEA, NAME], INT4, length_in),
    stable(1714, "convert_from", &[BYTEA, NAME], TEXT, convert_from),
    stable(1717, "convert_to", &[TEXT, NAME], BYTEA, convert_to),
    immutable(1810, "bit_length", &[BYTEA], INT4, one!(|a| a.len() as i32 * 8)),
    stable(1813, "convert", &[BYTEA, NAME, NAME], BYTEA, convert),
    immutable(1946, "encode", &[BYTEA, TEXT], TEXT, encode),
    immutable(1947, "decode", &[TEXT, TEXT], BYTEA, decode),
    immutable(2010, "length", &[BYTEA], INT4, one!(|a| a.len() as i32)),
    immutable(2011, "byteacat", &[BYTEA, BYTEA], BYTEA, concat),
    immutable(2012, "substring", &[BYTEA, INT4, INT4], BYTEA, substring),
    immutable(2013, "substring", &[BYTEA, INT4], BYTEA, substring),
    immutable(2014, "position", &[BYTEA, BYTEA], INT4, two!(|a, b| position(a, b))),
    immutable(2015, "btrim", &[BYTEA, BYTEA], BYTEA, two!(|a, b| trim(a, b, true, true))),
    immutable(2085, "substr", &[BYTEA, INT4, INT4], BYTEA, substring),
    immutable(2086, "substr", &[BYTEA, INT4], BYTEA, substring),
    immutable(6163, "bit_count", &[BYTEA], INT8, one!(|a| a.iter().map(|b| i64::from(b.count_ones())).sum::<i64>())),
    immutable(6195, "ltrim", &[BYTEA, BYTEA], BYTEA, two!(|a, b| trim(a, b, true, false))),
    immutable(6196, "rtrim", &[BYTEA, BYTEA], BYTEA, two!(|a, b| trim(a, b, false, true))),
];
