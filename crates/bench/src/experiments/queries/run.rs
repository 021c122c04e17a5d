//! One statement on two servers: whether they agree, and how long each takes.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::list::Statement;
use crate::client::{Connection, Failure, Param};
use crate::spread::Spread;
use crate::target::Target;

/// Times below this, in milliseconds, count as equal: a round trip and a wake-up are most of them.
pub const NEGLIGIBLE_MS: f64 = 0.2;
/// A statement that takes longer than this has failed.
const TIMEOUT: &str = "30s";
/// A random statement counts if it takes longer than this on one of the servers, or reads [`MUCH_ROWS`].
pub const LONG_MS: f64 = 20.0;
/// As many rows as PostgreSQL's plan of a random statement reads if it counts however short it is.
pub const MUCH_ROWS: u64 = 100_000;
/// A random statement that takes more times PostgreSQL's time than this, and longer than [`FINDING_MS`], is a finding.
pub const FINDING_RATIO: f64 = 20.0;
/// As long as a finding takes at least, in milliseconds.
pub const FINDING_MS: f64 = 50.0;
/// Fewest executions of a slow statement.
const FEWEST: usize = 3;

/// What is kept of a statement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The schema.
    pub schema: String,
    /// Its name there.
    pub name: String,
    /// The application's file, or the class.
    pub origin: String,
    /// Rows of its answer, or rows that it changed.
    pub rows: u64,
    /// Median on PostgreSQL, milliseconds.
    pub baseline_ms: Option<f64>,
    /// Median on the other server.
    pub ms: Option<f64>,
    /// Executions on each.
    pub executions: usize,
    /// How the answers differ.
    pub difference: Option<String>,
    /// Why it did not run on one of them.
    pub error: Option<String>,
    /// Its plan on PostgreSQL; kept for the worst.
    #[serde(default)]
    pub baseline_plan: Option<String>,
    /// Its plan on the other server.
    #[serde(default)]
    pub plan: Option<String>,
    /// The text of a random statement.
    #[serde(default)]
    pub sql: Option<String>,
    /// Rows that PostgreSQL's plan of a random statement reads.
    #[serde(default)]
    pub scanned: u64,
    /// Why a random statement says nothing.
    #[serde(default)]
    pub left_out: Option<String>,
    /// SQLSTATEs of what failed on PostgreSQL and on the other server.
    #[serde(default)]
    pub states: [Option<String>; 2],
}

impl Judged {
    /// Time to PostgreSQL's time. What is negligible on both is equal.
    pub fn ratio(&self) -> Option<f64> {
        let (baseline, own) = (self.baseline_ms?, self.ms?);
        if baseline < NEGLIGIBLE_MS && own < NEGLIGIBLE_MS {
            return Some(1.0);
        }
        self.quotient()
    }

    /// The same, however short both times are.
    pub fn quotient(&self) -> Option<f64> {
        Some(self.ms? / self.baseline_ms?)
    }

    /// Whether it ran on both with the same answer, and was no [finding](Judged::is_finding).
    pub fn is_good(&self) -> bool {
        self.error.is_none() && self.difference.is_none() && !self.is_finding()
    }

    /// Whether it is a random statement that takes so much longer than on PostgreSQL that its plan must be wrong.
    pub fn is_finding(&self) -> bool {
        let is_slow = self.ms.is_some_and(|ms| ms > FINDING_MS);
        self.sql.is_some() && is_slow && self.quotient().is_some_and(|quotient| quotient > FINDING_RATIO)
    }

    /// Whether it counts among the statements of its run: every one of the list, and the random ones that take long or read much, if they
    /// say something.
    pub fn counts(&self) -> bool {
        let is_long = |ms: Option<f64>| ms.is_some_and(|ms| ms > LONG_MS);
        let is_large = is_long(self.ms) || is_long(self.baseline_ms) || self.scanned >= MUCH_ROWS;
        self.sql.is_none() || is_large && self.left_out.is_none()
    }
}

/// A connection to one server, with a statement prepared if it has parameters.
pub struct Side<'s> {
    connection: Connection,
    statement: &'s Statement<'s>,
}

impl<'s> Side<'s> {
    /// Connects. The statement is prepared here, so that its plans are those of a prepared statement.
    ///
    /// # Errors
    /// Of the server, those of preparing included.
    pub fn open(target: &Target, settings: &[&str], statement: &'s Statement<'s>) -> Result<Side<'s>, Failure> {
        let mut connection = Connection::open(target)?;
        connection.query(&format!("SET statement_timeout = '{TIMEOUT}'"))?;
        for setting in settings {
            connection.query(setting)?;
        }
        if statement.params.is_some() {
            connection.prepare(&[statement.sql.to_string()])?;
        }
        Ok(Side { connection, statement })
    }

    /// Executes the statement: milliseconds from its first byte to the last of its answer, and the answer if it is wanted. A change
    /// is undone.
    fn execute(&mut self, wanted: bool) -> Result<(f64, Option<Answer>), Failure> {
        let changes = self.statement.changes();
        if changes {
            self.connection.query("BEGIN")?;
        }
        let started = Instant::now();
        let done = match &self.statement.params {
            Some(params) => {
                let value = |text: &'s Option<String>| text.as_ref().map_or(Param::Null, |t| Param::Text(t.as_bytes()));
                let params: Vec<Param<'_>> = params.iter().map(value).collect();
                self.connection.call(0, &params)
            }
            None => self.connection.query(self.statement.sql),
        };
        let ms = started.elapsed().as_secs_f64() * 1e3;
        let answer = (wanted && done.is_ok()).then(|| Answer::of(&self.connection, self.statement.ordered));
        if changes {
            self.connection.query("ROLLBACK")?;
        }
        done.map(|()| (ms, answer))
    }

    /// The plan, as EXPLAIN tells it.
    pub fn plan(&mut self) -> Result<String, Failure> {
        let text = format!("EXPLAIN {}", self.statement.sql);
        match &self.statement.params {
            None => self.connection.query(&text)?,
            Some(params) => {
                let literal = |value: &Option<String>| match value {
                    Some(text) => format!("'{}'", text.replace('\'', "''")),
                    None => "NULL".into(),
                };
                let values: Vec<String> = params.iter().map(literal).collect();
                self.connection.query(&format!("PREPARE told AS {}", self.statement.sql))?;
                let list = if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
                self.connection.query(&format!("EXPLAIN EXECUTE told{list}"))?;
            }
        }
        let lines = (0..self.connection.row_count()).map(|at| self.connection.row(at).cells().next().flatten());
        let lines: Vec<String> =
            lines.map(|line| String::from_utf8_lossy(line.unwrap_or_default()).into_owned()).collect();
        Ok(lines.join("\n"))
    }
}

/// Rows as text, sorted unless their order counts, and how many were changed or returned.
#[derive(Debug, PartialEq)]
struct Answer {
    rows: Vec<Vec<Option<Vec<u8>>>>,
    affected: u64,
}

impl Answer {
    /// The last one of a connection.
    fn of(connection: &Connection, ordered: bool) -> Answer {
        let row = |at| connection.row(at).cells().map(|cell| cell.map(<[u8]>::to_vec)).collect();
        let mut rows: Vec<Vec<Option<Vec<u8>>>> = (0..connection.row_count()).map(row).collect();
        if !ordered {
            rows.sort();
        }
        Answer { rows, affected: connection.affected() }
    }

    /// Where the other one differs. Sums of floating-point numbers depend on the order in which rows come: they may differ in the
    /// last digits.
    fn difference(&self, other: &Answer) -> Option<String> {
        if self.affected != other.affected || self.rows.len() != other.rows.len() {
            let count = |answer: &Answer| (answer.affected, answer.rows.len());
            return Some(format!("{:?} rows changed and returned, not {:?}", count(other), count(self)));
        }
        let show = |row: &[Option<Vec<u8>>]| {
            let cell = |cell: &Option<Vec<u8>>| {
                cell.as_ref().map_or("NULL".into(), |c| String::from_utf8_lossy(c).into_owned())
            };
            row.iter().map(cell).collect::<Vec<_>>().join("|")
        };
        let alike = |a: &Vec<Option<Vec<u8>>>, b: &Vec<Option<Vec<u8>>>| a.iter().zip(b).all(|(a, b)| is_alike(a, b));
        let (a, b) = self.rows.iter().zip(&other.rows).find(|(a, b)| !alike(a, b))?;
        Some(format!("{}, not {}", show(b), show(a)))
    }
}

fn is_alike(a: &Option<Vec<u8>>, b: &Option<Vec<u8>>) -> bool {
    let number = |cell: &Option<Vec<u8>>| std::str::from_utf8(cell.as_deref()?).ok()?.parse::<f64>().ok();
    a == b
        || number(a).zip(number(b)).is_some_and(|(a, b)| a.is_finite() && (a - b).abs() <= 1e-12 * a.abs().max(b.abs()))
}

/// How often a statement is executed.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Executions on each server.
    pub executions: usize,
    /// No more are begun after this time, once each server has had [`FEWEST`].
    pub patience: Duration,
    /// The first execution counts if it takes as long on one of the servers: what warms up is then the smaller part of it.
    pub first_counts: Option<Duration>,
}

/// Executes a statement on both servers in turns. The first execution of each compares the answers and does not count unless it is long.
///
/// # Errors
/// A lost connection.
pub fn judge(sides: [Result<Side<'_>, Failure>; 2], labels: [&str; 2], effort: Effort) -> Result<Judged, Failure> {
    let mut judged = Judged::default();
    let mut failed = |at: usize, failure: Failure| match failure {
        Failure::Server { .. } => {
            judged.states[at] = Some(failure.state().into());
            let error = judged.error.get_or_insert_default();
            let gap = if error.is_empty() { "" } else { "; " };
            error.push_str(&format!("{gap}{}: {failure}", labels[at]));
            Ok(())
        }
        lost => Err(lost),
    };
    let mut open = Vec::new();
    for (at, side) in sides.into_iter().enumerate() {
        match side.and_then(|mut side| side.execute(true).map(|(ms, answer)| (side, ms, answer))) {
            Ok(done) => open.push(done),
            Err(failure) => failed(at, failure)?,
        }
    }
    let [(first, ms, one), (second, other_ms, other)] = open.as_mut_slice() else { return Ok(judged) };
    if let Some((one, other)) = one.as_ref().zip(other.as_ref()) {
        judged.rows = one.affected.max(one.rows.len() as u64);
        judged.difference = one.difference(other);
    }
    let (started, mut times) = (Instant::now(), [Vec::new(), Vec::new()]);
    if effort.first_counts.is_some_and(|long| ms.max(*other_ms) >= long.as_secs_f64() * 1e3) {
        times = [vec![*ms], vec![*other_ms]];
    }
    while times[0].len() < effort.executions && (times[0].len() < FEWEST || started.elapsed() < effort.patience) {
        let mut turn: [(&mut Side<'_>, usize); 2] = [(&mut *first, 0), (&mut *second, 1)];
        if times[0].len() % 2 == 1 {
            turn.reverse();
        }
        for (side, at) in turn {
            match side.execute(false) {
                Ok((ms, _)) => times[at].push(ms),
                Err(failure) => {
                    failed(at, failure)?;
                    return Ok(judged);
                }
            }
        }
    }
    judged.executions = times[0].len();
    let [baseline, own] = times.map(|times| Spread::of(times).map(|spread| spread.median));
    (judged.baseline_ms, judged.ms) = (baseline, own);
    Ok(judged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[&str]) -> Answer {
        let row = |row: &&str| row.split(' ').map(|cell| (cell != "-").then(|| cell.as_bytes().to_vec())).collect();
        Answer { rows: rows.iter().map(row).collect(), affected: rows.len() as u64 }
    }

    #[test]
    fn answers_differ_by_rows_and_not_by_the_last_digit_of_a_sum() {
        let one = answer(&["1 a", "2 -"]);
        assert_eq!(one.difference(&answer(&["1 a", "2 -"])), None);
        assert_eq!(one.difference(&answer(&["1 a", "2 b"])).as_deref(), Some("2|b, not 2|NULL"));
        assert!(one.difference(&answer(&["1 a"])).is_some());
        assert_eq!(answer(&["0.30000000000000004"]).difference(&answer(&["0.3"])), None);
        assert!(answer(&["0.3001"]).difference(&answer(&["0.3"])).is_some());
    }

    #[test]
    fn what_is_negligible_on_both_is_equal() {
        let ratio = |baseline, own| Judged { baseline_ms: Some(baseline), ms: Some(own), ..Judged::default() }.ratio();
        assert_eq!((ratio(0.05, 0.19), ratio(0.1, 0.3)), (Some(1.0), Some(0.3 / 0.1)));
        assert_eq!(Judged::default().ratio(), None);
    }

    #[test]
    fn random_statements_count_by_time_or_rows_and_are_findings_by_both_limits() {
        let random = |baseline, own, scanned| Judged {
            baseline_ms: Some(baseline),
            ms: Some(own),
            sql: Some("SELECT 1".into()),
            scanned,
            ..Judged::default()
        };
        assert!(random(1.0, 21.0, 0).counts() && random(21.0, 1.0, 0).counts() && random(1.0, 1.0, MUCH_ROWS).counts());
        assert!(!random(1.0, 19.0, MUCH_ROWS - 1).counts() && Judged::default().counts());
        assert!(random(2.0, 51.0, 0).is_finding() && !random(2.0, 51.0, 0).is_good());
        assert!(!random(1.0, 49.0, 0).is_finding() && !random(50.0, 900.0, 0).is_finding());
        assert!(!Judged { sql: None, ..random(2.0, 51.0, 0) }.is_finding());
    }
}
