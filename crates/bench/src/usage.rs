//! What a run costs beside its time: processor, memory and disk of the server, read from `/proc` while it runs.
//!
//! Memory is what the server's processes hold for themselves, and the largest share of common memory that one of them sees,
//! once: pages that many processes map are not counted many times. Bytes written and flushes are those that the disks of the
//! machine have completed for any process: they are the server's where nothing else runs. (What the kernel writes in a process's
//! own account are pages made dirty, which are whole large folios where the file system has them: hundreds of times what is written.)

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cpu::{self, Share, Used};
use crate::target::Target;

/// Reads the accounts of a server and of the generator, again and again.
pub struct Meter {
    server: Result<cpu::Server, String>,
}

/// Accounts up to a moment.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Of the server, or why that is not known.
    pub server: Result<Used, String>,
    /// Of this process, and exactly.
    pub client: (Used, Duration),
    /// What the machine's disks have done.
    pub disks: Disks,
    /// Bytes of memory that the server holds.
    pub memory: Option<u64>,
}

/// What a stretch of time cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Seconds of processor time of the server in its programs.
    pub server_user_seconds: Option<f64>,
    /// The same in the kernel.
    pub server_system_seconds: Option<f64>,
    /// Processes that the server had at the end.
    pub server_processes: Option<usize>,
    /// Why the server's part is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_unknown: Option<String>,
    /// Seconds of processor time of the generator.
    pub client_seconds: f64,
    /// Processor time by process, of the server and of the generator.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// Bytes written to the machine's disks.
    pub written_bytes: Option<u64>,
    /// Flushes of the machine's disks.
    pub flushes: Option<u64>,
    /// Bytes of memory that the server held at the end.
    pub memory_bytes: Option<u64>,
}

/// Processor time of the processes of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// What they are called.
    pub name: String,
    /// Whether they are the server's; else it is the generator.
    pub is_server: bool,
    /// How many lived at the end.
    pub count: usize,
    /// Seconds in the program.
    pub user_seconds: f64,
    /// Seconds in the kernel, for the program.
    pub system_seconds: f64,
}

impl Process {
    fn of(name: &str, is_server: bool, share: &Share) -> Process {
        let (user_seconds, system_seconds) = (share.user.as_secs_f64(), share.system.as_secs_f64());
        Process { name: name.into(), is_server, count: share.count, user_seconds, system_seconds }
    }
}

/// What tables and charts call the process that makes the load.
pub const GENERATOR: &str = "generator";

impl Meter {
    /// Finds the server behind `target`.
    pub fn new(target: &Target) -> Meter {
        Meter { server: cpu::Server::find(target) }
    }

    /// Reads.
    pub fn read(&self) -> Reading {
        let server = self.server.as_ref().map(cpu::Server::used).map_err(String::clone);
        let processes = server.as_ref().map(|used| used.pids().collect::<Vec<_>>()).unwrap_or_default();
        Reading {
            client: (Used::of(std::process::id()), cpu::own()),
            disks: Disks::parse(&fs::read_to_string("/proc/diskstats").unwrap_or_default()),
            memory: memory(processes.iter().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/status")).ok())),
            server,
        }
    }
}

impl Reading {
    /// What was used from `before` to now.
    pub fn since(&self, before: &Reading) -> Usage {
        let both = self.server.as_ref().ok().zip(before.server.as_ref().ok());
        let used = both.map(|(now, then)| now.since(then));
        Usage {
            server_user_seconds: used.map(|(user, _)| user.as_secs_f64()),
            server_system_seconds: used.map(|(_, system)| system.as_secs_f64()),
            server_processes: both.map(|(now, _)| now.pids().count()),
            server_unknown: self.server.as_ref().err().cloned(),
            client_seconds: self.client.1.saturating_sub(before.client.1).as_secs_f64(),
            processes: Vec::new(),
            written_bytes: used.map(|_| self.disks.written.saturating_sub(before.disks.written)),
            flushes: used.map(|_| self.disks.flushes.saturating_sub(before.disks.flushes)),
            memory_bytes: self.memory,
        }
    }

    /// The same with every process, which takes longer.
    pub fn since_by_process(&self, before: &Reading) -> Usage {
        let mut processes = Vec::new();
        if let (Ok(now), Ok(then)) = (&self.server, &before.server) {
            let shares = now.by_name(then, cpu::name);
            processes.extend(shares.iter().map(|(name, share)| Process::of(name, true, share)));
        }
        let own = self.client.0.by_name(&before.client.0, |_| GENERATOR.into());
        processes.extend(own.get(GENERATOR).map(|share| Process::of(GENERATOR, false, share)));
        Usage { processes, ..self.since(before) }
    }
}

impl Usage {
    /// Seconds of processor time of the server.
    pub fn server_seconds(&self) -> Option<f64> {
        Some(self.server_user_seconds? + self.server_system_seconds?)
    }
}

/// Memory of processes, from the text of their `/proc/PID/status`.
fn memory(all: impl Iterator<Item = String>) -> Option<u64> {
    let (mut own, mut shared, mut some) = (0, 0, false);
    for status in all {
        let kilobytes = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
        };
        own += kilobytes("RssAnon:");
        shared = shared.max(kilobytes("RssShmem:"));
        some = true;
    }
    some.then_some((own + shared) << 10)
}

/// What disks have done since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disks {
    /// Bytes.
    pub written: u64,
    /// Flushes.
    pub flushes: u64,
}

impl Disks {
    /// Reads `/proc/diskstats`: whole disks, as what a partition does is in its disk's numbers, too.
    fn parse(table: &str) -> Disks {
        /// Of the kernel's own making, whatever the disk has.
        const SECTOR_BYTES: u64 = 512;
        let (mut all, mut names) = (Disks::default(), Vec::<&str>::new());
        for line in table.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
            let (Some(&name), Some(sectors), Some(flushes)) = (fields.get(2), number(9), number(18)) else { continue };
            let is_part = names.iter().any(|disk| name.strip_prefix(disk).is_some_and(|rest| !rest.is_empty()));
            // What is made of other disks counts there.
            if !is_part && !name.starts_with("loop") && !name.starts_with("dm-") && !name.starts_with("md") {
                names.push(name);
                all.written += sectors * SECTOR_BYTES;
                all.flushes += flushes;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_partition_does_counts_once() {
        let table = " 259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 40 9\n 259 1 nvme0n1p1 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 40 9\n \
                     254 0 vda 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 2 9\n 7 0 loop0 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 5 9\n \
                     8 0 sda 1 2 3";
        assert_eq!(Disks::parse(table), Disks { written: 2 * 7 * 512, flushes: 42 });
    }

    #[test]
    fn shared_memory_counts_once() {
        let status = |own: u32, shared: u32| {
            format!("Name:\tx\nRssAnon:\t  {own} kB\nRssFile:\t 9 kB\nRssShmem:\t {shared} kB\n")
        };
        assert_eq!(memory([status(10, 100), status(5, 80)].into_iter()), Some(115 << 10));
        assert_eq!(memory(std::iter::empty()), None);
    }

    #[test]
    fn what_is_not_known_says_why() {
        let target: Target = "postgres://db.invalid:1/".parse().unwrap();
        let meter = Meter::new(&target);
        let usage = meter.read().since(&meter.read());
        assert!(usage.server_unknown.is_some() && usage.server_seconds().is_none() && usage.flushes.is_none());
    }
}
