//! SERIALIZABLE where PostgreSQL would abort another transaction, or more of them: what must not be, what must
//! pass, what is known of those that have ended, and that long looks at what was read find the same as short ones.

use testkit::{Connection, Reply, Target};

const ROWS: u32 = 20_000;

/// Sessions `a`, `b`, `c` over a table `t (id, v)` of many rows with v = id, and an empty table `log (n)`.
struct Stage {
    _target: Target,
    a: Connection,
    b: Connection,
    c: Connection,
}

impl Stage {
    fn new() -> Stage {
        let target = Target::start();
        let mut a = target.connect();
        for sql in [
            "CREATE TABLE t (id int PRIMARY KEY, v int, u int UNIQUE)",
            &format!("INSERT INTO t SELECT i, i, i FROM generate_series(1, {ROWS}) AS i"),
            "CREATE TABLE log (n int)",
        ] {
            ok(&a.query(sql));
        }
        let (b, c) = (target.connect(), target.connect());
        Stage { _target: target, a, b, c }
    }

    /// Runs steps like `a: SELECT …`, each of which must succeed.
    fn run(&mut self, steps: &str) {
        for step in steps.lines().map(str::trim).filter(|step| !step.is_empty()) {
            let (name, sql) = step.split_once(": ").expect("name: statement");
            let sql = sql.replace("BEGIN", "BEGIN ISOLATION LEVEL SERIALIZABLE");
            let reply = self.session(name).query(&sql);
            assert_eq!(reply.error(), None, "{step}");
        }
    }

    fn session(&mut self, name: &str) -> &mut Connection {
        match name {
            "a" => &mut self.a,
            "b" => &mut self.b,
            _ => &mut self.c,
        }
    }

    fn value(&mut self, sql: &str) -> String {
        self.c.query(sql).value().unwrap_or_default().to_string()
    }

    /// `b` changes something and commits, before whoever adds to the log.
    fn changes_having_read_the_log(&mut self, change: &str) {
        self.run(&format!("b: BEGIN\n b: SELECT count(*) FROM log\n b: {change}\n b: COMMIT"));
    }

    /// The step fails for what others have committed.
    fn fails(&mut self, step: &str) {
        let (name, sql) = step.split_once(": ").expect("name: statement");
        let reply = self.session(name).query(sql);
        let error = reply.error().unwrap_or_else(|| panic!("{step} succeeds"));
        assert_eq!(error.code, "40001", "{step}: {error}");
        assert_eq!(
            error.message, "could not serialize access due to read/write dependencies among transactions",
            "{step}"
        );
        let _ = self.session(name).query("ROLLBACK");
    }
}

fn ok(reply: &Reply) {
    assert_eq!(reply.error(), None);
}

#[test]
fn of_three_in_a_ring_one_gives_way() {
    let mut stage = Stage::new();
    stage.run(
        "a: BEGIN
         b: BEGIN
         c: BEGIN
         a: SELECT v FROM t WHERE id = 1
         b: SELECT v FROM t WHERE id = 2
         c: SELECT v FROM t WHERE id = 3
         a: UPDATE t SET v = 0 WHERE id = 2
         b: UPDATE t SET v = 0 WHERE id = 3
         c: UPDATE t SET v = 0 WHERE id = 1
         a: COMMIT
         b: COMMIT",
    );
    stage.fails("c: COMMIT");
}

/// Two that read what the other writes, and a third that has nothing to do with it: only one of the two gives way. Whose reads alone were
/// written into stands before the writer.
#[test]
fn who_was_only_written_into_stands_before() {
    let mut stage = Stage::new();
    stage.run(
        "a: BEGIN
         a: SELECT sum(v) FROM t
         b: BEGIN
         b: UPDATE t SET v = 0 WHERE id = 2
         b: COMMIT
         b: UPDATE t SET v = 1 WHERE id = 3
         c: BEGIN
         c: SELECT v FROM t WHERE id = 2
         c: INSERT INTO log VALUES (1)
         c: COMMIT
         a: UPDATE t SET v = 0 WHERE id = 1
         a: COMMIT",
    );
}

/// Whoever has seen the one it stands before must see it, too; whether he ends before it or after.
#[test]
fn a_reader_between_two_places_gives_way() {
    let mut stage = Stage::new();
    let begin = "a: BEGIN
         a: SELECT v FROM t WHERE id = 1
         b: BEGIN
         b: UPDATE t SET v = v + 1 WHERE id = 1
         b: COMMIT";
    let look = "c: BEGIN READ ONLY
         c: SELECT v FROM t WHERE id = 1
         c: SELECT v FROM t WHERE id = 2";
    let write = "a: UPDATE t SET v = v + 1 WHERE id = 2";
    stage.run(&format!("{begin}\n{look}\n{write}\n a: COMMIT"));
    stage.fails("c: COMMIT");
    stage.run(&format!("{begin}\n{look}\n{write}\n c: COMMIT"));
    stage.fails("a: COMMIT");
    // What it has not read does not matter.
    stage.run(&format!(
        "{begin}\n c: BEGIN READ ONLY\n c: SELECT v FROM t WHERE id = 1\n{write}\n a: COMMIT\n c: COMMIT"
    ));
    // Nor is anything beyond its view: another writer's change that it does not see.
    stage.run(&format!(
        "c: BEGIN READ ONLY\n c: SELECT v FROM t WHERE id = 3\n{begin}\n c: SELECT v FROM t WHERE id = 1
         c: SELECT v FROM t WHERE id = 2\n{write}\n a: COMMIT\n c: COMMIT"
    ));
}

/// A version between the one that was read and the newest may be freed; that it was there must not be forgotten.
#[test]
fn what_came_and_went_between_is_known() {
    let mut stage = Stage::new();
    for (there, back) in [
        ("UPDATE t SET u = 30000 WHERE id = 5", "UPDATE t SET u = 5 WHERE id = 5"),
        ("INSERT INTO t VALUES (30000, 0, 30000)", "DELETE FROM t WHERE id = 30000"),
    ] {
        // a reads a range and the log; a row comes into the range, is seen by c, and goes.
        stage.run("a: BEGIN\n a: SELECT count(*) FROM t WHERE u > 25000\n a: SELECT v FROM t WHERE id = 7");
        stage.run(&format!("b: BEGIN\n b: {there}\n b: COMMIT"));
        stage.run("c: BEGIN\n c: SELECT count(*) FROM t WHERE u > 25000\n c: SELECT v FROM t WHERE id = 9\n c: COMMIT");
        stage.run(&format!("b: BEGIN\n b: {back}\n b: UPDATE t SET v = v + 1 WHERE id = 7\n b: COMMIT"));
        // So many commits that the garbage is looked at.
        (0..64).for_each(|_| ok(&stage.b.query("UPDATE t SET v = v + 1 WHERE id = 11")));
        stage.run("a: UPDATE t SET v = v + 1 WHERE id = 9");
        stage.fails("a: COMMIT");
    }
}

/// A long transaction that reads all, beside more of others than are known one by one: it may write what nobody reads as long as they are
/// known, and reads to its end.
#[test]
fn what_is_not_known_any_more_counts() {
    let mut stage = Stage::new();
    stage.run("a: BEGIN\n a: SELECT sum(v) FROM t\n c: BEGIN READ ONLY\n c: SELECT v FROM t WHERE id = 1");
    for _ in 0..1100 {
        ok(&stage.b.query("BEGIN ISOLATION LEVEL SERIALIZABLE"));
        ok(&stage.b.query("UPDATE t SET v = v + 1 WHERE id = 2"));
        ok(&stage.b.query("COMMIT"));
    }
    stage.run("c: SELECT v FROM t WHERE id = 2\n c: COMMIT\n a: INSERT INTO log VALUES (1)");
    stage.fails("a: COMMIT");
}

#[test]
fn a_report_of_a_closed_batch_sees_all_of_it() {
    let mut stage = Stage::new();
    stage.run(
        "a: BEGIN
         a: SELECT v FROM t WHERE id = 1
         b: BEGIN
         b: UPDATE t SET v = v + 1 WHERE id = 1
         b: COMMIT
         c: BEGIN READ ONLY
         c: SELECT v FROM t WHERE id = 1
         c: SELECT count(*) FROM log
         c: COMMIT
         a: INSERT INTO log SELECT v FROM t WHERE id = 1",
    );
    stage.fails("a: COMMIT");
    assert_eq!(stage.value("SELECT count(*) FROM log"), "0");
}

#[test]
fn neighbours_do_not_disturb() {
    let mut stage = Stage::new();
    stage.run(
        "a: BEGIN
         b: BEGIN
         a: SELECT sum(v) FROM t WHERE id BETWEEN 1 AND 10
         b: SELECT sum(v) FROM t WHERE id BETWEEN 11 AND 20
         a: UPDATE t SET v = 0 WHERE id = 21
         b: UPDATE t SET v = 0 WHERE id = 31
         a: SELECT id FROM t ORDER BY id LIMIT 1
         b: SELECT id FROM t ORDER BY id DESC LIMIT 1
         a: SELECT v FROM t WHERE u = 5
         b: UPDATE t SET v = 0 WHERE u = 6
         c: INSERT INTO t VALUES (-5, 0), (10000000, 0)
         c: DELETE FROM t WHERE id IN (-5, 10000000)
         a: INSERT INTO log VALUES (1)
         b: INSERT INTO log VALUES (2)",
    );
    // The first and the last row are not what they were when they came and went again.
    stage.run("a: ROLLBACK\n b: ROLLBACK");
    stage.run(
        "a: BEGIN
         b: BEGIN
         a: SELECT sum(v) FROM t WHERE id BETWEEN 1 AND 10
         b: SELECT sum(v) FROM t WHERE id BETWEEN 11 AND 20
         a: SELECT id FROM t ORDER BY id LIMIT 1
         b: SELECT id FROM t ORDER BY id DESC LIMIT 1
         a: UPDATE t SET v = 0 WHERE id = 21
         b: UPDATE t SET v = 0 WHERE id = 31
         a: SELECT v FROM t WHERE u = 5
         b: UPDATE t SET v = 0 WHERE u = 6
         a: COMMIT
         b: COMMIT",
    );
}

#[test]
fn each_end_of_a_range_counts() {
    let mut stage = Stage::new();
    for change in [
        "UPDATE t SET v = 0 WHERE id = 11",
        "DELETE FROM t WHERE id = 20",
        "UPDATE t SET id = -1 WHERE id = 15",
        "UPDATE t SET id = 12 WHERE id = 50",
        "INSERT INTO t VALUES (17, 0)",
    ] {
        stage.run("c: DELETE FROM t WHERE id IN (12, 17)");
        stage.run("a: BEGIN\n a: SELECT count(*) FROM t WHERE id BETWEEN 11 AND 20\n a: INSERT INTO log VALUES (1)");
        stage.changes_having_read_the_log(change);
        stage.fails("a: COMMIT");
    }
    for change in ["UPDATE t SET v = 0 WHERE id = 10", "DELETE FROM t WHERE id = 21", "INSERT INTO t VALUES (0, 0)"] {
        stage.run("a: BEGIN\n a: SELECT count(*) FROM t WHERE id BETWEEN 11 AND 20\n a: INSERT INTO log VALUES (1)");
        stage.changes_having_read_the_log(change);
        stage.run("a: COMMIT\n a: DELETE FROM log");
    }
}

#[test]
fn what_the_whole_table_was_read_for_counts_however_long_it_is() {
    let mut stage = Stage::new();
    for change in [
        "UPDATE t SET v = 0 WHERE id = 1",
        "UPDATE t SET v = 0 WHERE id = 19999",
        "DELETE FROM t WHERE id = 10000",
        "INSERT INTO t VALUES (-1, 0)",
    ] {
        stage.run("a: BEGIN\n a: SELECT sum(v) FROM t\n a: INSERT INTO log VALUES (1)");
        stage.changes_having_read_the_log(change);
        stage.fails("a: COMMIT");
    }
    stage.run("a: BEGIN\n a: SELECT sum(v) FROM t\n a: INSERT INTO log VALUES (1)");
    stage.run("b: BEGIN\n b: SELECT v FROM t WHERE id = 5\n b: INSERT INTO log VALUES (2)\n b: COMMIT");
    stage.run("a: COMMIT");
    assert_eq!(stage.value("SELECT count(*) FROM log"), "2");
}

#[test]
fn a_duplicate_that_was_caught_was_seen() {
    let mut stage = Stage::new();
    stage.run("a: BEGIN\n a: SAVEPOINT s");
    let reply = stage.a.query("INSERT INTO t VALUES (1, 0)");
    assert_eq!(reply.code(), "23505");
    // The row that was in the way goes: had it gone before, there would have been no duplicate.
    stage.run("a: ROLLBACK TO s\n a: INSERT INTO log VALUES (1)");
    stage.changes_having_read_the_log("DELETE FROM t WHERE id = 1");
    stage.fails("a: COMMIT");
    stage.run("a: BEGIN\n a: INSERT INTO t VALUES (2, 0) ON CONFLICT DO NOTHING\n a: INSERT INTO log VALUES (1)");
    stage.changes_having_read_the_log("DELETE FROM t WHERE id = 2");
    stage.fails("a: COMMIT");
}

#[test]
fn counters_of_many_add_up() {
    let stage = Stage::new();
    const SESSIONS: u32 = 6;
    const TURNS: u32 = 60;
    // A sum over several rows is written to another: any two that overlap conflict.
    let done: u32 = std::thread::scope(|scope| {
        let turns: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let target = &stage._target;
                scope.spawn(move || {
                    let mut connection = target.connect();
                    let mut done = 0;
                    while done < TURNS {
                        let row = 1 + session % 3;
                        ok(&connection.query("BEGIN ISOLATION LEVEL SERIALIZABLE"));
                        let add = format!(
                            "UPDATE t SET v = (SELECT max(v) + 1 FROM t WHERE id IN (1, 2, 3)) WHERE id = {row}"
                        );
                        let committed =
                            connection.query(&add).error().is_none() && connection.query("COMMIT").error().is_none();
                        if !committed {
                            let _ = connection.query("ROLLBACK");
                        }
                        done += u32::from(committed);
                    }
                    done
                })
            })
            .collect();
        turns.into_iter().map(|turn| turn.join().expect("a session runs to its end")).sum()
    });
    let mut stage = stage;
    assert_eq!(stage.value("SELECT max(v) FROM t WHERE id IN (1, 2, 3)"), (3 + done).to_string());
}
