//! Rows that several threads have found.

use std::sync::Arc;

use base::{Error, Result};
use sql_plan::GatherNode;
use types::Datum;

use super::rows::RowStore;
use super::team::{Finished, Share, Team, to_the_end};
use super::{Cx, Next, Operator, operator};

/// Bytes of rows that a worker keeps before it leaves the parts to others, at most, or this share of what all statements may take.
const KEPT_MAX: u64 = 16 << 20;
const KEPT_SHARE: u64 = 16;

/// Gives the rows of its input that this thread finds, then those of the workers.
///
/// What a worker finds is kept until this thread has come to the end. So that its memory does not grow with the table, it takes no further part once
/// it keeps much: the statement's thread, which keeps nothing, reads the rest.
pub(super) struct Gather {
    node: Arc<GatherNode>,
    input: Box<dyn Operator>,
    stage: GatherStage,
}

enum GatherStage {
    Fresh,
    Reading(Option<Team<RowStore>>),
    /// Rows of workers, and how many of the first list have been given.
    Given(Vec<RowStore>, usize),
}

impl Gather {
    pub fn new(node: &Arc<GatherNode>) -> Gather {
        Gather { input: operator(&node.input), node: Arc::clone(node), stage: GatherStage::Fresh }
    }
}

/// What a worker does with a copy of the input: it keeps the slots of each row.
fn share(mut input: Box<dyn Operator>, node: &Arc<GatherNode>) -> Share<RowStore> {
    let node = Arc::clone(node);
    Box::new(move |cx, registers| {
        let (mut rows, mut kept) = (RowStore::default(), 0);
        let most = (cx.run.memory.total() / KEPT_SHARE).min(KEPT_MAX) as usize;
        to_the_end(|| {
            let next = input.next(cx, registers)?;
            if matches!(next, Next::Row) {
                let bytes = rows.push(registers, &node.slots);
                cx.run.charge(bytes)?;
                kept += bytes;
                cx.run.takes_parts = kept < most;
            }
            Ok(next)
        })?;
        Ok(rows)
    })
}

impl Operator for Gather {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        loop {
            match &mut self.stage {
                GatherStage::Fresh => {
                    if let wait @ Next::Wait(_) = self.input.prepare(cx, registers)? {
                        return Ok(wait);
                    }
                    let (node, input) = (&self.node, &mut self.input);
                    let split = |cx: &mut Cx<'_, '_>, parts: &mut _| {
                        Ok(input.split(cx, parts)?.map(|other| share(other, node)))
                    };
                    // Inside of an expression it may turn out that workers cannot be waited for, when rows have been given.
                    let team = match cx.run.in_expression {
                        0 => Team::start(&node.parallel, cx, registers, split)?,
                        _ => None,
                    };
                    self.stage = GatherStage::Reading(team);
                }
                GatherStage::Reading(team) => {
                    let next = self.input.next(cx, registers)?;
                    if !matches!(next, Next::Done) {
                        return Ok(next);
                    }
                    let mut found = Vec::new();
                    match team.as_ref().map(|team| team.finish(cx.run)).transpose()? {
                        None => {}
                        Some(Finished::All(all)) => {
                            for (rows, held) in all {
                                cx.run.charge(held.bytes())?;
                                found.push(rows);
                            }
                        }
                        Some(Finished::Wait(wait)) => return Ok(Next::Wait(wait)),
                        // Some rows have been given.
                        Some(Finished::Never) => return Err(Error::internal("workers that cannot be waited for")),
                    }
                    self.stage = GatherStage::Given(found, 0);
                }
                GatherStage::Given(found, given) => {
                    let Some(rows) = found.last() else { return Ok(Next::Done) };
                    if *given == rows.len() {
                        found.pop();
                        *given = 0;
                        continue;
                    }
                    if let Some(wait) = cx.run.tick(1)? {
                        return Ok(Next::Wait(wait));
                    }
                    rows.restore(*given, registers, &self.node.slots);
                    *given += 1;
                    return Ok(Next::Row);
                }
            }
        }
    }

    fn rescan(&mut self, forget: bool) {
        self.stage = GatherStage::Fresh;
        self.input.rescan(forget);
    }
}
