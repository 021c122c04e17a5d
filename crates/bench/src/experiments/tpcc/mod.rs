//! TPC-C (revision 5.11) over interactive SQL: its tables, its population, its five transactions, its mix, and its
//! twelve consistency conditions. These hold also where a whole transaction is missing, so what clients were told is counted, too
//! ([`ledger`]).
//!
//! A run: tables are loaded if they are not there ([`load`]), clients run the mix ([`terminal`]), the conditions are checked
//! ([`check`]). What a client sends and in how many round trips is in [`transactions`]. The results are derived from TPC-C and unaudited: without `--think` clients do not wait,
//! warehouses need not be ten times fewer than clients, and deliveries are not deferred.

pub mod check;
pub mod ledger;
pub mod load;
pub mod mix;
pub mod random;
pub mod schema;
pub mod terminal;
pub mod transactions;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use crate::client::Failure;
use crate::experiments::{self, At, Experiment, Lab, Refusal, Session, Task, measure};
use crate::options::Common;
use crate::result::{Load, Point, Verdict};
use crate::rng::Rng;
use crate::schema::drop_all;
use crate::table;
use ledger::{Counts, Made};
use mix::TransactionKind;
use random::Constants;
use terminal::{Client, Shared};

/// Warehouses of a load that names no number.
const WAREHOUSES: i64 = 4;
/// Clients for each warehouse where they wait as people do.
const TERMINALS: usize = 10;

/// What the rate of New-Orders is.
const NOPM: &str = "NOPM (derived from TPC-C, unaudited)";

const NOTES: [&str; 2] = [
    "Delivery runs as an ordinary transaction at once, not from a deferred queue.",
    "3.3.2.11 counts deliveries since the load (C_DELIVERY_CNT), so that it can be checked at any time.",
];

/// Options of `bench tpcc`.
#[derive(Args, Clone, Debug)]
pub struct TpccArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Warehouses, about 100 MB each [default: those in the database, or 4].
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    warehouses: Option<i64>,
    /// Check the consistency of what is there and stop.
    #[arg(long, conflicts_with_all = ["load", "drop"])]
    check_only: bool,
    /// Add foreign keys when loading.
    #[arg(long)]
    foreign_keys: bool,
    /// Connections of a load [default: one per CPU].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    load_connections: Option<u16>,
    /// Isolation level of every transaction.
    #[arg(long, value_enum, default_value_t = Isolation::ReadCommitted)]
    isolation: Isolation,
    /// Wait as people do who fill in forms and read answers (clause 5.2.5.7); clients are then ten per warehouse.
    #[arg(long)]
    think: bool,
    /// Send statements together where one does not need another's rows: another experiment than the interactive one.
    #[arg(long)]
    pipelined: bool,
}

/// Isolation levels under which the specification's conditions must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Isolation {
    /// A statement sees what was committed before it.
    ReadCommitted,
    /// A transaction sees what was committed before it.
    RepeatableRead,
    /// Transactions are as if they had run one after the other.
    Serializable,
}

impl Isolation {
    /// Its name in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        }
    }
}

/// Runs the experiment and prints its result. Fails if the data is inconsistent afterwards, or if nothing could run.
pub fn main(args: TpccArgs) -> ExitCode {
    let (only, task) = (args.check_only, Task::new(args.common.clone(), Tpcc::new(args)));
    if !only {
        return experiments::main(task);
    }
    match check_only(task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(refusal) => {
            eprintln!("tpcc: {refusal}");
            ExitCode::FAILURE
        }
    }
}

/// Checks what is there, and prints what was found.
fn check_only(task: Task) -> Result<bool, Refusal> {
    let mut session = Session::open(task)?;
    session.lab.common.no_load = true;
    session.prepare()?;
    session.end()?;
    print!("{}", table::tail(&session.run));
    Ok(session.run.is_good())
}

/// The experiment.
pub struct Tpcc {
    args: TpccArgs,
    /// In the database, once that is known.
    warehouses: i64,
    /// What a load could not do on this server.
    refused: Vec<String>,
    /// What the tables had before the first point, and what the clients of all points were told.
    before: Option<Counts>,
    made: Made,
}

impl Tpcc {
    /// With these options.
    pub fn new(args: TpccArgs) -> Tpcc {
        let (refused, before, made) = (Vec::new(), None, Made::default());
        Tpcc { warehouses: args.warehouses.unwrap_or(WAREHOUSES), args, refused, before, made }
    }
}

impl Experiment for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let args = &self.args;
        BTreeMap::from([
            ("warehouses".to_string(), args.warehouses.map_or("as loaded".into(), |count| count.to_string())),
            ("isolation".into(), args.isolation.sql().to_lowercase()),
            ("think".into(), args.think.to_string()),
            ("pipelined".into(), args.pipelined.to_string()),
            ("foreign_keys".into(), args.foreign_keys.to_string()),
        ])
    }

    fn variants(&self) -> Vec<String> {
        // Nothing is measured in no time: the tables are loaded and checked.
        if self.args.common.duration.is_zero() {
            return Vec::new();
        }
        vec![if self.args.pipelined { "pipelined".into() } else { "interactive".into() }]
    }

    fn threads(&self, common: &Common) -> Vec<usize> {
        let wanted = if self.args.think { self.warehouses as usize * TERMINALS } else { 8 };
        common.threads.as_ref().map_or(vec![wanted], |list| list.0.clone())
    }

    fn always_verifies(&self) -> bool {
        true
    }

    fn is_loaded(&self, lab: &mut Lab) -> Result<bool, Refusal> {
        // No warehouse in the table is a load that was cut short.
        let Some(count) = schema::loaded(&mut lab.connect()?)?.filter(|&count| count > 0) else { return Ok(false) };
        if let Some(wanted) = self.args.warehouses.filter(|&wanted| wanted != count) {
            let advice = "leave out --warehouses to use them, or --load to replace them";
            return Err(Refusal::Options(format!("the tables have {count} warehouses, not {wanted}: {advice}")));
        }
        Ok(true)
    }

    fn load(&mut self, lab: &mut Lab) -> Result<Load, Refusal> {
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
        let load = load::Load {
            target: &lab.target,
            warehouses: self.warehouses,
            connections: self.args.load_connections.map_or(cpus, usize::from),
            seed: lab.seed,
            foreign_keys: self.args.foreign_keys,
        };
        let loaded = load::load(&load, &mut lab.progress)?;
        self.refused = loaded.refused;
        Ok(Load { rows: loaded.rows, rows_seconds: loaded.copy_seconds, index_seconds: loaded.index_seconds })
    }

    fn drop_tables(&self, lab: &mut Lab) -> Result<(), Refusal> {
        Ok(drop_all(&mut lab.connect()?, &schema::TABLES)?)
    }

    fn point(&mut self, lab: &mut Lab, at: &At) -> Result<(Point, Option<String>), Refusal> {
        self.warehouses = schema::loaded(&mut lab.connect()?)?.unwrap_or(0).max(1);
        if self.before.is_none() {
            self.before = Some(Counts::read(&mut lab.connect()?)?);
        }
        let shared = Arc::new(Shared {
            clients: at.threads,
            warehouses: self.warehouses,
            think: self.args.think,
            pipelined: self.args.pipelined,
            constants: Constants::run(&mut Rng::new(lab.seed, 0)),
        });
        let client = |number| Client::new(&shared, number, at.rng(lab.seed, number));
        let clients = (0..at.threads).map(client).collect();
        let statements = transactions::statements(self.args.isolation.sql());
        let kinds = TransactionKind::ALL.map(TransactionKind::name);
        let (mut point, measured) = measure(lab, at, &kinds, &statements, clients)?;
        measured.workers.iter().for_each(|client| self.made.add(&client.made));
        let new_orders = point.kinds[TransactionKind::NewOrder as usize].count as f64;
        point.figures.insert(NOPM.into(), new_orders * 60.0 / point.seconds);
        let mut per_core = |name: &str, seconds: Option<f64>| {
            if let Some(seconds) = seconds.filter(|&seconds| seconds > 0.0) {
                point.figures.insert(name.into(), new_orders * 60.0 / seconds);
            }
        };
        per_core("NOPM per server CPU core", measured.usage.server_seconds());
        per_core("NOPM per client CPU core", Some(measured.usage.client_seconds));
        Ok((point, measured.ended))
    }

    fn verify(&mut self, lab: &mut Lab) -> Result<Vec<Verdict>, Refusal> {
        let mut connection = lab.connect()?;
        let progress = &mut lab.progress;
        let mut verdicts = check::check(&mut connection, |clause| progress.show(|| format!("checking {clause}")))?;
        if let Some(before) = &self.before {
            let after = match Counts::read(&mut connection) {
                Err(lost @ Failure::Lost(_)) => return Err(lost.into()),
                after => after,
            };
            verdicts.extend(ledger::verdicts(before, after, &self.made));
        }
        progress.clear();
        Ok(verdicts)
    }

    fn notes(&self) -> Vec<String> {
        let refused = self.refused.iter().map(|why| format!("the load went on without: {why}"));
        NOTES.iter().map(|note| note.to_string()).chain(refused).collect()
    }
}
