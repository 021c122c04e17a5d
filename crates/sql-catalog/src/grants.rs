//! Privileges in information_schema, and pg_init_privs: those that objects have from the start.

use base::Oid;
use engine_api::{AclItem, Catalog, CatalogObject, Privileges, TableDesc, TableKind, TypeKind, oids};
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use sql_parse::privileges::{self, Who, roles};
use types::Datum;

use super::relations::{in_database, system_acl, tables_of};
use super::sight::Sight;
use super::views::name_of;
use super::{SystemRows, access, oid, row, text};

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
    /// The list says so itself.
    has_option: bool,
    grantable: bool,
}

impl Grant {
    /// Whether it is of or for a role that the current one has the rights of, or for everybody if that counts.
    fn is_seen(&self, sight: &Sight<'_>, public: bool) -> bool {
        let for_some = if self.grantee.is_valid() { sight.has_role(self.grantee) } else { public };
        for_some || sight.has_role(self.grantor)
    }
}

fn grants_of(catalog: &Catalog, items: &[AclItem], owner: Oid) -> Vec<Grant> {
    // Who has the rights of the owner may grant whatever is granted.
    let as_owner = |grantee: Oid| {
        let who = Who { role: grantee, database: Oid::INVALID };
        grantee.is_valid() && roles::has_privileges_of(catalog, who, owner)
    };
    let mut grants = Vec::new();
    for item in items {
        for one in item.privileges.each() {
            let name =
                Privileges::NAMES.iter().find(|(_, name)| Privileges::named(name) == Some(one)).map_or("", |n| n.1);
            let has_option = item.grantable.contains(one);
            let grantable = has_option || as_owner(item.grantee);
            grants.push(Grant { grantor: item.grantor, grantee: item.grantee, name, has_option, grantable });
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
    let sight = Sight::new(&catalog, cx);
    let sees = |grant: &Grant| grant.is_seen(&sight, public);
    for table in tables_of(&catalog, cx).iter().filter(|t| t.kind != TableKind::MaterializedView) {
        let Some(object) = catalog.get(table.oid) else { continue };
        for grant in grants_of(&catalog, &privileges::items_of(&catalog, object), table.owner).into_iter().filter(sees)
        {
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

fn of_tables(rel: &SystemRelation, cx: &dyn EvalContext, public: bool) -> SystemRows {
    let mut rows = Vec::new();
    each_table(cx, public, |_, _, grant, mut values| {
        values.push(("with_hierarchy", text(if grant.name == "SELECT" { "YES" } else { "NO" })));
        rows.push(row(rel, values));
    });
    Ok(rows)
}

pub(super) fn table_privileges(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    of_tables(rel, cx, true)
}

pub(super) fn role_table_grants(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    of_tables(rel, cx, false)
}

fn of_columns(rel: &SystemRelation, cx: &dyn EvalContext, public: bool) -> SystemRows {
    let mut rows = Vec::new();
    each_table(cx, public, |_, table, grant, values| {
        if OF_COLUMNS.contains(&grant.name) {
            for column in table.live_columns() {
                let mut values = values.clone();
                values.push(("column_name", text(&column.name)));
                rows.push((row(rel, values), grant.has_option));
            }
        }
    });
    let (catalog, database) = (cx.catalog(), cx.identity().database);
    let sight = Sight::new(&catalog, cx);
    for table in tables_of(&catalog, cx).iter().filter(|t| t.kind != TableKind::MaterializedView) {
        let Some(list) = catalog.privileges(table.oid) else { continue };
        for (number, items) in &list.columns {
            let Some(column) = table.live_columns().find(|column| column.number == *number) else { continue };
            for grant in grants_of(&catalog, items, table.owner).into_iter().filter(|g| g.is_seen(&sight, public)) {
                let values = vec![
                    ("grantor", text(role_name(&catalog, grant.grantor))),
                    ("grantee", text(role_name(&catalog, grant.grantee))),
                    ("table_catalog", text(&database)),
                    ("table_schema", text(name_of(&catalog, table.schema))),
                    ("table_name", text(&table.name)),
                    ("column_name", text(&column.name)),
                    ("privilege_type", text(grant.name)),
                    ("is_grantable", text(if grant.grantable { "YES" } else { "NO" })),
                ];
                rows.push((row(rel, values), grant.has_option));
            }
        }
    }
    // What a table's list and a column's say alike is one row; what only one of them says may be granted further, two.
    rows.sort_by_cached_key(|row| format!("{row:?}"));
    rows.dedup();
    Ok(rows.into_iter().map(|(row, _)| row).collect())
}

pub(super) fn column_privileges(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    of_columns(rel, cx, true)
}

pub(super) fn role_column_grants(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    of_columns(rel, cx, false)
}

/// USAGE on domains and sequences, as far as the current user may see it.
fn of_usage(rel: &SystemRelation, cx: &dyn EvalContext, public: bool) -> SystemRows {
    let (catalog, identity) = (cx.catalog(), cx.identity());
    let (sight, mut rows) = (Sight::new(&catalog, cx), Vec::new());
    for object in catalog.walk() {
        let kind = match &**object {
            // PostgreSQL takes a sequence without a list of its own for a table, which has no USAGE.
            CatalogObject::Sequence(_) if catalog.privileges(object.oid()).is_none_or(|list| list.items.is_none()) => {
                continue;
            }
            CatalogObject::Sequence(_) => "SEQUENCE",
            CatalogObject::Type(ty) if matches!(ty.kind, TypeKind::Domain(_)) => "DOMAIN",
            _ => continue,
        };
        let (schema, Some(owner)) = (object.namespace().1, privileges::owner_of(&catalog, object)) else { continue };
        if !in_database(&catalog, schema, cx) {
            continue;
        }
        let all = grants_of(&catalog, &privileges::items_of(&catalog, object), owner);
        for grant in all.into_iter().filter(|grant| grant.name == "USAGE" && grant.is_seen(&sight, public)) {
            rows.push(row(
                rel,
                vec![
                    ("grantor", text(role_name(&catalog, grant.grantor))),
                    ("grantee", text(role_name(&catalog, grant.grantee))),
                    ("object_catalog", text(&identity.database)),
                    ("object_schema", text(name_of(&catalog, schema))),
                    ("object_name", text(object.name())),
                    ("object_type", text(kind)),
                    ("privilege_type", text("USAGE")),
                    ("is_grantable", text(if grant.grantable { "YES" } else { "NO" })),
                ],
            ));
        }
    }
    Ok(rows)
}

pub(super) fn usage_privileges(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    of_usage(rel, cx, true)
}

pub(super) fn role_usage_grants(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    of_usage(rel, cx, false)
}

/// Memberships of the roles that the current user has the rights of.
pub(super) fn applicable_roles(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    memberships(rel, cx, false)
}

/// Those of them that may be granted on.
pub(super) fn administrable_roles(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    memberships(rel, cx, true)
}

fn memberships(rel: &SystemRelation, cx: &dyn EvalContext, only_admin: bool) -> SystemRows {
    let (catalog, identity) = (cx.catalog(), cx.identity());
    let (sight, mut rows) = (Sight::new(&catalog, cx), Vec::new());
    let owner = catalog.database(&identity.database).map(|database| database.owner);
    for object in catalog.walk() {
        let CatalogObject::Role(member) = &**object else { continue };
        if !sight.has_role(member.oid) {
            continue;
        }
        let implied = (owner == Some(member.oid)).then_some((oids::ROLE_DATABASE_OWNER, false));
        let all = member.member_of.iter().map(|m| (m.role, m.admin)).chain(implied);
        for (role, admin) in all.filter(|(_, admin)| *admin || !only_admin) {
            rows.push(row(
                rel,
                vec![
                    ("grantee", text(&member.name)),
                    ("role_name", text(name_of(&catalog, role))),
                    ("is_grantable", text(if admin { "YES" } else { "NO" })),
                ],
            ));
        }
    }
    Ok(rows)
}

/// What pg_dump takes for granted: the lists of system relations and of the schemas that every database has.
pub(super) fn initial(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
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
