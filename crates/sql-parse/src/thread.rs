//! Small numbers that tell threads apart, for choosing a stripe of something striped. Not an identity: threads may share one.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed));
}

/// The number of the calling thread: how many had one before.
#[inline]
pub fn number() -> usize {
    NUMBER.get()
}

/// Stripes to have: one for each core that may run statements, and one for those beyond.
pub fn stripes() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(63) + 1
}
