//! UNION, INTERSECT and EXCEPT.

use std::sync::Arc;

use base::Result;
use types::Datum;

use super::rows::KeyTable;
use super::{Cx, Machine, Next, Operator};
use crate::ir;
use crate::plan::{SetOpNode, Subplan};

/// Combines two queries of the same columns.
pub(super) struct SetOp {
    node: Arc<SetOpNode>,
    left: Side,
    right: Side,
    keys: KeyTable,
    /// How often each key came from the right (INTERSECT, EXCEPT).
    counts: Vec<u64>,
    /// The right side has been read (INTERSECT, EXCEPT), or the left (UNION).
    first_done: bool,
    row: Vec<Datum>,
}

#[derive(Default)]
struct Side {
    machine: Option<Machine>,
}

impl Side {
    fn next(&mut self, subplan: &Subplan, cx: &mut Cx<'_, '_>, frame: &[Datum], row: &mut Vec<Datum>) -> Result<Next> {
        let machine = match &mut self.machine {
            Some(machine) => machine,
            none => {
                let mut machine = Machine::inside(subplan, frame);
                machine.take_args(subplan, cx, frame)?;
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
            first_done: false,
            row: Vec::new(),
        }
    }

    /// Whether a row of the left side is in the result of INTERSECT or EXCEPT.
    fn keeps(&mut self, cx: &mut Cx<'_, '_>) -> Result<bool> {
        let except = self.node.op == ir::SetOp::Except;
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
    fn next(&mut self, cx: &mut Cx<'_, '_>, frame: &mut [Datum]) -> Result<Next> {
        let node = Arc::clone(&self.node);
        loop {
            if let Some(wait) = cx.run.tick(1)? {
                return Ok(Next::Wait(wait));
            }
            let union = node.op == ir::SetOp::Union;
            let from_left = union != self.first_done;
            let (side, subplan) = if from_left { (&mut self.left, &node.left) } else { (&mut self.right, &node.right) };
            match side.next(subplan, cx, frame, &mut self.row)? {
                Next::Row => {}
                Next::Done if self.first_done => return Ok(Next::Done),
                Next::Done => {
                    self.first_done = true;
                    continue;
                }
                wait => return Ok(wait),
            }
            let passes = match (union, self.first_done) {
                (true, _) if node.all => true,
                (true, _) => {
                    let new = self.keys.insert(&self.row).1;
                    if new {
                        cx.run.charge(self.keys.entry_bytes())?;
                    }
                    new
                }
                (false, false) => {
                    let (number, new) = self.keys.insert(&self.row);
                    if new {
                        cx.run.charge(self.keys.entry_bytes())?;
                        self.counts.push(0);
                    }
                    self.counts[number] += 1;
                    false
                }
                (false, true) => self.keeps(cx)?,
            };
            if passes {
                for (&slot, value) in node.slots.iter().zip(self.row.drain(..)) {
                    frame[slot as usize] = value;
                }
                return Ok(Next::Row);
            }
        }
    }

    fn rescan(&mut self, _: bool) {
        self.left = Side::default();
        self.right = Side::default();
        self.keys.clear();
        self.counts.clear();
        self.first_done = false;
    }
}
