//! What the text forms of values depend on: the session's settings.

/// Order of fields in ambiguous dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DateOrder {
    /// Year, month, day.
    Ymd,
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    #[default]
    Mdy,
}

/// `DateStyle`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DateStyle {
    /// `2000-01-31 12:00:00`
    #[default]
    Iso,
    /// `01/31/2000 12:00:00`
    Sql,
    /// `Mon Jan 31 12:00:00 2000`
    Postgres,
    /// `31.01.2000 12:00:00`
    German,
}

/// `IntervalStyle`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IntervalStyle {
    /// `1 year 2 mons 3 days 04:05:06`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`
    PostgresVerbose,
    /// `+1-2 +3 +4:05:06`
    SqlStandard,
    /// `P1Y2M3DT4H5M6S`
    Iso8601,
}

/// `bytea_output`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ByteaOutput {
    /// `\xdead`
    #[default]
    Hex,
    /// Octal escapes.
    Escape,
}

/// A time zone with the name it was set by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeZone {
    name: Box<str>,
    zone: jiff::tz::TimeZone,
}

impl TimeZone {
    /// Coordinated universal time.
    pub fn utc() -> TimeZone {
        TimeZone { name: "UTC".into(), zone: jiff::tz::TimeZone::UTC }
    }

    /// A zone by IANA name, or hours east of UTC as SET TIME ZONE takes them; `None` if it is neither.
    pub fn parse(text: &str) -> Option<TimeZone> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("default") {
            return Some(TimeZone::utc());
        }
        if let Ok(hours) = text.parse::<f64>() {
            let seconds = (hours * 3600.0).round();
            if seconds.abs() > 167.0 * 3600.0 {
                return None;
            }
            return TimeZone::fixed(seconds as i32);
        }
        if let Ok(zone) = jiff::tz::TimeZone::get(text) {
            let name = zone.iana_name().unwrap_or(text).into();
            return Some(TimeZone { name, zone });
        }
        let zone = crate::datetime::posix_rules(text)?;
        Some(TimeZone { name: text.to_ascii_uppercase().into(), zone })
    }

    /// A fixed offset in seconds east of UTC, named as PostgreSQL names it (`<+02>-02`).
    pub fn fixed(seconds: i32) -> Option<TimeZone> {
        let offset = jiff::tz::Offset::from_seconds(seconds).ok()?;
        let clock = |s: i32| {
            let (h, m) = (s.abs() / 3600, s.abs() / 60 % 60);
            if m == 0 { format!("{h:02}") } else { format!("{h:02}:{m:02}") }
        };
        let (east, west) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
        let name = format!("<{east}{0}>{west}{0}", clock(seconds)).into();
        Some(TimeZone { name, zone: jiff::tz::TimeZone::fixed(offset) })
    }

    /// The name, as SHOW prints it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The zone's rules.
    pub fn rules(&self) -> &jiff::tz::TimeZone {
        &self.zone
    }
}

/// Everything that input and output functions read of a session.
#[derive(Clone, Debug)]
pub struct OutputSettings {
    /// `DateStyle`, first word.
    pub date_style: DateStyle,
    /// `DateStyle`, second word.
    pub date_order: DateOrder,
    /// `IntervalStyle`
    pub interval_style: IntervalStyle,
    /// `TimeZone`
    pub timezone: TimeZone,
    /// `extra_float_digits`
    pub extra_float_digits: i32,
    /// `bytea_output`
    pub bytea_output: ByteaOutput,
    /// `array_nulls`
    pub array_nulls: bool,
}

impl Default for OutputSettings {
    fn default() -> OutputSettings {
        OutputSettings {
            date_style: DateStyle::Iso,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            timezone: TimeZone::utc(),
            extra_float_digits: 1,
            bytea_output: ByteaOutput::Hex,
            array_nulls: true,
        }
    }
}

/// What parsing depends on.
#[derive(Clone, Copy, Debug)]
pub struct InputContext<'a> {
    /// The session's settings.
    pub settings: &'a OutputSettings,
    /// The transaction's time, for `'now'`: microseconds since 2000-01-01 00:00 UTC.
    pub now_micros: i64,
}
