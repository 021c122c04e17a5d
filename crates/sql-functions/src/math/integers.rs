//! Functions of integers.

use base::{Error, SqlState};
use types::Datum;
use types::oid::*;

use super::super::Function;
use super::super::entry::{immutable, mismatched};

#[cold]
fn beyond(ty: &str) -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

/// Euclid's algorithm on absolute values, which as unsigned numbers cannot overflow.
fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm(a: u64, b: u64) -> Option<u64> {
    if a == 0 || b == 0 { Some(0) } else { (a / gcd(a, b)).checked_mul(b) }
}

macro_rules! pair {
    ($kind:ident($t:ty), $name:literal, |$a:ident, $b:ident| $value:expr) => {
        |_, args| match args {
            [Datum::$kind($a), Datum::$kind($b)] => {
                let ($a, $b) = (u64::from($a.unsigned_abs()), u64::from($b.unsigned_abs()));
                let value: Option<u64> = $value;
                value.and_then(|v| <$t>::try_from(v).ok()).map(Datum::$kind).ok_or_else(|| beyond($name))
            }
            _ => mismatched(args),
        }
    };
}

macro_rules! increment {
    ($kind:ident, $name:literal) => {
        |_, args| match args {
            [Datum::$kind(a)] => a.checked_add(1).map(Datum::$kind).ok_or_else(|| beyond($name)),
            _ => mismatched(args),
        }
    };
}

/// The table, by OID.
pub(crate) static FUNCTIONS: &[Function] = &[
    immutable(766, "int4inc", &[INT4], INT4, increment!(Int4, "integer")),
    immutable(1219, "int8inc", &[INT8], INT8, increment!(Int8, "bigint")),
    immutable(5044, "gcd", &[INT4, INT4], INT4, pair!(Int4(i32), "integer", |a, b| Some(gcd(a, b)))),
    immutable(5045, "gcd", &[INT8, INT8], INT8, pair!(Int8(i64), "bigint", |a, b| Some(gcd(a, b)))),
    immutable(5046, "lcm", &[INT4, INT4], INT4, pair!(Int4(i32), "integer", |a, b| lcm(a, b))),
    immutable(5047, "lcm", &[INT8, INT8], INT8, pair!(Int8(i64), "bigint", |a, b| lcm(a, b))),
];
