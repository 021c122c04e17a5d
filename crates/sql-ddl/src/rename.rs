//! ALTER … RENAME.

use base::{Error, Result, SqlState};
use engine_api::{CatalogObject, ConstraintDesc, ConstraintKind, TableKind, TableLockMode};
use rupg_sql::nodes::{ObjectType, RenameStmt};
use sql_ir::system_column;

use super::Cx;
use super::constraint::check_name_free;
use super::names::display;
pub(super) async fn rename(cx: &mut Cx<'_>, stmt: &RenameStmt) -> Result<&'static str> {
    use ObjectType as T;
    let new_name = stmt.newname.as_deref().unwrap_or_default();
    match stmt.renameType {
        T::OBJECT_SCHEMA => return rename_schema(cx, stmt, new_name).await,
        T::OBJECT_TYPE | T::OBJECT_DOMAIN => return super::types::rename_type(cx, stmt, new_name).await,
        T::OBJECT_DOMCONSTRAINT => return super::types::rename_domain_constraint(cx, stmt, new_name).await,
        T::OBJECT_ROLE => return super::role::rename_role(cx, stmt, new_name).await,
        T::OBJECT_TABLE
        | T::OBJECT_INDEX
        | T::OBJECT_SEQUENCE
        | T::OBJECT_COLUMN
        | T::OBJECT_TABCONSTRAINT
        | T::OBJECT_VIEW
        | T::OBJECT_MATVIEW => {}
        T::OBJECT_DATABASE => return super::database::rename_database(cx, stmt, new_name).await,
        _ => return Err(Error::unsupported("this kind of RENAME is not supported")),
    }
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("RENAME without a relation"))?;
    let Some(object) = cx.find_altered(name, stmt.missing_ok)? else {
        let message = format!("relation \"{}\" does not exist", display(name));
        if stmt.missing_ok {
            cx.skip_missing(name);
            return Ok(tag_of(if stmt.renameType == T::OBJECT_COLUMN { stmt.relationType } else { stmt.renameType }));
        }
        return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
    };
    match stmt.renameType {
        // As in PostgreSQL, any of these statements renames the columns of any relation that has them.
        T::OBJECT_COLUMN => check_has_columns(&object)?,
        kind => check_kind(&object, kind)?,
    }
    let locked = match &*object {
        CatalogObject::Index(index) => index.table,
        object => object.oid(),
    };
    cx.lock(locked, TableLockMode::AccessExclusive).await?;
    match stmt.renameType {
        T::OBJECT_COLUMN => rename_column(cx, stmt, new_name).await,
        T::OBJECT_TABCONSTRAINT => rename_constraint(cx, stmt, new_name).await,
        _ => rename_relation(cx, stmt, new_name).await,
    }
}

fn tag_of(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::OBJECT_INDEX => "ALTER INDEX",
        ObjectType::OBJECT_SEQUENCE => "ALTER SEQUENCE",
        ObjectType::OBJECT_VIEW => "ALTER VIEW",
        ObjectType::OBJECT_MATVIEW => "ALTER MATERIALIZED VIEW",
        _ => "ALTER TABLE",
    }
}

fn check_has_columns(object: &CatalogObject) -> Result<()> {
    match object {
        CatalogObject::Sequence(sequence) => {
            let message = format!("cannot rename columns of relation \"{}\"", sequence.name);
            Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
                .detail("This operation is not supported for sequences."))
        }
        CatalogObject::Index(_) => Err(Error::unsupported("renaming a column of an index is not supported")),
        _ => Ok(()),
    }
}

/// ALTER TABLE renames all kinds of relations; the other statements only their own.
pub(super) fn check_kind(object: &CatalogObject, wanted: ObjectType) -> Result<()> {
    let (fits, what) = match (object, wanted) {
        (CatalogObject::Table(t), ObjectType::OBJECT_VIEW) => (t.kind == TableKind::View, "a view"),
        (CatalogObject::Table(t), ObjectType::OBJECT_MATVIEW) => {
            (t.kind == TableKind::MaterializedView, "a materialized view")
        }
        (_, ObjectType::OBJECT_VIEW) => (false, "a view"),
        (_, ObjectType::OBJECT_MATVIEW) => (false, "a materialized view"),
        (other, ObjectType::OBJECT_SEQUENCE) => (matches!(other, CatalogObject::Sequence(_)), "a sequence"),
        _ => return Ok(()),
    };
    if fits {
        return Ok(());
    }
    Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not {what}", object.name())))
}

async fn rename_relation(cx: &mut Cx<'_>, stmt: &RenameStmt, new_name: &str) -> Result<&'static str> {
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("RENAME without a relation"))?;
    let object = cx.find_relation(name)?.ok_or_else(|| Error::internal("the relation went away"))?;
    let schema = object.namespace().1;
    cx.check_free(schema, new_name, false)?;
    let mut object = (*object).clone();
    let tag = match &mut object {
        CatalogObject::Table(table) => {
            table.name = new_name.to_string();
            "ALTER TABLE"
        }
        CatalogObject::Index(index) => {
            index.name = new_name.to_string();
            rename_constraint_of_index(cx, index.table, index.oid, new_name).await?;
            "ALTER INDEX"
        }
        CatalogObject::Sequence(sequence) => {
            sequence.name = new_name.to_string();
            "ALTER SEQUENCE"
        }
        _ => return Err(Error::internal("a relation of another kind")),
    };
    cx.put(object).await?;
    Ok(match stmt.renameType {
        ObjectType::OBJECT_TABLE => "ALTER TABLE",
        ObjectType::OBJECT_VIEW | ObjectType::OBJECT_MATVIEW => tag_of(stmt.renameType),
        _ => tag,
    })
}

/// A constraint and its index share their name.
async fn rename_constraint_of_index(cx: &mut Cx<'_>, table: base::Oid, index: base::Oid, name: &str) -> Result<()> {
    let Some(mut desc) = cx.catalog().table(table).cloned() else { return Ok(()) };
    let is_own = |constraint: &ConstraintDesc| match constraint.kind {
        ConstraintKind::PrimaryKey { index: own } | ConstraintKind::Unique { index: own } => own == index,
        _ => false,
    };
    if desc.constraints.iter().any(is_own) {
        check_name_free(&desc, name)?;
    }
    desc.constraints.iter_mut().filter(|c| is_own(c)).for_each(|constraint| constraint.name = name.to_string());
    cx.put(CatalogObject::Table(desc)).await
}

async fn rename_column(cx: &mut Cx<'_>, stmt: &RenameStmt, new_name: &str) -> Result<&'static str> {
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("RENAME without a relation"))?;
    let mut table = cx.relation_named(name)?;
    let old = stmt.subname.as_deref().unwrap_or_default();
    system_column::refuse(&table, old, "rename")?;
    let Some(number) = table.column(old).map(|c| c.number) else {
        return Err(Error::new(SqlState::UNDEFINED_COLUMN, format!("column \"{old}\" does not exist")));
    };
    system_column::refuse_name(&table, new_name)?;
    if table.column(new_name).is_some() {
        return Err(Error::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{new_name}\" of relation \"{}\" already exists", table.name),
        ));
    }
    table.columns[number as usize - 1].name = new_name.to_string();
    let object = CatalogObject::Table(table);
    cx.put(object.clone()).await?;
    // The name of a field of the whole row is none of a column.
    let catalog = cx.catalog();
    let indexes = catalog.indexes(object.oid()).map(|index| CatalogObject::Index(index.clone()));
    for object in std::iter::once(object).chain(indexes) {
        cx.session
            .check_row_fields(&object)
            .map_err(|_| Error::unsupported("renaming a column that this expression uses is not supported"))?;
    }
    Ok(tag_of(stmt.relationType))
}

async fn rename_constraint(cx: &mut Cx<'_>, stmt: &RenameStmt, new_name: &str) -> Result<&'static str> {
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("RENAME without a relation"))?;
    let mut table = cx.table_named(name)?;
    let old = stmt.subname.as_deref().unwrap_or_default();
    let Some(at) = table.constraints.iter().position(|c| c.name == old) else {
        return Err(Error::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{old}\" for table \"{}\" does not exist", table.name),
        ));
    };
    // The index is renamed first.
    if matches!(table.constraints[at].kind, ConstraintKind::PrimaryKey { .. } | ConstraintKind::Unique { .. }) {
        cx.check_free(table.schema, new_name, false)?;
    }
    check_name_free(&table, new_name)?;
    let constraint = &mut table.constraints[at];
    constraint.name = new_name.to_string();
    let index = match constraint.kind {
        ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index } => Some(index),
        _ => None,
    };
    cx.put(CatalogObject::Table(table)).await?;
    if let Some(mut index) = index.and_then(|oid| cx.catalog().index(oid).cloned()) {
        index.name = new_name.to_string();
        cx.put(CatalogObject::Index(index)).await?;
    }
    Ok("ALTER TABLE")
}

async fn rename_schema(cx: &mut Cx<'_>, stmt: &RenameStmt, new_name: &str) -> Result<&'static str> {
    let old = stmt.subname.as_deref().unwrap_or_default();
    let database = cx.database();
    let catalog = cx.catalog();
    let mut schema = catalog
        .schema(database, old)
        .cloned()
        .ok_or_else(|| Error::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{old}\" does not exist")))?;
    if catalog.schema(database, new_name).is_some() {
        return Err(Error::new(SqlState::DUPLICATE_SCHEMA, format!("schema \"{new_name}\" already exists")));
    }
    super::database::check_schema_name(new_name)?;
    schema.name = new_name.to_string();
    cx.put(CatalogObject::Schema(schema)).await?;
    Ok("ALTER SCHEMA")
}
