//! sysbench's tables: `sbtest1`, `sbtest2`, …

use std::time::Instant;

use crate::client::{Connection, Failure, push_int};
use crate::experiment::{Lab, Refusal};
use crate::progress::bar;
use crate::result::{Load, Verdict};
use crate::rng::Rng;
use crate::target::Dialect;

/// Whether there are as many tables with as many rows, told by their greatest keys.
pub fn are_there(lab: &mut Lab, tables: u16, rows: u32) -> Result<bool, Refusal> {
    let mut connection = lab.connect()?;
    for table in 1..=tables {
        let greatest = match connection.query_one(&format!("SELECT max(id) FROM sbtest{table}")) {
            Ok(greatest) => greatest.and_then(|text| text.parse::<u32>().ok()).unwrap_or(0),
            // There is no such table.
            Err(failure) if ["42P01", "42S02"].contains(&failure.state()) => return Ok(false),
            Err(failure) => return Err(failure.into()),
        };
        // What a load that was cut short has left.
        if greatest == 0 {
            return Ok(false);
        }
        if greatest != rows {
            let why = format!(
                "sbtest{table} has {greatest} rows, not {rows}: --rows {greatest} to use it, or --load to replace it"
            );
            return Err(Refusal::Options(why));
        }
    }
    Ok(true)
}

/// Makes and fills the tables.
pub fn load(lab: &mut Lab, tables: u16, rows: u32) -> Result<Load, Refusal> {
    drop(lab)?;
    let mut connection = lab.connect()?;
    let started = Instant::now();
    let mut indexing = 0.0;
    for table in 1..=tables {
        let engine = match lab.target.dialect {
            Dialect::Postgres => "",
            Dialect::MySql => " ENGINE=InnoDB",
        };
        connection.query(&format!(
            "CREATE TABLE sbtest{table} (id INTEGER NOT NULL, k INTEGER DEFAULT 0 NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)){engine}"
        ))?;
        fill(lab, &mut connection, table, rows)?;
        let indexes = Instant::now();
        connection.query(&format!("CREATE INDEX k_{table} ON sbtest{table} (k)"))?;
        connection.query(&match lab.target.dialect {
            Dialect::Postgres => format!("ANALYZE sbtest{table}"),
            Dialect::MySql => format!("ANALYZE TABLE sbtest{table}"),
        })?;
        indexing += indexes.elapsed().as_secs_f64();
    }
    lab.progress.clear();
    let rows_seconds = started.elapsed().as_secs_f64() - indexing;
    Ok(Load { rows: u64::from(rows) * u64::from(tables), rows_seconds, index_seconds: indexing })
}

fn fill(lab: &mut Lab, connection: &mut Connection, table: u16, rows: u32) -> Result<(), Refusal> {
    let mut rng = Rng::new(lab.seed, (1 << 50) + u64::from(table));
    let (mut id, started, progress) = (0, Instant::now(), &mut lab.progress);
    let counted = connection.copy_in(&format!("sbtest{table} (id, k, c, pad)"), |out| {
        if id < rows {
            id += 1;
            push_int(out, i64::from(id));
            out.push(b'\t');
            push_int(out, rng.uniform(1, i64::from(rows)));
            out.push(b'\t');
            push_groups(out, 10, &mut rng);
            out.push(b'\t');
            push_groups(out, 5, &mut rng);
            out.push(b'\n');
            if id % 4096 == 0 {
                progress.show(|| bar(&format!("sbtest{table}"), u64::from(id), u64::from(rows), started));
            }
        }
        id < rows
    })?;
    if counted != u64::from(rows) {
        return Err(Refusal::Options(format!("the server took {counted} rows of {rows}")));
    }
    Ok(())
}

/// sysbench's strings: groups of eleven digits, joined by dashes.
pub fn push_groups(out: &mut Vec<u8>, groups: usize, rng: &mut Rng) {
    for group in 0..groups {
        if group > 0 {
            out.push(b'-');
        }
        let mut rest = rng.uniform(0, 99_999_999_999);
        let start = out.len();
        out.resize(start + 11, b'0');
        for digit in out[start..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
}

/// Drops all tables of the name.
pub fn drop(lab: &mut Lab) -> Result<(), Refusal> {
    let mut connection = lab.connect()?;
    let here = match lab.target.dialect {
        Dialect::Postgres => "current_schema()",
        Dialect::MySql => "database()",
    };
    connection.query(&format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = {here} AND table_name LIKE 'sbtest%'"
    ))?;
    let name = |row: usize| String::from_utf8_lossy(connection.row(row).bytes(0)).into_owned();
    let names: Vec<String> = (0..connection.row_count()).map(name).collect();
    names.iter().try_for_each(|name| Ok(connection.query(&format!("DROP TABLE {name}"))?))
}

/// Every key once: replacing rows must neither lose nor invent one.
pub fn verify(lab: &mut Lab, tables: u16, rows: u32) -> Result<Vec<Verdict>, Refusal> {
    let mut connection = lab.connect()?;
    let look = |table| -> Result<Verdict, Failure> {
        connection.query(&format!("SELECT count(*), count(DISTINCT id), min(id), max(id) FROM sbtest{table}"))?;
        let row = connection.first("counts")?;
        let found = [row.int(0)?, row.int(1)?, row.int(2)?, row.int(3)?];
        let rows = i64::from(rows);
        Ok(Verdict {
            says: format!("sbtest{table} has the keys 1 to {rows}, each once"),
            holds: found == [rows, rows, 1, rows],
            found: format!("{} rows with {} keys from {} to {}", found[0], found[1], found[2], found[3]),
        })
    };
    (1..=tables).map(look).collect::<Result<_, _>>().map_err(Refusal::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_groups_of_digits() {
        let mut out = Vec::new();
        push_groups(&mut out, 10, &mut Rng::new(1, 0));
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.len(), 119);
        assert!(text.split('-').all(|group| group.len() == 11 && group.bytes().all(|b| b.is_ascii_digit())));
    }
}
