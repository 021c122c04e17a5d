//! Memory of the process and of the machine, who is asked before large values are made, and the thread that measures what is
//! not counted as it changes.
//!
//! Responsible for: what the limit is a share of, how much the process holds, the [`Meter`].
//! Not responsible for: the limit, and who is refused (`engine`).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use engine::{Process, Shard};
use engine_api::{Engine as _, MemoryKind};
use env::{Joined, Spawn};
use rustix::process::{Resource, getrlimit};
use sql_session::Shared;

use crate::config::Memory;

/// Pause between two measurements of the heap.
const PAUSE: Duration = Duration::from_millis(40);
/// At every so many of them the rest is measured, too.
const REST: u32 = 5;

/// Free memory beyond this, or a tenth of what is in use if that is more, …
const SURPLUS: u64 = 48 << 20;
/// … goes back to the system after so many measurements, by default of a fifth of a second each, …
const SURPLUS_FOR: u32 = 3;
/// … or, if that has not helped before, so many at most.
const PATIENCE_MAX: u32 = 50;

/// Cores look through their own pages, too, if there are not so many that it takes long.
const CORES_BELOW: u64 = 4 << 30;

/// Times that cores were asked to give memory back. Relaxed: nothing depends on it.
static ROUND: AtomicU32 = AtomicU32::new(0);

/// A number that changes when cores are to give back what they have freed.
pub fn give_back_round() -> u32 {
    ROUND.load(Ordering::Relaxed)
}

/// More is free in the process than may be. Relaxed: nothing depends on it.
static SHORT: AtomicBool = AtomicBool::new(false);

/// Whether what is free in the process is missing elsewhere.
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

/// Asks cores to give back what they have freed.
pub fn ask_to_give_back() {
    ROUND.fetch_add(1, Ordering::Relaxed);
}

/// Bytes of a page of memory.
const PAGE: u64 = 4 << 10;

/// The running thread; stopped when dropped.
pub struct Meter {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<Box<dyn Joined>>,
}

impl Meter {
    /// Starts to measure.
    pub fn start(spawn: &dyn Spawn, shard: Shard, shared: Arc<Shared>) -> Meter {
        let (stop, stopped) = mpsc::channel();
        let measured = shard.clone();
        let idle = env::heap_bytes().saturating_sub(shard.memory_level().0);
        types::room::keep(Box::new(move |bytes| measured.ask_working(&This, idle, bytes as u64)));
        let measure = move || {
            let mut surplus = Surplus::default();
            for round in 0u32.. {
                if stopped.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                shard.measure_heap(env::heap_bytes());
                if round.is_multiple_of(REST) {
                    shard.measure_memory();
                    shared.measure_memory();
                    shard.set_memory(MemoryKind::Connections, pgwire::buffered_bytes());
                    shard.measure_heap(env::heap_bytes());
                    let is_short = shard.measure_resident(This.resident());
                    SHORT.store(is_short, Ordering::Relaxed);
                    if surplus.is_over(This.resident(), This.heap(), is_short) {
                        This.give_back();
                        if This.heap() < CORES_BELOW {
                            ask_to_give_back();
                        }
                    }
                }
            }
        };
        Meter { stop: Some(stop), thread: Some(spawn.spawn("memory", Box::new(measure))) }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

/// Looks whether more memory is free than stays with the process for a while, at every measurement.
#[derive(Default)]
struct Surplus {
    /// Measurements with too much in a row.
    seen: u32,
    /// Those to wait for before memory is given back again: what is free in pages that are in use cannot be.
    patience: u32,
}

impl Surplus {
    /// Whether memory is to be given back now; `is_short`: what is free is missing elsewhere.
    fn is_over(&mut self, resident: u64, heap: u64, is_short: bool) -> bool {
        if resident.saturating_sub(heap) <= SURPLUS.max(heap / 10) {
            *self = Surplus::default();
            return false;
        }
        self.seen += 1;
        let at_least = if is_short { 0 } else { SURPLUS_FOR };
        if self.seen <= self.patience.max(at_least) {
            return false;
        }
        self.seen = 0;
        self.patience = (2 * self.patience).clamp(SURPLUS_FOR, PATIENCE_MAX);
        true
    }
}

/// This process.
struct This;

impl Process for This {
    fn heap(&self) -> u64 {
        env::heap_bytes()
    }

    fn resident(&self) -> u64 {
        private_bytes().unwrap_or(0)
    }

    fn give_back(&self) {
        env::give_back_all();
    }
}

/// Resident memory of the process that is no file's.
fn private_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = pages.split_ascii_whitespace().skip(1).map(|pages| pages.parse::<u64>().ok());
    Some(pages.next()??.saturating_sub(pages.next()??) * PAGE)
}

/// Resident memory of the process.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Address space that is asked for beside what is used: the allocator's in advance, the program, other threads.
const BESIDE: u64 = 1792 << 20;
/// Of a core's thread: its stack, and the allocator's part of it.
const CORE: u64 = 96 << 20;
/// The part of what is used that is lost between allocations.
const LOST: u64 = 8;

/// Address space that the system lets the process have (`ulimit -v`, `ulimit -d`), if it is limited.
fn address_space() -> Option<u64> {
    let limits = [Resource::As, Resource::Data].map(|resource| getrlimit(resource).current);
    limits.into_iter().flatten().min()
}

/// Address space for so much memory.
fn needed(memory: u64, cores: usize) -> u64 {
    memory.saturating_add(memory / LOST).saturating_add(BESIDE).saturating_add(CORE * cores as u64)
}

/// Memory that can be used in so much address space.
fn usable(space: u64, cores: usize) -> u64 {
    space.saturating_sub(needed(0, cores)) / (LOST + 1) * LOST
}

/// Refuses a limit that the system would not let the process come near: it would end in the middle of something. One beyond what the
/// machine has is a matter of taste, and told.
///
/// # Errors
/// Which limits do not fit, in one line.
pub fn check_limit(limit: Memory, cores: usize) -> Result<(), String> {
    let (memory, total) = (limit.bytes(memory_total(cores)), physical_total());
    fits(memory, cores, address_space())?;
    if memory > total {
        tracing::warn!("the memory limit of {} MB is more than the {} MB that there are", memory >> 20, total >> 20);
    }
    Ok(())
}

fn fits(memory: u64, cores: usize, space: Option<u64>) -> Result<(), String> {
    let needed = needed(memory, cores);
    match space.filter(|space| *space < needed) {
        None => Ok(()),
        Some(space) => {
            let (space, needed) = (space >> 20, needed >> 20);
            let need = match memory >> 20 {
                0 => format!("with {cores} cores it needs more than {needed} MB, which are none of the data's"),
                limit => format!("with {cores} cores and a memory limit of {limit} MB it needs {needed} MB"),
            };
            Err(format!(
                "the system lets the server have too little memory: {space} MB of address space (ulimit -v, ulimit -d); {need}"
            ))
        }
    }
}

/// Memory that the process may use: the machine's, that of the control groups it is in, or what fits into its address space, whichever is
/// the least.
pub fn memory_total(cores: usize) -> u64 {
    let space = address_space().map(|space| usable(space, cores));
    physical_total().min(space.unwrap_or(u64::MAX))
}

/// Gives rows and indexes memory of their own, in huge pages, and everything else small ones.
///
/// # Errors
/// Where address space is limited, as the range for rows takes as much as the machine has memory; others are [`env::Lasting::separate`]'s.
pub fn separate_rows() -> io::Result<()> {
    if address_space().is_some() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "address space is limited"));
    }
    env::Lasting::separate(physical_total())?;
    engine::allocate_by(env::Lasting::allocate);
    Ok(())
}

fn physical_total() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    });
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_limit(&groups, Path::new("/sys/fs/cgroup"));
    // Of a machine that does not tell, little is taken.
    machine.into_iter().chain(group).min().unwrap_or(1 << 30)
}

/// The least limit of the control groups that `groups`, in the form of /proc/self/cgroup, names, and of those above them; of
/// both versions. Inside of a container the root is the container's own group.
fn group_limit(groups: &str, root: &Path) -> Option<u64> {
    let mut limits = Vec::new();
    for line in groups.lines().chain(["0::/", "0:memory:/"]) {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => (root.to_path_buf(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        let mut group = PathBuf::from(path.trim_start_matches('/'));
        loop {
            let limit = std::fs::read_to_string(root.join(&group).join(file));
            limits.extend(limit.ok().and_then(|text| text.trim().parse::<u64>().ok()));
            if !group.pop() {
                break;
            }
        }
    }
    // Without a limit, version 1 says a number near the largest there is.
    limits.into_iter().filter(|limit| *limit < 1 << 60).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory() {
        assert!(memory_total(1) > 64 << 20);
        let (all, private) = (resident_bytes().unwrap(), private_bytes().unwrap());
        assert!(all > 1 << 20 && private > 1 << 16 && private <= all + (1 << 20), "{all} {private}");
    }

    #[test]
    fn a_surplus_that_stays_is_given_back_less_and_less_often() {
        const MB: u64 = 1 << 20;
        let mut surplus = Surplus::default();
        assert!(!surplus.is_over(140 * MB, 100 * MB, false));
        assert!(!surplus.is_over(1090 * MB, 1000 * MB, false), "a tenth of what is in use");
        let mut given_back = |rounds: u32| (0..rounds).filter(|_| surplus.is_over(200 * MB, 100 * MB, false)).count();
        assert_eq!(given_back(SURPLUS_FOR), 0, "it is loaded again, perhaps");
        assert_eq!(given_back(1), 1);
        assert!((1..10).contains(&given_back(200)));
        assert!(!surplus.is_over(100 * MB, 100 * MB, false));
        assert_eq!((0..=SURPLUS_FOR).filter(|_| surplus.is_over(200 * MB, 100 * MB, false)).count(), 1);
        assert!(!surplus.is_over(100 * MB, 100 * MB, true));
        assert!(surplus.is_over(200 * MB, 100 * MB, true), "it is missing elsewhere");
        assert!(!surplus.is_over(200 * MB, 100 * MB, true), "that did not help");
    }

    #[test]
    fn a_limit_fits_into_the_address_space_or_is_refused() {
        let gb = |n: u64| n << 30;
        assert_eq!(fits(gb(8), 2, None), Ok(()));
        assert_eq!(fits(gb(8), 2, Some(gb(12))), Ok(()));
        let wrong = fits(gb(8), 2, Some(gb(8))).expect_err("there is more than the data");
        assert!(
            wrong.contains("8192 MB of address space (ulimit -v") && wrong.contains("memory limit of 8192 MB"),
            "{wrong}"
        );
        let wrong = fits(0, 1, Some(gb(1))).expect_err("there is no room for any data");
        assert!(wrong.ends_with("with 1 cores it needs more than 1888 MB, which are none of the data's"), "{wrong}");
        for space in [gb(1), gb(2), gb(3), gb(30)] {
            for cores in [1, 2, 16, 64] {
                let memory = usable(space, cores);
                assert_eq!(fits(memory, cores, Some(space)).is_ok(), space >= needed(0, cores), "{space}, {cores}");
                assert!(memory == 0 || fits(memory + (64 << 20), cores, Some(space)).is_err(), "{space}, {cores}");
            }
        }
    }

    #[test]
    fn limits_of_control_groups_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let limit = |groups: &str| group_limit(groups, dir.path());
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/memory.max", "4096000000\n");
        assert_eq!(limit("0::/a/b\n"), Some(4_096_000_000), "of the group above");
        write("a/b/memory.max", "1024000000\n");
        assert_eq!(limit("0::/a/b\n"), Some(1_024_000_000));
        write("memory/c/memory.limit_in_bytes", "512000000\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit("5:cpu,memory:/c\n4:pids:/d\n"), Some(512_000_000), "version 1");
        assert_eq!(limit("5:memory:/elsewhere\n"), None, "no limit");
        write("memory.max", "256000000\n");
        assert_eq!(limit("0::/../../x\n"), Some(256_000_000), "of a container, whose root is its group");
    }
}
