//! `(start, end) OVERLAPS (start, end)`, where an end may be a length.

use base::Result;
use types::{Datum, datetime};

use super::super::EvalContext;
use super::super::entry::mismatch;

/// Two numbers that order as the value does: the second only tells `timetz` values of one instant apart.
type Key = (i64, i32);

fn key(value: &Datum) -> Result<Option<Key>> {
    Ok(Some(match *value {
        Datum::Null => return Ok(None),
        Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => (v, 0),
        Datum::TimeTz(v, west) => (v + i64::from(west) * datetime::MICROS_PER_SEC, west),
        _ => return Err(mismatch("overlaps")),
    }))
}

/// Both ends of a period.
fn period(cx: &dyn EvalContext, start: &Datum, end: &Datum) -> Result<(Option<Key>, Option<Key>)> {
    let Datum::Interval(span) = end else { return Ok((key(start)?, key(end)?)) };
    let end = match *start {
        Datum::Time(v) => Datum::Time(datetime::time_plus_interval(v, span)),
        Datum::Timestamp(v) => Datum::Timestamp(datetime::timestamp_plus_interval(v, span)?),
        Datum::TimestampTz(v) => {
            Datum::TimestampTz(datetime::timestamptz_plus_interval(v, span, &cx.settings().timezone)?)
        }
        _ => Datum::Null,
    };
    Ok((key(start)?, key(&end)?))
}

pub(super) fn overlaps(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [a1, a2, b1, b2] = args else { return Err(mismatch("overlaps")) };
    Ok(datetime::overlaps(period(cx, a1, a2)?, period(cx, b1, b2)?).into())
}
