//! Counting what another operator does, for EXPLAIN ANALYZE.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::Result;
use sql_plan::MeteredNode;
use types::Datum;

use super::team::{Copied, Parts};
use super::{Cx, Next, Operator, operator};

/// Passes rows on and counts them.
pub(super) struct Metered {
    node: Arc<MeteredNode>,
    input: Box<dyn Operator>,
    /// This loop has been counted, and has given a row.
    begun: bool,
    given: bool,
    /// Nanoseconds of this loop.
    nanos: u64,
}

impl Metered {
    pub fn new(node: &Arc<MeteredNode>) -> Metered {
        Metered { input: operator(&node.input), node: Arc::clone(node), begun: false, given: false, nanos: 0 }
    }
}

impl Operator for Metered {
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let meter = &self.node.meter;
        if !self.begun {
            self.begun = true;
            meter.loops.fetch_add(1, Relaxed);
        }
        let began = (cx.run.now)();
        let next = self.input.next(cx, registers);
        let spent = (cx.run.now)().saturating_sub(began);
        self.nanos += spent;
        meter.nanos.fetch_add(spent, Relaxed);
        if matches!(next, Ok(Next::Row)) {
            meter.rows.fetch_add(1, Relaxed);
        }
        if !self.given && matches!(next, Ok(Next::Row | Next::Done)) {
            self.given = true;
            meter.first_nanos.fetch_add(self.nanos, Relaxed);
        }
        next
    }

    fn read_late(&mut self, registers: &mut [Datum]) -> Result<()> {
        self.input.read_late(registers)
    }

    fn prepare(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next> {
        let began = (cx.run.now)();
        let next = self.input.prepare(cx, registers);
        let spent = (cx.run.now)().saturating_sub(began);
        self.nanos += spent;
        self.node.meter.nanos.fetch_add(spent, Relaxed);
        next
    }

    fn split(&mut self, cx: &mut Cx<'_, '_>, parts: &mut Option<Arc<Parts>>) -> Result<Copied> {
        let input = self.input.split(cx, parts)?;
        Ok(input.map(|input| {
            let node = Arc::clone(&self.node);
            Box::new(Metered { node, input, begun: false, given: false, nanos: 0 }) as Box<dyn Operator>
        }))
    }

    fn rescan(&mut self, forget: bool) {
        (self.begun, self.given, self.nanos) = (false, false, 0);
        self.input.rescan(forget);
    }
}
