//! Running plans: one operator per file.
//!
//! Responsible for: pulling rows through the operators of a plan, suspending where something must be waited for, locking
//! rows and evaluating the conditions again on their newest versions (rule R7), constraints, foreign keys and cascades.
//! Not responsible for: choosing the plan; the transaction block around it.
//! Invariants:
//! - An operator that answers [`Next::Wait`] is called again with the registers unchanged and continues where it was (rule R9).
//! - An operator writes only its own slots, so a row of an outer operator stays in the registers while inner ones run.
//! - An operator with much to do passes [`Run::tick`] at least every few hundred rows: cancel, timeout and the turn of others.
//!
//! Start at [`Execution::run`] and [`operator`].

#![forbid(unsafe_code)]

mod aggregate;
mod budget;
mod cte;
mod current;
mod deferral;
mod distinct;
mod distinct_scan;
mod filter;
pub mod foreign_key;
mod function_scan;
mod gather;
mod hash_join;
mod in_place;
mod incremental_sort;
mod late;
mod limit;
mod lock_rows;
mod machine;
mod merge_join;
mod meter;
mod modify;
mod nested_loop;
mod parameter_rows;
mod project;
mod rows;
mod sample;
mod scan;
mod set_op;
mod sort;
mod sorted_scan;
mod stored_test;
mod subquery;
mod team;
mod values;
mod window;
mod window_frame;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Error, Result, SqlState};
use engine_api::{Step, Txn, Wait};
use sql_functions::{EvalContext, reader};
use sql_ir::expr::Lists;
use sql_ir::row_codec::StoredRow;
use sql_plan::{Node, Plan, QueryPlan};
use types::{Datum, DatumRef};

pub use budget::Held;
pub use budget::MemoryBudget;
pub use deferral::{Check, Deferrals};
pub(crate) use machine::{Machine, SubplanState};
use parameter_rows::ParameterRows;
pub use rows::datum_bytes;

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
    /// Where memory for sorts, hash tables and groups is taken from.
    pub memory: &'a Arc<MemoryBudget>,
    /// Where checks of constraints go that the transaction defers; without it none is deferred.
    pub deferrals: Option<&'a dyn Deferrals>,
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

/// One row of a result, where it lies.
#[derive(Clone, Copy)]
pub struct OutputRow<'a>(RowSource<'a>);

#[derive(Clone, Copy)]
enum RowSource<'a> {
    Values(&'a [Datum]),
    /// In an execution's registers, and which values of it are the row.
    Registers(&'a [Datum], &'a [u32]),
    /// In its tuple, and which of the columns that its scan reads are the row.
    Stored(StoredRow<'a>, &'a [u32]),
}

impl<'a> OutputRow<'a> {
    pub(crate) fn at(registers: &'a [Datum], slots: &'a [u32]) -> OutputRow<'a> {
        OutputRow(RowSource::Registers(registers, slots))
    }

    pub(crate) fn stored(row: StoredRow<'a>, columns: &'a [u32]) -> OutputRow<'a> {
        OutputRow(RowSource::Stored(row, columns))
    }

    /// A row of these values.
    pub fn of(values: &'a [Datum]) -> OutputRow<'a> {
        OutputRow(RowSource::Values(values))
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        match self.0 {
            RowSource::Values(values) => values.len(),
            RowSource::Registers(_, slots) => slots.len(),
            RowSource::Stored(_, columns) => columns.len(),
        }
    }

    /// Whether it has no column.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `i`th value. Panics past the end.
    #[inline]
    pub fn get(&self, i: usize) -> DatumRef<'a> {
        match self.0 {
            RowSource::Values(values) => values[i].as_ref(),
            RowSource::Registers(registers, slots) => registers[slots[i] as usize].as_ref(),
            RowSource::Stored(row, columns) => row.get(columns[i] as usize),
        }
    }

    /// The bytes of the `i`th value if it is a text where it was stored. Panics past the end.
    #[inline]
    pub fn text_bytes(&self, i: usize) -> Option<&'a [u8]> {
        match self.0 {
            RowSource::Stored(row, columns) => row.text_bytes(columns[i] as usize),
            _ => None,
        }
    }

    /// The `i`th value, owned. Panics past the end.
    pub fn get_owned(&self, i: usize) -> Datum {
        match self.0 {
            RowSource::Values(values) => values[i].clone(),
            RowSource::Registers(registers, slots) => registers[slots[i] as usize].clone(),
            RowSource::Stored(row, columns) => row.get_owned(columns[i] as usize),
        }
    }

    /// The values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = DatumRef<'a>> + use<'a> {
        let row = *self;
        (0..row.len()).map(move |i| row.get(i))
    }

    /// The values in order, owned.
    pub fn owned(&self) -> impl ExactSizeIterator<Item = Datum> + use<'a> {
        let row = *self;
        (0..row.len()).map(move |i| row.get_owned(i))
    }
}

/// Takes the rows of an execution.
pub trait RowSink {
    /// Takes one row; `true` if no more should come for now.
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool>;
}

/// Keeps the first row of an execution.
#[derive(Debug, Default)]
pub struct FirstRow(pub Option<Vec<Datum>>);

impl RowSink for FirstRow {
    fn row(&mut self, row: OutputRow<'_>) -> Result<bool> {
        self.0.get_or_insert_with(|| row.owned().collect());
        Ok(false)
    }
}

/// What a running execution carries through its operators.
pub(crate) struct Run<'a> {
    pub txn: &'a mut dyn Txn,
    pub eval: &'a dyn EvalContext,
    cancel: &'a AtomicBool,
    now: &'a dyn Fn() -> u64,
    deadline: u64,
    /// When this turn ends; 0 until the clock was first read.
    turn_ends: u64,
    /// Rows since the clock was last read.
    rows: u32,
    /// Bytes that operators hold, and where they are taken from.
    held: &'a mut budget::Held,
    memory: &'a Arc<MemoryBudget>,
    deferrals: Option<&'a dyn Deferrals>,
    /// Rows changed.
    pub changed: u64,
    /// What WITH keeps.
    pub shared: &'a mut cte::Shared,
    /// What a subquery of an expression has to wait for.
    pub suspended: Option<Wait>,
    /// The row lock that was waited for last.
    pub awaited: Option<lock_rows::Awaited>,
    /// Further rows of parameters.
    parameter_rows: &'a mut ParameterRows,
    /// The lists of conditions that are the same for all rows.
    pub lists: &'a mut Lists,
    /// Subqueries of expressions that run now: none of them can wait for other threads.
    pub in_expression: u32,
    /// Whether scans take further parts of a table that several threads read ([`team::Parts`]).
    pub takes_parts: bool,
}

/// A turn of one statement before others of the core get theirs (rule R9).
const TURN_NANOS: u64 = 400_000;

/// Memory that a finished execution may keep until it runs again.
const KEPT_BYTES: usize = 1 << 20;

/// Rows between looks at the clock.
const TICK_ROWS: u32 = 512;

impl Run<'_> {
    /// Puts the next row of parameters into registers.
    #[inline]
    pub(crate) fn next_parameter_row(&mut self, registers: &mut [Datum]) -> bool {
        // Lists may have others of them.
        self.lists.clear();
        self.parameter_rows.take(registers)
    }

    /// Counts work done. Answers what to wait for if it is time for others.
    ///
    /// # Errors
    /// 57014 if the statement was cancelled or its time is over.
    pub fn tick(&mut self, rows: usize) -> Result<Option<Wait>> {
        self.rows += rows as u32;
        if self.rows < TICK_ROWS {
            return Ok(None);
        }
        self.rows = 0;
        if self.eval.is_suspended() {
            return Ok(Some(Wait::yield_now()));
        }
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::new(SqlState::QUERY_CANCELED, "canceling statement due to user request"));
        }
        let now = (self.now)();
        if self.deadline != 0 && now >= self.deadline {
            return Err(Error::new(SqlState::QUERY_CANCELED, "canceling statement due to statement timeout"));
        }
        if self.turn_ends == 0 {
            self.turn_ends = now + TURN_NANOS;
        }
        Ok((now >= self.turn_ends).then(Wait::yield_now))
    }

    /// Takes memory for an operator.
    ///
    /// # Errors
    /// 53200 beyond the budget.
    pub fn charge(&mut self, bytes: usize) -> Result<()> {
        self.held.charge(bytes, self.memory)
    }
}

/// What an operator works with: the run, and the subqueries of its query level.
pub(crate) struct Cx<'a, 'b> {
    pub run: &'a mut Run<'b>,
    pub plan: &'a Arc<QueryPlan>,
    pub subplans: &'a mut [SubplanState],
}

/// What an operator answers.
#[derive(Debug)]
pub(crate) enum Next {
    /// A row lies in the registers.
    Row,
    /// No more rows.
    Done,
    /// Await, then call again.
    Wait(Wait),
}

/// A running operator.
pub(crate) trait Operator: Send {
    /// Puts the next row into the registers.
    fn next(&mut self, cx: &mut Cx<'_, '_>, registers: &mut [Datum]) -> Result<Next>;

    /// Reads the columns of its row that joins did not need ([`sql_plan::LateNode`]). REQUIRES that it has just given a row.
    fn read_late(&mut self, _registers: &mut [Datum]) -> Result<()> {
        Ok(())
    }

    /// Gets ready to be divided: what it keeps and all participants read is complete then. `Done`, or what to wait for.
    fn prepare(&mut self, _cx: &mut Cx<'_, '_>, _registers: &mut [Datum]) -> Result<Next> {
        Ok(Next::Done)
    }

    /// A copy of it that gives some of the rows, and it itself the others: those of the `parts` that each takes. `None` if it cannot be
    /// divided, or is not worth it. REQUIRES that it is prepared and has given no row.
    fn split(&mut self, _cx: &mut Cx<'_, '_>, _parts: &mut Option<Arc<team::Parts>>) -> Result<team::Copied> {
        Ok(None)
    }

    /// Begins anew, with whatever the registers has by then. Unless it is to `forget`, what does not depend on the row of an
    /// operator around it (a hash table, kept rows) stays.
    fn rescan(&mut self, forget: bool);
}

/// Makes a running operator of a node.
pub(crate) fn operator(node: &Node) -> Box<dyn Operator> {
    match node {
        Node::OneRow => Box::new(values::OneRow::default()),
        Node::Scan(node) if node.distinct > 0 => Box::new(distinct_scan::DistinctScan::new(node)),
        Node::Scan(node) => Box::new(scan::Scan::new(node)),
        Node::System(node) => Box::new(function_scan::SystemScan::new(node)),
        Node::Function(node) => Box::new(function_scan::FunctionScan::new(node)),
        Node::Values(node) => Box::new(values::Values::new(node)),
        Node::Subquery(node) => Box::new(subquery::SubqueryScan::new(node)),
        Node::Filter(node) => Box::new(filter::Filter::new(node)),
        Node::Late(node) => Box::new(late::Late::new(operator(&node.input))),
        Node::Sample(node) => Box::new(sample::Sample::new(node)),
        Node::Project(node) => Box::new(project::Project::new(node)),
        Node::NestedLoop(node) => Box::new(nested_loop::NestedLoop::new(node)),
        Node::HashJoin(node) => Box::new(hash_join::HashJoin::new(node)),
        Node::MergeJoin(node) => Box::new(merge_join::MergeJoin::new(node)),
        Node::Cte(node) => Box::new(cte::CteScan::new(node)),
        Node::WorkTable(node) => Box::new(cte::WorkTableScan::new(node)),
        Node::Recursion(node) => Box::new(cte::Recursion::new(node)),
        Node::Gather(node) => Box::new(gather::Gather::new(node)),
        Node::Materialize(node) => Box::new(rows::Materialize::new(node)),
        Node::Sort(node) => match sorted_scan::SortedScan::inner(node) {
            Some(sorted) => Box::new(sorted),
            None => Box::new(sort::Sort::new(node)),
        },
        Node::IncrementalSort(node) => Box::new(incremental_sort::IncrementalSort::new(node)),
        Node::Aggregate(node) => Box::new(aggregate::Aggregate::new(node)),
        Node::WindowFrames(node) => Box::new(window_frame::WindowFrames::new(node)),
        Node::Window(node) => Box::new(window::Window::new(node)),
        Node::Distinct(node) => Box::new(distinct::Distinct::new(node)),
        Node::Limit(node) => Box::new(limit::Limit::new(node)),
        Node::Union(node) => Box::new(set_op::Union::new(node)),
        Node::SetOp(node) => Box::new(set_op::SetOp::new(node)),
        Node::LockRows(node) => Box::new(lock_rows::LockRows::new(node)),
        Node::Metered(node) => Box::new(meter::Metered::new(node)),
        Node::Current(node) => Box::new(current::Current::new(node)),
        Node::Insert(node) => Box::new(modify::insert::Insert::new(node)),
        Node::Update(node) => Box::new(modify::update::Update::new(node)),
        Node::Delete(node) => Box::new(modify::delete::Delete::new(node)),
        Node::Merge(node) => Box::new(modify::merge::Merge::new(node)),
    }
}

/// One run of a plan. `Send`; borrows nothing.
pub struct Execution {
    plan: Arc<Plan>,
    machine: Machine,
    /// What the machine has answered, while a suspension of its expressions goes on.
    pending: Option<Next>,
    /// Rows handed out since the caller was last told of an end or a limit.
    handed_out: u64,
    /// A row has been handed out.
    shown: bool,
    /// The lock that is taken before the statement begins anew.
    awaited: Option<lock_rows::Awaited>,
    changed: u64,
    held: budget::Held,
    shared: cte::Shared,
    parameter_rows: ParameterRows,
    lists: Lists,
}

impl std::fmt::Debug for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution").field("handed_out", &self.handed_out).finish_non_exhaustive()
    }
}

impl Execution {
    /// A run with these parameter values, of the statement's parameter types: what the plan assumes of them is true. Boxed, for it is large
    /// and handed on.
    pub fn new(plan: Arc<Plan>, params: Vec<Datum>) -> Box<Execution> {
        debug_assert!(plan.is_right_for(&params), "a plan for other values");
        let machine = Machine::new(&plan.root, params);
        let shared = cte::Shared::new(plan.cells);
        let held = budget::Held::default();
        let (pending, awaited) = (None, None);
        let parameter_rows = ParameterRows::default();
        Box::new(Execution {
            shared,
            plan,
            machine,
            pending,
            handed_out: 0,
            shown: false,
            awaited,
            changed: 0,
            held,
            parameter_rows,
            lists: Lists::default(),
        })
    }

    /// Makes a finished run ready to run again with other parameters; memory is kept.
    pub fn reset(&mut self, params: impl IntoIterator<Item = Datum>) {
        self.supply(params);
        self.restart();
    }

    /// Gives one that has retired the parameters of its next run.
    pub fn supply(&mut self, params: impl IntoIterator<Item = Datum>) {
        self.machine.supply(params);
    }

    /// Makes a finished run ready to run again with the parameters that it has.
    pub fn restart(&mut self) {
        self.machine.restart();
        self.forget();
    }

    fn forget(&mut self) {
        self.pending = None;
        self.handed_out = 0;
        self.shown = false;
        self.awaited = None;
        self.changed = 0;
        self.held.release();
        self.lists.clear();
        if self.plan.cells != (0, 0) || self.shared.has_followed() {
            self.shared = cte::Shared::new(self.plan.cells);
        }
    }

    /// Ends a finished run: gives back what it took of the budget, and closes its scans. One that was not read to its end,
    /// below a LIMIT say, has a view, which would hold back garbage until the plan is run again. Answers whether the execution
    /// holds little enough to be kept for that.
    pub fn retire(&mut self) -> bool {
        let small = self.held.bytes() < KEPT_BYTES && !self.machine.holds_much();
        self.restart();
        small
    }

    /// The first `count` of its parameter values.
    pub fn params(&self, count: usize) -> &[Datum] {
        self.machine.first_values(count)
    }

    /// The rows of parameters of the next run, the plan's being an INSERT of one row of VALUES. They are replaced before
    /// [`Execution::begin_parameter_rows`].
    pub fn parameter_rows(&mut self) -> &mut ParameterRows {
        &mut self.parameter_rows
    }

    /// Makes a finished run ready to store the rows of [`Execution::parameter_rows`].
    pub fn begin_parameter_rows(&mut self, width: usize) {
        self.parameter_rows.take(self.machine.first_values_mut(width));
        self.restart();
    }

    /// The plan that is run.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Runs on. After an error it must not be called again. `max_rows` 0 is no limit.
    ///
    /// # Errors
    /// Those of the statement.
    pub fn run(&mut self, cx: &mut ExecCx<'_>, sink: &mut dyn RowSink, max_rows: u64) -> Result<Progress> {
        if let Some(awaited) = self.awaited.take()
            && let Step::Wait(wait) = awaited.take(cx.txn)?
        {
            self.awaited = Some(awaited);
            return Ok(Progress::Wait(wait));
        }
        let mut run = Run {
            txn: &mut *cx.txn,
            eval: cx.eval,
            cancel: cx.cancel,
            now: cx.now,
            deadline: cx.deadline,
            turn_ends: 0,
            rows: 0,
            held: &mut self.held,
            memory: cx.memory,
            deferrals: cx.deferrals,
            changed: self.changed,
            shared: &mut self.shared,
            suspended: None,
            awaited: None,
            parameter_rows: &mut self.parameter_rows,
            lists: &mut self.lists,
            in_expression: 0,
            takes_parts: true,
        };
        let result = drive(&mut self.machine, &mut self.pending, &mut run, sink, max_rows, &mut self.handed_out);
        self.changed = run.changed;
        self.shown |= self.handed_out > 0;
        let awaited = run.awaited.take();
        let result = match (result, run.suspended.take()) {
            (Err(error), Some(wait)) => return self.begin_anew(wait, awaited, error, cx),
            (result, _) => result,
        };
        let result = result.map_err(|error| sql_parse::privileges::shown::within_rights(error, || reader(cx.eval)));
        Ok(match result? {
            Progress::Done { rows } => Progress::Done { rows: if self.plan.changes { self.changed } else { rows } },
            other => other,
        })
    }
}

impl Execution {
    /// Lets a statement whose expression has to wait for a row lock begin anew once the wait is over: then the lock is its
    /// own. Operators cannot stop in the middle of an expression.
    ///
    /// # Errors
    /// The given one if the statement has done something already.
    #[cold]
    fn begin_anew(
        &mut self,
        wait: Wait,
        awaited: Option<lock_rows::Awaited>,
        error: Error,
        cx: &mut ExecCx<'_>,
    ) -> Result<Progress> {
        if awaited.is_none() || self.shown || self.changed > 0 || self.shared.may_have_changed() {
            cx.txn.cancel_wait();
            return Err(error);
        }
        self.machine.restart();
        self.awaited = awaited;
        self.pending = None;
        self.held.release();
        self.shared = cte::Shared::new(self.plan.cells);
        Ok(Progress::Wait(wait))
    }
}

fn drive(
    machine: &mut Machine,
    pending: &mut Option<Next>,
    run: &mut Run<'_>,
    sink: &mut dyn RowSink,
    max_rows: u64,
    handed_out: &mut u64,
) -> Result<Progress> {
    loop {
        let next = match pending.take() {
            Some(next) => next,
            None => machine.next(run)?,
        };
        if run.eval.is_suspended() && !matches!(next, Next::Wait(_)) {
            *pending = Some(next);
            return Ok(Progress::Wait(Wait::yield_now()));
        }
        match next {
            Next::Row => {
                *handed_out += 1;
                let full = sink.row(machine.row())?;
                if *handed_out == max_rows {
                    *handed_out = 0;
                    return Ok(Progress::MaxRows { rows: max_rows });
                }
                if full {
                    return Ok(Progress::SinkFull);
                }
            }
            Next::Done => return Ok(Progress::Done { rows: std::mem::take(handed_out) }),
            Next::Wait(wait) => return Ok(Progress::Wait(wait)),
        }
    }
}
