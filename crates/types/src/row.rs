//! How a tuple lies in memory and in the log.
//!
//! ```text
//! flags | null bitmap, if any column is NULL | fixed-size columns | end offsets of the others | their bytes
//! 1       (n + 7) / 8, bit set = NULL          as in the layout     2 or 4 bytes each
//! ```
//!
//! A column of fixed size has its place whether NULL or not, so reading one is one load. End offsets count from the end of
//! the offset array; they take 2 bytes, or 4 when the bytes are 64 KiB or more (flag). Integers are little-endian.
//! Reading never trusts the bytes: what does not fit reads as NULL, and [`RowLayout::validate`] tells.

use base::{Error, Oid, Result, SqlState, work};

use crate::datum::ArrayRef;
use crate::network::Inet;
use crate::numeric::NumericRef;
use crate::room::{self, Room as _};
use crate::{Array, Datum, DatumRef, Interval, oid, user};

const HAS_NULLS: u8 = 1;
const WIDE_OFFSETS: u8 = 2;

/// Type of a stored column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// Type.
    pub oid: Oid,
    /// Modifier.
    pub typmod: i32,
}

/// How a column's bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldEncoding {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
    Interval,
    Uuid,
    Mac,
    Mac8,
    Enum,
    Text,
    Bytea,
    Numeric,
    Array,
    Inet,
    Cidr,
    Bits,
    /// A `tid` or an `xid8`. Among what varies: where tables were made before there were values of these types, they stand there.
    Counted,
    Record,
}

impl FieldEncoding {
    fn of(ty: Oid) -> FieldEncoding {
        match ty {
            oid::BOOL => FieldEncoding::Bool,
            oid::INT2 => FieldEncoding::Int2,
            oid::INT4 => FieldEncoding::Int4,
            oid::INT8 => FieldEncoding::Int8,
            ty if oid::is_oid_like(ty) => FieldEncoding::Oid,
            oid::FLOAT4 => FieldEncoding::Float4,
            oid::FLOAT8 => FieldEncoding::Float8,
            oid::DATE => FieldEncoding::Date,
            oid::TIME => FieldEncoding::Time,
            oid::TIMETZ => FieldEncoding::TimeTz,
            oid::TIMESTAMP => FieldEncoding::Timestamp,
            oid::TIMESTAMPTZ => FieldEncoding::TimestampTz,
            oid::INTERVAL => FieldEncoding::Interval,
            oid::UUID => FieldEncoding::Uuid,
            oid::INET => FieldEncoding::Inet,
            oid::CIDR => FieldEncoding::Cidr,
            oid::MACADDR => FieldEncoding::Mac,
            oid::MACADDR8 => FieldEncoding::Mac8,
            oid::BIT | oid::VARBIT => FieldEncoding::Bits,
            oid::BYTEA => FieldEncoding::Bytea,
            oid::NUMERIC => FieldEncoding::Numeric,
            oid::RECORD => FieldEncoding::Record,
            oid::TID | oid::XID8 => FieldEncoding::Counted,
            oid::ANYENUM => FieldEncoding::Enum,
            oid::ANYARRAY => FieldEncoding::Array,
            ty if oid::element_of(ty).is_some() => FieldEncoding::Array,
            ty if ty.0 >= user::FIRST_OID => FieldEncoding::of_user_type(ty),
            _ => FieldEncoding::Text,
        }
    }

    /// Of an enum, or what is under a domain.
    fn of_user_type(ty: Oid) -> FieldEncoding {
        match user::base_type(ty, -1).0 {
            base if base != ty => FieldEncoding::of(base),
            ty if user::is_enum(ty) => FieldEncoding::Enum,
            _ => FieldEncoding::Text,
        }
    }

    /// Bytes of a value; `None` if they vary.
    fn size(self) -> Option<usize> {
        Some(match self {
            FieldEncoding::Bool => 1,
            FieldEncoding::Int2 => 2,
            FieldEncoding::Int4 | FieldEncoding::Oid | FieldEncoding::Float4 | FieldEncoding::Date => 4,
            FieldEncoding::Mac => 6,
            FieldEncoding::Int8
            | FieldEncoding::Float8
            | FieldEncoding::Time
            | FieldEncoding::Timestamp
            | FieldEncoding::TimestampTz
            | FieldEncoding::Enum
            | FieldEncoding::Mac8 => 8,
            FieldEncoding::TimeTz => 12,
            FieldEncoding::Interval | FieldEncoding::Uuid => 16,
            FieldEncoding::Text
            | FieldEncoding::Bytea
            | FieldEncoding::Numeric
            | FieldEncoding::Array
            | FieldEncoding::Inet
            | FieldEncoding::Cidr
            | FieldEncoding::Bits
            | FieldEncoding::Counted
            | FieldEncoding::Record => return None,
        })
    }
}

/// A built-in type whose values are stored in the same form. A type that a statement made may be gone while tuples have values of it.
pub fn stored_as(ty: Oid) -> Oid {
    match user::base_type(ty, -1).0 {
        ty if ty.0 < user::FIRST_OID => ty,
        ty if oid::element_of(ty).is_some() => oid::ANYARRAY,
        _ => oid::ANYENUM,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    kind: FieldEncoding,
    /// Offset among the fixed columns, or ordinal among the others.
    place: u32,
}

/// The shape of a tuple, with every offset computed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLayout {
    fields: Box<[Field]>,
    bitmap_len: usize,
    fixed_len: usize,
    var_count: usize,
}

impl RowLayout {
    /// The layout of tuples with these columns.
    pub fn new(columns: &[ColumnType]) -> RowLayout {
        let (mut fixed_len, mut var_count) = (0usize, 0usize);
        let fields = columns
            .iter()
            .map(|column| {
                let kind = FieldEncoding::of(column.oid);
                let counter = if kind.size().is_some() { &mut fixed_len } else { &mut var_count };
                let place = *counter as u32;
                *counter += kind.size().unwrap_or(1);
                Field { kind, place }
            })
            .collect();
        RowLayout { fields, bitmap_len: columns.len().div_ceil(8), fixed_len, var_count }
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Appends a tuple of `values`, one per column.
    ///
    /// # Errors
    /// XX000 if a value is not of its column's type; 54000 if the tuple is larger than 1 GiB.
    pub fn encode(&self, values: &[Datum], out: &mut Vec<u8>) -> Result<()> {
        if values.len() != self.fields.len() {
            return Err(Error::internal(format!("{} values for {} columns", values.len(), self.fields.len())));
        }
        self.encode_of(|at| &values[at], out)
    }

    /// As [`RowLayout::encode`], of values that lie apart: `value` answers that of a column.
    ///
    /// # Errors
    /// Those of [`RowLayout::encode`].
    #[inline]
    pub fn encode_of<'v>(&self, value: impl Fn(usize) -> &'v Datum, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.reserve(1 + self.bitmap_len + self.fixed_len + 2 * self.var_count);
        let has_nulls = (0..self.fields.len()).any(|at| value(at).is_null());
        out.push(if has_nulls { HAS_NULLS } else { 0 });
        let bitmap = out.len();
        if has_nulls {
            out.resize(bitmap + self.bitmap_len, 0);
            for at in (0..self.fields.len()).filter(|at| value(*at).is_null()) {
                out[bitmap + at / 8] |= 1 << (at % 8);
            }
        }
        for (at, field) in self.fields.iter().enumerate() {
            match (field.kind, value(at)) {
                (FieldEncoding::Int8, Datum::Int8(v)) => out.extend_from_slice(&v.to_le_bytes()),
                (FieldEncoding::Int4, Datum::Int4(v)) => out.extend_from_slice(&v.to_le_bytes()),
                (kind, value) if kind.size().is_some() => write_fixed(kind, value, out)?,
                _ => {}
            }
        }
        let offsets = out.len();
        out.resize(offsets + 2 * self.var_count, 0);
        let data = out.len();
        let mut place = offsets;
        for (at, field) in self.fields.iter().enumerate().filter(|(_, field)| field.kind.size().is_none()) {
            let is_long = matches!(value(at), Datum::Text(text) if text.len() >= u16::MAX as usize);
            if !is_long {
                write_var(field.kind, value(at), out)?;
            }
            let end = out.len() - data;
            if is_long || end >= u16::MAX as usize {
                return self.widen(&value, start, offsets, out);
            }
            out[place..place + 2].copy_from_slice(&(end as u16).to_le_bytes());
            place += 2;
        }
        Ok(())
    }

    /// Appends `old`, a tuple of this layout, with other values in some columns: (column, value) in the order of the columns.
    /// What stays is copied as it lies. `false`, and nothing is appended, if the tuple is or becomes one of wide offsets.
    ///
    /// # Errors
    /// XX000 if a value is not of its column's type.
    pub fn patch(&self, old: &[u8], changes: &[(usize, &Datum)], out: &mut Vec<u8>) -> Result<bool> {
        let row = RowRef::new(self, old);
        let fixed_end = row.fixed + self.fixed_len;
        let (Some(data), 2) = (row.data_start(), row.offset_size()) else { return Ok(false) };
        let start = out.len();
        out.push(0);
        if row.fixed > 1 || changes.iter().any(|(_, value)| value.is_null()) {
            let bitmap = out.len();
            match row.fixed > 1 {
                true => out.extend_from_slice(&old[1..row.fixed]),
                false => out.resize(bitmap + self.bitmap_len, 0),
            }
            for (i, value) in changes {
                let bit = 1 << (i % 8);
                let byte = &mut out[bitmap + i / 8];
                *byte = if value.is_null() { *byte | bit } else { *byte & !bit };
            }
            match out[bitmap..].iter().any(|byte| *byte != 0) {
                true => out[start] = HAS_NULLS,
                false => out.truncate(bitmap),
            }
        }
        let fixed = out.len();
        out.extend_from_slice(&old[row.fixed..fixed_end]);
        let mut varies = false;
        for (i, value) in changes {
            let Field { kind, place } = self.fields[*i];
            match kind.size() {
                None => varies = true,
                Some(size) => {
                    let end = out.len();
                    write_fixed(kind, value, out)?;
                    let at = fixed + place as usize;
                    out.copy_within(end..end + size, at);
                    out.truncate(end);
                }
            }
        }
        if !varies {
            out.extend_from_slice(&old[fixed_end..]);
            return Ok(true);
        }
        let offsets = out.len();
        out.resize(offsets + 2 * self.var_count, 0);
        let new_data = out.len();
        // Columns between two changed ones are copied together; their ends move by what the ones before grew or shrank.
        let mut copied = 0;
        let copy_up_to = |next: usize, copied: usize, out: &mut Vec<u8>| -> Option<()> {
            if copied == next {
                return Some(());
            }
            let from = if copied == 0 { 0 } else { row.var_end(copied - 1)? };
            let grown = (out.len() - new_data).wrapping_sub(from);
            for ordinal in copied..next {
                let end = row.var_end(ordinal)?.wrapping_add(grown) as u16;
                out[offsets + 2 * ordinal..][..2].copy_from_slice(&end.to_le_bytes());
            }
            out.extend_from_slice(old.get(data + from..data + row.var_end(next - 1)?)?);
            Some(())
        };
        let mut whole = true;
        for (i, value) in changes {
            let Field { kind, place } = self.fields[*i];
            if kind.size().is_some() {
                continue;
            }
            let ordinal = place as usize;
            whole &= copy_up_to(ordinal, copied, out).is_some();
            write_var(kind, value, out)?;
            let end = (out.len() - new_data) as u16;
            out[offsets + 2 * ordinal..][..2].copy_from_slice(&end.to_le_bytes());
            copied = ordinal + 1;
        }
        whole &= copy_up_to(self.var_count, copied, out).is_some();
        if !whole || out.len() - new_data >= u16::MAX as usize {
            out.truncate(start);
            return Ok(false);
        }
        Ok(true)
    }

    /// Writes the variable part again with 4-byte offsets.
    #[cold]
    fn widen<'v>(
        &self,
        value: &dyn Fn(usize) -> &'v Datum,
        start: usize,
        offsets: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        out[start] |= WIDE_OFFSETS;
        out.truncate(offsets);
        out.resize(offsets + 4 * self.var_count, 0);
        let data = out.len();
        let mut at = offsets;
        for (column, field) in self.fields.iter().enumerate().filter(|(_, field)| field.kind.size().is_none()) {
            write_var(field.kind, value(column), out)?;
            let end = out.len() - data;
            if end > 1 << 30 {
                return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "row is too big"));
            }
            out[at..at + 4].copy_from_slice(&(end as u32).to_le_bytes());
            at += 4;
        }
        Ok(())
    }

    /// Whether bytes are a tuple of this layout.
    ///
    /// # Errors
    /// XX001
    pub fn validate(&self, tuple: &[u8]) -> Result<()> {
        let row = RowRef::new(self, tuple);
        let whole = (0..self.len()).all(|i| {
            row.is_null(i)
                || match row.get(i) {
                    DatumRef::Null => false,
                    DatumRef::Numeric(number) => number.is_valid(),
                    DatumRef::Array(ArrayRef::Bytes(bytes)) => try_decode_array(bytes).is_some(),
                    _ => true,
                }
        });
        let sized = row.data_start().is_some_and(|start| match self.var_count {
            0 => tuple.len() == start,
            n => row.var_end(n - 1).is_some_and(|end| start + end == tuple.len()),
        });
        if whole && sized {
            return Ok(());
        }
        Err(Error::new(SqlState::DATA_CORRUPTED, "a stored tuple does not have the shape of its table"))
    }
}

fn mismatch(kind: FieldEncoding, value: &Datum) -> Error {
    Error::internal(format!("a value {value:?} for a column of kind {kind:?}"))
}

fn write_fixed(kind: FieldEncoding, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match (kind, value) {
        (kind, Datum::Null) => out.resize(out.len() + kind.size().unwrap_or(0), 0),
        (FieldEncoding::Bool, Datum::Bool(v)) => out.push(*v as u8),
        (FieldEncoding::Int2, Datum::Int2(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (FieldEncoding::Int4, Datum::Int4(v)) | (FieldEncoding::Date, Datum::Date(v)) => {
            out.extend_from_slice(&v.to_le_bytes())
        }
        (FieldEncoding::Int8, Datum::Int8(v))
        | (FieldEncoding::Time, Datum::Time(v))
        | (FieldEncoding::Timestamp, Datum::Timestamp(v))
        | (FieldEncoding::TimestampTz, Datum::TimestampTz(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (FieldEncoding::Oid, Datum::Oid(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (FieldEncoding::Float4, Datum::Float4(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (FieldEncoding::Float8, Datum::Float8(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (FieldEncoding::TimeTz, Datum::TimeTz(v, west)) => {
            out.extend_from_slice(&v.to_le_bytes());
            out.extend_from_slice(&west.to_le_bytes());
        }
        (FieldEncoding::Interval, Datum::Interval(v)) => {
            out.extend_from_slice(&v.micros.to_le_bytes());
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.months.to_le_bytes());
        }
        (FieldEncoding::Uuid, Datum::Uuid(v)) => out.extend_from_slice(v),
        (FieldEncoding::Mac, Datum::Mac(v)) => out.extend_from_slice(v),
        (FieldEncoding::Mac8, Datum::Mac8(v)) => out.extend_from_slice(v),
        (FieldEncoding::Enum, Datum::Enum(ty, order)) => {
            out.extend_from_slice(&ty.0.to_le_bytes());
            out.extend_from_slice(&order.to_le_bytes());
        }
        (kind, value) => return Err(mismatch(kind, value)),
    }
    Ok(())
}

fn write_var(kind: FieldEncoding, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match (kind, value) {
        (_, Datum::Null) => {}
        (FieldEncoding::Text, Datum::Text(v)) => {
            out.make_room(v.len())?;
            work::append(out, v.as_bytes());
        }
        (FieldEncoding::Inet | FieldEncoding::Cidr, Datum::Inet(v)) => v.encode(out),
        (FieldEncoding::Bytea, Datum::Bytea(v)) | (FieldEncoding::Bits, Datum::Bits(v)) => {
            out.make_room(v.len())?;
            work::append(out, v);
        }
        (FieldEncoding::Numeric, Datum::Numeric(v)) => v.encode(out),
        (FieldEncoding::Counted, Datum::Int8(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (FieldEncoding::Array, Datum::Array(v)) => encode_array(v, out)?,
        (kind, value) => return Err(mismatch(kind, value)),
    }
    Ok(())
}

/// An array: element type, dimensions, then the elements as a tuple of their own.
fn encode_array(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    /// Of the layout, and of what is written of elements of a fixed length.
    const EACH: usize = size_of::<ColumnType>() + size_of::<Field>() + 24;
    room::ask(array.values.len() * EACH)?;
    out.extend_from_slice(&array.element.0.to_le_bytes());
    out.push(array.dims.len() as u8);
    for (len, lower) in &array.dims {
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&lower.to_le_bytes());
    }
    let column = ColumnType { oid: array.element, typmod: -1 };
    RowLayout::new(&vec![column; array.values.len()]).encode(&array.values, out)
}

/// Reads what [`encode_array`] wrote; anything else is an empty array.
pub(crate) fn decode_array(bytes: &[u8]) -> Array {
    try_decode_array(bytes).unwrap_or(Array { element: oid::TEXT, dims: Vec::new(), values: Vec::new() })
}

fn try_decode_array(bytes: &[u8]) -> Option<Array> {
    let word = |at: usize| bytes.get(at..at + 4).map(|b| [b[0], b[1], b[2], b[3]]);
    let element = Oid(u32::from_le_bytes(word(0)?));
    // Arrays do not nest; bytes that say so would nest decoding as deep as they like.
    if FieldEncoding::of(element) == FieldEncoding::Array {
        return None;
    }
    let count = *bytes.get(4)? as usize;
    let mut dims = Vec::with_capacity(count);
    let mut total = if count == 0 { 0usize } else { 1 };
    for d in 0..count {
        let (len, lower) = (i32::from_le_bytes(word(5 + 8 * d)?), i32::from_le_bytes(word(9 + 8 * d)?));
        total = total.checked_mul(usize::try_from(len).ok()?)?;
        dims.push((len, lower));
    }
    let tuple = bytes.get(5 + 8 * count..)?;
    // Every element takes a bit at least, so a length that lies is caught before anything is allocated.
    if total > tuple.len().saturating_mul(8) {
        return None;
    }
    let layout = RowLayout::new(&vec![ColumnType { oid: element, typmod: -1 }; total]);
    layout.validate(tuple).ok()?;
    let row = RowRef::new(&layout, tuple);
    let values = (0..total).map(|i| row.get(i).to_owned()).collect();
    Some(Array { element, dims, values })
}

/// A tuple to read.
#[derive(Clone, Copy)]
pub struct RowRef<'a> {
    layout: &'a RowLayout,
    tuple: &'a [u8],
    /// Where the fixed columns begin.
    fixed: usize,
    /// End offsets take four bytes.
    wide: bool,
}

impl<'a> RowRef<'a> {
    /// Reads `tuple` as `layout` has it.
    #[inline]
    pub fn new(layout: &'a RowLayout, tuple: &'a [u8]) -> RowRef<'a> {
        let flags = tuple.first().copied().unwrap_or(0);
        let fixed = 1 + if flags & HAS_NULLS != 0 { layout.bitmap_len } else { 0 };
        RowRef { layout, tuple, fixed, wide: flags & WIDE_OFFSETS != 0 }
    }

    /// Whether column `i` is NULL.
    #[inline]
    pub fn is_null(&self, i: usize) -> bool {
        self.fixed > 1 && self.tuple.get(1 + i / 8).is_some_and(|byte| byte & 1 << (i % 8) != 0)
    }

    fn offset_size(&self) -> usize {
        if self.wide { 4 } else { 2 }
    }

    fn data_start(&self) -> Option<usize> {
        let start = self.fixed + self.layout.fixed_len + self.offset_size() * self.layout.var_count;
        (start <= self.tuple.len()).then_some(start)
    }

    #[inline]
    fn var_end(&self, ordinal: usize) -> Option<usize> {
        let size = self.offset_size();
        let at = self.fixed + self.layout.fixed_len + size * ordinal;
        let bytes = self.tuple.get(at..at + size)?;
        Some(match size {
            2 => u16::from_le_bytes([bytes[0], bytes[1]]) as usize,
            _ => u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize,
        })
    }

    /// The bytes of a column of any size.
    fn wide_var(&self, ordinal: usize) -> Option<&'a [u8]> {
        let data = self.data_start()?;
        let start = if ordinal == 0 { 0 } else { self.var_end(ordinal - 1)? };
        let end = self.var_end(ordinal)?;
        self.tuple.get(data + start..data + end)
    }

    /// [`RowRef::wide_var`] of a tuple of narrow offsets, which is nearly any.
    #[inline]
    fn var(&self, ordinal: usize) -> Option<&'a [u8]> {
        if self.wide {
            return self.wide_var(ordinal);
        }
        let end_at = |at: usize| {
            let bytes = self.tuple.get(at..at + 2)?;
            Some(u16::from_le_bytes([bytes[0], bytes[1]]) as usize)
        };
        let ends = self.fixed + self.layout.fixed_len;
        let (at, data) = (ends + 2 * ordinal, ends + 2 * self.layout.var_count);
        let start = if ordinal == 0 { 0 } else { end_at(at - 2)? };
        self.tuple.get(data + start..data + end_at(at)?)
    }

    #[inline]
    fn fixed<const N: usize>(&self, offset: u32) -> Option<&'a [u8; N]> {
        let at = self.fixed + offset as usize;
        self.tuple.get(at..at + N)?.try_into().ok()
    }

    /// Whether column `i` has the same bytes in another tuple of the layout, or is NULL in both.
    #[inline]
    pub fn has_same_bytes(&self, other: &RowRef<'_>, i: usize) -> bool {
        match (self.is_null(i), other.is_null(i)) {
            (false, false) => {}
            (a, b) => return a && b,
        }
        let Some(&Field { kind, place }) = self.layout.fields.get(i) else { return false };
        match kind.size() {
            Some(4) => self.fixed::<4>(place) == other.fixed::<4>(place),
            Some(size) => {
                let (at, there) = (self.fixed + place as usize, other.fixed + place as usize);
                self.tuple.get(at..at + size) == other.tuple.get(there..there + size)
            }
            None => self.var(place as usize) == other.var(place as usize),
        }
    }

    /// Column `i`; NULL if there is no such column in the tuple.
    #[inline]
    pub fn get(&self, i: usize) -> DatumRef<'a> {
        if self.is_null(i) {
            return DatumRef::Null;
        }
        self.value(i).unwrap_or(DatumRef::Null)
    }

    /// The bytes of column `i` if it is a text and not NULL: without the look whether they are UTF-8, for who hands them on.
    #[inline]
    pub fn text_bytes(&self, i: usize) -> Option<&'a [u8]> {
        let Field { kind, place } = *self.layout.fields.get(i)?;
        if kind != FieldEncoding::Text || self.is_null(i) {
            return None;
        }
        self.var(place as usize)
    }

    #[inline]
    fn value(&self, i: usize) -> Option<DatumRef<'a>> {
        let Field { kind, place } = *self.layout.fields.get(i)?;
        Some(match kind {
            FieldEncoding::Int4 => DatumRef::Int4(i32::from_le_bytes(*self.fixed(place)?)),
            // The engine stores only what was UTF-8; bytes that are not read as NULL.
            FieldEncoding::Text => DatumRef::Text(std::str::from_utf8(self.var(place as usize)?).ok()?),
            FieldEncoding::Numeric => DatumRef::Numeric(NumericRef::from_bytes(self.var(place as usize)?)),
            FieldEncoding::Timestamp => DatumRef::Timestamp(i64::from_le_bytes(*self.fixed(place)?)),
            _ => return self.less_usual(kind, place),
        })
    }

    /// [`RowRef::value`] of the other kinds, out of the way of these.
    fn less_usual(&self, kind: FieldEncoding, place: u32) -> Option<DatumRef<'a>> {
        let int4 = || self.fixed::<4>(place).map(|b| i32::from_le_bytes(*b));
        let int8 = || self.fixed::<8>(place).map(|b| i64::from_le_bytes(*b));
        Some(match kind {
            FieldEncoding::Int8 => DatumRef::Int8(int8()?),
            FieldEncoding::Bool => DatumRef::Bool(self.fixed::<1>(place)?[0] != 0),
            FieldEncoding::Int2 => DatumRef::Int2(i16::from_le_bytes(*self.fixed::<2>(place)?)),
            FieldEncoding::Oid => DatumRef::Oid(int4()? as u32),
            FieldEncoding::Float4 => DatumRef::Float4(f32::from_le_bytes(*self.fixed::<4>(place)?)),
            FieldEncoding::Float8 => DatumRef::Float8(f64::from_le_bytes(*self.fixed::<8>(place)?)),
            FieldEncoding::Date => DatumRef::Date(int4()?),
            FieldEncoding::Time => DatumRef::Time(int8()?),
            FieldEncoding::TimestampTz => DatumRef::TimestampTz(int8()?),
            FieldEncoding::TimeTz => {
                let west = i32::from_le_bytes(*self.fixed::<4>(place + 8)?);
                DatumRef::TimeTz(int8()?, west)
            }
            FieldEncoding::Interval => DatumRef::Interval(Interval {
                micros: int8()?,
                days: i32::from_le_bytes(*self.fixed::<4>(place + 8)?),
                months: i32::from_le_bytes(*self.fixed::<4>(place + 12)?),
            }),
            FieldEncoding::Uuid => DatumRef::Uuid(self.fixed::<16>(place)?),
            FieldEncoding::Mac => DatumRef::Mac(*self.fixed(place)?),
            FieldEncoding::Mac8 => DatumRef::Mac8(*self.fixed(place)?),
            FieldEncoding::Inet | FieldEncoding::Cidr => {
                DatumRef::Inet(Inet::decode(self.var(place as usize)?, kind == FieldEncoding::Cidr)?)
            }
            FieldEncoding::Bits => DatumRef::Bits(self.var(place as usize)?),
            FieldEncoding::Enum => {
                let order = f32::from_le_bytes(*self.fixed::<4>(place + 4)?);
                DatumRef::Enum(Oid(int4()? as u32), order)
            }
            FieldEncoding::Bytea => DatumRef::Bytea(self.var(place as usize)?),
            FieldEncoding::Counted => DatumRef::Int8(i64::from_le_bytes(self.var(place as usize)?.try_into().ok()?)),
            FieldEncoding::Array => DatumRef::Array(ArrayRef::Bytes(self.var(place as usize)?)),
            // The others are read before it comes to this.
            FieldEncoding::Int4
            | FieldEncoding::Text
            | FieldEncoding::Numeric
            | FieldEncoding::Timestamp
            | FieldEncoding::Record => return None,
        })
    }

    /// Column `i`, owned.
    #[inline]
    pub fn get_owned(&self, i: usize) -> Datum {
        // Most columns are of these kinds: without the form between.
        match self.layout.fields.get(i) {
            Some(&Field { kind: FieldEncoding::Int4, place }) if !self.is_null(i) => {
                self.fixed(place).map_or(Datum::Null, |bytes| Datum::Int4(i32::from_le_bytes(*bytes)))
            }
            Some(&Field { kind: FieldEncoding::Int8, place }) if !self.is_null(i) => {
                self.fixed(place).map_or(Datum::Null, |bytes| Datum::Int8(i64::from_le_bytes(*bytes)))
            }
            _ => self.get_any(i),
        }
    }

    fn get_any(&self, i: usize) -> Datum {
        match self.get(i) {
            DatumRef::Timestamp(value) => Datum::Timestamp(value),
            DatumRef::Numeric(value) => Datum::Numeric(value.get()),
            value => value.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Numeric;

    fn layout(types: &[Oid]) -> RowLayout {
        RowLayout::new(&types.iter().map(|&oid| ColumnType { oid, typmod: -1 }).collect::<Vec<_>>())
    }

    const TYPES: [Oid; 9] = [
        oid::INT4,
        oid::TEXT,
        oid::NUMERIC,
        oid::INT8,
        oid::BOOL,
        oid::BYTEA,
        oid::INT4_ARRAY,
        oid::INTERVAL,
        oid::UUID,
    ];

    fn values(text: &str) -> Vec<Datum> {
        let array = Array { element: oid::INT4, dims: vec![(3, 1)], values: vec![1.into(), Datum::Null, 3.into()] };
        vec![
            7.into(),
            text.into(),
            Numeric::parse("-12345678901234567890.50").unwrap().into(),
            (-1i64).into(),
            true.into(),
            (&b"\0\xff"[..]).into(),
            Datum::Array(Arc::new(array)),
            Interval { micros: -5, days: 3, months: -1 }.into(),
            Datum::Uuid([9; 16]),
        ]
    }

    #[test]
    fn tuples_round_trip() {
        let layout = layout(&TYPES);
        let long = "x".repeat(100_000);
        for text in ["", "hello", &long] {
            for nulls in 0..512u32 {
                let mut values = values(text);
                for (i, value) in values.iter_mut().enumerate() {
                    if nulls >> i & 1 == 1 {
                        *value = Datum::Null;
                    }
                }
                let mut tuple = Vec::new();
                layout.encode(&values, &mut tuple).unwrap();
                layout.validate(&tuple).unwrap();
                let row = RowRef::new(&layout, &tuple);
                for (i, value) in values.iter().enumerate() {
                    assert_eq!(row.get_owned(i), *value);
                }
                if text.len() > 10 && nulls > 8 {
                    break;
                }
            }
        }
    }

    #[test]
    fn a_patched_tuple_is_that_of_the_new_values() {
        let layout = layout(&TYPES);
        let long = "x".repeat(100_000);
        let others = |text: &str| {
            let mut values = values(text);
            values[0] = 8.into();
            values[2] = Numeric::parse("0.5").unwrap().into();
            values[4] = false.into();
            values[5] = (&b"longer than before"[..]).into();
            values[8] = Datum::Uuid([7; 16]);
            values
        };
        let with_nulls = |mut values: Vec<Datum>, nulls: u32| {
            (0..values.len()).filter(|i| nulls >> i & 1 == 1).for_each(|i| values[i] = Datum::Null);
            values
        };
        let encoded = |values: &[Datum]| {
            let mut tuple = Vec::new();
            layout.encode(values, &mut tuple).unwrap();
            tuple
        };
        for (text, other) in [("hello", ""), ("", "hello, hello"), (&long, "hello"), ("hello", &long)] {
            for seed in 0..2000u32 {
                let mix = seed.wrapping_mul(0x9e37_79b9);
                let (old_nulls, new_nulls, changed) = (mix & mix >> 9, mix >> 5 & mix >> 14, mix >> 20);
                let old = with_nulls(values(text), if seed % 3 == 0 { 0 } else { old_nulls });
                let new = with_nulls(others(other), if seed % 4 == 0 { 0 } else { new_nulls });
                let changes: Vec<(usize, &Datum)> =
                    new.iter().enumerate().filter(|(i, _)| changed >> i & 1 == 1).collect();
                let mut wanted = old.clone();
                changes.iter().for_each(|(i, value)| wanted[*i] = (*value).clone());
                let mut patched = b"before".to_vec();
                let is_wide = |values: &[Datum]| encoded(values)[0] & WIDE_OFFSETS != 0;
                if layout.patch(&encoded(&old), &changes, &mut patched).unwrap() {
                    assert_eq!(patched[6..], encoded(&wanted));
                } else {
                    assert!(is_wide(&old) || is_wide(&wanted));
                    assert_eq!(patched, b"before");
                }
            }
        }
        // Bytes that are no tuple do not panic.
        let tuple = encoded(&values("hello"));
        let new = others("hello");
        let changes: Vec<(usize, &Datum)> = new.iter().enumerate().skip(2).step_by(3).collect();
        for cut in 0..tuple.len() {
            let _ = layout.patch(&tuple[..cut], &changes, &mut Vec::new());
        }
    }

    #[test]
    fn a_small_row_is_smaller_than_a_heap_tuple() {
        // PostgreSQL: 4 bytes of line pointer, 24 of header, then the data.
        let layout = layout(&[oid::INT4, oid::INT4, oid::TEXT]);
        let mut tuple = Vec::new();
        layout.encode(&[1.into(), 2.into(), "abc".into()], &mut tuple).unwrap();
        assert_eq!(tuple.len(), 1 + 8 + 2 + 3);
    }

    #[test]
    fn damaged_bytes_are_reported_and_do_not_panic() {
        let _entered = user::Current::by(&Arc::default()).entered();
        let layout = layout(&TYPES);
        let mut tuple = Vec::new();
        layout.encode(&values("hello"), &mut tuple).unwrap();
        for cut in 0..tuple.len() {
            assert!(layout.validate(&tuple[..cut]).is_err());
            for bit in 0..8 {
                let mut flipped = tuple.clone();
                flipped[cut] ^= 1 << bit;
                let row = RowRef::new(&layout, &flipped);
                for i in 0..TYPES.len() {
                    let _ = row.get_owned(i);
                }
            }
        }
    }
}
