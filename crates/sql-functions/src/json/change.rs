//! Documents made of other documents.

use base::work::{self, Count};
use base::{Error, Result, SqlState};
use rustc_hash::FxHashSet;
use types::Datum;
use types::json::{Value, normal_form, parse, string_len};
use types::room::Room as _;

use super::super::EvalContext;
use super::super::entry::{mismatch, text_of};
use super::scan::{self, DocumentKind};
use super::{invalid, strings};

/// A document as `jsonb` is held: keys in order, the last of equal ones.
pub(super) fn datum(value: &Value) -> Result<Datum> {
    let mut out = Vec::new();
    value.write(&mut out)?;
    normal_form(&types::written(out)).map(Datum::from)
}

pub(super) fn concat(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let list = |v: Value| match v {
        Value::Array(elements) => elements,
        other => vec![other],
    };
    let joined = match (parse(text_of(args, 0)?)?, parse(text_of(args, 1)?)?) {
        (Value::Object(mut a), Value::Object(b)) => {
            a.make_room(b.len())?;
            a.extend(b);
            Value::Object(a)
        }
        (a, b) => {
            let mut elements = list(a);
            let more = list(b);
            elements.make_room(more.len())?;
            elements.extend(more);
            Value::Array(elements)
        }
    };
    datum(&joined)
}

fn delete_keys(document: Value, keys: &[&str]) -> Result<Value> {
    let keys: FxHashSet<&str> = keys.iter().copied().counted(8).collect();
    Ok(match document {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().counted(16).filter(|(k, _)| !keys.contains(&**k)).collect())
        }
        Value::Array(elements) => {
            let kept = |v: &Value| !matches!(v, Value::String(s) if keys.contains(&**s));
            Value::Array(elements.into_iter().counted(16).filter(kept).collect())
        }
        _ => return Err(invalid("cannot delete from scalar")),
    })
}

pub(super) fn delete(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let document = parse(text_of(args, 0)?)?;
    let Some(Datum::Int4(index)) = args.get(1) else {
        let keys = strings(&args[1..])?.unwrap_or_default();
        return datum(&delete_keys(document, &keys)?);
    };
    match document {
        Value::Array(mut elements) => {
            if let Some(at) = position(elements.len(), *index) {
                elements.remove(at);
            }
            datum(&Value::Array(elements))
        }
        Value::Object(_) => Err(invalid("cannot delete from object using integer index")),
        _ => Err(invalid("cannot delete from scalar")),
    }
}

/// The place of an element; negative numbers count from the end.
pub(super) fn position(length: usize, index: i32) -> Option<usize> {
    let at = if index < 0 { length as i64 + i64::from(index) } else { i64::from(index) };
    usize::try_from(at).ok().filter(|&at| at < length)
}

/// A step of a path as the index of an array.
pub(super) fn index(step: &str, number: usize) -> Result<i32> {
    step.trim_start().parse().map_err(|_| {
        let message = format!("path element at position {number} is not an integer: \"{step}\"");
        Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    })
}

/// Puts a value at the end of a path or, without one, takes away what is there.
fn change(at: &mut Value, path: &[&str], number: usize, new: Option<&Value>, create: bool) -> Result<()> {
    let [step, rest @ ..] = path else { return Ok(()) };
    match at {
        Value::Object(fields) => {
            let found = fields.iter().counted(2).position(|(key, _)| key == step);
            match (found, new) {
                (Some(i), _) if !rest.is_empty() => change(&mut fields[i].1, rest, number + 1, new, create)?,
                (Some(i), Some(new)) => fields[i].1 = new.clone(),
                (Some(i), None) => drop(fields.remove(i)),
                (None, Some(new)) if create && rest.is_empty() => fields.push((step.to_string(), new.clone())),
                _ => {}
            }
        }
        Value::Array(elements) => {
            let wanted = index(step, number)?;
            match (position(elements.len(), wanted), new) {
                (Some(i), _) if !rest.is_empty() => change(&mut elements[i], rest, number + 1, new, create)?,
                (Some(i), Some(new)) => elements[i] = new.clone(),
                (Some(i), None) => drop(elements.remove(i)),
                (None, Some(new)) if create && rest.is_empty() => {
                    elements.insert(if wanted < 0 { 0 } else { elements.len() }, new.clone());
                }
                _ => {}
            }
        }
        _ => {}
    }
    Ok(())
}

/// A path that says something: NULL steps are an error.
pub(super) fn path(value: Option<&Datum>) -> Result<Vec<&str>> {
    let Some(Datum::Array(array)) = value else { return Err(mismatch("path")) };
    let mut steps = Vec::with_capacity(array.values.len());
    for (i, value) in array.values.iter().enumerate() {
        match value {
            Datum::Text(step) => steps.push(&**step),
            _ => {
                let message = format!("path element at position {} is null", i + 1);
                return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
            }
        }
    }
    Ok(steps)
}

pub(super) fn set(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let mut document = parse(text_of(args, 0)?)?;
    if !matches!(document, Value::Object(_) | Value::Array(_)) {
        return Err(invalid("cannot set path in scalar"));
    }
    let new = parse(text_of(args, 2)?)?;
    let create = matches!(args.get(3), Some(Datum::Bool(true)) | None);
    if is_empty(&document) && !create {
        return datum(&document);
    }
    change(&mut document, &path(args.get(1))?, 1, Some(&new), create)?;
    datum(&document)
}

pub(super) fn delete_path(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let mut document = parse(text_of(args, 0)?)?;
    if !matches!(document, Value::Object(_) | Value::Array(_)) {
        return Err(invalid("cannot delete path in scalar"));
    }
    if is_empty(&document) {
        return datum(&document);
    }
    change(&mut document, &path(args.get(1))?, 1, None, false)?;
    datum(&document)
}

/// Whether there is nothing that a path could lead to; then it is not looked at.
fn is_empty(document: &Value) -> bool {
    match document {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        _ => false,
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Array(elements) => Value::Array(elements.into_iter().counted(8).map(without_nulls).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .counted(8)
                .filter(|(_, v)| *v != Value::Null)
                .map(|(k, v)| (k, without_nulls(v)))
                .collect(),
        ),
        scalar => scalar,
    }
}

pub(super) fn strip_nulls(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    datum(&without_nulls(parse(text_of(args, 0)?)?))
}

/// `json` keeps what is left as it was written, without blanks.
fn strip_text(text: &str, out: &mut String) -> Result<()> {
    match scan::kind(text) {
        DocumentKind::Object => {
            out.push('{');
            let mut first = true;
            for (key, value) in scan::fields(text)? {
                if scan::kind(value) == DocumentKind::Null {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                let mut quoted = Vec::new();
                types::json::write_string(&key, &mut quoted);
                out.push_str(&String::from_utf8_lossy(&quoted));
                out.push(':');
                strip_text(value, out)?;
            }
            out.push('}');
        }
        DocumentKind::Array => {
            out.push('[');
            for (i, element) in scan::elements(text)?.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                strip_text(element, out)?;
            }
            out.push(']');
        }
        DocumentKind::String => {
            // Written anew: escapes that need none are gone.
            let mut quoted = Vec::new();
            if let Datum::Text(plain) = scan::to_text(text)? {
                types::json::write_string(&plain, &mut quoted);
            }
            out.push_str(&String::from_utf8_lossy(&quoted));
        }
        _ => out.push_str(scan::trimmed(text)),
    }
    Ok(())
}

pub(super) fn json_strip_nulls(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let mut out = String::new();
    scan::check_escapes(text_of(args, 0)?)?;
    strip_text(text_of(args, 0)?, &mut out)?;
    Ok(out.into())
}

/// Room for more than a line feed, its blanks and a mark.
fn new_line(depth: usize, out: &mut Vec<u8>) -> Result<()> {
    work::beat(8 + depth);
    out.make_room(4 * depth + 8)?;
    out.push(b'\n');
    out.resize(out.len() + 4 * depth, b' ');
    Ok(())
}

fn write_pretty(value: &Value, depth: usize, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Value::Array(elements) => {
            out.push(b'[');
            for (i, element) in elements.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                new_line(depth + 1, out)?;
                write_pretty(element, depth + 1, out)?;
            }
            new_line(depth, out)?;
            out.push(b']');
        }
        Value::Object(fields) => {
            out.push(b'{');
            for (i, (key, value)) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                new_line(depth + 1, out)?;
                out.make_room(string_len(key) + 8)?;
                types::json::write_string(key, out);
                out.extend_from_slice(b": ");
                write_pretty(value, depth + 1, out)?;
            }
            new_line(depth, out)?;
            out.push(b'}');
        }
        scalar => scalar.write(out)?,
    }
    Ok(())
}

pub(super) fn pretty(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let mut out = Vec::new();
    write_pretty(&parse(text_of(args, 0)?)?, 0, &mut out)?;
    Ok(Datum::from(types::written(out)))
}
