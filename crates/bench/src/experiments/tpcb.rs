//! pgbench's transaction, the one it calls TPC-B (sort of): an account, its teller and its branch take an amount, and the history
//! a row. Branches are few, so clients meet there.

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

/// Of a branch, as pgbench has them.
const TELLERS: u64 = 10;
const ACCOUNTS: u64 = 100_000;
/// Largest amount either way.
const MOST: i64 = 5000;

const TABLES: [&str; 4] = ["tpcb_branches", "tpcb_tellers", "tpcb_accounts", "tpcb_history"];
const COLUMNS: [&str; 4] = [
    "bid integer NOT NULL PRIMARY KEY, bbalance bigint NOT NULL, filler char(88)",
    "tid integer NOT NULL PRIMARY KEY, bid integer NOT NULL, tbalance bigint NOT NULL, filler char(84)",
    "aid integer NOT NULL PRIMARY KEY, bid integer NOT NULL, abalance bigint NOT NULL, filler char(84)",
    "tid integer NOT NULL, bid integer NOT NULL, aid integer NOT NULL, delta integer NOT NULL, \
     mtime timestamp NOT NULL, filler char(22)",
];

const STATEMENTS: [&str; 7] = [
    "BEGIN",
    "UPDATE tpcb_accounts SET abalance = abalance + $1 WHERE aid = $2",
    "SELECT abalance FROM tpcb_accounts WHERE aid = $1",
    "UPDATE tpcb_tellers SET tbalance = tbalance + $1 WHERE tid = $2",
    "UPDATE tpcb_branches SET bbalance = bbalance + $1 WHERE bid = $2",
    "INSERT INTO tpcb_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
    "COMMIT",
];

/// Options of `bench tpcb`.
#[derive(Args, Clone, Debug)]
pub struct TpcbArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Branches, each with 10 tellers and 100,000 accounts.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=20_000))]
    scale: u16,
}

/// The experiment.
pub struct Tpcb {
    args: TpcbArgs,
    history: Expected,
}

impl Tpcb {
    /// With these options.
    pub fn new(args: TpcbArgs) -> Tpcb {
        Tpcb { args, history: Expected::default() }
    }
}

fn history(connection: &mut Connection) -> Result<i64, Failure> {
    schema::int(connection, "SELECT count(*) FROM tpcb_history")
}

impl Experiment for Tpcb {
    fn name(&self) -> &'static str {
        "tpcb"
    }

    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("scale".to_string(), self.args.scale.to_string())])
    }

    fn is_loaded(&self, lab: &mut Lab) -> Result<bool, Refusal> {
        let mut connection = lab.connect()?;
        // Accounts are loaded last.
        let greatest = schema::int_if_there(&mut connection, "SELECT coalesce(max(aid), 0) FROM tpcb_accounts")?;
        let whole = greatest.filter(|accounts| accounts % ACCOUNTS as i64 == 0);
        schema::fits("branches", whole.map(|accounts| accounts / ACCOUNTS as i64), self.args.scale.into(), "--scale")
    }

    fn load(&mut self, lab: &mut Lab) -> Result<Load, Refusal> {
        self.drop_tables(lab)?;
        let (mut connection, started) = (lab.connect()?, Instant::now());
        for (table, columns) in TABLES.iter().zip(COLUMNS) {
            schema::create(lab, &mut connection, &format!("{table} ({columns})"))?;
        }
        let scale = u64::from(self.args.scale);
        schema::fill(lab, &mut connection, "tpcb_branches (bid, bbalance)", scale, |number, out| {
            push_int(out, number as i64);
            out.extend_from_slice(b"\t0\n");
        })?;
        for (table, each) in
            [("tpcb_tellers (tid, bid, tbalance)", TELLERS), ("tpcb_accounts (aid, bid, abalance, filler)", ACCOUNTS)]
        {
            schema::fill(lab, &mut connection, table, scale * each, |number, out| {
                push_int(out, number as i64);
                out.push(b'\t');
                push_int(out, ((number - 1) / each + 1) as i64);
                // pgbench leaves the fillers of the small tables NULL; that of an account is blank.
                out.extend_from_slice(if each == ACCOUNTS { b"\t0\t\n" } else { b"\t0\n" });
            })?;
        }
        Ok(schema::loaded(lab, &mut connection, &TABLES, scale * (1 + TELLERS + ACCOUNTS), started)?)
    }

    fn drop_tables(&self, lab: &mut Lab) -> Result<(), Refusal> {
        Ok(schema::drop_all(&mut lab.connect()?, &TABLES)?)
    }

    fn point(&mut self, lab: &mut Lab, at: &At) -> Result<(Point, Option<String>), Refusal> {
        self.history.begin(|| history(&mut lab.connect()?))?;
        let clients = (0..at.threads).map(|number| Client {
            scale: i64::from(self.args.scale),
            rng: at.rng(lab.seed, number),
            present: Input::default(),
        });
        let (clients, statements) = (clients.collect(), STATEMENTS.map(String::from));
        let (point, measured) = measure(lab, at, &["transaction"], &statements, clients)?;
        self.history.add(measured.tally.acknowledged, measured.tally.unknown);
        Ok((point, measured.ended))
    }

    fn verify(&mut self, lab: &mut Lab) -> Result<Vec<Verdict>, Refusal> {
        let mut connection = lab.connect()?;
        let mut sums = Vec::new();
        for (table, column) in TABLES.iter().zip(["bbalance", "tbalance", "abalance", "delta"]) {
            sums.push(schema::int(&mut connection, &format!("SELECT coalesce(sum({column}), 0) FROM {table}"))?);
        }
        Ok(vec![
            Verdict {
                says: "branches, tellers, accounts and history have one sum".into(),
                holds: sums.iter().all(|sum| *sum == sums[0]),
                found: sums.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
            },
            self.history
                .verdict("the history has every acknowledged transaction, and no other", history(&mut connection)?),
        ])
    }
}

#[derive(Clone, Copy, Default)]
struct Input {
    branch: i64,
    teller: i64,
    account: i64,
    delta: i64,
}

struct Client {
    scale: i64,
    rng: Rng,
    present: Input,
}

impl Worker for Client {
    fn draw(&mut self) -> Option<usize> {
        let mut any = |each: u64| self.rng.uniform(1, self.scale * each as i64);
        let (account, branch, teller) = (any(ACCOUNTS), any(1), any(TELLERS));
        self.present = Input { branch, teller, account, delta: self.rng.uniform(-MOST, MOST) };
        Some(0)
    }

    async fn run(&mut self, connection: &mut AsyncConnection) -> Result<Done, Failure> {
        let Input { branch, teller, account, delta } = self.present;
        let inputs: [&[_]; 7] = [
            &[],
            &[Int(delta), Int(account)],
            &[Int(account)],
            &[Int(delta), Int(teller)],
            &[Int(delta), Int(branch)],
            &[Int(teller), Int(branch), Int(account), Int(delta)],
            &[],
        ];
        for (id, input) in inputs.into_iter().enumerate() {
            connection.call(id, input).await?;
        }
        Ok(Done::new(7, 5))
    }
}
