//! The thread that frees versions which transactions could not free when they made them, puts rows together that lie among free
//! memory, and gives memory back to the system.

use std::sync::mpsc::{self, TryRecvError};
use std::time::{Duration, Instant};

use engine::{Compaction, Shard};
use env::{Joined, Spawn, Task, Turn};

use crate::memory;

/// Rows looked at in one round.
const ROUND: usize = 1024;
/// A round that took longer has found something to do.
const WORKED: Duration = Duration::from_micros(30);
/// Longest time for memory in one round.
const RECLAIM: Duration = Duration::from_millis(1);
/// Pause between rounds that find work: at least this, …
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// … at most this while somebody waits for memory, …
const PAUSE_RELIEF: Duration = Duration::from_millis(5);
/// … and at most this between those that find none.
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// How long free memory stays with the process: memory that is new to it costs the kernel more than what is put into it costs the
/// server, and what is dropped is often loaded again.
const FREE_FOR: Duration = Duration::from_secs(10);

/// Pause before a walk over the rows while free memory is missing elsewhere: cores learn meanwhile what others have freed in their pages.
const WALK_AFTER: Duration = Duration::from_millis(500);
/// A walk that moves fewer rows than this has found little, …
const LITTLE: usize = 1000;
/// … and the next one comes after so many times as long.
const WALK_SELDOM: u32 = 10;
/// Time for a walk in one round.
const STRIDE: Duration = Duration::from_millis(2);

/// The running thread; stopped when dropped.
pub struct Collector {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<Box<dyn Joined>>,
}

impl Collector {
    /// Starts to collect the garbage of `shard`.
    pub fn start(spawn: &dyn Spawn, shard: Shard) -> Collector {
        env::keep_free_memory(FREE_FOR);
        let (stop, stopped) = mpsc::channel();
        let thread =
            spawn.start("garbage", Box::new(Rounds { shard, stopped, pause: PAUSE_MIN, walks: Walks::default() }));
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

/// The collector: a round and a pause, until it is told to stop.
struct Rounds {
    shard: Shard,
    stopped: mpsc::Receiver<()>,
    pause: Duration,
    walks: Walks,
}

/// Walks over the rows that put together those among free memory.
#[derive(Default)]
struct Walks {
    now: Option<(Compaction, Instant)>,
    /// When the next one may begin, if memory has been short.
    next: Option<Instant>,
}

impl Walks {
    /// Goes on with the walk, or begins one if it is time and memory is short.
    fn step(&mut self, shard: &Shard) {
        let now = Instant::now();
        let Some((walk, began)) = &mut self.now else {
            match self.next {
                _ if !memory::is_short() => self.next = None,
                None => self.begin_after(WALK_AFTER),
                Some(next) if now >= next => self.now = Some((shard.begin_compaction(), now)),
                Some(_) => {}
            }
            return;
        };
        let is_done = loop {
            let is_done = walk.step(ROUND);
            if is_done || now.elapsed() > STRIDE {
                break is_done;
            }
        };
        if is_done {
            tracing::debug!("moved {} rows from among free memory in {:?}", walk.moved(), began.elapsed());
            let after = if walk.moved() < LITTLE { began.elapsed() * WALK_SELDOM } else { Duration::ZERO };
            self.now = None;
            self.begin_after(after.max(WALK_AFTER));
        }
    }

    fn begin_after(&mut self, pause: Duration) {
        memory::ask_to_give_back();
        self.next = Some(Instant::now() + pause);
    }
}

impl Task for Rounds {
    fn step(&mut self) -> Turn {
        if self.stopped.try_recv() != Err(TryRecvError::Empty) {
            return Turn::Ended;
        }
        let began = Instant::now();
        self.shard.collect_garbage(ROUND);
        self.walks.step(&self.shard);
        let worked = began.elapsed() > WORKED;
        self.pause = next_pause(self.pause, began.elapsed(), worked);
        if self.shard.relieve() {
            // Somebody waits for memory: the next look is soon.
            self.pause = self.pause.min(PAUSE_RELIEF);
        }
        if !worked {
            env::give_back();
        }
        Turn::Idle
    }

    fn rest(&mut self) {
        let _ = self.stopped.recv_timeout(self.pause);
    }
}

/// Frees memory that was unlinked, a little now and then, on the core that calls this: the allocator gives back what the
/// thread frees that had it. A busy core does so by itself; this is for the time after a large transaction.
pub async fn reclaim(shard: Shard) {
    let mut pause = PAUSE_MAX;
    let mut round = memory::give_back_round();
    loop {
        pgwire::timers::sleep(pause).await;
        let before = std::mem::replace(&mut round, memory::give_back_round());
        if before != round {
            // What this core has freed in its own pages goes back by its own hand only. To look through them all, block by block, holds
            // the core for tens of milliseconds: only where memory is missing elsewhere.
            if memory::is_short() { env::give_back_all() } else { env::give_back() }
        }
        let began = Instant::now();
        pause = if reclaim_some(&shard) { began.elapsed().max(PAUSE_MIN) } else { PAUSE_MAX };
    }
}

/// For as long as that finds something to do, and not too long; whether there may be more.
fn reclaim_some(shard: &Shard) -> bool {
    let began = Instant::now();
    for step in 0.. {
        let before = Instant::now();
        shard.reclaim();
        // Two epochs must pass before anything is free.
        if step >= 3 && (before.elapsed() < WORKED || began.elapsed() > RECLAIM) {
            return before.elapsed() >= WORKED;
        }
    }
    unreachable!("the loop ends by a return")
}

/// Works at most half of the time when there is work, and looks less and less often when there is none.
fn next_pause(last: Duration, round: Duration, worked: bool) -> Duration {
    if worked { round.max(PAUSE_MIN) } else { (last * 2).min(PAUSE_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_in_quiet_and_shrink_under_load() {
        let micros = Duration::from_micros;
        let mut pause = PAUSE_MIN;
        for _ in 0..20 {
            pause = next_pause(pause, micros(2), false);
        }
        assert_eq!(pause, PAUSE_MAX);
        assert_eq!(next_pause(pause, micros(100), true), PAUSE_MIN);
        assert_eq!(next_pause(pause, micros(5000), true), micros(5000));
    }
}
