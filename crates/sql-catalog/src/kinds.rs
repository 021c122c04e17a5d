//! Types, access methods, collations, languages: what every database has.

use engine_api::{Catalog, CatalogObject, Expression, TypeDesc, TypeKind, oids};
use sql_bind::collation;
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::{Datum, TypeInfo, all_types};

use super::access;
use super::internal_functions::internal_oid;
use super::relations::{in_database, storage_of};
use super::{SystemRows, oid, row, text};

pub(super) fn types(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows: Vec<Vec<Datum>> = all_types()
        .iter()
        .map(|t| {
            let array = t.category == 'A';
            let kind = if t.category == 'P' || t.oid == types::oid::UNKNOWN { "p" } else { "b" };
            row(
                rel,
                vec![
                    ("oid", oid(t.oid)),
                    ("typname", text(&t.name)),
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
                    ("typsubscript", function(subscript(t))),
                    ("typinput", function(t.input)),
                    ("typoutput", function(t.output)),
                    ("typreceive", function(t.receive)),
                    ("typsend", function(t.send)),
                    ("typmodin", function(&modifier(t, "in"))),
                    ("typmodout", function(&modifier(t, "out"))),
                    ("typanalyze", function(if array { "array_typanalyze" } else { "" })),
                    ("typalign", text(t.align.to_string())),
                    ("typstorage", text(storage_of(t.oid))),
                    ("typnotnull", Datum::Bool(false)),
                    ("typbasetype", Datum::Oid(0)),
                    ("typtypmod", Datum::Int4(-1)),
                    ("typndims", Datum::Int4(0)),
                    ("typcollation", Datum::Oid(collation::of_type(&catalog, t.oid))),
                ],
            )
        })
        .collect();
    for object in catalog.walk() {
        if let CatalogObject::Type(desc) = &**object
            && in_database(&catalog, desc.schema, cx)
        {
            rows.extend([desc.oid, desc.array].into_iter().filter_map(|ty| made_type(rel, desc, ty, &catalog, cx)));
        }
    }
    Ok(rows)
}

/// The row of a type that a statement made, or of the arrays of it.
fn made_type(
    rel: &SystemRelation,
    desc: &TypeDesc,
    ty: base::Oid,
    catalog: &Catalog,
    cx: &dyn EvalContext,
) -> Option<Vec<Datum>> {
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
    let default = domain.and_then(|d| {
        let (oid, typmod) = types::user::base_type(d.base, d.typmod);
        let ty = sql_ir::Ty { oid, typmod };
        // NULL says no more than that there is none.
        let says = |default: &&Expression| !default.is_null() || d.typmod >= 0 || types::user::is_domain(d.base);
        Some(super::default_text(d.default.as_ref().filter(says)?, ty, false, cx))
    });
    // An array has that of its elements.
    let collation = match &desc.kind {
        TypeKind::Domain(_) => collation::of_type(catalog, desc.oid),
        _ => 0,
    };
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
        ("typsubscript", function(if ty == desc.array { "array_subscript_handler" } else { "" })),
        ("typinput", function(info.input)),
        ("typoutput", function(info.output)),
        ("typreceive", function(info.receive)),
        ("typsend", function(info.send)),
        ("typalign", text(info.align.to_string())),
        ("typstorage", text(storage_of(ty))),
        ("typnotnull", Datum::Bool(domain.is_some_and(|d| d.not_null))),
        ("typbasetype", oid(domain.map_or(base::Oid::INVALID, |d| d.base))),
        ("typtypmod", Datum::Int4(domain.map_or(-1, |d| d.typmod))),
        ("typndims", Datum::Int4(0)),
        ("typcollation", Datum::Oid(collation)),
        ("typacl", if ty == desc.oid { access::of_object(catalog, ty) } else { Datum::Null }),
    ];
    if let Some(default) = default {
        values.extend([("typdefaultbin", text(&default)), ("typdefault", text(default))]);
    }
    Some(row(rel, values))
}

/// The labels of enums.
pub(super) fn enums(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let mut rows = Vec::new();
    let catalog = cx.catalog();
    for object in catalog.walk() {
        let CatalogObject::Type(desc) = &**object else { continue };
        if !in_database(&catalog, desc.schema, cx) {
            continue;
        }
        let TypeKind::Enum(labels) = &desc.kind else { continue };
        rows.extend(labels.iter().map(|label| {
            row(
                rel,
                vec![
                    ("oid", oid(label.oid)),
                    ("enumtypid", oid(desc.oid)),
                    ("enumsortorder", Datum::Float4(label.shown())),
                    ("enumlabel", text(label.name.clone())),
                ],
            )
        }));
    }
    Ok(rows)
}

/// An internal function as a value of `regproc`; 0 if there is none of the name.
fn function(name: &str) -> Datum {
    Datum::Oid(internal_oid(name))
}

/// The function that takes elements out of a type's values.
fn subscript(t: &TypeInfo) -> &'static str {
    match t.oid {
        types::oid::JSONB => "jsonb_subscript_handler",
        types::oid::NAME => "raw_array_subscript_handler",
        _ if t.category == 'A' && t.len == -1 && t.element.is_valid() => "array_subscript_handler",
        _ => "",
    }
}

/// The name of the function that reads or writes a type's modifier.
fn modifier(t: &TypeInfo, way: &str) -> String {
    use types::oid::{BIT, BPCHAR, INTERVAL, NUMERIC, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, VARBIT, VARCHAR};
    let of = if t.is_array() { t.element } else { t.oid };
    match types::type_info(of) {
        Some(info)
            if [BIT, BPCHAR, INTERVAL, NUMERIC, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, VARBIT, VARCHAR]
                .contains(&of) =>
        {
            format!("{}typmod{way}", info.name)
        }
        _ => String::new(),
    }
}

pub(super) fn access_methods(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    let one = |id: u32, name: &str, handler: &str, kind: &str| {
        row(
            rel,
            vec![
                ("oid", Datum::Oid(id)),
                ("amname", text(name)),
                ("amhandler", function(handler)),
                ("amtype", text(kind)),
            ],
        )
    };
    Ok(vec![
        one(2, "heap", "heap_tableam_handler", "t"),
        one(403, "btree", "bthandler", "i"),
        one(405, "hash", "hashhandler", "i"),
    ])
}

pub(super) fn collations(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    let one = |collation: &collation::Collation| {
        let locale = || collation.locale.map_or(Datum::Null, text);
        row(
            rel,
            vec![
                ("oid", Datum::Oid(collation.oid)),
                ("collname", text(collation.name)),
                ("collnamespace", oid(oids::SCHEMA_PG_CATALOG)),
                ("collowner", oid(oids::ROLE_POSTGRES)),
                ("collprovider", text(collation.provider)),
                ("collisdeterministic", Datum::Bool(true)),
                ("collencoding", Datum::Int4(collation.encoding)),
                ("collcollate", locale()),
                ("collctype", locale()),
            ],
        )
    };
    Ok(collation::COLLATIONS.iter().map(one).collect())
}

/// OIDs and names of the languages.
pub(crate) const LANGUAGES: [(u32, &str); 3] = [(12, "internal"), (13, "c"), (14, "sql")];

pub(super) fn languages(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    let one = |id: u32, name: &str| {
        row(
            rel,
            vec![
                ("oid", Datum::Oid(id)),
                ("lanname", text(name)),
                ("lanowner", oid(oids::ROLE_POSTGRES)),
                ("lanispl", Datum::Bool(false)),
                ("lanpltrusted", Datum::Bool(name == "sql")),
            ],
        )
    };
    Ok(LANGUAGES.iter().map(|&(id, name)| one(id, name)).collect())
}
