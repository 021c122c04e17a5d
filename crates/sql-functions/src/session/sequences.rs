//! Sequences.

use base::{Error, Oid, Result, SqlState};
use engine_api::Catalog;
use types::Datum;

use super::super::EvalContext;
use super::super::entry::{mismatch, oid_of};

/// The sequence that the first argument is.
fn sequence(cx: &dyn EvalContext, args: &[Datum]) -> Result<Oid> {
    let oid = oid_of(args, 0)?;
    let catalog = cx.catalog();
    if catalog.sequence(oid).is_some() {
        return Ok(oid);
    }
    Err(no_sequence(&catalog, oid))
}

/// Why there is no sequence of this OID.
#[cold]
pub fn no_sequence(catalog: &Catalog, oid: Oid) -> Error {
    match catalog.get(oid) {
        Some(other) => Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not a sequence", other.name())),
        None => Error::new(SqlState::UNDEFINED_TABLE, format!("could not open relation with OID {oid}")),
    }
}

pub(super) fn nextval(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    cx.next_value(oid_of(args, 0)?).map(Datum::Int8)
}

pub(super) fn next_identity(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    cx.next_identity(oid_of(args, 0)?).map(Datum::Int8)
}

pub(super) fn currval(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    cx.current_value(sequence(cx, args)?).map(Datum::Int8)
}

pub(super) fn setval(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (value, is_called) = match args {
        [_, Datum::Int8(value)] => (*value, true),
        [_, Datum::Int8(value), Datum::Bool(is_called)] => (*value, *is_called),
        _ => return Err(mismatch("setval")),
    };
    cx.set_value(sequence(cx, args)?, value, is_called)?;
    Ok(Datum::Int8(value))
}

pub(super) fn lastval(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    cx.last_value().map(Datum::Int8)
}

pub(super) fn sequence_last_value(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let sequence = sequence(cx, args)?;
    cx.may_see_sequence(sequence)?;
    let (value, is_called) = cx.sequence_state(sequence)?;
    Ok(if is_called { Datum::Int8(value) } else { Datum::Null })
}
