//! Privileges in information_schema, and pg_init_privs: those that objects have from the start.

use base::Oid;
use engine_api::{AclItem, Catalog, CatalogObject, Privileges, TableDesc, TableKind, oids};
use types::Datum;

use super::relations::{system_acl, tables_of};
use super::views::name_of;
use super::{Rows, SystemRelation, access, oid, row, text};
use crate::functions::EvalContext;
use crate::privileges;

/// Privileges that columns have too.
const OF_COLUMNS: [&str; 4] = ["INSERT", "SELECT", "UPDATE", "REFERENCES"];

fn role_name(catalog: &Catalog, role: Oid) -> String {
    if role.is_valid() { name_of(catalog, role) } else { "PUBLIC".to_string() }
}

/// What the views say of one privilege of an access list.
struct Grant {
    grantor: Oid,
    grantee: Oid,
    name: &'static str,
    grantable: bool,
}

fn grants_of(items: &[AclItem], owner: Oid) -> Vec<Grant> {
    let mut grants = Vec::new();
    for item in items {
        for one in item.privileges.each() {
            let name =
                Privileges::NAMES.iter().find(|(_, name)| Privileges::named(name) == Some(one)).map_or("", |n| n.1);
            let grantable = item.grantable.contains(one) || item.grantee == owner;
            grants.push(Grant { grantor: item.grantor, grantee: item.grantee, name, grantable });
        }
    }
    grants
}

/// Calls `make` for what is granted on each table and view, as far as the current user may see it.
fn each_table(
    cx: &dyn EvalContext,
    public: bool,
    mut make: impl FnMut(&Catalog, &TableDesc, Grant, Vec<(&'static str, Datum)>),
) {
    let (catalog, identity) = (cx.catalog(), cx.identity());
    let me = catalog.role(&identity.current_user).map(|r| (r.oid, r.superuser));
    let sees = |g: &Grant| match me {
        Some((me, superuser)) => superuser || g.grantor == me || g.grantee == me || public && !g.grantee.is_valid(),
        None => false,
    };
    for table in tables_of(&catalog, cx).iter().filter(|t| t.kind != TableKind::MaterializedView) {
        let Some(object) = catalog.get(table.oid) else { continue };
        for grant in grants_of(&privileges::items_of(&catalog, object), table.owner).into_iter().filter(sees) {
            let names = vec![
                ("grantor", text(role_name(&catalog, grant.grantor))),
                ("grantee", text(role_name(&catalog, grant.grantee))),
                ("table_catalog", text(&identity.database)),
                ("table_schema", text(name_of(&catalog, table.schema))),
                ("table_name", text(&table.name)),
                ("privilege_type", text(grant.name)),
                ("is_grantable", text(if grant.grantable { "YES" } else { "NO" })),
            ];
            make(&catalog, table, grant, names);
        }
    }
}

fn of_tables(rel: &SystemRelation, cx: &dyn EvalContext, public: bool) -> Rows {
    let mut rows = Vec::new();
    each_table(cx, public, |_, _, grant, mut values| {
        values.push(("with_hierarchy", text(if grant.name == "SELECT" { "YES" } else { "NO" })));
        rows.push(row(rel, values));
    });
    Ok(rows)
}

pub(super) fn table_privileges(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    of_tables(rel, cx, true)
}

pub(super) fn role_table_grants(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    of_tables(rel, cx, false)
}

fn of_columns(rel: &SystemRelation, cx: &dyn EvalContext, public: bool) -> Rows {
    let mut rows = Vec::new();
    each_table(cx, public, |_, table, grant, values| {
        if OF_COLUMNS.contains(&grant.name) {
            for column in table.live_columns() {
                let mut values = values.clone();
                values.push(("column_name", text(&column.name)));
                rows.push(row(rel, values));
            }
        }
    });
    let (catalog, database) = (cx.catalog(), cx.identity().database);
    for table in tables_of(&catalog, cx) {
        let Some(list) = catalog.privileges(table.oid) else { continue };
        for (number, items) in &list.columns {
            let Some(column) = table.columns.get(*number as usize - 1) else { continue };
            for grant in grants_of(items, table.owner) {
                rows.push(row(
                    rel,
                    vec![
                        ("grantor", text(role_name(&catalog, grant.grantor))),
                        ("grantee", text(role_name(&catalog, grant.grantee))),
                        ("table_catalog", text(&database)),
                        ("table_schema", text(name_of(&catalog, table.schema))),
                        ("table_name", text(&table.name)),
                        ("column_name", text(&column.name)),
                        ("privilege_type", text(grant.name)),
                        ("is_grantable", text(if grant.grantable { "YES" } else { "NO" })),
                    ],
                ));
            }
        }
    }
    rows.sort_by_key(|row| format!("{row:?}"));
    rows.dedup();
    Ok(rows)
}

pub(super) fn column_privileges(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    of_columns(rel, cx, true)
}

pub(super) fn role_column_grants(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    of_columns(rel, cx, false)
}

/// Roles that the current user may become, by whom they are held.
pub(super) fn applicable_roles(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    let (catalog, identity) = (cx.catalog(), cx.identity());
    let me = catalog.role(&identity.current_user);
    let mut rows = Vec::new();
    for object in catalog.objects() {
        let CatalogObject::Role(member) = &**object else { continue };
        if !me.is_some_and(|me| me.superuser || me.oid == member.oid) {
            continue;
        }
        for membership in &member.member_of {
            rows.push(row(
                rel,
                vec![
                    ("grantee", text(&member.name)),
                    ("role_name", text(name_of(&catalog, membership.role))),
                    ("is_grantable", text(if membership.admin { "YES" } else { "NO" })),
                ],
            ));
        }
    }
    Ok(rows)
}

/// What pg_dump takes for granted: the lists of system relations and of the schemas that every database has.
pub(super) fn initial(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    let catalog = cx.catalog();
    let one = |object: Oid, class: u32, list: Datum| {
        row(
            rel,
            vec![
                ("objoid", oid(object)),
                ("classoid", Datum::Oid(class)),
                ("objsubid", Datum::Int4(0)),
                ("privtype", text("i")),
                ("initprivs", list),
            ],
        )
    };
    let mut rows: Vec<Vec<Datum>> = super::all().map(|s| one(s.oid, 1259, system_acl(s.name))).collect();
    for schema in [oids::SCHEMA_PG_CATALOG, oids::SCHEMA_INFORMATION_SCHEMA] {
        let list = access::of_object(&catalog, schema);
        if !list.is_null() {
            rows.push(one(schema, 2615, list));
        }
    }
    Ok(rows)
}
