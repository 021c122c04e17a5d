//! Point reads beside heavy statements: whether one client's statement delays those of the others.
//!
//! For each kind of heavy statement, one connection executes it repeatedly until `statement_timeout` cancels it, while others read single
//! rows by key. The report has the response times of the reads, with and without the heavy statement.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;

use crate::client::{Connection, Failure, Param};
use crate::experiments::Refusal;
use crate::rng::Rng;
use crate::servers::{Product, Scratch, Server};
use crate::target::Target;

/// Options of `bench fair`.
#[derive(Args, Clone, Debug)]
pub struct FairArgs {
    /// Servers that are started, measured in turns.
    #[arg(long, value_delimiter = ',', default_values = ["postgres", "nyala"])]
    servers: Vec<Product>,
    /// Runs of each kind; medians count.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Seconds of a run.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    seconds: u16,
    /// Clients that read.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    readers: u16,
    /// Rows of the table, which the larger of the heavy statements go through.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..))]
    rows: u32,
    /// Only the kinds whose names have this in them.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Where data directories are made, and removed at the end.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Source of the keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A statement that takes long.
struct HeavyStatement {
    name: &'static str,
    text: fn() -> String,
}

/// The kinds. The first is none.
const KINDS: &[HeavyStatement] = &[
    HeavyStatement { name: "nothing", text: String::new },
    HeavyStatement { name: "regular expression", text: || matching(r"(a+)b\1a\1c") },
    HeavyStatement { name: "regular expression, linear", text: || matching("(a|aa)*(b|c)a*d") },
    HeavyStatement {
        name: "string_agg ordered",
        text: || "SELECT length(string_agg(v, ',' ORDER BY v DESC, id)) FROM fair".into(),
    },
    HeavyStatement {
        name: "percentile",
        text: || "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id::bigint * 7919 % 1000003) FROM fair".into(),
    },
    HeavyStatement { name: "json_agg", text: || "SELECT length(json_agg(v)::text) FROM fair".into() },
    HeavyStatement {
        name: "sort",
        text: || "SELECT count(*) FROM (SELECT v, row_number() OVER (ORDER BY v DESC) FROM fair) x".into(),
    },
    HeavyStatement { name: "hash join", text: || "SELECT count(*) FROM fair a JOIN fair b ON a.id = b.id + 1".into() },
    HeavyStatement { name: "replace", text: || "SELECT length(replace(repeat('ab', 10000000), 'a', 'xy'))".into() },
    HeavyStatement { name: "sha256", text: || "SELECT sha256(convert_to(repeat('x', 60000000), 'UTF8'))".into() },
    HeavyStatement {
        name: "numeric product",
        text: || "SELECT length((repeat('7', 60000)::numeric * repeat('3', 60000)::numeric)::text)".into(),
    },
    HeavyStatement {
        name: "arrays",
        text: || {
            "SELECT (SELECT array_agg(i) FROM generate_series(1, 100000) i) <@ (SELECT array_agg(i) FROM generate_series(100000, 1, -1) i)".into()
        },
    },
    HeavyStatement {
        name: "string_to_array",
        text: || "SELECT cardinality(string_to_array(repeat('ab,', 5000000), ','))".into(),
    },
    HeavyStatement { name: "a text of ORs", text: ors },
    HeavyStatement { name: "views over views", text: || "SELECT c0 FROM fair_v29 ORDER BY c7 LIMIT 1".into() },
    HeavyStatement { name: "joined views", text: joined },
    HeavyStatement { name: "an error of 50 MB", text: || "SELECT repeat('x', 50000000)::integer".into() },
    HeavyStatement { name: "a text of 100 MB", text: || format!("SELECT length('{}')", "x".repeat(100_000_000)) },
    HeavyStatement { name: "the catalog", text: || "SELECT count(*) FROM information_schema.columns".into() },
    HeavyStatement { name: "VALUES", text: values },
    HeavyStatement { name: "a list", text: list },
    HeavyStatement {
        name: "an index",
        text: || "DROP INDEX IF EXISTS fair_i; CREATE INDEX fair_i ON fair_w (v)".into(),
    },
    HeavyStatement {
        name: "rewritten rows",
        text: || {
            "ALTER TABLE fair_w ALTER v TYPE text USING reverse(v); ALTER TABLE fair_w ALTER id TYPE bigint USING id"
                .into()
        },
    },
    HeavyStatement { name: "changed rows", text: || "UPDATE fair_w SET v = reverse(v)".into() },
];

/// Columns of the widest table, and views over it.
const WIDE: usize = 1600;
const VIEWS: usize = 30;

fn joined() -> String {
    // PostgreSQL joins 32,767 columns at most.
    let names: Vec<String> = (0..VIEWS.min(32_767 / WIDE)).map(|n| format!("fair_w{n}")).collect();
    format!("SELECT fair_w0.c0 FROM {} LIMIT 1", names.join(" CROSS JOIN "))
}

fn values() -> String {
    let rows: Vec<String> = (0..200_000).map(|n| format!("({n}, 'a{n}')")).collect();
    format!("SELECT count(*) FROM (VALUES {}) v", rows.join(", "))
}

fn list() -> String {
    let numbers: Vec<String> = (0..300_000).map(|n| (2 * n).to_string()).collect();
    format!("SELECT count(*) FROM fair WHERE id IN ({})", numbers.join(", "))
}

fn matching(pattern: &str) -> String {
    // The second run of letters is no repetition of the first one and one more.
    format!("SELECT repeat('a', 100000) || 'b' || repeat('a', 60000) || 'c' ~ '{pattern}'")
}

fn ors() -> String {
    let tests: Vec<String> = (0..150_000).map(|n| format!("id = {n}")).collect();
    format!("SELECT count(*) FROM fair WHERE id < 0 AND ({})", tests.join(" OR "))
}

/// Response times of a run, in microseconds.
struct Times {
    reads: u64,
    p50: u64,
    p99: u64,
    max: u64,
    /// Heavy statements that ran to their end, and those that were stopped.
    heavy: (u64, u64),
}

fn prepare(target: &Target, rows: u32) -> Result<(), Failure> {
    let mut connection = Connection::open(target)?;
    connection.query("CREATE TABLE fair (id integer PRIMARY KEY, v text NOT NULL)")?;
    connection.query(&format!("INSERT INTO fair SELECT i, md5(i::text) FROM generate_series(1, {rows}) i"))?;
    connection.query("ANALYZE fair")?;
    connection.query("CREATE TABLE fair_w AS SELECT * FROM fair")?;
    let columns: Vec<String> = (0..WIDE).map(|n| format!("c{n} integer")).collect();
    connection.query(&format!("CREATE TABLE fair_wide ({})", columns.join(", ")))?;
    for n in 0..VIEWS {
        let below = if n == 0 { "fair_wide".to_string() } else { format!("fair_v{}", n - 1) };
        connection.query(&format!("CREATE VIEW fair_v{n} AS SELECT * FROM {below}"))?;
        connection.query(&format!("CREATE VIEW fair_w{n} AS SELECT * FROM fair_wide"))?;
    }
    Ok(())
}

/// Runs the statement until the time is over; how often to its end, and how often it was stopped.
fn heavy(target: &Target, text: &str, seconds: u16, over: &AtomicBool) -> Result<(u64, u64), Failure> {
    let mut counts = (0, 0);
    if text.is_empty() {
        return Ok(counts);
    }
    let mut connection = Connection::open(target)?;
    connection.query(&format!("SET statement_timeout = '{seconds}s'"))?;
    while !over.load(Ordering::Relaxed) {
        match connection.query(text) {
            Ok(()) => counts.0 += 1,
            Err(Failure::Server { state, .. }) if &state == b"57014" => counts.1 += 1,
            // What is told of a long text takes long as well.
            Err(Failure::Server { state, .. }) if &state == b"22P02" => counts.0 += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(counts)
}

fn read(target: &Target, args: &FairArgs, number: u16, over: &AtomicBool) -> Result<Histogram<u64>, Failure> {
    let mut times = Histogram::new(3).map_err(|error| Failure::Lost(error.to_string()))?;
    let mut rng = Rng::new(args.seed, number.into());
    let mut connection = Connection::open(target)?;
    connection.prepare(&["SELECT v FROM fair WHERE id = $1".to_string()])?;
    while !over.load(Ordering::Relaxed) {
        let key = rng.uniform(1, args.rows.into());
        let began = Instant::now();
        connection.call(0, &[Param::Int(key)])?;
        let micros = began.elapsed().as_micros() as u64;
        times.record(micros).map_err(|error| Failure::Lost(error.to_string()))?;
        // As an application does something with what it has read.
        thread::sleep(Duration::from_micros(500));
    }
    Ok(times)
}

fn measure(target: &Target, kind: &HeavyStatement, args: &FairArgs) -> Result<Times, Failure> {
    let text = (kind.text)();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let stopper = scope.spawn(|| heavy(target, &text, args.seconds, &over));
        // The statement is under way when the reads begin.
        thread::sleep(Duration::from_millis(200));
        let readers: Vec<_> = (0..args.readers)
            .map(|number| {
                let over = &over;
                scope.spawn(move || read(target, args, number, over))
            })
            .collect();
        thread::sleep(Duration::from_secs(args.seconds.into()));
        over.store(true, Ordering::Relaxed);
        let lost = || Failure::Lost("a client has panicked".into());
        let mut all = Histogram::new(3).map_err(|error| Failure::Lost(error.to_string()))?;
        for reader in readers {
            let times: Histogram<u64> = reader.join().map_err(|_| lost())??;
            all.add(times).map_err(|error| Failure::Lost(error.to_string()))?;
        }
        let heavy = stopper.join().map_err(|_| lost())??;
        Ok(Times {
            reads: all.len(),
            p50: all.value_at_quantile(0.5),
            p99: all.value_at_quantile(0.99),
            max: all.max(),
            heavy,
        })
    })
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn run(args: &FairArgs) -> Result<(), Refusal> {
    let scratch = Scratch::new(args.dir.as_deref())?;
    let nyala = std::env::current_exe().map_err(|error| Refusal::Output(error.to_string()))?;
    let servers = args.servers.iter().map(|product| Server::start(*product, &nyala, scratch.path()));
    let servers = servers.collect::<Result<Vec<Server>, Refusal>>()?;
    for server in &servers {
        prepare(server.target(), args.rows)?;
    }
    println!(
        "| beside | server | reads | p50 ms | p99 ms | max ms | heavy: done, stopped |\n|---|---|---|---|---|---|---|"
    );
    let wanted = |kind: &&HeavyStatement| args.only.as_ref().is_none_or(|text| kind.name.contains(text.as_str()));
    for kind in KINDS.iter().filter(wanted) {
        let mut runs: Vec<Vec<Times>> = servers.iter().map(|_| Vec::new()).collect();
        for _ in 0..args.rounds {
            for (server, runs) in servers.iter().zip(&mut runs) {
                runs.push(measure(server.target(), kind, args)?);
            }
        }
        for (server, runs) in servers.iter().zip(&runs) {
            let millis = |of: fn(&Times) -> u64| median(runs.iter().map(of)) as f64 / 1000.0;
            println!(
                "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {}, {} |",
                kind.name,
                server.product().label(),
                median(runs.iter().map(|times| times.reads)),
                millis(|times| times.p50),
                millis(|times| times.p99),
                millis(|times| times.max),
                runs.iter().map(|times| times.heavy.0).sum::<u64>(),
                runs.iter().map(|times| times.heavy.1).sum::<u64>(),
            );
        }
    }
    Ok(())
}

/// `nyala bench fair`
pub fn main(args: FairArgs) -> ExitCode {
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
