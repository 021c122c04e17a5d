//! The table of operators.

use super::Operator;

/// The table.
pub(super) static OPERATORS: &[Operator] = &[];
