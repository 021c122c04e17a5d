//! Lines of sessions at one row or one key of the server: who is next, who gives up, and what it adds up to.
//!
//! The same lines without a server, step by step, are in the engine's tests; here sessions, timeouts and threads take part.

use std::time::Duration;

use testkit::{Connection, Target};

/// How long an answer may take that nothing is in the way of.
const SOON: Duration = Duration::from_secs(10);

/// How long a session is given to get into its place.
const A_MOMENT: Duration = Duration::from_millis(30);

const LOCK: &str = "SELECT value FROM line WHERE id = 1 FOR UPDATE";

fn prepare(target: &Target) -> Connection {
    let mut connection = target.connect();
    done(&mut connection, "CREATE TABLE line (id int PRIMARY KEY, value int NOT NULL)");
    done(&mut connection, "INSERT INTO line VALUES (1, 0), (2, 0)");
    connection
}

fn done(connection: &mut Connection, sql: &str) {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
}

fn upsert(id: u32) -> String {
    format!("INSERT INTO line VALUES ({id}, 1) ON CONFLICT (id) DO UPDATE SET value = line.value + 1")
}

#[test]
fn twenty_sessions_get_a_row_one_after_the_other() {
    const SESSIONS: usize = 20;
    /// Gives up in the middle of the line.
    const IMPATIENT: usize = 9;
    if Target::is_postgres() {
        println!("not run: PostgreSQL keeps no order among those who wait for a row that is updated");
        return;
    }
    let target = Target::start();
    let mut holder = prepare(&target);
    done(&mut holder, "BEGIN");
    done(&mut holder, LOCK);
    let mut line: Vec<(usize, Connection)> = (0..SESSIONS)
        .map(|number| {
            let mut connection = target.connect();
            if number == IMPATIENT {
                // Long enough for all to be in the line.
                done(&mut connection, "SET lock_timeout = '1500ms'");
            }
            done(&mut connection, "BEGIN");
            connection.send(LOCK);
            assert!(connection.receive(A_MOMENT).is_none(), "session {number} must wait");
            (number, connection)
        })
        .collect();
    let reply = line[IMPATIENT].1.receive(SOON).expect("lock_timeout ends the wait");
    assert_eq!(reply.code(), "55P03");
    line.remove(IMPATIENT);
    // The first and the last of those who wait are not concerned.
    for at in [0, line.len() - 1] {
        assert!(line[at].1.receive(A_MOMENT).is_none(), "nobody is let in by another one's timeout");
    }
    for turn in 0..line.len() {
        done(&mut holder, "UPDATE line SET value = value + 1 WHERE id = 1");
        done(&mut holder, "COMMIT");
        let (number, mut next) = line.remove(0);
        let reply = next.receive(SOON).unwrap_or_else(|| panic!("session {number} is next"));
        let seen = (turn + 1).to_string();
        assert_eq!(reply.value(), Some(seen.as_str()), "session {number} sees what those before it have done");
        if let Some((after, waits)) = line.first_mut() {
            assert!(waits.receive(Duration::from_millis(5)).is_none(), "session {after} is not next");
        }
        holder = next;
    }
    done(&mut holder, "COMMIT");
}

#[test]
fn concurrent_upserts_of_one_key_add_up() {
    const UPSERTS: usize = 1000;
    let target = Target::start();
    let mut connection = prepare(&target);
    for level in ["READ COMMITTED", "REPEATABLE READ"] {
        done(&mut connection, "DELETE FROM line");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let mut connection = target.connect();
                scope.spawn(move || {
                    for _ in 0..UPSERTS {
                        upsert_until_done(&mut connection, level);
                    }
                });
            }
        });
        let sum = connection.query("SELECT value FROM line WHERE id = 3");
        assert_eq!(sum.value(), Some("2000"), "{level}");
    }
}

/// One upsert in a transaction of its own; above READ COMMITTED it may have to be tried again.
fn upsert_until_done(connection: &mut Connection, level: &str) {
    loop {
        done(connection, &format!("BEGIN ISOLATION LEVEL {level}"));
        let reply = connection.query(&upsert(3));
        match reply.code() {
            "00000" => return done(connection, "COMMIT"),
            "40001" if level == "REPEATABLE READ" => done(connection, "ROLLBACK"),
            _ => panic!("{level}: {:?}", reply.error()),
        }
    }
}

#[test]
fn upserts_in_opposite_order_are_a_deadlock() {
    let target = Target::start();
    let mut first = prepare(&target);
    let mut second = target.connect();
    // Keys that are there, and keys that are not.
    for (one, other) in [(1, 2), (3, 4), (1, 5)] {
        done(&mut first, "BEGIN");
        done(&mut second, "BEGIN");
        done(&mut first, &upsert(one));
        done(&mut second, &upsert(other));
        first.send(&upsert(other));
        assert!(first.receive(A_MOMENT).is_none());
        second.send(&upsert(one));
        // Either may find it out; the failed one lets the other go on at once.
        let replies = [&mut first, &mut second].map(|c| c.receive(SOON).expect("no deadlock is found"));
        let (loser, winner) = match [replies[0].code(), replies[1].code()] {
            ["40P01", "00000"] => (&mut first, &mut second),
            ["00000", "40P01"] => (&mut second, &mut first),
            codes => panic!("{codes:?}"),
        };
        done(winner, "COMMIT");
        done(loser, "ROLLBACK");
    }
    let values = first.query("SELECT id, value FROM line ORDER BY id");
    assert_eq!(values.rows().count(), 5);
}
