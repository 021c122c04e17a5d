//! What time it is, and how people write it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Since 1970.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Year, month and day of a day since 1970, after Howard Hinnant: years are counted from 1 March, in eras of 400.
pub fn civil(days: u64) -> [u64; 3] {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    [era * 400 + year_of_era + u64::from(month <= 2), month, day]
}

/// A time since 1970 to the minute, in UTC.
pub fn date(seconds: u64) -> String {
    let ([year, month, day], of_day) = (civil(seconds / 86_400), seconds % 86_400);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}", of_day / 3600, of_day / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_civil() {
        assert_eq!(civil(0), [1970, 1, 1]);
        assert_eq!(civil(11_016), [2000, 2, 29]);
        assert_eq!(date(1_798_761_599), "2026-12-31 23:59");
        assert_eq!(date(1_795_299_283), "2026-11-21 22:14");
    }
}
