//! Values of SQL as JSON.

use base::{Error, Oid, Result, SqlState, work};
use types::datetime::{write_date, write_timestamp, write_timestamptz};
use types::json::{string_len, write_string};
use types::oid::*;
use types::room::Room as _;
use types::{Array, Datum, OutputSettings, write_text};

use super::super::EvalContext;

/// Bytes of what has a fixed form, and of marks between values.
const SMALL: usize = 64;

/// Appends a value of type `ty` as JSON.
pub(in super::super) fn write_json(value: &Datum, ty: Oid, cx: &dyn EvalContext, out: &mut Vec<u8>) -> Result<()> {
    out.make_room(SMALL)?;
    match value {
        Datum::Null => out.extend_from_slice(b"null"),
        Datum::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        // A row that has become a document keeps its type where the layout of what holds it depends on that.
        Datum::Text(text) if matches!(ty, JSON | JSONB | RECORD) => {
            out.make_room(text.len())?;
            out.extend_from_slice(text.as_bytes());
        }
        Datum::Text(text) => {
            out.make_room(string_len(text))?;
            write_string(text, out);
        }
        Datum::Array(array) => write_array(array, cx, out)?,
        Datum::Record(_) => return Err(Error::unsupported("converting a row value to JSON is not supported")),
        Datum::Date(_) | Datum::Timestamp(_) | Datum::TimestampTz(_) => write_instant(value, cx.settings(), out),
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => write_text(value.as_ref(), ty, cx.settings(), out)?,
        Datum::Float4(_) | Datum::Float8(_) | Datum::Numeric(_) => write_number(value, ty, cx.settings(), out)?,
        other => {
            let mut text = Vec::new();
            super::super::write_text(cx, other, ty, &mut text)?;
            let text = String::from_utf8_lossy(&text);
            out.make_room(string_len(&text))?;
            write_string(&text, out);
        }
    }
    Ok(())
}

/// Numbers that JSON cannot write are strings.
fn write_number(value: &Datum, ty: Oid, settings: &OutputSettings, out: &mut Vec<u8>) -> Result<()> {
    let finite = match value {
        Datum::Float4(v) => v.is_finite(),
        Datum::Float8(v) => v.is_finite(),
        Datum::Numeric(v) => v.is_finite(),
        _ => true,
    };
    if !finite {
        out.push(b'"');
    }
    write_text(value.as_ref(), ty, settings, out)?;
    if !finite {
        out.push(b'"');
    }
    Ok(())
}

/// Dates and instants are written as ISO 8601 has them, whatever `DateStyle` is.
fn write_instant(value: &Datum, settings: &OutputSettings, out: &mut Vec<u8>) {
    let iso = OutputSettings { date_style: types::DateStyle::Iso, ..settings.clone() };
    out.push(b'"');
    let start = out.len();
    match value {
        Datum::Date(v) => write_date(*v, &iso, out),
        Datum::Timestamp(v) => write_timestamp(*v, &iso, out),
        Datum::TimestampTz(v) => {
            write_timestamptz(*v, &iso, out);
            // The offset has its minutes in JSON.
            let n = out.len();
            if n - start > 3 && matches!(out[n - 3], b'+' | b'-') {
                out.extend_from_slice(b":00");
            }
        }
        _ => {}
    }
    if let Some(blank) = out[start..].iter().position(|&b| b == b' ') {
        // The era after the value keeps its blank.
        if out[start + blank..].get(1).is_some_and(u8::is_ascii_digit) {
            out[start + blank] = b'T';
        }
    }
    out.push(b'"');
}

fn write_array(array: &Array, cx: &dyn EvalContext, out: &mut Vec<u8>) -> Result<()> {
    if array.dims.is_empty() {
        out.extend_from_slice(b"[]");
        return Ok(());
    }
    let mut values = array.values.iter();
    write_dimension(array, 0, &mut values, cx, b",", out)
}

/// Appends an array with line feeds between the parts of its outermost dimension.
pub(super) fn write_pretty_array(array: &Array, cx: &dyn EvalContext, out: &mut Vec<u8>) -> Result<()> {
    if array.dims.is_empty() {
        out.extend_from_slice(b"[]");
        return Ok(());
    }
    write_dimension(array, 0, &mut array.values.iter(), cx, b",\n ", out)
}

fn write_dimension<'a>(
    array: &Array,
    dimension: usize,
    values: &mut impl Iterator<Item = &'a Datum>,
    cx: &dyn EvalContext,
    separator: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'[');
    for i in 0..array.dims[dimension].0 {
        work::step(16)?;
        if i > 0 {
            out.extend_from_slice(separator);
        }
        if dimension + 1 < array.dims.len() {
            write_dimension(array, dimension + 1, values, cx, b",", out)?;
        } else if let Some(value) = values.next() {
            write_json(value, array.element, cx, out)?;
        }
    }
    out.push(b']');
    Ok(())
}

/// Appends a value as the key of an object: any scalar, as a string.
pub(in super::super) fn write_key(
    key: &Datum,
    ty: Oid,
    cx: &dyn EvalContext,
    out: &mut Vec<u8>,
    null: impl FnOnce() -> Error,
) -> Result<()> {
    match key {
        Datum::Null => return Err(null()),
        Datum::Array(_) | Datum::Record(_) => return Err(not_a_key()),
        Datum::Text(_) if matches!(ty, JSON | JSONB) => return Err(not_a_key()),
        _ => {}
    }
    let mut json = Vec::new();
    write_json(key, ty, cx, &mut json)?;
    if json.first() == Some(&b'"') {
        out.make_room(json.len() + SMALL)?;
        out.extend_from_slice(&json);
    } else {
        out.push(b'"');
        out.extend_from_slice(&json);
        out.push(b'"');
    }
    Ok(())
}

#[cold]
fn not_a_key() -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, "key value must be scalar, not array, composite, or json")
}
