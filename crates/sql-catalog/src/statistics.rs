//! pg_stats, pg_statistic: what ANALYZE found.

use sql_bind::collation;
use sql_functions::statistics::ColumnStatistics;
use sql_functions::{self as functions, EvalContext};
use sql_ir::system_relation::SystemRelation;
use sql_parse::privileges::shown;
use types::{Array, Datum, OutputSettings, oid as oids};

use super::relations::tables_of;
use super::views::name_of;
use super::{SystemRows, oid, row, text};

/// Values as the text of an array of their type.
fn array_text(values: &[Datum], element: base::Oid) -> Datum {
    if values.is_empty() {
        return Datum::Null;
    }
    let dims = vec![(values.len() as i32, 1)];
    let array = Datum::Array(std::sync::Arc::new(Array { element, dims, values: values.to_vec() }));
    let mut out = Vec::new();
    let ty = oids::array_of(element).unwrap_or(oids::TEXT_ARRAY);
    match types::write_text(array.as_ref(), ty, &OutputSettings::default(), &mut out) {
        Ok(()) => text(String::from_utf8_lossy(&out)),
        Err(_) => Datum::Null,
    }
}

fn shares(of: &ColumnStatistics) -> Datum {
    if of.common.is_empty() {
        return Datum::Null;
    }
    let values: Vec<Datum> = of.common.iter().map(|(_, share)| Datum::Float4(*share as f32)).collect();
    let dims = vec![(values.len() as i32, 1)];
    Datum::Array(std::sync::Arc::new(Array { element: oids::FLOAT4, dims, values }))
}

pub(super) fn stats(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let (catalog, who) = (cx.catalog(), cx.identity().who());
    let mut rows = Vec::new();
    for table in tables_of(&catalog, cx) {
        let Some(known) = cx.statistics(table.oid) else { continue };
        // Who may not read a column is not told of its values either.
        let whole = shown::reads_table(&catalog, who, table.oid);
        let is_readable = |number| whole || shown::reads_column(&catalog, who, table.oid, number);
        for column in table.columns.iter().filter(|column| is_readable(column.number)) {
            let Some(of) = known.column(column) else { continue };
            let common: Vec<Datum> = of.common.iter().map(|(value, _)| value.clone()).collect();
            rows.push(row(
                rel,
                vec![
                    ("schemaname", text(name_of(&catalog, table.schema))),
                    ("tablename", text(&table.name)),
                    ("attname", text(&column.name)),
                    ("inherited", Datum::Bool(false)),
                    ("null_frac", Datum::Float4(of.null_fraction as f32)),
                    ("avg_width", Datum::Int4(of.width.round() as i32)),
                    ("n_distinct", Datum::Float4(of.distinct as f32)),
                    ("most_common_vals", array_text(&common, column.type_oid)),
                    ("most_common_freqs", shares(of)),
                    ("histogram_bounds", array_text(&of.histogram, column.type_oid)),
                    ("correlation", of.correlation.map_or(Datum::Null, |c| Datum::Float4(c as f32))),
                ],
            ));
        }
    }
    Ok(rows)
}

pub(super) fn statistic(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let mut rows = Vec::new();
    let catalog = cx.catalog();
    for table in tables_of(&catalog, cx) {
        let Some(known) = cx.statistics(table.oid) else { continue };
        for column in &table.columns {
            let Some(of) = known.column(column) else { continue };
            let common: Vec<Datum> = of.common.iter().map(|(value, _)| value.clone()).collect();
            let (common_kind, histogram_kind) = (!of.common.is_empty(), !of.histogram.is_empty());
            // Kinds of pg_statistic.h: most common values, histogram. Slots that are free are 0.
            let kind = |is: bool, kind| Datum::Int2(if is { kind } else { 0 });
            let operator = |is: bool, name| Datum::Oid(if is { comparison(name, column.type_oid) } else { 0 });
            let collation = |is: bool| Datum::Oid(if is { collation::of_column(&catalog, column) } else { 0 });
            rows.push(row(
                rel,
                vec![
                    ("starelid", oid(table.oid)),
                    ("staattnum", Datum::Int2(column.number)),
                    ("stainherit", Datum::Bool(false)),
                    ("stanullfrac", Datum::Float4(of.null_fraction as f32)),
                    ("stawidth", Datum::Int4(of.width.round() as i32)),
                    ("stadistinct", Datum::Float4(of.distinct as f32)),
                    ("stakind1", kind(common_kind, 1)),
                    ("stakind2", kind(histogram_kind, 2)),
                    ("stakind3", Datum::Int2(0)),
                    ("stakind4", Datum::Int2(0)),
                    ("stakind5", Datum::Int2(0)),
                    ("staop1", operator(common_kind, "=")),
                    ("staop2", operator(histogram_kind, "<")),
                    ("staop3", Datum::Oid(0)),
                    ("staop4", Datum::Oid(0)),
                    ("staop5", Datum::Oid(0)),
                    ("stacoll1", collation(common_kind)),
                    ("stacoll2", collation(histogram_kind)),
                    ("stacoll3", Datum::Oid(0)),
                    ("stacoll4", Datum::Oid(0)),
                    ("stacoll5", Datum::Oid(0)),
                    ("stanumbers1", shares(of)),
                    ("stavalues1", array_text(&common, column.type_oid)),
                    ("stavalues2", array_text(&of.histogram, column.type_oid)),
                ],
            ));
        }
    }
    Ok(rows)
}

/// The operator of a name by which values of a type are compared, as its B-tree class has it; 0 if there is none.
fn comparison(name: &str, ty: base::Oid) -> u32 {
    let held = types::user::plain_type(ty, -1).0;
    let of = |ty| functions::all_operators().iter().find(|o| o.name == name && o.left == ty && o.right == ty);
    let general = match held {
        oids::VARCHAR => oids::TEXT,
        ty if types::element_of(ty).is_some() => oids::ANYARRAY,
        ty if types::user::is_enum(ty) => oids::ANYENUM,
        ty => ty,
    };
    of(held).or_else(|| of(general)).map_or(0, |o| o.oid)
}
