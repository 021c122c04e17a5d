//! Transfers between accounts, each with a journal row: money neither comes nor goes.

use std::collections::BTreeSet;

use testkit::{Connection, Random};

use super::ask::{Said, ask, ask_all, is_whole, must, number, numbers};
use super::clients::Client;

const ACCOUNTS: u64 = 60;
const OPENING: i64 = 1000;
/// Numbers of transfers say whose they are.
const CLIENTS: i64 = 8;

/// Tables of all banks together.
pub const TABLES: [&str; 4] = [
    "CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))",
    "CREATE TABLE journal (id bigint PRIMARY KEY, source int NOT NULL, target int NOT NULL, amount int NOT NULL)",
    "CREATE INDEX journal_source ON journal (source, amount)",
    "CREATE INDEX journal_target ON journal (target) WHERE amount > 10",
];

/// One client that transfers.
pub struct Bank {
    me: i64,
    next: i64,
    expected: BTreeSet<i64>,
    under_way: Option<i64>,
}

impl Bank {
    pub fn new(me: i64) -> Bank {
        assert!(me < CLIENTS);
        Bank { me, next: me, expected: BTreeSet::new(), under_way: None }
    }
}

impl Client for Bank {
    fn name(&self) -> &'static str {
        "transfers"
    }

    fn setup(&self) -> Vec<String> {
        if self.me > 0 {
            return Vec::new();
        }
        let mut all: Vec<String> = TABLES.iter().map(|sql| (*sql).to_owned()).collect();
        all.push(format!("INSERT INTO accounts SELECT i, {OPENING} FROM generate_series(1, {ACCOUNTS}) AS g (i)"));
        all
    }

    fn run(&mut self, mut connection: Connection, mut random: Random) -> u64 {
        let mut done = 0;
        loop {
            self.next += CLIENTS;
            let (number, source) = (self.next, 1 + random.below(ACCOUNTS));
            let target = 1 + (source + random.below(ACCOUNTS - 1)) % ACCOUNTS;
            let amount = 1 + random.below(20);
            self.under_way = Some(number);
            let statements = [
                "BEGIN".to_owned(),
                format!("UPDATE accounts SET balance = balance - {amount} WHERE id = {source} AND balance >= {amount}"),
                format!("UPDATE accounts SET balance = balance + {amount} WHERE id = {target}"),
                format!("INSERT INTO journal VALUES ({number}, {source}, {target}, {amount})"),
                "COMMIT".to_owned(),
            ];
            let funded = format!("SELECT balance FROM accounts WHERE id = {source} AND balance >= {amount} FOR UPDATE");
            // An account that is empty gives nothing: that is looked at under a lock.
            let said = match ask_all(&mut connection, &["BEGIN".to_owned(), funded]) {
                Said::Done(reply) if reply.rows().count() == 0 => ask(&mut connection, "ROLLBACK").refused(),
                Said::Done(_) if random.below(3) == 0 => ask_all(&mut connection, &[statements[1..].join("; ")]),
                Said::Done(_) => ask_all(&mut connection, &statements[1..]),
                said => said,
            };
            match said {
                Said::Lost => return done,
                Said::Refused => {}
                Said::Done(_) => {
                    self.expected.insert(number);
                    done += 1;
                }
            }
            self.under_way = None;
        }
    }

    fn check(&mut self, connection: &mut Connection) {
        let (me, under_way) = (self.me, self.under_way.take());
        let found = numbers(connection, &format!("SELECT id FROM journal WHERE id % {CLIENTS} = {me}"));
        let found: BTreeSet<i64> = found.into_iter().collect();
        let lost: Vec<_> = self.expected.difference(&found).collect();
        assert!(lost.is_empty(), "acknowledged transfers are lost: {lost:?}");
        assert!(is_whole(&found, &self.expected, under_way), "transfers that nobody asked for: {found:?}");
        if me == 0 {
            balances(connection);
        }
        self.expected = found;
    }

    /// The journal goes into the opening balances, so that it stays short.
    fn tidy(&mut self, connection: &mut Connection) {
        if self.me == 0 {
            must(connection, "TRUNCATE journal");
            must(connection, &format!("UPDATE accounts SET balance = {OPENING}"));
        }
        self.expected.clear();
    }
}

fn balances(connection: &mut Connection) {
    let sum = must(connection, "SELECT sum(balance), count(*) FROM accounts");
    let row: Vec<i64> = sum.rows().flatten().map(number).collect();
    assert_eq!(row, [ACCOUNTS as i64 * OPENING, ACCOUNTS as i64], "money or accounts came or went");
    let unexplained = must(
        connection,
        &format!(
            "SELECT a.id, a.balance, {OPENING} + coalesce(i.amount, 0) - coalesce(o.amount, 0)
             FROM accounts a
             LEFT JOIN (SELECT target, sum(amount) AS amount FROM journal GROUP BY target) AS i ON i.target = a.id
             LEFT JOIN (SELECT source, sum(amount) AS amount FROM journal GROUP BY source) AS o ON o.source = a.id
             WHERE a.balance <> {OPENING} + coalesce(i.amount, 0) - coalesce(o.amount, 0)"
        ),
    );
    assert_eq!(unexplained.rows().count(), 0, "balances that the journal does not explain\n{unexplained}");
}
