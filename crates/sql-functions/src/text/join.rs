//! Functions that make text of any values, and arrays of text.

use std::fmt::Write;
use std::sync::Arc;

use base::Result;
use base::work::{self, Count};
use sql_parse::names;
use types::network::Shown;
use types::oid::*;
use types::room::Room as _;
use types::{Array, Datum};

use super::super::entry::{immutable, mismatched, stable};
use super::super::{EvalContext, Function};
use super::search::Wanted;

/// The type that a value can be written as, as far as it shows.
fn type_of(value: &Datum) -> base::Oid {
    match value {
        Datum::Array(array) => types::array_of(array.element).unwrap_or(TEXT_ARRAY),
        Datum::Enum(ty, _) => *ty,
        Datum::Record(_) => RECORD,
        _ => TEXT,
    }
}

/// Appends a value's text form.
fn append(cx: &dyn EvalContext, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    super::super::write_text(cx, value, type_of(value), out)
}

/// Appends what a cast to text makes of a value: booleans are written out.
fn append_cast(cx: &dyn EvalContext, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Bool(v) => {
            out.extend_from_slice(if *v { b"true" } else { b"false" });
            Ok(())
        }
        Datum::Inet(v) => {
            v.write(Shown::Always, out);
            Ok(())
        }
        value => append(cx, value, out),
    }
}

fn text(bytes: Vec<u8>) -> Result<Datum> {
    Ok(types::written(bytes).into())
}

/// The text forms of all values that are not NULL, one after the other.
fn concat(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let mut out = work::List::new();
    for value in args {
        append(cx, value, &mut out)?;
    }
    text(out.done())
}

fn concat_ws(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (separator, values) = match args {
        [Datum::Null, ..] => return Ok(Datum::Null),
        [Datum::Text(separator), values @ ..] => (separator, values),
        _ => return mismatched(args),
    };
    let mut out = work::List::new();
    for (number, value) in values.iter().filter(|v| !v.is_null()).enumerate() {
        if number > 0 {
            out.make_room(separator.len())?;
            out.extend_from_slice(separator.as_bytes());
        }
        append(cx, value, &mut out)?;
    }
    text(out.done())
}

/// `text || anything` and the reverse.
fn any_concatenation(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let mut out = work::List::new();
    for value in args {
        append_cast(cx, value, &mut out)?;
    }
    text(out.done())
}

fn quote_literal(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(text)] => Ok(names::quote_literal(text).into()),
        [value] => {
            let mut out = Vec::new();
            append_cast(cx, value, &mut out)?;
            Ok(names::quote_literal(&String::from_utf8_lossy(&out)).into())
        }
        _ => mismatched(args),
    }
}

fn quote_nullable(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Null] => Ok(Datum::text("NULL")),
        _ => quote_literal(cx, args),
    }
}

/// `string_to_array(text, delimiter [, null])`: without delimiter every character is an element.
fn string_to_array(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [text, delimiter, null @ ..] = args else { return mismatched(args) };
    let Datum::Text(text) = text else { return Ok(Datum::Null) };
    let null = match null {
        [Datum::Text(null)] => Some(&**null),
        _ => None,
    };
    let element = |part: &str| if Some(part) == null { Datum::Null } else { Datum::text(part) };
    let mut values = work::List::new();
    match delimiter {
        _ if text.is_empty() => {}
        Datum::Text(delimiter) if delimiter.is_empty() => values.push(element(text)),
        Datum::Text(delimiter) => {
            for part in Wanted::new(delimiter.as_bytes()).split(text).counted(32) {
                values.make_room(1)?;
                values.push(element(part));
            }
        }
        _ => {
            for c in text.chars().counted(32) {
                values.make_room(1)?;
                values.push(element(c.encode_utf8(&mut [0; 4])));
            }
        }
    }
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
    Ok(Datum::Array(Arc::new(Array { element: TEXT, dims, values: values.done() })))
}

/// `array_to_string(array, delimiter [, null])`
fn array_to_string(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (array, delimiter, null) = match args {
        [Datum::Array(array), Datum::Text(delimiter)] => (array, delimiter, None),
        [Datum::Array(array), Datum::Text(delimiter), null] => (array, delimiter, Some(null)),
        [_, _, ..] if args[..2].iter().any(Datum::is_null) => return Ok(Datum::Null),
        _ => return mismatched(args),
    };
    let mut out = work::List::new();
    let mut first = true;
    // What is longer is counted as it is appended.
    let short = |length: usize| if length > work::STRETCH { 0 } else { work::bytes(length) };
    let joint = short(delimiter.len()) + null.map_or(0, |null| short(super::super::weight(null)));
    for value in array.values.iter().counted(16 + joint) {
        if value.is_null() && !matches!(null, Some(Datum::Text(_))) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.make_room(delimiter.len())?;
            work::append(&mut out, delimiter.as_bytes());
        }
        match (value, null) {
            (Datum::Null, Some(Datum::Text(null))) => {
                out.make_room(null.len())?;
                work::append(&mut out, null.as_bytes());
            }
            _ => super::super::write_text(cx, value, array.element, &mut out)?,
        }
    }
    text(out.done())
}

fn num_nulls(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(args.iter().filter(|v| v.is_null()).count() as i32))
}

fn num_nonnulls(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(args.iter().filter(|v| !v.is_null()).count() as i32))
}

/// A random UUID (version 4): a digest of the session's generator, its clock and a counter of the process, so that equal
/// seeds do not make equal values.
fn gen_random_uuid(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static MADE: AtomicU64 = AtomicU64::new(0);
    let mut seed = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        seed,
        "{} {} {} {} {}",
        cx.random(),
        cx.random(),
        cx.clock_timestamp(),
        cx.backend_pid(),
        MADE.fetch_add(1, Ordering::Relaxed)
    );
    let mut bytes: [u8; 16] = super::digest::sha256(seed.as_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Datum::Uuid(bytes))
}

/// The table, by OID.
pub(crate) static FUNCTIONS: &[Function] = &[
    immutable(376, "string_to_array", &[TEXT, TEXT, TEXT], TEXT_ARRAY, string_to_array).lax(),
    stable(384, "array_to_string", &[ANYARRAY, TEXT, TEXT], TEXT, array_to_string).lax(),
    immutable(394, "string_to_array", &[TEXT, TEXT], TEXT_ARRAY, string_to_array).lax(),
    stable(395, "array_to_string", &[ANYARRAY, TEXT], TEXT, array_to_string),
    immutable(438, "num_nulls", &[ANY], INT4, num_nulls).lax().repeating(),
    immutable(440, "num_nonnulls", &[ANY], INT4, num_nonnulls).lax().repeating(),
    immutable(1283, "quote_literal", &[TEXT], TEXT, quote_literal).spelling(),
    stable(1285, "quote_literal", &[ANYELEMENT], TEXT, quote_literal).spelling(),
    immutable(1289, "quote_nullable", &[TEXT], TEXT, quote_nullable).lax().spelling(),
    stable(1290, "quote_nullable", &[ANYELEMENT], TEXT, quote_nullable).lax().spelling(),
    stable(2003, "textanycat", &[TEXT, ANYNONARRAY], TEXT, any_concatenation).spelling(),
    stable(2004, "anytextcat", &[ANYNONARRAY, TEXT], TEXT, any_concatenation).spelling(),
    stable(3058, "concat", &[ANY], TEXT, concat).lax().repeating().spelling(),
    stable(3059, "concat_ws", &[TEXT, ANY], TEXT, concat_ws).lax().repeating().spelling(),
    super::super::entry::volatile(3432, "gen_random_uuid", &[], UUID, gen_random_uuid).leakproof(),
];
