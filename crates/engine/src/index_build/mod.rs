//! CREATE INDEX: filling an index from the rows of a table, alone or beside writers.

pub(crate) mod build;
pub(crate) mod concurrent_build;
pub(crate) mod fill;
