//! Compaction: rows that lie among free blocks of memory are put together, so that pages become free and go back to the system.
//!
//! Responsible for: two walks over all tables, some rows at a time: the first counts where versions lie, the second moves those that lie
//! sparse.
//! Not responsible for: counting and moving (`mvcc`), when to do it (the server).
//! Invariants: it holds no table: one that is dropped meanwhile is passed over. Nothing that is counted changes.

use std::sync::{Arc, Weak};

use base::RowId;
use mvcc::{Density, Table};

use crate::shard::Shard;

/// A compaction that has begun.
#[derive(Debug)]
pub struct Compaction {
    tables: Vec<Weak<Table>>,
    density: Density,
    is_counting: bool,
    /// Place in `tables`, and the row there where it goes on.
    table: usize,
    row: RowId,
    moved: usize,
}

impl Shard {
    /// Begins a compaction of the tables that there are.
    pub fn begin_compaction(&self) -> Compaction {
        let tables = self.0.tables.read().values().map(|table| Arc::downgrade(&table.rows)).collect();
        let density = Density::default();
        Compaction { tables, density, is_counting: true, table: 0, row: RowId(0), moved: 0 }
    }
}

impl Compaction {
    /// Looks at `rows` more rows; whether all is done. Never waits; may run on any thread.
    pub fn step(&mut self, rows: usize) -> bool {
        let Some(table) = self.tables.get(self.table) else {
            self.table = 0;
            return !std::mem::replace(&mut self.is_counting, false);
        };
        let Some(table) = table.upgrade() else {
            self.table += 1;
            return false;
        };
        let end = table.end();
        let next = if self.is_counting {
            table.count_density(self.row, end, rows, &mut self.density)
        } else {
            let (next, moved) = table.compact(self.row, end, rows, &mut self.density);
            self.moved += moved;
            next
        };
        self.row = next;
        if next >= end {
            (self.table, self.row) = (self.table + 1, RowId(0));
        }
        false
    }

    /// Rows that it has moved.
    pub fn moved(&self) -> usize {
        self.moved
    }
}
