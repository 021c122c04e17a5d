//! Sizes: the memory that rows and indexes take, from the counters that the budget is kept with.

use base::{Error, Oid, Result, SqlState};
use engine_api::CatalogObject;
use types::Datum;

use super::super::EvalContext;
use super::super::entry::{mismatch, oid_of};

fn bytes(bytes: u64) -> Datum {
    Datum::Int8(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// Bytes of one relation; 0 for what holds nothing, `None` for what is not there.
fn of(cx: &dyn EvalContext, relation: Oid) -> Option<u64> {
    super::names::relation_exists(cx, relation).then(|| cx.relation_bytes(relation).unwrap_or(0))
}

fn of_indexes(cx: &dyn EvalContext, table: Oid) -> u64 {
    cx.catalog().indexes(table).map(|index| cx.relation_bytes(index.oid).unwrap_or(0)).sum()
}

/// `pg_relation_size`, `pg_table_size`. Only the main fork of what PostgreSQL keeps in forks is there.
pub(super) fn relation(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let size = of(cx, oid_of(args, 0)?);
    let fork = match args.get(1) {
        Some(Datum::Text(fork)) => &**fork,
        _ => "main",
    };
    match fork {
        "main" => Ok(size.map_or(Datum::Null, bytes)),
        "fsm" | "vm" | "init" => Ok(size.map_or(Datum::Null, |_| bytes(0))),
        _ => Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, "invalid fork name")
            .hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".")),
    }
}

pub(super) fn indexes(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let table = oid_of(args, 0)?;
    Ok(of(cx, table).map_or(Datum::Null, |_| bytes(of_indexes(cx, table))))
}

pub(super) fn total(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let table = oid_of(args, 0)?;
    Ok(of(cx, table).map_or(Datum::Null, |own| bytes(own + of_indexes(cx, table))))
}

/// All relations of a database.
pub(super) fn database(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let catalog = cx.catalog();
    let database = match args.first() {
        Some(Datum::Text(name)) => catalog
            .database(name)
            .map(|d| d.oid)
            .ok_or_else(|| Error::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist")))?,
        Some(Datum::Oid(oid)) if matches!(catalog.get(Oid(*oid)).map(|o| &**o), Some(CatalogObject::Database(_))) => {
            Oid(*oid)
        }
        Some(Datum::Oid(_)) => return Ok(Datum::Null),
        _ => return Err(mismatch("pg_database_size")),
    };
    let is_here = |schema: Oid| matches!(catalog.get(schema).map(|o| &**o), Some(CatalogObject::Schema(s)) if s.database == database);
    let relations = catalog.walk().filter(|o| o.namespace().0 == 3 && is_here(o.namespace().1));
    Ok(bytes(relations.filter_map(|o| cx.relation_bytes(o.oid())).sum()))
}
