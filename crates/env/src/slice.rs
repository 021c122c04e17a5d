//! How long a thread may use its processor before another that waits for it is looked at.

#![allow(unsafe_code)]

use std::io;
use std::time::Duration;

/// Asks the system for short slices for the calling thread: when it is woken, it runs before those that have longer ones and are owed no more than it, and it
/// takes its share of the processor in pieces so long. The share stays the same. Threads that it starts have slices of the usual length.
///
/// Linux knows slices of normal threads since 6.12, and takes from 0.1 to 100 ms; earlier kernels accept the call and change nothing. A thread of another
/// scheduling policy is left as it is.
///
/// # Errors
/// The system's; the thread is as it was then.
pub fn ask_for_slices_of(slice: Duration) -> io::Result<()> {
    const THIS_THREAD: libc::pid_t = 0;
    const SIZE: u32 = size_of::<libc::sched_attr>() as u32;
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
    if unsafe { libc::syscall(libc::SYS_sched_getattr, THIS_THREAD, &raw mut attributes, SIZE, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.size = SIZE;
    attributes.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
    attributes.sched_runtime = slice.as_nanos() as u64;
    // SAFETY: the pointer is to attributes that say their size. The call reads them alone.
    if unsafe { libc::syscall(libc::SYS_sched_setattr, THIS_THREAD, &raw const attributes, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slice in the kernel's own words, in ms, where it shows them.
    fn slice() -> Option<f64> {
        let shown = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = shown.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit_once(':')?.1.trim().parse::<f64>().ok().map(|nanos| nanos / 1e6)
    }

    #[test]
    fn a_thread_has_the_slice_it_asked_for_and_its_children_have_not() {
        let before = slice();
        ask_for_slices_of(Duration::from_micros(300)).expect("the system takes what is within its bounds");
        let child = std::thread::spawn(slice).join().expect("the thread ends");
        // Kernels before 6.12 show no slice or keep it.
        let Some(now) = slice().filter(|now| Some(*now) != before) else { return };
        assert_eq!((now, child), (0.3, before));
    }
}
