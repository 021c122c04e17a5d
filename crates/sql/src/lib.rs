//! SQL: parse → bind → plan → compile → execute, and the session that drives it.
//!
//! Responsible for: PostgreSQL's semantics of statements, sessions and transaction blocks, `pg_catalog`, DDL, COPY's rows.
//! Not responsible for: bytes on the wire (`pgwire`), how rows are stored or made durable (behind `engine-api`).
//! Invariants: nothing here blocks a thread; a statement that must wait returns a [`engine_api::Wait`] and is resumed;
//! a cached plan is used only while the objects it was bound to have their versions.

#![forbid(unsafe_code)]

pub mod bind;
mod ddl;
pub mod definitions;
pub mod exec;
pub mod expr;
pub mod functions;
pub mod index_code;
pub mod ir;
pub mod metrics;
pub mod monitor;
mod names;
pub mod parse;
pub mod plan;
pub mod privileges;
mod row_codec;
pub mod session;
pub mod statistics;
pub mod system;
mod thread;
