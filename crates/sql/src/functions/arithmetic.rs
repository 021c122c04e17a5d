//! Arithmetic of integers, floats and NUMERIC: the functions behind the operators.

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];
