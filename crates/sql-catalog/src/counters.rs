//! `pg_stat_all_tables`, `pg_statio_all_tables` and the like: which relations there are. What is not counted is NULL.

use base::Oid;
use engine_api::{Catalog, CatalogObject, TableDesc, TableKind};
use sql_functions::EvalContext;
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::relations::{in_database, tables_of};
use super::views::name_of;
use super::{SystemRows, oid, row, text};

/// Whether a view tells of relations of users, and of those of the catalog: `pg_stat_user_…`, `pg_stat_sys_…`, `pg_stat_all_…`.
fn sorts(rel: &SystemRelation) -> (bool, bool) {
    (!rel.name.contains("_sys_"), !rel.name.contains("_user_"))
}

fn stored<'c>(catalog: &'c Catalog, cx: &dyn EvalContext) -> impl Iterator<Item = &'c TableDesc> {
    tables_of(catalog, cx).into_iter().filter(|table| table.kind != TableKind::View)
}

fn named(relation: Oid, schema: &str, name: &str) -> Vec<(&'static str, Datum)> {
    vec![("relid", oid(relation)), ("schemaname", text(schema)), ("relname", text(name))]
}

pub(super) fn tables(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let Some(server) = cx.server() else { return Ok(Vec::new()) };
    let catalog = cx.catalog();
    let (users, system) = sorts(rel);
    let counts_rows = rel.columns.iter().any(|(name, _)| *name == "n_live_tup");
    let mut rows = Vec::new();
    for table in stored(&catalog, cx).filter(|_| users) {
        let mut columns = named(table.oid, &name_of(&catalog, table.schema), &table.name);
        if counts_rows {
            columns.push(("n_live_tup", Datum::Int8(server.engine().row_count(table.oid) as i64)));
        }
        rows.push(row(rel, columns));
    }
    for relation in super::all().filter(|relation| system && !relation.is_view()) {
        rows.push(row(rel, named(relation.oid, relation.schema, relation.name)));
    }
    Ok(rows)
}

/// Catalogs have no indexes.
pub(super) fn indexes(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let mut rows = Vec::new();
    for table in stored(&catalog, cx).filter(|_| sorts(rel).0) {
        for index in catalog.indexes(table.oid) {
            let mut columns = named(table.oid, &name_of(&catalog, table.schema), &table.name);
            columns.extend([("indexrelid", oid(index.oid)), ("indexrelname", text(&index.name))]);
            rows.push(row(rel, columns));
        }
    }
    Ok(rows)
}

pub(super) fn sequences(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let all = catalog.walk().filter_map(|object| catalog.sequence(object.oid()));
    let shown = all.filter(|sequence| sorts(rel).0 && in_database(&catalog, sequence.schema, cx));
    Ok(shown.map(|s| row(rel, named(s.oid, &name_of(&catalog, s.schema), &s.name))).collect())
}

/// No statement is ever cancelled for the sake of recovery.
pub(super) fn conflicts(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let catalog = cx.catalog();
    let of = |database: Oid, name: &str| {
        let mut columns = vec![("datid", oid(database)), ("datname", text(name))];
        columns.extend(rel.columns[2..].iter().map(|(name, _)| (*name, Datum::Int8(0))));
        row(rel, columns)
    };
    let databases = catalog.walk().filter_map(|object| match &**object {
        CatalogObject::Database(database) => Some(of(database.oid, &database.name)),
        _ => None,
    });
    Ok(databases.collect())
}

/// Nothing is archived.
pub(super) fn archiver(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    Ok(vec![row(rel, ["archived_count", "failed_count"].map(|name| (name, Datum::Int8(0))).into())])
}

/// One row of figures that are not counted.
pub(super) fn uncounted(rel: &SystemRelation, _: &dyn EvalContext) -> SystemRows {
    Ok(vec![row(rel, Vec::new())])
}
