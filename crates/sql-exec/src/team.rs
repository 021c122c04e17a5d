//! Several threads that read the rows of one table for a node of a plan.
//!
//! Responsible for: dividing the rows ([`Parts`]), starting threads that run copies of the operators below the node, waiting for them
//! without holding the core's thread, handing over what they have found.
//! Not responsible for: which plans may be run so (`sql_plan::parallel`), what is found ([`super::aggregate`], [`super::gather`]), how many
//! threads there are (`env::strand`).
//! Invariants:
//! - Each row number is in one part, and each part is taken by one participant, the statement's own thread among them. So the rows are the
//!   same with any number of threads, none included; only their order differs.
//! - A worker sees what the command of the statement's transaction sees, which has changed nothing: it has a transaction of its own, with that
//!   command's view. What it has seen raises that one's gate, which is passed on (rule R1).
//! - A worker touches nothing of the session: it has copies of the settings and of the time, and expressions that need more are not planned
//!   for it.
//! - The statement that is stopped, or begins anew, stops its workers; they end at the next look. None of them holds locks.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base::work::{self, Stop};
use base::{Error, Lsn, Oid, Result, SqlState};
use engine_api::{Catalog, Isolation, Txn, TxnOptions, Wait, WaitCell};
use sql_functions::{EvalContext, Identity};
use sql_ir::expr::Lists;
use sql_plan::{Parallel, QueryPlan};
use types::user::Current;
use types::{Datum, OutputSettings};

use super::budget::{Held, MemoryBudget};
use super::parameter_rows::ParameterRows;
use super::{Cx, Next, Operator, Run, cte};

/// Row numbers of a part at most: a millisecond of work or so, which is how long the statement may wait for the last one.
const PART_MAX: u64 = 4096;

/// Parts of a small table, so that the participants end at the same time.
const PARTS: u64 = 64;

/// The rows of a table, in parts.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Where the next part begins. Relaxed: the rows are read by views that were taken before.
    next: AtomicU64,
    end: u64,
    /// Row numbers of each.
    size: u64,
    /// Whether nobody needs more of them.
    stopped: AtomicBool,
}

impl Parts {
    /// Those of a table with row numbers below `end`.
    fn of(end: u64) -> Arc<Parts> {
        let size = (end / PARTS).clamp(1, PART_MAX);
        Arc::new(Parts { next: AtomicU64::new(0), end, size, stopped: AtomicBool::new(false) })
    }

    /// The next part: its first number, and the one behind its last.
    pub fn take(&self) -> Option<(u64, u64)> {
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let from = self.next.fetch_add(self.size, Ordering::Relaxed);
        (from < self.end).then(|| (from, (from + self.size).min(self.end)))
    }
}

impl Stop for Parts {
    fn look(&self) -> Result<()> {
        match self.stopped.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")),
        }
    }
}

/// What a worker does with its copy of the operators: it runs them to their end, and answers what the statement's thread is to have of it.
pub(super) type Share<T> = Box<dyn FnOnce(&mut Cx<'_, '_>, &mut [Datum]) -> Result<T> + Send>;

/// The workers of a node that runs.
pub(super) struct Team<T> {
    parts: Arc<Parts>,
    report: Arc<Report<T>>,
}

/// How far the workers are.
pub(super) enum Finished<T> {
    All(Vec<(T, Held)>),
    /// Not yet.
    Wait(Wait),
    /// They cannot be waited for, in the middle of an expression: what they find is given up, and the rows are read again, by one thread.
    Never,
}

/// What workers have come to.
struct Report<T> {
    done: Mutex<Vec<std::thread::Result<Result<Found<T>>>>>,
    /// Workers that have not ended, and whether more may be started. Release when one has, pairing with Acquire of who waits for the last.
    running: AtomicUsize,
    /// Woken by the last one.
    all: Arc<WaitCell>,
}

/// What a worker has found.
struct Found<T> {
    /// Before the memory that is held for it.
    found: T,
    /// What its rows depend on.
    gate: Lsn,
    held: Held,
}

/// What a worker begins with.
struct Task<T> {
    share: Share<T>,
    plan: Arc<QueryPlan>,
    registers: Vec<Datum>,
    txn: Box<dyn Txn>,
    context: WorkerContext,
    memory: Arc<MemoryBudget>,
    types: Current,
    parts: Arc<Parts>,
}

impl<T: Send + 'static> Team<T> {
    /// Starts threads that take a share of a node's rows, if there are some to spare; `split` makes the share of one. REQUIRES that the
    /// operators below are prepared and no row was read yet.
    ///
    /// # Errors
    /// Those of opening scans.
    pub fn start(
        parallel: &Parallel,
        cx: &mut Cx<'_, '_>,
        registers: &[Datum],
        mut split: impl FnMut(&mut Cx<'_, '_>, &mut Option<Arc<Parts>>) -> Result<Option<Share<T>>>,
    ) -> Result<Option<Team<T>>> {
        // What a SERIALIZABLE transaction reads is noted in one order. What a transaction has changed itself only it sees.
        let is_plain = cx.run.txn.isolation() != Isolation::Serializable && cx.run.txn.shown_id().is_none();
        if !is_plain {
            return Ok(None);
        }
        let mut parts = None;
        let (done, all) = (Mutex::default(), WaitCell::new());
        let report = Arc::new(Report { done, running: AtomicUsize::new(1), all });
        let view = cx.run.txn.keep_view();
        for _ in 0..parallel.workers {
            let Some(share) = split(cx, &mut parts)? else { break };
            // It may have been larger when the plan was made.
            let Some(parts) = parts.as_ref().filter(|parts| parts.end >= parallel.rows_min) else { break };
            let mut txn = cx.run.txn.engine().begin(TxnOptions { read_only: true, ..TxnOptions::default() });
            txn.resume_command(&view);
            let task = Task {
                share,
                plan: Arc::clone(cx.plan),
                registers: registers.to_vec(),
                txn,
                context: WorkerContext::of(cx.run.eval),
                memory: Arc::clone(cx.run.memory),
                types: Current::of_thread(),
                parts: Arc::clone(parts),
            };
            let to = Arc::clone(&report);
            report.running.fetch_add(1, Ordering::Relaxed);
            if !work::assist(move |now| to.take(task, now)) {
                report.running.fetch_sub(1, Ordering::Relaxed);
                break;
            }
            parallel.launched.fetch_add(1, Ordering::Relaxed);
        }
        report.end();
        Ok(parts.map(|parts| Team { parts, report }))
    }

    /// What all workers have found, with the memory that each holds for it, when the last of them has ended.
    ///
    /// # Errors
    /// That of a worker.
    pub fn finish(&self, run: &mut Run<'_>) -> Result<Finished<T>> {
        while self.report.running.load(Ordering::Acquire) > 0 {
            let wait = Wait::for_workers(&self.report.all);
            if run.in_expression == 0 {
                return Ok(Finished::Wait(wait));
            }
            if !work::wait_for(wait)? {
                return Ok(Finished::Never);
            }
        }
        let done = std::mem::take(&mut *self.report.done.lock().unwrap_or_else(PoisonError::into_inner));
        let (mut all, mut failed) = (Vec::with_capacity(done.len()), None);
        for outcome in done {
            match outcome.unwrap_or_else(|panic| resume_unwind(panic)) {
                Ok(Found { found, gate, held }) => {
                    run.txn.raise_gate(gate);
                    all.push((found, held));
                }
                // Others were stopped by the one that has failed.
                Err(error) if failed.is_none() || error.code() != SqlState::QUERY_CANCELED => failed = Some(error),
                Err(_) => {}
            }
        }
        failed.map_or(Ok(Finished::All(all)), Err)
    }
}

impl<T> Drop for Team<T> {
    fn drop(&mut self) {
        self.parts.stopped.store(true, Ordering::Relaxed);
    }
}

impl<T> Report<T> {
    /// Runs a worker on its thread, to its end.
    fn take(&self, task: Task<T>, now: fn() -> u64) {
        let parts = Arc::clone(&task.parts);
        let outcome = catch_unwind(AssertUnwindSafe(|| work::caught(|| task.run(now))));
        if !matches!(outcome, Ok(Ok(_))) {
            // The others need not go on.
            parts.stopped.store(true, Ordering::Relaxed);
        }
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        self.end();
    }

    /// One of those that [`Report::running`] counts is no more.
    fn end(&self) {
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all.wake();
        }
    }
}

impl<T> Task<T> {
    fn run(self, now: fn() -> u64) -> Result<Found<T>> {
        let Task { share, plan, mut registers, mut txn, context, memory, types, parts } = self;
        let _entered = types.entered();
        let stop: Arc<dyn Stop> = Arc::<Parts>::clone(&parts);
        work::stopped_by(&stop);
        let (mut held, mut parameter_rows) = (Held::default(), ParameterRows::default());
        let (mut shared, mut lists) = (cte::Shared::new((0, 0)), Lists::default());
        let mut run = Run {
            txn: &mut *txn,
            eval: &context,
            cancel: &parts.stopped,
            now: &|| now(),
            deadline: 0,
            // It serves nobody else.
            turn_ends: u64::MAX,
            rows: 0,
            held: &mut held,
            memory: &memory,
            deferrals: None,
            changed: 0,
            shared: &mut shared,
            suspended: None,
            awaited: None,
            parameter_rows: &mut parameter_rows,
            lists: &mut lists,
            in_expression: 1,
            takes_parts: true,
        };
        let found = share(&mut Cx { run: &mut run, plan: &plan, subplans: &mut [] }, &mut registers)?;
        Ok(Found { found, gate: txn.gate(), held })
    }
}

/// Runs `step` to its end, which takes one row of an operator each time, as a worker.
///
/// # Errors
/// Those of `step`.
pub(super) fn to_the_end(mut step: impl FnMut() -> Result<Next>) -> Result<()> {
    loop {
        match step()? {
            Next::Row => {}
            Next::Done => return Ok(()),
            Next::Wait(_) => return Err(Error::internal("a worker that would wait")),
        }
    }
}

/// Has a scan in insertion order give nothing until it takes a part; the first one of a table makes them.
pub(super) fn in_parts(scan: &mut dyn engine_api::Scan, parts: &mut Option<Arc<Parts>>) {
    parts.get_or_insert_with(|| Parts::of(scan.ahead().unwrap_or(0)));
    scan.take_part(0, 0);
}

/// A copy of an operator, to be run by a worker.
pub(super) type Copied = Option<Box<dyn Operator>>;

/// What expressions see of a session on another thread.
struct WorkerContext {
    settings: OutputSettings,
    transaction_timestamp: i64,
    statement_timestamp: i64,
    identity: Identity,
    catalog: Arc<Catalog>,
}

impl WorkerContext {
    fn of(eval: &dyn EvalContext) -> WorkerContext {
        WorkerContext {
            settings: eval.settings().clone(),
            transaction_timestamp: eval.transaction_timestamp(),
            statement_timestamp: eval.statement_timestamp(),
            identity: eval.identity(),
            catalog: eval.catalog(),
        }
    }
}

#[cold]
fn not_here<T>() -> Result<T> {
    Err(Error::internal("an expression of a worker asks for its session"))
}

impl EvalContext for WorkerContext {
    fn settings(&self) -> &OutputSettings {
        &self.settings
    }

    fn transaction_timestamp(&self) -> i64 {
        self.transaction_timestamp
    }

    fn statement_timestamp(&self) -> i64 {
        self.statement_timestamp
    }

    fn clock_timestamp(&self) -> i64 {
        self.statement_timestamp
    }

    fn random(&self) -> f64 {
        0.0
    }

    fn set_seed(&self, _: f64) {}

    fn next_value(&self, _: Oid) -> Result<i64> {
        not_here()
    }

    fn current_value(&self, _: Oid) -> Result<i64> {
        not_here()
    }

    fn set_value(&self, _: Oid, _: i64, _: bool) -> Result<()> {
        not_here()
    }

    fn last_value(&self) -> Result<i64> {
        not_here()
    }

    fn setting(&self, _: &str) -> Result<Option<String>> {
        not_here()
    }

    fn all_settings(&self) -> Vec<(&'static str, String, &'static str)> {
        Vec::new()
    }

    fn sequence_state(&self, _: Oid) -> Result<(i64, bool)> {
        not_here()
    }

    fn set_setting(&self, _: &str, _: Option<&str>, _: bool) -> Result<()> {
        not_here()
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    fn notice(&self, _: base::Notice) {}

    fn backend_pid(&self) -> i32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row number is in the part of one participant, until they are stopped.
    #[test]
    fn each_number_is_taken_once() {
        for end in [0, 1, 63, 64, 1000, 300_007] {
            let parts = Parts::of(end);
            let take = || {
                let parts = Arc::clone(&parts);
                std::thread::spawn(move || std::iter::from_fn(|| parts.take()).collect::<Vec<_>>())
            };
            let takers: Vec<_> = (0..3).map(|_| take()).collect();
            let mut taken: Vec<(u64, u64)> =
                takers.into_iter().flat_map(|taker| taker.join().expect("it takes what there is")).collect();
            taken.sort_unstable();
            let next = taken.iter().fold(0, |next, (from, until)| {
                assert!(*from == next && until > from && until - from <= PART_MAX, "{end}: {taken:?}");
                *until
            });
            assert_eq!(next, end);
        }
        let parts = Parts::of(100_000);
        assert!(parts.take().is_some() && parts.look().is_ok());
        parts.stopped.store(true, Ordering::Relaxed);
        assert!(parts.take().is_none() && parts.look().is_err());
    }
}
