//! Set-returning functions and system relations in FROM.

use std::sync::Arc;

use base::{Result, work};
use sql_functions::SetRows;
use sql_plan::{FunctionNode, SystemNode};
use types::Datum;

use super::{Cx, Next, Operator};

/// Reads the rows of a function.
pub(super) struct FunctionScan {
    node: Arc<FunctionNode>,
    /// Rows of each function; `None` for one that is done. Empty before the first row.
    rows: Vec<Option<SetRows>>,
    row: Vec<Datum>,
    number: i64,
}

impl FunctionScan {
    pub fn new(node: &Arc<FunctionNode>) -> FunctionScan {
        FunctionScan { node: Arc::clone(node), rows: Vec::new(), row: Vec::new(), number: 0 }
    }

    fn start(&mut self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        for (function, args) in &self.node.calls {
            let args = args.iter().map(|a| a.eval(cx, registers)).collect::<Result<Vec<_>>>()?;
            let nothing = function.strict && args.iter().any(Datum::is_null);
            self.rows.push(if nothing { None } else { Some((function.eval)(cx.run.eval, &args)?) });
        }
        Ok(())
    }

    /// Reads the next row of all functions; whether one of them had one.
    fn read(&mut self) -> Result<bool> {
        self.row.clear();
        let mut any = false;
        for ((function, _), rows) in self.node.calls.iter().zip(&mut self.rows) {
            let end = self.row.len() + function.columns.len();
            match rows.as_mut().and_then(Iterator::next) {
                Some(row) => {
                    any = true;
                    self.row.extend(row?);
                }
                None => *rows = None,
            }
            self.row.resize(end, Datum::Null);
        }
        Ok(any)
    }
}

impl Operator for FunctionScan {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if let Some(wait) = cx.run.tick(1)? {
            return Ok(Next::Wait(wait));
        }
        if self.rows.is_empty() {
            self.start(cx, registers)?;
        }
        if !self.read()? {
            return Ok(Next::Done);
        }
        for &(column, slot) in &self.node.columns {
            registers[slot as usize] = self.row.get_mut(column).map(std::mem::take).unwrap_or_default();
        }
        self.number += 1;
        if let Some(slot) = self.node.ordinality {
            registers[slot as usize] = Datum::Int8(self.number);
        }
        Ok(Next::Row)
    }

    fn rescan(&mut self, _: bool) {
        self.rows.clear();
        self.number = 0;
    }
}

/// Reads a relation that is computed from the catalog.
pub(super) struct SystemScan {
    node: Arc<SystemNode>,
    rows: Option<Vec<Vec<Datum>>>,
    /// The key's value that the rows are of, and whether it is to be computed again.
    value: Datum,
    is_old: bool,
    at: usize,
}

impl SystemScan {
    pub fn new(node: &Arc<SystemNode>) -> SystemScan {
        SystemScan { node: Arc::clone(node), rows: None, value: Datum::Null, is_old: true, at: 0 }
    }

    /// Makes the rows that are asked for, unless they are there.
    fn start(&mut self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        let relation = self.node.relation;
        let Some((key, value)) = &self.node.key else {
            if self.rows.is_none() {
                self.rows = Some((relation.rows)(relation, cx.run.eval)?);
            }
            return Ok(());
        };
        if std::mem::take(&mut self.is_old) {
            let value = value.eval(cx, registers)?;
            if self.rows.is_none() || value != self.value {
                drop_rows(&mut self.rows);
                self.rows = Some(key.read(relation, &value, cx.run.eval)?);
                self.value = value;
            }
        }
        Ok(())
    }
}

/// Drops rows in parts: the catalog may have hundreds of thousands.
fn drop_rows(rows: &mut Option<Vec<Vec<Datum>>>) {
    if let Some(mut rows) = rows.take() {
        work::discard_lists(&mut rows);
    }
}

impl Drop for SystemScan {
    fn drop(&mut self) {
        drop_rows(&mut self.rows);
    }
}

impl Operator for SystemScan {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if let Some(wait) = cx.run.tick(1)? {
            return Ok(Next::Wait(wait));
        }
        self.start(cx, registers)?;
        let Some(row) = self.rows.as_ref().and_then(|rows| rows.get(self.at)) else { return Ok(Next::Done) };
        self.at += 1;
        for &(column, slot) in &self.node.columns {
            // The column after the last is `tableoid`.
            let value = row.get(column).cloned();
            registers[slot as usize] = value.unwrap_or(Datum::Oid(self.node.relation.oid.0));
        }
        Ok(Next::Row)
    }

    fn rescan(&mut self, forget: bool) {
        self.at = 0;
        self.is_old = true;
        if forget {
            drop_rows(&mut self.rows);
        }
    }
}
