//! The time slice of a thread.

#![allow(unsafe_code)]

use std::io;
use std::time::Duration;

/// Sets the time slice of the calling thread. A thread with a short slice preempts threads with longer ones when it wakes. Its share of the processor does not
/// change. Threads that it starts have the default slice.
///
/// Linux has slices of normal threads since 6.12, from 0.1 to 100 ms; earlier kernels accept the call and ignore the slice. A thread with another
/// scheduling policy is not changed.
///
/// # Errors
/// The system's; the thread is as it was then.
pub fn set_time_slice(slice: Duration) -> io::Result<()> {
    let mut attributes = attributes()?;
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.size = SIZE;
    attributes.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
    attributes.sched_runtime = slice.as_nanos() as u64;
    // SAFETY: the pointer is to attributes that say their size. The call reads them alone.
    done(unsafe { libc::syscall(libc::SYS_sched_setattr, THIS_THREAD, &raw const attributes, 0) })
}

const THIS_THREAD: libc::pid_t = 0;
const SIZE: u32 = size_of::<libc::sched_attr>() as u32;

/// How the calling thread is scheduled.
fn attributes() -> io::Result<libc::sched_attr> {
    let mut attributes = libc::sched_attr {
        size: SIZE,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the pointer is to where the answer goes, which is as large as is said.
    done(unsafe { libc::syscall(libc::SYS_sched_getattr, THIS_THREAD, &raw mut attributes, SIZE, 0) })?;
    Ok(attributes)
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this kernel has slices of normal threads.
    fn knows_slices() -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux says which it is");
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
        (numbers.next(), numbers.next()) >= (Some(6), Some(12))
    }

    #[test]
    fn a_thread_has_the_slice_that_is_set_and_its_children_have_not() {
        let slice = || attributes().expect("the system tells").sched_runtime;
        let before = slice();
        set_time_slice(Duration::from_micros(300)).expect("the system takes what is within its bounds");
        let child = std::thread::spawn(slice).join().expect("the thread ends");
        assert_eq!((slice(), child), (if knows_slices() { 300_000 } else { before }, before));
    }
}
