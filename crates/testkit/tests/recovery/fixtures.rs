//! Data directories that earlier versions have left (tests/fixtures), served by this one.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use testkit::{Connection, Nyala, Target};

/// The fixtures' directories, one for each version of the formats.
pub fn fixtures() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let entries = std::fs::read_dir(all).expect("they are there").flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// A copy that may be changed.
pub fn copy(fixture: &Path, to: &Path) {
    std::fs::DirBuilder::new().mode(0o700).create(to).expect("it is not there");
    for file in std::fs::read_dir(fixture).expect("it is there").flatten() {
        std::fs::copy(file.path(), to.join(file.file_name())).expect("it can be copied");
    }
}

/// What `contents.sql` has left, less what is prepared; then with what "behind the image" and "before the image" have done.
const LEFT: [(&str, &str); 7] = [
    ("SELECT count(*), sum(id), sum(balance) FROM accounts", "54|1686|16142.25"),
    (
        "SELECT string_agg(id::text, ',' ORDER BY id) FROM accounts WHERE owner IN ('changed', 'behind the image', 'prepared')",
        "3,70",
    ),
    ("SELECT count(*) FROM accounts WHERE owner = 'owner 5'", "7"),
    ("SELECT string_agg(coalesce(note, '-') || stars, ',' ORDER BY stars, note) FROM notes", "first3,-3,second5"),
    ("SELECT at AT TIME ZONE 'UTC', tags FROM notes WHERE note = 'first'", "2026-01-02 03:04:05|{a,b}"),
    ("SELECT string_agg(id || ' ' || mood, ',' ORDER BY id) FROM moods", "1 calm,2 busy"),
    (
        "SELECT string_agg(gid, ',' ORDER BY gid) FROM pg_prepared_xacts WHERE gid NOT LIKE 'definitions%'",
        "before the image,behind the image",
    ),
];

/// Transactions that have changed definitions are prepared since version 3 of checkpoints: what is locked by them, and what is
/// there when one of them is committed and the other rolled back.
const LOCKED: [&str; 2] = ["SELECT * FROM altered", "INSERT INTO emptied VALUES (9)"];
const DEFINED: [(&str, &str); 5] = [
    ("SELECT string_agg(id || ' ' || mood, ',' ORDER BY id) FROM made", "1 busy,2 busy"),
    ("SELECT string_agg(id || ' ' || why, ',' ORDER BY id) FROM altered", "1 known,2 unknown,3 unknown,4 unknown"),
    ("SELECT id FROM altered WHERE why = 'known'", "1"),
    ("SELECT string_agg(id::text, ',' ORDER BY id) FROM emptied", "1,2"),
    ("SELECT count(*) FROM pg_class WHERE relname LIKE 'made_later%' OR relname = 'altered_why'", "1"),
];

/// The values of an answer that is no error.
pub fn ask(connection: &mut Connection, sql: &str) -> String {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
    let values = reply.rows().flatten().map(|value| value.clone().unwrap_or_default());
    values.collect::<Vec<_>>().join("|")
}

/// After everything that expressions speak of has another name, by whatever version they were kept.
const RENAMED: [(&str, &str); 12] = [
    ("ALTER SEQUENCE called RENAME TO asked", ""),
    ("ALTER TYPE mood RENAME TO temper", ""),
    ("ALTER TYPE temper RENAME VALUE 'busy' TO 'hasty'", ""),
    ("ALTER TYPE temper RENAME VALUE 'calm' TO 'still'", ""),
    ("ALTER TABLE named RENAME id TO number", ""),
    ("ALTER SEQUENCE elsewhere.there SET SCHEMA public", ""),
    ("ALTER SEQUENCE moods_id_seq RENAME TO mood_numbers", ""),
    ("INSERT INTO named DEFAULT VALUES RETURNING *", "1|still|2"),
    ("INSERT INTO feelings VALUES (1) RETURNING *", "1|still"),
    ("INSERT INTO elsewhere.t DEFAULT VALUES RETURNING *", "1"),
    ("INSERT INTO moods (mood) VALUES ('hasty') RETURNING mood", "hasty"),
    (
        "SELECT string_agg(pg_get_constraintdef(oid), ' ' ORDER BY conname) FROM pg_constraint WHERE conname LIKE 'named%' OR conname LIKE 'good%'",
        "CHECK ((VALUE = 'still'::temper)) CHECK ((mood <> 'hasty'::temper))",
    ),
];

/// What views of earlier versions did not know they read, and what may be done to it.
const READ: [(&str, &str); 6] = [
    ("ALTER TABLE parts DROP COLUMN weight", "2BP01"),
    ("ALTER TABLE parts DROP COLUMN name", "00000"),
    ("DROP SEQUENCE counted", "2BP01"),
    ("ALTER SEQUENCE counted RENAME TO tallied", "00000"),
    ("SELECT last_value FROM counted_so_far", "00000"),
    ("SELECT id FROM heavy_parts", "00000"),
];

/// Whether the fixture has definitions with expressions.
fn has_expressions(connection: &mut Connection) -> bool {
    ask(connection, "SELECT count(*) FROM pg_class WHERE relname = 'named'") == "1"
}

/// Whether it has views over a sequence and over a WITH query.
fn has_readers(connection: &mut Connection) -> bool {
    ask(connection, "SELECT count(*) FROM pg_class WHERE relname IN ('counted_so_far', 'heavy_parts')") == "2"
}

/// What is left of rows whose columns are gone, with the types of the columns; until then layouts said the types.
const LEFT_OVER: (&str, &str) = (
    "SELECT string_agg(concat_ws(' ', id, note, n), ',' ORDER BY id) FROM left_over",
    "1 note 1 10,2 note 2 20,3 note 3 30,4 note 4 40",
);

/// Whether it has a table whose columns' types are gone, and will go.
fn has_left_over(connection: &mut Connection) -> bool {
    ask(connection, "SELECT count(*) FROM pg_class WHERE relname = 'left_over'") == "1"
}

fn defines(connection: &mut Connection) -> bool {
    ask(connection, "SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE 'definitions%'") == "2"
}

#[test]
fn every_version_is_served() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let (mut readers, mut left_over) = (0, 0);
    for fixture in fixtures() {
        let directory = tempfile::tempdir().expect("a directory for the server");
        let (data, port) = (directory.path().join("data"), Nyala::free_port());
        copy(&fixture, &data);
        let flags = ["--log-segment", "1MB", "--http", "off"];
        let name = fixture.display();
        // As it is, and as this version has written it.
        for life in 0..3 {
            let server = Nyala::start_with(&data, port, &flags);
            let mut connection = server.connect();
            for (sql, expected) in LEFT {
                assert_eq!(ask(&mut connection, sql), expected, "{name}, life {life}: {sql}");
            }
            if has_left_over(&mut connection) {
                assert_eq!(ask(&mut connection, LEFT_OVER.0), LEFT_OVER.1, "{name}, life {life}");
            }
            let locked = connection.query("SET lock_timeout = 50; UPDATE accounts SET balance = 0 WHERE id IN (1, 2)");
            assert_eq!(locked.code(), "55P03", "{name}, life {life}: {locked}");
            let defines = defines(&mut connection);
            assert_eq!(ask(&mut connection, "SET lock_timeout = 50"), "");
            for sql in LOCKED.iter().filter(|_| defines) {
                assert_eq!(connection.query(sql).code(), "55P03", "{name}, life {life}: {sql}");
            }
            assert_eq!(ask(&mut connection, "RESET lock_timeout"), "");
            assert_eq!(ask(&mut connection, "CHECKPOINT"), "");
            server.kill();
        }
        let server = Nyala::start_with(&data, port, &flags);
        let mut connection = server.connect();
        ask(&mut connection, "COMMIT PREPARED 'before the image'");
        ask(&mut connection, "ROLLBACK PREPARED 'behind the image'");
        let defines = defines(&mut connection);
        if defines {
            ask(&mut connection, "COMMIT PREPARED 'definitions before the image'");
            ask(&mut connection, "ROLLBACK PREPARED 'definitions behind the image'");
        }
        let ended =
            "SELECT string_agg(id || ' ' || balance, ',' ORDER BY id) FROM accounts WHERE id IN (1, 2, 1001, 1002)";
        assert_eq!(ask(&mut connection, ended), "1 1010.00,1001 1.00", "{name}");
        let has_left_over = has_left_over(&mut connection);
        if has_left_over {
            left_over += 1;
            ask(&mut connection, "DROP DOMAIN tally CASCADE");
            ask(&mut connection, "ALTER TABLE left_over DROP COLUMN m");
            ask(&mut connection, "CHECKPOINT");
        }
        let ticket: u32 = ask(&mut connection, "SELECT nextval('tickets')").parse().expect("a number");
        assert!(ticket > 102, "{name}: ticket {ticket} was handed out before");
        // Since version 4 of checkpoints: sequences that were restarted before the image and behind it.
        if ask(&mut connection, "SELECT count(*) FROM pg_class WHERE relname LIKE 'restarted%'") == "2" {
            let next = ask(&mut connection, "SELECT nextval('restarted') > 1000, nextval('restarted_later')");
            assert_eq!(next, "t|2000", "{name}");
        }
        server.kill();
        let server = Nyala::start_with(&data, port, &flags);
        let mut connection = server.connect();
        assert_eq!(ask(&mut connection, ended), "1 1010.00,1001 1.00", "{name}");
        if has_left_over {
            assert_eq!(ask(&mut connection, LEFT_OVER.0), LEFT_OVER.1, "{name}");
        }
        for (sql, expected) in DEFINED.iter().filter(|_| defines) {
            assert_eq!(ask(&mut connection, sql), *expected, "{name}: {sql}");
        }
        if has_expressions(&mut connection) {
            for (sql, expected) in RENAMED {
                assert_eq!(ask(&mut connection, sql), expected, "{name}: {sql}");
            }
        }
        if has_readers(&mut connection) {
            readers += 1;
            for (sql, code) in READ {
                assert_eq!(connection.query(sql).code(), code, "{name}: {sql}");
            }
        }
    }
    assert!(readers > 0, "a fixture has views that did not list all they read");
    assert!(left_over > 0, "a fixture has rows of types that are gone");
}

/// A default that means nothing any more is told of: by a server of before its sequence got another name.
#[test]
fn what_means_nothing_is_reported() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let mut found = 0;
    for fixture in fixtures() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        copy(&fixture, &data);
        let checked = std::process::Command::new(Nyala::binary()).arg("check").arg(&data).output().expect("it runs");
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        let reported =
            said.contains("definition: default of public.lost.id has no meaning: relation \"gone\" does not exist\n");
        assert_eq!(reported, fixture.ends_with("v5-names"), "{}: {said}", fixture.display());
        assert_eq!(said.matches("definition: ").count(), usize::from(reported), "{}: {said}", fixture.display());
        found += usize::from(reported);
    }
    assert_eq!(found, 1, "a fixture has one");
}
