//! All stored expressions of a catalog: conversion of those of earlier servers to references, and the report of invalid ones.
//!
//! Responsible for: what is done at a start ([`convert`]) and by `nyala check` ([`unclear`]), outside of any session.
//! Not responsible for: writing what is converted (`server`).
//! Invariant: an expression that could mean several things is left as it is.

use std::sync::Arc;

use base::Oid;
use engine_api::{Catalog, CatalogObject, ConstraintKind, Expression, ExpressionPlace, TableDesc, TypeKind, oids};
use sql_bind::BindContext;
use sql_bind::stored;
use sql_functions::EvalContext;
use sql_parse::names::{qualified, quote_name};

/// A stored expression that means nothing, or could mean several things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unclear {
    /// What it is of.
    pub what: String,
    /// Why.
    pub why: String,
}

/// The objects of a catalog whose expressions were kept as text, with references in them, and views that did not list all they read;
/// and what stays as it is.
pub fn convert(catalog: &Arc<Catalog>) -> (Vec<CatalogObject>, Vec<Unclear>) {
    types::user::reading_by(catalog.types(), || converted(catalog))
}

fn converted(catalog: &Arc<Catalog>) -> (Vec<CatalogObject>, Vec<Unclear>) {
    let (mut converted, mut unclear) = (Vec::new(), Vec::new());
    for object in catalog.walk() {
        let mut new = (**object).clone();
        for (place, expression) in new.expressions_mut() {
            if matches!(expression, Expression::Kept(_)) {
                continue;
            }
            match meaning(catalog, object, place, expression) {
                Ok(kept) => *expression = kept,
                Err(why) => unclear.push(Unclear { what: described(catalog, object, place), why }),
            }
        }
        let listed = list_relations(catalog, &mut new);
        if listed || new.expressions() != object.expressions() {
            converted.push(new);
        }
    }
    (converted, unclear)
}

/// Lists all that a view reads, if it does not yet. One that cannot be bound stays as it is: [`unclear`] tells of it.
fn list_relations(catalog: &Arc<Catalog>, object: &mut CatalogObject) -> bool {
    let CatalogObject::Table(desc) = &*object else { return false };
    let Some(view) = desc.view.as_ref().filter(|view| !view.lists_all) else { return false };
    let path = view.search_path.clone();
    let Ok(relations) = under(catalog, object, path, |cx| sql_bind::bind_view_relations(desc, cx)) else {
        return false;
    };
    if let CatalogObject::Table(TableDesc { view: Some(view), .. }) = object {
        (view.relations, view.lists_all) = (relations, true);
    }
    true
}

/// The expressions of a catalog that refer to what is not there, or cannot be bound.
pub fn unclear(catalog: &Arc<Catalog>) -> Vec<Unclear> {
    types::user::reading_by(catalog.types(), || all_unclear(catalog))
}

fn all_unclear(catalog: &Arc<Catalog>) -> Vec<Unclear> {
    let (_, mut found) = converted(catalog);
    for object in catalog.walk() {
        for (place, expression) in object.expressions() {
            if matches!(expression, Expression::Written(_)) {
                continue;
            }
            let gone = expression.references().filter_map(|r| crate::depend::needed(catalog, r).or_else(|| r.object()));
            let gone = gone.filter(|&oid| oid.0 >= oids::FIRST_USER.0).find(|oid| !is_there(catalog, *oid));
            let why = match gone {
                Some(oid) => Some(format!("{oid} is not there")),
                None => {
                    let path = vec![oids::SCHEMA_PG_CATALOG];
                    under(catalog, object, path, |cx| {
                        stored::check(object, place, expression, table_of(catalog, object), cx)
                    })
                    .err()
                    .map(|e| e.fields().message.to_string())
                }
            };
            found.extend(why.map(|why| Unclear { what: described(catalog, object, place), why }));
        }
    }
    found
}

fn is_there(catalog: &Catalog, oid: Oid) -> bool {
    let of_arrays = || types::element_of(oid).and_then(|element| catalog.user_type(element)).is_some();
    catalog.get(oid).is_some() || of_arrays()
}

fn table_of<'c>(catalog: &'c Catalog, object: &CatalogObject) -> Option<&'c TableDesc> {
    match object {
        CatalogObject::Index(index) => catalog.table(index.table),
        _ => None,
    }
}

fn schema_of(object: &CatalogObject) -> Oid {
    object.namespace().1
}

fn database_of(catalog: &Catalog, object: &CatalogObject) -> Oid {
    match catalog.get(schema_of(object)).map(|o| &**o) {
        Some(CatalogObject::Schema(schema)) => schema.database,
        _ => Oid::INVALID,
    }
}

/// Binds something for nobody in the database of an object.
fn under<T>(
    catalog: &Arc<Catalog>,
    object: &CatalogObject,
    path: Vec<Oid>,
    bind: impl FnOnce(&mut BindContext<'_>) -> base::Result<T>,
) -> base::Result<T> {
    let nobody = crate::index_code::nobody(Arc::clone(catalog));
    let mut identity = nobody.identity();
    identity.database_oid = database_of(catalog, object);
    identity.search_path = path;
    bind(&mut BindContext::new(Arc::clone(catalog), identity, &nobody, &[]))
}

/// What an expression means that was kept as text. Nobody knows the search path that it was made under: it is the usual one if that
/// gives it a meaning, or the one schema that does.
fn meaning(
    catalog: &Arc<Catalog>,
    object: &CatalogObject,
    place: ExpressionPlace,
    text: &Expression,
) -> Result<Expression, String> {
    let (own, database) = (schema_of(object), database_of(catalog, object));
    let public = catalog.schema(database, "public").map(|schema| schema.oid);
    let usual: Vec<Oid> = public.into_iter().chain([oids::SCHEMA_PG_CATALOG]).collect();
    let kept = |first: &[Oid]| {
        let path = first.iter().copied().chain(usual.iter().copied()).collect();
        under(catalog, object, path, |cx| stored::kept(object, place, text, table_of(catalog, object), cx))
    };
    let error = match kept(&[]) {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    if let Ok(found) = kept(&[own]) {
        return Ok(found);
    }
    let schemas = catalog.walk().filter_map(|o| match &**o {
        CatalogObject::Schema(schema) if schema.database == database => Some(schema.oid),
        _ => None,
    });
    let mut found: Vec<Expression> = schemas.filter_map(|schema| kept(&[schema, own]).ok()).collect();
    found.dedup();
    match <[Expression; 1]>::try_from(found) {
        Ok([one]) => Ok(one),
        Err(several) if several.is_empty() => Err(error.fields().message.to_string()),
        Err(_) => Err("it means something else under every search path".to_string()),
    }
}

/// An expression as reports name it.
fn described(catalog: &Catalog, object: &CatalogObject, place: ExpressionPlace) -> String {
    let name = qualified(catalog, schema_of(object), object.name());
    let column = |number: i16| match object {
        CatalogObject::Table(table) => table.columns.get(number as usize - 1).map_or("?", |c| &c.name),
        _ => "?",
    };
    let constraint = |oid: Oid| match object {
        CatalogObject::Table(table) => {
            let is_it =
                |c: &&engine_api::ConstraintDesc| c.oid == oid && matches!(c.kind, ConstraintKind::Check { .. });
            table.constraints.iter().find(is_it).map_or("?", |c| &c.name)
        }
        CatalogObject::Type(ty) => match &ty.kind {
            TypeKind::Domain(domain) => domain.checks.iter().find(|c| c.oid == oid).map_or("?", |c| &c.name),
            TypeKind::Enum(_) => "?",
        },
        _ => "?",
    };
    match place {
        ExpressionPlace::Default(number) => format!("default of {name}.{}", quote_name(column(number))),
        ExpressionPlace::Generated(number) => format!("generated column {name}.{}", quote_name(column(number))),
        ExpressionPlace::Check(oid) => format!("check {} of {name}", quote_name(constraint(oid))),
        ExpressionPlace::Key(_) => format!("expression of index {name}"),
        ExpressionPlace::Predicate => format!("condition of index {name}"),
        ExpressionPlace::OfDomain => format!("default of domain {name}"),
        ExpressionPlace::Query => format!("query of view {name}"),
    }
}
