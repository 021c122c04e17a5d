//! Arithmetic of dates, times and intervals: the functions behind `+`, `-`, `*` and `/`.

use base::{Error, Result, SqlState};
use types::oid::*;
use types::{Datum, Interval, TimeZone, datetime as dt, interval};

use super::super::entry::{immutable, mismatched, stable};
use super::super::{EvalContext, Function};

/// A function of two values: the patterns of its arguments, and its value.
macro_rules! of {
    ($left:pat, $right:pat => $value:expr) => {
        |_, args| match args {
            [$left, $right] => Ok($value),
            _ => mismatched(args),
        }
    };
}

/// The same in the session's zone.
macro_rules! zoned {
    ($left:pat, $right:pat => $f:ident($t:ident, $span:ident)) => {
        |cx, args| match args {
            [$left, $right] => Ok(Datum::TimestampTz(dt::$f(*$t, $span, zone(cx))?)),
            _ => mismatched(args),
        }
    };
}

fn zone(cx: &dyn EvalContext) -> &TimeZone {
    &cx.settings().timezone
}

fn timetz((time, west): (i64, i32)) -> Datum {
    Datum::TimeTz(time, west)
}

fn date_minus_days(date: i32, days: i32) -> Result<i32> {
    match days.checked_neg() {
        Some(days) => dt::date_plus_days(date, days),
        None if !dt::is_finite_date(date) => Ok(date),
        None => Err(Error::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range")),
    }
}

fn interval_um(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Interval(a)] => Ok(interval::negate(*a)?.into()),
        _ => mismatched(args),
    }
}

fn product(span: &Interval, factor: f64) -> Result<Datum> {
    Ok(interval::multiply(*span, factor)?.into())
}

/// The table, by OID.
#[rustfmt::skip]
pub(crate) static FUNCTIONS: &[Function] = &[
    immutable(1140, "date_mi", &[DATE, DATE], INT4,
        of!(Datum::Date(a), Datum::Date(b) => Datum::Int4(dt::date_minus_date(*a, *b)?))),
    immutable(1141, "date_pli", &[DATE, INT4], DATE,
        of!(Datum::Date(a), Datum::Int4(b) => Datum::Date(dt::date_plus_days(*a, *b)?))),
    immutable(1142, "date_mii", &[DATE, INT4], DATE,
        of!(Datum::Date(a), Datum::Int4(b) => Datum::Date(date_minus_days(*a, *b)?))),
    immutable(2550, "integer_pl_date", &[INT4, DATE], DATE,
        of!(Datum::Int4(b), Datum::Date(a) => Datum::Date(dt::date_plus_days(*a, *b)?))),
    immutable(1168, "interval_um", &[INTERVAL], INTERVAL, interval_um),
    immutable(1169, "interval_pl", &[INTERVAL, INTERVAL], INTERVAL,
        of!(Datum::Interval(a), Datum::Interval(b) => interval::add(*a, *b)?.into())),
    immutable(1170, "interval_mi", &[INTERVAL, INTERVAL], INTERVAL,
        of!(Datum::Interval(a), Datum::Interval(b) => interval::subtract(*a, *b)?.into())),
    immutable(1326, "interval_div", &[INTERVAL, FLOAT8], INTERVAL,
        of!(Datum::Interval(a), Datum::Float8(b) => interval::divide(*a, *b)?.into())),
    immutable(1618, "interval_mul", &[INTERVAL, FLOAT8], INTERVAL,
        of!(Datum::Interval(a), Datum::Float8(b) => product(a, *b)?)),
    immutable(1624, "mul_d_interval", &[FLOAT8, INTERVAL], INTERVAL,
        of!(Datum::Float8(b), Datum::Interval(a) => product(a, *b)?)),
    immutable(1188, "timestamptz_mi", &[TIMESTAMPTZ, TIMESTAMPTZ], INTERVAL,
        of!(Datum::TimestampTz(a), Datum::TimestampTz(b) => dt::timestamp_minus(*a, *b)?.into())),
    stable(1189, "timestamptz_pl_interval", &[TIMESTAMPTZ, INTERVAL], TIMESTAMPTZ,
        zoned!(Datum::TimestampTz(t), Datum::Interval(span) => timestamptz_plus_interval(t, span))),
    stable(1190, "timestamptz_mi_interval", &[TIMESTAMPTZ, INTERVAL], TIMESTAMPTZ,
        zoned!(Datum::TimestampTz(t), Datum::Interval(span) => timestamptz_minus_interval(t, span))),
    stable(2549, "interval_pl_timestamptz", &[INTERVAL, TIMESTAMPTZ], TIMESTAMPTZ,
        zoned!(Datum::Interval(span), Datum::TimestampTz(t) => timestamptz_plus_interval(t, span))),
    immutable(1272, "datetime_pl", &[DATE, TIME], TIMESTAMP,
        of!(Datum::Date(d), Datum::Time(t) => Datum::Timestamp(dt::date_plus_time(*d, *t)?))),
    immutable(1296, "timedate_pl", &[TIME, DATE], TIMESTAMP,
        of!(Datum::Time(t), Datum::Date(d) => Datum::Timestamp(dt::date_plus_time(*d, *t)?))),
    immutable(1297, "datetimetz_pl", &[DATE, TIMETZ], TIMESTAMPTZ,
        of!(Datum::Date(d), Datum::TimeTz(t, w) => Datum::TimestampTz(dt::date_plus_timetz(*d, *t, *w)?))),
    immutable(1298, "timetzdate_pl", &[TIMETZ, DATE], TIMESTAMPTZ,
        of!(Datum::TimeTz(t, w), Datum::Date(d) => Datum::TimestampTz(dt::date_plus_timetz(*d, *t, *w)?))),
    immutable(1690, "time_mi_time", &[TIME, TIME], INTERVAL,
        of!(Datum::Time(a), Datum::Time(b) => dt::time_minus_time(*a, *b).into())),
    immutable(1747, "time_pl_interval", &[TIME, INTERVAL], TIME,
        of!(Datum::Time(t), Datum::Interval(span) => Datum::Time(dt::time_plus_interval(*t, span)))),
    immutable(1748, "time_mi_interval", &[TIME, INTERVAL], TIME,
        of!(Datum::Time(t), Datum::Interval(span) => Datum::Time(dt::time_minus_interval(*t, span)))),
    immutable(1848, "interval_pl_time", &[INTERVAL, TIME], TIME,
        of!(Datum::Interval(span), Datum::Time(t) => Datum::Time(dt::time_plus_interval(*t, span)))),
    immutable(1749, "timetz_pl_interval", &[TIMETZ, INTERVAL], TIMETZ,
        of!(Datum::TimeTz(t, w), Datum::Interval(span) => timetz(dt::timetz_plus_interval(*t, *w, span)))),
    immutable(1750, "timetz_mi_interval", &[TIMETZ, INTERVAL], TIMETZ,
        of!(Datum::TimeTz(t, w), Datum::Interval(span) => timetz(dt::timetz_minus_interval(*t, *w, span)))),
    immutable(2547, "interval_pl_timetz", &[INTERVAL, TIMETZ], TIMETZ,
        of!(Datum::Interval(span), Datum::TimeTz(t, w) => timetz(dt::timetz_plus_interval(*t, *w, span)))),
    immutable(2031, "timestamp_mi", &[TIMESTAMP, TIMESTAMP], INTERVAL,
        of!(Datum::Timestamp(a), Datum::Timestamp(b) => dt::timestamp_minus(*a, *b)?.into())),
    immutable(2032, "timestamp_pl_interval", &[TIMESTAMP, INTERVAL], TIMESTAMP,
        of!(Datum::Timestamp(t), Datum::Interval(span) => Datum::Timestamp(dt::timestamp_plus_interval(*t, span)?))),
    immutable(2033, "timestamp_mi_interval", &[TIMESTAMP, INTERVAL], TIMESTAMP,
        of!(Datum::Timestamp(t), Datum::Interval(span) => Datum::Timestamp(dt::timestamp_minus_interval(*t, span)?))),
    immutable(2548, "interval_pl_timestamp", &[INTERVAL, TIMESTAMP], TIMESTAMP,
        of!(Datum::Interval(span), Datum::Timestamp(t) => Datum::Timestamp(dt::timestamp_plus_interval(*t, span)?))),
    immutable(2071, "date_pl_interval", &[DATE, INTERVAL], TIMESTAMP,
        of!(Datum::Date(d), Datum::Interval(span) => Datum::Timestamp(dt::date_plus_interval(*d, span)?))),
    immutable(2072, "date_mi_interval", &[DATE, INTERVAL], TIMESTAMP,
        of!(Datum::Date(d), Datum::Interval(span) => Datum::Timestamp(dt::date_minus_interval(*d, span)?))),
    immutable(2546, "interval_pl_date", &[INTERVAL, DATE], TIMESTAMP,
        of!(Datum::Interval(span), Datum::Date(d) => Datum::Timestamp(dt::date_plus_interval(*d, span)?))),
];
