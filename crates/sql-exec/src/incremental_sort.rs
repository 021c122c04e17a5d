//! ORDER BY over rows that come in the order of the first keys.
//!
//! Responsible for: rows with equal first keys, a group, are sorted by the other keys and handed out before more rows are read. With LIMIT
//! the rows behind the last group that is needed are never read.
//! Not responsible for: the order within a group ([`super::sort`]), that the rows come in the order of the first keys (the planner).
//! Invariants: a group ends where a first key differs from that of the group's first row. The row at which this shows is kept, and is the
//! first one of the next group.

use std::cmp::Ordering;
use std::sync::Arc;

use base::Result;
use sql_plan::IncrementalSortNode;
use types::Datum;

use super::rows::RowStore;
use super::sort::{Copied, Kept, Sort, Source, has_values, values_of};
use super::{Cx, Next, Operator};

/// Sorts rows group by group.
pub(super) struct IncrementalSort {
    /// Sorts the rows of one group.
    sort: Sort<Group>,
}

/// The rows of one group.
struct Group {
    node: Arc<IncrementalSortNode>,
    rows: Copied,
    /// Values of the first keys.
    values: Vec<Datum>,
    /// The first row of the next group, if it has been read.
    pending: RowStore,
}

impl Group {
    /// Begins the next group; `false` if there is none.
    fn go_on(&mut self) -> bool {
        self.rows.clear();
        self.pending.len() > 0
    }
}

impl Source for Group {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let next = if self.pending.len() > 0 {
            self.pending.restore(0, registers, self.rows.slots());
            self.pending.clear();
            Next::Row
        } else {
            self.rows.next(cx, registers)?
        };
        if matches!(next, Next::Row) {
            let keys = &self.node.sort.keys[..self.node.presorted];
            if self.rows.len() == 0 {
                self.values = values_of(keys, registers);
            } else if !has_values(keys, &self.values, registers) {
                self.pending.push(registers, self.rows.slots());
                return Ok(Next::Done);
            }
        }
        Ok(next)
    }

    fn next_head(&self, registers: &[Datum]) -> u64 {
        self.rows.next_head(registers)
    }

    fn compare_next(&self, registers: &[Datum], kept: usize) -> Ordering {
        self.rows.compare_next(registers, kept)
    }

    fn take(&mut self, registers: &[Datum]) -> Option<usize> {
        self.rows.take(registers)
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn head(&self, row: usize) -> u64 {
        self.rows.head(row)
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        self.rows.compare(a, b)
    }

    fn keep(&mut self, rows: &[Kept]) {
        self.rows.keep(rows);
    }

    fn rescan(&mut self, forget: bool) {
        self.pending.clear();
        self.rows.rescan(forget);
    }
}

impl IncrementalSort {
    pub fn new(node: &Arc<IncrementalSortNode>) -> IncrementalSort {
        let rows = Copied::new(&node.sort, &node.sort.keys[node.presorted..]);
        let group = Group { node: Arc::clone(node), rows, values: Vec::new(), pending: RowStore::default() };
        IncrementalSort { sort: Sort::of(&node.sort, group) }
    }
}

impl Operator for IncrementalSort {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        loop {
            let next = self.sort.advance(cx, registers)?;
            match (&next, self.sort.row()) {
                (Next::Row, Some(row)) => self.sort.source.rows.restore(row, registers),
                (Next::Done, _) if self.sort.source.go_on() => {
                    self.sort.clear();
                    continue;
                }
                _ => {}
            }
            return Ok(next);
        }
    }

    fn rescan(&mut self, forget: bool) {
        // The rows of one group are no result that could be read again.
        self.sort.clear();
        self.sort.source.rescan(forget);
    }
}
