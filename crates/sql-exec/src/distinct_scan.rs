//! A scan of an index for the distinct values of its first columns.
//!
//! Responsible for: one row of each value of these columns that the conditions let through; passing over the others without reading them
//! where there are many.
//! Not responsible for: that no two rows are the same: the values may have more columns than are wanted of them.
//! Invariant: a row is passed over only if one with the same values was given.

use std::ops::Bound as KeyBound;
use std::sync::Arc;

use base::{Error, Result};
use engine_api::{KeyRange, RowBatch, RowContent, ScanSpec};
use sql_ir::expr::all_true;
use sql_plan::{Access, ScanNode};
use types::Datum;

use super::scan::{FIRST_BATCH, LARGEST_BATCH, after, range_of};
use super::{Cx, Next, Operator};

/// Rows passed over one after the other from which on the index is entered anew behind them.
const RUN: usize = 8;

/// Reads keys of an index, one for each value of its first columns.
pub(super) struct DistinctScan {
    node: Arc<ScanNode>,
    /// The engine's scan, of what is left of the range.
    scan: Option<Box<dyn engine_api::Scan>>,
    /// `None` before the scan begins.
    range: Option<KeyRange>,
    batch: RowBatch,
    at: usize,
    size: usize,
    /// How the keys begin that say the same as the row given last; empty if none was since other keys came.
    given: Vec<u8>,
    /// Keys that begin so, one after the other.
    run: usize,
}

impl DistinctScan {
    pub fn new(node: &Arc<ScanNode>) -> DistinctScan {
        DistinctScan {
            node: Arc::clone(node),
            scan: None,
            range: None,
            batch: RowBatch::new(),
            at: 0,
            size: FIRST_BATCH,
            given: Vec::new(),
            run: 0,
        }
    }

    /// Opens the engine's scan of a range.
    fn open(&mut self, range: KeyRange, cx: &mut Cx<'_, '_>) -> Result<()> {
        let Access::Range { index, reverse, .. } = &self.node.access else { return Err(no_range()) };
        let table = self.node.table.open(cx.run.txn)?.clone();
        let content = RowContent::Key;
        let spec = ScanSpec { table, index: Some(*index), range: range.clone(), reverse: *reverse, content };
        self.scan = Some(cx.run.txn.open_scan(spec)?);
        self.range = Some(range);
        Ok(())
    }

    fn start(&mut self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        let node = Arc::clone(&self.node);
        let Access::Range { span, .. } = &node.access else { return Err(no_range()) };
        match range_of(span, cx, registers)? {
            Some(range) => self.open(range, cx),
            None => {
                self.range = Some(KeyRange::all());
                Ok(())
            }
        }
    }

    /// Enters the index anew behind the keys that say the same as the row given last. REQUIRES a scan that is open.
    fn pass_over(&mut self) -> Result<()> {
        let Access::Range { reverse, .. } = &self.node.access else { return Err(no_range()) };
        let Some(mut range) = self.range.take() else { return Err(no_range()) };
        if *reverse {
            range.upper = KeyBound::Excluded(std::mem::take(&mut self.given));
        } else {
            range.lower = after(&self.given);
            self.given.clear();
        }
        self.size = FIRST_BATCH;
        self.run = 0;
        let Some(scan) = &mut self.scan else { return Err(no_range()) };
        scan.enter(range.clone());
        self.range = Some(range);
        Ok(())
    }
}

impl Operator for DistinctScan {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let node = Arc::clone(&self.node);
        let Some(keys) = &node.keys else { return Err(no_range()) };
        if self.range.is_none() {
            self.start(cx, registers)?;
        }
        loop {
            while self.at < self.batch.len() {
                let key = self.batch.row(self.at).tuple;
                self.at += 1;
                if !self.given.is_empty() && key.starts_with(&self.given) {
                    self.run += 1;
                    continue;
                }
                self.given.clear();
                self.run = 0;
                let Some(length) = keys.length(key, node.distinct).filter(|_| keys.read(key, registers)) else {
                    return Err(Error::internal("a key that is none of its index"));
                };
                if all_true(&node.filter, cx, registers)? {
                    self.given.extend_from_slice(&key[..length]);
                    return Ok(Next::Row);
                }
            }
            let wait = cx.run.tick(self.batch.len())?;
            self.batch.clear();
            self.at = 0;
            if let Some(wait) = wait {
                return Ok(Next::Wait(wait));
            }
            if self.scan.is_some() && self.run >= RUN {
                self.pass_over()?;
            }
            let Some(scan) = &mut self.scan else { return Ok(Next::Done) };
            if !scan.next(cx.run.txn, self.size, &mut self.batch)? {
                self.scan = None;
            }
            self.size = (self.size * 4).min(LARGEST_BATCH);
        }
    }

    fn rescan(&mut self, _: bool) {
        *self = DistinctScan::new(&self.node);
    }
}

#[cold]
fn no_range() -> Error {
    Error::internal("a scan for distinct values without a range of an index")
}
