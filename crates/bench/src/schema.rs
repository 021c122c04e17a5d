//! What experiments do with their tables in either dialect: look for them, make them, fill them, drop them.

use std::time::Instant;

use crate::client::{Connection, Failure};
use crate::experiments::{Lab, Refusal};
use crate::interrupt::{self, INTERRUPTED};
use crate::progress::bar;
use crate::result::Load;
use crate::target::Dialect;

/// A first integer, or `None` if there is no such table.
pub fn int_if_there(connection: &mut Connection, sql: &str) -> Result<Option<i64>, Failure> {
    match int(connection, sql) {
        Err(failure) if ["42P01", "42S02"].contains(&failure.state()) => Ok(None),
        found => found.map(Some),
    }
}

/// The first cell of a query as an integer.
pub fn int(connection: &mut Connection, sql: &str) -> Result<i64, Failure> {
    connection.query(sql)?;
    connection.first(sql)?.int(0)
}

/// Makes a table: `name (column type, …)`.
pub fn create(lab: &Lab, connection: &mut Connection, table: &str) -> Result<(), Failure> {
    let engine = match lab.target.dialect {
        Dialect::Postgres => "",
        Dialect::MySql => " ENGINE=InnoDB",
    };
    connection.query(&format!("CREATE TABLE {table}{engine}"))
}

/// Drops tables, those that are there, the last first.
pub fn drop_all(connection: &mut Connection, tables: &[&str]) -> Result<(), Failure> {
    tables.iter().rev().try_for_each(|table| connection.query(&format!("DROP TABLE IF EXISTS {table}")))
}

/// Fills a table, written as `name (column, …)`, with rows 1 to `rows`, each appended by `row` in COPY's text format with
/// its newline.
pub fn fill(
    lab: &mut Lab,
    connection: &mut Connection,
    table: &str,
    rows: u64,
    mut row: impl FnMut(u64, &mut Vec<u8>),
) -> Result<(), Refusal> {
    let (mut number, started, progress) = (0, Instant::now(), &mut lab.progress);
    let name = table.split_whitespace().next().unwrap_or_default();
    let counted = connection.copy_in(table, |out| {
        if interrupt::asked() {
            return false;
        }
        if number < rows {
            number += 1;
            row(number, out);
            if number % 4096 == 0 {
                progress.show(|| bar(name, number, rows, started.elapsed()));
            }
        }
        number < rows
    })?;
    progress.clear();
    if interrupt::asked() {
        return Err(Refusal::Options(INTERRUPTED.into()));
    }
    if counted != rows {
        return Err(Refusal::Options(format!("the server took {counted} rows of {rows} of {name}")));
    }
    Ok(())
}

/// Gathers statistics of a table.
pub fn analyze(lab: &Lab, connection: &mut Connection, table: &str) -> Result<(), Failure> {
    connection.query(&match lab.target.dialect {
        Dialect::Postgres => format!("ANALYZE {table}"),
        Dialect::MySql => format!("ANALYZE TABLE {table}"),
    })
}

/// Gathers statistics of tables, and says what the load took that began at `started`.
pub fn loaded(
    lab: &Lab,
    connection: &mut Connection,
    tables: &[&str],
    rows: u64,
    started: Instant,
) -> Result<Load, Failure> {
    let (rows_seconds, analyzing) = (started.elapsed().as_secs_f64(), Instant::now());
    tables.iter().try_for_each(|table| analyze(lab, connection, table))?;
    Ok(Load { rows, rows_seconds, index_seconds: analyzing.elapsed().as_secs_f64() })
}

/// Whether tables have what the options want: nothing there is not loaded, another size is refused.
pub fn fits(what: &str, found: Option<i64>, wanted: i64, option: &str) -> Result<bool, Refusal> {
    match found.unwrap_or(0) {
        0 => Ok(false),
        found if found == wanted => Ok(true),
        found => Err(other_size(what, found, wanted, option)),
    }
}

/// What to say if tables have another size than the options want.
pub fn other_size(what: &str, found: i64, wanted: i64, option: &str) -> Refusal {
    Refusal::Options(format!("{what}: {found}, not {wanted}: {option} {found} to use them, or --load to replace them"))
}
