//! Mathematical functions of floats, NUMERIC and integers.
//!
//! Floats raise PostgreSQL's errors for arguments outside of a function's domain and for results that overflow.

mod angles;
pub(super) mod integers;

use std::cmp::Ordering;

use base::{Error, Result, SqlState};
use types::Datum;
use types::oid::*;

use self::angles::*;
use super::arithmetic::{overflow, underflow};
use super::entry::{immutable, mismatched, volatile};
use super::{EvalContext, Function};

/// A function of one float.
macro_rules! float {
    (|$a:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Float8($a)] => {
                let $a = *$a;
                Ok(Datum::Float8($value))
            }
            _ => mismatched(args),
        }
    };
    (|$a:ident, $b:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Float8($a), Datum::Float8($b)] => {
                let ($a, $b) = (*$a, *$b);
                Ok(Datum::Float8($value))
            }
            _ => mismatched(args),
        }
    };
}

/// A function of one NUMERIC.
macro_rules! number {
    (|$a:ident| $kind:ident($value:expr)) => {
        |_, args| match args {
            [Datum::Numeric($a)] => Ok(Datum::$kind($value)),
            _ => mismatched(args),
        }
    };
    (|$a:ident, $b:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Numeric($a), Datum::Numeric($b)] => Ok(Datum::Numeric($value)),
            _ => mismatched(args),
        }
    };
    (|$a:ident; $b:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Numeric($a), Datum::Int4($b)] => Ok(Datum::Numeric($value)),
            _ => mismatched(args),
        }
    };
}

#[cold]
fn out_of_domain() -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// A result that a finite argument must not make infinite.
fn finite(value: f64, of: f64) -> Result<f64> {
    if value.is_infinite() && of.is_finite() { Err(overflow()) } else { Ok(value) }
}

fn sqrt(a: f64) -> Result<f64> {
    if a < 0.0 {
        let message = "cannot take square root of a negative number";
        return Err(Error::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message));
    }
    Ok(a.sqrt())
}

fn exp(a: f64) -> Result<f64> {
    let value = finite(a.exp(), a)?;
    if value == 0.0 && a.is_finite() { Err(underflow()) } else { Ok(value) }
}

fn logarithm(a: f64, of: fn(f64) -> f64) -> Result<f64> {
    let error =
        |what: &str| Err(Error::new(SqlState::INVALID_ARGUMENT_FOR_LOG, format!("cannot take logarithm of {what}")));
    if a == 0.0 {
        return error("zero");
    }
    if a < 0.0 { error("a negative number") } else { Ok(of(a)) }
}

fn power(a: f64, b: f64) -> Result<f64> {
    let error = |message: &str| Err(Error::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message));
    // NaN to the power 0, and 1 to the power NaN, are 1.
    if a.is_nan() || b.is_nan() {
        return Ok(if b == 0.0 || a == 1.0 { 1.0 } else { f64::NAN });
    }
    if a == 0.0 && b < 0.0 {
        return error("zero raised to a negative power is undefined");
    }
    if a < 0.0 && b.floor() != b {
        return error("a negative number raised to a non-integer power yields a complex result");
    }
    let value = a.powf(b);
    if a.is_finite() && b.is_finite() {
        if value.is_infinite() {
            return Err(overflow());
        }
        if value == 0.0 && a != 0.0 {
            return Err(underflow());
        }
    }
    Ok(value)
}

/// A function that has no value for infinity.
fn periodic(a: f64, of: fn(f64) -> f64) -> Result<f64> {
    if a.is_infinite() { Err(out_of_domain()) } else { finite(of(a), a) }
}

/// `cot(0)` is infinite, without an error.
fn cot(a: f64) -> Result<f64> {
    if a.is_infinite() { Err(out_of_domain()) } else { Ok(1.0 / a.tan()) }
}

fn within(a: f64, low: f64, high: f64, of: fn(f64) -> f64) -> Result<f64> {
    if a < low || a > high { Err(out_of_domain()) } else { Ok(of(a)) }
}

/// Inverse hyperbolic sine, by the formulas of C's library: exact near 0, without overflow for large numbers.
fn asinh(a: f64) -> f64 {
    let x = a.abs();
    let value = if x > (1 << 28) as f64 {
        x.ln() + std::f64::consts::LN_2
    } else if x > 2.0 {
        (2.0 * x + 1.0 / ((x * x + 1.0).sqrt() + x)).ln()
    } else {
        (x + x * x / (1.0 + (x * x + 1.0).sqrt())).ln_1p()
    };
    value.copysign(a)
}

/// Inverse hyperbolic cosine of a number that is not below 1.
fn acosh(a: f64) -> f64 {
    if a > (1 << 28) as f64 {
        a.ln() + std::f64::consts::LN_2
    } else if a > 2.0 {
        (2.0 * a - 1.0 / (a + (a * a - 1.0).sqrt())).ln()
    } else {
        let t = a - 1.0;
        (t + (2.0 * t + t * t).sqrt()).ln_1p()
    }
}

fn random(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(cx.random()))
}

fn setseed(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Float8(seed)] = args else { return mismatched(args) };
    if !(-1.0..=1.0).contains(seed) {
        let message = format!("setseed parameter {seed} is out of allowed range [-1,1]");
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    cx.set_seed(*seed);
    Ok(Datum::text(""))
}

fn bucket_error(message: &str) -> Result<Datum> {
    Err(Error::new(SqlState::parse("2201G").unwrap_or(SqlState::DATA_EXCEPTION), message))
}

fn width_bucket_float8(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Float8(value), Datum::Float8(low), Datum::Float8(high), Datum::Int4(count)] = args else {
        return mismatched(args);
    };
    let (value, low, high, count) = (*value, *low, *high, *count);
    if count <= 0 {
        return bucket_error("count must be greater than zero");
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return bucket_error("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return bucket_error("lower and upper bounds must be finite");
    }
    let past = || {
        let beyond = Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
        count.checked_add(1).map(Datum::Int4).ok_or(beyond)
    };
    // Halves, so that the width of the range does not overflow.
    let share = |from: f64, to: f64| {
        let share = (value / 2.0 - from / 2.0) / (to / 2.0 - from / 2.0);
        Ok(Datum::Int4(((f64::from(count) * share) as i32).min(count - 1) + 1))
    };
    match low.partial_cmp(&high) {
        Some(Ordering::Less) if value < low => Ok(Datum::Int4(0)),
        Some(Ordering::Less) if value >= high => past(),
        Some(Ordering::Less) => share(low, high),
        Some(Ordering::Greater) if value > low => Ok(Datum::Int4(0)),
        Some(Ordering::Greater) if value <= high => past(),
        Some(Ordering::Greater) => share(low, high),
        _ => bucket_error("lower bound cannot equal upper bound"),
    }
}

fn width_bucket_numeric(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Numeric(value), Datum::Numeric(low), Datum::Numeric(high), Datum::Int4(count)] => {
            Ok(Datum::Int4(value.width_bucket(low, high, *count)?))
        }
        _ => mismatched(args),
    }
}

fn factorial(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Int8(n)] => Ok(types::Numeric::factorial(*n)?.into()),
        _ => mismatched(args),
    }
}

fn scale(n: &types::Numeric, of: fn(&types::Numeric) -> u32) -> Datum {
    if n.is_finite() { Datum::Int4(of(n) as i32) } else { Datum::Null }
}

fn numeric_scale(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Numeric(n)] => Ok(scale(n, types::Numeric::scale)),
        _ => mismatched(args),
    }
}

fn numeric_min_scale(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Numeric(n)] => Ok(scale(n, types::Numeric::min_scale)),
        _ => mismatched(args),
    }
}

fn sign(a: f64) -> f64 {
    match a.partial_cmp(&0.0) {
        Some(Ordering::Greater) => 1.0,
        Some(Ordering::Less) => -1.0,
        _ => 0.0,
    }
}

/// The table, by OID.
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(228, "dround", &[FLOAT8], FLOAT8, float!(|a| a.round_ties_even())),
    immutable(229, "dtrunc", &[FLOAT8], FLOAT8, float!(|a| a.trunc())),
    immutable(230, "dsqrt", &[FLOAT8], FLOAT8, float!(|a| sqrt(a)?)),
    immutable(231, "dcbrt", &[FLOAT8], FLOAT8, float!(|a| a.cbrt())),
    immutable(232, "dpow", &[FLOAT8, FLOAT8], FLOAT8, float!(|a, b| power(a, b)?)),
    immutable(233, "dexp", &[FLOAT8], FLOAT8, float!(|a| exp(a)?)),
    immutable(234, "dlog1", &[FLOAT8], FLOAT8, float!(|a| logarithm(a, f64::ln)?)),
    immutable(320, "width_bucket", &[FLOAT8, FLOAT8, FLOAT8, INT4], INT4, width_bucket_float8),
    immutable(1194, "log10", &[FLOAT8], FLOAT8, float!(|a| logarithm(a, f64::log10)?)),
    immutable(1339, "dlog10", &[FLOAT8], FLOAT8, float!(|a| logarithm(a, f64::log10)?)),
    immutable(1340, "log", &[FLOAT8], FLOAT8, float!(|a| logarithm(a, f64::log10)?)),
    immutable(1341, "ln", &[FLOAT8], FLOAT8, float!(|a| logarithm(a, f64::ln)?)),
    immutable(1342, "round", &[FLOAT8], FLOAT8, float!(|a| a.round_ties_even())),
    immutable(1343, "trunc", &[FLOAT8], FLOAT8, float!(|a| a.trunc())),
    immutable(1344, "sqrt", &[FLOAT8], FLOAT8, float!(|a| sqrt(a)?)),
    immutable(1345, "cbrt", &[FLOAT8], FLOAT8, float!(|a| a.cbrt())),
    immutable(1346, "pow", &[FLOAT8, FLOAT8], FLOAT8, float!(|a, b| power(a, b)?)),
    immutable(1347, "exp", &[FLOAT8], FLOAT8, float!(|a| exp(a)?)),
    immutable(1368, "power", &[FLOAT8, FLOAT8], FLOAT8, float!(|a, b| power(a, b)?)),
    immutable(1376, "factorial", &[INT8], NUMERIC, factorial),
    immutable(1481, "log10", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.log10()?))),
    volatile(1598, "random", &[], FLOAT8, random),
    volatile(1599, "setseed", &[FLOAT8], VOID, setseed),
    immutable(1600, "asin", &[FLOAT8], FLOAT8, float!(|a| within(a, -1.0, 1.0, f64::asin)?)),
    immutable(1601, "acos", &[FLOAT8], FLOAT8, float!(|a| within(a, -1.0, 1.0, f64::acos)?)),
    immutable(1602, "atan", &[FLOAT8], FLOAT8, float!(|a| a.atan())),
    immutable(1603, "atan2", &[FLOAT8, FLOAT8], FLOAT8, float!(|a, b| a.atan2(b))),
    immutable(1604, "sin", &[FLOAT8], FLOAT8, float!(|a| periodic(a, f64::sin)?)),
    immutable(1605, "cos", &[FLOAT8], FLOAT8, float!(|a| periodic(a, f64::cos)?)),
    immutable(1606, "tan", &[FLOAT8], FLOAT8, float!(|a| periodic(a, f64::tan)?)),
    immutable(1607, "cot", &[FLOAT8], FLOAT8, float!(|a| cot(a)?)),
    immutable(1608, "degrees", &[FLOAT8], FLOAT8, float!(|a| finite(a / RADIANS_PER_DEGREE, a)?)),
    immutable(1609, "radians", &[FLOAT8], FLOAT8, float!(|a| a * RADIANS_PER_DEGREE)),
    immutable(1610, "pi", &[], FLOAT8, |_, _| Ok(Datum::Float8(std::f64::consts::PI))),
    immutable(1706, "sign", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.sign()))),
    immutable(1707, "round", &[NUMERIC, INT4], NUMERIC, number!(|n; digits| n.round(*digits).within_limits()?)),
    immutable(1708, "round", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.round(0).within_limits()?))),
    immutable(1709, "trunc", &[NUMERIC, INT4], NUMERIC, number!(|n; digits| n.trunc(*digits))),
    immutable(1710, "trunc", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.trunc(0)))),
    immutable(1711, "ceil", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.ceil()))),
    immutable(1712, "floor", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.floor()))),
    immutable(1730, "sqrt", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.sqrt()?))),
    immutable(1731, "numeric_sqrt", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.sqrt()?))),
    immutable(1732, "exp", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.exp()?))),
    immutable(1733, "numeric_exp", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.exp()?))),
    immutable(1734, "ln", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.ln()?))),
    immutable(1735, "numeric_ln", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.ln()?))),
    immutable(1736, "log", &[NUMERIC, NUMERIC], NUMERIC, number!(|a, b| types::Numeric::log(a, b)?)),
    immutable(1737, "numeric_log", &[NUMERIC, NUMERIC], NUMERIC, number!(|a, b| types::Numeric::log(a, b)?)),
    immutable(1738, "pow", &[NUMERIC, NUMERIC], NUMERIC, number!(|a, b| a.power(b)?)),
    immutable(1739, "numeric_power", &[NUMERIC, NUMERIC], NUMERIC, number!(|a, b| a.power(b)?)),
    immutable(1741, "log", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.log10()?))),
    immutable(2167, "ceiling", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.ceil()))),
    immutable(2169, "power", &[NUMERIC, NUMERIC], NUMERIC, number!(|a, b| a.power(b)?)),
    immutable(2170, "width_bucket", &[NUMERIC, NUMERIC, NUMERIC, INT4], INT4, width_bucket_numeric),
    immutable(2308, "ceil", &[FLOAT8], FLOAT8, float!(|a| a.ceil())),
    immutable(2309, "floor", &[FLOAT8], FLOAT8, float!(|a| a.floor())),
    immutable(2310, "sign", &[FLOAT8], FLOAT8, float!(|a| sign(a))),
    immutable(2320, "ceiling", &[FLOAT8], FLOAT8, float!(|a| a.ceil())),
    immutable(2462, "sinh", &[FLOAT8], FLOAT8, float!(|a| a.sinh())),
    immutable(2463, "cosh", &[FLOAT8], FLOAT8, float!(|a| finite(a.cosh(), f64::INFINITY)?)),
    immutable(2464, "tanh", &[FLOAT8], FLOAT8, float!(|a| a.tanh())),
    immutable(2465, "asinh", &[FLOAT8], FLOAT8, float!(|a| asinh(a))),
    immutable(2466, "acosh", &[FLOAT8], FLOAT8, float!(|a| within(a, 1.0, f64::INFINITY, acosh)?)),
    immutable(2467, "atanh", &[FLOAT8], FLOAT8, float!(|a| within(a, -1.0, 1.0, f64::atanh)?)),
    immutable(2731, "asind", &[FLOAT8], FLOAT8, float!(|a| within(a, -1.0, 1.0, asind)?)),
    immutable(2732, "acosd", &[FLOAT8], FLOAT8, float!(|a| within(a, -1.0, 1.0, acosd)?)),
    immutable(2733, "atand", &[FLOAT8], FLOAT8, float!(|a| atand(a))),
    immutable(2734, "atan2d", &[FLOAT8, FLOAT8], FLOAT8, float!(|a, b| atan2d(a, b))),
    immutable(2735, "sind", &[FLOAT8], FLOAT8, float!(|a| periodic(a, sind)?)),
    immutable(2736, "cosd", &[FLOAT8], FLOAT8, float!(|a| periodic(a, cosd)?)),
    immutable(
        2737,
        "tand",
        &[FLOAT8],
        FLOAT8,
        float!(|a| if a.is_infinite() { return Err(out_of_domain()) } else { tand(a) }),
    ),
    immutable(
        2738,
        "cotd",
        &[FLOAT8],
        FLOAT8,
        float!(|a| if a.is_infinite() { return Err(out_of_domain()) } else { cotd(a) }),
    ),
    immutable(3281, "scale", &[NUMERIC], INT4, numeric_scale),
    immutable(5042, "min_scale", &[NUMERIC], INT4, numeric_min_scale),
    immutable(5043, "trim_scale", &[NUMERIC], NUMERIC, number!(|n| Numeric(n.trim_scale()))),
    immutable(5048, "gcd", &[NUMERIC, NUMERIC], NUMERIC, number!(|a, b| a.gcd(b))),
    immutable(5049, "lcm", &[NUMERIC, NUMERIC], NUMERIC, number!(|a, b| a.lcm(b)?)),
];
