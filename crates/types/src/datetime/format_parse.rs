//! `to_timestamp(text, format)` and `to_date(text, format)`.
//!
//! A field that is 0 counts as not given, which shows in what contradicts what: that is PostgreSQL's way.

mod strict;

use super::calendar::{days_in_month, from_julian, valid_julian};
use super::format::{MONTHS, Node, WEEKDAYS, iso_week_start, parse_format};
use super::parse::to_utc;
use super::{Bad, Civil, DATE_END, DATE_MIN, overflow, zone};
use crate::settings::TimeZone;
use base::{Error, Result, SqlState, work};
pub use strict::{Strict, read_strictly};

/// `to_date(text, format)`
pub fn to_date(text: &str, format: &str) -> Result<i32> {
    let Reading { civil: c, .. } = read(text, format, false)?;
    let days = if valid_julian(c.year, c.month) { c.days() } else { i64::MAX };
    if !(i64::from(DATE_MIN)..i64::from(DATE_END)).contains(&days) {
        return Err(overflow(format!("date out of range: \"{text}\"")));
    }
    Ok(days as i32)
}

/// `to_timestamp(text, format)`, a timestamptz; without a zone it is local time of the given one.
pub fn to_timestamp_text(text: &str, format: &str, session: &TimeZone) -> Result<i64> {
    let Reading { civil: c, west, precision } = read(text, format, false)?;
    let west = west.unwrap_or_else(|| zone::west_of_local(session.rules(), &c));
    let t = to_utc(&c, west).ok_or_else(super::timestamp_out_of_range)?;
    let unit = 10i64.pow(6 - precision.min(6));
    // Half a unit goes away from zero.
    Ok(if t < 0 { -((-t + unit / 2) / unit * unit) } else { (t + unit / 2) / unit * unit })
}

/// Date fields of the Gregorian calendar and of ISO weeks do not go together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Convention {
    Gregorian,
    IsoWeek,
}

/// Fields read so far.
#[derive(Default)]
struct Read {
    hour: i32,
    pm: i32,
    minute: i32,
    second: i32,
    second_of_day: i32,
    weekday: i32,
    day: i32,
    day_of_year: i32,
    month: i32,
    milli: i32,
    micro: i32,
    /// Digits of `FF1` to `FF6`, 0 without one.
    precision: u32,
    year: i32,
    year_digits: usize,
    bc: i32,
    week: i32,
    week_of_month: i32,
    century: i32,
    julian: i32,
    zone_sign: i32,
    zone_hour: i32,
    zone_minute: i32,
    twelve_hours: bool,
    convention: Option<Convention>,
}

#[cold]
fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

/// Sets a field once; the same value twice is no contradiction.
fn set(slot: &mut i32, value: i32, written: &str) -> Result<()> {
    if *slot != 0 && *slot != value {
        return Err(invalid(format!("conflicting values for \"{written}\" field in formatting string"))
            .detail("This value contradicts a previous setting for the same field type."));
    }
    *slot = value;
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

fn is_space(c: char) -> bool {
    work::beat(1);
    c.is_ascii_whitespace() || c == '\x0b'
}

/// C's `strtol`: blanks, a sign, digits. The value, if it fits, and the bytes read; none if there are no digits.
fn leading_integer(text: &str) -> (Option<i64>, usize) {
    let trimmed = text.trim_start_matches(is_space);
    let signed = usize::from(trimmed.starts_with(['+', '-']));
    let digits = trimmed[signed..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return (Some(0), 0);
    }
    let used = signed + digits;
    let value = trimmed[..used].trim_start_matches('+').parse::<i64>().ok();
    (value, text.len() - trimmed.len() + used)
}

/// The first `len` bytes of a text, as far as they are whole characters.
fn window(text: &str, len: usize) -> &str {
    let mut end = len.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Where reading is.
struct Input<'a> {
    text: &'a str,
    rest: &'a str,
    /// More characters were skipped than the format said.
    skipped: i32,
    /// `FX`: nothing is skipped.
    exact: bool,
}

impl<'a> Input<'a> {
    fn skip_spaces(&mut self) {
        let rest = self.rest.trim_start_matches(is_space);
        self.skipped += (self.rest.len() - rest.len()) as i32;
        self.rest = rest;
    }

    fn skip_one(&mut self) {
        let mut rest = self.rest.chars();
        rest.next();
        self.rest = rest.as_str();
    }

    /// The character before the place.
    fn before(&self) -> Option<char> {
        self.text[..self.text.len() - self.rest.len()].chars().next_back()
    }

    /// Reads a number of `len` bytes, or of any length; returns it with the count of bytes that it took.
    fn integer(&mut self, len: usize, free: bool, written: &str) -> Result<(i32, usize)> {
        let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
        let start = self.rest;
        let trimmed = start.trim_start_matches(is_space);
        let shown = window(trimmed, len);
        let rest;
        let value;
        if free {
            let (found, used) = leading_integer(start);
            value = found;
            rest = &start[used..];
        } else {
            if trimmed.len() < len {
                let remain = trimmed.len();
                return Err(invalid(format!("source string too short for \"{written}\" formatting field"))
                    .detail(format!("Field requires {len} characters, but only {remain} remain."))
                    .hint(hint));
            }
            let (found, used) = leading_integer(shown);
            if used > 0 && used < len {
                return Err(invalid(format!("invalid value \"{shown}\" for \"{written}\""))
                    .detail(format!("Field requires {len} characters, but only {used} could be parsed."))
                    .hint(hint));
            }
            value = found;
            rest = &trimmed[used..];
        }
        if rest.len() == start.len() {
            return Err(
                invalid(format!("invalid value \"{shown}\" for \"{written}\"")).detail("Value must be an integer.")
            );
        }
        let value = value.and_then(|value| i32::try_from(value).ok()).ok_or_else(|| {
            overflow(format!("value for \"{written}\" in source string is out of range")).detail(format!(
                "Value must be in the range {} to {}.",
                i32::MIN,
                i32::MAX
            ))
        })?;
        self.rest = rest;
        Ok((value, start.len() - rest.len()))
    }

    /// Reads one of some words without regard to case; returns its place.
    fn one_of(&mut self, words: &[&str], written: &str) -> Result<i32> {
        for (at, word) in words.iter().enumerate() {
            if self.rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)) {
                self.rest = &self.rest[word.len()..];
                return Ok(at as i32);
            }
        }
        let shown = self.rest.split(is_space).next().unwrap_or("");
        Err(invalid(format!("invalid value \"{shown}\" for \"{written}\""))
            .detail("The given value did not match any of the allowed values for this field."))
    }

    /// `Y,YYY`: thousands, a comma, at most three more digits.
    fn year_with_comma(&mut self) -> Result<i32> {
        let bad = || invalid("invalid input string for \"Y,YYY\"".into());
        let (thousands, used) = leading_integer(self.rest);
        let rest = self.rest[used..].strip_prefix(',').filter(|_| used > 0).ok_or_else(bad)?;
        let trimmed = rest.trim_start_matches(is_space);
        let (years, used) = leading_integer(window(trimmed, 3));
        if used == 0 {
            return Err(bad());
        }
        self.rest = &trimmed[used..];
        let all = thousands.and_then(|t| t.checked_mul(1000)).zip(years).and_then(|(t, y)| t.checked_add(y));
        all.and_then(|year| i32::try_from(year).ok())
            .ok_or_else(|| overflow("value for \"Y,YYY\" in source string is out of range"))
    }
}

/// A separator in formats and inputs?
fn is_separator(c: char) -> bool {
    is_space(c) || c.is_ascii_punctuation()
}

/// What a text was read as.
struct Reading {
    civil: Civil,
    /// Seconds west, if the text has a zone.
    west: Option<i32>,
    /// Digits of a second that the format names.
    precision: u32,
}

/// Reads a text; strictly, every part of the format must be there as it is written.
fn read(text: &str, format: &str, strictly: bool) -> Result<Reading> {
    let nodes = parse_format(format)?;
    if strictly {
        strict::check_separators(&nodes)?;
    }
    let mut r = Read::default();
    let mut input = Input { text, rest: text, skipped: 0, exact: strictly };
    let mut used = 0;
    for (at, node) in nodes.iter().enumerate() {
        if input.rest.is_empty() {
            break;
        }
        work::step(8)?;
        used = at + 1;
        let is_field = matches!(node, Node::Pattern { name, .. } if *name != "FX");
        let is_switch = matches!(node, Node::Pattern { name: "FX", .. });
        if !input.exact && (is_field || at == 0 && !is_switch) {
            input.skip_spaces();
        }
        match *node {
            Node::Plain(c) | Node::Quoted(c) if strictly => {
                strict::expect(&mut input, c, matches!(node, Node::Plain(_)))?
            }
            Node::Plain(_) | Node::Quoted(_) if input.exact => input.skip_one(),
            Node::Plain(c) if is_separator(c) => {
                // One separator of the format is one of the input, or none.
                input.skipped -= 1;
                if let Some(rest) = input.rest.strip_prefix(is_separator) {
                    input.rest = rest;
                    input.skipped += 1;
                }
            }
            Node::Plain(_) | Node::Quoted(_) if input.skipped > 0 => input.skipped -= 1,
            Node::Plain(_) | Node::Quoted(_) => input.skip_one(),
            Node::Pattern { name: "FX", .. } => {
                input.exact = true;
            }
            Node::Pattern { name, written, fill, ordinal } => {
                let free = !fill || ordinal.is_some() || number_ends_freely(&nodes, at);
                let has_ending = field(&mut r, &mut input, name, written, free)?;
                if ordinal.is_some() && has_ending {
                    input.skip_one();
                    input.skip_one();
                }
                if !input.exact {
                    input.skipped = 0;
                    input.skip_spaces();
                }
            }
        }
    }
    if strictly {
        strict::check_end(used < nodes.len(), input.rest)?;
    }
    finish(r, text)
}

/// A year of less than four digits is the one nearest to 2020.
fn near_2020(year: i32) -> i32 {
    match year {
        ..70 => year.wrapping_add(2000),
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

fn convention_of(name: &str) -> Option<Convention> {
    match name {
        "IYYY" | "IYY" | "IY" | "I" | "IW" | "IDDD" | "ID" => Some(Convention::IsoWeek),
        "YYYY" | "Y,YYY" | "YYY" | "YY" | "Y" | "MM" | "MON" | "MONTH" | "DD" | "DDD" | "D" | "WW" | "W" | "RM" => {
            Some(Convention::Gregorian)
        }
        _ => None,
    }
}

/// Reads a field; whether the ending of an ordinal number may follow it.
fn field(r: &mut Read, input: &mut Input<'_>, name: &'static str, written: &str, free: bool) -> Result<bool> {
    const ROMAN: [&str; 12] = ["xii", "xi", "x", "ix", "viii", "vii", "vi", "v", "iv", "iii", "ii", "i"];
    if let Some(convention) = convention_of(name) {
        if r.convention.is_some_and(|known| known != convention) {
            return Err(invalid("invalid combination of date conventions".into())
                .hint("Do not mix Gregorian and ISO week date conventions in a formatting template."));
        }
        r.convention = Some(convention);
    }
    let mut int = |len: usize| input.integer(len, free, written);
    match name {
        "HH24" => set(&mut r.hour, int(2)?.0, written)?,
        "HH" | "HH12" => {
            set(&mut r.hour, int(2)?.0, written)?;
            r.twelve_hours = true;
        }
        "MI" => set(&mut r.minute, int(2)?.0, written)?,
        "SS" => set(&mut r.second, int(2)?.0, written)?,
        "SSSS" | "SSSSS" => set(&mut r.second_of_day, int(name.len())?.0, written)?,
        "MS" => {
            let (n, len) = int(3)?;
            set(&mut r.milli, n, written)?;
            r.milli = n.wrapping_mul(10i32.pow(3usize.saturating_sub(len) as u32));
        }
        "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let width = name.as_bytes()[2..].first().map_or(6, |d| usize::from(d - b'0'));
            r.precision = if name == "US" { r.precision } else { width as u32 };
            let (n, len) = int(width)?;
            set(&mut r.micro, n, written)?;
            r.micro = n.wrapping_mul(10i32.pow(6usize.saturating_sub(len) as u32));
        }
        "MM" => set(&mut r.month, int(2)?.0, written)?,
        "DD" => set(&mut r.day, int(2)?.0, written)?,
        "DDD" | "IDDD" => set(&mut r.day_of_year, int(3)?.0, written)?,
        "D" => set(&mut r.weekday, int(1)?.0, written)?,
        "ID" => {
            set(&mut r.weekday, int(1)?.0, written)?;
            r.weekday = if r.weekday >= 7 { 1 } else { r.weekday + 1 };
        }
        "WW" | "IW" => set(&mut r.week, int(2)?.0, written)?,
        "W" => set(&mut r.week_of_month, int(1)?.0, written)?,
        "CC" => set(&mut r.century, int(2)?.0, written)?,
        "J" => set(&mut r.julian, int(1)?.0, written)?,
        "Q" => {
            int(1)?;
        }
        "Y,YYY" => {
            set(&mut r.year, input.year_with_comma()?, written)?;
            r.year_digits = 4;
        }
        "YYYY" | "IYYY" => {
            set(&mut r.year, int(4)?.0, written)?;
            r.year_digits = 4;
        }
        "YYY" | "IYY" | "YY" | "IY" | "Y" | "I" => {
            let width = name.len();
            let (year, len) = int(width)?;
            set(&mut r.year, year, written)?;
            r.year = if len < 4 { near_2020(year) } else { year };
            r.year_digits = width;
        }
        "TZM" => {
            r.zone_sign = if r.zone_sign == 0 { 1 } else { r.zone_sign };
            set(&mut r.zone_minute, int(2)?.0, written)?;
            return Ok(false);
        }
        "TZH" => {
            r.zone_sign = match input.rest.as_bytes().first() {
                Some(sign @ (b'+' | b'-' | b' ')) => {
                    input.rest = &input.rest[1..];
                    if *sign == b'-' { -1 } else { 1 }
                }
                // A minus that passed for a separator.
                _ if input.skipped > 0 && input.before() == Some('-') => -1,
                _ => 1,
            };
            set(&mut r.zone_hour, input.integer(2, free, written)?.0, written)?;
            return Ok(false);
        }
        "TZ" | "OF" => {
            return Err(Error::unsupported(format!("formatting field \"{written}\" is only supported in to_char")));
        }
        name => {
            match name {
                "AM" | "PM" => set(&mut r.pm, input.one_of(&["am", "pm"], written)?, written)?,
                "A.M." | "P.M." => set(&mut r.pm, input.one_of(&["a.m.", "p.m."], written)?, written)?,
                "AD" | "BC" => set(&mut r.bc, input.one_of(&["ad", "bc"], written)?, written)?,
                "A.D." | "B.C." => set(&mut r.bc, input.one_of(&["a.d.", "b.c."], written)?, written)?,
                "MONTH" => set(&mut r.month, input.one_of(&MONTHS, written)? + 1, written)?,
                "MON" => set(&mut r.month, input.one_of(&MONTHS.map(|m| &m[..3]), written)? + 1, written)?,
                "RM" => set(&mut r.month, 12 - input.one_of(&ROMAN, written)?, written)?,
                "DAY" | "DY" => {
                    let place = match name {
                        "DAY" => input.one_of(&WEEKDAYS, written)?,
                        _ => input.one_of(&WEEKDAYS.map(|d| &d[..3]), written)?,
                    };
                    set(&mut r.weekday, place, written)?;
                    r.weekday += 1;
                }
                _ => {}
            }
            r.twelve_hours |= matches!(name, "AM" | "PM" | "A.M." | "P.M.");
            return Ok(false);
        }
    }
    Ok(true)
}

/// The fields that were given, for what is checked.
#[derive(Default)]
struct Given {
    year: bool,
    month: bool,
    day: bool,
}

fn finish(mut r: Read, text: &str) -> Result<Reading> {
    let out_of_range = || Bad::Field.error(text, "timestamp");
    let mut c = Civil { month: 1, day: 1, ..Civil::default() };
    clock(&r, &mut c)?;
    let mut given = Given::default();
    year(&mut r, &mut c, &mut given);
    date(&mut r, &mut c, &mut given)?;
    let micro = i64::from(r.milli) * 1000 + i64::from(r.micro);
    let valid = (!given.month || (1..=12).contains(&c.month))
        && (!given.day || (1..=31).contains(&c.day))
        && (!(given.year && given.month && given.day) || c.day <= days_in_month(c.year, c.month))
        && (0..24).contains(&c.hour)
        && (0..60).contains(&c.minute)
        && (0..60).contains(&c.second)
        && (0..1_000_000).contains(&micro);
    if !valid {
        return Err(out_of_range());
    }
    if c.day > days_in_month(c.year, c.month) {
        // The 30th of February of no year.
        (c.year, c.month, c.day) = super::civil_from_days(c.days());
    }
    c.micro = micro as i32;
    let precision = if r.precision == 0 { 6 } else { r.precision };
    if r.zone_sign == 0 {
        return Ok(Reading { civil: c, west: None, precision });
    }
    if !(0..=15).contains(&r.zone_hour) || !(0..60).contains(&r.zone_minute) {
        return Err(Bad::Displacement.error(text, "timestamp"));
    }
    let west = Some(-r.zone_sign * (r.zone_hour * 3600 + r.zone_minute * 60));
    Ok(Reading { civil: c, west, precision })
}

fn clock(r: &Read, c: &mut Civil) -> Result<()> {
    let given = |value: i32, other: i32| if value == 0 { other } else { value };
    let s = r.second_of_day;
    c.second = given(r.second, s % 3600 % 60);
    c.minute = given(r.minute, s % 3600 / 60);
    c.hour = given(r.hour, s / 3600);
    if !r.twelve_hours {
        return Ok(());
    }
    if !(1..=12).contains(&c.hour) {
        return Err(invalid(format!("hour \"{}\" is invalid for the 12-hour clock", c.hour))
            .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
    }
    match (r.pm != 0, c.hour) {
        (true, ..12) => c.hour += 12,
        (false, 12) => c.hour = 0,
        _ => {}
    }
    Ok(())
}

fn year(r: &mut Read, c: &mut Civil, given: &mut Given) {
    if r.century != 0 && r.bc != 0 && (r.year == 0 || r.year_digits <= 2) {
        r.century = r.century.wrapping_neg();
    }
    let century = r.century;
    if r.year != 0 && century != 0 && r.year_digits <= 2 {
        // The century gives the first digits.
        let short = r.year % 100;
        c.year = match (short, century >= 0) {
            (0, positive) => century.wrapping_mul(100).wrapping_add(i32::from(!positive)),
            (short, true) => (century - 1).wrapping_mul(100).wrapping_add(short),
            (short, false) => (century + 1).wrapping_mul(100).wrapping_sub(short).wrapping_add(1),
        };
    } else if r.year != 0 {
        let signed = if r.bc != 0 { r.year.wrapping_neg() } else { r.year };
        c.year = if signed < 0 { signed + 1 } else { signed };
    } else if century != 0 {
        c.year = if century >= 0 { century - 1 } else { century }.wrapping_mul(100).wrapping_add(1);
    } else {
        return;
    }
    given.year = true;
}

fn date(r: &mut Read, c: &mut Civil, given: &mut Given) -> Result<()> {
    let iso = r.convention == Some(Convention::IsoWeek);
    let all = || Given { year: true, month: true, day: true };
    if r.julian != 0 {
        (c.year, c.month, c.day) = from_julian(r.julian.into());
        *given = all();
    }
    if r.week != 0 && iso {
        // Sunday is the last day of an ISO week; without a day it is Monday.
        let day = match r.weekday {
            0 => 0,
            2.. => i64::from(r.weekday) - 2,
            _ => 6,
        };
        let start = iso_week_start(c.year.into(), r.week.into());
        (c.year, c.month, c.day) = from_julian(start + day);
        *given = all();
    } else if r.week != 0 {
        r.day_of_year = (r.week.wrapping_sub(1)).wrapping_mul(7).wrapping_add(1);
    }
    if r.week_of_month != 0 {
        r.day = (r.week_of_month.wrapping_sub(1)).wrapping_mul(7).wrapping_add(1);
    }
    if r.day != 0 {
        c.day = r.day;
        given.day = true;
    }
    if r.month != 0 {
        c.month = r.month;
        given.month = true;
    }
    if r.day_of_year == 0 || (c.month > 1 && c.day > 1) {
        return Ok(());
    }
    if c.year == 0 && r.bc == 0 {
        return Err(invalid("cannot calculate day of year without year information".into()));
    }
    if iso {
        let start = iso_week_start(c.year.into(), 1) - 1;
        (c.year, c.month, c.day) = from_julian(start + i64::from(r.day_of_year));
        *given = all();
        return Ok(());
    }
    let mut before = 0;
    let mut month = 1;
    while month <= 12 && r.day_of_year > before + days_in_month(c.year, month) {
        before += days_in_month(c.year, month);
        month += 1;
    }
    if c.month <= 1 {
        c.month = month;
    }
    if c.day <= 1 {
        c.day = r.day_of_year - before;
    }
    (given.month, given.day) = (true, true);
    Ok(())
}
