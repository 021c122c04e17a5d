//! Memory: what rows, indexes and the rest may take, who waits for it, and what is refused.

pub(crate) mod accounts;
pub(crate) mod figures;
pub(crate) mod throttle;
pub(crate) mod working;
