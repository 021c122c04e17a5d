//! Fields of records and bytes of names.

use base::Result;
use types::Datum;
use types::oid::{ANYELEMENT, CHAR, INT4, NAME, RECORD};

use super::entry::{immutable, int_of, mismatch};
use super::{EvalContext, Function};

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(9595, "record field", &[RECORD, INT4], ANYELEMENT, record_field),
    immutable(9596, "name byte", &[NAME, INT4], CHAR, name_byte),
];

/// The field at a place, counted from 0. The binder knows its type.
fn record_field(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let Some(Datum::Record(values)) = args.first() else { return Err(mismatch("record field")) };
    let at = usize::try_from(int_of(args, 1)?).map_err(|_| mismatch("record field"))?;
    values.get(at).cloned().ok_or_else(|| mismatch("record field"))
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
