//! CREATE INDEX.

use base::{Error, Result, SqlState};
use engine_api::{CatalogObject, IndexDesc, IndexKey, TableLockMode};
use rupg_sql::nodes::{IndexElem, IndexStmt, Node, SortByDir, SortByNulls};

use super::Cx;
use super::names::free_relation_name;

pub(super) async fn create_index(cx: &mut Cx<'_>, stmt: &IndexStmt) -> Result<&'static str> {
    refuse_unsupported(stmt)?;
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("CREATE INDEX without a table"))?;
    let table = cx.locked_relation(name, TableLockMode::Share).await?;
    if !table.is_stored() {
        let message = format!("cannot create index on relation \"{}\"", table.name);
        return Err(
            Error::new(SqlState::WRONG_OBJECT_TYPE, message).detail("This operation is not supported for views.")
        );
    }
    let mut keys = Vec::new();
    let mut columns = Vec::new();
    for element in stmt.indexParams.iter().flatten() {
        let Node::IndexElem(element) = element else { continue };
        let column_name =
            element.name.as_deref().ok_or_else(|| Error::unsupported("expression indexes are not supported"))?;
        let column = table.column(column_name).ok_or_else(|| {
            Error::new(SqlState::UNDEFINED_COLUMN, format!("column \"{column_name}\" does not exist"))
        })?;
        columns.push(column.name.clone());
        keys.push(index_key(element, column.number)?);
    }
    let catalog = cx.catalog();
    let index_name = match &stmt.idxname {
        Some(given) => {
            if !cx.check_free(table.schema, given, stmt.if_not_exists)? {
                return Ok("CREATE INDEX");
            }
            given.to_string()
        }
        None => free_relation_name(&catalog, table.schema, &table.name, &columns.join("_"), "idx", &[]),
    };
    let index = IndexDesc {
        oid: cx.allocate(),
        schema: table.schema,
        name: index_name,
        table: table.oid,
        keys,
        unique: stmt.unique,
        primary: false,
        expressions: Vec::new(),
        predicate: None,
        include: Vec::new(),
        deferrable: false,
        comment: None,
    };
    cx.put(CatalogObject::Index(index)).await?;
    Ok("CREATE INDEX")
}

fn refuse_unsupported(stmt: &IndexStmt) -> Result<()> {
    let what = if stmt.whereClause.is_some() {
        "partial indexes are"
    } else if !stmt.indexIncludingParams.is_empty() {
        "INCLUDE columns are"
    } else if stmt.nulls_not_distinct {
        "NULLS NOT DISTINCT is"
    } else if stmt.concurrent {
        "CREATE INDEX CONCURRENTLY is"
    } else {
        return match stmt.accessMethod.as_deref() {
            None | Some("btree") => Ok(()),
            // Equality is all a hash index answers, and an ordered index answers it too.
            Some("hash") if !stmt.unique => Ok(()),
            Some("hash") => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "access method \"hash\" does not support unique indexes",
            )),
            Some(method @ ("gist" | "gin" | "brin" | "spgist")) => {
                Err(Error::unsupported(format!("access method \"{method}\" is not supported")))
            }
            Some(method) => {
                Err(Error::new(SqlState::UNDEFINED_OBJECT, format!("access method \"{method}\" does not exist")))
            }
        };
    };
    Err(Error::unsupported(format!("{what} not supported")))
}

fn index_key(element: &IndexElem, column: i16) -> Result<IndexKey> {
    if !element.opclass.is_empty() {
        let class = super::names::strings(&element.opclass).pop().unwrap_or_default();
        // In the C collation the pattern classes order as the default ones do.
        if !class.ends_with("_ops") {
            return Err(Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("operator class \"{class}\" does not exist for access method \"btree\""),
            ));
        }
    }
    let descending = element.ordering == SortByDir::SORTBY_DESC;
    let nulls_first = match element.nulls_ordering {
        SortByNulls::SORTBY_NULLS_FIRST => true,
        SortByNulls::SORTBY_NULLS_LAST => false,
        _ => descending,
    };
    Ok(IndexKey { column, descending, nulls_first })
}
