//! Functions of dates, times and intervals.

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];
