//! Functions of arrays.

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];
