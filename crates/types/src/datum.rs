//! One SQL value: owned ([`Datum`]) as expressions pass it, borrowed ([`DatumRef`]) as it lies in a row.

use std::sync::Arc;

use crate::numeric::Numeric;

/// An owned SQL value. 24 bytes; cloning allocates nothing (long payloads are shared).
///
/// A datum does not carry its SQL type: `text`, `varchar`, `char(n)`, `name` and `unknown` are all `Text`,
/// the expression or column it came from knows which.
#[derive(Clone, Debug, Default)]
pub enum Datum {
    /// NULL of any type.
    #[default]
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`
    Int2(i16),
    /// `integer`
    Int4(i32),
    /// `bigint`
    Int8(i64),
    /// `oid` and its aliases (`regclass`, `regtype`, `xid`…)
    Oid(u32),
    /// `real`
    Float4(f32),
    /// `double precision`
    Float8(f64),
    /// `numeric`
    Numeric(Numeric),
    /// `text`, `varchar(n)`, `char(n)` (blank-padded to its length), `name`, `"char"`, `unknown`, `json`, `regproc`…
    Text(Arc<str>),
    /// `bytea`
    Bytea(Arc<[u8]>),
    /// `date`: days since 2000-01-01; `i32::MIN`/`i32::MAX` are `-infinity`/`infinity`.
    Date(i32),
    /// `time`: microseconds since midnight.
    Time(i64),
    /// `timetz`: microseconds since midnight, and seconds *west* of UTC, as PostgreSQL stores it.
    TimeTz(i64, i32),
    /// `timestamp`: microseconds since 2000-01-01 00:00; `i64::MIN`/`MAX` are the infinities.
    Timestamp(i64),
    /// `timestamptz`: microseconds since 2000-01-01 00:00 UTC; `i64::MIN`/`MAX` are the infinities.
    TimestampTz(i64),
    /// `interval`
    Interval(Interval),
    /// `uuid`, in network byte order.
    Uuid([u8; 16]),
    /// An array of any element type.
    Array(Arc<Array>),
    /// A row value (`ROW(1, 2)`, a whole-row reference).
    Record(Arc<[Datum]>),
}

/// A borrowed SQL value, as it lies in a row or a [`Datum`].
#[derive(Clone, Copy, Debug)]
pub enum DatumRef<'a> {
    /// NULL of any type.
    Null,
    /// See [`Datum::Bool`].
    Bool(bool),
    /// See [`Datum::Int2`].
    Int2(i16),
    /// See [`Datum::Int4`].
    Int4(i32),
    /// See [`Datum::Int8`].
    Int8(i64),
    /// See [`Datum::Oid`].
    Oid(u32),
    /// See [`Datum::Float4`].
    Float4(f32),
    /// See [`Datum::Float8`].
    Float8(f64),
    /// See [`Datum::Numeric`]; the codec's own bytes.
    Numeric(crate::numeric::NumericRef<'a>),
    /// See [`Datum::Text`].
    Text(&'a str),
    /// See [`Datum::Bytea`].
    Bytea(&'a [u8]),
    /// See [`Datum::Date`].
    Date(i32),
    /// See [`Datum::Time`].
    Time(i64),
    /// See [`Datum::TimeTz`].
    TimeTz(i64, i32),
    /// See [`Datum::Timestamp`].
    Timestamp(i64),
    /// See [`Datum::TimestampTz`].
    TimestampTz(i64),
    /// See [`Datum::Interval`].
    Interval(Interval),
    /// See [`Datum::Uuid`].
    Uuid(&'a [u8; 16]),
    /// See [`Datum::Array`].
    Array(&'a Array),
    /// See [`Datum::Record`].
    Record(&'a [Datum]),
}

/// PostgreSQL's `interval`: three fields that do not convert into each other by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Microseconds.
    pub micros: i64,
    /// Days.
    pub days: i32,
    /// Months.
    pub months: i32,
}

/// A PostgreSQL array: any number of dimensions, each with its lower bound; elements in row-major order.
#[derive(Clone, Debug)]
pub struct Array {
    /// OID of the element type.
    pub element: base::Oid,
    /// (length, lower bound) of each dimension; empty for `{}`.
    pub dims: Vec<(i32, i32)>,
    /// The elements.
    pub values: Vec<Datum>,
}

const _: () = assert!(size_of::<Datum>() == 24);
