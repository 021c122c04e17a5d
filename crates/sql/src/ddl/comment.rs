//! COMMENT ON a table or a column. Comments on other objects are taken and not kept.

use base::{Error, Result, SqlState};
use engine_api::{CatalogObject, TableLockMode};
use rupg_sql::nodes::{CommentStmt, Node, ObjectType, RangeVar};

use super::Cx;
use super::names::strings;

pub(super) async fn comment(cx: &mut Cx<'_>, stmt: &CommentStmt) -> Result<&'static str> {
    let of_column = match stmt.objtype {
        ObjectType::OBJECT_TABLE => false,
        ObjectType::OBJECT_COLUMN => true,
        _ => return Ok("COMMENT"),
    };
    let Some(Node::List(names)) = &stmt.object else { return Ok("COMMENT") };
    let mut names = strings(names);
    let column = if of_column { names.pop() } else { None };
    let range = RangeVar {
        relname: names.pop().map(Into::into),
        schemaname: names.pop().map(Into::into),
        location: -1,
        ..Default::default()
    };
    let table = cx.table_named(&range)?;
    cx.lock(table.oid, TableLockMode::ShareUpdateExclusive).await?;
    // It may have been altered meanwhile.
    let mut table = cx.table_named(&range)?;
    let number = match column {
        None => 0,
        Some(column) => table.column(&column).map(|c| c.number).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{column}\" of relation \"{}\" does not exist", table.name),
            )
        })?,
    };
    match stmt.comment.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => table.comments.insert(number, text.to_string()),
        None => table.comments.remove(&number),
    };
    cx.put(CatalogObject::Table(table)).await?;
    Ok("COMMENT")
}
