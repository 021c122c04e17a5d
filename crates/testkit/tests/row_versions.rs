//! `xmin` tells versions of a row apart: two never show the same, between sessions, over restarts, and whatever was lost meanwhile.
//! What object mappers do with it, an optimistic lock, loses no change.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use testkit::{Connection, Nyala, Random, Target};

const ROWS: u64 = 12;

/// The rows of an answer that must not be an error.
fn rows(connection: &mut Connection, sql: &str) -> Vec<Vec<String>> {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
    reply.rows().map(|row| row.iter().map(|value| value.clone().unwrap_or_default()).collect()).collect()
}

fn done(connection: &mut Connection, sql: &str) {
    rows(connection, sql);
}

/// What was ever shown of versions: the row, its `xmin`, and the content that stood beside.
#[derive(Default)]
struct Seen(Mutex<HashMap<(String, String), String>>);

impl Seen {
    fn note(&self, row: &str, xmin: &str, content: &str) {
        assert!(xmin.parse::<u32>().is_ok_and(|number| number >= 3), "{xmin} is no number of a transaction");
        let mut seen = self.0.lock().expect("nobody has failed");
        let before = seen.entry((row.to_string(), xmin.to_string())).or_insert_with(|| content.to_string());
        assert_eq!(before, content, "row {row}: two versions show {xmin}");
    }

    /// Notes all rows as a session sees them.
    fn look(&self, connection: &mut Connection) {
        for row in rows(connection, "SELECT id, xmin, v FROM versions ORDER BY id") {
            self.note(&row[0], &row[1], &row[2]);
        }
    }
}

/// Adds to counters as an object mapper does: reads one with its `xmin`, and writes it if that is the same still.
fn add(mut connection: Connection, mut random: Random, seen: &Seen, added: &AtomicU64, conflicts: &AtomicU64) {
    for _ in 0..150 {
        let id = 1 + random.below(2);
        let read = rows(&mut connection, &format!("SELECT v, xmin FROM versions WHERE id = {id}"));
        let (value, xmin) = (read[0][0].parse::<u64>().expect("a number"), &read[0][1]);
        seen.note(&id.to_string(), xmin, &value.to_string());
        let update = format!(
            "UPDATE versions SET v = {} WHERE id = {id} AND xmin = '{xmin}' RETURNING v, xmin, ctid, xmax",
            value + 1
        );
        match rows(&mut connection, &update).as_slice() {
            [row] => {
                added.fetch_add(1, Ordering::Relaxed);
                seen.note(&id.to_string(), &row[1], &row[0]);
            }
            [] => _ = conflicts.fetch_add(1, Ordering::Relaxed),
            more => panic!("{update}: {more:?}"),
        }
    }
}

#[test]
fn optimistic_locks_lose_nothing() {
    let target = Target::start();
    let mut connection = target.connect();
    done(&mut connection, "CREATE TABLE versions (id int PRIMARY KEY, v bigint)");
    done(&mut connection, "INSERT INTO versions VALUES (1, 0), (2, 0)");
    let (seen, added, conflicts) = (Seen::default(), AtomicU64::new(0), AtomicU64::new(0));
    let mut random = Random::new(Random::seed());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (session, random) = (target.connect(), Random::new(random.number()));
            let (seen, added, conflicts) = (&seen, &added, &conflicts);
            scope.spawn(move || add(session, random, seen, added, conflicts));
        }
    });
    seen.look(&mut connection);
    let sum = rows(&mut connection, "SELECT sum(v) FROM versions");
    assert_eq!(sum[0][0], added.load(Ordering::Relaxed).to_string(), "each change that was told of has happened once");
    println!("{sum:?} changes, {} conflicts", conflicts.load(Ordering::Relaxed));
}

/// A change of one row or several, some of them given up or not waited for; what was shown of it is noted.
fn change(connection: &mut Connection, random: &mut Random, seen: &Seen) {
    let content = random.number();
    let which = match random.below(3) {
        0 => "id <= 3".to_string(),
        _ => format!("id = {}", 1 + random.below(ROWS)),
    };
    let update = format!("UPDATE versions SET v = '{content}' WHERE {which} RETURNING id, xmin, v");
    let (before, after) = match random.below(4) {
        0 => ("BEGIN", "ROLLBACK"),
        1 => ("BEGIN; SET LOCAL synchronous_commit = off", "COMMIT"),
        2 => ("BEGIN; SELECT txid_current()", "COMMIT"),
        _ => ("BEGIN; SAVEPOINT a; SAVEPOINT b", "RELEASE a; COMMIT"),
    };
    assert_eq!(connection.query(before).error(), None);
    for row in rows(connection, &update) {
        seen.note(&row[0], &row[1], &row[2]);
    }
    done(connection, after);
}

#[test]
fn no_version_shows_what_another_has_shown_before_a_restart() {
    if Target::is_postgres() {
        println!("not run: there is no server to kill");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory for the server");
    let (data, port) = (directory.path().join("data"), Nyala::free_port());
    let mut server = Nyala::start(&data, port);
    let mut random = Random::new(Random::seed());
    let seen = Seen::default();
    done(&mut server.connect(), "CREATE TABLE versions (id int PRIMARY KEY, v text)");
    done(&mut server.connect(), &format!("INSERT INTO versions SELECT i, i FROM generate_series(1, {ROWS}) i"));
    let places = rows(&mut server.connect(), "SELECT id, ctid FROM versions ORDER BY id");
    for round in 0..8 {
        let (mut connection, mut other) = (server.connect(), server.connect());
        seen.look(&mut connection);
        for _ in 0..random.below(30) {
            change(&mut connection, &mut random, &seen);
            seen.look(&mut other);
            if random.below(20) == 0 {
                done(&mut other, "CHECKPOINT");
            }
        }
        let how = random.below(3);
        println!("round {round}: {}", ["killed", "killed behind a checkpoint", "ended"][how as usize]);
        if how == 1 {
            done(&mut connection, "CHECKPOINT");
        }
        match how {
            2 => assert_eq!(server.terminate(), 0),
            _ => server.kill(),
        }
        server = Nyala::start(&data, port);
    }
    let mut connection = server.connect();
    assert_eq!(rows(&mut connection, "SELECT id, ctid FROM versions ORDER BY id"), places, "rows stay where they are");
    for row in &places {
        let found = rows(&mut connection, &format!("DELETE FROM versions WHERE ctid = '{}' RETURNING id", row[1]));
        assert_eq!(found, [[row[0].clone()]]);
    }
}
