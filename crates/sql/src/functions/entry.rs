//! How the tables of functions are written: constructors that name only what differs from the usual.
//!
//! Invariant: an entry is strict, takes a fixed number of arguments, has no defaults and may leak its arguments unless it says
//! otherwise.

use base::{Error, Oid, Result};
use types::oid::*;
use types::{Array, Datum};

use super::{Accumulator, Aggregate, Function, ScalarFn, SetFn, SetFunction, Volatility};

/// Whether each value of a type is a few bytes.
const fn is_small(ty: Oid) -> bool {
    const SMALL: [Oid; 14] =
        [BOOL, CHAR, INT2, INT4, INT8, OID, FLOAT4, FLOAT8, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, REGCLASS];
    let mut at = 0;
    while at < SMALL.len() {
        if SMALL[at].0 == ty.0 {
            return true;
        }
        at += 1;
    }
    false
}

const fn are_small(args: &[Oid], ret: Oid) -> bool {
    let mut at = 0;
    while at < args.len() {
        if !is_small(args[at]) {
            return false;
        }
        at += 1;
    }
    is_small(ret)
}

const fn scalar(
    oid: u32,
    name: &'static str,
    args: &'static [Oid],
    ret: Oid,
    volatility: Volatility,
    eval: ScalarFn,
) -> Function {
    Function {
        oid,
        name,
        args,
        variadic: false,
        defaults: &[],
        ret,
        strict: true,
        volatility,
        leakproof: false,
        in_words: false,
        is_light: are_small(args, ret),
        draws: false,
        spells: false,
        eval,
    }
}

/// An immutable function.
pub(crate) const fn immutable(
    oid: u32,
    name: &'static str,
    args: &'static [Oid],
    ret: Oid,
    eval: ScalarFn,
) -> Function {
    scalar(oid, name, args, ret, Volatility::Immutable, eval)
}

/// A stable function.
pub(crate) const fn stable(oid: u32, name: &'static str, args: &'static [Oid], ret: Oid, eval: ScalarFn) -> Function {
    scalar(oid, name, args, ret, Volatility::Stable, eval)
}

/// A volatile function.
pub(crate) const fn volatile(oid: u32, name: &'static str, args: &'static [Oid], ret: Oid, eval: ScalarFn) -> Function {
    scalar(oid, name, args, ret, Volatility::Volatile, eval)
}

impl Function {
    /// The function sees NULL arguments.
    pub(crate) const fn lax(mut self) -> Function {
        self.strict = false;
        self
    }

    /// The function tells nothing of its arguments but by its result: it has no error that depends on them. Conditions of such
    /// functions may be tested on rows that a view hides (`plan::leak`).
    pub(crate) const fn leakproof(mut self) -> Function {
        self.leakproof = true;
        self
    }

    /// The function takes from the sequence that its first argument names, or sets it.
    pub(crate) const fn drawing(mut self) -> Function {
        self.draws = true;
        self
    }

    /// The function writes values of any type without being told of which they are.
    pub(crate) const fn spelling(mut self) -> Function {
        self.spells = true;
        self
    }

    /// The last argument repeats.
    pub(crate) const fn repeating(mut self) -> Function {
        self.variadic = true;
        self
    }

    /// The last arguments may be left out.
    pub(crate) const fn or(mut self, defaults: &'static [Datum]) -> Function {
        self.defaults = defaults;
        self
    }
}

/// A strict set-returning function.
pub(crate) const fn set(
    oid: u32,
    name: &'static str,
    args: &'static [Oid],
    columns: &'static [(&'static str, Oid)],
    eval: SetFn,
) -> SetFunction {
    SetFunction { oid, name, args, variadic: false, columns, strict: true, eval }
}

impl SetFunction {
    /// The function sees NULL arguments.
    pub(crate) const fn lax(mut self) -> SetFunction {
        self.strict = false;
        self
    }
}

/// An aggregate that skips rows with NULL arguments.
pub(crate) const fn agg(
    oid: u32,
    name: &'static str,
    args: &'static [Oid],
    ret: Oid,
    create: fn(&[Oid]) -> Box<dyn Accumulator>,
) -> Aggregate {
    Aggregate { oid, name, args, ret, strict: true, ordered_set: false, average_of: None, create }
}

impl Aggregate {
    /// The aggregate sorts its last arguments (WITHIN GROUP), and sees NULLs.
    pub(crate) const fn sorting(mut self) -> Aggregate {
        self.ordered_set = true;
        self.strict = false;
        self
    }

    /// The aggregate is the average of what the aggregate with this OID sums.
    pub(crate) const fn average_of(mut self, sum: u32) -> Aggregate {
        self.average_of = Some(sum);
        self
    }

    /// The aggregate sees NULL arguments.
    pub(crate) const fn lax(mut self) -> Aggregate {
        self.strict = false;
        self
    }
}

/// The error of a function that was called with values its entry does not allow.
#[cold]
pub(crate) fn mismatch(name: &str) -> Error {
    Error::internal(format!("{name}: arguments do not match the function's types"))
}

/// The error of a function that is called with values of other types than it declares: the binder made a mistake.
#[cold]
#[inline(never)]
pub(crate) fn mismatched(args: &[Datum]) -> Result<Datum> {
    Err(Error::internal(format!("a function was called with values of the wrong types: {args:?}")))
}

/// The text of an argument.
pub(crate) fn text_of(args: &[Datum], i: usize) -> Result<&str> {
    match args.get(i) {
        Some(Datum::Text(s)) => Ok(s),
        _ => Err(mismatch("text argument")),
    }
}

/// The integer of an argument.
pub(crate) fn int_of(args: &[Datum], i: usize) -> Result<i32> {
    match args.get(i) {
        Some(Datum::Int4(n)) => Ok(*n),
        _ => Err(mismatch("integer argument")),
    }
}

/// The OID of an argument.
pub(crate) fn oid_of(args: &[Datum], i: usize) -> Result<Oid> {
    match args.get(i) {
        Some(Datum::Oid(n)) => Ok(Oid(*n)),
        _ => Err(mismatch("oid argument")),
    }
}

/// Whether a call passes, before the arguments that are written, one more: the `oid[]` of their types. Functions of
/// any type need it, since a value does not tell `text` from `json` or `varchar`, nor `oid` from `regclass`.
pub fn wants_types(function: &Function) -> bool {
    matches!(
        function.name,
        "pg_typeof"
            | "to_json"
            | "to_jsonb"
            | "json_build_object"
            | "json_build_array"
            | "jsonb_build_object"
            | "jsonb_build_array"
            | "format"
            | "enum_first"
            | "enum_last"
            | "enum_range"
    )
}

/// Names of a function's arguments, for `f(name => value)`; empty if they have none.
pub fn argument_names(function: &Function) -> &'static [&'static str] {
    argument_names_of(function.oid)
}

/// As [`argument_names`], of any function.
pub fn argument_names_of(oid: u32) -> &'static [&'static str] {
    match oid {
        3464 => &["years", "months", "weeks", "days", "hours", "mins", "secs"],
        3846 => &["year", "month", "day"],
        3847 => &["hour", "min", "sec"],
        3461 => &["year", "month", "mday", "hour", "min", "sec"],
        3462 => &["year", "month", "mday", "hour", "min", "sec"],
        3463 => &["year", "month", "mday", "hour", "min", "sec", "timezone"],
        3305 => &["jsonb_in", "path", "replacement", "create_if_missing"],
        3579 => &["jsonb_in", "path", "replacement", "insert_after"],
        4005..=4009 | 9564..=9578 | 1177 | 1179 | 1180 | 2023 | 2030 => &["target", "path", "vars", "silent"],
        5054 | 9579 => &["jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"],
        1268 => &["str", "strict"],
        15_008 | 15_010 => &["namespace", "name"],
        _ => &[],
    }
}

/// What stands for the last arguments of a function that returns a set, if they are left out of a call that names arguments.
pub fn set_defaults(oid: u32) -> &'static [Datum] {
    match oid {
        4006 | 1179 => super::json::PATH_DEFAULTS,
        _ => &[],
    }
}

/// The types a call passed (see [`wants_types`]), and the arguments proper.
pub(crate) fn argument_types(args: &[Datum]) -> (Option<&Array>, &[Datum]) {
    match args {
        [Datum::Array(types), rest @ ..] if types.element == OID && types.values.len() == rest.len() => {
            (Some(types), rest)
        }
        _ => (None, args),
    }
}

/// The type of a value whose variant belongs to one type only.
pub(crate) fn natural_type(value: &Datum) -> Option<Oid> {
    match value {
        Datum::Null | Datum::Text(_) | Datum::Oid(_) => None,
        value => Some(types::type_of(value)),
    }
}
