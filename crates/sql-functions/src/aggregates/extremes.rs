//! `min` and `max`.

use std::cmp::Ordering;

use base::{Oid, Result};
use types::oid::BPCHAR;
use types::{Datum, DatumRef, compare_as};

use super::super::entry::mismatch;
use super::super::{Accumulator, EvalContext};
use super::other_of;

/// The extreme value so far; of equal values the last, but the first of `char(n)`, as PostgreSQL has it.
struct Extreme {
    best: Datum,
    ty: Oid,
    /// How a value must compare with the best one to take its place.
    wanted: Ordering,
}

impl Extreme {
    #[inline]
    fn take(&mut self, value: &Datum) {
        let order = match (value, &self.best) {
            (_, Datum::Null) => self.wanted,
            (Datum::Int4(a), Datum::Int4(b)) => a.cmp(b),
            (Datum::Int8(a), Datum::Int8(b)) => a.cmp(b),
            (a, b) => compare_as(self.ty, &a.as_ref(), &b.as_ref()),
        };
        if order == self.wanted || (order == Ordering::Equal && self.ty != BPCHAR) {
            self.best.clone_from(value);
        }
    }
}

impl Accumulator for Extreme {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        self.take(args.first().ok_or_else(|| mismatch("min"))?);
        Ok(())
    }

    fn combine(&mut self, other: &mut dyn Accumulator) -> Result<()> {
        let other = other_of::<Extreme>(other)?;
        if !other.best.is_null() {
            self.take(&other.best);
        }
        Ok(())
    }

    fn add_stored(&mut self, cx: &dyn EvalContext, value: DatumRef<'_>) -> Result<()> {
        let order = match self.best {
            Datum::Null => self.wanted,
            ref best => compare_as(self.ty, &value, &best.as_ref()),
        };
        if order == self.wanted || order == Ordering::Equal { self.add(cx, &[value.to_owned()]) } else { Ok(()) }
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        Ok(self.best.clone())
    }
}

fn extreme(types: &[Oid], wanted: Ordering) -> Box<dyn Accumulator> {
    Box::new(Extreme { best: Datum::Null, ty: types.first().copied().unwrap_or_default(), wanted })
}

pub(super) fn min(types: &[Oid]) -> Box<dyn Accumulator> {
    extreme(types, Ordering::Less)
}

pub(super) fn max(types: &[Oid]) -> Box<dyn Accumulator> {
    extreme(types, Ordering::Greater)
}
