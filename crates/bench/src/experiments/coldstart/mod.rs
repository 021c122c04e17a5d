//! Cold start: how fast a server is ready again when nothing of its data is in memory, against what its disk can read.
//!
//! A run starts a server of its own on a directory of its own, fills three tables, and takes it through its *cases*:
//! everything in the log; a checkpoint of tables without an index; with primary keys; with secondary indexes too. For each
//! case the files are dropped from the page cache, read once from end to end by the experiment ([`disk`]), dropped again, and
//! read by a starting server ([`node`]), several times; then the tables are compared with what they were ([`tables`]).
//! Lost rows fail the run.

pub mod disk;
pub mod node;
pub mod report;
pub mod tables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::client::{Connection, Failure};
use crate::progress::Line;
use crate::result::Machine;
use disk::{Files, Image};
use node::{Node, Started};
use report::{Case, Report};
use tables::Tables;

/// Options of `bench coldstart`.
#[derive(Args, Clone, Debug)]
pub struct ColdstartArgs {
    /// Megabytes of rows, over all tables.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub size: u32,
    /// Cold starts per case; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub repeat: u16,
    /// Share of each table in hundredths of the rows' bytes: sysbench-like, narrow, wide.
    #[arg(long, value_delimiter = ',', default_values_t = [60, 20, 20], value_parser = clap::value_parser!(u8).range(0..=100))]
    pub shares: Vec<u8>,
    /// Where the data directory is made, and removed at the end: the disk that is measured [default: the directory for
    /// temporary files].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The server's executable [default: this one].
    #[arg(long, value_name = "PATH")]
    pub server: Option<PathBuf>,
    /// Threads of the server [default: one per CPU].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub cores: Option<u16>,
    /// Use, and leave, the data directory `coldstart` inside of --dir: if it is there, loading is left out, and so is the
    /// case of the log.
    #[arg(long, requires = "dir")]
    pub keep: bool,
    /// Source of every value.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write everything as JSON to a file, or to stdout for "-"; the text then goes to stderr.
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The server, over its protocol.
    #[error("{0}")]
    Server(#[from] Failure),
    /// A file or a process.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// The server ended, or did not say what it should.
    #[error("{0}")]
    Node(String),
    /// What was there is not there any more.
    #[error("data is lost: {0}")]
    Lost(String),
}

impl Refusal {
    fn io(of: impl Into<String>) -> impl FnOnce(std::io::Error) -> Refusal {
        let of = of.into();
        |error| Refusal::Io(of, error)
    }
}

/// Runs the experiment and prints its report. Fails if anything is lost.
pub fn main(args: ColdstartArgs) -> ExitCode {
    match experiment(&args).and_then(|report| report.write(args.json.as_deref())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            eprintln!("coldstart: {refusal}");
            ExitCode::FAILURE
        }
    }
}

/// The directory of a run; removed when dropped, unless it is to be kept.
struct Directory {
    path: PathBuf,
    keep: bool,
}

impl Directory {
    fn make(args: &ColdstartArgs) -> Result<Directory, Refusal> {
        let base = args.dir.clone().unwrap_or_else(std::env::temp_dir);
        let name = if args.keep { "coldstart".to_string() } else { format!("nyala-coldstart-{}", std::process::id()) };
        let path = base.join(name);
        std::fs::create_dir_all(&path).map_err(Refusal::io(path.display().to_string()))?;
        Ok(Directory { path, keep: args.keep })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed is in the directory for temporary files.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The experiment without its printing.
///
/// # Errors
/// If something fails, or rows are lost.
pub fn experiment(args: &ColdstartArgs) -> Result<Report, Refusal> {
    let directory = Directory::make(args)?;
    let program = match &args.server {
        Some(path) => path.clone(),
        None => std::env::current_exe().map_err(Refusal::io("the own executable"))?,
    };
    let run = Run { args, program, data: directory.path.join("data"), tables: Tables::of(args.size, &args.shares) };
    let mut progress = Line::new();
    let cases = run.cases(&mut progress)?;
    progress.clear();
    let rows = run.tables.rows();
    Ok(Report { experiment: "coldstart", size_mb: args.size, seed: args.seed, host: Machine::this(), rows, cases })
}

struct Run<'a> {
    args: &'a ColdstartArgs,
    program: PathBuf,
    data: PathBuf,
    tables: Tables,
}

/// What the tables must be, as text: one line per table.
type Expected = Vec<String>;

impl Run<'_> {
    fn start(&self) -> Result<(Node, Started), Refusal> {
        Node::start(&self.program, &self.data, self.args.cores)
    }

    /// Runs the server without measuring, for something to be done with it.
    fn prepare<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let (node, _) = self.start()?;
        let done = work(&mut node.connect()?)?;
        node.stop()?;
        Ok(done)
    }

    fn cases(&self, progress: &mut Line) -> Result<Vec<Case>, Refusal> {
        let mut cases = Vec::new();
        let expected = if self.data.join("manifest").exists() {
            self.prepare(|connection| {
                self.tables.drop_indexes(connection)?;
                connection.query("CHECKPOINT")?;
                Ok(self.tables.look(connection)?)
            })?
        } else {
            let expected = self.prepare(|connection| {
                self.tables.load(connection, self.args.seed, progress)?;
                Ok(self.tables.look(connection)?)
            })?;
            cases.push(self.case("log", &expected, progress)?);
            self.prepare(|connection| Ok(connection.query("CHECKPOINT")?))?;
            expected
        };
        cases.push(self.case("data", &expected, progress)?);
        for (name, primary) in [("primary keys", true), ("all indexes", false)] {
            self.prepare(|connection| {
                progress.end(&format!("making {name}"));
                self.tables.index(connection, primary)?;
                Ok(connection.query("CHECKPOINT")?)
            })?;
            cases.push(self.case(name, &expected, progress)?);
        }
        Ok(cases)
    }

    /// Starts cold several times.
    fn case(&self, name: &'static str, expected: &Expected, progress: &mut Line) -> Result<Case, Refusal> {
        let files = Files::of(&self.data).map_err(Refusal::io("the data directory"))?;
        let (mut reads, mut starts) = (Vec::new(), Vec::new());
        for round in 1..=self.args.repeat {
            progress.show(|| format!("{name}: start {round} of {}", self.args.repeat));
            files.drop_cached().map_err(Refusal::io("dropping files from the page cache"))?;
            reads.push(files.read().map_err(Refusal::io("reading files"))?);
            files.drop_cached().map_err(Refusal::io("dropping files from the page cache"))?;
            let (node, started) = self.start()?;
            if round == self.args.repeat {
                let found = self.tables.look(&mut node.connect()?)?;
                if let Some((lost, found)) = expected.iter().zip(&found).find(|(a, b)| a != b) {
                    return Err(Refusal::Lost(format!("{name}: {lost} has become {found}")));
                }
                self.tables.look_up(&mut node.connect()?, self.args.seed)?;
            }
            node.stop()?;
            starts.push(started);
        }
        Ok(Case::of(name, Image::of(&self.data), reads, starts))
    }
}

/// Whether a path is a file that a start reads.
fn is_read_at_start(path: &Path) -> bool {
    path.is_file() && path.file_name().is_some_and(|name| name != "lock")
}
