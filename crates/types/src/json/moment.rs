//! Instants inside of a path over a document (`.datetime()`): read by the formats of SQL/JSON, shown as strings.

use base::{Error, Result, SqlState};

use crate::InputContext;
use crate::datetime::{self, Strict};

/// What `.datetime()` makes of a string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// Days since 2000-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// The same, and seconds west of UTC.
    TimeTz(i64, i32),
    /// Microseconds since 2000-01-01.
    Timestamp(i64),
    /// Microseconds since 2000-01-01 UTC, and the seconds west of UTC that it was written with.
    TimestampTz(i64, i32),
}

/// The formats that are tried without a template, in this order.
const FORMATS: [&str; 19] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

impl Moment {
    /// Reads a text by a template, or by the first of the standard formats that fits.
    ///
    /// # Errors
    /// 22007 and 22008 as the template has it; 22031 if no format fits.
    pub fn read(text: &str, template: Option<&str>) -> Result<Moment> {
        if let Some(template) = template {
            return Moment::by_format(text, template);
        }
        FORMATS.iter().find_map(|format| Moment::by_format(text, format).ok()).ok_or_else(|| {
            let message = format!("datetime format is not recognized: \"{text}\"");
            Error::new(SqlState::INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION, message)
                .hint("Use a datetime template argument to specify the input data format.")
        })
    }

    fn by_format(text: &str, format: &str) -> Result<Moment> {
        Ok(match datetime::read_strictly(text, format)? {
            Strict { date: Some(date), time: None, .. } => Moment::Date(date),
            Strict { date: None, time, west: None, .. } => Moment::Time(time.unwrap_or(0)),
            Strict { date: None, time, west: Some(west), .. } => Moment::TimeTz(time.unwrap_or(0), west),
            Strict { date: Some(_), instant, west: None, .. } => Moment::Timestamp(instant),
            Strict { date: Some(_), instant, west: Some(west), .. } => Moment::TimestampTz(instant, west),
        })
    }

    /// What `.type()` says of it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Moment::Date(_) => "date",
            Moment::Time(_) => "time without time zone",
            Moment::TimeTz(..) => "time with time zone",
            Moment::Timestamp(_) => "timestamp without time zone",
            Moment::TimestampTz(..) => "timestamp with time zone",
        }
    }

    /// Appends its text: ISO 8601, whatever the settings are.
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Moment::Date(days) => datetime::write::xsd_date(days, out),
            Moment::Time(micros) => datetime::write_time(micros, out),
            Moment::TimeTz(micros, west) => {
                datetime::write_time(micros, out);
                datetime::write::xsd_offset(west, out);
            }
            Moment::Timestamp(t) => datetime::write::xsd_timestamp(t, None, out),
            Moment::TimestampTz(t, west) => datetime::write::xsd_timestamp(t, Some(west), out),
        }
    }

    /// How it compares with another; `None` if the two have nothing in common. The session's zone is asked only with `zoned`.
    ///
    /// # Errors
    /// 0A000 if the zone would have to be asked and may not be.
    pub fn compare(&self, other: &Moment, zoned: bool, cx: &InputContext<'_>) -> Result<Option<std::cmp::Ordering>> {
        use Moment as M;
        let zone = &cx.settings.timezone;
        let cast = |from: &str, to: &str| {
            if zoned {
                return Ok(());
            }
            let message = format!("cannot convert value from {from} to {to} without time zone usage");
            Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint("Use *_tz() function for time zone support."))
        };
        Ok(Some(match (*self, *other) {
            (M::Date(a), M::Date(b)) => a.cmp(&b),
            (M::Time(a), M::Time(b)) => a.cmp(&b),
            (M::TimeTz(a, west), M::TimeTz(b, other)) => datetime::compare_timetz((a, west), (b, other)),
            (M::Timestamp(a), M::Timestamp(b)) | (M::TimestampTz(a, _), M::TimestampTz(b, _)) => a.cmp(&b),
            (M::Date(a), M::Timestamp(b)) => datetime::compare_date_timestamp(a, b),
            (M::Date(a), M::TimestampTz(b, _)) => {
                cast("date", "timestamptz")?;
                datetime::date_to_timestamptz(a, zone)?.cmp(&b)
            }
            (M::Timestamp(a), M::TimestampTz(b, _)) => {
                cast("timestamp", "timestamptz")?;
                datetime::timestamp_to_timestamptz(a, zone)?.cmp(&b)
            }
            (M::Time(a), M::TimeTz(b, west)) => {
                cast("time", "timetz")?;
                datetime::compare_timetz(datetime::time_to_timetz(a, cx), (b, west))
            }
            (M::Timestamp(_) | M::TimestampTz(..), M::Date(_))
            | (M::TimestampTz(..), M::Timestamp(_))
            | (M::TimeTz(..), M::Time(_)) => {
                return Ok(other.compare(self, zoned, cx)?.map(std::cmp::Ordering::reverse));
            }
            _ => return Ok(None),
        }))
    }
}
