//! ORDER BY, and DISTINCT under it, over one scan whose columns are all that is used: the rows stay in their tuples, and none of
//! their values is taken out before it is compared or sent.

use std::cmp::Ordering;
use std::hash::Hasher as _;
use std::sync::Arc;

use base::{Error, Oid, Result};
use engine_api::RowBatch;
use rustc_hash::FxHasher;
use sql_ir::row_codec::StoredRow;
use sql_plan::{ScanNode, SortNode, SortSlot};
use types::{Datum, DatumRef, oid};

use super::rows::{NONE, Numbers};
use super::scan::Scan;
use super::sort::{Kept, Sort, Source, head, order};
use super::team::{Copied, Parts};
use super::{Cx, Next, Operator};

/// A sort of a scan; [`SortedScan::row`] is where its row lies.
pub(super) struct SortedScan(Sort<Tuples>);

impl SortedScan {
    /// `None` if the planner does not call the node straight ([`sql_plan::Node::straight`]).
    pub fn new(node: &Arc<SortNode>) -> Option<SortedScan> {
        let (scan, distinct) = node.scan()?;
        let column = |slot| scan.reader.columns_at(&[slot]).map(|columns| columns[0]);
        let keys = node.keys.iter().map(|key| Some((column(key.slot)?, *key))).collect::<Option<_>>()?;
        let distinct = match distinct {
            Some(distinct) => {
                let columns = distinct.keys.iter().map(|(slot, ty)| Some((column(*slot)?, *ty)));
                Some(Distinct { columns: columns.collect::<Option<_>>()?, ..Distinct::default() })
            }
            None => None,
        };
        let (operator, rows) = (Scan::straight(scan), RowBatch::new());
        Some(SortedScan(Sort::of(node, Tuples { scan: operator, node: Arc::clone(scan), keys, distinct, rows })))
    }

    /// The same below other nodes, whose rows are put into the registers as they are handed out; `None` if these want more than the scan's
    /// columns, or so few that copies of them are compared faster.
    pub fn inner(node: &Arc<SortNode>) -> Option<SortedScan> {
        const MANY: usize = 6;
        let (scan, _) = node.scan()?;
        if node.slots.len() < MANY.max(3 * node.keys.len()) {
            return None;
        }
        node.slots.iter().all(|slot| scan.reader.reads(*slot)).then(|| SortedScan::new(node)).flatten()
    }

    /// Goes to the next row.
    pub fn advance(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        self.0.advance(cx, registers)
    }

    /// The row that was announced last.
    pub fn row(&self) -> Option<StoredRow<'_>> {
        self.0.source.stored(self.0.row()?)
    }

    pub(crate) fn begin_anew(&mut self) {
        self.0.begin_anew(true);
    }
}

impl Operator for SortedScan {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let next = self.advance(cx, registers)?;
        if let (Next::Row, Some(row)) = (&next, self.0.row()) {
            let source = &self.0.source;
            let reading = source.node.reader.begin(source.rows.row(row), registers);
            reading.ok_or_else(|| Error::internal("a row of an unknown layout"))?.finish(registers);
        }
        Ok(next)
    }

    fn split(&mut self, cx: &mut Cx<'_, '_>, parts: &mut Option<Arc<Parts>>) -> Result<Copied> {
        let source = &mut self.0.source;
        if source.distinct.is_some() {
            return Err(Error::internal("a shared sort of distinct rows"));
        }
        let (scan, node, keys) = (source.scan.divide(cx, parts)?, Arc::clone(&source.node), source.keys.clone());
        let source = Tuples { scan, node, keys, distinct: None, rows: RowBatch::new() };
        Ok(Some(Box::new(SortedScan(Sort::of(&self.0.node, source)))))
    }

    fn rescan(&mut self, forget: bool) {
        self.0.begin_anew(forget);
    }
}

/// The tuples of a scan.
struct Tuples {
    scan: Scan,
    node: Arc<ScanNode>,
    /// The keys by columns of the scan's reader.
    keys: Vec<(u32, SortSlot)>,
    distinct: Option<Distinct>,
    rows: RowBatch,
}

/// The first row of each key, by the key's hash.
#[derive(Default)]
struct Distinct {
    columns: Vec<(u32, Oid)>,
    /// By hash, the kept rows.
    rows: Numbers,
}

/// A text as it is compared and hashed; `None` if it is no text, or one that is compared by what it says.
#[inline]
fn text<'r>(row: StoredRow<'r>, column: u32, ty: Oid) -> Option<&'r [u8]> {
    let text = match (row.text_bytes(column as usize), ty) {
        (_, oid::JSONB) => return None,
        (Some(text), _) => text,
        // A column that the row's layout does not have yet.
        (None, _) => match row.get(column as usize) {
            DatumRef::Text(text) => text.as_bytes(),
            _ => return None,
        },
    };
    Some(match ty {
        oid::BPCHAR => types::trimmed(text),
        _ => text,
    })
}

/// Whether two rows have the same value, where NULLs are the same.
fn is_same(a: StoredRow<'_>, b: StoredRow<'_>, column: u32, ty: Oid) -> bool {
    if let (Some(a), Some(b)) = (text(a, column, ty), text(b, column, ty)) {
        return a == b;
    }
    match (a.get(column as usize), b.get(column as usize)) {
        (DatumRef::Null, b) => matches!(b, DatumRef::Null),
        (_, DatumRef::Null) => false,
        (a, b) => types::compare_as(ty, &a, &b).is_eq(),
    }
}

impl Distinct {
    fn hash(&self, row: StoredRow<'_>) -> u64 {
        let mut hasher = FxHasher::default();
        for &(column, ty) in &self.columns {
            match text(row, column, ty) {
                Some(text) => hasher.write(text),
                None => types::hash_as(ty, &row.get(column as usize), &mut hasher),
            }
        }
        hasher.finish()
    }
}

impl Tuples {
    fn stored(&self, row: usize) -> Option<StoredRow<'_>> {
        self.node.reader.stored(self.rows.row(row))
    }

    /// The first key of a row, abbreviated.
    fn head_of(&self, row: StoredRow<'_>) -> u64 {
        let Some((column, key)) = self.keys.first() else { return 0 };
        if let Some(text) = text(row, *column, key.ty) {
            return head(key, Some(types::abbreviate(key.ty, &DatumRef::Bytea(text))));
        }
        let value = row.get(*column as usize);
        head(key, (!matches!(value, DatumRef::Null)).then(|| types::abbreviate(key.ty, &value)))
    }

    fn compare_rows(&self, a: Option<StoredRow<'_>>, b: Option<StoredRow<'_>>) -> Ordering {
        let (Some(a), Some(b)) = (a, b) else { return Ordering::Equal };
        for (column, key) in &self.keys {
            let found = match (text(a, *column, key.ty), text(b, *column, key.ty)) {
                (Some(a), Some(b)) => order(key, (false, false), || a.cmp(b)),
                _ => {
                    let (a, b) = (a.get(*column as usize), b.get(*column as usize));
                    let nulls = (matches!(a, DatumRef::Null), matches!(b, DatumRef::Null));
                    order(key, nulls, || types::compare_as(key.ty, &a, &b))
                }
            };
            if found.is_ne() {
                return found;
            }
        }
        Ordering::Equal
    }

    /// Whether the key of the scan's row is new; notes the row, which will be number `self.rows.len()`.
    fn is_new(&mut self) -> bool {
        let (Some(distinct), Some(row)) = (&mut self.distinct, self.scan.row()) else { return true };
        let (hash, columns) = (distinct.hash(row), &distinct.columns);
        let is_it = |kept| {
            let same = |other| columns.iter().all(|&(column, ty)| is_same(row, other, column, ty));
            self.node.reader.stored(self.rows.row(kept)).is_some_and(same)
        };
        let number = distinct.rows.entry(hash, is_it);
        let new = *number == NONE;
        if new {
            *number = self.rows.len() as u32;
        }
        new
    }
}

impl Source for Tuples {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        self.scan.next(cx, registers)
    }

    fn next_head(&self, _: &[Datum]) -> u64 {
        self.scan.row().map_or(0, |row| self.head_of(row))
    }

    fn take(&mut self, _: &[Datum]) -> Option<usize> {
        if !self.is_new() {
            return None;
        }
        let row = self.scan.tuple()?;
        self.rows.push(row.row, row.layout, row.writer, row.tuple);
        // With its place in the batch, and that of its key.
        Some(row.tuple.len() + 24 + if self.distinct.is_some() { 24 } else { 0 })
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn head(&self, row: usize) -> u64 {
        self.stored(row).map_or(0, |row| self.head_of(row))
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        self.compare_rows(self.stored(a), self.stored(b))
    }

    fn compare_next(&self, _: &[Datum], kept: usize) -> Ordering {
        self.compare_rows(self.scan.row(), self.stored(kept))
    }

    fn keep(&mut self, rows: &[Kept]) {
        let mut kept = RowBatch::new();
        for Kept { row, .. } in rows {
            let row = self.rows.row(*row as usize);
            kept.push(row.row, row.layout, row.writer, row.tuple);
        }
        self.rows = kept;
    }

    fn rescan(&mut self, forget: bool) {
        self.rows.clear();
        if let Some(distinct) = &mut self.distinct {
            distinct.rows.clear();
        }
        self.scan.rescan(forget);
    }
}
