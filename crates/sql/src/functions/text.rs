//! Functions of text and bytea.

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];
