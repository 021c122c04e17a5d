//! What an experiment is, and how one is run, shown and kept.
//!
//! Responsible for: the order of a run (tables, points, verification), the file that grows with each point, the
//! table that people read, the exit code.
//! Not responsible for: what is loaded, run and verified; an [`Experiment`] knows.
//! Invariants: what was measured is on the disk before the next point begins; a run that verification finds wrong, or
//! that was cut short, does not end with 0.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use crate::client::{Connection, Failure};
use crate::drive::{Measured, Plan, Worker, drive};
use crate::options::{Common, List, clock_seed};
use crate::progress::Line;
use crate::result::{Load, Point, RunFile, ServerFacts, Verdict};
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

/// A workload with its tables. One value is one run against one server; it may keep what verification needs.
pub trait Experiment {
    /// `sysbench`, …
    fn name(&self) -> &'static str;

    /// Options that all have.
    fn common(&self) -> &Common;

    /// The same, for who runs the experiment against a server of his own.
    fn common_mut(&mut self) -> &mut Common;

    /// Its own options, by the names of the command line.
    fn settings(&self) -> BTreeMap<String, String>;

    /// Variants that are measured one after the other.
    fn variants(&self) -> Vec<String> {
        vec![String::new()]
    }

    /// Numbers of clients that are measured one after the other.
    fn threads(&self) -> Vec<usize> {
        self.common().threads.as_ref().map_or(vec![8], |list| list.0.clone())
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

/// Drives workers and makes a point of it. The workers come back with what they have noted, and why the run was cut short if it was.
pub fn measure<W: Worker>(
    lab: &mut Lab,
    common: &Common,
    at: &At,
    kinds: &[&'static str],
    statements: &[String],
    workers: Vec<W>,
) -> Result<(Point, Measured<W>), Refusal> {
    let plan = Plan {
        target: &lab.target,
        statements,
        kinds,
        warmup: common.warmup,
        duration: Some(common.duration),
        rate: common.rate,
        seed: lab.seed,
    };
    point_of(plan, &mut lab.progress, at, workers)
}

/// The same without a warm-up and without an end but that of the work: until no worker has anything left.
pub fn measure_all<W: Worker>(
    lab: &mut Lab,
    common: &Common,
    at: &At,
    kinds: &[&'static str],
    statements: &[String],
    workers: Vec<W>,
) -> Result<(Point, Measured<W>), Refusal> {
    let plan = Plan {
        target: &lab.target,
        statements,
        kinds,
        warmup: Duration::ZERO,
        duration: None,
        rate: common.rate,
        seed: lab.seed,
    };
    point_of(plan, &mut lab.progress, at, workers)
}

fn point_of<W: Worker>(
    plan: Plan<'_>,
    progress: &mut Line,
    at: &At,
    workers: Vec<W>,
) -> Result<(Point, Measured<W>), Refusal> {
    let measured = drive(&plan, workers, progress)?;
    let point = Point {
        variant: at.variant.clone(),
        repetition: at.repetition,
        ..Point::of(&measured, plan.kinds, at.threads)
    };
    Ok((point, measured))
}

/// Runs an experiment and prints its result. Fails if there is none, if it was cut short, or if the data is wrong afterwards.
pub fn main(experiment: &mut dyn Experiment) -> ExitCode {
    let name = experiment.name();
    match run(experiment) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(run)) if run.is_good() => ExitCode::SUCCESS,
        Ok(Some(run)) => {
            if let Some(why) = run.ended {
                eprintln!("{name}: {why}");
            }
            ExitCode::FAILURE
        }
        Err(refusal) => {
            eprintln!("{name}: {refusal}");
            ExitCode::FAILURE
        }
    }
}

/// A whole run; no result if the tables were only dropped.
pub fn run(experiment: &mut dyn Experiment) -> Result<Option<RunFile>, Refusal> {
    let (mut session, common) = (Session::open(experiment)?, experiment.common().clone());
    if common.drop {
        experiment.drop_tables(&mut session.lab)?;
        return Ok(None);
    }
    session.prepare(experiment)?;
    print!("{}", table::head(&session.run));
    'all: for variant in experiment.variants() {
        for threads in experiment.threads() {
            for repetition in 1..=usize::from(common.repeat) {
                let at = At { variant: variant.clone(), threads, repetition };
                if !session.point(experiment, &at)? {
                    break 'all;
                }
            }
        }
    }
    session.end(experiment)?;
    print!("{}", table::tail(&session.run));
    Ok(Some(session.run))
}

/// An experiment under way against one server.
pub struct Session {
    /// What it works with.
    pub lab: Lab,
    /// What it has so far.
    pub run: RunFile,
}

impl Session {
    /// Connects and asks the server what it is.
    pub fn open(experiment: &dyn Experiment) -> Result<Session, Refusal> {
        let common = experiment.common();
        let lab =
            Lab { target: common.target.clone(), seed: common.seed.unwrap_or_else(clock_seed), progress: Line::new() };
        let facts = ServerFacts::ask(&mut lab.connect()?, lab.target.dialect);
        let mut run = RunFile::begin(experiment.name(), &lab.target, common.label.as_deref(), facts);
        run.settings = experiment.settings();
        let seconds = |time: std::time::Duration| format!("{} s", time.as_secs_f64());
        run.settings.insert("threads".into(), List(experiment.threads()).to_string());
        run.settings.insert("duration".into(), seconds(common.duration));
        run.settings.insert("warmup".into(), seconds(common.warmup));
        run.settings.insert("seed".into(), lab.seed.to_string());
        if let Some(rate) = common.rate {
            run.settings.insert("rate".into(), rate.to_string());
        }
        Ok(Session { lab, run })
    }

    /// Sees to it that the tables are there.
    pub fn prepare(&mut self, experiment: &mut dyn Experiment) -> Result<(), Refusal> {
        let common = experiment.common();
        let (anew, may) = (common.load, !common.no_load);
        if anew || !experiment.is_loaded(&mut self.lab)? {
            if !may {
                return Err(Refusal::Options("there are no loaded tables".into()));
            }
            self.run.load = Some(experiment.load(&mut self.lab)?);
        }
        Ok(())
    }

    /// Measures a point, prints its line and keeps the file; `false` if the server has gone.
    pub fn point(&mut self, experiment: &mut dyn Experiment, at: &At) -> Result<bool, Refusal> {
        match experiment.point(&mut self.lab, at) {
            Ok((point, ended)) => {
                self.lab.progress.clear();
                print!("{}", table::line(&point));
                self.run.points.push(point);
                self.run.ended = ended;
            }
            // What was measured before is kept.
            Err(refusal) if !self.run.points.is_empty() => {
                self.lab.progress.clear();
                self.run.ended = Some(refusal.to_string());
            }
            Err(refusal) => return Err(refusal),
        }
        self.keep(experiment)?;
        Ok(self.run.ended.is_none())
    }

    /// Verifies, if that was asked for, and keeps the file.
    pub fn end(&mut self, experiment: &mut dyn Experiment) -> Result<(), Refusal> {
        self.run.notes = experiment.notes();
        let wanted = experiment.common().verify || experiment.always_verifies();
        if wanted && self.run.ended.is_none() {
            self.run.verdicts = experiment.verify(&mut self.lab)?;
        }
        self.keep(experiment)
    }

    fn keep(&self, experiment: &dyn Experiment) -> Result<(), Refusal> {
        let Some(path) = &experiment.common().json else { return Ok(()) };
        let place = self.run.place(path);
        if let Some(directory) = place.parent() {
            std::fs::create_dir_all(directory).map_err(|e| Refusal::Output(format!("{}: {e}", directory.display())))?;
        }
        self.run.write(&place).map_err(|error| Refusal::Output(format!("{}: {error}", place.display())))
    }
}
