//! The initial population of clause 4.3.3.1, through COPY, by several connections at once.
//!
//! The work is cut into jobs of at most 30,000 rows, each one COPY or a few; a job's rows depend only on the seed and
//! the job, so a load gives the same rows whatever the number of connections. `warehouse` is filled last, after the
//! indexes are made: a database whose warehouses can be counted is complete, but for foreign keys.

use std::time::{Instant, SystemTime};

use super::random::*;
use super::schema;
use crate::client::{Connection, Failure, push_cents, push_int};
use crate::parallel;
use crate::progress::Line;
use crate::rng::Rng;
use crate::schema::drop_all;
use crate::target::{Dialect, Target};

/// Orders of a district from this one on are not delivered when the load ends: 900 of them.
const FIRST_NEW_ORDER: i64 = 2_101;
/// Rows of one COPY of items or stock.
const SLICE: i64 = 10_000;

/// What to load, and how.
pub struct Load<'a> {
    /// Where.
    pub target: &'a Target,
    /// How many warehouses.
    pub warehouses: i64,
    /// How many connections.
    pub connections: usize,
    /// Source of every value.
    pub seed: u64,
    /// Whether to add foreign keys at the end.
    pub foreign_keys: bool,
}

/// What a load took.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadReport {
    /// Rows of all tables.
    pub rows: u64,
    /// Until the last row was in, but for the few of `warehouse`.
    pub copy_seconds: f64,
    /// Indexes, warehouses, foreign keys and statistics.
    pub index_seconds: f64,
    /// Statements for the planner's benefit that the server refused, each with its error.
    pub refused: Vec<String>,
}

#[derive(Clone, Copy)]
enum Job {
    Items(i64),
    Stock(i64, i64),
    Districts(i64),
    Customers(i64, i64),
    Orders(i64, i64),
}

fn jobs(warehouses: i64) -> Vec<Job> {
    let mut jobs: Vec<Job> = (1..=ITEMS).step_by(SLICE as usize).map(Job::Items).collect();
    for w in 1..=warehouses {
        jobs.push(Job::Districts(w));
        jobs.extend((1..=ITEMS).step_by(SLICE as usize).map(|from| Job::Stock(w, from)));
        jobs.extend((1..=DISTRICTS).flat_map(|d| [Job::Orders(w, d), Job::Customers(w, d)]));
    }
    jobs
}

/// Drops what is there, creates the tables and fills them.
pub fn load(load: &Load<'_>, progress: &mut Line) -> Result<LoadReport, Failure> {
    let mut main = Connection::open(load.target)?;
    drop_all(&mut main, &schema::TABLES)?;
    schema::create_tables(&mut main, load.target.dialect)?;
    let started = Instant::now();
    let (jobs, constants) = (jobs(load.warehouses), Constants::load(&mut Rng::new(load.seed, u64::MAX)));
    // Ten lines per order on average, as many orders and payments as customers, 900 undelivered orders.
    let expected = ITEMS + load.warehouses * (1 + DISTRICTS * (1 + CUSTOMERS * 13 + 900) + ITEMS);
    let plan = parallel::Plan {
        target: load.target,
        connections: load.connections,
        seed: load.seed,
        jobs: jobs.len(),
        expected_rows: expected as u64,
    };
    let rows = parallel::run(&plan, progress, |at, connection, rng| run(jobs[at], connection, rng, &constants))?;
    let copy_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    schema::INDEXES.iter().try_for_each(|sql| main.query(sql))?;
    let mut rng = Rng::new(load.seed, u64::MAX - 1);
    let mut w = 0;
    let rows = rows
        + main.copy_in("warehouse", |out| {
            w += 1;
            warehouse(out, &mut rng, w);
            w < load.warehouses
        })?;
    if load.foreign_keys {
        schema::FOREIGN_KEYS.iter().try_for_each(|sql| main.query(sql))?;
    }
    let refused = settle(&mut main, load.target.dialect)?;
    Ok(LoadReport { rows, copy_seconds, index_seconds: started.elapsed().as_secs_f64(), refused })
}

/// Gives a server that wants it the chance to know its tables and to write them out before the measurement.
fn settle(connection: &mut Connection, dialect: Dialect) -> Result<Vec<String>, Failure> {
    let mut refused = Vec::new();
    let (analyze, last) = match dialect {
        Dialect::Postgres => ("VACUUM ANALYZE", "CHECKPOINT"),
        Dialect::MySql => ("ANALYZE TABLE", "FLUSH LOGS"),
    };
    let all = schema::TABLES.iter().map(|table| format!("{analyze} {table}"));
    for sql in all.chain([last.to_string()]) {
        match connection.query(&sql) {
            Err(error @ Failure::Server { .. }) => refused.push(format!("{sql}: {error}")),
            other => other?,
        }
    }
    Ok(refused)
}

/// Does a job; answers how many rows it has made.
fn run(job: Job, connection: &mut Connection, rng: &mut Rng, constants: &Constants) -> Result<u64, Failure> {
    let mut rows = 0;
    let mut copy = |table: &str, from: i64, to: i64, row: &mut dyn FnMut(&mut Vec<u8>, i64)| {
        let mut at = from;
        rows += connection.copy_in(table, |out| {
            row(out, at);
            at += 1;
            at <= to
        })?;
        Ok::<_, Failure>(())
    };
    match job {
        Job::Items(from) => copy("item", from, from + SLICE - 1, &mut |out, i| item(out, rng, i))?,
        Job::Stock(w, from) => copy("stock", from, from + SLICE - 1, &mut |out, i| stock(out, rng, w, i))?,
        Job::Districts(w) => copy("district", 1, DISTRICTS, &mut |out, d| district(out, rng, w, d))?,
        Job::Customers(w, d) => {
            copy("customer", 1, CUSTOMERS, &mut |out, c| customer(out, rng, constants, w, d, c))?;
            copy("history", 1, CUSTOMERS, &mut |out, c| history(out, rng, w, d, c))?;
        }
        Job::Orders(w, d) => {
            let mut customers: Vec<i64> = (1..=CUSTOMERS).collect();
            rng.shuffle(&mut customers);
            let lines: Vec<i64> = (0..CUSTOMERS).map(|_| rng.uniform(5, 15)).collect();
            let index = |o: i64| (o - 1) as usize;
            copy("orders", 1, CUSTOMERS, &mut |out, o| order(out, rng, w, d, o, customers[index(o)], lines[index(o)]))?;
            copy("order_line", 1, CUSTOMERS, &mut |out, o| order_lines(out, rng, w, d, o, lines[index(o)]))?;
            copy("new_order", FIRST_NEW_ORDER, CUSTOMERS, &mut |out, o| {
                Fields(out).int(w).int(d).int(o).end();
            })?;
        }
    }
    Ok(rows)
}

/// Writes one row of COPY's text format, field by field.
struct Fields<'a>(&'a mut Vec<u8>);

impl Fields<'_> {
    fn field(self, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        write(self.0);
        self.0.push(b'\t');
        self
    }

    fn int(self, value: i64) -> Self {
        self.field(|out| push_int(out, value))
    }

    fn cents(self, value: i64) -> Self {
        self.field(|out| push_cents(out, value))
    }

    fn raw(self, text: &str) -> Self {
        self.field(|out| out.extend_from_slice(text.as_bytes()))
    }

    fn text(self, rng: &mut Rng, low: i64, high: i64) -> Self {
        self.field(|out| push_text(out, rng, low, high))
    }

    /// Street, street, city, state, zip: clause 4.3.3.1 has the same in three tables.
    fn address(self, rng: &mut Rng) -> Self {
        self.text(rng, 10, 20).text(rng, 10, 20).text(rng, 10, 20).text(rng, 2, 2).field(|out| push_zip(out, rng))
    }

    /// A rate from 0 to `high` ten-thousandths.
    fn rate(self, rng: &mut Rng, high: i64) -> Self {
        let rate = rng.uniform(0, high);
        self.field(|out| out.extend_from_slice(format!("0.{rate:04}").as_bytes()))
    }

    fn now(self) -> Self {
        self.field(|out| push_time(out, SystemTime::now()))
    }

    fn end(self) {
        self.0.pop();
        self.0.push(b'\n');
    }
}

fn item(out: &mut Vec<u8>, rng: &mut Rng, i: i64) {
    let row = Fields(out).int(i).int(rng.uniform(1, 10_000)).text(rng, 14, 24);
    row.cents(rng.uniform(100, 10_000)).field(|out| push_data(out, rng)).end();
}

fn warehouse(out: &mut Vec<u8>, rng: &mut Rng, w: i64) {
    Fields(out).int(w).text(rng, 6, 10).address(rng).rate(rng, 2_000).raw("300000.00").end();
}

fn district(out: &mut Vec<u8>, rng: &mut Rng, w: i64, d: i64) {
    let row = Fields(out).int(w).int(d).text(rng, 6, 10).address(rng).rate(rng, 2_000);
    row.raw("30000.00").int(CUSTOMERS + 1).end();
}

fn stock(out: &mut Vec<u8>, rng: &mut Rng, w: i64, i: i64) {
    let mut row = Fields(out).int(w).int(i).int(rng.uniform(10, 100));
    for _ in 0..DISTRICTS {
        row = row.text(rng, 24, 24);
    }
    row.int(0).int(0).int(0).field(|out| push_data(out, rng)).end();
}

fn customer(out: &mut Vec<u8>, rng: &mut Rng, constants: &Constants, w: i64, d: i64, c: i64) {
    // The first thousand customers have all the last names once.
    let name = if c <= 1000 { c - 1 } else { constants.last_name(rng) };
    let row = Fields(out).int(w).int(d).int(c).text(rng, 8, 16).raw("OE").field(|out| push_last_name(out, name));
    let row = row.address(rng).field(|out| push_digits(out, rng, 16)).now();
    let row = row.raw(if rng.percent(10) { "BC" } else { "GC" }).raw("50000.00").rate(rng, 5_000);
    row.raw("-10.00").raw("10.00").int(1).int(0).text(rng, 300, 500).end();
}

fn history(out: &mut Vec<u8>, rng: &mut Rng, w: i64, d: i64, c: i64) {
    Fields(out).int(c).int(d).int(w).int(d).int(w).now().raw("10.00").text(rng, 12, 24).end();
}

fn order(out: &mut Vec<u8>, rng: &mut Rng, w: i64, d: i64, o: i64, customer: i64, lines: i64) {
    let row = Fields(out).int(w).int(d).int(o).int(customer).now();
    let row = if o < FIRST_NEW_ORDER { row.int(rng.uniform(1, 10)) } else { row.raw("\\N") };
    row.int(lines).int(1).end();
}

fn order_lines(out: &mut Vec<u8>, rng: &mut Rng, w: i64, d: i64, o: i64, lines: i64) {
    for number in 1..=lines {
        let row = Fields(out).int(w).int(d).int(o).int(number).int(rng.uniform(1, ITEMS)).int(w);
        let delivered = o < FIRST_NEW_ORDER;
        let row = if delivered { row.now() } else { row.raw("\\N") }.int(5);
        row.cents(if delivered { 0 } else { rng.uniform(1, 999_999) }).text(rng, 24, 24).end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_as_many_fields_as_their_tables_have_columns() {
        let mut rng = Rng::new(1, 0);
        let constants = Constants::load(&mut rng);
        let mut check = |table: &str, write: &mut dyn FnMut(&mut Vec<u8>, &mut Rng)| {
            let create = schema::CREATE.iter().find(|c| c.starts_with(&format!("CREATE TABLE {table} ("))).unwrap();
            let columns = create.lines().skip(1).filter(|l| !l.contains("PRIMARY KEY")).count();
            let mut out = Vec::new();
            write(&mut out, &mut rng);
            for line in String::from_utf8(out).unwrap().lines() {
                assert_eq!(line.split('\t').count(), columns, "{table}: {line}");
            }
        };
        check("item", &mut |o, r| item(o, r, 1));
        check("warehouse", &mut |o, r| warehouse(o, r, 1));
        check("district", &mut |o, r| district(o, r, 1, 1));
        check("stock", &mut |o, r| stock(o, r, 1, 1));
        check("customer", &mut |o, r| customer(o, r, &constants, 1, 1, 1));
        check("history", &mut |o, r| history(o, r, 1, 1, 1));
        check("orders", &mut |o, r| order(o, r, 1, 1, 3000, 7, 5));
        check("order_line", &mut |o, r| order_lines(o, r, 1, 1, 1, 15));
    }

    #[test]
    fn every_part_is_loaded_once() {
        let jobs = jobs(2);
        let count = |which: fn(&Job) -> bool| jobs.iter().filter(|j| which(j)).count();
        assert_eq!(count(|j| matches!(j, Job::Items(_))), 10);
        assert_eq!(count(|j| matches!(j, Job::Stock(2, _))), 10);
        assert_eq!(count(|j| matches!(j, Job::Orders(..))), 20);
        assert_eq!(count(|j| matches!(j, Job::Customers(..))), 20);
        assert_eq!(count(|j| matches!(j, Job::Districts(_))), 2);
    }
}
