//! Mathematical functions.

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];
