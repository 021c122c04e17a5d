//! COPY FROM STDIN and COPY TO STDOUT, in text, CSV and binary format.
//!
//! Responsible for: options, splitting the stream into rows and fields, escapes, error context (`COPY t, line 3`).
//! Not responsible for: storing rows – they go through the plan of an INSERT of parameters, so that defaults, constraints and
//! foreign keys are those of any INSERT (`sql_bind::own`).

mod binary;
mod condition;
mod fields;
mod format;
mod from;
mod to;

use base::{Error, Result, SqlState};
use engine_api::{Privileges, TableDesc, TableLockMode};
use rupg_sql::nodes::CopyStmt;
use sql_bind::own::stored_columns;
use sql_parse::privileges;
use sql_parse::text_of;

use self::format::Format;
use super::{Output, Session};

/// Rows between two turns for other connections of the core.
const ROWS_PER_TURN: u64 = 200;

/// Rows that are read before they are stored: what a run of the INSERT costs beside its rows is paid once for them.
const ROWS_PER_BATCH: usize = 50;

pub(super) async fn copy(session: &mut Session, stmt: &CopyStmt, sql: &str, out: &mut dyn Output) -> Result<String> {
    if stmt.filename.is_some() || stmt.is_program {
        return Err(Error::unsupported("COPY to or from a file on the server is not supported")
            .hint("Use COPY FROM STDIN or COPY TO STDOUT; psql's \\copy does."));
    }
    let format = Format::parse(&stmt.options, stmt.is_from, sql)?;
    session.ensure_transaction()?;
    if stmt.is_from {
        from::copy_from(session, stmt, sql, format, out).await
    } else {
        to::copy_to(session, stmt, sql, format, out).await
    }
}

/// Refuses whom the columns of a relation are not open to, where the statement goes no further than to its kind: for a table the
/// query that is made asks.
fn require_columns(session: &Session, table: &TableDesc, columns: &[usize], wanted: Privileges) -> Result<()> {
    let (catalog, who) = (session.catalog(), session.who());
    let Some(object) = catalog.get(table.oid) else { return Ok(()) };
    let on_column =
        |&at: &usize| privileges::held_on_column(&catalog, who, table.oid, table.columns[at].number).contains(wanted);
    if columns.iter().all(on_column) { Ok(()) } else { privileges::require(&catalog, who, object, wanted) }
}

/// A table as it is once it is locked.
async fn locked(session: &mut Session, table: &TableDesc, mode: TableLockMode) -> Result<TableDesc> {
    session.lock_tables(&[(table.oid, mode)]).await?;
    let message = || format!("relation \"{}\" does not exist", table.name);
    session.catalog().table(table.oid).cloned().ok_or_else(|| Error::new(SqlState::UNDEFINED_TABLE, message()))
}

/// The columns a COPY is about: those named, or all.
fn columns_of(table: &TableDesc, stmt: &CopyStmt) -> Result<Vec<usize>> {
    if stmt.attlist.is_empty() {
        return Ok(stored_columns(table));
    }
    let mut columns = Vec::new();
    for node in stmt.attlist.iter().flatten() {
        let name = text_of(node).unwrap_or_default();
        let column = table.column(&name).ok_or_else(|| no_column(&name, table))?;
        if column.generated.is_some() {
            let message = format!("column \"{name}\" is a generated column");
            return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message)
                .detail("Generated columns cannot be used in COPY."));
        }
        let at = column.number as usize - 1;
        if columns.contains(&at) {
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, format!("column \"{name}\" specified more than once")));
        }
        columns.push(at);
    }
    Ok(columns)
}

/// The columns that an option names must be among those that are copied.
fn check_forced(option: &str, named: &[String], table: &TableDesc, columns: &[usize]) -> Result<()> {
    for name in named {
        let column = table.column(name).ok_or_else(|| no_column(name, table))?;
        if !columns.contains(&(column.number as usize - 1)) {
            let message = format!("{option} column \"{name}\" not referenced by COPY");
            return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
    }
    Ok(())
}

fn no_column(name: &str, table: &TableDesc) -> Error {
    let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
    Error::new(SqlState::UNDEFINED_COLUMN, message)
}

/// COPY's errors about its table point nowhere.
fn without_position(mut error: Error) -> Error {
    error.fields_mut().position = None;
    error
}
