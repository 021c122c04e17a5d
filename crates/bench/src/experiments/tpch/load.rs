//! Fills the tables through COPY, by several connections at once.
//!
//! The work is cut into slices of keys; a slice's rows depend only on the seed and the slice, so a load gives the same
//! rows whatever the number of connections, and to every server.

use std::time::Instant;

use serde::Serialize;

use super::rows::{self, Sizes};
use super::schema;
use super::words::Text;
use crate::client::{Connection, Failure};
use crate::parallel;
use crate::progress::Line;
use crate::rng::Rng;
use crate::schema::drop_all;
use crate::target::Target;

/// Keys of one slice.
const SLICE: i64 = 5_000;

/// What to load, and how.
pub struct Load<'a> {
    /// Where.
    pub target: &'a Target,
    /// Scale factor.
    pub scale: f64,
    /// How many connections.
    pub connections: usize,
    /// Source of every value.
    pub seed: u64,
}

/// What a load took.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// Rows of all tables.
    pub rows: u64,
    /// Until the last row was in, but for those of `region`.
    pub copy_seconds: f64,
    /// Indexes and statistics.
    pub index_seconds: f64,
}

/// Keys of a table.
#[derive(Clone, Copy)]
struct Slice {
    table: Table,
    from: i64,
    to: i64,
}

#[derive(Clone, Copy)]
enum Table {
    Nation,
    Supplier,
    Part,
    PartSupp,
    Customer,
    Orders,
}

fn slices(sizes: &Sizes) -> Vec<Slice> {
    let mut slices = Vec::new();
    let tables = [
        (Table::Orders, sizes.orders),
        (Table::PartSupp, sizes.parts),
        (Table::Part, sizes.parts),
        (Table::Customer, sizes.customers),
        (Table::Supplier, sizes.suppliers),
        (Table::Nation, 25),
    ];
    for (table, count) in tables {
        let each = (1..=count).step_by(SLICE as usize);
        slices.extend(each.map(|from| Slice { table, from, to: count.min(from + SLICE - 1) }));
    }
    slices
}

/// Replaces the tables and fills them.
pub fn load(load: &Load<'_>, progress: &mut Line) -> Result<LoadReport, Failure> {
    let mut main = Connection::open(load.target)?;
    drop_all(&mut main, &schema::TABLES)?;
    schema::create_tables(&mut main)?;
    let started = Instant::now();
    let sizes = Sizes::of(load.scale);
    let (text, slices) = (Text::new(), slices(&sizes));
    let plan = parallel::Plan {
        target: load.target,
        connections: load.connections,
        seed: load.seed,
        jobs: slices.len(),
        expected_rows: sizes.rows() as u64,
    };
    let rows = parallel::run(&plan, progress, |at, connection, rng| fill(slices[at], connection, rng, &text, &sizes))?;
    let copy_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    schema::INDEXES.iter().try_for_each(|sql| main.query(sql))?;
    let (mut rng, mut key) = (Rng::new(load.seed, u64::MAX), 0);
    let rows = rows
        + main.copy_in("region", |out| {
            rows::region(out, &mut rng, &text, key);
            key += 1;
            key < 5
        })?;
    schema::TABLES.iter().try_for_each(|table| main.query(&format!("ANALYZE {table}")))?;
    Ok(LoadReport { rows, copy_seconds, index_seconds: started.elapsed().as_secs_f64() })
}

/// Fills a slice; answers how many rows it has made.
fn fill(slice: Slice, connection: &mut Connection, rng: &mut Rng, text: &Text, sizes: &Sizes) -> Result<u64, Failure> {
    let mut rows = 0;
    let mut copy = |table: &str, row: &mut dyn FnMut(&mut Vec<u8>, i64)| {
        let mut at = slice.from;
        rows += connection.copy_in(table, |out| {
            row(out, at);
            at += 1;
            at <= slice.to
        })?;
        Ok::<_, Failure>(())
    };
    match slice.table {
        Table::Nation => copy("nation", &mut |out, key| rows::nation(out, rng, text, key - 1)),
        Table::Supplier => copy("supplier", &mut |out, key| rows::supplier(out, rng, text, key)),
        Table::Part => copy("part", &mut |out, key| rows::part(out, rng, text, key)),
        Table::PartSupp => copy("partsupp", &mut |out, key| rows::part_suppliers(out, rng, text, sizes, key)),
        Table::Customer => copy("customer", &mut |out, key| rows::customer(out, rng, text, key)),
        Table::Orders => {
            let mut lines: Vec<Vec<u8>> = Vec::with_capacity(SLICE as usize);
            copy("orders", &mut |out, key| {
                let mut of_order = Vec::new();
                rows::order(out, &mut of_order, rng, text, sizes, key);
                lines.push(of_order);
            })?;
            copy("lineitem", &mut |out, key| out.extend_from_slice(&lines[(key - slice.from) as usize]))
        }
    }?;
    Ok(rows)
}
