//! The records that are in the table, and whether they are those that should be.

use super::TABLE;
use super::keys::key;
use crate::client::Connection;
use crate::expected::RollCall;
use crate::experiments::Refusal;
use crate::result::Verdict;

/// Keys that are read at a time.
const PAGE: usize = 50_000;
/// Numbers in a row that may be missing, of inserts that have failed.
const LONGEST_GAP: u64 = 1_000_000;

/// Records from before a run.
pub struct Present {
    /// Rising.
    numbers: Vec<u64>,
}

/// Every key, in the server's order.
fn keys(connection: &mut Connection) -> Result<Vec<String>, Refusal> {
    let (mut all, mut last): (Vec<String>, String) = (Vec::new(), String::new());
    loop {
        connection.query(&format!(
            "SELECT ycsb_key FROM {TABLE} WHERE ycsb_key > '{}' ORDER BY ycsb_key LIMIT {PAGE}",
            last.replace('\'', "''")
        ))?;
        let count = connection.row_count();
        all.extend((0..count).map(|at| String::from_utf8_lossy(connection.row(at).bytes(0)).into_owned()));
        if count < PAGE {
            return Ok(all);
        }
        last = all[all.len() - 1].clone();
    }
}

impl Present {
    /// Reads all keys and finds their numbers.
    pub fn read(connection: &mut Connection) -> Result<Present, Refusal> {
        let mut keys = keys(connection)?;
        keys.sort_unstable();
        let (mut missing, mut numbers, mut gap) = (keys.len(), Vec::with_capacity(keys.len()), 0);
        for number in 0.. {
            if missing == 0 || gap > LONGEST_GAP {
                break;
            }
            if keys.binary_search(&key(number)).is_ok() {
                numbers.push(number);
                (missing, gap) = (missing - 1, 0);
            } else {
                gap += 1;
            }
        }
        if missing > 0 {
            return Err(Refusal::Options(format!(
                "{TABLE} has {missing} keys of another origin: --load to replace it"
            )));
        }
        Ok(Present { numbers })
    }

    /// Rising.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// The first number above all.
    pub fn next(&self) -> u64 {
        self.numbers.last().map_or(0, |last| last + 1)
    }
}

/// Whether the table has the records of the start and those that were acknowledged, and no other but those whose end is not known.
pub fn verdict(
    connection: &mut Connection,
    start: &[u64],
    acknowledged: &[u64],
    unknown: &[u64],
) -> Result<Verdict, Refusal> {
    let sorted = |numbers: &mut dyn Iterator<Item = &u64>| {
        let mut keys: Vec<String> = numbers.map(|&number| key(number)).collect();
        keys.sort_unstable();
        keys
    };
    let must = sorted(&mut start.iter().chain(acknowledged));
    let may = sorted(&mut unknown.iter());
    let mut found = keys(connection)?;
    // The server's order is that of its collation.
    found.sort_unstable();
    let mut roll = RollCall::new(&must, &may);
    found.iter().for_each(|key| roll.see(key));
    Ok(roll.verdict("the table has every loaded and every acknowledged record, and no other"))
}
