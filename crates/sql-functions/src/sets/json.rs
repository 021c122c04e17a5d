//! The parts of JSON documents as rows.

use base::{Error, Result, SqlState};
use types::Datum;

use super::super::json::scan::{self, DocumentKind};
use super::super::{EvalContext, SetRows};
use super::{column, document};

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The elements of a `json` array, or the error of function `name`.
fn elements<'a>(text: &'a str, name: &str) -> Result<Vec<&'a str>> {
    match scan::kind(text) {
        DocumentKind::Array => scan::elements(text),
        DocumentKind::Object => Err(invalid(format!("cannot call {name} on a non-array"))),
        _ => Err(invalid(format!("cannot call {name} on a scalar"))),
    }
}

/// The elements of a `jsonb` array.
fn b_elements(text: &str) -> Result<Vec<&str>> {
    match scan::kind(text) {
        DocumentKind::Array => scan::elements(text),
        DocumentKind::Object => Err(invalid("cannot extract elements from an object".into())),
        _ => Err(invalid("cannot extract elements from a scalar".into())),
    }
}

/// Asks for room for so many values that are parts of one text.
fn room_for(parts: &[&str]) -> Result<()> {
    const EACH: usize = size_of::<Datum>() + 24;
    types::room::ask(parts.len() * EACH + parts.iter().map(|part| part.len()).sum::<usize>())
}

fn raw(parts: Vec<&str>) -> Result<SetRows> {
    room_for(&parts)?;
    column(parts.into_iter().map(Datum::from).collect::<Vec<_>>().into_iter())
}

fn as_text(parts: Vec<&str>) -> Result<SetRows> {
    room_for(&parts)?;
    column(parts.into_iter().map(scan::to_text).collect::<Result<Vec<_>>>()?.into_iter())
}

pub(super) fn array_elements(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    raw(elements(document(args)?, "json_array_elements")?)
}

pub(super) fn array_elements_text(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let text = document(args)?;
    scan::check_escapes(text)?;
    as_text(elements(text, "json_array_elements_text")?)
}

pub(super) fn b_array_elements(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    raw(b_elements(document(args)?)?)
}

pub(super) fn b_array_elements_text(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    as_text(b_elements(document(args)?)?)
}

/// The fields of a `json` object.
fn fields(text: &str) -> Result<Vec<(String, &str)>> {
    scan::check_escapes(text)?;
    match scan::kind(text) {
        DocumentKind::Object => scan::fields(text),
        DocumentKind::Array => Err(invalid("cannot deconstruct an array as an object".into())),
        _ => Err(invalid("cannot deconstruct a scalar".into())),
    }
}

/// The fields of a `jsonb` object, or the error of function `name`.
fn b_fields<'a>(text: &'a str, name: &str) -> Result<Vec<(String, &'a str)>> {
    match scan::kind(text) {
        DocumentKind::Object => scan::fields(text),
        _ => Err(invalid(format!("cannot call {name} on a non-object"))),
    }
}

fn pairs(fields: Vec<(String, &str)>, value: impl Fn(&str) -> Result<Datum>) -> Result<SetRows> {
    let mut rows = Vec::with_capacity(fields.len());
    for (key, text) in fields {
        rows.push(Ok(vec![Datum::from(key), value(text)?]));
    }
    Ok(Box::new(rows.into_iter()))
}

pub(super) fn each(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    pairs(fields(document(args)?)?, |v| Ok(Datum::from(v)))
}

pub(super) fn each_text(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    pairs(fields(document(args)?)?, scan::to_text)
}

pub(super) fn b_each(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    pairs(b_fields(document(args)?, "jsonb_each")?, |v| Ok(Datum::from(v)))
}

pub(super) fn b_each_text(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    pairs(b_fields(document(args)?, "jsonb_each_text")?, scan::to_text)
}

fn keys(fields: Vec<(String, &str)>) -> Result<SetRows> {
    column(fields.into_iter().map(|(key, _)| Datum::from(key)).collect::<Vec<_>>().into_iter())
}

fn keyed<'a>(args: &'a [Datum], name: &str) -> Result<Vec<(String, &'a str)>> {
    let text = document(args)?;
    scan::check_escapes(text)?;
    match scan::kind(text) {
        DocumentKind::Object => scan::fields(text),
        DocumentKind::Array => Err(invalid(format!("cannot call {name} on an array"))),
        _ => Err(invalid(format!("cannot call {name} on a scalar"))),
    }
}

pub(super) fn object_keys(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    keys(keyed(args, "json_object_keys")?)
}

pub(super) fn b_object_keys(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    keys(keyed(args, "jsonb_object_keys")?)
}
