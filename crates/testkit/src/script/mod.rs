//! Scripts of statements: each runs on PostgreSQL and on the server under test, and the answers must be equal in every byte a client
//! can see. What PostgreSQL has answered stands in the script, too ([`recorded`]).
//!
//! A script runs twice: over the simple protocol, and with the single statements of the plural records and of `values`
//! sent by the extended protocol, asking for binary results.
//!
//! A script is a list of records, separated by empty lines. A record is a header line and SQL:
//!
//! ```text
//! # A comment.
//! statement ok
//! CREATE TABLE t (a integer);
//!
//! queries sort
//! SELECT * FROM t;
//! SELECT a + 1 FROM t;
//!
//! statement error 42P07
//! CREATE TABLE t (a integer);
//! ```
//!
//! - `statement ok`, `statement error [SQLSTATE]` and `query` send the whole record as one message.
//! - `statements ok`, `statements error [SQLSTATE]` and `queries` send each statement (up to a `;` at a line's end) alone.
//!   `ok` and `query` demand that PostgreSQL reports no error, `error` that it does: a slip in a script does not go unseen.
//! - `statement any` and `statements any` leave it to PostgreSQL.
//! - `values` has expressions with `; ` between them, and sends `SELECT` with one expression at a time.
//! - `copy` sends the lines before `----` and answers CopyInResponse with the lines after it.
//! - `bind` sends the lines before `----` by the extended protocol, once for each line after it: parameters separated by
//!   `|`, NULL spelled `\N`.
//! - `connection NAME`, alone, makes the following records run on a connection of that name.
//! - Modifiers at the end of a header: `sort` (order of rows is free), `text` (no binary results: they hold OIDs, which
//!   differ between databases), `skip-message` (errors and notices count by SQLSTATE only).

mod known;
mod parse;
pub mod recorded;
mod run;
mod summary;

pub use known::Known;
pub use parse::{Expect, Record, Script, Send};
pub use run::{Difference, Outcome, Protocol, record, run};
pub use summary::Summary;
