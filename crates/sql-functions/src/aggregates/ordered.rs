//! Aggregates over sorted values: percentiles, the most frequent value, and the place that a row would have.
//!
//! Invariant: rows come in the order of WITHIN GROUP; direct arguments are given before the first of them.

use std::cmp::Ordering;
use std::sync::Arc;

use base::work::{self, Count};
use base::{Error, Oid, Result, SqlState};
use types::{Array, Datum, interval, room};

use super::super::entry::mismatch;
use super::super::{Accumulator, EvalContext, SortedBy};

/// What is asked of the sorted values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Discrete,
    Continuous,
    Mode,
}

struct Sorted {
    values: Vec<Datum>,
    direct: Option<Datum>,
    ty: Oid,
    answer: Answer,
}

impl Drop for Sorted {
    fn drop(&mut self) {
        work::discard(&mut self.values);
    }
}

fn out_of_range(p: f64) -> Error {
    let message = format!("percentile value {p} is not between 0 and 1");
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

impl Sorted {
    /// The value at a fraction of the way.
    fn percentile(&self, p: f64) -> Result<Datum> {
        if !(0.0..=1.0).contains(&p) {
            return Err(out_of_range(p));
        }
        let count = self.values.len();
        if count == 0 {
            return Ok(Datum::Null);
        }
        if self.answer == Answer::Discrete {
            let place = ((p * count as f64).ceil() as usize).max(1);
            return Ok(self.values[place - 1].clone());
        }
        let place = p * (count - 1) as f64;
        let (low, high) = (place.floor(), place.ceil());
        let (first, second) = (&self.values[low as usize], &self.values[high as usize]);
        if low == high {
            return Ok(first.clone());
        }
        between(first, second, place - low)
    }

    /// The most frequent value; of several the first.
    fn mode(&self) -> Datum {
        let mut best: (usize, Option<&Datum>) = (0, None);
        let mut run = 0;
        for (i, value) in self.values.iter().counted(8).enumerate() {
            let same = i > 0 && types::compare_as(self.ty, &self.values[i - 1].as_ref(), &value.as_ref()).is_eq();
            run = if same { run + 1 } else { 1 };
            if run > best.0 {
                best = (run, Some(&self.values[i + 1 - run]));
            }
        }
        best.1.cloned().unwrap_or_default()
    }
}

fn between(low: &Datum, high: &Datum, part: f64) -> Result<Datum> {
    match (low, high) {
        (Datum::Float8(low), Datum::Float8(high)) => Ok(Datum::Float8(low + part * (high - low))),
        (Datum::Interval(low), Datum::Interval(high)) => {
            let difference = interval::multiply(interval::subtract(*high, *low)?, part)?;
            Ok(Datum::Interval(interval::add(difference, *low)?))
        }
        _ => Err(mismatch("percentile_cont")),
    }
}

impl Accumulator for Sorted {
    fn direct(&mut self, values: &[Datum], _: &[SortedBy]) {
        self.direct = values.first().cloned();
    }

    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        if let Some(value) = args.first().filter(|v| !v.is_null()) {
            room::reserve(&mut self.values, 1);
            self.values.push(value.clone());
        }
        Ok(())
    }

    fn add_sorted(&mut self, _: &dyn EvalContext, mut values: Vec<Datum>) -> Result<()> {
        // NULLs are all at one end.
        values.retain(|value| {
            work::beat(1);
            !value.is_null()
        });
        self.values = values;
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        if self.answer == Answer::Mode {
            return Ok(self.mode());
        }
        match &self.direct {
            Some(Datum::Float8(p)) => self.percentile(*p),
            Some(Datum::Array(wanted)) => {
                if wanted.values.is_empty() {
                    return Ok(Datum::Array(Arc::new(Array {
                        element: self.ty,
                        dims: Vec::new(),
                        values: Vec::new(),
                    })));
                }
                let mut values = Vec::with_capacity(wanted.values.len());
                for p in wanted.values.iter().counted(16) {
                    values.push(match p {
                        Datum::Float8(p) => self.percentile(*p)?,
                        _ => Datum::Null,
                    });
                }
                if self.values.is_empty() {
                    return Ok(Datum::Null);
                }
                Ok(Datum::Array(Arc::new(Array { element: self.ty, dims: wanted.dims.clone(), values })))
            }
            _ => Ok(Datum::Null),
        }
    }

    fn memory(&self) -> usize {
        64 + self.values.capacity() * size_of::<Datum>()
    }
}

fn sorted(types: &[Oid], answer: Answer) -> Box<dyn Accumulator> {
    let ty = types.last().copied().unwrap_or_default();
    Box::new(Sorted { values: Vec::new(), direct: None, ty, answer })
}

pub(super) fn percentile_disc(types: &[Oid]) -> Box<dyn Accumulator> {
    sorted(types, Answer::Discrete)
}

pub(super) fn percentile_cont(types: &[Oid]) -> Box<dyn Accumulator> {
    sorted(types, Answer::Continuous)
}

pub(super) fn mode(types: &[Oid]) -> Box<dyn Accumulator> {
    sorted(types, Answer::Mode)
}

/// What is asked of a row that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AbsentRow {
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

struct Hypothetical {
    row: Vec<Datum>,
    order: Vec<SortedBy>,
    /// Rows, those before the row, different ones before it, those not after it.
    count: u64,
    before: u64,
    different: u64,
    up_to: u64,
    last: Vec<Datum>,
    place: AbsentRow,
}

fn compare(order: &[SortedBy], a: &[Datum], b: &[Datum]) -> Ordering {
    for (by, (x, y)) in order.iter().zip(a.iter().zip(b)) {
        let order = match (x.is_null(), y.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if by.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if by.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let order = types::compare_as(by.ty, &x.as_ref(), &y.as_ref());
                if by.descending { order.reverse() } else { order }
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

impl Accumulator for Hypothetical {
    fn direct(&mut self, values: &[Datum], order: &[SortedBy]) {
        self.row = values.to_vec();
        self.order = order.to_vec();
    }

    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        self.count += 1;
        let order = compare(&self.order, args, &self.row);
        if order.is_lt() {
            self.before += 1;
            if self.before == 1 || compare(&self.order, args, &self.last).is_ne() {
                self.different += 1;
                self.last = args.to_vec();
            }
        }
        if order.is_le() {
            self.up_to += 1;
        }
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        Ok(match self.place {
            AbsentRow::Rank => Datum::Int8(self.before as i64 + 1),
            AbsentRow::DenseRank => Datum::Int8(self.different as i64 + 1),
            AbsentRow::PercentRank if self.count == 0 => Datum::Float8(0.0),
            AbsentRow::PercentRank => Datum::Float8(self.before as f64 / self.count as f64),
            AbsentRow::CumeDist => Datum::Float8((self.up_to + 1) as f64 / (self.count + 1) as f64),
        })
    }
}

fn hypothetical(place: AbsentRow) -> Box<dyn Accumulator> {
    Box::new(Hypothetical {
        row: Vec::new(),
        order: Vec::new(),
        count: 0,
        before: 0,
        different: 0,
        up_to: 0,
        last: Vec::new(),
        place,
    })
}

pub(super) fn rank(_: &[Oid]) -> Box<dyn Accumulator> {
    hypothetical(AbsentRow::Rank)
}

pub(super) fn dense_rank(_: &[Oid]) -> Box<dyn Accumulator> {
    hypothetical(AbsentRow::DenseRank)
}

pub(super) fn percent_rank(_: &[Oid]) -> Box<dyn Accumulator> {
    hypothetical(AbsentRow::PercentRank)
}

pub(super) fn cume_dist(_: &[Oid]) -> Box<dyn Accumulator> {
    hypothetical(AbsentRow::CumeDist)
}
