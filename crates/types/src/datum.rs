//! One SQL value: owned ([`Datum`]) as expressions pass it, borrowed ([`DatumRef`]) as it lies in a row.

use std::borrow::Cow;
use std::sync::Arc;

use base::work;

use crate::network::Inet;
use crate::numeric::{Numeric, NumericRef};
use crate::oid;

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
    /// `inet`, `cidr`
    Inet(Inet),
    /// `macaddr`
    Mac([u8; 6]),
    /// `macaddr8`
    Mac8([u8; 8]),
    /// `bit(n)`, `bit varying(n)`, as [`crate::bits`] holds them.
    Bits(Arc<[u8]>),
    /// A value of an enum: its type, and its place in the order of the type's labels.
    Enum(base::Oid, f32),
    /// An array of any element type.
    Array(Arc<Array>),
    /// A row value (`ROW(1, 2)`, a whole-row reference).
    Record(Arc<Record>),
}

/// A row value: its fields and their types, of which there are as many. It can be read as the list of its fields.
#[derive(Clone, Debug)]
pub struct Record {
    /// What each field is, NULL or not; domains are what they are over.
    pub types: Arc<[base::Oid]>,
    /// The fields.
    pub fields: Box<[Datum]>,
}

impl Record {
    /// A record of these fields.
    pub fn new(types: Arc<[base::Oid]>, fields: Vec<Datum>) -> Record {
        debug_assert_eq!(types.len(), fields.len(), "each field of a record has a type");
        Record { types, fields: fields.into() }
    }

    /// The fields, each with its type.
    pub fn typed(&self) -> impl Iterator<Item = (&Datum, base::Oid)> {
        self.fields.iter().zip(self.types.iter().copied())
    }
}

impl std::ops::Deref for Record {
    type Target = [Datum];

    fn deref(&self) -> &[Datum] {
        &self.fields
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        self.fields == other.fields
    }
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
    /// See [`Datum::Numeric`]; either the value or its bytes in a row.
    Numeric(NumericRef<'a>),
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
    /// See [`Datum::Inet`].
    Inet(Inet),
    /// See [`Datum::Mac`].
    Mac([u8; 6]),
    /// See [`Datum::Mac8`].
    Mac8([u8; 8]),
    /// See [`Datum::Bits`].
    Bits(&'a [u8]),
    /// See [`Datum::Enum`].
    Enum(base::Oid, f32),
    /// See [`Datum::Array`]; either the value or its bytes in a row.
    Array(ArrayRef<'a>),
    /// See [`Datum::Record`].
    Record(&'a Record),
}

/// A borrowed array: a value, or the bytes of its row form.
#[derive(Clone, Copy, Debug)]
pub enum ArrayRef<'a> {
    /// A value.
    Value(&'a Array),
    /// Its bytes as [`crate::row`] lays them out.
    Bytes(&'a [u8]),
}

impl<'a> ArrayRef<'a> {
    /// The array; decoded if it lies in a row. Bytes that are none read as an empty array.
    pub fn get(&self) -> Cow<'a, Array> {
        match self {
            ArrayRef::Value(array) => Cow::Borrowed(array),
            ArrayRef::Bytes(bytes) => Cow::Owned(crate::row::decode_array(bytes)),
        }
    }
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

impl Datum {
    /// Puts another value in its place. Values that own nothing, as most in registers, are not asked to free it.
    #[inline]
    pub fn put(&mut self, value: Datum) {
        let owns_nothing = matches!(self, Datum::Null | Datum::Int4(_) | Datum::Int8(_) | Datum::Timestamp(_));
        let before = std::mem::replace(self, value);
        if owns_nothing {
            std::mem::forget(before);
        }
    }

    /// NULL?
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// A borrowed view.
    pub fn as_ref(&self) -> DatumRef<'_> {
        match self {
            Datum::Null => DatumRef::Null,
            Datum::Bool(v) => DatumRef::Bool(*v),
            Datum::Int2(v) => DatumRef::Int2(*v),
            Datum::Int4(v) => DatumRef::Int4(*v),
            Datum::Int8(v) => DatumRef::Int8(*v),
            Datum::Oid(v) => DatumRef::Oid(*v),
            Datum::Float4(v) => DatumRef::Float4(*v),
            Datum::Float8(v) => DatumRef::Float8(*v),
            Datum::Numeric(v) => DatumRef::Numeric(NumericRef::of(v)),
            Datum::Text(v) => DatumRef::Text(v),
            Datum::Bytea(v) => DatumRef::Bytea(v),
            Datum::Date(v) => DatumRef::Date(*v),
            Datum::Time(v) => DatumRef::Time(*v),
            Datum::TimeTz(v, z) => DatumRef::TimeTz(*v, *z),
            Datum::Timestamp(v) => DatumRef::Timestamp(*v),
            Datum::TimestampTz(v) => DatumRef::TimestampTz(*v),
            Datum::Interval(v) => DatumRef::Interval(*v),
            Datum::Uuid(v) => DatumRef::Uuid(v),
            Datum::Inet(v) => DatumRef::Inet(*v),
            Datum::Mac(v) => DatumRef::Mac(*v),
            Datum::Mac8(v) => DatumRef::Mac8(*v),
            Datum::Bits(v) => DatumRef::Bits(v),
            Datum::Enum(ty, order) => DatumRef::Enum(*ty, *order),
            Datum::Array(v) => DatumRef::Array(ArrayRef::Value(v)),
            Datum::Record(v) => DatumRef::Record(v),
        }
    }

    /// A text value.
    pub fn text(s: &str) -> Datum {
        Datum::Text(copied(s))
    }

    /// A value of one of the types of whole numbers.
    #[inline]
    pub fn integer(&self) -> Option<i64> {
        match self {
            Datum::Int4(v) => Some(i64::from(*v)),
            Datum::Int8(v) => Some(*v),
            Datum::Int2(v) => Some(i64::from(*v)),
            _ => None,
        }
    }
}

impl DatumRef<'_> {
    /// NULL?
    pub fn is_null(&self) -> bool {
        matches!(self, DatumRef::Null)
    }

    /// As [`Datum::integer`].
    #[inline]
    pub fn integer(&self) -> Option<i64> {
        match *self {
            DatumRef::Int4(v) => Some(i64::from(v)),
            DatumRef::Int8(v) => Some(v),
            DatumRef::Int2(v) => Some(i64::from(v)),
            _ => None,
        }
    }

    /// An owned copy.
    pub fn to_owned(&self) -> Datum {
        match *self {
            DatumRef::Null => Datum::Null,
            DatumRef::Bool(v) => Datum::Bool(v),
            DatumRef::Int2(v) => Datum::Int2(v),
            DatumRef::Int4(v) => Datum::Int4(v),
            DatumRef::Int8(v) => Datum::Int8(v),
            DatumRef::Oid(v) => Datum::Oid(v),
            DatumRef::Float4(v) => Datum::Float4(v),
            DatumRef::Float8(v) => Datum::Float8(v),
            DatumRef::Numeric(v) => Datum::Numeric(v.get()),
            DatumRef::Text(v) => v.into(),
            DatumRef::Bytea(v) => v.into(),
            DatumRef::Date(v) => Datum::Date(v),
            DatumRef::Time(v) => Datum::Time(v),
            DatumRef::TimeTz(v, z) => Datum::TimeTz(v, z),
            DatumRef::Timestamp(v) => Datum::Timestamp(v),
            DatumRef::TimestampTz(v) => Datum::TimestampTz(v),
            DatumRef::Interval(v) => Datum::Interval(v),
            DatumRef::Uuid(v) => Datum::Uuid(*v),
            DatumRef::Inet(v) => Datum::Inet(v),
            DatumRef::Mac(v) => Datum::Mac(v),
            DatumRef::Mac8(v) => Datum::Mac8(v),
            DatumRef::Bits(v) => Datum::Bits(copied_bytes(v)),
            DatumRef::Enum(ty, order) => Datum::Enum(ty, order),
            DatumRef::Array(v) => Datum::Array(Arc::new(v.get().into_owned())),
            DatumRef::Record(v) => Datum::Record(Arc::new(v.clone())),
        }
    }
}

/// A value as one of another type that is held alike, which is the same value but for what says of itself of which type it is.
#[inline]
pub fn relabelled(value: Datum, ty: base::Oid) -> Datum {
    match value {
        Datum::Inet(v) if ty == oid::INET => Datum::Inet(v.of_type(false)),
        value => value,
    }
}

/// The type that a value has as far as it shows: where several types are held alike, the most general one. NULL is a text.
pub fn type_of(value: &Datum) -> base::Oid {
    match value {
        Datum::Null | Datum::Text(_) => oid::TEXT,
        Datum::Bool(_) => oid::BOOL,
        Datum::Int2(_) => oid::INT2,
        Datum::Int4(_) => oid::INT4,
        Datum::Int8(_) => oid::INT8,
        Datum::Oid(_) => oid::OID,
        Datum::Float4(_) => oid::FLOAT4,
        Datum::Float8(_) => oid::FLOAT8,
        Datum::Numeric(_) => oid::NUMERIC,
        Datum::Bytea(_) => oid::BYTEA,
        Datum::Date(_) => oid::DATE,
        Datum::Time(_) => oid::TIME,
        Datum::TimeTz(..) => oid::TIMETZ,
        Datum::Timestamp(_) => oid::TIMESTAMP,
        Datum::TimestampTz(_) => oid::TIMESTAMPTZ,
        Datum::Interval(_) => oid::INTERVAL,
        Datum::Uuid(_) => oid::UUID,
        Datum::Inet(v) => {
            if v.is_network() {
                oid::CIDR
            } else {
                oid::INET
            }
        }
        Datum::Mac(_) => oid::MACADDR,
        Datum::Mac8(_) => oid::MACADDR8,
        Datum::Bits(_) => oid::VARBIT,
        Datum::Enum(ty, _) => *ty,
        Datum::Array(array) => oid::array_of(array.element).unwrap_or(oid::TEXT_ARRAY),
        Datum::Record(_) => oid::RECORD,
    }
}

macro_rules! from {
    ($($t:ty => $variant:ident),+ $(,)?) => {
        $(impl From<$t> for Datum {
            fn from(value: $t) -> Datum {
                Datum::$variant(value.into())
            }
        })+
    };
}

from! {
    bool => Bool, i16 => Int2, i32 => Int4, i64 => Int8, f32 => Float4, f64 => Float8,
    Numeric => Numeric, Interval => Interval,
}

impl From<&str> for Datum {
    #[inline]
    fn from(value: &str) -> Datum {
        Datum::Text(copied(value))
    }
}

impl From<&[u8]> for Datum {
    fn from(value: &[u8]) -> Datum {
        Datum::Bytea(copied_bytes(value))
    }
}

/// Bytes of a text that another thread copies.
pub const LONG: usize = 1 << 20;

/// A text that can be shared. Another thread copies a long one.
pub fn shared(text: String) -> Arc<str> {
    if text.len() < LONG { text.into() } else { work::elsewhere_unwound(move || text.into()) }
}

/// As [`shared`], of a text that somebody else keeps.
#[inline]
pub fn copied(text: &str) -> Arc<str> {
    if text.len() < LONG { text.into() } else { copied_long(text) }
}

#[cold]
fn copied_long(text: &str) -> Arc<str> {
    let mut copy = String::new();
    work::append_text(&mut copy, text);
    shared(copy)
}

/// As [`copied`], of bytes.
#[inline]
pub fn copied_bytes(bytes: &[u8]) -> Arc<[u8]> {
    if bytes.len() < LONG { bytes.into() } else { copied_long_bytes(bytes) }
}

#[cold]
fn copied_long_bytes(bytes: &[u8]) -> Arc<[u8]> {
    let mut copy = Vec::new();
    work::append(&mut copy, bytes);
    shared_bytes(copy)
}

/// As [`shared`], of bytes.
pub fn shared_bytes(bytes: Vec<u8>) -> Arc<[u8]> {
    if bytes.len() < LONG { bytes.into() } else { work::elsewhere_unwound(move || bytes.into()) }
}

/// The text that was written in these bytes; what is not UTF-8 is replaced. Another thread looks through a long one.
pub fn written(bytes: Vec<u8>) -> String {
    let text =
        |bytes| String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    if bytes.len() < LONG { text(bytes) } else { work::elsewhere_unwound(move || text(bytes)) }
}

impl From<Vec<u8>> for Datum {
    fn from(value: Vec<u8>) -> Datum {
        Datum::Bytea(shared_bytes(value))
    }
}

impl From<String> for Datum {
    fn from(value: String) -> Datum {
        Datum::Text(shared(value))
    }
}

impl<T: Into<Datum>> From<Option<T>> for Datum {
    fn from(value: Option<T>) -> Datum {
        value.map_or(Datum::Null, Into::into)
    }
}

impl Datum {
    /// Whether two values of one type are the same to their last digit (PostgreSQL's `datum_image_eq`): equal ones may differ in
    /// what is shown of them, as `1.0` and `1.00` do, `0` and `-0`, `1 day` and `24 hours`.
    pub fn is_identical(&self, other: &Datum) -> bool {
        let all = |a: &[Datum], b: &[Datum]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_identical(b));
        match (self, other) {
            (Datum::Float4(a), Datum::Float4(b)) => a.to_bits() == b.to_bits(),
            (Datum::Float8(a), Datum::Float8(b)) => a.to_bits() == b.to_bits(),
            (Datum::Numeric(a), Datum::Numeric(b)) => a.scale() == b.scale() && self == other,
            (Datum::Interval(a), Datum::Interval(b)) => (a.micros, a.days, a.months) == (b.micros, b.days, b.months),
            (Datum::Array(a), Datum::Array(b)) => a.dims == b.dims && all(&a.values, &b.values),
            (Datum::Record(a), Datum::Record(b)) => all(&a.fields, &b.fields),
            _ => self == other,
        }
    }
}

/// Equal as values of one type; NULL equals NULL, as in DISTINCT and GROUP BY.
impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        crate::cmp::compare(&self.as_ref(), &other.as_ref()).is_eq()
    }
}

impl Eq for Datum {}
