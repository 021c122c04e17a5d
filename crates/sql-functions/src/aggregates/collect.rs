//! Aggregates that keep what they are given: strings, arrays, JSON.

use std::sync::Arc;

use base::work;
use base::work::Count;
use base::{Error, Oid, Result, SqlState};
use types::room::{self, Room as _};
use types::{Array, Datum};

use super::super::entry::mismatch;
use super::super::json::write_json;
use super::super::{Accumulator, EvalContext};

struct Strings(Option<String>);

impl Accumulator for Strings {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let Some(Datum::Text(value)) = args.first() else { return Ok(()) };
        match (&mut self.0, args.get(1)) {
            (Some(all), delimiter) => {
                let delimiter = match delimiter {
                    Some(Datum::Text(delimiter)) => &**delimiter,
                    _ => "",
                };
                all.make_room(delimiter.len() + value.len())?;
                all.push_str(delimiter);
                all.push_str(value);
            }
            (none, _) => {
                room::for_value(value.len())?;
                *none = Some(value.to_string());
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        Ok(self.0.as_deref().into())
    }

    fn memory(&self) -> usize {
        64 + self.0.as_ref().map_or(0, String::capacity)
    }
}

pub(super) fn string_agg(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(Strings(None))
}

struct Bytes(Option<Vec<u8>>);

impl Accumulator for Bytes {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let Some(Datum::Bytea(value)) = args.first() else { return Ok(()) };
        match (&mut self.0, args.get(1)) {
            (Some(all), delimiter) => {
                let delimiter = match delimiter {
                    Some(Datum::Bytea(delimiter)) => &**delimiter,
                    _ => &[],
                };
                all.make_room(delimiter.len() + value.len())?;
                all.extend_from_slice(delimiter);
                all.extend_from_slice(value);
            }
            (none, _) => {
                room::for_value(value.len())?;
                *none = Some(value.to_vec());
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        Ok(self.0.as_deref().into())
    }

    fn memory(&self) -> usize {
        64 + self.0.as_ref().map_or(0, Vec::capacity)
    }
}

pub(super) fn bytea_agg(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(Bytes(None))
}

struct Elements {
    element: Oid,
    values: Vec<Datum>,
    held: usize,
}

impl Drop for Elements {
    fn drop(&mut self) {
        work::discard(&mut self.values);
    }
}

impl Accumulator for Elements {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let value = args.first().ok_or_else(|| mismatch("array_agg"))?;
        self.held += super::super::weight(value);
        self.values.make_room(1)?;
        self.values.push(value.clone());
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        if self.values.is_empty() {
            return Ok(Datum::Null);
        }
        room::for_list(self.values.len(), size_of::<Datum>())?;
        let values: Vec<Datum> = self.values.iter().counted(4).cloned().collect();
        let dims = vec![(values.len() as i32, 1)];
        Ok(Datum::Array(Arc::new(Array { element: self.element, dims, values })))
    }

    fn memory(&self) -> usize {
        64 + self.held + self.values.capacity() * size_of::<Datum>()
    }
}

/// Arrays of one shape, stacked into one of one more dimension.
struct Stack {
    dims: Vec<(i32, i32)>,
    element: Oid,
    values: Vec<Datum>,
    count: i32,
}

impl Drop for Stack {
    fn drop(&mut self) {
        work::discard(&mut self.values);
    }
}

impl Accumulator for Stack {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let Some(Datum::Array(array)) = args.first() else {
            return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays"));
        };
        let wrong = |message: &str| Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        if array.dims.is_empty() {
            return wrong("cannot accumulate empty arrays");
        }
        if array.dims.len() >= 6 {
            return Err(Error::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("number of array dimensions ({}) exceeds the maximum allowed (6)", array.dims.len() + 1),
            ));
        }
        if self.count == 0 {
            self.dims = array.dims.clone();
            self.element = array.element;
        } else if !self.dims.iter().map(|d| d.0).eq(array.dims.iter().map(|d| d.0)) {
            return wrong("cannot accumulate arrays of different dimensionality");
        }
        self.count += 1;
        self.values.make_room(array.values.len())?;
        self.values.extend_from_slice(&array.values);
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        room::for_list(self.values.len(), size_of::<Datum>())?;
        let mut dims = vec![(self.count, 1)];
        dims.extend_from_slice(&self.dims);
        Ok(Datum::Array(Arc::new(Array {
            element: self.element,
            dims,
            values: self.values.iter().counted(4).cloned().collect(),
        })))
    }

    fn memory(&self) -> usize {
        64 + self.values.capacity() * size_of::<Datum>()
    }
}

pub(super) fn array_agg(types: &[Oid]) -> Box<dyn Accumulator> {
    let ty = types.first().copied().unwrap_or(types::oid::TEXT);
    match types::type_info(ty) {
        Some(info) if info.is_array() => {
            Box::new(Stack { dims: Vec::new(), element: info.element, values: Vec::new(), count: 0 })
        }
        _ => Box::new(Elements { element: ty, values: Vec::new(), held: 0 }),
    }
}

/// `json_agg` and `json_object_agg`: the text is written as rows come.
struct Json {
    types: Vec<Oid>,
    text: Vec<u8>,
    object: bool,
    /// Answer as `jsonb`.
    binary: bool,
}

impl Json {
    fn add_element(&mut self, cx: &dyn EvalContext, value: &Datum) -> Result<()> {
        let ty = self.types.first().copied().unwrap_or_default();
        if !self.text.is_empty() {
            self.text.extend_from_slice(b", ");
            let structured = matches!(value, Datum::Array(_) | Datum::Record(_)) || ty == types::oid::RECORD;
            if structured && !value.is_null() {
                self.text.extend_from_slice(b"\n ");
            }
        }
        write_json(value, ty, cx, &mut self.text)
    }

    fn add_field(&mut self, cx: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let [key, value] = args else { return Err(mismatch("json_object_agg")) };
        let [key_type, value_type] = self.types[..] else { return Err(mismatch("json_object_agg")) };
        if !self.text.is_empty() {
            self.text.extend_from_slice(b", ");
        }
        super::super::json::write_key(key, key_type, cx, &mut self.text, || {
            Error::new(SqlState::INVALID_PARAMETER_VALUE, "field name must not be null")
        })?;
        self.text.extend_from_slice(b" : ");
        write_json(value, value_type, cx, &mut self.text)
    }
}

impl Accumulator for Json {
    fn add(&mut self, cx: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        // Most of what is written of values is not much longer than they are.
        self.text.make_room(args.iter().map(super::super::weight).sum::<usize>())?;
        if self.object {
            self.add_field(cx, args)?
        } else {
            self.add_element(cx, &args[0])?
        }
        if self.text.len() > room::VALUE_MAX { Err(room::too_long()) } else { Ok(()) }
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        if self.text.is_empty() {
            return Ok(Datum::Null);
        }
        let (open, close) = if self.object { ("{ ", " }") } else { ("[", "]") };
        let length = open.len() + self.text.len() + close.len();
        room::for_value(length)?;
        let mut whole = Vec::with_capacity(length);
        for part in [open.as_bytes(), &self.text, close.as_bytes()] {
            work::append(&mut whole, part);
        }
        let whole = types::written(whole);
        Ok(Datum::from(if self.binary { types::json::normal_form(&whole)? } else { whole }))
    }

    fn memory(&self) -> usize {
        64 + self.text.capacity()
    }
}

fn json(types: &[Oid], object: bool, binary: bool) -> Box<dyn Accumulator> {
    Box::new(Json { types: types.to_vec(), text: Vec::new(), object, binary })
}

pub(super) fn json_agg(types: &[Oid]) -> Box<dyn Accumulator> {
    json(types, false, false)
}

pub(super) fn jsonb_agg(types: &[Oid]) -> Box<dyn Accumulator> {
    json(types, false, true)
}

pub(super) fn json_object_agg(types: &[Oid]) -> Box<dyn Accumulator> {
    json(types, true, false)
}

pub(super) fn jsonb_object_agg(types: &[Oid]) -> Box<dyn Accumulator> {
    json(types, true, true)
}
