//! A bank: transfers between two accounts, each with its row in a journal, and readers that sum all balances under this load. The sum
//! never changes, at no isolation level: a statement sees a state that was committed as a whole.

mod check;
mod transfer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::client::push_int;
use crate::expected::Expected;
use crate::experiments::tpcc::Isolation;
use crate::experiments::{At, Experiment, Lab, Refusal, measure};
use crate::options::Common;
use crate::result::{Load, Point, Verdict};
use crate::schema;
use transfer::Client;

const ACCOUNTS: &str = "bank_account";
const JOURNAL: &str = "bank_transfer";
/// What an account has at first.
const INITIAL: i64 = 1000;
const KINDS: [&str; 2] = ["transfer", "sum of all"];

/// Options of `bench bank`.
#[derive(Args, Clone, Debug)]
pub struct BankArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Accounts.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(2..=1_000_000_000))]
    accounts: u32,
    /// Of a hundred transactions, how many sum all balances.
    #[arg(long, value_name = "PERCENT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=99))]
    readers: u8,
    /// How a transfer takes its two accounts, always in the order of their keys.
    #[arg(long, value_enum, default_value_t = Locking::Select)]
    locking: Locking,
    /// Isolation level of every transaction.
    #[arg(long, value_enum, default_value_t = Isolation::ReadCommitted)]
    isolation: Isolation,
}

/// Ways to change two balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Locking {
    /// SELECT … FOR UPDATE, then the new balances that the client has computed.
    Select,
    /// Two UPDATEs that add.
    Update,
}

/// The experiment.
pub struct Bank {
    args: BankArgs,
    /// Transfers that were there before.
    earlier: Expected,
    /// The last of them.
    start: i64,
    /// Those of this run, by their ids.
    acknowledged: Vec<i64>,
    unknown: Vec<i64>,
    /// How many sums were looked at.
    sums: u64,
}

impl Bank {
    /// With these options.
    pub fn new(args: BankArgs) -> Bank {
        Bank { args, earlier: Expected::default(), start: 0, acknowledged: Vec::new(), unknown: Vec::new(), sums: 0 }
    }

    fn begin(&mut self, lab: &Lab) -> Result<(), Refusal> {
        let start = &mut self.start;
        self.earlier.begin(|| -> Result<i64, Refusal> {
            let mut connection = lab.connect()?;
            *start = schema::int(&mut connection, &format!("SELECT coalesce(max(id), 0) FROM {JOURNAL}"))?;
            Ok(schema::int(&mut connection, &format!("SELECT count(*) FROM {JOURNAL}"))?)
        })
    }
}

impl Experiment for Bank {
    fn name(&self) -> &'static str {
        "bank"
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let locking = match self.args.locking {
            Locking::Select => "SELECT FOR UPDATE",
            Locking::Update => "UPDATE",
        };
        BTreeMap::from([
            ("accounts".to_string(), self.args.accounts.to_string()),
            ("readers".into(), format!("{} %", self.args.readers)),
            ("locking".into(), locking.into()),
            ("isolation".into(), self.args.isolation.sql().to_lowercase()),
        ])
    }

    fn is_loaded(&self, lab: &mut Lab) -> Result<bool, Refusal> {
        let mut connection = lab.connect()?;
        let journal = schema::int_if_there(&mut connection, &format!("SELECT count(*) FROM {JOURNAL} WHERE id = 0"))?;
        let accounts = schema::int_if_there(&mut connection, &format!("SELECT count(*) FROM {ACCOUNTS}"))?;
        schema::fits("accounts", accounts.filter(|_| journal.is_some()), self.args.accounts.into(), "--accounts")
    }

    fn load(&mut self, lab: &mut Lab) -> Result<Load, Refusal> {
        self.drop_tables(lab)?;
        let (mut connection, started) = (lab.connect()?, Instant::now());
        let accounts = format!("{ACCOUNTS} (id integer NOT NULL PRIMARY KEY, balance bigint NOT NULL)");
        let journal = format!(
            "{JOURNAL} (id bigint NOT NULL PRIMARY KEY, from_id integer NOT NULL, to_id integer NOT NULL, \
             amount bigint NOT NULL)"
        );
        schema::create(lab, &mut connection, &journal)?;
        schema::create(lab, &mut connection, &accounts)?;
        let rows = u64::from(self.args.accounts);
        schema::fill(lab, &mut connection, &format!("{ACCOUNTS} (id, balance)"), rows, |number, out| {
            push_int(out, number as i64);
            out.push(b'\t');
            push_int(out, INITIAL);
            out.push(b'\n');
        })?;
        Ok(schema::loaded(lab, &mut connection, &[ACCOUNTS, JOURNAL], rows, started)?)
    }

    fn drop_tables(&self, lab: &mut Lab) -> Result<(), Refusal> {
        Ok(schema::drop_all(&mut lab.connect()?, &[ACCOUNTS, JOURNAL])?)
    }

    fn point(&mut self, lab: &mut Lab, at: &At) -> Result<(Point, Option<String>), Refusal> {
        self.begin(lab)?;
        let known = self.acknowledged.iter().chain(&self.unknown).max();
        let next = Arc::new(AtomicI64::new(1 + known.copied().unwrap_or(self.start)));
        let statements = transfer::statements(lab.target.dialect, self.args.isolation);
        let client = |number| {
            let rng = at.rng(lab.seed, number);
            Client::new(&self.args, lab.target.dialect, rng, next.clone())
        };
        let clients = (0..at.threads).map(client).collect();
        let (point, measured) = measure(lab, at, &KINDS, &statements, clients)?;
        let (mut wrong, mut wrongs) = (None, 0);
        for client in measured.workers {
            self.acknowledged.extend(client.acknowledged);
            self.unknown.extend(client.unknown);
            self.sums += client.sums;
            wrongs += client.wrong_sums;
            wrong = wrong.or(client.wrong);
        }
        let wrong = wrong.map(|first| format!("{wrongs} WRONG SUMS under load, the first: {first}"));
        Ok((point, wrong.or(measured.ended)))
    }

    fn verify(&mut self, lab: &mut Lab) -> Result<Vec<Verdict>, Refusal> {
        self.acknowledged.sort_unstable();
        self.unknown.sort_unstable();
        let mut connection = lab.connect()?;
        let mut verdicts = vec![Verdict {
            says: "every sum that was read under load was the same".into(),
            // A run with another sum has ended before.
            holds: true,
            found: format!("{} sums of {}", self.sums, i64::from(self.args.accounts) * INITIAL),
        }];
        verdicts.extend(check::balances(&mut connection, i64::from(self.args.accounts))?);
        let earlier = format!("SELECT count(*) FROM {JOURNAL} WHERE id <= {}", self.start);
        let earlier = schema::int(&mut connection, &earlier)?;
        verdicts.push(self.earlier.verdict("transfers from before this run are there", earlier));
        verdicts.push(check::journal(&mut connection, self.start, &self.acknowledged, &self.unknown)?);
        Ok(verdicts)
    }
}
