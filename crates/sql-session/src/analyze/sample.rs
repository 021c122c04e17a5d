//! A random sample of a table's rows, and what it tells of the whole.
//!
//! A table of few row numbers is read whole; of a larger one a row is taken from each of as many equal parts as the sample
//! has rows, so that the time of a look does not grow with the table.

use base::{Oid, Result};
use engine_api::{KeyRange, RowBatch, RowContent, Scan, ScanSpec, TableDesc, Txn};
use sql_functions::statistics::{ColumnStatistics, TableStatistics, type_of};
use sql_ir::TableInfo;
use sql_ir::row_codec::RowReader;
use types::Datum;

use super::column::{Collected, Target, TooWide};

/// Rows of a sample per value that is kept of a column: what PostgreSQL takes for its histograms.
const ROWS_PER_TARGET: usize = 300;
/// Values kept of a column: `default_statistics_target`.
const TARGET: usize = 100;

/// Rows of a sample.
const SAMPLE: u64 = (TARGET * ROWS_PER_TARGET) as u64;
/// Rows looked at in one step.
const STEP: usize = 512;

/// A look at a table that goes on, some rows at a time.
pub(crate) struct Sampler {
    reader: RowReader,
    /// Columns looked at: (attribute number - 1, type).
    columns: Vec<(usize, Oid)>,
    /// `Engine::changes` when the look began.
    changes: u64,
    scan: Box<dyn Scan>,
    batch: RowBatch,
    /// The way through a table that is too large to be read whole.
    parts: Option<Parts>,
    /// The rows taken, in the table's order, without the values that are too wide.
    rows: Vec<Vec<Datum>>,
    /// What those are, of each of `columns`.
    wide: Vec<TooWide>,
    random: u64,
    /// Of `columns`, how many have been evaluated.
    evaluated: usize,
    /// What those columns are, besides.
    described: Vec<(Oid, i32, Option<u32>)>,
    /// What they tell, by attribute number - 1.
    found: Vec<Option<ColumnStatistics>>,
}

/// Equal parts of a table's row numbers.
struct Parts {
    /// Row numbers when the scan was opened.
    numbers: u64,
    /// The part to look into next, of [`SAMPLE`].
    next: u64,
}

impl Sampler {
    /// A look at these columns (attribute number - 1) of a table, or at all, by the current command of a transaction, when
    /// the table has seen so many changes.
    ///
    /// # Errors
    /// As [`Txn::open_table`].
    pub fn open(txn: &mut dyn Txn, table: &TableDesc, changes: u64, only: Option<&[usize]>) -> Result<Sampler> {
        let wanted = |column: usize| only.is_none_or(|only| only.contains(&column));
        let columns: Vec<(usize, Oid)> = table
            .columns
            .iter()
            .enumerate()
            .filter(|(number, column)| !column.dropped && wanted(*number))
            .map(|(number, column)| (number, types::user::plain_type(column.type_oid, -1).0))
            .collect();
        let slots: Vec<(usize, u32)> = columns.iter().enumerate().map(|(slot, (c, _))| (*c, slot as u32)).collect();
        let info = TableInfo { desc: table.clone(), indexes: Vec::new(), codes: Vec::new() };
        let reader = RowReader::new(&info, &slots, None)?;
        let opened = txn.open_table(table.oid)?;
        let scan = txn.open_scan(ScanSpec {
            table: opened,
            index: None,
            range: KeyRange::all(),
            reverse: false,
            content: RowContent::Tuple,
        })?;
        let numbers = scan.ahead().unwrap_or(0);
        Ok(Sampler {
            reader,
            wide: vec![TooWide::default(); columns.len()],
            columns,
            changes,
            scan,
            batch: RowBatch::new(),
            parts: (numbers > SAMPLE).then_some(Parts { numbers, next: 0 }),
            rows: Vec::new(),
            random: 0x9e37_79b9_7f4a_7c15,
            evaluated: 0,
            described: table.columns.iter().map(type_of).collect(),
            found: vec![None; table.columns.len()],
        })
    }

    /// Looks at some more rows; `false` when it has seen enough, and the transaction is not needed any more.
    ///
    /// # Errors
    /// As [`Scan::next`].
    pub fn step(&mut self, txn: &mut dyn Txn) -> Result<bool> {
        self.batch.clear();
        let more = match self.parts {
            Some(_) => self.take_from_parts(txn)?,
            None => self.scan.next(txn, STEP, &mut self.batch)?,
        };
        for at in 0..self.batch.len() {
            let mut row = vec![Datum::Null; self.columns.len()];
            self.reader.read(self.batch.row(at), &mut row);
            for ((value, wide), (_, ty)) in row.iter_mut().zip(&mut self.wide).zip(&self.columns) {
                wide.take(value, *ty);
            }
            self.rows.push(row);
        }
        Ok(more)
    }

    /// A row of each of the next parts: the first at or after a random place in it.
    fn take_from_parts(&mut self, txn: &mut dyn Txn) -> Result<bool> {
        for _ in 0..STEP {
            if self.batch.is_full() {
                break;
            }
            let Some(Parts { numbers, next }) = &mut self.parts else { break };
            let begin = |part: u64| (u128::from(*numbers) * u128::from(part) / u128::from(SAMPLE)) as u64;
            let (from, until) = (begin(*next), begin(*next + 1));
            *next += 1;
            let (numbers, last) = (*numbers, *next == SAMPLE);
            let place = from + self.below(until - from);
            let at = numbers - self.scan.ahead().unwrap_or(0);
            // A gap in the numbers may have led beyond the part already: it has no row of its own.
            if at < until {
                self.scan.skip(place.saturating_sub(at));
                if !self.scan.next(txn, 1, &mut self.batch)? {
                    return Ok(false);
                }
            }
            if last {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((u128::from(self.random) * u128::from(limit)) >> 64) as u64
    }

    /// Evaluates the next column, when enough rows have been seen, of a table that has roughly so many; `false` when all are done.
    /// Sorting a sample takes some milliseconds, so a table of many columns is not evaluated in one go.
    pub fn evaluate(&mut self, rows: u64) -> bool {
        let Some(&(column, ty)) = self.columns.get(self.evaluated) else { return false };
        let values = self.rows.iter().map(|row| &row[self.evaluated]);
        let target = Target { values: TARGET, rows: self.rows_of(rows) };
        self.found[column] = (!self.rows.is_empty()).then(|| ColumnStatistics {
            ty: self.described[column],
            ..Collected::of(values, self.wide[self.evaluated], ty).statistics(target)
        });
        self.evaluated += 1;
        true
    }

    /// The rows of a table that has roughly so many.
    fn rows_of(&self, rows: u64) -> f64 {
        let seen = self.rows.len() as f64;
        if self.parts.is_some() { (rows as f64).max(seen) } else { seen }
    }

    /// What the sample tells of a table that has roughly so many rows.
    pub fn finish(self, rows: u64) -> TableStatistics {
        TableStatistics { rows: self.rows_of(rows), columns: self.found, changes: self.changes, version: 0 }
    }
}
