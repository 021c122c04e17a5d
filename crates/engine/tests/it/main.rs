//! The shard through the traits that SQL uses: what transactions see, wait for, and find again after a crash.

mod accounting;
mod carried;
mod checked;
mod checkpoints;
mod fixtures;
mod indexes;
mod large;
mod loads;
mod made_types;
mod memory;
mod prepared;
mod prepared_definitions;
mod read_sets;
mod savepoints;
mod sequences;
mod support;
mod transactions;
mod transcripts;
mod waits;
