//! Databases, schemas, roles, tablespaces, settings.

use engine_api::{CatalogObject, RoleDesc, oids};
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::{SystemRows, access, oid, row, text};

pub(super) fn namespaces(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let database = cx.identity().database_oid;
    let mut rows = Vec::new();
    for object in catalog.walk() {
        if let CatalogObject::Schema(s) = &**object
            && (!s.database.is_valid() || s.database == database)
        {
            let acl = access::of_object(&catalog, s.oid);
            let columns =
                vec![("oid", oid(s.oid)), ("nspname", text(&s.name)), ("nspowner", oid(s.owner)), ("nspacl", acl)];
            rows.push(row(rel, columns));
        }
    }
    Ok(rows)
}

pub(super) fn databases(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for object in catalog.walk() {
        if let CatalogObject::Database(d) = &**object {
            rows.push(row(
                rel,
                vec![
                    ("oid", oid(d.oid)),
                    ("datname", text(&d.name)),
                    ("datdba", oid(d.owner)),
                    ("encoding", Datum::Int4(6)),
                    ("datlocprovider", text("c")),
                    ("datistemplate", Datum::Bool(d.is_template())),
                    ("datallowconn", Datum::Bool(d.takes_connections())),
                    ("datconnlimit", Datum::Int4(-1)),
                    ("datfrozenxid", Datum::Oid(0)),
                    ("datminmxid", Datum::Oid(0)),
                    ("dattablespace", Datum::Oid(1663)),
                    ("datcollate", text("C.UTF-8")),
                    ("datctype", text("C.UTF-8")),
                    ("datacl", access::of_object(&catalog, d.oid)),
                ],
            ));
        }
    }
    Ok(rows)
}

fn each_role(cx: &dyn EvalContext, mut make: impl FnMut(&RoleDesc) -> Vec<Datum>) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for object in catalog.walk() {
        if let CatalogObject::Role(role) = &**object {
            rows.push(make(role));
        }
    }
    Ok(rows)
}

/// Roles that may log in.
fn each_user(cx: &dyn EvalContext, mut make: impl FnMut(&RoleDesc) -> Vec<Datum>) -> SystemRows {
    let catalog = cx.catalog();
    let users = catalog.walk().filter_map(|o| catalog.role_by_oid(o.oid())).filter(|role| role.login);
    Ok(users.map(&mut make).collect())
}

fn valid_until(role: &RoleDesc) -> Datum {
    role.valid_until.map_or(Datum::Null, Datum::TimestampTz)
}

fn role_columns(role: &RoleDesc) -> Vec<(&'static str, Datum)> {
    vec![
        ("oid", oid(role.oid)),
        ("rolname", text(&role.name)),
        ("rolsuper", Datum::Bool(role.superuser)),
        ("rolinherit", Datum::Bool(role.inherit)),
        ("rolcreaterole", Datum::Bool(role.create_role)),
        ("rolcreatedb", Datum::Bool(role.create_database)),
        ("rolcanlogin", Datum::Bool(role.login)),
        ("rolreplication", Datum::Bool(role.replication)),
        ("rolconnlimit", Datum::Int4(role.connection_limit)),
        ("rolbypassrls", Datum::Bool(role.bypass_row_security)),
        ("rolvaliduntil", valid_until(role)),
    ]
}

pub(super) fn roles(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    each_role(cx, |role| {
        let mut columns = role_columns(role);
        columns.push(("rolpassword", text("********")));
        columns.push(("rolconfig", access::config_of(role, base::Oid::INVALID)));
        row(rel, columns)
    })
}

pub(super) fn authids(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    each_role(cx, |role| {
        let mut columns = role_columns(role);
        columns.push(("rolpassword", role.password.as_ref().map_or(Datum::Null, text)));
        row(rel, columns)
    })
}

fn user_columns(role: &RoleDesc, password: Datum) -> Vec<(&'static str, Datum)> {
    vec![
        ("usename", text(&role.name)),
        ("usesysid", oid(role.oid)),
        ("usecreatedb", Datum::Bool(role.create_database)),
        ("usesuper", Datum::Bool(role.superuser)),
        ("userepl", Datum::Bool(role.replication)),
        ("usebypassrls", Datum::Bool(role.bypass_row_security)),
        ("passwd", password),
        ("valuntil", valid_until(role)),
        ("useconfig", access::config_of(role, base::Oid::INVALID)),
    ]
}

pub(super) fn users(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    each_user(cx, |role| row(rel, user_columns(role, text("********"))))
}

pub(super) fn shadow(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    each_user(cx, |role| row(rel, user_columns(role, role.password.as_ref().map_or(Datum::Null, text))))
}

/// OIDs and names of the tablespaces.
pub(crate) const TABLESPACES: [(u32, &str); 2] = [(1663, "pg_default"), (1664, "pg_global")];

pub(super) fn tablespaces(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    let one = |id: u32, name: &str| {
        row(rel, vec![("oid", Datum::Oid(id)), ("spcname", text(name)), ("spcowner", oid(oids::ROLE_POSTGRES))])
    };
    Ok(TABLESPACES.iter().map(|&(id, name)| one(id, name)).collect())
}

pub(super) fn cursors(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let shown = cx.cursors().into_iter().map(|cursor| {
        row(
            rel,
            vec![
                ("name", text(&cursor.name)),
                ("statement", text(&cursor.statement)),
                ("is_holdable", Datum::Bool(cursor.holdable)),
                ("is_binary", Datum::Bool(cursor.binary)),
                ("is_scrollable", Datum::Bool(cursor.scrollable)),
                ("creation_time", Datum::TimestampTz(cursor.time)),
            ],
        )
    });
    Ok(shown.collect())
}

pub(super) fn prepared_statements(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let types = |types: &[base::Oid]| {
        let values: Vec<Datum> = types.iter().map(|t| Datum::Oid(t.0)).collect();
        let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
        Datum::Array(types::Array { element: types::oid::REGTYPE, dims, values }.into())
    };
    Ok(cx
        .prepared_statements()
        .into_iter()
        .map(|prepared| {
            row(
                rel,
                vec![
                    ("name", text(&prepared.name)),
                    ("statement", text(&prepared.text)),
                    ("prepare_time", Datum::TimestampTz(prepared.time)),
                    ("parameter_types", types(&prepared.param_types)),
                    ("from_sql", Datum::Bool(prepared.from_sql)),
                    ("generic_plans", Datum::Int8(0)),
                    ("custom_plans", Datum::Int8(0)),
                ],
            )
        })
        .collect())
}
