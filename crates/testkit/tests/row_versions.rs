//! `xmin` tells versions of a row apart: two never show the same, between sessions, over restarts, and whatever was lost meanwhile.
//! What object mappers do with it, an optimistic lock, loses no change.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

/// Writes events, some of which are given up; the numbers of those that were committed.
fn write_events(mut connection: Connection, mut random: Random, from: u64) -> Vec<u64> {
    let mut committed = Vec::new();
    for event in from..from + 120 {
        done(&mut connection, if random.below(3) == 0 { "BEGIN ISOLATION LEVEL REPEATABLE READ" } else { "BEGIN" });
        if random.below(4) == 0 {
            done(&mut connection, "SAVEPOINT a; INSERT INTO events (event) VALUES (0); ROLLBACK TO a");
        }
        done(&mut connection, &format!("INSERT INTO events (event) VALUES ({event})"));
        match random.below(4) {
            0 => done(&mut connection, "SELECT pg_sleep(0.01)"),
            1 => done(&mut connection, "UPDATE events SET event = event WHERE event = -1"),
            _ => {}
        }
        if random.below(4) == 0 {
            done(&mut connection, "ROLLBACK");
        } else {
            done(&mut connection, "COMMIT");
            committed.push(event);
        }
    }
    committed
}

/// Reads events as an outbox is read: those of transactions below `xmin` of the snapshot, from where it has been before.
fn read_events(mut connection: Connection, is_over: &AtomicBool) -> Vec<u64> {
    let (mut from, mut events) = ("0".to_string(), Vec::new());
    loop {
        let is_last = is_over.load(Ordering::SeqCst);
        let read = rows(
            &mut connection,
            &format!(
                "WITH s AS (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS until) \
                 SELECT until, event FROM s LEFT JOIN events ON writer >= '{from}' AND writer < until"
            ),
        );
        from.clone_from(&read[0][0]);
        events.extend(read.iter().filter_map(|row| row[1].parse::<u64>().ok()));
        if is_last {
            return events;
        }
    }
}

/// What a snapshot says that it sees is what its transaction sees, however long ago it was taken.
fn compare_snapshots(mut held: Connection, mut other: Connection, is_over: &AtomicBool) {
    let unseen = "SELECT event FROM events WHERE NOT pg_visible_in_snapshot(writer, pg_current_snapshot())";
    let mut rounds = 0;
    while !is_over.load(Ordering::SeqCst) || rounds == 0 {
        rounds += 1;
        done(&mut held, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        let sees_first = rounds % 2 == 0;
        let seen = |held: &mut Connection| rows(held, "SELECT event FROM events ORDER BY event");
        let before = sees_first.then(|| seen(&mut held));
        done(&mut other, "SELECT pg_sleep(0.003)");
        let snapshot = rows(&mut held, "SELECT pg_current_snapshot()").swap_remove(0).swap_remove(0);
        done(&mut other, "SELECT pg_sleep(0.003)");
        let after = seen(&mut held);
        assert!(before.is_none_or(|before| before == after));
        let told =
            format!("SELECT event FROM events WHERE pg_visible_in_snapshot(writer, '{snapshot}') ORDER BY event");
        assert_eq!(rows(&mut other, &told), after, "{snapshot}");
        assert_eq!(rows(&mut held, "SELECT pg_current_snapshot()")[0][0], snapshot);
        done(&mut held, "COMMIT");
        assert_eq!(rows(&mut other, unseen), Vec::<Vec<String>>::new());
    }
}

#[test]
fn snapshots_tell_by_numbers_what_is_seen() {
    const WRITERS: u64 = 3;
    let target = Target::start();
    let mut connection = target.connect();
    done(&mut connection, "CREATE TABLE events (event bigint, writer xid8 DEFAULT pg_current_xact_id())");
    let (all_written, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut random = Random::new(Random::seed());
    let (mut written, mut read) = std::thread::scope(|scope| {
        let (all_written, is_over) = (&all_written, &is_over);
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| {
                let (session, random) = (target.connect(), Random::new(random.number()));
                scope.spawn(move || write_events(session, random, 1 + 1000 * n))
            })
            .collect();
        let (session, held, other) = (target.connect(), target.connect(), target.connect());
        let reader = scope.spawn(move || read_events(session, is_over));
        let comparer = scope.spawn(move || compare_snapshots(held, other, all_written));
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        all_written.store(true, Ordering::SeqCst);
        comparer.join().expect("snapshots tell what is seen");
        // A transaction that reads has a number too, and `xmin` waits for its end.
        is_over.store(true, Ordering::SeqCst);
        let written: Vec<u64> = written.into_iter().flat_map(|events| events.expect("a writer writes")).collect();
        (written, reader.join().expect("a reader reads"))
    });
    written.sort_unstable();
    read.sort_unstable();
    assert_eq!(read, written, "each event is read once");
}
