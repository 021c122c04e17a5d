//! Comparison functions of every type.

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];
