//! A server that is started, watched and stopped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::Refusal;
use crate::client::Connection;
use crate::cpu;
use crate::servers::{free_port, serve_nyala};
use crate::target::Target;

/// Longest wait for a server to begin or to end.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A server; killed if it is dropped without [`Node::stop`].
pub struct Node {
    child: Child,
    lines: Receiver<String>,
    port: u16,
}

/// A start, as it was seen from outside, and what the server says of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Started {
    /// Seconds from the call until connections were taken.
    pub seconds: f64,
    /// Seconds of CPU time until then.
    pub cpu_seconds: f64,
    /// Most memory that the process has had by then, in bytes.
    pub peak_bytes: u64,
    /// Bytes of the log read.
    pub log_bytes: u64,
    /// Milliseconds of reading the image.
    pub image_ms: u64,
    /// Milliseconds of reading the log.
    pub log_ms: u64,
    /// Milliseconds of building indexes.
    pub indexes_ms: u64,
}

impl Node {
    /// Starts a server on a data directory, which makes no checkpoint by itself, and waits until it takes connections.
    ///
    /// # Errors
    /// If it does not.
    pub fn start(program: &Path, data: &Path, cores: Option<u16>) -> Result<(Node, Started), Refusal> {
        let port = free_port().map_err(Refusal::io("a port"))?;
        let mut command = Command::new(program);
        serve_nyala(&mut command, data, port);
        command.args(["--checkpoint-log", "100TB", "--checkpoint-interval", "86400"]);
        command.args(cores.map(|cores| format!("--cores={cores}")));
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = command.spawn().map_err(Refusal::io(program.display().to_string()))?;
        let stderr = child.stderr.take().ok_or_else(|| Refusal::Node("the server has no log".into()))?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stderr).lines();
            lines.map_while(Result::ok).try_for_each(|line| sender.send(line)).is_ok()
        });
        let node = Node { child, lines, port };
        let mut started = Started::default();
        let mut seen = Vec::new();
        loop {
            let Ok(line) = node.lines.recv_timeout(PATIENCE) else {
                return Err(Refusal::Node(format!("the server did not start:\n{}", seen.join("\n"))));
            };
            started.read(&line);
            if line.contains("ready: listening on ") {
                started.seconds = began.elapsed().as_secs_f64();
                break;
            }
            seen.push(line);
        }
        started.cpu_seconds = cpu::of_process(node.child.id()).as_secs_f64();
        started.peak_bytes = peak_of(node.child.id()).unwrap_or(0);
        Ok((node, started))
    }

    /// A connection to it.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn connect(&self) -> Result<Connection, Refusal> {
        let target: Target = format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
            .parse()
            .map_err(|wrong: String| Refusal::Node(wrong))?;
        Ok(Connection::open(&target)?)
    }

    /// Ends it, and waits until all that it has is durable.
    ///
    /// # Errors
    /// If it does not end well.
    pub fn stop(mut self) -> Result<(), Refusal> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).map_err(|error| Refusal::Io("the server".into(), error.into()))?;
        let status = self.child.wait().map_err(Refusal::io("the server"))?;
        if status.success() { Ok(()) } else { Err(Refusal::Node(format!("the server ended with {status}"))) }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Started {
    /// Takes what a line of the server's log says of the start.
    fn read(&mut self, line: &str) {
        let Some((_, told)) = line.split_once(" opened: ") else { return };
        let words: Vec<&str> = told.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let before = |names: &[&str]| {
            let at = words.windows(names.len() + 1).position(|w| w[1..] == *names)?;
            words[at].parse::<u64>().ok()
        };
        let after = |name: &str| {
            let at = words.windows(3).position(|w| w[0] == name && w[2] == "ms")?;
            words[at + 1].parse::<u64>().ok()
        };
        self.log_bytes = before(&["bytes", "of", "log"]).unwrap_or(0);
        self.image_ms = after("image").unwrap_or(0);
        self.log_ms = after("log").unwrap_or(0);
        self.indexes_ms = after("indexes").unwrap_or(0);
    }
}

/// The most memory that a process has had.
fn peak_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_of_its_start_is_read() {
        let mut started = Started::default();
        started.read(
            "2026 INFO data directory /x opened: checkpoint 3 (15 rows, 200 bytes) and 40 bytes of log \
             in 123 ms (image 50 ms, log 3 ms, indexes 60 ms)",
        );
        let Started { log_bytes, image_ms, log_ms, indexes_ms, .. } = started;
        assert_eq!([log_bytes, image_ms, log_ms, indexes_ms], [40, 50, 3, 60]);
        let mut started = Started::default();
        started.read("INFO data directory /x opened: 40 bytes of log in 12 ms (image 0 ms, log 11 ms, indexes 1 ms)");
        assert_eq!((started.log_bytes, started.log_ms), (40, 11));
    }

    #[test]
    fn a_process_has_a_peak() {
        assert!(peak_of(std::process::id()).is_some_and(|bytes| bytes > 1 << 20));
    }
}
