//! Sizes: the memory that rows and indexes take, from the counters that the budget is kept with.

use base::{Error, Oid, Result, SqlState};
use engine_api::CatalogObject;
use sql_functions::EvalContext;
use sql_functions::entry::{mismatch, oid_of, text_of};
use types::{Datum, Numeric};

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

/// `pg_size_bytes`: a number with a unit as a number of bytes.
pub(super) fn parse(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    const UNITS: [(&str, u32); 6] = [("bytes", 0), ("kB", 10), ("MB", 20), ("GB", 30), ("TB", 40), ("PB", 50)];
    let text = text_of(args, 0)?;
    let invalid = || Error::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid size: \"{text}\""));
    let trimmed = text.trim_ascii();
    let digits_from = |at: usize| trimmed[at..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = usize::from(trimmed.starts_with(['-', '+']));
    let whole = digits_from(end);
    end += whole;
    let mut has_digits = whole > 0;
    if trimmed[end..].starts_with('.') {
        let fraction = digits_from(end + 1);
        has_digits |= fraction > 0;
        end += 1 + fraction;
    }
    if !has_digits {
        return Err(invalid());
    }
    if trimmed[end..].starts_with(['e', 'E']) {
        let sign = usize::from(trimmed[end + 1..].starts_with(['-', '+']));
        let exponent = digits_from(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let mut size = Numeric::parse(&trimmed[..end])?;
    let unit = trimmed[end..].trim_ascii();
    if !unit.is_empty() {
        let Some((_, bits)) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
            return Err(invalid()
                .detail(format!("Invalid size unit: \"{unit}\"."))
                .hint("Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\"."));
        };
        size = size.mul(&Numeric::new(1 << bits, 0))?;
    }
    let Some(to_int8) = sql_functions::function("int8", &[types::oid::NUMERIC]) else {
        return Err(mismatch("pg_size_bytes"));
    };
    (to_int8.eval)(cx, &[Datum::Numeric(size)])
}
