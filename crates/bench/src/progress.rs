//! One line on stderr that shows how a long step goes: rewritten in place on a terminal, a line per second elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

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
pub fn bar(what: &str, done: u64, of: u64, started: Instant) -> String {
    let filled = (done * 30 / of) as usize;
    let rate = crate::table::grouped(done as f64 / started.elapsed().as_secs_f64());
    format!("{what} [{}{}] {:3} %  {rate} rows/s", "#".repeat(filled), " ".repeat(30 - filled), done * 100 / of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_when_it_is_full() {
        let now = Instant::now();
        assert!(bar("t", 0, 100, now).starts_with("t [                              ]   0 %"));
        assert!(bar("t", 100, 100, now).starts_with("t [##############################] 100 %"));
    }
}
