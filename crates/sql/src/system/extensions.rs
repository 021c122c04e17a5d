//! Extensions: plpgsql, which every database has from the start as PostgreSQL's have. There are no others.

use engine_api::oids;
use types::Datum;

use super::{Rows, SystemRelation, oid, row, text};
use crate::functions::EvalContext;

/// The extension that is there: number, name, version, what it is.
const PLPGSQL: (u32, &str, &str, &str) = (13559, "plpgsql", "1.0", "PL/pgSQL procedural language");

/// Whether there is an extension of a name.
pub(crate) fn is_extension(name: &str) -> bool {
    name == PLPGSQL.1
}

pub(super) fn extensions(rel: &SystemRelation, _: &dyn EvalContext) -> Rows {
    let (number, name, version, _) = PLPGSQL;
    Ok(vec![row(
        rel,
        vec![
            ("oid", Datum::Oid(number)),
            ("extname", text(name)),
            ("extowner", oid(oids::ROLE_POSTGRES)),
            ("extnamespace", oid(oids::SCHEMA_PG_CATALOG)),
            ("extrelocatable", Datum::Bool(false)),
            ("extversion", text(version)),
        ],
    )])
}

pub(super) fn available(rel: &SystemRelation, _: &dyn EvalContext) -> Rows {
    let (_, name, version, comment) = PLPGSQL;
    Ok(vec![row(
        rel,
        vec![
            ("name", text(name)),
            ("default_version", text(version)),
            ("installed_version", text(version)),
            ("comment", text(comment)),
        ],
    )])
}

pub(super) fn versions(rel: &SystemRelation, _: &dyn EvalContext) -> Rows {
    let (_, name, version, comment) = PLPGSQL;
    Ok(vec![row(
        rel,
        vec![
            ("name", text(name)),
            ("version", text(version)),
            ("installed", Datum::Bool(true)),
            ("superuser", Datum::Bool(true)),
            ("trusted", Datum::Bool(true)),
            ("relocatable", Datum::Bool(false)),
            ("schema", text("pg_catalog")),
            ("comment", text(comment)),
        ],
    )])
}
