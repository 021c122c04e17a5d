//! Memberships: whose privileges a role has, and which roles it may become.

use base::Oid;
use engine_api::{Catalog, CatalogObject, RoleDesc, oids};
use smallvec::SmallVec;

use super::Who;

/// Whether a role bypasses all checks.
pub fn is_superuser(catalog: &Catalog, role: Oid) -> bool {
    catalog.role_by_oid(role).is_some_and(|role| role.superuser)
}

/// The owner of a database.
fn database_owner(catalog: &Catalog, database: Oid) -> Option<Oid> {
    match catalog.get(database).map(|o| &**o) {
        Some(CatalogObject::Database(database)) => Some(database.owner),
        _ => None,
    }
}

/// A role and all it is a member of, itself first, then level by level, each in the order of the OIDs, as PostgreSQL goes through
/// them: it says in whose name a role grants. Only through roles that `passes`.
fn closure(catalog: &Catalog, who: Who, passes: impl Fn(&RoleDesc) -> bool) -> Vec<Oid> {
    let mut found = vec![who.role];
    let owner = database_owner(catalog, who.database);
    let mut next = 0;
    while let Some(&oid) = found.get(next) {
        next += 1;
        let Some(role) = catalog.role_by_oid(oid).filter(|role| passes(role)) else { continue };
        let implied = (owner == Some(oid)).then_some(oids::ROLE_DATABASE_OWNER);
        let mut direct: SmallVec<[Oid; 8]> = role.member_of.iter().map(|m| m.role).collect();
        direct.sort_unstable();
        for other in direct.into_iter().chain(implied) {
            if !found.contains(&other) {
                found.push(other);
            }
        }
    }
    found
}

/// The roles whose privileges a role has: itself, and through INHERIT.
pub fn with_privileges_of(catalog: &Catalog, who: Who) -> Vec<Oid> {
    closure(catalog, who, |role| role.inherit)
}

/// Whether a role has the privileges of another.
pub fn has_privileges_of(catalog: &Catalog, who: Who, other: Oid) -> bool {
    who.role == other || is_superuser(catalog, who.role) || with_privileges_of(catalog, who).contains(&other)
}

/// Whether a role is a member of another, so that it may become it.
pub fn is_member(catalog: &Catalog, who: Who, other: Oid) -> bool {
    is_superuser(catalog, who.role) || is_member_without_power(catalog, who, other)
}

/// Whether a role is a member of another, even were it no superuser.
pub fn is_member_without_power(catalog: &Catalog, who: Who, other: Oid) -> bool {
    who.role == other || closure(catalog, who, |_| true).contains(&other)
}

/// Whether a role may grant membership in another.
pub fn is_admin(catalog: &Catalog, who: Who, other: Oid) -> bool {
    let all = closure(catalog, who, |_| true);
    let mut memberships = all.iter().filter_map(|&role| catalog.role_by_oid(role)).flat_map(|role| &role.member_of);
    memberships.any(|membership| membership.role == other && membership.admin)
}

/// Whether two roles are members of each other through any number of steps, if `member` came to be one of `role`.
pub fn would_circle(catalog: &Catalog, role: Oid, member: Oid) -> bool {
    let who = Who { role, database: Oid::INVALID };
    is_member_without_power(catalog, who, member)
}
