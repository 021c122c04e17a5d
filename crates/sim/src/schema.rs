//! Tables of the workloads, and their rows as bytes.
//!
//! All tables have the columns id, grp, val, pad: a unique key, what the second index is over, a number that no two versions
//! share, and a text that follows from it, so that a torn row shows.

use std::collections::BTreeMap;

use base::{LayoutId, Oid};
use engine_api::*;
use types::{ColumnType, Datum, DatumRef, RowLayout, RowRef, oid};

/// Accounts whose sum never changes.
pub const BANK: Oid = Oid(20000);
/// Rows for transactions of all levels.
pub const ITEMS: Oid = Oid(20010);
/// Rows for SERIALIZABLE transactions only: their history is judged.
pub const REGISTERS: Oid = Oid(20020);
/// Lists that are appended to: their history is judged by the level of the run.
pub const LISTS: Oid = Oid(20026);
/// The sequence.
pub const SEQUENCE: Oid = Oid(20030);
/// What every account has at first.
pub const BALANCE: i64 = 100;
/// The value of a column in rows that were written before it was added.
pub const MISSING: i64 = 7;

/// A row without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The group.
    pub grp: i32,
    /// The number.
    pub val: i64,
}

/// The text that goes with a number.
fn pad(val: i64) -> String {
    let len = (val.unsigned_abs() * 7 % 61) as usize;
    (0..len).map(|at| char::from(b'a' + ((val.unsigned_abs() as usize + at) % 26) as u8)).collect()
}

const TYPES: [Oid; 5] = [oid::INT4, oid::INT4, oid::INT8, oid::TEXT, oid::INT8];
const NAMES: [&str; 5] = ["id", "grp", "val", "pad", "more"];

fn layout(columns: usize) -> RowLayout {
    let types: Vec<_> = TYPES[..columns].iter().map(|oid| ColumnType { oid: *oid, typmod: -1 }).collect();
    RowLayout::new(&types)
}

/// The lists that versions stand for: each has that of the version before, and its own number.
pub type Lists = BTreeMap<i64, Vec<u64>>;

/// The bytes of a list.
pub fn encode_list(id: i32, row: Row, list: &[u64]) -> Vec<u8> {
    let text: Vec<String> = list.iter().map(u64::to_string).collect();
    let values = [Datum::Int4(id), Datum::Int4(row.grp), Datum::Int8(row.val), Datum::text(&text.join(","))];
    let mut out = Vec::new();
    layout(4).encode(&values, &mut out).expect("the values fit their types");
    out
}

/// What [`encode_list`] has made.
///
/// # Errors
/// If it has not made it.
pub fn decode_list(tuple: &[u8], lists: &Lists) -> Result<(i32, Row, Vec<u64>), String> {
    let layout = layout(4);
    let row = RowRef::new(&layout, tuple);
    let (Datum::Int4(id), Datum::Int4(grp), Datum::Int8(val)) = (row.get_owned(0), row.get_owned(1), row.get_owned(2))
    else {
        return Err("a list of other types".to_string());
    };
    let list = lists.get(&val).ok_or_else(|| format!("list {id} is {val}, which nobody has written"))?;
    let row = Row { grp, val };
    if encode_list(id, row, list) != tuple {
        return Err(format!("list {id} with {val} is not as it was written"));
    }
    Ok((id, row, list.clone()))
}

/// A row's bytes in a table of so many columns.
pub fn encode(id: i32, row: Row, columns: usize) -> Vec<u8> {
    let all =
        [Datum::Int4(id), Datum::Int4(row.grp), Datum::Int8(row.val), Datum::text(&pad(row.val)), Datum::Int8(MISSING)];
    let mut out = Vec::new();
    layout(columns).encode(&all[..columns], &mut out).expect("the values fit their types");
    out
}

/// What [`encode`] has made.
///
/// # Errors
/// If it has not made it.
pub fn decode(layout_id: LayoutId, tuple: &[u8]) -> Result<(i32, Row), String> {
    let columns = layout_id.0 as usize + 3;
    if !(4..=5).contains(&columns) {
        return Err(format!("a row in layout {layout_id}"));
    }
    let layout = layout(columns);
    let row = RowRef::new(&layout, tuple);
    let (Datum::Int4(id), Datum::Int4(grp), Datum::Int8(val)) = (row.get_owned(0), row.get_owned(1), row.get_owned(2))
    else {
        return Err("a row of other types".to_string());
    };
    if encode(id, Row { grp, val }, columns) != tuple {
        return Err(format!("row {id} with {val} is not as it was written"));
    }
    Ok((id, Row { grp, val }))
}

/// A row of any table.
///
/// # Errors
/// If it is not as it was written.
pub fn decode_of(of: Oid, row: BatchRow<'_>, lists: &Lists) -> Result<(i32, Row), String> {
    match of {
        LISTS => decode_list(row.tuple, lists).map(|(id, row, _)| (id, row)),
        _ => decode(row.layout, row.tuple),
    }
}

/// A key of an index over one integer.
pub fn key(value: i32) -> Vec<u8> {
    let mut out = Vec::new();
    types::encode_key(DatumRef::Int4(value), oid::INT4, false, false, &mut out);
    out
}

/// A table of so many columns.
pub fn table(oid: Oid, columns: usize, storage: u32) -> TableDesc {
    let column = |at: usize| ColumnDesc {
        not_null: true,
        missing: (at == 4).then(|| MISSING.to_string()),
        ..ColumnDesc::new(at as i16 + 1, NAMES[at], TYPES[at], -1)
    };
    let layout = |columns: usize| LayoutDesc {
        id: LayoutId(columns as u32 - 3),
        fields: (0..columns).map(|at| LayoutField { column: at as i16 + 1, type_oid: TYPES[at], typmod: -1 }).collect(),
    };
    let layouts = (4..=columns).map(layout).collect();
    let columns = (0..columns).map(column).collect();
    let table = TableDesc::new(oid, oids::SCHEMA_PUBLIC, format!("t{oid}"), oids::ROLE_POSTGRES, columns);
    TableDesc { layouts, storage, ..table }
}

/// An index over the key (`is_key`) or the group.
pub fn index(oid: Oid, of: Oid, is_key: bool) -> IndexDesc {
    let keys = vec![IndexKey::ascending(if is_key { 1 } else { 2 })];
    let index = IndexDesc::new(oid, oids::SCHEMA_PUBLIC, format!("i{oid}"), of, keys);
    IndexDesc { unique: is_key, primary: is_key, ..index }
}

/// The sequence.
pub fn sequence() -> SequenceDesc {
    SequenceDesc::new(SEQUENCE, oids::SCHEMA_PUBLIC, "s", oids::ROLE_POSTGRES, oid::INT8, i64::MAX)
}

/// A table as a catalog has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Columns.
    pub columns: usize,
    /// The index over the key.
    pub by_id: Oid,
    /// The index over the group, if there is one.
    pub by_grp: Option<Oid>,
    /// The number of its storage.
    pub storage: u32,
}

/// The table in a catalog; `None`: it is not there.
pub fn shape(catalog: &Catalog, of: Oid) -> Option<Shape> {
    let desc = catalog.table(of)?;
    let find = |unique: bool| catalog.indexes(of).find(|index| index.unique == unique).map(|index| index.oid);
    Some(Shape { columns: desc.columns.len(), by_id: find(true)?, by_grp: find(false), storage: desc.storage })
}
