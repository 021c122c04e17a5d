//! The thread that sees to it that cores give each other their turns: it counts those that have not for long, and tells what
//! they do instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use base::watch::{self, Phase, Watched};
use env::{Joined, Spawn};
use sql_parse::monitor::Monitor;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// A turn is counted when it has lasted so long, …
const COUNTED: Duration = Duration::from_millis(100);
/// … and told of in the log when it has lasted so long.
const TOLD: Duration = Duration::from_secs(1);

/// Turns that were too long, and how long the longest was, in microseconds.
static HELD: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// Turns of cores that have lasted for 100 ms or more, and the seconds of the longest.
pub fn held() -> (u64, f64) {
    (HELD.load(Relaxed), LONGEST.load(Relaxed) as f64 / 1e6)
}

/// The running thread; stopped when dropped.
pub struct Watchdog {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<Box<dyn Joined>>,
}

/// What is known of a core.
struct Core {
    thread: &'static Watched,
    turn: u64,
    /// When the turn was seen first.
    since: Instant,
    is_counted: bool,
    is_told: bool,
}

impl Core {
    fn look(&mut self, number: usize, now: Instant, monitor: &Monitor) {
        let turn = self.thread.turn();
        if turn != self.turn || turn.is_multiple_of(2) {
            if self.is_told {
                let lasted = now.duration_since(self.since);
                tracing::warn!("core {number} goes on after about {:.1} s", lasted.as_secs_f64());
            }
            (self.turn, self.since, self.is_counted, self.is_told) = (turn, now, false, false);
            return;
        }
        let lasted = now.duration_since(self.since);
        if lasted < COUNTED {
            return;
        }
        LONGEST.fetch_max(lasted.as_micros() as u64, Relaxed);
        if !std::mem::replace(&mut self.is_counted, true) {
            HELD.fetch_add(1, Relaxed);
        }
        if lasted >= TOLD && !std::mem::replace(&mut self.is_told, true) {
            let (session, what) = self.thread.doing();
            let what = doing(what);
            let statement = monitor.session(session).map_or_else(String::new, |session| session.snapshot().query);
            tracing::warn!("core {number} has served nobody else for 1 s: session {session} is in {what}: {statement}");
        }
    }
}

/// What a core says that it does, in words.
fn doing(what: u32) -> String {
    match Phase::name(what) {
        Some(phase) => phase.to_string(),
        None => match sql_functions::function_by_oid(what) {
            Some(function) => format!("function {}", function.name),
            None => format!("function {what}"),
        },
    }
}

impl Watchdog {
    /// Starts to watch the cores.
    pub fn start(spawn: &dyn Spawn, monitor: Arc<Monitor>) -> Watchdog {
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            let mut cores: Vec<Core> = Vec::new();
            let mut before = Instant::now();
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let now = Instant::now();
                for thread in watch::threads().into_iter().skip(cores.len()) {
                    cores.push(Core { thread, turn: 0, since: now, is_counted: false, is_told: false });
                }
                // Who did not run itself cannot tell who did: the machine was stopped, or has no processor to spare.
                let late = now.duration_since(before).saturating_sub(PAUSE);
                before = now;
                for (number, core) in cores.iter_mut().enumerate() {
                    core.since += if late > PAUSE { late } else { Duration::ZERO };
                    core.look(number, now, &monitor);
                }
            }
        };
        Watchdog { stop: Some(stop), thread: Some(spawn.spawn("watchdog", Box::new(watch))) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_lasts_is_counted_once() {
        sql_catalog::install();
        let (told, asked) = mpsc::channel();
        let (go, end) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let own = watch::this_thread();
            own.turns();
            told.send(own).unwrap();
            let _ = end.recv();
            own.turns();
        });
        let start = Instant::now();
        let mut core = Core { thread: asked.recv().unwrap(), turn: 0, since: start, is_counted: false, is_told: false };
        let monitor = Monitor::new(0);
        let (before, _) = held();
        for millis in [0u64, 50, 99, 110, 500, 1500] {
            core.look(0, start + Duration::from_millis(millis), &monitor);
            assert_eq!(core.is_counted, millis >= 110, "after {millis} ms");
            assert_eq!(core.is_told, millis >= 1500, "after {millis} ms");
        }
        let (count, longest) = held();
        assert!(count == before + 1 && longest >= 1.5);
        drop(go);
        thread.join().unwrap();
        core.look(0, start + Duration::from_millis(1600), &monitor);
        assert!(!core.is_counted && !core.is_told);
        assert_eq!(doing(1254), "function textregexeq");
        assert_eq!(doing(Phase::Sort as u32), "sort");
    }
}
