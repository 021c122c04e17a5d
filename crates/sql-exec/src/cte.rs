//! WITH: rows that are kept for all who read them, recursion, and statements in WITH that change rows.
//!
//! What is kept belongs to the execution ([`Shared`]), since its readers stand at any level of the plan. A query's rows are
//! read from its machine only as far as they are wanted, so that a LIMIT ends an endless recursion; a statement that changes
//! rows runs to its end once all others are done.
//! Invariant: all of them run within one command, so that none sees what another has changed; foreign keys, which must see it,
//! are checked when all are done.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{Error, Result};
use rustc_hash::FxHashSet;
use sql_plan::{CteScanNode, RecursionNode, Target, WorkTableNode};
use types::Datum;

use super::foreign_key::Constraints;
use super::rows::{KeyTable, RowLists, datum_bytes};
use super::{Cx, Machine, Next, Operator, Run};

/// What the query levels of one execution share.
#[derive(Default)]
pub(crate) struct Shared {
    cells: Vec<Cell>,
    work: Vec<WorkRows>,
    /// Rows that a statement with several changing parts has changed, by table: each is changed once. `None` if there is one
    /// part only.
    pub touched: Option<FxHashSet<(u32, u64)>>,
    /// What runs now follows a change.
    pub follows: bool,
    /// Something has followed a change and changed rows itself.
    pub has_cascaded: bool,
    /// Foreign keys to be looked at when all parts are done, and then those of what followed.
    deferred: VecDeque<Deferred>,
}

/// The foreign keys that one part of a statement, or a statement that follows a change, has noted.
struct Deferred {
    constraints: Constraints,
    node: Box<dyn HasTarget>,
}

/// A node that changes a table.
pub(super) trait HasTarget: Send {
    /// The table.
    fn target(&self) -> &Target;
}

/// The rows of a WITH query so far.
#[derive(Default)]
struct Cell {
    machine: Option<Box<Machine>>,
    rows: Kept,
    complete: bool,
}

/// Rows one after the other.
#[derive(Default)]
struct Kept {
    rows: RowLists<Datum>,
}

impl Kept {
    fn push(&mut self, row: impl ExactSizeIterator<Item = Datum>) -> usize {
        self.rows.push(row).iter().map(datum_bytes).sum::<usize>() + 8
    }

    fn row(&self, row: usize) -> Option<&[Datum]> {
        (row < self.rows.len()).then(|| self.rows.row(row))
    }
}

/// The rows that a recursive part reads, and those it gives.
#[derive(Default)]
struct WorkRows {
    current: Kept,
    next: Kept,
}

impl Shared {
    /// Room for a plan's WITH queries.
    pub fn new((cells, work): (usize, usize)) -> Shared {
        Shared {
            cells: (0..cells).map(|_| Cell::default()).collect(),
            work: (0..work).map(|_| WorkRows::default()).collect(),
            touched: None,
            follows: false,
            has_cascaded: false,
            deferred: VecDeque::new(),
        }
    }

    /// Whether foreign keys wait for others that come before them.
    pub(crate) fn defers(&self) -> bool {
        self.touched.is_some() || self.follows
    }

    /// Whether some wait.
    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Whether anything has followed a change, or was to.
    pub(crate) fn has_followed(&self) -> bool {
        self.has_cascaded || self.has_deferred()
    }

    /// Keeps the foreign keys of a part that is done.
    pub(super) fn defer(&mut self, constraints: Constraints, node: Box<dyn HasTarget>) {
        if constraints.is_empty() && !node.target().may_defer {
            return;
        }
        // One statement follows every row of a change: what its runs note is one list.
        if let Some(last) = self.deferred.back_mut()
            && std::ptr::eq(last.node.target(), node.target())
        {
            return last.constraints.add(constraints);
        }
        self.deferred.push_back(Deferred { constraints, node });
    }

    /// Whether a part of the statement may have changed rows.
    pub(crate) fn may_have_changed(&self) -> bool {
        self.touched.is_some()
    }

    /// Notes that a row is changed. `false` if another part of the statement, or this one, has changed it already.
    pub fn touch(&mut self, target: &Target, row: base::RowId) -> bool {
        match &mut self.touched {
            Some(touched) => touched.insert((target.table.info.desc.oid.0, row.0)),
            None => true,
        }
    }
}

impl Run<'_> {
    /// Begins a WITH query anew.
    pub(crate) fn open_cell(&mut self, cell: usize, machine: Machine) {
        self.shared.cells[cell] = Cell { machine: Some(Box::new(machine)), rows: Kept::default(), complete: false };
    }

    /// Reads one more row of a WITH query into its cell.
    fn fill_cell(&mut self, cell: usize) -> Result<Next> {
        if self.shared.cells[cell].complete {
            return Ok(Next::Done);
        }
        let Some(mut machine) = self.shared.cells[cell].machine.take() else {
            return Err(Error::internal("a WITH query that reads itself"));
        };
        // Only the rows that the main part changes are counted.
        let changed = self.changed;
        let next = machine.next(self);
        self.changed = changed;
        let next = next?;
        let kept = &mut self.shared.cells[cell];
        match &next {
            Next::Row => {
                let bytes = kept.rows.push(machine.row().owned());
                kept.machine = Some(machine);
                self.charge(bytes)?;
            }
            Next::Done => kept.complete = true,
            Next::Wait(_) => kept.machine = Some(machine),
        }
        Ok(next)
    }

    /// Runs a WITH query to its end.
    pub(crate) fn complete_cell(&mut self, cell: usize) -> Result<Next> {
        loop {
            match self.fill_cell(cell)? {
                Next::Row => {
                    if let Some(wait) = self.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                }
                end => return Ok(end),
            }
        }
    }

    /// Looks at the foreign keys that waited for the end of the statement. To be called again after a wait.
    pub(crate) fn finish_deferred(&mut self, plan: &Arc<sql_plan::QueryPlan>) -> Result<Next> {
        // From now on what is changed is changed by cascades.
        self.shared.touched = None;
        while let Some(mut first) = self.shared.deferred.pop_front() {
            let next =
                first.constraints.run(first.node.target(), &mut Cx { run: &mut *self, plan, subplans: &mut [] })?;
            if let Next::Wait(wait) = next {
                self.shared.deferred.push_front(first);
                return Ok(Next::Wait(wait));
            }
        }
        Ok(Next::Done)
    }
}

/// Reads the kept rows of a WITH query.
pub(super) struct CteScan {
    node: Arc<CteScanNode>,
    at: usize,
}

impl CteScan {
    pub fn new(node: &Arc<CteScanNode>) -> CteScan {
        CteScan { node: Arc::clone(node), at: 0 }
    }
}

impl Operator for CteScan {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if let Some(wait) = cx.run.tick(1)? {
            return Ok(Next::Wait(wait));
        }
        loop {
            if let Some(row) = cx.run.shared.cells[self.node.cell].rows.row(self.at) {
                for &(column, slot) in &self.node.columns {
                    registers[slot as usize] = row[column].clone();
                }
                self.at += 1;
                return Ok(Next::Row);
            }
            match cx.run.fill_cell(self.node.cell)? {
                Next::Row => {}
                end => return Ok(end),
            }
        }
    }

    fn rescan(&mut self, _: bool) {
        self.at = 0;
    }
}

/// Reads what a recursive part gave last.
pub(super) struct WorkTableScan {
    node: Arc<WorkTableNode>,
    at: usize,
}

impl WorkTableScan {
    pub fn new(node: &Arc<WorkTableNode>) -> WorkTableScan {
        WorkTableScan { node: Arc::clone(node), at: 0 }
    }
}

impl Operator for WorkTableScan {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if let Some(wait) = cx.run.tick(1)? {
            return Ok(Next::Wait(wait));
        }
        let Some(row) = cx.run.shared.work[self.node.table].current.row(self.at) else { return Ok(Next::Done) };
        self.at += 1;
        for &(column, slot) in &self.node.columns {
            registers[slot as usize] = row[column].clone();
        }
        Ok(Next::Row)
    }

    fn rescan(&mut self, _: bool) {
        self.at = 0;
    }
}

/// Runs a query over its own rows until it gives no more.
pub(super) struct Recursion {
    node: Arc<RecursionNode>,
    first: Option<Machine>,
    next: Option<Machine>,
    /// Rows given so far (UNION).
    seen: KeyTable,
    row: Vec<Datum>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Start,
    First,
    Next,
    Done,
}

impl Recursion {
    pub fn new(node: &Arc<RecursionNode>) -> Recursion {
        Recursion {
            seen: KeyTable::new(&node.types),
            node: Arc::clone(node),
            first: None,
            next: None,
            row: Vec::new(),
            phase: Phase::Start,
        }
    }

    fn machines(&mut self, cx: &mut Cx<'_, '_>, registers: &[Datum]) -> Result<()> {
        let node = &self.node;
        for (subplan, machine) in [(&node.first, &mut self.first), (&node.next, &mut self.next)] {
            let mut made = Machine::inside(subplan, registers);
            made.take_args(subplan, cx, registers)?;
            *machine = Some(made);
        }
        cx.run.shared.work[self.node.table] = WorkRows::default();
        self.phase = Phase::First;
        Ok(())
    }

    /// Makes what the last round gave the input of the next. `false` if it gave nothing.
    fn turn(&mut self, cx: &mut Cx<'_, '_>) -> bool {
        let work = &mut cx.run.shared.work[self.node.table];
        work.current = std::mem::take(&mut work.next);
        if let (Phase::Next, Some(next)) = (self.phase, &mut self.next) {
            next.restart();
        }
        self.phase = if work.current.rows.len() == 0 { Phase::Done } else { Phase::Next };
        self.phase == Phase::Next
    }
}

impl Operator for Recursion {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        if self.phase == Phase::Start {
            self.machines(cx, registers)?;
        }
        loop {
            if let Some(wait) = cx.run.tick(1)? {
                return Ok(Next::Wait(wait));
            }
            let machine = match self.phase {
                Phase::First => &mut self.first,
                Phase::Next => &mut self.next,
                Phase::Start | Phase::Done => return Ok(Next::Done),
            };
            let Some(machine) = machine else { return Err(Error::internal("a recursion that has not begun")) };
            match machine.next(cx.run)? {
                Next::Row => {}
                Next::Done => {
                    if !self.turn(cx) {
                        return Ok(Next::Done);
                    }
                    continue;
                }
                wait => return Ok(wait),
            }
            self.row.clear();
            self.row.extend(machine.row().owned());
            if !self.node.all {
                if !self.seen.insert(&self.row).1 {
                    continue;
                }
                cx.run.charge(self.seen.entry_bytes())?;
            }
            cx.run.shared.work[self.node.table].next.push(self.row.iter().cloned());
            for (&slot, value) in self.node.slots.iter().zip(self.row.drain(..)) {
                registers[slot as usize] = value;
            }
            return Ok(Next::Row);
        }
    }

    fn rescan(&mut self, _: bool) {
        (self.first, self.next) = (None, None);
        self.seen.clear();
        self.phase = Phase::Start;
    }
}
