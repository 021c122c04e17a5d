//! The table of casts and the functions behind them.
//!
//! Casts that are not in the table go through the text form. Where PostgreSQL has no function because two types look the
//! same in its memory, but not here (`integer` and `oid`), there is one with an OID of ours (from 9400).

use base::{Error, Oid, Result, SqlState};
use types::json::{self, Value};
use types::oid::*;
use types::{Datum, InputContext, Numeric as Number, TimeZone, datetime as dt};

use super::CastContext::{Assignment, Explicit, Implicit};
use super::arithmetic::{overflow, same, underflow};
use super::entry::{immutable, mismatched, stable};
use super::{CastContext, CastEntry, EvalContext, Function};

/// The value of one argument's cast: the variant it has, and the one it becomes (after `?`: maybe NULL).
macro_rules! of {
    ($args:ident, $from:ident($value:ident) => ?$result:expr) => {
        match $args {
            [Datum::$from($value)] => Ok($result.unwrap_or_default()),
            _ => mismatched($args),
        }
    };
    ($args:ident, $from:ident($value:ident) => $to:ident($result:expr)) => {
        match $args {
            [Datum::$from($value)] => Ok(Datum::$to($result)),
            _ => mismatched($args),
        }
    };
}

/// Integers that others are made to fit in.
trait Narrow: TryFrom<i64> {
    const RANGE: &'static str;
    const BITS: i32;
}

impl Narrow for i16 {
    const RANGE: &'static str = "smallint out of range";
    const BITS: i32 = 15;
}
impl Narrow for i32 {
    const RANGE: &'static str = "integer out of range";
    const BITS: i32 = 31;
}
impl Narrow for i64 {
    const RANGE: &'static str = "bigint out of range";
    const BITS: i32 = 63;
}

#[cold]
fn out_of_range(message: &str) -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

#[inline]
fn narrow<T: Narrow>(value: i64) -> Result<T> {
    T::try_from(value).map_err(|_| out_of_range(T::RANGE))
}

/// A float as an integer: rounded half to even.
#[inline]
fn whole<T: Narrow>(value: f64) -> Result<T> {
    let rounded = value.round_ties_even();
    let bound = 2f64.powi(T::BITS);
    if rounded >= -bound && rounded < bound { narrow(rounded as i64) } else { Err(out_of_range(T::RANGE)) }
}

fn zone(cx: &dyn EvalContext) -> &TimeZone {
    &cx.settings().timezone
}

fn timetz((time, west): (i64, i32)) -> Datum {
    Datum::TimeTz(time, west)
}

fn input(cx: &dyn EvalContext) -> InputContext<'_> {
    InputContext { settings: cx.settings(), now_micros: cx.transaction_timestamp() }
}

fn bool_text(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Bool(v)] => Ok(Datum::text(if *v { "true" } else { "false" })),
        _ => mismatched(args),
    }
}

fn float8_to_float4(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Float8(wide)] = args else { return mismatched(args) };
    let value = *wide as f32;
    if value.is_infinite() && !wide.is_infinite() {
        return Err(overflow());
    }
    if value == 0.0 && *wide != 0.0 { Err(underflow()) } else { Ok(Datum::Float4(value)) }
}

/// Any integer as an OID: the narrower ones keep their bits.
fn to_oid(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Int2(v)] => Ok(Datum::Oid(i32::from(*v) as u32)),
        [Datum::Int4(v)] => Ok(Datum::Oid(*v as u32)),
        [Datum::Int8(v)] => u32::try_from(*v).map(Datum::Oid).map_err(|_| out_of_range("OID out of range")),
        _ => mismatched(args),
    }
}

fn to_char(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(v)] => types::parse_text(CHAR, -1, v, &input(cx)),
        _ => mismatched(args),
    }
}

fn char_to_int4(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(v)] => Ok(Datum::Int4(i32::from(super::comparison::char_byte(v) as i8))),
        _ => mismatched(args),
    }
}

fn int4_to_char(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Int4(v)] = args else { return mismatched(args) };
    let byte = i8::try_from(*v).map_err(|_| out_of_range("\"char\" out of range"))? as u8;
    let text = if byte == 0 { String::new() } else { format!("\\{byte:03o}") };
    types::parse_text(CHAR, -1, &text, &input(cx))
}

fn without_blanks(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(v)] if v.ends_with(' ') => Ok(Datum::text(v.trim_end_matches(' '))),
        [v @ Datum::Text(_)] => Ok(v.clone()),
        _ => mismatched(args),
    }
}

fn text_to_name(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(v)] if v.len() > 63 => types::parse_text(NAME, -1, v, &input(cx)),
        [v @ Datum::Text(_)] => Ok(v.clone()),
        _ => mismatched(args),
    }
}

fn padded_to_name(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    text_to_name(cx, &[without_blanks(cx, args)?])
}

fn time_to_timetz(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Time(v)] => Ok(timetz(dt::time_to_timetz(*v, &input(cx)))),
        _ => mismatched(args),
    }
}

fn timetz_to_time(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::TimeTz(v, west)] => Ok(Datum::Time(dt::timetz_to_time(*v, *west))),
        _ => mismatched(args),
    }
}

/// A value with its type's modifier applied; a third argument says whether the cast is explicit.
fn limited(args: &[Datum], ty: Oid) -> Result<Datum> {
    // Casts have modifiers that were checked; a call can have any, and would be padded to two billion characters.
    const LONGEST: i32 = 10_485_760 + 4;
    match args {
        [_, Datum::Int4(typmod), ..] if ty == BPCHAR && *typmod > LONGEST => {
            let message = "length for type char cannot exceed 10485760";
            Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
        [value, Datum::Int4(typmod)] => types::apply_typmod(value.clone(), ty, *typmod, true),
        [value, Datum::Int4(typmod), Datum::Bool(explicit)] => {
            types::apply_typmod(value.clone(), ty, *typmod, *explicit)
        }
        _ => mismatched(args),
    }
}

fn to_jsonb(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(v)] => Ok(json::normal_form(v)?.into()),
        _ => mismatched(args),
    }
}

/// What a scalar document becomes; documents of other kinds are an error.
fn scalar(args: &[Datum], ty: &str, convert: impl FnOnce(&Value) -> Option<Result<Datum>>) -> Result<Datum> {
    let [Datum::Text(text)] = args else { return mismatched(args) };
    let document = json::parse(text)?;
    let kind = match &document {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "numeric",
        Value::String(_) | Value::Moment(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    convert(&document).unwrap_or_else(|| {
        Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("cannot cast jsonb {kind} to type {ty}")))
    })
}

fn json_number(args: &[Datum], ty: &str, convert: fn(&Number) -> Result<Datum>) -> Result<Datum> {
    scalar(args, ty, |v| match v {
        Value::Number(v) => Some(convert(v)),
        _ => None,
    })
}

fn jsonb_to_bool(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    scalar(args, "boolean", |v| match v {
        Value::Bool(v) => Some(Ok(Datum::Bool(*v))),
        _ => None,
    })
}

const fn cast(source: Oid, target: Oid, context: CastContext, function: Option<&'static str>) -> CastEntry {
    CastEntry { source, target, context, function }
}

/// The functions, by OID.
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(77, "int4", &[CHAR], INT4, char_to_int4),
    immutable(78, "char", &[INT4], CHAR, int4_to_char),
    immutable(235, "float8", &[INT2], FLOAT8, |_, a| of!(a, Int2(v) => Float8(*v as f64))).leakproof(),
    immutable(236, "float4", &[INT2], FLOAT4, |_, a| of!(a, Int2(v) => Float4(*v as f32))).leakproof(),
    immutable(237, "int2", &[FLOAT8], INT2, |_, a| of!(a, Float8(v) => Int2(whole(*v)?))),
    immutable(238, "int2", &[FLOAT4], INT2, |_, a| of!(a, Float4(v) => Int2(whole(f64::from(*v))?))),
    immutable(311, "float8", &[FLOAT4], FLOAT8, |_, a| of!(a, Float4(v) => Float8(f64::from(*v)))).leakproof(),
    immutable(312, "float4", &[FLOAT8], FLOAT4, float8_to_float4),
    immutable(313, "int4", &[INT2], INT4, |_, a| of!(a, Int2(v) => Int4(i32::from(*v)))).leakproof(),
    immutable(314, "int2", &[INT4], INT2, |_, a| of!(a, Int4(v) => Int2(narrow(i64::from(*v))?))),
    immutable(316, "float8", &[INT4], FLOAT8, |_, a| of!(a, Int4(v) => Float8(*v as f64))).leakproof(),
    immutable(317, "int4", &[FLOAT8], INT4, |_, a| of!(a, Float8(v) => Int4(whole(*v)?))),
    immutable(318, "float4", &[INT4], FLOAT4, |_, a| of!(a, Int4(v) => Float4(*v as f32))).leakproof(),
    immutable(319, "int4", &[FLOAT4], INT4, |_, a| of!(a, Float4(v) => Int4(whole(f64::from(*v))?))),
    immutable(401, "text", &[BPCHAR], TEXT, without_blanks),
    immutable(406, "text", &[NAME], TEXT, same).leakproof(),
    immutable(407, "name", &[TEXT], NAME, text_to_name).leakproof(),
    immutable(408, "bpchar", &[NAME], BPCHAR, same),
    immutable(409, "name", &[BPCHAR], NAME, padded_to_name).leakproof(),
    immutable(480, "int4", &[INT8], INT4, |_, a| of!(a, Int8(v) => Int4(narrow(*v)?))),
    immutable(481, "int8", &[INT4], INT8, |_, a| of!(a, Int4(v) => Int8(i64::from(*v)))).leakproof(),
    immutable(482, "float8", &[INT8], FLOAT8, |_, a| of!(a, Int8(v) => Float8(*v as f64))).leakproof(),
    immutable(483, "int8", &[FLOAT8], INT8, |_, a| of!(a, Float8(v) => Int8(whole(*v)?))),
    immutable(652, "float4", &[INT8], FLOAT4, |_, a| of!(a, Int8(v) => Float4(*v as f32))).leakproof(),
    immutable(653, "int8", &[FLOAT4], INT8, |_, a| of!(a, Float4(v) => Int8(whole(f64::from(*v))?))),
    immutable(668, "bpchar", &[BPCHAR, INT4, BOOL], BPCHAR, |_, a| limited(a, BPCHAR)),
    immutable(669, "varchar", &[VARCHAR, INT4, BOOL], VARCHAR, |_, a| limited(a, VARCHAR)),
    immutable(714, "int2", &[INT8], INT2, |_, a| of!(a, Int8(v) => Int2(narrow(*v)?))),
    immutable(754, "int8", &[INT2], INT8, |_, a| of!(a, Int2(v) => Int8(i64::from(*v)))).leakproof(),
    immutable(860, "bpchar", &[CHAR], BPCHAR, same),
    immutable(944, "char", &[TEXT], CHAR, to_char),
    immutable(946, "text", &[CHAR], TEXT, same),
    stable(
        1174,
        "timestamptz",
        &[DATE],
        TIMESTAMPTZ,
        |cx, a| of!(a, Date(d) => TimestampTz(dt::date_to_timestamptz(*d, zone(cx))?)),
    ),
    stable(
        1178,
        "date",
        &[TIMESTAMPTZ],
        DATE,
        |cx, a| of!(a, TimestampTz(t) => Date(dt::timestamptz_to_date(*t, zone(cx)))),
    ),
    immutable(1200, "interval", &[INTERVAL, INT4], INTERVAL, |_, a| limited(a, INTERVAL)),
    immutable(1287, "oid", &[INT8], OID, to_oid),
    immutable(1288, "int8", &[OID], INT8, |_, a| of!(a, Oid(v) => Int8(i64::from(*v)))).leakproof(),
    immutable(
        1316,
        "time",
        &[TIMESTAMP],
        TIME,
        |_, a| of!(a, Timestamp(t) => ?dt::timestamp_to_time(*t).map(Datum::Time)),
    ),
    immutable(1370, "interval", &[TIME], INTERVAL, |_, a| of!(a, Time(v) => Interval(dt::time_to_interval(*v))))
        .leakproof(),
    stable(
        1388,
        "timetz",
        &[TIMESTAMPTZ],
        TIMETZ,
        |cx, a| of!(a, TimestampTz(t) => ?dt::timestamptz_to_timetz(*t, zone(cx)).map(timetz)),
    ),
    immutable(1400, "name", &[VARCHAR], NAME, text_to_name).leakproof(),
    immutable(1401, "varchar", &[NAME], VARCHAR, same).leakproof(),
    immutable(1419, "time", &[INTERVAL], TIME, |_, a| of!(a, Interval(v) => Time(dt::interval_to_time(v)))),
    immutable(1703, "numeric", &[NUMERIC, INT4], NUMERIC, |_, a| limited(a, NUMERIC)),
    immutable(1740, "numeric", &[INT4], NUMERIC, |_, a| of!(a, Int4(v) => Numeric(Number::new(i64::from(*v), 0))))
        .leakproof(),
    immutable(1742, "numeric", &[FLOAT4], NUMERIC, |_, a| of!(a, Float4(v) => Numeric(Number::from_f32(*v))))
        .leakproof(),
    immutable(1743, "numeric", &[FLOAT8], NUMERIC, |_, a| of!(a, Float8(v) => Numeric(Number::from_f64(*v))))
        .leakproof(),
    immutable(1744, "int4", &[NUMERIC], INT4, |_, a| of!(a, Numeric(v) => Int4(v.to_i32()?))),
    immutable(1745, "float4", &[NUMERIC], FLOAT4, |_, a| of!(a, Numeric(v) => Float4(v.to_float4()?))),
    immutable(1746, "float8", &[NUMERIC], FLOAT8, |_, a| of!(a, Numeric(v) => Float8(v.to_float8()?))),
    immutable(1779, "int8", &[NUMERIC], INT8, |_, a| of!(a, Numeric(v) => Int8(v.to_i64()?))),
    immutable(1781, "numeric", &[INT8], NUMERIC, |_, a| of!(a, Int8(v) => Numeric(Number::new(*v, 0)))).leakproof(),
    immutable(1782, "numeric", &[INT2], NUMERIC, |_, a| of!(a, Int2(v) => Numeric(Number::new(i64::from(*v), 0))))
        .leakproof(),
    immutable(1783, "int2", &[NUMERIC], INT2, |_, a| of!(a, Numeric(v) => Int2(v.to_i16()?))),
    immutable(1961, "timestamp", &[TIMESTAMP, INT4], TIMESTAMP, |_, a| limited(a, TIMESTAMP)),
    immutable(1967, "timestamptz", &[TIMESTAMPTZ, INT4], TIMESTAMPTZ, |_, a| limited(a, TIMESTAMPTZ)),
    immutable(1968, "time", &[TIME, INT4], TIME, |_, a| limited(a, TIME)),
    immutable(1969, "timetz", &[TIMETZ, INT4], TIMETZ, |_, a| limited(a, TIMETZ)),
    stable(
        2019,
        "time",
        &[TIMESTAMPTZ],
        TIME,
        |cx, a| of!(a, TimestampTz(t) => ?dt::timestamptz_to_time(*t, zone(cx)).map(Datum::Time)),
    ),
    immutable(2024, "timestamp", &[DATE], TIMESTAMP, |_, a| of!(a, Date(d) => Timestamp(dt::date_to_timestamp(*d)?))),
    stable(
        2027,
        "timestamp",
        &[TIMESTAMPTZ],
        TIMESTAMP,
        |cx, a| of!(a, TimestampTz(t) => Timestamp(dt::timestamptz_to_timestamp(*t, zone(cx))?)),
    ),
    stable(
        2028,
        "timestamptz",
        &[TIMESTAMP],
        TIMESTAMPTZ,
        |cx, a| of!(a, Timestamp(t) => TimestampTz(dt::timestamp_to_timestamptz(*t, zone(cx))?)),
    ),
    immutable(2029, "date", &[TIMESTAMP], DATE, |_, a| of!(a, Timestamp(t) => Date(dt::timestamp_to_date(*t)))),
    immutable(2046, "time", &[TIMETZ], TIME, timetz_to_time),
    stable(2047, "timetz", &[TIME], TIMETZ, time_to_timetz),
    immutable(2557, "bool", &[INT4], BOOL, |_, a| of!(a, Int4(v) => Bool(*v != 0))).leakproof(),
    immutable(2558, "int4", &[BOOL], INT4, |_, a| of!(a, Bool(v) => Int4(i32::from(*v)))).leakproof(),
    immutable(2580, "float8", &[JSONB], FLOAT8, |_, a| {
        json_number(a, "double precision", |v| Ok(Datum::Float8(v.to_float8()?)))
    }),
    immutable(2971, "text", &[BOOL], TEXT, bool_text),
    immutable(3449, "numeric", &[JSONB], NUMERIC, |_, a| json_number(a, "numeric", |v| Ok(Datum::Numeric(v.clone())))),
    immutable(3450, "int2", &[JSONB], INT2, |_, a| json_number(a, "smallint", |v| Ok(Datum::Int2(v.to_i16()?)))),
    immutable(3451, "int4", &[JSONB], INT4, |_, a| json_number(a, "integer", |v| Ok(Datum::Int4(v.to_i32()?)))),
    immutable(3452, "int8", &[JSONB], INT8, |_, a| json_number(a, "bigint", |v| Ok(Datum::Int8(v.to_i64()?)))),
    immutable(3453, "float4", &[JSONB], FLOAT4, |_, a| json_number(a, "real", |v| Ok(Datum::Float4(v.to_float4()?)))),
    immutable(3556, "bool", &[JSONB], BOOL, jsonb_to_bool),
    immutable(5071, "xid", &[XID8], XID, |_, a| of!(a, Int8(v) => Oid(types::xid8_number(*v) as u32))),
    immutable(9400, "char", &[BPCHAR], CHAR, to_char),
    immutable(9401, "oid", &[INT2], OID, to_oid),
    immutable(9402, "regclass", &[INT2], REGCLASS, to_oid),
    immutable(9403, "regcollation", &[INT2], REGCOLLATION, to_oid),
    immutable(9404, "regnamespace", &[INT2], REGNAMESPACE, to_oid),
    immutable(9405, "regoper", &[INT2], REGOPER, to_oid),
    immutable(9406, "regoperator", &[INT2], REGOPERATOR, to_oid),
    immutable(9590, "regproc", &[INT2], REGPROC, to_oid),
    immutable(9591, "regproc", &[INT4], REGPROC, to_oid),
    immutable(9592, "regproc", &[INT8], REGPROC, to_oid),
    immutable(9593, "int4", &[REGPROC], INT4, |_, a| of!(a, Oid(v) => Int4(*v as i32))),
    immutable(9594, "int8", &[REGPROC], INT8, |_, a| of!(a, Oid(v) => Int8(i64::from(*v)))),
    immutable(9407, "regprocedure", &[INT2], REGPROCEDURE, to_oid),
    immutable(9408, "regrole", &[INT2], REGROLE, to_oid),
    immutable(9409, "regtype", &[INT2], REGTYPE, to_oid),
    immutable(9410, "oid", &[INT4], OID, to_oid),
    immutable(9411, "regclass", &[INT4], REGCLASS, to_oid),
    immutable(9412, "regcollation", &[INT4], REGCOLLATION, to_oid),
    immutable(9413, "regnamespace", &[INT4], REGNAMESPACE, to_oid),
    immutable(9414, "regoper", &[INT4], REGOPER, to_oid),
    immutable(9415, "regoperator", &[INT4], REGOPERATOR, to_oid),
    immutable(9416, "regprocedure", &[INT4], REGPROCEDURE, to_oid),
    immutable(9417, "regrole", &[INT4], REGROLE, to_oid),
    immutable(9418, "regtype", &[INT4], REGTYPE, to_oid),
    immutable(9419, "regclass", &[INT8], REGCLASS, to_oid),
    immutable(9420, "regcollation", &[INT8], REGCOLLATION, to_oid),
    immutable(9421, "regnamespace", &[INT8], REGNAMESPACE, to_oid),
    immutable(9422, "regoper", &[INT8], REGOPER, to_oid),
    immutable(9423, "regoperator", &[INT8], REGOPERATOR, to_oid),
    immutable(9424, "regprocedure", &[INT8], REGPROCEDURE, to_oid),
    immutable(9425, "regrole", &[INT8], REGROLE, to_oid),
    immutable(9426, "regtype", &[INT8], REGTYPE, to_oid),
    immutable(9427, "int4", &[OID], INT4, |_, a| of!(a, Oid(v) => Int4(*v as i32))),
    immutable(9428, "int4", &[REGCLASS], INT4, |_, a| of!(a, Oid(v) => Int4(*v as i32))),
    immutable(9429, "int8", &[REGCLASS], INT8, |_, a| of!(a, Oid(v) => Int8(i64::from(*v)))),
    immutable(9430, "int4", &[REGCOLLATION], INT4, |_, a| of!(a, Oid(v) => Int4(*v as i32))),
    immutable(9431, "int8", &[REGCOLLATION], INT8, |_, a| of!(a, Oid(v) => Int8(i64::from(*v)))),
    immutable(9432, "int4", &[REGNAMESPACE], INT4, |_, a| of!(a, Oid(v) => Int4(*v as i32))),
    immutable(9433, "int8", &[REGNAMESPACE], INT8, |_, a| of!(a, Oid(v) => Int8(i64::from(*v)))),
    immutable(9434, "int4", &[REGOPER], INT4, |_, a| of!(a, Oid(v) => Int4(*v as i32))),
    immutable(9435, "int8", &[REGOPER], INT8, |_, a| of!(a, Oid(v) => Int8(i64::from(*v)))),
    immutable(9436, "int4", &[REGOPERATOR], INT4, |_, a| of!(a, Oid(v) => Int4(*v as i32))),
    immutable(9437, "int8", &[REGOPERATOR], INT8, |_, a| of!(a, Oid(v) => Int8(i64::from(*v)))),
    immutable(9438, "int4", &[REGPROCEDURE], INT4, |_, a| of!(a, Oid(v) => Int4(*v as i32))),
    immutable(9439, "int8", &[REGPROCEDURE], INT8, |_, a| of!(a, Oid(v) => Int8(i64::from(*v)))),
    immutable(9440, "int4", &[REGROLE], INT4, |_, a| of!(a, Oid(v) => Int4(*v as i32))),
    immutable(9441, "int8", &[REGROLE], INT8, |_, a| of!(a, Oid(v) => Int8(i64::from(*v)))),
    immutable(9442, "int4", &[REGTYPE], INT4, |_, a| of!(a, Oid(v) => Int4(*v as i32))),
    immutable(9443, "int8", &[REGTYPE], INT8, |_, a| of!(a, Oid(v) => Int8(i64::from(*v)))),
    immutable(9444, "char", &[VARCHAR], CHAR, to_char),
    immutable(9446, "jsonb", &[JSON], JSONB, to_jsonb),
    immutable(9447, "json", &[JSONB], JSON, same),
];

/// The table of casts, by source and target.
pub(super) static CASTS: &[CastEntry] = &[
    cast(BIT, BIT, Implicit, Some("bit")),
    cast(BIT, INT4, Explicit, Some("int4")),
    cast(BIT, INT8, Explicit, Some("int8")),
    cast(BIT, VARBIT, Implicit, None),
    cast(BOOL, BPCHAR, Assignment, Some("text")),
    cast(BOOL, INT4, Explicit, Some("int4")),
    cast(BOOL, TEXT, Assignment, Some("text")),
    cast(BOOL, VARCHAR, Assignment, Some("text")),
    cast(BPCHAR, BPCHAR, Implicit, Some("bpchar")),
    cast(BPCHAR, CHAR, Assignment, Some("char")),
    cast(BPCHAR, NAME, Implicit, Some("name")),
    cast(BPCHAR, TEXT, Implicit, Some("text")),
    cast(BPCHAR, VARCHAR, Implicit, Some("text")),
    cast(CHAR, BPCHAR, Assignment, Some("bpchar")),
    cast(CHAR, INT4, Explicit, Some("int4")),
    cast(CHAR, TEXT, Implicit, Some("text")),
    cast(CHAR, VARCHAR, Assignment, Some("text")),
    cast(CIDR, BPCHAR, Assignment, Some("text")),
    cast(CIDR, INET, Implicit, None),
    cast(CIDR, TEXT, Assignment, Some("text")),
    cast(CIDR, VARCHAR, Assignment, Some("text")),
    cast(DATE, TIMESTAMP, Implicit, Some("timestamp")),
    cast(DATE, TIMESTAMPTZ, Implicit, Some("timestamptz")),
    cast(FLOAT4, FLOAT8, Implicit, Some("float8")),
    cast(FLOAT4, INT2, Assignment, Some("int2")),
    cast(FLOAT4, INT4, Assignment, Some("int4")),
    cast(FLOAT4, INT8, Assignment, Some("int8")),
    cast(FLOAT4, NUMERIC, Assignment, Some("numeric")),
    cast(FLOAT8, FLOAT4, Assignment, Some("float4")),
    cast(FLOAT8, INT2, Assignment, Some("int2")),
    cast(FLOAT8, INT4, Assignment, Some("int4")),
    cast(FLOAT8, INT8, Assignment, Some("int8")),
    cast(FLOAT8, NUMERIC, Assignment, Some("numeric")),
    cast(INET, BPCHAR, Assignment, Some("text")),
    cast(INET, CIDR, Assignment, Some("cidr")),
    cast(INET, TEXT, Assignment, Some("text")),
    cast(INET, VARCHAR, Assignment, Some("text")),
    cast(INT2, FLOAT4, Implicit, Some("float4")),
    cast(INT2, FLOAT8, Implicit, Some("float8")),
    cast(INT2, INT4, Implicit, Some("int4")),
    cast(INT2, INT8, Implicit, Some("int8")),
    cast(INT2, NUMERIC, Implicit, Some("numeric")),
    cast(INT2, OID, Implicit, Some("oid")),
    cast(INT2, REGCLASS, Implicit, Some("regclass")),
    cast(INT2, REGCOLLATION, Implicit, Some("regcollation")),
    cast(INT2, REGNAMESPACE, Implicit, Some("regnamespace")),
    cast(INT2, REGOPER, Implicit, Some("regoper")),
    cast(INT2, REGOPERATOR, Implicit, Some("regoperator")),
    cast(INT2, REGPROC, Implicit, Some("regproc")),
    cast(INT2, REGPROCEDURE, Implicit, Some("regprocedure")),
    cast(INT2, REGROLE, Implicit, Some("regrole")),
    cast(INT2, REGTYPE, Implicit, Some("regtype")),
    cast(INT4, BIT, Explicit, Some("bit")),
    cast(INT4, BOOL, Explicit, Some("bool")),
    cast(INT4, CHAR, Explicit, Some("char")),
    cast(INT4, FLOAT4, Implicit, Some("float4")),
    cast(INT4, FLOAT8, Implicit, Some("float8")),
    cast(INT4, INT2, Assignment, Some("int2")),
    cast(INT4, INT8, Implicit, Some("int8")),
    cast(INT4, NUMERIC, Implicit, Some("numeric")),
    cast(INT4, OID, Implicit, Some("oid")),
    cast(INT4, REGCLASS, Implicit, Some("regclass")),
    cast(INT4, REGCOLLATION, Implicit, Some("regcollation")),
    cast(INT4, REGNAMESPACE, Implicit, Some("regnamespace")),
    cast(INT4, REGOPER, Implicit, Some("regoper")),
    cast(INT4, REGOPERATOR, Implicit, Some("regoperator")),
    cast(INT4, REGPROC, Implicit, Some("regproc")),
    cast(INT4, REGPROCEDURE, Implicit, Some("regprocedure")),
    cast(INT4, REGROLE, Implicit, Some("regrole")),
    cast(INT4, REGTYPE, Implicit, Some("regtype")),
    cast(INT8, BIT, Explicit, Some("bit")),
    cast(INT8, FLOAT4, Implicit, Some("float4")),
    cast(INT8, FLOAT8, Implicit, Some("float8")),
    cast(INT8, INT2, Assignment, Some("int2")),
    cast(INT8, INT4, Assignment, Some("int4")),
    cast(INT8, NUMERIC, Implicit, Some("numeric")),
    cast(INT8, OID, Implicit, Some("oid")),
    cast(INT8, REGCLASS, Implicit, Some("regclass")),
    cast(INT8, REGCOLLATION, Implicit, Some("regcollation")),
    cast(INT8, REGNAMESPACE, Implicit, Some("regnamespace")),
    cast(INT8, REGOPER, Implicit, Some("regoper")),
    cast(INT8, REGOPERATOR, Implicit, Some("regoperator")),
    cast(INT8, REGPROC, Implicit, Some("regproc")),
    cast(INT8, REGPROCEDURE, Implicit, Some("regprocedure")),
    cast(INT8, REGROLE, Implicit, Some("regrole")),
    cast(INT8, REGTYPE, Implicit, Some("regtype")),
    cast(INTERVAL, INTERVAL, Implicit, Some("interval")),
    cast(INTERVAL, TIME, Assignment, Some("time")),
    cast(JSON, JSONB, Assignment, Some("jsonb")),
    cast(JSONB, BOOL, Explicit, Some("bool")),
    cast(JSONB, FLOAT4, Explicit, Some("float4")),
    cast(JSONB, FLOAT8, Explicit, Some("float8")),
    cast(JSONB, INT2, Explicit, Some("int2")),
    cast(JSONB, INT4, Explicit, Some("int4")),
    cast(JSONB, INT8, Explicit, Some("int8")),
    cast(JSONB, JSON, Assignment, Some("json")),
    cast(JSONB, NUMERIC, Explicit, Some("numeric")),
    cast(MACADDR, MACADDR8, Implicit, Some("macaddr8")),
    cast(MACADDR8, MACADDR, Implicit, Some("macaddr")),
    cast(NAME, BPCHAR, Assignment, Some("bpchar")),
    cast(NAME, TEXT, Implicit, Some("text")),
    cast(NAME, VARCHAR, Assignment, Some("varchar")),
    cast(NUMERIC, FLOAT4, Implicit, Some("float4")),
    cast(NUMERIC, FLOAT8, Implicit, Some("float8")),
    cast(NUMERIC, INT2, Assignment, Some("int2")),
    cast(NUMERIC, INT4, Assignment, Some("int4")),
    cast(NUMERIC, INT8, Assignment, Some("int8")),
    cast(NUMERIC, NUMERIC, Implicit, Some("numeric")),
    cast(OID, INT4, Assignment, Some("int4")),
    cast(OID, INT8, Assignment, Some("int8")),
    cast(OID, REGCLASS, Implicit, None),
    cast(OID, REGCOLLATION, Implicit, None),
    cast(OID, REGNAMESPACE, Implicit, None),
    cast(OID, REGOPER, Implicit, None),
    cast(OID, REGOPERATOR, Implicit, None),
    cast(OID, REGPROC, Implicit, None),
    cast(OID, REGPROCEDURE, Implicit, None),
    cast(OID, REGROLE, Implicit, None),
    cast(OID, REGTYPE, Implicit, None),
    cast(REGCLASS, INT4, Assignment, Some("int4")),
    cast(REGCLASS, INT8, Assignment, Some("int8")),
    cast(REGCLASS, OID, Implicit, None),
    cast(REGCOLLATION, INT4, Assignment, Some("int4")),
    cast(REGCOLLATION, INT8, Assignment, Some("int8")),
    cast(REGCOLLATION, OID, Implicit, None),
    cast(REGNAMESPACE, INT4, Assignment, Some("int4")),
    cast(REGNAMESPACE, INT8, Assignment, Some("int8")),
    cast(REGNAMESPACE, OID, Implicit, None),
    cast(REGOPER, INT4, Assignment, Some("int4")),
    cast(REGOPER, INT8, Assignment, Some("int8")),
    cast(REGOPER, OID, Implicit, None),
    cast(REGOPER, REGOPERATOR, Implicit, None),
    cast(REGOPERATOR, INT4, Assignment, Some("int4")),
    cast(REGOPERATOR, INT8, Assignment, Some("int8")),
    cast(REGOPERATOR, OID, Implicit, None),
    cast(REGOPERATOR, REGOPER, Implicit, None),
    cast(REGPROC, INT4, Assignment, Some("int4")),
    cast(REGPROC, INT8, Assignment, Some("int8")),
    cast(REGPROC, OID, Implicit, None),
    cast(REGPROC, REGPROCEDURE, Implicit, None),
    cast(REGPROCEDURE, INT4, Assignment, Some("int4")),
    cast(REGPROCEDURE, INT8, Assignment, Some("int8")),
    cast(REGPROCEDURE, OID, Implicit, None),
    cast(REGPROCEDURE, REGPROC, Implicit, None),
    cast(REGROLE, INT4, Assignment, Some("int4")),
    cast(REGROLE, INT8, Assignment, Some("int8")),
    cast(REGROLE, OID, Implicit, None),
    cast(REGTYPE, INT4, Assignment, Some("int4")),
    cast(REGTYPE, INT8, Assignment, Some("int8")),
    cast(REGTYPE, OID, Implicit, None),
    cast(TEXT, BPCHAR, Implicit, None),
    cast(TEXT, CHAR, Assignment, Some("char")),
    cast(TEXT, NAME, Implicit, Some("name")),
    cast(TEXT, REGCLASS, Implicit, Some("regclass")),
    cast(TEXT, VARCHAR, Implicit, None),
    cast(TIME, INTERVAL, Implicit, Some("interval")),
    cast(TIME, TIME, Implicit, Some("time")),
    cast(TIME, TIMETZ, Implicit, Some("timetz")),
    cast(TIMESTAMP, DATE, Assignment, Some("date")),
    cast(TIMESTAMP, TIME, Assignment, Some("time")),
    cast(TIMESTAMP, TIMESTAMP, Implicit, Some("timestamp")),
    cast(TIMESTAMP, TIMESTAMPTZ, Implicit, Some("timestamptz")),
    cast(TIMESTAMPTZ, DATE, Assignment, Some("date")),
    cast(TIMESTAMPTZ, TIME, Assignment, Some("time")),
    cast(TIMESTAMPTZ, TIMESTAMP, Assignment, Some("timestamp")),
    cast(TIMESTAMPTZ, TIMESTAMPTZ, Implicit, Some("timestamptz")),
    cast(TIMESTAMPTZ, TIMETZ, Assignment, Some("timetz")),
    cast(TIMETZ, TIME, Assignment, Some("time")),
    cast(TIMETZ, TIMETZ, Implicit, Some("timetz")),
    cast(VARBIT, BIT, Implicit, None),
    cast(VARBIT, VARBIT, Implicit, Some("varbit")),
    cast(VARCHAR, BPCHAR, Implicit, None),
    cast(VARCHAR, CHAR, Assignment, Some("char")),
    cast(VARCHAR, NAME, Implicit, Some("name")),
    cast(VARCHAR, REGCLASS, Implicit, Some("regclass")),
    cast(VARCHAR, TEXT, Implicit, None),
    cast(VARCHAR, VARCHAR, Implicit, Some("varchar")),
    cast(XID8, XID, Explicit, Some("xid")),
];
