//! The background work beside the sessions: checkpoints a block at a time, garbage collection.

use std::io;
use std::sync::Arc;

use checkpoint::ManifestFile;
use engine::{Checkpoint, CheckpointWriter, Shard};
use env::sim::SimRandom;

use crate::trace::Trace;

/// A checkpoint that goes on a step at a time, in some files.
pub struct Making {
    checkpoint: Arc<Checkpoint>,
    writers: Vec<CheckpointWriter>,
    files: Vec<ManifestFile>,
}

impl Making {
    fn begin(shard: &Shard, random: &mut SimRandom) -> io::Result<Option<Making>> {
        let Some(checkpoint) = shard.begin_checkpoint() else { return Ok(None) };
        let parts = 1 + random.below(3) as u32;
        let writers = (0..parts).map(|part| checkpoint.writer(part)).collect::<io::Result<_>>();
        let writers = writers.inspect_err(|error| checkpoint.fail(error))?;
        Ok(Some(Making { checkpoint, writers, files: Vec::new() }))
    }

    /// Goes on; `true` when the image counts.
    fn step(&mut self, random: &mut SimRandom) -> io::Result<bool> {
        if self.writers.is_empty() {
            if !self.checkpoint.is_durable()? {
                return Ok(false);
            }
            self.files.sort_by(|a, b| a.name.cmp(&b.name));
            self.checkpoint.commit(std::mem::take(&mut self.files))?;
            return Ok(true);
        }
        let which = random.below(self.writers.len() as u64) as usize;
        if !self.writers[which].step()? {
            self.files.push(self.writers.swap_remove(which).finish()?);
        }
        Ok(false)
    }
}

/// Checkpoints of a life.
#[derive(Default)]
pub struct Checkpoints {
    making: Option<Making>,
    /// Made so far.
    pub made: u64,
    /// Given up so far.
    pub failed: u64,
}

impl Checkpoints {
    /// Begins one, goes on with one, or leaves it at that.
    pub fn step(&mut self, shard: &Shard, random: &mut SimRandom, trace: &mut Trace) {
        let went = match &mut self.making {
            None if random.below(12) > 0 => return,
            None => Making::begin(shard, random).map(|making| {
                trace.say(format_args!("a checkpoint begins"));
                self.making = making;
                false
            }),
            Some(making) => making.step(random).inspect_err(|error| making.checkpoint.fail(error)),
        };
        match went {
            Ok(false) => {}
            Ok(true) => {
                self.made += 1;
                self.making = None;
                trace.say(format_args!("a checkpoint counts"));
            }
            Err(error) => {
                self.failed += 1;
                self.making = None;
                trace.say(format_args!("a checkpoint fails: {error}"));
            }
        }
    }

    /// Whether none goes on.
    pub fn is_idle(&self) -> bool {
        self.making.is_none()
    }
}
