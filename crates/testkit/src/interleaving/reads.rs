//! Schedules of transactions that read and change a few rows, for counting how many of them a server lets commit.
//!
//! One table, `item (id, u, v)`. Rows are read by key, by range, whole and by a condition that no index helps with. No statement waits
//! for long: transactions are short, and a session that waits for a row continues when its holder ends.

use super::Step;
use crate::random::Random;

/// Before each schedule.
pub const START: [&str; 3] = [
    "DROP TABLE IF EXISTS item",
    "CREATE TABLE item (id int PRIMARY KEY, u int NOT NULL, v int NOT NULL)",
    "INSERT INTO item SELECT i, i, 10 * i FROM generate_series(1, 6) AS g (i)",
];

/// What transactions do beside reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// UPDATE of rows by key, of a column that no index has.
    Updates,
    /// INSERT, DELETE and changes of keys too.
    All,
}

/// A schedule of this many sessions, all SERIALIZABLE, each with one transaction that is committed.
pub fn schedule(random: &mut Random, sessions: usize, changes: Changes) -> Vec<Step> {
    let mut left: Vec<Vec<String>> = (0..sessions)
        .map(|_| {
            let mut statements = vec!["COMMIT".to_string()];
            statements.extend((0..1 + random.below(3)).map(|_| statement(random, changes)));
            statements.push("BEGIN ISOLATION LEVEL SERIALIZABLE".to_string());
            statements
        })
        .collect();
    let mut steps = Vec::new();
    while left.iter().any(|statements| !statements.is_empty()) {
        let session = random.below(sessions as u64) as usize;
        steps.extend(left[session].pop().map(|sql| Step { session, sql }));
    }
    steps
}

fn statement(random: &mut Random, changes: Changes) -> String {
    let (id, other) = (1 + random.below(6), 1 + random.below(6));
    let kinds = if changes == Changes::All { 16 } else { 11 };
    match random.below(kinds) {
        0 | 1 => format!("SELECT v FROM item WHERE id = {id}"),
        2 => format!("SELECT sum(v) FROM item WHERE id BETWEEN {} AND {}", id.min(other), id.max(other)),
        3 => "SELECT sum(v) FROM item".to_string(),
        4 => format!("SELECT count(*) FROM item WHERE u = {id}"),
        5..=8 => format!("UPDATE item SET v = v + 1 WHERE id = {id}"),
        9 => format!("UPDATE item SET v = (SELECT v FROM item WHERE id = {other}) WHERE id = {id}"),
        10 => format!("UPDATE item SET v = v + 1 WHERE id = {id} AND u = {other}"),
        11 | 12 => format!("INSERT INTO item VALUES ({}, 0, 0) ON CONFLICT DO NOTHING", 5 + random.below(4)),
        13 => format!("DELETE FROM item WHERE id = {id}"),
        14 => format!("UPDATE item SET id = {} WHERE id = {id}", 7 + random.below(3)),
        _ => format!("UPDATE item SET u = {other} WHERE id = {id}"),
    }
}
