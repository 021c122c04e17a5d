//! CREATE EXTENSION and DROP EXTENSION, where the only extension is the one that every database has.

use base::{Error, Result, SqlState};
use rupg_sql::nodes::{CreateExtensionStmt, DropStmt, Node};

use super::Cx;
use crate::system;

pub(super) fn create(cx: &mut Cx<'_>, stmt: &CreateExtensionStmt) -> Result<&'static str> {
    let name = stmt.extname.as_deref().unwrap_or_default();
    if !system::is_extension(name) {
        return Err(Error::unsupported(format!("extension \"{name}\" is not available"))
            .hint("The extension must first be installed on the system where PostgreSQL is running."));
    }
    let message = format!("extension \"{name}\" already exists");
    if !stmt.if_not_exists {
        return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
    }
    cx.notice(SqlState::DUPLICATE_OBJECT, format!("{message}, skipping"));
    Ok("CREATE EXTENSION")
}

/// Refuses to drop what cannot be made again.
pub(super) fn refuse_drop(stmt: &DropStmt) -> Result<()> {
    let is_named = |node: &Node| matches!(node, Node::String(name) if system::is_extension(name));
    match stmt.objects.iter().flatten().any(is_named) {
        true => Err(Error::unsupported("extension \"plpgsql\" is always there and cannot be dropped")),
        false => Ok(()),
    }
}
