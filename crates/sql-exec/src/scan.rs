//! Scans of stored tables: all rows, index ranges, one key, several keys.

use std::collections::VecDeque;
use std::ops::Bound as KeyBound;
use std::sync::Arc;

use base::work::{self, Count as _};
use base::{Error, Oid, Result, RowId};
use engine_api::{BatchRow, KeyRange, RowBatch, RowContent, ScanSpec, TableRef};
use sql_ir::expr::{Code, all_true, count_conditions};
use sql_ir::row_codec::StoredRow;
use sql_ir::system_column::row_at;
use sql_plan::{Access, Bound, KeyColumn, KeyPart, ListSource, ScanNode, Stage};
use types::{Datum, oid};

use super::{Cx, Next, Operator};

/// Rows asked of the engine at first; a scan that goes on asks for more.
const FIRST_BATCH: usize = 16;

/// Rows asked of the engine at most.
const LARGEST_BATCH: usize = 512;

/// A scan of a stored table.
pub(super) struct Scan {
    node: Arc<ScanNode>,
    batch: RowBatch,
    at: usize,
    state: ScanState,
    size: usize,
    key: Vec<u8>,
    /// What only the result has is not put into the registers: [`Scan::row`] is asked for it.
    straight: bool,
}

enum ScanState {
    Start,
    /// The engine's scan.
    Open(Box<dyn engine_api::Scan>),
    /// Keys of an IN list still to look up.
    Keys(VecDeque<Vec<u8>>),
    /// Rows still to fetch.
    Rows(VecDeque<RowId>),
    /// Ranges still to scan, and the scan of one.
    Ranges(VecDeque<KeyRange>, Option<Box<dyn engine_api::Scan>>),
    /// Nothing beyond the batch.
    Last,
}

impl Scan {
    pub fn new(node: &Arc<ScanNode>) -> Scan {
        Scan {
            node: Arc::clone(node),
            batch: RowBatch::new(),
            at: 0,
            state: ScanState::Start,
            size: FIRST_BATCH,
            key: Vec::new(),
            straight: false,
        }
    }

    /// A scan whose rows are looked at where they are.
    pub fn straight(node: &Arc<ScanNode>) -> Scan {
        Scan { straight: true, ..Scan::new(node) }
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
                    cx.run.txn.get(table, *index, &self.key, &mut self.batch)?;
                }
                ScanState::Last
            }
            Access::Multi { key, list, values, .. } => ScanState::Keys(list_keys(key, *list, values, cx, registers)?),
            Access::Ranges { column, ranges, .. } => ScanState::Ranges(disjoint(*column, ranges, cx, registers)?, None),
            Access::Range { prefix, list: Some((at, values)), next, lower, upper, .. } => {
                let ends = (lower.as_ref(), upper.as_ref());
                ScanState::Ranges(list_ranges((prefix, *at, values), *next, ends, cx, registers)?, None)
            }
            Access::Range { index, prefix, list: None, next, lower, upper, reverse } => {
                if !push_parts(prefix, cx, registers, &mut self.key)? {
                    ScanState::Last
                } else {
                    match range(&self.key, *next, lower.as_ref(), upper.as_ref(), cx, registers)? {
                        Some(range) => open(cx, table, Some(*index), range, *reverse, node.content)?,
                        None => ScanState::Last,
                    }
                }
            }
        };
        Ok(())
    }

    /// Gets more rows into the batch; `false` if there are none.
    fn fill(&mut self, cx: &mut Cx<'_, '_>) -> Result<bool> {
        self.batch.clear();
        self.at = 0;
        match &mut self.state {
            ScanState::Open(scan) => {
                let more = scan.next(cx.run.txn, self.size, &mut self.batch)?;
                self.size = (self.size * 4).min(LARGEST_BATCH);
                if !more {
                    self.state = ScanState::Last;
                }
                Ok(more || !self.batch.is_empty())
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
            ScanState::Ranges(ranges, scan) => {
                let (index, reverse) = match &self.node.access {
                    Access::Ranges { index, .. } => (*index, false),
                    Access::Range { index, reverse, .. } => (*index, *reverse),
                    _ => return Err(Error::internal("ranges without their access")),
                };
                let content = self.node.content;
                let current = match scan {
                    Some(current) => current,
                    None => {
                        let next = if reverse { ranges.pop_back() } else { ranges.pop_front() };
                        let Some(range) = next else { return Ok(false) };
                        let table = self.node.table.open(cx.run.txn)?.clone();
                        let spec = ScanSpec { table, index: Some(index), range, reverse, content };
                        scan.insert(cx.run.txn.open_scan(spec)?)
                    }
                };
                let more = current.next(cx.run.txn, self.size, &mut self.batch)?;
                self.size = (self.size * 4).min(LARGEST_BATCH);
                if !more {
                    *scan = None;
                }
                Ok(more || !self.batch.is_empty() || !ranges.is_empty())
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
                if passes(&self.node, row, self.straight, cx, registers)? {
                    return Ok(Next::Row);
                }
            }
            if let Some(wait) = cx.run.tick(self.batch.len())? {
                self.batch.clear();
                self.at = 0;
                return Ok(Next::Wait(wait));
            }
            if !self.fill(cx)? {
                return Ok(Next::Done);
            }
        }
    }

    fn rescan(&mut self, _: bool) {
        self.batch.clear();
        self.at = 0;
        self.size = FIRST_BATCH;
        self.state = ScanState::Start;
    }
}

/// Reads a row, if the filter lets it through; what is read only then comes last, or stays in the row.
#[inline]
fn passes(
    node: &ScanNode,
    row: BatchRow<'_>,
    straight: bool,
    cx: &mut Cx<'_, '_>,
    registers: &mut [Datum],
) -> Result<bool> {
    if let Some(keys) = &node.keys {
        if !keys.read(row.tuple, registers) {
            return Err(Error::internal("a key that is none of its index"));
        }
        return all_true(&node.filter, cx, registers);
    }
    if straight && node.filter.is_empty() {
        return Ok(node.reader.knows(row));
    }
    let Some(mut reading) = node.reader.begin(row, registers) else { return Ok(false) };
    count_conditions(&node.filter)?;
    for (at, condition) in node.filter.iter().enumerate() {
        let truth = match (node.stages[at], condition) {
            (Stage::Stored(column), Code::Compare(test, args)) => {
                test.test_stored(reading.row.get(column), &*args[1].value(cx, registers)?)
            }
            (Stage::Columns(needed), _) => {
                reading.up_to(needed, registers);
                condition.truth(cx, registers)?
            }
            _ => return Err(Error::internal("a comparison that is none")),
        };
        if truth != Some(true) {
            return Ok(false);
        }
    }
    if !straight {
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

/// Appends the encoded parts; `false` if one can equal nothing (NULL, or a number that its column cannot hold).
fn push_parts(parts: &[KeyPart], cx: &mut Cx<'_, '_>, registers: &[Datum], out: &mut Vec<u8>) -> Result<bool> {
    for part in parts {
        let value = part.value.eval(cx, registers)?;
        match fit(value, part.column.ty) {
            Fit::Value(value) => push_value(&value, part.column, out),
            _ => return Ok(false),
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

/// The keys of an IN list in order, each once.
fn list_keys(
    parts: &[KeyPart],
    list: usize,
    values: &ListSource,
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
) -> Result<VecDeque<Vec<u8>>> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    if !push_parts(&parts[..list], cx, registers, &mut before)?
        || !push_parts(&parts[list + 1..], cx, registers, &mut after)?
    {
        return Ok(VecDeque::new());
    }
    let column = parts[list].column;
    let mut keys: Vec<Vec<u8>> = Vec::with_capacity(values.least());
    each_item(values, cx, registers, |item| {
        if let Fit::Value(value) = fit(item, column.ty) {
            let mut key = before.clone();
            push_value(&value, column, &mut key);
            key.extend_from_slice(&after);
            keys.push(key);
        }
    })?;
    sort_once(&mut keys);
    Ok(keys.into())
}

/// The keys between two bounds of the column after the prefix; `None` if there can be none.
fn range(
    prefix: &[u8],
    next: Option<KeyColumn>,
    lower: Option<&Bound>,
    upper: Option<&Bound>,
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
) -> Result<Option<KeyRange>> {
    let Some(column) = next else { return Ok(Some(KeyRange::prefix(prefix))) };
    let whole = KeyRange::prefix(prefix);
    let (mut from, mut to) = (whole.lower, whole.upper);
    for (bound, is_lower) in [(lower, true), (upper, false)] {
        let Some(bound) = bound else { continue };
        let (value, inclusive) = match fit(bound.value.eval(cx, registers)?, column.ty) {
            Fit::Null => return Ok(None),
            Fit::Value(value) => (value, bound.inclusive),
            // A bound that the column cannot reach excludes nothing (but NULLs) or all.
            Fit::Below if is_lower => (extreme(column.ty, false), true),
            Fit::Above if !is_lower => (extreme(column.ty, true), true),
            Fit::Below | Fit::Above => return Ok(None),
        };
        let mut key = prefix.to_vec();
        push_value(&value, column, &mut key);
        // In a descending column the larger values come first.
        if is_lower != column.descending {
            from = if inclusive { KeyBound::Included(key) } else { after(&key) };
        } else {
            to = match inclusive {
                true => KeyRange::successor(&key).map_or(KeyBound::Unbounded, KeyBound::Excluded),
                false => KeyBound::Excluded(key),
            };
        }
    }
    let empty = match (&from, &to) {
        (KeyBound::Included(from), KeyBound::Excluded(to)) => from >= to,
        _ => false,
    };
    Ok((!empty).then_some(KeyRange { lower: from, upper: to }))
}

/// The ranges of a prefix with several values at one place, a range for each value, in the order of the index.
fn list_ranges(
    (prefix, at, values): (&[KeyPart], usize, &ListSource),
    next: Option<KeyColumn>,
    (lower, upper): (Option<&Bound>, Option<&Bound>),
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
) -> Result<VecDeque<KeyRange>> {
    let keys = list_keys(prefix, at, values, cx, registers)?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        work::step(ITEM_UNITS)?;
        found.extend(range(&key, next, lower, upper, cx, registers)?);
    }
    Ok(merged(found))
}

/// The ranges in order, those that overlap made one: no row is found twice.
fn disjoint(
    column: KeyColumn,
    ranges: &[[Option<Bound>; 2]],
    cx: &mut Cx<'_, '_>,
    registers: &[Datum],
) -> Result<VecDeque<KeyRange>> {
    let mut found = Vec::with_capacity(ranges.len());
    for [lower, upper] in ranges {
        work::step(2 * ITEM_UNITS)?;
        found.extend(range(&[], Some(column), lower.as_ref(), upper.as_ref(), cx, registers)?);
    }
    Ok(merged(found))
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

/// The least or greatest value of an integer type.
fn extreme(ty: Oid, greatest: bool) -> Datum {
    match (ty, greatest) {
        (oid::INT2, false) => Datum::Int2(i16::MIN),
        (oid::INT2, true) => Datum::Int2(i16::MAX),
        (oid::INT4, false) => Datum::Int4(i32::MIN),
        (oid::INT4, true) => Datum::Int4(i32::MAX),
        (_, false) => Datum::Int8(i64::MIN),
        (_, true) => Datum::Int8(i64::MAX),
    }
}

/// The bound behind all keys that begin with `key`.
fn after(key: &[u8]) -> KeyBound<Vec<u8>> {
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
