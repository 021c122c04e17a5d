//! Functions about the session and the catalog.

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];
