//! to_char and kin, format().

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];
