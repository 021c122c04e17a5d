//! sysbench's tables: `sbtest1`, `sbtest2`, …

use std::time::Instant;

use crate::client::{Failure, push_int};
use crate::experiments::{Lab, Refusal};
use crate::result::{Load, Verdict};
use crate::rng::Rng;
use crate::schema;
use crate::target::Dialect;

/// Whether there are as many tables with as many rows, told by their greatest keys.
pub fn are_there(lab: &mut Lab, tables: u16, rows: u32) -> Result<bool, Refusal> {
    let mut connection = lab.connect()?;
    for table in 1..=tables {
        let greatest = format!("SELECT coalesce(max(id), 0) FROM sbtest{table}");
        let greatest = schema::int_if_there(&mut connection, &greatest)?;
        if !schema::fits(&format!("rows of sbtest{table}"), greatest, rows.into(), "--rows")? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes and fills the tables.
pub fn load(lab: &mut Lab, tables: u16, rows: u32) -> Result<Load, Refusal> {
    drop(lab)?;
    let (mut connection, started) = (lab.connect()?, Instant::now());
    let mut index_seconds = 0.0;
    for table in 1..=tables {
        let name = format!("sbtest{table}");
        let columns = "id INTEGER NOT NULL, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
                       pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)";
        schema::create(lab, &mut connection, &format!("{name} ({columns})"))?;
        let mut rng = Rng::new(lab.seed, (1 << 50) + u64::from(table));
        schema::fill(lab, &mut connection, &format!("{name} (id, k, c, pad)"), rows.into(), |id, out| {
            push_int(out, id as i64);
            out.push(b'\t');
            push_int(out, rng.uniform(1, i64::from(rows)));
            out.push(b'\t');
            push_groups(out, 10, &mut rng);
            out.push(b'\t');
            push_groups(out, 5, &mut rng);
            out.push(b'\n');
        })?;
        let indexes = Instant::now();
        connection.query(&format!("CREATE INDEX k_{table} ON {name} (k)"))?;
        schema::analyze(lab, &mut connection, &name)?;
        index_seconds += indexes.elapsed().as_secs_f64();
    }
    let rows_seconds = started.elapsed().as_secs_f64() - index_seconds;
    Ok(Load { rows: u64::from(rows) * u64::from(tables), rows_seconds, index_seconds })
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
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(schema::drop_all(&mut connection, &names)?)
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
