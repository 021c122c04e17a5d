//! The `has_*_privilege` functions and `pg_has_role`. A name that means nothing is an error, an OID is NULL.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState, work};
use engine_api::{Catalog, CatalogObject, Privileges, TableDesc, oids};
use sql_functions::EvalContext;
use sql_functions::entry::{mismatch, text_of};
use sql_ir::system_column;
use sql_ir::system_relation::{self, SystemRelation};
use sql_parse::privileges::{self, Who, roles};
use types::Datum;

use super::{names, regnames};
use crate as system;

/// Privileges asked for: any of them will do.
struct Asked {
    held: Privileges,
    grantable: Privileges,
}

/// Bytes of the longest name of a privilege, with what may stand behind it.
const PRIVILEGE_MAX: usize = 64;

/// A word of the list, which may be anything.
fn privilege(word: &str) -> Result<&str> {
    work::step(64 + work::bytes(word.len()))?;
    Ok(word.trim())
}

/// What is longer than any privilege stays as it is: it is none.
fn in_capitals(word: &str) -> String {
    if word.len() > PRIVILEGE_MAX { String::new() } else { word.to_ascii_uppercase() }
}

/// Reads the list of privileges, the last argument.
fn asked(args: &[Datum], known: &[&str]) -> Result<Asked> {
    let list = text_of(args, args.len().wrapping_sub(1))?;
    let mut asked = Asked { held: Privileges::NONE, grantable: Privileges::NONE };
    for word in list.split(',') {
        let word = privilege(word)?;
        let upper = in_capitals(word);
        let (name, option) = match upper.strip_suffix(" WITH GRANT OPTION") {
            Some(name) => (name, true),
            None => (upper.as_str(), false),
        };
        if !known.contains(&name) {
            let message = format!("unrecognized privilege type: \"{word}\"");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        // RULE has meant nothing for long.
        let one = Privileges::named(name).unwrap_or_default();
        let place = if option { &mut asked.grantable } else { &mut asked.held };
        *place = *place | one;
    }
    Ok(asked)
}

/// The role that is asked about: named before the object, or the current one. `None` for an OID that means none.
fn who(cx: &dyn EvalContext, args: &[Datum], with_role: usize) -> Result<Who> {
    let identity = cx.identity();
    let database = identity.database_oid;
    let role = match args.first().filter(|_| args.len() == with_role) {
        None => identity.role,
        Some(Datum::Oid(oid)) => Oid(*oid),
        Some(Datum::Text(name)) if &**name == "public" => Oid::INVALID,
        Some(Datum::Text(name)) => role_named(&cx.catalog(), name)?,
        Some(_) => return Err(mismatch("has_privilege")),
    };
    Ok(Who { role, database })
}

fn role_named(catalog: &Catalog, name: &str) -> Result<Oid> {
    catalog.role(name).map(|role| role.oid).ok_or_else(|| names::no_role(name))
}

fn answer(catalog: &Catalog, who: Who, object: &CatalogObject, asked: &Asked) -> bool {
    privileges::held(catalog, who, object).meets(asked.held)
        || !asked.grantable.is_empty() && privileges::grantable(catalog, who, object).meets(asked.grantable)
}

/// As [`answer()`], of a column by itself.
fn answer_of_column(catalog: &Catalog, who: Who, table: &TableDesc, column: i16, asked: &Asked) -> bool {
    privileges::held_on_column(catalog, who, table.oid, column).meets(asked.held)
        || !asked.grantable.is_empty()
            && privileges::grantable_on_column(catalog, who, table, column).meets(asked.grantable)
}

/// The relation that argument `at` means; `None` for an OID that means none.
fn relation(cx: &dyn EvalContext, args: &[Datum], at: usize) -> Result<Option<Oid>> {
    match args.get(at) {
        Some(Datum::Oid(oid)) => Ok(Some(Oid(*oid)).filter(|&oid| names::relation_exists(cx, oid))),
        Some(Datum::Text(name)) => {
            names::find_relation(cx, name)?.map(Some).ok_or_else(|| names::missing_relation(cx, name))
        }
        _ => Err(mismatch("has_table_privilege")),
    }
}

/// Everybody may read system relations, but for a few.
fn on_system_relation(catalog: &Catalog, who: Who, oid: Oid, asked: &Asked) -> bool {
    let reads_all = roles::has_privileges_of(catalog, who, oids::ROLE_READ_ALL_DATA);
    let open = |relation: &SystemRelation| {
        let reader = privileges::reader_of(relation.name);
        reads_all
            || !privileges::is_secret(relation.name)
            || reader.is_some_and(|role| roles::has_privileges_of(catalog, who, role))
    };
    let readable = system_relation::numbered(oid).is_some_and(open);
    let means_something = !(asked.held | asked.grantable).is_empty();
    roles::is_superuser(catalog, who.role) && means_something || readable && asked.held.contains(Privileges::SELECT)
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
    let name = catalog.get(Oid(*role)).map_or_else(|| role.to_string(), |o| sql_parse::names::quote_name(o.name()));
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

const TABLE: [&str; 8] = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "RULE"];

pub(super) fn table(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let who = who(cx, args, 3)?;
    let found = relation(cx, args, args.len().wrapping_sub(2))?;
    let asked = asked(args, &TABLE)?;
    let Some(oid) = found else { return Ok(Datum::Null) };
    let catalog = cx.catalog();
    Ok(Datum::Bool(match catalog.get(oid) {
        Some(object) => answer(&catalog, who, object, &asked),
        None => on_system_relation(&catalog, who, oid, &asked),
    }))
}

pub(super) fn any_column(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let who = who(cx, args, 3)?;
    let found = relation(cx, args, args.len().wrapping_sub(2))?;
    let asked = asked(args, &["SELECT", "INSERT", "UPDATE", "REFERENCES"])?;
    let Some(oid) = found else { return Ok(Datum::Null) };
    let catalog = cx.catalog();
    let Some(object) = catalog.get(oid) else {
        return Ok(Datum::Bool(on_system_relation(&catalog, who, oid, &asked)));
    };
    let by_column =
        |table: &TableDesc| table.live_columns().any(|c| answer_of_column(&catalog, who, table, c.number, &asked));
    let held = answer(&catalog, who, object, &asked) || catalog.table(oid).is_some_and(by_column);
    Ok(Datum::Bool(held))
}

pub(super) fn column(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let who = who(cx, args, 4)?;
    let found = relation(cx, args, args.len().wrapping_sub(3))?;
    let asked = asked(args, &["SELECT", "INSERT", "UPDATE", "REFERENCES"])?;
    let Some(oid) = found else { return Ok(Datum::Null) };
    let catalog = cx.catalog();
    let Some(table) = catalog.table(oid) else {
        return column_of_system_relation(&catalog, who, oid, args, &asked);
    };
    let number = match args.get(args.len().wrapping_sub(2)) {
        Some(Datum::Int2(n)) if table.live_columns().any(|c| c.number == *n) => *n,
        Some(Datum::Int2(n)) if table.kind != engine_api::TableKind::View && (-6..0).contains(n) => *n,
        Some(Datum::Text(name)) => {
            system_column::number_of(table, name).ok_or_else(|| names::no_column(name, &table.name))?
        }
        _ => return Ok(Datum::Null),
    };
    let whole = catalog.get(oid).is_some_and(|object| answer(&catalog, who, object, &asked));
    Ok(Datum::Bool(whole || answer_of_column(&catalog, who, table, number, &asked)))
}

/// As [`column()`], of a relation that is no table of anybody's.
fn column_of_system_relation(catalog: &Catalog, who: Who, oid: Oid, args: &[Datum], asked: &Asked) -> Result<Datum> {
    if let Some(relation) = system_relation::numbered(oid) {
        let has_system_columns = !relation.is_view();
        match args.get(args.len().wrapping_sub(2)) {
            Some(Datum::Int2(n)) if (1..=relation.columns.len()).contains(&usize::try_from(*n).unwrap_or(0)) => {}
            Some(Datum::Int2(n)) if has_system_columns && (-6..0).contains(n) => {}
            Some(Datum::Text(name)) => {
                let is_there = relation.columns.iter().any(|(column, _)| **column == **name)
                    || has_system_columns && system_column::SystemColumn::named(name).is_some();
                if !is_there {
                    return Err(names::no_column(name, relation.name));
                }
            }
            _ => return Ok(Datum::Null),
        }
    }
    Ok(Datum::Bool(on_system_relation(catalog, who, oid, asked)))
}

pub(super) fn sequence(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let who = who(cx, args, 3)?;
    let found = relation(cx, args, args.len().wrapping_sub(2))?;
    let asked = asked(args, &["USAGE", "SELECT", "UPDATE"])?;
    let catalog = cx.catalog();
    let Some(object) = found.and_then(|oid| catalog.get(oid)) else { return Ok(Datum::Null) };
    if !matches!(&**object, CatalogObject::Sequence(_)) {
        let message = format!("\"{}\" is not a sequence", object.name());
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    Ok(Datum::Bool(answer(&catalog, who, object, &asked)))
}

/// Answers about an object that is there, NULL about one that is not.
fn on_object(catalog: &Catalog, who: Who, object: Option<&Arc<CatalogObject>>, asked: &Asked) -> Datum {
    object.map_or(Datum::Null, |object| Datum::Bool(answer(catalog, who, object, asked)))
}

pub(super) fn schema(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let who = who(cx, args, 3)?;
    let catalog = cx.catalog();
    let found = match args.get(args.len().wrapping_sub(2)) {
        Some(Datum::Oid(oid)) => catalog.get(Oid(*oid)),
        Some(Datum::Text(name)) => {
            let Some(schema) = catalog.schema(cx.identity().database_oid, name) else {
                return Err(Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist")));
            };
            catalog.get(schema.oid)
        }
        _ => return Err(mismatch("has_schema_privilege")),
    };
    let asked = asked(args, &["CREATE", "USAGE"])?;
    Ok(on_object(&catalog, who, found, &asked))
}

pub(super) fn database(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let who = who(cx, args, 3)?;
    let catalog = cx.catalog();
    let found = match args.get(args.len().wrapping_sub(2)) {
        Some(Datum::Oid(oid)) => catalog.get(Oid(*oid)),
        Some(Datum::Text(name)) => {
            let Some(database) = catalog.database(name) else {
                let message = format!("database \"{name}\" does not exist");
                return Err(Error::new(SqlState::INVALID_CATALOG_NAME, message));
            };
            catalog.get(database.oid)
        }
        _ => return Err(mismatch("has_database_privilege")),
    };
    let asked = asked(args, &["CREATE", "CONNECT", "TEMPORARY", "TEMP"])?;
    Ok(on_object(&catalog, who, found, &asked))
}

pub(super) fn role(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let catalog = cx.catalog();
    let named = |value: &Datum| match value {
        Datum::Oid(oid) => Ok(Oid(*oid)),
        Datum::Text(name) => role_named(&catalog, name),
        _ => Err(mismatch("pg_has_role")),
    };
    let identity = cx.identity();
    let (member, role) = match args {
        [member, role, _] => (named(member)?, named(role)?),
        [role, _] => (identity.role, named(role)?),
        _ => return Err(mismatch("pg_has_role")),
    };
    let who = Who { role: member, database: identity.database_oid };
    let list = text_of(args, args.len().wrapping_sub(1))?;
    let mut any = false;
    for word in list.split(',') {
        let word = privilege(word)?;
        let upper = in_capitals(word);
        any |= match upper.as_str() {
            "USAGE" => roles::has_privileges_of(&catalog, who, role),
            "MEMBER" => roles::is_member(&catalog, who, role),
            "USAGE WITH ADMIN OPTION"
            | "USAGE WITH GRANT OPTION"
            | "MEMBER WITH ADMIN OPTION"
            | "MEMBER WITH GRANT OPTION" => {
                roles::is_superuser(&catalog, member) || roles::is_admin(&catalog, who, role)
            }
            _ => {
                let message = format!("unrecognized privilege type: \"{word}\"");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        };
    }
    Ok(Datum::Bool(any))
}

/// Functions are there for everybody, but for those that say themselves that they are not.
pub(super) fn function(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    /// `pg_reload_conf`.
    const OF_SUPERUSERS: [u32; 1] = [2621];
    let who = who(cx, args, 3)?;
    let found = match args.get(args.len().wrapping_sub(2)) {
        Some(Datum::Oid(oid)) => Some(*oid).filter(|&oid| regnames::function_text(cx, oid).is_some()),
        Some(Datum::Text(text)) => Some(named_by(cx, types::oid::REGPROCEDURE, "function", text)?.0),
        _ => return Err(mismatch("has_function_privilege")),
    };
    let asked = asked(args, &["EXECUTE"])?;
    let Some(function) = found else { return Ok(Datum::Null) };
    let open = !OF_SUPERUSERS.contains(&function) && !asked.held.is_empty();
    Ok(Datum::Bool(open || roles::is_superuser(&cx.catalog(), who.role)))
}

/// What a text names in such a type of names.
fn named_by(cx: &dyn EvalContext, ty: Oid, what: &str, text: &str) -> Result<Oid> {
    let found = regnames::input(cx, ty, text)?;
    if found.is_valid() { Ok(found) } else { Err(not_there(what, text)) }
}

fn not_there(what: &str, name: &str) -> Error {
    let code = if what == "function" { SqlState::UNDEFINED_FUNCTION } else { SqlState::UNDEFINED_OBJECT };
    Error::new(code, format!("{what} \"{name}\" does not exist"))
}

pub(super) fn type_(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let who = who(cx, args, 3)?;
    let found = match args.get(args.len().wrapping_sub(2)) {
        Some(Datum::Oid(oid)) => Oid(*oid),
        Some(Datum::Text(name)) => named_by(cx, types::oid::REGTYPE, "type", name)?,
        _ => return Err(mismatch("has_type_privilege")),
    };
    let asked = asked(args, &["USAGE"])?;
    let catalog = cx.catalog();
    let ty = types::oid::element_of(found).unwrap_or(found);
    match catalog.get(ty).filter(|object| matches!(&***object, CatalogObject::Type(_))) {
        Some(object) => Ok(Datum::Bool(answer(&catalog, who, object, &asked))),
        None if types::type_info(found).is_none() => Ok(Datum::Null),
        None => {
            let may_grant = roles::has_privileges_of(&catalog, who, engine_api::oids::ROLE_POSTGRES);
            Ok(Datum::Bool(!asked.held.is_empty() || may_grant && !asked.grantable.is_empty()))
        }
    }
}

/// Which of the objects of a kind, that are always the same, is asked about; `None` for an OID that means none.
fn one_of(args: &[Datum], what: &str, all: &[(u32, &str)]) -> Result<Option<u32>> {
    match args.get(args.len().wrapping_sub(2)) {
        Some(Datum::Oid(oid)) => Ok(Some(*oid).filter(|oid| all.iter().any(|(own, _)| own == oid))),
        Some(Datum::Text(name)) => {
            let found = all.iter().find(|(_, own)| *own == &**name);
            found.map(|(oid, _)| Some(*oid)).ok_or_else(|| not_there(what, name))
        }
        _ => Err(mismatch("has_privilege")),
    }
}

/// Languages are there for everybody.
pub(super) fn language(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let who = who(cx, args, 3)?;
    let found = one_of(args, "language", &system::LANGUAGES)?;
    let asked = asked(args, &["USAGE"])?;
    let open = || !asked.held.is_empty() || roles::is_superuser(&cx.catalog(), who.role);
    Ok(found.map_or(Datum::Null, |_| Datum::Bool(open())))
}

/// Tables are made in the default tablespace by whoever may make them; only superusers may name one.
pub(super) fn tablespace(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let who = who(cx, args, 3)?;
    let found = one_of(args, "tablespace", &system::TABLESPACES)?;
    asked(args, &["CREATE"])?;
    Ok(found.map_or(Datum::Null, |_| Datum::Bool(roles::is_superuser(&cx.catalog(), who.role))))
}

/// There are no foreign-data wrappers.
pub(super) fn wrapper(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    who(cx, args, 3)?;
    one_of(args, "foreign-data wrapper", &[])?;
    asked(args, &["USAGE"])?;
    Ok(Datum::Null)
}

/// There are no foreign servers.
pub(super) fn server(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    who(cx, args, 3)?;
    one_of(args, "server", &[])?;
    asked(args, &["USAGE"])?;
    Ok(Datum::Null)
}

/// Rights on settings are not granted: superusers have them all.
pub(super) fn parameter(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let who = who(cx, args, 3)?;
    asked(args, &["SET", "ALTER SYSTEM"])?;
    Ok(Datum::Bool(roles::is_superuser(&cx.catalog(), who.role)))
}
