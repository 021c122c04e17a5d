//! JSON.
//!
//! Responsible for: the table, making documents of SQL values, taking parts out of documents.
//! Not responsible for: reading and checking text (`types::json`), documents as rows (`sets`), aggregates.
//! Invariant: a `jsonb` is the text PostgreSQL prints for it, so a part of it is a stretch of its text.

mod change;
mod contain;
mod insert;
mod object;
pub(super) mod path;
pub(super) mod record;
pub(super) mod scan;
mod write;

use base::{Error, Oid, Result, SqlState};
use types::oid::*;
use types::{Datum, json::normal_form};

use super::entry::{argument_types, immutable, int_of, mismatch, natural_type, stable, text_of};
use super::{EvalContext, Function};
use scan::DocumentKind;

pub(super) use write::{write_json, write_key};

/// The table.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    stable(3176, "to_json", &[ANYELEMENT], JSON, to_json).told_types(),
    stable(3787, "to_jsonb", &[ANYELEMENT], JSONB, to_jsonb).told_types(),
    stable(3155, "row_to_json", &[RECORD], JSON, row_to_json),
    stable(3156, "row_to_json", &[RECORD, BOOL], JSON, row_to_json),
    stable(3153, "array_to_json", &[ANYARRAY], JSON, array_to_json),
    stable(3154, "array_to_json", &[ANYARRAY, BOOL], JSON, array_to_json),
    stable(3200, "json_build_object", &[ANY], JSON, json_build_object).lax().repeating().told_types(),
    stable(3201, "json_build_object", &[], JSON, json_build_object).lax().told_types(),
    stable(3198, "json_build_array", &[ANY], JSON, json_build_array).lax().repeating().told_types(),
    stable(3199, "json_build_array", &[], JSON, json_build_array).lax().told_types(),
    stable(3273, "jsonb_build_object", &[ANY], JSONB, jsonb_build_object).lax().repeating().told_types(),
    stable(3274, "jsonb_build_object", &[], JSONB, jsonb_build_object).lax().told_types(),
    stable(3271, "jsonb_build_array", &[ANY], JSONB, jsonb_build_array).lax().repeating().told_types(),
    stable(3272, "jsonb_build_array", &[], JSONB, jsonb_build_array).lax().told_types(),
    immutable(3968, "json_typeof", &[JSON], TEXT, type_of),
    immutable(3210, "jsonb_typeof", &[JSONB], TEXT, type_of),
    immutable(3956, "json_array_length", &[JSON], INT4, array_length),
    immutable(3207, "jsonb_array_length", &[JSONB], INT4, array_length),
    immutable(3947, "json_object_field", &[JSON, TEXT], JSON, object_field),
    immutable(3948, "json_object_field_text", &[JSON, TEXT], TEXT, object_field_text),
    immutable(3949, "json_array_element", &[JSON, INT4], JSON, array_element),
    immutable(3950, "json_array_element_text", &[JSON, INT4], TEXT, array_element_text),
    immutable(3478, "jsonb_object_field", &[JSONB, TEXT], JSONB, object_field),
    immutable(3214, "jsonb_object_field_text", &[JSONB, TEXT], TEXT, object_field_text),
    immutable(3215, "jsonb_array_element", &[JSONB, INT4], JSONB, b_array_element),
    immutable(3216, "jsonb_array_element_text", &[JSONB, INT4], TEXT, b_array_element_text),
    immutable(3951, "json_extract_path", &[JSON, TEXT_ARRAY], JSON, extract_path).repeating(),
    immutable(3953, "json_extract_path_text", &[JSON, TEXT_ARRAY], TEXT, extract_path_text).repeating(),
    immutable(3217, "jsonb_extract_path", &[JSONB, TEXT_ARRAY], JSONB, extract_path).repeating(),
    immutable(3940, "jsonb_extract_path_text", &[JSONB, TEXT_ARRAY], TEXT, extract_path_text).repeating(),
    immutable(4047, "jsonb_exists", &[JSONB, TEXT], BOOL, contain::exists),
    immutable(4048, "jsonb_exists_any", &[JSONB, TEXT_ARRAY], BOOL, contain::exists_any),
    immutable(4049, "jsonb_exists_all", &[JSONB, TEXT_ARRAY], BOOL, contain::exists_all),
    immutable(4046, "jsonb_contains", &[JSONB, JSONB], BOOL, contain::contains).on_texts(contain::holds_at_top),
    immutable(4050, "jsonb_contained", &[JSONB, JSONB], BOOL, contain::contained).on_texts(|a, b| contain::holds_at_top(b, a)),
    immutable(3301, "jsonb_concat", &[JSONB, JSONB], JSONB, change::concat),
    immutable(3302, "jsonb_delete", &[JSONB, TEXT], JSONB, change::delete),
    immutable(3303, "jsonb_delete", &[JSONB, INT4], JSONB, change::delete),
    immutable(3343, "jsonb_delete", &[JSONB, TEXT_ARRAY], JSONB, change::delete).repeating(),
    immutable(3304, "jsonb_delete_path", &[JSONB, TEXT_ARRAY], JSONB, change::delete_path),
    immutable(3305, "jsonb_set", &[JSONB, TEXT_ARRAY, JSONB, BOOL], JSONB, change::set).or(&[Datum::Bool(true)]).named(&["jsonb_in", "path", "replacement", "create_if_missing"]),
    immutable(3306, "jsonb_pretty", &[JSONB], TEXT, change::pretty),
    immutable(3261, "json_strip_nulls", &[JSON], JSON, change::json_strip_nulls),
    immutable(3579, "jsonb_insert", &[JSONB, TEXT_ARRAY, JSONB, BOOL], JSONB, insert::insert).or(&[Datum::Bool(false)]).named(&["jsonb_in", "path", "replacement", "insert_after"]),
    immutable(5054, "jsonb_set_lax", &[JSONB, TEXT_ARRAY, JSONB, BOOL, TEXT], JSONB, insert::set_lax).lax().named(&["jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"]),
    immutable(9579, "jsonb_set_lax", &[JSONB, TEXT_ARRAY, JSONB, BOOL], JSONB, insert::set_lax).lax().or(&[Datum::Bool(true)]).named(&["jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"]),
    immutable(9560, "jsonb assign", &[JSONB, TEXT_ARRAY, JSONB], JSONB, insert::assign).lax(),
    immutable(3202, "json_object", &[TEXT_ARRAY], JSON, object::json_object),
    immutable(3203, "json_object", &[TEXT_ARRAY, TEXT_ARRAY], JSON, object::json_object),
    immutable(3263, "jsonb_object", &[TEXT_ARRAY], JSONB, object::jsonb_object),
    immutable(3264, "jsonb_object", &[TEXT_ARRAY, TEXT_ARRAY], JSONB, object::jsonb_object),
    stable(9561, "record json", &[TEXT_ARRAY, OID_ARRAY, RECORD, BOOL], JSON, record::record_json).lax(),
    stable(9562, "json field", &[JSON, TEXT, OID, INT4, ANY], ANYELEMENT, record::json_field).lax(),
    immutable(9563, "json object", &[JSON], JSON, record::json_object_only),
    immutable(3262, "jsonb_strip_nulls", &[JSONB], JSONB, change::strip_nulls),
];

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The type to write argument `i` as. Text could be JSON itself, so its type must have been passed.
fn type_at(types: Option<&types::Array>, value: &Datum, i: usize) -> Result<Oid> {
    if let Some(Datum::Oid(oid)) = types.and_then(|t| t.values.get(i)) {
        return Ok(Oid(*oid));
    }
    match value {
        Datum::Null => Ok(UNKNOWN),
        value => natural_type(value)
            .ok_or_else(|| Error::unsupported("the type of this expression is not known when it is evaluated")),
    }
}

fn to_json_text(cx: &dyn EvalContext, args: &[Datum]) -> Result<String> {
    let (types, args) = argument_types(args);
    let [value] = args else { return Err(mismatch("to_json")) };
    let mut out = Vec::new();
    write_json(value, type_at(types, value, 0)?, cx, &mut out)?;
    Ok(types::written(out))
}

fn to_json(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    to_json_text(cx, args).map(Datum::from)
}

fn to_jsonb(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    normal_form(&to_json_text(cx, args)?).map(Datum::from)
}

fn row_to_json(_: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Err(Error::unsupported("converting a row value to JSON is not supported"))
}

fn array_to_json(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let Some(Datum::Array(array)) = args.first() else { return Err(mismatch("array_to_json")) };
    let mut out = Vec::new();
    match args.get(1) {
        Some(Datum::Bool(true)) => write::write_pretty_array(array, cx, &mut out)?,
        _ => {
            let ty = types::array_of(array.element).unwrap_or_default();
            write_json(&args[0], ty, cx, &mut out)?;
        }
    }
    Ok(Datum::from(types::written(out)))
}

fn build_object(cx: &dyn EvalContext, args: &[Datum], name: &str) -> Result<String> {
    let (types, args) = argument_types(args);
    if args.len() % 2 != 0 {
        return Err(invalid("argument list must have even number of elements")
            .hint(format!("The arguments of {name}() must consist of alternating keys and values.")));
    }
    let mut out = vec![b'{'];
    for (i, pair) in args.chunks_exact(2).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        // A key that is JSON is an error anyway, so text needs no type.
        let key_type = type_at(types, &pair[0], 2 * i).unwrap_or(TEXT);
        let null = || match name {
            "json_build_object" => {
                invalid(format!("argument {} cannot be null", 2 * i + 1)).hint("Object keys should be text.")
            }
            _ => invalid(format!("argument {}: key must not be null", 2 * i + 1)),
        };
        write_key(&pair[0], key_type, cx, &mut out, null)?;
        out.extend_from_slice(b" : ");
        write_json(&pair[1], type_at(types, &pair[1], 2 * i + 1)?, cx, &mut out)?;
    }
    out.push(b'}');
    Ok(types::written(out))
}

fn json_build_object(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    build_object(cx, args, "json_build_object").map(Datum::from)
}

fn jsonb_build_object(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    normal_form(&build_object(cx, args, "jsonb_build_object")?).map(Datum::from)
}

fn build_array(cx: &dyn EvalContext, args: &[Datum]) -> Result<String> {
    let (types, args) = argument_types(args);
    let mut out = vec![b'['];
    for (i, value) in args.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write_json(value, type_at(types, value, i)?, cx, &mut out)?;
    }
    out.push(b']');
    Ok(types::written(out))
}

fn json_build_array(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    build_array(cx, args).map(Datum::from)
}

fn jsonb_build_array(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    normal_form(&build_array(cx, args)?).map(Datum::from)
}

fn type_of(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(match scan::kind(text_of(args, 0)?) {
        DocumentKind::Object => "object",
        DocumentKind::Array => "array",
        DocumentKind::String => "string",
        DocumentKind::Number => "number",
        DocumentKind::Bool => "boolean",
        DocumentKind::Null => "null",
    }))
}

fn array_length(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let text = text_of(args, 0)?;
    match scan::kind(text) {
        DocumentKind::Array => Ok(Datum::Int4(scan::elements(text)?.len() as i32)),
        DocumentKind::Object => Err(invalid("cannot get array length of a non-array")),
        _ => Err(invalid("cannot get array length of a scalar")),
    }
}

/// The field of an object; of equal keys the last one counts.
fn field<'a>(text: &'a str, key: &str) -> Result<Option<&'a str>> {
    scan::check_escapes(text)?;
    if scan::kind(text) != DocumentKind::Object {
        return Ok(None);
    }
    Ok(scan::fields(text)?.into_iter().rev().find(|(k, _)| k == key).map(|(_, v)| v))
}

/// The element of an array; negative numbers count from its end.
fn element(text: &str, index: i32) -> Result<Option<&str>> {
    scan::check_escapes(text)?;
    if scan::kind(text) != DocumentKind::Array {
        return Ok(None);
    }
    let elements = scan::elements(text)?;
    let at = if index < 0 { elements.len() as i64 + i64::from(index) } else { i64::from(index) };
    Ok(usize::try_from(at).ok().and_then(|at| elements.get(at)).copied())
}

fn as_text(part: Option<&str>) -> Result<Datum> {
    part.map_or(Ok(Datum::Null), scan::to_text)
}

fn object_field(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(field(text_of(args, 0)?, text_of(args, 1)?)?.into())
}

fn object_field_text(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    as_text(field(text_of(args, 0)?, text_of(args, 1)?)?)
}

fn array_element(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(element(text_of(args, 0)?, int_of(args, 1)?)?.into())
}

fn array_element_text(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    as_text(element(text_of(args, 0)?, int_of(args, 1)?)?)
}

/// The element of a `jsonb`, where a scalar is the one element of itself.
fn b_element(text: &str, index: i32) -> Result<Option<&str>> {
    match scan::kind(text) {
        DocumentKind::Array => element(text, index),
        DocumentKind::Object => Ok(None),
        _ => Ok(matches!(index, 0 | -1).then_some(text)),
    }
}

fn b_array_element(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(b_element(text_of(args, 0)?, int_of(args, 1)?)?.into())
}

fn b_array_element_text(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    as_text(b_element(text_of(args, 0)?, int_of(args, 1)?)?)
}

/// The strings of a variadic `text[]`, passed as an array or one by one. A NULL among them makes all NULL.
fn strings(args: &[Datum]) -> Result<Option<Vec<&str>>> {
    let values = match args {
        [Datum::Array(array)] => &array.values[..],
        _ => args,
    };
    let mut all = Vec::with_capacity(values.len());
    for value in values {
        match value {
            Datum::Text(s) => all.push(&**s),
            Datum::Null => return Ok(None),
            _ => return Err(mismatch("text[] argument")),
        }
    }
    Ok(Some(all))
}

fn path(args: &[Datum]) -> Result<Option<&str>> {
    let Some(steps) = strings(&args[1..])? else { return Ok(None) };
    let mut at = text_of(args, 0)?;
    scan::check_escapes(at)?;
    for step in steps {
        let next = match scan::kind(at) {
            DocumentKind::Object => field(at, step)?,
            DocumentKind::Array => step.trim_start().parse().map_or(Ok(None), |i| element(at, i))?,
            _ => None,
        };
        match next {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

fn extract_path(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(path(args)?.into())
}

fn extract_path_text(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    as_text(path(args)?)
}
