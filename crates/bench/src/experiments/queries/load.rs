//! Fills the databases of the statements.
//!
//! Each schema has a database of its own. Its rows come from INSERT … SELECT over the temporary table `noise`, which has the same
//! rows whatever the server: `i` from 1, columns `a` to `h` and `j` to `q` uniform in [0, 1) with nine digits, `v` to `y` words. What is
//! skewed or correlated is so by the expression: `floor(1000 * a * a)` is skewed, two columns made of `a` go together.

use std::io::Write;
use std::time::Instant;

use super::list::Schema;
use crate::client::{Connection, Failure};
use crate::rng::Rng;
use crate::target::Target;

/// Rows of `noise`: as many as the largest table has.
const ROWS: u32 = 300_000;
const NUMBERS: [char; 16] = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q'];
const TEXTS: [char; 4] = ['v', 'w', 'x', 'y'];
const WORDS: [&str; 20] = [
    "amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "hazel", "iris", "jade", "kiwi", "lotus", "maple",
    "north", "olive", "pearl", "quartz", "river", "sable", "tulip",
];
/// The parameters of the statements name rows that this seed gives.
const SEED: u64 = 1;

/// Makes the database of a schema anew, and fills it. Returns the seconds that it took.
///
/// # Errors
/// Of the server; the message says which statement failed.
pub fn load(schema: &Schema, server: &Target, analyze: bool) -> Result<f64, Failure> {
    let started = Instant::now();
    let mut connection = Connection::open(server)?;
    connection.query(&format!("DROP DATABASE IF EXISTS {}", schema.name))?;
    connection.query(&format!("CREATE DATABASE {}", schema.name))?;
    let mut connection = Connection::open(&database(server, schema.name))?;
    let (tables, indexes) = schema.definitions();
    run(&mut connection, tables)?;
    noise(&mut connection)?;
    run(&mut connection, schema.data())?;
    connection.query("DROP TABLE noise")?;
    run(&mut connection, indexes)?;
    if analyze {
        connection.query("ANALYZE")?;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// The same server, another database.
pub fn database(server: &Target, name: &str) -> Target {
    Target { database: name.into(), ..server.clone() }
}

/// Runs statements one by one: each ends with a semicolon at the end of a line.
fn run(connection: &mut Connection, texts: &str) -> Result<(), Failure> {
    for text in texts.split(";\n").map(str::trim).filter(|text| !text.is_empty()) {
        connection.query(text).map_err(|failure| match failure {
            Failure::Server { state, message } => {
                let begin: String = text.chars().take(120).collect();
                Failure::Server { state, message: format!("{message}: {begin}") }
            }
            lost => lost,
        })?;
    }
    Ok(())
}

fn noise(connection: &mut Connection) -> Result<(), Failure> {
    let column = |ty: &'static str| move |name: &char| format!("{name} {ty}");
    let columns: Vec<String> = NUMBERS.iter().map(column("float8")).chain(TEXTS.iter().map(column("text"))).collect();
    connection.query(&format!("CREATE TEMP TABLE noise (i int PRIMARY KEY, {})", columns.join(", ")))?;
    let (mut rng, mut row) = (Rng::new(SEED, 0), 0);
    connection.copy_in("noise", |out| {
        row += 1;
        let mut put = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("memory takes every byte");
        put(format_args!("{row}"));
        for _ in NUMBERS {
            put(format_args!("\t0.{:09}", rng.uniform(0, 999_999_999)));
        }
        for _ in TEXTS {
            put(format_args!("\t{}", WORDS[rng.uniform(0, WORDS.len() as i64 - 1) as usize]));
        }
        put(format_args!("\n"));
        row < ROWS
    })?;
    connection.query("ANALYZE noise")
}
