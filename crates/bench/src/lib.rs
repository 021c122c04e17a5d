//! The lab: workloads that measure any server that speaks PostgreSQL's protocol or MySQL's, and say whether its answers
//! were right.
//!
//! Responsible for: the workloads and their data, lean clients ([`client`]), the generator that drives them ([`drive`]), what a run costs
//! ([`cpu`], [`usage`]), results for people and for programs ([`result`]).
//! Not responsible for: configuring servers that it did not start; knowing which server it talks to: every target gets the same
//! statements in the same order, and a statement that one target refuses is not replaced by another but where the dialects of
//! SQL differ.
//! Invariants: a run is repeatable from its printed seed, but for the timing of clients; a figure is printed with the
//! settings it was taken under; a run whose data is inconsistent afterwards fails.
//!
//! Start at [`experiments::run`]; read the test `planted_corruption_is_found` first.

#![forbid(unsafe_code)]

pub mod client;
mod clock;
pub mod command;
pub mod compare;
pub mod cpu;
pub mod diff;
pub mod drive;
mod expected;
pub mod experiments;
mod interrupt;
pub mod options;
mod parallel;
mod progress;
mod reactor;
pub mod report;
pub mod result;
pub mod rng;
mod schema;
pub mod servers;
pub mod spread;
pub mod suite;
mod table;
pub mod target;
pub mod usage;

pub use target::Target;
