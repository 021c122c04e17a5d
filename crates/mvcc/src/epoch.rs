//! Memory reclamation: what a reader can still hold is not freed (epoch = reclamation epoch here).
//!
//! Responsible for: [`Guard`], the proof that the current thread is pinned, and deferred destruction.
//! Not responsible for: deciding that something is unreachable; callers unlink first and retire after.
//! Invariants: a guard is held for one operation and never across a suspension (rule R9), so reclamation keeps moving.
//! Under `cfg(shuttle)` a double runs deferred work as soon as no guard is alive, the earliest moment that is legal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(shuttle)]
pub use self::double::{Guard, pin, reclaim};
#[cfg(not(shuttle))]
pub use self::real::{Guard, pin, reclaim};

/// A period after which every operation that was running at its beginning is over.
#[derive(Debug)]
pub struct Grace(Arc<AtomicBool>);

impl Grace {
    /// Begins one. An operation counts if it holds a guard.
    pub fn begin() -> Grace {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        // SAFETY: the work owns all that it captures, which is sound to use from any thread, and frees nothing else.
        unsafe { pin().defer_unchecked(move || told.store(true, Ordering::Release)) };
        Grace(over)
    }

    /// Whether it is over; helps it along. Pairs (Acquire) with the end of the operations.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) || {
            reclaim();
            self.0.load(Ordering::Acquire)
        }
    }
}

#[cfg(not(shuttle))]
mod real {
    /// Proof that the thread is pinned: nothing unlinked after the pin is freed while this lives.
    pub struct Guard(crossbeam_epoch::Guard);

    /// Pins the current thread.
    #[inline]
    pub fn pin() -> Guard {
        Guard(crossbeam_epoch::pin())
    }

    /// Does some of the work that was deferred, of all threads, if its time has come. Threads that pin do a little of it by
    /// themselves, so without this an idle process would keep what a large transaction left.
    pub fn reclaim() {
        pin().0.flush();
    }

    impl Guard {
        /// Runs `work` once no guard that was alive at the call is left.
        ///
        /// # Safety
        /// `work` runs later and maybe on another thread: what it captures must stay valid until then and be sound to
        /// use from there, and what it frees must be unreachable for guards pinned after this call.
        #[inline]
        pub unsafe fn defer_unchecked<F: FnOnce()>(&self, work: F) {
            // SAFETY: the caller promises what crossbeam asks for.
            unsafe { self.0.defer_unchecked(work) }
        }
    }
}

#[cfg(shuttle)]
mod double {
    use std::cell::RefCell;

    #[derive(Default)]
    struct State {
        pinned: usize,
        deferred: Vec<Box<dyn FnOnce()>>,
    }

    thread_local! {
        // All tasks of a shuttle schedule run on one OS thread, so its thread-local is their shared state.
        static STATE: RefCell<State> = RefCell::default();
    }

    /// Proof that a guard is alive.
    pub struct Guard(());

    /// Counts one more guard.
    pub fn pin() -> Guard {
        STATE.with(|state| state.borrow_mut().pinned += 1);
        Guard(())
    }

    /// Nothing: deferred work does not wait here.
    pub fn reclaim() {}

    impl Guard {
        /// Runs `work` once no guard is alive.
        ///
        /// # Safety
        /// As for the real one.
        pub unsafe fn defer_unchecked<F: FnOnce()>(&self, work: F) {
            let work: Box<dyn FnOnce() + '_> = Box::new(work);
            // SAFETY: only the lifetime changes; the caller promises that the captures stay valid until it has run.
            let work: Box<dyn FnOnce()> = unsafe { std::mem::transmute(work) };
            STATE.with(|state| state.borrow_mut().deferred.push(work));
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            let ready = STATE.with(|state| {
                let mut state = state.borrow_mut();
                state.pinned -= 1;
                if state.pinned == 0 { std::mem::take(&mut state.deferred) } else { Vec::new() }
            });
            for work in ready {
                work();
            }
        }
    }
}
