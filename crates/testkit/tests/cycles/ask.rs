//! A client that knows the difference between a refusal, a lost connection and silence.

use std::collections::BTreeSet;

use testkit::{Connection, Event, Reply};

/// What became of a message, or of several.
#[derive(Debug)]
pub enum Said {
    /// All of it was acknowledged.
    Done(Reply),
    /// It was refused by one of the errors that a busy server may answer; the transaction, if any, is rolled back.
    Refused,
    /// The connection was lost: nobody knows.
    Lost,
}

impl Said {
    /// What was done does not count as such.
    pub fn refused(self) -> Said {
        match self {
            Said::Done(_) => Said::Refused,
            said => said,
        }
    }
}

/// Errors that come from other clients, not from a fault.
const BUSY: [&str; 3] = ["40P01", "40001", "55P03"];

/// Sends a statement.
pub fn ask(connection: &mut Connection, sql: &str) -> Said {
    let reply = connection.query(sql);
    judge(connection, sql, reply)
}

/// Sends statements one after the other until one is not done.
pub fn ask_all(connection: &mut Connection, statements: &[String]) -> Said {
    let mut last = Said::Refused;
    for sql in statements {
        last = ask(connection, sql);
        if !matches!(last, Said::Done(_)) {
            break;
        }
    }
    last
}

/// What an answer means.
pub fn judge(connection: &mut Connection, sql: &str, reply: Reply) -> Said {
    assert!(!reply.events.contains(&Event::NoAnswer), "no answer for half a minute: {}", shortened(sql));
    if reply.status.is_none() {
        return Said::Lost;
    }
    match reply.code() {
        "00000" => Said::Done(reply),
        code if BUSY.contains(&code) => match connection.query("ROLLBACK").status {
            Some(_) => Said::Refused,
            None => Said::Lost,
        },
        _ => panic!("{}: {reply}", shortened(sql)),
    }
}

/// The statement must succeed.
pub fn must(connection: &mut Connection, sql: &str) -> Reply {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{}", shortened(sql));
    assert!(reply.status.is_some(), "the connection is lost: {}", shortened(sql));
    reply
}

/// The first column of the answer.
pub fn numbers(connection: &mut Connection, sql: &str) -> Vec<i64> {
    must(connection, sql).rows().map(|row| number(&row[0])).collect()
}

/// A value of an answer as a number.
pub fn number(value: &Option<String>) -> i64 {
    value.as_deref().and_then(|text| text.parse().ok()).expect("a number")
}

/// Whether a set is `expected`, or that with what was under way.
pub fn is_whole(found: &BTreeSet<i64>, expected: &BTreeSet<i64>, under_way: Option<i64>) -> bool {
    found.symmetric_difference(expected).all(|number| Some(*number) == under_way)
}

fn shortened(sql: &str) -> String {
    sql.chars().take(160).collect()
}
