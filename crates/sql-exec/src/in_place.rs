//! Conditions that are evaluated where a row lies, before any of its columns is copied into the registers.
//!
//! Responsible for: the truth of what [`sql_plan::Stage::InPlace`] stands for.
//! Not responsible for: which conditions these are (`sql_plan`); tests that the engine calls within a scan ([`super::stored_test`]), which
//! cannot fail.
//! Invariant: a condition is evaluated as [`Code::truth`] would, with the same errors.

use std::borrow::Cow;

use base::work;
use base::{Error, Result};
use sql_functions::{change_text, test_texts};
use sql_ir::expr::Code;
use sql_ir::row_codec::StoredRow;
use types::{Datum, DatumRef};

use super::Cx;

/// The value as a condition, of a row that is not in the registers: `None` is NULL.
#[inline(never)]
pub(super) fn truth(
    condition: &Code,
    row: &StoredRow<'_>,
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
) -> Result<Option<bool>> {
    match condition {
        Code::And(args) => each(args, false, row, cx, registers),
        Code::Or(args) => each(args, true, row, cx, registers),
        Code::Not(arg) => Ok(truth(arg, row, cx, registers)?.map(|holds| !holds)),
        Code::Compare(test, args) if let (Some(left), Some(right)) = (lent(&args[0], row), lent(&args[1], row)) => {
            let left = left.unwrap_or_else(|slot| registers[slot].as_ref());
            let right = right.unwrap_or_else(|slot| registers[slot].as_ref());
            Ok(test.test_both_stored(&left, &right))
        }
        Code::IsNull(arg, negated) if let Some(Ok(value)) = lent(arg, row) => {
            Ok(Some(matches!(value, DatumRef::Null) != *negated))
        }
        Code::Call { function, args } if let Some(test) = function.on_texts => {
            let Some(left) = text(&args[0], row, cx, registers)? else { return Ok(None) };
            let Some(right) = text(&args[1], row, cx, registers)? else { return Ok(None) };
            test_texts(function, test, &left, &right).map(Some)
        }
        condition => condition.truth(cx, registers),
    }
}

/// OR, if one that is true decides, otherwise AND.
fn each(
    conditions: &[Code],
    decides: bool,
    row: &StoredRow<'_>,
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
) -> Result<Option<bool>> {
    work::step(conditions.len())?;
    let mut result = Some(!decides);
    for condition in conditions {
        match truth(condition, row, cx, registers)? {
            Some(holds) if holds == decides => return Ok(Some(decides)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// A value that lies in the row, or is a constant; otherwise where it is in the registers, if it is there.
fn lent<'r>(code: &'r Code, row: &StoredRow<'r>) -> Option<std::result::Result<DatumRef<'r>, usize>> {
    match code {
        Code::Slot(slot) => Some(row.find(*slot).map(|column| row.get(column)).ok_or(*slot as usize)),
        Code::Const(value) => Some(Ok(value.as_ref())),
        _ => None,
    }
}

/// A text, lent where that is possible; `None` is NULL.
fn text<'t>(
    code: &'t Code,
    row: &StoredRow<'t>,
    cx: &mut Cx<'_, '_>,
    registers: &'t [Datum],
) -> Result<Option<Cow<'t, str>>> {
    if let Some(value) = lent(code, row) {
        return match value.unwrap_or_else(|slot| registers[slot].as_ref()) {
            DatumRef::Text(text) => Ok(Some(Cow::Borrowed(text))),
            DatumRef::Null => Ok(None),
            _ => Err(no_text()),
        };
    }
    if let Code::Call { function, args } = code
        && let Some(change) = function.on_text
    {
        return Ok(match text(&args[0], row, cx, registers)? {
            Some(Cow::Borrowed(text)) => Some(change_text(function, change, text)?),
            Some(Cow::Owned(text)) => Some(Cow::Owned(change_text(function, change, &text)?.into_owned())),
            None => None,
        });
    }
    match code.eval(cx, registers)? {
        Datum::Text(text) => Ok(Some(Cow::Owned(text.to_string()))),
        Datum::Null => Ok(None),
        _ => Err(no_text()),
    }
}

#[cold]
fn no_text() -> Error {
    Error::internal("a test of texts was called with other values")
}
