//! Comments: those that COMMENT ON wrote, and PostgreSQL's own on what is built in.
//!
//! The built-in ones are lines of `descriptions.txt`: the catalog's letter, the OID, the text; sorted by catalog and OID.

use std::sync::{Arc, LazyLock};

use base::Oid;
use base::work::Count;
use engine_api::{Catalog, CatalogObject, DomainCheck, TypeDesc, TypeKind};
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::relations::{in_database, tables_of};
use super::{SystemRows, oid, row};

/// OID of `pg_class`.
const CLASS: u32 = 1259;
/// OID of `pg_namespace`.
const NAMESPACE: u32 = 2615;
/// OID of `pg_type`.
const TYPE: u32 = 1247;
/// OID of `pg_database`.
const DATABASE: u32 = 1262;
/// OID of `pg_authid`.
const ROLE: u32 = 1260;
/// OID of `pg_constraint`.
const CONSTRAINT: u32 = 2606;

/// The catalog that a letter of the file stands for: its OID and name.
fn catalog_of(letter: char) -> (u32, &'static str) {
    match letter {
        'p' => (1255, "pg_proc"),
        'o' => (2617, "pg_operator"),
        't' => (1247, "pg_type"),
        'a' => (2601, "pg_am"),
        'l' => (2612, "pg_language"),
        'c' => (3456, "pg_collation"),
        'e' => (3079, "pg_extension"),
        _ => (NAMESPACE, "pg_namespace"),
    }
}

/// One comment on a built-in object.
struct BuiltIn {
    object: u32,
    class: u32,
    class_name: &'static str,
    text: &'static str,
}

static BUILT_IN: LazyLock<Vec<BuiltIn>> = LazyLock::new(|| {
    let lines = include_str!("descriptions.txt").lines();
    let mut all: Vec<BuiltIn> = lines
        .filter_map(|line| {
            let (key, text) = line.split_once(' ')?;
            let letter = key.chars().next()?;
            let (class, class_name) = catalog_of(letter);
            Some(BuiltIn { object: key[1..].parse().ok()?, class, class_name, text })
        })
        .collect();
    all.sort_by_key(|d| (d.object, d.class));
    all
});

/// The comment on an object; `class` is the name of its catalog if the caller says which.
pub(crate) fn comment(catalog: &Catalog, object: Oid, number: i16, class: Option<&str>) -> Option<Arc<str>> {
    if let Some(CatalogObject::Table(table)) = catalog.get(object).map(|o| &**o) {
        return table.comments.get(&number).filter(|_| class.is_none_or(|c| c == "pg_class")).cloned();
    }
    if let Some((comment, of)) = own_comment(catalog, object) {
        return Some(comment).filter(|_| number == 0 && class.is_none_or(|c| c == of));
    }
    let first = BUILT_IN.partition_point(|d| d.object < object.0);
    let of_object = BUILT_IN[first..].iter().take_while(|d| d.object == object.0);
    let mut fitting = of_object.filter(|d| number == 0 && class.is_none_or(|c| c == d.class_name));
    fitting.next().map(|d| d.text.into())
}

/// The comment that an object other than a table has, and the catalog it is of.
fn own_comment(catalog: &Catalog, object: Oid) -> Option<(Arc<str>, &'static str)> {
    match catalog.get(object).map(|o| &**o) {
        Some(CatalogObject::Schema(schema)) => {
            let standard = (schema.name == "public").then_some(PUBLIC);
            let comment = schema.comment.as_deref().or(standard).filter(|text| !text.is_empty());
            comment.map(|text| (text.into(), "pg_namespace"))
        }
        Some(CatalogObject::Index(index)) => index.comment.clone().map(|text| (text, "pg_class")),
        Some(CatalogObject::Sequence(sequence)) => sequence.comment.clone().map(|text| (text, "pg_class")),
        Some(CatalogObject::Database(database)) => database.comment.clone().map(|text| (text, "pg_database")),
        Some(CatalogObject::Type(ty)) => ty.comment.clone().map(|text| (text, "pg_type")),
        Some(CatalogObject::Extension(extension)) => extension.comment.clone().map(|text| (text, "pg_extension")),
        Some(CatalogObject::Role(role)) => role.comment.clone().map(|text| (text, "pg_authid")),
        Some(_) => None,
        None => {
            let comment = match &**catalog.constrained_by(object)? {
                CatalogObject::Table(table) => &table.constraints.iter().counted(1).find(|c| c.oid == object)?.comment,
                CatalogObject::Type(TypeDesc { kind: TypeKind::Domain(domain), .. }) => {
                    &domain.checks.iter().counted(1).find(|check| check.oid == object)?.comment
                }
                _ => return None,
            };
            comment.clone().map(|text| (text, "pg_constraint"))
        }
    }
}

/// The constraints of all domains.
pub(super) fn domain_checks(catalog: &Catalog) -> impl Iterator<Item = (&TypeDesc, &DomainCheck)> {
    let types = catalog.walk().filter_map(|o| catalog.user_type(o.oid()));
    types.flat_map(|ty| {
        let checks = match &ty.kind {
            TypeKind::Domain(domain) => domain.checks.as_slice(),
            TypeKind::Enum(_) => &[],
        };
        checks.iter().map(move |check| (ty, check))
    })
}

/// Comments on databases and roles.
pub(super) fn shared_descriptions(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for object in catalog.walk() {
        let (class, comment) = match &**object {
            CatalogObject::Database(database) => (DATABASE, &database.comment),
            CatalogObject::Role(role) => (ROLE, &role.comment),
            _ => continue,
        };
        let Some(comment) = comment else { continue };
        let values = vec![
            ("objoid", oid(object.oid())),
            ("classoid", Datum::Oid(class)),
            ("description", Datum::Text(Arc::clone(comment))),
        ];
        rows.push(row(rel, values));
    }
    Ok(rows)
}

/// What every database says of its schema `public` at first; pg_dump looks for it.
const PUBLIC: &str = "standard public schema";

pub(super) fn descriptions(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let one = |object: Oid, class: u32, number: i16, comment: Arc<str>| {
        row(
            rel,
            vec![
                ("objoid", oid(object)),
                ("classoid", Datum::Oid(class)),
                ("objsubid", Datum::Int4(number.into())),
                ("description", Datum::Text(comment)),
            ],
        )
    };
    let mut rows = Vec::new();
    for table in tables_of(&catalog, cx) {
        rows.extend(table.comments.iter().map(|(number, comment)| one(table.oid, CLASS, *number, Arc::clone(comment))));
    }
    for object in catalog.walk() {
        let here = match &**object {
            CatalogObject::Schema(schema) => schema.database == cx.identity().database_oid,
            CatalogObject::Extension(extension) => extension.database == cx.identity().database_oid,
            CatalogObject::Index(_) | CatalogObject::Sequence(_) | CatalogObject::Type(_) => {
                in_database(&catalog, object.namespace().1, cx)
            }
            _ => false,
        };
        if let Some((comment, of)) = here.then(|| own_comment(&catalog, object.oid())).flatten() {
            let class = match of {
                "pg_class" => CLASS,
                "pg_type" => TYPE,
                "pg_extension" => super::depend::EXTENSION,
                _ => NAMESPACE,
            };
            rows.push(one(object.oid(), class, 0, comment));
        }
    }
    for constraint in tables_of(&catalog, cx).iter().flat_map(|t| &t.constraints) {
        rows.extend(constraint.comment.iter().map(|comment| one(constraint.oid, CONSTRAINT, 0, Arc::clone(comment))));
    }
    for (_, check) in domain_checks(&catalog).filter(|(ty, _)| in_database(&catalog, ty.schema, cx)) {
        rows.extend(check.comment.iter().map(|comment| one(check.oid, CONSTRAINT, 0, Arc::clone(comment))));
    }
    rows.extend(BUILT_IN.iter().map(|d| one(Oid(d.object), d.class, 0, d.text.into())));
    Ok(rows)
}
