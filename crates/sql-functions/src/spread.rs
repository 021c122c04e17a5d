//! Calls with `VARIADIC array` of functions whose last argument may be of any type: the elements become arguments.

use base::Result;
use types::oid::{ANY, INT8};
use types::{Array, Datum};

use super::entry::{mismatch, stable};
use super::{EvalContext, Function, function_by_oid};

/// The table; the binder alone calls what is in it.
pub(super) static FUNCTIONS: &[Function] =
    &[stable(9584, "variadic call", &[INT8, ANY], ANY, spread).lax().repeating()];

/// The function's number, the types of its arguments, and these, of which the last is the array.
fn spread(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Int8(number), Datum::Array(types), fixed @ .., last] = args else { return Err(mismatch("VARIADIC")) };
    let function = u32::try_from(*number).ok().and_then(function_by_oid).ok_or_else(|| mismatch("VARIADIC"))?;
    let (element, values): (_, &[Datum]) = match last {
        Datum::Array(array) => (array.element, &array.values),
        // Of these functions `format` alone does something without arguments.
        _ if function.name == "format" => (base::Oid::INVALID, &[]),
        _ => return Ok(Datum::Null),
    };
    let mut all = Vec::with_capacity(1 + fixed.len() + values.len());
    if function.wants_types {
        let mut oids = types.values[..fixed.len().min(types.values.len())].to_vec();
        oids.resize(fixed.len() + values.len(), Datum::Oid(element.0));
        let dims = if oids.is_empty() { Vec::new() } else { vec![(oids.len() as i32, 1)] };
        all.push(Datum::Array(Array { element: types::oid::OID, dims, values: oids }.into()));
    }
    all.extend_from_slice(fixed);
    all.extend_from_slice(values);
    (function.eval)(cx, &all)
}
