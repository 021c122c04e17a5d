//! What an experiment is, and how one is run, shown and kept.
//!
//! Responsible for: the order of a run (tables, points, verification), the file that grows with each point, the
//! table that people read, the exit code.
//! Not responsible for: what is loaded, run and verified; an [`Experiment`] knows.
//! Invariants: what was measured is on the disk before the next point begins; a run that verification finds wrong, or
//! that was cut short, does not end with 0.

pub mod bank;
pub mod ceiling;
pub mod coldstart;
pub mod fair;
pub mod hotrow;
pub mod ingest;
pub mod keylookup;
pub mod queries;
pub mod sysbench;
pub mod tpcb;
pub mod tpcc;
pub mod tpch;
pub mod ycsb;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use crate::client::{Connection, Failure};
use crate::drive::{Measured, Plan, Worker, drive};
use crate::interrupt::{self, INTERRUPTED};
use crate::options::{Common, List, clock_seed};
use crate::progress::Line;
use crate::result::{Load, Point, RunFile, ServerFacts, Verdict};
use crate::rng::Rng;
use crate::table;
use crate::target::Target;

/// Why there is no result, or no whole one.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The server.
    #[error("{0}")]
    Server(#[from] Failure),
    /// The result could not be written or read.
    #[error("{0}")]
    Output(String),
    /// The options do not fit each other, or what is in the database.
    #[error("{0}")]
    Options(String),
}

/// What a run works with.
pub struct Lab {
    /// The server.
    pub target: Target,
    /// What all experiments are told.
    pub common: Common,
    /// Source of every value.
    pub seed: u64,
    /// What people see meanwhile.
    pub progress: Line,
}

impl Lab {
    /// A connection of its own.
    pub fn connect(&self) -> Result<Connection, Failure> {
        Connection::open(&self.target)
    }
}

/// Which point is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// One of [`Experiment::variants`].
    pub variant: String,
    /// Clients.
    pub threads: usize,
    /// From 1.
    pub repetition: usize,
}

impl At {
    /// What client `number` draws from at this point: each measurement has inputs of its own.
    pub fn rng(&self, seed: u64, number: usize) -> Rng {
        Rng::new(seed, ((self.repetition as u64) << 40) + ((self.threads as u64) << 20) + number as u64)
    }
}

/// A workload with its tables. One value is one run against one server; it may keep what verification needs.
pub trait Experiment {
    /// `sysbench`, …
    fn name(&self) -> &'static str;

    /// Its own options, by the names of the command line.
    fn settings(&self) -> BTreeMap<String, String>;

    /// Variants that are measured one after the other.
    fn variants(&self) -> Vec<String> {
        vec![String::new()]
    }

    /// Numbers of clients that are measured one after the other.
    fn threads(&self, common: &Common) -> Vec<usize> {
        common.threads.as_ref().map_or(vec![8], |list| list.0.clone())
    }

    /// Whether the data is looked at afterwards although nobody asked for it.
    fn always_verifies(&self) -> bool {
        false
    }

    /// Whether the tables are there, as far as can be told without reading them. `Err` if what is there does not fit the options.
    fn is_loaded(&self, lab: &mut Lab) -> Result<bool, Refusal>;

    /// Makes the tables anew.
    fn load(&mut self, lab: &mut Lab) -> Result<Load, Refusal>;

    /// Drops the tables that are there.
    fn drop_tables(&self, lab: &mut Lab) -> Result<(), Refusal>;

    /// Measures a point. It calls [`measure`], mostly.
    fn point(&mut self, lab: &mut Lab, at: &At) -> Result<(Point, Option<String>), Refusal>;

    /// Looks whether the data is what the acknowledged transactions have made of it.
    fn verify(&mut self, lab: &mut Lab) -> Result<Vec<Verdict>, Refusal>;

    /// What a reader of the result should know.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An experiment that is to be run, and where.
pub struct Task {
    /// What all experiments are told.
    pub common: Common,
    /// What this one is told it knows.
    pub experiment: Box<dyn Experiment>,
}

impl Task {
    /// An experiment with its options.
    pub fn new(common: Common, experiment: impl Experiment + 'static) -> Task {
        Task { common, experiment: Box::new(experiment) }
    }
}

/// Drives workers and makes a point of it. The workers come back with what they have noted, and why the run was cut short if it was.
pub fn measure<W: Worker>(
    lab: &mut Lab,
    at: &At,
    kinds: &[&'static str],
    statements: &[String],
    workers: Vec<W>,
) -> Result<(Point, Measured<W>), Refusal> {
    let time = (lab.common.warmup, Some(lab.common.duration));
    measure_for(lab, time, at, kinds, statements, workers)
}

/// The same without a warm-up and without an end but that of the work: until no worker has anything left.
pub fn measure_all<W: Worker>(
    lab: &mut Lab,
    at: &At,
    kinds: &[&'static str],
    statements: &[String],
    workers: Vec<W>,
) -> Result<(Point, Measured<W>), Refusal> {
    measure_for(lab, (Duration::ZERO, None), at, kinds, statements, workers)
}

fn measure_for<W: Worker>(
    lab: &mut Lab,
    (warmup, duration): (Duration, Option<Duration>),
    at: &At,
    kinds: &[&'static str],
    statements: &[String],
    workers: Vec<W>,
) -> Result<(Point, Measured<W>), Refusal> {
    let (rate, seed) = (lab.common.rate, lab.seed);
    let plan = Plan { target: &lab.target, statements, kinds, warmup, duration, rate, seed };
    let measured = drive(&plan, workers, &mut lab.progress)?;
    let point =
        Point { variant: at.variant.clone(), repetition: at.repetition, ..Point::of(&measured, kinds, at.threads) };
    Ok((point, measured))
}

/// Runs an experiment and prints its result. Fails if there is none, if it was cut short, or if the data is wrong afterwards.
pub fn main(task: Task) -> ExitCode {
    let name = task.experiment.name();
    let failed = match run(task) {
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(run)) if run.is_good() => return ExitCode::SUCCESS,
        Ok(Some(run)) => run.ended,
        Err(refusal) => Some(refusal.to_string()),
    };
    if let Some(why) = failed {
        eprintln!("{name}: {why}");
    }
    ExitCode::FAILURE
}

/// A whole run; no result if the tables were only dropped.
pub fn run(task: Task) -> Result<Option<RunFile>, Refusal> {
    let mut session = Session::open(task)?;
    if session.lab.common.drop {
        session.experiment.drop_tables(&mut session.lab)?;
        return Ok(None);
    }
    session.prepare()?;
    print!("{}", table::head(&session.run));
    for at in session.places(usize::from(session.lab.common.repeat)) {
        if !session.point(&at)? {
            break;
        }
    }
    session.end()?;
    print!("{}", table::tail(&session.run));
    Ok(Some(session.run))
}

/// An experiment under way against one server.
pub struct Session {
    /// What it works with.
    pub lab: Lab,
    /// What it has so far.
    pub run: RunFile,
    /// The experiment.
    pub experiment: Box<dyn Experiment>,
}

impl Session {
    /// Connects and asks the server what it is.
    pub fn open(Task { common, experiment }: Task) -> Result<Session, Refusal> {
        let (target, seed) = (common.target.clone(), common.seed.unwrap_or_else(clock_seed));
        let lab = Lab { target, common, seed, progress: Line::new() };
        let facts = ServerFacts::ask(&mut lab.connect()?, lab.target.dialect);
        let mut run = RunFile::begin(experiment.name(), &lab.target, lab.common.label.as_deref(), facts);
        run.settings = experiment.settings();
        let mut set = |name: &str, value: String| run.settings.insert(name.into(), value);
        let seconds = |time: Duration| format!("{} s", time.as_secs_f64());
        set("threads", List(experiment.threads(&lab.common)).to_string());
        set("duration", seconds(lab.common.duration));
        set("warmup", seconds(lab.common.warmup));
        set("seed", seed.to_string());
        if let Some(rate) = lab.common.rate {
            set("rate", rate.to_string());
        }
        Ok(Session { lab, run, experiment })
    }

    /// Every point that is to be measured, each so often, in order.
    pub fn places(&self, repeat: usize) -> Vec<At> {
        let mut all = Vec::new();
        for variant in self.experiment.variants() {
            for threads in self.experiment.threads(&self.lab.common) {
                all.extend((1..=repeat).map(|repetition| At { variant: variant.clone(), threads, repetition }));
            }
        }
        all
    }

    /// Sees to it that the tables are there.
    pub fn prepare(&mut self) -> Result<(), Refusal> {
        if self.lab.common.load || !self.experiment.is_loaded(&mut self.lab)? {
            if self.lab.common.no_load {
                return Err(Refusal::Options("there are no loaded tables".into()));
            }
            self.run.load = Some(self.experiment.load(&mut self.lab)?);
        }
        Ok(())
    }

    /// Measures a point, prints its line and keeps the file; `false` if the server has gone, or somebody wants the end.
    pub fn point(&mut self, at: &At) -> Result<bool, Refusal> {
        if interrupt::asked() {
            self.run.ended = Some(INTERRUPTED.into());
            return Ok(false);
        }
        let measured = self.experiment.point(&mut self.lab, at);
        self.lab.progress.clear();
        match measured {
            Ok((point, ended)) => {
                print!("{}", table::line(&point));
                self.run.points.push(point);
                self.run.ended = ended;
            }
            // What was measured before is kept.
            Err(refusal) if !self.run.points.is_empty() => self.run.ended = Some(refusal.to_string()),
            Err(refusal) => return Err(refusal),
        }
        self.keep()?;
        Ok(self.run.ended.is_none())
    }

    /// Verifies, if that was asked for, and keeps the file. A run that was cut short is verified, too, if its server still answers: what
    /// was acknowledged must be there.
    pub fn end(&mut self) -> Result<(), Refusal> {
        self.run.notes = self.experiment.notes();
        let wanted = self.lab.common.verify || self.experiment.always_verifies();
        let began = self.run.ended.is_none() || !self.run.points.is_empty();
        if wanted && began {
            match self.experiment.verify(&mut self.lab) {
                Ok(verdicts) => self.run.verdicts = verdicts,
                // Neither right nor wrong; the run is not a good one in any case.
                Err(refusal) => {
                    let why = format!("the data could not be verified: {refusal}");
                    self.run.ended.get_or_insert_with(|| why.clone());
                    self.run.notes.push(why);
                }
            }
            self.lab.progress.clear();
        }
        self.keep()
    }

    fn keep(&self) -> Result<(), Refusal> {
        let Some(path) = &self.lab.common.json else { return Ok(()) };
        let place = self.run.place(path);
        if let Some(directory) = place.parent() {
            std::fs::create_dir_all(directory).map_err(|e| Refusal::Output(format!("{}: {e}", directory.display())))?;
        }
        self.run.write(&place).map_err(|error| Refusal::Output(format!("{}: {error}", place.display())))
    }
}
