//! The threads that make checkpoints: by the size of the log, by time, and when they are asked for.
//!
//! One is made in the background by one thread that pauses as long as it works, so that it uses at most half a core; one
//! that a client waits for, and one that the log has long outgrown, by as many threads as there are cores, without pauses.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::time::{Duration, Instant};

use engine::{Checkpoint, CheckpointWriter, Shard};
use env::{Joined, Spawn, Task, Turn};

/// Time between two looks at the log.
const LOOK: Duration = Duration::from_millis(50);
/// Time to the next effort after one that failed, unless somebody asks.
const RETRY: Duration = Duration::from_secs(10);
/// A log that is so many times what it should be is worth the haste.
const HASTE: u64 = 2;

/// When checkpoints are made.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Bytes of log after which one is made.
    pub log_bytes: u64,
    /// Time after which one is made if anything was written.
    pub interval: Duration,
    /// Threads at most.
    pub threads: usize,
}

/// The running thread; stopped when dropped, and with it a checkpoint that is being made.
pub struct Checkpointer {
    stop: Option<mpsc::Sender<()>>,
    is_stopping: Arc<AtomicBool>,
    thread: Option<Box<dyn Joined>>,
}

impl Checkpointer {
    /// Starts to make checkpoints of `shard`.
    pub fn start(spawn: Arc<dyn Spawn>, shard: Shard, plan: Plan) -> Checkpointer {
        let (stop, stopped) = mpsc::channel();
        let is_stopping = Arc::new(AtomicBool::new(false));
        let now = Instant::now();
        let making = Making {
            spawn: Arc::clone(&spawn),
            shard,
            plan,
            is_stopping: Arc::clone(&is_stopping),
            stopped,
            last: now,
            not_before: now,
        };
        let thread = spawn.start("checkpoint", Box::new(making));
        Checkpointer { stop: Some(stop), is_stopping, thread: Some(thread) }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Release);
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

struct Making {
    spawn: Arc<dyn Spawn>,
    shard: Shard,
    plan: Plan,
    is_stopping: Arc<AtomicBool>,
    stopped: mpsc::Receiver<()>,
    /// When the last one began.
    last: Instant,
    /// The next one is not made before, unless somebody asks.
    not_before: Instant,
}

/// What is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    Gently,
    AtOnce,
}

/// A disk that is full may be so of log, which an image makes needless.
fn due(plan: &Plan, log: u64, since: Duration, is_wanted: bool, is_full: bool) -> Due {
    match () {
        () if is_wanted || (is_full && log > 0) || log >= plan.log_bytes.saturating_mul(HASTE) => Due::AtOnce,
        () if log >= plan.log_bytes || (log > 0 && since >= plan.interval) => Due::Gently,
        () => Due::Nothing,
    }
}

impl Task for Making {
    fn step(&mut self) -> Turn {
        if self.stopped.try_recv() != Err(TryRecvError::Empty) {
            return Turn::Ended;
        }
        let made_upto = self.shard.last_checkpoint().map_or(0, |manifest| manifest.upto);
        let log = self.shard.log_stats().bytes.saturating_sub(made_upto);
        let is_wanted = self.shard.is_checkpoint_wanted();
        let due = due(&self.plan, log, self.last.elapsed(), is_wanted, self.shard.is_disk_full());
        if due == Due::Nothing || (!is_wanted && Instant::now() < self.not_before) {
            return Turn::Idle;
        }
        self.last = Instant::now();
        if let Err(error) = self.make(due)
            && !self.is_stopping.load(Ordering::Acquire)
        {
            tracing::warn!("a checkpoint failed, the one before stays: {error}");
            self.not_before = Instant::now() + RETRY;
        }
        // What this thread has freed in its own pages nobody else can give back.
        env::give_back_all();
        Turn::Idle
    }

    fn rest(&mut self) {
        let _ = self.stopped.recv_timeout(LOOK);
    }
}

impl Making {
    fn make(&self, due: Due) -> io::Result<()> {
        let Some(checkpoint) = self.shard.begin_checkpoint() else { return Ok(()) };
        let began = Instant::now();
        let threads = if due == Due::AtOnce { self.plan.threads.max(1) } else { 1 };
        let made = self.write(&checkpoint, threads, due == Due::Gently).and_then(|files| checkpoint.commit(files));
        let manifest = made.inspect_err(|error| checkpoint.fail(error))?;
        tracing::info!(
            "checkpoint {}: {} rows, {} bytes in {} ms; the log is kept from {} on",
            manifest.checkpoint,
            manifest.rows(),
            manifest.bytes(),
            began.elapsed().as_millis(),
            manifest.log_from
        );
        Ok(())
    }

    fn write(
        &self,
        checkpoint: &Arc<Checkpoint>,
        threads: usize,
        is_gentle: bool,
    ) -> io::Result<Vec<checkpoint::ManifestFile>> {
        let (sender, files) = mpsc::channel();
        let mut joined = Vec::new();
        for part in 1..threads as u32 {
            let (checkpoint, sender) = (Arc::clone(checkpoint), sender.clone());
            let is_stopping = Arc::clone(&self.is_stopping);
            let work = move || _ = sender.send(write_file(&checkpoint, part, is_gentle, &is_stopping));
            joined.push(self.spawn.spawn("checkpoint", Box::new(work)));
        }
        let first = write_file(checkpoint, 0, is_gentle, &self.is_stopping);
        joined.into_iter().for_each(|thread| thread.join());
        drop(sender);
        let mut files = std::iter::once(first).chain(files).collect::<io::Result<Vec<_>>>()?;
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }
}

fn write_file(
    checkpoint: &Arc<Checkpoint>,
    part: u32,
    is_gentle: bool,
    is_stopping: &AtomicBool,
) -> io::Result<checkpoint::ManifestFile> {
    let mut writer: CheckpointWriter = checkpoint.writer(part)?;
    loop {
        let began = Instant::now();
        if is_stopping.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the server ends"));
        }
        if !writer.step()? {
            return writer.finish();
        }
        if is_gentle {
            std::thread::sleep(began.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_depends_on_log_time_and_wishes() {
        let plan = Plan { log_bytes: 100, interval: Duration::from_secs(60), threads: 2 };
        let (soon, late) = (Duration::from_secs(1), Duration::from_secs(61));
        assert_eq!(due(&plan, 99, soon, false, false), Due::Nothing);
        assert_eq!(due(&plan, 100, soon, false, false), Due::Gently);
        assert_eq!(due(&plan, 1, late, false, false), Due::Gently);
        assert_eq!(due(&plan, 0, late, false, false), Due::Nothing);
        assert_eq!(due(&plan, 200, soon, false, false), Due::AtOnce);
        assert_eq!(due(&plan, 0, soon, true, false), Due::AtOnce);
        assert_eq!(due(&plan, 1, soon, false, true), Due::AtOnce);
        assert_eq!(due(&plan, 0, soon, false, true), Due::Nothing);
    }
}
