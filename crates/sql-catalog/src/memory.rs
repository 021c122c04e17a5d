//! `nyala_memory`, `nyala_table_memory`, `pg_shmem_allocations`: what memory is held for.

use engine_api::{MemoryKind, TableMemoryUse};
use rustc_hash::FxHashMap;
use sql_functions::{EvalContext, Server};
use sql_ir::system_relation::SystemRelation;
use types::Datum;

use super::relations::tables_of;
use super::views::name_of;
use super::{SystemRows, oid, row, text};

fn bytes(bytes: u64) -> Datum {
    Datum::Int8(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// What all memory that is counted is held for: the kind, bytes, and their limit. Then its sum.
fn kinds(server: &dyn Server) -> Vec<(&'static str, u64, Option<u64>)> {
    let held = server.engine().memory();
    let mut kinds = vec![
        ("row_headers", held.headers, None),
        ("row_versions", held.versions, None),
        ("indexes", held.indexes, None),
    ];
    for kind in MemoryKind::ALL {
        kinds.push((kind.name(), held.others[kind as usize], server.memory_limit_of(kind)));
    }
    // Rows of tables that are gone while somebody still has them open, or that are being made.
    let known: u64 = kinds.iter().map(|kind| kind.1).sum();
    kinds.push(("other", held.held.saturating_sub(known), None));
    kinds.push(("total", held.held, Some(held.limit)));
    kinds
}

/// All memory of tables and of the server is shared by its sessions.
pub(super) fn allocations(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let Some(server) = cx.server() else { return Ok(Vec::new()) };
    let kinds = kinds(server).into_iter().filter(|(kind, ..)| *kind != "total");
    let one =
        |(kind, held, _)| row(rel, vec![("name", text(kind)), ("size", bytes(held)), ("allocated_size", bytes(held))]);
    Ok(kinds.map(one).collect())
}

/// One row per kind, then their sum, then what the process holds as the system sees it.
pub(super) fn memory(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let Some(server) = cx.server() else { return Ok(Vec::new()) };
    let mut rows: Vec<_> = kinds(server)
        .into_iter()
        .map(|(kind, held, limit)| {
            let mut columns = vec![("kind", text(kind)), ("bytes", bytes(held)), ("counted", Datum::Bool(true))];
            columns.extend(limit.map(|limit| ("limit_bytes", bytes(limit))));
            row(rel, columns)
        })
        .collect();
    if let Some(resident) = server.resident_bytes() {
        rows.push(row(
            rel,
            vec![("kind", text("resident")), ("bytes", bytes(resident)), ("counted", Datum::Bool(false))],
        ));
    }
    Ok(rows)
}

/// One row per table of the database.
pub(super) fn table_memory(rel: &SystemRelation, cx: &dyn EvalContext) -> SystemRows {
    let Some(server) = cx.server() else { return Ok(Vec::new()) };
    let catalog = cx.catalog();
    let mut held: FxHashMap<u32, TableMemoryUse> = FxHashMap::default();
    for table in server.engine().table_memory() {
        // TRUNCATE that is not committed leaves a table with two sets of rows.
        let sum = held.entry(table.table.0).or_default();
        sum.rows += table.rows;
        sum.headers += table.headers;
        sum.version_count += table.version_count;
        sum.versions += table.versions;
        sum.indexes += table.indexes;
    }
    let mut rows = Vec::new();
    for table in tables_of(&catalog, cx) {
        let Some(held) = held.get(&table.oid.0) else { continue };
        rows.push(row(
            rel,
            vec![
                ("relid", oid(table.oid)),
                ("schemaname", text(name_of(&catalog, table.schema))),
                ("relname", text(&table.name)),
                ("row_count", bytes(held.rows)),
                ("version_count", bytes(held.version_count)),
                ("old_versions", bytes(held.version_count.saturating_sub(held.rows))),
                ("header_bytes", bytes(held.headers)),
                ("version_bytes", bytes(held.versions)),
                ("index_bytes", bytes(held.indexes)),
                ("total_bytes", bytes(held.bytes())),
            ],
        ));
    }
    Ok(rows)
}
