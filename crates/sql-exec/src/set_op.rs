//! UNION, INTERSECT and EXCEPT.

use std::sync::Arc;

use base::Result;
use sql_ir::expr::Slot;
use sql_plan::{SetOpNode, Subplan, UnionNode};
use types::Datum;

use super::rows::KeyTable;
use super::{Cx, Machine, Next, Operator};

/// The rows of queries of the same columns, one query after the other.
pub(super) struct Union {
    node: Arc<UnionNode>,
    /// The branch that is read, and its number.
    branch: Side,
    at: usize,
    /// The rows that have been given (without ALL).
    keys: KeyTable,
    row: Vec<Datum>,
}

impl Union {
    pub fn new(node: &Arc<UnionNode>) -> Union {
        Union {
            keys: KeyTable::new(&node.types),
            node: Arc::clone(node),
            branch: Side::default(),
            at: 0,
            row: Vec::new(),
        }
    }
}

impl Operator for Union {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let node = Arc::clone(&self.node);
        loop {
            if let Some(wait) = cx.run.tick(1)? {
                return Ok(Next::Wait(wait));
            }
            let Some(subplan) = node.branches.get(self.at) else { return Ok(Next::Done) };
            match self.branch.next(subplan, cx, registers, &mut self.row)? {
                Next::Row => {}
                Next::Done => {
                    self.at += 1;
                    self.branch = Side::default();
                    continue;
                }
                wait => return Ok(wait),
            }
            if !node.all {
                if !self.keys.insert(&self.row).1 {
                    continue;
                }
                cx.run.charge(self.keys.entry_bytes())?;
            }
            put(&node.slots, &mut self.row, registers);
            return Ok(Next::Row);
        }
    }

    fn rescan(&mut self, _: bool) {
        self.branch = Side::default();
        self.at = 0;
        self.keys.clear();
    }
}

fn put(slots: &[Slot], row: &mut Vec<Datum>, registers: &mut [Datum]) {
    for (&slot, value) in slots.iter().zip(row.drain(..)) {
        registers[slot as usize] = value;
    }
}

/// INTERSECT or EXCEPT of two queries of the same columns.
pub(super) struct SetOp {
    node: Arc<SetOpNode>,
    left: Side,
    right: Side,
    keys: KeyTable,
    /// How often each key came from the right.
    counts: Vec<u64>,
    /// The right side has been read.
    right_done: bool,
    row: Vec<Datum>,
}

#[derive(Default)]
struct Side {
    machine: Option<Machine>,
}

impl Side {
    fn next(
        &mut self,
        subplan: &Subplan,
        cx: &mut Cx<'_, '_>,
        registers: &[Datum],
        row: &mut Vec<Datum>,
    ) -> Result<Next> {
        let machine = match &mut self.machine {
            Some(machine) => machine,
            none => {
                let mut machine = Machine::inside(subplan, registers);
                machine.take_args(subplan, cx, registers)?;
                none.insert(machine)
            }
        };
        let next = machine.next(cx.run)?;
        if matches!(next, Next::Row) {
            row.clear();
            row.extend(machine.row().owned());
        }
        Ok(next)
    }
}

impl SetOp {
    pub fn new(node: &Arc<SetOpNode>) -> SetOp {
        SetOp {
            keys: KeyTable::new(&node.types),
            node: Arc::clone(node),
            left: Side::default(),
            right: Side::default(),
            counts: Vec::new(),
            right_done: false,
            row: Vec::new(),
        }
    }

    /// Whether a row of the left side is in the result.
    fn keeps(&mut self, cx: &mut Cx<'_, '_>) -> Result<bool> {
        let except = self.node.except;
        if self.node.all {
            let count = self.keys.find(&self.row).map(|number| &mut self.counts[number]).filter(|count| **count > 0);
            let there = count.is_some();
            if let Some(count) = count {
                *count -= 1;
            }
            return Ok(there != except);
        }
        let (number, new) = self.keys.insert(&self.row);
        if new {
            // Not on the right; from now on a duplicate of the left.
            cx.run.charge(self.keys.entry_bytes())?;
            self.counts.push(0);
            return Ok(except);
        }
        let there = self.counts[number] > 0;
        self.counts[number] = 0;
        Ok(there && !except)
    }
}

impl Operator for SetOp {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let node = Arc::clone(&self.node);
        loop {
            if let Some(wait) = cx.run.tick(1)? {
                return Ok(Next::Wait(wait));
            }
            let (side, subplan) =
                if self.right_done { (&mut self.left, &node.left) } else { (&mut self.right, &node.right) };
            match side.next(subplan, cx, registers, &mut self.row)? {
                Next::Row => {}
                Next::Done if self.right_done => return Ok(Next::Done),
                Next::Done => {
                    self.right_done = true;
                    continue;
                }
                wait => return Ok(wait),
            }
            if !self.right_done {
                let (number, new) = self.keys.insert(&self.row);
                if new {
                    cx.run.charge(self.keys.entry_bytes())?;
                    self.counts.push(0);
                }
                self.counts[number] += 1;
            } else if self.keeps(cx)? {
                put(&node.slots, &mut self.row, registers);
                return Ok(Next::Row);
            }
        }
    }

    fn rescan(&mut self, _: bool) {
        self.left = Side::default();
        self.right = Side::default();
        self.keys.clear();
        self.counts.clear();
        self.right_done = false;
    }
}
