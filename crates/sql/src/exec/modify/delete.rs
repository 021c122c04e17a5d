//! DELETE.

use std::sync::Arc;

use base::{Result, RowId};
use engine_api::{RowBatch, RowLockMode};
use rustc_hash::FxHashSet;
use types::Datum;

use super::super::cte::HasTarget;
use super::super::foreign_key::Constraints;
use super::super::lock_rows::row_in;
use super::super::{Cx, Next, Operator, operator};
use super::{Locked, changed, lock};
use crate::expr::all_true;
use crate::plan::{DeleteNode, Target};

/// Deletes the rows of its input.
pub(in crate::exec) struct Delete {
    node: Arc<DeleteNode>,
    input: Box<dyn Operator>,
    state: State,
    seen: FxHashSet<u64>,
    constraints: Constraints,
    newest: RowBatch,
}

#[derive(Clone, Copy)]
enum State {
    Reading,
    Locking(RowId),
    Checking,
    /// All that is left to look at will be when the statement is done.
    Done,
}

impl HasTarget for Arc<DeleteNode> {
    fn target(&self) -> &Target {
        &self.target
    }
}

impl Delete {
    pub fn new(node: &Arc<DeleteNode>) -> Delete {
        Delete {
            input: operator(&node.input),
            constraints: Constraints::new(&node.target),
            node: Arc::clone(node),
            state: State::Reading,
            seen: FxHashSet::default(),
            newest: RowBatch::new(),
        }
    }
}

impl Operator for Delete {
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
                    let passes = match lock(target, row, RowLockMode::Update, cx, &mut self.newest, frame)? {
                        Locked::Same => true,
                        Locked::Moved => all_true(&node.recheck, cx, frame)?,
                        Locked::Gone => false,
                        Locked::Wait(wait) => return Ok(Next::Wait(wait)),
                    };
                    self.state = State::Reading;
                    if !passes {
                        continue;
                    }
                    self.constraints.note_old(target, frame);
                    self.constraints.note_deleted(target);
                    let table = target.table.open(cx.run.txn)?;
                    cx.run.txn.delete(table, row)?;
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
