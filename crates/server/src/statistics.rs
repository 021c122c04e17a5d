//! The thread that keeps the planner's statistics fresh.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use env::{Joined, Spawn};
use sql_session::Refresher;

/// Shortest pause between steps of a look at a table; otherwise as long as the step: half of a core at most, and only while it looks.
const PAUSE_WORKING: Duration = Duration::from_micros(500);
/// Pause while nothing has changed enough.
const PAUSE_IDLE: Duration = Duration::from_millis(500);

/// The running thread; stopped when dropped.
pub struct Watcher {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<Box<dyn Joined>>,
}

impl Watcher {
    /// Starts to watch tables.
    pub fn start(spawn: &dyn Spawn, mut refresher: Refresher) -> Watcher {
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            let mut pause = PAUSE_IDLE;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let began = Instant::now();
                let has_worked = pause != PAUSE_IDLE;
                pause = if refresher.step() { began.elapsed().max(PAUSE_WORKING) } else { PAUSE_IDLE };
                if has_worked && pause == PAUSE_IDLE {
                    // What this thread has freed in its own pages nobody else can give back.
                    env::give_back_all();
                }
            }
        };
        Watcher { stop: Some(stop), thread: Some(spawn.spawn("statistics", Box::new(watch))) }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}
