//! Statistics as bytes, so that the plans after a restart are those before it.
//!
//! Responsible for: the record of a table's statistics, written and read.
//! Not responsible for: the file that has the records (`server`).
//! Invariants: statistics are hints. A record that cannot be read, or is of a table that is no more, is left out; the table is
//! then looked at again.
//!
//! ```text
//! table u32 | rows f64 | rows when it was written u64 | changes since the look u64 | columns u16 | each column: 0, or
//! 1 | type u32 | modifier i32 | collation u32, 0 for none | NULLs f64 | width f64 | distinct f64 | correlation f64, NaN for none
//!   | common values u16 | their shares, f64 each | bounds u16 | length u32 | a tuple of the common values and the bounds
//! ```
//!
//! Integers and floats are little-endian. The tuple is one of [`types::row`], without modifiers, each of its columns of the column's type.

use base::{Error, Oid, Result, SqlState};
use sql_functions::statistics::{ColumnStatistics, TableStatistics};
use types::row::{ColumnType, RowLayout, RowRef, stored_as};
use types::{Datum, user};

use crate::Shared;

impl Shared {
    /// The statistics of each table as a record. The records of two calls differ if a table was looked at between them.
    pub fn statistics_records(&self) -> impl Iterator<Item = Vec<u8>> {
        self.statistics().all().into_iter().map(|(table, statistics)| {
            let _entered = self.types().entered();
            let now = Now { rows: self.engine.row_count(table), changes: self.engine.changes(table) };
            encode(table, &statistics, now)
        })
    }

    /// Takes the statistics that such a record has, if the table is still there. Called before there are sessions.
    ///
    /// # Errors
    /// XX001 for bytes that are no record.
    pub fn restore_statistics(&self, record: &[u8]) -> Result<()> {
        let _entered = self.types().entered();
        let Record { table, mut statistics, rows, since } = decode(record)?;
        if self.engine.catalog().table(table).is_some() {
            // Changes behind the record are known by the number of rows alone.
            let more = self.engine.row_count(table).abs_diff(rows);
            statistics.changes = self.engine.changes(table).saturating_sub(since.saturating_add(more));
            self.statistics().put(table, statistics);
        }
        Ok(())
    }
}

/// A table when its record is written.
struct Now {
    rows: u64,
    changes: u64,
}

/// What a record says.
#[derive(Debug)]
struct Record {
    table: Oid,
    statistics: TableStatistics,
    /// Rows when it was written.
    rows: u64,
    /// Changes between the look at the table and then.
    since: u64,
}

fn encode(table: Oid, statistics: &TableStatistics, now: Now) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(table.0.to_le_bytes());
    out.extend(statistics.rows.to_le_bytes());
    out.extend(now.rows.to_le_bytes());
    out.extend(now.changes.saturating_sub(statistics.changes).to_le_bytes());
    out.extend((statistics.columns.len() as u16).to_le_bytes());
    for column in &statistics.columns {
        let start = out.len();
        let is_written = column.as_ref().is_some_and(|column| encode_column(column, &mut out).is_ok());
        if !is_written {
            out.truncate(start);
            out.push(0);
        }
    }
    out
}

/// # Errors
/// The values are not of the column's type, which is not there any more.
fn encode_column(column: &ColumnStatistics, out: &mut Vec<u8>) -> Result<()> {
    let (ty, typmod, collation) = column.ty;
    out.push(1);
    out.extend(ty.0.to_le_bytes());
    out.extend(typmod.to_le_bytes());
    out.extend(collation.unwrap_or(0).to_le_bytes());
    for number in [column.null_fraction, column.width, column.distinct, column.correlation.unwrap_or(f64::NAN)] {
        out.extend(number.to_le_bytes());
    }
    out.extend((column.common.len() as u16).to_le_bytes());
    out.extend(column.common.iter().flat_map(|(_, share)| share.to_le_bytes()));
    out.extend((column.histogram.len() as u16).to_le_bytes());
    let values: Vec<Datum> = column.common.iter().map(|(value, _)| value).chain(&column.histogram).cloned().collect();
    let mut tuple = Vec::new();
    layout(ty, values.len()).encode(&values, &mut tuple)?;
    out.extend((tuple.len() as u32).to_le_bytes());
    out.extend(tuple);
    Ok(())
}

/// So many values of a type.
fn layout(ty: Oid, values: usize) -> RowLayout {
    let oid = stored_as(user::plain_type(ty, -1).0);
    RowLayout::new(&vec![ColumnType { oid, typmod: -1 }; values])
}

fn decode(record: &[u8]) -> Result<Record> {
    let damaged = || Error::new(SqlState::DATA_CORRUPTED, "a record of statistics does not have its shape");
    let mut from = Reader(record);
    let read = from.record().filter(|_| from.0.is_empty());
    read.ok_or_else(damaged)
}

/// What has not been read of a record.
struct Reader<'r>(&'r [u8]);

impl<'r> Reader<'r> {
    fn record(&mut self) -> Option<Record> {
        let table = Oid(self.u32()?);
        let (seen, rows, since) = (self.f64()?, self.u64()?, self.u64()?);
        let columns = (0..self.u16()?).map(|_| self.column()).collect::<Option<_>>()?;
        let statistics = TableStatistics { rows: seen, columns, ..TableStatistics::default() };
        Some(Record { table, statistics, rows, since })
    }

    /// `None` is damage, `Some(None)` a column of which nothing is known.
    fn column(&mut self) -> Option<Option<ColumnStatistics>> {
        if *self.take::<1>()? == [0] {
            return Some(None);
        }
        let ty = Oid(self.u32()?);
        let typmod = i32::from_le_bytes(*self.take()?);
        let collation = Some(self.u32()?).filter(|collation| *collation != 0);
        let (null_fraction, width, distinct, correlation) = (self.f64()?, self.f64()?, self.f64()?, self.f64()?);
        let shares = (0..self.u16()?).map(|_| self.f64()).collect::<Option<Vec<f64>>>()?;
        let bounds = usize::from(self.u16()?);
        let length = self.u32()? as usize;
        let (tuple, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let layout = layout(ty, shares.len() + bounds);
        if layout.validate(tuple).is_err() {
            return Some(None);
        }
        let row = RowRef::new(&layout, tuple);
        let mut values = (0..layout.len()).map(|at| row.get_owned(at));
        Some(Some(ColumnStatistics {
            ty: (ty, typmod, collation),
            null_fraction,
            width,
            distinct,
            correlation: Some(correlation).filter(|number| !number.is_nan()),
            common: values.by_ref().take(shares.len()).zip(shares.iter().copied()).collect(),
            histogram: values.collect(),
        }))
    }

    fn take<const N: usize>(&mut self) -> Option<&'r [u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(|bytes| u16::from_le_bytes(*bytes))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn f64(&mut self) -> Option<f64> {
        self.take().map(|bytes| f64::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use types::oid;

    use super::*;

    fn table() -> TableStatistics {
        let text = |text: &str| Datum::Text(Arc::from(text));
        let common = vec![(text("a"), 0.5), (text("ß"), 0.25)];
        let first = ColumnStatistics {
            ty: (oid::VARCHAR, 14, Some(950)),
            null_fraction: 0.125,
            width: 2.5,
            distinct: -1.0,
            common,
            histogram: vec![text("c"), text(""), text("z")],
            correlation: None,
        };
        let third = ColumnStatistics {
            ty: (oid::INT4, -1, None),
            histogram: vec![Datum::Int4(-7), Datum::Int4(9)],
            correlation: Some(-0.5),
            ..ColumnStatistics::default()
        };
        TableStatistics { rows: 1000.0, columns: vec![Some(first), None, Some(third)], changes: 40, version: 3 }
    }

    fn shown(statistics: &TableStatistics) -> String {
        format!("{:?} {:?}", statistics.rows, statistics.columns)
    }

    #[test]
    fn what_is_written_is_read() {
        let written = encode(Oid(77), &table(), Now { rows: 1010, changes: 65 });
        let read = decode(&written).expect("whole");
        assert_eq!((read.table, read.rows, read.since), (Oid(77), 1010, 25));
        assert_eq!(shown(&read.statistics), shown(&table()));
    }

    #[test]
    fn what_is_cut_or_longer_is_refused() {
        let mut written = encode(Oid(77), &table(), Now { rows: 1010, changes: 65 });
        for length in 0..written.len() {
            assert!(decode(&written[..length]).is_err(), "cut at {length}");
        }
        written.push(0);
        assert!(decode(&written).is_err());
    }

    /// Any byte may be wrong: it is read as something, or refused.
    #[test]
    fn no_damage_panics() {
        let written = encode(Oid(77), &table(), Now { rows: 1010, changes: 65 });
        for bit in 0..written.len() * 8 {
            let mut bad = written.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            // The type may be any, by a catalog that has none.
            let _ = user::reading_by(&Arc::default(), || decode(&bad));
        }
    }
}
