//! Aggregates.
//!
//! Responsible for: their table, counting, sums, averages, logical and bitwise aggregates; the others are in submodules.
//! Invariant: adding a row to `count`, a sum of integers, `min` or `max` allocates nothing.

mod collect;
mod extremes;
mod ordered;
mod pairs;
mod statistics;

use std::any::Any;

use base::{Error, Oid, Result, SqlState};
use types::oid::*;
use types::{Datum, DatumRef, Interval, Numeric, NumericSum, interval};

use super::entry::{agg, mismatch};
use super::{Accumulator, Aggregate, EvalContext};

/// The table.
#[rustfmt::skip]
pub(super) static AGGREGATES: &[Aggregate] = &[
    agg(2803, "count", &[], INT8, count),
    agg(2147, "count", &[ANY], INT8, count),
    agg(2109, "sum", &[INT2], INT8, sum_int),
    agg(2108, "sum", &[INT4], INT8, sum_int),
    agg(2107, "sum", &[INT8], NUMERIC, sum_int8),
    agg(2114, "sum", &[NUMERIC], NUMERIC, sum_numeric),
    agg(2110, "sum", &[FLOAT4], FLOAT4, sum_float),
    agg(2111, "sum", &[FLOAT8], FLOAT8, sum_float),
    agg(2113, "sum", &[INTERVAL], INTERVAL, sum_interval),
    agg(2102, "avg", &[INT2], NUMERIC, avg_int).average_of(2109),
    agg(2101, "avg", &[INT4], NUMERIC, avg_int).average_of(2108),
    agg(2100, "avg", &[INT8], NUMERIC, avg_int).average_of(2107),
    agg(2103, "avg", &[NUMERIC], NUMERIC, avg_numeric).average_of(2114),
    agg(2104, "avg", &[FLOAT4], FLOAT8, statistics::avg_float),
    agg(2105, "avg", &[FLOAT8], FLOAT8, statistics::avg_float),
    agg(2106, "avg", &[INTERVAL], INTERVAL, avg_interval).average_of(2113),
    agg(3527, "min", &[ANYENUM], ANYENUM, extremes::min),
    agg(2051, "min", &[ANYARRAY], ANYARRAY, extremes::min),
    agg(2131, "min", &[INT8], INT8, extremes::min),
    agg(2132, "min", &[INT4], INT4, extremes::min),
    agg(2133, "min", &[INT2], INT2, extremes::min),
    agg(2134, "min", &[OID], OID, extremes::min),
    agg(2135, "min", &[FLOAT4], FLOAT4, extremes::min),
    agg(2136, "min", &[FLOAT8], FLOAT8, extremes::min),
    agg(2138, "min", &[DATE], DATE, extremes::min),
    agg(2139, "min", &[TIME], TIME, extremes::min),
    agg(2140, "min", &[TIMETZ], TIMETZ, extremes::min),
    agg(2142, "min", &[TIMESTAMP], TIMESTAMP, extremes::min),
    agg(2143, "min", &[TIMESTAMPTZ], TIMESTAMPTZ, extremes::min),
    agg(2144, "min", &[INTERVAL], INTERVAL, extremes::min),
    agg(2145, "min", &[TEXT], TEXT, extremes::min),
    agg(2146, "min", &[NUMERIC], NUMERIC, extremes::min),
    agg(2245, "min", &[BPCHAR], BPCHAR, extremes::min),
    agg(3565, "min", &[INET], INET, extremes::min),
    agg(2798, "min", &[TID], TID, extremes::min),
    agg(5100, "min", &[XID8], XID8, extremes::min),
    agg(3526, "max", &[ANYENUM], ANYENUM, extremes::max),
    agg(2050, "max", &[ANYARRAY], ANYARRAY, extremes::max),
    agg(2115, "max", &[INT8], INT8, extremes::max),
    agg(2116, "max", &[INT4], INT4, extremes::max),
    agg(2117, "max", &[INT2], INT2, extremes::max),
    agg(2118, "max", &[OID], OID, extremes::max),
    agg(2119, "max", &[FLOAT4], FLOAT4, extremes::max),
    agg(2120, "max", &[FLOAT8], FLOAT8, extremes::max),
    agg(2122, "max", &[DATE], DATE, extremes::max),
    agg(2123, "max", &[TIME], TIME, extremes::max),
    agg(2124, "max", &[TIMETZ], TIMETZ, extremes::max),
    agg(2126, "max", &[TIMESTAMP], TIMESTAMP, extremes::max),
    agg(2127, "max", &[TIMESTAMPTZ], TIMESTAMPTZ, extremes::max),
    agg(2128, "max", &[INTERVAL], INTERVAL, extremes::max),
    agg(2129, "max", &[TEXT], TEXT, extremes::max),
    agg(2130, "max", &[NUMERIC], NUMERIC, extremes::max),
    agg(2244, "max", &[BPCHAR], BPCHAR, extremes::max),
    agg(3564, "max", &[INET], INET, extremes::max),
    agg(2797, "max", &[TID], TID, extremes::max),
    agg(5099, "max", &[XID8], XID8, extremes::max),
    agg(2517, "bool_and", &[BOOL], BOOL, all_of),
    agg(2519, "every", &[BOOL], BOOL, all_of),
    agg(2518, "bool_or", &[BOOL], BOOL, any_of),
    agg(2236, "bit_and", &[INT2], INT2, all_of),
    agg(2238, "bit_and", &[INT4], INT4, all_of),
    agg(2240, "bit_and", &[INT8], INT8, all_of),
    agg(2242, "bit_and", &[BIT], BIT, all_of),
    agg(2237, "bit_or", &[INT2], INT2, any_of),
    agg(2239, "bit_or", &[INT4], INT4, any_of),
    agg(2241, "bit_or", &[INT8], INT8, any_of),
    agg(2243, "bit_or", &[BIT], BIT, any_of),
    agg(6164, "bit_xor", &[INT2], INT2, odd_of),
    agg(6165, "bit_xor", &[INT4], INT4, odd_of),
    agg(6166, "bit_xor", &[INT8], INT8, odd_of),
    agg(6167, "bit_xor", &[BIT], BIT, odd_of),
    agg(3538, "string_agg", &[TEXT, TEXT], TEXT, collect::string_agg).listing(),
    agg(3545, "string_agg", &[BYTEA, BYTEA], BYTEA, collect::bytea_agg).listing(),
    agg(2335, "array_agg", &[ANYNONARRAY], ANYARRAY, collect::array_agg).listing(),
    agg(4053, "array_agg", &[ANYARRAY], ANYARRAY, collect::array_agg).listing(),
    agg(2818, "regr_count", &[FLOAT8, FLOAT8], INT8, pairs::regr_count),
    agg(2819, "regr_sxx", &[FLOAT8, FLOAT8], FLOAT8, pairs::regr_sxx),
    agg(2820, "regr_syy", &[FLOAT8, FLOAT8], FLOAT8, pairs::regr_syy),
    agg(2821, "regr_sxy", &[FLOAT8, FLOAT8], FLOAT8, pairs::regr_sxy),
    agg(2822, "regr_avgx", &[FLOAT8, FLOAT8], FLOAT8, pairs::regr_avgx),
    agg(2823, "regr_avgy", &[FLOAT8, FLOAT8], FLOAT8, pairs::regr_avgy),
    agg(2824, "regr_r2", &[FLOAT8, FLOAT8], FLOAT8, pairs::regr_r2),
    agg(2825, "regr_slope", &[FLOAT8, FLOAT8], FLOAT8, pairs::regr_slope),
    agg(2826, "regr_intercept", &[FLOAT8, FLOAT8], FLOAT8, pairs::regr_intercept),
    agg(2827, "covar_pop", &[FLOAT8, FLOAT8], FLOAT8, pairs::covar_pop),
    agg(2828, "covar_samp", &[FLOAT8, FLOAT8], FLOAT8, pairs::covar_samp),
    agg(2829, "corr", &[FLOAT8, FLOAT8], FLOAT8, pairs::corr),
    agg(2154, "stddev", &[INT8], NUMERIC, statistics::stddev_samp),
    agg(2155, "stddev", &[INT4], NUMERIC, statistics::stddev_samp),
    agg(2156, "stddev", &[INT2], NUMERIC, statistics::stddev_samp),
    agg(2157, "stddev", &[FLOAT4], FLOAT8, statistics::stddev_samp),
    agg(2158, "stddev", &[FLOAT8], FLOAT8, statistics::stddev_samp),
    agg(2159, "stddev", &[NUMERIC], NUMERIC, statistics::stddev_samp),
    agg(2712, "stddev_samp", &[INT8], NUMERIC, statistics::stddev_samp),
    agg(2713, "stddev_samp", &[INT4], NUMERIC, statistics::stddev_samp),
    agg(2714, "stddev_samp", &[INT2], NUMERIC, statistics::stddev_samp),
    agg(2715, "stddev_samp", &[FLOAT4], FLOAT8, statistics::stddev_samp),
    agg(2716, "stddev_samp", &[FLOAT8], FLOAT8, statistics::stddev_samp),
    agg(2717, "stddev_samp", &[NUMERIC], NUMERIC, statistics::stddev_samp),
    agg(2724, "stddev_pop", &[INT8], NUMERIC, statistics::stddev_pop),
    agg(2725, "stddev_pop", &[INT4], NUMERIC, statistics::stddev_pop),
    agg(2726, "stddev_pop", &[INT2], NUMERIC, statistics::stddev_pop),
    agg(2727, "stddev_pop", &[FLOAT4], FLOAT8, statistics::stddev_pop),
    agg(2728, "stddev_pop", &[FLOAT8], FLOAT8, statistics::stddev_pop),
    agg(2729, "stddev_pop", &[NUMERIC], NUMERIC, statistics::stddev_pop),
    agg(2148, "variance", &[INT8], NUMERIC, statistics::var_samp),
    agg(2149, "variance", &[INT4], NUMERIC, statistics::var_samp),
    agg(2150, "variance", &[INT2], NUMERIC, statistics::var_samp),
    agg(2151, "variance", &[FLOAT4], FLOAT8, statistics::var_samp),
    agg(2152, "variance", &[FLOAT8], FLOAT8, statistics::var_samp),
    agg(2153, "variance", &[NUMERIC], NUMERIC, statistics::var_samp),
    agg(2641, "var_samp", &[INT8], NUMERIC, statistics::var_samp),
    agg(2642, "var_samp", &[INT4], NUMERIC, statistics::var_samp),
    agg(2643, "var_samp", &[INT2], NUMERIC, statistics::var_samp),
    agg(2644, "var_samp", &[FLOAT4], FLOAT8, statistics::var_samp),
    agg(2645, "var_samp", &[FLOAT8], FLOAT8, statistics::var_samp),
    agg(2646, "var_samp", &[NUMERIC], NUMERIC, statistics::var_samp),
    agg(2718, "var_pop", &[INT8], NUMERIC, statistics::var_pop),
    agg(2719, "var_pop", &[INT4], NUMERIC, statistics::var_pop),
    agg(2720, "var_pop", &[INT2], NUMERIC, statistics::var_pop),
    agg(2721, "var_pop", &[FLOAT4], FLOAT8, statistics::var_pop),
    agg(2722, "var_pop", &[FLOAT8], FLOAT8, statistics::var_pop),
    agg(2723, "var_pop", &[NUMERIC], NUMERIC, statistics::var_pop),
    agg(3972, "percentile_disc", &[FLOAT8, ANYELEMENT], ANYELEMENT, ordered::percentile_disc).sorting(),
    agg(3978, "percentile_disc", &[FLOAT8_ARRAY, ANYELEMENT], ANYARRAY, ordered::percentile_disc).sorting(),
    agg(3974, "percentile_cont", &[FLOAT8, FLOAT8], FLOAT8, ordered::percentile_cont).sorting(),
    agg(3976, "percentile_cont", &[FLOAT8, INTERVAL], INTERVAL, ordered::percentile_cont).sorting(),
    agg(3980, "percentile_cont", &[FLOAT8_ARRAY, FLOAT8], FLOAT8_ARRAY, ordered::percentile_cont).sorting(),
    agg(3982, "percentile_cont", &[FLOAT8_ARRAY, INTERVAL], INTERVAL_ARRAY, ordered::percentile_cont).sorting(),
    agg(3984, "mode", &[ANYELEMENT], ANYELEMENT, ordered::mode).sorting(),
    agg(3175, "json_agg", &[ANYELEMENT], JSON, collect::json_agg).listing(),
    agg(3267, "jsonb_agg", &[ANYELEMENT], JSONB, collect::jsonb_agg).listing(),
    agg(3197, "json_object_agg", &[ANY, ANY], JSON, collect::json_object_agg).listing(),
    agg(3270, "jsonb_object_agg", &[ANY, ANY], JSONB, collect::jsonb_object_agg).listing(),
];

/// Hypothetical-set aggregates, of any number of arguments.
#[rustfmt::skip]
static HYPOTHETICAL: &[Aggregate] = &[
    agg(3986, "rank", &[], INT8, ordered::rank).sorting(),
    agg(3988, "percent_rank", &[], FLOAT8, ordered::percent_rank).sorting(),
    agg(3990, "cume_dist", &[], FLOAT8, ordered::cume_dist).sorting(),
    agg(3992, "dense_rank", &[], INT8, ordered::dense_rank).sorting(),
];

/// `GROUPING`: no aggregate, but computed where aggregates are, from the set that a group belongs to.
pub static GROUPING: Aggregate = agg(0, "grouping", &[ANY], INT4, count);

/// The hypothetical-set aggregate of a name.
pub fn hypothetical_named(name: &str) -> Option<&'static Aggregate> {
    HYPOTHETICAL.iter().find(|a| a.name == name)
}

/// A value of one of the types of floating point.
pub fn float(value: &Datum) -> Option<f64> {
    match value {
        Datum::Float4(v) => Some(f64::from(*v)),
        Datum::Float8(v) => Some(*v),
        _ => None,
    }
}

/// The other of two states that are combined.
fn other_of<T: Accumulator>(other: &mut dyn Accumulator) -> Result<&mut T> {
    let other: &mut dyn Any = other;
    other.downcast_mut().ok_or_else(|| Error::internal("states of different aggregates are combined"))
}

#[cold]
fn float_overflow() -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

struct Count(i64);

impl Accumulator for Count {
    fn add(&mut self, _: &dyn EvalContext, _: &[Datum]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn add_stored(&mut self, _: &dyn EvalContext, _: DatumRef<'_>) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn add_rows(&mut self, _: &dyn EvalContext, rows: usize) -> Result<()> {
        self.0 += rows as i64;
        Ok(())
    }

    fn combine(&mut self, other: &mut dyn Accumulator) -> Result<()> {
        self.0 += other_of::<Count>(other)?.0;
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        Ok(Datum::Int8(self.0))
    }

    fn remove(&mut self, _: &[Datum]) -> Result<bool> {
        self.0 -= 1;
        Ok(true)
    }
}

fn count(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(Count(0))
}

/// What is made of a sum and the number of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    SmallSum,
    Sum,
    Average,
}

/// Sums and averages of whole numbers: no number of rows overflows 128 bits.
struct WholeSum {
    sum: i128,
    count: i64,
    answer: Answer,
}

impl WholeSum {
    fn answered(&self, answer: Answer) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        match answer {
            Answer::SmallSum => i64::try_from(self.sum)
                .map(Datum::Int8)
                .map_err(|_| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")),
            Answer::Sum => Ok(Datum::Numeric(Numeric::from_i128(self.sum, 0))),
            Answer::Average => Ok(Datum::Numeric(Numeric::from_i128(self.sum, 0).div(&Numeric::new(self.count, 0))?)),
        }
    }
}

impl Accumulator for WholeSum {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let value = args.first().and_then(Datum::integer).ok_or_else(|| mismatch("sum"))?;
        self.sum += i128::from(value);
        self.count += 1;
        Ok(())
    }

    fn add_stored(&mut self, _: &dyn EvalContext, value: DatumRef<'_>) -> Result<()> {
        self.sum += i128::from(match value {
            DatumRef::Int4(v) => i64::from(v),
            DatumRef::Int8(v) => v,
            DatumRef::Int2(v) => i64::from(v),
            _ => return Err(mismatch("sum")),
        });
        self.count += 1;
        Ok(())
    }

    fn combine(&mut self, other: &mut dyn Accumulator) -> Result<()> {
        let other = other_of::<WholeSum>(other)?;
        self.sum += other.sum;
        self.count += other.count;
        Ok(())
    }

    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        let value = args.first().and_then(Datum::integer).ok_or_else(|| mismatch("sum"))?;
        self.sum -= i128::from(value);
        self.count -= 1;
        Ok(true)
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        self.answered(self.answer)
    }

    fn average(&mut self) -> Result<Datum> {
        self.answered(Answer::Average)
    }
}

fn sum_int(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(WholeSum { sum: 0, count: 0, answer: Answer::SmallSum })
}

fn sum_int8(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(WholeSum { sum: 0, count: 0, answer: Answer::Sum })
}

fn avg_int(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(WholeSum { sum: 0, count: 0, answer: Answer::Average })
}

struct DecimalSum {
    sum: NumericSum,
    count: i64,
    average: bool,
}

impl DecimalSum {
    fn answered(&self, average: bool) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let total = self.sum.total()?;
        Ok(Datum::Numeric(if average { total.div(&Numeric::new(self.count, 0))? } else { total }))
    }
}

impl Accumulator for DecimalSum {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let Some(Datum::Numeric(value)) = args.first() else { return Err(mismatch("sum")) };
        self.count += 1;
        self.sum.add(value)
    }

    fn add_stored(&mut self, _: &dyn EvalContext, value: DatumRef<'_>) -> Result<()> {
        let DatumRef::Numeric(value) = value else { return Err(mismatch("sum")) };
        self.count += 1;
        self.sum.add_ref(value)
    }

    fn combine(&mut self, other: &mut dyn Accumulator) -> Result<()> {
        let other = other_of::<DecimalSum>(other)?;
        self.count += other.count;
        self.sum.combine(&other.sum)
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        self.answered(self.average)
    }

    fn average(&mut self) -> Result<Datum> {
        self.answered(true)
    }
}

fn sum_numeric(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(DecimalSum { sum: NumericSum::ZERO, count: 0, average: false })
}

fn avg_numeric(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(DecimalSum { sum: NumericSum::ZERO, count: 0, average: true })
}

/// Sums in the precision of the argument, as `float4pl` and `float8pl` add.
enum FloatSum {
    Nothing,
    Single(f32),
    Double(f64),
}

impl FloatSum {
    fn take(&mut self, value: &Datum) -> Result<()> {
        *self = match (&*self, value) {
            (FloatSum::Nothing, Datum::Float4(v)) => FloatSum::Single(*v),
            (FloatSum::Nothing, Datum::Float8(v)) => FloatSum::Double(*v),
            (FloatSum::Single(sum), Datum::Float4(v)) => {
                if (sum + v).is_infinite() && !sum.is_infinite() && !v.is_infinite() {
                    return Err(float_overflow());
                }
                FloatSum::Single(sum + v)
            }
            (FloatSum::Double(sum), Datum::Float8(v)) => {
                if (sum + v).is_infinite() && !sum.is_infinite() && !v.is_infinite() {
                    return Err(float_overflow());
                }
                FloatSum::Double(sum + v)
            }
            _ => return Err(mismatch("sum")),
        };
        Ok(())
    }

    fn value(&self) -> Datum {
        match self {
            FloatSum::Nothing => Datum::Null,
            FloatSum::Single(sum) => Datum::Float4(*sum),
            FloatSum::Double(sum) => Datum::Float8(*sum),
        }
    }
}

impl Accumulator for FloatSum {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        self.take(args.first().ok_or_else(|| mismatch("sum"))?)
    }

    fn combine(&mut self, other: &mut dyn Accumulator) -> Result<()> {
        match other_of::<FloatSum>(other)?.value() {
            Datum::Null => Ok(()),
            sum => self.take(&sum),
        }
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        Ok(self.value())
    }
}

fn sum_float(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(FloatSum::Nothing)
}

struct IntervalSum {
    sum: Interval,
    count: i64,
    average: bool,
}

impl IntervalSum {
    fn answered(&self, average: bool) -> Result<Datum> {
        Ok(match (self.count, average) {
            (0, _) => Datum::Null,
            (_, false) => Datum::Interval(self.sum),
            (count, true) => Datum::Interval(interval::divide(self.sum, count as f64)?),
        })
    }
}

impl Accumulator for IntervalSum {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        let Some(Datum::Interval(value)) = args.first() else { return Err(mismatch("sum")) };
        self.sum = interval::add(self.sum, *value)?;
        self.count += 1;
        Ok(())
    }

    fn combine(&mut self, other: &mut dyn Accumulator) -> Result<()> {
        let other = other_of::<IntervalSum>(other)?;
        self.sum = interval::add(self.sum, other.sum)?;
        self.count += other.count;
        Ok(())
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        self.answered(self.average)
    }

    fn average(&mut self) -> Result<Datum> {
        self.answered(true)
    }
}

fn sum_interval(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(IntervalSum { sum: Interval::default(), count: 0, average: false })
}

fn avg_interval(_: &[Oid]) -> Box<dyn Accumulator> {
    Box::new(IntervalSum { sum: Interval::default(), count: 0, average: true })
}

/// An aggregate that folds values of one type: logical and bitwise and, or, exclusive or.
struct Fold {
    state: Datum,
    step: fn(&Datum, &Datum) -> Result<Datum>,
}

impl Fold {
    fn take(&mut self, value: &Datum) -> Result<()> {
        self.state = match (&self.state, value) {
            (Datum::Null, value) => value.clone(),
            (_, Datum::Null) => return Ok(()),
            (state, value) => (self.step)(state, value)?,
        };
        Ok(())
    }
}

impl Accumulator for Fold {
    fn add(&mut self, _: &dyn EvalContext, args: &[Datum]) -> Result<()> {
        self.take(args.first().ok_or_else(|| mismatch("aggregate"))?)
    }

    fn combine(&mut self, other: &mut dyn Accumulator) -> Result<()> {
        self.take(&other_of::<Fold>(other)?.state)
    }

    fn finish(&mut self, _: &dyn EvalContext) -> Result<Datum> {
        Ok(self.state.clone())
    }
}

macro_rules! folds {
    ($($name:ident, $op:tt, $verb:literal);+ $(;)?) => {
        $(fn $name(_: &[Oid]) -> Box<dyn Accumulator> {
            fn step(a: &Datum, b: &Datum) -> Result<Datum> {
                Ok(match (a, b) {
                    (Datum::Bool(a), Datum::Bool(b)) => Datum::Bool(a $op b),
                    (Datum::Int2(a), Datum::Int2(b)) => Datum::Int2(a $op b),
                    (Datum::Int4(a), Datum::Int4(b)) => Datum::Int4(a $op b),
                    (Datum::Int8(a), Datum::Int8(b)) => Datum::Int8(a $op b),
                    (Datum::Bits(a), Datum::Bits(b)) => Datum::Bits(types::bits::combined(a, b, $verb, |a, b| a $op b)?),
                    _ => return Err(mismatch("aggregate")),
                })
            }
            Box::new(Fold { state: Datum::Null, step })
        })+
    };
}

folds! {
    all_of, &, "AND";
    any_of, |, "OR";
    odd_of, ^, "XOR";
}
