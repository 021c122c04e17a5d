//! Suspension without threads: a call that must wait hands out a [`Wait`].

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// The answer of a call that may have to wait (rule R9).
#[derive(Debug)]
pub enum Step<T> {
    /// Done.
    Ready(T),
    /// Not yet: await this, then make the same call again.
    Wait(Wait),
}

impl<T> Step<T> {
    /// Maps the ready value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Step::Ready(value) => Step::Ready(f(value)),
            Step::Wait(wait) => Step::Wait(wait),
        }
    }
}

/// Something to await before a call is repeated. Completes when the call *may* succeed; spurious completion is allowed.
#[derive(Clone, Debug)]
pub struct Wait {
    cell: Arc<WaitCell>,
    what: What,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Lock,
    Space,
    Snapshot,
    Memory,
    Workers,
}

/// The waking side of a [`Wait`]; shared between the waiter and whoever ends the wait.
#[derive(Debug, Default)]
pub struct WaitCell {
    /// Set once by `wake` (Release) and read by `poll` (Acquire): what happened before the wake is seen after the wait.
    done: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl WaitCell {
    /// A cell nobody has woken yet.
    pub fn new() -> Arc<WaitCell> {
        Arc::new(WaitCell::default())
    }

    /// Ends the wait. Idempotent; callable from any thread.
    pub fn wake(&self) {
        self.done.store(true, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the wait has ended.
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }
}

impl Wait {
    /// A wait for a lock, or for the end of a transaction, that `cell` ends.
    pub fn on(cell: &Arc<WaitCell>) -> Wait {
        Wait { cell: Arc::clone(cell), what: What::Lock }
    }

    /// A wait for space in the log that `cell` ends.
    pub fn for_space(cell: &Arc<WaitCell>) -> Wait {
        Wait { cell: Arc::clone(cell), what: What::Space }
    }

    /// A wait for a snapshot to become safe that `cell` ends.
    pub fn for_snapshot(cell: &Arc<WaitCell>) -> Wait {
        Wait { cell: Arc::clone(cell), what: What::Snapshot }
    }

    /// A wait for memory that `cell` ends.
    pub fn for_memory(cell: &Arc<WaitCell>) -> Wait {
        Wait { cell: Arc::clone(cell), what: What::Memory }
    }

    /// A wait for threads that work for the same statement, that `cell` ends.
    pub fn for_workers(cell: &Arc<WaitCell>) -> Wait {
        Wait { cell: Arc::clone(cell), what: What::Workers }
    }

    /// Whether it is for memory that is nearly used up.
    pub fn is_for_memory(&self) -> bool {
        self.what == What::Memory
    }

    /// Whether it is for something that other transactions hold: `lock_timeout` is about these only.
    pub fn is_for_lock(&self) -> bool {
        self.what == What::Lock
    }

    /// A wait that is already over: gives other tasks of the core a turn (the yield of rule R9).
    pub fn yield_now() -> Wait {
        let cell = WaitCell::new();
        cell.wake();
        Wait { cell, what: What::Space }
    }

    /// Whether awaiting this would return at once.
    pub fn is_over(&self) -> bool {
        self.cell.is_done()
    }
}

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.cell.is_done() {
            return Poll::Ready(());
        }
        *self.cell.waker.lock().unwrap_or_else(|e| e.into_inner()) = Some(cx.waker().clone());
        // A wake between the check above and the store of the waker would be lost without this second look.
        if self.cell.is_done() { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_waits_for_locks_is_about_no_others() {
        let cell = WaitCell::new();
        assert!(Wait::on(&cell).is_for_lock());
        assert!(!Wait::for_memory(&cell).is_for_lock() && Wait::for_memory(&cell).is_for_memory());
        assert!(!Wait::for_space(&cell).is_for_lock() && !Wait::yield_now().is_for_lock());
        assert!(!Wait::for_space(&cell).is_over() && Wait::yield_now().is_over());
    }
}
