//! Memory of the process and of the machine, and the thread that measures what is not counted as it changes.
//!
//! Responsible for: what the limit is a share of, how much the process holds, the [`Meter`].
//! Not responsible for: the limit (`engine`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use engine::Shard;
use engine_api::{Engine as _, MemoryKind};
use env::{Joined, Spawn};
use sql::session::Shared;

/// Pause between two measurements.
const PAUSE: Duration = Duration::from_millis(200);

/// The running thread; stopped when dropped.
pub struct Meter {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<Box<dyn Joined>>,
}

impl Meter {
    /// Starts to measure.
    pub fn start(spawn: &dyn Spawn, shard: Shard, shared: Arc<Shared>) -> Meter {
        let (stop, stopped) = mpsc::channel();
        let measure = move || {
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                shard.measure_memory();
                shared.measure_memory();
                shard.set_memory(MemoryKind::Connections, pgwire::buffered_bytes());
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

/// Resident memory of the process.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Memory that the process may use: the machine's, or that of the control groups it is in, if that is less.
pub fn memory_total() -> u64 {
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
        assert!(memory_total() > 64 << 20);
        assert!(resident_bytes().unwrap() > 1 << 20);
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
