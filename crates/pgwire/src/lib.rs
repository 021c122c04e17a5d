//! PostgreSQL's wire protocol 3.0, server side: a pure codec, an output queue with a gate, a connection loop over
//! [`Backend`] and [`Session`], and an acceptor that spreads connections over cores.
//!
//! Responsible for: messages, start-up, SCRAM-SHA-256, pipelining, COPY framing, cancel requests, back-pressure, holding
//! replies back until what they depend on is durable (rule R1), the life of sockets.
//! Not responsible for: SQL, transactions, statements and portals (a [`Session`] has them), who may log in
//! ([`Backend::authenticate`] decides), what "durable" is ([`DurableHorizon`] tells).
//! Invariants: bytes leave a connection in the order they were queued, none before its gate is durable; bytes from a
//! client never panic and never make a buffer grow past the bytes that client has sent; all messages that are buffered
//! are executed before one write answers them, unless one suspends; nothing is allocated per message in a steady state.
//!
//! Start at [`conn::serve`]; read the test `gate_holds_replies_back_while_later_statements_run` first.

#![forbid(unsafe_code)]

pub mod auth;
mod buffers;
pub mod conn;
mod fuzz;
mod out;
mod outbox;
pub mod proto;
mod registry;
mod server;
mod session;
mod starting;
pub mod timers;
mod tls;

pub use auth::scram;
pub use buffers::buffered_bytes;
pub use fuzz::fuzz_decode;
pub use out::{CopyIn, Out, Row};
pub use outbox::{MakeSendMany, SendMany};
pub use proto::{Bind, Column, Format, Formats, ParamTypes, Parse, Startup, Values};
pub use registry::{BackendKey, CancelHandle, Registry};
pub use server::{Server, ServerConfig};
pub use session::{AuthPlan, Backend, DurableHorizon, Peer, Session, TransactionStatus};
pub use tls::{CertificateHash, Encryption, Tls};
