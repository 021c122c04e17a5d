//! Definitions in prepared transactions: whatever happens to the server between the phases, both ends leave what COMMIT and
//! ROLLBACK leave.

use std::path::Path;

use testkit::{Connection, Nyala, Target};

/// A block, between what is there before it and what is asked when it has ended; `{s}` is a schema of its own.
struct Case {
    before: &'static [&'static str],
    block: &'static [&'static str],
    after: &'static [&'static str],
    /// What must wait for its end.
    waits: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        before: &[],
        block: &[
            "CREATE TABLE {s}.made (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text DEFAULT 'x')",
            "INSERT INTO {s}.made (v) SELECT 'row ' || n FROM generate_series(1, 300) AS n",
            "CREATE INDEX made_v ON {s}.made (upper(v)) WHERE id > 10",
            "UPDATE {s}.made SET v = 'changed' WHERE id % 7 = 0",
            "DELETE FROM {s}.made WHERE id % 5 = 0",
        ],
        after: &[
            "SELECT count(*), sum(id), min(v), max(v) FROM {s}.made",
            "SELECT id FROM {s}.made WHERE upper(v) = 'ROW 11' AND id > 10",
            "SELECT indexdef FROM pg_indexes WHERE tablename = 'made' ORDER BY 1",
            "SELECT v FROM {s}.made WHERE id = 7",
            "INSERT INTO {s}.made DEFAULT VALUES RETURNING v",
            "SELECT count(*) > 240 FROM {s}.made",
        ],
        waits: &["CREATE TABLE {s}.made (x int)"],
    },
    Case {
        before: &[
            "CREATE TABLE {s}.t (a int PRIMARY KEY, b text)",
            "INSERT INTO {s}.t SELECT n, 'row ' || n FROM generate_series(1, 100) AS n",
        ],
        block: &[
            "ALTER TABLE {s}.t ADD COLUMN c int DEFAULT 7, ADD CHECK (a > 0)",
            "UPDATE {s}.t SET c = a, b = 'new' WHERE a > 90",
            "ALTER TABLE {s}.t ADD COLUMN d text",
            "INSERT INTO {s}.t VALUES (101, 'more', 3, 'd')",
            "ALTER TABLE {s}.t DROP COLUMN b",
        ],
        after: &[
            "SELECT * FROM {s}.t WHERE a IN (1, 99, 101) ORDER BY a",
            "SELECT count(*), sum(a) FROM {s}.t",
            "SELECT count(*) FROM {s}.t WHERE b LIKE 'row%'",
            "INSERT INTO {s}.t (a) VALUES (-1)",
            "INSERT INTO {s}.t (a) VALUES (500) RETURNING *",
        ],
        waits: &["SELECT * FROM {s}.t", "DROP TABLE {s}.t"],
    },
    Case {
        before: &[
            "CREATE TABLE {s}.t (a int PRIMARY KEY, b text)",
            "INSERT INTO {s}.t SELECT n, 'row ' || n FROM generate_series(1, 100) AS n",
        ],
        block: &[
            "UPDATE {s}.t SET b = b || '!' WHERE a < 10",
            "ALTER TABLE {s}.t ALTER COLUMN a TYPE text USING 'key ' || a",
            "INSERT INTO {s}.t VALUES ('last', 'last')",
            "UPDATE {s}.t SET b = 'rewritten' WHERE a = 'key 50'",
        ],
        after: &[
            "SELECT * FROM {s}.t ORDER BY b LIMIT 4",
            "SELECT b FROM {s}.t WHERE a::text LIKE '%50'",
            "SELECT a FROM {s}.t WHERE a = 'last'",
            "SELECT count(*) FROM {s}.t",
        ],
        waits: &["INSERT INTO {s}.t VALUES (1000, 'x')"],
    },
    Case {
        before: &["CREATE TABLE {s}.t (a int PRIMARY KEY)", "INSERT INTO {s}.t VALUES (1), (2), (3)"],
        block: &["INSERT INTO {s}.t VALUES (4)", "DELETE FROM {s}.t WHERE a = 1", "DROP TABLE {s}.t"],
        after: &[
            "SELECT * FROM {s}.t ORDER BY a",
            "CREATE TABLE {s}.t (other text)",
            "SELECT count(*) FROM pg_class WHERE relname = 't' AND relnamespace = '{s}'::regnamespace",
        ],
        waits: &["SELECT * FROM {s}.t"],
    },
    Case {
        before: &[
            "CREATE TABLE {s}.t (a int, b int)",
            "INSERT INTO {s}.t SELECT n, n % 10 FROM generate_series(1, 50) AS n",
        ],
        block: &[
            "DELETE FROM {s}.t WHERE a > 10",
            "CREATE UNIQUE INDEX t_b ON {s}.t (b DESC)",
            "UPDATE {s}.t SET b = b + 100 WHERE a = 3",
            "INSERT INTO {s}.t VALUES (11, 3)",
        ],
        after: &[
            "SELECT * FROM {s}.t ORDER BY b, a LIMIT 5",
            "SELECT a FROM {s}.t WHERE b = 103",
            "INSERT INTO {s}.t VALUES (12, 103)",
            "INSERT INTO {s}.t VALUES (12, 104) RETURNING *",
            "SELECT count(*) FROM {s}.t",
        ],
        waits: &["INSERT INTO {s}.t VALUES (99, 99)", "DELETE FROM {s}.t"],
    },
    Case {
        before: &[
            "CREATE TABLE {s}.t (a int PRIMARY KEY, b text UNIQUE)",
            "INSERT INTO {s}.t VALUES (1, 'one'), (2, 'two')",
            "CREATE INDEX t_gone ON {s}.t (b, a)",
        ],
        block: &[
            "INSERT INTO {s}.t VALUES (3, 'three')",
            "TRUNCATE {s}.t",
            "INSERT INTO {s}.t VALUES (1, 'another one'), (2, 'x')",
            "DROP INDEX {s}.t_gone",
            "CREATE INDEX t_new ON {s}.t (b DESC)",
            "DELETE FROM {s}.t WHERE a = 2",
        ],
        after: &[
            "SELECT * FROM {s}.t ORDER BY a",
            "SELECT indexdef FROM pg_indexes WHERE schemaname = '{s}' ORDER BY 1",
            "INSERT INTO {s}.t VALUES (1, 'taken')",
            "INSERT INTO {s}.t VALUES (10, 'another one')",
            "INSERT INTO {s}.t VALUES (11, 'one')",
            "SELECT a FROM {s}.t WHERE b = 'one'",
        ],
        waits: &["SELECT count(*) FROM {s}.t"],
    },
    Case {
        before: &["CREATE SEQUENCE {s}.old START 100", "SELECT nextval('{s}.old')"],
        block: &[
            "CREATE TYPE {s}.mood AS ENUM ('calm', 'busy')",
            "CREATE DOMAIN {s}.small AS int CHECK (VALUE < 10)",
            "CREATE SEQUENCE {s}.new START 10 INCREMENT 5",
            "SELECT nextval('{s}.new')",
            "ALTER SEQUENCE {s}.old INCREMENT 1000",
            "CREATE TABLE {s}.moods (m {s}.mood PRIMARY KEY, n {s}.small, o bigint DEFAULT nextval('{s}.new'))",
            "INSERT INTO {s}.moods VALUES ('busy', 1), ('calm', 2)",
            "CREATE VIEW {s}.shown AS SELECT m, n + 1 AS more FROM {s}.moods",
            "COMMENT ON TABLE {s}.moods IS 'prepared'",
            "GRANT SELECT ON {s}.moods TO PUBLIC",
        ],
        after: &[
            "SELECT m, n, o FROM {s}.moods ORDER BY m",
            "SELECT * FROM {s}.shown ORDER BY m",
            "INSERT INTO {s}.moods VALUES ('calm', 1)",
            "SELECT 11::{s}.small",
            "SELECT nextval('{s}.new') > 20",
            "SELECT nextval('{s}.old') >= 1100",
            "SELECT obj_description('{s}.moods'::regclass), has_table_privilege('public', '{s}.moods', 'SELECT')",
        ],
        waits: &["CREATE SEQUENCE {s}.new"],
    },
    Case {
        before: &[
            "CREATE TABLE {s}.parent (id int PRIMARY KEY)",
            "INSERT INTO {s}.parent VALUES (1), (2)",
            "CREATE TABLE {s}.child (id int)",
            "INSERT INTO {s}.child VALUES (1)",
        ],
        block: &[
            "ALTER TABLE {s}.child ADD FOREIGN KEY (id) REFERENCES {s}.parent ON DELETE CASCADE",
            "INSERT INTO {s}.child VALUES (2)",
            "ALTER TABLE {s}.child RENAME TO renamed",
        ],
        after: &[
            "SELECT * FROM {s}.child ORDER BY id",
            "SELECT * FROM {s}.renamed ORDER BY id",
            "INSERT INTO {s}.renamed VALUES (3)",
            "DELETE FROM {s}.parent WHERE id = 1",
            "SELECT * FROM {s}.renamed ORDER BY id",
        ],
        waits: &["DELETE FROM {s}.parent WHERE id = 2", "INSERT INTO {s}.child VALUES (1)"],
    },
];

/// What happens to the server while everything is prepared.
const FATES: [&str; 4] = ["nothing", "a stop", "a kill", "a checkpoint and a kill"];

fn must(connection: &mut Connection, sql: &str) {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
}

fn schema_of(case: usize, commits: bool) -> String {
    format!("s{case}{}", if commits { "c" } else { "r" })
}

/// All cases, each to be committed and to be rolled back.
fn each(mut with: impl FnMut(&Case, &str, bool)) {
    for (number, case) in CASES.iter().enumerate() {
        for commits in [true, false] {
            with(case, &schema_of(number, commits), commits);
        }
    }
}

fn prepare(connection: &mut Connection, ends: impl Fn(&str, bool) -> String) {
    each(|case, schema, commits| {
        let here = |sql: &&str| sql.replace("{s}", schema);
        must(connection, &format!("CREATE SCHEMA {schema}"));
        case.before.iter().map(here).for_each(|sql| must(connection, &sql));
        must(connection, "BEGIN");
        case.block.iter().map(here).for_each(|sql| must(connection, &sql));
        must(connection, &ends(schema, commits));
    });
}

/// What the questions are answered, errors by their codes.
fn answers(connection: &mut Connection) -> Vec<String> {
    let mut all = Vec::new();
    each(|case, schema, commits| {
        for sql in case.after.iter().map(|sql| sql.replace("{s}", schema)) {
            let reply = connection.query(&sql);
            let rows: Vec<String> = reply.rows().map(|row| format!("{row:?}")).collect();
            all.push(format!("{commits} {sql}: {} {}", reply.code(), rows.join(" ")));
        }
    });
    all
}

fn is_locked(connection: &mut Connection, fate: &str) {
    must(connection, "SET lock_timeout = 20");
    each(|case, schema, _| {
        for sql in case.waits.iter().map(|sql| sql.replace("{s}", schema)) {
            assert_eq!(connection.query(&sql).code(), "55P03", "after {fate}: {sql}");
        }
    });
    must(connection, "RESET lock_timeout");
    let held = "SELECT count(*) FROM pg_locks WHERE pid IS NULL AND granted AND mode = 'AccessExclusiveLock'";
    let held: usize = connection.query(held).value().and_then(|n| n.parse().ok()).expect("a number");
    assert!(held >= CASES.len(), "after {fate}: {held} locks");
}

fn start(data: &Path, port: u16) -> Nyala {
    Nyala::start_with(data, port, &["--log-segment", "1MB", "--http", "off"])
}

#[test]
fn prepared_definitions_come_through() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory for the server");
    let expected = {
        let server = start(&directory.path().join("plain"), Nyala::free_port());
        let mut connection = server.connect();
        prepare(&mut connection, |_, commits| if commits { "COMMIT" } else { "ROLLBACK" }.to_string());
        answers(&mut connection)
    };
    for fate in FATES {
        let (data, port) = (directory.path().join(fate.replace(' ', "-")), Nyala::free_port());
        let mut server = start(&data, port);
        prepare(&mut server.connect(), |schema, _| format!("PREPARE TRANSACTION '{schema}'"));
        let lives = if fate == FATES[0] { 0 } else { 2 };
        for _ in 0..lives {
            is_locked(&mut server.connect(), fate);
            if fate == FATES[3] {
                must(&mut server.connect(), "CHECKPOINT");
            }
            if fate == FATES[1] {
                assert_eq!(server.terminate(), 0);
            } else {
                server.kill();
            }
            server = start(&data, port);
        }
        is_locked(&mut server.connect(), fate);
        let mut connection = server.connect();
        each(|_, schema, commits| {
            must(&mut connection, &format!("{} PREPARED '{schema}'", if commits { "COMMIT" } else { "ROLLBACK" }));
        });
        if lives > 0 {
            // Once more from the records of both phases.
            server.kill();
            server = start(&data, port);
        }
        let found = answers(&mut server.connect());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "after {fate}");
        }
        assert_eq!(server.terminate(), 0);
    }
}
