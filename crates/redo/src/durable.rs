//! The durable position, and waiting for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::task::{Context, Poll, Waker};

use base::Lsn;

/// How far the log is durable. One writer (the flusher), any number of waiters.
///
/// Waiters that share a core should share one waiter: waking a core costs a system call, waking its tasks does not.
#[derive(Debug, Default)]
pub struct DurableWatch {
    /// Written by the flusher (Release) after the sync returned; read by anyone (Acquire).
    position: AtomicU64,
    /// Set once, when the log failed: the position does not move any more.
    failed: AtomicBool,
    waiters: Mutex<Waiters>,
    /// For threads that wait (tests, shutdown).
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Waiters {
    wakers: Vec<(Lsn, Waker)>,
    /// Threads that wait. Telling nobody that the position has moved would still be a system call.
    threads: usize,
}

impl DurableWatch {
    pub(crate) fn new(position: Lsn) -> DurableWatch {
        DurableWatch { position: AtomicU64::new(position.0), ..DurableWatch::default() }
    }

    /// The durable position. Never goes back.
    pub fn current(&self) -> Lsn {
        Lsn(self.position.load(Ordering::Acquire))
    }

    /// Whether the log has failed.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Wakes `waker` once `lsn` is durable. `true` if it is already.
    pub fn register(&self, lsn: Lsn, waker: &Waker) -> bool {
        if self.current() >= lsn {
            return true;
        }
        let mut waiters = self.waiters.lock().unwrap_or_else(|e| e.into_inner());
        // The flusher moves the position before it takes this lock, so a move is seen here or by the flusher's look.
        if self.current() >= lsn {
            return true;
        }
        waiters.wakers.push((lsn, waker.clone()));
        false
    }

    /// Completes once `lsn` is durable; never if the log fails.
    pub fn wait(&self, lsn: Lsn) -> impl Future<Output = ()> + Send + '_ {
        DurableWait { watch: self, lsn }
    }

    /// Blocks until `lsn` is durable (`true`) or the log has failed.
    pub fn block(&self, lsn: Lsn) -> bool {
        let mut waiters = self.waiters.lock().unwrap_or_else(|e| e.into_inner());
        waiters.threads += 1;
        while self.current() < lsn && !self.has_failed() {
            waiters = self.moved.wait(waiters).unwrap_or_else(|e| e.into_inner());
        }
        waiters.threads -= 1;
        self.current() >= lsn
    }

    pub(crate) fn advance(&self, to: Lsn) {
        base::invariant!(to >= self.current(), "the durable position goes from {} back to {to}", self.current());
        self.position.store(to.0, Ordering::Release);
        let mut ready = Vec::new();
        {
            let mut waiters = self.waiters.lock().unwrap_or_else(|e| e.into_inner());
            let mut i = 0;
            while let Some((lsn, _)) = waiters.wakers.get(i) {
                if *lsn <= to { ready.push(waiters.wakers.swap_remove(i).1) } else { i += 1 }
            }
            if waiters.threads > 0 {
                self.moved.notify_all();
            }
        }
        ready.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        let _waiters = self.waiters.lock().unwrap_or_else(|e| e.into_inner());
        self.moved.notify_all();
    }
}

struct DurableWait<'a> {
    watch: &'a DurableWatch,
    lsn: Lsn,
}

impl Future for DurableWait<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.watch.register(self.lsn, cx.waker()) { Poll::Ready(()) } else { Poll::Pending }
    }
}
