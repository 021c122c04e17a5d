//! `interval`: output, comparison and arithmetic. Reading is in [`parse_interval`].
//!
//! Months, days and microseconds are kept apart; only comparison and the justify functions treat a month as 30 days
//! and a day as 24 hours.

use std::cmp::Ordering;

use base::{Error, Result, SqlState};

pub use crate::datetime::parse_interval;
use crate::datetime::write::{fraction, two_or_more};
use crate::datetime::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SEC, interval_out_of_range};
pub use crate::datum::Interval;
use crate::io::write_int;
use crate::settings::{IntervalStyle, OutputSettings};

const SECS_PER_DAY: f64 = 86_400.0;
const DAYS_PER_MONTH: i32 = 30;

/// The field bits of an interval's type modifier.
pub mod range {
    /// `year`
    pub const YEAR: i32 = 1 << 2;
    /// `month`
    pub const MONTH: i32 = 1 << 1;
    /// `day`
    pub const DAY: i32 = 1 << 3;
    /// `hour`
    pub const HOUR: i32 = 1 << 10;
    /// `minute`
    pub const MINUTE: i32 = 1 << 11;
    /// `second`
    pub const SECOND: i32 = 1 << 12;
    /// No restriction.
    pub const FULL: i32 = 0x7fff;
    /// No restriction of the precision.
    pub const FULL_PRECISION: i32 = 0xffff;
}

/// The fields that people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Years.
    pub years: i32,
    /// Months beside the years.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Hours.
    pub hours: i64,
    /// Minutes beside the hours.
    pub minutes: i32,
    /// Seconds beside the minutes.
    pub seconds: i32,
    /// Microseconds beside the seconds.
    pub micros: i32,
}

impl Interval {
    /// The fields that people read; those of one part have one sign.
    pub fn parts(&self) -> Parts {
        Parts {
            years: self.months / 12,
            months: self.months % 12,
            days: self.days,
            hours: self.micros / MICROS_PER_HOUR,
            minutes: (self.micros / MICROS_PER_MINUTE % 60) as i32,
            seconds: (self.micros / MICROS_PER_SEC % 60) as i32,
            micros: (self.micros % MICROS_PER_SEC) as i32,
        }
    }

    /// The length that comparisons see, in microseconds: months of 30 days, days of 24 hours.
    pub fn comparable(&self) -> i128 {
        let days = i64::from(self.months) * 30 + i64::from(self.days);
        i128::from(days) * i128::from(MICROS_PER_DAY) + i128::from(self.micros)
    }
}

/// Order of two intervals.
pub fn compare(a: &Interval, b: &Interval) -> Ordering {
    a.comparable().cmp(&b.comparable())
}

/// `-a`
pub fn negate(a: Interval) -> Result<Interval> {
    combine(a.months.checked_neg(), a.days.checked_neg(), a.micros.checked_neg())
}

/// `a + b`
pub fn add(a: Interval, b: Interval) -> Result<Interval> {
    combine(a.months.checked_add(b.months), a.days.checked_add(b.days), a.micros.checked_add(b.micros))
}

/// `a - b`
pub fn subtract(a: Interval, b: Interval) -> Result<Interval> {
    combine(a.months.checked_sub(b.months), a.days.checked_sub(b.days), a.micros.checked_sub(b.micros))
}

fn combine(months: Option<i32>, days: Option<i32>, micros: Option<i64>) -> Result<Interval> {
    match (months, days, micros) {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { micros, days, months }),
        _ => Err(interval_out_of_range()),
    }
}

/// `a * factor`; fractions of months become days, those of days microseconds.
pub fn multiply(a: Interval, factor: f64) -> Result<Interval> {
    scale(a, |x| x * factor)
}

/// `a / divisor`
pub fn divide(a: Interval, divisor: f64) -> Result<Interval> {
    if divisor == 0.0 {
        return Err(Error::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    }
    scale(a, |x| x / divisor)
}

/// To the nearest microsecond of a value in seconds.
fn round_micro(x: f64) -> f64 {
    (x * 1e6).round_ties_even() / 1e6
}

fn scale(a: Interval, f: impl Fn(f64) -> f64) -> Result<Interval> {
    let whole = |x: f64| {
        if (-2147483648.0..2147483648.0).contains(&x) { Ok(x as i32) } else { Err(interval_out_of_range()) }
    };
    let (exact_months, exact_days) = (f(f64::from(a.months)), f(f64::from(a.days)));
    let (months, mut days) = (whole(exact_months)?, whole(exact_days)?);
    let spill_days = round_micro((exact_months - f64::from(months)) * f64::from(DAYS_PER_MONTH));
    let mut spill_secs =
        round_micro((exact_days - f64::from(days) + spill_days - f64::from(spill_days as i32)) * SECS_PER_DAY);
    if spill_secs.abs() >= SECS_PER_DAY {
        let extra = (spill_secs / SECS_PER_DAY) as i32;
        days = days.checked_add(extra).ok_or_else(interval_out_of_range)?;
        spill_secs -= f64::from(extra) * SECS_PER_DAY;
    }
    let days = days.checked_add(spill_days as i32).ok_or_else(interval_out_of_range)?;
    let micros = (f(a.micros as f64) + spill_secs * 1e6).round_ties_even();
    if !(-9223372036854775808.0..9223372036854775808.0).contains(&micros) {
        return Err(interval_out_of_range());
    }
    Ok(Interval { micros: micros as i64, days, months })
}

/// `justify_hours`: 24 hours become a day.
pub fn justify_hours(a: Interval) -> Result<Interval> {
    let whole = a.micros / MICROS_PER_DAY;
    let days = a.days.checked_add(whole as i32).ok_or_else(interval_out_of_range)?;
    Ok(same_sign_days(Interval { micros: a.micros % MICROS_PER_DAY, days, months: a.months }))
}

/// `justify_days`: 30 days become a month.
pub fn justify_days(a: Interval) -> Result<Interval> {
    let months = a.months.checked_add(a.days / DAYS_PER_MONTH).ok_or_else(interval_out_of_range)?;
    let mut r = Interval { days: a.days % DAYS_PER_MONTH, months, ..a };
    if r.months > 0 && r.days < 0 {
        r.days += DAYS_PER_MONTH;
        r.months -= 1;
    } else if r.months < 0 && r.days > 0 {
        r.days -= DAYS_PER_MONTH;
        r.months += 1;
    }
    Ok(r)
}

/// `justify_interval`: both, with one sign for all parts.
pub fn justify_interval(a: Interval) -> Result<Interval> {
    // In 64 bits nothing on the way can overflow.
    let days = i64::from(a.days) + a.micros / MICROS_PER_DAY;
    let months = i64::from(a.months) + days / i64::from(DAYS_PER_MONTH);
    let mut r = Interval {
        micros: a.micros % MICROS_PER_DAY,
        days: (days % i64::from(DAYS_PER_MONTH)) as i32,
        months: i32::try_from(months).map_err(|_| interval_out_of_range())?,
    };
    if r.months > 0 && (r.days < 0 || (r.days == 0 && r.micros < 0)) {
        r.days += DAYS_PER_MONTH;
        r.months -= 1;
    } else if r.months < 0 && (r.days > 0 || (r.days == 0 && r.micros > 0)) {
        r.days -= DAYS_PER_MONTH;
        r.months += 1;
    }
    Ok(same_sign_days(r))
}

/// Moves a day between days and microseconds so that their signs agree.
fn same_sign_days(mut r: Interval) -> Interval {
    if r.days > 0 && r.micros < 0 {
        r.micros += MICROS_PER_DAY;
        r.days -= 1;
    } else if r.days < 0 && r.micros > 0 {
        r.micros -= MICROS_PER_DAY;
        r.days += 1;
    }
    r
}

/// Cuts an interval to the fields and the precision of a type modifier; negative means none.
pub fn apply_typmod(mut a: Interval, typmod: i32) -> Result<Interval> {
    use range::{DAY, HOUR, MINUTE, MONTH, YEAR};
    if typmod < 0 {
        return Ok(a);
    }
    let (fields, precision) = ((typmod >> 16) & 0x7fff, typmod & 0xffff);
    const YEAR_MONTH: i32 = YEAR | MONTH;
    const DAY_HOUR: i32 = DAY | HOUR;
    const DAY_MINUTE: i32 = DAY | HOUR | MINUTE;
    const HOUR_MINUTE: i32 = HOUR | MINUTE;
    match fields {
        YEAR => a = Interval { months: a.months / 12 * 12, ..Interval::default() },
        MONTH | YEAR_MONTH => a = Interval { months: a.months, ..Interval::default() },
        DAY => a.micros = 0,
        HOUR | DAY_HOUR => a.micros -= a.micros % MICROS_PER_HOUR,
        MINUTE | DAY_MINUTE | HOUR_MINUTE => a.micros -= a.micros % MICROS_PER_MINUTE,
        _ => {}
    }
    if (0..6).contains(&precision) {
        let unit = 10i64.pow(6 - precision as u32);
        let half = if a.micros >= 0 { unit / 2 } else { -(unit / 2) };
        let rounded = a.micros.checked_add(half).ok_or_else(interval_out_of_range)?;
        a.micros = rounded - rounded % unit;
    }
    Ok(a)
}

/// Writes an interval in the session's `IntervalStyle`.
pub fn write_interval(a: Interval, settings: &OutputSettings, out: &mut Vec<u8>) {
    let p = a.parts();
    match settings.interval_style {
        IntervalStyle::Postgres => write_postgres(&p, out),
        IntervalStyle::PostgresVerbose => write_verbose(&p, out),
        IntervalStyle::SqlStandard => write_standard(&a, out),
        IntervalStyle::Iso8601 => write_iso(&p, out),
    }
}

fn has_clock(p: &Parts) -> bool {
    p.hours != 0 || p.minutes != 0 || p.seconds != 0 || p.micros != 0
}

fn clock_negative(p: &Parts) -> bool {
    p.hours < 0 || p.minutes < 0 || p.seconds < 0 || p.micros < 0
}

/// `hh:mm:ss.f` without the sign; `width` is that of the hours.
fn clock(p: &Parts, out: &mut Vec<u8>, wide_hours: bool) {
    if wide_hours {
        two_or_more(out, p.hours.abs());
    } else {
        write_int(p.hours.abs(), out);
    }
    out.push(b':');
    two_or_more(out, p.minutes.abs().into());
    out.push(b':');
    two_or_more(out, p.seconds.abs().into());
    fraction(out, p.micros.abs());
}

fn write_postgres(p: &Parts, out: &mut Vec<u8>) {
    let (mut empty, mut negative) = (true, false);
    for (value, unit) in [(p.years, "year"), (p.months, "mon"), (p.days, "day")] {
        if value == 0 {
            continue;
        }
        if !empty {
            out.push(b' ');
        }
        if negative && value > 0 {
            out.push(b'+');
        }
        write_int(value.into(), out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if value != 1 {
            out.push(b's');
        }
        (empty, negative) = (false, value < 0);
    }
    if empty || has_clock(p) {
        if !empty {
            out.push(b' ');
        }
        if clock_negative(p) {
            out.push(b'-');
        } else if negative {
            out.push(b'+');
        }
        clock(p, out, true);
    }
}

fn write_verbose(p: &Parts, out: &mut Vec<u8>) {
    let (mut empty, mut ago) = (true, false);
    out.push(b'@');
    let parts = [
        (i64::from(p.years), "year"),
        (i64::from(p.months), "mon"),
        (i64::from(p.days), "day"),
        (p.hours, "hour"),
        (i64::from(p.minutes), "min"),
    ];
    for (value, unit) in parts {
        if value == 0 {
            continue;
        }
        if empty {
            ago = value < 0;
        }
        let shown = if ago { -value } else { value };
        out.push(b' ');
        write_int(shown, out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if shown != 1 {
            out.push(b's');
        }
        empty = false;
    }
    if p.seconds != 0 || p.micros != 0 {
        out.push(b' ');
        if p.seconds < 0 || p.micros < 0 {
            if empty {
                ago = true;
            } else if !ago {
                out.push(b'-');
            }
        } else if ago {
            out.push(b'-');
        }
        write_int(p.seconds.abs().into(), out);
        fraction(out, p.micros.abs());
        out.extend_from_slice(if p.seconds.abs() != 1 || p.micros != 0 { b" secs" } else { b" sec" });
        empty = false;
    }
    if empty {
        out.extend_from_slice(b" 0");
    }
    if ago {
        out.extend_from_slice(b" ago");
    }
}

fn write_standard(a: &Interval, out: &mut Vec<u8>) {
    let p = a.parts();
    let negative = a.months < 0 || a.days < 0 || a.micros < 0;
    let positive = a.months > 0 || a.days > 0 || a.micros > 0;
    let (year_month, day_time) = (a.months != 0, a.days != 0 || a.micros != 0);
    if !negative && !positive {
        return out.push(b'0');
    }
    if (negative && positive) || (year_month && day_time) {
        // Not a value of the standard: every part shows its sign.
        let sign = |negative: bool| if negative { b'-' } else { b'+' };
        out.push(sign(a.months < 0));
        write_int(i64::from(p.years).abs(), out);
        out.push(b'-');
        write_int(i64::from(p.months).abs(), out);
        out.extend_from_slice(&[b' ', sign(a.days < 0)]);
        write_int(i64::from(p.days).abs(), out);
        out.extend_from_slice(&[b' ', sign(a.micros < 0)]);
        return clock(&p, out, false);
    }
    if negative {
        out.push(b'-');
    }
    if year_month {
        write_int(i64::from(p.years).abs(), out);
        out.push(b'-');
        write_int(i64::from(p.months).abs(), out);
    } else {
        if p.days != 0 {
            write_int(i64::from(p.days).abs(), out);
            out.push(b' ');
        }
        clock(&p, out, false);
    }
}

fn write_iso(p: &Parts, out: &mut Vec<u8>) {
    let part = |value: i64, unit: u8, out: &mut Vec<u8>| {
        if value != 0 {
            write_int(value, out);
            out.push(unit);
        }
    };
    if p.years == 0 && p.months == 0 && p.days == 0 && !has_clock(p) {
        return out.extend_from_slice(b"PT0S");
    }
    out.push(b'P');
    part(p.years.into(), b'Y', out);
    part(p.months.into(), b'M', out);
    part(p.days.into(), b'D', out);
    if !has_clock(p) {
        return;
    }
    out.push(b'T');
    part(p.hours, b'H', out);
    part(p.minutes.into(), b'M', out);
    if p.seconds != 0 || p.micros != 0 {
        if p.seconds < 0 || p.micros < 0 {
            out.push(b'-');
        }
        write_int(p.seconds.abs().into(), out);
        fraction(out, p.micros.abs());
        out.push(b'S');
    }
}

/// [`apply_typmod`] for callers without errors: beyond the range of microseconds the value stays as it is.
pub fn limit(a: Interval, typmod: i32) -> Interval {
    apply_typmod(a, typmod).unwrap_or(a)
}
