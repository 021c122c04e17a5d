//! Casts among the types, AT TIME ZONE, rounding to a precision.

use super::arith::{from_local, to_local};
use super::zone::{Zone, west_at, west_of_local};
use super::{
    Civil, DATE_INFINITY, DATE_NEG_INFINITY, MICROS_PER_DAY, MICROS_PER_SEC, TIMESTAMP_END, TIMESTAMP_INFINITY,
    TIMESTAMP_NEG_INFINITY, in_range, is_infinite, overflow, timestamp_out_of_range,
};
use crate::interval::{Interval, write_interval};
use crate::settings::{InputContext, OutputSettings, TimeZone};
use base::{Error, Result, SqlState};

/// Offset in seconds west of a local time.
pub(super) fn west_in(c: &Civil, zone: &TimeZone) -> i32 {
    west_of_local(zone.rules(), c)
}

/// Rounds to a precision; 6 and more, and negative ones, change nothing.
fn round(value: i64, precision: i32) -> i64 {
    if !(0..6).contains(&precision) {
        return value;
    }
    let unit = 10i64.pow(6 - precision as u32);
    let half = if value >= 0 { unit / 2 } else { -(unit / 2) };
    (value + half) / unit * unit
}

/// Rounds a `timestamp` or `timestamptz` to a precision; negative means none.
pub fn round_timestamp(t: i64, precision: i32) -> i64 {
    if is_infinite(t) { t } else { round(t, precision) }
}

/// Rounds a `time` to a precision; negative means none.
pub fn round_time(time: i64, precision: i32) -> i64 {
    round(time, precision)
}

/// `date::timestamp`
pub fn date_to_timestamp(date: i32) -> Result<i64> {
    match date {
        DATE_INFINITY => Ok(TIMESTAMP_INFINITY),
        DATE_NEG_INFINITY => Ok(TIMESTAMP_NEG_INFINITY),
        _ if i64::from(date) >= TIMESTAMP_END / MICROS_PER_DAY => Err(overflow("date out of range for timestamp")),
        _ => Ok(i64::from(date) * MICROS_PER_DAY),
    }
}

/// `date::timestamptz`: midnight in the zone.
pub fn date_to_timestamptz(date: i32, zone: &TimeZone) -> Result<i64> {
    let t = date_to_timestamp(date)?;
    if is_infinite(t) {
        return Ok(t);
    }
    from_local(&Civil::of(t), zone).map_err(|_| overflow("date out of range for timestamp"))
}

/// `timestamp::date`
pub fn timestamp_to_date(t: i64) -> i32 {
    match t {
        TIMESTAMP_INFINITY => DATE_INFINITY,
        TIMESTAMP_NEG_INFINITY => DATE_NEG_INFINITY,
        _ => t.div_euclid(MICROS_PER_DAY) as i32,
    }
}

/// `timestamp::time`; NULL for the infinities.
pub fn timestamp_to_time(t: i64) -> Option<i64> {
    (!is_infinite(t)).then(|| t.rem_euclid(MICROS_PER_DAY))
}

/// `timestamp::timestamptz`: the instant of a local time in the zone.
pub fn timestamp_to_timestamptz(t: i64, zone: &TimeZone) -> Result<i64> {
    if is_infinite(t) { Ok(t) } else { from_local(&Civil::of(t), zone) }
}

/// `timestamptz::timestamp`: the local time in the zone.
pub fn timestamptz_to_timestamp(t: i64, zone: &TimeZone) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    to_local(t, zone).timestamp().ok_or_else(timestamp_out_of_range)
}

/// `timestamptz::date`
pub fn timestamptz_to_date(t: i64, zone: &TimeZone) -> i32 {
    if is_infinite(t) { timestamp_to_date(t) } else { to_local(t, zone).days() as i32 }
}

/// `timestamptz::time`; NULL for the infinities.
pub fn timestamptz_to_time(t: i64, zone: &TimeZone) -> Option<i64> {
    (!is_infinite(t)).then(|| to_local(t, zone).time_micros())
}

/// `timestamptz::timetz`; NULL for the infinities.
pub fn timestamptz_to_timetz(t: i64, zone: &TimeZone) -> Option<(i64, i32)> {
    (!is_infinite(t)).then(|| (to_local(t, zone).time_micros(), west_at(zone.rules(), t)))
}

/// `timetz::time`
pub fn timetz_to_time(time: i64, _west: i32) -> i64 {
    time
}

/// `time::timetz`: with the session zone's offset at that time of the current day.
pub fn time_to_timetz(time: i64, cx: &InputContext<'_>) -> (i64, i32) {
    let zone = &cx.settings.timezone;
    let today = to_local(cx.now_micros, zone);
    let c = Civil { year: today.year, month: today.month, day: today.day, ..Civil::of_time(time) };
    (time, west_in(&c, zone))
}

/// `interval::time`: its microseconds around the clock.
pub fn interval_to_time(span: &Interval) -> i64 {
    span.micros.rem_euclid(MICROS_PER_DAY)
}

/// `time::interval`
pub fn time_to_interval(time: i64) -> Interval {
    Interval { micros: time, ..Interval::default() }
}

/// `date + time`, a timestamp.
pub fn date_plus_time(date: i32, time: i64) -> Result<i64> {
    shift(date_to_timestamp(date)?, time)
}

/// `date + timetz`, a timestamptz.
pub fn date_plus_timetz(date: i32, time: i64, west: i32) -> Result<i64> {
    shift(date_to_timestamp(date)?, time + i64::from(west) * MICROS_PER_SEC)
}

/// A timestamp some microseconds later; the infinities stay.
fn shift(t: i64, micros: i64) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    t.checked_add(micros).filter(|&t| in_range(t)).ok_or_else(timestamp_out_of_range)
}

/// `timestamp AT TIME ZONE zone`, a timestamptz.
pub fn timestamp_at_zone(t: i64, zone: &Zone) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    shift(t, i64::from(zone.west_of_local(&Civil::of(t))) * MICROS_PER_SEC)
}

/// `timestamptz AT TIME ZONE zone`, a timestamp.
pub fn timestamptz_at_zone(t: i64, zone: &Zone) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    shift(t, -i64::from(zone.west_at(t)) * MICROS_PER_SEC)
}

/// `timetz AT TIME ZONE zone`, with the zone's offset at `now`.
pub fn timetz_at_zone(time: i64, west: i32, zone: &Zone, now: i64) -> (i64, i32) {
    moved(time, west, zone.west_at(now))
}

fn moved(time: i64, west: i32, to: i32) -> (i64, i32) {
    let shifted = time + (i64::from(west) - i64::from(to)) * MICROS_PER_SEC;
    (shifted.rem_euclid(MICROS_PER_DAY), to)
}

/// Seconds east that an interval stands for as a zone.
fn interval_zone(zone: &Interval, settings: &OutputSettings) -> Result<i64> {
    if zone.months != 0 || zone.days != 0 {
        let mut shown = Vec::new();
        write_interval(*zone, settings, &mut shown);
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("interval time zone \"{}\" must not include months or days", String::from_utf8_lossy(&shown)),
        ));
    }
    Ok(zone.micros / MICROS_PER_SEC)
}

/// `timestamp AT TIME ZONE interval`
pub fn timestamp_at_interval(t: i64, zone: &Interval, settings: &OutputSettings) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    shift(t, -interval_zone(zone, settings)? * MICROS_PER_SEC)
}

/// `timestamptz AT TIME ZONE interval`
pub fn timestamptz_at_interval(t: i64, zone: &Interval, settings: &OutputSettings) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    shift(t, interval_zone(zone, settings)? * MICROS_PER_SEC)
}

/// `timetz AT TIME ZONE interval`
pub fn timetz_at_interval(time: i64, west: i32, zone: &Interval, settings: &OutputSettings) -> Result<(i64, i32)> {
    let to = -interval_zone(zone, settings)?;
    Ok(moved(time, west, to as i32))
}
