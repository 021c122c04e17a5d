//! Set-returning functions.

use super::SetFunction;

/// The table.
pub(super) static SET_FUNCTIONS: &[SetFunction] = &[];
