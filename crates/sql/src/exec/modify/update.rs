//! UPDATE.

use std::sync::Arc;

use base::{Error, Result, RowId};
use engine_api::{RowBatch, Step};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use types::Datum;

use super::super::cte::HasTarget;
use super::super::foreign_key::Constraints;
use super::super::lock_rows::row_in;
use super::super::{Cx, Next, Operator, operator};
use super::{Locked, changed, check, lock};
use crate::expr::all_true;
use crate::plan::{Target, UpdateNode};

/// Changes the rows of its input.
pub(in crate::exec) struct Update {
    node: Arc<UpdateNode>,
    input: Box<dyn Operator>,
    state: State,
    /// Rows changed by this command, where they may come again.
    seen: FxHashSet<u64>,
    constraints: Constraints,
    newest: RowBatch,
    tuple: Vec<u8>,
}

#[derive(Clone, Copy)]
enum State {
    /// The next row is wanted.
    Reading,
    /// The row in the frame is to be locked.
    Locking(RowId),
    /// The new tuple is to be stored.
    Storing(RowId),
    /// All rows are done; foreign keys are looked at.
    Checking,
    /// They will be when the whole statement is done.
    Done,
}

impl HasTarget for Arc<UpdateNode> {
    fn target(&self) -> &Target {
        &self.target
    }
}

impl Update {
    pub fn new(node: &Arc<UpdateNode>) -> Update {
        Update {
            input: operator(&node.input),
            constraints: Constraints::new(&node.target),
            node: Arc::clone(node),
            state: State::Reading,
            seen: FxHashSet::default(),
            newest: RowBatch::new(),
            tuple: Vec::new(),
        }
    }

    /// Computes the new row into the frame and its tuple, of the one that was locked; the old row's keys are noted.
    fn compute(&mut self, node: &UpdateNode, row: RowId, cx: &mut Cx<'_, '_>, frame: &mut [Datum]) -> Result<()> {
        let target = &node.target;
        if self.newest.is_empty() {
            return Err(Error::internal("a row is locked to be changed and not shown"));
        }
        let old = self.newest.row(0);
        let mut values: SmallVec<[Datum; 8]> = SmallVec::new();
        for (_, code) in &node.set {
            values.push(code.eval(cx, frame)?);
        }
        self.constraints.note_old(target, frame);
        for ((column, _), value) in node.set.iter().zip(values) {
            frame[target.slots[*column] as usize] = value;
        }
        check(target, Some(old), cx, frame)?;
        self.constraints.note_updated(target, row, frame);
        self.tuple.clear();
        if target.writer.rewrite(old, &node.places, frame, &mut self.tuple)? {
            return Ok(());
        }
        target.rest.read(old, frame);
        target.writer.write(frame, &target.slots, &mut self.tuple)
    }
}

impl Operator for Update {
    fn next(&mut self, cx: &mut Cx<'_, '_>, frame: &mut [Datum]) -> Result<Next> {
        let node = Arc::clone(&self.node);
        let target = &node.target;
        loop {
            match self.state {
                State::Reading => match self.input.next(cx, frame)? {
                    Next::Row => {
                        let Some(row) = row_in(frame, target.row_slot) else { continue };
                        if node.may_repeat && !self.seen.insert(row.0) {
                            continue;
                        }
                        if !cx.run.shared.touch(target, row) {
                            continue;
                        }
                        self.state = State::Locking(row);
                    }
                    Next::Done => self.state = State::Checking,
                    wait => return Ok(wait),
                },
                State::Locking(row) => {
                    let passes = match lock(target, row, node.mode, cx, &mut self.newest, frame)? {
                        Locked::Same => true,
                        Locked::Moved => all_true(&node.recheck, cx, frame)?,
                        Locked::Gone => false,
                        Locked::Wait(wait) => return Ok(Next::Wait(wait)),
                    };
                    self.state = if passes {
                        self.compute(&node, row, cx, frame)?;
                        State::Storing(row)
                    } else {
                        State::Reading
                    };
                }
                State::Storing(row) => {
                    let table = target.table.open(cx.run.txn)?;
                    match cx.run.txn.update(table, row, &self.tuple)? {
                        Step::Ready(()) => {}
                        Step::Wait(wait) => return Ok(Next::Wait(wait)),
                    }
                    self.state = State::Reading;
                    if let Some(next) = changed(target, cx, frame)? {
                        return Ok(next);
                    }
                }
                State::Checking if cx.run.shared.defers() => {
                    let constraints = std::mem::replace(&mut self.constraints, Constraints::new(target));
                    cx.run.shared.defer(constraints, Box::new(Arc::clone(&node)));
                    self.state = State::Done;
                }
                State::Done => return Ok(Next::Done),
                State::Checking => return self.constraints.run(target, cx),
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.state = State::Reading;
        self.seen.clear();
        self.constraints.clear();
        self.input.rescan(forget);
    }
}
