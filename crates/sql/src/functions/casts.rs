//! The table of casts and the functions behind them.

use super::Function;

/// The table.
pub(super) static FUNCTIONS: &[Function] = &[];

/// The table of casts.
pub(super) static CASTS: &[super::CastEntry] = &[];
