//! ORDER BY.
//!
//! Rows are sorted in short runs as they come, and the runs are merged as rows are asked for, so that no step takes long,
//! however many rows there are (rule R9). Where the rows lie is their [`Source`]'s: copied out of the registers, or in their tuples
//! ([`super::sorted_scan`]).

use std::cmp::Ordering;
use std::sync::Arc;

use base::watch;
use base::{Result, work};
use sql_ir::expr::Slot;
use sql_plan::{SortNode, SortSlot};
use types::Datum;

use super::limit::{limit_of, offset_of};
use super::rows::RowStore;
use super::team::{self, Parts};
use super::{Cx, Next, Operator, operator};

/// Where the rows of a sort come from, and where they are kept.
pub(super) trait Source {
    /// Puts the next row where [`Source::take`] finds it.
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next>;

    /// The first key of that row, as [`Source::head`] of a kept one.
    fn next_head(&self, registers: &[Datum]) -> u64;

    /// How that row compares with a kept one by all keys.
    fn compare_next(&self, registers: &[Datum], kept: usize) -> Ordering;

    /// Reads what is left of that row.
    fn complete(&mut self, _registers: &mut [Datum]) -> Result<()> {
        Ok(())
    }

    /// Keeps that row. Answers the bytes it takes; `None` if it is not wanted.
    fn take(&mut self, registers: &[Datum]) -> Option<usize>;

    /// Rows kept.
    fn len(&self) -> usize;

    /// The first key of a kept row, abbreviated: a row with a lesser one comes first.
    fn head(&self, row: usize) -> u64;

    /// Which of two kept rows comes first by all keys.
    fn compare(&self, a: usize, b: usize) -> Ordering;

    /// Drops all rows but these, which get the numbers 0, 1, ….
    fn keep(&mut self, rows: &[Kept]);

    /// Begins anew.
    fn rescan(&mut self, forget: bool);
}

/// Sorts the rows of a source. Equal rows keep their order.
pub(super) struct Sort<S> {
    pub node: Arc<SortNode>,
    pub source: S,
    /// The rows. Those before `sorted` are in runs of [`RUN`] that are sorted each.
    runs: Vec<Kept>,
    sorted: usize,
    /// What is left of each run, as a heap: the run with the least next row is first.
    heap: Vec<Rest>,
    /// Row numbers in their final order, as far as they are known.
    order: Vec<u32>,
    /// At most so many rows are wanted; decided at the first row.
    limit: Option<usize>,
    /// The last of as many kept rows as are wanted: what is not before it is not wanted.
    bound: Option<Kept>,
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
pub(super) struct Kept {
    /// See [`Source::head`].
    head: u64,
    pub row: u32,
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

/// What a first key is abbreviated to, given what its value is.
pub(super) fn head(key: &SortSlot, value: Option<u64>) -> u64 {
    match (value, key.descending) {
        (None, _) if key.nulls_first => 0,
        (None, _) => u64::MAX,
        (Some(value), true) => !value,
        (Some(value), false) => value,
    }
}

/// What a value as a first key is abbreviated to.
fn head_of(key: &SortSlot, value: &Datum) -> u64 {
    head(key, (!value.is_null()).then(|| types::abbreviate(key.ty, &value.as_ref())))
}

/// The order of two rows by one key; the values are compared by `compare` if both are there.
#[inline]
pub(super) fn order(key: &SortSlot, nulls: (bool, bool), compare: impl FnOnce() -> Ordering) -> Ordering {
    match nulls {
        (true, true) => Ordering::Equal,
        (true, false) if key.nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if key.nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if key.descending => compare().reverse(),
        (false, false) => compare(),
    }
}

impl<S: Source> Sort<S> {
    pub fn of(node: &Arc<SortNode>, source: S) -> Sort<S> {
        Sort {
            source,
            node: Arc::clone(node),
            runs: Vec::new(),
            sorted: 0,
            heap: Vec::new(),
            order: Vec::new(),
            limit: None,
            bound: None,
            phase: Phase::Start,
            at: 0,
        }
    }

    /// Which of two kept rows comes first; of equal ones the one that came first.
    #[inline]
    fn compare(source: &S, a: Kept, b: Kept) -> Ordering {
        let rest = || source.compare(a.row as usize, b.row as usize).then(a.row.cmp(&b.row));
        a.head.cmp(&b.head).then_with(rest)
    }

    /// Whether the source's row comes before a kept one, which came earlier.
    #[inline]
    fn is_before(&self, registers: &[Datum], kept: Kept) -> bool {
        let head = self.source.next_head(registers);
        head < kept.head || head == kept.head && self.source.compare_next(registers, kept.row as usize).is_lt()
    }

    /// Takes the source's row in.
    fn push(&mut self, registers: &mut [Datum]) -> Result<usize> {
        if self.bound.is_some_and(|bound| !self.is_before(registers, bound)) {
            return Ok(0);
        }
        if self.node.is_late {
            self.source.complete(registers)?;
        }
        let Some(bytes) = self.source.take(registers) else { return Ok(0) };
        let row = self.source.len() - 1;
        self.runs.push(Kept { head: self.source.head(row), row: row as u32 });
        match self.limit {
            Some(limit) if self.runs.len() >= limit.max(256).saturating_mul(PRUNE_FACTOR) => self.prune(limit),
            Some(_) => {}
            None if self.runs.len() - self.sorted >= RUN => _ = self.sort_run(),
            None => {}
        }
        // The row and its places in `runs` and `order`.
        Ok(bytes + size_of::<Kept>() + 4)
    }

    /// Makes a run of the first rows that are in none; `false` if there are no such rows.
    fn sort_run(&mut self) -> bool {
        watch::does(watch::Phase::Sort);
        let start = self.sorted;
        let end = (start + RUN).min(self.runs.len());
        let source = &self.source;
        self.runs[start..end].sort_unstable_by(|&a, &b| Sort::compare(source, a, b));
        self.sorted = end;
        end > start
    }

    /// Keeps only the first `limit` rows once there are many more.
    fn prune(&mut self, limit: usize) {
        let source = &self.source;
        if limit < self.runs.len() {
            self.runs.select_nth_unstable_by(limit, |&a, &b| Sort::compare(source, a, b));
            self.runs.truncate(limit);
        }
        // Rows keep their order of arrival, which decides between equal ones.
        self.runs.sort_unstable_by_key(|kept| kept.row);
        let last = (0..self.runs.len()).max_by(|&a, &b| Sort::compare(source, self.runs[a], self.runs[b]));
        self.source.keep(&self.runs);
        self.runs.iter_mut().zip(0..).for_each(|(kept, row)| kept.row = row);
        self.bound = last.map(|at| self.runs[at]);
    }

    /// Makes the heap of runs.
    fn begin_merge(&mut self) {
        let end = self.runs.len();
        self.heap.clear();
        self.heap.extend((0..end).step_by(RUN).map(|at| Rest { at: at as u32, end: (at + RUN).min(end) as u32 }));
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
        let is_less = |sort: &Sort<S>, a: usize, b: usize| {
            let next = |at: usize| sort.runs[sort.heap[at].at as usize];
            Sort::compare(&sort.source, next(a), next(b)).is_lt()
        };
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                return;
            }
            if child + 1 < self.heap.len() && is_less(self, child + 1, child) {
                child += 1;
            }
            if is_less(self, at, child) {
                return;
            }
            self.heap.swap(at, child);
            at = child;
        }
    }

    /// Decides how many rows are wanted.
    fn start(&mut self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        if let Some((limit, offset)) = &self.node.limit {
            let offset = match offset {
                Some(code) => offset_of(code, cx, registers)?,
                None => 0,
            };
            let limit = limit_of(limit, cx, registers)?;
            self.limit = limit.and_then(|l| usize::try_from(l.saturating_add(offset)).ok());
        }
        self.phase = Phase::Input;
        Ok(())
    }

    /// Takes all rows in and sorts them into runs. Answers what must be waited for first.
    fn take_all(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Option<Next>> {
        if self.phase == Phase::Start {
            self.start(cx, registers)?;
        }
        while self.phase == Phase::Input {
            match self.source.next(cx, registers)? {
                Next::Row => {
                    let bytes = self.push(registers)?;
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

    /// Goes to the next row; [`Sort::row`] is its number.
    pub fn advance(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if self.phase != Phase::Merge
            && let Some(wait) = self.take_all(cx, registers)?
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
        self.at += 1;
        Ok(Next::Row)
    }

    /// The number of the row that was announced last.
    pub fn row(&self) -> Option<usize> {
        self.order.get(self.at.checked_sub(1)?).map(|row| *row as usize)
    }

    /// See [`Operator::rescan`].
    pub fn begin_anew(&mut self, forget: bool) {
        self.at = 0;
        if forget || self.phase != Phase::Merge {
            self.clear();
            self.source.rescan(forget);
        }
    }

    /// Forgets the rows; what the source keeps of them stays.
    pub fn clear(&mut self) {
        self.at = 0;
        self.runs.clear();
        self.heap.clear();
        self.order.clear();
        self.sorted = 0;
        self.bound = None;
        self.phase = Phase::Start;
    }
}

/// Rows that an operator puts into the registers; what is used of them is copied.
pub(super) struct Copied {
    node: Arc<SortNode>,
    input: Box<dyn Operator>,
    /// Where the keys are among the kept slots.
    keys: Vec<(usize, SortSlot)>,
    rows: RowStore,
}

impl Copied {
    /// The rows of a sort's input, to be compared by `keys`, which are some of the sort's.
    pub fn new(node: &Arc<SortNode>, keys: &[SortSlot]) -> Copied {
        let place = |slot| node.slots.iter().position(|s| *s == slot).unwrap_or(0);
        let keys = keys.iter().map(|key| (place(key.slot), *key)).collect();
        let (input, rows) = (operator(&node.input), RowStore::default());
        Copied { node: Arc::clone(node), input, keys, rows }
    }

    /// The slots that are kept of a row.
    pub fn slots(&self) -> &[Slot] {
        &self.node.slots
    }

    fn row(&self, row: usize) -> &[Datum] {
        self.rows.row(row)
    }

    /// Puts a kept row back into the registers.
    pub fn restore(&self, row: usize, registers: &mut [Datum]) {
        self.rows.restore(row, registers, &self.node.slots);
    }

    /// Drops the kept rows.
    pub fn clear(&mut self) {
        self.rows.clear();
    }
}

impl Source for Copied {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        self.input.next(cx, registers)
    }

    fn next_head(&self, registers: &[Datum]) -> u64 {
        self.keys.first().map_or(0, |(_, key)| head_of(key, &registers[key.slot as usize]))
    }

    fn compare_next(&self, registers: &[Datum], kept: usize) -> Ordering {
        let kept = self.row(kept);
        let pairs = self.keys.iter().map(|(place, key)| (key, &registers[key.slot as usize], &kept[*place]));
        compare_pairs(pairs)
    }

    fn complete(&mut self, registers: &mut [Datum]) -> Result<()> {
        self.input.read_late(registers)
    }

    fn take(&mut self, registers: &[Datum]) -> Option<usize> {
        Some(self.rows.push(registers, &self.node.slots))
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn head(&self, row: usize) -> u64 {
        self.keys.first().map_or(0, |(place, key)| head_of(key, &self.row(row)[*place]))
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        compare_keys(&self.keys, self.row(a), self.row(b))
    }

    fn keep(&mut self, rows: &[Kept]) {
        let all: Vec<u32> = (0..self.node.slots.len() as u32).collect();
        let mut kept = RowStore::default();
        for Kept { row, .. } in rows {
            kept.push(self.row(*row as usize), &all);
        }
        self.rows = kept;
    }

    fn rescan(&mut self, forget: bool) {
        self.rows.clear();
        self.input.rescan(forget);
    }
}

impl Sort<Copied> {
    pub fn new(node: &Arc<SortNode>) -> Sort<Copied> {
        Sort::of(node, Copied::new(node, &node.keys))
    }
}

impl Operator for Sort<Copied> {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let next = self.advance(cx, registers)?;
        if let (Next::Row, Some(row)) = (&next, self.row()) {
            self.source.restore(row, registers);
        }
        Ok(next)
    }

    fn prepare(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        self.source.input.prepare(cx, registers)
    }

    fn split(&mut self, cx: &mut Cx<'_, '_>, parts: &mut Option<Arc<Parts>>) -> Result<team::Copied> {
        let Some(input) = self.source.input.split(cx, parts)? else { return Ok(None) };
        let (node, keys) = (Arc::clone(&self.node), self.source.keys.clone());
        let source = Copied { node, input, keys, rows: RowStore::default() };
        Ok(Some(Box::new(Sort::of(&self.node, source))))
    }

    fn rescan(&mut self, forget: bool) {
        self.begin_anew(forget);
    }
}

/// Compares two rows by sort keys.
pub(super) fn compare_keys(keys: &[(usize, SortSlot)], a: &[Datum], b: &[Datum]) -> Ordering {
    compare_pairs(keys.iter().map(|(place, key)| (key, &a[*place], &b[*place])))
}

#[inline]
fn compare_pairs<'d>(pairs: impl Iterator<Item = (&'d SortSlot, &'d Datum, &'d Datum)>) -> Ordering {
    work::beat(8);
    for (key, x, y) in pairs {
        let found = order(key, (x.is_null(), y.is_null()), || types::compare_as(key.ty, &x.as_ref(), &y.as_ref()));
        if found.is_ne() {
            return found;
        }
    }
    Ordering::Equal
}

/// The values of keys in a row.
pub(super) fn values_of(keys: &[SortSlot], registers: &[Datum]) -> Vec<Datum> {
    keys.iter().map(|key| registers[key.slot as usize].clone()).collect()
}

/// Whether a row has these values of keys.
pub(super) fn has_values(keys: &[SortSlot], values: &[Datum], registers: &[Datum]) -> bool {
    keys.iter().zip(values).all(|(key, wanted)| {
        let value = &registers[key.slot as usize];
        match (value.is_null(), wanted.is_null()) {
            (false, false) => types::compare_as(key.ty, &value.as_ref(), &wanted.as_ref()).is_eq(),
            (a, b) => a && b,
        }
    })
}

#[cfg(test)]
mod tests {
    use sql_plan::Node;
    use types::oid;

    use super::*;

    /// Numbers, each with its place, sorted by number.
    fn sorted(numbers: &[i32], limit: Option<usize>) -> Vec<(i32, i32)> {
        let key = SortSlot { slot: 0, ty: oid::INT4, descending: false, nulls_first: false };
        let node = SortNode { input: Node::OneRow, keys: vec![key], slots: vec![0, 1], limit: None, is_late: false };
        let mut sort = Sort::new(&Arc::new(node));
        sort.limit = limit;
        for (place, &number) in numbers.iter().enumerate() {
            sort.push(&mut [Datum::Int4(number), Datum::Int4(place as i32)]).unwrap();
        }
        while sort.sort_run() {}
        sort.begin_merge();
        let mut rows = Vec::new();
        while let Some(row) = sort.merge_one() {
            match sort.source.row(row as usize) {
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
