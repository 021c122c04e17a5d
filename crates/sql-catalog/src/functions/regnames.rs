//! Texts of types that name catalog objects – `regclass` and the like: what a text names, and how a number is shown.
//!
//! Responsible for: input and output of those types at run time, `to_reg…`.
//! Not responsible for: relations, which [`names`] finds.

use base::work::{self, Count};
use base::{Error, Oid, Result, SqlState};
use rupg_sql::nodes::{Node, TypeName};
use sql_bind as bind;
use sql_bind::collation;
use sql_functions::entry::{oid_of, text_of};
use sql_functions::{EvalContext, Operator, all_operators, extensions};
use sql_parse as parse;
use sql_parse::names::{quote_name, split_name};
use types::{Datum, oid};

use super::names;
use crate as system;

/// What a text names.
enum Found {
    One(Oid),
    Nothing(Error),
    Several(Error),
}

fn one_or(found: Option<Oid>, missing: impl FnOnce() -> Error) -> Found {
    found.map_or_else(|| Found::Nothing(missing()), Found::One)
}

/// The value of a text in such a type, which may be a number.
///
/// # Errors
/// Those of PostgreSQL for what is not there.
pub(super) fn input(cx: &dyn EvalContext, ty: Oid, text: &str) -> Result<Oid> {
    let is_operator = [oid::REGOPER, oid::REGOPERATOR].contains(&ty);
    if text == "-" && !is_operator {
        return Ok(Oid::INVALID);
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let settings = cx.settings();
        let input = types::InputContext { settings, now_micros: cx.transaction_timestamp() };
        return match types::parse_text(oid::OID, -1, text, &input)? {
            Datum::Oid(number) => Ok(Oid(number)),
            _ => Err(Error::internal("a number that is none")),
        };
    }
    match find(cx, ty, text)? {
        Found::One(found) => Ok(found),
        Found::Nothing(error) | Found::Several(error) => Err(error),
    }
}

fn find(cx: &dyn EvalContext, ty: Oid, text: &str) -> Result<Found> {
    work::step(text.len())?;
    match ty {
        oid::REGCLASS => {
            let found = names::find_relation(cx, text)?;
            Ok(one_or(found, || names::missing_relation(cx, text)))
        }
        oid::REGTYPE => find_type(cx, text),
        oid::REGNAMESPACE => {
            let name = single(text)?;
            let found = cx.catalog().schema(cx.identity().database_oid, &name).map(|schema| schema.oid);
            Ok(one_or(found, || no_schema(&name)))
        }
        oid::REGROLE => {
            let name = single(text)?;
            let found = cx.catalog().role(&name).map(|role| role.oid);
            Ok(one_or(found, || names::no_role(&name)))
        }
        oid::REGPROC => find_function(cx, text),
        oid::REGPROCEDURE => find_procedure(cx, text),
        oid::REGOPER => find_operator(cx, text),
        oid::REGOPERATOR => find_operator_of_types(cx, text),
        _ => find_collation(cx, text),
    }
}

/// A name without a schema.
fn single(text: &str) -> Result<String> {
    match <[String; 1]>::try_from(split_name(text)?) {
        Ok([name]) => Ok(name),
        Err(_) => Err(Error::new(SqlState::INVALID_NAME, "invalid name syntax")),
    }
}

fn no_schema(name: &str) -> Error {
    Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
}

/// The name of what only `pg_catalog` has: `None` if another schema is named.
fn system_name<'a>(cx: &dyn EvalContext, parts: &'a [String]) -> Result<Result<Option<&'a str>, Error>> {
    let (schema, name) = match parts {
        [name] => return Ok(Ok(Some(name))),
        [schema, name] => (schema, name),
        [database, schema, name] if *database == cx.identity().database => (schema, name),
        [_, _, _] => {
            let message = format!("cross-database references are not implemented: {}", parts.join("."));
            return Err(Error::unsupported(message));
        }
        _ => {
            let message = format!("improper qualified name (too many dotted names): {}", parts.join("."));
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
    };
    match cx.catalog().schema(cx.identity().database_oid, schema) {
        None => Ok(Err(no_schema(schema))),
        Some(found) => {
            names::require_usage(cx, found.oid)?;
            Ok(Ok((schema == "pg_catalog").then_some(name)))
        }
    }
}

/// A type's name as statements write it, with its modifier.
///
/// # Errors
/// 42601 for text that is none.
fn type_name(text: &str) -> Result<TypeName> {
    let invalid = || format!("invalid type name \"{text}\"");
    if text.trim().is_empty() {
        return Err(Error::new(SqlState::SYNTAX_ERROR, invalid()));
    }
    base::work::step(base::work::bytes(2 * text.len()))?;
    const BEFORE: &str = "SELECT NULL::";
    let outside = |node: &Node| match node {
        Node::SelectStmt(select) if select.fromClause.is_empty() && select.whereClause.is_none() => {
            match select.targetList.as_slice() {
                [Some(Node::ResTarget(target))] if target.name.is_none() => match &target.val {
                    Some(Node::TypeCast(cast)) => cast.typeName.as_deref().cloned(),
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    };
    let parsed = parse::parse(&format!("{BEFORE}{text}")).map_err(|mut error| {
        error.fields_mut().position = None;
        error.context(invalid())
    })?;
    match parsed.as_slice() {
        [one] => outside(&one.node).filter(|name| !name.setof),
        _ => None,
    }
    .ok_or_else(|| Error::new(SqlState::SYNTAX_ERROR, invalid()))
}

fn find_type(cx: &dyn EvalContext, text: &str) -> Result<Found> {
    let name = type_name(text)?;
    if let [Some(Node::String(schema)), Some(_)] = name.names.as_slice()
        && **schema != *"pg_temp"
    {
        let schema: &str = schema;
        match cx.catalog().schema(cx.identity().database_oid, schema) {
            Some(found) => names::require_usage(cx, found.oid)?,
            None => return Ok(Found::Nothing(no_schema(schema))),
        }
    }
    match bind::bind_column_type(&name, text, Some((&cx.catalog(), &cx.identity()))) {
        Ok(found) if !found.serial => Ok(Found::One(found.ty.oid)),
        Ok(_) => {
            let message = format!("type \"{}\" does not exist", text.trim());
            Ok(Found::Nothing(Error::new(SqlState::UNDEFINED_OBJECT, message)))
        }
        Err(mut error) => {
            error.fields_mut().position = None;
            let is_nothing = [SqlState::UNDEFINED_OBJECT, SqlState::INVALID_SCHEMA_NAME].contains(&error.code());
            if is_nothing { Ok(Found::Nothing(error)) } else { Err(error) }
        }
    }
}

/// The functions of extensions that a name may mean.
fn of_extensions(cx: &dyn EvalContext, parts: &[String]) -> Vec<u32> {
    let (catalog, identity) = (cx.catalog(), cx.identity());
    let found = extensions::visible(&catalog, identity.database_oid, &identity.search_path, parts);
    found.iter().map(|(_, function)| function.oid).collect()
}

/// A function's name, with its schema if that has to be said.
pub(super) fn function_text(cx: &dyn EvalContext, number: u32) -> Option<String> {
    match extensions::function_by_oid(number) {
        Some((_, function)) => {
            extensions::installed(&cx.catalog(), cx.identity().database_oid, number)?;
            Some(extensions::name_for(cx, function))
        }
        None => system::function_name(number).map(quote_name),
    }
}

fn find_function(cx: &dyn EvalContext, text: &str) -> Result<Found> {
    let parts = split_name(text)?;
    let missing = || Error::new(SqlState::UNDEFINED_FUNCTION, format!("function \"{text}\" does not exist"));
    let name = match system_name(cx, &parts)? {
        Ok(name) => name,
        Err(no_schema) => return Ok(Found::Nothing(no_schema)),
    };
    let mut all = name.map(system::functions_named).unwrap_or_default();
    all.extend(of_extensions(cx, &parts));
    Ok(match all.as_slice() {
        [] => Found::Nothing(missing()),
        [one] => Found::One(Oid(*one)),
        _ => {
            let message = format!("more than one function named \"{text}\"");
            Found::Several(Error::new(SqlState::AMBIGUOUS_FUNCTION, message))
        }
    })
}

/// A name, and the types behind it in parentheses; `None` for NONE, where that may stand.
fn signature(cx: &dyn EvalContext, text: &str, may_be_none: bool) -> Result<(Vec<String>, Vec<Option<Oid>>)> {
    let bad = |message: &str| Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message);
    let mut quoted = false;
    let open = text.char_indices().counted(1).find(|(_, c)| {
        quoted ^= *c == '"';
        *c == '(' && !quoted
    });
    let Some((open, _)) = open else { return Err(bad("expected a left parenthesis")) };
    let name = split_name(&text[..open])?;
    let Some(inside) = text[open + 1..].trim_end().strip_suffix(')') else {
        return Err(bad("expected a right parenthesis"));
    };
    let mut types = Vec::new();
    let (mut rest, mut quoted, mut depth) = (inside.trim_start(), false, 0);
    let mut had_comma = false;
    while !rest.is_empty() {
        let end = rest.char_indices().counted(1).find(|(_, c)| {
            quoted ^= *c == '"';
            match c {
                '(' | '[' if !quoted => depth += 1,
                ')' | ']' if !quoted => depth -= 1,
                ',' if !quoted && depth == 0 => return true,
                _ => {}
            }
            false
        });
        if quoted || depth != 0 {
            return Err(bad("improper type name"));
        }
        let (one, behind) = end.map_or((rest, ""), |(at, _)| (&rest[..at], &rest[at + 1..]));
        had_comma = end.is_some();
        let one = one.trim();
        if one.is_empty() {
            return Err(bad("expected a type name"));
        }
        types.push(if may_be_none && one.eq_ignore_ascii_case("none") {
            None
        } else {
            match find_type(cx, one)? {
                Found::One(ty) => Some(ty),
                Found::Nothing(error) | Found::Several(error) => return Err(error),
            }
        });
        if types.len() > 100 {
            return Err(Error::new(SqlState::TOO_MANY_ARGUMENTS, "too many arguments"));
        }
        rest = behind.trim_start();
    }
    if had_comma {
        return Err(bad("expected a type name"));
    }
    Ok((name, types))
}

fn find_procedure(cx: &dyn EvalContext, text: &str) -> Result<Found> {
    let (parts, types) = signature(cx, text, false)?;
    let name = match system_name(cx, &parts)? {
        Ok(name) => name,
        Err(no_schema) => return Ok(Found::Nothing(no_schema)),
    };
    let numbers: Vec<u32> = types.iter().flatten().map(|ty| ty.0).collect();
    let all = name.map(system::functions_named).unwrap_or_default();
    let found = all
        .into_iter()
        .chain(of_extensions(cx, &parts))
        .find(|number| system::function_arguments(*number).is_some_and(|a| a == numbers));
    Ok(one_or(found.map(Oid), || {
        Error::new(SqlState::UNDEFINED_FUNCTION, format!("function \"{text}\" does not exist"))
    }))
}

/// What an operator's name means; names of operators are not quoted.
fn operators_named(cx: &dyn EvalContext, parts: &[String]) -> Result<Result<Vec<&'static Operator>, Error>> {
    Ok(system_name(cx, parts)?.map(|name| match name {
        Some(name) => all_operators().iter().filter(|operator| operator.name == name).collect(),
        None => Vec::new(),
    }))
}

fn no_operator(text: &str) -> Error {
    Error::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {text}"))
}

fn find_operator(cx: &dyn EvalContext, text: &str) -> Result<Found> {
    let found = match operators_named(cx, &split_name(text)?)? {
        Ok(found) => found,
        Err(no_schema) => return Ok(Found::Nothing(no_schema)),
    };
    Ok(match found.as_slice() {
        [] => Found::Nothing(no_operator(text)),
        [one] => Found::One(Oid(one.oid)),
        _ => {
            let message = format!("more than one operator named {text}");
            Found::Several(Error::new(SqlState::AMBIGUOUS_FUNCTION, message))
        }
    })
}

fn find_operator_of_types(cx: &dyn EvalContext, text: &str) -> Result<Found> {
    let (parts, types) = signature(cx, text, true)?;
    let [left, right] = match types.as_slice() {
        [left, right] => [left, right].map(|ty| ty.unwrap_or(Oid::INVALID)),
        [_] => {
            return Err(Error::new(SqlState::UNDEFINED_PARAMETER, "missing argument")
                .hint("Use NONE to denote the missing argument of a unary operator."));
        }
        _ => {
            return Err(Error::new(SqlState::TOO_MANY_ARGUMENTS, "too many arguments")
                .hint("Provide two argument types for operator."));
        }
    };
    let found = match operators_named(cx, &parts)? {
        Ok(found) => found,
        Err(no_schema) => return Ok(Found::Nothing(no_schema)),
    };
    let found = found.into_iter().find(|operator| operator.left == left && operator.right == right);
    Ok(one_or(found.map(|operator| Oid(operator.oid)), || no_operator(text)))
}

fn find_collation(cx: &dyn EvalContext, text: &str) -> Result<Found> {
    let parts = split_name(text)?;
    let name = match system_name(cx, &parts)? {
        Ok(name) => name,
        Err(no_schema) => return Ok(Found::Nothing(no_schema)),
    };
    let found = name.and_then(|name| collation::COLLATIONS.iter().find(|collation| collation.name == name));
    Ok(one_or(found.map(|collation| Oid(collation.oid)), || collation::unknown(&parts.join("."))))
}

macro_rules! inputs {
    ($($function:ident, $to:ident = $ty:ident;)+) => {$(
        /// Input of the type.
        pub(super) fn $function(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
            Ok(Datum::Oid(input(cx, oid::$ty, text_of(args, 0)?)?.0))
        }

        /// What a text names, NULL if nothing.
        pub(super) fn $to(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
            Ok(match find(cx, oid::$ty, text_of(args, 0)?)? {
                Found::One(found) => Datum::Oid(found.0),
                Found::Nothing(_) | Found::Several(_) => Datum::Null,
            })
        }
    )+};
}

inputs! {
    regclass_in, to_regclass = REGCLASS;
    regtype_in, to_regtype = REGTYPE;
    regnamespace_in, to_regnamespace = REGNAMESPACE;
    regrole_in, to_regrole = REGROLE;
    regproc_in, to_regproc = REGPROC;
    regprocedure_in, to_regprocedure = REGPROCEDURE;
    regoper_in, to_regoper = REGOPER;
    regoperator_in, to_regoperator = REGOPERATOR;
    regcollation_in, to_regcollation = REGCOLLATION;
}

/// text → regclass, which takes names only.
pub(super) fn text_to_regclass(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match find(cx, oid::REGCLASS, text_of(args, 0)?)? {
        Found::One(found) => Ok(Datum::Oid(found.0)),
        Found::Nothing(error) | Found::Several(error) => Err(error),
    }
}

/// The text form of a number; what nothing has is shown as it is.
fn shown(args: &[Datum], nothing: &str, name: impl FnOnce(Oid) -> Option<String>) -> Result<Datum> {
    let number = oid_of(args, 0)?;
    Ok(Datum::from(match number.0 {
        0 => nothing.to_owned(),
        _ => name(number).unwrap_or_else(|| number.to_string()),
    }))
}

/// A type in the parentheses of a function or operator.
fn shown_type(cx: &dyn EvalContext, ty: Oid) -> String {
    if ty.is_valid() { bind::shown_type(cx, ty, -1) } else { "NONE".to_owned() }
}

pub(super) fn regprocedure_out(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    shown(args, "-", |number| {
        let (name, types) = (function_text(cx, number.0)?, system::function_arguments(number.0)?);
        let types: Vec<String> = types.iter().map(|ty| shown_type(cx, Oid(*ty))).collect();
        Some(format!("{name}({})", types.join(",")))
    })
}

fn operator(number: Oid) -> Option<&'static Operator> {
    all_operators().iter().find(|operator| operator.oid == number.0)
}

pub(super) fn regoper_out(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    shown(args, "0", |number| {
        let name = operator(number)?.name;
        let is_only = all_operators().iter().filter(|operator| operator.name == name).count() == 1;
        Some(if is_only { name.to_owned() } else { format!("pg_catalog.{name}") })
    })
}

pub(super) fn regoperator_out(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    shown(args, "0", |number| {
        let Operator { name, left, right, .. } = operator(number)?;
        Some(format!("{name}({},{})", shown_type(cx, *left), shown_type(cx, *right)))
    })
}

pub(super) fn regcollation_out(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    shown(args, "-", |number| collation::name_of(number.0))
}
