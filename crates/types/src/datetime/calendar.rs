//! The proleptic Gregorian calendar: days to year, month, day and back, ISO weeks.
//! Years are astronomical: 0 is 1 BC.

use super::{EPOCH_JULIAN, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SEC};

/// A point of the calendar and the clock, field by field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Civil {
    /// Astronomical year (0 is 1 BC).
    pub year: i32,
    /// Month, 1 to 12.
    pub month: i32,
    /// Day of the month, from 1.
    pub day: i32,
    /// Hour.
    pub hour: i32,
    /// Minute.
    pub minute: i32,
    /// Second.
    pub second: i32,
    /// Microsecond.
    pub micro: i32,
}

impl Civil {
    /// The fields of a timestamp; `-infinity` has none.
    pub fn of(timestamp: i64) -> Civil {
        debug_assert!(timestamp != i64::MIN);
        let (year, month, day) = civil_from_days(timestamp.div_euclid(MICROS_PER_DAY));
        Civil { year, month, day, ..Civil::of_time(timestamp.rem_euclid(MICROS_PER_DAY)) }
    }

    /// The clock fields of microseconds since midnight; the date is left 0.
    pub fn of_time(micros: i64) -> Civil {
        let seconds = micros / MICROS_PER_SEC;
        Civil {
            year: 0,
            month: 0,
            day: 0,
            hour: (seconds / 3600) as i32,
            minute: (seconds / 60 % 60) as i32,
            second: (seconds % 60) as i32,
            micro: (micros % MICROS_PER_SEC) as i32,
        }
    }

    /// Microseconds since midnight.
    pub fn time_micros(&self) -> i64 {
        i64::from(self.hour) * MICROS_PER_HOUR
            + i64::from(self.minute) * MICROS_PER_MINUTE
            + i64::from(self.second) * MICROS_PER_SEC
            + i64::from(self.micro)
    }

    /// Days since 2000-01-01.
    pub fn days(&self) -> i64 {
        days_from_civil(self.year, self.month, self.day)
    }

    /// Microseconds since 2000-01-01; `None` beyond the range of timestamps.
    pub fn timestamp(&self) -> Option<i64> {
        if !valid_julian(self.year, self.month) {
            return None;
        }
        let t = self.days().checked_mul(MICROS_PER_DAY)?.checked_add(self.time_micros())?;
        super::in_range(t).then_some(t)
    }
}

/// Days since 2000-01-01. The month is 1 to 12; the day may lie outside of the month.
pub fn days_from_civil(year: i32, month: i32, day: i32) -> i64 {
    // Years from March, so that the leap day is the last of its year.
    let y = i64::from(year) - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let shifted = i64::from((month + 9) % 12);
    let day_of_year = (153 * shifted + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 730_425
}

/// Year, month and day of days since 2000-01-01.
pub fn civil_from_days(days: i64) -> (i32, i32, i32) {
    let z = days + 730_425;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as i32, month as i32, day as i32)
}

/// Is the month one that dates can be in at all (4714-11 BC to 5874898-05)?
pub(crate) fn valid_julian(year: i32, month: i32) -> bool {
    (year > -4713 || (year == -4713 && month >= 11)) && (year < 5_874_898 || (year == 5_874_898 && month < 6))
}

/// The Julian day.
pub(crate) fn julian(year: i32, month: i32, day: i32) -> i64 {
    days_from_civil(year, month, day) + EPOCH_JULIAN
}

/// Year, month and day of a Julian day.
pub(crate) fn from_julian(julian: i64) -> (i32, i32, i32) {
    civil_from_days(julian - EPOCH_JULIAN)
}

/// Day of the week of days since 2000-01-01 (a Saturday); Sunday is 0.
pub(crate) fn weekday(days: i64) -> i32 {
    (days + 6).rem_euclid(7) as i32
}

/// Leap year?
pub(crate) fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Length of a month.
pub(crate) fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        2 => 28 + i32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// ISO year and week of days since 2000-01-01.
pub(crate) fn iso_week(days: i64) -> (i32, i32) {
    // The week belongs to the year that its Thursday is in.
    let thursday = days - (days + 5).rem_euclid(7) + 3;
    let (year, _, _) = civil_from_days(thursday);
    let week = (thursday - days_from_civil(year, 1, 1)) / 7 + 1;
    (year, week as i32)
}

/// Day of the year, from 1.
pub(crate) fn day_of_year(c: &Civil) -> i32 {
    (c.days() - days_from_civil(c.year, 1, 1) + 1) as i32
}
