//! `date_trunc`.

use super::arith::to_local;
use super::calendar::civil_from_days;
use super::tokens::{Unit, unit};
use super::zone::{Zone, west_at};
use super::{Civil, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SEC, is_infinite, timestamp_out_of_range};
use crate::interval::Interval;
use crate::settings::TimeZone;
use base::{Error, Result, SqlState};

#[cold]
pub(super) fn unsupported_unit(name: &str, type_name: &str) -> Error {
    Error::unsupported(format!("unit \"{name}\" not supported for type {type_name}"))
}

#[cold]
pub(super) fn unknown_unit(name: &str, type_name: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("unit \"{name}\" not recognized for type {type_name}"))
}

fn lookup(name: &str, type_name: &str) -> Result<Unit> {
    let lower = name.to_ascii_lowercase();
    match unit(&lower) {
        Some(Unit::Ago | Unit::Filler) | None => Err(unknown_unit(&lower, type_name)),
        Some(Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute) => Err(unsupported_unit(&lower, type_name)),
        Some(unit) => Ok(unit),
    }
}

/// First year of a century or millennium of `n` years; those start with the year 1, and there is no year 0.
fn first_year(year: i32, n: i32) -> i32 {
    if year > 0 { (year + n - 1) / n * n - (n - 1) } else { -((n - 1 - (year - 1)) / n * n) + 1 }
}

/// Cuts the fields; true if the unit is a day or longer.
fn truncate(c: &mut Civil, unit: Unit) -> bool {
    match unit {
        Unit::Millennium => c.year = first_year(c.year, 1000),
        Unit::Century => c.year = first_year(c.year, 100),
        Unit::Decade => c.year = if c.year > 0 { c.year / 10 * 10 } else { -((8 - (c.year - 1)) / 10 * 10) },
        _ => {}
    }
    match unit {
        Unit::Millennium | Unit::Century | Unit::Decade | Unit::Year => (c.month, c.day) = (1, 1),
        Unit::Quarter => (c.month, c.day) = (3 * ((c.month - 1) / 3) + 1, 1),
        Unit::Month => c.day = 1,
        Unit::Week => {
            let days = c.days();
            (c.year, c.month, c.day) = civil_from_days(days - (days + 5).rem_euclid(7));
        }
        Unit::Day => {}
        _ => {
            let unit = micros_of(unit);
            let time = c.time_micros();
            *c = Civil { year: c.year, month: c.month, day: c.day, ..Civil::of_time(time - time % unit) };
            return false;
        }
    }
    (c.hour, c.minute, c.second, c.micro) = (0, 0, 0, 0);
    true
}

fn micros_of(unit: Unit) -> i64 {
    match unit {
        Unit::Hour => MICROS_PER_HOUR,
        Unit::Minute => MICROS_PER_MINUTE,
        Unit::Second => MICROS_PER_SEC,
        Unit::Millisecond => 1000,
        _ => 1,
    }
}

/// `date_trunc(unit, timestamp)`
pub fn date_trunc_timestamp(name: &str, t: i64) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    let unit = lookup(name, "timestamp without time zone")?;
    let mut c = Civil::of(t);
    truncate(&mut c, unit);
    c.timestamp().ok_or_else(timestamp_out_of_range)
}

/// `date_trunc(unit, timestamptz)` in the session's zone.
pub fn date_trunc_timestamptz(name: &str, t: i64, zone: &TimeZone) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    let unit = lookup(name, "timestamp with time zone")?;
    let mut c = to_local(t, zone);
    let mut west = west_at(zone.rules(), t);
    if truncate(&mut c, unit) {
        west = super::cast::west_in(&c, zone);
    }
    super::parse::to_utc(&c, west).ok_or_else(timestamp_out_of_range)
}

/// `date_trunc(unit, timestamptz, zone)`
pub fn date_trunc_timestamptz_in(name: &str, t: i64, zone: &Zone) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    let unit = lookup(name, "timestamp with time zone")?;
    let mut west = zone.west_at(t);
    let mut c = Civil::of(t - i64::from(west) * MICROS_PER_SEC);
    if truncate(&mut c, unit) {
        west = zone.west_of_local(&c);
    }
    super::parse::to_utc(&c, west).ok_or_else(timestamp_out_of_range)
}

/// `date_trunc(unit, interval)`
pub fn date_trunc_interval(name: &str, span: &Interval) -> Result<Interval> {
    let unit = lookup(name, "interval")?;
    let months = |n: i32| Interval { months: span.months / n * n, ..Interval::default() };
    Ok(match unit {
        Unit::Millennium => months(12_000),
        Unit::Century => months(1200),
        Unit::Decade => months(120),
        Unit::Year => months(12),
        Unit::Quarter => months(3),
        Unit::Month => months(1),
        Unit::Week => {
            return Err(unsupported_unit(&name.to_ascii_lowercase(), "interval")
                .detail("Months usually have fractional weeks."));
        }
        Unit::Day => Interval { micros: 0, ..*span },
        unit => Interval { micros: span.micros - span.micros % micros_of(unit), ..*span },
    })
}
