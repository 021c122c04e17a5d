//! Calls whose arguments are large: what they will need is asked for before they are made.
//!
//! Responsible for: the one way functions are called ([`call`]; [`test_texts`] and [`change_text`] for texts that are lent), what a
//! call needs for arguments of so many bytes.
//! Not responsible for: functions whose result does not follow from the size of their arguments (`repeat`, `lpad`, `format`,
//! aggregates): they ask themselves (`types::room`).
//! Invariant: no function is called with large arguments, and none answers a value beyond 1 GB, that was not asked for.

use std::borrow::Cow;

use base::{Result, watch, work};
use types::{Datum, room};

use super::{EvalContext, Function, TextChange, TextTest};

/// Bytes of a value, of an array or record without what its elements hold beside themselves.
#[inline]
pub fn weight(value: &Datum) -> usize {
    match value {
        Datum::Text(text) => text.len(),
        Datum::Bytea(bytes) | Datum::Bits(bytes) => bytes.len(),
        Datum::Array(array) => array.values.len() * size_of::<Datum>(),
        Datum::Record(fields) => fields.len() * size_of::<Datum>(),
        _ => 0,
    }
}

/// Calls a function; the rule for NULLs is the caller's.
///
/// # Errors
/// Those of the function; 53200 without memory for the call, 54000 for a value that is too long.
#[inline]
pub fn call(function: &Function, cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    if function.is_light {
        return (function.eval)(cx, args);
    }
    let bytes: usize = args.iter().map(weight).sum();
    if bytes >= room::LARGE {
        ask(function, bytes)?;
    }
    let value = (function.eval)(cx, args)?;
    if weight(&value) > room::VALUE_MAX {
        return Err(room::too_long());
    }
    Ok(value)
}

/// Tests two texts that are lent, neither of them NULL, by a function's [`Function::on_texts`].
///
/// # Errors
/// Those of the function; 53200 without memory for the call.
#[inline]
pub fn test_texts(function: &Function, test: TextTest, a: &str, b: &str) -> Result<bool> {
    let bytes = a.len() + b.len();
    watch::calls(function.oid);
    work::step(4 + (bytes / 8).min(work::QUANTUM as usize / 2))?;
    if bytes >= room::LARGE {
        ask(function, bytes)?;
    }
    test(a, b)
}

/// Makes a text of one that is lent, by a function's [`Function::on_text`].
///
/// # Errors
/// 53200 without memory for the call, 54000 for a text that is too long.
#[inline]
pub fn change_text<'t>(function: &Function, change: TextChange, text: &'t str) -> Result<Cow<'t, str>> {
    watch::calls(function.oid);
    work::step(4 + (text.len() / 8).min(work::QUANTUM as usize / 2))?;
    if text.len() >= room::LARGE {
        ask(function, text.len())?;
    }
    let made = change(text);
    if made.len() > room::VALUE_MAX {
        return Err(room::too_long());
    }
    Ok(made)
}

#[cold]
#[inline(never)]
fn ask(function: &Function, bytes: usize) -> Result<()> {
    room::ask(bytes.saturating_mul(growth(function.name)))
}

/// How many times the size of its arguments a call may need: what it answers, as it is built and as it is handed over, and what
/// it keeps meanwhile.
fn growth(name: &str) -> usize {
    match name {
        // Looked at where they lie.
        "length" | "char_length" | "character_length" | "octet_length" | "bit_length" | "textlen" | "cardinality"
        | "array_length" | "array_ndims" | "array_lower" | "array_upper" | "starts_with" | "strpos" | "position"
        | "get_byte" | "get_bit" | "bit_count" | "ascii" | "pg_typeof" | "num_nulls" | "num_nonnulls"
        | "pg_column_size" => 0,
        "encode" | "quote_literal" | "quote_nullable" | "to_json" | "json_build_array" | "json_build_object" => 8,
        "normalize" | "to_char" | "to_date" | "to_timestamp" | "to_number" => 24,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_arguments_weigh() {
        assert_eq!(weight(&Datum::text("abc")), 3);
        assert_eq!(weight(&Datum::Int8(7)), 0);
        assert_eq!(growth("cardinality"), 0);
        assert_eq!(growth("upper"), 4);
    }
}
