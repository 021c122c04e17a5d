//! Cancelling a statement from another connection, and what stops its work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use base::work::Stop;
use base::{Error, Result, SqlState};

use super::context::Host;

/// Shared between a session and whoever may cancel it.
#[derive(Debug, Default)]
pub struct CancelToken {
    /// Set by `cancel`, cleared when a statement starts; a running statement looks at it now and then.
    requested: AtomicBool,
    /// The session's task, while it waits.
    waker: Mutex<Option<Waker>>,
}

impl CancelToken {
    /// Asks the running statement to stop. Nothing happens if none runs.
    pub fn cancel(&self) {
        self.requested.store(true, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The flag that long loops look at.
    pub fn flag(&self) -> &AtomicBool {
        &self.requested
    }

    /// Forgets a request that came too late for the statement it was meant for.
    pub fn clear(&self) {
        self.requested.store(false, Ordering::Release);
    }

    /// Whether a request is there; if not, `waker` is woken by the next one.
    pub fn poll(&self, waker: &Waker) -> bool {
        if self.requested.load(Ordering::Acquire) {
            return true;
        }
        *self.waker.lock().unwrap_or_else(|e| e.into_inner()) = Some(waker.clone());
        self.requested.load(Ordering::Acquire)
    }
}

/// What stops the statement of a session, wherever it is: a request to cancel it, and the end of its time.
pub(super) struct StatementStop {
    cancel: Arc<CancelToken>,
    /// Monotonic nanoseconds at which `statement_timeout` strikes; 0 = never. Written by the session's own thread.
    deadline: AtomicU64,
    host: Arc<dyn Host>,
}

impl StatementStop {
    /// One without a deadline.
    pub fn new(cancel: Arc<CancelToken>, host: Arc<dyn Host>) -> StatementStop {
        StatementStop { cancel, deadline: AtomicU64::new(0), host }
    }

    /// When `statement_timeout` strikes, in monotonic nanoseconds; 0 = never.
    #[inline]
    pub fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    /// Says when `statement_timeout` strikes.
    pub(crate) fn set_deadline(&self, nanos: u64) {
        self.deadline.store(nanos, Ordering::Relaxed);
    }
}

impl Stop for StatementStop {
    fn look(&self) -> Result<()> {
        if self.cancel.flag().load(Ordering::Acquire) {
            return Err(canceled());
        }
        let deadline = self.deadline.load(Ordering::Relaxed);
        if deadline != 0 && self.host.monotonic_nanos() >= deadline {
            return Err(statement_timeout());
        }
        Ok(())
    }
}

pub(super) fn canceled() -> Error {
    Error::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

pub(super) fn statement_timeout() -> Error {
    Error::new(SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
}
