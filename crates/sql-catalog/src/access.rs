//! Access lists as catalogs show them, memberships, default privileges.

use engine_api::{AclItem, Catalog, CatalogObject, RoleDesc};
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use sql_parse::privileges::acl;
use types::Datum;

use super::relations::text_array;
use super::{SystemRows, oid, row, text};

fn list_of(catalog: &Catalog, items: &[AclItem]) -> Datum {
    text_array(items.iter().map(|item| text(acl::text_of(catalog, item))).collect())
}

/// The access list of an object; NULL while it is the one it began with.
pub(super) fn of_object(catalog: &Catalog, object: base::Oid) -> Datum {
    let items = catalog.privileges(object).and_then(|list| list.items.as_ref());
    items.map_or(Datum::Null, |items| list_of(catalog, items))
}

/// The access list of a column.
pub(super) fn of_column(catalog: &Catalog, table: base::Oid, number: i16) -> Datum {
    let items = catalog.privileges(table).and_then(|list| list.columns.get(&number));
    items.map_or(Datum::Null, |items| list_of(catalog, items))
}

fn roles(catalog: &Catalog) -> impl Iterator<Item = &RoleDesc> {
    catalog.walk().filter_map(|object| match &**object {
        CatalogObject::Role(role) => Some(role),
        _ => None,
    })
}

pub(super) fn members(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for member in roles(&catalog) {
        for membership in &member.member_of {
            rows.push(row(
                rel,
                vec![
                    ("roleid", oid(membership.role)),
                    ("member", oid(member.oid)),
                    ("grantor", oid(membership.grantor)),
                    ("admin_option", Datum::Bool(membership.admin)),
                ],
            ));
        }
    }
    Ok(rows)
}

pub(super) fn defaults(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let database = cx.identity().database_oid;
    let mut rows = Vec::new();
    for role in roles(&catalog) {
        for (n, default) in role.default_privileges.iter().enumerate().filter(|(_, d)| d.is_in(database)) {
            // Made from its place: stable, and apart from those of objects.
            let own = role.oid.0.wrapping_mul(64).wrapping_add(n as u32) | 3 << 30;
            rows.push(row(
                rel,
                vec![
                    ("oid", Datum::Oid(own)),
                    ("defaclrole", oid(role.oid)),
                    ("defaclnamespace", oid(default.schema)),
                    ("defaclobjtype", text(default.kind.to_string())),
                    ("defaclacl", list_of(&catalog, &default.items)),
                ],
            ));
        }
    }
    Ok(rows)
}

/// Settings of roles in databases.
pub(super) fn settings(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for role in roles(&catalog) {
        let mut databases: Vec<base::Oid> = role.settings.iter().map(|s| s.database).collect();
        databases.sort_unstable();
        databases.dedup();
        for database in databases {
            rows.push(row(
                rel,
                vec![
                    ("setdatabase", oid(database)),
                    ("setrole", oid(role.oid)),
                    ("setconfig", config_of(role, database)),
                ],
            ));
        }
    }
    for role in roles(&catalog).filter(|role| !role.settings_of_all.is_empty()) {
        let values = role.settings_of_all.iter().map(|s| text(format!("{}={}", s.name, s.value))).collect();
        let columns =
            vec![("setdatabase", Datum::Oid(0)), ("setrole", Datum::Oid(0)), ("setconfig", text_array(values))];
        rows.push(row(rel, columns));
    }
    for object in catalog.walk() {
        if let CatalogObject::Database(database) = &**object
            && !database.settings.is_empty()
        {
            let values = database.settings.iter().map(|s| text(format!("{}={}", s.name, s.value))).collect();
            let columns =
                vec![("setdatabase", oid(database.oid)), ("setrole", Datum::Oid(0)), ("setconfig", text_array(values))];
            rows.push(row(rel, columns));
        }
    }
    Ok(rows)
}

/// The settings of a role in a database, as `name=value`; NULL if there are none.
pub(super) fn config_of(role: &RoleDesc, database: base::Oid) -> Datum {
    let here = role.settings.iter().filter(|s| s.database == database);
    let values: Vec<Datum> = here.map(|s| text(format!("{}={}", s.name, s.value))).collect();
    if values.is_empty() { Datum::Null } else { text_array(values) }
}

/// Roles that may not log in, with their members.
pub(super) fn groups(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let members = |group: base::Oid| {
        let in_group = roles(&catalog).filter(|role| role.member_of.iter().any(|m| m.role == group));
        let values: Vec<Datum> = in_group.map(|role| oid(role.oid)).collect();
        let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
        Datum::Array(std::sync::Arc::new(types::Array { element: types::oid::OID, dims, values }))
    };
    let all = roles(&catalog).filter(|role| !role.login);
    Ok(all
        .map(|role| {
            let columns =
                vec![("groname", text(&role.name)), ("grosysid", oid(role.oid)), ("grolist", members(role.oid))];
            row(rel, columns)
        })
        .collect())
}
