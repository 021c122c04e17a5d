//! Whether the current role may define what a statement defines. Asked before the statement is run, for whoever is no
//! superuser; what is not there is left to the statement to complain about.

use base::{Error, Oid, Result, SqlState};
use engine_api::{CatalogObject, Privileges, TableLockMode};
use rupg_sql::nodes::{
    CommentStmt, Constraint, CreateSchemaStmt, CreateStmt, DropStmt, Node, ObjectType, RangeVar, TruncateStmt,
};

use super::Cx;
use super::names::strings;
use super::role::{denied, require_member};
use crate::privileges::{self, Class};

/// Refuses what the current role may not do.
///
/// # Errors
/// 42501
pub(super) fn check(cx: &mut Cx<'_>, node: &Node) -> Result<()> {
    if cx.session.is_superuser() {
        return Ok(());
    }
    match node {
        Node::AlterTableStmt(stmt) => own_relation(cx, stmt.relation.as_deref()),
        Node::AlterObjectSchemaStmt(stmt) => own_relation(cx, stmt.relation.as_deref()),
        Node::AlterSeqStmt(stmt) => own_relation(cx, stmt.sequence.as_deref()),
        Node::IndexStmt(stmt) => own_relation(cx, stmt.relation.as_deref()),
        Node::CreateTrigStmt(stmt) => on_relation(cx, stmt.relation.as_deref(), Privileges::TRIGGER),
        Node::RenameStmt(stmt) => match stmt.renameType {
            ObjectType::OBJECT_SCHEMA => {
                own_schema(cx, stmt.subname.as_deref())?;
                require_database(cx, Privileges::CREATE)
            }
            ObjectType::OBJECT_ROLE => Ok(()),
            _ => own_relation(cx, stmt.relation.as_deref()),
        },
        Node::DropStmt(stmt) => own_all(cx, stmt),
        Node::CommentStmt(stmt) => own_commented(cx, stmt),
        Node::TruncateStmt(stmt) => truncate(cx, stmt),
        Node::CreateStmt(stmt) => references(cx, stmt),
        Node::CreateSchemaStmt(stmt) => create_schema(cx, stmt),
        Node::CreatedbStmt(_) => create_database(cx),
        Node::DropdbStmt(stmt) => {
            let name = stmt.dbname.as_deref().unwrap_or_default();
            let catalog = cx.catalog();
            let found = catalog.database(name).and_then(|database| catalog.get(database.oid));
            found.map_or(Ok(()), |object| privileges::require_owner(&catalog, cx.session.who(), object))
        }
        _ => Ok(()),
    }
}

fn own_relation(cx: &mut Cx<'_>, name: Option<&RangeVar>) -> Result<()> {
    let Some(object) = name.and_then(|name| cx.find_relation(name).ok().flatten()) else { return Ok(()) };
    privileges::require_owner(&cx.catalog(), cx.session.who(), &object)
}

fn on_relation(cx: &mut Cx<'_>, name: Option<&RangeVar>, wanted: Privileges) -> Result<()> {
    let Some(object) = name.and_then(|name| cx.find_relation(name).ok().flatten()) else { return Ok(()) };
    privileges::require(&cx.catalog(), cx.session.who(), &object, wanted)
}

fn own_schema(cx: &mut Cx<'_>, name: Option<&str>) -> Result<()> {
    let (catalog, database) = (cx.catalog(), cx.database());
    let found = name.and_then(|name| catalog.schema(database, name)).and_then(|schema| catalog.get(schema.oid));
    found.map_or(Ok(()), |object| privileges::require_owner(&catalog, cx.session.who(), object))
}

/// A relation is dropped by its owner or that of its schema.
fn own_all(cx: &mut Cx<'_>, stmt: &DropStmt) -> Result<()> {
    use ObjectType as T;
    for node in stmt.objects.iter().flatten() {
        match (stmt.removeType, node) {
            (T::OBJECT_SCHEMA, Node::String(name)) => own_schema(cx, Some(name))?,
            (
                T::OBJECT_TABLE | T::OBJECT_INDEX | T::OBJECT_SEQUENCE | T::OBJECT_VIEW | T::OBJECT_MATVIEW,
                Node::List(list),
            ) => {
                let Some(object) = cx.find_relation(&range_of(strings(list))).ok().flatten() else { continue };
                let (catalog, who) = (cx.catalog(), cx.session.who());
                let schema = catalog.get(object.namespace().1);
                if !schema.is_some_and(|schema| privileges::owns(&catalog, who, schema)) {
                    privileges::require_owner(&catalog, who, &object)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn own_commented(cx: &mut Cx<'_>, stmt: &CommentStmt) -> Result<()> {
    let mut names = match &stmt.object {
        Some(Node::List(list)) => strings(list),
        Some(Node::String(name)) => vec![name.to_string()],
        _ => return Ok(()),
    };
    match stmt.objtype {
        ObjectType::OBJECT_SCHEMA => return own_schema(cx, names.first().map(String::as_str)),
        ObjectType::OBJECT_COLUMN => {
            names.pop();
            return own_relation(cx, Some(&range_of(names))).map_err(of_relation);
        }
        ObjectType::OBJECT_TABLE | ObjectType::OBJECT_INDEX | ObjectType::OBJECT_SEQUENCE | ObjectType::OBJECT_VIEW => {
        }
        _ => return Ok(()),
    }
    own_relation(cx, Some(&range_of(names)))
}

fn range_of(mut names: Vec<String>) -> RangeVar {
    RangeVar {
        relname: names.pop().map(Into::into),
        schemaname: names.pop().map(Into::into),
        location: -1,
        ..Default::default()
    }
}

/// For columns PostgreSQL does not say what kind of relation it is.
fn of_relation(mut error: Error) -> Error {
    let fields = error.fields_mut();
    fields.message = fields.message.replacen("owner of table", "owner of relation", 1);
    error
}

fn truncate(cx: &mut Cx<'_>, stmt: &TruncateStmt) -> Result<()> {
    for node in stmt.relations.iter().flatten() {
        if let Node::RangeVar(name) = node {
            on_relation(cx, Some(name), Privileges::TRUNCATE)?;
        }
    }
    Ok(())
}

/// A foreign key needs REFERENCES on the table, or on the columns, that it points at.
fn references(cx: &mut Cx<'_>, stmt: &CreateStmt) -> Result<()> {
    let name = stmt.relation.as_deref();
    if let Some(name) = name
        && let Err(error) = cx.permanent_schema(name)
        && error.code() == SqlState::INSUFFICIENT_PRIVILEGE
    {
        return Err(error.at_byte(cx.sql, name.location));
    }
    for node in stmt.tableElts.iter().flatten() {
        match node {
            Node::Constraint(constraint) => may_reference(cx, constraint)?,
            Node::ColumnDef(column) => {
                for node in column.constraints.iter().flatten() {
                    if let Node::Constraint(constraint) = node {
                        may_reference(cx, constraint)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a foreign key may point where it does.
pub(super) fn may_reference(cx: &mut Cx<'_>, constraint: &Constraint) -> Result<()> {
    let Some(object) = constraint.pktable.as_deref().and_then(|name| cx.find_relation(name).ok().flatten()) else {
        return Ok(());
    };
    let (catalog, who) = (cx.catalog(), cx.session.who());
    let Some(table) = catalog.table(object.oid()) else { return Ok(()) };
    if privileges::held(&catalog, who, &object).contains(Privileges::REFERENCES) {
        return Ok(());
    }
    let columns = strings(&constraint.pk_attrs);
    let may = |name: &String| {
        let number = table.column(name).map_or(0, |column| column.number);
        privileges::held_on_column(&catalog, who, table.oid, number).contains(Privileges::REFERENCES)
    };
    if !columns.is_empty() && columns.iter().all(may) {
        return Ok(());
    }
    Err(privileges::denied(Class::Table, &table.name))
}

fn create_schema(cx: &mut Cx<'_>, stmt: &CreateSchemaStmt) -> Result<()> {
    require_database(cx, Privileges::CREATE)?;
    if let Some(role) = &stmt.authrole {
        let role = super::role::role_oid(cx, role)?;
        require_member(cx, role)?;
    }
    Ok(())
}

fn create_database(cx: &mut Cx<'_>) -> Result<()> {
    let role = cx.session.who().role;
    if cx.catalog().role_by_oid(role).is_some_and(|role| role.create_database) {
        return Ok(());
    }
    Err(denied("permission denied to create database"))
}

/// Refuses unless the current role has a privilege on the session's database.
pub(super) fn require_database(cx: &mut Cx<'_>, wanted: Privileges) -> Result<()> {
    let (catalog, database) = (cx.catalog(), cx.database());
    match catalog.get(database) {
        Some(object) => privileges::require(&catalog, cx.session.who(), object, wanted),
        None => Err(Error::new(SqlState::INVALID_CATALOG_NAME, "the session's database does not exist")),
    }
}

/// Refuses unless the current role has a privilege on a schema.
pub(super) fn require_schema(cx: &mut Cx<'_>, schema: Oid, wanted: Privileges) -> Result<()> {
    if cx.session.is_superuser() {
        return Ok(());
    }
    let catalog = cx.catalog();
    let Some(object) = catalog.get(schema).filter(|o| matches!(&***o, CatalogObject::Schema(_))) else { return Ok(()) };
    privileges::require(&catalog, cx.session.who(), object, wanted)
}

/// Refuses a lock on a table by a role that may do nothing with it that such a lock is for.
pub(super) fn require_lock(cx: &mut Cx<'_>, table: Oid, mode: TableLockMode) -> Result<()> {
    use Privileges as P;
    if cx.session.is_superuser() {
        return Ok(());
    }
    let catalog = cx.catalog();
    let Some(object) = catalog.get(table) else { return Ok(()) };
    let enough = match mode {
        TableLockMode::AccessShare => P::SELECT,
        TableLockMode::RowExclusive => P::INSERT | P::UPDATE | P::DELETE | P::TRUNCATE,
        _ => P::UPDATE | P::DELETE | P::TRUNCATE,
    };
    if privileges::held(&catalog, cx.session.who(), object).meets(enough) {
        return Ok(());
    }
    Err(privileges::denied(Class::Table, object.name()))
}

/// Says that a table is not the current role's to maintain.
pub(super) fn warn_of_maintenance(cx: &mut Cx<'_>, table: Oid, verb: &str) {
    let (catalog, database, who) = (cx.catalog(), cx.database(), cx.session.who());
    let may = |oid: Oid| catalog.get(oid).is_some_and(|object| privileges::owns(&catalog, who, object));
    if cx.session.is_superuser() || may(table) || may(database) {
        return;
    }
    let name = catalog.get(table).map_or("", |object| object.name());
    let message = format!("skipping \"{name}\" --- only table or database owner can {verb} it");
    cx.warning(SqlState::WARNING, message);
}
