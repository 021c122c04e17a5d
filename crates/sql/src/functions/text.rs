//! Functions of text and bytea.

pub(super) mod names;

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];
