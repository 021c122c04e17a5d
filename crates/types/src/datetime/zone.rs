//! Offsets of time zones at instants and at local times, zones by name and by abbreviation.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::tokens::{Abbreviation, abbreviation};
use super::{Bad, Civil, MICROS_PER_SEC, UNIX_EPOCH_SECS};
use base::{Error, Result, SqlState};

/// Seconds of 400 years, after which the calendar and the rules of every zone repeat.
const CYCLE_SECS: i64 = 146_097 * 86_400;
/// Instants from here on are mapped back by cycles: 9000-01-01 UTC.
const LAST_EXACT_SECS: i64 = 221_845_392_000;

/// A zone that a value can be converted to or from.
#[derive(Clone, Debug)]
pub enum Zone {
    /// A fixed offset, in seconds west of UTC.
    West(i32),
    /// A zone with rules.
    Rules(TimeZone),
    /// An abbreviation whose meaning changed over time: the offset it had at the instant, in its home zone.
    Abbreviation(Box<str>, TimeZone),
}

/// The instant, as the zone database can take it.
fn instant(t: i64) -> Timestamp {
    let mut secs = t.div_euclid(MICROS_PER_SEC) + UNIX_EPOCH_SECS;
    if secs >= LAST_EXACT_SECS {
        secs -= ((secs - LAST_EXACT_SECS) / CYCLE_SECS + 1) * CYCLE_SECS;
    }
    Timestamp::from_second(secs).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Offset in seconds west at an instant.
pub(crate) fn west_at(zone: &TimeZone, t: i64) -> i32 {
    -zone.to_offset(instant(t)).seconds()
}

/// Calls `f` with the offset and the abbreviation at an instant.
pub(crate) fn with_info<R>(zone: &TimeZone, t: i64, f: impl FnOnce(i32, &str) -> R) -> R {
    let info = zone.to_offset_info(instant(t));
    f(-info.offset().seconds(), info.abbreviation())
}

/// The local time, as the zone database can take it.
fn local(c: &Civil) -> DateTime {
    let year = if c.year >= 9000 { c.year - ((c.year - 9000) / 400 + 1) * 400 } else { c.year };
    // A 60th second and the hour 24 are legal inputs; the offset does not hang on them.
    let (hour, second) = (c.hour.clamp(0, 23), c.second.clamp(0, 59));
    DateTime::new(
        year.clamp(-9999, 9000) as i16,
        c.month as i8,
        c.day as i8,
        hour as i8,
        c.minute.clamp(0, 59) as i8,
        second as i8,
        0,
    )
    .unwrap_or_default()
}

/// Offset in seconds west of a local time. In a gap the offset before it holds, in a fold the one after.
pub(crate) fn west_of_local(zone: &TimeZone, c: &Civil) -> i32 {
    if c.hour >= 24
        && let Some(t) = c.timestamp()
    {
        return west_of_local(zone, &Civil::of(t));
    }
    let offset = match zone.to_ambiguous_timestamp(local(c)).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } => before,
        AmbiguousOffset::Fold { after, .. } => after,
    };
    -offset.seconds()
}

/// The offset that an abbreviation stands for near an instant of its zone, if the zone ever used it.
fn west_of_abbreviation(zone: &TimeZone, name: &str, t: i64) -> Option<i32> {
    let at = instant(t);
    let info = zone.to_offset_info(at);
    if info.abbreviation().eq_ignore_ascii_case(name) {
        return Some(-info.offset().seconds());
    }
    let matches =
        |offset: Offset, abbreviation: &str| abbreviation.eq_ignore_ascii_case(name).then_some(-offset.seconds());
    let before = zone.preceding(at).find_map(|x| matches(x.offset(), x.abbreviation()));
    // Rules without an end repeat for ever: what a few years do not show does not come.
    before.or_else(|| zone.following(at).take(64).find_map(|x| matches(x.offset(), x.abbreviation())))
}

impl Zone {
    /// Offset in seconds west at an instant.
    pub fn west_at(&self, t: i64) -> i32 {
        match self {
            Zone::West(west) => *west,
            Zone::Rules(zone) => west_at(zone, t),
            Zone::Abbreviation(name, zone) => west_of_abbreviation(zone, name, t).unwrap_or_else(|| west_at(zone, t)),
        }
    }

    /// Offset in seconds west of a local time.
    pub fn west_of_local(&self, c: &Civil) -> i32 {
        match self {
            Zone::West(west) => *west,
            Zone::Rules(zone) => west_of_local(zone, c),
            Zone::Abbreviation(name, zone) => {
                // The local time is first resolved by the zone's own rules, then by the name's meaning around it.
                let west = west_of_local(zone, c);
                let t = c.timestamp().unwrap_or(0) + i64::from(west) * MICROS_PER_SEC;
                west_of_abbreviation(zone, name, t).unwrap_or(west)
            }
        }
    }

    /// The offset in seconds west, if it never changes.
    pub(crate) fn fixed_west(&self) -> Option<i32> {
        match self {
            Zone::West(west) => Some(*west),
            Zone::Rules(zone) => zone.to_fixed_offset().ok().map(|o| -o.seconds()),
            Zone::Abbreviation(..) => None,
        }
    }
}

/// The meaning of a lower-case abbreviation.
pub(crate) fn zone_of_abbreviation(name: &str) -> Option<(Zone, bool)> {
    match abbreviation(name)? {
        Abbreviation::Fixed(east, dst) => Some((Zone::West(-east), dst)),
        Abbreviation::Zone(iana) => Some((Zone::Abbreviation(name.into(), TimeZone::get(iana).ok()?), false)),
    }
}

/// What a name of a zone, or an abbreviation, stands for at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedOffset {
    /// The name, as it is written.
    pub name: String,
    /// The abbreviation that is used then.
    pub abbreviation: String,
    /// Seconds east.
    pub east: i32,
    /// Whether it is summer time.
    pub is_summer: bool,
}

fn named_offset(name: &str, zone: &TimeZone, t: i64) -> NamedOffset {
    let info = zone.to_offset_info(instant(t));
    NamedOffset {
        name: name.to_string(),
        abbreviation: info.abbreviation().to_string(),
        east: info.offset().seconds(),
        is_summer: info.dst().is_dst(),
    }
}

/// The zones that have a name, at an instant (microseconds since 2000).
pub fn named_zones(t: i64) -> Vec<NamedOffset> {
    let names = jiff::tz::db().available();
    names.filter_map(|name| Some(named_offset(name.as_str(), &TimeZone::get(name.as_str()).ok()?, t))).collect()
}

/// The abbreviations of zones, at an instant (microseconds since 2000).
pub fn zone_abbreviations(t: i64) -> Vec<NamedOffset> {
    let offset = |name: &'static str| {
        let shown = name.to_ascii_uppercase();
        Some(match abbreviation(name)? {
            Abbreviation::Fixed(east, is_summer) => {
                NamedOffset { name: shown.clone(), abbreviation: shown, east, is_summer }
            }
            Abbreviation::Zone(iana) => {
                let zone = TimeZone::get(iana).ok()?;
                let now = named_offset(&shown, &zone, t);
                let east = west_of_abbreviation(&zone, name, t).map_or(now.east, |west| -west);
                NamedOffset { east, ..now }
            }
        })
    };
    super::tokens::abbreviations().filter_map(offset).collect()
}

/// Longest name of a zone, as in PostgreSQL.
const NAME_MAX: usize = 255;

/// A zone by full name: IANA, or a POSIX rule (`EST5EDT`, `<+02>-02`, `UTC+3`).
pub(crate) fn named_zone(name: &str) -> Option<Zone> {
    if name.len() > NAME_MAX {
        return None;
    }
    if name.eq_ignore_ascii_case("utc") || name.eq_ignore_ascii_case("gmt") {
        return Some(Zone::West(0));
    }
    if let Ok(zone) = TimeZone::get(name) {
        return Some(Zone::Rules(zone));
    }
    posix_zone(name)
}

/// The name that a POSIX rule begins with, and what is behind it.
fn name_of_posix(rule: &str) -> Option<(&str, &str)> {
    Some(match rule.strip_prefix('<') {
        Some(quoted) => {
            let end = quoted.find('>')?;
            (&quoted[..end], &quoted[end + 1..])
        }
        None => {
            let rest = rule.trim_start_matches(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | '-' | '+'));
            (&rule[..rule.len() - rest.len()], rest)
        }
    })
}

/// Such a name as the zone database takes it. PostgreSQL takes any; for others offsets are right under a plain one.
fn shown_of_posix<'n>(name: &'n str, plain: &'n str) -> std::borrow::Cow<'n, str> {
    let is_one = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-');
    match (3..=30).contains(&name.len()) && name.chars().all(is_one) {
        true => format!("<{}>", name.to_ascii_uppercase()).into(),
        false => plain.into(),
    }
}

/// `[NAME]offset` is fixed; `NAMEoffsetDST` has rules, the United States' by default.
fn posix_zone(name: &str) -> Option<Zone> {
    if !name.is_ascii() {
        return None;
    }
    let (standard, rest) = name_of_posix(name)?;
    let (sign, digits) = match rest.as_bytes().first()? {
        b'-' => (-1, &rest[1..]),
        b'+' => (1, &rest[1..]),
        _ => (1, rest),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(digits.len());
    let mut parts = digits[..end].split(':').map(|p| p.parse::<i32>().ok());
    let hours = parts.next()??;
    let minutes = parts.next().unwrap_or(Some(0))?;
    let seconds = parts.next().unwrap_or(Some(0))?;
    if parts.next().is_some() || hours > 167 || minutes > 59 || seconds > 60 {
        return None;
    }
    let minus = if sign < 0 { "-" } else { "" };
    let standard = format!("{}{minus}{}", shown_of_posix(standard, "STD"), &digits[..end]);
    if end == digits.len() {
        // Without a name that the zone database takes only the offset is shown.
        let fixed = Zone::West(sign * (hours * 3600 + minutes * 60 + seconds));
        let named = standard.starts_with('<').then(|| TimeZone::posix(&standard).ok()).flatten();
        return Some(named.map_or(fixed, Zone::Rules));
    }
    let summer = &digits[end..];
    let (said, rules) = name_of_posix(summer)?;
    if !summer.starts_with('<') && rules.len() == summer.len() {
        return None;
    }
    let standard = format!("{standard}{}{}", shown_of_posix(said, "SUM"), rules.to_ascii_uppercase());
    let zone = if rules.contains(',') {
        TimeZone::posix(&standard)
    } else {
        TimeZone::posix(&format!("{standard},M3.2.0,M11.1.0"))
    };
    zone.ok().map(Zone::Rules)
}

/// The rules of a POSIX zone; PostgreSQL's offsets have no limit that matters, the zone database's are 25 hours.
pub(crate) fn posix_rules(name: &str) -> Option<TimeZone> {
    match posix_zone(name)? {
        Zone::West(west) => Some(TimeZone::fixed(Offset::from_seconds(-west).ok()?)),
        Zone::Rules(zone) => Some(zone),
        Zone::Abbreviation(..) => None,
    }
}

/// Whether a name is a POSIX rule with a summer time and an offset beyond what the zone database takes.
fn is_too_far(name: &str) -> bool {
    let Some((_, rest)) = Some(name).filter(|name| name.len() <= NAME_MAX).and_then(name_of_posix) else {
        return false;
    };
    let digits = rest.trim_start_matches(['-', '+']);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    end < digits.len() && digits[..end].parse::<i32>().is_ok_and(|hours| (25..=167).contains(&hours))
}

#[cold]
fn unknown_zone(name: &str) -> Error {
    if is_too_far(name) {
        return Error::unsupported(format!("time zone \"{name}\" is more than a day from UTC, which is not supported"));
    }
    Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized"))
}

/// A zone met in a date, by its full name in lower case.
pub(crate) fn named_zone_in_text(name: &str) -> Result<Zone, Bad> {
    named_zone(name).ok_or_else(|| Bad::Other(unknown_zone(name)))
}

/// A zone as AT TIME ZONE takes it: an abbreviation, a full name, or a POSIX rule.
pub fn find_zone(name: &str) -> Result<Zone> {
    let lower = name.to_ascii_lowercase();
    if let Some((zone, _)) = zone_of_abbreviation(&lower) {
        return Ok(zone);
    }
    named_zone(name).ok_or_else(|| unknown_zone(name))
}
