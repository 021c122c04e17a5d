//! Types, access methods, collations, functions, languages: what every database has.

use engine_api::{CatalogObject, TypeDesc, TypeKind, oids};
use types::{Datum, all_types};

use super::relations::{collation_of, oid_array, storage_of};
use super::{Rows, SystemRelation, oid, row, text};
use crate::functions::{self, EvalContext};

pub(super) fn types(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    let mut rows: Vec<Vec<Datum>> = all_types()
        .iter()
        .map(|t| {
            let array = t.category == 'A';
            let kind = if t.category == 'P' { "p" } else { "b" };
            row(
                rel,
                vec![
                    ("oid", oid(t.oid)),
                    ("typname", text(t.name)),
                    ("typnamespace", oid(oids::SCHEMA_PG_CATALOG)),
                    ("typowner", oid(oids::ROLE_POSTGRES)),
                    ("typlen", Datum::Int2(t.len)),
                    ("typbyval", Datum::Bool(t.by_val)),
                    ("typtype", text(kind)),
                    ("typcategory", text(t.category.to_string())),
                    ("typispreferred", Datum::Bool(t.preferred)),
                    ("typisdefined", Datum::Bool(true)),
                    ("typdelim", text(",")),
                    ("typrelid", Datum::Oid(0)),
                    ("typelem", oid(t.element)),
                    ("typarray", oid(t.array)),
                    ("typinput", text(io_name(t.name, array, "in"))),
                    ("typoutput", text(io_name(t.name, array, "out"))),
                    ("typreceive", text(io_name(t.name, array, "recv"))),
                    ("typsend", text(io_name(t.name, array, "send"))),
                    ("typalign", text("i")),
                    ("typstorage", text(storage_of(t.oid))),
                    ("typnotnull", Datum::Bool(false)),
                    ("typbasetype", Datum::Oid(0)),
                    ("typtypmod", Datum::Int4(-1)),
                    ("typndims", Datum::Int4(0)),
                    ("typcollation", Datum::Oid(collation_of(t.oid))),
                ],
            )
        })
        .collect();
    let catalog = cx.catalog();
    for object in catalog.objects() {
        if let CatalogObject::Type(desc) = &**object {
            rows.extend([desc.oid, desc.array].into_iter().filter_map(|ty| made_type(rel, desc, ty)));
        }
    }
    Ok(rows)
}

/// The row of a type that a statement made, or of the arrays of it.
fn made_type(rel: &SystemRelation, desc: &TypeDesc, ty: base::Oid) -> Option<Vec<Datum>> {
    let info = types::type_info(ty)?;
    let domain = match &desc.kind {
        TypeKind::Domain(domain) if ty == desc.oid => Some(domain),
        _ => None,
    };
    let kind = match &desc.kind {
        _ if ty == desc.array => "b",
        TypeKind::Enum(_) => "e",
        TypeKind::Domain(_) => "d",
    };
    let default = domain.and_then(|d| d.default.clone());
    let mut values = vec![
        ("oid", oid(ty)),
        ("typname", text(if ty == desc.array { format!("_{}", desc.name) } else { desc.name.clone() })),
        ("typnamespace", oid(desc.schema)),
        ("typowner", oid(desc.owner)),
        ("typlen", Datum::Int2(info.len)),
        ("typbyval", Datum::Bool(info.by_val)),
        ("typtype", text(kind)),
        ("typcategory", text(info.category.to_string())),
        ("typispreferred", Datum::Bool(false)),
        ("typisdefined", Datum::Bool(true)),
        ("typdelim", text(",")),
        ("typrelid", Datum::Oid(0)),
        ("typelem", oid(info.element)),
        ("typarray", oid(info.array)),
        ("typinput", text(info.input)),
        ("typoutput", text(info.output)),
        ("typreceive", text(info.receive)),
        ("typsend", text(info.send)),
        ("typalign", text(info.align.to_string())),
        ("typstorage", text(if info.len < 0 { "x" } else { "p" })),
        ("typnotnull", Datum::Bool(domain.is_some_and(|d| d.not_null))),
        ("typbasetype", oid(domain.map_or(base::Oid::INVALID, |d| d.base))),
        ("typtypmod", Datum::Int4(domain.map_or(-1, |d| d.typmod))),
        ("typndims", Datum::Int4(0)),
        ("typcollation", Datum::Oid(domain.map_or(0, |d| collation_of(d.base)))),
    ];
    if let Some(default) = default {
        values.push(("typdefault", text(default)));
    }
    Some(row(rel, values))
}

/// The labels of enums.
pub(super) fn enums(rel: &SystemRelation, cx: &dyn EvalContext) -> Rows {
    let mut rows = Vec::new();
    for object in cx.catalog().objects() {
        let CatalogObject::Type(desc) = &**object else { continue };
        let TypeKind::Enum(labels) = &desc.kind else { continue };
        rows.extend(labels.iter().map(|label| {
            row(
                rel,
                vec![
                    ("oid", oid(label.oid)),
                    ("enumtypid", oid(desc.oid)),
                    ("enumsortorder", Datum::Float4(label.order)),
                    ("enumlabel", text(label.name.clone())),
                ],
            )
        }));
    }
    Ok(rows)
}

/// Names of a type's input and output functions: those of the date and time types have an underscore, as in `date_in`.
fn io_name(name: &str, array: bool, what: &str) -> String {
    if array {
        return format!("array_{what}");
    }
    let underscore = ["date", "time", "timetz", "timestamp", "timestamptz", "interval", "numeric", "uuid", "record"]
        .contains(&name)
        || name.starts_with("any")
        || name.starts_with("json");
    format!("{name}{}{what}", if underscore { "_" } else { "" })
}

pub(super) fn access_methods(rel: &SystemRelation, _: &dyn EvalContext) -> Rows {
    let one = |id: u32, name: &str, handler: &str, kind: &str| {
        row(
            rel,
            vec![("oid", Datum::Oid(id)), ("amname", text(name)), ("amhandler", text(handler)), ("amtype", text(kind))],
        )
    };
    Ok(vec![one(2, "heap", "heap_tableam_handler", "t"), one(403, "btree", "bthandler", "i")])
}

pub(super) fn collations(rel: &SystemRelation, _: &dyn EvalContext) -> Rows {
    let one = |id: u32, name: &str, provider: &str| {
        row(
            rel,
            vec![
                ("oid", Datum::Oid(id)),
                ("collname", text(name)),
                ("collnamespace", oid(oids::SCHEMA_PG_CATALOG)),
                ("collowner", oid(oids::ROLE_POSTGRES)),
                ("collprovider", text(provider)),
                ("collisdeterministic", Datum::Bool(true)),
                ("collencoding", Datum::Int4(-1)),
            ],
        )
    };
    Ok(vec![one(100, "default", "d"), one(950, "C", "c"), one(951, "POSIX", "c")])
}

pub(super) fn languages(rel: &SystemRelation, _: &dyn EvalContext) -> Rows {
    let one = |id: u32, name: &str| {
        row(
            rel,
            vec![
                ("oid", Datum::Oid(id)),
                ("lanname", text(name)),
                ("lanowner", oid(oids::ROLE_POSTGRES)),
                ("lanispl", Datum::Bool(false)),
                ("lanpltrusted", Datum::Bool(false)),
            ],
        )
    };
    Ok(vec![one(12, "internal"), one(14, "sql")])
}

pub(super) fn procedures(rel: &SystemRelation, _: &dyn EvalContext) -> Rows {
    Ok(functions::all_functions()
        .map(|f| {
            let args: Vec<u32> = f.args.iter().map(|a| a.0).collect();
            let volatility = match f.volatility {
                functions::Volatility::Immutable => "i",
                functions::Volatility::Stable => "s",
                functions::Volatility::Volatile => "v",
            };
            row(
                rel,
                vec![
                    ("oid", Datum::Oid(f.oid)),
                    ("proname", text(f.name)),
                    ("pronamespace", oid(oids::SCHEMA_PG_CATALOG)),
                    ("proowner", oid(oids::ROLE_POSTGRES)),
                    ("prolang", Datum::Oid(12)),
                    ("prokind", text("f")),
                    ("proisstrict", Datum::Bool(f.strict)),
                    ("proretset", Datum::Bool(false)),
                    ("provolatile", text(volatility)),
                    ("pronargs", Datum::Int2(args.len() as i16)),
                    ("prorettype", oid(f.ret)),
                    ("proargtypes", oid_array(&args, 0)),
                    ("prosrc", text(f.name)),
                ],
            )
        })
        .collect())
}
