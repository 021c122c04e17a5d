//! Format patterns (`YYYY-MM-DD HH24:MI`) and `to_char`.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use super::calendar::weekday;
use super::zone::with_info;
use super::{Civil, MICROS_PER_SEC, days_from_civil, is_infinite};
use crate::interval::Interval;
use crate::settings::TimeZone;
use base::{Error, Result, SqlState, work};

/// A part of a format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Node<'f> {
    /// A pattern: its name in capitals, how it was written, and its modifiers.
    Pattern { name: &'static str, written: &'f str, fill: bool, ordinal: Option<Case> },
    /// A character outside of quotes.
    Plain(char),
    /// A character within quotes.
    Quoted(char),
}

/// How letters are to be shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Case {
    Upper,
    Capital,
    Lower,
}

/// All patterns; one that begins like another comes before it.
const PATTERNS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2", "FF3", "FF4", "FF5",
    "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON",
    "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY",
    "YYY", "YY", "Y",
];

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(crate) const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The pattern at the start of a text, in capitals, in small letters, or (names) capitalised.
fn pattern_at(text: &str) -> Option<&'static str> {
    let first = text.bytes().next()?;
    let is_small = |(small, p): (u8, u8)| small == p.to_ascii_lowercase();
    PATTERNS.iter().copied().filter(|p| p.as_bytes()[0] == first.to_ascii_uppercase()).find(|p| {
        let Some(head) = text.get(..p.len()) else { return false };
        let small_rest = || head.bytes().zip(p.bytes()).skip(1).all(is_small);
        let may_be_capital = || matches!(*p, "DAY" | "DY" | "MONTH" | "MON");
        head == *p || (first.is_ascii_lowercase() || may_be_capital()) && small_rest()
    })
}

/// Units of work that reading or showing a part of a format is.
const NODE_UNITS: usize = 16;

/// Cuts a format into its parts.
///
/// # Errors
/// Why the statement should stop.
pub(crate) fn parse_format(format: &str) -> Result<Vec<Node<'_>>> {
    let mut nodes = Vec::new();
    let mut rest = format;
    while !rest.is_empty() {
        work::step(NODE_UNITS)?;
        let (mut fill, mut local) = (true, false);
        for (prefix, is_local) in [("FM", false), ("fm", false), ("TM", true), ("tm", true)] {
            if let Some(after) = rest.strip_prefix(prefix) {
                (rest, fill, local) = (after, is_local, is_local);
                break;
            }
        }
        let Some(first) = rest.chars().next() else { break };
        if let Some(name) = pattern_at(rest) {
            let (written, after) = rest.split_at(name.len());
            rest = after;
            // Names in the language of the locale are not padded.
            fill &= !(local && matches!(name, "MONTH" | "DAY"));
            let mut ordinal = None;
            for (suffix, case) in [("TH", Some(Case::Upper)), ("th", Some(Case::Lower)), ("SP", None)] {
                if let Some(after) = rest.strip_prefix(suffix) {
                    (rest, ordinal) = (after, case);
                    break;
                }
            }
            nodes.push(Node::Pattern { name, written, fill, ordinal });
            continue;
        }
        rest = &rest[first.len_utf8()..];
        if first == '"' {
            let mut escaped = false;
            let mut end = rest.len();
            for (at, c) in rest.char_indices() {
                work::step(2)?;
                if c == '"' && !escaped {
                    end = at + 1;
                    break;
                }
                escaped = c == '\\' && !escaped;
                if !escaped {
                    nodes.push(Node::Quoted(c));
                }
            }
            rest = &rest[end..];
        } else if first == '\\' && rest.starts_with('"') {
            nodes.push(Node::Plain('"'));
            rest = &rest[1..];
        } else {
            nodes.push(Node::Plain(first));
        }
    }
    Ok(nodes)
}

/// How a pattern's letters were written.
fn case_of(written: &str) -> Case {
    let mut letters = written.chars();
    match (letters.next().map(|c| c.is_ascii_uppercase()), letters.next().map(|c| c.is_ascii_uppercase())) {
        (Some(true), Some(false)) if !written.contains('.') => Case::Capital,
        (Some(true), _) => Case::Upper,
        _ => Case::Lower,
    }
}

fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_ascii_uppercase(),
        Case::Capital => text.to_string(),
        Case::Lower => text.to_ascii_lowercase(),
    }
}

/// What a format can show.
struct Shown<'a> {
    c: Civil,
    hour: i64,
    weekday: i32,
    day_of_year: i32,
    /// Seconds west and the abbreviation; `None` for values without a zone.
    zone: Option<(i32, &'a str)>,
    interval: bool,
}

/// `to_char(timestamp, format)`; NULL for the infinities and an empty format.
///
/// # Errors
/// Why the statement should stop.
pub fn to_char_timestamp(t: i64, format: &str) -> Result<Option<String>> {
    if is_infinite(t) || format.is_empty() {
        return Ok(None);
    }
    show(&shown(Civil::of(t), None), format).map(Some)
}

/// `to_char(timestamptz, format)` in the session's zone.
///
/// # Errors
/// Why the statement should stop.
pub fn to_char_timestamptz(t: i64, format: &str, zone: &TimeZone) -> Result<Option<String>> {
    if is_infinite(t) || format.is_empty() {
        return Ok(None);
    }
    with_info(zone.rules(), t, |west, abbreviation| {
        let c = Civil::of(t - i64::from(west) * MICROS_PER_SEC);
        show(&shown(c, Some((west, abbreviation))), format).map(Some)
    })
}

fn shown<'a>(c: Civil, zone: Option<(i32, &'a str)>) -> Shown<'a> {
    let days = c.days();
    let day_of_year = (days - days_from_civil(c.year, 1, 1) + 1) as i32;
    Shown { c, hour: c.hour.into(), weekday: weekday(days), day_of_year, zone, interval: false }
}

/// `to_char(interval, format)`; NULL for an empty format.
pub fn to_char_interval(span: &Interval, format: &str) -> Result<Option<String>> {
    if format.is_empty() {
        return Ok(None);
    }
    let p = span.parts();
    let c = Civil {
        year: p.years,
        month: p.months,
        day: p.days,
        hour: 0,
        minute: p.minutes,
        second: p.seconds,
        micro: p.micros,
    };
    let day_of_year = span.months.wrapping_mul(30).wrapping_add(p.days);
    show(&Shown { c, hour: p.hours, weekday: 0, day_of_year, zone: None, interval: true }, format).map(Some)
}

/// Bytes of the longest format whose parts are kept.
const KEPT_MAX: usize = 256;

/// The parts of a format that was used before: of a pattern, where in the format it is written stands beside it.
#[derive(Default)]
struct Kept {
    format: String,
    nodes: Vec<(Node<'static>, Range<usize>)>,
}

thread_local! {
    /// The format that was used last: mostly one is used for all rows.
    static LAST: RefCell<Arc<Kept>> = RefCell::default();
}

impl Kept {
    fn of(format: &str) -> Result<Kept> {
        let keep = |node: Node<'_>| match node {
            Node::Pattern { name, written, fill, ordinal } => {
                let start = written.as_ptr() as usize - format.as_ptr() as usize;
                (Node::Pattern { name, written: "", fill, ordinal }, start..start + written.len())
            }
            Node::Plain(c) => (Node::Plain(c), 0..0),
            Node::Quoted(c) => (Node::Quoted(c), 0..0),
        };
        Ok(Kept { nodes: parse_format(format)?.into_iter().map(keep).collect(), format: format.to_owned() })
    }
}

/// Hands the parts of a format over, one after the other.
fn each_node(format: &str, mut take: impl FnMut(Node<'_>) -> Result<()>) -> Result<()> {
    if format.len() > KEPT_MAX {
        return parse_format(format)?.into_iter().try_for_each(take);
    }
    let mut last = LAST.with_borrow(Arc::clone);
    if last.format != format {
        // Others of the thread may have their turn meanwhile.
        last = Arc::new(Kept::of(format)?);
        LAST.set(Arc::clone(&last));
    }
    last.nodes.iter().try_for_each(|(node, place)| {
        take(match *node {
            Node::Pattern { name, fill, ordinal, .. } => {
                Node::Pattern { name, written: &format[place.clone()], fill, ordinal }
            }
            other => other,
        })
    })
}

fn show(v: &Shown<'_>, format: &str) -> Result<String> {
    let mut out = String::with_capacity(format.len() * 2);
    each_node(format, |node| {
        work::step(NODE_UNITS)?;
        match node {
            Node::Plain(c) | Node::Quoted(c) => out.push(c),
            Node::Pattern { name, written, fill, ordinal } => {
                let start = out.len();
                pattern(v, name, case_of(written), fill, &mut out)?;
                let ordinal = ordinal.filter(|_| !matches!(name, "TZ" | "TZM" | "TZH" | "OF"));
                if let Some(case) = ordinal.filter(|_| out[start..].ends_with(|c: char| c.is_ascii_digit())) {
                    out.push_str(&cased(suffix(&out[start..]), case));
                }
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// The English ending of an ordinal number.
fn suffix(number: &str) -> &'static str {
    let b = number.as_bytes();
    if b.len() > 1 && b[b.len() - 2] == b'1' {
        return "th";
    }
    match b[b.len() - 1] {
        b'1' => "st",
        b'2' => "nd",
        b'3' => "rd",
        _ => "th",
    }
}

/// Zero-padded; a sign takes a column of its own.
fn padded(out: &mut String, n: i64, width: usize, fill: bool) {
    match u32::try_from(n) {
        Ok(n) => digits(out, n, if fill { width } else { 0 }),
        Err(_) => {
            let width = if !fill { 0 } else { width + usize::from(n < 0) };
            write(out, format_args!("{n:0width$}"));
        }
    }
}

/// A number of at least so many digits, at most ten.
fn digits(out: &mut String, n: u32, width: usize) {
    let mut power = 10u32.pow(width.clamp(1, 10) as u32 - 1);
    while n / power >= 10 {
        power *= 10;
    }
    while power > 0 {
        out.push(char::from(b'0' + (n / power % 10) as u8));
        power /= 10;
    }
}

fn write(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes every text");
}

fn name(out: &mut String, text: &str, case: Case, width: usize) {
    out.push_str(&format!("{:<width$}", cased(text, case)));
}

#[cold]
fn not_for_intervals() -> Error {
    Error::new(SqlState::INVALID_DATETIME_FORMAT, "invalid format specification for an interval value")
        .hint("Intervals are not tied to specific calendar dates.")
}

/// The Julian day of fields that may be those of an interval, so that month 0 means something too.
fn julian_of_fields(year: i64, month: i64, day: i64) -> i64 {
    let (month, year) = if month > 2 { (month + 1, year + 4800) } else { (month + 13, year + 4799) };
    let century = year / 100;
    year * 365 - 32_167 + year / 4 - century + century / 4 + 7834 * month / 256 + day
}

/// The Julian day that a week of an ISO year begins on.
pub(super) fn iso_week_start(year: i64, week: i64) -> i64 {
    let fourth = julian_of_fields(year, 1, 4);
    (week - 1) * 7 + fourth - fourth.rem_euclid(7)
}

/// A date by ISO weeks.
struct IsoDate {
    year: i64,
    week: i64,
    /// Day of the ISO year, from 1.
    day: i64,
}

fn iso_date(c: &Civil) -> IsoDate {
    let mut year = i64::from(c.year);
    let day = julian_of_fields(year, c.month.into(), c.day.into());
    if day < iso_week_start(year, 1) {
        year -= 1;
    } else if day >= iso_week_start(year + 1, 1) {
        year += 1;
    }
    let start = iso_week_start(year, 1);
    IsoDate { year, week: (day - start) / 7 + 1, day: day - start + 1 }
}

fn pattern(v: &Shown<'_>, what: &str, case: Case, fill: bool, out: &mut String) -> Result<()> {
    let c = &v.c;
    let usual = match what {
        "MM" => Some((i64::from(c.month), 2)),
        "DD" if c.day >= 0 => Some((c.day.into(), 2)),
        "HH24" => Some((v.hour, 2)),
        "MI" => Some((c.minute.into(), 2)),
        "SS" => Some((c.second.into(), 2)),
        "YYYY" if c.year > 0 => Some((c.year.into(), 4)),
        _ => None,
    };
    if let Some((number, width)) = usual {
        padded(out, number, width, fill);
        return Ok(());
    }
    let calendar_only = matches!(
        what,
        "A.D." | "AD" | "B.C." | "BC" | "MONTH" | "MON" | "DAY" | "DY" | "D" | "ID" | "TZ" | "TZH" | "TZM" | "OF"
    );
    if v.interval && calendar_only {
        return Err(not_for_intervals());
    }
    let hour12 = if v.hour % 12 == 0 { 12 } else { v.hour % 12 };
    let year = i64::from(if v.interval || c.year > 0 { c.year } else { 1 - c.year });
    let iso = || iso_date(c);
    let iso_year = || match iso().year {
        year if v.interval || year > 0 => year,
        year => 1 - year,
    };
    let (west, abbreviation) = v.zone.unwrap_or((0, ""));
    let (east_sign, offset) = (if west <= 0 { '+' } else { '-' }, west.abs());
    let wide = |n: usize| if fill { n } else { 0 };
    match what {
        "A.M." | "P.M." => out.push_str(&cased(if v.hour % 24 >= 12 { "P.M." } else { "A.M." }, case)),
        "AM" | "PM" => out.push_str(&cased(if v.hour % 24 >= 12 { "PM" } else { "AM" }, case)),
        "A.D." | "B.C." => out.push_str(&cased(if c.year <= 0 { "B.C." } else { "A.D." }, case)),
        "AD" | "BC" => out.push_str(&cased(if c.year <= 0 { "BC" } else { "AD" }, case)),
        "HH" | "HH12" => {
            let width = wide(if v.hour < 0 { 3 } else { 2 });
            write(out, format_args!("{hour12:0width$}"));
        }
        "MS" | "FF3" => write(out, format_args!("{:03}", c.micro / 1000)),
        "US" | "FF6" => write(out, format_args!("{:06}", c.micro)),
        "FF1" => write(out, format_args!("{}", c.micro / 100_000)),
        "FF2" => write(out, format_args!("{:02}", c.micro / 10_000)),
        "FF4" => write(out, format_args!("{:04}", c.micro / 100)),
        "FF5" => write(out, format_args!("{:05}", c.micro / 10)),
        "SSSS" | "SSSSS" => {
            let seconds = v.hour * 3600 + i64::from(c.minute) * 60 + i64::from(c.second);
            out.push_str(&seconds.to_string());
        }
        "TZ" if case == Case::Lower => out.push_str(&abbreviation.to_ascii_lowercase()),
        "TZ" => out.push_str(abbreviation),
        "TZH" => write(out, format_args!("{east_sign}{:02}", offset / 3600)),
        "TZM" => write(out, format_args!("{:02}", offset % 3600 / 60)),
        "OF" => {
            write(out, format_args!("{east_sign}{:0width$}", offset / 3600, width = wide(2)));
            if offset % 3600 != 0 {
                write(out, format_args!(":{:02}", offset % 3600 / 60));
            }
        }
        "MONTH" if c.month > 0 => name(out, MONTHS[(c.month - 1) as usize], case, wide(9)),
        "MON" if c.month > 0 => out.push_str(&cased(&MONTHS[(c.month - 1) as usize][..3], case)),
        "DAY" => name(out, WEEKDAYS[v.weekday as usize], case, wide(9)),
        "DY" => out.push_str(&cased(&WEEKDAYS[v.weekday as usize][..3], case)),
        "DDD" => write(out, format_args!("{:0width$}", v.day_of_year, width = wide(3))),
        "IDDD" => {
            write(out, format_args!("{:0width$}", iso().day, width = wide(3)));
        }
        "DD" => write(out, format_args!("{:0width$}", c.day, width = wide(2))),
        "D" => out.push_str(&(v.weekday + 1).to_string()),
        "ID" => out.push_str(&(if v.weekday == 0 { 7 } else { v.weekday }).to_string()),
        "WW" => write(out, format_args!("{:0width$}", v.day_of_year.wrapping_sub(1) / 7 + 1, width = wide(2))),
        "IW" => write(out, format_args!("{:0width$}", iso().week, width = wide(2))),
        "W" => out.push_str(&(c.day.wrapping_sub(1) / 7 + 1).to_string()),
        "Q" if c.month != 0 => out.push_str(&((c.month - 1) / 3 + 1).to_string()),
        "CC" => {
            let century = match c.year {
                y if v.interval => y / 100,
                y if y > 0 => (y - 1) / 100 + 1,
                y => y / 100 - 1,
            };
            padded(out, century.into(), 2, fill);
        }
        "Y,YYY" => write(out, format_args!("{},{:03}", year / 1000, year % 1000)),
        "YYYY" => padded(out, year, 4, fill),
        "YYY" => padded(out, year % 1000, 3, fill),
        "YY" => padded(out, year % 100, 2, fill),
        "Y" => out.push_str(&(year % 10).to_string()),
        "IYYY" => write(out, format_args!("{:0width$}", iso_year(), width = wide(4 + usize::from(year < 0)))),
        "IYY" => write(out, format_args!("{:0width$}", iso_year() % 1000, width = wide(3 + usize::from(year < 0)))),
        "IY" => write(out, format_args!("{:0width$}", iso_year() % 100, width = wide(2 + usize::from(year < 0)))),
        "I" => out.push_str(&(iso_year() % 10).to_string()),
        "RM" if c.month != 0 || c.year != 0 => {
            // Months of intervals may be none or negative; they count backwards then.
            let at = match c.month {
                0 if c.year >= 0 => 11,
                0 => 0,
                m if m < 0 => 12 + m,
                m => m - 1,
            };
            name(out, ROMAN[at as usize], case, wide(4));
        }
        "J" => out.push_str(&julian_of_fields(c.year.into(), c.month.into(), c.day.into()).to_string()),
        _ => {}
    }
    Ok(())
}
