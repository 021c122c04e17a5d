//! The outside world as traits: disk, clock, randomness, threads. Real ones here, simulated ones in [`sim`].
//!
//! Responsible for: the only calls of `std::{fs, thread, time}` below the server; io_uring; stacks and errands of statements; the memory allocator; where
//! the instructions lie; time slices; faults, in simulation.
//! Not responsible for: policy. What to do about a full disk or a failed sync is the caller's.
//! Invariants: every file operation that returned `Ok` without a sync may be undone, torn or reordered by a crash – and the
//! simulated disk does exactly that; a simulated world behaves the same for the same seed.

#![deny(unsafe_code)]

mod aligned;
mod allocator;
mod append;
mod disk;
mod lasting;
mod once;
pub mod real;
pub mod sends;
pub mod sim;
mod slice;
pub mod strand;
mod task;
mod text;
mod time;

pub use aligned::{Aligned, PAGE};
pub use allocator::{Allocator, give_back, give_back_all, heap_bytes, keep_free_memory};
pub use disk::{Disk, DiskFile, DiskLock};
pub use lasting::Lasting;
pub use slice::set_time_slice;
pub use task::{Task, Turn};
pub use text::move_to_huge_pages;

use std::sync::Arc;

/// Time.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970-01-01 00:00 UTC. May step.
    fn now_micros(&self) -> i64;
    /// Nanoseconds since some start. Never goes back.
    fn monotonic_nanos(&self) -> u64;
}

/// Starts what runs beside its caller.
pub trait Spawn: Send + Sync {
    /// Runs `task` beside the caller until it ends by itself. The handle waits for its end.
    fn spawn(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> Box<dyn Joined>;

    /// Makes the steps of a part of the system beside the caller until it is over. The handle waits for that.
    fn start(&self, name: &str, task: Box<dyn Task>) -> Box<dyn Joined> {
        task::start(self, name, task)
    }

    /// Whether what was given to [`Spawn::spawn`] goes on while its caller does. If not, it runs when it is joined, and must not
    /// be waited for before.
    fn runs_beside(&self) -> bool {
        true
    }
}

/// A started thread.
pub trait Joined: Send + Sync {
    /// Waits for the end.
    fn join(self: Box<Self>);
}

/// Everything a part needs of the outside.
#[derive(Clone)]
pub struct World {
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Threads.
    pub spawn: Arc<dyn Spawn>,
}
