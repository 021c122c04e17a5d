//! Functions of json and jsonb.

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];
