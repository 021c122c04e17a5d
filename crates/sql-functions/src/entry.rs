//! How the tables of functions are written: constructors that name only what differs from the usual.
//!
//! Invariant: an entry is strict, takes a fixed number of arguments, has no defaults and may leak its arguments unless it says
//! otherwise.

use base::{Error, Oid, Result};
use types::oid::*;
use types::{Array, Datum};

use super::{Accumulator, Aggregate, Function, ScalarFn, SetFn, SetFunction, TextChange, TextTest, Volatility};

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
        names: &[],
        defaults: &[],
        ret,
        strict: true,
        volatility,
        wants_types: false,
        leakproof: false,
        in_words: false,
        is_light: are_small(args, ret),
        draws: false,
        spells: false,
        on_texts: None,
        on_text: None,
        eval,
    }
}

/// An immutable function.
pub const fn immutable(oid: u32, name: &'static str, args: &'static [Oid], ret: Oid, eval: ScalarFn) -> Function {
    scalar(oid, name, args, ret, Volatility::Immutable, eval)
}

/// A stable function.
pub const fn stable(oid: u32, name: &'static str, args: &'static [Oid], ret: Oid, eval: ScalarFn) -> Function {
    scalar(oid, name, args, ret, Volatility::Stable, eval)
}

/// A volatile function.
pub const fn volatile(oid: u32, name: &'static str, args: &'static [Oid], ret: Oid, eval: ScalarFn) -> Function {
    scalar(oid, name, args, ret, Volatility::Volatile, eval)
}

impl Function {
    /// The function sees NULL arguments.
    pub const fn lax(mut self) -> Function {
        self.strict = false;
        self
    }

    /// The function tells nothing of its arguments but by its result: it has no error that depends on them. Conditions of such
    /// functions may be tested on rows that a view hides (`sql_plan::leak`).
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

    /// The function is this test of two texts.
    pub(crate) const fn on_texts(mut self, test: TextTest) -> Function {
        self.on_texts = Some(test);
        self
    }

    /// The function makes this of a text.
    pub(crate) const fn on_text(mut self, change: TextChange) -> Function {
        self.on_text = Some(change);
        self
    }

    /// The arguments have names.
    pub(crate) const fn named(mut self, names: &'static [&'static str]) -> Function {
        self.names = names;
        self
    }

    /// A call tells the function of which types its arguments are.
    pub(crate) const fn told_types(mut self) -> Function {
        self.wants_types = true;
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
    SetFunction { oid, name, args, names: &[], defaults: &[], variadic: false, columns, strict: true, eval }
}

impl SetFunction {
    /// The arguments have names.
    pub(crate) const fn named(mut self, names: &'static [&'static str]) -> SetFunction {
        self.names = names;
        self
    }

    /// The last arguments may be left out of a call that names arguments.
    pub(crate) const fn or(mut self, defaults: &'static [Datum]) -> SetFunction {
        self.defaults = defaults;
        self
    }

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
    Aggregate { oid, name, args, ret, strict: true, ordered_set: false, shows_order: false, average_of: None, create }
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

    /// The result shows the rows one by one, NULL arguments too.
    pub(crate) const fn listing(mut self) -> Aggregate {
        self.strict = false;
        self.shows_order = true;
        self
    }
}

/// The error of a function that was called with values its entry does not allow.
#[cold]
pub fn mismatch(name: &str) -> Error {
    Error::internal(format!("{name}: arguments do not match the function's types"))
}

/// The error of a function that is called with values of other types than it declares: the binder made a mistake.
#[cold]
#[inline(never)]
pub(crate) fn mismatched(args: &[Datum]) -> Result<Datum> {
    Err(Error::internal(format!("a function was called with values of the wrong types: {args:?}")))
}

/// The text of an argument.
pub fn text_of(args: &[Datum], i: usize) -> Result<&str> {
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
pub fn oid_of(args: &[Datum], i: usize) -> Result<Oid> {
    match args.get(i) {
        Some(Datum::Oid(n)) => Ok(Oid(*n)),
        _ => Err(mismatch("oid argument")),
    }
}

/// The types a call passed (see [`Function::wants_types`]), and the arguments proper.
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
