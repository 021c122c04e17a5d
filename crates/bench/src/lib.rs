//! The lab: workloads that measure any server that speaks PostgreSQL's protocol, and say whether its answers were
//! right.
//!
//! Responsible for: the workloads and their data ([`tpcc`], [`tpch`], [`coldstart`]), a lean client ([`client`]), CPU time of both sides
//! ([`cpu`]), reports for people and for programs.
//! Not responsible for: starting or configuring servers (but [`coldstart`], which is about starting one), knowing which server
//! it talks to: every target gets the same statements in the same order, and a statement that one target refuses is not
//! replaced by another.
//! Invariants: a run is repeatable from its printed seed, but for the timing of clients; a figure is printed with the
//! settings it was taken under; a run whose data is inconsistent afterwards fails.
//!
//! Start at [`tpcc::main`]; read the test `planted_corruption_is_found` first.

#![forbid(unsafe_code)]

pub mod client;
pub mod coldstart;
pub mod cpu;
mod progress;
pub mod rng;
mod scram;
pub mod target;
pub mod tpcc;
pub mod tpch;

pub use target::Target;
