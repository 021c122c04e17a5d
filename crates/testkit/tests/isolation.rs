//! The schedules of `tests/isolation` on PostgreSQL and on the server under test: the same waits, the same outcomes.
//!
//! `ISOLATION_TRACE=1` prints PostgreSQL's transcripts, to check what a new schedule does.

use testkit::schedule::Schedule;
use testkit::{Connection, Target};

const LEVELS: [&str; 2] = ["READ COMMITTED", "REPEATABLE READ"];

/// On a busy machine a step can be late and look as if it waited. A real difference is there every time.
const ATTEMPTS: u32 = 3;

const START: [&str; 4] = [
    "DROP TABLE IF EXISTS child, test",
    "CREATE TABLE test (id int PRIMARY KEY, value int)",
    "CREATE TABLE child (id int PRIMARY KEY, test_id int REFERENCES test)",
    "INSERT INTO test VALUES (1, 10), (2, 20)",
];

/// Runs schedules at both levels on both servers and lists what differs.
fn compare(schedules: impl Fn(&str) -> Vec<Schedule>) {
    compare_at(&LEVELS, schedules);
}

fn compare_at(levels: &[&str], schedules: impl Fn(&str) -> Vec<Schedule>) {
    let (reference, subject) = (Target::reference(), Target::start());
    let (mut first, mut second) = (reference.connect(), subject.connect());
    let mut wrong = Vec::new();
    let mut count = 0;
    for level in levels {
        for schedule in schedules(level) {
            count += 1;
            let mut left = ATTEMPTS;
            let (expected, actual) = loop {
                prepare(&mut first);
                prepare(&mut second);
                let (expected, actual) = run_on_both(&schedule, &reference, &subject);
                left -= 1;
                if expected == actual || left == 0 {
                    break (expected, actual);
                }
            };
            if std::env::var_os("ISOLATION_TRACE").is_some() {
                println!("{} at {level}\n  {}\n", schedule.name, expected.join("\n  "));
            }
            if expected != actual {
                wrong.push(format!("{} at {level}:\n{}", schedule.name, side_by_side(&expected, &actual)));
            }
        }
    }
    assert!(count > 0, "no schedules");
    assert!(wrong.is_empty(), "{} of {count} schedules differ:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

fn run_on_both(schedule: &Schedule, reference: &Target, subject: &Target) -> (Vec<String>, Vec<String>) {
    std::thread::scope(|scope| {
        let expected = scope.spawn(|| schedule.run(reference));
        let actual = scope.spawn(|| schedule.run(subject));
        (expected.join().expect("PostgreSQL's run"), actual.join().expect("the other run"))
    })
}

fn prepare(connection: &mut Connection) {
    for sql in START {
        let reply = connection.query(sql);
        assert_eq!(reply.error(), None, "{sql}");
    }
}

fn side_by_side(expected: &[String], actual: &[String]) -> String {
    let length = expected.len().max(actual.len());
    let line = |side: &[String], index: usize| side.get(index).cloned().unwrap_or_default();
    let lines = (0..length).map(|index| {
        let (left, right) = (line(expected, index), line(actual, index));
        if left == right { format!("    {left}") } else { format!("  P {left}\n  N {right}") }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn anomalies() {
    compare(|level| Schedule::parse_all(include_str!("../../../tests/isolation/anomalies.txt"), level));
}

#[test]
fn serializable() {
    let levels = ["SERIALIZABLE"];
    compare_at(&levels, |level| Schedule::parse_all(include_str!("../../../tests/isolation/serializable.txt"), level));
}

#[test]
fn advisory() {
    compare(|level| Schedule::parse_all(include_str!("../../../tests/isolation/advisory.txt"), level));
}

#[test]
fn prepared() {
    compare(|level| Schedule::parse_all(include_str!("../../../tests/isolation/prepared.txt"), level));
}

#[test]
fn waits() {
    compare(|level| Schedule::parse_all(include_str!("../../../tests/isolation/waits.txt"), level));
}

#[test]
fn barriers() {
    compare(|level| Schedule::parse_all(include_str!("../../../tests/isolation/barriers.txt"), level));
}

#[test]
fn merge() {
    compare(|level| Schedule::parse_all(include_str!("../../../tests/isolation/merge.txt"), level));
}

#[test]
fn definitions() {
    compare(|level| Schedule::parse_all(include_str!("../../../tests/isolation/definitions.txt"), level));
}

#[test]
fn deferred() {
    compare(|level| Schedule::parse_all(include_str!("../../../tests/isolation/deferred.txt"), level));
}

#[test]
fn places() {
    compare(|level| Schedule::parse_all(include_str!("../../../tests/isolation/places.txt"), level));
}

/// Each of the four row locks against each other: granted at once or not.
#[test]
fn row_locks_conflict_as_in_the_table() {
    let modes = ["KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"];
    compare(|level| {
        let held = modes.iter().flat_map(|held| modes.iter().map(move |wanted| (held, wanted)));
        let schedule = held.map(|(held, wanted)| {
            let text = format!(
                "a: BEGIN ISOLATION LEVEL {level}\n\
                 a: SELECT id FROM test WHERE id = 1 FOR {held}\n\
                 b: SELECT id FROM test WHERE id = 1 FOR {wanted} NOWAIT\n\
                 b: SELECT id FROM test ORDER BY id FOR {wanted} SKIP LOCKED\n\
                 a: COMMIT"
            );
            Schedule::parse(&format!("{wanted} against {held}"), &text)
        });
        schedule.collect()
    });
}

/// Each of the eight table locks against each other.
#[test]
fn table_locks_conflict_as_in_the_table() {
    let modes = [
        "ACCESS SHARE",
        "ROW SHARE",
        "ROW EXCLUSIVE",
        "SHARE UPDATE EXCLUSIVE",
        "SHARE",
        "SHARE ROW EXCLUSIVE",
        "EXCLUSIVE",
        "ACCESS EXCLUSIVE",
    ];
    compare(|level| {
        let schedule = modes.iter().map(|held| {
            let mut text = format!("a: BEGIN ISOLATION LEVEL {level}\na: LOCK TABLE test IN {held} MODE\n");
            for wanted in modes {
                text.push_str(&format!("b: BEGIN\nb: LOCK TABLE test IN {wanted} MODE NOWAIT\nb: ROLLBACK\n"));
            }
            Schedule::parse(&format!("against {held}"), &text)
        });
        schedule.collect()
    });
}

/// What has been changed since the snapshot is lost, and not waited for, whoever holds it now.
#[test]
fn lost_rows() {
    let changes = ["UPDATE test SET value = 11 WHERE id = 1", "UPDATE child SET id = 6 WHERE id = 5"];
    let holds = [
        "UPDATE test SET value = 12 WHERE id = 1",
        "UPDATE test SET id = 3 WHERE id = 1",
        "DELETE FROM test WHERE id = 1",
        "SELECT value FROM test WHERE id = 1 FOR SHARE",
    ];
    let asks = [
        "UPDATE test SET value = 13 WHERE id = 1",
        "UPDATE test SET id = 4 WHERE id = 1",
        "DELETE FROM test WHERE id = 1",
        "SELECT value FROM test WHERE id = 1 FOR UPDATE",
        "SELECT value FROM test WHERE id = 1 FOR NO KEY UPDATE",
        "SELECT value FROM test WHERE id = 1 FOR SHARE",
        "SELECT value FROM test WHERE id = 1 FOR KEY SHARE",
        "SELECT value FROM test WHERE id = 1 FOR UPDATE NOWAIT",
        "SELECT value FROM test WHERE id = 1 FOR SHARE SKIP LOCKED",
        "INSERT INTO test VALUES (1, 14) ON CONFLICT (id) DO UPDATE SET value = 15",
        "INSERT INTO child VALUES (9, 1)",
    ];
    let mut text = String::new();
    for (change, is_lost) in changes.iter().zip(["changed", "as it was"]) {
        for hold in holds {
            // Here PostgreSQL waits for the lock and fails then.
            let is_listed =
                |ask: &str| ask.contains("ON CONFLICT") && hold.contains("FOR SHARE") && is_lost == "changed";
            for ask in asks.iter().filter(|ask| !is_listed(ask)) {
                text += &format!(
                    "== {is_lost}, {hold}, then {ask}\n\
                     a: BEGIN ISOLATION LEVEL {{level}}\na: SELECT count(*) FROM test\nb: {change}\n\
                     b: BEGIN ISOLATION LEVEL {{level}}\nb: {hold}\na: {ask}\nb: ROLLBACK\na: ROLLBACK\n\n"
                );
            }
        }
    }
    compare_at(&["REPEATABLE READ"], |level| Schedule::parse_all(&text, level));
}
