//! `bench suite`: the experiments of a file, one after the other, each against several servers in turns.
//!
//! Responsible for: the order of runs, results of each in a file of its own, the report at the end, what failed.
//! Not responsible for: what an experiment does; how servers are started.
//! Invariants: nothing runs before the whole file is understood; the same point is measured on one server after the other, with the
//! same seed; what was measured is kept whatever fails later; the exit code is 0 only if everything was measured and all
//! data was right.

mod file;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::experiments::{At, Refusal, Session, Task};
use crate::interrupt::{self, INTERRUPTED};
use crate::options::clock_seed;
use crate::result::plain;
use crate::servers::{Scratch, Server, pinning};
use crate::target::Target;
use crate::{clock, report, table};
use file::{Entry, ServerAddress, Suite, Where};

/// Options of `bench suite`.
#[derive(Args, Clone, Debug)]
pub struct SuiteArgs {
    /// A TOML file: targets, experiments and their options.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A directory for the results, one file for each experiment and server.
    #[arg(long, value_name = "DIR", default_value = "bench-results")]
    json: PathBuf,
    /// The page with charts at the end [default: report.html in the directory of the results].
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Another address for a target of the file, or one more target.
    #[arg(long, value_name = "NAME=URL", value_parser = file::target)]
    target: Vec<Where>,
    /// The program of Nyala, for a target that is started [default: this one].
    #[arg(long, value_name = "PATH")]
    nyala: Option<PathBuf>,
    /// Where data directories of started servers are made [default: the directory for temporary files].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Print what would be run, and stop.
    #[arg(long)]
    dry_run: bool,
}

/// Does it.
pub fn main(args: SuiteArgs) -> ExitCode {
    match run(&args) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            failures.iter().for_each(|failure| eprintln!("suite: {failure}"));
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("suite: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all; answers what failed.
fn run(args: &SuiteArgs) -> Result<Vec<String>, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", args.file.display());
    let text = std::fs::read_to_string(&args.file).map_err(wrong)?;
    let suite = Suite::parse(&text, &args.target).map_err(|why| format!("{}: {why}", args.file.display()))?;
    if args.dry_run {
        for entry in &suite.entries {
            let names: Vec<&str> = entry.targets.iter().map(|target| target.name.as_str()).collect();
            println!("{} on {}: {}", entry.name, names.join(", "), entry.words.join(" "));
        }
        return Ok(Vec::new());
    }
    let started = Started::start(args, &suite).map_err(|refusal| refusal.to_string())?;
    let (mut files, mut failures) = (Vec::new(), Vec::new());
    // Names of files begin with it, so that the runs of a suite lie together.
    let stamp = clock::now().as_secs();
    for (number, entry) in suite.entries.iter().enumerate() {
        if interrupt::asked() {
            failures.push(format!("{INTERRUPTED} before {}", entry.name));
            break;
        }
        println!("=== {} of {}: {}", number + 1, suite.entries.len(), entry.words.join(" "));
        let seed = clock_seed();
        let place = |target: &Where| {
            args.json.join(format!("{stamp}-{:02}-{}-{}.json", number + 1, entry.experiment(), plain(&target.name)))
        };
        let contender = |target: &Where| Contender::new(entry, target, started.target(target), seed, &place(target));
        let contenders = entry.targets.iter().map(contender);
        let contenders: Vec<Contender> = contenders.collect();
        for contender in pinning::of_generator(|| in_turns(contenders)) {
            let name = format!("{}, {}", entry.name, contender.label);
            failures.extend(contender.failure.map(|why| format!("{name}: {why}")));
            files.extend(contender.file.exists().then_some(contender.file));
        }
        println!();
    }
    if files.is_empty() {
        failures.push("nothing was measured".into());
        return Ok(failures);
    }
    let page = args.report.clone().unwrap_or_else(|| args.json.join("report.html"));
    report::write_page(&files, &page, &suite.title)?;
    println!("{} results in {}, report in {}", files.len(), args.json.display(), page.display());
    Ok(failures)
}

/// The servers that are started for a suite, all together: an idle one costs next to nothing.
struct Started {
    // Dropped before the directory that they are in.
    servers: Vec<Server>,
    _scratch: Scratch,
}

impl Started {
    fn start(args: &SuiteArgs, suite: &Suite) -> Result<Started, Refusal> {
        let scratch = Scratch::new(args.scratch.as_deref())?;
        let own = std::env::current_exe().map_err(|e| Refusal::Output(format!("this program: {e}")))?;
        let nyala = args.nyala.as_deref().unwrap_or(&own);
        let mut servers: Vec<Server> = Vec::new();
        for target in suite.entries.iter().flat_map(|entry| &entry.targets) {
            if let ServerAddress::Start(product) = target.place
                && servers.iter().all(|server| server.product() != product)
            {
                servers.push(Server::start(product, nyala, scratch.path())?);
            }
        }
        Ok(Started { servers, _scratch: scratch })
    }

    fn target(&self, target: &Where) -> Target {
        match &target.place {
            ServerAddress::At(url) => url.clone(),
            ServerAddress::Start(product) => {
                let server = self.servers.iter().find(|server| server.product() == *product);
                server.expect("all that entries name were started").target().clone()
            }
        }
    }
}

/// An experiment against one of the servers.
struct Contender {
    label: String,
    /// What is to be run, until it is.
    task: Option<Task>,
    /// There is none if the server cannot be reached, or has gone.
    session: Option<Session>,
    failure: Option<String>,
    file: PathBuf,
}

impl Contender {
    fn new(entry: &Entry, target: &Where, url: Target, seed: u64, file: &Path) -> Contender {
        let mut task = entry.workload.clone().task();
        let common = &mut task.common;
        common.target = url;
        common.label = Some(target.name.clone());
        common.seed = common.seed.or(Some(seed));
        common.json = Some(file.to_path_buf());
        let (label, file) = (target.name.clone(), file.to_path_buf());
        Contender { label, task: Some(task), session: None, failure: None, file }
    }

    /// Connects and loads.
    fn prepare(&mut self) {
        let Some(task) = self.task.take() else { return };
        let prepared = Session::open(task).and_then(|mut session| session.prepare().map(|()| session));
        match prepared {
            Ok(session) => {
                println!("{}", table::head(&session.run));
                self.session = Some(session);
            }
            Err(refusal) => self.fails(refusal.to_string()),
        }
    }

    fn point(&mut self, at: &At) {
        let Some(session) = &mut self.session else { return };
        println!("{}", self.label);
        match session.point(at) {
            Ok(true) => {}
            // What was measured is kept and the rest of the entry left out.
            Ok(false) => self.end(),
            Err(refusal) => {
                self.session = None;
                self.fails(refusal.to_string());
            }
        }
    }

    fn end(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        if let Err(refusal) = session.end() {
            return self.fails(refusal.to_string());
        }
        print!("{}: {}", self.label, table::tail(&session.run));
        println!();
        if let Some(why) = &session.run.ended {
            self.fails(format!("cut short: {why}"));
        } else if !session.run.is_good() {
            self.fails("nothing was measured at a point, or the data is wrong".into());
        }
    }

    fn fails(&mut self, why: String) {
        println!("{}: {why}", self.label);
        self.failure = Some(why);
    }
}

/// The same point on one after the other.
fn in_turns(mut all: Vec<Contender>) -> Vec<Contender> {
    all.iter_mut().for_each(Contender::prepare);
    let places = |session: &Session| session.places(usize::from(session.lab.common.repeat));
    let places = all.iter().find_map(|contender| contender.session.as_ref().map(places));
    for at in places.unwrap_or_default() {
        // Every second time the other way round, so that what changes with time touches all alike.
        let mut turn: Vec<&mut Contender> = all.iter_mut().collect();
        if at.repetition % 2 == 0 {
            turn.reverse();
        }
        turn.into_iter().for_each(|contender| contender.point(&at));
    }
    all.iter_mut().for_each(Contender::end);
    all
}
