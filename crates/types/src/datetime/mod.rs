//! Dates, times and intervals: their text forms and arithmetic.

use base::{Error, Result};

use crate::{InputContext, Interval, OutputSettings};

fn none<T>() -> Result<T> {
    Err(Error::unsupported("dates and times are not supported"))
}

/// Parses `date`.
pub fn parse_date(_: &str, _: &InputContext<'_>) -> Result<i32> {
    none()
}
/// Parses `time`.
pub fn parse_time(_: &str, _: &InputContext<'_>) -> Result<i64> {
    none()
}
/// Parses `timetz`.
pub fn parse_timetz(_: &str, _: &InputContext<'_>) -> Result<(i64, i32)> {
    none()
}
/// Parses `timestamp`.
pub fn parse_timestamp(_: &str, _: &InputContext<'_>) -> Result<i64> {
    none()
}
/// Parses `timestamptz`.
pub fn parse_timestamptz(_: &str, _: &InputContext<'_>) -> Result<i64> {
    none()
}
/// Parses `interval`.
pub fn parse_interval(_: &str, _: i32, _: &InputContext<'_>) -> Result<Interval> {
    none()
}
/// Writes `date`.
pub fn write_date(_: i32, _: &OutputSettings, _: &mut Vec<u8>) {}
/// Writes `time`.
pub fn write_time(_: i64, _: &mut Vec<u8>) {}
/// Writes `timetz`.
pub fn write_timetz(_: i64, _: i32, _: &mut Vec<u8>) {}
/// Writes `timestamp`.
pub fn write_timestamp(_: i64, _: &OutputSettings, _: &mut Vec<u8>) {}
/// Writes `timestamptz`.
pub fn write_timestamptz(_: i64, _: &OutputSettings, _: &mut Vec<u8>) {}
/// Writes `interval`.
pub fn write_interval(_: Interval, _: &OutputSettings, _: &mut Vec<u8>) {}
/// Fits an interval to its modifier.
pub fn limit_interval(v: Interval, _: i32) -> Interval {
    v
}
