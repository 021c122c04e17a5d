//! The one door to atomics and latches: `std` and `parking_lot`, or shuttle's doubles under `cfg(shuttle)`.
//!
//! Responsible for: letting the shuttle scheduler see every shared access of this crate.
//! Not responsible for: memory reclamation (the `epoch` module).
//! Invariants: no other file of the crate names `std::sync::atomic` or `parking_lot`. Atomics that live in a `static`
//! or a thread-local and carry no synchronisation (stripe numbers) are exempt: shuttle may not keep them over runs.

#[cfg(not(shuttle))]
pub use parking_lot::{Mutex, MutexGuard};
#[cfg(not(shuttle))]
pub use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(shuttle)]
pub use self::double::Mutex;
#[cfg(shuttle)]
pub use shuttle::sync::MutexGuard;
#[cfg(shuttle)]
pub use shuttle::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Shuttle's schedules are sequentially consistent, so a fence adds nothing.
#[cfg(shuttle)]
pub fn fence(_order: Ordering) {}

/// Gives way for a moment inside a loop that waits for another thread's few instructions.
#[cfg(not(shuttle))]
pub fn spin(round: u32) {
    if round < 64 {
        std::hint::spin_loop();
    } else {
        // The other side may have been descheduled; with few cores, burning its time slice would only delay it.
        std::thread::yield_now();
    }
}

/// Gives way: under shuttle a spinning task must yield, or the schedule never gets to the other side.
#[cfg(shuttle)]
pub fn spin(_round: u32) {
    shuttle::thread::yield_now();
}

/// A small number that tells threads apart, for choosing a stripe of a striped structure. Not an identity: numbers
/// are handed out round robin, and two threads may share one after masking.
pub fn stripe() -> usize {
    use std::cell::Cell;
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    STRIPE.with(|cell| {
        if cell.get() == usize::MAX {
            cell.set(NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        }
        cell.get()
    })
}

#[cfg(shuttle)]
mod double {
    //! Shuttle's mutex behind `parking_lot`'s signature.

    /// A mutex whose lock order shuttle chooses.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// A mutex around `value`.
        pub fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        /// Locks.
        pub fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().expect("a task of this schedule panicked while it held the latch")
        }
    }
}
