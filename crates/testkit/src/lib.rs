//! The parts of end-to-end tests: a PostgreSQL to compare with, the server under test, a raw client, and judges.
//!
//! Responsible for: starting and killing both servers ([`Oracle`], [`Nyala`]), a client that shows each answer exactly
//! as it came over the wire ([`Connection`], [`Reply`]), scripts whose answers must be equal on both servers
//! ([`script`]), interleaved schedules ([`schedule`]), the judge of recorded histories ([`history`]), random queries ([`query`]).
//! Not responsible for: knowing what an answer should be. PostgreSQL says that, or an invariant of the test; what it has said is in the scripts.
//! Invariants: no server and no directory outlives the test's process, however that ends. Nothing here runs in the server.
//! Start at [`Target`]; read `crates/testkit/tests/slt.rs` first.

#![forbid(unsafe_code)]

pub mod alterations;
pub mod barriers;
pub mod changes;
mod client;
mod compare;
pub mod expressions;
pub mod formats;
pub mod history;
pub mod interleaving;
pub mod joins;
mod nyala;
mod oracle;
pub mod overloads;
pub mod pages;
mod process;
pub mod query;
mod random;
mod reply;
pub mod rights;
pub mod scalars;
pub mod schedule;
pub mod schemas;
pub mod script;
mod skipped;
mod target;

pub use client::Connection;
pub use compare::{Comparison, both};
pub use nyala::Nyala;
pub use oracle::Oracle;
pub use random::Random;
pub use reply::{Column, Event, Fields, Reply, known_type, without_session};
pub use rustix::process::Signal;
pub use skipped::skip;
pub use target::Target;
