//! A run: lives of one shard, one after the other, as a seed says.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use engine_api::Isolation;
use env::Disk as _;
use env::sim::{Crash, Figures, Operation, SimClock, SimDisk, SimRandom};
use redo::{DriverError, FileOptions};
use testkit::history::{self, Fate, registers};

use crate::check;
use crate::faults::Faults;
use crate::life::{Life, Run, Went, open};
use crate::model::Model;
use crate::program::{LISTS_MAX, Mix};
use crate::schema::LISTS;
use crate::session::Notes;
use crate::trace::Trace;

/// Efforts to open a shard before a start counts as impossible.
const STARTS: usize = 12;

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Steps of all lives together, roughly.
    pub steps: u64,
    /// Lines of the trace go to stderr.
    pub prints: bool,
    /// A fault that is planted to see whether it is found.
    pub planted: Option<Planted>,
}

/// What is made wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// One of so many syncs of files does nothing.
    SkippedSync(u64),
    /// Something in the engine.
    Engine(engine::planted::Planted),
}

impl Default for Options {
    fn default() -> Options {
        Options { steps: 3000, prints: false, planted: None }
    }
}

/// What a run has done.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Sum of the trace: the same for the same seed.
    pub hash: u64,
    /// Steps made.
    pub steps: u64,
    /// Commits whose reply was sent.
    pub commits: u64,
    /// Starts that succeeded.
    pub starts: u64,
    /// Checkpoints made.
    pub checkpoints: u64,
    /// Of the disk.
    pub disk: Figures,
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Transactions that ended with an error, by its code.
    pub errors: BTreeMap<String, u64>,
}

impl Report {
    /// Adds another run.
    pub fn add(&mut self, other: &Report) {
        self.steps += other.steps;
        self.commits += other.commits;
        self.starts += other.starts;
        self.checkpoints += other.checkpoints;
        self.disk.reads += other.disk.reads;
        self.disk.writes += other.disk.writes;
        self.disk.syncs += other.disk.syncs;
        self.disk.failures += other.disk.failures;
        self.disk.full += other.disk.full;
        for (kind, n) in &other.faults {
            *self.faults.entry(kind).or_default() += n;
        }
        for (code, n) in &other.errors {
            *self.errors.entry(code.clone()).or_default() += n;
        }
    }
}

/// What was wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed that repeats it.
    pub seed: u64,
    /// What.
    pub what: String,
    /// The last lines of the trace.
    pub tail: Vec<String>,
}

/// Runs a seed.
///
/// # Errors
/// What is not as it must be.
pub fn run(seed: u64, options: &Options) -> Result<Report, Failure> {
    let mut random = SimRandom::new(seed.wrapping_add(1));
    let mix = Mix::choose(&mut random);
    let faults = Faults::choose(&mut random);
    // Segments so small that they change all the time, and transactions that do not fit into one batch.
    let batch_bytes_max = 4096 << random.below(3);
    let segment_bytes = (batch_bytes_max as u64) * (4 + random.below(12));
    let mut run = Run {
        random,
        trace: Trace::new(options.prints),
        clock: SimClock::new(),
        model: Model::default(),
        notes: Notes::default(),
        mix,
        faults,
        log: FileOptions { segment_bytes, batch_bytes_max },
    };
    run.trace.say(format_args!("seed {seed}: {:?} {:?} {:?}", run.mix, run.faults, run.log));
    let mut lives = Lives {
        disk: SimDisk::new(),
        report: Report::default(),
        options: *options,
        durable: Vec::new(),
        machine_lives: false,
    };
    if let Some(Planted::Engine(fault)) = options.planted {
        engine::planted::plant(Some(fault));
    }
    let went = catch_unwind(AssertUnwindSafe(|| lives.run(&mut run)));
    engine::planted::plant(None);
    let went = went.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        Err(format!("a panic: {}", text.unwrap_or_default()))
    });
    match went {
        Ok(()) => {
            let disk = lives.disk.figures();
            Ok(Report {
                hash: run.trace.hash(),
                steps: run.notes.step,
                commits: run.notes.commits,
                disk,
                faults: run.faults.done.clone(),
                errors: run.notes.errors.clone(),
                ..lives.report
            })
        }
        Err(what) => Err(Failure { seed, what, tail: run.trace.tail(120) }),
    }
}

/// The lives of a run, and the disk that they have in common.
struct Lives {
    disk: SimDisk,
    report: Report,
    options: Options,
    /// The positions up to which the log was durable in the last life.
    durable: Vec<u64>,
    /// The machine has gone on after it.
    machine_lives: bool,
}

/// How a life ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The machine stops between two steps.
    Crash,
    /// The machine stops at an operation of the disk.
    CrashAt,
    /// The process is killed.
    Kill,
    /// In order.
    Orderly,
}

impl Lives {
    fn run(&mut self, run: &mut Run) -> Result<(), String> {
        let latency = [0, 200_000, 3_000_000, 30_000_000][run.random.below(4) as usize];
        self.disk.slow(&run.clock, latency);
        self.disk.seed(SimRandom::new(run.random.bits()));
        let mut life = self.start(run)?;
        life.define(run)?;
        let lives = 2 + run.random.below(4);
        for number in 1..=lives {
            let end = match run.random.below(8) {
                0..=2 => End::Crash,
                3..=5 => End::CrashAt,
                6 => End::Kill,
                _ => End::Orderly,
            };
            let end = if number == lives { End::Orderly } else { end };
            run.trace.say(format_args!("life {number} is to end by {end:?}"));
            let steps = self.options.steps / lives;
            let steps = steps / 2 + run.random.below(steps + 1);
            if let Some(Planted::SkippedSync(every)) = self.options.planted {
                self.disk.skip_syncs_every(every);
            }
            let went = self.live(&mut life, steps, end, run)?;
            self.end(life, went, end, run);
            life = self.start(run)?;
        }
        check::everything(life.shard(), &run.model, run.mix.accounts, &run.notes.lists)?;
        self.judge(run)
    }

    fn live(&mut self, life: &mut Life, steps: u64, end: End, run: &mut Run) -> Result<Went, String> {
        let before = run.random.below(steps + 1);
        let mut went = life.live(before, &self.disk, run)?;
        if let (End::CrashAt, Went::On) = (end, went) {
            let at = self.disk.operations() + run.random.below(60);
            run.trace.say(format_args!("the machine is to stop at operation {at}"));
            self.disk.freeze_at(at);
        }
        if went == Went::On {
            went = life.live(steps - before, &self.disk, run)?;
        }
        if let (End::Orderly, Went::On) = (end, went) {
            run.faults.free(&self.disk, &mut run.trace);
            self.disk.heal();
            went = life.drain(&self.disk, run)?;
            if went == Went::On {
                check::everything(life.shard(), &run.model, run.mix.accounts, &run.notes.lists)?;
            }
        }
        Ok(went)
    }

    /// Ends a life: what is left of the disk is what the next one finds.
    fn end(&mut self, life: Life, went: Went, end: End, run: &mut Run) {
        self.report.checkpoints += life.checkpoints.made;
        let is_orderly = matches!(end, End::Orderly) && went == Went::On;
        let has_failed = life.has_failed() && !self.disk.is_frozen();
        run.trace.say(format_args!("it ends: {end:?} {went:?}, failed: {has_failed}, {:?}", self.disk.figures()));
        if !is_orderly {
            // Whatever its remains do, the disk does not see it.
            self.disk.freeze_at(0);
        }
        let durable = life.durable.clone();
        drop(life);
        self.machine_lives = true;
        if !is_orderly {
            let is_process_only = has_failed && run.random.below(2) == 0 || matches!(end, End::Kill);
            if is_process_only {
                run.faults.count(if has_failed { "process ended by the log" } else { "process killed" });
            } else {
                let crash = Faults::crash(&mut run.random);
                run.trace.say(format_args!("a crash: {crash:?}"));
                self.disk = self.disk.after_crash(crash, &mut run.random);
                run.faults.count("crash");
                self.machine_lives = false;
            }
        }
        self.disk.end_process();
        run.faults.free(&self.disk, &mut run.trace);
        self.disk.set_quota(None);
        self.durable = durable;
    }

    /// A copy of the disk with a bit of something durable flipped: a start on it is refused, or finds what was there, but for the
    /// last group, of which nothing says yet that it was durable.
    fn damage(&mut self, run: &mut Run) -> Result<(), String> {
        let copy = self.disk.after_crash(Crash::KeepAll, &mut run.random);
        copy.end_process();
        let names = copy.list().map_err(|error| error.to_string())?;
        let Some(name) = names.get(run.random.below(names.len() as u64) as usize) else { return Ok(()) };
        let len = copy.durable_len(name);
        // Most of a segment is empty: more is to be seen near its beginning.
        let byte = if run.random.below(2) == 0 { run.random.below(len) } else { run.random.below(len.min(4096)) };
        run.trace.say(format_args!("a bit of byte {byte} of {name} is flipped"));
        run.faults.count("bit of durable bytes flipped");
        copy.flip_bit(name, byte * 8 + run.random.below(8));
        let model = run.model.clone();
        let opened = open(&copy, run);
        let went = match opened {
            Err(DriverError::Corrupt(place) | DriverError::Refused(place)) => {
                run.trace.say(format_args!("a start is refused: {place}"));
                run.faults.count("damage refused");
                Ok(())
            }
            Err(error) => Err(format!("{name} is damaged, and a start says: {error}")),
            Ok((shard, _tasks, _, replayed)) => {
                // What was noted without a sync is there if the machine has gone on; else the group behind says it.
                let known = self.durable.iter().rev().nth(usize::from(!self.machine_lives)).copied().unwrap_or(0);
                run.trace.say(format_args!("it starts all the same: {replayed:?}"));
                let end = replayed.end.0;
                let cut = if end < known && name.ends_with(".log") {
                    Err(format!("the log ends at {end}, and {known} was durable"))
                } else {
                    run.model.forget(end);
                    Ok(())
                };
                cut.and_then(|()| check::everything(&shard, &run.model, run.mix.accounts, &run.notes.lists))
                    .map_err(|wrong| format!("byte {byte} of {name} is damaged: {wrong}"))
            }
        };
        run.model = model;
        went
    }

    /// A copy of the disk whose newest segment, or the file that knows the log's end, is taken away in whole or in part: a start on it
    /// finds all that was durable, or is refused. What is not there any more since a power failure – that a group was durable –
    /// excuses a segment of the right size only.
    fn take_away(&mut self, run: &mut Run) -> Result<(), String> {
        let failed = |error: std::io::Error| error.to_string();
        // Choices of its own: those of the run stay as they are without this.
        let mut random = SimRandom::new(run.trace.hash());
        let copy = self.disk.after_crash(Crash::KeepAll, &mut random);
        copy.end_process();
        let names = copy.list().map_err(failed)?;
        let newest = names.iter().rfind(|name| name.ends_with(".log"));
        let Some(name) = newest.filter(|_| random.below(4) > 0).or(names.iter().find(|name| *name == "log.end")) else {
            return Ok(());
        };
        let file = copy.open(name).map_err(failed)?;
        let len = file.len().map_err(failed)?;
        let among = len.min(1 << random.below(17));
        let from = random.below(among);
        let kind = random.below(4);
        match kind {
            0 => copy.remove(name).map_err(failed)?,
            1 => file.truncate(from).map_err(failed)?,
            2 => file.write_at(&[0], len).map_err(failed)?,
            _ => file.write_at(&vec![0; (len - from) as usize], from).map_err(failed)?,
        }
        let what = ["is removed", "is cut", "is longer", "has zeros"][kind as usize];
        run.trace.say(format_args!("{name} {what}, from byte {from} on"));
        run.faults.count("file taken away");
        let (model, choices) = (run.model.clone(), run.random.clone());
        let opened = open(&copy, run);
        let went = match opened {
            // A beginning of an image without a manifest is missed before the log is looked at.
            Err(DriverError::Corrupt(place) | DriverError::Refused(place)) => {
                run.trace.say(format_args!("a start is refused: {place}"));
                run.faults.count("what was taken away is missed");
                Ok(())
            }
            Err(error) => Err(format!("a start says: {error}")),
            Ok((shard, _tasks, _, replayed)) => {
                run.trace.say(format_args!("it starts all the same: {replayed:?}"));
                let end = replayed.end.0;
                let known = self.durable.last().copied().unwrap_or(0);
                let is_excused = kind == 3 && !self.machine_lives;
                if end < known && !is_excused {
                    Err(format!("the log ends at {end}, and {known} was durable"))
                } else {
                    run.model.forget(end);
                    check::everything(&shard, &run.model, run.mix.accounts, &run.notes.lists)
                }
            }
        };
        (run.model, run.random) = (model, choices);
        went.map_err(|wrong| format!("{name} {what}, from byte {from} on: {wrong}"))
    }

    /// Starts the shard, on a disk that may fail meanwhile, and compares what it finds.
    fn start(&mut self, run: &mut Run) -> Result<Life, String> {
        if self.report.starts > 0 && run.random.below(3) == 0 {
            self.damage(run)?;
        }
        if self.report.starts > 0 {
            self.take_away(run)?;
        }
        for effort in 0..STARTS {
            let fault = if effort + 4 < STARTS && self.report.starts > 0 { run.random.below(12) } else { u64::MAX };
            let others = run.random.below(30);
            match fault {
                0 => self.disk.fail(Operation::Read, others / 2),
                1 => self.disk.fail(Operation::Write, others / 4),
                2 => self.disk.fail(Operation::Sync, others / 6),
                3 => self.disk.freeze_at(self.disk.operations() + others),
                _ => {}
            }
            let before = self.disk.figures().failures;
            let opened = open(&self.disk, run);
            let is_disturbed = self.disk.is_frozen() || self.disk.figures().failures > before;
            match opened {
                Ok((shard, tasks, has_failed, replayed)) => {
                    run.trace.say(format_args!("it starts: {replayed:?}"));
                    // A stop that was not met.
                    if !is_disturbed {
                        self.disk.unfreeze();
                        self.disk.heal();
                    }
                    self.found(replayed.end.0, run)?;
                    check::everything(&shard, &run.model, run.mix.accounts, &run.notes.lists).or_else(|wrong| {
                        if self.report.starts == 0 { Ok(()) } else { Err(format!("after a start: {wrong}")) }
                    })?;
                    self.report.starts += 1;
                    let life = Life::new(shard, tasks, has_failed, run);
                    if is_disturbed && self.disk.is_frozen() {
                        // The machine has stopped with the last operation of the start.
                        self.end(life, Went::Stopped, End::CrashAt, run);
                        continue;
                    }
                    return Ok(life);
                }
                Err(error) if is_disturbed => {
                    run.trace.say(format_args!("a start fails: {error}"));
                    run.faults.count("failed start");
                    if let DriverError::Corrupt(place) | DriverError::Refused(place) = &error
                        && fault == 3
                    {
                        return Err(format!("a start on a disk that stops says that it is damaged: {place}"));
                    }
                    if self.disk.is_frozen() {
                        let crash = Faults::crash(&mut run.random);
                        self.disk = self.disk.after_crash(crash, &mut run.random);
                        run.faults.count("crash");
                    }
                    self.disk.end_process();
                }
                Err(error) => return Err(format!("it does not start: {error}")),
            }
        }
        Err("it does not start, however often".to_string())
    }

    /// A start has found the log's end.
    fn found(&mut self, end: u64, run: &mut Run) -> Result<(), String> {
        let lost = run.model.cut(end)?;
        if !lost.is_empty() {
            run.trace.say(format_args!("{} records are lost", lost.len()));
        }
        for recorded in lost.iter().filter_map(|entry| entry.recorded) {
            *run.notes.recorded(recorded).0 = Fate::Aborted;
        }
        let registers = run.notes.history.iter_mut().map(|transaction| &mut transaction.ended);
        let lists = run.notes.appends.iter_mut().map(|transaction| &mut transaction.ended);
        registers.chain(lists).filter(|ended| **ended == u64::MAX).for_each(|ended| *ended = run.notes.step);
        run.notes.last_value = run.notes.shown_value;
        run.notes.is_draining = false;
        run.notes.may_be_full = false;
        Ok(())
    }

    /// The history of SERIALIZABLE transactions on registers has a serial order, and that on lists what its level promises.
    fn judge(&self, run: &Run) -> Result<(), String> {
        let list = |id: i32| run.model.row((LISTS, id), run.model.len()).and_then(|row| run.notes.lists.get(&row.val));
        let last = (0..LISTS_MAX as i32).filter_map(|id| Some((id as u64, list(id)?.clone()))).collect();
        let level = match run.mix.level {
            Isolation::ReadCommitted => history::Level::ReadCommitted,
            Isolation::RepeatableRead => history::Level::Snapshot,
            Isolation::Serializable => history::Level::Serializable,
        };
        let anomalies = history::check(&run.notes.appends, &last);
        if let Some(anomaly) = anomalies.iter().find(|anomaly| level.forbids(anomaly)) {
            return Err(format!("the lists: {anomaly}"));
        }
        let anomalies = registers::check(&run.notes.history);
        let lines: Vec<String> = anomalies.iter().take(3).map(ToString::to_string).collect();
        if lines.is_empty() { Ok(()) } else { Err(format!("the history: {}", lines.join("; "))) }
    }
}
