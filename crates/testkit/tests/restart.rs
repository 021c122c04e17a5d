//! What a script has left behind is the same after kill -9 and a restart: rows, columns, defaults, constraints, indexes.
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
