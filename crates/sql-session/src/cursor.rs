//! DECLARE, FETCH, MOVE, CLOSE: what the statements say; `portal` does it.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use rupg_sql::nodes::{
    CURSOR_OPT_ASENSITIVE, CURSOR_OPT_BINARY, CURSOR_OPT_HOLD, CURSOR_OPT_INSENSITIVE, CURSOR_OPT_NO_SCROLL,
    CURSOR_OPT_SCROLL, ClosePortalStmt, DeclareCursorStmt, FETCH_ALL, FetchDirection, FetchStmt, Node, SelectStmt,
};
use sql_exec::Execution;

use super::portal::{Direction, Passing, Portal, Scroll};
use super::statement::StatementBody;
use super::{Arguments, Block, Output, ResultColumn, Session};

fn unknown(name: &str) -> Error {
    Error::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

/// What the options exclude.
fn check_options(stmt: &DeclareCursorStmt, select: &SelectStmt) -> Result<()> {
    let has = |option| stmt.options & option != 0;
    if has(CURSOR_OPT_SCROLL) && has(CURSOR_OPT_NO_SCROLL) {
        let message = "cannot specify both SCROLL and NO SCROLL";
        return Err(Error::new(SqlState::INVALID_CURSOR_DEFINITION, message));
    }
    if has(CURSOR_OPT_ASENSITIVE) && has(CURSOR_OPT_INSENSITIVE) {
        let message = "cannot specify both ASENSITIVE and INSENSITIVE";
        return Err(Error::new(SqlState::INVALID_CURSOR_DEFINITION, message));
    }
    let changes = |node: &Option<Node>| match node {
        Some(Node::CommonTableExpr(cte)) => !matches!(cte.ctequery, Some(Node::SelectStmt(_))),
        _ => false,
    };
    if select.withClause.as_ref().is_some_and(|with| with.ctes.iter().any(changes)) {
        return Err(Error::unsupported("DECLARE CURSOR must not contain data-modifying statements in WITH"));
    }
    let Some(Some(Node::LockingClause(lock))) = select.lockingClause.first() else { return Ok(()) };
    let strength = sql_bind::clause_name(lock.strength);
    if has(CURSOR_OPT_HOLD) {
        return Err(Error::unsupported(format!("DECLARE CURSOR WITH HOLD ... {strength} is not supported"))
            .detail("Holdable cursors must be READ ONLY."));
    }
    if has(CURSOR_OPT_SCROLL) {
        return Err(Error::unsupported(format!("DECLARE SCROLL CURSOR ... {strength} is not supported"))
            .detail("Scrollable cursors must be READ ONLY."));
    }
    if has(CURSOR_OPT_INSENSITIVE) {
        let message = format!("DECLARE INSENSITIVE CURSOR ... {strength} is not valid");
        return Err(
            Error::new(SqlState::INVALID_CURSOR_DEFINITION, message).detail("Insensitive cursors must be READ ONLY.")
        );
    }
    Ok(())
}

/// What DECLARE is refused for when it is parsed.
pub(super) fn check_declared(
    session: &mut Session,
    stmt: &DeclareCursorStmt,
    sql: &str,
    types: &[Oid],
    infer: bool,
) -> Result<Vec<Oid>> {
    let Some(node) = &stmt.query else { return Ok(types.to_vec()) };
    if let Node::SelectStmt(select) = node {
        check_options(stmt, select)?;
    }
    Ok(session.bind_cursor(node, sql, &Arguments { types: types.to_vec(), values: Vec::new() }, infer)?.param_types)
}

pub(super) async fn declare(
    session: &mut Session,
    stmt: &DeclareCursorStmt,
    sql: &str,
    out: &mut dyn Output,
) -> Result<&'static str> {
    let name = stmt.portalname.as_deref().unwrap_or_default();
    let has = |option| stmt.options & option != 0;
    if let Some(Node::SelectStmt(select)) = &stmt.query {
        check_options(stmt, select)?;
    }
    if !has(CURSOR_OPT_HOLD) && session.block == Block::None && !session.implicit_block {
        return Err(Error::new(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            "DECLARE CURSOR can only be used in transaction blocks",
        ));
    }
    if name.is_empty() {
        return Err(Error::new(SqlState::INVALID_CURSOR_NAME, "invalid cursor name: must not be empty"));
    }
    let node = stmt.query.as_ref().ok_or_else(|| Error::internal("DECLARE CURSOR without a query"))?;
    session.ensure_transaction()?;
    let catalog = session.catalog();
    session.refresh_binding(&catalog);
    let arguments = session.arguments();
    let statement = Arc::new(session.bind_cursor(node, sql, &arguments, false)?);
    if session.portals.contains(name) {
        return Err(Error::new(SqlState::DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
    }
    if matches!(&statement.kind, StatementBody::Query(query) if query.changes_in_with()) {
        return Err(Error::unsupported("DECLARE CURSOR must not contain data-modifying statements in WITH"));
    }
    let statement = session.begin_query(&statement).await?;
    let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
    let mut portal = Portal::new(Arc::clone(&statement), Vec::new(), session.savepoints.len());
    portal.execution = Some(Execution::new(Arc::clone(&query.plan), arguments.values));
    portal.view = Some(session.transaction().keep_view());
    portal.hold = has(CURSOR_OPT_HOLD);
    portal.binary = has(CURSOR_OPT_BINARY);
    portal.scroll = if has(CURSOR_OPT_SCROLL) {
        Scroll::Yes
    } else if has(CURSOR_OPT_NO_SCROLL) || !query.plan.goes_backward() {
        Scroll::No
    } else {
        Scroll::Unasked
    };
    session.end_query(out);
    session.add_portal(name, portal)?;
    Ok("DECLARE CURSOR")
}

/// FETCH and MOVE. Answers the tag.
pub(super) async fn fetch(session: &mut Session, stmt: &FetchStmt, out: &mut dyn Output) -> Result<String> {
    let name = stmt.portalname.as_deref().unwrap_or_default();
    let mut portal = session.portals.remove(name).ok_or_else(|| unknown(name))?;
    let result = advance(session, stmt, name, &mut portal, out).await;
    session.put_portal_back(name, portal);
    let rows = result?;
    Ok(format!("{} {rows}", if stmt.ismove { "MOVE" } else { "FETCH" }))
}

fn direction(stmt: &FetchStmt) -> Direction {
    let count = |count: i64| (count != FETCH_ALL).then_some(count.unsigned_abs());
    match (stmt.direction, stmt.howMany) {
        (FetchDirection::FETCH_FORWARD, n) if n >= 0 => Direction::Forward(count(n)),
        (FetchDirection::FETCH_FORWARD, n) => Direction::Backward(count(n)),
        (FetchDirection::FETCH_BACKWARD, n) if n >= 0 => Direction::Backward(count(n)),
        (FetchDirection::FETCH_BACKWARD, n) => Direction::Forward(count(n)),
        (FetchDirection::FETCH_ABSOLUTE, n) => Direction::Absolute(n),
        (_, n) => Direction::Relative(n),
    }
}

async fn advance(
    session: &mut Session,
    stmt: &FetchStmt,
    name: &str,
    portal: &mut Portal,
    out: &mut dyn Output,
) -> Result<u64> {
    let statement = Arc::clone(&portal.statement);
    let StatementBody::Query(query) = &statement.kind else { return Err(Error::internal("a cursor without a query")) };
    session.ensure_transaction()?;
    session.start_portal(portal).await?;
    if stmt.ismove {
        let rows = session.move_portal(name, portal, direction(stmt), &mut Passing::Dropped).await?;
        session.end_query(out);
        return Ok(rows);
    }
    out.binary(portal.binary);
    out.columns(&query.columns);
    let result = session.move_portal(name, portal, direction(stmt), &mut Passing::Sent(&mut *out)).await;
    out.binary(false);
    session.end_query(out);
    result
}

/// The columns that FETCH of a cursor returns.
pub(super) fn columns(session: &Session, stmt: &FetchStmt) -> Option<Arc<[ResultColumn]>> {
    let portal = session.portals.get(stmt.portalname.as_deref().unwrap_or_default())?;
    if stmt.ismove { None } else { portal.statement.columns() }
}

pub(super) fn close(session: &mut Session, stmt: &ClosePortalStmt) -> Result<&'static str> {
    match stmt.portalname.as_deref() {
        None => {
            session.retain_portals(|_| false);
            Ok("CLOSE CURSOR ALL")
        }
        Some(name) => match session.remove_portal(name) {
            true => Ok("CLOSE CURSOR"),
            false => Err(unknown(name)),
        },
    }
}
