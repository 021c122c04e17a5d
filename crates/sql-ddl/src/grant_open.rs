//! GRANT and REVOKE on functions, languages and the system's types: every role may use all of them, and this cannot be changed.
//!
//! What leaves it so is accepted, as PostgreSQL accepts it; what would change it is refused.

use base::{Error, Oid, Result, SqlState};
use engine_api::{TypeKind, oids};
use rupg_sql::nodes::{GrantStmt, GrantTargetType, Node, ObjectType, ObjectWithArgs, TypeName};
use sql_functions as functions;
use sql_parse::privileges::{Class, roles};

use super::Cx;
use super::grant::Request;
use super::names::{display, strings};
use super::types::range;

const LANGUAGES: [&str; 4] = ["internal", "c", "sql", "plpgsql"];

/// The type of a name.
enum Named {
    /// A statement has made it.
    Made(Oid),
    BuiltIn(String),
}

/// Checks a statement about such objects: that they are there, and that their rights stay as they are. Answers the types among them
/// that statements have made, which have access lists.
pub(super) fn keep(cx: &mut Cx<'_>, stmt: &GrantStmt, request: &Request, class: Class) -> Result<Vec<Oid>> {
    let mut made = Vec::new();
    if stmt.targtype == GrantTargetType::ACL_TARGET_ALL_IN_SCHEMA {
        let built_in = |node: &Option<Node>| matches!(node, Some(Node::String(name)) if &**name == "pg_catalog");
        if stmt.objects.iter().any(built_in) {
            check_kept(request, class, oids::ROLE_POSTGRES)?;
        }
        return Ok(made);
    }
    for node in stmt.objects.iter().flatten() {
        let of_type = match node {
            Node::List(names) => Some(names),
            Node::TypeName(name) => Some(&name.names),
            _ => None,
        };
        let name = match node {
            _ if let Some(names) = of_type => match type_named(cx, names, stmt.objtype)? {
                Named::Made(oid) => {
                    made.push(oid);
                    continue;
                }
                Named::BuiltIn(name) => name,
            },
            Node::ObjectWithArgs(function) => function_named(cx, function)?,
            Node::String(name) if LANGUAGES.contains(&&**name) => name.to_string(),
            Node::String(name) => {
                let message = format!("language \"{name}\" does not exist");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            }
            _ => return Err(Error::internal("GRANT on an object without a name")),
        };
        check_kept(request, class, oids::ROLE_POSTGRES)?;
        let (catalog, who) = (cx.catalog(), cx.session.who());
        if !roles::has_privileges_of(&catalog, who, oids::ROLE_POSTGRES) {
            let (code, what) = match request.is_grant {
                true => (SqlState::PRIVILEGE_NOT_GRANTED, "were granted"),
                false => (SqlState::PRIVILEGE_NOT_REVOKED, "could be revoked"),
            };
            cx.warning(code, format!("no privileges {what} for \"{name}\""));
        }
    }
    Ok(made)
}

/// What is granted to somebody everybody has already; what is taken from a role that was never given it changes nothing.
fn check_kept(request: &Request, class: Class, owner: Oid) -> Result<()> {
    let refused = |what: &str| Err(Error::unsupported(format!("{what} on a {} is not supported", class.name())));
    if request.is_grant {
        return if request.option { refused("GRANT with GRANT OPTION") } else { Ok(()) };
    }
    let has = |grantee: &Oid| !grantee.is_valid() || *grantee == owner;
    if !request.option && request.grantees.iter().any(has) {
        let who = if request.grantees.iter().any(|grantee| !grantee.is_valid()) { "PUBLIC" } else { "the owner" };
        return Err(Error::unsupported(format!("REVOKE from {who} on a {} is not supported", class.name()))
            .detail(format!("Everybody may use every {}.", class.name())));
    }
    Ok(())
}

fn type_named(cx: &mut Cx<'_>, names: &[Option<Node>], kind: ObjectType) -> Result<Named> {
    let name = range(names);
    let (shown, found) = (display(&name), cx.find_type(&name)?);
    let not_a_domain = |name: &str| Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a domain")));
    if let Some(desc) = found {
        let is_domain = matches!(desc.kind, TypeKind::Domain(_));
        return if kind == ObjectType::OBJECT_DOMAIN && !is_domain {
            not_a_domain(&desc.name)
        } else {
            Ok(Named::Made(desc.oid))
        };
    }
    let written = TypeName { names: names.to_vec(), typemod: -1, location: -1, ..TypeName::default() };
    let Ok(found) = cx.column_type(&written) else {
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, format!("type \"{shown}\" does not exist")));
    };
    if types::oid::element_of(found.ty.oid).is_some() {
        return Err(Error::new(SqlState::INVALID_GRANT_OPERATION, "cannot set privileges of array types")
            .hint("Set the privileges of the element type instead."));
    }
    if kind == ObjectType::OBJECT_DOMAIN { not_a_domain(&shown) } else { Ok(Named::BuiltIn(shown)) }
}

/// The argument types of all functions of a name.
fn overloads(name: &str) -> Vec<&'static [Oid]> {
    let scalars = functions::functions_named(name).iter().map(|f| f.args);
    let aggregates = functions::aggregates_named(name).iter().map(|f| f.args);
    let sets = functions::set_functions_named(name).iter().map(|f| f.args);
    let windows = functions::window_functions_named(name).map(|f| f.args);
    scalars.chain(aggregates).chain(sets).chain(windows).collect()
}

fn function_named(cx: &mut Cx<'_>, function: &ObjectWithArgs) -> Result<String> {
    let names = strings(&function.objname);
    let shown = names.join(".");
    let mut found = match names.as_slice() {
        [name] => overloads(name),
        [schema, name] if schema == "pg_catalog" => overloads(name),
        _ => Vec::new(),
    };
    let (catalog, database) = (cx.catalog(), cx.database());
    let path = cx.session.search_path(&catalog);
    found.extend(functions::extensions::visible(&catalog, database, &path, &names).iter().map(|(_, f)| f.args));
    let name = names.last().cloned().unwrap_or_default();
    if function.args_unspecified {
        return match found.len() {
            0 => Err(Error::new(SqlState::UNDEFINED_FUNCTION, format!("could not find a function named \"{shown}\""))),
            1 => Ok(name),
            _ => Err(Error::new(SqlState::AMBIGUOUS_FUNCTION, format!("function name \"{shown}\" is not unique"))
                .hint("Specify the argument list to select the function unambiguously.")),
        };
    }
    let mut wanted = Vec::with_capacity(function.objargs.len());
    for node in function.objargs.iter().flatten() {
        let Node::TypeName(name) = node else { continue };
        wanted.push(cx.column_type(name).map_err(without_position)?.ty.oid);
    }
    if found.contains(&wanted.as_slice()) {
        return Ok(name);
    }
    let shown_types: Vec<String> = wanted.iter().map(|ty| types::format_type(*ty, -1)).collect();
    let message = format!("function {shown}({}) does not exist", shown_types.join(", "));
    Err(Error::new(SqlState::UNDEFINED_FUNCTION, message))
}

fn without_position(mut error: Error) -> Error {
    error.fields_mut().position = None;
    error
}
