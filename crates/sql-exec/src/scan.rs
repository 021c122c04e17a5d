//! Scans of stored tables: all rows, index ranges, one key, several keys.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Bound as KeyBound;
use std::sync::Arc;

use base::work::{self, Count as _};
use base::{Error, Oid, Result, RowId};
use engine_api::{BatchRow, KeyRange, RowBatch, RowContent, ScanSpec, TableRef};
use smallvec::SmallVec;
use sql_ir::expr::{all_true, count_conditions};
use sql_ir::row_codec::StoredRow;
use sql_ir::system_column::row_at;
use sql_plan::{Access, KeyColumn, KeyPart, KeySpan, KeyValue, ListSource, ScanNode, Stage};
use types::{Datum, oid};

use super::in_place;
use super::stored_test::StoredTest;
use super::team::{Copied, Parts, in_parts};
use super::{Cx, Next, Operator};

/// Rows asked of the engine at first, unless one is enough; a scan that goes on asks for more.
pub(super) const FIRST_BATCH: usize = 16;

/// Rows asked of the engine at most.
pub(super) const LARGEST_BATCH: usize = 512;

/// A scan of a stored table.
pub(super) struct Scan {
    node: Arc<ScanNode>,
    batch: RowBatch,
    at: usize,
    state: ScanState,
    size: usize,
    /// Rows read that are not in the batch.
    read: usize,
    /// So many of the first conditions hold of the rows in the batch.
    tested: usize,
    key: Vec<u8>,
    /// What only the result has is not put into the registers: [`Scan::row`] is asked for it.
    straight: bool,
    /// It gives the rows of the parts that it takes.
    parts: Option<Arc<Parts>>,
    /// What `at` was when the late columns of a row of the batch were read; 0 if none were.
    read_at: usize,
}

enum ScanState {
    Start,
    /// The engine's scan.
    Open(Box<dyn engine_api::Scan>),
    /// Keys of an IN list still to look up.
    Keys(VecDeque<Vec<u8>>),
    /// Rows still to fetch.
    Rows(VecDeque<RowId>),
    /// Ranges still to scan, and the scan of one of them.
    Ranges {
        waiting: VecDeque<KeyRange>,
        scan: Option<Box<dyn engine_api::Scan>>,
        /// The scan is not at the end of its range.
        is_entered: bool,
    },
    /// Ranges whose rows are put into one order.
    Merge(Box<Merge>),
    /// Ranges of several indexes still to scan, the scan of one, and the rows found.
    Gather(Box<Gather>),
    /// Nothing beyond the batch.
    Last,
}

/// Ranges that are read at once, if they are short.
const RANGES_AT_ONCE: usize = 16;

/// Rows that a scan asks the engine for at first.
fn first_batch(node: &ScanNode) -> usize {
    if node.one_is_enough { 1 } else { FIRST_BATCH }
}

/// Ranges of an index that are read beside each other, in the order of what is behind the prefix of each.
struct Merge {
    ranges: Vec<MergedRange>,
    /// The next key of each range that has one, behind its prefix, and the number of the range.
    ahead: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    /// As `ahead`, read backwards.
    back: BinaryHeap<(Vec<u8>, usize)>,
    /// Ranges that have not been looked at yet.
    begun: usize,
}

/// One of the ranges that are merged.
struct MergedRange {
    range: KeyRange,
    /// Bytes of the prefix.
    prefix: usize,
    scan: Option<Box<dyn engine_api::Scan>>,
    /// Keys of rows.
    batch: RowBatch,
    at: usize,
    size: usize,
}

/// Rows of a union on their way.
struct Gather {
    waiting: VecDeque<(Oid, KeyRange)>,
    scan: Option<Box<dyn engine_api::Scan>>,
    rows: Vec<RowId>,
}

impl Scan {
    pub fn new(node: &Arc<ScanNode>) -> Scan {
        Scan {
            node: Arc::clone(node),
            batch: RowBatch::new(),
            at: 0,
            state: ScanState::Start,
            size: first_batch(node),
            read: 0,
            tested: 0,
            key: Vec::new(),
            straight: false,
            parts: None,
            read_at: 0,
        }
    }

    /// A scan whose rows are looked at where they are.
    pub fn straight(node: &Arc<ScanNode>) -> Scan {
        Scan { straight: true, ..Scan::new(node) }
    }

    /// See [`Operator::split`].
    pub fn divide(&mut self, cx: &mut Cx<'_, '_>, parts: &mut Option<Arc<Parts>>) -> Result<Scan> {
        let node = Arc::clone(&self.node);
        let table = node.table.open(cx.run.txn)?;
        let spec = ScanSpec {
            table: table.clone(),
            index: None,
            range: KeyRange::all(),
            reverse: false,
            content: node.content,
        };
        if self.parts.is_none() {
            let mut own = cx.run.txn.open_scan(spec.clone())?;
            in_parts(&mut *own, parts);
            self.parts.clone_from(parts);
            self.state = ScanState::Open(own);
            self.size = LARGEST_BATCH;
        }
        let mut other = cx.run.txn.open_scan(spec)?;
        in_parts(&mut *other, parts);
        let (state, parts) = (ScanState::Open(other), self.parts.clone());
        Ok(Scan { state, parts, size: LARGEST_BATCH, straight: self.straight, ..Scan::new(&node) })
    }

    /// Goes on by as many rows as are at hand, of which nothing is wanted: how many, with `Row` if there are any.
    pub fn next_many(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<(usize, Next)> {
        if matches!(self.state, ScanState::Start) {
            self.start(cx, registers)?;
        }
        loop {
            let from = std::mem::replace(&mut self.at, self.batch.len());
            let mut rows = self.batch.len() - from;
            if self.node.filter.len() > self.tested {
                rows = 0;
                for at in from..self.batch.len() {
                    let row = self.batch.row(at);
                    rows += usize::from(passes(&self.node, row, self.straight, self.tested, cx, registers)?);
                }
            }
            if rows > 0 {
                return Ok((rows, Next::Row));
            }
            if let Some(next) = self.go_on(cx, registers)? {
                return Ok((0, next));
            }
        }
    }

    /// Gets more rows, when those at hand have been given: what comes instead of a row.
    #[inline(always)]
    fn go_on(&mut self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<Option<Next>> {
        if let Some(wait) = cx.run.tick(self.batch.len() + std::mem::take(&mut self.read))? {
            self.batch.clear();
            self.at = 0;
            return Ok(Some(Next::Wait(wait)));
        }
        Ok((!self.fill(cx, registers)?).then_some(Next::Done))
    }

    /// The row that was announced last, as it was stored.
    pub fn tuple(&self) -> Option<BatchRow<'_>> {
        Some(self.batch.row(self.at.checked_sub(1)?))
    }

    /// The row that was announced last.
    #[inline(always)]
    pub fn row(&self) -> Option<StoredRow<'_>> {
        self.node.reader.stored(self.tuple()?)
    }

    fn start(&mut self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        let node = Arc::clone(&self.node);
        let table = node.table.open(cx.run.txn)?;
        self.key.clear();
        self.state = match &node.access {
            Access::Places(values) => ScanState::Rows(rows_at(values, cx, registers)?),
            Access::Full => open(cx, table, None, KeyRange::all(), false, node.content)?,
            Access::Point { index, key } => {
                if push_parts(key, cx, registers, &mut self.key)? {
                    if node.one_is_enough {
                        cx.run.txn.get_any(table, *index, &self.key, &mut self.batch)?;
                    } else {
                        cx.run.txn.get(table, *index, &self.key, &mut self.batch)?;
                    }
                }
                ScanState::Last
            }
            Access::Multi { key, .. } => ScanState::Keys(keys_of(key, cx, registers)?.into()),
            Access::Range { index, span, reverse } => {
                if !push_parts(&span.prefix, cx, registers, &mut self.key)? {
                    ScanState::Last
                } else {
                    match range(&self.key, span, cx, registers)? {
                        Some(range) => open(cx, table, Some(*index), range, *reverse, node.content)?,
                        None => ScanState::Last,
                    }
                }
            }
            Access::Ranges { index, spans, merges: false, .. } => {
                let mut ranges = Vec::with_capacity(spans.len());
                for span in spans {
                    let found = ranges_of(span, (table, *index), cx, registers)?;
                    ranges.extend(found.into_iter().map(|(range, _)| range));
                }
                ScanState::Ranges { waiting: merged(ranges), scan: None, is_entered: false }
            }
            Access::Ranges { index, spans, merges: true, .. } => {
                let mut ranges = Vec::new();
                for span in spans {
                    ranges.append(&mut ranges_of(span, (table, *index), cx, registers)?);
                }
                cx.run.charge(ranges.len() * size_of::<MergedRange>())?;
                ScanState::Merge(Box::new(Merge::new(ranges)))
            }
            Access::Union(parts) => {
                let mut waiting = VecDeque::new();
                for part in parts {
                    let found = ranges_of(&part.span, (table, part.index), cx, registers)?;
                    let ranges = found.into_iter().map(|(range, _)| range).collect();
                    waiting.extend(merged(ranges).into_iter().map(|range| (part.index, range)));
                }
                ScanState::Gather(Box::new(Gather { waiting, scan: None, rows: Vec::new() }))
            }
        };
        Ok(())
    }

    /// Gets more rows into the batch; `false` if there are none.
    fn fill(&mut self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<bool> {
        self.batch.clear();
        self.at = 0;
        self.read_at = 0;
        self.tested = 0;
        match &mut self.state {
            ScanState::Open(scan) => {
                self.tested = self.node.pushed;
                let (more, read) = read_on(&mut **scan, &self.node, self.size, cx, registers, &mut self.batch)?;
                self.read = read - self.batch.len();
                self.size = (self.size * 4).min(LARGEST_BATCH);
                if more {
                    return Ok(true);
                }
                match self.parts.as_ref().filter(|_| cx.run.takes_parts).and_then(|parts| parts.take()) {
                    Some((from, until)) => {
                        scan.take_part(from, until);
                        return Ok(true);
                    }
                    None => self.state = ScanState::Last,
                }
                Ok(!self.batch.is_empty() || self.read > 0)
            }
            ScanState::Keys(keys) => {
                let Access::Multi { index, .. } = &self.node.access else {
                    return Err(Error::internal("a list of keys without its access"));
                };
                let table = self.node.table.open(cx.run.txn)?;
                while self.batch.len() < FIRST_BATCH && !self.batch.is_full() {
                    let Some(key) = keys.pop_front() else { break };
                    cx.run.txn.get(table, *index, &key, &mut self.batch)?;
                }
                Ok(!self.batch.is_empty() || !keys.is_empty())
            }
            ScanState::Rows(rows) => {
                let table = self.node.table.open(cx.run.txn)?;
                while self.batch.len() < FIRST_BATCH && !self.batch.is_full() {
                    let Some(row) = rows.pop_front() else { break };
                    work::step(4)?;
                    cx.run.txn.fetch(table, row, &mut self.batch)?;
                }
                Ok(!self.batch.is_empty() || !rows.is_empty())
            }
            ScanState::Merge(merge) => {
                let Access::Ranges { index, reverse, .. } = &self.node.access else {
                    return Err(Error::internal("ranges without their access"));
                };
                let table = self.node.table.open(cx.run.txn)?;
                while self.batch.len() < FIRST_BATCH && !self.batch.is_full() {
                    work::step(ITEM_UNITS)?;
                    match merge.next(table, *index, *reverse, cx)? {
                        Merged::Row(row) => _ = cx.run.txn.fetch(table, row, &mut self.batch)?,
                        Merged::Busy => return Ok(true),
                        Merged::Done => return Ok(!self.batch.is_empty()),
                    }
                }
                Ok(true)
            }
            ScanState::Gather(gather) => {
                let table = self.node.table.open(cx.run.txn)?;
                if !gather.read(table, self.size, cx, &mut self.batch)? {
                    self.state = ScanState::Rows(std::mem::take(&mut gather.rows).into());
                }
                self.read = self.batch.len();
                self.batch.clear();
                self.size = (self.size * 4).min(LARGEST_BATCH);
                Ok(true)
            }
            ScanState::Ranges { waiting, scan, is_entered } => {
                let Access::Ranges { index, reverse, .. } = &self.node.access else {
                    return Err(Error::internal("ranges without their access"));
                };
                let (index, reverse) = (*index, *reverse);
                let content = self.node.content;
                let table = self.node.table.open(cx.run.txn)?;
                self.tested = self.node.pushed;
                let mut all = 0;
                // Short ranges are read several at a time.
                for _ in 0..RANGES_AT_ONCE {
                    if !*is_entered {
                        let next = if reverse { waiting.pop_back() } else { waiting.pop_front() };
                        let Some(range) = next else { break };
                        work::step(ITEM_UNITS)?;
                        enter(scan, cx, range, table, index, reverse, content)?;
                        *is_entered = true;
                    }
                    let Some(scan) = scan else { break };
                    let (more, read) = read_on(&mut **scan, &self.node, self.size, cx, registers, &mut self.batch)?;
                    all += read;
                    *is_entered = more;
                    if more || all >= self.size || self.batch.is_full() {
                        self.size = (self.size * 4).min(LARGEST_BATCH);
                        break;
                    }
                }
                self.read = all - self.batch.len();
                Ok(*is_entered || all > 0 || !waiting.is_empty())
            }
            ScanState::Start | ScanState::Last => Ok(false),
        }
    }
}

impl Operator for Scan {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if matches!(self.state, ScanState::Start) {
            self.start(cx, registers)?;
        }
        loop {
            while self.at < self.batch.len() {
                let row = self.batch.row(self.at);
                self.at += 1;
                if passes(&self.node, row, self.straight, self.tested, cx, registers)? {
                    return Ok(Next::Row);
                }
            }
            if let Some(next) = self.go_on(cx, registers)? {
                return Ok(next);
            }
        }
    }

    fn read_late(&mut self, registers: &mut [Datum]) -> Result<()> {
        if self.node.is_late && std::mem::replace(&mut self.read_at, self.at) != self.at {
            let row = self.tuple().ok_or_else(|| Error::internal("columns of no row"))?;
            if !self.node.reader.read_from(self.node.early, row, registers) {
                return Err(Error::internal("a row of an unknown layout"));
            }
        }
        Ok(())
    }

    fn split(&mut self, cx: &mut Cx<'_, '_>, parts: &mut Option<Arc<Parts>>) -> Result<Copied> {
        Ok(Some(Box::new(self.divide(cx, parts)?)))
    }

    fn rescan(&mut self, _: bool) {
        self.parts = None;
        self.batch.clear();
        self.at = 0;
        self.read_at = 0;
        self.size = first_batch(&self.node);
        self.state = ScanState::Start;
    }
}

/// Reads on in an open scan, at most `size` rows: those for which the conditions that are pushed down hold get into the batch. Answers whether
/// there may be more, and how many rows were read.
#[inline]
fn read_on(
    scan: &mut dyn engine_api::Scan,
    node: &ScanNode,
    size: usize,
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
    batch: &mut RowBatch,
) -> Result<(bool, usize)> {
    if node.pushed == 0 {
        let before = batch.len();
        let more = scan.next(cx.run.txn, size, batch)?;
        return Ok((more, batch.len() - before));
    }
    let mut tests: SmallVec<[StoredTest<'_>; 4]> = SmallVec::new();
    for (stage, condition) in node.stages.iter().zip(&node.filter).take(node.pushed) {
        tests.push(StoredTest::new(*stage, condition, registers)?);
    }
    let mut takes = |row: BatchRow<'_>| {
        let Some(row) = node.reader.stored(row) else { return false };
        tests.iter().all(|test| test.holds(&row))
    };
    let found = scan.next_taken(cx.run.txn, size, &mut takes, batch)?;
    let units: usize = tests.iter().map(StoredTest::units).sum();
    if units > 1 {
        work::step(found.1 * units)?;
    }
    Ok(found)
}

/// Reads a row, if the filter lets it through, of which the first `tested` conditions have; what is read only then comes last, or stays in
/// the row. Always inline: it is most of what a scan does.
#[inline(always)]
fn passes(
    node: &ScanNode,
    row: BatchRow<'_>,
    straight: bool,
    tested: usize,
    cx: &mut Cx<'_, '_>,
    registers: &mut [Datum],
) -> Result<bool> {
    if let Some(keys) = &node.keys {
        if !keys.read(row.tuple, registers) {
            return Err(Error::internal("a key that is none of its index"));
        }
        return all_true(&node.filter, cx, registers);
    }
    if straight && node.filter.len() == tested {
        return Ok(node.reader.knows(row));
    }
    let Some(mut reading) = node.reader.begin(row, registers) else { return Ok(false) };
    count_conditions(&node.filter[tested..])?;
    for (at, condition) in node.filter.iter().enumerate().skip(tested) {
        let holds = match node.stages[at] {
            Stage::Columns(needed) => {
                reading.up_to(needed, registers);
                condition.truth(cx, registers)? == Some(true)
            }
            Stage::InPlace => in_place::truth(condition, &reading.row, cx, registers)? == Some(true),
            stage => StoredTest::new(stage, condition, registers)?.holds(&reading.row),
        };
        if !holds {
            return Ok(false);
        }
    }
    if node.is_late {
        reading.up_to(node.early, registers);
    } else if !straight {
        reading.finish(registers);
    }
    Ok(true)
}

fn open(
    cx: &mut Cx<'_, '_>,
    table: &TableRef,
    index: Option<Oid>,
    range: KeyRange,
    reverse: bool,
    content: RowContent,
) -> Result<ScanState> {
    Ok(ScanState::Open(cx.run.txn.open_scan(ScanSpec { table: table.clone(), index, range, reverse, content })?))
}

/// Begins a range of an index: with the scan that has read others of it, or with a new one.
fn enter<'s>(
    scan: &'s mut Option<Box<dyn engine_api::Scan>>,
    cx: &mut Cx<'_, '_>,
    range: KeyRange,
    table: &TableRef,
    index: Oid,
    reverse: bool,
    content: RowContent,
) -> Result<&'s mut Box<dyn engine_api::Scan>> {
    match scan {
        Some(scan) => {
            scan.enter(range);
            Ok(scan)
        }
        None => {
            let spec = ScanSpec { table: table.clone(), index: Some(index), range, reverse, content };
            Ok(scan.insert(cx.run.txn.open_scan(spec)?))
        }
    }
}

/// Appends the encoded parts of a key without lists; `false` if one can equal nothing (NULL, or a number that its column cannot hold).
fn push_parts(parts: &[KeyPart], cx: &mut Cx<'_, '_>, registers: &[Datum], out: &mut Vec<u8>) -> Result<bool> {
    for part in parts {
        match &part.value {
            KeyValue::Value(code) => match fit(code.eval(cx, registers)?, part.column.ty) {
                Fit::Value(value) => push_value(&value, part.column, out),
                _ => return Ok(false),
            },
            KeyValue::Null => push_value(&Datum::Null, part.column, out),
            KeyValue::List(_) | KeyValue::Any => return Err(Error::internal("several values in a single key")),
        }
    }
    Ok(true)
}

fn push_value(value: &Datum, column: KeyColumn, out: &mut Vec<u8>) {
    types::encode_key(value.as_ref(), column.ty, column.descending, column.nulls_first, out);
}

/// A value as its index column holds it.
enum Fit {
    Value(Datum),
    Null,
    /// Less than everything the column can hold.
    Below,
    /// More than that.
    Above,
}

fn fit(value: Datum, ty: Oid) -> Fit {
    let wide = match &value {
        Datum::Null => return Fit::Null,
        Datum::Int2(v) => *v as i64,
        Datum::Int4(v) => *v as i64,
        Datum::Int8(v) => *v,
        _ => return Fit::Value(value),
    };
    let narrow = match ty {
        oid::INT2 => i16::try_from(wide).ok().map(Datum::Int2),
        oid::INT4 => i32::try_from(wide).ok().map(Datum::Int4),
        oid::INT8 => Some(Datum::Int8(wide)),
        _ => return Fit::Value(value),
    };
    match narrow {
        Some(value) => Fit::Value(value),
        None if wide < 0 => Fit::Below,
        None => Fit::Above,
    }
}

/// Hands over the values of a list, counted.
fn each_item(values: &ListSource, cx: &mut Cx<'_, '_>, registers: &[Datum], mut take: impl FnMut(Datum)) -> Result<()> {
    match values {
        ListSource::List(codes) => {
            for code in codes {
                work::step(ITEM_UNITS)?;
                take(code.eval(cx, registers)?);
            }
        }
        ListSource::Array(code) => {
            if let Datum::Array(array) = code.eval(cx, registers)? {
                for value in &array.values {
                    work::step(ITEM_UNITS)?;
                    take(value.clone());
                }
            }
        }
    }
    Ok(())
}

/// Of a value of a list: evaluating it, its key, and its part in a sort.
const ITEM_UNITS: usize = 32;

/// Sorts what a list has led to, each once.
fn sort_once<T: Ord>(values: &mut Vec<T>) {
    values.sort_unstable_by(|a, b| {
        work::beat(4);
        a.cmp(b)
    });
    values.dedup_by(|a, b| {
        work::beat(2);
        a == b
    });
}

/// The rows that some places mean in order, each once.
fn rows_at(values: &ListSource, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<VecDeque<RowId>> {
    let mut rows = Vec::new();
    each_item(values, cx, registers, |place| rows.extend(row_at(&place)))?;
    sort_once(&mut rows);
    Ok(rows.into())
}

/// Keys that lists are put together to, at most: a list by which they would be more is left out, and all that is behind it.
const KEYS_MAX: usize = 100_000;

/// The first parts of keys, in order and each once: those of all values of their lists.
fn keys_of(parts: &[KeyPart], cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<Vec<Vec<u8>>> {
    Ok(first_keys(parts, None, cx, registers)?.0)
}

/// As [`keys_of`], and how many of the parts the keys have.
fn first_keys(
    parts: &[KeyPart],
    of: Option<(&TableRef, Oid)>,
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
) -> Result<(Vec<Vec<u8>>, usize)> {
    let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
    let mut has_list = false;
    for (at, part) in parts.iter().enumerate() {
        if let (KeyValue::Any, Some((table, index))) = (&part.value, of) {
            match next_columns(&keys, part.column, table, index, cx)? {
                Some(found) => keys = found,
                None => return Ok((keys, at)),
            }
            continue;
        }
        let KeyValue::List(values) = &part.value else {
            let mut more = Vec::new();
            if !push_parts(std::slice::from_ref(part), cx, registers, &mut more)? {
                return Ok((Vec::new(), parts.len()));
            }
            keys.iter_mut().counted(8).for_each(|key| key.extend_from_slice(&more));
            continue;
        };
        let mut items: Vec<Vec<u8>> = Vec::with_capacity(values.least());
        each_item(values, cx, registers, |item| {
            if let Fit::Value(value) = fit(item, part.column.ty) {
                let mut bytes = Vec::new();
                push_value(&value, part.column, &mut bytes);
                items.push(bytes);
            }
        })?;
        sort_once(&mut items);
        if has_list && keys.len().saturating_mul(items.len()) > KEYS_MAX {
            return Ok((keys, at));
        }
        has_list = true;
        let bytes: usize = keys.iter().chain(&items).map(|key| key.len() + size_of::<Vec<u8>>()).sum();
        cx.run.charge(bytes)?;
        let mut product = Vec::with_capacity(keys.len() * items.len());
        for key in &keys {
            work::step(items.len() * 4)?;
            product.extend(items.iter().map(|item| [key.as_slice(), item.as_slice()].concat()));
        }
        keys = product;
    }
    Ok((keys, parts.len()))
}

/// Keys of a column that are passed, at most.
const PASSED_MAX: usize = 10_000;

/// The keys that there are in an index of one more column than these have, in order; `None` if they are many.
fn next_columns(
    keys: &[Vec<u8>],
    column: KeyColumn,
    table: &TableRef,
    index: Oid,
    cx: &mut Cx<'_, '_>,
) -> Result<Option<Vec<Vec<u8>>>> {
    let mut found = Vec::new();
    let mut batch = RowBatch::new();
    let mut scan: Option<Box<dyn engine_api::Scan>> = None;
    for key in keys {
        let KeyRange { mut lower, upper } = KeyRange::prefix(key);
        loop {
            work::step(ITEM_UNITS)?;
            let range = KeyRange { lower: lower.clone(), upper: upper.clone() };
            let scan = enter(&mut scan, cx, range, table, index, false, RowContent::Key)?;
            batch.clear();
            // A row that is gone leaves its key behind for a while.
            while batch.is_empty() && scan.next(cx.run.txn, 1, &mut batch)? {
                work::step(ITEM_UNITS)?;
            }
            if batch.is_empty() {
                break;
            }
            let whole = batch.row(0).tuple;
            let rest = whole.get(key.len()..).unwrap_or_default();
            let Some((value, _)) = types::split_key(rest, column.ty, column.descending) else {
                return Err(Error::internal("a key that is none of its index"));
            };
            let next = whole[..key.len() + value.len()].to_vec();
            if found.len() == PASSED_MAX {
                return Ok(None);
            }
            cx.run.charge(next.len() + size_of::<Vec<u8>>())?;
            lower = after(&next);
            found.push(next);
        }
    }
    Ok(Some(found))
}

/// The keys between the ends of a span in the column behind its prefix, for one combination of the values of that; `None` if there can
/// be none.
fn range(prefix: &[u8], span: &KeySpan, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<Option<KeyRange>> {
    let whole = KeyRange::prefix(prefix);
    let Some(column) = span.next else { return Ok(Some(whole)) };
    let (mut from, mut to) = (None, None);
    for (bound, is_lower) in [(&span.lower, true), (&span.upper, false)] {
        let Some(bound) = bound else { continue };
        let mut inclusive = bound.inclusive;
        let value = match fit(bound.value.eval(cx, registers)?, column.ty) {
            Fit::Null => return Ok(None),
            Fit::Value(value) => value,
            // A bound that the column cannot reach excludes nothing (but NULLs) or all.
            Fit::Below if is_lower => continue,
            Fit::Above if !is_lower => continue,
            Fit::Below | Fit::Above => return Ok(None),
        };
        let mut key = prefix.to_vec();
        push_value(&value, column, &mut key);
        for (column, code) in &bound.more {
            match fit(code.eval(cx, registers)?, column.ty) {
                Fit::Value(value) => push_value(&value, *column, &mut key),
                // What follows decides among rows that are equal so far: they are in, and the condition is tested.
                Fit::Null | Fit::Below | Fit::Above => {
                    inclusive = true;
                    break;
                }
            }
        }
        // In a descending column the larger values come first.
        if is_lower != column.descending {
            from = Some(if inclusive { KeyBound::Included(key) } else { after(&key) });
        } else {
            to = Some(match inclusive {
                true => KeyRange::successor(&key).map_or(KeyBound::Unbounded, KeyBound::Excluded),
                false => KeyBound::Excluded(key),
            });
        }
    }
    // NULLs lie at one end: a bound there passes them over.
    if span.not_null && (if column.nulls_first { &from } else { &to }).is_none() {
        let mut key = prefix.to_vec();
        push_value(&Datum::Null, column, &mut key);
        match column.nulls_first {
            true => from = Some(after(&key)),
            false => to = Some(KeyBound::Excluded(key)),
        }
    }
    let (from, to) = (from.unwrap_or(whole.lower), to.unwrap_or(whole.upper));
    let empty = match (&from, &to) {
        (KeyBound::Included(from), KeyBound::Excluded(to)) => from >= to,
        _ => false,
    };
    Ok((!empty).then_some(KeyRange { lower: from, upper: to }))
}

/// The keys of a span without lists; `None` if there can be none.
pub(super) fn range_of(span: &KeySpan, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<Option<KeyRange>> {
    let mut prefix = Vec::new();
    if !push_parts(&span.prefix, cx, registers, &mut prefix)? {
        return Ok(None);
    }
    range(&prefix, span, cx, registers)
}

/// The ranges of a span, one for each combination of the values of its lists, with the bytes that all keys of each begin with.
fn ranges_of(
    span: &KeySpan,
    of: (&TableRef, Oid),
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
) -> Result<Vec<(KeyRange, usize)>> {
    let (keys, parts) = first_keys(&span.prefix, Some(of), cx, registers)?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        work::step(ITEM_UNITS)?;
        let range = match parts == span.prefix.len() {
            true => range(&key, span, cx, registers)?,
            false => Some(KeyRange::prefix(&key)),
        };
        found.extend(range.map(|range| (range, key.len())));
    }
    Ok(found)
}

/// What a merge gives next.
enum Merged {
    Row(RowId),
    /// Nothing yet: others may have their turn.
    Busy,
    Done,
}

impl Merge {
    fn new(ranges: Vec<(KeyRange, usize)>) -> Merge {
        let range = |(range, prefix)| MergedRange {
            range,
            prefix,
            scan: None,
            batch: RowBatch::new(),
            at: 0,
            size: FIRST_BATCH,
        };
        let ranges = ranges.into_iter().map(range).collect();
        Merge { ranges, ahead: BinaryHeap::new(), back: BinaryHeap::new(), begun: 0 }
    }

    /// The row of the next key.
    fn next(&mut self, table: &TableRef, index: Oid, reverse: bool, cx: &mut Cx<'_, '_>) -> Result<Merged> {
        let spec = |range: &KeyRange| ScanSpec {
            table: table.clone(),
            index: Some(index),
            range: range.clone(),
            reverse,
            content: RowContent::Key,
        };
        if let Some(range) = self.ranges.get_mut(self.begun) {
            let scan = cx.run.txn.open_scan(spec(&range.range))?;
            range.scan = Some(scan);
            self.advance(self.begun, reverse, cx)?;
            self.begun += 1;
            return Ok(Merged::Busy);
        }
        let next = if reverse { self.back.pop() } else { self.ahead.pop().map(|Reverse(next)| next) };
        let Some((_, number)) = next else { return Ok(Merged::Done) };
        let range = &mut self.ranges[number];
        let row = range.batch.row(range.at).row;
        range.at += 1;
        self.advance(number, reverse, cx)?;
        Ok(Merged::Row(row))
    }

    /// Puts the next key of a range where it is compared with those of the others.
    fn advance(&mut self, number: usize, reverse: bool, cx: &mut Cx<'_, '_>) -> Result<()> {
        let range = &mut self.ranges[number];
        while range.at == range.batch.len() {
            let Some(scan) = &mut range.scan else { return Ok(()) };
            range.batch.clear();
            range.at = 0;
            if !scan.next(cx.run.txn, range.size, &mut range.batch)? {
                range.scan = None;
            }
            range.size = (range.size * 4).min(LARGEST_BATCH);
        }
        let key = range.batch.row(range.at).tuple;
        let key = key.get(range.prefix..).unwrap_or_default().to_vec();
        if reverse {
            self.back.push((key, number));
        } else {
            self.ahead.push(Reverse((key, number)));
        }
        Ok(())
    }
}

impl Gather {
    /// Reads some rows; `false` if all have been, in order and each once.
    fn read(&mut self, table: &TableRef, size: usize, cx: &mut Cx<'_, '_>, batch: &mut RowBatch) -> Result<bool> {
        let current = match &mut self.scan {
            Some(current) => current,
            None => {
                let Some((index, range)) = self.waiting.pop_front() else {
                    sort_once(&mut self.rows);
                    return Ok(false);
                };
                let (table, index, content) = (table.clone(), Some(index), RowContent::Nothing);
                let spec = ScanSpec { table, index, range, reverse: false, content };
                self.scan.insert(cx.run.txn.open_scan(spec)?)
            }
        };
        if !current.next(cx.run.txn, size, batch)? {
            self.scan = None;
        }
        cx.run.charge(batch.len() * size_of::<RowId>())?;
        self.rows.extend(batch.iter().map(|row| row.row));
        Ok(true)
    }
}

fn merged(mut ranges: Vec<KeyRange>) -> VecDeque<KeyRange> {
    // A place between keys: before a key, or behind it.
    fn begin(range: &KeyRange) -> (&[u8], bool) {
        match &range.lower {
            KeyBound::Unbounded => (&[], false),
            KeyBound::Included(key) => (key, false),
            KeyBound::Excluded(key) => (key, true),
        }
    }
    fn end(range: &KeyRange) -> Option<(&[u8], bool)> {
        match &range.upper {
            KeyBound::Unbounded => None,
            KeyBound::Excluded(key) => Some((key, false)),
            KeyBound::Included(key) => Some((key, true)),
        }
    }
    ranges.sort_by(|a, b| {
        work::beat(4);
        begin(a).cmp(&begin(b))
    });
    let mut merged: VecDeque<KeyRange> = VecDeque::with_capacity(ranges.len());
    for range in ranges.into_iter().counted(8) {
        match merged.back_mut() {
            Some(last) if end(last).is_none_or(|end| begin(&range) <= end) => {
                let further = match (end(last), end(&range)) {
                    (Some(last), Some(end)) => end > last,
                    (last, _) => last.is_some(),
                };
                if further {
                    last.upper = range.upper;
                }
            }
            _ => merged.push_back(range),
        }
    }
    merged
}

/// The bound behind all keys that begin with `key`.
pub(super) fn after(key: &[u8]) -> KeyBound<Vec<u8>> {
    match KeyRange::successor(key) {
        Some(next) => KeyBound::Included(next),
        None => KeyBound::Excluded(key.to_vec()),
    }
}

/// The bytes of a whole key; `None` if a value is NULL or nothing that its column can hold.
pub(super) fn fitted_key<'a>(parts: impl Iterator<Item = (KeyColumn, &'a Datum)>) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for (column, value) in parts {
        match fit(value.clone(), column.ty) {
            Fit::Value(value) => push_value(&value, column, &mut key),
            _ => return None,
        }
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_become_one() {
        let range = |from: &[u8], to: &[u8]| KeyRange {
            lower: KeyBound::Included(from.to_vec()),
            upper: KeyBound::Excluded(to.to_vec()),
        };
        let open = |from: &[u8]| KeyRange { lower: KeyBound::Excluded(from.to_vec()), upper: KeyBound::Unbounded };
        let show = |ranges: Vec<KeyRange>| format!("{:?}", merged(ranges).into_iter().collect::<Vec<_>>());
        let expect = |ranges: Vec<KeyRange>| format!("{ranges:?}");
        assert_eq!(
            show(vec![range(b"e", b"g"), range(b"a", b"c")]),
            expect(vec![range(b"a", b"c"), range(b"e", b"g")])
        );
        assert_eq!(show(vec![range(b"a", b"d"), range(b"b", b"c")]), expect(vec![range(b"a", b"d")]));
        assert_eq!(show(vec![range(b"b", b"e"), range(b"a", b"c")]), expect(vec![range(b"a", b"e")]));
        assert_eq!(show(vec![open(b"c"), range(b"a", b"d"), range(b"x", b"y")]).matches("lower").count(), 1);
        assert_eq!(show(vec![open(b"c"), range(b"a", b"c")]).matches("lower").count(), 2);
    }
}
