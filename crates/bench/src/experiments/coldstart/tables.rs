//! Three tables – like sysbench's, narrow, wide –, their rows, their indexes, and what must be found in them again.

use crate::client::{Connection, Failure, push_int};
use crate::progress::Line;
use crate::rng::Rng;

use super::Refusal;

/// Rows are sent in commands of so many.
const PER_COPY: u64 = 50_000;
/// Rows looked up by their primary keys.
const LOOK_UPS: u64 = 200;

/// A table of the experiment.
struct Table {
    name: &'static str,
    create: &'static str,
    /// Bytes of a row as the server keeps it, roughly.
    row_bytes: u64,
    row: fn(&mut Rng, u64, &mut Vec<u8>),
    primary: &'static str,
    secondary: &'static [&'static str],
    /// A number that depends on all rows and on all columns.
    sum: &'static str,
    /// Queries by secondary indexes, whose sum over all rows is the count of rows.
    rows: u64,
}

/// The tables with their sizes.
pub struct Tables(Vec<Table>);

const WIDE_TEXTS: usize = 16;

fn tables() -> [Table; 3] {
    [
        Table {
            name: "cs_sbtest",
            create: "id int NOT NULL, k int NOT NULL, c char(120) NOT NULL, pad char(60) NOT NULL",
            row_bytes: 192,
            row: |rng, id, out| {
                push_int(out, id as i64);
                out.push(b'\t');
                push_int(out, rng.uniform(1, 1 << 30));
                for groups in [10, 5] {
                    out.push(b'\t');
                    for group in 0..groups {
                        if group > 0 {
                            out.push(b'-');
                        }
                        push_int(out, rng.uniform(10_000_000_000, 99_999_999_999));
                    }
                }
                out.push(b'\n');
            },
            primary: "id",
            secondary: &["CREATE INDEX cs_sbtest_k ON cs_sbtest (k)"],
            sum: "sum(id::bigint * 31 + k), sum(hashtext(c || pad)::bigint)",
            rows: 0,
        },
        Table {
            name: "cs_narrow",
            create: "id bigint NOT NULL, owner int, amount int NOT NULL",
            row_bytes: 24,
            row: |rng, id, out| {
                push_int(out, id as i64);
                out.push(b'\t');
                match rng.percent(10) {
                    true => out.extend_from_slice(b"\\N"),
                    false => push_int(out, rng.uniform(1, 100_000)),
                }
                out.push(b'\t');
                push_int(out, rng.uniform(-1000, 1000));
                out.push(b'\n');
            },
            primary: "id",
            secondary: &["CREATE INDEX cs_narrow_owner ON cs_narrow (owner)"],
            sum: "sum(id * 7 + coalesce(owner, -1)), sum(amount)",
            rows: 0,
        },
        Table {
            name: "cs_wide",
            create: "id bigint NOT NULL, email text NOT NULL, made timestamp NOT NULL, price numeric(12,2), \
                     t1 text, t2 text, t3 text, t4 text, t5 text, t6 text, t7 text, t8 text, \
                     t9 text, t10 text, t11 text, t12 text, t13 text, t14 text, t15 text, t16 text",
            row_bytes: 1100,
            row: |rng, id, out| {
                push_int(out, id as i64);
                out.extend_from_slice(b"\tuser");
                push_int(out, rng.uniform(0, 1 << 40));
                out.extend_from_slice(b"@example.org\t2024-01-");
                push_int(out, rng.uniform(10, 28));
                out.extend_from_slice(b" 10:20:30\t");
                push_int(out, rng.uniform(0, 100_000_000));
                out.extend_from_slice(b".25");
                for _ in 0..WIDE_TEXTS {
                    out.push(b'\t');
                    for _ in 0..10 {
                        out.extend_from_slice(WORDS[rng.uniform(0, WORDS.len() as i64 - 1) as usize].as_bytes());
                    }
                }
                out.push(b'\n');
            },
            primary: "id",
            secondary: &[
                "CREATE UNIQUE INDEX cs_wide_email ON cs_wide (email, id)",
                "CREATE INDEX cs_wide_made ON cs_wide (made)",
            ],
            sum: "sum(id), sum(hashtext(email || t1 || t7 || t16)::bigint), sum(price), max(made)",
            rows: 0,
        },
    ]
}

const WORDS: [&str; 16] = [
    "acacia ", "bush ", "dune ", "eland ", "forest ", "gazelle ", "hill ", "impala ", "kudu ", "lion ", "marsh ",
    "nyala ", "oryx ", "plain ", "river ", "savanna ",
];

impl Tables {
    /// So many megabytes, shared out.
    pub fn of(megabytes: u32, shares: &[u8]) -> Tables {
        let bytes = u64::from(megabytes) << 20;
        let with_rows = tables()
            .into_iter()
            .zip(shares.iter().chain([&0; 3]))
            .map(|(table, share)| Table { rows: bytes / 100 * u64::from(*share) / table.row_bytes, ..table });
        Tables(with_rows.collect())
    }

    /// Rows of all.
    pub fn rows(&self) -> u64 {
        self.0.iter().map(|table| table.rows).sum()
    }

    /// Makes and fills them; some rows are changed and some deleted afterwards, so that the log has more than insertions.
    ///
    /// # Errors
    /// Of the server.
    pub fn load(&self, connection: &mut Connection, seed: u64, progress: &mut Line) -> Result<(), Failure> {
        for (number, table) in self.0.iter().enumerate() {
            let name = table.name;
            connection.query(&format!("CREATE TABLE {name} ({})", table.create))?;
            let mut rng = Rng::new(seed, number as u64);
            for from in (0..table.rows).step_by(PER_COPY as usize) {
                progress.show(|| format!("loading {name}: {from} of {} rows", table.rows));
                let to = table.rows.min(from + PER_COPY);
                let mut id = from;
                connection.copy_in(name, |out| {
                    if id < to {
                        id += 1;
                        (table.row)(&mut rng, id, out);
                    }
                    id < to
                })?;
            }
            progress.show(|| format!("changing {name}"));
            connection.query(&format!("DELETE FROM {name} WHERE id % 100 = 7"))?;
        }
        connection.query("UPDATE cs_sbtest SET k = k + 1 WHERE id % 20 = 3")?;
        connection.query("ALTER TABLE cs_narrow ADD COLUMN note text DEFAULT 'none'")?;
        connection.query("UPDATE cs_narrow SET note = 'some' WHERE id % 50 = 1")
    }

    /// Makes primary keys, or the other indexes.
    ///
    /// # Errors
    /// Of the server.
    pub fn index(&self, connection: &mut Connection, primary: bool) -> Result<(), Failure> {
        for table in &self.0 {
            if primary {
                connection.query(&format!("ALTER TABLE {} ADD PRIMARY KEY ({})", table.name, table.primary))?;
            } else {
                table.secondary.iter().try_for_each(|sql| connection.query(sql))?;
            }
        }
        Ok(())
    }

    /// Takes away what [`Tables::index`] makes.
    ///
    /// # Errors
    /// Of the server.
    pub fn drop_indexes(&self, connection: &mut Connection) -> Result<(), Failure> {
        for table in &self.0 {
            connection.query(&format!("ALTER TABLE {0} DROP CONSTRAINT IF EXISTS {0}_pkey", table.name))?;
            for sql in table.secondary {
                let name = sql.split_whitespace().find(|word| word.starts_with("cs_")).unwrap_or_default();
                connection.query(&format!("DROP INDEX IF EXISTS {name}"))?;
            }
        }
        Ok(())
    }

    /// What is in the tables: a line per table, with a count and sums over all columns.
    ///
    /// # Errors
    /// Of the server.
    pub fn look(&self, connection: &mut Connection) -> Result<Vec<String>, Failure> {
        self.0
            .iter()
            .map(|table| {
                connection.query(&format!("SELECT count(*), {} FROM {}", table.sum, table.name))?;
                let row = connection.first(table.name)?;
                let cells = row.cells().map(|cell| String::from_utf8_lossy(cell.unwrap_or(b"null")).into_owned());
                Ok(format!("{}: {}", table.name, cells.collect::<Vec<_>>().join(" ")))
            })
            .collect()
    }

    /// Finds some rows by their primary keys, and through an index each, whether there is one or not.
    ///
    /// # Errors
    /// If one is not there, or the server fails.
    pub fn look_up(&self, connection: &mut Connection, seed: u64) -> Result<(), Refusal> {
        let mut rng = Rng::new(seed, 77);
        for table in self.0.iter().filter(|table| table.rows > 0) {
            // Without an index each look-up is a scan.
            let has_index = format!("SELECT count(*) FROM pg_index WHERE indrelid = '{}'::regclass", table.name);
            if connection.query_one(&has_index)?.as_deref() == Some("0") {
                continue;
            }
            for _ in 0..LOOK_UPS {
                let id = rng.uniform(1, table.rows as i64);
                let count = connection.query_one(&format!("SELECT count(*) FROM {} WHERE id = {id}", table.name))?;
                let expected = if id % 100 == 7 { "0" } else { "1" };
                if count.as_deref() != Some(expected) {
                    return Err(Refusal::Lost(format!("{}: row {id} is found {count:?} times", table.name)));
                }
            }
        }
        let by_index = [
            ("cs_sbtest", "k BETWEEN 1 AND 1100000000"),
            ("cs_narrow", "owner BETWEEN 1 AND 100000 OR owner IS NULL"),
            ("cs_wide", "made >= '2024-01-01'"),
        ];
        for (table, condition) in by_index {
            let all = connection.query_one(&format!("SELECT count(*) FROM {table}"))?;
            connection.query("SET enable_seqscan = off")?;
            let found = connection.query_one(&format!("SELECT count(*) FROM {table} WHERE {condition}"))?;
            connection.query("RESET enable_seqscan")?;
            if all != found {
                return Err(Refusal::Lost(format!("{table}: {condition} finds {found:?} rows of {all:?}")));
            }
        }
        Ok(())
    }
}
