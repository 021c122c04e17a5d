//! Dates and times.
//!
//! Responsible for: the table, the clock, the parts of values, making, converting and printing them.
//! Not responsible for: what they do – that is in [`types::datetime`]; operators and casts.

mod overlaps;

use base::Result;
use types::datetime::{self, Extracted};
use types::oid::*;
use types::{Datum, Interval, Numeric, interval};

use super::entry::{immutable, int_of, mismatch, stable, text_of, volatile};
use super::{EvalContext, Function};

/// What `make_interval` takes for arguments left out.
static NO_INTERVAL: [Datum; 7] = [
    Datum::Int4(0),
    Datum::Int4(0),
    Datum::Int4(0),
    Datum::Int4(0),
    Datum::Int4(0),
    Datum::Int4(0),
    Datum::Float8(0.0),
];

/// The table. The functions behind SQL's `CURRENT_DATE` and the like have no entry in PostgreSQL's catalog.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    stable(1299, "now", &[], TIMESTAMPTZ, now),
    stable(2647, "transaction_timestamp", &[], TIMESTAMPTZ, now),
    stable(2648, "statement_timestamp", &[], TIMESTAMPTZ, statement_timestamp),
    volatile(2649, "clock_timestamp", &[], TIMESTAMPTZ, clock_timestamp),
    volatile(274, "timeofday", &[], TEXT, timeofday),
    immutable(6199, "extract", &[TEXT, DATE], NUMERIC, extract),
    immutable(6200, "extract", &[TEXT, TIME], NUMERIC, extract),
    immutable(6201, "extract", &[TEXT, TIMETZ], NUMERIC, extract),
    immutable(6202, "extract", &[TEXT, TIMESTAMP], NUMERIC, extract),
    stable(6203, "extract", &[TEXT, TIMESTAMPTZ], NUMERIC, extract),
    immutable(6204, "extract", &[TEXT, INTERVAL], NUMERIC, extract),
    stable(1171, "date_part", &[TEXT, TIMESTAMPTZ], FLOAT8, date_part),
    immutable(1172, "date_part", &[TEXT, INTERVAL], FLOAT8, date_part),
    immutable(1273, "date_part", &[TEXT, TIMETZ], FLOAT8, date_part),
    immutable(1384, "date_part", &[TEXT, DATE], FLOAT8, date_part),
    immutable(1385, "date_part", &[TEXT, TIME], FLOAT8, date_part),
    immutable(2021, "date_part", &[TEXT, TIMESTAMP], FLOAT8, date_part),
    stable(1217, "date_trunc", &[TEXT, TIMESTAMPTZ], TIMESTAMPTZ, date_trunc),
    immutable(1218, "date_trunc", &[TEXT, INTERVAL], INTERVAL, date_trunc),
    stable(1284, "date_trunc", &[TEXT, TIMESTAMPTZ, TEXT], TIMESTAMPTZ, date_trunc),
    immutable(2020, "date_trunc", &[TEXT, TIMESTAMP], TIMESTAMP, date_trunc),
    immutable(6177, "date_bin", &[INTERVAL, TIMESTAMP, TIMESTAMP], TIMESTAMP, date_bin),
    immutable(6178, "date_bin", &[INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ], TIMESTAMPTZ, date_bin),
    immutable(1199, "age", &[TIMESTAMPTZ, TIMESTAMPTZ], INTERVAL, age),
    stable(1386, "age", &[TIMESTAMPTZ], INTERVAL, age),
    immutable(2058, "age", &[TIMESTAMP, TIMESTAMP], INTERVAL, age),
    stable(2059, "age", &[TIMESTAMP], INTERVAL, age),
    immutable(3846, "make_date", &[INT4, INT4, INT4], DATE, make_date).named(&["year", "month", "day"]),
    immutable(3847, "make_time", &[INT4, INT4, FLOAT8], TIME, make_time).named(&["hour", "min", "sec"]),
    immutable(3461, "make_timestamp", &[INT4, INT4, INT4, INT4, INT4, FLOAT8], TIMESTAMP, make_timestamp).named(&["year", "month", "mday", "hour", "min", "sec"]),
    stable(3462, "make_timestamptz", &[INT4, INT4, INT4, INT4, INT4, FLOAT8], TIMESTAMPTZ, make_timestamptz).named(&["year", "month", "mday", "hour", "min", "sec"]),
    stable(3463, "make_timestamptz", &[INT4, INT4, INT4, INT4, INT4, FLOAT8, TEXT], TIMESTAMPTZ, make_timestamptz).named(&["year", "month", "mday", "hour", "min", "sec", "timezone"]),
    immutable(3464, "make_interval", &[INT4, INT4, INT4, INT4, INT4, INT4, FLOAT8], INTERVAL, make_interval).or(&NO_INTERVAL).named(&["years", "months", "weeks", "days", "hours", "mins", "secs"]),
    immutable(1158, "to_timestamp", &[FLOAT8], TIMESTAMPTZ, to_timestamp),
    stable(1778, "to_timestamp", &[TEXT, TEXT], TIMESTAMPTZ, to_timestamp_text),
    stable(1780, "to_date", &[TEXT, TEXT], DATE, to_date),
    stable(2049, "to_char", &[TIMESTAMP, TEXT], TEXT, to_char),
    stable(1770, "to_char", &[TIMESTAMPTZ, TEXT], TEXT, to_char),
    stable(1768, "to_char", &[INTERVAL, TEXT], TEXT, to_char),
    immutable(1026, "timezone", &[INTERVAL, TIMESTAMPTZ], TIMESTAMP, timezone),
    immutable(1159, "timezone", &[TEXT, TIMESTAMPTZ], TIMESTAMP, timezone),
    stable(2037, "timezone", &[TEXT, TIMETZ], TIMETZ, timezone),
    immutable(2038, "timezone", &[INTERVAL, TIMETZ], TIMETZ, timezone),
    immutable(2069, "timezone", &[TEXT, TIMESTAMP], TIMESTAMPTZ, timezone),
    immutable(2070, "timezone", &[INTERVAL, TIMESTAMP], TIMESTAMPTZ, timezone),
    immutable(1175, "justify_hours", &[INTERVAL], INTERVAL, justify_hours),
    immutable(1295, "justify_days", &[INTERVAL], INTERVAL, justify_days),
    immutable(2711, "justify_interval", &[INTERVAL], INTERVAL, justify_interval),
    immutable(1373, "isfinite", &[DATE], BOOL, is_finite),
    immutable(1389, "isfinite", &[TIMESTAMPTZ], BOOL, is_finite),
    immutable(1390, "isfinite", &[INTERVAL], BOOL, is_finite),
    immutable(2048, "isfinite", &[TIMESTAMP], BOOL, is_finite),
    immutable(1271, "overlaps", &[TIMETZ, TIMETZ, TIMETZ, TIMETZ], BOOL, overlaps::overlaps).lax(),
    immutable(1304, "overlaps", &[TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ], BOOL, overlaps::overlaps).lax(),
    stable(1305, "overlaps", &[TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, INTERVAL], BOOL, overlaps::overlaps).lax(),
    stable(1306, "overlaps", &[TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL], BOOL, overlaps::overlaps).lax(),
    stable(1307, "overlaps", &[TIMESTAMPTZ, INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ], BOOL, overlaps::overlaps).lax(),
    immutable(1308, "overlaps", &[TIME, TIME, TIME, TIME], BOOL, overlaps::overlaps).lax(),
    immutable(1309, "overlaps", &[TIME, INTERVAL, TIME, INTERVAL], BOOL, overlaps::overlaps).lax(),
    immutable(1310, "overlaps", &[TIME, TIME, TIME, INTERVAL], BOOL, overlaps::overlaps).lax(),
    immutable(1311, "overlaps", &[TIME, INTERVAL, TIME, TIME], BOOL, overlaps::overlaps).lax(),
    immutable(2041, "overlaps", &[TIMESTAMP, TIMESTAMP, TIMESTAMP, TIMESTAMP], BOOL, overlaps::overlaps).lax(),
    immutable(2042, "overlaps", &[TIMESTAMP, INTERVAL, TIMESTAMP, INTERVAL], BOOL, overlaps::overlaps).lax(),
    immutable(2043, "overlaps", &[TIMESTAMP, TIMESTAMP, TIMESTAMP, INTERVAL], BOOL, overlaps::overlaps).lax(),
    immutable(2044, "overlaps", &[TIMESTAMP, INTERVAL, TIMESTAMP, TIMESTAMP], BOOL, overlaps::overlaps).lax(),
    stable(9501, "current_date", &[], DATE, current_date),
    stable(9502, "current_time", &[], TIMETZ, current_time),
    stable(9503, "current_time", &[INT4], TIMETZ, current_time),
    stable(9504, "current_timestamp", &[], TIMESTAMPTZ, current_timestamp),
    stable(9505, "current_timestamp", &[INT4], TIMESTAMPTZ, current_timestamp),
    stable(9506, "localtime", &[], TIME, local_time),
    stable(9507, "localtime", &[INT4], TIME, local_time),
    stable(9508, "localtimestamp", &[], TIMESTAMP, local_timestamp),
    stable(9509, "localtimestamp", &[INT4], TIMESTAMP, local_timestamp),
];

fn now(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(cx.transaction_timestamp()))
}

fn statement_timestamp(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(cx.statement_timestamp()))
}

fn clock_timestamp(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(cx.clock_timestamp()))
}

fn timeofday(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    let format = "Dy Mon DD HH24:MI:SS.US YYYY TZ";
    Ok(datetime::to_char_timestamptz(cx.clock_timestamp(), format, &cx.settings().timezone)?.into())
}

/// The precision written after `CURRENT_TIME` and the like; without one all digits are kept.
fn precision(args: &[Datum]) -> i32 {
    match args.first() {
        Some(Datum::Int4(n)) => (*n).clamp(0, 6),
        _ => 6,
    }
}

fn current_date(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Date(datetime::timestamptz_to_date(cx.transaction_timestamp(), &cx.settings().timezone)))
}

fn current_time(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let time = datetime::timestamptz_to_timetz(cx.transaction_timestamp(), &cx.settings().timezone);
    Ok(time.map_or(Datum::Null, |(t, west)| Datum::TimeTz(datetime::round_time(t, precision(args)), west)))
}

fn current_timestamp(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(datetime::round_timestamp(cx.transaction_timestamp(), precision(args))))
}

fn local_time(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let time = datetime::timestamptz_to_time(cx.transaction_timestamp(), &cx.settings().timezone);
    Ok(time.map_or(Datum::Null, |t| Datum::Time(datetime::round_time(t, precision(args)))))
}

fn local_timestamp(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let local = datetime::timestamptz_to_timestamp(cx.transaction_timestamp(), &cx.settings().timezone)?;
    Ok(Datum::Timestamp(datetime::round_timestamp(local, precision(args))))
}

/// A field of any value that has a date or a time.
fn field(cx: &dyn EvalContext, args: &[Datum]) -> Result<Extracted> {
    let name = text_of(args, 0)?;
    match args.get(1) {
        Some(Datum::Date(v)) => datetime::extract_date(name, *v),
        Some(Datum::Time(v)) => datetime::extract_time(name, *v),
        Some(Datum::TimeTz(v, west)) => datetime::extract_timetz(name, *v, *west),
        Some(Datum::Timestamp(v)) => datetime::extract_timestamp(name, *v),
        Some(Datum::TimestampTz(v)) => datetime::extract_timestamptz(name, *v, &cx.settings().timezone),
        Some(Datum::Interval(v)) => datetime::extract_interval(name, v),
        _ => Err(mismatch("extract")),
    }
}

fn extract(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(match field(cx, args)?.scaled() {
        Extracted::Julian(..) => return Err(mismatch("extract")),
        Extracted::Whole(n) => Datum::Numeric(Numeric::new(n, 0)),
        Extracted::Scaled(n, scale) => Datum::Numeric(Numeric::from_i128(n, scale.into())),
        Extracted::Infinite(true) => Datum::Numeric(Numeric::INFINITY),
        Extracted::Infinite(false) => Datum::Numeric(Numeric::NEG_INFINITY),
        Extracted::Null => Datum::Null,
    })
}

fn date_part(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let value = match args.get(1) {
        // Of a date it takes the timestamp at its midnight, which has an hour; `extract` does not.
        Some(Datum::Date(v)) => datetime::extract_timestamp(text_of(args, 0)?, datetime::date_to_timestamp(*v)?)?,
        _ => field(cx, args)?,
    };
    Ok(datetime::date_part_f64(value).into())
}

fn date_trunc(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let name = text_of(args, 0)?;
    Ok(match (args.get(1), args.get(2)) {
        (Some(Datum::Timestamp(v)), None) => Datum::Timestamp(datetime::date_trunc_timestamp(name, *v)?),
        (Some(Datum::TimestampTz(v)), None) => {
            Datum::TimestampTz(datetime::date_trunc_timestamptz(name, *v, &cx.settings().timezone)?)
        }
        // Where there is nothing to cut off nobody looks at the other arguments.
        (Some(Datum::TimestampTz(v @ (i64::MIN | i64::MAX))), Some(Datum::Text(_))) => Datum::TimestampTz(*v),
        (Some(Datum::TimestampTz(v)), Some(Datum::Text(zone))) => {
            Datum::TimestampTz(datetime::date_trunc_timestamptz_in(name, *v, &datetime::find_zone(zone)?)?)
        }
        (Some(Datum::Interval(v)), None) => Datum::Interval(datetime::date_trunc_interval(name, v)?),
        _ => return Err(mismatch("date_trunc")),
    })
}

fn date_bin(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match *args {
        [Datum::Interval(stride), Datum::Timestamp(t), Datum::Timestamp(origin)] => {
            datetime::date_bin(&stride, t, origin).map(Datum::Timestamp)
        }
        [Datum::Interval(stride), Datum::TimestampTz(t), Datum::TimestampTz(origin)] => {
            datetime::date_bin(&stride, t, origin).map(Datum::TimestampTz)
        }
        _ => Err(mismatch("date_bin")),
    }
}

fn age(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let zone = &cx.settings().timezone;
    let today = || datetime::timestamptz_to_date(cx.transaction_timestamp(), zone);
    let span = match *args {
        [Datum::Timestamp(a), Datum::Timestamp(b)] => datetime::age(a, b)?,
        [Datum::TimestampTz(a), Datum::TimestampTz(b)] => datetime::age_tz(a, b, cx.settings())?,
        [Datum::Timestamp(b)] => datetime::age(datetime::date_to_timestamp(today())?, b)?,
        [Datum::TimestampTz(b)] => datetime::age_tz(datetime::date_to_timestamptz(today(), zone)?, b, cx.settings())?,
        _ => return Err(mismatch("age")),
    };
    Ok(Datum::Interval(span))
}

fn float_at(args: &[Datum], i: usize) -> Result<f64> {
    match args.get(i) {
        Some(Datum::Float8(v)) => Ok(*v),
        _ => Err(mismatch("float argument")),
    }
}

fn make_date(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    datetime::make_date(int_of(args, 0)?, int_of(args, 1)?, int_of(args, 2)?).map(Datum::Date)
}

fn make_time(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    datetime::make_time(int_of(args, 0)?, int_of(args, 1)?, float_at(args, 2)?).map(Datum::Time)
}

/// Year, month, day, hour and minute of `make_timestamp` and the like.
fn calendar(args: &[Datum]) -> Result<[i32; 5]> {
    Ok([int_of(args, 0)?, int_of(args, 1)?, int_of(args, 2)?, int_of(args, 3)?, int_of(args, 4)?])
}

fn make_timestamp(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [year, month, day, hour, minute] = calendar(args)?;
    datetime::make_timestamp(year, month, day, hour, minute, float_at(args, 5)?).map(Datum::Timestamp)
}

fn make_timestamptz(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let ([year, month, day, hour, minute], sec) = (calendar(args)?, float_at(args, 5)?);
    let t = match args.get(6) {
        Some(Datum::Text(zone)) => datetime::make_timestamptz_in(year, month, day, hour, minute, sec, zone)?,
        _ => datetime::make_timestamptz(year, month, day, hour, minute, sec, &cx.settings().timezone)?,
    };
    Ok(Datum::TimestampTz(t))
}

fn make_interval(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let ([years, months, weeks, days, hours], minutes) = (calendar(args)?, int_of(args, 5)?);
    datetime::make_interval(years, months, weeks, days, hours, minutes, float_at(args, 6)?).map(Datum::Interval)
}

fn to_timestamp(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    datetime::to_timestamp(float_at(args, 0)?).map(Datum::TimestampTz)
}

fn to_timestamp_text(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    datetime::to_timestamp_text(text_of(args, 0)?, text_of(args, 1)?, &cx.settings().timezone).map(Datum::TimestampTz)
}

fn to_date(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    datetime::to_date(text_of(args, 0)?, text_of(args, 1)?).map(Datum::Date)
}

fn to_char(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let format = text_of(args, 1)?;
    let text = match args.first() {
        Some(Datum::Timestamp(v)) => datetime::to_char_timestamp(*v, format)?,
        Some(Datum::TimestampTz(v)) => datetime::to_char_timestamptz(*v, format, &cx.settings().timezone)?,
        Some(Datum::Interval(v)) => datetime::to_char_interval(v, format)?,
        _ => return Err(mismatch("to_char")),
    };
    Ok(text.into())
}

fn timezone(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let settings = cx.settings();
    Ok(match args {
        // What is infinite is so everywhere; nobody looks at the zone.
        [_, Datum::Timestamp(v)] if !datetime::is_finite_timestamp(*v) => Datum::TimestampTz(*v),
        [_, Datum::TimestampTz(v)] if !datetime::is_finite_timestamp(*v) => Datum::Timestamp(*v),
        [Datum::Text(zone), value] => {
            let zone = datetime::find_zone(zone)?;
            match *value {
                Datum::Timestamp(v) => Datum::TimestampTz(datetime::timestamp_at_zone(v, &zone)?),
                Datum::TimestampTz(v) => Datum::Timestamp(datetime::timestamptz_at_zone(v, &zone)?),
                Datum::TimeTz(v, west) => {
                    let (v, west) = datetime::timetz_at_zone(v, west, &zone, cx.transaction_timestamp());
                    Datum::TimeTz(v, west)
                }
                _ => return Err(mismatch("timezone")),
            }
        }
        [Datum::Interval(zone), value] => match *value {
            Datum::Timestamp(v) => Datum::TimestampTz(datetime::timestamp_at_interval(v, zone, settings)?),
            Datum::TimestampTz(v) => Datum::Timestamp(datetime::timestamptz_at_interval(v, zone, settings)?),
            Datum::TimeTz(v, west) => {
                let (v, west) = datetime::timetz_at_interval(v, west, zone, settings)?;
                Datum::TimeTz(v, west)
            }
            _ => return Err(mismatch("timezone")),
        },
        _ => return Err(mismatch("timezone")),
    })
}

fn span(args: &[Datum], f: fn(Interval) -> Result<Interval>) -> Result<Datum> {
    match args {
        [Datum::Interval(v)] => f(*v).map(Datum::Interval),
        _ => Err(mismatch("justify")),
    }
}

fn justify_hours(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    span(args, interval::justify_hours)
}

fn justify_days(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    span(args, interval::justify_days)
}

fn justify_interval(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    span(args, interval::justify_interval)
}

fn is_finite(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(match *args {
        [Datum::Date(v)] => datetime::is_finite_date(v),
        [Datum::Timestamp(v) | Datum::TimestampTz(v)] => datetime::is_finite_timestamp(v),
        _ => true,
    }))
}
