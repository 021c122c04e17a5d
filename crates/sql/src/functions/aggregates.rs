//! Aggregates.

use super::Aggregate;

/// The table.
pub(super) static AGGREGATES: &[Aggregate] = &[];
