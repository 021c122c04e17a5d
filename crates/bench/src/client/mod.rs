//! Clients of the servers that are measured: PostgreSQL's protocol by a client of the lab's own ([`postgres`]), which is lean
//! because the generator shares the machine with what it measures; MySQL's by a library ([`mysql`]).
//!
//! Responsible for: one connection, prepared statements, rows, bulk loads, the same for either; blocking its thread
//! ([`Connection`]), or as one of many of a thread ([`AsyncConnection`]).
//! Not responsible for: dialects of SQL; a workload asks [`Target::dialect`] where they differ.
//! Invariants: statements are written with `$1`, `$2`, … whatever the server; an answer is complete before the next
//! statement is sent; a failure says whether the connection can still be used.

mod mysql;
mod postgres;
mod row;
mod scram;
mod text;

use std::future::Future;
use std::io;
use std::ops::{Deref, DerefMut};

pub use row::{Cells, Row};
pub use text::{parse_cents, parse_int, push_cents, push_int};

use crate::target::{Dialect, Target};

/// Why something did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The server answered with an error; the connection is usable.
    #[error("{message} (SQLSTATE {})", String::from_utf8_lossy(.state))]
    Server {
        /// The five characters.
        state: [u8; 5],
        /// The primary message.
        message: String,
    },
    /// The connection is gone, or what came over it made no sense.
    #[error("connection lost: {0}")]
    Lost(String),
}

impl Failure {
    /// SQLSTATE; a lost connection is 08006.
    pub fn state(&self) -> &str {
        match self {
            Failure::Server { state, .. } => std::str::from_utf8(state).unwrap_or("?????"),
            Failure::Lost(_) => "08006",
        }
    }

    /// Whether the server refused because of concurrent transactions, so that the same transaction may succeed next
    /// time.
    pub fn is_conflict(&self) -> bool {
        matches!(self.state(), "40001" | "40P01")
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Lost(error.to_string())
    }
}

fn nonsense(what: &str) -> Failure {
    Failure::Lost(format!("the server's answer is malformed: {what}"))
}

/// A parameter of a prepared statement; all travel as text.
#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    /// An integer.
    Int(i64),
    /// Hundredths, sent as a decimal number with two digits.
    Cents(i64),
    /// Any other value in its text form.
    Text(&'a [u8]),
    /// No value.
    Null,
}

/// A connection to a server.
pub struct Connection {
    wire: Wire,
    /// Statements since they were last asked for.
    count: u64,
}

enum Wire {
    Postgres(postgres::Connection),
    // Boxed: it is many times larger, and its calls cost more than the step.
    MySql(Box<mysql::Connection>),
}

/// Calls the same method of whatever is behind.
macro_rules! on_wire {
    ($self:ident, $wire:ident => $call:expr) => {
        match &$self.wire {
            Wire::Postgres($wire) => $call,
            Wire::MySql($wire) => $call,
        }
    };
    (mut $self:ident, $wire:ident => $call:expr) => {
        match &mut $self.wire {
            Wire::Postgres($wire) => $call,
            Wire::MySql($wire) => $call,
        }
    };
}

impl Connection {
    /// Connects and logs in.
    pub fn open(target: &Target) -> Result<Connection, Failure> {
        let wire = match target.dialect {
            Dialect::Postgres => Wire::Postgres(postgres::Connection::open(target)?),
            Dialect::MySql => Wire::MySql(Box::new(mysql::Connection::open(target)?)),
        };
        Ok(Connection { wire, count: 0 })
    }

    /// What the server called its version at start-up.
    pub fn server_version(&self) -> &str {
        on_wire!(self, wire => wire.server_version())
    }

    /// Statements that were sent since this was last asked.
    pub fn take_count(&mut self) -> u64 {
        std::mem::take(&mut self.count)
    }

    /// Whether a transaction is open, healthy or not.
    pub fn in_transaction(&self) -> bool {
        on_wire!(self, wire => wire.in_transaction())
    }

    /// Rows that the last command of the last answer changed or returned.
    pub fn affected(&self) -> u64 {
        on_wire!(self, wire => wire.affected())
    }

    /// Number of rows in the last answer.
    pub fn row_count(&self) -> usize {
        on_wire!(self, wire => wire.row_count())
    }

    /// Row `index` of the last answer.
    ///
    /// # Panics
    /// If the answer has no such row: look at [`Connection::row_count`] first.
    pub fn row(&self, index: usize) -> Row<'_> {
        on_wire!(self, wire => wire.row(index))
    }

    /// The first row of the last answer, which must be there.
    pub fn first(&self, of: &str) -> Result<Row<'_>, Failure> {
        if self.row_count() == 0 {
            return Err(Failure::Server { state: *b"02000", message: format!("no row: {of}") });
        }
        Ok(self.row(0))
    }

    /// Prepares `statements`; statement `i` is then known to [`Connection::bind`] as `i`.
    pub fn prepare(&mut self, statements: &[String]) -> Result<(), Failure> {
        on_wire!(mut self, wire => wire.prepare(statements))
    }

    /// Queues prepared statement `id` with its parameters, in the order of its `$n`.
    pub fn bind(&mut self, id: usize, params: &[Param<'_>]) {
        self.count += 1;
        on_wire!(mut self, wire => wire.bind(id, params));
    }

    /// Sends what is queued and waits for the whole answer: in one write to PostgreSQL, one statement after the other to
    /// MySQL, whose protocol knows no other way. The rows of all its statements can then be looked at.
    pub fn run(&mut self) -> Result<(), Failure> {
        on_wire!(mut self, wire => wire.run())
    }

    /// One statement, one round trip.
    pub fn call(&mut self, id: usize, params: &[Param<'_>]) -> Result<(), Failure> {
        self.bind(id, params);
        self.run()
    }

    /// Runs SQL text that is not prepared.
    pub fn query(&mut self, sql: &str) -> Result<(), Failure> {
        self.count += 1;
        on_wire!(mut self, wire => wire.query(sql))
    }

    /// The first cell of the first row of a query, as text.
    pub fn query_one(&mut self, sql: &str) -> Result<Option<String>, Failure> {
        self.query(sql)?;
        let cell = self.first(sql)?.cells().next().ok_or_else(|| nonsense("a row without columns"))?;
        Ok(cell.map(|text| String::from_utf8_lossy(text).into_owned()))
    }

    /// Sends rows to `table`, written as `name` or `name (column, …)`: by COPY, or by LOAD DATA. `fill` appends rows in COPY's
    /// text format to the buffer until it answers `false`; it is called again each time the buffer was sent. Returns the
    /// rows that the server counted.
    pub fn copy_in(&mut self, table: &str, fill: impl FnMut(&mut Vec<u8>) -> bool) -> Result<u64, Failure> {
        match &mut self.wire {
            Wire::Postgres(wire) => wire.copy_in(&format!("COPY {table} FROM STDIN"), fill),
            Wire::MySql(wire) => wire.load_data(table, fill),
        }
    }
}

/// A connection of one of a thread's clients, which does not keep the others waiting while it waits for an answer: its calls are
/// futures of a [`reactor`](crate::reactor). MySQL's client, which is a library, blocks the thread nevertheless.
pub struct AsyncConnection(Connection);

impl AsyncConnection {
    /// Over a connection between two answers.
    pub fn new(connection: Connection) -> AsyncConnection {
        AsyncConnection(connection)
    }

    /// As [`Connection::run`].
    pub async fn run(&mut self) -> Result<(), Failure> {
        match &mut self.0.wire {
            Wire::Postgres(wire) => wire.run_in_turn().await,
            Wire::MySql(wire) => wire.run(),
        }
    }

    /// As [`Connection::call`].
    pub fn call<'s>(
        &'s mut self,
        id: usize,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<(), Failure>> + use<'s> {
        self.bind(id, params);
        self.run()
    }

    /// As [`Connection::query`].
    pub async fn query(&mut self, sql: &str) -> Result<(), Failure> {
        self.0.count += 1;
        match &mut self.0.wire {
            Wire::Postgres(wire) => wire.query_in_turn(sql).await,
            Wire::MySql(wire) => wire.query(sql),
        }
    }
}

impl Deref for AsyncConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for AsyncConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}
