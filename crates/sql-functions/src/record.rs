//! Fields of records and bytes of names.

use base::Result;
use types::oid::{ANYELEMENT, BOOL, CHAR, INT4, INT8, NAME, RECORD, RECORD_ARRAY};
use types::{Array, Datum, Record};

use super::entry::{immutable, int_of, mismatch};
use super::{EvalContext, Function};

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(9595, "record field", &[RECORD, INT4], ANYELEMENT, record_field),
    immutable(9711, "record appended", &[RECORD_ARRAY, RECORD], RECORD_ARRAY, record_appended),
    immutable(9712, "record among", &[RECORD, RECORD_ARRAY], BOOL, record_among),
    immutable(9713, "record deeper", &[RECORD, RECORD], RECORD, record_deeper),
    immutable(9596, "name byte", &[NAME, INT4], CHAR, name_byte),
];

/// The field at a place, counted from 0. The binder knows its type.
fn record_field(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let Some(Datum::Record(values)) = args.first() else { return Err(mismatch("record field")) };
    let at = usize::try_from(int_of(args, 1)?).map_err(|_| mismatch("record field"))?;
    values.get(at).cloned().ok_or_else(|| mismatch("record field"))
}

/// A list of records and one more.
fn record_appended(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Array(list), record] = args else { return Err(mismatch("record appended")) };
    let mut values = list.values.clone();
    values.push(record.clone());
    let dims = vec![(values.len() as i32, 1)];
    Ok(Datum::Array(Array { element: RECORD, dims, values }.into()))
}

/// Whether a record is in a list. NULLs in it are equal to each other.
fn record_among(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [record, Datum::Array(list)] = args else { return Err(mismatch("record among")) };
    let found = list.values.iter().any(|other| types::compare(&record.as_ref(), &other.as_ref()).is_eq());
    Ok(Datum::Bool(found))
}

/// The fields of the second record behind a number, one more than the first record has there.
fn record_deeper(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Record(before), Datum::Record(fields)] = args else { return Err(mismatch("record deeper")) };
    let Some(Datum::Int8(depth)) = before.first() else { return Err(mismatch("record deeper")) };
    let types = std::iter::once(INT8).chain(fields.types.iter().copied()).collect();
    let fields = std::iter::once(Datum::Int8(depth + 1)).chain(fields.iter().cloned()).collect();
    Ok(Datum::Record(Record::new(types, fields).into()))
}

/// A byte of a name, counted from 0: a name is an array of 64 of them. Bytes beyond ASCII cannot be shown.
fn name_byte(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let text = super::entry::text_of(args, 0)?;
    let byte = usize::try_from(int_of(args, 1)?).ok().filter(|&at| at < 64).map(|at| text.as_bytes().get(at).copied());
    Ok(match byte {
        None => Datum::Null,
        Some(None) => Datum::text(""),
        Some(Some(byte)) if byte.is_ascii() => Datum::from(char::from(byte).to_string()),
        Some(Some(byte)) => Datum::from(format!("\\{byte:o}")),
    })
}
