//! Cancelling a statement from another connection.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

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
