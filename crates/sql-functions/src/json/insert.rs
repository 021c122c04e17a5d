//! `jsonb_insert`, `jsonb_set_lax`, and the assignment to a subscripted `jsonb`.

use base::{Error, Result, SqlState};
use types::Datum;
use types::json::{Value, parse};

use super::super::EvalContext;
use super::super::entry::{mismatch, text_of};
use super::change::{datum, index, path, position};
use super::invalid;

#[cold]
fn already_there() -> Error {
    invalid("cannot replace existing key").hint("Try using the function jsonb_set to replace key value.")
}

/// Puts a new value where the path points to; nothing may be replaced.
fn insert_at(at: &mut Value, path: &[&str], number: usize, new: &Value, after: bool) -> Result<()> {
    let [step, rest @ ..] = path else { return Ok(()) };
    match at {
        Value::Object(fields) => match fields.iter_mut().find(|(key, _)| key == step) {
            Some((_, value)) if !rest.is_empty() => insert_at(value, rest, number + 1, new, after)?,
            Some(_) => return Err(already_there()),
            None if rest.is_empty() => fields.push((step.to_string(), new.clone())),
            None => {}
        },
        Value::Array(elements) => {
            let wanted = index(step, number)?;
            match position(elements.len(), wanted) {
                Some(i) if !rest.is_empty() => insert_at(&mut elements[i], rest, number + 1, new, after)?,
                Some(i) => elements.insert(i + after as usize, new.clone()),
                None if rest.is_empty() => {
                    elements.insert(if wanted < 0 { 0 } else { elements.len() }, new.clone());
                }
                None => {}
            }
        }
        _ => {}
    }
    Ok(())
}

/// `jsonb_insert(target, path, new, after)`
pub(super) fn insert(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let mut document = parse(text_of(args, 0)?)?;
    let path = path(args.get(1))?;
    if !matches!(document, Value::Object(_) | Value::Array(_)) {
        return Err(invalid("cannot set path in scalar"));
    }
    let new = parse(text_of(args, 2)?)?;
    let after = matches!(args.get(3), Some(Datum::Bool(true)));
    insert_at(&mut document, &path, 1, &new, after)?;
    datum(&document)
}

/// `jsonb_set_lax(target, path, new, create, treatment of NULL)`
pub(super) fn set_lax(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (target, steps, new, create) = match args {
        [target, steps, new, create, ..] => (target, steps, new, create),
        _ => return Err(mismatch("jsonb_set_lax")),
    };
    if target.is_null() || steps.is_null() || create.is_null() {
        return Ok(Datum::Null);
    }
    let unknown = || {
        invalid(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )
    };
    let treatment = match args.get(4) {
        None => "use_json_null",
        Some(Datum::Text(treatment)) => treatment,
        Some(_) => return Err(unknown()),
    };
    if !new.is_null() {
        return super::change::set(cx, &args[..4]);
    }
    match treatment {
        "raise_exception" => Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, "JSON value must not be null")
            .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
            .hint(
                "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
            )),
        "use_json_null" => {
            super::change::set(cx, &[target.clone(), steps.clone(), Datum::text("null"), create.clone()])
        }
        "delete_key" => super::change::delete_path(cx, &[target.clone(), steps.clone()]),
        "return_target" => Ok(target.clone()),
        _ => Err(unknown()),
    }
}

/// What a path that leads beyond a document makes: lists for numbers, objects for names.
fn made(path: &[&str], new: &Value) -> Value {
    let [step, rest @ ..] = path else { return new.clone() };
    let inner = made(rest, new);
    match step.trim_start().parse::<i32>() {
        Ok(at) => {
            let mut elements = vec![Value::Null; usize::try_from(at).unwrap_or(0)];
            elements.push(inner);
            Value::Array(elements)
        }
        Err(_) => Value::Object(vec![(step.to_string(), inner)]),
    }
}

/// Gaps that an assignment may fill at most.
const GAP_MAX: i64 = 1 << 26;

/// Assigns to a part of a document: what is missing on the way is made.
fn assign_at(at: &mut Value, path: &[&str], number: usize, new: &Value) -> Result<()> {
    let [step, rest @ ..] = path else {
        *at = new.clone();
        return Ok(());
    };
    match at {
        Value::Object(fields) => match fields.iter_mut().find(|(key, _)| key == step) {
            Some((_, value)) => assign_at(value, rest, number + 1, new),
            None => {
                fields.push((step.to_string(), made(rest, new)));
                Ok(())
            }
        },
        Value::Array(elements) => {
            let wanted = index(step, number)?;
            if let Some(i) = position(elements.len(), wanted) {
                return assign_at(&mut elements[i], rest, number + 1, new);
            }
            if wanted < 0 {
                let message = format!("path element at position {number} is out of range: {wanted}");
                return Err(invalid(message));
            }
            if i64::from(wanted) > GAP_MAX {
                let message = format!("number of jsonb array elements exceeds the maximum allowed ({GAP_MAX})");
                return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
            }
            elements.resize(wanted as usize, Value::Null);
            elements.push(made(rest, new));
            Ok(())
        }
        _ => Err(invalid("cannot replace existing key")
            .detail("The path assumes key is a composite object, but it is a scalar value.")),
    }
}

/// `column[step]… = new`: the column's value, the steps, the new value.
pub(super) fn assign(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [old, Datum::Array(steps), new] = args else { return Err(mismatch("jsonb subscript")) };
    let mut path = Vec::with_capacity(steps.values.len());
    for step in &steps.values {
        match step {
            Datum::Text(step) => path.push(&**step),
            _ => {
                let message = "jsonb subscript in assignment must not be null";
                return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
            }
        }
    }
    let new = match new {
        Datum::Text(text) => parse(text)?,
        _ => Value::Null,
    };
    let mut document = match old {
        Datum::Text(text) => parse(text)?,
        // The first step decides what is made of nothing; steps that look like numbers are numbers here.
        _ => match path.first().is_some_and(|step| step.parse::<i32>().is_ok()) {
            true => Value::Array(Vec::new()),
            false => Value::Object(Vec::new()),
        },
    };
    assign_at(&mut document, &path, 1, &new)?;
    datum(&document)
}
