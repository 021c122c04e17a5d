//! Views of information_schema about dependencies, arrays and roles.

use engine_api::{CatalogObject, ColumnDesc, ConstraintKind, TableDesc, TableKind, oids};
use sql_bind::collation::COLLATIONS;
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::{Datum, format_type, type_info};

use super::information::{made_type, shown_type};
use super::relations::tables_of;
use super::sight::Sight;
use super::views::name_of;
use super::{SystemRows, row, text};

pub(super) fn catalog_name(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    Ok(vec![row(rel, vec![("catalog_name", text(&cx.identity().database))])])
}

/// The character set of a database, which is UTF-8.
const CHARACTER_SET: &str = "UTF8";

/// None of the collations has the locale of a database, so that its default collation has no name here.
pub(super) fn character_sets(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let columns = vec![
        ("character_set_name", text(CHARACTER_SET)),
        ("character_repertoire", text("UCS")),
        ("form_of_use", text(CHARACTER_SET)),
        ("default_collate_catalog", text(&cx.identity().database)),
    ];
    Ok(vec![row(rel, columns)])
}

pub(super) fn collations(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let of = |name: &str| row(rel, [collation_name(name, cx), vec![("pad_attribute", text("NO PAD"))]].concat());
    Ok(COLLATIONS.iter().map(|collation| of(collation.name)).collect())
}

pub(super) fn collation_character_set_applicability(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let of =
        |name: &str| row(rel, [collation_name(name, cx), vec![("character_set_name", text(CHARACTER_SET))]].concat());
    Ok(COLLATIONS.iter().map(|collation| of(collation.name)).collect())
}

fn collation_name(name: &str, cx: &dyn EvalContext) -> Vec<(&'static str, Datum)> {
    vec![
        ("collation_catalog", text(&cx.identity().database)),
        ("collation_schema", text("pg_catalog")),
        ("collation_name", text(name)),
    ]
}

/// Roles whose rights the current user has.
pub(super) fn enabled_roles(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let (sight, mut rows) = (Sight::new(&catalog, cx), Vec::new());
    for object in catalog.walk() {
        if let CatalogObject::Role(role) = &**object
            && sight.has_role(role.oid)
        {
            rows.push(row(rel, vec![("role_name", text(&role.name))]));
        }
    }
    Ok(rows)
}

/// A row for each live column of each table and view, from what `make` answers; the names of its table are added.
fn each_column(
    rel: &SystemRelation,
    cx: &dyn EvalContext,
    names: [&'static str; 3],
    mut make: impl FnMut(&Sight<'_>, &TableDesc, &ColumnDesc) -> Option<Vec<(&'static str, Datum)>>,
) -> SystemRows {
    let (catalog, database) = (cx.catalog(), cx.identity().database);
    let (sight, mut rows) = (Sight::new(&catalog, cx), Vec::new());
    for table in tables_of(&catalog, cx).iter().filter(|t| t.kind != TableKind::MaterializedView) {
        let schema = name_of(&catalog, table.schema);
        for column in table.live_columns() {
            if let Some(mut values) = make(&sight, table, column) {
                values.extend([(names[0], text(&database)), (names[1], text(&schema)), (names[2], text(&table.name))]);
                rows.push(row(rel, values));
            }
        }
    }
    Ok(rows)
}

const OF_TABLE: [&str; 3] = ["table_catalog", "table_schema", "table_name"];
const OF_OBJECT: [&str; 3] = ["object_catalog", "object_schema", "object_name"];

pub(super) fn column_udt_usage(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let (catalog, database) = (cx.catalog(), cx.identity().database);
    each_column(rel, cx, OF_TABLE, |sight, _, column| {
        let ty = shown_type(&catalog, column).0;
        let made = made_type(&catalog, ty);
        if !sight.has_role(made.map_or(oids::ROLE_POSTGRES, |made| made.owner)) {
            return None;
        }
        let schema = made.map_or("pg_catalog".to_string(), |made| name_of(&catalog, made.schema));
        Some(vec![
            ("udt_catalog", text(&database)),
            ("udt_schema", text(schema)),
            ("udt_name", text(&type_info(ty)?.name)),
            ("column_name", text(&column.name)),
        ])
    })
}

/// The columns whose types are domains.
pub(super) fn column_domain_usage(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let (catalog, database) = (cx.catalog(), cx.identity().database);
    each_column(rel, cx, OF_TABLE, |sight, _, column| {
        let domain = catalog.user_type(column.type_oid).filter(|_| types::user::is_domain(column.type_oid))?;
        if !sight.has_role(domain.owner) {
            return None;
        }
        Some(vec![
            ("domain_catalog", text(&database)),
            ("domain_schema", text(name_of(&catalog, domain.schema))),
            ("domain_name", text(&domain.name)),
            ("column_name", text(&column.name)),
        ])
    })
}

pub(super) fn data_type_privileges(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    each_column(rel, cx, OF_OBJECT, |sight, table, column| {
        if !sight.column(table, column.number) {
            return None;
        }
        Some(vec![("object_type", text("TABLE")), ("dtd_identifier", text(column.number.to_string()))])
    })
}

pub(super) fn element_types(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let (catalog, database) = (cx.catalog(), cx.identity().database);
    let mut rows = each_column(rel, cx, OF_OBJECT, |sight, table, column| {
        if !sight.column(table, column.number) {
            return None;
        }
        let element = type_info(types::element_of(column.type_oid)?)?;
        let made = made_type(&catalog, element.oid);
        type_info(column.type_oid).filter(|t| t.is_array())?;
        Some(vec![
            ("object_type", text("TABLE")),
            ("collection_type_identifier", text(column.number.to_string())),
            ("data_type", text(made.map_or_else(|| format_type(element.oid, -1), |_| "USER-DEFINED".to_string()))),
            ("udt_catalog", text(&database)),
            ("udt_schema", text(made.map_or_else(|| "pg_catalog".to_string(), |t| name_of(&catalog, t.schema)))),
            ("udt_name", text(&element.name)),
            ("dtd_identifier", text(format!("a{}", column.number))),
        ])
    })?;
    rows.extend(super::domains::element_types(rel, cx)?);
    Ok(rows)
}

/// Generated columns and the columns they are computed from.
pub(super) fn column_column_usage(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let (catalog, database) = (cx.catalog(), cx.identity().database);
    let (sight, mut rows) = (Sight::new(&catalog, cx), Vec::new());
    for table in tables_of(&catalog, cx).into_iter().filter(|table| sight.has_role(table.owner)) {
        for column in table.live_columns() {
            let Some(expression) = &column.generated else { continue };
            let ty = sql_ir::Ty { oid: column.type_oid, typmod: column.typmod };
            for number in super::columns_used(expression, ty, table, cx) {
                rows.push(row(
                    rel,
                    vec![
                        ("table_catalog", text(&database)),
                        ("table_schema", text(name_of(&catalog, table.schema))),
                        ("table_name", text(&table.name)),
                        ("column_name", text(&table.columns[number].name)),
                        ("dependent_column", text(&column.name)),
                    ],
                ));
            }
        }
    }
    Ok(rows)
}

/// The tables that constraints are about: for a foreign key the one that it points at.
pub(super) fn constraint_table_usage(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let (catalog, database) = (cx.catalog(), cx.identity().database);
    let (sight, mut rows) = (Sight::new(&catalog, cx), Vec::new());
    for table in tables_of(&catalog, cx) {
        for constraint in &table.constraints {
            let target = match &constraint.kind {
                ConstraintKind::ForeignKey { table, .. } => catalog.table(*table),
                ConstraintKind::PrimaryKey { .. } | ConstraintKind::Unique { .. } => Some(table),
                _ => None,
            };
            let Some(target) = target.filter(|target| sight.has_role(target.owner)) else { continue };
            rows.push(row(
                rel,
                vec![
                    ("table_catalog", text(&database)),
                    ("table_schema", text(name_of(&catalog, target.schema))),
                    ("table_name", text(&target.name)),
                    ("constraint_catalog", text(&database)),
                    ("constraint_schema", text(name_of(&catalog, table.schema))),
                    ("constraint_name", text(&constraint.name)),
                ],
            ));
        }
    }
    Ok(rows)
}

/// Calls `make` with each view, each relation it reads and the columns of that it uses.
fn each_use(cx: &dyn EvalContext, mut make: impl FnMut(Vec<(&'static str, Datum)>, &TableDesc, &[i16])) {
    let (catalog, database) = (cx.catalog(), cx.identity().database);
    let sight = Sight::new(&catalog, cx);
    for table in tables_of(&catalog, cx).iter().filter(|t| t.kind == TableKind::View) {
        let Some(view) = &table.view else { continue };
        let mut seen = Vec::new();
        for relation in &view.relations {
            let Some(target) = catalog.table(relation.oid) else { continue };
            if target.kind == TableKind::MaterializedView || !sight.has_role(target.owner) {
                continue;
            }
            if seen.contains(&relation.oid) {
                continue;
            }
            seen.push(relation.oid);
            let of_same = view.relations.iter().filter(|r| r.oid == relation.oid);
            let mut used: Vec<i16> = of_same.flat_map(|r| r.used.iter().copied()).collect();
            used.sort_unstable();
            used.dedup();
            let names = vec![
                ("view_catalog", text(&database)),
                ("view_schema", text(name_of(&catalog, table.schema))),
                ("view_name", text(&table.name)),
                ("table_catalog", text(&database)),
                ("table_schema", text(name_of(&catalog, target.schema))),
                ("table_name", text(&target.name)),
            ];
            make(names, target, &used);
        }
    }
}

pub(super) fn view_table_usage(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let mut rows = Vec::new();
    each_use(cx, |names, _, _| rows.push(row(rel, names)));
    Ok(rows)
}

pub(super) fn view_column_usage(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let mut rows = Vec::new();
    each_use(cx, |names, target, used| {
        for &number in used {
            let Some(column) = target.columns.get(number as usize - 1) else { continue };
            let mut values = names.clone();
            values.push(("column_name", text(&column.name)));
            rows.push(row(rel, values));
        }
    });
    Ok(rows)
}
