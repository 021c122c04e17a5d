//! A control group of a test's own, with a limit of memory beyond which the kernel kills.

use std::path::{Path, PathBuf};

use super::namespace::skip;

/// Removed when dropped.
pub struct Group {
    path: PathBuf,
    /// Of version 2.
    unified: bool,
}

impl Group {
    /// A group that may have so many bytes; `None`, and the test is said to be skipped, where none can be made.
    pub fn new(test: &str, bytes: u64) -> Option<Group> {
        let name = format!("nyala-test-{}", std::process::id());
        let made = Group::unified(&name, bytes).or_else(|| Group::of_version_1(&name, bytes));
        if made.is_none() {
            skip(test, "no control group can be made here");
        }
        made
    }

    fn unified(name: &str, bytes: u64) -> Option<Group> {
        let root = Path::new("/sys/fs/cgroup");
        let controllers = std::fs::read_to_string(root.join("cgroup.controllers")).ok()?;
        if !controllers.split_whitespace().any(|one| one == "memory") {
            return None;
        }
        std::fs::write(root.join("cgroup.subtree_control"), "+memory").ok()?;
        let group = Group { path: root.join(name), unified: true };
        std::fs::create_dir(&group.path).ok()?;
        group.set("memory.max", bytes)?;
        // What is swapped out would not be seen; without swap there is no such file.
        let _ = group.set("memory.swap.max", 0);
        Some(group)
    }

    fn of_version_1(name: &str, bytes: u64) -> Option<Group> {
        let group = Group { path: Path::new("/sys/fs/cgroup/memory").join(name), unified: false };
        std::fs::create_dir(&group.path).ok()?;
        group.set("memory.limit_in_bytes", bytes)?;
        let _ = group.set("memory.memsw.limit_in_bytes", bytes);
        Some(group)
    }

    fn set(&self, file: &str, bytes: u64) -> Option<()> {
        std::fs::write(self.path.join(file), bytes.to_string()).ok()
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How often the kernel has killed in it.
    pub fn kills(&self) -> u64 {
        let file = if self.unified { "memory.events" } else { "memory.oom_control" };
        let text = std::fs::read_to_string(self.path.join(file)).expect("the group is there");
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill ")).expect("the kernel counts");
        line.trim().parse().expect("a number")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last process may just be going.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}
