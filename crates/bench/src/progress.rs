//! One line on stderr that shows how a long step goes: rewritten in place on a terminal, a line per second elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::table::grouped;

/// The line.
pub struct Line {
    in_place: bool,
    shown: Option<Instant>,
    width: usize,
}

impl Line {
    /// On stderr.
    pub fn new() -> Line {
        Line { in_place: std::io::stderr().is_terminal(), shown: None, width: 0 }
    }

    /// Shows `text`, unless the last one is younger than a second.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if self.shown.is_some_and(|at| at.elapsed() < Duration::from_millis(950)) {
            return;
        }
        self.shown = Some(Instant::now());
        let text = text();
        if self.in_place {
            self.rewrite(&text);
        } else {
            eprintln!("{text}");
        }
    }

    /// Shows `text` and leaves it there.
    pub fn end(&mut self, text: &str) {
        if self.in_place {
            self.rewrite(text);
        }
        eprintln!("{}", if self.in_place { "" } else { text });
        (self.shown, self.width) = (None, 0);
    }

    /// Leaves nothing on a terminal.
    pub fn clear(&mut self) {
        if self.in_place {
            self.rewrite("");
            eprint!("\r");
        }
    }

    fn rewrite(&mut self, text: &str) {
        // The rest of a longer line before this one is blanked.
        eprint!("\r{text:<width$}", width = self.width);
        let _ = std::io::stderr().flush();
        self.width = text.chars().count();
    }
}

/// How far a load is.
pub fn bar(what: &str, done: u64, of: u64, elapsed: Duration) -> String {
    let share = (done as f64 / of.max(1) as f64).min(1.0);
    let filled = (share * 30.0) as usize;
    let rate = grouped(done as f64 / elapsed.as_secs_f64().max(0.001));
    format!("{what} [{:<30}] {:3.0} %  {rate} rows/s", "#".repeat(filled), share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_when_it_is_full() {
        let seconds = Duration::from_secs(2);
        assert_eq!(bar("t", 0, 100, seconds), "t [                              ]   0 %  0 rows/s");
        assert_eq!(bar("t", 500, 1000, seconds), "t [###############               ]  50 %  250 rows/s");
        // What was expected is a guess for some loads.
        assert_eq!(bar("t", 102, 100, seconds), "t [##############################] 100 %  51 rows/s");
    }
}
