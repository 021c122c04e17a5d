//! `make_date` and the like, `to_timestamp(double precision)`, `isfinite`.

use super::calendar::{days_in_month, valid_julian};
use super::decode::decode_offset;
use super::parse::to_utc;
use super::zone::{Zone, find_zone};
use super::{
    Bad, Civil, DATE_END, DATE_INFINITY, DATE_MIN, DATE_NEG_INFINITY, MICROS_PER_DAY, MICROS_PER_HOUR,
    MICROS_PER_MINUTE, MICROS_PER_SEC, TIMESTAMP_INFINITY, TIMESTAMP_NEG_INFINITY, UNIX_EPOCH_SECS, in_range,
    interval_out_of_range, is_infinite, overflow, timestamp_out_of_range,
};
use crate::interval::Interval;
use crate::settings::TimeZone;
use base::{Error, Result, SqlState};

/// `isfinite(date)`
pub fn is_finite_date(date: i32) -> bool {
    date != DATE_INFINITY && date != DATE_NEG_INFINITY
}

/// `isfinite(timestamp)`
pub fn is_finite_timestamp(t: i64) -> bool {
    !is_infinite(t)
}

/// A year in an error: PostgreSQL shows those BC as it counts them inside.
fn shown(year: i32) -> i32 {
    if year < 0 && year > i32::MIN { year + 1 } else { year }
}

/// The date's fields, checked; negative years are BC.
fn civil(year: i32, month: i32, day: i32) -> Result<Civil> {
    let astronomical = if year < 0 { year.checked_add(1) } else { Some(year) };
    let valid = year != 0 && (1..=12).contains(&month);
    match astronomical {
        Some(y) if valid && day >= 1 && day <= days_in_month(y, month) => {
            if !valid_julian(y, month) {
                return Err(overflow(format!("date out of range: {}-{month:02}-{day:02}", shown(year))));
            }
            Ok(Civil { year: y, month, day, ..Civil::default() })
        }
        _ => Err(overflow(format!("date field value out of range: {}-{month:02}-{day:02}", shown(year)))),
    }
}

/// `make_date(year, month, day)`
pub fn make_date(year: i32, month: i32, day: i32) -> Result<i32> {
    let days = civil(year, month, day)?.days();
    if !(i64::from(DATE_MIN)..i64::from(DATE_END)).contains(&days) {
        return Err(overflow(format!("date out of range: {}-{month:02}-{day:02}", shown(year))));
    }
    Ok(days as i32)
}

/// A number as `%g` prints it.
fn general(value: f64) -> String {
    if !value.is_finite() {
        let name = if value.is_nan() { "NaN" } else { "Infinity" };
        return if value < 0.0 { format!("-{name}") } else { name.to_owned() };
    }
    let scientific = format!("{value:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim =
        |s: &str| if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_string() } else { s.into() };
    if (-4..6).contains(&exponent) {
        return trim(&format!("{value:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(digits), exponent.abs())
}

/// Seconds as `%02g` prints them.
fn seconds(sec: f64) -> String {
    let text = general(sec);
    if text.len() < 2 { format!("0{text}") } else { text }
}

/// `make_time(hour, min, sec)`
pub fn make_time(hour: i32, minute: i32, sec: f64) -> Result<i64> {
    let micros = (sec * 1e6).round_ties_even();
    let valid = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60e6).contains(&micros);
    let refused = || overflow(format!("time field value out of range: {hour}:{minute:02}:{}", seconds(sec)));
    if !valid {
        return Err(refused());
    }
    let time = i64::from(hour) * MICROS_PER_HOUR + i64::from(minute) * MICROS_PER_MINUTE + micros as i64;
    if time > MICROS_PER_DAY { Err(refused()) } else { Ok(time) }
}

/// `make_timestamp(year, month, day, hour, min, sec)`
pub fn make_timestamp(year: i32, month: i32, day: i32, hour: i32, minute: i32, sec: f64) -> Result<i64> {
    let c = civil(year, month, day).map_err(|error| match shown(year) == year {
        true => error,
        // Unlike `make_date`, this shows the year as given.
        false => overflow(format!("date field value out of range: {year}-{month:02}-{day:02}")),
    })?;
    let time = make_time(hour, minute, sec)?;
    let t = c.days().checked_mul(MICROS_PER_DAY).and_then(|d| d.checked_add(time));
    t.filter(|&t| in_range(t)).ok_or_else(|| {
        let s = seconds(sec);
        overflow(format!("timestamp out of range: {year}-{month:02}-{day:02} {hour}:{minute:02}:{s}"))
    })
}

/// `make_timestamptz` in the session's zone.
pub fn make_timestamptz(
    year: i32,
    month: i32,
    day: i32,
    hour: i32,
    minute: i32,
    sec: f64,
    zone: &TimeZone,
) -> Result<i64> {
    super::timestamp_to_timestamptz(make_timestamp(year, month, day, hour, minute, sec)?, zone)
}

/// `make_timestamptz` in a zone given by its name or offset.
pub fn make_timestamptz_in(
    year: i32,
    month: i32,
    day: i32,
    hour: i32,
    minute: i32,
    sec: f64,
    zone: &str,
) -> Result<i64> {
    let t = make_timestamp(year, month, day, hour, minute, sec)?;
    let c = Civil::of(t);
    let west = sane_zone(zone)?.west_of_local(&c);
    to_utc(&c, west).ok_or_else(timestamp_out_of_range)
}

fn sane_zone(name: &str) -> Result<Zone> {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid input syntax for type numeric time zone: \"{name}\""),
        )
        .hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    match decode_offset(name) {
        Ok(west) => Ok(Zone::West(west)),
        Err(Bad::Displacement) => {
            Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("numeric time zone \"{name}\" out of range")))
        }
        Err(_) => find_zone(name),
    }
}

/// `make_interval(years, months, weeks, days, hours, mins, secs)`
pub fn make_interval(
    years: i32,
    months: i32,
    weeks: i32,
    days: i32,
    hours: i32,
    minutes: i32,
    secs: f64,
) -> Result<Interval> {
    let micros = (secs * 1e6).round_ties_even();
    if !(-9223372036854775808.0..9223372036854775808.0).contains(&micros) {
        return Err(interval_out_of_range());
    }
    let clock = i64::from(hours) * MICROS_PER_HOUR + i64::from(minutes) * MICROS_PER_MINUTE;
    let narrow = |n: i64| i32::try_from(n).map_err(|_| interval_out_of_range());
    Ok(Interval {
        micros: clock.checked_add(micros as i64).ok_or_else(interval_out_of_range)?,
        days: narrow(i64::from(weeks) * 7 + i64::from(days))?,
        months: narrow(i64::from(years) * 12 + i64::from(months))?,
    })
}

/// `to_timestamp(double precision)`: seconds since 1970.
pub fn to_timestamp(secs: f64) -> Result<i64> {
    if secs.is_nan() {
        return Err(overflow("timestamp cannot be NaN"));
    }
    if secs.is_infinite() {
        return Ok(if secs > 0.0 { TIMESTAMP_INFINITY } else { TIMESTAMP_NEG_INFINITY });
    }
    let micros = ((secs - UNIX_EPOCH_SECS as f64) * MICROS_PER_SEC as f64).round_ties_even();
    let fits = (-9223372036854775808.0..9223372036854775808.0).contains(&micros);
    let t = micros as i64;
    if !fits || !in_range(t) {
        return Err(overflow(format!("timestamp out of range: \"{}\"", general(secs))));
    }
    Ok(t)
}
