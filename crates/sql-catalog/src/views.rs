//! pg_tables, pg_indexes, pg_sequences, pg_views, pg_matviews.

use engine_api::{Catalog, Privileges, TableKind};
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::relations::{has_triggers, in_database, referenced_tables, tables_of};
use super::sight::Sight;
use super::{SystemRows, definitions, oid, row, text};

pub(super) fn name_of(catalog: &Catalog, object: base::Oid) -> String {
    catalog.get(object).map(|o| o.name().to_string()).unwrap_or_default()
}

pub(super) fn tables(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let referenced = referenced_tables(&catalog);
    let mut rows: Vec<Vec<Datum>> = tables_of(&catalog, cx)
        .iter()
        .filter(|t| t.kind == TableKind::Table)
        .map(|t| {
            row(
                rel,
                vec![
                    ("schemaname", text(name_of(&catalog, t.schema))),
                    ("tablename", text(&t.name)),
                    ("tableowner", text(name_of(&catalog, t.owner))),
                    ("hasindexes", Datum::Bool(catalog.indexes(t.oid).next().is_some())),
                    ("hasrules", Datum::Bool(false)),
                    ("hastriggers", Datum::Bool(has_triggers(t, &referenced))),
                    ("rowsecurity", Datum::Bool(false)),
                ],
            )
        })
        .collect();
    for system in super::all().filter(|s| !s.is_view()) {
        rows.push(row(
            rel,
            vec![
                ("schemaname", text(system.schema)),
                ("tablename", text(system.name)),
                ("tableowner", text("postgres")),
                ("hasindexes", Datum::Bool(false)),
                ("hasrules", Datum::Bool(false)),
                ("hastriggers", Datum::Bool(false)),
                ("rowsecurity", Datum::Bool(false)),
            ],
        ));
    }
    Ok(rows)
}

pub(super) fn indexes(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for table in tables_of(&catalog, cx) {
        for index in catalog.indexes(table.oid) {
            rows.push(row(
                rel,
                vec![
                    ("schemaname", text(name_of(&catalog, table.schema))),
                    ("tablename", text(&table.name)),
                    ("indexname", text(&index.name)),
                    (
                        "indexdef",
                        definitions::index_definition(&catalog, index, 0, false, cx).map_or(Datum::Null, text),
                    ),
                ],
            ));
        }
    }
    Ok(rows)
}

pub(super) fn sequences(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let (sight, mut rows) = (Sight::new(&catalog, cx), Vec::new());
    for sequence in catalog.walk().filter_map(|o| catalog.sequence(o.oid())) {
        if in_database(&catalog, sequence.schema, cx) {
            let readable = sight.has(sequence.oid, Privileges::SELECT | Privileges::USAGE);
            let last = match readable.then(|| cx.sequence_state(sequence.oid)).transpose()? {
                Some((value, true)) => Datum::Int8(value),
                _ => Datum::Null,
            };
            rows.push(row(
                rel,
                vec![
                    ("schemaname", text(name_of(&catalog, sequence.schema))),
                    ("sequencename", text(&sequence.name)),
                    ("sequenceowner", text(name_of(&catalog, sequence.owner))),
                    ("data_type", oid(sequence.type_oid)),
                    ("start_value", Datum::Int8(sequence.start)),
                    ("min_value", Datum::Int8(sequence.min)),
                    ("max_value", Datum::Int8(sequence.max)),
                    ("increment_by", Datum::Int8(sequence.increment)),
                    ("cycle", Datum::Bool(sequence.cycle)),
                    ("cache_size", Datum::Int8(sequence.cache)),
                    ("last_value", last),
                ],
            ));
        }
    }
    Ok(rows)
}

pub(super) fn views(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let all = tables_of(&catalog, cx).into_iter().filter(|t| t.kind == TableKind::View);
    Ok(all
        .map(|view| {
            row(
                rel,
                vec![
                    ("schemaname", text(name_of(&catalog, view.schema))),
                    ("viewname", text(&view.name)),
                    ("viewowner", text(name_of(&catalog, view.owner))),
                    ("definition", super::view_text(view, false, cx).map_or(Datum::Null, text)),
                ],
            )
        })
        .collect())
}

pub(super) fn materialized_views(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let all = tables_of(&catalog, cx).into_iter().filter(|t| t.kind == TableKind::MaterializedView);
    Ok(all
        .map(|view| {
            row(
                rel,
                vec![
                    ("schemaname", text(name_of(&catalog, view.schema))),
                    ("matviewname", text(&view.name)),
                    ("matviewowner", text(name_of(&catalog, view.owner))),
                    ("hasindexes", Datum::Bool(catalog.indexes(view.oid).next().is_some())),
                    ("ispopulated", Datum::Bool(view.view.as_ref().is_some_and(|v| v.populated))),
                    ("definition", super::view_text(view, false, cx).map_or(Datum::Null, text)),
                ],
            )
        })
        .collect())
}
