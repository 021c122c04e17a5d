//! Running a script on both servers.

use std::collections::BTreeMap;
use std::fmt;

use crate::client::Connection;
use crate::reply::Reply;
use crate::script::{Expect, Record, Script, Send, recorded};
use crate::target::Target;

/// A record whose answers are not as they must be.
#[derive(Debug)]
pub struct Difference {
    /// File and line.
    pub place: String,
    /// What was sent.
    pub sent: String,
    /// How often the script has sent the same before.
    pub occurrence: usize,
    /// What is wrong.
    pub what: String,
    /// PostgreSQL's answer.
    pub reference: Reply,
    /// The other answer.
    pub subject: Reply,
}

/// What a script came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Messages sent to each server.
    pub statements: usize,
    /// All that was wrong.
    pub differences: Vec<Difference>,
    /// Lines of records whose answers in the script are not PostgreSQL's.
    pub outdated: Vec<usize>,
}

/// How single statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// As simple Query, with rows as text.
    Simple,
    /// By the extended protocol, with rows in binary form.
    Extended,
}

/// Runs all records, past differences and lost connections, as long as the server under test lives.
pub fn run(script: &Script, protocol: Protocol, reference: &Target, subject: &Target) -> Outcome {
    let mut outcome = Outcome::default();
    let mut sent_before: BTreeMap<String, usize> = BTreeMap::new();
    let mut connections: BTreeMap<&str, (Connection, Connection)> = BTreeMap::new();
    for record in &script.records {
        let pair = connections.entry(&record.connection).or_insert_with(|| (reference.connect(), subject.connect()));
        let expected = answer(&mut pair.0, record, protocol);
        let actual = answer(&mut pair.1, record, protocol);
        outcome.statements += 1;
        if protocol == Protocol::Simple && !is_recorded(record, &expected) {
            outcome.outdated.push(record.line);
        }
        let sent = sent(record);
        let count = sent_before.entry(sent.clone()).or_default();
        let occurrence = *count;
        *count += 1;
        if let Some(what) = judge(record, &expected, &actual) {
            outcome.differences.push(Difference {
                place: format!("{}:{}", script.name, record.line),
                sent,
                occurrence,
                what,
                reference: expected,
                subject: actual,
            });
        }
        if pair.1.is_closed() || pair.0.is_closed() {
            // Both sessions begin anew, so that they stay alike.
            connections.remove(record.connection.as_str());
            if subject.is_gone() {
                break;
            }
        }
    }
    outcome
}

fn answer(connection: &mut Connection, record: &Record, protocol: Protocol) -> Reply {
    let reply = match &record.send {
        Send::Statement(sql) if protocol == Protocol::Extended && record.text => connection.extended(sql, &[]),
        Send::Statement(sql) if protocol == Protocol::Extended => connection.binary(sql, &[]),
        Send::Query(sql) | Send::Statement(sql) => connection.query(sql),
        Send::Copy(sql, data) => connection.copy(sql, data),
        Send::Bind(sql, values) => {
            let values: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
            connection.extended(sql, &values)
        }
    };
    record.comparable(reply)
}

/// What PostgreSQL answers to each record, by the simple protocol where there is a choice: for the script to carry.
///
/// It is asked twice: what it answers otherwise the second time is not written down.
pub fn record(script: &Script) -> Vec<Vec<String>> {
    let answers = || {
        let reference = Target::reference();
        let mut connections: BTreeMap<&str, Connection> = BTreeMap::new();
        let mut answers = Vec::new();
        for record in &script.records {
            let connection = connections.entry(&record.connection).or_insert_with(|| reference.connect());
            answers.push(recorded::lines(&answer(connection, record, Protocol::Simple)));
            if connection.is_closed() {
                connections.remove(record.connection.as_str());
            }
        }
        answers
    };
    let pairs = answers().into_iter().zip(answers()).zip(&script.records);
    let kept = pairs.map(|((first, second), record)| {
        let changes = first != second || recorded::may_change(&sent(record));
        if changes { vec![recorded::CHANGES.to_owned()] } else { first }
    });
    kept.collect()
}

/// Whether the script carries this answer of PostgreSQL, or says that it changes.
fn is_recorded(record: &Record, reply: &Reply) -> bool {
    record.answer.as_ref().is_some_and(|lines| *lines == [recorded::CHANGES] || *lines == recorded::lines(reply))
}

fn judge(record: &Record, expected: &Reply, actual: &Reply) -> Option<String> {
    let code = expected.code();
    match &record.expect {
        Expect::Ok if code != "00000" => return Some("PostgreSQL reports an error, the script says ok".to_owned()),
        Expect::Error(_) if code == "00000" => {
            return Some("PostgreSQL reports no error, the script says error".to_owned());
        }
        Expect::Error(Some(wanted)) if code != wanted => {
            return Some(format!("PostgreSQL says {code}, the script {wanted}"));
        }
        _ => {}
    }
    (expected != actual).then(|| "the answers differ".to_owned())
}

fn sent(record: &Record) -> String {
    match &record.send {
        Send::Query(sql) | Send::Statement(sql) => sql.clone(),
        Send::Copy(sql, data) => format!("{sql}\n----\n{data}"),
        Send::Bind(sql, values) => format!("{sql}\n---- {values:?}"),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} [{}]: {}", self.place, self.what, self.sent)?;
        if self.reference == self.subject {
            return write!(f, "  both servers:\n{}", self.reference);
        }
        write!(f, "  PostgreSQL:\n{}\n  under test:\n{}", self.reference, self.subject)
    }
}
