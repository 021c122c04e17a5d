//! RANGE with an offset: which values are within a distance of another (PostgreSQL's `in_range` functions).

use std::cmp::Ordering;

use base::{Error, Result, SqlState};
use sql_functions::{EvalContext, float};
use types::{Datum, Interval, Numeric, datetime, interval};

/// The offset of a RANGE frame; not negative.
pub(super) enum Offset {
    Whole(i64),
    Float(f64),
    Numeric(Numeric),
    Span(Interval),
}

fn is_nan(value: &Datum) -> bool {
    match value {
        Datum::Numeric(n) => n.is_nan(),
        value => float(value).is_some_and(f64::is_nan),
    }
}

/// Values up to a limit, or from it on.
pub(super) struct Reach {
    limit: Limit,
    upper: bool,
}

/// The value that is just within reach.
enum Limit {
    Whole(i128),
    Float(f64),
    Numeric(Numeric),
    Span(Interval),
    /// Everything is within reach.
    Everything,
}

impl Offset {
    /// An offset of this value.
    ///
    /// # Errors
    /// 22013 if it is negative.
    pub fn new(value: Datum) -> Result<Offset> {
        let offset = match &value {
            Datum::Numeric(n) => Offset::Numeric(n.clone()),
            Datum::Interval(span) => Offset::Span(*span),
            value => match (value.integer(), float(value)) {
                (Some(n), _) => Offset::Whole(n),
                (_, Some(f)) => Offset::Float(f),
                _ => return Err(Error::internal("a RANGE offset of a type that has none")),
            },
        };
        let wrong = match &offset {
            Offset::Whole(n) => *n < 0,
            Offset::Float(f) => f.is_nan() || *f < 0.0,
            Offset::Numeric(n) => n.is_nan() || n.signum() < 0,
            Offset::Span(span) => interval::compare(span, &Interval::default()) == Ordering::Less,
        };
        if wrong {
            let message = "invalid preceding or following size in window function";
            return Err(Error::new(SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message));
        }
        Ok(offset)
    }

    /// What is within reach of `base` minus (`sub`) or plus the offset: values up to there (`upper`), or from there on.
    pub fn reach(&self, base: &Datum, sub: bool, upper: bool, cx: &dyn EvalContext) -> Result<Reach> {
        let limit = match self {
            Offset::Whole(n) => {
                let (base, n) = (i128::from(base.integer().ok_or_else(mismatch)?), i128::from(*n));
                Limit::Whole(if sub { base - n } else { base + n })
            }
            Offset::Float(f) => {
                let base = float(base).ok_or_else(mismatch)?;
                if f.is_infinite() && base.is_infinite() && (base > 0.0) == sub {
                    Limit::Everything
                } else {
                    Limit::Float(if sub { base - f } else { base + f })
                }
            }
            Offset::Numeric(n) => {
                let Datum::Numeric(base) = base else { return Err(mismatch()) };
                let infinite = |n: &Numeric| !n.is_finite() && !n.is_nan();
                if infinite(n) && infinite(base) && (base.signum() > 0) == sub {
                    Limit::Everything
                } else {
                    Limit::Numeric(if sub { base.sub(n)? } else { base.add(n)? })
                }
            }
            Offset::Span(span) => self.span_limit(base, span, sub, cx)?,
        };
        Ok(Reach { limit, upper })
    }

    fn span_limit(&self, base: &Datum, span: &Interval, sub: bool, cx: &dyn EvalContext) -> Result<Limit> {
        Ok(match base {
            Datum::Date(date) => Limit::Whole(i128::from(match sub {
                true => datetime::date_minus_interval(*date, span)?,
                false => datetime::date_plus_interval(*date, span)?,
            })),
            Datum::Timestamp(t) => Limit::Whole(i128::from(match sub {
                true => datetime::timestamp_minus_interval(*t, span)?,
                false => datetime::timestamp_plus_interval(*t, span)?,
            })),
            Datum::TimestampTz(t) => {
                let zone = &cx.settings().timezone;
                Limit::Whole(i128::from(match sub {
                    true => datetime::timestamptz_minus_interval(*t, span, zone)?,
                    false => datetime::timestamptz_plus_interval(*t, span, zone)?,
                }))
            }
            Datum::Time(time) => {
                let (time, micros) = (i128::from(*time), i128::from(span.micros));
                Limit::Whole(if sub { time - micros } else { time + micros })
            }
            Datum::Interval(base) => {
                Limit::Span(if sub { interval::subtract(*base, *span)? } else { interval::add(*base, *span)? })
            }
            _ => return Err(mismatch()),
        })
    }
}

impl Reach {
    /// Whether a value is within reach.
    pub fn contains(&self, value: &Datum) -> bool {
        let order = match &self.limit {
            // NaN is beyond infinity.
            Limit::Everything => return !self.upper || !is_nan(value),
            Limit::Whole(limit) => match value {
                Datum::Date(date) => {
                    datetime::date_to_timestamp(*date).map_or(Ordering::Equal, |t| i128::from(t).cmp(limit))
                }
                Datum::Timestamp(t) | Datum::TimestampTz(t) | Datum::Time(t) => i128::from(*t).cmp(limit),
                value => value.integer().map_or(Ordering::Equal, |v| i128::from(v).cmp(limit)),
            },
            // NaN is greater than all other numbers, and equal to itself.
            Limit::Float(limit) => float(value).map_or(Ordering::Equal, |v| match (v.is_nan(), limit.is_nan()) {
                (false, false) => v.partial_cmp(limit).unwrap_or(Ordering::Equal),
                (a, b) => a.cmp(&b),
            }),
            Limit::Numeric(limit) => match value {
                Datum::Numeric(value) => value.cmp(limit),
                _ => Ordering::Equal,
            },
            Limit::Span(limit) => match value {
                Datum::Interval(value) => interval::compare(value, limit),
                _ => Ordering::Equal,
            },
        };
        if self.upper { order != Ordering::Greater } else { order != Ordering::Less }
    }
}

#[cold]
fn mismatch() -> Error {
    Error::internal("a RANGE offset of another type than ORDER BY")
}
