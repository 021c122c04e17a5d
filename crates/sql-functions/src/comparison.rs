//! Comparison functions of every type: what the operators `=`, `<>`, `<`, `<=`, `>`, `>=` call.
//!
//! They are on the hottest path, so each is its own function without calls or allocation where the type allows it.
//! Integers of different widths compare as 64-bit numbers, floats in PostgreSQL's order (NaN is greatest), text by bytes,
//! `char(n)` without its trailing blanks; a date is midnight, in the session's zone where an instant is wanted.

use std::cmp::Ordering;

use base::{Error, Result, SqlState};
use types::datetime as dt;
use types::oid::*;
use types::{Datum, Record, json};

use super::entry::{immutable, mismatched, stable};
use super::{EvalContext, Function};

/// Values that are whole numbers.
macro_rules! whole {
    ($left:ident $op:tt $right:ident) => {
        |_, args| match args {
            [Datum::$left(a), Datum::$right(b)] => Ok(Datum::Bool(i64::from(*a) $op i64::from(*b))),
            _ => mismatched(args),
        }
    };
}

/// Floats: one side is widened if they differ.
macro_rules! float {
    ($left:ident $op:tt $right:ident) => {
        |_, args| match args {
            [Datum::$left(a), Datum::$right(b)] => Ok(Datum::Bool(float!(@ f64::from(*a), f64::from(*b), $op))),
            _ => mismatched(args),
        }
    };
    // NaN equals itself and is greater than everything else.
    (@ $a:expr, $b:expr, ==) => {{ let (a, b) = ($a, $b); a == b || (a.is_nan() && b.is_nan()) }};
    (@ $a:expr, $b:expr, !=) => {{ let (a, b) = ($a, $b); a != b && !(a.is_nan() && b.is_nan()) }};
    (@ $a:expr, $b:expr, <) => {{ let (a, b) = ($a, $b); a < b || (b.is_nan() && !a.is_nan()) }};
    (@ $a:expr, $b:expr, <=) => {{ let (a, b) = ($a, $b); a <= b || b.is_nan() }};
    (@ $a:expr, $b:expr, >) => {{ let (a, b) = ($a, $b); a > b || (a.is_nan() && !b.is_nan()) }};
    (@ $a:expr, $b:expr, >=) => {{ let (a, b) = ($a, $b); a >= b || a.is_nan() }};
}

macro_rules! number {
    ($op:tt) => {
        |_, args| match args {
            [Datum::Numeric(a), Datum::Numeric(b)] => Ok(Datum::Bool(a.cmp(b) $op Ordering::Equal)),
            _ => mismatched(args),
        }
    };
}

macro_rules! text {
    ($op:tt) => {
        |_, args| match args {
            [Datum::Text(a), Datum::Text(b)] => Ok(Datum::Bool(a.as_bytes() $op b.as_bytes())),
            _ => mismatched(args),
        }
    };
}

/// `"char"`: one byte, which is shown in octal if it is not ASCII.
macro_rules! letter {
    ($op:tt) => {
        |_, args| match args {
            [Datum::Text(a), Datum::Text(b)] => Ok(Datum::Bool(char_byte(a) $op char_byte(b))),
            _ => mismatched(args),
        }
    };
}

/// `char(n)`
macro_rules! padded {
    ($op:tt) => {
        |_, args| match args {
            [Datum::Text(a), Datum::Text(b)] => Ok(Datum::Bool(unpadded(a) $op unpadded(b))),
            _ => mismatched(args),
        }
    };
}

/// Types whose order is that of their bytes.
macro_rules! plain {
    ($kind:ident $op:tt) => {
        |_, args| match args {
            [Datum::$kind(a), Datum::$kind(b)] => Ok(Datum::Bool(a[..] $op b[..])),
            _ => mismatched(args),
        }
    };
}

macro_rules! span {
    ($op:tt) => {
        |_, args| match args {
            [Datum::Interval(a), Datum::Interval(b)] => {
                Ok(Datum::Bool(types::interval::compare(a, b) $op Ordering::Equal))
            }
            _ => mismatched(args),
        }
    };
}

/// `timetz`
macro_rules! clock {
    ($op:tt) => {
        |_, args| match args {
            [Datum::TimeTz(a, z), Datum::TimeTz(b, y)] => {
                Ok(Datum::Bool(dt::compare_timetz((*a, *z), (*b, *y)) $op Ordering::Equal))
            }
            _ => mismatched(args),
        }
    };
}

macro_rules! record {
    ($op:tt) => {
        |_, args| match args {
            [Datum::Record(a), Datum::Record(b)] => Ok(Datum::Bool(compare_records(a, b)? $op Ordering::Equal)),
            _ => mismatched(args),
        }
    };
}

/// Arrays and vectors: element by element.
macro_rules! general {
    ($op:tt) => {
        |_, args| match args {
            [a, b] => Ok(Datum::Bool(types::compare(&a.as_ref(), &b.as_ref()) $op Ordering::Equal)),
            _ => mismatched(args),
        }
    };
}

/// `jsonb`
macro_rules! document {
    ($op:tt) => {
        |_, args| match args {
            [Datum::Text(a), Datum::Text(b)] => Ok(Datum::Bool(json::compare(a, b) $op Ordering::Equal)),
            _ => mismatched(args),
        }
    };
}

/// Dates, local times and instants among each other.
macro_rules! instant {
    ($op:tt) => {
        |cx, args| Ok(Datum::Bool(compare_instants(cx, args)? $op Ordering::Equal))
    };
}

/// The byte that a `"char"` stands for.
pub(super) fn char_byte(text: &str) -> u8 {
    match *text.as_bytes() {
        [] => 0,
        [b'\\', a, b, c] => (a & 7) << 6 | (b & 7) << 3 | (c & 7),
        [byte, ..] => byte,
    }
}

#[inline]
fn unpadded(text: &str) -> &[u8] {
    text.trim_end_matches(' ').as_bytes()
}

/// `xid = integer`: the integer is read as unsigned.
fn xid_and_int(args: &[Datum], holds: fn(u32, u32) -> bool) -> Result<Datum> {
    match args {
        [Datum::Oid(a), Datum::Int4(b)] => Ok(Datum::Bool(holds(*a, *b as u32))),
        _ => mismatched(args),
    }
}

/// What no instant can hold is beyond all of them, on its side, and before infinity.
fn beyond(instant: Result<i64>, early: bool) -> i64 {
    instant.unwrap_or(if early { i64::MIN + 1 } else { i64::MAX - 1 })
}

fn compare_instants(cx: &dyn EvalContext, args: &[Datum]) -> Result<Ordering> {
    let zone = || &cx.settings().timezone;
    let day = |d: i32| beyond(dt::date_to_timestamptz(d, zone()), d < 0);
    let local = |t: i64| beyond(dt::timestamp_to_timestamptz(t, zone()), t < 0);
    Ok(match args {
        [Datum::Date(a), Datum::Timestamp(b)] => dt::compare_date_timestamp(*a, *b),
        [Datum::Timestamp(a), Datum::Date(b)] => dt::compare_date_timestamp(*b, *a).reverse(),
        [Datum::Date(a), Datum::TimestampTz(b)] => day(*a).cmp(b),
        [Datum::TimestampTz(a), Datum::Date(b)] => a.cmp(&day(*b)),
        [Datum::Timestamp(a), Datum::TimestampTz(b)] => local(*a).cmp(b),
        [Datum::TimestampTz(a), Datum::Timestamp(b)] => a.cmp(&local(*b)),
        _ => return mismatched(args).map(|_| Ordering::Equal),
    })
}

/// A date or a timestamp as the timestamptz that a comparison takes it for.
pub static AS_TIMESTAMPTZ: Function = stable(9541, "as timestamptz", &[ANY], TIMESTAMPTZ, |cx, args| {
    let zone = &cx.settings().timezone;
    Ok(Datum::TimestampTz(match args {
        [Datum::Date(d)] => beyond(dt::date_to_timestamptz(*d, zone), *d < 0),
        [Datum::Timestamp(t)] => beyond(dt::timestamp_to_timestamptz(*t, zone), *t < 0),
        _ => return mismatched(args),
    }))
});

/// A date as the timestamp that a comparison takes it for.
pub static AS_TIMESTAMP: Function = immutable(9542, "as timestamp", &[DATE], TIMESTAMP, |_, args| match args {
    [Datum::Date(d)] => Ok(Datum::Timestamp(beyond(dt::date_to_timestamp(*d), *d < 0))),
    _ => mismatched(args),
});

/// The day of a timestamp.
pub static DAY: Function = immutable(9543, "day", &[TIMESTAMP], DATE, |_, args| match args {
    [Datum::Timestamp(t)] => Ok(Datum::Date(dt::timestamp_to_date(*t))),
    _ => mismatched(args),
});

/// A timestamptz as local time a day earlier: whatever the zone does to its clocks, no local time that is not before the instant is
/// before this.
pub static DAY_BEFORE: Function = stable(9544, "day before", &[TIMESTAMPTZ, ANY], ANY, |cx, args| apart(cx, args, -1));

/// A timestamptz as local time a day later: no local time that is not behind the instant is behind this.
pub static DAY_AFTER: Function = stable(9545, "day after", &[TIMESTAMPTZ, ANY], ANY, |cx, args| apart(cx, args, 1));

/// So many days from an instant, as a date or a timestamp: as what the second argument is.
fn apart(cx: &dyn EvalContext, args: &[Datum], days: i64) -> Result<Datum> {
    let [Datum::TimestampTz(t), like] = args else { return mismatched(args) };
    let local = beyond(dt::timestamptz_to_timestamp(*t, &cx.settings().timezone), *t < 0);
    let local = match local {
        i64::MIN | i64::MAX => local,
        finite => finite.saturating_add(days * 86_400_000_000).clamp(i64::MIN + 1, i64::MAX - 1),
    };
    Ok(match like {
        Datum::Date(_) => Datum::Date(dt::timestamp_to_date(local)),
        _ => Datum::Timestamp(local),
    })
}

/// Rows compare column by column; NULLs are equal and greater than everything else.
fn compare_records(a: &Record, b: &Record) -> Result<Ordering> {
    for (number, ((x, of_x), (y, of_y))) in a.typed().zip(b.typed()).enumerate() {
        if of_x != of_y {
            let (x, y, number) = (types::format_type(of_x, -1), types::format_type(of_y, -1), number + 1);
            let message = format!("cannot compare dissimilar column types {x} and {y} at record column {number}");
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let order = types::compare(&x.as_ref(), &y.as_ref());
        if order.is_ne() {
            return Ok(order);
        }
    }
    if a.len() != b.len() {
        let message = "cannot compare record types with different numbers of columns";
        return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
    }
    Ok(Ordering::Equal)
}

/// The table, by OID.
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(56, "boollt", &[BOOL, BOOL], BOOL, whole!(Bool < Bool)).leakproof(),
    immutable(57, "boolgt", &[BOOL, BOOL], BOOL, whole!(Bool > Bool)).leakproof(),
    immutable(60, "booleq", &[BOOL, BOOL], BOOL, whole!(Bool == Bool)).leakproof(),
    immutable(61, "chareq", &[CHAR, CHAR], BOOL, letter!(==)).leakproof(),
    immutable(62, "nameeq", &[NAME, NAME], BOOL, text!(==)).leakproof(),
    immutable(63, "int2eq", &[INT2, INT2], BOOL, whole!(Int2 == Int2)).leakproof(),
    immutable(64, "int2lt", &[INT2, INT2], BOOL, whole!(Int2 < Int2)).leakproof(),
    immutable(65, "int4eq", &[INT4, INT4], BOOL, whole!(Int4 == Int4)).leakproof(),
    immutable(66, "int4lt", &[INT4, INT4], BOOL, whole!(Int4 < Int4)).leakproof(),
    immutable(67, "texteq", &[TEXT, TEXT], BOOL, text!(==)).leakproof(),
    immutable(68, "xideq", &[XID, XID], BOOL, whole!(Oid == Oid)).leakproof(),
    immutable(69, "cideq", &[CID, CID], BOOL, whole!(Oid == Oid)).leakproof(),
    immutable(70, "charne", &[CHAR, CHAR], BOOL, letter!(!=)).leakproof(),
    immutable(72, "charle", &[CHAR, CHAR], BOOL, letter!(<=)).leakproof(),
    immutable(73, "chargt", &[CHAR, CHAR], BOOL, letter!(>)).leakproof(),
    immutable(74, "charge", &[CHAR, CHAR], BOOL, letter!(>=)).leakproof(),
    immutable(84, "boolne", &[BOOL, BOOL], BOOL, whole!(Bool != Bool)).leakproof(),
    immutable(144, "int4ne", &[INT4, INT4], BOOL, whole!(Int4 != Int4)).leakproof(),
    immutable(145, "int2ne", &[INT2, INT2], BOOL, whole!(Int2 != Int2)).leakproof(),
    immutable(146, "int2gt", &[INT2, INT2], BOOL, whole!(Int2 > Int2)).leakproof(),
    immutable(147, "int4gt", &[INT4, INT4], BOOL, whole!(Int4 > Int4)).leakproof(),
    immutable(148, "int2le", &[INT2, INT2], BOOL, whole!(Int2 <= Int2)).leakproof(),
    immutable(149, "int4le", &[INT4, INT4], BOOL, whole!(Int4 <= Int4)).leakproof(),
    immutable(150, "int4ge", &[INT4, INT4], BOOL, whole!(Int4 >= Int4)).leakproof(),
    immutable(151, "int2ge", &[INT2, INT2], BOOL, whole!(Int2 >= Int2)).leakproof(),
    immutable(157, "textne", &[TEXT, TEXT], BOOL, text!(!=)).leakproof(),
    immutable(158, "int24eq", &[INT2, INT4], BOOL, whole!(Int2 == Int4)).leakproof(),
    immutable(159, "int42eq", &[INT4, INT2], BOOL, whole!(Int4 == Int2)).leakproof(),
    immutable(160, "int24lt", &[INT2, INT4], BOOL, whole!(Int2 < Int4)).leakproof(),
    immutable(161, "int42lt", &[INT4, INT2], BOOL, whole!(Int4 < Int2)).leakproof(),
    immutable(162, "int24gt", &[INT2, INT4], BOOL, whole!(Int2 > Int4)).leakproof(),
    immutable(163, "int42gt", &[INT4, INT2], BOOL, whole!(Int4 > Int2)).leakproof(),
    immutable(164, "int24ne", &[INT2, INT4], BOOL, whole!(Int2 != Int4)).leakproof(),
    immutable(165, "int42ne", &[INT4, INT2], BOOL, whole!(Int4 != Int2)).leakproof(),
    immutable(166, "int24le", &[INT2, INT4], BOOL, whole!(Int2 <= Int4)).leakproof(),
    immutable(167, "int42le", &[INT4, INT2], BOOL, whole!(Int4 <= Int2)).leakproof(),
    immutable(168, "int24ge", &[INT2, INT4], BOOL, whole!(Int2 >= Int4)).leakproof(),
    immutable(169, "int42ge", &[INT4, INT2], BOOL, whole!(Int4 >= Int2)).leakproof(),
    immutable(184, "oideq", &[OID, OID], BOOL, whole!(Oid == Oid)).leakproof(),
    immutable(185, "oidne", &[OID, OID], BOOL, whole!(Oid != Oid)).leakproof(),
    immutable(240, "nameeqtext", &[NAME, TEXT], BOOL, text!(==)).leakproof(),
    immutable(241, "namelttext", &[NAME, TEXT], BOOL, text!(<)).leakproof(),
    immutable(242, "nameletext", &[NAME, TEXT], BOOL, text!(<=)).leakproof(),
    immutable(243, "namegetext", &[NAME, TEXT], BOOL, text!(>=)).leakproof(),
    immutable(244, "namegttext", &[NAME, TEXT], BOOL, text!(>)).leakproof(),
    immutable(245, "namenetext", &[NAME, TEXT], BOOL, text!(!=)).leakproof(),
    immutable(247, "texteqname", &[TEXT, NAME], BOOL, text!(==)).leakproof(),
    immutable(248, "textltname", &[TEXT, NAME], BOOL, text!(<)).leakproof(),
    immutable(249, "textlename", &[TEXT, NAME], BOOL, text!(<=)).leakproof(),
    immutable(250, "textgename", &[TEXT, NAME], BOOL, text!(>=)).leakproof(),
    immutable(251, "textgtname", &[TEXT, NAME], BOOL, text!(>)).leakproof(),
    immutable(252, "textnename", &[TEXT, NAME], BOOL, text!(!=)).leakproof(),
    immutable(287, "float4eq", &[FLOAT4, FLOAT4], BOOL, float!(Float4 == Float4)).leakproof(),
    immutable(288, "float4ne", &[FLOAT4, FLOAT4], BOOL, float!(Float4 != Float4)).leakproof(),
    immutable(289, "float4lt", &[FLOAT4, FLOAT4], BOOL, float!(Float4 < Float4)).leakproof(),
    immutable(290, "float4le", &[FLOAT4, FLOAT4], BOOL, float!(Float4 <= Float4)).leakproof(),
    immutable(291, "float4gt", &[FLOAT4, FLOAT4], BOOL, float!(Float4 > Float4)).leakproof(),
    immutable(292, "float4ge", &[FLOAT4, FLOAT4], BOOL, float!(Float4 >= Float4)).leakproof(),
    immutable(293, "float8eq", &[FLOAT8, FLOAT8], BOOL, float!(Float8 == Float8)).leakproof(),
    immutable(294, "float8ne", &[FLOAT8, FLOAT8], BOOL, float!(Float8 != Float8)).leakproof(),
    immutable(295, "float8lt", &[FLOAT8, FLOAT8], BOOL, float!(Float8 < Float8)).leakproof(),
    immutable(296, "float8le", &[FLOAT8, FLOAT8], BOOL, float!(Float8 <= Float8)).leakproof(),
    immutable(297, "float8gt", &[FLOAT8, FLOAT8], BOOL, float!(Float8 > Float8)).leakproof(),
    immutable(298, "float8ge", &[FLOAT8, FLOAT8], BOOL, float!(Float8 >= Float8)).leakproof(),
    immutable(299, "float48eq", &[FLOAT4, FLOAT8], BOOL, float!(Float4 == Float8)).leakproof(),
    immutable(300, "float48ne", &[FLOAT4, FLOAT8], BOOL, float!(Float4 != Float8)).leakproof(),
    immutable(301, "float48lt", &[FLOAT4, FLOAT8], BOOL, float!(Float4 < Float8)).leakproof(),
    immutable(302, "float48le", &[FLOAT4, FLOAT8], BOOL, float!(Float4 <= Float8)).leakproof(),
    immutable(303, "float48gt", &[FLOAT4, FLOAT8], BOOL, float!(Float4 > Float8)).leakproof(),
    immutable(304, "float48ge", &[FLOAT4, FLOAT8], BOOL, float!(Float4 >= Float8)).leakproof(),
    immutable(305, "float84eq", &[FLOAT8, FLOAT4], BOOL, float!(Float8 == Float4)).leakproof(),
    immutable(306, "float84ne", &[FLOAT8, FLOAT4], BOOL, float!(Float8 != Float4)).leakproof(),
    immutable(307, "float84lt", &[FLOAT8, FLOAT4], BOOL, float!(Float8 < Float4)).leakproof(),
    immutable(308, "float84le", &[FLOAT8, FLOAT4], BOOL, float!(Float8 <= Float4)).leakproof(),
    immutable(309, "float84gt", &[FLOAT8, FLOAT4], BOOL, float!(Float8 > Float4)).leakproof(),
    immutable(310, "float84ge", &[FLOAT8, FLOAT4], BOOL, float!(Float8 >= Float4)).leakproof(),
    immutable(390, "array_ne", &[ANYARRAY, ANYARRAY], BOOL, general!(!=)),
    immutable(391, "array_lt", &[ANYARRAY, ANYARRAY], BOOL, general!(<)),
    immutable(392, "array_gt", &[ANYARRAY, ANYARRAY], BOOL, general!(>)),
    immutable(393, "array_le", &[ANYARRAY, ANYARRAY], BOOL, general!(<=)),
    immutable(396, "array_ge", &[ANYARRAY, ANYARRAY], BOOL, general!(>=)),
    immutable(467, "int8eq", &[INT8, INT8], BOOL, whole!(Int8 == Int8)).leakproof(),
    immutable(468, "int8ne", &[INT8, INT8], BOOL, whole!(Int8 != Int8)).leakproof(),
    immutable(469, "int8lt", &[INT8, INT8], BOOL, whole!(Int8 < Int8)).leakproof(),
    immutable(470, "int8gt", &[INT8, INT8], BOOL, whole!(Int8 > Int8)).leakproof(),
    immutable(471, "int8le", &[INT8, INT8], BOOL, whole!(Int8 <= Int8)).leakproof(),
    immutable(472, "int8ge", &[INT8, INT8], BOOL, whole!(Int8 >= Int8)).leakproof(),
    immutable(474, "int84eq", &[INT8, INT4], BOOL, whole!(Int8 == Int4)).leakproof(),
    immutable(475, "int84ne", &[INT8, INT4], BOOL, whole!(Int8 != Int4)).leakproof(),
    immutable(476, "int84lt", &[INT8, INT4], BOOL, whole!(Int8 < Int4)).leakproof(),
    immutable(477, "int84gt", &[INT8, INT4], BOOL, whole!(Int8 > Int4)).leakproof(),
    immutable(478, "int84le", &[INT8, INT4], BOOL, whole!(Int8 <= Int4)).leakproof(),
    immutable(479, "int84ge", &[INT8, INT4], BOOL, whole!(Int8 >= Int4)).leakproof(),
    immutable(619, "oidvectorne", &[OIDVECTOR, OIDVECTOR], BOOL, general!(!=)).leakproof(),
    immutable(655, "namelt", &[NAME, NAME], BOOL, text!(<)).leakproof(),
    immutable(656, "namele", &[NAME, NAME], BOOL, text!(<=)).leakproof(),
    immutable(657, "namegt", &[NAME, NAME], BOOL, text!(>)).leakproof(),
    immutable(658, "namege", &[NAME, NAME], BOOL, text!(>=)).leakproof(),
    immutable(659, "namene", &[NAME, NAME], BOOL, text!(!=)).leakproof(),
    immutable(677, "oidvectorlt", &[OIDVECTOR, OIDVECTOR], BOOL, general!(<)).leakproof(),
    immutable(678, "oidvectorle", &[OIDVECTOR, OIDVECTOR], BOOL, general!(<=)).leakproof(),
    immutable(679, "oidvectoreq", &[OIDVECTOR, OIDVECTOR], BOOL, general!(==)).leakproof(),
    immutable(680, "oidvectorge", &[OIDVECTOR, OIDVECTOR], BOOL, general!(>=)).leakproof(),
    immutable(681, "oidvectorgt", &[OIDVECTOR, OIDVECTOR], BOOL, general!(>)).leakproof(),
    immutable(716, "oidlt", &[OID, OID], BOOL, whole!(Oid < Oid)).leakproof(),
    immutable(717, "oidle", &[OID, OID], BOOL, whole!(Oid <= Oid)).leakproof(),
    immutable(740, "text_lt", &[TEXT, TEXT], BOOL, text!(<)).leakproof(),
    immutable(741, "text_le", &[TEXT, TEXT], BOOL, text!(<=)).leakproof(),
    immutable(742, "text_gt", &[TEXT, TEXT], BOOL, text!(>)).leakproof(),
    immutable(743, "text_ge", &[TEXT, TEXT], BOOL, text!(>=)).leakproof(),
    immutable(744, "array_eq", &[ANYARRAY, ANYARRAY], BOOL, general!(==)),
    immutable(852, "int48eq", &[INT4, INT8], BOOL, whole!(Int4 == Int8)).leakproof(),
    immutable(853, "int48ne", &[INT4, INT8], BOOL, whole!(Int4 != Int8)).leakproof(),
    immutable(854, "int48lt", &[INT4, INT8], BOOL, whole!(Int4 < Int8)).leakproof(),
    immutable(855, "int48gt", &[INT4, INT8], BOOL, whole!(Int4 > Int8)).leakproof(),
    immutable(856, "int48le", &[INT4, INT8], BOOL, whole!(Int4 <= Int8)).leakproof(),
    immutable(857, "int48ge", &[INT4, INT8], BOOL, whole!(Int4 >= Int8)).leakproof(),
    immutable(1048, "bpchareq", &[BPCHAR, BPCHAR], BOOL, padded!(==)).leakproof(),
    immutable(1049, "bpcharlt", &[BPCHAR, BPCHAR], BOOL, padded!(<)).leakproof(),
    immutable(1050, "bpcharle", &[BPCHAR, BPCHAR], BOOL, padded!(<=)).leakproof(),
    immutable(1051, "bpchargt", &[BPCHAR, BPCHAR], BOOL, padded!(>)).leakproof(),
    immutable(1052, "bpcharge", &[BPCHAR, BPCHAR], BOOL, padded!(>=)).leakproof(),
    immutable(1053, "bpcharne", &[BPCHAR, BPCHAR], BOOL, padded!(!=)).leakproof(),
    immutable(1086, "date_eq", &[DATE, DATE], BOOL, whole!(Date == Date)).leakproof(),
    immutable(1087, "date_lt", &[DATE, DATE], BOOL, whole!(Date < Date)).leakproof(),
    immutable(1088, "date_le", &[DATE, DATE], BOOL, whole!(Date <= Date)).leakproof(),
    immutable(1089, "date_gt", &[DATE, DATE], BOOL, whole!(Date > Date)).leakproof(),
    immutable(1090, "date_ge", &[DATE, DATE], BOOL, whole!(Date >= Date)).leakproof(),
    immutable(1091, "date_ne", &[DATE, DATE], BOOL, whole!(Date != Date)).leakproof(),
    immutable(1102, "time_lt", &[TIME, TIME], BOOL, whole!(Time < Time)).leakproof(),
    immutable(1103, "time_le", &[TIME, TIME], BOOL, whole!(Time <= Time)).leakproof(),
    immutable(1104, "time_gt", &[TIME, TIME], BOOL, whole!(Time > Time)).leakproof(),
    immutable(1105, "time_ge", &[TIME, TIME], BOOL, whole!(Time >= Time)).leakproof(),
    immutable(1106, "time_ne", &[TIME, TIME], BOOL, whole!(Time != Time)).leakproof(),
    immutable(1145, "time_eq", &[TIME, TIME], BOOL, whole!(Time == Time)).leakproof(),
    immutable(1152, "timestamptz_eq", &[TIMESTAMPTZ, TIMESTAMPTZ], BOOL, whole!(TimestampTz == TimestampTz))
        .leakproof(),
    immutable(1153, "timestamptz_ne", &[TIMESTAMPTZ, TIMESTAMPTZ], BOOL, whole!(TimestampTz != TimestampTz))
        .leakproof(),
    immutable(1154, "timestamptz_lt", &[TIMESTAMPTZ, TIMESTAMPTZ], BOOL, whole!(TimestampTz < TimestampTz)).leakproof(),
    immutable(1155, "timestamptz_le", &[TIMESTAMPTZ, TIMESTAMPTZ], BOOL, whole!(TimestampTz <= TimestampTz))
        .leakproof(),
    immutable(1156, "timestamptz_ge", &[TIMESTAMPTZ, TIMESTAMPTZ], BOOL, whole!(TimestampTz >= TimestampTz))
        .leakproof(),
    immutable(1157, "timestamptz_gt", &[TIMESTAMPTZ, TIMESTAMPTZ], BOOL, whole!(TimestampTz > TimestampTz)).leakproof(),
    immutable(1162, "interval_eq", &[INTERVAL, INTERVAL], BOOL, span!(==)).leakproof(),
    immutable(1163, "interval_ne", &[INTERVAL, INTERVAL], BOOL, span!(!=)).leakproof(),
    immutable(1164, "interval_lt", &[INTERVAL, INTERVAL], BOOL, span!(<)).leakproof(),
    immutable(1165, "interval_le", &[INTERVAL, INTERVAL], BOOL, span!(<=)).leakproof(),
    immutable(1166, "interval_ge", &[INTERVAL, INTERVAL], BOOL, span!(>=)).leakproof(),
    immutable(1167, "interval_gt", &[INTERVAL, INTERVAL], BOOL, span!(>)).leakproof(),
    immutable(1246, "charlt", &[CHAR, CHAR], BOOL, letter!(<)).leakproof(),
    immutable(1265, "tidne", &[TID, TID], BOOL, whole!(Int8 != Int8)).leakproof(),
    immutable(1292, "tideq", &[TID, TID], BOOL, whole!(Int8 == Int8)).leakproof(),
    immutable(1319, "xideqint4", &[XID, INT4], BOOL, |_, a| xid_and_int(a, |x, y| x == y)).leakproof(),
    immutable(1352, "timetz_eq", &[TIMETZ, TIMETZ], BOOL, clock!(==)).leakproof(),
    immutable(1353, "timetz_ne", &[TIMETZ, TIMETZ], BOOL, clock!(!=)).leakproof(),
    immutable(1354, "timetz_lt", &[TIMETZ, TIMETZ], BOOL, clock!(<)).leakproof(),
    immutable(1355, "timetz_le", &[TIMETZ, TIMETZ], BOOL, clock!(<=)).leakproof(),
    immutable(1356, "timetz_ge", &[TIMETZ, TIMETZ], BOOL, clock!(>=)).leakproof(),
    immutable(1357, "timetz_gt", &[TIMETZ, TIMETZ], BOOL, clock!(>)).leakproof(),
    immutable(1638, "oidgt", &[OID, OID], BOOL, whole!(Oid > Oid)).leakproof(),
    immutable(1639, "oidge", &[OID, OID], BOOL, whole!(Oid >= Oid)).leakproof(),
    immutable(1691, "boolle", &[BOOL, BOOL], BOOL, whole!(Bool <= Bool)).leakproof(),
    immutable(1692, "boolge", &[BOOL, BOOL], BOOL, whole!(Bool >= Bool)).leakproof(),
    immutable(1718, "numeric_eq", &[NUMERIC, NUMERIC], BOOL, number!(==)),
    immutable(1719, "numeric_ne", &[NUMERIC, NUMERIC], BOOL, number!(!=)),
    immutable(1720, "numeric_gt", &[NUMERIC, NUMERIC], BOOL, number!(>)),
    immutable(1721, "numeric_ge", &[NUMERIC, NUMERIC], BOOL, number!(>=)),
    immutable(1722, "numeric_lt", &[NUMERIC, NUMERIC], BOOL, number!(<)),
    immutable(1723, "numeric_le", &[NUMERIC, NUMERIC], BOOL, number!(<=)),
    immutable(1850, "int28eq", &[INT2, INT8], BOOL, whole!(Int2 == Int8)).leakproof(),
    immutable(1851, "int28ne", &[INT2, INT8], BOOL, whole!(Int2 != Int8)).leakproof(),
    immutable(1852, "int28lt", &[INT2, INT8], BOOL, whole!(Int2 < Int8)).leakproof(),
    immutable(1853, "int28gt", &[INT2, INT8], BOOL, whole!(Int2 > Int8)).leakproof(),
    immutable(1854, "int28le", &[INT2, INT8], BOOL, whole!(Int2 <= Int8)).leakproof(),
    immutable(1855, "int28ge", &[INT2, INT8], BOOL, whole!(Int2 >= Int8)).leakproof(),
    immutable(1856, "int82eq", &[INT8, INT2], BOOL, whole!(Int8 == Int2)).leakproof(),
    immutable(1857, "int82ne", &[INT8, INT2], BOOL, whole!(Int8 != Int2)).leakproof(),
    immutable(1858, "int82lt", &[INT8, INT2], BOOL, whole!(Int8 < Int2)).leakproof(),
    immutable(1859, "int82gt", &[INT8, INT2], BOOL, whole!(Int8 > Int2)).leakproof(),
    immutable(1860, "int82le", &[INT8, INT2], BOOL, whole!(Int8 <= Int2)).leakproof(),
    immutable(1861, "int82ge", &[INT8, INT2], BOOL, whole!(Int8 >= Int2)).leakproof(),
    immutable(1948, "byteaeq", &[BYTEA, BYTEA], BOOL, plain!(Bytea ==)).leakproof(),
    immutable(1949, "bytealt", &[BYTEA, BYTEA], BOOL, plain!(Bytea <)).leakproof(),
    immutable(1950, "byteale", &[BYTEA, BYTEA], BOOL, plain!(Bytea <=)).leakproof(),
    immutable(1951, "byteagt", &[BYTEA, BYTEA], BOOL, plain!(Bytea >)).leakproof(),
    immutable(1952, "byteage", &[BYTEA, BYTEA], BOOL, plain!(Bytea >=)).leakproof(),
    immutable(1953, "byteane", &[BYTEA, BYTEA], BOOL, plain!(Bytea !=)).leakproof(),
    immutable(2052, "timestamp_eq", &[TIMESTAMP, TIMESTAMP], BOOL, whole!(Timestamp == Timestamp)).leakproof(),
    immutable(2053, "timestamp_ne", &[TIMESTAMP, TIMESTAMP], BOOL, whole!(Timestamp != Timestamp)).leakproof(),
    immutable(2054, "timestamp_lt", &[TIMESTAMP, TIMESTAMP], BOOL, whole!(Timestamp < Timestamp)).leakproof(),
    immutable(2055, "timestamp_le", &[TIMESTAMP, TIMESTAMP], BOOL, whole!(Timestamp <= Timestamp)).leakproof(),
    immutable(2056, "timestamp_ge", &[TIMESTAMP, TIMESTAMP], BOOL, whole!(Timestamp >= Timestamp)).leakproof(),
    immutable(2057, "timestamp_gt", &[TIMESTAMP, TIMESTAMP], BOOL, whole!(Timestamp > Timestamp)).leakproof(),
    immutable(2160, "text_pattern_lt", &[TEXT, TEXT], BOOL, text!(<)).leakproof(),
    immutable(2161, "text_pattern_le", &[TEXT, TEXT], BOOL, text!(<=)).leakproof(),
    immutable(2163, "text_pattern_ge", &[TEXT, TEXT], BOOL, text!(>=)).leakproof(),
    immutable(2164, "text_pattern_gt", &[TEXT, TEXT], BOOL, text!(>)).leakproof(),
    immutable(2174, "bpchar_pattern_lt", &[BPCHAR, BPCHAR], BOOL, padded!(<)).leakproof(),
    immutable(2175, "bpchar_pattern_le", &[BPCHAR, BPCHAR], BOOL, padded!(<=)).leakproof(),
    immutable(2177, "bpchar_pattern_ge", &[BPCHAR, BPCHAR], BOOL, padded!(>=)).leakproof(),
    immutable(2178, "bpchar_pattern_gt", &[BPCHAR, BPCHAR], BOOL, padded!(>)).leakproof(),
    immutable(2338, "date_lt_timestamp", &[DATE, TIMESTAMP], BOOL, instant!(<)),
    immutable(2339, "date_le_timestamp", &[DATE, TIMESTAMP], BOOL, instant!(<=)),
    immutable(2340, "date_eq_timestamp", &[DATE, TIMESTAMP], BOOL, instant!(==)),
    immutable(2341, "date_gt_timestamp", &[DATE, TIMESTAMP], BOOL, instant!(>)),
    immutable(2342, "date_ge_timestamp", &[DATE, TIMESTAMP], BOOL, instant!(>=)),
    immutable(2343, "date_ne_timestamp", &[DATE, TIMESTAMP], BOOL, instant!(!=)),
    stable(2351, "date_lt_timestamptz", &[DATE, TIMESTAMPTZ], BOOL, instant!(<)),
    stable(2352, "date_le_timestamptz", &[DATE, TIMESTAMPTZ], BOOL, instant!(<=)),
    stable(2353, "date_eq_timestamptz", &[DATE, TIMESTAMPTZ], BOOL, instant!(==)),
    stable(2354, "date_gt_timestamptz", &[DATE, TIMESTAMPTZ], BOOL, instant!(>)),
    stable(2355, "date_ge_timestamptz", &[DATE, TIMESTAMPTZ], BOOL, instant!(>=)),
    stable(2356, "date_ne_timestamptz", &[DATE, TIMESTAMPTZ], BOOL, instant!(!=)),
    immutable(2364, "timestamp_lt_date", &[TIMESTAMP, DATE], BOOL, instant!(<)),
    immutable(2365, "timestamp_le_date", &[TIMESTAMP, DATE], BOOL, instant!(<=)),
    immutable(2366, "timestamp_eq_date", &[TIMESTAMP, DATE], BOOL, instant!(==)),
    immutable(2367, "timestamp_gt_date", &[TIMESTAMP, DATE], BOOL, instant!(>)),
    immutable(2368, "timestamp_ge_date", &[TIMESTAMP, DATE], BOOL, instant!(>=)),
    immutable(2369, "timestamp_ne_date", &[TIMESTAMP, DATE], BOOL, instant!(!=)),
    stable(2377, "timestamptz_lt_date", &[TIMESTAMPTZ, DATE], BOOL, instant!(<)),
    stable(2378, "timestamptz_le_date", &[TIMESTAMPTZ, DATE], BOOL, instant!(<=)),
    stable(2379, "timestamptz_eq_date", &[TIMESTAMPTZ, DATE], BOOL, instant!(==)),
    stable(2380, "timestamptz_gt_date", &[TIMESTAMPTZ, DATE], BOOL, instant!(>)),
    stable(2381, "timestamptz_ge_date", &[TIMESTAMPTZ, DATE], BOOL, instant!(>=)),
    stable(2382, "timestamptz_ne_date", &[TIMESTAMPTZ, DATE], BOOL, instant!(!=)),
    stable(2520, "timestamp_lt_timestamptz", &[TIMESTAMP, TIMESTAMPTZ], BOOL, instant!(<)),
    stable(2521, "timestamp_le_timestamptz", &[TIMESTAMP, TIMESTAMPTZ], BOOL, instant!(<=)),
    stable(2522, "timestamp_eq_timestamptz", &[TIMESTAMP, TIMESTAMPTZ], BOOL, instant!(==)),
    stable(2523, "timestamp_gt_timestamptz", &[TIMESTAMP, TIMESTAMPTZ], BOOL, instant!(>)),
    stable(2524, "timestamp_ge_timestamptz", &[TIMESTAMP, TIMESTAMPTZ], BOOL, instant!(>=)),
    stable(2525, "timestamp_ne_timestamptz", &[TIMESTAMP, TIMESTAMPTZ], BOOL, instant!(!=)),
    stable(2527, "timestamptz_lt_timestamp", &[TIMESTAMPTZ, TIMESTAMP], BOOL, instant!(<)),
    stable(2528, "timestamptz_le_timestamp", &[TIMESTAMPTZ, TIMESTAMP], BOOL, instant!(<=)),
    stable(2529, "timestamptz_eq_timestamp", &[TIMESTAMPTZ, TIMESTAMP], BOOL, instant!(==)),
    stable(2530, "timestamptz_gt_timestamp", &[TIMESTAMPTZ, TIMESTAMP], BOOL, instant!(>)),
    stable(2531, "timestamptz_ge_timestamp", &[TIMESTAMPTZ, TIMESTAMP], BOOL, instant!(>=)),
    stable(2532, "timestamptz_ne_timestamp", &[TIMESTAMPTZ, TIMESTAMP], BOOL, instant!(!=)),
    immutable(2790, "tidgt", &[TID, TID], BOOL, whole!(Int8 > Int8)).leakproof(),
    immutable(2791, "tidlt", &[TID, TID], BOOL, whole!(Int8 < Int8)).leakproof(),
    immutable(2792, "tidge", &[TID, TID], BOOL, whole!(Int8 >= Int8)).leakproof(),
    immutable(2793, "tidle", &[TID, TID], BOOL, whole!(Int8 <= Int8)).leakproof(),
    immutable(2954, "uuid_lt", &[UUID, UUID], BOOL, plain!(Uuid <)).leakproof(),
    immutable(2955, "uuid_le", &[UUID, UUID], BOOL, plain!(Uuid <=)).leakproof(),
    immutable(2956, "uuid_eq", &[UUID, UUID], BOOL, plain!(Uuid ==)).leakproof(),
    immutable(2957, "uuid_ge", &[UUID, UUID], BOOL, plain!(Uuid >=)).leakproof(),
    immutable(2958, "uuid_gt", &[UUID, UUID], BOOL, plain!(Uuid >)).leakproof(),
    immutable(2959, "uuid_ne", &[UUID, UUID], BOOL, plain!(Uuid !=)).leakproof(),
    immutable(2981, "record_eq", &[RECORD, RECORD], BOOL, record!(==)),
    immutable(2982, "record_ne", &[RECORD, RECORD], BOOL, record!(!=)),
    immutable(2983, "record_lt", &[RECORD, RECORD], BOOL, record!(<)),
    immutable(2984, "record_gt", &[RECORD, RECORD], BOOL, record!(>)),
    immutable(2985, "record_le", &[RECORD, RECORD], BOOL, record!(<=)),
    immutable(2986, "record_ge", &[RECORD, RECORD], BOOL, record!(>=)),
    immutable(3308, "xidneq", &[XID, XID], BOOL, whole!(Oid != Oid)).leakproof(),
    immutable(3309, "xidneqint4", &[XID, INT4], BOOL, |_, a| xid_and_int(a, |x, y| x != y)).leakproof(),
    immutable(4038, "jsonb_ne", &[JSONB, JSONB], BOOL, document!(!=)),
    immutable(4039, "jsonb_lt", &[JSONB, JSONB], BOOL, document!(<)),
    immutable(4040, "jsonb_gt", &[JSONB, JSONB], BOOL, document!(>)),
    immutable(4041, "jsonb_le", &[JSONB, JSONB], BOOL, document!(<=)),
    immutable(4042, "jsonb_ge", &[JSONB, JSONB], BOOL, document!(>=)),
    immutable(4043, "jsonb_eq", &[JSONB, JSONB], BOOL, document!(==)),
    immutable(5034, "xid8lt", &[XID8, XID8], BOOL, whole!(Int8 < Int8)).leakproof(),
    immutable(5035, "xid8gt", &[XID8, XID8], BOOL, whole!(Int8 > Int8)).leakproof(),
    immutable(5036, "xid8le", &[XID8, XID8], BOOL, whole!(Int8 <= Int8)).leakproof(),
    immutable(5037, "xid8ge", &[XID8, XID8], BOOL, whole!(Int8 >= Int8)).leakproof(),
    immutable(5084, "xid8eq", &[XID8, XID8], BOOL, whole!(Int8 == Int8)).leakproof(),
    immutable(5085, "xid8ne", &[XID8, XID8], BOOL, whole!(Int8 != Int8)).leakproof(),
];
