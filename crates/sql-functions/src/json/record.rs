//! Rows as documents and documents as rows.
//!
//! A row value does not say what its fields are called and of which types they are; the binder, which knows, passes that
//! along. Invariant: functions whose names have a blank are called by the binder only.

use base::{Error, Oid, Result, SqlState};
use types::oid::{JSON, TEXT};
use types::{Array, Datum, InputContext, OutputSettings, element_of, json, oid};

use super::super::entry::{mismatch, set, text_of};
use super::super::{EvalContext, SetFunction, SetRows};
use super::scan::{self, DocumentKind};
use super::{invalid, write_json};

/// Names and types of a row's fields.
fn shape(args: &[Datum]) -> Result<(&Array, &Array)> {
    match args {
        [Datum::Array(names), Datum::Array(types), ..] if names.values.len() == types.values.len() => {
            Ok((names, types))
        }
        _ => Err(mismatch("record to json")),
    }
}

/// `record json(names, types, row, with line feeds)`
pub(super) fn record_json(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (names, types) = shape(args)?;
    let Some(Datum::Record(values)) = args.get(2) else { return Ok(Datum::Null) };
    let separator: &[u8] = if matches!(args.get(3), Some(Datum::Bool(true))) { b",\n " } else { b"," };
    let mut out = vec![b'{'];
    for (i, value) in values.iter().enumerate() {
        let (Some(Datum::Text(name)), Some(Datum::Oid(ty))) = (names.values.get(i), types.values.get(i)) else {
            return Err(mismatch("record to json"));
        };
        // A column that was dropped has no name.
        if name.is_empty() {
            continue;
        }
        if out.len() > 1 {
            out.extend_from_slice(separator);
        }
        json::write_string(name, &mut out);
        out.push(b':');
        write_json(value, Oid(*ty), cx, &mut out)?;
    }
    out.push(b'}');
    Ok(Datum::from(types::written(out)))
}

/// A place in a document, for error messages.
struct DocumentPath<'a> {
    key: &'a str,
    /// Places in the arrays around the value.
    indexes: Vec<usize>,
}

impl DocumentPath<'_> {
    #[cold]
    fn expected_array(&self) -> Error {
        let error = Error::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected JSON array");
        let steps: String = self.indexes.iter().map(|i| format!("[{i}]")).collect();
        match (self.key.is_empty(), steps.is_empty()) {
            (false, true) => error.hint(format!("See the value of key \"{}\".", self.key)),
            (false, false) => error.hint(format!("See the array element {steps} of key \"{}\".", self.key)),
            (true, false) => error.hint(format!("See the array element {steps}.")),
            (true, true) => error,
        }
    }
}

/// The value of type `ty` that a document says.
fn populate(
    text: &str,
    ty: Oid,
    typmod: i32,
    place: &mut DocumentPath<'_>,
    settings: &OutputSettings,
    now: i64,
) -> Result<Datum> {
    let kind = scan::kind(text);
    if kind == DocumentKind::Null {
        return Ok(Datum::Null);
    }
    let input = InputContext { settings, now_micros: now };
    let plain = match ty {
        oid::JSON => return Ok(Datum::text(scan::trimmed(text))),
        oid::JSONB => return json::normal_form(text).map(Datum::from),
        ty if types::type_info(ty).is_some_and(|info| info.is_array()) && kind != DocumentKind::String => {
            return populate_array(text, ty, typmod, place, settings, now);
        }
        oid::RECORD => return Err(Error::unsupported("composite types are not supported here")),
        _ if kind == DocumentKind::String => scan::to_text(text)?,
        _ => Datum::text(scan::trimmed(text)),
    };
    let Datum::Text(plain) = plain else { return Ok(Datum::Null) };
    let value = types::parse_text(ty, typmod, &plain, &input)?;
    types::apply_typmod(value, ty, typmod, false)
}

fn populate_array(
    text: &str,
    ty: Oid,
    typmod: i32,
    place: &mut DocumentPath<'_>,
    settings: &OutputSettings,
    now: i64,
) -> Result<Datum> {
    let element = element_of(ty).ok_or_else(|| mismatch("json array"))?;
    let mut lengths: Vec<i32> = Vec::new();
    let mut values = Vec::new();
    // The shape is that of the first elements on the way down; all others must have it too.
    let mut first = text;
    loop {
        if scan::kind(first) != DocumentKind::Array {
            break;
        }
        let elements = scan::elements(first)?;
        lengths.push(elements.len() as i32);
        match elements.first() {
            Some(next) if scan::kind(next) == DocumentKind::Array && !matches!(element, oid::JSON | oid::JSONB) => {
                first = next
            }
            _ => break,
        }
    }
    if lengths.is_empty() {
        return Err(place.expected_array());
    }
    let mut cx = Filler { element, typmod, lengths: &lengths, settings, now, values: &mut values };
    cx.fill(text, 0, place)?;
    let dims = if values.is_empty() { Vec::new() } else { lengths.iter().map(|&l| (l, 1)).collect() };
    Ok(Datum::Array(Array { element, dims, values }.into()))
}

struct Filler<'a> {
    element: Oid,
    typmod: i32,
    lengths: &'a [i32],
    settings: &'a OutputSettings,
    now: i64,
    values: &'a mut Vec<Datum>,
}

impl Filler<'_> {
    fn fill(&mut self, text: &str, depth: usize, place: &mut DocumentPath<'_>) -> Result<()> {
        if scan::kind(text) != DocumentKind::Array {
            return Err(place.expected_array());
        }
        let elements = scan::elements(text)?;
        if elements.len() as i32 != self.lengths[depth] {
            let detail = "Multidimensional arrays must have sub-arrays with matching dimensions.";
            return Err(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, "malformed JSON array").detail(detail));
        }
        for (i, part) in elements.into_iter().enumerate() {
            place.indexes.push(i);
            if depth + 1 < self.lengths.len() {
                self.fill(part, depth + 1, place)?;
            } else {
                self.values.push(populate(part, self.element, self.typmod, place, self.settings, self.now)?);
            }
            place.indexes.pop();
        }
        Ok(())
    }
}

/// `json field(document, key, type, modifier, otherwise)`: a field as a value of a type.
pub(super) fn json_field(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [document, Datum::Text(key), Datum::Oid(ty), Datum::Int4(typmod), otherwise] = args else {
        return Err(mismatch("json field"));
    };
    let Datum::Text(document) = document else { return Ok(otherwise.clone()) };
    let Some(part) = super::field(document, key)? else { return Ok(otherwise.clone()) };
    let mut place = DocumentPath { key, indexes: Vec::new() };
    populate(part, Oid(*ty), *typmod, &mut place, cx.settings(), cx.transaction_timestamp())
}

/// Checks that a document is an object, as a row needs.
pub(super) fn check_object(text: &str) -> Result<()> {
    match scan::kind(text) {
        DocumentKind::Object => Ok(()),
        DocumentKind::Array => Err(invalid("cannot call populate_composite on an array")),
        _ => Err(invalid("cannot call populate_composite on a scalar")),
    }
}

/// The objects of a document that is an array of them.
pub(in super::super) fn objects<'a>(text: &'a str, name: &str) -> Result<Vec<&'a str>> {
    scan::check_escapes(text)?;
    match scan::kind(text) {
        DocumentKind::Array => {}
        // PostgreSQL notices while it reads a `json`, and before it reads a `jsonb`.
        DocumentKind::Object if !name.starts_with("jsonb") => {
            return Err(invalid(format!("cannot call {name} on an object")));
        }
        _ if !name.starts_with("jsonb") => return Err(invalid(format!("cannot call {name} on a scalar"))),
        _ => return Err(invalid(format!("cannot call {name} on a non-array"))),
    }
    let elements = scan::elements(text)?;
    match elements.iter().all(|e| scan::kind(e) == DocumentKind::Object) {
        true => Ok(elements),
        false => Err(invalid(format!("argument of {name} must be an array of objects"))),
    }
}

/// `json object(document)`: the document itself if it is an object, or an error.
pub(super) fn json_object_only(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    check_object(text_of(args, 0)?)?;
    Ok(args[0].clone())
}

/// Sets of documents that the binder reads rows from.
#[rustfmt::skip]
pub(in super::super) static SET_FUNCTIONS: &[SetFunction] = &[
    set(9580, "json row", &[JSON, TEXT], &[("", JSON)], row).lax(),
    set(9581, "json rows", &[JSON, TEXT], &[("", JSON)], rows),
];

/// One row: the document, which must be an object, or NULL.
fn row(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    if let Some(Datum::Text(text)) = args.first() {
        check_object(text)?;
    }
    let row = vec![args.first().cloned().unwrap_or_default()];
    Ok(Box::new(std::iter::once(Ok(row))))
}

/// The objects of an array; the second argument is the name of the function, for errors.
fn rows(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let rows: Vec<Datum> = objects(text_of(args, 0)?, text_of(args, 1)?)?.into_iter().map(Datum::from).collect();
    Ok(Box::new(rows.into_iter().map(|row| Ok(vec![row]))))
}
