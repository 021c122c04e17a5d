//! `json_object` and `jsonb_object`: documents made of text arrays.

use base::{Error, Result, SqlState};
use types::room::Room as _;
use types::{Array, Datum, json};

use super::super::EvalContext;
use super::super::entry::mismatch;

#[cold]
fn dimension_error(message: &str) -> Error {
    Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

fn write_pair(key: &Datum, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let Datum::Text(key) = key else {
        return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key"));
    };
    out.make_room(json::string_len(key) + 16)?;
    if out.len() > 1 {
        out.extend_from_slice(b", ");
    }
    json::write_string(key, out);
    out.extend_from_slice(b" : ");
    match value {
        Datum::Text(value) => {
            out.make_room(json::string_len(value))?;
            json::write_string(value, out);
        }
        _ => out.extend_from_slice(b"null"),
    }
    Ok(())
}

fn of_pairs(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    match array.dims[..] {
        [] => {}
        [(length, _)] if length % 2 != 0 => return Err(dimension_error("array must have even number of elements")),
        [_] => {}
        [_, (2, _)] => {}
        [_, _] => return Err(dimension_error("array must have two columns")),
        _ => return Err(dimension_error("wrong number of array subscripts")),
    }
    for pair in array.values.chunks_exact(2) {
        write_pair(&pair[0], &pair[1], out)?;
    }
    Ok(())
}

fn of_two(keys: &Array, values: &Array, out: &mut Vec<u8>) -> Result<()> {
    if keys.dims.len() > 1 || keys.dims.len() != values.dims.len() {
        return Err(dimension_error("wrong number of array subscripts"));
    }
    if keys.values.len() != values.values.len() {
        return Err(dimension_error("mismatched array dimensions"));
    }
    keys.values.iter().zip(&values.values).try_for_each(|(key, value)| write_pair(key, value, out))
}

fn document(args: &[Datum]) -> Result<String> {
    let mut out = vec![b'{'];
    match args {
        [Datum::Array(pairs)] => of_pairs(pairs, &mut out)?,
        [Datum::Array(keys), Datum::Array(values)] => of_two(keys, values, &mut out)?,
        _ => return Err(mismatch("json_object")),
    }
    out.push(b'}');
    Ok(types::written(out))
}

pub(super) fn json_object(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    document(args).map(Datum::from)
}

pub(super) fn jsonb_object(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    json::normal_form(&document(args)?).map(Datum::from)
}
