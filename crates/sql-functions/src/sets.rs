//! Set-returning functions.
//!
//! Responsible for: their table, arrays and strings as rows; series and JSON are in submodules.
//! Invariant: rows are made when they are asked for; a series of any length holds one row.

mod json;
mod keywords;
mod series;

use std::sync::Arc;

use base::Result;
use base::work::{self, Count};
use types::oid::*;
use types::room::Room as _;
use types::{Array, Datum};

use super::entry::{mismatch, set, text_of};
use super::{EvalContext, SetFunction, SetRows, text};

/// The table.
#[rustfmt::skip]
pub(super) static SET_FUNCTIONS: &[SetFunction] = &[
    set(938, "generate_series", &[TIMESTAMP, TIMESTAMP, INTERVAL], &[("", TIMESTAMP)], series::timestamps),
    set(939, "generate_series", &[TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL], &[("", TIMESTAMPTZ)], series::timestamps),
    set(1066, "generate_series", &[INT4, INT4, INT4], &[("", INT4)], series::integers),
    set(1067, "generate_series", &[INT4, INT4], &[("", INT4)], series::integers),
    set(1068, "generate_series", &[INT8, INT8, INT8], &[("", INT8)], series::bigints),
    set(1069, "generate_series", &[INT8, INT8], &[("", INT8)], series::bigints),
    set(3259, "generate_series", &[NUMERIC, NUMERIC, NUMERIC], &[("", NUMERIC)], series::numerics),
    set(3260, "generate_series", &[NUMERIC, NUMERIC], &[("", NUMERIC)], series::numerics),
    set(1191, "generate_subscripts", &[ANYARRAY, INT4, BOOL], &[("", INT4)], generate_subscripts),
    set(1192, "generate_subscripts", &[ANYARRAY, INT4], &[("", INT4)], generate_subscripts),
    set(2331, "unnest", &[ANYARRAY], &[("", ANYELEMENT)], unnest),
    set(1686, "pg_get_keywords", &[], &[("word", TEXT), ("catcode", CHAR), ("barelabel", BOOL), ("catdesc", TEXT), ("baredesc", TEXT)], keywords::pg_get_keywords),
    set(3035, "pg_listening_channels", &[], &[("", TEXT)], listening_channels),
    set(3425, "pg_partition_ancestors", &[REGCLASS], &[("relid", REGCLASS)], nothing),
    set(2289, "pg_options_to_table", &[TEXT_ARRAY], &[("option_name", TEXT), ("option_value", TEXT)], options_to_table),
    set(9520, "_pg_expandarray", &[ANYARRAY], &[("x", ANYELEMENT), ("n", INT4)], expand_array),
    set(6160, "string_to_table", &[TEXT, TEXT], &[("", TEXT)], string_to_table).lax(),
    set(6161, "string_to_table", &[TEXT, TEXT, TEXT], &[("", TEXT)], string_to_table).lax(),
    set(3955, "json_array_elements", &[JSON], &[("value", JSON)], json::array_elements),
    set(3969, "json_array_elements_text", &[JSON], &[("value", TEXT)], json::array_elements_text),
    set(3219, "jsonb_array_elements", &[JSONB], &[("value", JSONB)], json::b_array_elements),
    set(3465, "jsonb_array_elements_text", &[JSONB], &[("value", TEXT)], json::b_array_elements_text),
    set(3958, "json_each", &[JSON], &[("key", TEXT), ("value", JSON)], json::each),
    set(3959, "json_each_text", &[JSON], &[("key", TEXT), ("value", TEXT)], json::each_text),
    set(3208, "jsonb_each", &[JSONB], &[("key", TEXT), ("value", JSONB)], json::b_each),
    set(3932, "jsonb_each_text", &[JSONB], &[("key", TEXT), ("value", TEXT)], json::b_each_text),
    set(3957, "json_object_keys", &[JSON], &[("", TEXT)], json::object_keys),
    set(3931, "jsonb_object_keys", &[JSONB], &[("", TEXT)], json::b_object_keys),
];

/// What `SELECT … FROM sequence` reads; it has no name that a call could use.
pub static SEQUENCE_STATE: SetFunction =
    set(9521, "", &[REGCLASS], &[("last_value", INT8), ("log_cnt", INT8), ("is_called", BOOL)], sequence_state);

/// A row of one value, beside others in ROWS FROM; it has no name that a call could use.
pub static SINGLE_VALUE: SetFunction = set(9522, "", &[ANYELEMENT], &[("", ANYELEMENT)], single_value).lax();

fn single_value(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    Ok(Box::new(std::iter::once(Ok(vec![args.first().cloned().unwrap_or_default()]))))
}

fn sequence_state(cx: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let Some(Datum::Oid(oid)) = args.first() else { return Err(mismatch("sequence_state")) };
    let (last_value, is_called) = cx.sequence_state(base::Oid(*oid))?;
    let row = vec![Datum::Int8(last_value), Datum::Int8(0), Datum::Bool(is_called)];
    Ok(Box::new(std::iter::once(Ok(row))))
}

/// Rows of one column.
fn column(values: impl Iterator<Item = Datum> + Send + 'static) -> Result<SetRows> {
    Ok(Box::new(values.map(|v| Ok(vec![v]))))
}

/// An array's elements, one after the other, without copying the array.
struct Elements {
    array: Arc<Array>,
    next: usize,
}

impl Iterator for Elements {
    type Item = Datum;

    fn next(&mut self) -> Option<Datum> {
        let value = self.array.values.get(self.next)?.clone();
        self.next += 1;
        Some(value)
    }
}

fn unnest(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let [Datum::Array(array)] = args else { return Err(mismatch("unnest")) };
    column(Elements { array: Arc::clone(array), next: 0 })
}

/// Elements with their places, counted from 1.
fn expand_array(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let [Datum::Array(array)] = args else { return Err(mismatch("_pg_expandarray")) };
    let elements = Elements { array: Arc::clone(array), next: 0 };
    Ok(Box::new(elements.zip(1..).map(|(value, n)| Ok(vec![value, Datum::Int4(n)]))))
}

/// `name=value` apart.
fn options_to_table(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let [Datum::Array(array)] = args else { return Err(mismatch("pg_options_to_table")) };
    let elements = Elements { array: Arc::clone(array), next: 0 };
    Ok(Box::new(elements.map(|option| {
        let Datum::Text(text) = option else { return Ok(vec![Datum::Null, Datum::Null]) };
        Ok(match text.split_once('=') {
            Some((name, value)) => vec![Datum::text(name), Datum::text(value)],
            None => vec![Datum::Text(text), Datum::Null],
        })
    })))
}

/// The rows of a function about what no relation is.
fn nothing(_: &dyn EvalContext, _: &[Datum]) -> Result<SetRows> {
    column(std::iter::empty())
}

fn listening_channels(cx: &dyn EvalContext, _: &[Datum]) -> Result<SetRows> {
    column(cx.listening_channels().into_iter().map(|channel| Datum::text(&channel)))
}

fn generate_subscripts(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let (Some(Datum::Array(array)), Some(Datum::Int4(dimension))) = (args.first(), args.get(1)) else {
        return Err(mismatch("generate_subscripts"));
    };
    let Some(&(length, lower)) = dimension.checked_sub(1).and_then(|d| array.dims.get(usize::try_from(d).ok()?)) else {
        return column(std::iter::empty());
    };
    let (first, end) = (i64::from(lower), i64::from(lower) + i64::from(length));
    let subscript = |n: i64| Datum::Int4(n as i32);
    match args.get(2) {
        Some(Datum::Bool(true)) => column((first..end).rev().map(subscript)),
        _ => column((first..end).map(subscript)),
    }
}

fn string_to_table(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let Some(Datum::Text(text)) = args.first() else { return column(std::iter::empty()) };
    let null = match args.get(2) {
        Some(Datum::Text(null)) => Some(null.to_string()),
        _ => None,
    };
    let mut parts: work::List<String> = work::List::new();
    match args.get(1) {
        _ if text.is_empty() => {}
        Some(Datum::Text(delimiter)) if delimiter.is_empty() => parts.push(text.to_string()),
        Some(Datum::Text(delimiter)) => {
            for part in text::search::Wanted::new(delimiter.as_bytes()).split(text).counted(32) {
                parts.make_room(1)?;
                let mut copy = String::new();
                work::append_text(&mut copy, part);
                parts.push(copy);
            }
        }
        _ => {
            for c in text.chars().counted(32) {
                parts.make_room(1)?;
                parts.push(String::from(c));
            }
        }
    }
    let value = move |part: String| if null.as_ref() == Some(&part) { Datum::Null } else { Datum::from(part) };
    column(parts.into_iter().map(value))
}

/// The document of a JSON function.
fn document(args: &[Datum]) -> Result<&str> {
    text_of(args, 0)
}
