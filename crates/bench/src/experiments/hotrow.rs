//! One contended row: clients add one to a counter, each addition a durable transaction of its own, or several in one
//! round trip. The latency of a commit bounds the rate, unless a server lets the next writer see the row before the last commit is
//! durable.

use std::collections::BTreeMap;
use std::time::Instant;

use clap::Args;

use crate::client::Param::Int;
use crate::client::{AsyncConnection, Connection, Failure, push_int};
use crate::drive::{Done, Worker};
use crate::expected::Expected;
use crate::experiments::{At, Experiment, Lab, Refusal, measure};
use crate::options::Common;
use crate::result::{Load, Point, Verdict};
use crate::rng::Rng;
use crate::schema;
use crate::target::Dialect;

const TABLE: &str = "hotrow_counter";

/// Options of `bench hotrow`.
#[derive(Args, Clone, Debug)]
pub struct HotrowArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Counters; each addition takes any of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    counters: u32,
    /// Additions that a client sends in one round trip. PostgreSQL's protocol makes one transaction of them, MySQL's has
    /// no such thing: there it is as many round trips.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pipelined: u16,
}

/// The experiment.
pub struct Hotrow {
    args: HotrowArgs,
    sum: Expected,
}

impl Hotrow {
    /// With these options.
    pub fn new(args: HotrowArgs) -> Hotrow {
        Hotrow { args, sum: Expected::default() }
    }
}

fn sum(connection: &mut Connection) -> Result<i64, Failure> {
    schema::int(connection, &format!("SELECT sum(value) FROM {TABLE}"))
}

impl Experiment for Hotrow {
    fn name(&self) -> &'static str {
        "hotrow"
    }

    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("counters".to_string(), self.args.counters.to_string()),
            ("pipelined".into(), self.args.pipelined.to_string()),
        ])
    }

    fn is_loaded(&self, lab: &mut Lab) -> Result<bool, Refusal> {
        let found = schema::int_if_there(&mut lab.connect()?, &format!("SELECT count(*) FROM {TABLE}"))?;
        schema::fits("counters", found, self.args.counters.into(), "--counters")
    }

    fn load(&mut self, lab: &mut Lab) -> Result<Load, Refusal> {
        self.drop_tables(lab)?;
        let (mut connection, started) = (lab.connect()?, Instant::now());
        let table = format!("{TABLE} (id integer NOT NULL PRIMARY KEY, value bigint NOT NULL)");
        schema::create(lab, &mut connection, &table)?;
        let rows = u64::from(self.args.counters);
        schema::fill(lab, &mut connection, &format!("{TABLE} (id, value)"), rows, |number, out| {
            push_int(out, number as i64);
            out.extend_from_slice(b"\t0\n");
        })?;
        Ok(schema::loaded(lab, &mut connection, &[TABLE], rows, started)?)
    }

    fn drop_tables(&self, lab: &mut Lab) -> Result<(), Refusal> {
        Ok(schema::drop_all(&mut lab.connect()?, &[TABLE])?)
    }

    fn point(&mut self, lab: &mut Lab, at: &At) -> Result<(Point, Option<String>), Refusal> {
        self.sum.begin(|| sum(&mut lab.connect()?))?;
        let each = u64::from(self.args.pipelined);
        let statements = [format!("UPDATE {TABLE} SET value = value + 1 WHERE id = $1")];
        let clients = (0..at.threads).map(|number| Client {
            counters: i64::from(self.args.counters),
            rng: at.rng(lab.seed, number),
            keys: vec![1; usize::from(self.args.pipelined)],
            is_atomic: each == 1 || lab.target.dialect == Dialect::Postgres,
            torn: 0,
        });
        let clients = clients.collect();
        let (mut point, measured) = measure(lab, at, &["update"], &statements, clients)?;
        let torn: u64 = measured.workers.iter().map(|client| client.torn).sum();
        self.sum.add(measured.tally.acknowledged * each, (measured.tally.unknown + torn) * each);
        point.figures.insert("updates_per_second".into(), point.rows_per_second);
        Ok((point, measured.ended))
    }

    fn verify(&mut self, lab: &mut Lab) -> Result<Vec<Verdict>, Refusal> {
        let mut connection = lab.connect()?;
        let count = schema::int(&mut connection, &format!("SELECT count(*) FROM {TABLE}"))?;
        let counters = i64::from(self.args.counters);
        Ok(vec![
            Verdict {
                says: "every counter is there".into(),
                holds: count == counters,
                found: format!("{count} of {counters}"),
            },
            self.sum.verdict("the counters have every acknowledged addition, and no other", sum(&mut connection)?),
        ])
    }
}

struct Client {
    counters: i64,
    rng: Rng,
    /// Of the next round trip, rising, so that two clients do not wait for each other.
    keys: Vec<i64>,
    /// Whether a round trip that failed has added nothing.
    is_atomic: bool,
    /// Round trips of which a part may have been done.
    torn: u64,
}

impl Worker for Client {
    fn draw(&mut self) -> Option<usize> {
        if self.counters > 1 {
            self.keys.iter_mut().for_each(|key| *key = self.rng.uniform(1, self.counters));
            self.keys.sort_unstable();
        }
        Some(0)
    }

    async fn run(&mut self, connection: &mut AsyncConnection) -> Result<Done, Failure> {
        self.keys.iter().for_each(|&key| connection.bind(0, &[Int(key)]));
        let ran = connection.run().await;
        // A lost connection is counted by who lost it.
        self.torn += u64::from(!self.is_atomic && matches!(ran, Err(Failure::Server { .. })));
        ran.map(|()| Done::new(self.keys.len() as u64, self.keys.len() as u64))
    }
}
