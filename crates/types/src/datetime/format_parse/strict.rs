//! Reading by a format as SQL/JSON has it: separators are what is written, nothing is left out, and the format says of what type the
//! value is.

use super::super::calendar::valid_julian;
use super::super::cast::{round_time, round_timestamp};
use super::super::format::{Node, parse_format};
use super::super::parse::to_utc;
use super::super::{DATE_END, DATE_MIN, overflow};
use super::{Input, Reading, invalid, is_space, read};
use base::Result;

/// What a format reads: a date, a time, or both, which are an instant then, with or without a zone.
#[derive(Clone, Copy, Debug)]
pub struct Strict {
    /// Days since 2000-01-01, if the format has a date.
    pub date: Option<i32>,
    /// Microseconds since midnight, if the format has a time.
    pub time: Option<i64>,
    /// Seconds west of UTC, if the format has a zone.
    pub west: Option<i32>,
    /// Of a date with a time: microseconds since 2000-01-01, in UTC if there is a zone.
    pub instant: i64,
}

/// Only the separators of the standard may stand outside of quotes.
pub(super) fn check_separators(nodes: &[Node<'_>]) -> Result<()> {
    for node in nodes {
        if let Node::Plain(c) = *node
            && !"-./,':; ".contains(c)
        {
            // A quote is one only behind a backslash.
            let c = if c == '"' { '\\' } else { c };
            return Err(invalid(format!("invalid datetime format separator: \"{c}\"")));
        }
    }
    Ok(())
}

/// Takes one character, which must be this one.
pub(super) fn expect(input: &mut Input<'_>, c: char, is_separator: bool) -> Result<()> {
    let Some(rest) = input.rest.strip_prefix(c) else {
        let what = if is_separator { "separator" } else { "character" };
        return Err(invalid(format!("unmatched format {what} \"{c}\"")));
    };
    input.rest = rest;
    Ok(())
}

pub(super) fn check_end(format_goes_on: bool, rest: &str) -> Result<()> {
    if format_goes_on {
        return Err(invalid("input string is too short for datetime format".into()));
    }
    if !rest.trim_start_matches(is_space).is_empty() {
        return Err(invalid("trailing characters remain in input string after datetime format".into()));
    }
    Ok(())
}

/// Whether a format has a date, a time, a zone.
fn parts(format: &str) -> Result<(bool, bool, bool)> {
    let (mut dated, mut timed, mut zoned) = (false, false, false);
    for node in parse_format(format)? {
        let Node::Pattern { name, .. } = node else { continue };
        match name {
            "FX" => {}
            "TZ" | "OF" | "TZH" | "TZM" => zoned = true,
            "A.M." | "P.M." | "AM" | "PM" | "HH" | "HH12" | "HH24" | "MI" | "SS" | "MS" | "US" | "FF1" | "FF2"
            | "FF3" | "FF4" | "FF5" | "FF6" | "SSSS" | "SSSSS" => timed = true,
            _ => dated = true,
        }
    }
    Ok((dated, timed, zoned))
}

/// Reads a text by a format of SQL/JSON.
///
/// # Errors
/// 22007 where the text is not as the format has it or the format makes no type, 22008 for values out of range.
pub fn read_strictly(text: &str, format: &str) -> Result<Strict> {
    let Reading { civil: c, west, precision } = read(text, format, true)?;
    let (dated, timed, zoned) = parts(format)?;
    let precision = precision.min(6) as i32;
    if !dated && !timed {
        return Err(invalid("datetime format is not dated and not timed".into()));
    }
    if !timed && zoned {
        return Err(invalid("datetime format is zoned but not timed".into()));
    }
    let west = zoned.then(|| west.unwrap_or(0));
    let mut out = Strict { date: None, time: timed.then(|| round_time(c.time_micros(), precision)), west, instant: 0 };
    if !dated {
        return Ok(out);
    }
    let days = if valid_julian(c.year, c.month) { c.days() } else { i64::MAX };
    let in_range = (i64::from(DATE_MIN)..i64::from(DATE_END)).contains(&days);
    if timed {
        let ty = if zoned { "timestamptz" } else { "timestamp" };
        let instant = to_utc(&c, west.unwrap_or(0)).filter(|_| in_range);
        out.instant = round_timestamp(instant.ok_or_else(|| overflow(format!("{ty} out of range")))?, precision);
    } else if !in_range {
        return Err(overflow(format!("date out of range: \"{text}\"")));
    }
    out.date = Some(days as i32);
    Ok(out)
}
