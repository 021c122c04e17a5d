//! Functions that wait.

use base::Result;
use types::{Datum, datetime};

use super::super::entry::mismatch;
use super::{EvalContext, Suspension};

fn suspend(cx: &dyn EvalContext, micros: i64) -> Result<Datum> {
    if micros > 0 {
        cx.suspend(Suspension::Sleep(micros))?;
    }
    Ok(Datum::text(""))
}

pub(super) fn sleep(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Float8(seconds)] = args else { return Err(mismatch("pg_sleep")) };
    // The cast saturates, and NaN does not wait.
    suspend(cx, (seconds * 1e6).ceil() as i64)
}

pub(super) fn sleep_for(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::Interval(interval)] = args else { return Err(mismatch("pg_sleep")) };
    let now = cx.clock_timestamp();
    let end = datetime::timestamptz_plus_interval(now, interval, &cx.settings().timezone)?;
    suspend(cx, end.saturating_sub(now))
}

/// What the command sees is kept before its row leaves.
pub(super) fn export_snapshot(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    let name = cx.next_snapshot()?;
    cx.suspend(Suspension::Export(name.clone()))?;
    Ok(Datum::from(name))
}

pub(super) fn sleep_until(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [Datum::TimestampTz(end)] = args else { return Err(mismatch("pg_sleep")) };
    suspend(cx, end.saturating_sub(cx.clock_timestamp()))
}
