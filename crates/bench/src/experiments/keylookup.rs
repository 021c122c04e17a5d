//! Lookups of many rows by an IN list of their keys, as a feature store asks: how many a server answers while 95 of
//! 100 answers come within a limit.
//!
//! Every answer is counted and its keys are summed: one with another row than those asked for, or without one of them, fails the run.

use std::collections::BTreeMap;
use std::time::Instant;

use clap::Args;

use crate::client::Param::{self, Int};
use crate::client::{AsyncConnection, Failure, push_int};
use crate::drive::{Done, Worker};
use crate::experiments::{At, Experiment, Lab, Refusal, measure};
use crate::options::Common;
use crate::result::{Load, Point, Verdict};
use crate::rng::Rng;
use crate::schema;
use crate::table::grouped;

const TABLE: &str = "keylookup_row";
const TEXT_BYTES: usize = 100;

/// Options of `bench keylookup`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("threads", |arg| arg.default_value("1;2;4;8;16;32;64")))]
pub struct KeylookupArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Rows of the table.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1000..=2_000_000_000))]
    rows: u32,
    /// Different keys of a lookup.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    keys: u16,
    /// Milliseconds within which 95 of 100 answers must come.
    #[arg(long, value_name = "MS", default_value_t = 1.5)]
    limit_ms: f64,
}

/// The point with the most keys per second of those within the limit.
struct Best {
    keys_per_second: f64,
    threads: usize,
    p95_ms: f64,
}

/// The experiment.
pub struct Keylookup {
    args: KeylookupArgs,
    best: Option<Best>,
    /// Answers that were right.
    right: u64,
}

impl Keylookup {
    /// With these options.
    pub fn new(args: KeylookupArgs) -> Keylookup {
        Keylookup { args, best: None, right: 0 }
    }

    /// Notes what a point has shown.
    fn rate(&mut self, point: &mut Point) {
        let (rate, p95) = (point.rows_per_second, point.latency.p95_ms);
        let better = self.best.as_ref().is_none_or(|best| rate > best.keys_per_second);
        if point.transactions > 0 && p95 <= self.args.limit_ms && better {
            self.best = Some(Best { keys_per_second: rate, threads: point.threads, p95_ms: p95 });
        }
        point.figures.insert("keys_per_second".into(), rate);
        point.figures.insert("best_within_limit".into(), self.best.as_ref().map_or(0.0, |best| best.keys_per_second));
    }
}

impl Experiment for Keylookup {
    fn name(&self) -> &'static str {
        "keylookup"
    }

    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("rows".to_string(), self.args.rows.to_string()),
            ("keys".into(), self.args.keys.to_string()),
            ("limit".into(), format!("p95 {} ms", self.args.limit_ms)),
        ])
    }

    fn is_loaded(&self, lab: &mut Lab) -> Result<bool, Refusal> {
        let found = schema::int_if_there(&mut lab.connect()?, &format!("SELECT count(*) FROM {TABLE}"))?;
        schema::fits("rows", found, self.args.rows.into(), "--rows")
    }

    fn load(&mut self, lab: &mut Lab) -> Result<Load, Refusal> {
        self.drop_tables(lab)?;
        let (mut connection, started, rows) = (lab.connect()?, Instant::now(), u64::from(self.args.rows));
        let columns = format!("id integer NOT NULL PRIMARY KEY, payload varchar({TEXT_BYTES}) NOT NULL");
        schema::create(lab, &mut connection, &format!("{TABLE} ({columns})"))?;
        let mut rng = Rng::new(lab.seed, 1 << 50);
        schema::fill(lab, &mut connection, &format!("{TABLE} (id, payload)"), rows, |number, out| {
            push_int(out, number as i64);
            out.push(b'\t');
            out.extend((0..TEXT_BYTES).map(|_| b'a' + rng.uniform(0, 25) as u8));
            out.push(b'\n');
        })?;
        Ok(schema::loaded(lab, &mut connection, &[TABLE], rows, started)?)
    }

    fn drop_tables(&self, lab: &mut Lab) -> Result<(), Refusal> {
        Ok(schema::drop_all(&mut lab.connect()?, &[TABLE])?)
    }

    fn point(&mut self, lab: &mut Lab, at: &At) -> Result<(Point, Option<String>), Refusal> {
        let places: Vec<String> = (1..=self.args.keys).map(|n| format!("${n}")).collect();
        let statements = [format!("SELECT id, payload FROM {TABLE} WHERE id IN ({})", places.join(","))];
        let clients = (0..at.threads).map(|number| Client {
            rows: i64::from(self.args.rows),
            count: usize::from(self.args.keys),
            rng: at.rng(lab.seed, number),
            keys: Vec::new(),
            right: 0,
            wrong: None,
        });
        let clients = clients.collect();
        let (mut point, measured) = measure(lab, at, &["lookup"], &statements, clients)?;
        self.rate(&mut point);
        self.right += measured.workers.iter().map(|client| client.right).sum::<u64>();
        let wrong = measured.workers.into_iter().find_map(|client| client.wrong);
        Ok((point, wrong.map(|wrong| format!("WRONG ANSWER: {wrong}")).or(measured.ended)))
    }

    fn verify(&mut self, _: &mut Lab) -> Result<Vec<Verdict>, Refusal> {
        Ok(vec![Verdict {
            says: "every answer had exactly the keys that were asked for".into(),
            // A run with another answer has ended before.
            holds: true,
            found: format!("{} answers with {} keys each", self.right, self.args.keys),
        }])
    }

    fn notes(&self) -> Vec<String> {
        let limit = self.args.limit_ms;
        vec![match &self.best {
            Some(Best { keys_per_second, threads, p95_ms }) => format!(
                "most keys per second with p95 within {limit} ms: {} with {threads} clients, p95 {p95_ms:.2} ms",
                grouped(*keys_per_second)
            ),
            None => format!("no number of clients had its p95 within {limit} ms"),
        }]
    }
}

struct Client {
    rows: i64,
    count: usize,
    rng: Rng,
    /// Of the next lookup, all different.
    keys: Vec<i64>,
    right: u64,
    /// The first wrong answer. This client has ended then.
    wrong: Option<String>,
}

impl Client {
    fn look(&self, connection: &AsyncConnection) -> Result<Option<String>, Failure> {
        let mut sum = 0;
        for at in 0..connection.row_count() {
            sum += connection.row(at).int(0)?;
        }
        let (found, right) = ((connection.row_count(), sum), (self.keys.len(), self.keys.iter().sum()));
        Ok((found != right)
            .then(|| format!("{} rows whose keys sum up to {}, not {} with {}", found.0, found.1, right.0, right.1)))
    }
}

impl Worker for Client {
    fn draw(&mut self) -> Option<usize> {
        self.keys.clear();
        while self.keys.len() < self.count {
            let missing = self.count - self.keys.len();
            self.keys.extend((0..missing).map(|_| self.rng.uniform(1, self.rows)));
            self.keys.sort_unstable();
            self.keys.dedup();
        }
        self.rng.shuffle(&mut self.keys);
        self.wrong.is_none().then_some(0)
    }

    async fn run(&mut self, connection: &mut AsyncConnection) -> Result<Done, Failure> {
        let params: Vec<Param<'_>> = self.keys.iter().map(|&key| Int(key)).collect();
        connection.call(0, &params).await?;
        self.wrong = self.look(connection)?;
        self.right += u64::from(self.wrong.is_none());
        Ok(Done::new(1, connection.row_count() as u64))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::result::Latency;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        args: KeylookupArgs,
    }

    #[test]
    fn the_best_is_the_fastest_within_the_limit() {
        let args = Options::parse_from(["keylookup"]).args;
        assert_eq!(args.common.threads.as_ref().unwrap().to_string(), "1;2;4;8;16;32;64");
        let mut experiment = Keylookup::new(args);
        assert!(experiment.notes()[0].starts_with("no number of clients"));
        let points = [(1, 100.0, 0.5, 100.0), (2, 200.0, 1.0, 200.0), (4, 150.0, 1.5, 200.0), (8, 300.0, 1.6, 200.0)];
        for (threads, rate, p95_ms, best) in points {
            let latency = Latency { p95_ms, ..Latency::default() };
            let mut point = Point { threads, rows_per_second: rate, transactions: 9, latency, ..Point::default() };
            experiment.rate(&mut point);
            assert_eq!(point.figures["best_within_limit"], best);
        }
        let note = "most keys per second with p95 within 1.5 ms: 200 with 2 clients, p95 1.00 ms";
        assert_eq!(experiment.notes(), [note]);
    }

    #[test]
    fn a_lookup_asks_for_different_keys() {
        let rng = Rng::new(1, 0);
        let mut client = Client { rows: 120, count: 100, rng, keys: Vec::new(), right: 0, wrong: None };
        client.draw();
        let keys: std::collections::BTreeSet<_> = client.keys.iter().collect();
        assert_eq!(keys.len(), 100);
    }
}
