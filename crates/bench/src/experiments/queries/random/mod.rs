//! Random statements over the tables of the schemas.
//!
//! Responsible for: reading the tables ([`catalog`]), making statements of them ([`shapes`] and [`groups`] of [`sources`] and [`terms`]), executing each
//! on both servers, telling what failed.
//! Not responsible for: statements that change rows, and grammar or functions that applications rarely use; other random tests make these.
//! Invariants: a seed, a schema and a number give the same text, as long as the rows are the same; every answer is determined by the text:
//! what is cut by LIMIT is in a total order, and no result is a sum of floating-point numbers.

mod catalog;
mod groups;
mod shapes;
mod sources;
mod terms;
#[cfg(test)]
mod tests;

use super::list::{Origin, Schema, Statement};
use super::run::{self, Judged, Side};
use super::{QueriesArgs, tables};
use crate::client::Connection;
use crate::experiments::Refusal;
use crate::interrupt::{self, INTERRUPTED};
use crate::progress::Line;
use crate::result::RunFile;
use crate::servers::Product;
use crate::target::Target;
use catalog::Catalog;

/// Settings of both servers: dates do not depend on the place, and a plan that is far too slow does not hold up the rest.
const SETTINGS: [&str; 2] = ["SET TimeZone = 'UTC'", "SET statement_timeout = '20s'"];
/// SQLSTATE of a statement that did not end in time.
const CANCELLED: &str = "57014";

/// How many of `count` statements each schema gets. The seed decides which get one more.
pub fn shares(count: u32, schemas: usize, seed: u64) -> Vec<u64> {
    let (count, of) = (u64::from(count), schemas as u64);
    (0..of).map(|at| count / of + u64::from((at + seed % of) % of < count % of)).collect()
}

/// What statement `number` of a schema draws from: schemas have unrelated statements.
fn stream(schema: &str, number: u64) -> u64 {
    schema.bytes().fold(0, |all: u64, byte| all.wrapping_mul(31).wrapping_add(u64::from(byte))) << 32 | number
}

/// Makes `count` statements of a schema, executes them and prints a line for each, with text and plans if it is not good.
///
/// # Errors
/// A lost connection, and failures of reading the catalog.
pub fn ask(
    args: &QueriesArgs,
    schema: &Schema,
    (seed, count): (u64, u64),
    targets: &[Target; 2],
    progress: &mut Line,
    run: &mut RunFile,
) -> Result<(), Refusal> {
    progress.show(|| format!("{}: reading the tables", schema.name));
    let mut connection = Connection::open(&targets[0])?;
    SETTINGS.iter().try_for_each(|setting| connection.query(setting))?;
    let catalog = Catalog::read(&mut connection)?;
    drop(connection);
    let labels = [Product::Postgres.label(), Product::Nyala.label()];
    let postgres: Vec<&str> = super::POSTGRES_SETTINGS.into_iter().chain(SETTINGS).collect();
    for number in 1..=count {
        let made = shapes::statement(&catalog, seed, stream(schema.name, number));
        let (name, origin) = (format!("random_{number}"), Origin::Random(made.shape));
        if !args.wants(schema, &name, &origin.to_string()) {
            continue;
        }
        if interrupt::asked() {
            run.ended = Some(INTERRUPTED.into());
            return Ok(());
        }
        progress.show(|| format!("{}/{name}", schema.name));
        let statement = Statement { name: &name, origin, params: None, sql: &made.sql, ordered: made.ordered };
        let sides = || [Side::open(&targets[0], &postgres, &statement), Side::open(&targets[1], &SETTINGS, &statement)];
        let plans =
            || sides().map(|side| side.and_then(|mut side| side.plan()).unwrap_or_else(|error| error.to_string()));
        let planned = Side::open(&targets[0], &postgres, &statement).and_then(|mut side| side.plan());
        let mut judged = run::judge(sides(), labels, args.effort())?;
        (judged.schema, judged.name, judged.origin) = (schema.name.into(), name.clone(), origin.to_string());
        judged.scanned = planned.map_or(0, |plan| scanned(&plan, &catalog));
        judged.sql = Some(made.sql.clone());
        leave_out(&mut judged);
        if !judged.is_good() || tables::is_among_worst(&judged, &run.queries, args.worst) {
            let [first, second] = plans();
            (judged.baseline_plan, judged.plan) = (Some(first), Some(second));
        }
        progress.clear();
        match judged.is_good() {
            true => print!("{}", tables::line(&judged)),
            false => print!("{}", tables::told(&judged)),
        }
        run.queries.push(judged);
    }
    Ok(())
}

/// Statements that fail on both servers alike, and those that PostgreSQL alone does not end in time, say nothing of the other server.
fn leave_out(judged: &mut Judged) {
    let alike = match &judged.states {
        [Some(first), Some(second)] => first == second,
        [Some(first), None] => first == CANCELLED,
        _ => false,
    };
    if alike {
        judged.left_out = judged.error.take();
    }
}

/// How many rows a plan of PostgreSQL reads: all rows of the tables of its sequential scans, and of other scans as many as it expects, once.
fn scanned(plan: &str, catalog: &Catalog) -> u64 {
    let mut all = 0;
    for line in plan.lines() {
        let (Some((node, rest)), true) = (line.split_once(" on "), line.contains("(cost=")) else { continue };
        if node.ends_with("Seq Scan") {
            let name = rest.split_whitespace().next().unwrap_or_default().trim_matches('"');
            let table = catalog.tables.iter().find(|table| table.bare_name() == name);
            all += table.map_or(0, |table| table.rows);
        } else if node.contains("Index Scan") || node.contains("Index Only Scan") || node.contains("Bitmap Heap Scan") {
            let rows = rest.split_once("rows=").and_then(|(_, rest)| rest.split_whitespace().next());
            all += rows.and_then(|rows| rows.parse::<u64>().ok()).unwrap_or_default();
        }
    }
    all
}
