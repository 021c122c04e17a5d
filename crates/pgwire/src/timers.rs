//! Timers of what runs on the cores.
//!
//! Responsible for: one thread on which the timers of all cores expire.
//! Not responsible for: what is waited for.
//! Invariant: the runtimes of cores have no timers of their own. A runtime that has looks at the clock and at its timers
//! whenever it parks, which is once for a statement or two; a timer is set much less often.

use std::future::{Future, pending};
use std::io;
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::time::{Sleep, Timeout};

static TIMERS: LazyLock<io::Result<Handle>> = LazyLock::new(|| {
    let (started, start) = mpsc::sync_channel(1);
    thread::Builder::new().name("timers".to_owned()).spawn(move || {
        match Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => {
                let _ = started.send(Ok(runtime.handle().clone()));
                runtime.block_on(pending())
            }
            Err(error) => _ = started.send(Err(error)),
        }
    })?;
    start.recv().map_err(io::Error::other)?
});

/// Starts the thread, unless it runs. It stays until the process ends.
///
/// # Errors
/// The system's, if there can be no such thread.
pub(crate) fn start() -> io::Result<()> {
    TIMERS.as_ref().map(drop).map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Calls `make`, which may make timers.
fn with_timers<T>(make: impl FnOnce() -> T) -> T {
    // A server does not start without the thread.
    let _entered = TIMERS.as_ref().ok().map(Handle::enter);
    make()
}

/// Completes after `duration`. May be called, and awaited, on any thread.
pub fn sleep(duration: Duration) -> Sleep {
    with_timers(|| tokio::time::sleep(duration))
}

/// Awaits `future` for as long as `duration`. As [`sleep`] otherwise.
pub fn timeout<F: Future>(duration: Duration, future: F) -> Timeout<F> {
    with_timers(|| tokio::time::timeout(duration, future))
}
