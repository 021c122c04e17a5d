//! `to_timestamp(text, format)` and `to_date(text, format)`.

use super::calendar::{days_in_month, from_julian, valid_julian};
use super::format::{MONTHS, Node, WEEKDAYS, parse_format};
use super::parse::to_utc;
use super::{Bad, Civil, DATE_END, DATE_MIN, days_from_civil, overflow, zone};
use crate::settings::TimeZone;
use base::{Error, Result, SqlState};

/// `to_date(text, format)`
pub fn to_date(text: &str, format: &str) -> Result<i32> {
    let (c, _) = read(text, format)?;
    let days = if valid_julian(c.year, c.month) { c.days() } else { i64::MAX };
    if !(i64::from(DATE_MIN)..i64::from(DATE_END)).contains(&days) {
        return Err(overflow(format!("date out of range: \"{text}\"")));
    }
    Ok(days as i32)
}

/// `to_timestamp(text, format)`, a timestamptz; without a zone it is local time of the given one.
pub fn to_timestamp_text(text: &str, format: &str, session: &TimeZone) -> Result<i64> {
    let (c, west) = read(text, format)?;
    let west = west.unwrap_or_else(|| zone::west_of_local(session.rules(), &c));
    to_utc(&c, west).ok_or_else(super::timestamp_out_of_range)
}

/// Fields read so far.
#[derive(Default)]
struct Read {
    hour: Option<i32>,
    pm: Option<i32>,
    minute: Option<i32>,
    second: Option<i32>,
    second_of_day: Option<i32>,
    weekday: Option<i32>,
    day: Option<i32>,
    day_of_year: Option<i32>,
    month: Option<i32>,
    milli: Option<i32>,
    micro: Option<i32>,
    year: Option<i32>,
    year_digits: usize,
    bc: Option<i32>,
    week: Option<i32>,
    week_of_month: Option<i32>,
    century: Option<i32>,
    julian: Option<i32>,
    zone_sign: i32,
    zone_hour: Option<i32>,
    zone_minute: Option<i32>,
    twelve_hours: bool,
    iso: Option<bool>,
}

#[cold]
fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

/// Sets a field once; the same value twice is no contradiction.
fn set(slot: &mut Option<i32>, value: i32, written: &str) -> Result<()> {
    if slot.is_some_and(|old| old != value) {
        return Err(invalid(format!("conflicting values for \"{written}\" field in formatting string"))
            .detail("This value contradicts a previous setting for the same field type."));
    }
    *slot = Some(value);
    Ok(())
}

/// Does the input's number end where the pattern after this one says so, whatever its length?
fn number_ends_freely(nodes: &[Node<'_>], at: usize) -> bool {
    match nodes.get(at + 1) {
        None => true,
        Some(Node::Pattern { name, .. }) => matches!(
            *name,
            "A.D."
                | "AD"
                | "B.C."
                | "BC"
                | "A.M."
                | "AM"
                | "P.M."
                | "PM"
                | "MONTH"
                | "MON"
                | "DAY"
                | "DY"
                | "TZ"
                | "TZH"
                | "OF"
                | "RM"
                | "FX"
        ),
        Some(Node::Plain(c) | Node::Quoted(c)) => !c.is_ascii_digit(),
    }
}

/// Reads a number of at most `len` characters; returns it with the count of characters that it took.
fn integer(input: &mut &str, len: usize, free: bool, written: &str) -> Result<(i32, usize)> {
    let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
    let text = input.trim_start();
    let window: String = text.chars().take(len).collect();
    let source = if free { text } else { &text[..window.len()] };
    let remain = window.chars().count();
    if !free && remain < len {
        return Err(invalid(format!("source string too short for \"{written}\" formatting field"))
            .detail(format!("Field requires {len} characters, but only {remain} remain."))
            .hint(hint));
    }
    let signed = usize::from(source.starts_with(['+', '-']));
    let used = signed + source[signed..].bytes().take_while(u8::is_ascii_digit).count();
    if used == signed {
        return Err(
            invalid(format!("invalid value \"{window}\" for \"{written}\"")).detail("Value must be an integer.")
        );
    }
    if !free && used < len {
        return Err(invalid(format!("invalid value \"{window}\" for \"{written}\""))
            .detail(format!("Field requires {len} characters, but only {used} could be parsed."))
            .hint(hint));
    }
    let value = source[..used].trim_start_matches('+').parse::<i32>().map_err(|_| {
        overflow(format!("value for \"{written}\" in source string is out of range")).detail(format!(
            "Value must be in the range {} to {}.",
            i32::MIN,
            i32::MAX
        ))
    })?;
    *input = &text[used..];
    Ok((value, used))
}

/// Reads one of some words without regard to case; returns its place.
fn one_of(input: &mut &str, words: &[&str], written: &str) -> Result<i32> {
    for (at, word) in words.iter().enumerate() {
        if input.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)) {
            *input = &input[word.len()..];
            return Ok(at as i32);
        }
    }
    let shown = input.split(|c: char| c.is_ascii_whitespace()).next().unwrap_or("");
    Err(invalid(format!("invalid value \"{shown}\" for \"{written}\""))
        .detail("The given value did not match any of the allowed values for this field."))
}

/// A separator in formats and inputs?
fn is_separator(c: char) -> bool {
    c.is_ascii_whitespace() || c.is_ascii_punctuation()
}

fn read(text: &str, format: &str) -> Result<(Civil, Option<i32>)> {
    let nodes = parse_format(format);
    if nodes.iter().any(|n| matches!(n, Node::Pattern { name: "FX", .. })) {
        return Err(Error::unsupported("the formatting field \"FX\" is not supported"));
    }
    let mut r = Read::default();
    let mut input = text;
    let mut skipped = 0i32;
    for (at, node) in nodes.iter().enumerate() {
        if at == 0 || matches!(node, Node::Pattern { .. }) {
            skipped += skip_spaces(&mut input);
        }
        if input.is_empty() {
            break;
        }
        match *node {
            Node::Plain(c) if is_separator(c) => {
                // One separator of the format is one of the input, or none.
                skipped -= 1;
                if let Some(rest) = input.strip_prefix(is_separator) {
                    input = rest;
                    skipped += 1;
                }
            }
            Node::Plain(_) | Node::Quoted(_) if skipped > 0 => skipped -= 1,
            Node::Plain(_) | Node::Quoted(_) => {
                let mut rest = input.chars();
                rest.next();
                input = rest.as_str();
            }
            Node::Pattern { name, written, fill, ordinal } => {
                if matches!(name, "TZH" | "OF") && skipped > 0 {
                    // Signs are separators too; the one before an offset belongs to it.
                    let before = text.len() - input.len();
                    if text[..before].ends_with(['-', '+']) {
                        input = &text[before - 1..];
                    }
                }
                let free = !fill || ordinal.is_some() || number_ends_freely(&nodes, at);
                field(&mut r, &mut input, name, written, free)?;
                if ordinal.is_some() {
                    input = input.get(2..).unwrap_or("");
                }
                skipped = skip_spaces(&mut input);
            }
        }
    }
    finish(r, text)
}

fn skip_spaces(input: &mut &str) -> i32 {
    let rest = input.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let skipped = input.len() - rest.len();
    *input = rest;
    skipped as i32
}

/// A year of less than four digits is the one nearest to 2020.
fn near_2020(year: i32) -> i32 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

fn field(r: &mut Read, input: &mut &str, name: &'static str, written: &str, free: bool) -> Result<()> {
    let iso = match name {
        "IYYY" | "IYY" | "IY" | "I" | "IW" | "IDDD" | "ID" => Some(true),
        "YYYY" | "Y,YYY" | "YYY" | "YY" | "Y" | "MM" | "MON" | "MONTH" | "DD" | "DDD" | "D" | "DAY" | "DY" | "WW"
        | "W" | "CC" | "Q" | "RM" | "J" => Some(false),
        _ => None,
    };
    if let Some(iso) = iso.filter(|_| !matches!(name, "J" | "Q" | "CC" | "W" | "DAY" | "DY")) {
        if r.iso.is_some_and(|known| known != iso) {
            return Err(invalid("invalid combination of date conventions".into())
                .hint("Do not mix Gregorian and ISO week date conventions in a formatting template."));
        }
        r.iso = Some(iso);
    }
    let mut int = |len: usize| integer(input, len, free, written);
    match name {
        "HH24" => set(&mut r.hour, int(2)?.0, written),
        "HH" | "HH12" => {
            r.twelve_hours = true;
            set(&mut r.hour, int(2)?.0, written)
        }
        "MI" => set(&mut r.minute, int(2)?.0, written),
        "SS" => set(&mut r.second, int(2)?.0, written),
        "SSSS" | "SSSSS" => set(&mut r.second_of_day, int(name.len())?.0, written),
        "MS" => {
            let (n, len) = int(3)?;
            set(&mut r.milli, n * 10i32.pow(3usize.saturating_sub(len) as u32), written)
        }
        "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let width = name.as_bytes()[2..].first().map_or(6, |d| usize::from(d - b'0'));
            let (n, len) = int(width)?;
            set(&mut r.micro, n.saturating_mul(10i32.pow(6usize.saturating_sub(len) as u32)), written)
        }
        "MM" => set(&mut r.month, int(2)?.0, written),
        "DD" => set(&mut r.day, int(2)?.0, written),
        "DDD" | "IDDD" => set(&mut r.day_of_year, int(3)?.0, written),
        "D" => set(&mut r.weekday, int(1)?.0, written),
        "ID" => set(&mut r.weekday, int(1)?.0 % 7 + 1, written),
        "WW" | "IW" => set(&mut r.week, int(2)?.0, written),
        "W" => set(&mut r.week_of_month, int(1)?.0, written),
        "CC" => set(&mut r.century, int(2)?.0, written),
        "J" => set(&mut r.julian, int(1)?.0, written),
        "Q" => int(1).map(|_| ()),
        "YYYY" | "IYYY" => {
            let (year, _) = int(4)?;
            r.year_digits = 4;
            set(&mut r.year, year, written)
        }
        "YYY" | "IYY" | "YY" | "IY" | "Y" | "I" => {
            let (year, len) = int(name.len())?;
            r.year_digits = name.len();
            set(&mut r.year, if len < 4 { near_2020(year) } else { year }, written)
        }
        "TZM" => set(&mut r.zone_minute, int(2)?.0, written),
        "TZH" => {
            r.zone_sign = if input.starts_with('-') { -1 } else { 1 };
            if input.starts_with(['+', '-', ' ']) {
                *input = &input[1..];
            }
            set(&mut r.zone_hour, integer(input, 2, free, written)?.0, written)
        }
        "AM" | "PM" => {
            r.twelve_hours = true;
            set(&mut r.pm, one_of(input, &["am", "pm"], written)?, written)
        }
        "A.M." | "P.M." => {
            r.twelve_hours = true;
            set(&mut r.pm, one_of(input, &["a.m.", "p.m."], written)?, written)
        }
        "AD" | "BC" => set(&mut r.bc, one_of(input, &["ad", "bc"], written)?, written),
        "A.D." | "B.C." => set(&mut r.bc, one_of(input, &["a.d.", "b.c."], written)?, written),
        "MONTH" => set(&mut r.month, one_of(input, &MONTHS, written)? + 1, written),
        "MON" => set(&mut r.month, one_of(input, &MONTHS.map(|m| &m[..3]), written)? + 1, written),
        "DAY" => set(&mut r.weekday, one_of(input, &WEEKDAYS, written)? + 1, written),
        "DY" => set(&mut r.weekday, one_of(input, &WEEKDAYS.map(|d| &d[..3]), written)? + 1, written),
        "TZ" | "OF" => Err(Error::unsupported(format!("formatting field \"{written}\" is only supported in to_char"))),
        _ => Err(Error::unsupported(format!("formatting field \"{written}\" is not supported in to_timestamp"))),
    }
}

/// The Monday before an ISO year's first day of week 1, less one, so that day 1 is that Monday.
fn iso_year_start(year: i32) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - (fourth + 5).rem_euclid(7) - 1
}

fn finish(r: Read, text: &str) -> Result<(Civil, Option<i32>)> {
    let out_of_range = || Bad::Field.error(text, "timestamp");
    let mut c = Civil { month: 1, day: 1, ..Civil::default() };
    if let Some(s) = r.second_of_day {
        (c.hour, c.minute, c.second) = (s / 3600, s / 60 % 60, s % 60);
    }
    c.hour = r.hour.unwrap_or(c.hour);
    c.minute = r.minute.unwrap_or(c.minute);
    c.second = r.second.unwrap_or(c.second);
    if r.twelve_hours {
        if !(1..=12).contains(&c.hour) {
            return Err(invalid(format!("hour \"{}\" is invalid for the 12-hour clock", c.hour))
                .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        match r.pm {
            Some(1) if c.hour < 12 => c.hour += 12,
            Some(1) => {}
            _ if c.hour == 12 => c.hour = 0,
            _ => {}
        }
    }
    let bc = r.bc == Some(1);
    match (r.year, r.century) {
        (Some(_), Some(_)) if r.year_digits <= 2 => {
            return Err(Error::unsupported("centuries with short years are not supported in to_timestamp"));
        }
        (Some(year), _) => {
            let signed = if bc { year.saturating_neg() } else { year };
            c.year = if signed < 0 { signed + 1 } else { signed };
        }
        (None, Some(century)) if bc => c.year = century.saturating_mul(-100).saturating_add(1),
        (None, Some(century)) => c.year = century.saturating_sub(1).saturating_mul(100).saturating_add(1),
        _ => {}
    }
    if let Some(j) = r.julian {
        (c.year, c.month, c.day) = from_julian(j.into());
    }
    let mut day_of_year = r.day_of_year;
    let iso = r.iso == Some(true);
    if let Some(week) = r.week {
        if iso {
            // Sunday is the last day of an ISO week.
            let weekday = r.weekday.map_or(1, |d| if d > 1 { d - 1 } else { 7 });
            let day = iso_year_start(c.year) + (i64::from(week) - 1) * 7 + i64::from(weekday);
            (c.year, c.month, c.day) = super::civil_from_days(day);
        } else {
            day_of_year = Some(week.saturating_sub(1).saturating_mul(7).saturating_add(1));
        }
    }
    c.day = r.day.or(r.week_of_month.map(|w| w.saturating_sub(1).saturating_mul(7).saturating_add(1))).unwrap_or(c.day);
    c.month = r.month.unwrap_or(c.month);
    if let Some(day) = day_of_year.filter(|_| c.month <= 1 || c.day <= 1) {
        if r.year.is_none() && r.century.is_none() && !bc {
            return Err(invalid("cannot calculate day of year without year information".into()));
        }
        let start = if iso { iso_year_start(c.year) } else { days_from_civil(c.year, 1, 1) - 1 };
        let longest = if iso { 371 } else { 365 + i32::from(super::calendar::is_leap(c.year)) };
        if day < 1 || day > longest {
            return Err(out_of_range());
        }
        (c.year, c.month, c.day) = super::civil_from_days(start + i64::from(day));
    }
    let micro = i64::from(r.milli.unwrap_or(0)) * 1000 + i64::from(r.micro.unwrap_or(0));
    let valid = (1..=12).contains(&c.month)
        && (1..=days_in_month(c.year, c.month.clamp(1, 12))).contains(&c.day)
        && (0..24).contains(&c.hour)
        && (0..60).contains(&c.minute)
        && (0..60).contains(&c.second)
        && (0..1_000_000).contains(&micro);
    if !valid {
        return Err(out_of_range());
    }
    c.micro = micro as i32;
    let west = (r.zone_hour.is_some() || r.zone_minute.is_some()).then(|| {
        let sign = if r.zone_sign < 0 { 1 } else { -1 };
        let minutes = r.zone_hour.unwrap_or(0).saturating_mul(60).saturating_add(r.zone_minute.unwrap_or(0));
        sign * minutes.saturating_mul(60).clamp(-604_800, 604_800)
    });
    Ok((c, west))
}
