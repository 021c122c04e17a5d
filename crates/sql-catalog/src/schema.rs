//! The columns of the system relations, as PostgreSQL 15 has them.
//!
//! Types that Nyala does not have are shown as text: access lists, node trees, network addresses.

mod counters;
mod information;
mod standard;
mod tables;
mod unused;
mod views;

use sql_ir::system_relation::SystemRelation;

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static SystemRelation> {
    let catalog = [tables::RELATIONS, unused::RELATIONS, views::RELATIONS, counters::RELATIONS];
    let standard = [information::RELATIONS, standard::RELATIONS];
    catalog.into_iter().chain(standard).flatten()
}
