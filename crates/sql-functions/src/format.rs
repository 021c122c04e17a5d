//! `format()` and the pictures of numbers (`to_char`, `to_number`).

mod arguments;
mod parse;
mod picture;

use base::Result;
use types::Datum;
use types::oid::*;

use super::entry::{mismatch, stable, text_of};
use super::{EvalContext, Function};

/// The table.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    stable(3539, "format", &[TEXT, ANY], TEXT, arguments::format).lax().repeating().told_types(),
    stable(3540, "format", &[TEXT], TEXT, arguments::format).lax().told_types(),
    stable(1772, "to_char", &[NUMERIC, TEXT], TEXT, to_char),
    stable(1773, "to_char", &[INT4, TEXT], TEXT, to_char),
    stable(1774, "to_char", &[INT8, TEXT], TEXT, to_char),
    stable(1775, "to_char", &[FLOAT4, TEXT], TEXT, to_char),
    stable(1776, "to_char", &[FLOAT8, TEXT], TEXT, to_char),
    stable(1777, "to_number", &[TEXT, TEXT], NUMERIC, to_number),
];

fn to_char(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let format = text_of(args, 1)?;
    let text = match &args[0] {
        Datum::Numeric(n) => picture::decimal(n, format)?,
        Datum::Int4(n) => picture::whole(i64::from(*n), true, format)?,
        Datum::Int8(n) => picture::whole(*n, false, format)?,
        Datum::Float4(n) => picture::float(f64::from(*n), 6, format)?,
        Datum::Float8(n) => picture::float(*n, 15, format)?,
        _ => return Err(mismatch("to_char")),
    };
    Ok(Datum::from(text))
}

fn to_number(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    parse::to_number(text_of(args, 0)?, text_of(args, 1)?)
}
