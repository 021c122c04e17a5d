//! pg_constraint.

use engine_api::{ConstraintKind, ForeignKeyAction, TableDesc};
use sql_bind as bind;
use sql_functions::EvalContext;
use sql_ir::system_relation::{Asked, SystemRelation};
use types::Datum;

use super::keys;
use super::relations::{in_database, int2_array, oid_array};
use super::{SystemRows, oid, row, text};

fn action(action: ForeignKeyAction) -> &'static str {
    match action {
        ForeignKeyAction::NoAction => "a",
        ForeignKeyAction::Restrict => "r",
        ForeignKeyAction::Cascade => "c",
        ForeignKeyAction::SetNull => "n",
        ForeignKeyAction::SetDefault => "d",
    }
}

pub(super) fn constraints(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    constraints_of(rel, cx, Asked::All)
}

/// The operators of a foreign key, column by column: between the two tables, within the one that it points to, within its own.
fn operators(table: &TableDesc, columns: &[i16], other: &TableDesc, others: &[i16]) -> [Vec<u32>; 3] {
    let ty = |table: &TableDesc, column: i16| {
        let column = &table.columns[column as usize - 1];
        types::user::base_type(column.type_oid, column.typmod).0
    };
    let mut all: [Vec<u32>; 3] = Default::default();
    for (&column, &its) in columns.iter().zip(others) {
        let found = bind::key_operators(ty(table, column), ty(other, its));
        for (list, operator) in all.iter_mut().zip(found.into_iter().flatten()) {
            list.push(operator.oid);
        }
    }
    all
}

/// The constraints of the tables that are asked for. Those of domains are of no table.
pub(super) fn constraints_of(rel: &SystemRelation, cx: &dyn EvalContext, asked: Asked<'_>) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for table in keys::tables(asked, &catalog, cx) {
        for c in &table.constraints {
            let mut values = vec![
                ("oid", oid(c.oid)),
                ("conname", text(&c.name)),
                ("connamespace", oid(table.schema)),
                ("condeferrable", Datum::Bool(c.deferrable)),
                ("condeferred", Datum::Bool(c.deferred)),
                ("convalidated", Datum::Bool(!c.not_valid)),
                ("conrelid", oid(table.oid)),
                ("contypid", Datum::Oid(0)),
                ("conparentid", Datum::Oid(0)),
                ("conislocal", Datum::Bool(true)),
                ("coninhcount", Datum::Int4(0)),
                ("connoinherit", Datum::Bool(c.no_inherit || !matches!(c.kind, ConstraintKind::Check { .. }))),
                ("conkey", if c.columns.is_empty() { Datum::Null } else { int2_array(&c.columns, 1) }),
            ];
            match &c.kind {
                ConstraintKind::Check { expression } => {
                    values.extend([
                        ("contype", text("c")),
                        ("conindid", Datum::Oid(0)),
                        ("confrelid", Datum::Oid(0)),
                        ("conbin", text(sql_bind::stored::text(expression, &catalog, Some(table)))),
                    ]);
                }
                ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } => {
                    let primary = matches!(c.kind, ConstraintKind::PrimaryKey { .. });
                    values.extend([
                        ("contype", text(if primary { "p" } else { "u" })),
                        ("conindid", oid(*index)),
                        ("confrelid", Datum::Oid(0)),
                    ]);
                }
                ConstraintKind::ForeignKey {
                    table: other,
                    columns,
                    index,
                    on_delete,
                    on_update,
                    match_full,
                    set_columns,
                } => {
                    let operators = catalog.table(*other).map(|other| operators(table, &c.columns, other, columns));
                    let [between, keys, own] = operators.unwrap_or_default();
                    values.extend([
                        ("contype", text("f")),
                        ("conindid", oid(*index)),
                        ("confrelid", oid(*other)),
                        ("confupdtype", text(action(*on_update))),
                        ("confdeltype", text(action(*on_delete))),
                        ("confmatchtype", text(if *match_full { "f" } else { "s" })),
                        ("confkey", int2_array(columns, 1)),
                        ("conpfeqop", oid_array(&between, 1)),
                        ("conppeqop", oid_array(&keys, 1)),
                        ("conffeqop", oid_array(&own, 1)),
                    ]);
                    if !set_columns.is_empty() {
                        values.push(("confdelsetcols", int2_array(set_columns, 1)));
                    }
                }
            }
            rows.push(row(rel, values));
        }
    }
    if matches!(asked, Asked::Of(table) if table.is_valid()) {
        return Ok(rows);
    }
    for (ty, check) in
        super::descriptions::domain_checks(&catalog).filter(|(ty, _)| in_database(&catalog, ty.schema, cx))
    {
        let values = vec![
            ("oid", oid(check.oid)),
            ("conname", text(&check.name)),
            ("connamespace", oid(ty.schema)),
            ("contype", text("c")),
            ("condeferrable", Datum::Bool(false)),
            ("condeferred", Datum::Bool(false)),
            ("convalidated", Datum::Bool(!check.not_valid)),
            ("conrelid", Datum::Oid(0)),
            ("contypid", oid(ty.oid)),
            ("conindid", Datum::Oid(0)),
            ("conparentid", Datum::Oid(0)),
            ("confrelid", Datum::Oid(0)),
            ("conislocal", Datum::Bool(true)),
            ("coninhcount", Datum::Int4(0)),
            ("connoinherit", Datum::Bool(false)),
            ("conbin", text(sql_bind::stored::text(&check.expression, &catalog, None))),
        ];
        rows.push(row(rel, values));
    }
    Ok(rows)
}
