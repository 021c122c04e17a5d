//! What CREATE SCHEMA makes inside of the schema: sequences first, then tables, views, indexes, and grants at the end.

use base::{Error, Result, SqlState};
use rupg_sql::nodes::{Node, RangeVar};
use sql_parse::names::quote_name;

use super::names::tokens;
use super::{Cx, run};

/// Makes the elements, with names that mean what is in the new schema first.
pub(super) async fn create(cx: &mut Cx<'_>, schema: &str, elements: &[Option<Node>]) -> Result<()> {
    let ends = ends(cx.sql, elements.len());
    let elements = elements.iter().flatten().zip(ends);
    let mut elements: Vec<(u8, Node, usize)> = elements.map(|(node, end)| (rank(node), node.clone(), end)).collect();
    elements.sort_by_key(|(rank, ..)| *rank);
    for (_, node, _) in &mut elements {
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
    let inside = match before.trim_ascii().is_empty() {
        true => quote_name(schema),
        false => format!("{}, {before}", quote_name(schema)),
    };
    cx.session.set_search_path(&inside)?;
    for (_, node, end) in &elements {
        // What is taken from the text of a statement ends with its element.
        if Box::pin(run(cx.session, node, &cx.sql[..*end])).await?.is_none() {
            return Err(Error::unsupported("this element of CREATE SCHEMA is not supported"));
        }
    }
    cx.session.set_search_path(&before)
}

/// Where each of so many elements ends in the text: where the next one begins.
fn ends(sql: &str, count: usize) -> Vec<usize> {
    let all = tokens(sql, 0);
    let mut starts = Vec::new();
    let mut depth = 0;
    for (at, token) in all.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |at| all[at].word.as_str());
        let after = all.get(at + 1).map_or("", |token| token.word.as_str());
        match token.word.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "create" if depth == 0 && before != "grant" && before != "," => starts.push(token.start),
            "grant" if depth == 0 && after != "option" => starts.push(token.start),
            _ => {}
        }
    }
    // The first one is the schema itself.
    let mut ends: Vec<usize> = starts.into_iter().skip(2).collect();
    ends.resize(count, sql.len());
    ends
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
