//! What depends on what, in several databases: each sees, locks and changes only its own.

use testkit::{Connection, Oracle, Target, both};

/// Two databases with the same names in them: what is dropped in one waits for no lock in the other and changes nothing there.
#[test]
fn nothing_depends_on_another_database() {
    let (oracle, subject) = (Target::reference(), Target::start());
    let ports = [Oracle::shared().port(), subject.port()];
    let mut first = [oracle.connect(), subject.connect()];
    both(&mut first, "CREATE DATABASE depends_other");
    let mut second = ports.map(|port| Connection::open(port, "depends_other").expect("the new database"));
    let made = "CREATE SCHEMA depends; SET search_path = depends; CREATE SEQUENCE a; CREATE TYPE js AS ENUM ('x'); \
                CREATE TABLE t (n int DEFAULT nextval('a'), s js DEFAULT 'x'); CREATE VIEW v AS SELECT * FROM t; \
                CREATE TABLE orders (id serial); CREATE TABLE borders (id serial)";
    for connections in [&mut first, &mut second] {
        both(connections, made);
    }
    both(
        &mut second,
        "BEGIN; INSERT INTO t DEFAULT VALUES RETURNING *; INSERT INTO borders DEFAULT VALUES RETURNING *",
    );
    both(&mut first, "SET statement_timeout = '20s'");
    for statement in ["DROP TABLE orders", "DROP SEQUENCE a CASCADE", "DROP TYPE js CASCADE", "DROP TABLE t CASCADE"] {
        assert!(!both(&mut first, statement).contains("ERROR"), "{statement}");
    }
    both(&mut first, "INSERT INTO borders DEFAULT VALUES RETURNING *");
    both(
        &mut second,
        "COMMIT; INSERT INTO t DEFAULT VALUES RETURNING *; INSERT INTO orders DEFAULT VALUES RETURNING *",
    );
    both(&mut second, "TABLE v");
    both(&mut first, "DROP SCHEMA depends CASCADE");
    both(&mut second, "TABLE v");
    both(&mut first, "DROP DATABASE depends_other WITH (FORCE)");
}
