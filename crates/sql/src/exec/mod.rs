//! Running plans.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base::Result;
use engine_api::{Txn, Wait};
use types::Datum;

use crate::functions::EvalContext;
use crate::plan::Plan;

/// What an execution works with.
pub struct ExecCx<'a> {
    /// The open transaction.
    pub txn: &'a mut dyn Txn,
    /// Settings, times, sequences.
    pub eval: &'a dyn EvalContext,
    /// Set to cancel.
    pub cancel: &'a AtomicBool,
    /// Monotonic nanoseconds.
    pub now: &'a dyn Fn() -> u64,
    /// When `statement_timeout` strikes on that clock; 0 = never.
    pub deadline: u64,
}

/// How far an execution got.
#[derive(Debug)]
pub enum Progress {
    /// The end. `rows` of this call (returned, or changed).
    Done {
        /// Rows.
        rows: u64,
    },
    /// `max_rows` were returned.
    MaxRows {
        /// Rows.
        rows: u64,
    },
    /// The sink wants to be emptied; call again.
    SinkFull,
    /// Await, then call again.
    Wait(Wait),
}

/// One row of a result, where it lies in the execution's frame.
#[derive(Clone, Copy, Debug)]
pub struct OutputRow<'a> {
    frame: &'a [Datum],
    /// Which values of the frame are the row, in order; all of them if `None`.
    slots: Option<&'a [u32]>,
}

impl<'a> OutputRow<'a> {
    /// A row of these values.
    pub fn of(values: &'a [Datum]) -> OutputRow<'a> {
        OutputRow { frame: values, slots: None }
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.slots.map_or(self.frame.len(), <[u32]>::len)
    }

    /// Whether it has no column.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `i`th value. Panics past the end.
    pub fn get(&self, i: usize) -> &'a Datum {
        match self.slots {
            Some(slots) => &self.frame[slots[i] as usize],
            None => &self.frame[i],
        }
    }

    /// The values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a Datum> + use<'a> {
        let row = *self;
        (0..row.len()).map(move |i| row.get(i))
    }
}

/// Takes the rows of an execution.
pub trait RowSink {
    /// Takes one row; `true` if no more should come for now.
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool>;
}

/// One run of a plan. `Send`; borrows nothing.
pub struct Execution {}

impl Execution {
    /// A run with these parameter values, of the statement's parameter types.
    pub fn new(_plan: Arc<Plan>, _params: Vec<Datum>) -> Execution {
        todo!()
    }

    /// A run that counts rows and time per operator (EXPLAIN ANALYZE).
    pub fn analyzed(_plan: Arc<Plan>, _params: Vec<Datum>) -> Execution {
        todo!()
    }

    /// Makes a finished run ready to run again with other parameters; memory is kept.
    pub fn reset(&mut self, _params: Vec<Datum>) {
        todo!()
    }

    /// Runs on. After an error it must not be called again. `max_rows` 0 is no limit.
    pub fn run(&mut self, _cx: &mut ExecCx<'_>, _sink: &mut dyn RowSink, _max_rows: u64) -> Result<Progress> {
        todo!()
    }

    /// EXPLAIN ANALYZE's lines.
    pub fn explain(&self) -> Vec<String> {
        todo!()
    }
}
