//! Text output, appended to a buffer of bytes.

use super::calendar::{civil_from_days, weekday};
use super::{
    Civil, DATE_INFINITY, DATE_NEG_INFINITY, MICROS_PER_SEC, TIMESTAMP_INFINITY, TIMESTAMP_NEG_INFINITY, zone,
};
use crate::io::write_int;
use crate::settings::{DateOrder, DateStyle, OutputSettings};

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

const WEEKDAYS: [&[u8]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Two digits.
fn two(out: &mut Vec<u8>, n: i32) {
    let at = n as usize % 100 * 2;
    out.extend_from_slice(&PAIRS[at..at + 2]);
}

/// At least two digits.
pub(crate) fn two_or_more(out: &mut Vec<u8>, n: i64) {
    if (0..100).contains(&n) { two(out, n as i32) } else { write_int(n, out) }
}

/// The year as people count it, at least four digits.
fn year(out: &mut Vec<u8>, astronomical: i32) {
    let shown = if astronomical > 0 { astronomical } else { 1 - astronomical };
    if shown < 10_000 {
        two(out, shown / 100);
        two(out, shown % 100);
    } else {
        write_int(i64::from(shown), out);
    }
}

/// `.ffffff` without trailing zeros; nothing for 0.
pub(crate) fn fraction(out: &mut Vec<u8>, micros: i32) {
    if micros == 0 {
        return;
    }
    out.push(b'.');
    two(out, micros / 10_000);
    two(out, micros / 100 % 100);
    two(out, micros % 100);
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

fn clock(out: &mut Vec<u8>, c: &Civil) {
    two(out, c.hour);
    out.push(b':');
    two(out, c.minute);
    out.push(b':');
    two(out, c.second);
    fraction(out, c.micro);
}

/// `+HH[:MM[:SS]]` of an offset in seconds west.
pub(crate) fn offset(out: &mut Vec<u8>, west: i32) {
    let seconds = west.abs();
    out.push(if west <= 0 { b'+' } else { b'-' });
    two_or_more(out, i64::from(seconds / 3600));
    if seconds % 3600 != 0 {
        out.push(b':');
        two(out, seconds / 60 % 60);
        if seconds % 60 != 0 {
            out.push(b':');
            two(out, seconds % 60);
        }
    }
}

/// Two fields in the order of the day and the month that the settings ask for.
fn day_and_month(out: &mut Vec<u8>, c: &Civil, separator: u8, day_first: bool) {
    let (a, b) = if day_first { (c.day, c.month) } else { (c.month, c.day) };
    two(out, a);
    out.push(separator);
    two(out, b);
    out.push(separator);
}

fn iso_date(out: &mut Vec<u8>, c: &Civil) {
    year(out, c.year);
    out.push(b'-');
    two(out, c.month);
    out.push(b'-');
    two(out, c.day);
}

fn era(out: &mut Vec<u8>, c: &Civil) {
    if c.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

/// Writes a `date`.
pub fn write_date(days: i32, settings: &OutputSettings, out: &mut Vec<u8>) {
    match days {
        DATE_INFINITY => return out.extend_from_slice(b"infinity"),
        DATE_NEG_INFINITY => return out.extend_from_slice(b"-infinity"),
        _ => {}
    }
    let (y, month, day) = civil_from_days(days.into());
    let c = Civil { year: y, month, day, ..Civil::default() };
    let day_first = settings.date_order == DateOrder::Dmy;
    match settings.date_style {
        DateStyle::Iso => iso_date(out, &c),
        DateStyle::Sql => {
            day_and_month(out, &c, b'/', day_first);
            year(out, y);
        }
        DateStyle::German => {
            day_and_month(out, &c, b'.', true);
            year(out, y);
        }
        DateStyle::Postgres => {
            day_and_month(out, &c, b'-', day_first);
            year(out, y);
        }
    }
    era(out, &c);
}

/// Writes a date as XML Schema has it.
pub(crate) fn xsd_date(days: i32, out: &mut Vec<u8>) {
    let (year, month, day) = civil_from_days(days.into());
    let c = Civil { year, month, day, ..Civil::default() };
    iso_date(out, &c);
    era(out, &c);
}

/// `+HH:MM[:SS]` of an offset in seconds west.
pub(crate) fn xsd_offset(west: i32, out: &mut Vec<u8>) {
    offset(out, west);
    if west % 3600 == 0 {
        out.extend_from_slice(b":00");
    }
}

/// Writes a timestamp as XML Schema has it; one in UTC as the clock shows it so far west.
pub(crate) fn xsd_timestamp(t: i64, west: Option<i32>, out: &mut Vec<u8>) {
    let c = Civil::of(t - i64::from(west.unwrap_or(0)) * MICROS_PER_SEC);
    iso_date(out, &c);
    out.push(b'T');
    clock(out, &c);
    if let Some(west) = west {
        xsd_offset(west, out);
    }
    era(out, &c);
}

/// Writes a `time`; no setting matters.
pub fn write_time(micros: i64, out: &mut Vec<u8>) {
    clock(out, &Civil::of_time(micros));
}

/// Writes a `timetz`; `west` is its offset in seconds west of UTC.
pub fn write_timetz(micros: i64, west: i32, out: &mut Vec<u8>) {
    clock(out, &Civil::of_time(micros));
    offset(out, west);
}

/// The zone part of a timestamp.
enum Suffix<'a> {
    None,
    Zone { west: i32, abbreviation: &'a str },
}

fn infinity(out: &mut Vec<u8>, t: i64) -> bool {
    match t {
        TIMESTAMP_INFINITY => out.extend_from_slice(b"infinity"),
        TIMESTAMP_NEG_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => return false,
    }
    true
}

/// Writes a `timestamp`.
pub fn write_timestamp(t: i64, settings: &OutputSettings, out: &mut Vec<u8>) {
    if infinity(out, t) {
        return;
    }
    let c = Civil::of(t);
    if settings.date_style == DateStyle::Iso {
        iso_date(out, &c);
        out.push(b' ');
        clock(out, &c);
        era(out, &c);
    } else {
        styled(out, &c, settings, Suffix::None);
    }
}

/// Writes a `timestamptz` in the session's zone.
pub fn write_timestamptz(t: i64, settings: &OutputSettings, out: &mut Vec<u8>) {
    if infinity(out, t) {
        return;
    }
    let rules = settings.timezone.rules();
    if settings.date_style == DateStyle::Iso {
        let west = zone::west_at(rules, t);
        let c = Civil::of(t - i64::from(west) * MICROS_PER_SEC);
        iso_date(out, &c);
        out.push(b' ');
        clock(out, &c);
        offset(out, west);
        era(out, &c);
    } else {
        zone::with_info(rules, t, |west, abbreviation| {
            let c = Civil::of(t - i64::from(west) * MICROS_PER_SEC);
            styled(out, &c, settings, Suffix::Zone { west, abbreviation });
        });
    }
}

/// The styles other than ISO.
fn styled(out: &mut Vec<u8>, c: &Civil, settings: &OutputSettings, suffix: Suffix<'_>) {
    let day_first = settings.date_order == DateOrder::Dmy;
    match settings.date_style {
        DateStyle::Iso | DateStyle::Sql | DateStyle::German => {
            let german = settings.date_style == DateStyle::German;
            day_and_month(out, c, if german { b'.' } else { b'/' }, day_first || german);
            year(out, c.year);
            out.push(b' ');
            clock(out, c);
        }
        DateStyle::Postgres => {
            out.extend_from_slice(WEEKDAYS[weekday(c.days()) as usize]);
            out.push(b' ');
            let month = MONTHS[(c.month - 1) as usize];
            if day_first {
                two(out, c.day);
                out.push(b' ');
                out.extend_from_slice(month);
            } else {
                out.extend_from_slice(month);
                out.push(b' ');
                two(out, c.day);
            }
            out.push(b' ');
            clock(out, c);
            out.push(b' ');
            year(out, c.year);
        }
    }
    if let Suffix::Zone { west, abbreviation } = suffix {
        if abbreviation.is_empty() {
            if settings.date_style == DateStyle::Postgres {
                out.push(b' ');
            }
            offset(out, west);
        } else {
            // PostgreSQL cuts names after ten bytes.
            let shown = &abbreviation.as_bytes()[..abbreviation.len().min(10)];
            out.push(b' ');
            out.extend_from_slice(shown);
        }
    }
    era(out, c);
}
