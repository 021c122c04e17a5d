//! What a run found, for people and for programs: one structure, written as text or as JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::check::Verdict;
use super::load::LoadReport;
use super::mix::Kind;
use super::run::Measured;
use crate::client::Connection;
use crate::table::grouped;

/// What "NOPM" must always be followed by.
pub const LABEL: &str = "derived from TPC-C, unaudited";

/// Settings of a server that decide what a figure means, where it has them.
const SERVER_SETTINGS: [&str; 9] = [
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "wal_level",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "default_transaction_isolation",
    "max_connections",
];

/// Everything about one run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Always `tpcc`.
    pub experiment: &'static str,
    /// How it was run.
    pub settings: Settings,
    /// Against what.
    pub server: Server,
    /// On what.
    pub host: Host,
    /// The load, if this run loaded.
    pub load: Option<LoadReport>,
    /// The measurement, if there was one.
    pub run: Option<Run>,
    /// The consistency conditions, if they were checked.
    pub consistency: Vec<Verdict>,
    /// How this differs from the specification.
    pub notes: Vec<&'static str>,
}

/// The options of a run, after defaults.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Without the password.
    pub target: String,
    /// Warehouses in the database.
    pub warehouses: i64,
    /// Clients at once.
    pub clients: usize,
    /// Before the measurement.
    pub warmup_seconds: f64,
    /// The measurement.
    pub duration_seconds: f64,
    /// `read committed` or `repeatable read`.
    pub isolation: String,
    /// Whether clients wait as people would.
    pub think: bool,
    /// Whether this run's load added foreign keys; not known if it did not load.
    pub foreign_keys: Option<bool>,
    /// Source of every value.
    pub seed: u64,
}

/// What the server says of itself.
#[derive(Clone, Debug, Serialize)]
pub struct Server {
    /// `server_version` of the start-up.
    pub protocol_version: String,
    /// Answer to `SELECT version()`.
    pub version: Option<String>,
    /// Those of a fixed list that it has.
    pub settings: BTreeMap<&'static str, String>,
}

impl Server {
    /// Asks. What the server does not have is left out.
    pub fn ask(connection: &mut Connection) -> Server {
        let mut ask = |sql: &str| connection.query_one(sql).ok().flatten();
        let version = ask("SELECT version()");
        let settings = SERVER_SETTINGS.iter().filter_map(|&name| Some((name, ask(&format!("SHOW {name}"))?))).collect();
        Server { protocol_version: connection.server_version().to_string(), version, settings }
    }
}

/// The machine of the client, and of the server if that is local.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// Cores this process may use.
    pub cpus: usize,
    /// Release of the kernel.
    pub kernel: String,
}

impl Host {
    /// This machine.
    pub fn this() -> Host {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
        Host { cpus: std::thread::available_parallelism().map_or(1, |n| n.get()), kernel }
    }
}

/// The measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// New orders per minute, those rolled back by rule included.
    pub nopm: f64,
    /// What that figure is.
    pub nopm_label: &'static str,
    /// Exact length.
    pub seconds: f64,
    /// All kinds, without errors.
    pub transactions: u64,
    /// Their rate.
    pub transactions_per_second: f64,
    /// By kind.
    pub kinds: Vec<KindReport>,
    /// Repeated attempts by SQLSTATE.
    pub retries: BTreeMap<String, u64>,
    /// Transactions given up, by SQLSTATE.
    pub errors: BTreeMap<String, ErrorReport>,
    /// CPU time.
    pub cpu: Cpu,
}

/// One kind of transaction. Times are response times in milliseconds, retries included, waits of `--think` excluded.
#[derive(Clone, Debug, Serialize)]
pub struct KindReport {
    /// Which.
    pub kind: Kind,
    /// How many.
    pub count: u64,
    /// Of these, rolled back because the specification says so.
    pub rolled_back: u64,
    /// Of all transactions, in percent.
    pub share_percent: f64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

/// Errors with one SQLSTATE.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorReport {
    /// How many.
    pub count: u64,
    /// The first one.
    pub example: String,
}

/// CPU time, user and system, in the measured time.
#[derive(Clone, Debug, Serialize)]
pub struct Cpu {
    /// All processes of the server.
    pub server_seconds: Option<f64>,
    /// Per transaction.
    pub server_ms_per_transaction: Option<f64>,
    /// How many processes lived at the end.
    pub server_processes: Option<usize>,
    /// Why the server's time is not known.
    pub server_unknown: Option<String>,
    /// New orders per minute and core of server CPU time.
    pub nopm_per_server_core: Option<f64>,
    /// This process.
    pub client_seconds: f64,
    /// Per transaction.
    pub client_ms_per_transaction: f64,
}

impl Run {
    /// Makes figures of what was measured.
    pub fn new(measured: Measured) -> Run {
        let Measured { elapsed, tally, server_cpu, client_cpu } = measured;
        let seconds = elapsed.as_secs_f64();
        let transactions: u64 = tally.kinds.iter().map(|kind| kind.times.len()).sum();
        let per = |total: f64, of: f64| if of > 0.0 { total / of } else { 0.0 };
        let kinds = Kind::ALL.iter().zip(&tally.kinds).map(|(&kind, tally)| {
            let at = |quantile: f64| tally.times.value_at_quantile(quantile) as f64 / 1e3;
            KindReport {
                kind,
                count: tally.times.len(),
                rolled_back: tally.rolled_back,
                share_percent: 100.0 * per(tally.times.len() as f64, transactions as f64),
                mean_ms: tally.times.mean() / 1e3,
                p50_ms: at(0.5),
                p90_ms: at(0.9),
                p95_ms: at(0.95),
                p99_ms: at(0.99),
                max_ms: tally.times.max() as f64 / 1e3,
            }
        });
        let new_orders = tally.kinds[Kind::NewOrder as usize].times.len() as f64;
        let server = server_cpu.as_ref().ok().map(|(time, _)| time.as_secs_f64());
        let cpu = Cpu {
            server_seconds: server,
            server_ms_per_transaction: server.map(|s| per(s * 1e3, transactions as f64)),
            server_processes: server_cpu.as_ref().ok().map(|&(_, living)| living),
            server_unknown: server_cpu.err(),
            nopm_per_server_core: server.map(|s| per(new_orders * 60.0, s)),
            client_seconds: client_cpu.as_secs_f64(),
            client_ms_per_transaction: per(client_cpu.as_secs_f64() * 1e3, transactions as f64),
        };
        let errors = tally.errors.into_iter();
        Run {
            nopm: per(new_orders * 60.0, seconds),
            nopm_label: LABEL,
            seconds,
            transactions,
            transactions_per_second: per(transactions as f64, seconds),
            kinds: kinds.collect(),
            retries: tally.retries,
            errors: errors.map(|(state, (count, example))| (state, ErrorReport { count, example })).collect(),
            cpu,
        }
    }
}

impl Report {
    /// Whether this run is a success: something ran if it should, and no condition is broken.
    pub fn is_good(&self) -> bool {
        self.consistency.iter().all(|verdict| verdict.holds) && self.run.as_ref().is_none_or(|run| run.transactions > 0)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = &self.settings;
        writeln!(f, "TPC-C on {}", s.target)?;
        writeln!(f, "server        {}", self.server.version.as_ref().unwrap_or(&self.server.protocol_version))?;
        let settings: Vec<String> =
            self.server.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !settings.is_empty() {
            writeln!(f, "              {}", settings.join(" "))?;
        }
        let keys = if s.foreign_keys == Some(true) { ", foreign keys" } else { "" };
        let think = if s.think { "keying and think times" } else { "no think times" };
        writeln!(
            f,
            "settings      {}, {}, {} s after {} s of warm-up, {}, {think}{keys}, seed {}",
            counted(s.warehouses as u64, "warehouse"),
            counted(s.clients as u64, "client"),
            s.duration_seconds,
            s.warmup_seconds,
            s.isolation,
            s.seed
        )?;
        writeln!(f, "host          {} CPUs, kernel {}", self.host.cpus, self.host.kernel)?;
        if let Some(load) = &self.load {
            let rate = grouped(load.rows as f64 / load.copy_seconds.max(0.001));
            let rows = grouped(load.rows as f64);
            let (copy, index) = (load.copy_seconds, load.index_seconds);
            writeln!(
                f,
                "load          {rows} rows in {copy:.1} s ({rate} rows/s), indexes and statistics {index:.1} s"
            )?;
        }
        if let Some(run) = &self.run {
            run.fmt(f)?;
        }
        if !self.consistency.is_empty() {
            let holding = self.consistency.iter().filter(|v| v.holds).count();
            writeln!(f, "\nconsistency   {holding} of {} conditions hold", self.consistency.len())?;
        }
        for verdict in &self.consistency {
            let word = if verdict.holds { "holds" } else { "BROKEN" };
            writeln!(f, "  {:<9} {word:<6} {}", verdict.clause, verdict.says)?;
            if let Some(found) = &verdict.found {
                writeln!(f, "                   {found}")?;
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note          {note}"))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nNOPM          {} ({})", grouped(self.nopm), self.nopm_label)?;
        let (rate, all) = (grouped(self.transactions_per_second), grouped(self.transactions as f64));
        writeln!(f, "transactions  {rate}/s ({all} in {:.1} s)\n", self.seconds)?;
        writeln!(f, "response time, ms     count  share       p50       p90       p95       p99       max")?;
        for k in &self.kinds {
            let (name, count) = (k.kind.name(), grouped(k.count as f64));
            write!(f, "  {name:<14} {count:>10} {:>5.1}%", k.share_percent)?;
            for ms in [k.p50_ms, k.p90_ms, k.p95_ms, k.p99_ms, k.max_ms] {
                write!(f, " {ms:>9.2}")?;
            }
            writeln!(f)?;
        }
        let rolled: u64 = self.kinds.iter().map(|k| k.rolled_back).sum();
        writeln!(f, "\nrolled back   {rolled} new orders for an invalid item, as the specification wants")?;
        let list = |items: Vec<String>| if items.is_empty() { "none".to_string() } else { items.join(", ") };
        let retries = self.retries.iter().map(|(state, count)| format!("{state}: {count}")).collect();
        writeln!(f, "retries       {}", list(retries))?;
        let errors = self.errors.iter().map(|(state, e)| format!("{state}: {} (first: {})", e.count, e.example));
        writeln!(f, "errors        {}", list(errors.collect()))?;
        let cpu = &self.cpu;
        match (cpu.server_ms_per_transaction, cpu.server_seconds, cpu.server_processes, cpu.nopm_per_server_core) {
            (Some(each), Some(total), Some(processes), Some(nopm)) => writeln!(
                f,
                "CPU server    {each:.3} ms per transaction, {total:.2} s in {}, {} NOPM per core",
                counted(processes as u64, "process"),
                grouped(nopm)
            )?,
            _ => writeln!(f, "CPU server    unknown: {}", cpu.server_unknown.as_deref().unwrap_or_default())?,
        }
        writeln!(
            f,
            "CPU client    {:.3} ms per transaction, {:.2} s",
            cpu.client_ms_per_transaction, cpu.client_seconds
        )
    }
}

/// "1 client", "4 clients".
fn counted(number: u64, what: &str) -> String {
    match (number, what.ends_with('s')) {
        (1, _) => format!("1 {what}"),
        (_, true) => format!("{number} {what}es"),
        (_, false) => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;
    use hdrhistogram::Histogram;

    use super::super::run::{KindTally, Tally};
    use super::*;
    use crate::tpcc::ledger::Made;

    fn measured() -> Measured {
        let kinds = [450, 430, 40, 40, 40].map(|count| {
            let mut times = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
            (1..=count).for_each(|n| times.record(n * 10).unwrap());
            KindTally { times, rolled_back: if count == 450 { 5 } else { 0 } }
        });
        let retries = BTreeMap::from([("40001".to_string(), 7), ("40P01".to_string(), 2)]);
        let errors = BTreeMap::from([("53200".to_string(), (3, "out of memory (SQLSTATE 53200)".to_string()))]);
        Measured {
            elapsed: Duration::from_secs(10),
            tally: Tally { kinds, retries, errors, made: Made::default() },
            server_cpu: Ok((Duration::from_millis(1460), 9)),
            client_cpu: Duration::from_millis(250),
        }
    }

    fn report(run: Option<Run>) -> Report {
        let verdict = |clause, says, found: Option<&str>| Verdict {
            clause,
            says,
            holds: found.is_none(),
            found: found.map(str::to_string),
        };
        Report {
            experiment: "tpcc",
            settings: Settings {
                target: "postgres://postgres@127.0.0.1:5432/postgres".into(),
                warehouses: 2,
                clients: 4,
                warmup_seconds: 5.0,
                duration_seconds: 10.0,
                isolation: "read committed".into(),
                think: false,
                foreign_keys: Some(true),
                seed: 42,
            },
            server: Server {
                protocol_version: "15.1".into(),
                version: None,
                settings: BTreeMap::from([("fsync", "on".to_string())]),
            },
            host: Host { cpus: 2, kernel: "6.1".into() },
            load: Some(LoadReport { rows: 1_099_699, copy_seconds: 2.5, index_seconds: 1.0, refused: Vec::new() }),
            run,
            consistency: vec![
                verdict("3.3.2.1", "W_YTD = sum(D_YTD)", None),
                verdict("3.3.2.12", "C_BALANCE + C_YTD_PAYMENT = x", Some("1 rows break it, as (w_id) = (1)")),
            ],
            notes: vec!["A note."],
        }
    }

    #[test]
    fn the_text_says_everything() {
        expect![[r#"
            TPC-C on postgres://postgres@127.0.0.1:5432/postgres
            server        15.1
                          fsync=on
            settings      2 warehouses, 4 clients, 10 s after 5 s of warm-up, read committed, no think times, foreign keys, seed 42
            host          2 CPUs, kernel 6.1
            load          1,099,699 rows in 2.5 s (439,880 rows/s), indexes and statistics 1.0 s

            NOPM          2,700 (derived from TPC-C, unaudited)
            transactions  100/s (1,000 in 10.0 s)

            response time, ms     count  share       p50       p90       p95       p99       max
              New-Order             450  45.0%      2.25      4.05      4.28      4.46      4.50
              Payment               430  43.0%      2.15      3.87      4.09      4.26      4.30
              Order-Status           40   4.0%      0.20      0.36      0.38      0.40      0.40
              Delivery               40   4.0%      0.20      0.36      0.38      0.40      0.40
              Stock-Level            40   4.0%      0.20      0.36      0.38      0.40      0.40

            rolled back   5 new orders for an invalid item, as the specification wants
            retries       40001: 7, 40P01: 2
            errors        53200: 3 (first: out of memory (SQLSTATE 53200))
            CPU server    1.460 ms per transaction, 1.46 s in 9 processes, 18,493 NOPM per core
            CPU client    0.250 ms per transaction, 0.25 s

            consistency   1 of 2 conditions hold
              3.3.2.1   holds  W_YTD = sum(D_YTD)
              3.3.2.12  BROKEN C_BALANCE + C_YTD_PAYMENT = x
                               1 rows break it, as (w_id) = (1)
            note          A note.
        "#]]
        .assert_eq(&report(Some(Run::new(measured()))).to_string());
    }

    #[test]
    fn an_unknown_server_says_why() {
        let run = Run::new(Measured { server_cpu: Err("the server is on another machine".into()), ..measured() });
        assert!(run.to_string().contains("CPU server    unknown: the server is on another machine\n"));
    }

    #[test]
    fn json_has_the_same_figures() {
        let json = serde_json::to_value(report(Some(Run::new(measured())))).unwrap();
        assert_eq!(json["run"]["nopm"], 2700.0);
        assert_eq!(json["run"]["nopm_label"], LABEL);
        assert_eq!(json["run"]["kinds"][1]["kind"], "payment");
        assert_eq!(json["run"]["retries"]["40P01"], 2);
        assert_eq!(json["run"]["errors"]["53200"]["count"], 3);
        assert_eq!(json["run"]["cpu"]["server_ms_per_transaction"], 1.46);
        assert_eq!(json["settings"]["seed"], 42);
        assert_eq!(json["consistency"][1]["holds"], false);
    }

    #[test]
    fn a_run_is_good_if_it_ran_and_nothing_is_broken() {
        let broken = report(Some(Run::new(measured())));
        assert!(!broken.is_good());
        let good = Report { consistency: broken.consistency[..1].to_vec(), ..broken };
        assert!(good.is_good());
        let mut idle = good.clone();
        idle.run.as_mut().unwrap().transactions = 0;
        assert!(!idle.is_good());
    }

    #[test]
    fn counts_and_digits_are_readable() {
        assert_eq!(
            counted(1, "process") + &counted(2, "process") + &counted(0, "client"),
            "1 process2 processes0 clients"
        );
    }
}
