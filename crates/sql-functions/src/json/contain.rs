//! What is in a `jsonb`: keys (`?`) and other documents (`@>`).

use base::Result;
use base::work::{self, Count};
use types::Datum;
use types::json::{Value, parse};

use super::super::EvalContext;
use super::super::entry::text_of;
use super::strings;

/// A key of an object, a string of an array, or the string itself.
fn has(document: &Value, key: &str) -> bool {
    let is_key = |v: &Value| matches!(v, Value::String(s) if s == key);
    match document {
        Value::Object(_) => document.field(key).is_some(),
        Value::Array(elements) => elements.iter().counted(4).any(is_key),
        scalar => is_key(scalar),
    }
}

pub(super) fn exists(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(has(&parse(text_of(args, 0)?)?, text_of(args, 1)?)))
}

/// The strings of the second argument; NULLs are no keys.
fn keys(args: &[Datum]) -> Result<Vec<&str>> {
    match args.get(1) {
        Some(Datum::Array(array)) => Ok(array
            .values
            .iter()
            .counted(4)
            .filter_map(|v| if let Datum::Text(s) = v { Some(&**s) } else { None })
            .collect()),
        _ => Ok(strings(&args[1..])?.unwrap_or_default()),
    }
}

pub(super) fn exists_any(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let document = parse(text_of(args, 0)?)?;
    Ok(Datum::Bool(keys(args)?.iter().any(|k| has(&document, k))))
}

pub(super) fn exists_all(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let document = parse(text_of(args, 0)?)?;
    Ok(Datum::Bool(keys(args)?.iter().all(|k| has(&document, k))))
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

/// Whether `a` holds `b`, both below the top.
fn holds(a: &Value, b: &Value) -> bool {
    work::beat(4);
    match (a, b) {
        (Value::Object(_), Value::Object(fields)) => {
            fields.iter().all(|(key, b)| a.field(key).is_some_and(|a| holds(a, b)))
        }
        (Value::Array(all), Value::Array(some)) => some.iter().all(|b| all.iter().any(|a| holds(a, b))),
        (a, b) => is_scalar(a) && a == b,
    }
}

/// At the top an array also holds a scalar that is one of its elements.
fn holds_at_top(a: &str, b: &str) -> Result<Datum> {
    let (a, b) = (parse(a)?, parse(b)?);
    Ok(Datum::Bool(match &a {
        Value::Array(all) if is_scalar(&b) => all.iter().counted(4).any(|a| *a == b),
        _ => holds(&a, &b),
    }))
}

pub(super) fn contains(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    holds_at_top(text_of(args, 0)?, text_of(args, 1)?)
}

pub(super) fn contained(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    holds_at_top(text_of(args, 1)?, text_of(args, 0)?)
}
