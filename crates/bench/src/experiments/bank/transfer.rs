//! A client of the bank: it transfers, or it sums.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::{ACCOUNTS, BankArgs, INITIAL, JOURNAL, Locking};
use crate::client::Param::Int;
use crate::client::{AsyncConnection, Failure};
use crate::drive::{Done, Worker};
use crate::experiments::tpcc::Isolation;
use crate::rng::Rng;
use crate::target::Dialect;

const BEGIN: usize = 0;
const COMMIT: usize = 1;
const LOCK: usize = 2;
const SET: usize = 3;
const ADD: usize = 4;
const NOTE: usize = 5;
const SUM: usize = 6;
/// Only for MySQL, whose BEGIN takes no level.
const ISOLATION: usize = 7;

const TRANSFER_KIND: usize = 0;
const SUM_KIND: usize = 1;

/// Every statement, in the order of its number.
pub fn statements(dialect: Dialect, isolation: Isolation) -> Vec<String> {
    let level = format!("ISOLATION LEVEL {}", isolation.sql());
    let begin = match dialect {
        Dialect::Postgres => format!("BEGIN {level}"),
        Dialect::MySql => "BEGIN".into(),
    };
    let mut all = vec![
        begin,
        "COMMIT".into(),
        format!("SELECT id, balance FROM {ACCOUNTS} WHERE id IN ($1, $2) ORDER BY id FOR UPDATE"),
        format!("UPDATE {ACCOUNTS} SET balance = $1 WHERE id = $2"),
        format!("UPDATE {ACCOUNTS} SET balance = balance + $1 WHERE id = $2"),
        format!("INSERT INTO {JOURNAL} (id, from_id, to_id, amount) VALUES ($1, $2, $3, $4)"),
        format!("SELECT count(*), sum(balance) FROM {ACCOUNTS}"),
    ];
    if dialect == Dialect::MySql {
        all.push(format!("SET TRANSACTION {level}"));
    }
    all
}

#[derive(Clone, Copy, Default)]
struct Transfer {
    id: i64,
    from: i64,
    to: i64,
    amount: i64,
}

/// One client, with what it has noted.
pub struct Client {
    accounts: i64,
    readers: i64,
    locking: Locking,
    dialect: Dialect,
    rng: Rng,
    /// Number of the next transfer of all clients.
    next: Arc<AtomicI64>,
    kind: usize,
    present: Transfer,
    /// Transfers whose COMMIT was answered.
    pub acknowledged: Vec<i64>,
    /// Those whose connection was lost.
    pub unknown: Vec<i64>,
    /// Sums that were right.
    pub sums: u64,
    /// Others.
    pub wrong_sums: u64,
    /// The first of them.
    pub wrong: Option<String>,
}

impl Client {
    /// One that draws from `rng`.
    pub fn new(args: &BankArgs, dialect: Dialect, rng: Rng, next: Arc<AtomicI64>) -> Client {
        Client {
            accounts: i64::from(args.accounts),
            readers: i64::from(args.readers),
            locking: args.locking,
            dialect,
            rng,
            next,
            kind: TRANSFER_KIND,
            present: Transfer::default(),
            acknowledged: Vec::new(),
            unknown: Vec::new(),
            sums: 0,
            wrong_sums: 0,
            wrong: None,
        }
    }

    async fn begin(&self, connection: &mut AsyncConnection) -> Result<u64, Failure> {
        if self.dialect == Dialect::MySql {
            connection.call(ISOLATION, &[]).await?;
        }
        connection.call(BEGIN, &[]).await?;
        Ok(1 + u64::from(self.dialect == Dialect::MySql))
    }

    async fn transfer(&self, connection: &mut AsyncConnection) -> Result<Done, Failure> {
        let Transfer { id, from, to, amount } = self.present;
        let mut statements = self.begin(connection).await?;
        let mut changes = [(from, -amount), (to, amount)];
        changes.sort_unstable();
        if self.locking == Locking::Select {
            connection.call(LOCK, &[Int(changes[0].0), Int(changes[1].0)]).await?;
            statements += 1;
            for (at, change) in changes.iter_mut().enumerate() {
                if at >= connection.row_count() || connection.row(at).int(0)? != change.0 {
                    return Err(Failure::Server { state: *b"02000", message: format!("no account {}", change.0) });
                }
                change.1 += connection.row(at).int(1)?;
            }
        }
        let change = if self.locking == Locking::Select { SET } else { ADD };
        for (account, value) in changes {
            connection.call(change, &[Int(value), Int(account)]).await?;
        }
        connection.call(NOTE, &[Int(id), Int(from), Int(to), Int(amount)]).await?;
        connection.call(COMMIT, &[]).await?;
        Ok(Done::new(statements + 4, 3))
    }

    async fn sum(&mut self, connection: &mut AsyncConnection) -> Result<Done, Failure> {
        let statements = self.begin(connection).await?;
        connection.call(SUM, &[]).await?;
        let row = connection.first("the sum")?;
        let (count, sum) = (row.int(0)?, row.int(1)?);
        connection.call(COMMIT, &[]).await?;
        if (count, sum) == (self.accounts, self.accounts * INITIAL) {
            self.sums += 1;
        } else {
            self.wrong_sums += 1;
            let right = self.accounts * INITIAL;
            self.wrong.get_or_insert_with(|| format!("{sum} in {count} accounts, not {right} in {}", self.accounts));
        }
        Ok(Done::new(statements + 2, count as u64))
    }
}

impl Worker for Client {
    fn draw(&mut self) -> Option<usize> {
        if self.readers > 0 && self.rng.percent(self.readers) {
            self.kind = SUM_KIND;
            return Some(self.kind);
        }
        let from = self.rng.uniform(1, self.accounts);
        let other = self.rng.uniform(1, self.accounts - 1);
        let to = if other < from { other } else { other + 1 };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        (self.kind, self.present) = (TRANSFER_KIND, Transfer { id, from, to, amount: self.rng.uniform(1, 100) });
        Some(self.kind)
    }

    async fn run(&mut self, connection: &mut AsyncConnection) -> Result<Done, Failure> {
        if self.kind == SUM_KIND {
            return self.sum(connection).await;
        }
        let done = self.transfer(connection).await;
        match &done {
            Ok(_) => self.acknowledged.push(self.present.id),
            Err(Failure::Lost(_)) => self.unknown.push(self.present.id),
            Err(_) => {}
        }
        done
    }
}
