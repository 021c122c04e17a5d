//! `generate_series`

use std::cmp::Ordering;

use base::{Error, Result, SqlState};
use types::{Datum, Interval, Numeric, TimeZone, datetime, interval};

use super::super::entry::mismatch;
use super::super::{EvalContext, SetRows};
use super::column;

fn invalid(message: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn zero_step() -> Error {
    invalid("step size cannot equal zero")
}

/// Whether a value is still within a series that runs in the direction of `step`.
fn within(order: Ordering, ascending: bool) -> bool {
    if ascending { order != Ordering::Greater } else { order != Ordering::Less }
}

/// Whole numbers in 64 bits; a series ends where the type does.
fn whole(start: i64, stop: i64, step: i64) -> Result<impl Iterator<Item = i64> + Send> {
    if step == 0 {
        return Err(zero_step());
    }
    let mut next = Some(start);
    Ok(std::iter::from_fn(move || {
        let value = next.filter(|v| within(v.cmp(&stop), step > 0))?;
        next = value.checked_add(step);
        Some(value)
    }))
}

pub(super) fn integers(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let (start, stop, step) = match *args {
        [Datum::Int4(start), Datum::Int4(stop)] => (start, stop, 1),
        [Datum::Int4(start), Datum::Int4(stop), Datum::Int4(step)] => (start, stop, step),
        _ => return Err(mismatch("generate_series")),
    };
    column(whole(start.into(), stop.into(), step.into())?.map(|v| Datum::Int4(v as i32)))
}

pub(super) fn bigints(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let (start, stop, step) = match *args {
        [Datum::Int8(start), Datum::Int8(stop)] => (start, stop, 1),
        [Datum::Int8(start), Datum::Int8(stop), Datum::Int8(step)] => (start, stop, step),
        _ => return Err(mismatch("generate_series")),
    };
    column(whole(start, stop, step)?.map(Datum::Int8))
}

fn finite<'a>(value: &'a Datum, what: &str) -> Result<&'a Numeric> {
    match value {
        Datum::Numeric(n) if n.is_nan() => Err(invalid(&format!("{what} cannot be NaN"))),
        Datum::Numeric(n) if !n.is_finite() => Err(invalid(&format!("{what} cannot be infinity"))),
        Datum::Numeric(n) => Ok(n),
        _ => Err(mismatch("generate_series")),
    }
}

pub(super) fn numerics(_: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let [start, stop, ..] = args else { return Err(mismatch("generate_series")) };
    let (start, stop) = (finite(start, "start value")?.clone(), finite(stop, "stop value")?.clone());
    let step = match args.get(2) {
        Some(step) => finite(step, "step size")?.clone(),
        None => Numeric::new(1, 0),
    };
    let ascending = match step.signum() {
        0 => return Err(zero_step()),
        sign => sign > 0,
    };
    let mut next = Some(Ok(start));
    Ok(Box::new(std::iter::from_fn(move || {
        let value = match next.take()? {
            Ok(value) => value,
            Err(error) => return Some(Err(error)),
        };
        if !within(value.cmp(&stop), ascending) {
            return None;
        }
        next = Some(value.add(&step));
        Some(Ok(vec![Datum::Numeric(value)]))
    })))
}

/// A series of instants; `zone` is given for `timestamptz`, whose days follow the zone's.
struct Instants {
    next: Option<Result<i64>>,
    stop: i64,
    step: Interval,
    ascending: bool,
    zone: Option<TimeZone>,
}

impl Iterator for Instants {
    type Item = Result<Vec<Datum>>;

    fn next(&mut self) -> Option<Result<Vec<Datum>>> {
        let value = match self.next.take()? {
            Ok(value) => value,
            Err(error) => return Some(Err(error)),
        };
        if !within(value.cmp(&self.stop), self.ascending) {
            return None;
        }
        let (next, datum) = match &self.zone {
            Some(zone) => (datetime::timestamptz_plus_interval(value, &self.step, zone), Datum::TimestampTz(value)),
            None => (datetime::timestamp_plus_interval(value, &self.step), Datum::Timestamp(value)),
        };
        self.next = Some(next);
        Some(Ok(vec![datum]))
    }
}

pub(super) fn timestamps(cx: &dyn EvalContext, args: &[Datum]) -> Result<SetRows> {
    let (start, stop, step, zone) = match *args {
        [Datum::Timestamp(start), Datum::Timestamp(stop), Datum::Interval(step)] => (start, stop, step, None),
        [Datum::TimestampTz(start), Datum::TimestampTz(stop), Datum::Interval(step)] => {
            (start, stop, step, Some(cx.settings().timezone.clone()))
        }
        _ => return Err(mismatch("generate_series")),
    };
    let ascending = match interval::compare(&step, &Interval::default()) {
        Ordering::Equal => return Err(zero_step()),
        order => order == Ordering::Greater,
    };
    Ok(Box::new(Instants { next: Some(Ok(start)), stop, step, ascending, zone }))
}
