//! Arithmetic of integers, floats and NUMERIC: the functions behind the operators.
//!
//! They are on the hottest path: checked machine arithmetic, errors out of line. Floats raise an error where PostgreSQL
//! does: when a finite operation overflows to infinity or underflows to zero.

pub(super) mod times;

use std::ops::Neg;

use base::{Error, Result, SqlState};
use types::Datum;
use types::oid::*;

use super::entry::{immutable, mismatched};
use super::{EvalContext, Function};

/// Types whose overflow has a message of its own.
trait Ranged {
    const MESSAGE: &'static str;
}

impl Ranged for i16 {
    const MESSAGE: &'static str = "smallint out of range";
}
impl Ranged for i32 {
    const MESSAGE: &'static str = "integer out of range";
}
impl Ranged for i64 {
    const MESSAGE: &'static str = "bigint out of range";
}

#[cold]
#[inline(never)]
fn beyond<T: Ranged>() -> Result<Datum> {
    Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, T::MESSAGE))
}

#[cold]
#[inline(never)]
pub(super) fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// The error of a number that a type of whole numbers has no room for.
#[cold]
#[inline(never)]
pub(super) fn overflow_of(ty: &str) -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

#[cold]
#[inline(never)]
pub(super) fn overflow() -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

#[cold]
#[inline(never)]
pub(super) fn underflow() -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

/// A checked operation in the wider of two integer types.
macro_rules! int {
    ($left:ident $right:ident -> $out:ident($t:ty), $method:ident) => {
        |_, args| match args {
            [Datum::$left(a), Datum::$right(b)] => match <$t>::from(*a).$method(<$t>::from(*b)) {
                Some(value) => Ok(Datum::$out(value)),
                None => beyond::<$t>(),
            },
            _ => mismatched(args),
        }
    };
}

macro_rules! quotient {
    ($left:ident $right:ident -> $out:ident($t:ty)) => {
        |_, args| match args {
            [Datum::$left(a), Datum::$right(b)] => match (<$t>::from(*a), <$t>::from(*b)) {
                (_, 0) => Err(division_by_zero()),
                (a, b) => match a.checked_div(b) {
                    Some(value) => Ok(Datum::$out(value)),
                    None => beyond::<$t>(),
                },
            },
            _ => mismatched(args),
        }
    };
}

macro_rules! remainder {
    ($kind:ident) => {
        |_, args| match args {
            [Datum::$kind(_), Datum::$kind(0)] => Err(division_by_zero()),
            // The least number has the remainder 0 by -1, although it has no quotient.
            [Datum::$kind(a), Datum::$kind(b)] => Ok(Datum::$kind(a.wrapping_rem(*b))),
            _ => mismatched(args),
        }
    };
}

macro_rules! int_prefix {
    ($kind:ident, $method:ident) => {
        |_, args| match args {
            [Datum::$kind(a)] => match a.$method() {
                Some(value) => Ok(Datum::$kind(value)),
                None => out_of_range_like(a),
            },
            _ => mismatched(args),
        }
    };
}

#[cold]
fn out_of_range_like<T: Ranged>(_: &T) -> Result<Datum> {
    beyond::<T>()
}

macro_rules! bits {
    ($kind:ident $op:tt $same:ident) => {
        |_, args| match args {
            [Datum::$kind(a), Datum::$same(b)] => Ok(Datum::$kind(a $op b)),
            _ => mismatched(args),
        }
    };
    (!$kind:ident) => {
        |_, args| match args {
            [Datum::$kind(a)] => Ok(Datum::$kind(!a)),
            _ => mismatched(args),
        }
    };
}

/// Shifts count modulo the width of the machine's type, as the instructions that PostgreSQL compiles to do.
macro_rules! shift {
    ($kind:ident($wide:ty as $t:ty), $method:ident) => {
        |_, args| match args {
            [Datum::$kind(a), Datum::Int4(by)] => Ok(Datum::$kind(<$wide>::from(*a).$method(*by as u32) as $t)),
            _ => mismatched(args),
        }
    };
}

macro_rules! float {
    ($left:ident $right:ident -> $out:ident, $operation:ident) => {
        |_, args| match args {
            [Datum::$left(a), Datum::$right(b)] => Ok(Datum::$out($operation((*a).into(), (*b).into())?)),
            _ => mismatched(args),
        }
    };
}

macro_rules! float_prefix {
    ($kind:ident, $method:ident) => {
        |_, args| match args {
            [Datum::$kind(a)] => Ok(Datum::$kind((*a).$method())),
            _ => mismatched(args),
        }
    };
}

macro_rules! number {
    ($method:ident) => {
        |_, args| match args {
            [Datum::Numeric(a), Datum::Numeric(b)] => Ok(Datum::Numeric(a.$method(b)?)),
            _ => mismatched(args),
        }
    };
}

macro_rules! number_prefix {
    ($method:ident) => {
        |_, args| match args {
            [Datum::Numeric(a)] => Ok(Datum::Numeric(a.$method())),
            _ => mismatched(args),
        }
    };
}

macro_rules! float_operations {
    ($t:ty: $sum:ident, $difference:ident, $product:ident, $quotient:ident) => {
        #[inline]
        fn $sum(a: $t, b: $t) -> Result<$t> {
            let value = a + b;
            if value.is_infinite() && a.is_finite() && b.is_finite() { Err(overflow()) } else { Ok(value) }
        }

        #[inline]
        fn $difference(a: $t, b: $t) -> Result<$t> {
            let value = a - b;
            if value.is_infinite() && a.is_finite() && b.is_finite() { Err(overflow()) } else { Ok(value) }
        }

        #[inline]
        fn $product(a: $t, b: $t) -> Result<$t> {
            let value = a * b;
            if value.is_infinite() && !a.is_infinite() && !b.is_infinite() {
                return Err(overflow());
            }
            if value == 0.0 && a != 0.0 && b != 0.0 { Err(underflow()) } else { Ok(value) }
        }

        #[inline]
        fn $quotient(a: $t, b: $t) -> Result<$t> {
            if b == 0.0 && !a.is_nan() {
                return Err(division_by_zero());
            }
            let value = a / b;
            if value.is_infinite() && !a.is_infinite() {
                return Err(overflow());
            }
            if value == 0.0 && a != 0.0 && !b.is_infinite() { Err(underflow()) } else { Ok(value) }
        }
    };
}

float_operations!(f32: sum_f32, difference_f32, product_f32, quotient_f32);
float_operations!(f64: sum_f64, difference_f64, product_f64, quotient_f64);

/// The value as it is.
pub(super) fn same(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    args.first().map_or_else(|| mismatched(args), |value| Ok(value.clone()))
}

/// The table, by OID.
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(141, "int4mul", &[INT4, INT4], INT4, int!(Int4 Int4 -> Int4(i32), checked_mul)),
    immutable(152, "int2mul", &[INT2, INT2], INT2, int!(Int2 Int2 -> Int2(i16), checked_mul)),
    immutable(153, "int2div", &[INT2, INT2], INT2, quotient!(Int2 Int2 -> Int2(i16))),
    immutable(154, "int4div", &[INT4, INT4], INT4, quotient!(Int4 Int4 -> Int4(i32))),
    immutable(155, "int2mod", &[INT2, INT2], INT2, remainder!(Int2)),
    immutable(156, "int4mod", &[INT4, INT4], INT4, remainder!(Int4)),
    immutable(170, "int24mul", &[INT2, INT4], INT4, int!(Int2 Int4 -> Int4(i32), checked_mul)),
    immutable(171, "int42mul", &[INT4, INT2], INT4, int!(Int4 Int2 -> Int4(i32), checked_mul)),
    immutable(172, "int24div", &[INT2, INT4], INT4, quotient!(Int2 Int4 -> Int4(i32))),
    immutable(173, "int42div", &[INT4, INT2], INT4, quotient!(Int4 Int2 -> Int4(i32))),
    immutable(176, "int2pl", &[INT2, INT2], INT2, int!(Int2 Int2 -> Int2(i16), checked_add)),
    immutable(177, "int4pl", &[INT4, INT4], INT4, int!(Int4 Int4 -> Int4(i32), checked_add)),
    immutable(178, "int24pl", &[INT2, INT4], INT4, int!(Int2 Int4 -> Int4(i32), checked_add)),
    immutable(179, "int42pl", &[INT4, INT2], INT4, int!(Int4 Int2 -> Int4(i32), checked_add)),
    immutable(180, "int2mi", &[INT2, INT2], INT2, int!(Int2 Int2 -> Int2(i16), checked_sub)),
    immutable(181, "int4mi", &[INT4, INT4], INT4, int!(Int4 Int4 -> Int4(i32), checked_sub)),
    immutable(182, "int24mi", &[INT2, INT4], INT4, int!(Int2 Int4 -> Int4(i32), checked_sub)),
    immutable(183, "int42mi", &[INT4, INT2], INT4, int!(Int4 Int2 -> Int4(i32), checked_sub)),
    immutable(202, "float4mul", &[FLOAT4, FLOAT4], FLOAT4, float!(Float4 Float4 -> Float4, product_f32)),
    immutable(203, "float4div", &[FLOAT4, FLOAT4], FLOAT4, float!(Float4 Float4 -> Float4, quotient_f32)),
    immutable(204, "float4pl", &[FLOAT4, FLOAT4], FLOAT4, float!(Float4 Float4 -> Float4, sum_f32)),
    immutable(205, "float4mi", &[FLOAT4, FLOAT4], FLOAT4, float!(Float4 Float4 -> Float4, difference_f32)),
    immutable(206, "float4um", &[FLOAT4], FLOAT4, float_prefix!(Float4, neg)),
    immutable(207, "float4abs", &[FLOAT4], FLOAT4, float_prefix!(Float4, abs)),
    immutable(212, "int4um", &[INT4], INT4, int_prefix!(Int4, checked_neg)),
    immutable(213, "int2um", &[INT2], INT2, int_prefix!(Int2, checked_neg)),
    immutable(216, "float8mul", &[FLOAT8, FLOAT8], FLOAT8, float!(Float8 Float8 -> Float8, product_f64)),
    immutable(217, "float8div", &[FLOAT8, FLOAT8], FLOAT8, float!(Float8 Float8 -> Float8, quotient_f64)),
    immutable(218, "float8pl", &[FLOAT8, FLOAT8], FLOAT8, float!(Float8 Float8 -> Float8, sum_f64)),
    immutable(219, "float8mi", &[FLOAT8, FLOAT8], FLOAT8, float!(Float8 Float8 -> Float8, difference_f64)),
    immutable(220, "float8um", &[FLOAT8], FLOAT8, float_prefix!(Float8, neg)),
    immutable(221, "float8abs", &[FLOAT8], FLOAT8, float_prefix!(Float8, abs)),
    immutable(279, "float48mul", &[FLOAT4, FLOAT8], FLOAT8, float!(Float4 Float8 -> Float8, product_f64)),
    immutable(280, "float48div", &[FLOAT4, FLOAT8], FLOAT8, float!(Float4 Float8 -> Float8, quotient_f64)),
    immutable(281, "float48pl", &[FLOAT4, FLOAT8], FLOAT8, float!(Float4 Float8 -> Float8, sum_f64)),
    immutable(282, "float48mi", &[FLOAT4, FLOAT8], FLOAT8, float!(Float4 Float8 -> Float8, difference_f64)),
    immutable(283, "float84mul", &[FLOAT8, FLOAT4], FLOAT8, float!(Float8 Float4 -> Float8, product_f64)),
    immutable(284, "float84div", &[FLOAT8, FLOAT4], FLOAT8, float!(Float8 Float4 -> Float8, quotient_f64)),
    immutable(285, "float84pl", &[FLOAT8, FLOAT4], FLOAT8, float!(Float8 Float4 -> Float8, sum_f64)),
    immutable(286, "float84mi", &[FLOAT8, FLOAT4], FLOAT8, float!(Float8 Float4 -> Float8, difference_f64)),
    immutable(462, "int8um", &[INT8], INT8, int_prefix!(Int8, checked_neg)),
    immutable(463, "int8pl", &[INT8, INT8], INT8, int!(Int8 Int8 -> Int8(i64), checked_add)),
    immutable(464, "int8mi", &[INT8, INT8], INT8, int!(Int8 Int8 -> Int8(i64), checked_sub)),
    immutable(465, "int8mul", &[INT8, INT8], INT8, int!(Int8 Int8 -> Int8(i64), checked_mul)),
    immutable(466, "int8div", &[INT8, INT8], INT8, quotient!(Int8 Int8 -> Int8(i64))),
    immutable(837, "int82pl", &[INT8, INT2], INT8, int!(Int8 Int2 -> Int8(i64), checked_add)),
    immutable(838, "int82mi", &[INT8, INT2], INT8, int!(Int8 Int2 -> Int8(i64), checked_sub)),
    immutable(839, "int82mul", &[INT8, INT2], INT8, int!(Int8 Int2 -> Int8(i64), checked_mul)),
    immutable(840, "int82div", &[INT8, INT2], INT8, quotient!(Int8 Int2 -> Int8(i64))),
    immutable(841, "int28pl", &[INT2, INT8], INT8, int!(Int2 Int8 -> Int8(i64), checked_add)),
    immutable(940, "mod", &[INT2, INT2], INT2, remainder!(Int2)),
    immutable(941, "mod", &[INT4, INT4], INT4, remainder!(Int4)),
    immutable(942, "int28mi", &[INT2, INT8], INT8, int!(Int2 Int8 -> Int8(i64), checked_sub)),
    immutable(943, "int28mul", &[INT2, INT8], INT8, int!(Int2 Int8 -> Int8(i64), checked_mul)),
    immutable(945, "int8mod", &[INT8, INT8], INT8, remainder!(Int8)),
    immutable(947, "mod", &[INT8, INT8], INT8, remainder!(Int8)),
    immutable(948, "int28div", &[INT2, INT8], INT8, quotient!(Int2 Int8 -> Int8(i64))),
    immutable(1230, "int8abs", &[INT8], INT8, int_prefix!(Int8, checked_abs)),
    immutable(1251, "int4abs", &[INT4], INT4, int_prefix!(Int4, checked_abs)),
    immutable(1253, "int2abs", &[INT2], INT2, int_prefix!(Int2, checked_abs)),
    immutable(1274, "int84pl", &[INT8, INT4], INT8, int!(Int8 Int4 -> Int8(i64), checked_add)),
    immutable(1275, "int84mi", &[INT8, INT4], INT8, int!(Int8 Int4 -> Int8(i64), checked_sub)),
    immutable(1276, "int84mul", &[INT8, INT4], INT8, int!(Int8 Int4 -> Int8(i64), checked_mul)),
    immutable(1277, "int84div", &[INT8, INT4], INT8, quotient!(Int8 Int4 -> Int8(i64))),
    immutable(1278, "int48pl", &[INT4, INT8], INT8, int!(Int4 Int8 -> Int8(i64), checked_add)),
    immutable(1279, "int48mi", &[INT4, INT8], INT8, int!(Int4 Int8 -> Int8(i64), checked_sub)),
    immutable(1280, "int48mul", &[INT4, INT8], INT8, int!(Int4 Int8 -> Int8(i64), checked_mul)),
    immutable(1281, "int48div", &[INT4, INT8], INT8, quotient!(Int4 Int8 -> Int8(i64))),
    immutable(1394, "abs", &[FLOAT4], FLOAT4, float_prefix!(Float4, abs)),
    immutable(1395, "abs", &[FLOAT8], FLOAT8, float_prefix!(Float8, abs)),
    immutable(1396, "abs", &[INT8], INT8, int_prefix!(Int8, checked_abs)),
    immutable(1397, "abs", &[INT4], INT4, int_prefix!(Int4, checked_abs)),
    immutable(1398, "abs", &[INT2], INT2, int_prefix!(Int2, checked_abs)),
    immutable(1704, "numeric_abs", &[NUMERIC], NUMERIC, number_prefix!(abs)),
    immutable(1705, "abs", &[NUMERIC], NUMERIC, number_prefix!(abs)),
    immutable(1724, "numeric_add", &[NUMERIC, NUMERIC], NUMERIC, number!(add)),
    immutable(1725, "numeric_sub", &[NUMERIC, NUMERIC], NUMERIC, number!(sub)),
    immutable(1726, "numeric_mul", &[NUMERIC, NUMERIC], NUMERIC, number!(mul)),
    immutable(1727, "numeric_div", &[NUMERIC, NUMERIC], NUMERIC, number!(div)),
    immutable(1728, "mod", &[NUMERIC, NUMERIC], NUMERIC, number!(rem)),
    immutable(1729, "numeric_mod", &[NUMERIC, NUMERIC], NUMERIC, number!(rem)),
    immutable(1771, "numeric_uminus", &[NUMERIC], NUMERIC, number_prefix!(neg)),
    immutable(1892, "int2and", &[INT2, INT2], INT2, bits!(Int2 & Int2)),
    immutable(1893, "int2or", &[INT2, INT2], INT2, bits!(Int2 | Int2)),
    immutable(1894, "int2xor", &[INT2, INT2], INT2, bits!(Int2 ^ Int2)),
    immutable(1895, "int2not", &[INT2], INT2, bits!(!Int2)),
    immutable(1896, "int2shl", &[INT2, INT4], INT2, shift!(Int2(i32 as i16), wrapping_shl)),
    immutable(1897, "int2shr", &[INT2, INT4], INT2, shift!(Int2(i32 as i16), wrapping_shr)),
    immutable(1898, "int4and", &[INT4, INT4], INT4, bits!(Int4 & Int4)),
    immutable(1899, "int4or", &[INT4, INT4], INT4, bits!(Int4 | Int4)),
    immutable(1900, "int4xor", &[INT4, INT4], INT4, bits!(Int4 ^ Int4)),
    immutable(1901, "int4not", &[INT4], INT4, bits!(!Int4)),
    immutable(1902, "int4shl", &[INT4, INT4], INT4, shift!(Int4(i32 as i32), wrapping_shl)),
    immutable(1903, "int4shr", &[INT4, INT4], INT4, shift!(Int4(i32 as i32), wrapping_shr)),
    immutable(1904, "int8and", &[INT8, INT8], INT8, bits!(Int8 & Int8)),
    immutable(1905, "int8or", &[INT8, INT8], INT8, bits!(Int8 | Int8)),
    immutable(1906, "int8xor", &[INT8, INT8], INT8, bits!(Int8 ^ Int8)),
    immutable(1907, "int8not", &[INT8], INT8, bits!(!Int8)),
    immutable(1908, "int8shl", &[INT8, INT4], INT8, shift!(Int8(i64 as i64), wrapping_shl)),
    immutable(1909, "int8shr", &[INT8, INT4], INT8, shift!(Int8(i64 as i64), wrapping_shr)),
    immutable(1910, "int8up", &[INT8], INT8, same),
    immutable(1911, "int2up", &[INT2], INT2, same),
    immutable(1912, "int4up", &[INT4], INT4, same),
    immutable(1913, "float4up", &[FLOAT4], FLOAT4, same),
    immutable(1914, "float8up", &[FLOAT8], FLOAT8, same),
    immutable(1915, "numeric_uplus", &[NUMERIC], NUMERIC, same),
    immutable(1973, "div", &[NUMERIC, NUMERIC], NUMERIC, number!(div_trunc)),
    immutable(1980, "numeric_div_trunc", &[NUMERIC, NUMERIC], NUMERIC, number!(div_trunc)),
];
