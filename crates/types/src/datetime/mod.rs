//! PostgreSQL's date and time types: calendar, zones, text input and output, arithmetic, functions.
//!
//! Responsible for: `date` (days since 2000-01-01), `time` and `timetz` (microseconds since midnight),
//! `timestamp` and `timestamptz` (microseconds since 2000-01-01), with the extreme values as infinities.
//! Not responsible for: `interval` by itself ([`crate::interval`]). Zones come from [`jiff`], of which only offsets
//! and abbreviations are asked: the calendar here reaches further (4714 BC to AD 294276).
//! Invariants: a finite value is always within PostgreSQL's range; zone offsets are seconds *west* of UTC wherever
//! they are called `west`, as `timetz` stores them.

mod arith;
mod bin;
mod calendar;
mod cast;
mod decode;
mod extract;
mod fields;
mod format;
mod format_parse;
mod interval_decode;
mod make;
mod parse;
#[cfg(test)]
mod tests;
mod tokens;
mod trunc;
pub(crate) mod write;
mod zone;

use base::{Error, SqlState};

pub use crate::interval::{limit as limit_interval, write_interval};
use crate::io::about;
pub use arith::{
    age, age_tz, compare_date_timestamp, compare_timetz, date_minus_date, date_minus_interval, date_plus_days,
    date_plus_interval, overlaps, time_minus_interval, time_minus_time, time_plus_interval, timestamp_minus,
    timestamp_minus_interval, timestamp_plus_interval, timestamptz_minus_interval, timestamptz_plus_interval,
    timetz_minus_interval, timetz_plus_interval,
};
pub use bin::date_bin;
pub use calendar::{Civil, civil_from_days, days_from_civil};
pub use cast::{
    date_plus_time, date_plus_timetz, date_to_timestamp, date_to_timestamptz, interval_to_time, round_time,
    round_timestamp, time_to_interval, time_to_timetz, timestamp_at_interval, timestamp_at_zone, timestamp_to_date,
    timestamp_to_time, timestamp_to_timestamptz, timestamptz_at_interval, timestamptz_at_zone, timestamptz_to_date,
    timestamptz_to_time, timestamptz_to_timestamp, timestamptz_to_timetz, timetz_at_interval, timetz_at_zone,
    timetz_to_time,
};
pub use extract::{
    Extracted, date_part_f64, extract_date, extract_interval, extract_time, extract_timestamp, extract_timestamptz,
    extract_timetz,
};
pub use format::{to_char_interval, to_char_timestamp, to_char_timestamptz};
pub use format_parse::{Strict, read_strictly, to_date, to_timestamp_text};
pub use interval_decode::parse_interval;
pub use make::{
    is_finite_date, is_finite_timestamp, make_date, make_interval, make_time, make_timestamp, make_timestamptz,
    make_timestamptz_in, to_timestamp,
};
pub use parse::{parse_date, parse_time, parse_timestamp, parse_timestamptz, parse_timetz};
pub use trunc::{date_trunc_interval, date_trunc_timestamp, date_trunc_timestamptz, date_trunc_timestamptz_in};
pub use write::{write_date, write_time, write_timestamp, write_timestamptz, write_timetz};
pub(crate) use zone::posix_rules;
pub use zone::{NamedOffset, Zone, find_zone, named_zones, zone_abbreviations};

/// Microseconds of a second.
pub const MICROS_PER_SEC: i64 = 1_000_000;
/// Microseconds of a minute.
pub const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SEC;
/// Microseconds of an hour.
pub const MICROS_PER_HOUR: i64 = 3600 * MICROS_PER_SEC;
/// Microseconds of a day of 24 hours.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SEC;
/// The date `infinity`.
pub const DATE_INFINITY: i32 = i32::MAX;
/// The date `-infinity`.
pub const DATE_NEG_INFINITY: i32 = i32::MIN;
/// The timestamp `infinity`.
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;
/// The timestamp `-infinity`.
pub const TIMESTAMP_NEG_INFINITY: i64 = i64::MIN;
/// First timestamp: 4714-11-24 00:00:00 BC.
pub const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// The first timestamp after the last one: 294277-01-01.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// First date: 4714-11-24 BC.
pub const DATE_MIN: i32 = -2_451_545;
/// The first date after the last one: 5874898-06-03.
pub const DATE_END: i32 = 2_145_031_949;
/// Seconds from 1970-01-01 to 2000-01-01.
pub const UNIX_EPOCH_SECS: i64 = 946_684_800;
/// 1970-01-01 as microseconds since 2000-01-01.
pub const UNIX_EPOCH_MICROS: i64 = -UNIX_EPOCH_SECS * MICROS_PER_SEC;
/// The Julian day of 2000-01-01.
pub(crate) const EPOCH_JULIAN: i64 = 2_451_545;

/// A finite timestamp within the range?
pub(crate) fn in_range(t: i64) -> bool {
    (TIMESTAMP_MIN..TIMESTAMP_END).contains(&t)
}

/// One of the two infinities?
pub(crate) fn is_infinite(t: i64) -> bool {
    t == TIMESTAMP_INFINITY || t == TIMESTAMP_NEG_INFINITY
}

#[cold]
pub(crate) fn overflow(message: impl Into<String>) -> Error {
    Error::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

#[cold]
pub(crate) fn timestamp_out_of_range() -> Error {
    overflow("timestamp out of range")
}

#[cold]
pub(crate) fn interval_out_of_range() -> Error {
    overflow("interval out of range")
}

#[cold]
pub(crate) fn date_out_of_range() -> Error {
    overflow("date out of range")
}

/// What is wrong with a text, in PostgreSQL's classes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bad {
    /// Not of the type's syntax.
    Format,
    /// A field beyond its range.
    Field,
    /// A month or day beyond its range: perhaps the field order is another.
    MonthDay,
    /// An interval field beyond its range.
    Interval,
    /// A zone offset beyond its range.
    Displacement,
    /// An error with its own text.
    Other(Error),
}

impl Bad {
    /// The client's error for `text` read as `type_name`.
    #[cold]
    pub(crate) fn error(self, text: &str, type_name: &str) -> Error {
        match self {
            Bad::Format => Error::new(
                SqlState::INVALID_DATETIME_FORMAT,
                about(&format!("invalid input syntax for type {type_name}"), text),
            ),
            Bad::Field => overflow(about("date/time field value out of range", text)),
            Bad::MonthDay => overflow(about("date/time field value out of range", text))
                .hint("Perhaps you need a different \"datestyle\" setting."),
            Bad::Interval => {
                Error::new(SqlState::INTERVAL_FIELD_OVERFLOW, about("interval field value out of range", text))
            }
            Bad::Displacement => Error::new(
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                about("time zone displacement out of range", text),
            ),
            Bad::Other(error) => error,
        }
    }
}
