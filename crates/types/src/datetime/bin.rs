//! `date_bin`.

use super::{MICROS_PER_DAY, interval_out_of_range, is_infinite, overflow, timestamp_out_of_range};
use crate::interval::Interval;
use base::{Error, Result};

/// `date_bin(stride, t, origin)`, for `timestamp` and `timestamptz` alike.
pub fn date_bin(stride: &Interval, t: i64, origin: i64) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    if is_infinite(origin) {
        return Err(overflow("origin out of range"));
    }
    if stride.months != 0 {
        return Err(Error::unsupported("timestamps cannot be binned into intervals containing months or years"));
    }
    let days = i64::from(stride.days).checked_mul(MICROS_PER_DAY);
    let stride = days.and_then(|d| d.checked_add(stride.micros)).ok_or_else(interval_out_of_range)?;
    if stride <= 0 {
        return Err(overflow("stride must be greater than zero"));
    }
    let since = t.checked_sub(origin).ok_or_else(interval_out_of_range)?;
    let start = t - since % stride;
    if since % stride < 0 {
        return start.checked_sub(stride).filter(|&t| super::in_range(t)).ok_or_else(timestamp_out_of_range);
    }
    Ok(start)
}
