//! Which processors servers and the generator run on, so that they do not take them from each other.
//!
//! With four processors or more, servers get the first three quarters and the generator the rest. With fewer, everything may
//! run everywhere: both sides of one processor each would measure the slower side.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Processors below which nothing is pinned.
const ENOUGH: usize = 4;

/// The processors of servers and of the generator, if there are enough.
fn halves() -> Option<(CpuSet, CpuSet)> {
    let all = sched_getaffinity(None).ok()?;
    let here: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu)).collect();
    if here.len() < ENOUGH {
        return None;
    }
    let (servers, generator) = here.split_at(here.len() * 3 / 4);
    let set = |cpus: &[usize]| {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|&cpu| set.set(cpu));
        set
    };
    Some((set(servers), set(generator)))
}

/// What was done about it, for the notes of a result.
pub fn told() -> String {
    match halves() {
        Some((servers, generator)) => {
            format!("servers are kept on {} processors, the generator on {} others", servers.count(), generator.count())
        }
        None => "the machine has too few processors to give servers and the generator their own".into(),
    }
}

/// Starts a process on the servers' processors: it has what the thread has that starts it.
pub fn of_servers<T>(start: impl FnOnce() -> T) -> T {
    kept_on(halves().map(|(servers, _)| servers), start)
}

/// Keeps what `work` starts on the generator's processors.
pub fn of_generator<T>(work: impl FnOnce() -> T) -> T {
    kept_on(halves().map(|(_, generator)| generator), work)
}

/// Does `work` on some processors, if there are enough to choose.
fn kept_on<T>(processors: Option<CpuSet>, work: impl FnOnce() -> T) -> T {
    let Some(processors) = processors else { return work() };
    let before = sched_getaffinity(None);
    // Where that is forbidden, nothing is pinned.
    let _ = sched_setaffinity(None, &processors);
    let done = work();
    if let Ok(before) = before {
        let _ = sched_setaffinity(None, &before);
    }
    done
}
