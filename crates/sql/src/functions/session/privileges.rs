//! Privileges. Every role may do everything with what exists; a name that means nothing is an error, an OID is NULL.

use base::{Error, Oid, Result, SqlState};
use types::Datum;

use super::super::EvalContext;
use super::super::entry::{mismatch, text_of};
use super::names;

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

/// What everybody and the owner may do with a new object of a kind, as a list of access entries.
pub(super) fn default(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let (everybody, owner) = match text_of(args, 0)? {
        "c" => ("", ""),
        "r" => ("", "arwdDxt"),
        "s" => ("", "rwU"),
        "d" => ("Tc", "CTc"),
        "f" => ("X", "X"),
        "l" | "T" => ("U", "U"),
        "L" => ("", "rw"),
        "n" => ("", "UC"),
        "t" => ("", "C"),
        "F" | "S" => ("", "U"),
        "p" => ("", "sA"),
        kind => return Err(Error::internal(format!("unrecognized object type abbreviation: {kind}"))),
    };
    let Some(Datum::Oid(role)) = args.get(1) else { return Err(mismatch("acldefault")) };
    let catalog = cx.catalog();
    let name = catalog.get(Oid(*role)).map_or_else(|| role.to_string(), |o| crate::ddl::quote_name(o.name()));
    let mut values = Vec::new();
    if !everybody.is_empty() {
        values.push(Datum::from(format!("={everybody}/{name}")));
    }
    if !owner.is_empty() {
        values.push(Datum::from(format!("{name}={owner}/{name}")));
    }
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
    Ok(Datum::Array(types::Array { element: types::oid::TEXT, dims, values }.into()))
}

pub(super) fn table(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let found = relation(cx, args, args.len().wrapping_sub(2))?;
    check(args, &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "RULE"])?;
    existing(found.is_some())
}

pub(super) fn sequence(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let found = relation(cx, args, args.len().wrapping_sub(2))?;
    check(args, &["USAGE", "SELECT", "UPDATE"])?;
    existing(found.is_some())
}

pub(super) fn column(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
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

pub(super) fn schema(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
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

pub(super) fn database(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
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
pub(super) fn role(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
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
pub(super) fn other(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    check(args, &["USAGE", "EXECUTE", "CREATE"])?;
    Ok(Datum::Bool(true))
}
