//! Text and binary forms of values: what clients send and see.
//!
//! Responsible for: dispatch by type, and the forms of the simple types; numbers are in [`crate::numeric`], dates and times
//! in [`crate::datetime`], arrays in the module `array`.
//! Invariant: `parse_text(write_text(v)) = v` and `read_binary(write_binary(v)) = v` for every value of every type, but for empty
//! vectors of the catalog, which PostgreSQL writes and refuses to read.

pub(crate) mod binary;
pub(crate) mod counted;
mod float;
pub(crate) mod long_number;

pub(crate) use binary::{Input, take};
pub use binary::{LEFT_OVER, read_binary};
pub use counted::{tid, tid_parts, xid8, xid8_number};
pub use float::{parse_float4, parse_float8, write_float4, write_float8};

use base::work::{self, Count};
use base::{Error, Oid, Result, SqlState};

use crate::datetime as dt;
use crate::jsonpath::JsonPath;
use crate::network::Shown;
use crate::numeric::Numeric;
use crate::room::{self, Room as _};
use crate::snapshot::Snapshot;
use crate::{ByteaOutput, Datum, DatumRef, Inet, InputContext, OutputSettings, array, bits, json, mac, oid, user};

/// What the binary form of an address of IPv4 begins with.
pub(crate) const AF_INET: u8 = 2;
/// As [`AF_INET`], of IPv6.
pub(crate) const AF_INET6: u8 = 3;
/// Digits of the longest number.
const NUMBER_MAX: usize = 150_000;

pub(crate) fn invalid_syntax(ty: &str, text: &str) -> Error {
    Error::new(SqlState::INVALID_TEXT_REPRESENTATION, about(&format!("invalid input syntax for type {ty}"), text))
}

/// What there is to say of a text, which may be long.
pub(crate) fn about(what: &str, text: &str) -> String {
    work::between(&format!("{what}: \""), text, "\"")
}

fn out_of_range(text: &str, ty: &str) -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value \"{text}\" is out of range for type {ty}"))
}

/// Parses PostgreSQL's text form of a type. The modifier is applied by [`crate::apply_typmod`].
///
/// # Errors
/// 22P02, 22003, 22007, 22008 with PostgreSQL's messages; 0A000 for types without an input form here.
pub fn parse_text(ty: Oid, typmod: i32, text: &str, cx: &InputContext<'_>) -> Result<Datum> {
    Ok(match ty {
        oid::BOOL => Datum::Bool(parse_bool(text)?),
        oid::INT2 => Datum::Int2(parse_int(text, "smallint")?),
        oid::INT4 => Datum::Int4(parse_int(text, "integer")?),
        oid::INT8 => Datum::Int8(parse_int(text, "bigint")?),
        oid::XID | oid::CID => Datum::Oid(counted::parse_xid(text)),
        oid::XID8 => counted::parse_xid8(text),
        oid::TID => counted::parse_tid(text)?,
        ty if oid::is_oid_like(ty) => Datum::Oid(parse_oid(text)?),
        oid::FLOAT4 => Datum::Float4(parse_float4(text)?),
        oid::FLOAT8 => Datum::Float8(parse_float8(text)?),
        oid::NUMERIC => Datum::Numeric(Numeric::parse(text)?),
        oid::BYTEA => {
            room::for_value(text.len())?;
            Datum::from(parse_bytea(text)?)
        }
        oid::UUID => Datum::Uuid(parse_uuid(text)?),
        oid::INET | oid::CIDR => Datum::Inet(Inet::parse(text, ty == oid::CIDR)?),
        oid::MACADDR => Datum::Mac(mac::parse(text)?),
        oid::MACADDR8 => Datum::Mac8(mac::parse8(text)?),
        oid::BIT | oid::VARBIT => Datum::Bits(bits::parse(text)?),
        oid::DATE => Datum::Date(dt::parse_date(text, cx)?),
        oid::TIME => Datum::Time(dt::parse_time(text, cx)?),
        oid::TIMETZ => dt::parse_timetz(text, cx).map(|(micros, west)| Datum::TimeTz(micros, west))?,
        oid::TIMESTAMP => Datum::Timestamp(dt::parse_timestamp(text, cx)?),
        oid::TIMESTAMPTZ => Datum::TimestampTz(dt::parse_timestamptz(text, cx)?),
        oid::INTERVAL => Datum::Interval(dt::parse_interval(text, typmod, cx)?),
        oid::NAME => Datum::Text(clip(text, 63).into()),
        oid::CHAR => char_text(parse_char(text)),
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::UNKNOWN | oid::CSTRING => {
            room::ask(text.len())?;
            Datum::from(text)
        }
        oid::JSON => {
            room::ask(text.len())?;
            json::validate(text)?;
            Datum::from(text)
        }
        oid::JSONB => Datum::from(json::normal_form(text)?),
        oid::JSONPATH => Datum::from(JsonPath::parse(text)?.to_string()),
        oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT => Datum::from(Snapshot::parse(text)?.text()?),
        oid::INT2VECTOR | oid::OIDVECTOR => array::parse_vector(ty, text, cx)?,
        ty if oid::element_of(ty).is_some() => array::parse(ty, typmod, text, cx)?,
        ty if user::is_enum(ty) => user::parse_label(ty, text)?,
        ty if user::is_domain(ty) => {
            let (base, typmod) = user::base_type(ty, typmod);
            crate::apply_typmod(parse_text(base, typmod, text, cx)?, base, typmod, false)?
        }
        ty => {
            let name = oid::format_type(ty, -1);
            return Err(Error::unsupported(match oid::type_info(ty).map(|t| t.category) {
                _ if ty == oid::RECORD => "input of anonymous composite types is not implemented".to_string(),
                Some('P') => format!("cannot accept a value of type {name}"),
                _ => format!("input of a value of type {name} is not supported"),
            }));
        }
    })
}

/// Appends the text form of a value of type `ty`. REQUIRES that it is not NULL (nothing is written for NULL).
///
/// # Errors
/// XX000 if the value is not of the type.
pub fn write_text(value: DatumRef<'_>, ty: Oid, settings: &OutputSettings, out: &mut Vec<u8>) -> Result<()> {
    match value {
        DatumRef::Null => {}
        DatumRef::Bool(v) => out.push(if v { b't' } else { b'f' }),
        DatumRef::Int2(v) => write_int(v as i64, out),
        DatumRef::Int4(v) => write_int(v as i64, out),
        DatumRef::Int8(v) if ty == oid::TID => counted::write_tid(v, out),
        DatumRef::Int8(v) if ty == oid::XID8 => counted::write_xid8(v, out),
        DatumRef::Int8(v) => write_int(v, out),
        DatumRef::Oid(v) if ty == oid::REGTYPE && oid::type_info(Oid(v)).is_some() => {
            out.extend_from_slice(oid::format_type(Oid(v), -1).as_bytes());
        }
        DatumRef::Oid(0) if ty == oid::REGTYPE => out.push(b'-'),
        DatumRef::Oid(v) => write_int(v as i64, out),
        DatumRef::Float4(v) => write_float4(v, settings.extra_float_digits, out),
        DatumRef::Float8(v) => write_float8(v, settings.extra_float_digits, out),
        DatumRef::Numeric(v) => {
            if out.len() >= room::LARGE {
                out.make_room(NUMBER_MAX)?;
            }
            v.get().write(out)
        }
        DatumRef::Text(v) => {
            out.make_room(v.len())?;
            work::append(out, v.as_bytes());
        }
        DatumRef::Bytea(v) => write_bytea(v, settings.bytea_output, out)?,
        DatumRef::Date(v) => dt::write_date(v, settings, out),
        DatumRef::Time(v) => dt::write_time(v, out),
        DatumRef::TimeTz(v, west) => dt::write_timetz(v, west, out),
        DatumRef::Timestamp(v) => dt::write_timestamp(v, settings, out),
        DatumRef::TimestampTz(v) => dt::write_timestamptz(v, settings, out),
        DatumRef::Interval(v) => dt::write_interval(v, settings, out),
        DatumRef::Uuid(v) => write_uuid(v, out),
        // What is shown as no type in particular says by itself of which it is.
        DatumRef::Inet(v) if ty == oid::CIDR || ty != oid::INET && v.is_network() => v.write(Shown::Always, out),
        DatumRef::Inet(v) => v.write(Shown::IfShorter, out),
        DatumRef::Mac(v) => mac::write(&v, out),
        DatumRef::Mac8(v) => mac::write(&v, out),
        DatumRef::Bits(v) => bits::write(v, out)?,
        DatumRef::Enum(ty, order) => write_label(ty, order, out)?,
        DatumRef::Array(v) => array::write(&v.get(), ty, settings, out)?,
        DatumRef::Record(v) => array::write_record(v, settings, out)?,
    }
    Ok(())
}

fn write_label(ty: Oid, order: f32, out: &mut Vec<u8>) -> Result<()> {
    let label = user::label(ty, order).ok_or_else(|| Error::internal("a value of an enum without a label"))?;
    out.extend_from_slice(label.as_bytes());
    Ok(())
}

/// Appends the binary wire form of a value. Nothing is written for NULL.
///
/// # Errors
/// 0A000 for types without one here.
pub fn write_binary(value: DatumRef<'_>, ty: Oid, out: &mut Vec<u8>) -> Result<()> {
    match value {
        DatumRef::Null => {}
        DatumRef::Bool(v) => out.push(v as u8),
        DatumRef::Int2(v) => out.extend_from_slice(&v.to_be_bytes()),
        DatumRef::Int4(v) | DatumRef::Date(v) => out.extend_from_slice(&v.to_be_bytes()),
        DatumRef::Int8(v) if ty == oid::TID => {
            let (block, offset) = counted::tid_parts(v);
            out.extend_from_slice(&block.to_be_bytes());
            out.extend_from_slice(&offset.to_be_bytes());
        }
        DatumRef::Int8(v) if ty == oid::XID8 => out.extend_from_slice(&counted::xid8_number(v).to_be_bytes()),
        DatumRef::Int8(v) | DatumRef::Time(v) | DatumRef::Timestamp(v) | DatumRef::TimestampTz(v) => {
            out.extend_from_slice(&v.to_be_bytes());
        }
        DatumRef::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        DatumRef::Float4(v) => out.extend_from_slice(&v.to_be_bytes()),
        DatumRef::Float8(v) => out.extend_from_slice(&v.to_be_bytes()),
        DatumRef::Numeric(v) => v.get().write_binary(out),
        DatumRef::Text(v) if is_sent_as_text(ty) => {
            out.make_room(v.len())?;
            work::append(out, v.as_bytes());
        }
        DatumRef::Text(v) if ty == oid::CHAR => out.push(parse_char(v)),
        DatumRef::Text(v) if matches!(ty, oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT) => {
            Snapshot::parse(v)?.write_binary(out)?;
        }
        DatumRef::Text(v) => {
            // A version comes first.
            out.make_room(1 + v.len())?;
            out.push(1);
            work::append(out, v.as_bytes());
        }
        DatumRef::Bytea(v) => {
            out.make_room(v.len())?;
            work::append(out, v);
        }
        DatumRef::TimeTz(v, west) => {
            out.extend_from_slice(&v.to_be_bytes());
            out.extend_from_slice(&west.to_be_bytes());
        }
        DatumRef::Interval(v) => {
            out.extend_from_slice(&v.micros.to_be_bytes());
            out.extend_from_slice(&v.days.to_be_bytes());
            out.extend_from_slice(&v.months.to_be_bytes());
        }
        DatumRef::Uuid(v) => out.extend_from_slice(v),
        DatumRef::Inet(v) => {
            let family = if v.family() == 4 { AF_INET } else { AF_INET6 };
            out.extend_from_slice(&[family, v.prefix(), u8::from(ty == oid::CIDR), v.width() / 8]);
            v.write_address(out);
        }
        DatumRef::Mac(v) => out.extend_from_slice(&v),
        DatumRef::Mac8(v) => out.extend_from_slice(&v),
        DatumRef::Bits(v) => {
            out.make_room(4 + v.len())?;
            out.extend_from_slice(&(bits::len(v) as i32).to_be_bytes());
            work::append(out, bits::bytes(v));
        }
        DatumRef::Enum(ty, order) => write_label(ty, order, out)?,
        DatumRef::Array(v) => array::write_binary(&v.get(), ty, out)?,
        DatumRef::Record(v) => array::write_record_binary(v, out)?,
    }
    Ok(())
}

/// Whether the binary form of a type that is held as text is that text.
#[inline]
pub fn is_sent_as_text(ty: Oid) -> bool {
    !matches!(ty, oid::CHAR | oid::JSONB | oid::JSONPATH | oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT)
}

/// Whether a type is one of the most common that are held as numbers.
#[inline]
pub fn is_held_as_number(ty: Oid) -> bool {
    matches!(
        ty,
        oid::BOOL | oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT8 | oid::NUMERIC | oid::DATE | oid::TIMESTAMP
    )
}

/// The byte that a value of type `"char"` is: the first of the text, or an octal escape.
fn parse_char(text: &str) -> u8 {
    match *text.as_bytes() {
        [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7'] => (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'),
        [first, ..] => first,
        [] => 0,
    }
}

/// A `"char"`, held as the text it shows: bytes that are no character of their own are escaped.
fn char_text(byte: u8) -> Datum {
    match byte {
        0 => Datum::text(""),
        0x80.. => Datum::text(&format!("\\{byte:03o}")),
        byte => Datum::text((byte as char).encode_utf8(&mut [0; 4])),
    }
}

fn clip(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn trim(text: &str) -> &str {
    if text.len() > long_number::LONG {
        return long_number::trim(text);
    }
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
}

/// Parses a boolean: unambiguous prefixes of true, false, yes, no, on, off; 1, 0.
pub fn parse_bool(text: &str) -> Result<bool> {
    let word = Some(trim(text)).filter(|word| word.len() <= "false".len()).unwrap_or("").to_ascii_lowercase();
    let prefix = |of: &str| !word.is_empty() && of.starts_with(&word);
    match word.as_str() {
        "on" | "1" => Ok(true),
        "of" | "off" | "0" => Ok(false),
        _ if prefix("true") || prefix("yes") => Ok(true),
        _ if prefix("false") || prefix("no") => Ok(false),
        _ => Err(invalid_syntax("boolean", text)),
    }
}

fn parse_int<T: TryFrom<i128> + TryFrom<i64>>(text: &str, ty: &str) -> Result<T> {
    // Nothing but so few digits that they fit into eight bytes: most numbers.
    if (1..=18).contains(&text.len()) {
        let digits = text.bytes().try_fold(0, |value: i64, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then(|| value * 10 + i64::from(digit))
        });
        if let Some(value) = digits {
            return T::try_from(value).map_err(|_| out_of_range(text, ty));
        }
    }
    let t = trim(text);
    let digits = t.strip_prefix(['+', '-']).unwrap_or(t);
    if digits.is_empty() {
        return Err(invalid_syntax(ty, text));
    }
    let digits = if digits.len() > long_number::LONG { long_number::without_zeros(digits) } else { digits };
    // A number that is too large is found before what follows its digits.
    let sign = if t.starts_with('-') { -1 } else { 1 };
    let (mut value, mut fitting) = (0i128, None);
    for digit in digits.bytes() {
        if !digit.is_ascii_digit() {
            return Err(invalid_syntax(ty, text));
        }
        value = value * 10 + sign * i128::from(digit - b'0');
        fitting = Some(<T as TryFrom<i128>>::try_from(value).map_err(|_| out_of_range(text, ty))?);
    }
    fitting.ok_or_else(|| invalid_syntax(ty, text))
}

/// A whole number of at most 18 digits, as nearly all are: what [`parse_text`] makes of it for this type; `None` says nothing.
#[inline]
pub fn plain_int(ty: Oid, text: &[u8]) -> Option<Datum> {
    if !matches!(ty, oid::INT4 | oid::INT8) {
        return None;
    }
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    // So many fit into eight bytes.
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    let value = if negative { -value } else { value };
    match ty {
        oid::INT4 => i32::try_from(value).ok().map(Datum::Int4),
        _ => Some(Datum::Int8(value)),
    }
}

fn parse_oid(text: &str) -> Result<u32> {
    if trim(text) == "-" {
        return Ok(0);
    }
    match parse_int::<i64>(text, "oid")? {
        value @ 0..=0xffff_ffff => Ok(value as u32),
        value if value >= i32::MIN as i64 && value < 0 => Ok(value as i32 as u32),
        _ => Err(out_of_range(text, "oid")),
    }
}

/// Appends an integer in decimal.
pub fn write_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn hex_digit(b: u8) -> Option<u8> {
    (b as char).to_digit(16).map(|d| d as u8)
}

fn parse_bytea(text: &str) -> Result<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let bad =
            |c: &str| Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid hexadecimal digit: \"{c}\""));
        let mut out = Vec::with_capacity(hex.len() / 2);
        let mut chars = hex.chars();
        while let Some(high) = chars.next() {
            work::step(2)?;
            // Blanks may stand between bytes, not within one.
            if matches!(high, ' ' | '\n' | '\t' | '\r') {
                continue;
            }
            let digit = |c: char| {
                let byte = u8::try_from(c).ok().and_then(hex_digit);
                byte.ok_or_else(|| bad(&c.to_string()))
            };
            let high = digit(high)?;
            let low = chars.next().ok_or_else(|| {
                Error::new(SqlState::INVALID_PARAMETER_VALUE, "invalid hexadecimal data: odd number of digits")
            })?;
            out.push(high << 4 | digit(low)?);
        }
        return Ok(out);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        work::step(1)?;
        if bytes[i] != b'\\' {
            out.push(bytes[i]);
            i += 1;
            continue;
        }
        match bytes.get(i + 1..i + 4) {
            Some([a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7']) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                i += 4;
            }
            _ if bytes.get(i + 1) == Some(&b'\\') => {
                out.push(b'\\');
                i += 2;
            }
            _ => return Err(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea")),
        }
    }
    Ok(out)
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn write_bytea(bytes: &[u8], form: ByteaOutput, out: &mut Vec<u8>) -> Result<()> {
    match form {
        ByteaOutput::Hex => {
            out.make_room(2 + 2 * bytes.len())?;
            out.extend_from_slice(b"\\x");
            for b in bytes.iter().counted(1) {
                out.push(HEX[(b >> 4) as usize]);
                out.push(HEX[(b & 15) as usize]);
            }
        }
        ByteaOutput::Escape => {
            let length = |b: &u8| match b {
                b'\\' => 2,
                0x20..=0x7e => 1,
                _ => 4,
            };
            out.make_room(bytes.iter().counted(2).map(length).sum())?;
            for &b in bytes.iter().counted(2) {
                match b {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    0x20..=0x7e => out.push(b),
                    _ => out.extend_from_slice(&[b'\\', b'0' + (b >> 6), b'0' + (b >> 3 & 7), b'0' + (b & 7)]),
                }
            }
        }
    }
    Ok(())
}

fn parse_uuid(text: &str) -> Result<[u8; 16]> {
    let invalid = || invalid_syntax("uuid", text);
    let body = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').ok_or_else(invalid)?,
        None => text,
    };
    let bytes = body.as_bytes();
    let mut uuid = [0u8; 16];
    let mut at = 0;
    for (i, byte) in uuid.iter_mut().enumerate() {
        // A hyphen may stand after every group of four digits.
        if i > 0 && i % 2 == 0 && bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        let digit = |at: usize| bytes.get(at).copied().and_then(hex_digit).ok_or_else(invalid);
        *byte = digit(at)? << 4 | digit(at + 1)?;
        at += 2;
    }
    if at == bytes.len() { Ok(uuid) } else { Err(invalid()) }
}

fn write_uuid(uuid: &[u8; 16], out: &mut Vec<u8>) {
    for (i, b) in uuid.iter().enumerate() {
        if [4, 6, 8, 10].contains(&i) {
            out.push(b'-');
        }
        out.push(HEX[(b >> 4) as usize]);
        out.push(HEX[(b & 15) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_integers_are_what_any_text_says() {
        let settings = OutputSettings::default();
        let cx = InputContext { settings: &settings, now_micros: 0 };
        for text in
            ["0", "-0", "7", "-1", "007", "999999999", "-999999999", "1000000000", "", "-", "+1", "1 ", "1a", "é"]
        {
            for ty in [oid::INT4, oid::INT8, oid::INT2, oid::TEXT] {
                if let Some(value) = plain_int(ty, text.as_bytes()) {
                    assert_eq!(parse_text(ty, -1, text, &cx).unwrap(), value, "{text}");
                }
            }
        }
        assert_eq!(plain_int(oid::INT4, b"-12"), Some(Datum::Int4(-12)));
        assert_eq!(plain_int(oid::INT8, b"999999999"), Some(Datum::Int8(999_999_999)));
        assert_eq!(plain_int(oid::INT4, b"-2147483648"), Some(Datum::Int4(i32::MIN)));
        assert_eq!((plain_int(oid::INT4, b"2147483648"), plain_int(oid::INT2, b"1")), (None, None));
        assert_eq!(plain_int(oid::INT8, b"1000000000000000000"), None);
    }
}
