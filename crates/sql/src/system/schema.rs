//! The columns of the system relations, as PostgreSQL 15 has them.
//!
//! Types that Nyala does not have are shown as text: access lists, node trees, network addresses.

mod information;
mod tables;
mod views;

use super::SystemRelation;

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static SystemRelation> {
    [tables::RELATIONS, views::RELATIONS, information::RELATIONS].into_iter().flatten()
}
