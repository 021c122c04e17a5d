//! One case: settings, an operation, its arguments; the answer as text.

use crate::datetime::*;
use crate::interval;
use crate::{DateOrder, DateStyle, InputContext, Interval, IntervalStyle, OutputSettings, TimeZone};
use base::{Error, Result};

/// 2026-11-21 00:00 UTC
const NOW: i64 = 848_534_400_000_000;

/// `style, order, interval style, zone, operation, arguments…`, separated by tabs.
pub fn run(case: &str) -> String {
    let mut words = case.split('\t');
    let mut next = || words.next().expect("a case has five columns");
    let settings = OutputSettings {
        date_style: match next() {
            "SQL" => DateStyle::Sql,
            "Postgres" => DateStyle::Postgres,
            "German" => DateStyle::German,
            _ => DateStyle::Iso,
        },
        date_order: match next() {
            "DMY" => DateOrder::Dmy,
            "YMD" => DateOrder::Ymd,
            _ => DateOrder::Mdy,
        },
        interval_style: match next() {
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => IntervalStyle::Postgres,
        },
        timezone: TimeZone::parse(next()).expect("a known zone"),
        ..OutputSettings::default()
    };
    let op = next();
    let args: Vec<&str> = words.collect();
    let cx = InputContext { settings: &settings, now_micros: NOW };
    match evaluate(op, &args, &cx) {
        Ok(text) => text,
        Err(error) => describe(&error),
    }
}

fn describe(error: &Error) -> String {
    let fields = error.fields();
    let hint = fields.hint.as_deref().unwrap_or("");
    format!("ERROR {} {} {hint}", fields.code, fields.message).trim_end().to_string()
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> Result<String> {
    let mut out = Vec::new();
    write(&mut out);
    Ok(String::from_utf8(out).expect("ASCII"))
}

fn number(value: Extracted) -> Result<String> {
    Ok(match value.scaled() {
        Extracted::Julian(..) => unreachable!("it is scaled"),
        Extracted::Whole(n) => n.to_string(),
        Extracted::Scaled(n, scale) => {
            let unit = 10i128.pow(scale.into());
            let sign = if n < 0 { "-" } else { "" };
            format!("{sign}{}.{:0width$}", n.abs() / unit, n.abs() % unit, width = scale.into())
        }
        Extracted::Infinite(true) => "Infinity".into(),
        Extracted::Infinite(false) => "-Infinity".into(),
        Extracted::Null => "NULL".into(),
    })
}

fn evaluate(op: &str, args: &[&str], cx: &InputContext<'_>) -> Result<String> {
    let s = cx.settings;
    let zone = &s.timezone;
    let ts = |i: usize| parse_timestamp(args[i], cx);
    let tz = |i: usize| parse_timestamptz(args[i], cx);
    let iv = |i: usize| parse_interval(args[i], -1, cx);
    let int = |i: usize| args[i].parse::<i32>().expect("an integer");
    let float = |i: usize| args[i].parse::<f64>().expect("a number");
    let show_ts = |t: i64| text(|out| write_timestamp(t, s, out));
    let show_tz = |t: i64| text(|out| write_timestamptz(t, s, out));
    let show_date = |d: i32| text(|out| write_date(d, s, out));
    let show_time = |t: i64| text(|out| write_time(t, out));
    let show_timetz = |(t, w): (i64, i32)| text(|out| write_timetz(t, w, out));
    let show = |span: Interval| text(|out| write_interval(span, s, out));
    match op {
        "date" => show_date(parse_date(args[0], cx)?),
        "time" => show_time(parse_time(args[0], cx)?),
        "timetz" => show_timetz(parse_timetz(args[0], cx)?),
        "timestamp" => show_ts(ts(0)?),
        "timestamptz" => show_tz(tz(0)?),
        "interval" => show(iv(0)?),
        "interval_typmod" => show(parse_interval(args[0], int(1), cx)?),
        "ts+iv" => show_ts(timestamp_plus_interval(ts(0)?, &iv(1)?)?),
        "ts-iv" => show_ts(timestamp_minus_interval(ts(0)?, &iv(1)?)?),
        "tz+iv" => show_tz(timestamptz_plus_interval(tz(0)?, &iv(1)?, zone)?),
        "tz-iv" => show_tz(timestamptz_minus_interval(tz(0)?, &iv(1)?, zone)?),
        "ts-ts" => show(timestamp_minus(ts(0)?, ts(1)?)?),
        "age" => show(age(ts(0)?, ts(1)?)?),
        "agetz" => show(age_tz(tz(0)?, tz(1)?, s)?),
        "trunc" => show_ts(date_trunc_timestamp(args[0], ts(1)?)?),
        "trunctz" => show_tz(date_trunc_timestamptz(args[0], tz(1)?, zone)?),
        "trunciv" => show(date_trunc_interval(args[0], &iv(1)?)?),
        "extract" => number(extract_timestamp(args[0], ts(1)?)?),
        "extracttz" => number(extract_timestamptz(args[0], tz(1)?, zone)?),
        "extractdate" => number(extract_date(args[0], parse_date(args[1], cx)?)?),
        "extractiv" => number(extract_interval(args[0], &iv(1)?)?),
        "extracttime" => number(extract_time(args[0], parse_time(args[1], cx)?)?),
        "extracttimetz" => {
            let (time, west) = parse_timetz(args[1], cx)?;
            number(extract_timetz(args[0], time, west)?)
        }
        "iv*" => show(interval::multiply(iv(0)?, float(1))?),
        "iv/" => show(interval::divide(iv(0)?, float(1))?),
        "iv+" => show(interval::add(iv(0)?, iv(1)?)?),
        "iv-" => show(interval::subtract(iv(0)?, iv(1)?)?),
        "justify_hours" => show(interval::justify_hours(iv(0)?)?),
        "justify_days" => show(interval::justify_days(iv(0)?)?),
        "justify_interval" => show(interval::justify_interval(iv(0)?)?),
        "cmp" => Ok(format!("{:?}", interval::compare(&iv(0)?, &iv(1)?) as i8)),
        "ts_at" => show_tz(timestamp_at_zone(ts(0)?, &find_zone(args[1])?)?),
        "tz_at" => show_ts(timestamptz_at_zone(tz(0)?, &find_zone(args[1])?)?),
        "ts::tz" => show_tz(timestamp_to_timestamptz(ts(0)?, zone)?),
        "tz::ts" => show_ts(timestamptz_to_timestamp(tz(0)?, zone)?),
        "tz::date" => show_date(timestamptz_to_date(tz(0)?, zone)),
        "tz::timetz" => timestamptz_to_timetz(tz(0)?, zone).map_or(Ok("NULL".into()), show_timetz),
        "date::tz" => show_tz(date_to_timestamptz(parse_date(args[0], cx)?, zone)?),
        "bin" => show_ts(date_bin(&iv(0)?, ts(1)?, ts(2)?)?),
        "ts(p)" => show_ts(round_timestamp(ts(0)?, int(1))),
        "make_date" => show_date(make_date(int(0), int(1), int(2))?),
        "make_time" => show_time(make_time(int(0), int(1), float(2))?),
        "to_timestamp" => show_tz(to_timestamp(float(0))?),
        "date+" => show_date(date_plus_days(parse_date(args[0], cx)?, int(1))?),
        "to_char" => Ok(to_char_timestamp(ts(0)?, args[1])?.unwrap_or("NULL".into())),
        "to_chartz" => Ok(to_char_timestamptz(tz(0)?, args[1], zone)?.unwrap_or("NULL".into())),
        "to_chariv" => Ok(to_char_interval(&iv(0)?, args[1])?.unwrap_or("NULL".into())),
        "to_date" => show_date(to_date(args[0], args[1])?),
        "to_ts" => show_tz(to_timestamp_text(args[0], args[1], zone)?),
        "time+iv" => show_time(time_plus_interval(parse_time(args[0], cx)?, &iv(1)?)),
        other => panic!("unknown operation {other}"),
    }
}
