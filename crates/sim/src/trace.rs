//! The trace of a run: the last lines, to study a failure, and a checksum of all lines, to compare two runs.

use std::collections::VecDeque;
use std::fmt;

/// Lines that are kept.
const KEPT: usize = 400;

/// The trace of a run.
#[derive(Debug)]
pub struct Trace {
    lines: VecDeque<String>,
    hash: u64,
    count: u64,
    prints: bool,
}

impl Trace {
    /// An empty one; one that `prints` writes each line to stderr as well.
    pub fn new(prints: bool) -> Trace {
        Trace { lines: VecDeque::new(), hash: 0xcbf2_9ce4_8422_2325, count: 0, prints }
    }

    /// Adds a line.
    pub fn say(&mut self, line: fmt::Arguments<'_>) {
        let line = format!("{:>6} {line}", self.count);
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        if self.prints {
            eprintln!("{line}");
        }
        self.count += 1;
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// The sum of all lines.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The last lines.
    pub fn tail(&self, lines: usize) -> Vec<String> {
        self.lines.iter().skip(self.lines.len().saturating_sub(lines)).cloned().collect()
    }
}
