//! pg_extension and the views of what can be made: plpgsql, which every database has from the start, and what it was given.

use engine_api::{CatalogObject, ExtensionDesc, oids};
use sql_functions::{EvalContext, extensions};
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::{SystemRows, oid, row, text};

/// The extension that is always there: number, name, version, what it is.
const PLPGSQL: (u32, &str, &str, &str) = (13559, "plpgsql", "1.0", "PL/pgSQL procedural language");

/// Whether every database has an extension of this name.
pub fn is_always_there(name: &str) -> bool {
    name == PLPGSQL.1
}

pub(super) fn extensions(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let (catalog, database) = (cx.catalog(), cx.identity().database_oid);
    let plpgsql = ExtensionDesc {
        oid: base::Oid(PLPGSQL.0),
        database,
        name: PLPGSQL.1.to_string(),
        schema: oids::SCHEMA_PG_CATALOG,
        owner: oids::ROLE_POSTGRES,
        version: PLPGSQL.2.to_string(),
        comment: None,
    };
    let made = catalog.walk().filter_map(|object| match &**object {
        CatalogObject::Extension(extension) if extension.database == database => Some(extension),
        _ => None,
    });
    let shown = std::iter::once(&plpgsql).chain(made).map(|extension| {
        row(
            rel,
            vec![
                ("oid", oid(extension.oid)),
                ("extname", text(&extension.name)),
                ("extowner", oid(extension.owner)),
                ("extnamespace", oid(extension.schema)),
                ("extrelocatable", Datum::Bool(!is_always_there(&extension.name))),
                ("extversion", text(&extension.version)),
            ],
        )
    });
    Ok(shown.collect())
}

/// What can be made: name, version, what it is.
fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let (_, name, version, comment) = PLPGSQL;
    let others = extensions::EXTENSIONS.iter().map(|extension| (extension.name, extension.version, extension.comment));
    std::iter::once((name, version, comment)).chain(others)
}

/// The version that the database has.
fn installed(cx: &dyn EvalContext, name: &str) -> Option<String> {
    if is_always_there(name) {
        return Some(PLPGSQL.2.to_string());
    }
    cx.catalog().extension(cx.identity().database_oid, name).map(|extension| extension.version.clone())
}

pub(super) fn available(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let shown = all().map(|(name, version, comment)| {
        row(
            rel,
            vec![
                ("name", text(name)),
                ("default_version", text(version)),
                ("installed_version", installed(cx, name).map_or(Datum::Null, |version| text(&version))),
                ("comment", text(comment)),
            ],
        )
    });
    Ok(shown.collect())
}

pub(super) fn versions(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let shown = all().map(|(name, version, comment)| {
        let is_fixed = is_always_there(name);
        row(
            rel,
            vec![
                ("name", text(name)),
                ("version", text(version)),
                ("installed", Datum::Bool(installed(cx, name).is_some())),
                ("superuser", Datum::Bool(true)),
                ("trusted", Datum::Bool(true)),
                ("relocatable", Datum::Bool(!is_fixed)),
                ("schema", if is_fixed { text("pg_catalog") } else { Datum::Null }),
                ("comment", text(comment)),
            ],
        )
    });
    Ok(shown.collect())
}
