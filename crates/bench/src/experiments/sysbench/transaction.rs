//! sysbench's transaction: point reads, ranges, updates, and the replacement of a row.

use std::time::Duration;

use super::Range;
use super::keys::Distribution;
use super::tables::push_groups;
use crate::client::Param::{Int, Text};
use crate::client::{AsyncConnection, Failure};
use crate::drive::{Done, Worker};
use crate::rng::Rng;

/// What a transaction is made of.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Between BEGIN and COMMIT.
    pub in_transaction: bool,
    /// Point reads.
    pub points: u16,
    /// Keys of each by an IN list; 0 for one key by equality.
    pub keys_per_point: u16,
    /// Ranges of each kind.
    pub ranges: u16,
    /// Which.
    pub range_kinds: Vec<Range>,
    /// Rows of a range.
    pub range_size: u32,
    /// By the secondary index.
    pub secondary: bool,
    /// Updates of the indexed column.
    pub index_updates: u16,
    /// Updates of another.
    pub other_updates: u16,
    /// Rows deleted and inserted again.
    pub replacements: u16,
    /// Rows of a table.
    pub rows: u32,
    /// Which of them.
    pub keys: Distribution,
    /// Mean time before a transaction.
    pub think: Duration,
}

/// Statements of each table, by their place after those that begin and end.
const BEGIN: usize = 0;
const COMMIT: usize = 1;
const FIRST: usize = 2;
const POINT: usize = 0;
const SIMPLE: usize = 1;
const SUM: usize = 2;
const ORDER: usize = 3;
const DISTINCT: usize = 4;
const FILTER: usize = 5;
const UPDATE_INDEX: usize = 6;
const UPDATE_OTHER: usize = 7;
const DELETE: usize = 8;
const INSERT: usize = 9;
const OF_A_TABLE: usize = 10;

impl Shape {
    /// Every statement, in the order of its number.
    pub fn statements(&self, tables: u16) -> Vec<String> {
        let by = if self.secondary { "k" } else { "id" };
        let keys: Vec<String> = (1..=self.keys_per_point).map(|n| format!("${n}")).collect();
        let point = if keys.is_empty() { format!("{by} = $1") } else { format!("{by} IN ({})", keys.join(",")) };
        let mut all = vec!["BEGIN".to_string(), "COMMIT".into()];
        for n in 1..=tables {
            let range = format!("FROM sbtest{n} WHERE {by} BETWEEN $1 AND $2");
            all.extend([
                format!("SELECT c FROM sbtest{n} WHERE {point}"),
                format!("SELECT c {range}"),
                format!("SELECT sum(k) {range}"),
                format!("SELECT c {range} ORDER BY c"),
                format!("SELECT DISTINCT c {range} ORDER BY c"),
                // No index helps to find it: the parameter is the row's own key as an expression.
                format!("SELECT c {range} AND id + 0 = $3"),
                format!("UPDATE sbtest{n} SET k = k + 1 WHERE id = $1"),
                format!("UPDATE sbtest{n} SET c = $1 WHERE id = $2"),
                format!("DELETE FROM sbtest{n} WHERE id = $1"),
                format!("INSERT INTO sbtest{n} (id, k, c, pad) VALUES ($1, $2, $3, $4)"),
            ]);
        }
        debug_assert_eq!(all.len(), FIRST + usize::from(tables) * OF_A_TABLE);
        all
    }

    /// How many a transaction has.
    pub fn statements_of_a_transaction(&self) -> u64 {
        let ranges = u64::from(self.ranges) * self.range_kinds.len() as u64;
        let writes = self.index_updates + self.other_updates + 2 * self.replacements;
        u64::from(self.in_transaction) * 2 + u64::from(self.points + writes) + ranges
    }
}

/// One client.
pub struct Client {
    shape: Shape,
    tables: u16,
    /// The only table it works on.
    own: Option<usize>,
    /// Draws keys; a copy of it from the start of the transaction draws the same for another attempt.
    rng: Rng,
    /// As it was at the start of the present transaction.
    drawn: Rng,
    text: Vec<u8>,
    pad: Vec<u8>,
}

impl Client {
    /// One that draws from `rng`.
    pub fn new(shape: &Shape, tables: u16, own: Option<usize>, rng: Rng) -> Client {
        Client { shape: shape.clone(), tables, own, drawn: rng.clone(), rng, text: Vec::new(), pad: Vec::new() }
    }

    /// Statement `which` of the table that the next step works on.
    fn statement(&mut self, which: usize) -> usize {
        let table = self.own.unwrap_or_else(|| match self.tables {
            1 => 0,
            tables => self.rng.uniform(0, i64::from(tables) - 1) as usize,
        });
        FIRST + table * OF_A_TABLE + which
    }

    fn key(&mut self) -> i64 {
        self.shape.keys.draw(self.shape.rows, &mut self.rng)
    }

    async fn point(&mut self, connection: &mut AsyncConnection) -> Result<u64, Failure> {
        let statement = self.statement(POINT);
        if self.shape.keys_per_point == 0 {
            connection.call(statement, &[Int(self.key())]).await?;
        } else {
            let keys: Vec<_> = (0..self.shape.keys_per_point).map(|_| Int(self.key())).collect();
            connection.call(statement, &keys).await?;
        }
        Ok(connection.row_count() as u64)
    }

    async fn range(&mut self, kind: Range, connection: &mut AsyncConnection) -> Result<u64, Failure> {
        let which = match kind {
            Range::Simple => SIMPLE,
            Range::Sum => SUM,
            Range::Order => ORDER,
            Range::Distinct => DISTINCT,
            Range::Filter => FILTER,
        };
        let (statement, from) = (self.statement(which), self.key());
        let to = from + i64::from(self.shape.range_size) - 1;
        match kind {
            Range::Filter => connection.call(statement, &[Int(from), Int(to), Int(from + (to - from) / 2)]).await?,
            _ => connection.call(statement, &[Int(from), Int(to)]).await?,
        }
        Ok(connection.row_count() as u64)
    }

    async fn write(&mut self, connection: &mut AsyncConnection) -> Result<u64, Failure> {
        let mut rows = 0;
        for _ in 0..self.shape.index_updates {
            let (statement, key) = (self.statement(UPDATE_INDEX), self.key());
            connection.call(statement, &[Int(key)]).await?;
            rows += connection.affected();
        }
        for _ in 0..self.shape.other_updates {
            let (statement, key) = (self.statement(UPDATE_OTHER), self.key());
            self.text.clear();
            push_groups(&mut self.text, 10, &mut self.rng);
            connection.call(statement, &[Text(&self.text), Int(key)]).await?;
            rows += connection.affected();
        }
        for _ in 0..self.shape.replacements {
            let (delete, key) = (self.statement(DELETE), self.key());
            connection.call(delete, &[Int(key)]).await?;
            rows += connection.affected();
            let k = self.key();
            self.text.clear();
            self.pad.clear();
            push_groups(&mut self.text, 10, &mut self.rng);
            push_groups(&mut self.pad, 5, &mut self.rng);
            connection.call(delete - DELETE + INSERT, &[Int(key), Int(k), Text(&self.text), Text(&self.pad)]).await?;
            rows += connection.affected();
        }
        Ok(rows)
    }
}

impl Worker for Client {
    fn draw(&mut self) -> Option<usize> {
        self.drawn = self.rng.clone();
        Some(0)
    }

    async fn run(&mut self, connection: &mut AsyncConnection) -> Result<Done, Failure> {
        self.rng = self.drawn.clone();
        let mut rows = 0;
        if self.shape.in_transaction {
            connection.call(BEGIN, &[]).await?;
        }
        for _ in 0..self.shape.points {
            rows += self.point(connection).await?;
        }
        for at in 0..self.shape.range_kinds.len() {
            for _ in 0..self.shape.ranges {
                rows += self.range(self.shape.range_kinds[at], connection).await?;
            }
        }
        rows += self.write(connection).await?;
        if self.shape.in_transaction {
            connection.call(COMMIT, &[]).await?;
        }
        Ok(Done::new(self.shape.statements_of_a_transaction(), rows))
    }

    fn pause(&mut self) -> Duration {
        if self.shape.think.is_zero() {
            return Duration::ZERO;
        }
        let wait = self.shape.think.mul_f64(-(1.0 - self.rng.unit()).ln());
        // The transaction begins with what is drawn after the pause.
        self.drawn = self.rng.clone();
        wait
    }

    fn repeats(&self, failure: &Failure) -> bool {
        failure.is_conflict() || matches!(failure.state(), "23505" | "23000")
    }
}
