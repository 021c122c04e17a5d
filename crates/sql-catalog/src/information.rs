//! information_schema.

use base::work;
use engine_api::{
    Catalog, CatalogObject, CheckOption, ColumnDesc, ConstraintKind, ForeignKeyAction, Identity, SequenceDesc,
    TableDesc, TableKind, TypeDesc, TypeKind,
};
use sql_bind::collation;
use sql_functions::EvalContext;
use sql_ir::system_relation::{Asked, SystemRelation};
use sql_parse::privileges::Class;
use types::{Datum, format_type, oid as type_oid, type_info};

use super::keys;
use super::relations::{in_database, tables_of};
use super::sight::Sight;
use super::views::name_of;
use super::{SystemRows, row, text};

pub(super) fn tables(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let database = cx.identity().database;
    let one = |schema: &str, name: &str, kind: &str, writable: bool| {
        row(
            rel,
            vec![
                ("table_catalog", text(&database)),
                ("table_schema", text(schema)),
                ("table_name", text(name)),
                ("table_type", text(kind)),
                ("is_insertable_into", text(if writable { "YES" } else { "NO" })),
                ("is_typed", text("NO")),
            ],
        )
    };
    let (sight, mut rows) = (Sight::new(&catalog, cx), Vec::new());
    for table in tables_of(&catalog, cx).into_iter().filter(|table| sight.table(table)) {
        let kind = match table.kind {
            TableKind::Table => "BASE TABLE",
            TableKind::View => "VIEW",
            // The standard knows no materialized views.
            TableKind::MaterializedView => continue,
        };
        let writable = kind != "VIEW" || super::view_is_writable(table, "insert into", cx);
        rows.push(one(&name_of(&catalog, table.schema), &table.name, kind, writable));
    }
    let superuser = cx.identity().superuser;
    for system in super::all().filter(|system| superuser || !sql_parse::privileges::is_secret(system.name)) {
        let kind = if system.is_view() { "VIEW" } else { "BASE TABLE" };
        rows.push(one(system.schema, system.name, kind, kind != "VIEW"));
    }
    Ok(rows)
}

/// The type that a statement made, which this is, or is an array of.
pub(super) fn made_type(catalog: &Catalog, ty: base::Oid) -> Option<&TypeDesc> {
    let made = catalog.user_type(types::user::made_type(ty).unwrap_or(ty));
    made.or_else(|| catalog.user_type(types::element_of(ty)?))
}

/// The type of a column with its modifier, or what is next under it if it is a domain.
pub(super) fn shown_type(catalog: &Catalog, column: &ColumnDesc) -> (base::Oid, i32) {
    let made = catalog.user_type(column.type_oid).filter(|made| made.oid == column.type_oid);
    match made.map(|made| &made.kind) {
        Some(TypeKind::Domain(domain)) => (domain.base, domain.typmod),
        _ => (column.type_oid, column.typmod),
    }
}

fn sql_name(ty: base::Oid) -> String {
    match type_info(ty) {
        _ if types::user::is_enum(ty) || types::user::is_domain(ty) => "USER-DEFINED".to_string(),
        Some(info) if info.category == 'A' => "ARRAY".to_string(),
        _ => format_type(ty, -1),
    }
}

/// What a type's modifier says, by the columns that show it.
pub(super) fn type_facts(ty: base::Oid, typmod: i32) -> [(&'static str, Datum); 6] {
    let length = match ty {
        type_oid::VARCHAR | type_oid::BPCHAR if typmod >= 4 => Some(typmod - 4),
        type_oid::BIT | type_oid::VARBIT if typmod >= 0 => Some(typmod),
        _ => None,
    };
    let (precision, radix, scale) = match ty {
        type_oid::INT2 => (Some(16), Some(2), Some(0)),
        type_oid::INT4 => (Some(32), Some(2), Some(0)),
        type_oid::INT8 => (Some(64), Some(2), Some(0)),
        type_oid::FLOAT4 => (Some(24), Some(2), None),
        type_oid::FLOAT8 => (Some(53), Some(2), None),
        type_oid::NUMERIC if typmod >= 4 => {
            let m = typmod - 4;
            (Some(m >> 16), Some(10), Some(m & 0x7ff))
        }
        type_oid::NUMERIC => (None, Some(10), None),
        _ => (None, None, None),
    };
    let time = [type_oid::TIME, type_oid::TIMETZ, type_oid::TIMESTAMP, type_oid::TIMESTAMPTZ, type_oid::INTERVAL];
    let datetime = match ty {
        type_oid::DATE => Some(0),
        t if time.contains(&t) => Some(if (0..=6).contains(&typmod) { typmod } else { 6 }),
        _ => None,
    };
    let int = |value: Option<i32>| value.map_or(Datum::Null, Datum::Int4);
    // Of a domain over a domain nothing is shown, as in PostgreSQL.
    let octets = match ty {
        type_oid::TEXT | type_oid::VARCHAR | type_oid::BPCHAR => Some(length.map_or(1 << 30, |length| length * 4)),
        _ => None,
    };
    [
        ("character_maximum_length", int(length)),
        ("character_octet_length", int(octets)),
        ("numeric_precision", int(precision)),
        ("numeric_precision_radix", int(radix)),
        ("numeric_scale", int(scale)),
        ("datetime_precision", int(datetime)),
    ]
}

/// A collation, by the columns that show it; the default one is not shown.
pub(super) fn collation_columns(collation: u32, database: &str) -> [(&'static str, Datum); 3] {
    let shown = collation::shown_name(collation);
    let value = |value: &str| shown.map_or(Datum::Null, |_| text(value));
    [
        ("collation_catalog", value(database)),
        ("collation_schema", value("pg_catalog")),
        ("collation_name", shown.map_or(Datum::Null, text)),
    ]
}

pub(super) fn columns(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    columns_of(rel, cx, Asked::All)
}

pub(super) fn columns_of(rel: &SystemRelation, cx: &dyn EvalContext, asked: Asked<'_>) -> SystemRows {
    let catalog = cx.catalog();
    let database = cx.identity().database;
    let (sight, mut rows) = (Sight::new(&catalog, cx), Vec::new());
    for table in keys::tables(asked, &catalog, cx) {
        if table.kind == TableKind::MaterializedView || !sight.table(table) {
            continue;
        }
        let writable = (table.kind == TableKind::View).then(|| super::view_columns_writable(table, cx));
        for column in table.live_columns().filter(|column| sight.column(table, column.number)) {
            // Of a column with a domain this shows what is next under it.
            let (ty, typmod) = shown_type(&catalog, column);
            let domain = catalog.user_type(column.type_oid).filter(|_| types::user::is_domain(column.type_oid));
            let base = types::user::base_type(ty, typmod).0;
            let made = made_type(&catalog, ty);
            let collation = collation::of_column(&catalog, column);
            let is_updatable = writable.as_ref().is_none_or(|w| w.get(column.number as usize - 1) == Some(&true));
            let sequence = catalog.identity_sequence(column);
            let of_sequence =
                |value: fn(&SequenceDesc) -> i64| sequence.map_or(Datum::Null, |s| text(value(s).to_string()));
            let info = type_info(ty);
            let refuses_null = matches!(domain.map(|d| &d.kind), Some(TypeKind::Domain(d)) if d.not_null);
            let mut values = Vec::from(type_facts(ty, typmod));
            values.extend(vec![
                ("table_catalog", text(&database)),
                ("table_schema", text(name_of(&catalog, table.schema))),
                ("table_name", text(&table.name)),
                ("column_name", text(&column.name)),
                ("ordinal_position", Datum::Int4(column.number.into())),
                (
                    "column_default",
                    column.default.as_ref().filter(|_| column.identity.is_none()).map_or(Datum::Null, |d| {
                        let ty = sql_ir::Ty { oid: base, typmod: column.typmod };
                        text(super::default_text(d, ty, false, cx))
                    }),
                ),
                ("is_nullable", text(if column.not_null || refuses_null { "NO" } else { "YES" })),
                ("data_type", text(sql_name(ty))),
                ("udt_catalog", text(&database)),
                ("udt_schema", text(made.map_or("pg_catalog".to_string(), |t| name_of(&catalog, t.schema)))),
                ("domain_catalog", domain.map_or(Datum::Null, |_| text(&database))),
                ("domain_schema", domain.map_or(Datum::Null, |d| text(name_of(&catalog, d.schema)))),
                ("domain_name", domain.map_or(Datum::Null, |d| text(&d.name))),
                ("udt_name", info.map_or(Datum::Null, |i| text(&i.name))),
                ("dtd_identifier", text(column.number.to_string())),
                ("is_self_referencing", text("NO")),
                ("is_identity", text(if column.identity.is_some() { "YES" } else { "NO" })),
                ("identity_start", of_sequence(|s| s.start)),
                ("identity_increment", of_sequence(|s| s.increment)),
                ("identity_maximum", of_sequence(|s| s.max)),
                ("identity_minimum", of_sequence(|s| s.min)),
                ("identity_cycle", yes_no(sequence.is_some_and(|s| s.cycle))),
                (
                    "identity_generation",
                    match column.identity {
                        Some(Identity::Always) => text("ALWAYS"),
                        Some(Identity::ByDefault) => text("BY DEFAULT"),
                        None => Datum::Null,
                    },
                ),
                (
                    "generation_expression",
                    column.generated.as_ref().map_or(Datum::Null, |g| {
                        let ty = sql_ir::Ty { oid: base, typmod: column.typmod };
                        text(super::generated_text(g, ty, table, false, cx))
                    }),
                ),
                ("is_generated", text(if column.generated.is_some() { "ALWAYS" } else { "NEVER" })),
                ("is_updatable", yes_no(is_updatable)),
            ]);
            values.extend(collation_columns(collation, &database));
            rows.push(row(rel, values));
        }
    }
    let superuser = cx.identity().superuser;
    let seen = |system: &&SystemRelation| superuser || !sql_parse::privileges::is_secret(system.name);
    for system in super::all().filter(seen).filter(|system| asked.takes(system.oid, system.name)) {
        for (at, &(name, ty)) in system.columns.iter().enumerate() {
            work::step(16)?;
            let collation = collation::of_type(&catalog, ty);
            let number = at as i32 + 1;
            let mut values = Vec::from(type_facts(ty, system.typmod(at)));
            values.extend(vec![
                ("table_catalog", text(&database)),
                ("table_schema", text(system.schema)),
                ("table_name", text(system.name)),
                ("column_name", text(name)),
                ("ordinal_position", Datum::Int4(number)),
                ("is_nullable", text(if system.is_not_null(ty) { "NO" } else { "YES" })),
                ("data_type", text(sql_name(ty))),
                ("udt_catalog", text(&database)),
                ("udt_schema", text("pg_catalog")),
                ("udt_name", type_info(ty).map_or(Datum::Null, |i| text(&i.name))),
                ("dtd_identifier", text(number.to_string())),
                ("is_self_referencing", text("NO")),
                ("is_identity", text("NO")),
                ("identity_cycle", text("NO")),
                ("is_generated", text("NEVER")),
                ("is_updatable", yes_no(!system.is_view())),
            ]);
            values.extend(collation_columns(collation, &database));
            rows.push(row(rel, values));
        }
    }
    Ok(rows)
}

fn yes_no(yes: bool) -> Datum {
    text(if yes { "YES" } else { "NO" })
}

pub(super) fn schemata(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let identity = cx.identity();
    let (sight, mut rows) = (Sight::new(&catalog, cx), Vec::new());
    for object in catalog.walk() {
        if let CatalogObject::Schema(s) = &**object
            && (!s.database.is_valid() || s.database == identity.database_oid)
            && sight.schema(s.oid)
        {
            rows.push(row(
                rel,
                vec![
                    ("catalog_name", text(&identity.database)),
                    ("schema_name", text(&s.name)),
                    ("schema_owner", text(name_of(&catalog, s.owner))),
                ],
            ));
        }
    }
    Ok(rows)
}

/// Calls `make` for every constraint, with the columns that name it and its table.
fn each_constraint(
    cx: &dyn EvalContext,
    mut make: impl FnMut(&Sight<'_>, &TableDesc, &engine_api::ConstraintDesc, Vec<(&'static str, Datum)>),
) {
    let catalog = cx.catalog();
    let database = cx.identity().database;
    let sight = Sight::new(&catalog, cx);
    for table in tables_of(&catalog, cx) {
        let schema = name_of(&catalog, table.schema);
        for c in &table.constraints {
            let names = vec![
                ("constraint_catalog", text(&database)),
                ("constraint_schema", text(&schema)),
                ("constraint_name", text(&c.name)),
            ];
            make(&sight, table, c, names);
        }
    }
}

pub(super) fn table_constraints(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let mut rows = Vec::new();
    let database = cx.identity().database;
    each_constraint(cx, |sight, table, c, mut values| {
        if !sight.constraints(table) {
            return;
        }
        let catalog = sight.catalog;
        let kind = match c.kind {
            ConstraintKind::PrimaryKey { .. } => "PRIMARY KEY",
            ConstraintKind::Unique { .. } => "UNIQUE",
            ConstraintKind::Check { .. } => "CHECK",
            ConstraintKind::ForeignKey { .. } => "FOREIGN KEY",
        };
        values.extend([
            ("table_catalog", text(&database)),
            ("table_schema", text(name_of(catalog, table.schema))),
            ("table_name", text(&table.name)),
            ("constraint_type", text(kind)),
            ("is_deferrable", yes_no(c.deferrable)),
            ("initially_deferred", yes_no(c.deferred)),
            ("enforced", text("YES")),
        ]);
        if let ConstraintKind::Unique { index } = c.kind {
            let distinct = !catalog.index(index).is_some_and(|index| index.nulls_not_distinct);
            values.push(("nulls_distinct", yes_no(distinct)));
        }
        rows.push(row(rel, values));
    });
    let catalog = cx.catalog();
    let sight = Sight::new(&catalog, cx);
    for table in tables_of(&catalog, cx).into_iter().filter(|table| sight.constraints(table)) {
        for column in table.live_columns().filter(|c| c.not_null) {
            let schema = name_of(&catalog, table.schema);
            rows.push(row(
                rel,
                vec![
                    ("constraint_catalog", text(&database)),
                    ("constraint_schema", text(&schema)),
                    ("constraint_name", text(not_null_name(table, column))),
                    ("table_catalog", text(&database)),
                    ("table_schema", text(&schema)),
                    ("table_name", text(&table.name)),
                    ("constraint_type", text("CHECK")),
                    ("is_deferrable", text("NO")),
                    ("initially_deferred", text("NO")),
                    ("enforced", text("YES")),
                ],
            ));
        }
    }
    Ok(rows)
}

/// What information_schema calls NOT NULL of a column.
fn not_null_name(table: &TableDesc, column: &ColumnDesc) -> String {
    format!("{}_{}_{}_not_null", table.schema, table.oid, column.number)
}

/// What the definition of a CHECK constraint says behind its first word.
pub(super) fn check_clause(definition: &str) -> &str {
    definition.strip_prefix("CHECK ").unwrap_or(definition)
}

/// CHECK constraints of tables and domains, and NOT NULL as PostgreSQL shows it: as checks with made-up names.
pub(super) fn check_constraints(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let mut rows = Vec::new();
    let (catalog, database) = (cx.catalog(), cx.identity().database);
    each_constraint(cx, |sight, table, c, mut values| {
        if matches!(c.kind, ConstraintKind::Check { .. }) && sight.has_role(table.owner) {
            let definition = super::constraint_definition(&catalog, table, c, false, cx);
            values.push(("check_clause", text(check_clause(&definition))));
            rows.push(row(rel, values));
        }
    });
    let sight = Sight::new(&catalog, cx);
    for table in tables_of(&catalog, cx).into_iter().filter(|table| sight.has_role(table.owner)) {
        for column in table.live_columns().filter(|c| c.not_null) {
            let name = not_null_name(table, column);
            rows.push(row(
                rel,
                vec![
                    ("constraint_catalog", text(&database)),
                    ("constraint_schema", text(name_of(&catalog, table.schema))),
                    ("constraint_name", text(name)),
                    ("check_clause", text(format!("{} IS NOT NULL", column.name))),
                ],
            ));
        }
    }
    rows.extend(super::domains::check_constraints(rel, cx)?);
    // The view is a union: what is called and says the same is there once.
    rows.sort_by_key(|row| format!("{row:?}"));
    rows.dedup();
    Ok(rows)
}

pub(super) fn key_column_usage(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let mut rows = Vec::new();
    let database = cx.identity().database;
    each_constraint(cx, |sight, table, c, values| {
        if matches!(c.kind, ConstraintKind::Check { .. }) {
            return;
        }
        let catalog = sight.catalog;
        for (i, &number) in c.columns.iter().enumerate().filter(|(_, number)| sight.column(table, **number)) {
            let mut values = values.clone();
            let position = match &c.kind {
                ConstraintKind::ForeignKey { columns, index, .. } => catalog
                    .index(*index)
                    .and_then(|x| x.keys.iter().position(|k| k.column == columns[i]))
                    .map_or(Datum::Null, |p| Datum::Int4(p as i32 + 1)),
                _ => Datum::Null,
            };
            values.extend([
                ("table_catalog", text(&database)),
                ("table_schema", text(name_of(catalog, table.schema))),
                ("table_name", text(&table.name)),
                ("column_name", text(&table.columns[number as usize - 1].name)),
                ("ordinal_position", Datum::Int4(i as i32 + 1)),
                ("position_in_unique_constraint", position),
            ]);
            rows.push(row(rel, values));
        }
    });
    Ok(rows)
}

fn rule(action: ForeignKeyAction) -> &'static str {
    match action {
        ForeignKeyAction::NoAction => "NO ACTION",
        ForeignKeyAction::Restrict => "RESTRICT",
        ForeignKeyAction::Cascade => "CASCADE",
        ForeignKeyAction::SetNull => "SET NULL",
        ForeignKeyAction::SetDefault => "SET DEFAULT",
    }
}

pub(super) fn referential_constraints(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let mut rows = Vec::new();
    let database = cx.identity().database;
    each_constraint(cx, |sight, own, c, mut values| {
        let ConstraintKind::ForeignKey { table, index, on_delete, on_update, match_full, .. } = &c.kind else { return };
        if !sight.constraints(own) {
            return;
        }
        let catalog = sight.catalog;
        let schema = catalog.table(*table).map(|t| name_of(catalog, t.schema)).unwrap_or_default();
        values.extend([
            ("unique_constraint_catalog", text(&database)),
            ("unique_constraint_schema", text(schema)),
            ("unique_constraint_name", text(name_of(catalog, *index))),
            ("match_option", text(if *match_full { "FULL" } else { "NONE" })),
            ("update_rule", text(rule(*on_update))),
            ("delete_rule", text(rule(*on_delete))),
        ]);
        rows.push(row(rel, values));
    });
    Ok(rows)
}

pub(super) fn constraint_column_usage(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let mut rows = Vec::new();
    let database = cx.identity().database;
    each_constraint(cx, |sight, table, c, values| {
        let catalog = sight.catalog;
        let (target, columns) = match &c.kind {
            ConstraintKind::ForeignKey { table, columns, .. } => (catalog.table(*table).cloned(), columns.clone()),
            _ => (Some(table.clone()), c.columns.clone()),
        };
        let Some(target) = target.filter(|target| sight.has_role(target.owner)) else { return };
        for number in columns {
            let mut values = values.clone();
            values.extend([
                ("table_catalog", text(&database)),
                ("table_schema", text(name_of(catalog, target.schema))),
                ("table_name", text(&target.name)),
                ("column_name", text(&target.columns[number as usize - 1].name)),
            ]);
            rows.push(row(rel, values));
        }
    });
    Ok(rows)
}

pub(super) fn sequences(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let database = cx.identity().database;
    let all = catalog.walk().filter_map(|o| catalog.sequence(o.oid()));
    let sight = Sight::new(&catalog, cx);
    let sees = |s: &SequenceDesc| sight.has_role(s.owner) || sight.has(s.oid, Class::Sequence.all());
    Ok(all
        .filter(|s| in_database(&catalog, s.schema, cx) && !catalog.is_identity_sequence(s) && sees(s))
        .map(|s| {
            let bits = match s.type_oid {
                type_oid::INT2 => 16,
                type_oid::INT4 => 32,
                _ => 64,
            };
            row(
                rel,
                vec![
                    ("sequence_catalog", text(&database)),
                    ("sequence_schema", text(name_of(&catalog, s.schema))),
                    ("sequence_name", text(&s.name)),
                    ("data_type", text(format_type(s.type_oid, -1))),
                    ("numeric_precision", Datum::Int4(bits)),
                    ("numeric_precision_radix", Datum::Int4(2)),
                    ("numeric_scale", Datum::Int4(0)),
                    ("start_value", text(s.start.to_string())),
                    ("minimum_value", text(s.min.to_string())),
                    ("maximum_value", text(s.max.to_string())),
                    ("increment", text(s.increment.to_string())),
                    ("cycle_option", text(if s.cycle { "YES" } else { "NO" })),
                ],
            )
        })
        .collect())
}

pub(super) fn views(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let sight = Sight::new(&catalog, cx);
    let all = tables_of(&catalog, cx).into_iter().filter(|t| t.kind == TableKind::View && sight.table(t));
    Ok(all
        .map(|view| {
            let text_of_own = || super::view_text(view, false, cx).filter(|_| sight.has_role(view.owner));
            let option = match view.view.as_ref().and_then(|v| v.check_option) {
                None => "NONE",
                Some(CheckOption::Local) => "LOCAL",
                Some(CheckOption::Cascaded) => "CASCADED",
            };
            let writable = |verb| super::view_is_writable(view, verb, cx);
            row(
                rel,
                vec![
                    ("table_catalog", text(cx.identity().database)),
                    ("table_schema", text(name_of(&catalog, view.schema))),
                    ("table_name", text(&view.name)),
                    ("view_definition", text_of_own().map_or(Datum::Null, text)),
                    ("check_option", text(option)),
                    ("is_updatable", yes_no(writable("update") && writable("delete from"))),
                    ("is_insertable_into", yes_no(writable("insert into"))),
                    ("is_trigger_updatable", text("NO")),
                    ("is_trigger_deletable", text("NO")),
                    ("is_trigger_insertable_into", text("NO")),
                ],
            )
        })
        .collect())
}
