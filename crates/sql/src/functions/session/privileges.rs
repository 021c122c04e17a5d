//! Privileges. Every role may do everything with what exists; a name that means nothing is an error, an OID is NULL.

use base::{Error, Oid, Result, SqlState};
use types::Datum;
use types::oid::*;

use super::super::entry::{mismatch, stable, text_of};
use super::super::{EvalContext, Function};
use super::names;

/// The table.
#[rustfmt::skip]
pub(in super::super) static FUNCTIONS: &[Function] = &[
    stable(1922, "has_table_privilege", &[NAME, TEXT, TEXT], BOOL, table),
    stable(1923, "has_table_privilege", &[NAME, OID, TEXT], BOOL, table),
    stable(1924, "has_table_privilege", &[OID, TEXT, TEXT], BOOL, table),
    stable(1925, "has_table_privilege", &[OID, OID, TEXT], BOOL, table),
    stable(1926, "has_table_privilege", &[TEXT, TEXT], BOOL, table),
    stable(1927, "has_table_privilege", &[OID, TEXT], BOOL, table),
    stable(3012, "has_column_privilege", &[NAME, TEXT, TEXT, TEXT], BOOL, column),
    stable(3013, "has_column_privilege", &[NAME, TEXT, INT2, TEXT], BOOL, column),
    stable(3014, "has_column_privilege", &[NAME, OID, TEXT, TEXT], BOOL, column),
    stable(3015, "has_column_privilege", &[NAME, OID, INT2, TEXT], BOOL, column),
    stable(3016, "has_column_privilege", &[OID, TEXT, TEXT, TEXT], BOOL, column),
    stable(3017, "has_column_privilege", &[OID, TEXT, INT2, TEXT], BOOL, column),
    stable(3018, "has_column_privilege", &[OID, OID, TEXT, TEXT], BOOL, column),
    stable(3019, "has_column_privilege", &[OID, OID, INT2, TEXT], BOOL, column),
    stable(3020, "has_column_privilege", &[TEXT, TEXT, TEXT], BOOL, column),
    stable(3021, "has_column_privilege", &[TEXT, INT2, TEXT], BOOL, column),
    stable(3022, "has_column_privilege", &[OID, TEXT, TEXT], BOOL, column),
    stable(3023, "has_column_privilege", &[OID, INT2, TEXT], BOOL, column),
    stable(3024, "has_any_column_privilege", &[NAME, TEXT, TEXT], BOOL, table),
    stable(3025, "has_any_column_privilege", &[NAME, OID, TEXT], BOOL, table),
    stable(3026, "has_any_column_privilege", &[OID, TEXT, TEXT], BOOL, table),
    stable(3027, "has_any_column_privilege", &[OID, OID, TEXT], BOOL, table),
    stable(3028, "has_any_column_privilege", &[TEXT, TEXT], BOOL, table),
    stable(3029, "has_any_column_privilege", &[OID, TEXT], BOOL, table),
    stable(2268, "has_schema_privilege", &[NAME, TEXT, TEXT], BOOL, schema),
    stable(2269, "has_schema_privilege", &[NAME, OID, TEXT], BOOL, schema),
    stable(2270, "has_schema_privilege", &[OID, TEXT, TEXT], BOOL, schema),
    stable(2271, "has_schema_privilege", &[OID, OID, TEXT], BOOL, schema),
    stable(2272, "has_schema_privilege", &[TEXT, TEXT], BOOL, schema),
    stable(2273, "has_schema_privilege", &[OID, TEXT], BOOL, schema),
    stable(2250, "has_database_privilege", &[NAME, TEXT, TEXT], BOOL, database),
    stable(2251, "has_database_privilege", &[NAME, OID, TEXT], BOOL, database),
    stable(2252, "has_database_privilege", &[OID, TEXT, TEXT], BOOL, database),
    stable(2253, "has_database_privilege", &[OID, OID, TEXT], BOOL, database),
    stable(2254, "has_database_privilege", &[TEXT, TEXT], BOOL, database),
    stable(2255, "has_database_privilege", &[OID, TEXT], BOOL, database),
    stable(2181, "has_sequence_privilege", &[NAME, TEXT, TEXT], BOOL, sequence),
    stable(2182, "has_sequence_privilege", &[NAME, OID, TEXT], BOOL, sequence),
    stable(2183, "has_sequence_privilege", &[OID, TEXT, TEXT], BOOL, sequence),
    stable(2184, "has_sequence_privilege", &[OID, OID, TEXT], BOOL, sequence),
    stable(2185, "has_sequence_privilege", &[TEXT, TEXT], BOOL, sequence),
    stable(2186, "has_sequence_privilege", &[OID, TEXT], BOOL, sequence),
    stable(2256, "has_function_privilege", &[NAME, TEXT, TEXT], BOOL, other),
    stable(2257, "has_function_privilege", &[NAME, OID, TEXT], BOOL, other),
    stable(2258, "has_function_privilege", &[OID, TEXT, TEXT], BOOL, other),
    stable(2259, "has_function_privilege", &[OID, OID, TEXT], BOOL, other),
    stable(2260, "has_function_privilege", &[TEXT, TEXT], BOOL, other),
    stable(2261, "has_function_privilege", &[OID, TEXT], BOOL, other),
    stable(3138, "has_type_privilege", &[NAME, TEXT, TEXT], BOOL, other),
    stable(3139, "has_type_privilege", &[NAME, OID, TEXT], BOOL, other),
    stable(3140, "has_type_privilege", &[OID, TEXT, TEXT], BOOL, other),
    stable(3141, "has_type_privilege", &[OID, OID, TEXT], BOOL, other),
    stable(3142, "has_type_privilege", &[TEXT, TEXT], BOOL, other),
    stable(3143, "has_type_privilege", &[OID, TEXT], BOOL, other),
    stable(2262, "has_language_privilege", &[NAME, TEXT, TEXT], BOOL, other),
    stable(2263, "has_language_privilege", &[NAME, OID, TEXT], BOOL, other),
    stable(2264, "has_language_privilege", &[OID, TEXT, TEXT], BOOL, other),
    stable(2265, "has_language_privilege", &[OID, OID, TEXT], BOOL, other),
    stable(2266, "has_language_privilege", &[TEXT, TEXT], BOOL, other),
    stable(2267, "has_language_privilege", &[OID, TEXT], BOOL, other),
    stable(2390, "has_tablespace_privilege", &[NAME, TEXT, TEXT], BOOL, other),
    stable(2391, "has_tablespace_privilege", &[NAME, OID, TEXT], BOOL, other),
    stable(2392, "has_tablespace_privilege", &[OID, TEXT, TEXT], BOOL, other),
    stable(2393, "has_tablespace_privilege", &[OID, OID, TEXT], BOOL, other),
    stable(2394, "has_tablespace_privilege", &[TEXT, TEXT], BOOL, other),
    stable(2395, "has_tablespace_privilege", &[OID, TEXT], BOOL, other),
    stable(2705, "pg_has_role", &[NAME, NAME, TEXT], BOOL, role),
    stable(2706, "pg_has_role", &[NAME, OID, TEXT], BOOL, role),
    stable(2707, "pg_has_role", &[OID, NAME, TEXT], BOOL, role),
    stable(2708, "pg_has_role", &[OID, OID, TEXT], BOOL, role),
    stable(2709, "pg_has_role", &[NAME, TEXT], BOOL, role),
    stable(2710, "pg_has_role", &[OID, TEXT], BOOL, role),
];

/// Checks the list of privileges, the last argument.
fn check(args: &[Datum], known: &[&str]) -> Result<()> {
    let list = text_of(args, args.len().wrapping_sub(1))?;
    for word in list.split(',') {
        let word = word.trim();
        let upper = word.to_ascii_uppercase();
        if !known.contains(&upper.strip_suffix(" WITH GRANT OPTION").unwrap_or(&upper)) {
            let message = format!("unrecognized privilege type: \"{word}\"");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    }
    Ok(())
}

/// True if something exists.
fn existing(found: bool) -> Result<Datum> {
    Ok(if found { Datum::Bool(true) } else { Datum::Null })
}

/// The relation that argument `at` means; `None` for an OID that means none.
fn relation(cx: &dyn EvalContext, args: &[Datum], at: usize) -> Result<Option<Oid>> {
    match args.get(at) {
        Some(Datum::Oid(oid)) => Ok(Some(Oid(*oid)).filter(|&oid| names::relation_exists(cx, oid))),
        Some(Datum::Text(name)) => names::find_relation(cx, name)?.map(Some).ok_or_else(|| names::no_relation(name)),
        _ => Err(mismatch("has_table_privilege")),
    }
}

fn table(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let found = relation(cx, args, args.len().wrapping_sub(2))?;
    check(args, &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "RULE"])?;
    existing(found.is_some())
}

fn sequence(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let found = relation(cx, args, args.len().wrapping_sub(2))?;
    check(args, &["USAGE", "SELECT", "UPDATE"])?;
    existing(found.is_some())
}

fn column(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let found = relation(cx, args, args.len().wrapping_sub(3))?;
    check(args, &["SELECT", "INSERT", "UPDATE", "REFERENCES"])?;
    let Some(oid) = found else { return Ok(Datum::Null) };
    let catalog = cx.catalog();
    let Some(table) = catalog.table(oid) else { return existing(true) };
    match args.get(args.len().wrapping_sub(2)) {
        Some(Datum::Int2(n)) => existing(table.live_columns().any(|c| c.number == *n)),
        Some(Datum::Text(name)) if table.column(name).is_none() => Err(names::no_column(name, &table.name)),
        _ => existing(true),
    }
}

fn schema(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let catalog = cx.catalog();
    let found = match args.get(args.len().wrapping_sub(2)) {
        Some(Datum::Oid(oid)) => catalog.get(Oid(*oid)).is_some(),
        Some(Datum::Text(name)) => {
            if catalog.schema(cx.identity().database_oid, name).is_none() {
                return Err(Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist")));
            }
            true
        }
        _ => return Err(mismatch("has_schema_privilege")),
    };
    check(args, &["CREATE", "USAGE"])?;
    existing(found)
}

fn database(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let catalog = cx.catalog();
    let found = match args.get(args.len().wrapping_sub(2)) {
        Some(Datum::Oid(oid)) => catalog.get(Oid(*oid)).is_some(),
        Some(Datum::Text(name)) => {
            if catalog.database(name).is_none() {
                let message = format!("database \"{name}\" does not exist");
                return Err(Error::new(SqlState::INVALID_CATALOG_NAME, message));
            }
            true
        }
        _ => return Err(mismatch("has_database_privilege")),
    };
    check(args, &["CREATE", "CONNECT", "TEMPORARY", "TEMP"])?;
    existing(found)
}

/// Roles have no members: one belongs to itself, and a superuser to all.
fn role(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let catalog = cx.catalog();
    let named = |value: &Datum| match value {
        Datum::Oid(oid) => Ok(Oid(*oid)),
        Datum::Text(name) => catalog.role(name).map(|r| r.oid).ok_or_else(|| names::no_role(name)),
        _ => Err(mismatch("pg_has_role")),
    };
    let (member, role) = match args {
        [member, role, _] => (named(member)?, named(role)?),
        [role, _] => (named(&Datum::from(cx.identity().current_user))?, named(role)?),
        _ => return Err(mismatch("pg_has_role")),
    };
    check(args, &["USAGE", "MEMBER"])?;
    let superuser =
        catalog.objects().any(|o| matches!(&**o, engine_api::CatalogObject::Role(r) if r.oid == member && r.superuser));
    Ok(Datum::Bool(superuser || member == role))
}

/// Functions, types, languages and tablespaces are there for everybody.
fn other(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    check(args, &["USAGE", "EXECUTE", "CREATE"])?;
    Ok(Datum::Bool(true))
}
