//! Sums and differences, order, overlap, age.

use std::cmp::Ordering;

use super::calendar::{civil_from_days, days_in_month};
use super::cast::{date_to_timestamp, west_in};
use super::{
    Civil, DATE_END, DATE_INFINITY, DATE_MIN, DATE_NEG_INFINITY, MICROS_PER_DAY, MICROS_PER_SEC, date_out_of_range,
    in_range, interval_out_of_range, is_infinite, overflow, timestamp_out_of_range,
};
use crate::interval::{Interval, justify_hours};
use crate::settings::{OutputSettings, TimeZone};
use base::Result;

/// `date + integer`
pub fn date_plus_days(date: i32, days: i32) -> Result<i32> {
    if date == DATE_INFINITY || date == DATE_NEG_INFINITY {
        return Ok(date);
    }
    date.checked_add(days).filter(|d| (DATE_MIN..DATE_END).contains(d)).ok_or_else(date_out_of_range)
}

/// `date - date`, in days.
pub fn date_minus_date(a: i32, b: i32) -> Result<i32> {
    if [a, b].iter().any(|&d| d == DATE_INFINITY || d == DATE_NEG_INFINITY) {
        return Err(overflow("cannot subtract infinite dates"));
    }
    Ok(a - b)
}

/// `date + interval`, a timestamp.
pub fn date_plus_interval(date: i32, span: &Interval) -> Result<i64> {
    timestamp_plus_interval(date_to_timestamp(date)?, span)
}

/// `date - interval`, a timestamp.
pub fn date_minus_interval(date: i32, span: &Interval) -> Result<i64> {
    timestamp_minus_interval(date_to_timestamp(date)?, span)
}

/// The same local time some months and days later; a day that the month does not have becomes its last.
fn shift_months(mut c: Civil, months: i32) -> Result<Civil> {
    let total = i64::from(c.year) * 12 + i64::from(c.month - 1) + i64::from(months);
    c.year = i32::try_from(total.div_euclid(12)).map_err(|_| timestamp_out_of_range())?;
    c.month = total.rem_euclid(12) as i32 + 1;
    c.day = c.day.min(days_in_month(c.year, c.month));
    Ok(c)
}

fn shift_days(mut c: Civil, days: i32) -> Result<Civil> {
    let day = c.days() + i64::from(days);
    if day < i64::from(DATE_MIN) {
        return Err(timestamp_out_of_range());
    }
    (c.year, c.month, c.day) = civil_from_days(day);
    Ok(c)
}

fn plus_micros(t: i64, micros: i64) -> Result<i64> {
    t.checked_add(micros).filter(|&t| in_range(t)).ok_or_else(timestamp_out_of_range)
}

/// The opposite interval. The smallest values have none and stay what they are, as in PostgreSQL.
fn opposite(span: &Interval) -> Interval {
    Interval { micros: span.micros.wrapping_neg(), days: span.days.wrapping_neg(), months: span.months.wrapping_neg() }
}

/// `timestamp + interval`: months, then days, then microseconds.
pub fn timestamp_plus_interval(t: i64, span: &Interval) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    let mut t = t;
    if span.months != 0 {
        t = shift_months(Civil::of(t), span.months)?.timestamp().ok_or_else(timestamp_out_of_range)?;
    }
    if span.days != 0 {
        t = shift_days(Civil::of(t), span.days)?.timestamp().ok_or_else(timestamp_out_of_range)?;
    }
    plus_micros(t, span.micros)
}

/// `timestamp - interval`
pub fn timestamp_minus_interval(t: i64, span: &Interval) -> Result<i64> {
    timestamp_plus_interval(t, &opposite(span))
}

/// `timestamptz + interval`: months and days move the zone's local time, microseconds the instant.
pub fn timestamptz_plus_interval(t: i64, span: &Interval, zone: &TimeZone) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    let mut t = t;
    if span.months != 0 {
        t = from_local(&shift_months(to_local(t, zone), span.months)?, zone)?;
    }
    if span.days != 0 {
        t = from_local(&shift_days(to_local(t, zone), span.days)?, zone)?;
    }
    plus_micros(t, span.micros)
}

/// `timestamptz - interval`
pub fn timestamptz_minus_interval(t: i64, span: &Interval, zone: &TimeZone) -> Result<i64> {
    timestamptz_plus_interval(t, &opposite(span), zone)
}

/// The local time of a finite instant.
pub(super) fn to_local(t: i64, zone: &TimeZone) -> Civil {
    Civil::of(t - i64::from(super::zone::west_at(zone.rules(), t)) * MICROS_PER_SEC)
}

/// The instant of a local time.
pub(super) fn from_local(c: &Civil, zone: &TimeZone) -> Result<i64> {
    super::parse::to_utc(c, west_in(c, zone)).ok_or_else(timestamp_out_of_range)
}

/// `timestamp - timestamp`, also for `timestamptz`: days of 24 hours and the rest.
pub fn timestamp_minus(a: i64, b: i64) -> Result<Interval> {
    if is_infinite(a) || is_infinite(b) {
        return Err(overflow("cannot subtract infinite timestamps"));
    }
    let micros = a.checked_sub(b).ok_or_else(interval_out_of_range)?;
    justify_hours(Interval { micros, ..Interval::default() })
}

fn wrap_day(micros: i64) -> i64 {
    micros.rem_euclid(MICROS_PER_DAY)
}

/// `time + interval`, around the clock. Days and months do not count.
pub fn time_plus_interval(time: i64, span: &Interval) -> i64 {
    wrap_day(time + span.micros % MICROS_PER_DAY)
}

/// `time - interval`
pub fn time_minus_interval(time: i64, span: &Interval) -> i64 {
    wrap_day(time - span.micros % MICROS_PER_DAY)
}

/// `timetz + interval`
pub fn timetz_plus_interval(time: i64, west: i32, span: &Interval) -> (i64, i32) {
    (time_plus_interval(time, span), west)
}

/// `timetz - interval`
pub fn timetz_minus_interval(time: i64, west: i32, span: &Interval) -> (i64, i32) {
    (time_minus_interval(time, span), west)
}

/// `time - time`
pub fn time_minus_time(a: i64, b: i64) -> Interval {
    Interval { micros: a - b, ..Interval::default() }
}

/// Order of two `timetz`: by instant, then by zone.
pub fn compare_timetz(a: (i64, i32), b: (i64, i32)) -> Ordering {
    let instant = |(time, west): (i64, i32)| time + i64::from(west) * MICROS_PER_SEC;
    instant(a).cmp(&instant(b)).then(a.1.cmp(&b.1))
}

/// Order of a date and a timestamp; dates beyond the range of timestamps count as later than all of them.
pub fn compare_date_timestamp(date: i32, t: i64) -> Ordering {
    match date {
        DATE_INFINITY => i64::MAX.cmp(&t),
        DATE_NEG_INFINITY => i64::MIN.cmp(&t),
        _ => (i128::from(date) * i128::from(MICROS_PER_DAY)).cmp(&match t {
            i64::MAX => i128::MAX,
            t => i128::from(t),
        }),
    }
}

/// `(a1, a2) OVERLAPS (b1, b2)` for any ordered type; `None` is NULL.
pub fn overlaps<T: Ord + Copy>(a: (Option<T>, Option<T>), b: (Option<T>, Option<T>)) -> Option<bool> {
    // The first end is the known one, or the earlier one.
    let ordered = |pair: (Option<T>, Option<T>)| match pair {
        (None, None) => None,
        (None, Some(x)) | (Some(x), None) => Some((x, None)),
        (Some(x), Some(y)) => Some((x.min(y), Some(x.max(y)))),
    };
    let ((a1, a2), (b1, b2)) = (ordered(a)?, ordered(b)?);
    let (late, early_end, late_end) = match a1.cmp(&b1) {
        Ordering::Greater => (a1, b2, a2),
        Ordering::Less => (b1, a2, b2),
        Ordering::Equal => return (a2.is_some() && b2.is_some()).then_some(true),
    };
    if late < early_end? {
        return Some(true);
    }
    late_end.map(|_| false)
}

/// `age(timestamp, timestamp)`
///
/// The latest infinity counts as the point in time that it is stored as; there is no calendar for the other one.
pub fn age(a: i64, b: i64) -> Result<Interval> {
    if a == i64::MIN || b == i64::MIN {
        return Err(timestamp_out_of_range());
    }
    symbolic_difference(&Civil::of(a), &Civil::of(b), a < b)
}

/// `age(timestamptz, timestamptz)`, in the session's zone.
pub fn age_tz(a: i64, b: i64, settings: &OutputSettings) -> Result<Interval> {
    if is_infinite(a) || is_infinite(b) {
        return Err(timestamp_out_of_range());
    }
    let zone = &settings.timezone;
    symbolic_difference(&to_local(a, zone), &to_local(b, zone), a < b)
}

/// Years, months, days and time between two calendar points, with borrowing as people do it.
fn symbolic_difference(a: &Civil, b: &Civil, flipped: bool) -> Result<Interval> {
    let sign = if flipped { -1 } else { 1 };
    let mut micros = i64::from(sign) * (a.time_micros() - b.time_micros());
    let mut days = sign * (a.day - b.day);
    let mut months = i64::from(sign) * (i64::from(a.year - b.year) * 12 + i64::from(a.month - b.month));
    while micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    let earlier = if flipped { a } else { b };
    while days < 0 {
        days += days_in_month(earlier.year, earlier.month);
        months -= 1;
    }
    let months = i32::try_from(months * i64::from(sign)).map_err(|_| interval_out_of_range())?;
    Ok(Interval { micros: micros * i64::from(sign), days: days * sign, months })
}
