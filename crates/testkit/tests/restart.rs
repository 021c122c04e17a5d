//! What a script has left behind is the same after kill -9 and a restart: rows, columns, defaults, constraints, indexes; and so
//! are plans.
//!
//! The server is compared with itself, so that this says something even where it differs from PostgreSQL.

use testkit::script::{Protocol, Script, run};
use testkit::{Connection, Nyala, Reply, Target};

/// Scripts that leave much behind.
const SCRIPTS: [(&str, &str); 10] = [
    ("ddl", include_str!("../../../tests/slt/ddl.slt")),
    ("constraints", include_str!("../../../tests/slt/constraints.slt")),
    ("schemas_sequences_indexes", include_str!("../../../tests/slt/schemas_sequences_indexes.slt")),
    ("writes", include_str!("../../../tests/slt/writes.slt")),
    ("transactions", include_str!("../../../tests/slt/transactions.slt")),
    ("deferred", include_str!("../../../tests/slt/deferred.slt")),
    ("views", include_str!("../../../tests/slt/views.slt")),
    ("made_types", include_str!("../../../tests/slt/made_types.slt")),
    ("domain_arrays", include_str!("../../../tests/slt/domain_arrays.slt")),
    ("dropped_types", include_str!("../../../tests/slt/dropped_types.slt")),
];

/// What the catalog says, in an order of its own. OIDs and a sequence's position may change over a crash.
const CATALOG: [&str; 5] = [
    "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
    "SELECT table_schema, table_name, column_name, ordinal_position, column_default, is_nullable, data_type \
     FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
    "SELECT conrelid::regclass::text, conname, contype, pg_get_constraintdef(oid) FROM pg_constraint",
    "SELECT schemaname, indexname, indexdef FROM pg_indexes WHERE schemaname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')",
    "SELECT sequence_schema, sequence_name, data_type, start_value, increment FROM information_schema.sequences",
];

#[test]
fn a_restart_changes_nothing() {
    if Target::is_postgres() {
        println!("not run: there is no server to kill");
        return;
    }
    for (name, text) in SCRIPTS {
        let script = Script::parse(name, text).expect("the script is well formed");
        let subject = Target::start();
        run(&script, Protocol::Simple, &Target::reference(), &subject);
        let Target::Nyala { server, directory } = subject else { panic!("the server under test is no PostgreSQL") };
        let port = server.port();
        let before = contents(&mut server.connect());
        assert!(before.len() > CATALOG.len(), "{name} leaves no table");
        server.kill();
        let server = Nyala::start(&directory.path().join("data"), port);
        compare(name, "read from the log", &before, &contents(&mut server.connect()));
        assert_eq!(server.connect().query("CHECKPOINT").error(), None);
        server.kill();
        let server = Nyala::start(&directory.path().join("data"), port);
        assert!(server.stderr().contains("opened: checkpoint 1 ("), "{}", server.stderr());
        compare(name, "read from an image", &before, &contents(&mut server.connect()));
    }
}

fn compare(name: &str, how: &str, before: &[(String, Reply)], after: &[(String, Reply)]) {
    for ((sql, before), (_, after)) in before.iter().zip(after) {
        assert!(before == after, "{name}: {sql}\n  before:\n{before}\n  {how}:\n{after}");
    }
    assert_eq!(before.len(), after.len(), "{name}: tables came or went");
}

/// A table whose values decide about plans, of types that are stored in different forms.
const SKEWED: &str = "
    CREATE TYPE mood AS ENUM ('low', 'high');
    CREATE DOMAIN code AS text;
    CREATE TABLE kept (id int PRIMARY KEY, few int, name varchar(20), at timestamptz, n numeric, tags text[], m mood, c code, ms mood[]);
    CREATE INDEX ON kept (few);
    CREATE INDEX ON kept (m, at);
    INSERT INTO kept SELECT g, CASE WHEN g % 100 = 0 THEN g ELSE 7 END, 'name ' || g % 13, '2026-01-01'::timestamptz + g * '1 min'::interval,
        g / 7.0, ARRAY['a', (g % 5)::text], CASE WHEN g % 50 = 0 THEN 'high' ELSE 'low' END::mood, 'c' || g % 3, ARRAY['low', 'high']::mood[]
        FROM generate_series(1, 5000) g;
    CREATE TABLE other AS SELECT g AS id, g % 10 AS kept FROM generate_series(1, 800) g;
    CREATE TABLE gone AS SELECT 1 AS a;
    ANALYZE;
    DROP TABLE gone";

/// What the planner knows, and plans that follow from it.
const PLANNED: [&str; 7] = [
    "SELECT * FROM pg_stats WHERE schemaname = 'public' ORDER BY tablename, attname",
    "EXPLAIN SELECT * FROM kept WHERE few = 7",
    "EXPLAIN SELECT * FROM kept WHERE few = 300",
    "EXPLAIN SELECT * FROM kept WHERE m = 'high' AND at > '2026-01-02'",
    "EXPLAIN SELECT * FROM kept JOIN other ON other.kept = kept.few WHERE kept.n < 100 AND c = 'c1'",
    "EXPLAIN SELECT name, count(*) FROM kept WHERE at < '2026-01-03' GROUP BY name",
    "EXPLAIN SELECT * FROM other WHERE id IN (SELECT id FROM kept WHERE name = 'name 3')",
];

#[test]
fn plans_are_those_before() {
    if Target::is_postgres() {
        println!("not run: there is no server to kill");
        return;
    }
    let Target::Nyala { server, directory } = Target::start() else { panic!("the server under test is no PostgreSQL") };
    let data = directory.path().join("data");
    let port = server.port();
    let mut connection = server.connect();
    assert_eq!(connection.query(SKEWED).error(), None);
    let before = PLANNED.map(|sql| connection.query(sql));
    assert!(before[0].rows().count() > 9, "hardly anything is known: {}", before[0]);
    let is_by_index = |reply: &Reply| reply.to_string().contains("Index");
    assert!(!is_by_index(&before[1]) && is_by_index(&before[2]), "the values do not decide");
    drop(connection);
    // Another file has no place here, and what was begun and not ended stands in nobody's way.
    assert_eq!(server.terminate(), 0);
    std::fs::write(data.join("statistics.new"), "half of").expect("the directory can be written");
    let known = std::fs::read(data.join("statistics")).expect("there is a file");
    let server = Nyala::start(&data, port);
    compare_plans("after an orderly end", &before, &server);
    server.kill();
    let server = Nyala::start(&data, port);
    compare_plans("after kill -9", &before, &server);
    assert_eq!(server.terminate(), 0);
    // A damaged file is left out; the tables are sampled again.
    let mut damaged = known;
    damaged[100] ^= 1;
    std::fs::write(data.join("statistics"), damaged).expect("the directory can be written");
    let server = Nyala::start(&data, port);
    assert!(server.stderr().contains("statistics is damaged at byte 16"), "{}", server.stderr());
    assert_eq!(server.connect().query("ANALYZE").error(), None);
    compare_plans("after damage", &before, &server);
}

fn compare_plans(when: &str, before: &[Reply], server: &Nyala) {
    let mut connection = server.connect();
    for (sql, before) in PLANNED.iter().zip(before) {
        let after = connection.query(sql);
        assert!(*before == after, "{when}: {sql}\n  before:\n{before}\n  now:\n{after}");
    }
}

/// The catalog and the rows of all tables: each question with its answer.
fn contents(connection: &mut Connection) -> Vec<(String, Reply)> {
    let mut questions: Vec<String> = CATALOG.iter().map(|sql| (*sql).to_owned()).collect();
    let tables = connection.query(
        "SELECT 'SELECT * FROM ' || quote_ident(table_schema) || '.' || quote_ident(table_name) \
         FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema') \
         ORDER BY 1",
    );
    assert_eq!(tables.error(), None);
    questions.extend(tables.rows().flatten().flatten().cloned());
    let answers = questions.into_iter().map(|sql| {
        let mut reply = connection.query(&sql);
        reply.sort_rows();
        (sql, reply)
    });
    answers.collect()
}
