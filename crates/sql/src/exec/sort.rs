//! ORDER BY.
//!
//! Rows are sorted in short runs as they come, and the runs are merged as rows are asked for, so that no step takes long,
//! however many rows there are (rule R9).

use std::cmp::Ordering;
use std::sync::Arc;

use base::Result;
use types::Datum;

use super::limit::{limit_of, offset_of};
use super::rows::RowStore;
use super::{Cx, Next, Operator, operator};
use crate::plan::{SortNode, SortSlot};

/// Sorts its input. Equal rows keep their order.
pub(super) struct Sort {
    node: Arc<SortNode>,
    input: Box<dyn Operator>,
    /// Where the keys are among the kept slots.
    keys: Vec<(usize, SortSlot)>,
    rows: RowStore,
    /// The rows. Those before `sorted` are in runs of [`RUN`] that are sorted each.
    runs: Vec<Kept>,
    sorted: usize,
    /// What is left of each run, as a heap: the run with the least next row is first.
    heap: Vec<Rest>,
    /// Row numbers in their final order, as far as they are known.
    order: Vec<u32>,
    /// At most so many rows are wanted; decided at the first row.
    limit: Option<usize>,
    phase: Phase,
    at: usize,
}

/// How far a sort is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Start,
    /// Taking rows in.
    Input,
    /// All rows are in, some are in no run yet.
    Runs,
    /// Handing rows out.
    Merge,
}

/// A kept row.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// Its first key, abbreviated: a row with a lesser one comes first.
    head: u64,
    row: u32,
}

/// The unread part of a run.
#[derive(Clone, Copy, Debug)]
struct Rest {
    at: u32,
    end: u32,
}

/// Rows of a run: about a millisecond's work.
const RUN: usize = 4096;

/// Rows beyond which a sort with a limit drops what cannot be wanted.
const PRUNE_FACTOR: usize = 4;

impl Sort {
    pub fn new(node: &Arc<SortNode>) -> Sort {
        let place = |slot| node.slots.iter().position(|s| *s == slot).unwrap_or(0);
        Sort {
            keys: node.keys.iter().map(|k| (place(k.slot), *k)).collect(),
            input: operator(&node.input),
            node: Arc::clone(node),
            rows: RowStore::default(),
            runs: Vec::new(),
            sorted: 0,
            heap: Vec::new(),
            order: Vec::new(),
            limit: None,
            phase: Phase::Start,
            at: 0,
        }
    }

    /// Which of two kept rows comes first; of equal ones the one that came first.
    #[inline]
    fn compare(&self, a: Kept, b: Kept) -> Ordering {
        a.head.cmp(&b.head).then_with(|| {
            let width = self.node.slots.len();
            let (x, y) = (self.rows.row(a.row as usize, width), self.rows.row(b.row as usize, width));
            compare_keys(&self.keys, x, y).then(a.row.cmp(&b.row))
        })
    }

    /// The row of this number.
    fn kept(&self, row: usize) -> Kept {
        let Some((place, key)) = self.keys.first() else { return Kept { head: 0, row: row as u32 } };
        let value = &self.rows.row(row, self.node.slots.len())[*place];
        let head = match (value.is_null(), key.descending) {
            (true, _) if key.nulls_first => 0,
            (true, _) => u64::MAX,
            (false, true) => !types::abbreviate(key.ty, &value.as_ref()),
            (false, false) => types::abbreviate(key.ty, &value.as_ref()),
        };
        Kept { head, row: row as u32 }
    }

    /// Takes the frame's row in.
    fn push(&mut self, frame: &[Datum]) -> usize {
        let bytes = self.rows.push(frame, &self.node.slots);
        self.runs.push(self.kept(self.rows.len() - 1));
        match self.limit {
            Some(limit) if self.rows.len() >= limit.max(256).saturating_mul(PRUNE_FACTOR) => self.prune(limit),
            Some(_) => {}
            None if self.runs.len() - self.sorted >= RUN => _ = self.sort_run(),
            None => {}
        }
        // The row and its places in `runs` and `order`.
        bytes + size_of::<Kept>() + 4
    }

    /// Makes a run of the first rows that are in none; `false` if there are no such rows.
    fn sort_run(&mut self) -> bool {
        let start = self.sorted;
        let end = (start + RUN).min(self.runs.len());
        let mut runs = std::mem::take(&mut self.runs);
        runs[start..end].sort_unstable_by(|&a, &b| self.compare(a, b));
        self.runs = runs;
        self.sorted = end;
        end > start
    }

    /// Keeps only the first `limit` rows once there are many more.
    fn prune(&mut self, limit: usize) {
        let mut kept_rows = std::mem::take(&mut self.runs);
        if limit < kept_rows.len() {
            kept_rows.select_nth_unstable_by(limit, |&a, &b| self.compare(a, b));
            kept_rows.truncate(limit);
        }
        // Rows keep their order of arrival, which decides between equal ones.
        kept_rows.sort_unstable_by_key(|kept| kept.row);
        let width = self.node.slots.len();
        let all: Vec<u32> = (0..width as u32).collect();
        let mut kept = RowStore::default();
        for Kept { row, .. } in &kept_rows {
            kept.push(self.rows.row(*row as usize, width), &all);
        }
        self.rows = kept;
        self.runs = kept_rows;
        self.runs.iter_mut().zip(0..).for_each(|(kept, row)| kept.row = row);
    }

    /// Makes the heap of runs.
    fn begin_merge(&mut self) {
        let end = self.runs.len();
        self.heap = (0..end).step_by(RUN).map(|at| Rest { at: at as u32, end: (at + RUN).min(end) as u32 }).collect();
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
    }

    /// Takes the least row off the heap.
    fn merge_one(&mut self) -> Option<u32> {
        let first = self.heap.first_mut()?;
        let row = self.runs[first.at as usize].row;
        first.at += 1;
        if first.at == first.end {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Some(row)
    }

    fn sift_down(&mut self, mut at: usize) {
        let next = |sort: &Sort, at: usize| sort.runs[sort.heap[at].at as usize];
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                return;
            }
            if child + 1 < self.heap.len() && self.compare(next(self, child + 1), next(self, child)).is_lt() {
                child += 1;
            }
            if self.compare(next(self, at), next(self, child)).is_lt() {
                return;
            }
            self.heap.swap(at, child);
            at = child;
        }
    }

    /// Decides how many rows are wanted.
    fn start(&mut self, cx: &mut Cx<'_, '_>, frame: &[Datum]) -> Result<()> {
        if let Some((limit, offset)) = &self.node.limit {
            let offset = match offset {
                Some(code) => offset_of(code, cx, frame)?,
                None => 0,
            };
            let limit = limit_of(limit, cx, frame)?;
            self.limit = limit.and_then(|l| usize::try_from(l.saturating_add(offset)).ok());
        }
        self.phase = Phase::Input;
        Ok(())
    }

    /// Takes all rows in and sorts them into runs. Answers what must be waited for first.
    fn prepare(&mut self, cx: &mut Cx<'_, '_>, frame: &mut [Datum]) -> Result<Option<Next>> {
        if self.phase == Phase::Start {
            self.start(cx, frame)?;
        }
        while self.phase == Phase::Input {
            match self.input.next(cx, frame)? {
                Next::Row => {
                    let bytes = self.push(frame);
                    if self.limit.is_none() {
                        cx.run.charge(bytes)?;
                    }
                }
                Next::Done => self.phase = Phase::Runs,
                wait => return Ok(Some(wait)),
            }
        }
        while self.sort_run() {
            if let Some(wait) = cx.run.tick(RUN)? {
                return Ok(Some(Next::Wait(wait)));
            }
        }
        self.begin_merge();
        self.phase = Phase::Merge;
        Ok(None)
    }
}

/// Compares two rows by sort keys.
pub(super) fn compare_keys(keys: &[(usize, SortSlot)], a: &[Datum], b: &[Datum]) -> Ordering {
    for (place, key) in keys {
        let (x, y) = (&a[*place], &b[*place]);
        let order = match (x.is_null(), y.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if key.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let order = types::compare_as(key.ty, &x.as_ref(), &y.as_ref());
                if key.descending { order.reverse() } else { order }
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

impl Operator for Sort {
    fn next(&mut self, cx: &mut Cx<'_, '_>, frame: &mut [Datum]) -> Result<Next> {
        if self.phase != Phase::Merge
            && let Some(wait) = self.prepare(cx, frame)?
        {
            return Ok(wait);
        }
        if let Some(wait) = cx.run.tick(1)? {
            return Ok(Next::Wait(wait));
        }
        if self.at == self.order.len() {
            if self.limit == Some(self.at) {
                return Ok(Next::Done);
            }
            let Some(row) = self.merge_one() else { return Ok(Next::Done) };
            self.order.push(row);
        }
        let row = self.order[self.at];
        self.at += 1;
        self.rows.restore(row as usize, frame, &self.node.slots);
        Ok(Next::Row)
    }

    fn rescan(&mut self, forget: bool) {
        self.at = 0;
        if forget || self.phase != Phase::Merge {
            self.rows.clear();
            self.runs.clear();
            self.heap.clear();
            self.order.clear();
            self.sorted = 0;
            self.phase = Phase::Start;
            self.input.rescan(forget);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Node;
    use types::oid;

    /// Numbers, each with its place, sorted by number.
    fn sorted(numbers: &[i32], limit: Option<usize>) -> Vec<(i32, i32)> {
        let key = SortSlot { slot: 0, ty: oid::INT4, descending: false, nulls_first: false };
        let node = SortNode { input: Node::OneRow, keys: vec![key], slots: vec![0, 1], limit: None };
        let mut sort = Sort::new(&Arc::new(node));
        sort.limit = limit;
        for (place, &number) in numbers.iter().enumerate() {
            sort.push(&[Datum::Int4(number), Datum::Int4(place as i32)]);
        }
        while sort.sort_run() {}
        sort.begin_merge();
        let mut rows = Vec::new();
        while let Some(row) = sort.merge_one() {
            match sort.rows.row(row as usize, 2) {
                [Datum::Int4(number), Datum::Int4(place)] => rows.push((*number, *place)),
                other => panic!("{other:?}"),
            }
        }
        rows
    }

    #[test]
    fn runs_are_merged_and_equal_rows_keep_their_order() {
        for count in [0, 1, 2, RUN, RUN + 1, 5 * RUN - 3, 9 * RUN + 17] {
            let numbers: Vec<i32> = (0..count as i64).map(|i| (i * 7919 % 1009) as i32).collect();
            let mut expected: Vec<(i32, i32)> = numbers.iter().copied().zip(0..).collect();
            expected.sort();
            assert_eq!(sorted(&numbers, None), expected, "{count} rows");
            let mut first = sorted(&numbers, Some(300));
            first.truncate(300);
            // Rows that were dropped early are not counted: places of kept rows are those of their arrival.
            assert_eq!(first, expected[..count.min(300)], "the first of {count} rows");
        }
    }
}
