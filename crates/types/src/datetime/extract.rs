//! `extract` and `date_part`.

use super::arith::to_local;
use super::calendar::{day_of_year, iso_week, weekday};
use super::tokens::{Label, Unit, Word, unit, word};
use super::trunc::{unknown_unit, unsupported_unit};
use super::zone::west_at;
use super::{
    Civil, DATE_INFINITY, DATE_NEG_INFINITY, EPOCH_JULIAN, MICROS_PER_DAY, MICROS_PER_SEC, TIMESTAMP_INFINITY,
    UNIX_EPOCH_MICROS, is_infinite,
};
use crate::interval::Interval;
use crate::settings::TimeZone;
use base::Result;

/// What `extract` answers; NUMERIC in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extracted {
    /// A whole number.
    Whole(i64),
    /// `value / 10^scale`, shown with all its digits.
    Scaled(i128, u8),
    /// A Julian day, and the microseconds of it.
    Julian(i64, i64),
    /// An infinity: true is positive.
    Infinite(bool),
    /// NULL: the field has no meaning for an infinite value.
    Null,
}

impl Extracted {
    /// As a whole number or a scaled one, if it is neither infinite nor NULL: a Julian day with its fraction, with as many digits
    /// as NUMERIC's division gives, 16 that count, in steps of four.
    pub fn scaled(self) -> Extracted {
        let Extracted::Julian(day, micros) = self else { return self };
        let micros = i128::from(micros);
        let (weight, first) = match micros {
            0..10_000 => (0, micros),
            10_000..100_000_000 => (1, micros / 10_000),
            _ => (2, micros / 100_000_000),
        };
        // 86400000000 is 864 0000 0000 in NUMERIC's digits.
        let quotient_weight = weight - 2 - i32::from(first <= 864);
        let scale = (16 - 4 * quotient_weight) as u32;
        let whole = i128::from(MICROS_PER_DAY);
        let fraction = (2 * micros * 10i128.pow(scale) + whole) / (2 * whole);
        Extracted::Scaled(i128::from(day) * 10i128.pow(scale) + fraction, scale as u8)
    }
}

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The answer of `date_part`: the same as `double precision`; `None` is NULL.
pub fn date_part_f64(value: Extracted) -> Option<f64> {
    Some(match value {
        Extracted::Whole(n) => n as f64,
        Extracted::Scaled(n, scale) => n as f64 / 10f64.powi(scale.into()),
        Extracted::Julian(day, micros) => {
            let seconds = (micros / MICROS_PER_SEC) as f64 + (micros % MICROS_PER_SEC) as f64 / MICROS_PER_SEC as f64;
            day as f64 + seconds / SECONDS_PER_DAY
        }
        Extracted::Infinite(true) => f64::INFINITY,
        Extracted::Infinite(false) => f64::NEG_INFINITY,
        Extracted::Null => return None,
    })
}

/// A field that extract() knows.
#[derive(Clone, Copy, PartialEq)]
enum Field {
    Unit(Unit),
    Label(Label),
    Epoch,
}

fn lookup(lower: &str, type_name: &str) -> Result<Field> {
    match (unit(lower), word(lower)) {
        (Some(Unit::Ago | Unit::Filler), _) => Err(unknown_unit(lower, type_name)),
        (Some(unit), _) => Ok(Field::Unit(unit)),
        (_, Some(Word::Label(Label::Minute))) => Ok(Field::Unit(Unit::Minute)),
        (_, Some(Word::Label(label))) => Ok(Field::Label(label)),
        (_, Some(Word::Epoch)) => Ok(Field::Epoch),
        (
            _,
            Some(
                Word::Now
                | Word::Today
                | Word::Tomorrow
                | Word::Yesterday
                | Word::AllBalls
                | Word::Infinity
                | Word::NegInfinity,
            ),
        ) => Err(unsupported_unit(lower, type_name)),
        _ => Err(unknown_unit(lower, type_name)),
    }
}

/// The same for types without a date, to which words like `now` are unknown.
fn clock_lookup(lower: &str, type_name: &str) -> Result<Field> {
    lookup(lower, type_name).map_err(|_| unknown_unit(lower, type_name))
}

/// Years as people count them: no year 0.
fn counted(year: i32) -> i64 {
    i64::from(if year > 0 { year } else { year - 1 })
}

/// Centuries or millennia, of which none is number 0.
fn age_of(year: i32, n: i32) -> i64 {
    i64::from(if year > 0 { (year + n - 1) / n } else { -((n - 1 - (year - 1)) / n) })
}

/// Fields of the calendar.
fn date_field(field: Field, c: &Civil) -> Option<Extracted> {
    let days = c.days();
    Some(Extracted::Whole(match field {
        Field::Unit(Unit::Day) => c.day.into(),
        Field::Unit(Unit::Month) => c.month.into(),
        Field::Unit(Unit::Quarter) => ((c.month - 1) / 3 + 1).into(),
        Field::Unit(Unit::Week) => iso_week(days).1.into(),
        Field::Unit(Unit::Year) => counted(c.year),
        Field::Unit(Unit::Decade) => i64::from(if c.year >= 0 { c.year / 10 } else { -((8 - (c.year - 1)) / 10) }),
        Field::Unit(Unit::Century) => age_of(c.year, 100),
        Field::Unit(Unit::Millennium) => age_of(c.year, 1000),
        Field::Label(Label::IsoYear) => counted(iso_week(days).0),
        Field::Label(Label::Dow) => weekday(days).into(),
        Field::Label(Label::IsoDow) => match weekday(days) {
            0 => 7,
            day => day.into(),
        },
        Field::Label(Label::Doy) => day_of_year(c).into(),
        _ => return None,
    }))
}

/// Fields of the clock.
fn time_field(field: Field, time: i64) -> Option<Extracted> {
    let in_minute = time % (60 * MICROS_PER_SEC);
    let Field::Unit(unit) = field else { return None };
    Some(match unit {
        Unit::Microsecond => Extracted::Whole(in_minute),
        Unit::Millisecond => Extracted::Scaled(in_minute.into(), 3),
        Unit::Second => Extracted::Scaled(in_minute.into(), 6),
        Unit::Minute => Extracted::Whole(time / (60 * MICROS_PER_SEC) % 60),
        Unit::Hour => Extracted::Whole(time / (3600 * MICROS_PER_SEC)),
        _ => return None,
    })
}

fn zone_field(field: Field, west: i32) -> Option<Extracted> {
    let east = -i64::from(west);
    let Field::Unit(unit) = field else { return None };
    Some(Extracted::Whole(match unit {
        Unit::Timezone => east,
        Unit::TimezoneHour => east / 3600,
        Unit::TimezoneMinute => east / 60 % 60,
        _ => return None,
    }))
}

/// Fields that grow for ever are infinite for an infinite value; those that come again are NULL.
fn infinite_field(field: Field, positive: bool, has_clock: bool) -> Option<Extracted> {
    match field {
        Field::Epoch | Field::Label(Label::Julian | Label::IsoYear) => Some(Extracted::Infinite(positive)),
        Field::Unit(Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium) => {
            Some(Extracted::Infinite(positive))
        }
        Field::Label(Label::Dow | Label::IsoDow | Label::Doy) => Some(Extracted::Null),
        Field::Unit(Unit::Day | Unit::Month | Unit::Quarter | Unit::Week) => Some(Extracted::Null),
        Field::Unit(_) => has_clock.then_some(Extracted::Null),
        Field::Label(_) => None,
    }
}

fn timestamp_field(name: &str, t: i64, c: impl FnOnce() -> (Civil, Option<i32>), type_name: &str) -> Result<Extracted> {
    let lower = name.to_ascii_lowercase();
    let field = lookup(&lower, type_name)?;
    let value = if is_infinite(t) {
        infinite_field(field, t == TIMESTAMP_INFINITY, true)
    } else {
        let (c, west) = c();
        match field {
            Field::Epoch => Some(Extracted::Scaled(i128::from(t) - i128::from(UNIX_EPOCH_MICROS), 6)),
            Field::Label(Label::Julian) => Some(Extracted::Julian(c.days() + EPOCH_JULIAN, c.time_micros())),
            _ => date_field(field, &c)
                .or_else(|| time_field(field, c.time_micros()))
                .or_else(|| zone_field(field, west?)),
        }
    };
    value.ok_or_else(|| unsupported_unit(&lower, type_name))
}

/// `extract(field from timestamp)`
pub fn extract_timestamp(name: &str, t: i64) -> Result<Extracted> {
    timestamp_field(name, t, || (Civil::of(t), None), "timestamp without time zone")
}

/// `extract(field from timestamptz)`, in the session's zone.
pub fn extract_timestamptz(name: &str, t: i64, zone: &TimeZone) -> Result<Extracted> {
    let fields = || (to_local(t, zone), Some(west_at(zone.rules(), t)));
    timestamp_field(name, t, fields, "timestamp with time zone")
}

/// `extract(field from date)`
pub fn extract_date(name: &str, date: i32) -> Result<Extracted> {
    let lower = name.to_ascii_lowercase();
    let field = lookup(&lower, "date")?;
    let value = if date == DATE_INFINITY || date == DATE_NEG_INFINITY {
        infinite_field(field, date == DATE_INFINITY, false)
    } else {
        let days = i64::from(date);
        let (year, month, day) = super::civil_from_days(days);
        match field {
            Field::Epoch => Some(Extracted::Whole(days * 86_400 + super::UNIX_EPOCH_SECS)),
            Field::Label(Label::Julian) => Some(Extracted::Whole(days + EPOCH_JULIAN)),
            _ => date_field(field, &Civil { year, month, day, ..Civil::default() }),
        }
    };
    value.ok_or_else(|| unsupported_unit(&lower, "date"))
}

/// `extract(field from time)`
pub fn extract_time(name: &str, time: i64) -> Result<Extracted> {
    let lower = name.to_ascii_lowercase();
    let type_name = "time without time zone";
    let value = match clock_lookup(&lower, type_name)? {
        Field::Epoch => Some(Extracted::Scaled(time.into(), 6)),
        field => time_field(field, time),
    };
    value.ok_or_else(|| unsupported_unit(&lower, type_name))
}

/// `extract(field from timetz)`
pub fn extract_timetz(name: &str, time: i64, west: i32) -> Result<Extracted> {
    let lower = name.to_ascii_lowercase();
    let type_name = "time with time zone";
    let value = match clock_lookup(&lower, type_name)? {
        Field::Epoch => Some(Extracted::Scaled(i128::from(time + i64::from(west) * MICROS_PER_SEC), 6)),
        field => time_field(field, time).or_else(|| zone_field(field, west)),
    };
    value.ok_or_else(|| unsupported_unit(&lower, type_name))
}

/// `extract(field from interval)`
pub fn extract_interval(name: &str, span: &Interval) -> Result<Extracted> {
    let lower = name.to_ascii_lowercase();
    let field = clock_lookup(&lower, "interval")?;
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    let value = match field {
        Field::Epoch => {
            // A year counts 365.25 days; quarters of days keep it whole.
            let quarter_days = 1461 * years + 120 * months + 4 * i64::from(span.days);
            let secs = i128::from(quarter_days) * 21_600;
            Some(Extracted::Scaled(secs * i128::from(MICROS_PER_SEC) + i128::from(span.micros), 6))
        }
        Field::Unit(Unit::Day) => Some(Extracted::Whole(span.days.into())),
        Field::Unit(Unit::Month) => Some(Extracted::Whole(months)),
        Field::Unit(Unit::Quarter) => Some(Extracted::Whole(months / 3 + 1)),
        Field::Unit(Unit::Year) => Some(Extracted::Whole(years)),
        Field::Unit(Unit::Decade) => Some(Extracted::Whole(years / 10)),
        Field::Unit(Unit::Century) => Some(Extracted::Whole(years / 100)),
        Field::Unit(Unit::Millennium) => Some(Extracted::Whole(years / 1000)),
        field => time_field(field, span.micros),
    };
    value.ok_or_else(|| unsupported_unit(&lower, "interval"))
}
