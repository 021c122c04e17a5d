//! Schedules about locks of rows, keys and parents.
//!
//! Two tables of few rows, `parent (id, u, v)` and `child (id, parent, v)`, and statements that lock, change, refer and collide. Rows are
//! found by their keys and in the order of them, so that both servers come to them in the same order.
//!
//! A transaction changes a child no second time: PostgreSQL then locks the parent, whether or not the key has changed
//! (COMPATIBILITY.md).

use super::Step;
use crate::random::Random;

/// Before each schedule.
pub const START: [&str; 5] = [
    "DROP TABLE IF EXISTS child, parent",
    "CREATE TABLE parent (id int PRIMARY KEY, u int UNIQUE, v int)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent, v int)",
    "INSERT INTO parent VALUES (1, 1, 10), (2, 2, 20), (3, 3, 30)",
    "INSERT INTO child VALUES (1, 1, 1), (2, 2, 2)",
];

/// For each session: rows are found by their keys.
pub const SETTINGS: [&str; 2] = ["SET enable_seqscan = off", "SET enable_bitmapscan = off"];

/// What is asked when a schedule is over.
pub const END: [&str; 2] = ["SELECT * FROM parent ORDER BY id", "SELECT * FROM child ORDER BY id"];

const MODES: [&str; 4] = ["KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"];

/// What a session has open, as far as is known before it runs.
#[derive(Clone, Copy, Default)]
struct SessionLocks {
    is_open: bool,
    has_savepoint: bool,
    /// Children that the transaction has changed, or tried to.
    changed: [bool; CHILDREN],
}

/// Children that statements change: from 1 to this.
const CHILDREN: usize = 2;

/// A schedule of this many sessions at an isolation level.
pub fn schedule(random: &mut Random, sessions: usize, level: &str) -> Vec<Step> {
    let mut states = vec![SessionLocks::default(); sessions];
    let length = 4 + random.below(12) as usize;
    let mut steps = Vec::new();
    while steps.len() < length {
        let session = random.below(sessions as u64) as usize;
        let state = &mut states[session];
        if !state.is_open {
            state.is_open = true;
            steps.push(Step { session, sql: format!("BEGIN ISOLATION LEVEL {level}") });
        }
        let sql = match random.below(20) {
            0 | 1 => {
                *state = SessionLocks::default();
                random.pick(&["COMMIT", "COMMIT", "ROLLBACK"]).to_string()
            }
            2 if state.has_savepoint => "ROLLBACK TO s".to_string(),
            2 | 3 => {
                state.has_savepoint = true;
                "SAVEPOINT s".to_string()
            }
            _ => statement(random, &mut state.changed),
        };
        steps.push(Step { session, sql });
    }
    steps
}

fn statement(random: &mut Random, changed: &mut [bool; CHILDREN]) -> String {
    let child = random.below(CHILDREN as u64) as usize;
    let mut change = |set: String| {
        let before = std::mem::replace(&mut changed[child], true);
        (!before).then(|| format!("UPDATE child SET {set} WHERE id = {} RETURNING v", child + 1))
    };
    let look = || "SELECT * FROM parent ORDER BY id".to_string();
    let (id, other) = (1 + random.below(3), 1 + random.below(4));
    let new = 4 + random.below(2);
    match random.below(24) {
        0..=5 => lock(random),
        6 | 7 => format!("UPDATE parent SET v = v + 1 WHERE id = {id} RETURNING v"),
        8 => format!("UPDATE parent SET id = id, v = v + 1 WHERE id = {id} RETURNING v"),
        9 => format!("UPDATE parent SET u = u WHERE id = {id}"),
        10 => format!("UPDATE parent SET u = {new} WHERE id = {id}"),
        11 => format!("UPDATE parent SET id = {new} WHERE id = {id}"),
        12 => format!("UPDATE parent SET v = v + 1 WHERE id BETWEEN 1 AND {id} AND v < {}", 10 * other + 5),
        13 => format!("DELETE FROM parent WHERE id = {id}"),
        14 | 15 => {
            let conflict =
                random.pick(&["", "", " ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO UPDATE SET v = parent.v + 1"]);
            format!("INSERT INTO parent VALUES ({}, {new}, 0){conflict} RETURNING id, u, v", 2 + random.below(4))
        }
        16 | 17 => format!("INSERT INTO child VALUES ({}, {other}, 0)", 2 + random.below(4)),
        18 => change(format!("parent = {other}")).unwrap_or_else(look),
        19 => change("v = v + 1".to_string()).unwrap_or_else(look),
        20 => format!("DELETE FROM child WHERE id = {}", 1 + random.below(2)),
        21 => format!("UPDATE parent SET v = 1 / (v - 10) WHERE id = {id} AND v > 10 RETURNING v"),
        22 => format!("DELETE FROM parent WHERE id BETWEEN 2 AND 3 AND v < {} RETURNING id", 10 * other + 5),
        _ => look(),
    }
}

/// A query that locks rows.
fn lock(random: &mut Random) -> String {
    let mode = random.pick(&MODES);
    let policy = random.pick(&["", "", "", "", " NOWAIT", " SKIP LOCKED"]);
    let condition = match random.below(6) {
        0 => "id BETWEEN 1 AND 2".to_string(),
        1 => format!("id BETWEEN 1 AND 3 AND v > {}", 5 + 10 * random.below(3)),
        2 => format!("id = {} AND v > 15", 1 + random.below(3)),
        _ => format!("id = {}", 1 + random.below(3)),
    };
    match random.below(8) {
        0 => format!("SELECT id, v FROM child WHERE id = 1 FOR {mode}{policy}"),
        1 => format!(
            "SELECT c.id, p.v FROM child c JOIN parent p ON p.id = c.parent WHERE c.id = 1 FOR {mode} OF p{policy}"
        ),
        _ => format!("SELECT id, v FROM parent WHERE {condition} ORDER BY id FOR {mode}{policy}"),
    }
}
