//! Domains in information_schema.

use engine_api::{Catalog, DomainDesc, Privileges, TypeDesc, TypeKind, oids};
use sql_bind::collation;
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::{Datum, format_type, type_info};

use super::descriptions::domain_checks;
use super::information::{check_clause, collation_columns, made_type, type_facts};
use super::relations::in_database;
use super::sight::Sight;
use super::views::name_of;
use super::{SystemRows, row, text};

/// Every domain of the database.
fn each<'c>(catalog: &'c Catalog, cx: &dyn EvalContext) -> Vec<(&'c TypeDesc, &'c DomainDesc)> {
    let types = catalog.walk().filter_map(|object| catalog.user_type(object.oid()));
    let domain = |ty: &'c TypeDesc| match &ty.kind {
        TypeKind::Domain(domain) if in_database(catalog, ty.schema, cx) => Some((ty, domain)),
        _ => None,
    };
    types.filter_map(domain).collect()
}

/// Which domain.
fn named(catalog: &Catalog, ty: &TypeDesc, cx: &dyn EvalContext) -> Vec<(&'static str, Datum)> {
    vec![
        ("domain_catalog", text(cx.identity().database)),
        ("domain_schema", text(name_of(catalog, ty.schema))),
        ("domain_name", text(&ty.name)),
    ]
}

/// The type under a domain, which may be a domain too.
fn under(catalog: &Catalog, domain: &DomainDesc, cx: &dyn EvalContext) -> Vec<(&'static str, Datum)> {
    let made = made_type(catalog, domain.base);
    let schema = made.map_or("pg_catalog".to_string(), |ty| name_of(catalog, ty.schema));
    let name = type_info(domain.base).map_or(Datum::Null, |info| text(&info.name));
    vec![("udt_catalog", text(cx.identity().database)), ("udt_schema", text(schema)), ("udt_name", name)]
}

/// The default of a domain, or that of the domain under it.
fn default(catalog: &Catalog, domain: &DomainDesc, cx: &dyn EvalContext) -> Option<String> {
    match (&domain.default, catalog.user_type(domain.base).map(|ty| &ty.kind)) {
        (Some(text), _) => {
            let (oid, typmod) = types::user::base_type(domain.base, domain.typmod);
            let shown = sql_ir::Ty { oid, typmod };
            Some(super::default_text(text, shown, false, cx))
        }
        (None, Some(TypeKind::Domain(under))) => default(catalog, under, cx),
        (None, _) => None,
    }
}

pub(super) fn domains(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let one = |(ty, domain): (&TypeDesc, &DomainDesc)| {
        // An array is shown by its name here, unlike that of a column: PostgreSQL asks whether the domain itself has elements.
        let data_type = match made_type(&catalog, domain.base) {
            Some(_) => "USER-DEFINED".to_string(),
            None => format_type(domain.base, -1),
        };
        let default = default(&catalog, domain, cx);
        let mut values = named(&catalog, ty, cx);
        values.extend(under(&catalog, domain, cx));
        values.extend(type_facts(domain.base, domain.typmod));
        values.extend(collation_columns(collation::of_type(&catalog, ty.oid), &cx.identity().database));
        values.extend([
            ("data_type", text(data_type)),
            ("domain_default", default.map_or(Datum::Null, text)),
            ("dtd_identifier", text("1")),
        ]);
        row(rel, values)
    };
    Ok(each(&catalog, cx).into_iter().filter(|(ty, _)| is_usable(&catalog, ty, cx)).map(one).collect())
}

/// Whether a domain is the current role's own, or it may use it.
fn is_usable(catalog: &Catalog, ty: &TypeDesc, cx: &dyn EvalContext) -> bool {
    let sight = Sight::new(catalog, cx);
    sight.has_role(ty.owner) || sight.has(ty.oid, Privileges::USAGE)
}

/// The part of `element_types` that domains over arrays are.
pub(super) fn element_types(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let one = |(ty, domain): (&TypeDesc, &DomainDesc)| {
        let array = type_info(domain.base).filter(|info| info.is_array())?;
        let element = type_info(types::element_of(array.oid)?)?;
        let (database, made) = (cx.identity().database, made_type(&catalog, element.oid));
        Some(row(
            rel,
            vec![
                ("object_catalog", text(&database)),
                ("object_schema", text(name_of(&catalog, ty.schema))),
                ("object_name", text(&ty.name)),
                ("object_type", text("DOMAIN")),
                ("collection_type_identifier", text("1")),
                ("data_type", text(made.map_or_else(|| format_type(element.oid, -1), |_| "USER-DEFINED".to_string()))),
                ("udt_catalog", text(&database)),
                ("udt_schema", text(made.map_or("pg_catalog".to_string(), |t| name_of(&catalog, t.schema)))),
                ("udt_name", text(&element.name)),
                ("dtd_identifier", text("a1")),
            ],
        ))
    };
    Ok(each(&catalog, cx).into_iter().filter_map(one).collect())
}

pub(super) fn domain_udt_usage(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let one = |(ty, domain): (&TypeDesc, &DomainDesc)| {
        let mut values = named(&catalog, ty, cx);
        values.extend(under(&catalog, domain, cx));
        row(rel, values)
    };
    let sight = Sight::new(&catalog, cx);
    let owner_of_base =
        |domain: &DomainDesc| made_type(&catalog, domain.base).map_or(oids::ROLE_POSTGRES, |ty| ty.owner);
    let seen = each(&catalog, cx).into_iter().filter(|(_, domain)| sight.has_role(owner_of_base(domain)));
    Ok(seen.map(one).collect())
}

pub(super) fn domain_constraints(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let here = |ty: &TypeDesc| in_database(&catalog, ty.schema, cx) && is_usable(&catalog, ty, cx);
    let checks = domain_checks(&catalog).filter(|(ty, _)| here(ty));
    let one = |(ty, check): (&TypeDesc, &engine_api::DomainCheck)| {
        let mut values = named(&catalog, ty, cx);
        values.extend([
            ("constraint_catalog", text(cx.identity().database)),
            ("constraint_schema", text(name_of(&catalog, ty.schema))),
            ("constraint_name", text(&check.name)),
            ("is_deferrable", text("NO")),
            ("initially_deferred", text("NO")),
        ]);
        row(rel, values)
    };
    Ok(checks.map(one).collect())
}

/// The part of `check_constraints` that domains are.
pub(super) fn check_constraints(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let sight = Sight::new(&catalog, cx);
    let own = each(&catalog, cx).into_iter().filter(|(ty, _)| sight.has_role(ty.owner));
    let all = own.flat_map(|(ty, domain)| domain.checks.iter().map(move |c| (ty, domain, c)));
    let one = |(ty, domain, check): (&TypeDesc, &DomainDesc, &engine_api::DomainCheck)| {
        let definition = super::domain_check_definition(check, domain, false, cx);
        row(
            rel,
            vec![
                ("constraint_catalog", text(cx.identity().database)),
                ("constraint_schema", text(name_of(&catalog, ty.schema))),
                ("constraint_name", text(&check.name)),
                ("check_clause", text(check_clause(&definition))),
            ],
        )
    };
    Ok(all.map(one).collect())
}
