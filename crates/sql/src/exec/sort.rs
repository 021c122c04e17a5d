//! ORDER BY.

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
    order: Vec<u32>,
    /// At most so many rows are wanted; decided at the first row.
    limit: Option<usize>,
    started: bool,
    sorted: bool,
    at: usize,
}

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
            order: Vec::new(),
            limit: None,
            started: false,
            sorted: false,
            at: 0,
        }
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        let width = self.node.slots.len();
        let (a, b) = (self.rows.row(a as usize, width), self.rows.row(b as usize, width));
        compare_keys(&self.keys, a, b)
    }

    fn sort(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.sort_by(|&a, &b| self.compare(a, b));
        if let Some(limit) = self.limit {
            order.truncate(limit);
        }
        self.order = order;
    }

    /// Keeps only the first `limit` rows once there are many more.
    fn prune(&mut self, limit: usize) {
        self.sort();
        let width = self.node.slots.len();
        let mut kept = RowStore::default();
        let all: Vec<u32> = (0..width as u32).collect();
        let mut order: Vec<u32> = self.order.clone();
        // Rows keep their order of arrival, so that the final sort stays stable.
        order.sort_unstable();
        for row in order {
            kept.push(self.rows.row(row as usize, width), &all);
        }
        self.rows = kept;
        self.order = (0..self.rows.len().min(limit) as u32).collect();
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
        if !self.started {
            if let Some((limit, offset)) = &self.node.limit {
                let offset = match offset {
                    Some(code) => offset_of(code, cx, frame)?,
                    None => 0,
                };
                let limit = limit_of(limit, cx, frame)?;
                self.limit = limit.and_then(|l| usize::try_from(l.saturating_add(offset)).ok());
            }
            self.started = true;
        }
        while !self.sorted {
            match self.input.next(cx, frame)? {
                Next::Row => {
                    let bytes = self.rows.push(frame, &self.node.slots);
                    self.order.push(self.rows.len() as u32 - 1);
                    match self.limit {
                        Some(limit) if self.rows.len() >= limit.max(256) * PRUNE_FACTOR => self.prune(limit),
                        Some(_) => {}
                        None => cx.run.charge(bytes + 4)?,
                    }
                }
                Next::Done => {
                    self.sort();
                    self.sorted = true;
                }
                wait => return Ok(wait),
            }
        }
        let Some(&row) = self.order.get(self.at) else { return Ok(Next::Done) };
        self.at += 1;
        self.rows.restore(row as usize, frame, &self.node.slots);
        Ok(Next::Row)
    }

    fn rescan(&mut self, forget: bool) {
        self.at = 0;
        if forget || !self.sorted {
            self.rows.clear();
            self.order.clear();
            self.sorted = false;
            self.started = false;
            self.input.rescan(forget);
        }
    }
}
