//! COPY FROM STDIN and COPY TO STDOUT, in text, CSV and binary format.
//!
//! Responsible for: options, splitting the stream into rows and fields, escapes, error context (`COPY t, line 3`).
//! Not responsible for: storing rows – they go through the plan of `INSERT INTO t (…) VALUES ($1, …)`, so that defaults,
//! constraints and foreign keys are those of any INSERT.

mod binary;
mod fields;
mod format;
mod from;
mod to;

use base::{Error, Result, SqlState};
use engine_api::TableDesc;
use rupg_sql::nodes::CopyStmt;

use self::format::Format;
use super::block::text_of;
use super::{Output, Session};
use crate::ddl::quote_name;

/// Rows between two turns for other connections of the core.
const ROWS_PER_TURN: u64 = 200;

/// The longest line that is accepted: PostgreSQL's limit of a string.
const LINE_BYTES_MAX: usize = 1 << 30;

pub(super) async fn copy(session: &mut Session, stmt: &CopyStmt, sql: &str, out: &mut dyn Output) -> Result<String> {
    if stmt.filename.is_some() || stmt.is_program {
        return Err(Error::unsupported("COPY to or from a file on the server is not supported")
            .hint("Use COPY FROM STDIN or COPY TO STDOUT; psql's \\copy does."));
    }
    if stmt.whereClause.is_some() {
        return Err(Error::unsupported("COPY FROM with WHERE is not supported"));
    }
    let format = Format::parse(&stmt.options, stmt.is_from, sql)?;
    session.ensure_transaction()?;
    if stmt.is_from {
        from::copy_from(session, stmt, sql, format, out).await
    } else {
        to::copy_to(session, stmt, sql, format, out).await
    }
}

/// The columns a COPY is about: those named, or all.
fn columns_of(table: &TableDesc, stmt: &CopyStmt) -> Result<Vec<usize>> {
    if stmt.attlist.is_empty() {
        return Ok(table.live_columns().map(|c| c.number as usize - 1).collect());
    }
    let mut columns = Vec::new();
    for node in stmt.attlist.iter().flatten() {
        let name = text_of(node).unwrap_or_default();
        let column = table.column(&name).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
            )
        })?;
        let at = column.number as usize - 1;
        if columns.contains(&at) {
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, format!("column \"{name}\" specified more than once")));
        }
        columns.push(at);
    }
    Ok(columns)
}

fn names(table: &TableDesc, columns: &[usize]) -> String {
    columns.iter().map(|&c| quote_name(&table.columns[c].name)).collect::<Vec<_>>().join(", ")
}

/// COPY's errors about its table point nowhere.
fn without_position(mut error: Error) -> Error {
    error.fields_mut().position = None;
    error
}
