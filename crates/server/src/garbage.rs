//! The thread that frees versions which transactions could not free when they made them.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use engine::Shard;
use env::{Joined, Spawn};

/// Rows looked at in one round.
const ROUND: usize = 1024;
/// A round that took longer has found something to do.
const WORKED: Duration = Duration::from_micros(30);
/// Pause between rounds that find work: at least this, …
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// … and between those that find none.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// The running thread; stopped when dropped.
pub struct Collector {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<Box<dyn Joined>>,
}

impl Collector {
    /// Starts to collect the garbage of `shard`.
    pub fn start(spawn: &dyn Spawn, shard: Shard) -> Collector {
        let (stop, stopped) = mpsc::channel();
        let thread = spawn.spawn("garbage", Box::new(move || collect(&shard, &stopped)));
        Collector { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

fn collect(shard: &Shard, stopped: &mpsc::Receiver<()>) {
    let mut pause = PAUSE_MIN;
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let began = Instant::now();
        shard.collect_garbage(ROUND);
        pause = next_pause(pause, began.elapsed());
    }
}

/// Works at most half of the time when there is work, and looks less and less often when there is none.
fn next_pause(last: Duration, round: Duration) -> Duration {
    if round > WORKED { round.max(PAUSE_MIN) } else { (last * 2).min(PAUSE_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_in_quiet_and_shrink_under_load() {
        let idle = Duration::from_micros(2);
        let mut pause = PAUSE_MIN;
        for _ in 0..20 {
            pause = next_pause(pause, idle);
        }
        assert_eq!(pause, PAUSE_MAX);
        assert_eq!(next_pause(pause, Duration::from_micros(100)), PAUSE_MIN);
        assert_eq!(next_pause(pause, Duration::from_millis(5)), Duration::from_millis(5));
    }
}
