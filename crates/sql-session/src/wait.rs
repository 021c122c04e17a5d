//! Waiting and giving up: locks, `pg_sleep`, `statement_timeout`, `lock_timeout`, cancellation.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use base::work::{self, Stop};
use base::{Error, Result, SqlState, watch};
use engine_api::Wait;
use sql_parse::monitor::Waiting;

use super::Session;
use super::cancel::{canceled, statement_timeout};
use super::context::Environment;

impl Session {
    /// Marks the start of a statement: its time, its timeout, no cancellation yet.
    pub(super) fn start_statement(&mut self) {
        self.end_timer();
        self.start_message();
        self.start_timer();
    }

    /// The same for a message of the extended protocol: the time runs from the first one on, until a statement has been executed or
    /// Sync comes.
    ///
    /// # Errors
    /// 57014 if it has run out meanwhile.
    pub(super) fn continue_statement(&mut self) -> Result<()> {
        self.start_message();
        self.continue_timer()
    }

    fn start_message(&mut self) {
        let environment = &self.environment;
        environment.statement_start.set(environment.host.now());
        if environment.sleep.replace(0) != 0 {
            environment.exports.borrow_mut().clear();
        }
        self.environment.cancel.clear();
        environment.is_at_work();
    }

    fn start_timer(&self) {
        let timeout = self.environment.settings.borrow().statement_timeout_ms;
        if timeout != 0 {
            self.set_deadline(self.environment.host.monotonic_nanos() + timeout * 1_000_000);
        }
    }

    fn set_deadline(&self, deadline: u64) {
        self.environment.stop.set_deadline(deadline);
    }

    /// Starts the time of a statement if it does not run.
    ///
    /// # Errors
    /// 57014 if it has run out.
    pub(super) fn continue_timer(&self) -> Result<()> {
        match self.environment.stop.deadline() {
            0 => self.start_timer(),
            deadline if self.environment.host.monotonic_nanos() >= deadline => {
                self.end_timer();
                return Err(statement_timeout());
            }
            _ => {}
        }
        Ok(())
    }

    /// No time runs any more.
    pub(super) fn end_timer(&self) {
        if self.environment.stop.deadline() != 0 {
            self.set_deadline(0);
        }
    }

    /// Sleeps as long as expressions suspend the statement ([`sql_functions::Suspension`]), unless the statement is cancelled or times out.
    async fn sleep_as_asked(&self) -> Result<()> {
        /// Long sleeps are taken in parts.
        const LONGEST_MS: u64 = 600_000;
        let now = || self.environment.host.monotonic_nanos();
        let asked = self.environment.sleep.take().max(0).unsigned_abs();
        let end = now().saturating_add(asked.saturating_mul(1_000));
        loop {
            let (time, deadline) = (now(), self.environment.stop.deadline());
            if deadline != 0 && time >= deadline {
                return Err(statement_timeout());
            }
            if time >= end {
                return Ok(());
            }
            let until = if deadline == 0 { end } else { end.min(deadline) };
            let mut timer = self.environment.host.sleep((until - time).div_ceil(1_000_000).min(LONGEST_MS));
            poll_fn(|cx| {
                if self.environment.cancel.poll(cx.waker()) {
                    return Poll::Ready(Err(canceled()));
                }
                timer.as_mut().poll(cx).map(Ok)
            })
            .await?;
        }
    }

    /// Waits inside the open transaction, and for what expressions are suspended for; its wait is given up on timeout or cancel.
    pub(crate) async fn wait_for_lock(&mut self, wait: Wait) -> Result<()> {
        if self.environment.sleep.get() != 0 {
            self.environment.listed.activity.waits(Waiting::Sleep);
            let slept = Box::pin(self.sleep_as_asked()).await;
            self.environment.listed.activity.waits(Waiting::No);
            slept?;
            self.export_as_asked();
        }
        if self.environment.advisory.is_requested() {
            Box::pin(self.lock_as_asked()).await?;
        }
        let result = Box::pin(self.wait(wait)).await;
        if result.is_err()
            && let Some(txn) = &mut self.txn
        {
            txn.cancel_wait();
        }
        result
    }

    /// Awaits `wait`, unless the statement is cancelled or times out first.
    pub(super) async fn wait(&self, mut wait: Wait) -> Result<()> {
        if wait.is_over() {
            // A turn for other connections of this core, not a wait for anything.
            self.environment.host.turn().await;
            return self.check_stop();
        }
        let lock_ms = if wait.is_for_lock() { self.environment.settings.borrow().lock_timeout_ms } else { 0 };
        let statement_ms = match self.environment.stop.deadline() {
            0 => None,
            deadline => Some(deadline.saturating_sub(self.environment.host.monotonic_nanos()).div_ceil(1_000_000)),
        };
        let (ms, error): (Option<u64>, fn() -> Error) = match (lock_ms, statement_ms) {
            (0, None) => (None, lock_timeout),
            (0, Some(statement)) => (Some(statement), statement_timeout),
            (lock, Some(statement)) if statement < lock => (Some(statement), statement_timeout),
            (lock, _) => (Some(lock), lock_timeout),
        };
        let mut timer = ms.map(|ms| self.environment.host.sleep(ms));
        let activity = &self.environment.listed.activity;
        activity.waits(match () {
            () if wait.is_for_lock() => Waiting::Lock,
            () if wait.is_for_memory() => Waiting::Memory,
            () => Waiting::No,
        });
        let result = poll_fn(|cx| {
            if Pin::new(&mut wait).poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if self.environment.cancel.poll(cx.waker()) {
                return Poll::Ready(Err(canceled()));
            }
            match &mut timer {
                Some(timer) => timer.as_mut().poll(cx).map(|()| Err(error())),
                None => Poll::Pending,
            }
        })
        .await;
        activity.waits(Waiting::No);
        result
    }

    /// Whether the statement may go on.
    ///
    /// # Errors
    /// 57014 if it was cancelled or its time is over.
    pub(super) fn check_stop(&self) -> Result<()> {
        self.environment.check_stop()
    }
}

impl Environment {
    /// Whether the statement may go on.
    ///
    /// # Errors
    /// 57014 if it was cancelled or its time is over.
    pub(super) fn check_stop(&self) -> Result<()> {
        self.stop.look()
    }

    /// What works on this thread from now on works for this session: its statement's stop is its own.
    #[inline]
    pub(super) fn is_at_work(&self) {
        if work::is_stoppable() {
            work::stopped_by(&self.stopped_by);
            watch::session(self.pid);
        }
    }
}

fn lock_timeout() -> Error {
    Error::new(SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
}
