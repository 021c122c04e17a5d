//! CREATE DATABASE, DROP DATABASE, CREATE SCHEMA.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, DatabaseDesc, PrivilegesDesc, SchemaDesc, oids};
use rupg_sql::nodes::{CreateSchemaStmt, CreatedbStmt, DefElem, DropdbStmt, Node, RenameStmt};
use sql_parse::privileges;
use types::encoding::Encoding;

use super::{Cx, default_privileges, drop};

/// The owner that a statement names, if it does.
pub(super) fn named_owner(cx: &mut Cx<'_>, stmt: &CreatedbStmt) -> Result<Option<Oid>> {
    let Some(name) = given(stmt, "owner").map(text_of) else { return Ok(None) };
    cx.catalog().role(&name).map(|role| Some(role.oid)).ok_or_else(|| super::role::unknown_role(&name))
}

/// The owner that is named, or whoever creates.
fn owner_of_new(cx: &mut Cx<'_>, stmt: &CreatedbStmt) -> Result<Oid> {
    let Some(role) = named_owner(cx, stmt)? else { return Ok(cx.owner()) };
    super::role::require_member(cx, role)?;
    Ok(role)
}

/// Refuses a template that the role may not copy, and one that has something in it: databases begin empty.
fn check_template(cx: &mut Cx<'_>, stmt: &CreatedbStmt) -> Result<()> {
    let name = given(stmt, "template").map(text_of).unwrap_or_else(|| "template1".to_string());
    let catalog = cx.catalog();
    let Some(database) = catalog.database(&name) else {
        let message = format!("template database \"{name}\" does not exist");
        return Err(Error::new(SqlState::INVALID_CATALOG_NAME, message));
    };
    let is_own = database.is_template()
        || catalog.get(database.oid).is_some_and(|object| privileges::owns(&catalog, cx.session.who(), object));
    if !is_own {
        let message = format!("permission denied to copy database \"{name}\"");
        return Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    let schema_of = |object: &CatalogObject| catalog.get(object.namespace().1).map(Arc::clone);
    let is_of = |schema: &CatalogObject| matches!(schema, CatalogObject::Schema(s) if s.database == database.oid);
    let mut inside = catalog.walk().filter(|object| schema_of(object).is_some_and(|schema| is_of(&schema)));
    match inside.next() {
        Some(_) => Err(Error::unsupported("copying a database that has objects is not supported")),
        None => Ok(()),
    }
}

/// Options of CREATE DATABASE.
const OPTIONS: [&str; 16] = [
    "tablespace",
    "owner",
    "template",
    "encoding",
    "locale",
    "lc_collate",
    "lc_ctype",
    "icu_locale",
    "locale_provider",
    "is_template",
    "allow_connections",
    "connection_limit",
    "collation_version",
    "location",
    "oid",
    "strategy",
];

/// Options that a statement gives; DEFAULT is none.
fn given<'a>(stmt: &'a CreatedbStmt, name: &str) -> Option<&'a DefElem> {
    let options = stmt.options.iter().flatten().filter_map(|node| match node {
        Node::DefElem(option) => Some(&**option),
        _ => None,
    });
    options.filter(|option| option.arg.is_some()).find(|option| option.defname.as_deref() == Some(name))
}

fn text_of(option: &DefElem) -> String {
    option.arg.as_ref().and_then(sql_parse::text_of).unwrap_or_default()
}

/// Sees that each option means something.
fn check_options(cx: &mut Cx<'_>, stmt: &CreatedbStmt) -> Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    for node in stmt.options.iter().flatten() {
        let Node::DefElem(option) = node else { continue };
        let name = option.defname.as_deref().unwrap_or_default();
        let refuse = |message: &str| Error::new(SqlState::SYNTAX_ERROR, message).at_byte(cx.sql, option.location);
        if !OPTIONS.contains(&name) {
            return Err(refuse(&format!("option \"{name}\" not recognized")));
        }
        if seen.contains(&name) {
            return Err(refuse("conflicting or redundant options"));
        }
        seen.push(name);
    }
    encoding_of(cx, stmt)?;
    for (name, usual) in [("is_template", false), ("allow_connections", true)] {
        let Some(option) = given(stmt, name) else { continue };
        match sql_parse::amounts::parse_bool(&text_of(option)) {
            Some(value) if value == usual => {}
            Some(_) => return Err(Error::unsupported(format!("{} is not supported", name.to_uppercase()))),
            None => return Err(Error::new(SqlState::SYNTAX_ERROR, format!("{name} requires a Boolean value"))),
        }
    }
    match given(stmt, "connection_limit").map(text_of) {
        Some(limit) if limit.parse().is_ok_and(|limit: i32| limit < -1) => {
            let message = format!("invalid connection limit: {limit}");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        Some(limit) if limit != "-1" => {
            return Err(Error::unsupported("connection limits of databases are not supported"));
        }
        _ => {}
    }
    match given(stmt, "oid") {
        Some(_) => Err(Error::unsupported("a database with an OID of one's own is not supported")),
        None => Ok(()),
    }
}

/// The encoding that is asked for.
fn encoding_of(cx: &mut Cx<'_>, stmt: &CreatedbStmt) -> Result<Option<String>> {
    let Some(option) = given(stmt, "encoding") else { return Ok(None) };
    let text = text_of(option);
    let unknown = |what: String| Err(Error::new(SqlState::UNDEFINED_OBJECT, what).at_byte(cx.sql, option.location));
    match text.parse::<i32>() {
        Ok(-1) => Ok(None),
        Ok(code) => match Encoding::from_number(code).filter(|encoding| !encoding.is_client_only()) {
            Some(encoding) => Ok(Some(encoding.name().to_owned())),
            None => unknown(format!("{code} is not a valid encoding code")),
        },
        Err(_) => match Encoding::from_name(&text).filter(|encoding| !encoding.is_client_only()) {
            Some(encoding) => Ok(Some(encoding.name().to_owned())),
            None => unknown(format!("{text} is not a valid encoding name")),
        },
    }
}

/// What every database here has is all that can be asked for.
fn check_values(cx: &mut Cx<'_>, stmt: &CreatedbStmt) -> Result<()> {
    if let Some(strategy) = given(stmt, "strategy").map(text_of)
        && !["wal_log", "file_copy"].iter().any(|known| known.eq_ignore_ascii_case(&strategy))
    {
        let message = format!("invalid create database strategy \"{strategy}\"");
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
            .hint("Valid strategies are \"wal_log\" and \"file_copy\"."));
    }
    match given(stmt, "locale_provider").map(text_of).as_deref() {
        None | Some("libc") => {}
        Some("icu") => return Err(Error::unsupported("locales of ICU are not supported")),
        Some(other) => {
            let message = format!("unrecognized locale provider: {other}");
            return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
    }
    if let Some(encoding) = encoding_of(cx, stmt)?.filter(|encoding| encoding != "UTF8") {
        let message = format!("encoding \"{encoding}\" does not match locale \"C.UTF-8\"");
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
            .detail("The chosen LC_CTYPE setting requires encoding \"UTF8\"."));
    }
    super::require_tablespace(given(stmt, "tablespace").map(text_of).as_deref())
}

pub(super) async fn create_database(cx: &mut Cx<'_>, stmt: &CreatedbStmt) -> Result<&'static str> {
    let name = stmt.dbname.as_deref().unwrap_or_default();
    check_options(cx, stmt)?;
    let owner = owner_of_new(cx, stmt)?;
    check_template(cx, stmt)?;
    check_values(cx, stmt)?;
    if cx.catalog().database(name).is_some() {
        return Err(Error::new(SqlState::DUPLICATE_DATABASE, format!("database \"{name}\" already exists")));
    }
    let database =
        DatabaseDesc { oid: cx.allocate(), name: name.to_string(), owner, comment: None, settings: Vec::new() };
    let public = SchemaDesc {
        oid: cx.allocate(),
        database: database.oid,
        name: "public".to_string(),
        owner: oids::ROLE_DATABASE_OWNER,
        comment: None,
    };
    let list = PrivilegesDesc {
        object: public.oid,
        oid: PrivilegesDesc::oid_for(public.oid),
        name: public.oid.to_string(),
        ..cx.catalog().privileges(oids::SCHEMA_PUBLIC).cloned().unwrap_or(PrivilegesDesc::initial(public.oid))
    };
    cx.put(CatalogObject::Database(database)).await?;
    cx.put(CatalogObject::Schema(public)).await?;
    cx.put(CatalogObject::Privileges(list)).await?;
    Ok("CREATE DATABASE")
}

pub(super) async fn drop_database(cx: &mut Cx<'_>, stmt: &DropdbStmt) -> Result<&'static str> {
    let name = stmt.dbname.as_deref().unwrap_or_default();
    let catalog = cx.catalog();
    let Some(database) = catalog.database(name) else {
        let message = format!("database \"{name}\" does not exist");
        if stmt.missing_ok {
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
            return Ok("DROP DATABASE");
        }
        return Err(Error::new(SqlState::INVALID_CATALOG_NAME, message));
    };
    if database.is_template() {
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, "cannot drop a template database"));
    }
    if database.oid == cx.database() {
        return Err(Error::new(SqlState::OBJECT_IN_USE, "cannot drop the currently open database"));
    }
    let database = database.clone();
    let force = stmt
        .options
        .iter()
        .flatten()
        .any(|node| matches!(node, Node::DefElem(option) if option.defname.as_deref() == Some("force")));
    cx.session.close_database(&database, force).await?;
    let dropped = drop_contents(cx, &database).await;
    if dropped.is_err() {
        cx.session.reopen_database(database.oid);
    }
    dropped.map(|()| "DROP DATABASE")
}

/// ALTER DATABASE … RENAME: of a database that no session is in. Sessions name it by its OID, so that nothing else has to change.
pub(super) async fn rename_database(cx: &mut Cx<'_>, stmt: &RenameStmt, new_name: &str) -> Result<&'static str> {
    let name = stmt.subname.as_deref().unwrap_or_default();
    let catalog = cx.catalog();
    let Some(database) = catalog.database(name) else {
        return Err(Error::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist")));
    };
    if catalog.database(new_name).is_some() {
        return Err(Error::new(SqlState::DUPLICATE_DATABASE, format!("database \"{new_name}\" already exists")));
    }
    if database.oid == cx.database() {
        return Err(Error::unsupported("current database cannot be renamed"));
    }
    if database.is_template() {
        return Err(Error::unsupported("template databases cannot be renamed"));
    }
    cx.session.close_database(database, false).await?;
    let renamed = DatabaseDesc { name: new_name.to_string(), ..database.clone() };
    let put = cx.put(CatalogObject::Database(renamed)).await;
    cx.session.reopen_database(database.oid);
    put.map(|()| "ALTER DATABASE")
}

/// Whether an object is one of a schema: a table, a sequence, a type. An index goes with its table.
fn is_in(object: &CatalogObject, schema: Oid) -> bool {
    let has_schema = matches!(object, CatalogObject::Table(_) | CatalogObject::Sequence(_) | CatalogObject::Type(_));
    has_schema && object.namespace().1 == schema
}

async fn drop_contents(cx: &mut Cx<'_>, database: &DatabaseDesc) -> Result<()> {
    let catalog = cx.catalog();
    let schemas: BTreeSet<_> = catalog
        .walk()
        .filter(|o| matches!(&***o, CatalogObject::Schema(s) if s.database == database.oid))
        .map(|o| o.oid())
        .collect();
    for schema in schemas {
        let inside: BTreeSet<_> = catalog.walk().filter(|o| is_in(o, schema)).map(|o| o.oid()).collect();
        drop::drop_all(cx, inside, true).await?;
        default_privileges::forget_place(cx, schema).await?;
        cx.drop_one(schema)?;
    }
    let oid = database.oid;
    let is_extension = |o: &CatalogObject| matches!(o, CatalogObject::Extension(e) if e.database == oid);
    let extensions: Vec<Oid> = catalog.walk().filter(|o| is_extension(o)).map(|o| o.oid()).collect();
    for extension in extensions {
        cx.drop_one(extension)?;
    }
    default_privileges::forget_place(cx, oid).await?;
    cx.drop_one(oid)?;
    // What went with the database is not news to anyone.
    cx.session.forget_notices();
    Ok(())
}

/// Refuses the names of system schemas: temporary ones are found by theirs.
pub(super) fn check_schema_name(name: &str) -> Result<()> {
    if !name.starts_with("pg_") {
        return Ok(());
    }
    Err(Error::new(SqlState::RESERVED_NAME, format!("unacceptable schema name \"{name}\""))
        .detail("The prefix \"pg_\" is reserved for system schemas."))
}

pub(super) async fn create_schema(cx: &mut Cx<'_>, stmt: &CreateSchemaStmt) -> Result<&'static str> {
    let role = stmt.authrole.as_deref().and_then(|r| r.rolename.as_deref());
    let name = stmt.schemaname.as_deref().or(role).unwrap_or_default();
    let database = cx.database();
    let catalog = cx.catalog();
    if catalog.schema(database, name).is_some() {
        let message = format!("schema \"{name}\" already exists");
        if stmt.if_not_exists {
            cx.notice(SqlState::DUPLICATE_SCHEMA, format!("{message}, skipping"));
            return Ok("CREATE SCHEMA");
        }
        return Err(Error::new(SqlState::DUPLICATE_SCHEMA, message));
    }
    check_schema_name(name)?;
    let owner = match role {
        Some(role) => catalog.role(role).map(|r| r.oid).ok_or_else(|| super::role::unknown_role(role))?,
        None => cx.owner(),
    };
    let schema = SchemaDesc { oid: cx.allocate(), database, name: name.to_string(), owner, comment: None };
    cx.put(CatalogObject::Schema(schema)).await?;
    if !stmt.schemaElts.is_empty() {
        if owner != cx.owner() {
            return Err(Error::unsupported("CREATE SCHEMA with elements for another role is not supported"));
        }
        super::schema_elements::create(cx, name, &stmt.schemaElts).await?;
    }
    Ok("CREATE SCHEMA")
}
