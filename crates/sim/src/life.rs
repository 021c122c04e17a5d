//! One life of a shard: from a start to a crash, or to an end in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Oid;
use engine::{Shard, ShardOptions};
use engine_api::*;
use env::World;
use env::sim::{SimClock, SimDisk, SimRandom, SimTasks};
use redo::{DriverError, FileOptions, Replayed};

use crate::background::Checkpoints;
use crate::check;
use crate::faults::Faults;
use crate::model::{Effects, Entry, Model, Shapes, What, Writes};
use crate::program::LISTS_MAX;
use crate::program::Mix;
use crate::schema::{self, BALANCE, BANK, ITEMS, LISTS, REGISTERS, Row};
use crate::session::{Common, Notes, Session};
use crate::trace::Trace;

/// Steps after which what is under way must have come to its end.
const DRAIN_STEPS: u64 = 60_000;

/// What lives share.
pub struct Run {
    /// Choices.
    pub random: SimRandom,
    /// The trace.
    pub trace: Trace,
    /// The clock.
    pub clock: SimClock,
    /// What the shard must be.
    pub model: Model,
    /// What is beside rows.
    pub notes: Notes,
    /// What sessions do.
    pub mix: Mix,
    /// Who makes things fail.
    pub faults: Faults,
    /// Sizes of the log's files.
    pub log: FileOptions,
}

/// A shard that serves.
pub struct Life {
    shard: Shard,
    tasks: SimTasks,
    has_failed: Arc<AtomicBool>,
    sessions: Vec<Session>,
    /// Checkpoints of this life.
    pub checkpoints: Checkpoints,
    /// How often each kind of step is made.
    weights: [u64; 5],
    /// The positions up to which the log was durable, one after the other.
    pub durable: Vec<u64>,
}

/// How a life went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// As long as it was to.
    On,
    /// The machine has stopped, or the log has failed.
    Stopped,
}

/// Opens a shard; it is not compared with anything yet.
///
/// # Errors
/// As [`Shard::open`].
pub fn open(disk: &SimDisk, run: &mut Run) -> Result<(Shard, SimTasks, Arc<AtomicBool>, Replayed), DriverError> {
    let tasks = SimTasks::new(&run.clock);
    let world =
        World { disk: Arc::new(disk.clone()), clock: Arc::new(run.clock.clone()), spawn: Arc::new(tasks.clone()) };
    let has_failed = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&has_failed);
    let options = ShardOptions {
        memory_limit: 1 << 30,
        log: run.log,
        threads: 1 + run.random.below(3) as usize,
        ..ShardOptions::default()
    };
    let on_failure = Box::new(move |_| told.store(true, Ordering::Release));
    let (shard, replayed) = Shard::open(&world, options, on_failure)?;
    Ok((shard, tasks, has_failed, replayed))
}

impl Life {
    /// A life of a shard that was opened.
    pub fn new(shard: Shard, tasks: SimTasks, has_failed: Arc<AtomicBool>, run: &mut Run) -> Life {
        let sessions = (0..run.mix.sessions).map(Session::new).collect();
        let weights = [30, 6, 6, 3, 2].map(|weight| 1 + run.random.below(weight));
        let durable = vec![shard.durable().current().0];
        Life { shard, tasks, has_failed, sessions, checkpoints: Checkpoints::default(), weights, durable }
    }

    /// The shard.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Whether the log has failed: a process would end.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Makes tables and accounts.
    ///
    /// # Errors
    /// If the shard does not take them.
    pub fn define(&mut self, run: &mut Run) -> Result<(), String> {
        let mut txn = self.shard.begin(TxnOptions::default());
        txn.begin_command();
        for object in check::objects() {
            while let Step::Wait(_) = txn.put_object(object.clone()).map_err(|error| format!("{error:?}"))? {
                self.step_tasks(run);
            }
        }
        txn.begin_command();
        let table = txn.open_table(BANK).map_err(|error| format!("{error:?}"))?;
        let mut writes = Writes::new();
        for id in 0..run.mix.accounts {
            let row = Row { grp: 0, val: BALANCE };
            let tuple = schema::encode(id, row, 4);
            let insert = |txn: &mut dyn Txn| txn.insert(&table, &tuple, ConflictArbiter::None);
            while let Step::Wait(_) = insert(&mut *txn).map_err(|error| format!("{error:?}"))? {
                self.step_tasks(run);
            }
            writes.insert((BANK, id), Some(row));
        }
        let table = txn.open_table(LISTS).map_err(|error| format!("{error:?}"))?;
        run.notes.lists.insert(0, Vec::new());
        for id in 0..LISTS_MAX as i32 {
            let row = Row { grp: 0, val: 0 };
            let tuple = schema::encode_list(id, row, &[]);
            let insert = |txn: &mut dyn Txn| txn.insert(&table, &tuple, ConflictArbiter::None);
            while let Step::Wait(_) = insert(&mut *txn).map_err(|error| format!("{error:?}"))? {
                self.step_tasks(run);
            }
            writes.insert((LISTS, id), Some(row));
        }
        let shapes: Shapes = [BANK, ITEMS, REGISTERS, LISTS]
            .map(|of| {
                let (by_id, by_grp) = (Oid(of.0 + 1), Some(Oid(of.0 + 2)));
                (of, Some(schema::Shape { columns: 4, by_id, by_grp, storage: 1 }))
            })
            .into();
        let outcome = loop {
            match txn.commit(Durability::On).map_err(|error| format!("{error:?}"))? {
                Step::Ready(outcome) => break outcome,
                Step::Wait(_) => self.step_tasks(run),
            }
        };
        while !txn.finish_some() {}
        let what = What::Commit(Effects { writes, shapes, emptied: Vec::new() });
        let position = outcome.position.ok_or("nothing is logged")?.0;
        run.model.append(Entry {
            position,
            what,
            is_sync: true,
            serializable: None,
            is_acknowledged: false,
            recorded: None,
        });
        while self.shard.durable().current().0 < position {
            self.step_tasks(run);
        }
        run.model.acknowledge(0);
        Ok(())
    }

    fn step_tasks(&mut self, run: &mut Run) {
        run.clock.advance(50_000);
        for (number, _) in self.tasks.list() {
            self.tasks.step(number);
        }
    }

    /// Makes so many steps.
    ///
    /// # Errors
    /// What is not as it must be.
    pub fn live(&mut self, steps: u64, disk: &SimDisk, run: &mut Run) -> Result<Went, String> {
        for _ in 0..steps {
            self.step(disk, run, true)?;
            if self.is_over(disk) {
                return Ok(Went::Stopped);
            }
        }
        Ok(Went::On)
    }

    fn is_over(&self, disk: &SimDisk) -> bool {
        self.has_failed() || disk.is_frozen()
    }

    fn step(&mut self, disk: &SimDisk, run: &mut Run, with_faults: bool) -> Result<(), String> {
        run.notes.step += 1;
        run.clock.advance(1_000 + run.random.below(100_000));
        if with_faults && run.faults.step(disk, &run.clock, &mut run.random, &mut run.trace) {
            run.notes.may_be_full = true;
        }
        let tasks = self.tasks.list();
        let mut choice = run.random.below(self.weights.iter().sum());
        let mut kind = 0;
        while choice >= self.weights[kind] {
            choice -= self.weights[kind];
            kind += 1;
        }
        match kind {
            0 => {
                let which = run.random.below(self.sessions.len() as u64) as usize;
                let mut common = Common {
                    shard: &self.shard,
                    model: &mut run.model,
                    random: &mut run.random,
                    trace: &mut run.trace,
                    notes: &mut run.notes,
                    mix: &run.mix,
                };
                // One that has much to do does some of it at once, or it would never come to its end.
                for _ in 0..self.sessions[which].steps_at_once() {
                    self.sessions[which].step(&mut common)?;
                }
            }
            1 | 2 => {
                let of_kind = if kind == 1 { "log-flush" } else { "log-space" };
                for (number, _) in tasks.iter().filter(|(_, name)| name == of_kind) {
                    self.tasks.step(*number);
                }
                let durable = self.shard.durable().current().0;
                if self.durable.last().is_some_and(|last| *last < durable) {
                    self.durable.push(durable);
                    run.trace.say(format_args!("durable up to {durable}"));
                }
            }
            3 => self.checkpoints.step(&self.shard, &mut run.random, &mut run.trace),
            _ => match run.random.below(3) {
                0 => self.shard.reclaim(),
                _ => self.shard.collect_garbage(1 + run.random.below(200) as usize),
            },
        }
        Ok(())
    }

    /// Lets all that is under way come to its end, with nothing new and a disk that is well.
    ///
    /// # Errors
    /// If it does not, or what is not as it must be.
    pub fn drain(&mut self, disk: &SimDisk, run: &mut Run) -> Result<Went, String> {
        run.notes.is_draining = true;
        for _ in 0..DRAIN_STEPS {
            self.step(disk, run, false)?;
            if self.is_over(disk) {
                return Ok(Went::Stopped);
            }
            let is_idle = self.sessions.iter().all(Session::is_idle) && run.model.prepared().is_empty();
            if is_idle && self.checkpoints.is_idle() && self.shard.durable().current() >= self.shard.log_end() {
                run.trace.say(format_args!("all is quiet"));
                return Ok(Went::On);
            }
        }
        let sessions: Vec<String> = self.sessions.iter().map(Session::describe).collect();
        Err(format!("nothing goes on: {}", sessions.join("; ")))
    }
}
