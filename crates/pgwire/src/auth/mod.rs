//! Proof of identity.

pub mod scram;
