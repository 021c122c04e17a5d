//! A random sample of a table's rows, and what it tells of the whole.

use base::Result;
use engine_api::{RowBatch, TableDesc};
use types::Datum;

use super::TableStatistics;
use super::column::{Collected, Target};
use crate::ir::TableInfo;
use crate::plan::RowReader;

/// Rows of a sample per value that is kept of a column: what PostgreSQL takes for its histograms.
const ROWS_PER_TARGET: usize = 300;
/// Values kept of a column: `default_statistics_target`.
const TARGET: usize = 100;

/// Takes a sample while a scan goes by.
pub(crate) struct Sampler {
    reader: RowReader,
    /// Columns looked at: (attribute number - 1, type).
    columns: Vec<(usize, base::Oid)>,
    /// Columns of the table.
    width: usize,
    /// The rows kept, with the number of each among all.
    rows: Vec<(u64, Vec<Datum>)>,
    /// Rows that went by.
    seen: u64,
    frame: Vec<Datum>,
    random: u64,
}

impl Sampler {
    /// A sample of these columns (attribute number - 1) of a table, or of all.
    pub fn new(table: &TableDesc, only: Option<&[usize]>) -> Result<Sampler> {
        let wanted = |column: usize| only.is_none_or(|only| only.contains(&column));
        let columns: Vec<(usize, base::Oid)> = table
            .columns
            .iter()
            .enumerate()
            .filter(|(number, column)| !column.dropped && wanted(*number))
            .map(|(number, column)| (number, column.type_oid))
            .collect();
        let slots: Vec<(usize, u32)> = columns.iter().enumerate().map(|(slot, (c, _))| (*c, slot as u32)).collect();
        let info = TableInfo { desc: table.clone(), indexes: Vec::new(), codes: Vec::new() };
        Ok(Sampler {
            reader: RowReader::new(&info, &slots, None)?,
            frame: vec![Datum::Null; columns.len()],
            columns,
            width: table.columns.len(),
            rows: Vec::new(),
            seen: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        })
    }

    /// Looks at some more rows.
    pub fn add(&mut self, batch: &RowBatch) {
        let size = TARGET * ROWS_PER_TARGET;
        for at in 0..batch.len() {
            let number = self.seen;
            self.seen += 1;
            // Each row that went by is kept with the same probability (Vitter's algorithm R).
            let place = if self.rows.len() < size { self.rows.len() } else { self.below(self.seen) as usize };
            if place >= size {
                continue;
            }
            self.frame.fill(Datum::Null);
            self.reader.read(batch.row(at), &mut self.frame);
            let row = (number, self.frame.clone());
            if place == self.rows.len() { self.rows.push(row) } else { self.rows[place] = row }
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((u128::from(self.random) * u128::from(limit)) >> 64) as u64
    }

    /// What the sample tells.
    pub fn finish(mut self, changes: u64) -> TableStatistics {
        self.rows.sort_unstable_by_key(|(number, _)| *number);
        let mut columns = vec![None; self.width];
        for (slot, &(column, ty)) in self.columns.iter().enumerate() {
            let values = self.rows.iter().map(|(_, row)| &row[slot]);
            let target = Target { values: TARGET, rows: self.seen as f64 };
            columns[column] = (!self.rows.is_empty()).then(|| Collected::of(values, ty).statistics(target));
        }
        TableStatistics { rows: self.seen as f64, columns, changes, version: 0 }
    }
}
