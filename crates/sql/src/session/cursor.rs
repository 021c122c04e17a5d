//! DECLARE, FETCH, MOVE, CLOSE: cursors that go forward and end with their transaction.
//!
//! Invariant: a cursor's first row is read when it is declared, so that its scans see what its declaration saw.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use rupg_sql::nodes::{
    CURSOR_OPT_BINARY, CURSOR_OPT_HOLD, CURSOR_OPT_SCROLL, ClosePortalStmt, DeclareCursorStmt, FETCH_ALL,
    FetchDirection, FetchStmt,
};

use super::internal::{NoRows, Rows};
use super::statement::Kind;
use super::{Block, Output, Portal, Session};
use crate::exec::{Execution, OutputRow};

fn unknown(name: &str) -> Error {
    Error::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

pub(super) async fn declare(
    session: &mut Session,
    stmt: &DeclareCursorStmt,
    sql: &str,
    out: &mut dyn Output,
) -> Result<&'static str> {
    let name = stmt.portalname.as_deref().unwrap_or_default();
    if stmt.options & CURSOR_OPT_HOLD == 0 && session.block == Block::None {
        return Err(Error::new(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            "DECLARE CURSOR can only be used in transaction blocks",
        ));
    }
    for (option, word) in [(CURSOR_OPT_HOLD, "WITH HOLD"), (CURSOR_OPT_SCROLL, "SCROLL"), (CURSOR_OPT_BINARY, "BINARY")]
    {
        if stmt.options & option != 0 {
            return Err(Error::unsupported(format!("{word} cursors are not supported")));
        }
    }
    if session.portals.contains_key(name) {
        return Err(Error::new(SqlState::DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
    }
    let node = stmt.query.as_ref().ok_or_else(|| Error::internal("DECLARE CURSOR without a query"))?;
    let statement = Arc::new(session.bind_query(node, sql, &[], 0, false)?);
    if matches!(&statement.kind, Kind::Query(query) if query.changes_in_with()) {
        return Err(Error::unsupported("DECLARE CURSOR must not contain data-modifying statements in WITH"));
    }
    let statement = session.begin_query(&statement).await?;
    let Kind::Query(query) = &statement.kind else { return Err(Error::internal("not a query")) };
    let mut execution = Execution::new(Arc::clone(&query.plan), Vec::new());
    let mut rows = Rows::default();
    let (_, finished) = session.drive_some(&mut execution, &mut rows, 1).await?;
    session.end_query(out);
    let portal = Portal {
        statement: Arc::clone(&statement),
        params: Vec::new(),
        execution: Some(execution),
        ahead: rows.0,
        finished,
    };
    session.portals.insert(name.to_string(), portal);
    Ok("DECLARE CURSOR")
}

/// FETCH and MOVE. Answers the tag.
pub(super) async fn fetch(session: &mut Session, stmt: &FetchStmt, out: &mut dyn Output) -> Result<String> {
    let name = stmt.portalname.as_deref().unwrap_or_default();
    let mut portal = session.portals.remove(name).ok_or_else(|| unknown(name))?;
    let result = advance(session, stmt, &mut portal, out).await;
    session.portals.insert(name.to_string(), portal);
    let rows = result?;
    Ok(format!("{} {rows}", if stmt.ismove { "MOVE" } else { "FETCH" }))
}

async fn advance(session: &mut Session, stmt: &FetchStmt, portal: &mut Portal, out: &mut dyn Output) -> Result<u64> {
    let wanted = match (stmt.direction, u64::try_from(stmt.howMany)) {
        (FetchDirection::FETCH_FORWARD, Ok(0)) => return Err(Error::unsupported("FETCH 0 is not supported")),
        (FetchDirection::FETCH_FORWARD, Ok(count)) => count,
        _ => {
            return Err(Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
                .hint("Declare it with SCROLL option to enable backward scan."));
        }
    };
    let statement = Arc::clone(&portal.statement);
    let Kind::Query(query) = &statement.kind else { return Err(Error::internal("a cursor without a query")) };
    if !stmt.ismove {
        out.columns(&query.columns);
    }
    let mut rows = portal.ahead.len().min(usize::try_from(wanted).unwrap_or(usize::MAX));
    let settings = session.output_settings();
    for row in portal.ahead.drain(..rows) {
        if !stmt.ismove {
            out.row(OutputRow::of(&row), &query.columns, &settings);
        }
    }
    let Some(execution) = portal.execution.as_mut().filter(|_| !portal.finished) else { return Ok(rows as u64) };
    let more = if stmt.howMany == FETCH_ALL { 0 } else { wanted - rows as u64 };
    if more > 0 || stmt.howMany == FETCH_ALL {
        let (count, finished) = match stmt.ismove {
            true => session.drive_some(execution, &mut NoRows, more).await?,
            false => session.drive(execution, query, more, out).await?,
        };
        rows += count as usize;
        portal.finished = finished;
        session.end_query(out);
    }
    Ok(rows as u64)
}

pub(super) fn close(session: &mut Session, stmt: &ClosePortalStmt) -> Result<&'static str> {
    match stmt.portalname.as_deref() {
        None => {
            session.portals.clear();
            Ok("CLOSE CURSOR ALL")
        }
        Some(name) => match session.portals.remove(name) {
            Some(_) => Ok("CLOSE CURSOR"),
            None => Err(unknown(name)),
        },
    }
}
