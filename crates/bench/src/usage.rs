//! What a run costs beside its time: processor, memory and disk of the server, read from `/proc` while it runs.
//!
//! Memory is what the server's processes hold for themselves, and the largest share of common memory that one of them sees,
//! once: pages that many processes map are not counted many times. Flushes are those that the disks of the machine have
//! completed, whoever asked for them: they are the server's where nothing else runs.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cpu::{self, Used};
use crate::target::Target;

/// Reads the account of a server, again and again.
pub struct Meter {
    server: Result<cpu::Server, String>,
}

/// An account up to a moment.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Of the server, or why that is not known.
    pub server: Result<Used, String>,
    /// Of this process.
    pub client: Duration,
    /// Bytes that the server's processes caused to be written to disks; not known of another user's.
    pub written: Option<u64>,
    /// Flushes that the machine's disks have completed.
    pub flushes: u64,
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
    /// Bytes that the server wrote to disks.
    pub written_bytes: Option<u64>,
    /// Flushes of the machine's disks.
    pub flushes: Option<u64>,
    /// Bytes of memory that the server held at the end.
    pub memory_bytes: Option<u64>,
}

impl Meter {
    /// Finds the server behind `target`.
    pub fn new(target: &Target) -> Meter {
        Meter { server: cpu::Server::find(target) }
    }

    /// Reads.
    pub fn read(&self) -> Reading {
        let processes = self.server.as_ref().map(cpu::Server::processes).unwrap_or_default();
        let written: Vec<_> = processes.iter().filter_map(|&pid| written(pid)).collect();
        Reading {
            server: self.server.as_ref().map(cpu::Server::used).map_err(String::clone),
            client: cpu::own(),
            written: (!written.is_empty()).then(|| written.iter().sum()),
            flushes: flushes(&fs::read_to_string("/proc/diskstats").unwrap_or_default()),
            memory: memory(processes.iter().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/status")).ok())),
        }
    }
}

impl Reading {
    /// What was used from `before` to now.
    pub fn since(&self, before: &Reading) -> Usage {
        let used = self.server.as_ref().ok().zip(before.server.as_ref().ok()).map(|(now, then)| now.since(then));
        // A process that has ended takes its account with it.
        let written = self.written.zip(before.written).map(|(now, then)| now.saturating_sub(then));
        Usage {
            server_user_seconds: used.map(|u| u.user.as_secs_f64()),
            server_system_seconds: used.map(|u| u.system.as_secs_f64()),
            server_processes: used.map(|u| u.processes),
            server_unknown: self.server.as_ref().err().cloned(),
            client_seconds: self.client.saturating_sub(before.client).as_secs_f64(),
            written_bytes: written,
            flushes: used.map(|_| self.flushes.saturating_sub(before.flushes)),
            memory_bytes: self.memory,
        }
    }
}

impl Usage {
    /// Seconds of processor time of the server.
    pub fn server_seconds(&self) -> Option<f64> {
        Some(self.server_user_seconds? + self.server_system_seconds?)
    }
}

fn written(pid: u32) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
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

/// The flushes in `/proc/diskstats`, of whole disks: those of a partition are in its disk's number, too.
fn flushes(table: &str) -> u64 {
    let mut disks: Vec<(&str, u64)> = Vec::new();
    for line in table.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (Some(&name), Some(count)) = (fields.get(2), fields.get(18).and_then(|f| f.parse().ok())) else { continue };
        let is_part = disks.iter().any(|(disk, _)| name.strip_prefix(disk).is_some_and(|rest| !rest.is_empty()));
        // What is made of other disks counts there.
        if !is_part && !name.starts_with("loop") && !name.starts_with("dm-") && !name.starts_with("md") {
            disks.push((name, count));
        }
    }
    disks.iter().map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_of_a_partition_count_once() {
        let table = " 259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 40 9\n 259 1 nvme0n1p1 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 40 9\n \
                     254 0 vda 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 2 9\n 7 0 loop0 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 5 9\n \
                     8 0 sda 1 2 3";
        assert_eq!(flushes(table), 42);
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
