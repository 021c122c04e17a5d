//! Proof of identity.

pub(crate) mod guesses;
pub mod scram;
