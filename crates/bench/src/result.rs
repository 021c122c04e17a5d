//! What is kept of a run: one JSON file with the machine, the server and its settings, and every measured point.
//!
//! Format 1. A reader takes files of its own format only; fields may be added, and older files then lack them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::client::Connection;
use crate::clock;
use crate::drive::{KindTally, Measured};
use crate::experiments::queries::Judged;
use crate::target::{Dialect, Target};
use crate::usage::Usage;

/// Of the files that are written.
pub const FORMAT: u32 = 1;

/// A run of an experiment against one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    /// [`FORMAT`].
    pub format: u32,
    /// `sysbench`, `tpcc`, …
    pub experiment: String,
    /// What the server is called in tables: what the user said, or what it calls itself.
    pub label: String,
    /// Its URL, without a password.
    pub target: String,
    /// Seconds since 1970 when it began.
    pub started: u64,
    /// Options of the experiment by their names.
    pub settings: BTreeMap<String, String>,
    /// The server.
    pub server: ServerFacts,
    /// The machine of the generator, and of the server if that is local.
    pub machine: Machine,
    /// Version and commit of this program.
    pub program: String,
    /// The load, if tables were loaded.
    pub load: Option<Load>,
    /// What was measured, in order.
    pub points: Vec<Point>,
    /// Statements of `bench queries`, in order.
    #[serde(default)]
    pub queries: Vec<Judged>,
    /// What was looked at afterwards.
    pub verdicts: Vec<Verdict>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Why the run ended before its time.
    pub ended: Option<String>,
}

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// `PostgreSQL`, `MariaDB`, `Nyala`, …
    pub product: String,
    /// Its whole version.
    pub version: String,
    /// Settings that results depend on, those that it has.
    pub settings: BTreeMap<String, String>,
    /// Whether a commit is on the disk when it is acknowledged, as far as settings tell.
    pub durable: Option<bool>,
}

/// Settings that results depend on.
const POSTGRES_SETTINGS: [&str; 11] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_connections",
    "max_wal_size",
    "checkpoint_timeout",
    "wal_sync_method",
    "work_mem",
    "memory_limit",
    "default_transaction_isolation",
];
const MYSQL_SETTINGS: [&str; 10] = [
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_doublewrite",
    "sync_binlog",
    "log_bin",
    "max_connections",
    // The name depends on the version.
    "transaction_isolation",
    "tx_isolation",
];

impl ServerFacts {
    /// Asks. What the server does not have is left out.
    pub fn ask(connection: &mut Connection, dialect: Dialect) -> ServerFacts {
        let mut ask = |sql: &str| connection.query_one(sql).ok().flatten();
        let version = ask("SELECT version()").unwrap_or_default();
        let (names, read): (&[&str], fn(&str) -> String) = match dialect {
            Dialect::Postgres => (&POSTGRES_SETTINGS, |name| format!("SHOW {name}")),
            Dialect::MySql => (&MYSQL_SETTINGS, |name| format!("SELECT @@{name}")),
        };
        let settings: BTreeMap<_, _> =
            names.iter().filter_map(|&name| Some((name.to_string(), ask(&read(name))?))).collect();
        let durable = durable(&settings, dialect);
        ServerFacts { product: product(&version, dialect).into(), version, settings, durable }
    }

    /// The level of transactions that do not ask for one, in SQL's words.
    pub fn isolation(&self) -> Option<String> {
        let names = ["default_transaction_isolation", "transaction_isolation", "tx_isolation"];
        let level = names.iter().find_map(|name| self.settings.get(*name))?;
        Some(level.to_lowercase().replace('-', " "))
    }
}

fn product(version: &str, dialect: Dialect) -> &'static str {
    let known = ["Nyala", "MariaDB", "CockroachDB", "YugabyteDB", "openGauss", "MogDB", "PostgreSQL"];
    let found = known.into_iter().find(|name| version.to_lowercase().contains(&name.to_lowercase()));
    found.unwrap_or(match dialect {
        Dialect::Postgres => "PostgreSQL",
        Dialect::MySql => "MySQL",
    })
}

fn durable(settings: &BTreeMap<String, String>, dialect: Dialect) -> Option<bool> {
    let is = |name: &str, bad: &[&str]| settings.get(name).map(|value| !bad.contains(&value.as_str()));
    match dialect {
        Dialect::Postgres => Some(is("fsync", &["off"])? && is("synchronous_commit", &["off"])?),
        Dialect::MySql => is("innodb_flush_log_at_trx_commit", &["0", "2"]),
    }
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cpus: usize,
    /// What they are.
    pub model: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Bytes.
    pub memory_bytes: u64,
}

impl Machine {
    /// It in a few words.
    pub fn name(&self) -> String {
        let memory = self.memory_bytes as f64 / (1u64 << 30) as f64;
        let model = if self.model.is_empty() { String::new() } else { format!(" ({})", self.model) };
        format!("{} CPUs{model}, {memory:.0} GiB, kernel {}", self.cpus, self.kernel)
    }

    /// This one.
    pub fn this() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_once(':').map(|(_, value)| value.trim().to_string()).unwrap_or_default()
        };
        let memory = value(&read("/proc/meminfo"), "MemTotal");
        Machine {
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get()),
            model: value(&read("/proc/cpuinfo"), "model name"),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            memory_bytes: memory.trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10,
        }
    }
}

/// How long tables took to load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// All rows.
    pub rows: u64,
    /// Until they were there.
    pub rows_seconds: f64,
    /// Indexes, constraints and statistics afterwards.
    pub index_seconds: f64,
}

/// One measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Which variant of the experiment: `oltp_read_only`, `workload A`; empty if it has one.
    pub variant: String,
    /// Clients.
    pub threads: usize,
    /// Which of several measurements of the same, from 1.
    pub repetition: usize,
    /// Exact length.
    pub seconds: f64,
    /// That count: ended in the measured time.
    pub transactions: u64,
    /// Their rate.
    pub per_second: f64,
    /// Statements per second.
    pub statements_per_second: f64,
    /// Rows per second.
    pub rows_per_second: f64,
    /// Response times of all.
    pub latency: Latency,
    /// By kind, if there are several.
    pub kinds: Vec<KindResult>,
    /// Repeated attempts by SQLSTATE.
    pub retries: BTreeMap<String, u64>,
    /// Given up, by SQLSTATE.
    pub errors: BTreeMap<String, Errors>,
    /// Due and not begun when the time was over.
    pub late: u64,
    /// Second by second.
    pub series: Vec<Second>,
    /// What it cost.
    pub usage: Usage,
    /// What only this experiment has: `nopm`, …
    pub figures: BTreeMap<String, f64>,
}

/// Response times in milliseconds, retries included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90 of 100 are faster.
    pub p90_ms: f64,
    /// 95 of 100 are faster.
    pub p95_ms: f64,
    /// 99 of 100 are faster.
    pub p99_ms: f64,
    /// 999 of 1,000 are faster.
    pub p999_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

impl Latency {
    /// Of microseconds.
    pub fn of(times: &Histogram<u64>) -> Latency {
        let at = |quantile: f64| times.value_at_quantile(quantile) as f64 / 1e3;
        Latency {
            mean_ms: times.mean() / 1e3,
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: times.max() as f64 / 1e3,
        }
    }
}

/// One kind of transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindResult {
    /// Its name.
    pub name: String,
    /// How many.
    pub count: u64,
    /// Of these, rolled back because the workload says so.
    pub rolled_back: u64,
    /// Response times.
    pub latency: Latency,
}

/// Errors with one SQLSTATE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// How many.
    pub count: u64,
    /// The first one.
    pub example: String,
}

/// One second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Its end, from the start of the measurement.
    pub at_seconds: f64,
    /// Transactions per second.
    pub per_second: f64,
    /// Mean response time.
    pub mean_ms: f64,
    /// Errors in it.
    pub errors: u64,
    /// Cores that the server kept busy.
    pub server_cores: Option<f64>,
    /// Of these, in the kernel.
    #[serde(default)]
    pub server_system_cores: Option<f64>,
    /// Cores that the generator kept busy.
    #[serde(default)]
    pub client_cores: Option<f64>,
    /// Bytes written to the machine's disks in a second.
    #[serde(default)]
    pub written_per_second: Option<f64>,
    /// Flushes of the machine's disks in a second.
    #[serde(default)]
    pub flushes_per_second: Option<f64>,
    /// Memory that the server held.
    pub memory_bytes: Option<u64>,
}

/// Whether something that must hold of the data does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What.
    pub says: String,
    /// Whether.
    pub holds: bool,
    /// What was found.
    pub found: String,
}

impl Point {
    /// Makes figures of what was measured; who calls says which variant it was and adds figures of its own.
    pub fn of<W>(measured: &Measured<W>, kinds: &[&'static str], threads: usize) -> Point {
        let tally = &measured.tally;
        let (seconds, transactions) = (measured.elapsed.as_secs_f64(), tally.transactions());
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let mut all = Histogram::new(3).expect("three digits are few enough");
        tally.kinds.iter().for_each(|kind| all.add(&kind.times).expect("it grows"));
        let kind = |(name, tally): (&&str, &KindTally)| KindResult {
            name: name.to_string(),
            count: tally.times.len(),
            rolled_back: tally.rolled_back,
            latency: Latency::of(&tally.times),
        };
        let errors = tally.errors.iter();
        Point {
            variant: String::new(),
            threads,
            repetition: 1,
            seconds,
            transactions,
            per_second: per_second(transactions),
            statements_per_second: per_second(tally.statements),
            rows_per_second: per_second(tally.rows),
            latency: Latency::of(&all),
            kinds: if kinds.len() > 1 { kinds.iter().zip(&tally.kinds).map(kind).collect() } else { Vec::new() },
            retries: tally.retries.clone(),
            errors: errors
                .map(|(state, (count, example))| (state.clone(), Errors { count: *count, example: example.clone() }))
                .collect(),
            late: tally.late,
            series: measured.series.clone(),
            usage: measured.usage.clone(),
            figures: BTreeMap::new(),
        }
    }

    /// Kilobytes written for a transaction.
    pub fn written_kb(&self) -> Option<f64> {
        Some(self.each(self.usage.written_bytes? as f64 / 1024.0))
    }

    /// Flushes of the disks for a transaction.
    pub fn flushes(&self) -> Option<f64> {
        Some(self.each(self.usage.flushes? as f64))
    }

    /// Microseconds of the server's processor time for a transaction.
    pub fn server_us(&self) -> Option<f64> {
        Some(self.each(self.usage.server_seconds()? * 1e6))
    }

    /// A cost of the whole point for a transaction.
    pub fn each(&self, cost: f64) -> f64 {
        cost / self.transactions.max(1) as f64
    }

    /// Microseconds of the generator's processor time for a transaction.
    pub fn client_us(&self) -> f64 {
        self.each(self.usage.client_seconds * 1e6)
    }
}

static VERSION: OnceLock<String> = OnceLock::new();

/// Says which version of the program the lab is part of, with its commit. What was said first stands.
pub fn set_version(version: &str) {
    VERSION.get_or_init(|| version.to_string());
}

/// The program that measures, with its version.
pub fn program() -> String {
    format!("nyala {}", VERSION.get().map_or(env!("CARGO_PKG_VERSION"), String::as_str))
}

impl RunFile {
    /// A run that begins now, with nothing measured.
    pub fn begin(experiment: &str, target: &Target, label: Option<&str>, server: ServerFacts) -> RunFile {
        RunFile {
            format: FORMAT,
            experiment: experiment.into(),
            label: label.map_or_else(|| server.product.clone(), str::to_string),
            target: target.to_string(),
            started: clock::now().as_secs(),
            settings: BTreeMap::new(),
            server,
            machine: Machine::this(),
            program: program(),
            load: None,
            points: Vec::new(),
            queries: Vec::new(),
            verdicts: Vec::new(),
            notes: Vec::new(),
            ended: None,
        }
    }

    /// Whether something was measured where it should, nothing that must hold is broken, and it was not cut short.
    pub fn is_good(&self) -> bool {
        let measured = self.points.iter().all(|point| point.transactions > 0);
        measured
            && self.queries.iter().all(Judged::is_good)
            && self.ended.is_none()
            && self.verdicts.iter().all(|verdict| verdict.holds)
    }

    /// Writes it as a whole: a reader finds this file or the one before.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).expect("a result has only names as keys") + "\n";
        let partial = path.with_extension("json.partial");
        fs::write(&partial, text)?;
        fs::rename(partial, path)
    }

    /// Reads a file of this format.
    ///
    /// # Errors
    /// One line that says what is wrong with the file.
    pub fn read(path: &Path) -> Result<RunFile, String> {
        let wrong = |why: String| format!("{}: {why}", path.display());
        let text = fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let head: Head = serde_json::from_str(&text).map_err(|e| wrong(format!("not a result: {e}")))?;
        if head.format != FORMAT {
            return Err(wrong(format!("has format {}, this program reads {FORMAT}", head.format)));
        }
        serde_json::from_str(&text).map_err(|e| wrong(format!("not a result: {e}")))
    }

    /// Where it goes: the path itself, or a name of its own in a directory.
    pub fn place(&self, path: &Path) -> PathBuf {
        let is_directory = path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/');
        if !is_directory {
            return path.to_path_buf();
        }
        path.join(format!("{}-{}-{}.json", self.experiment, plain(&self.label), self.started))
    }
}

/// A label as part of a file's name.
pub fn plain(label: &str) -> String {
    label.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> RunFile {
        let target = "postgres://h/d".parse().unwrap();
        let server = ServerFacts { product: "Nyala".into(), ..ServerFacts::default() };
        let mut run = RunFile::begin("sysbench", &target, None, server);
        run.points.push(Point { threads: 8, transactions: 5, ..Point::default() });
        run
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let run = file();
        let path = run.place(&directory.path().join(""));
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with("sysbench-nyala-"));
        run.write(&path).unwrap();
        assert_eq!(RunFile::read(&path).unwrap(), run);
        assert_eq!(run.place(Path::new("x.json")), Path::new("x.json"));
    }

    #[test]
    fn other_files_are_refused_in_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.json");
        for (text, why) in
            [("{\"format\": 9}", "has format 9"), ("hello", "not a result"), ("{\"format\": 1}", "missing field")]
        {
            fs::write(&path, text).unwrap();
            let said = RunFile::read(&path).unwrap_err();
            assert!(said.contains(why) && !said.contains('\n'), "{said}");
        }
        assert!(RunFile::read(&directory.path().join("none")).unwrap_err().contains("No such file"));
    }

    #[test]
    fn a_run_is_good_if_all_was_measured_and_all_holds() {
        let good = file();
        assert!(good.is_good());
        let broken = Verdict { says: "sum".into(), holds: false, found: "99".into() };
        assert!(!RunFile { verdicts: vec![broken], ..good.clone() }.is_good());
        assert!(!RunFile { ended: Some("the server is gone".into()), ..good.clone() }.is_good());
        let mut idle = good;
        idle.points[0].transactions = 0;
        assert!(!idle.is_good());
    }

    #[test]
    fn servers_are_told_apart_and_durability_is_known() {
        let version = "PostgreSQL 15.16 compatible, Nyala 0.1.0";
        assert_eq!(product(version, Dialect::Postgres), "Nyala");
        assert_eq!(product("10.11.6-MariaDB-0+deb12u1", Dialect::MySql), "MariaDB");
        assert_eq!(product("8.0.36", Dialect::MySql), "MySQL");
        let settings = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let on = settings(&[("fsync", "on"), ("synchronous_commit", "on")]);
        assert_eq!(durable(&on, Dialect::Postgres), Some(true));
        let off = settings(&[("fsync", "on"), ("synchronous_commit", "off")]);
        assert_eq!(durable(&off, Dialect::Postgres), Some(false));
        let level =
            |name: &str, level: &str| ServerFacts { settings: settings(&[(name, level)]), ..Default::default() };
        assert_eq!(level("tx_isolation", "REPEATABLE-READ").isolation().as_deref(), Some("repeatable read"));
        assert_eq!(ServerFacts::default().isolation(), None);
        assert_eq!(durable(&settings(&[("innodb_flush_log_at_trx_commit", "2")]), Dialect::MySql), Some(false));
        assert_eq!(durable(&BTreeMap::new(), Dialect::MySql), None);
    }
}
