//! Two servers, one statement after the other: what differs is kept and shown.

use crate::client::Connection;
use crate::reply::Reply;
use crate::target::Target;

/// Both servers with a connection to each, and the differences so far.
pub struct Comparison {
    reference: Target,
    subject: Target,
    connections: (Connection, Connection),
    /// Statements that make a fresh session like the others.
    settings: Vec<String>,
    /// Statements compared, and those that had no error.
    pub count: u64,
    /// Statements without an error.
    pub fine: u64,
    wrong: Vec<String>,
}

impl Comparison {
    /// Starts both servers; each session runs the settings first.
    ///
    /// PANICS if a server does not start.
    pub fn start(settings: &[&str]) -> Comparison {
        let (reference, subject) = (Target::reference(), Target::start());
        let connections = (reference.connect(), subject.connect());
        let settings = settings.iter().map(|&text| text.to_owned()).collect();
        let mut made = Comparison { reference, subject, connections, settings, count: 0, fine: 0, wrong: Vec::new() };
        made.set();
        made
    }

    fn set(&mut self) {
        for text in &self.settings {
            for connection in [&mut self.connections.0, &mut self.connections.1] {
                let reply = connection.query(text);
                assert_eq!(reply.error(), None, "{text}");
            }
        }
    }

    /// Both connections: PostgreSQL's first.
    pub fn connections(&mut self) -> (&mut Connection, &mut Connection) {
        if self.connections.0.is_closed() || self.connections.1.is_closed() {
            self.connections = (self.reference.connect(), self.subject.connect());
            self.set();
        }
        (&mut self.connections.0, &mut self.connections.1)
    }

    /// Asks both servers; `same` says whether two unequal answers still agree.
    pub fn ask(&mut self, sql: &str, same: impl Fn(&Reply, &Reply) -> bool) {
        let (first, second) = self.connections();
        let [mut expected, mut actual] = [first.query(sql), second.query(sql)];
        expected.drop_columns_of_errors();
        actual.drop_columns_of_errors();
        self.judge(sql, &expected, &actual, same);
    }

    /// Compares two answers.
    pub fn judge(&mut self, what: &str, expected: &Reply, actual: &Reply, same: impl Fn(&Reply, &Reply) -> bool) {
        self.count += 1;
        self.fine += u64::from(expected.error().is_none());
        if expected != actual && !same(expected, actual) {
            self.wrong.push(format!("{what}\n  PostgreSQL:\n{expected}\n  under test:\n{actual}"));
        }
    }

    /// Notes a difference that was found otherwise.
    pub fn differs(&mut self, what: String) {
        self.wrong.push(what);
    }

    /// Shows `NYALA_SHOWN` (12) of the differences.
    ///
    /// PANICS if there are any, or if hardly any statement had a value.
    pub fn finish(self, seed: u64) {
        assert!(self.fine * 5 >= self.count, "only {} of {} are right at all", self.fine, self.count);
        self.finish_rarely_fine(seed);
    }

    /// Like [`Comparison::finish`], for statements most of which are wrong.
    ///
    /// PANICS if there are differences.
    pub fn finish_rarely_fine(mut self, seed: u64) {
        let shown = std::env::var("NYALA_SHOWN").map_or(12, |text| text.parse().expect("NYALA_SHOWN is a number"));
        println!("{} of {} have a value", self.fine, self.count);
        let count = self.wrong.len();
        self.wrong.truncate(shown);
        assert!(count == 0, "NYALA_SEED={seed}: {count} differ:\n{}", self.wrong.join("\n\n"));
    }
}

/// What both servers answer to a statement; of the two connections one is PostgreSQL's.
///
/// # Panics
/// If they answer differently.
pub fn both(connections: &mut [Connection; 2], sql: &str) -> String {
    let [expected, actual] = connections.each_mut().map(|connection| connection.query(sql).to_string());
    assert_eq!(expected, actual, "{sql}");
    actual
}
