//! A connection to MySQL or MariaDB, over the crate `mysql`. Answers are kept in the form of PostgreSQL's, so that workloads
//! read rows of either in the same way.
//!
//! The protocol has no pipeline: what is queued by [`Connection::bind`] costs a round trip a statement. Its SQL has no UPDATE …
//! RETURNING: the update is sent, then a SELECT of the same rows, whose condition the update must not have changed. BEGIN
//! takes no isolation level: the session gets it when the statement is prepared.

use std::io::Write;
use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use mysql::consts::CapabilityFlags;
use mysql::prelude::{Protocol, Queryable};
use mysql::{Conn, LocalInfileHandler, OptsBuilder, Params, QueryResult, Statement, Value};

use super::row::Row;
use super::text::push_cents;
use super::{Failure, Param};
use crate::target::Target;

/// Bytes of LOAD DATA that are sent at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces that may wait for the server.
const PIECES: usize = 4;
/// `SERVER_STATUS_IN_TRANS` of the protocol, as the crate does not tell it: kept by the statements that were run.
const BEGINS: [&str; 2] = ["BEGIN", "START TRANSACTION"];
const ENDS: [&str; 2] = ["COMMIT", "ROLLBACK"];

/// What a statement of a workload has become.
enum Prepared {
    /// One whose parameters are those that are bound, in their order.
    Plain(Statement),
    /// One after the other, each with the places of its parameters.
    Statements(Vec<(Statement, Vec<usize>)>),
    /// BEGIN and its like: servers differ in whether they can be prepared.
    Text(String),
}

pub(super) struct Connection {
    conn: Conn,
    prepared: Vec<Prepared>,
    queue: Vec<(usize, Vec<Value>)>,
    answer: Answer,
    in_transaction: bool,
    server_version: String,
}

/// Rows as DataRow has them: a count of cells, then each with its length.
#[derive(Default)]
struct Answer {
    bytes: Vec<u8>,
    rows: Vec<Range<usize>>,
    affected: u64,
}

impl From<mysql::Error> for Failure {
    fn from(error: mysql::Error) -> Failure {
        match error {
            mysql::Error::MySqlError(error) => {
                // 1205 is a lock that was waited for too long and 1213 a deadlock: run again, as PostgreSQL's 40P01 is.
                let state = match error.code {
                    1205 | 1213 => *b"40P01",
                    _ => error.state.as_bytes().try_into().unwrap_or(*b"HY000"),
                };
                Failure::Server { state, message: format!("{} (error {})", error.message, error.code) }
            }
            other => Failure::Lost(other.to_string()),
        }
    }
}

impl Connection {
    pub fn open(target: &Target) -> Result<Connection, Failure> {
        let options = OptsBuilder::new()
            .user(Some(&target.user))
            .pass(target.password.as_deref())
            .db_name(Some(&target.database))
            .tcp_nodelay(true)
            // An update that leaves a row as it was has met it all the same, as PostgreSQL counts.
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
            // The statements of a workload stay prepared.
            .stmt_cache_size(0)
            // Asking for a socket would be a query more, and another path than the one that was named.
            .prefer_socket(false);
        let options = match target.socket_path() {
            Some(path) => options.socket(Some(path)),
            None => options.ip_or_hostname(Some(target.host.trim_matches(['[', ']']))).tcp_port(target.port),
        };
        let open = || {
            let mut conn = Conn::new(options)?;
            let version: Option<String> = conn.query_first("SELECT version()")?;
            Ok((conn, version.unwrap_or_default()))
        };
        let (conn, server_version) = open().map_err(|error: mysql::Error| match Failure::from(error) {
            Failure::Lost(why) => Failure::Lost(format!("{target}: {why}")),
            told => told,
        })?;
        Ok(Connection {
            conn,
            prepared: Vec::new(),
            queue: Vec::new(),
            answer: Answer::default(),
            in_transaction: false,
            server_version,
        })
    }

    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    pub fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    pub fn affected(&self) -> u64 {
        self.answer.affected
    }

    pub fn row_count(&self) -> usize {
        self.answer.rows.len()
    }

    pub fn row(&self, index: usize) -> Row<'_> {
        Row { cells: &self.answer.bytes[self.answer.rows[index].clone()] }
    }

    pub fn prepare(&mut self, statements: &[String]) -> Result<(), Failure> {
        for sql in statements {
            let prepared = if let Some(level) = sql.strip_prefix("BEGIN ISOLATION LEVEL ") {
                self.conn.query_drop(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))?;
                Prepared::Text("BEGIN".into())
            } else if starts_with_any(sql, &BEGINS) || starts_with_any(sql, &ENDS) {
                Prepared::Text(sql.clone())
            } else {
                let parts = without_returning(sql);
                let one = |part: &String| {
                    let (text, places) = question_marks(part);
                    Ok((self.conn.prep(text)?, places))
                };
                let mut all = parts.iter().map(one).collect::<Result<Vec<_>, Failure>>()?;
                match all.pop_if(|(_, places)| parts.len() == 1 && places.iter().copied().eq(0..places.len())) {
                    Some((statement, _)) => Prepared::Plain(statement),
                    None => Prepared::Statements(all),
                }
            };
            self.prepared.push(prepared);
        }
        Ok(())
    }

    pub fn bind(&mut self, id: usize, params: &[Param<'_>]) {
        self.queue.push((id, params.iter().map(value).collect()));
    }

    pub fn run(&mut self) -> Result<(), Failure> {
        self.answer.clear();
        for (id, params) in self.queue.drain(..) {
            match &self.prepared[id] {
                Prepared::Plain(statement) => {
                    self.answer.take(self.conn.exec_iter(statement, positional(params))?)?;
                }
                Prepared::Statements(statements) => {
                    for (statement, places) in statements {
                        let params = places.iter().map(|&place| params[place].clone()).collect();
                        self.answer.take(self.conn.exec_iter(statement, positional(params))?)?;
                    }
                }
                Prepared::Text(sql) => {
                    self.answer.take(self.conn.query_iter(sql)?)?;
                    self.in_transaction = starts_with_any(sql, &BEGINS);
                }
            }
        }
        Ok(())
    }

    pub fn query(&mut self, sql: &str) -> Result<(), Failure> {
        self.answer.clear();
        self.answer.take(self.conn.query_iter(sql)?)?;
        if starts_with_any(sql, &BEGINS) || starts_with_any(sql, &ENDS) {
            self.in_transaction = starts_with_any(sql, &BEGINS);
        }
        Ok(())
    }

    /// Rows in COPY's text format, which LOAD DATA reads as it is.
    pub fn load_data(&mut self, table: &str, mut fill: impl FnMut(&mut Vec<u8>) -> bool) -> Result<u64, Failure> {
        let (pieces, received): (_, Receiver<Vec<u8>>) = sync_channel(PIECES);
        let mut received = Some(received);
        self.conn.set_local_infile_handler(Some(LocalInfileHandler::new(move |_, server| {
            received.take().into_iter().flatten().try_for_each(|piece| server.write_all(&piece))
        })));
        let (name, columns) = match table.split_once('(') {
            Some((name, columns)) => (name.trim(), format!(" ({columns}")),
            None => (table, String::new()),
        };
        let sql = format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} CHARACTER SET utf8mb4{columns}");
        let conn = &mut self.conn;
        let loaded = thread::scope(|scope| {
            let load = scope.spawn(move || {
                let loaded = conn.query_drop(sql).map(|()| conn.affected_rows());
                // Without the handler nobody receives any more, and who sends is told so.
                conn.set_local_infile_handler(None);
                loaded
            });
            let mut more = true;
            while more {
                let mut piece = Vec::with_capacity(PIECE_BYTES + (PIECE_BYTES >> 3));
                while more && piece.len() < PIECE_BYTES {
                    more = fill(&mut piece);
                }
                if pieces.send(piece).is_err() {
                    break;
                }
            }
            drop(pieces);
            load.join().expect("the load does not panic")
        });
        Ok(loaded?)
    }
}

impl Answer {
    fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
        self.affected = 0;
    }

    /// Takes a statement's result; its rows come after those of earlier ones.
    fn take<P: Protocol>(&mut self, mut result: QueryResult<'_, '_, '_, P>) -> Result<(), Failure> {
        let (affected, before, mut has_rows) = (result.affected_rows(), self.rows.len(), false);
        while let Some(rows) = result.iter() {
            has_rows |= rows.columns().as_ref().iter().next().is_some();
            for row in rows {
                self.push(row?.unwrap_raw());
            }
        }
        self.affected = if has_rows { (self.rows.len() - before) as u64 } else { affected };
        Ok(())
    }

    fn push(&mut self, cells: Vec<Option<Value>>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&(cells.len() as u16).to_be_bytes());
        for cell in cells {
            let at = self.bytes.len();
            self.bytes.extend_from_slice(&[0; 4]);
            let length = match cell {
                None | Some(Value::NULL) => -1,
                Some(value) => {
                    push_value(&mut self.bytes, value);
                    (self.bytes.len() - at - 4) as i32
                }
            };
            self.bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        self.rows.push(start..self.bytes.len());
    }
}

fn positional(params: Vec<Value>) -> Params {
    if params.is_empty() { Params::Empty } else { Params::Positional(params) }
}

fn starts_with_any(sql: &str, words: &[&str]) -> bool {
    words.iter().any(|word| sql.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
}

fn value(param: &Param<'_>) -> Value {
    match *param {
        Param::Int(value) => Value::Int(value),
        Param::Cents(cents) => {
            let mut text = Vec::new();
            push_cents(&mut text, cents);
            Value::Bytes(text)
        }
        Param::Text(text) => Value::Bytes(text.to_vec()),
        Param::Null => Value::NULL,
    }
}

/// Appends a value as text.
fn push_value(out: &mut Vec<u8>, value: Value) {
    match value {
        Value::Bytes(bytes) => out.extend_from_slice(&bytes),
        Value::Int(value) => super::text::push_int(out, value),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}");
            out.extend_from_slice(text.as_bytes());
        }
        Value::UInt(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Float(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Double(value) => out.extend_from_slice(value.to_string().as_bytes()),
        other => out.extend_from_slice(other.as_sql(true).trim_matches('\'').as_bytes()),
    }
}

/// `$1` and its like as `?`, and which parameter each stands for, from 0.
fn question_marks(sql: &str) -> (String, Vec<usize>) {
    let (mut out, mut places) = (String::with_capacity(sql.len()), Vec::new());
    let mut parts = sql.split('$');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number: usize = part[..part.len() - rest.len()].parse().expect("a parameter has a number");
        places.push(number - 1);
        out.push('?');
        out.push_str(rest);
    }
    (out, places)
}

/// An update that returns rows as two statements; any other as it is.
fn without_returning(sql: &str) -> Vec<String> {
    let parts = || {
        let (update, columns) = sql.split_once(" RETURNING ")?;
        let table = update.strip_prefix("UPDATE ")?.split(' ').next()?;
        let (_, condition) = update.rsplit_once(" WHERE ")?;
        Some(vec![update.to_string(), format!("SELECT {columns} FROM {table} WHERE {condition}")])
    };
    parts().unwrap_or_else(|| vec![sql.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_question_marks() {
        let (sql, places) = question_marks("UPDATE t SET a = $3, b = b + $3 WHERE id = $1 AND k IN ($2,$4)");
        assert_eq!(sql, "UPDATE t SET a = ?, b = b + ? WHERE id = ? AND k IN (?,?)");
        assert_eq!(places, [2, 2, 0, 1, 3]);
        assert_eq!(question_marks("COMMIT"), ("COMMIT".into(), Vec::new()));
    }

    #[test]
    fn an_update_that_returns_rows_is_two_statements() {
        let sql = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id, d_tax";
        let expected = [
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2",
            "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = $1 AND d_id = $2",
        ];
        assert_eq!(without_returning(sql), expected);
        assert_eq!(without_returning("DELETE FROM t WHERE a = $1"), ["DELETE FROM t WHERE a = $1"]);
    }

    #[test]
    fn values_read_as_rows_of_the_other_protocol() {
        let mut answer = Answer::default();
        let date = Value::Date(2026, 11, 3, 4, 5, 6, 7);
        answer.push(vec![Some(Value::Int(-5)), Some(Value::NULL), Some(Value::Bytes(b"x".to_vec())), Some(date)]);
        let row = Row { cells: &answer.bytes[answer.rows[0].clone()] };
        assert_eq!(row.int(0).unwrap(), -5);
        let cells: Vec<_> = row.cells().skip(1).collect();
        assert_eq!(cells, [None, Some(&b"x"[..]), Some(&b"2026-11-03 04:05:06.000007"[..])]);
    }
}
