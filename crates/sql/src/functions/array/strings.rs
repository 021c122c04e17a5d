//! Arrays from and to delimited text.

use base::Result;
use types::oid::TEXT;
use types::{Datum, write_text};

use super::super::EvalContext;
use super::super::entry::mismatch;
use super::list;

pub(super) fn array_to_string(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (array, delimiter) = match args {
        [Datum::Array(array), Datum::Text(delimiter), ..] => (array, delimiter),
        [Datum::Null, ..] | [_, Datum::Null, ..] => return Ok(Datum::Null),
        _ => return Err(mismatch("array_to_string")),
    };
    let null = match args.get(2) {
        Some(Datum::Text(null)) => Some(null),
        _ => None,
    };
    let mut out = Vec::new();
    let mut first = true;
    for value in &array.values {
        if value.is_null() && null.is_none() {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.extend_from_slice(delimiter.as_bytes());
        }
        match null {
            Some(null) if value.is_null() => out.extend_from_slice(null.as_bytes()),
            _ => write_text(value.as_ref(), array.element, cx.settings(), &mut out)?,
        }
    }
    Ok(Datum::text(&String::from_utf8_lossy(&out)))
}

pub(super) fn string_to_array(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let Some(Datum::Text(text)) = args.first() else { return Ok(Datum::Null) };
    let null = match args.get(2) {
        Some(Datum::Text(null)) => Some(&**null),
        _ => None,
    };
    let value = |part: &str| if null == Some(part) { Datum::Null } else { Datum::text(part) };
    let values = match args.get(1) {
        _ if text.is_empty() => Vec::new(),
        Some(Datum::Text(delimiter)) if delimiter.is_empty() => vec![value(text)],
        Some(Datum::Text(delimiter)) => text.split(&**delimiter).map(value).collect(),
        _ => text.chars().map(|c| value(c.encode_utf8(&mut [0; 4]))).collect(),
    };
    Ok(list(TEXT, values))
}
