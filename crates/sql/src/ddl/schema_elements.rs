//! What CREATE SCHEMA makes inside of the schema: sequences first, then tables, views, indexes, and grants at the end.

use base::{Error, Result, SqlState};
use rupg_sql::nodes::{Node, RangeVar};

use super::{Cx, quote_name, run};

/// Makes the elements, with names that mean what is in the new schema first.
pub(super) async fn create(cx: &mut Cx<'_>, schema: &str, elements: &[Option<Node>]) -> Result<()> {
    let mut elements: Vec<(u8, Node)> = elements.iter().flatten().map(|node| (rank(node), node.clone())).collect();
    elements.sort_by_key(|(rank, _)| *rank);
    for (_, node) in &mut elements {
        let Some(name) = relation(node) else { continue };
        match &name.schemaname {
            Some(given) if **given != *schema => {
                let message =
                    format!("CREATE specifies a schema ({given}) different from the one being created ({schema})");
                return Err(Error::new(SqlState::INVALID_SCHEMA_DEFINITION, message));
            }
            _ => name.schemaname = Some(schema.into()),
        }
    }
    let before = cx.session.current_setting("search_path")?;
    let inside = match before.is_empty() {
        true => quote_name(schema),
        false => format!("{}, {before}", quote_name(schema)),
    };
    cx.session.set_search_path(&inside)?;
    for (_, node) in &elements {
        if Box::pin(run(cx.session, node, cx.sql)).await?.is_none() {
            return Err(Error::unsupported("this element of CREATE SCHEMA is not supported"));
        }
    }
    cx.session.set_search_path(&before)
}

fn rank(node: &Node) -> u8 {
    match node {
        Node::CreateSeqStmt(_) => 0,
        Node::CreateStmt(_) => 1,
        Node::ViewStmt(_) => 2,
        Node::IndexStmt(_) => 3,
        Node::CreateTrigStmt(_) => 4,
        _ => 5,
    }
}

/// The name of what an element makes, or makes something for.
fn relation(node: &mut Node) -> Option<&mut RangeVar> {
    match node {
        Node::CreateSeqStmt(stmt) => stmt.sequence.as_deref_mut(),
        Node::CreateStmt(stmt) => stmt.relation.as_deref_mut(),
        Node::ViewStmt(stmt) => stmt.view.as_deref_mut(),
        Node::IndexStmt(stmt) => stmt.relation.as_deref_mut(),
        Node::CreateTrigStmt(stmt) => stmt.relation.as_deref_mut(),
        _ => None,
    }
}
