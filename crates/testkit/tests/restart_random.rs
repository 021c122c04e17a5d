//! Random definitions and changes, now and then a checkpoint, kill -9, restart: what was acknowledged is the same as before, and enforced as before.
//!
//! The server is compared with itself. Statements may fail; what matters is that nothing differs after the restart.

use testkit::{Connection, Nyala, Random, Reply, Target};

const ROUNDS: u32 = 12;
const STATEMENTS: u64 = 120;
const TABLES: u64 = 4;

/// Questions about definitions, in an order of their own. Temporary relations are gone after a restart.
const CATALOG: [&str; 8] = [
    "SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type, domain_name, udt_name, generation_expression \
     FROM information_schema.columns WHERE table_schema = 'public'",
    "SELECT conrelid::regclass::text, conname, contype, condeferrable, condeferred, convalidated, pg_get_constraintdef(c.oid) \
     FROM pg_constraint c LEFT JOIN pg_class r ON conrelid = r.oid WHERE r.relpersistence IS DISTINCT FROM 't'",
    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT indexrelid::regclass::text, indisvalid, indimmediate, indnullsnotdistinct FROM pg_index JOIN pg_class ON oid = indrelid \
     WHERE relpersistence <> 't' AND relnamespace = 'public'::regnamespace",
    "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'",
    "SELECT matviewname, ispopulated, definition FROM pg_matviews WHERE schemaname = 'public'",
    "SELECT typname, enumlabel, enumsortorder FROM pg_enum JOIN pg_type t ON t.oid = enumtypid",
    "SELECT typname, typnotnull, typdefault FROM pg_type WHERE typtype = 'd' AND typnamespace = 'public'::regnamespace",
];

fn statement(random: &mut Random) -> String {
    let t = random.below(TABLES);
    let n = random.below(40);
    let m = random.below(6);
    let k = random.below(2);
    let deferral = ["", "DEFERRABLE", "DEFERRABLE INITIALLY DEFERRED"][random.below(3) as usize];
    match random.below(48) {
        0 => format!(
            "CREATE TABLE t{t} (id int PRIMARY KEY {deferral}, a int, b text DEFAULT 'b{m}', e mood DEFAULT 'calm', p positive)"
        ),
        1 => format!("DROP TABLE t{t} CASCADE"),
        2 => format!("CREATE INDEX ON t{t} ((a + {m}))"),
        3 => format!("CREATE INDEX ON t{t} (lower(b)) WHERE a > {n}"),
        4 => format!("CREATE UNIQUE INDEX i{t}_{m} ON t{t} (a, b) NULLS NOT DISTINCT"),
        5 => format!("CREATE INDEX CONCURRENTLY c{t}_{m} ON t{t} (b, a)"),
        6 => format!("CREATE UNIQUE INDEX CONCURRENTLY u{t}_{m} ON t{t} (a)"),
        7 => format!("DROP INDEX IF EXISTS c{t}_{m}, u{t}_{m}, i{t}_{m}"),
        8 => format!("ALTER TABLE t{t} ADD CONSTRAINT uq{t}_{m} UNIQUE (b, id) {deferral}"),
        9 => format!("ALTER TABLE t{t} ADD CONSTRAINT fk{t}_{m} FOREIGN KEY (a) REFERENCES parent {deferral}"),
        10 => format!("ALTER TABLE t{t} ADD CONSTRAINT ck{t}_{m} CHECK (a <> -{m}) NOT VALID"),
        11 => format!("ALTER TABLE t{t} VALIDATE CONSTRAINT ck{t}_{m}"),
        12 => format!("ALTER TABLE t{t} DROP CONSTRAINT IF EXISTS uq{t}_{m}, DROP CONSTRAINT IF EXISTS fk{t}_{m}"),
        13 => format!(
            "ALTER TABLE t{t} ALTER CONSTRAINT fk{t}_{m} {}",
            if deferral.is_empty() { "NOT DEFERRABLE" } else { deferral }
        ),
        14 => format!("ALTER TABLE t{t} ADD COLUMN x{m} int DEFAULT {n}"),
        15 => format!("ALTER TABLE t{t} ADD COLUMN g{m} int GENERATED ALWAYS AS (id + {m}) STORED"),
        16 => format!("ALTER TABLE t{t} DROP COLUMN IF EXISTS x{m} CASCADE"),
        17 => {
            format!("ALTER TABLE t{t} ALTER COLUMN a TYPE {}", ["bigint", "int", "numeric"][random.below(3) as usize])
        }
        18 => format!("ALTER TABLE t{t} ALTER COLUMN b SET DEFAULT 'now {m}'"),
        19 => format!("CREATE OR REPLACE VIEW v{t} AS SELECT id, a, e FROM t{t} WHERE a > {n}"),
        20 => format!("CREATE MATERIALIZED VIEW mv{t} AS SELECT id, b FROM t{t}"),
        21 => format!("REFRESH MATERIALIZED VIEW mv{t}"),
        22 => format!("DROP VIEW IF EXISTS v{t} CASCADE"),
        23 => format!("ALTER TYPE mood ADD VALUE IF NOT EXISTS 'mood {n}' BEFORE 'wild'"),
        24 => format!("ALTER DOMAIN positive ADD CONSTRAINT below_{n} CHECK (VALUE < {})", 1000 + n),
        25 => format!("CREATE TEMPORARY TABLE tmp{m} (id int PRIMARY KEY, e mood)"),
        26 => format!("INSERT INTO tmp{m} SELECT i, 'wild' FROM generate_series(1, {n}) i"),
        27 => format!("TRUNCATE t{t}"),
        28 => format!("UPDATE t{t} SET id = id + 1"),
        29 => format!("UPDATE t{t} SET a = {n}, e = 'wild' WHERE id % 7 = {m}"),
        30 => format!("DELETE FROM t{t} WHERE id % 11 = {m}"),
        31 => format!(
            "BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO t{t} (id, a) VALUES ({}, {}); INSERT INTO parent VALUES ({}); COMMIT",
            5000 + n,
            900 + n,
            900 + n
        ),
        32 => format!("BEGIN; DROP TABLE t{t} CASCADE; INSERT INTO parent VALUES ({}); ROLLBACK", 2000 + n),
        33 => format!("COMMENT ON TABLE t{t} IS 'comment {n}'"),
        34 => format!("CREATE TYPE made{k} AS ENUM ('one', 'two')"),
        35 => {
            let base = ["int", "text", "bigint[]", "mood", "made0"][random.below(5) as usize];
            format!("CREATE DOMAIN made{k} AS {base}")
        }
        36..=39 => {
            let array = ["", "[]"][random.below(2) as usize];
            format!("ALTER TABLE t{t} ADD COLUMN y{k} made{k}{array}")
        }
        40 => format!("UPDATE t{t} SET y{k} = NULLIF('two', b) WHERE id % 5 = {m}"),
        41 => format!("UPDATE t{t} SET y{k} = '7' WHERE id % 5 = {m}"),
        42 => format!("UPDATE t{t} SET y{k} = '{{one,two}}' WHERE id % 3 = {m}"),
        43 => format!("UPDATE t{t} SET y{k} = '{{1,2,3}}' WHERE id % 3 = {m}"),
        44 => format!("ALTER TABLE t{t} DROP COLUMN IF EXISTS y{k}"),
        45 => format!("DROP TYPE IF EXISTS made{k} CASCADE"),
        // A type that only rows remember.
        46 => {
            let (what, value) =
                [("TYPE once AS ENUM ('x')", "x"), ("DOMAIN once AS int", "5"), ("DOMAIN once AS text", "long text")]
                    [random.below(3) as usize];
            format!(
                "CREATE {what}; ALTER TABLE t{t} ADD COLUMN z once; \
                 INSERT INTO t{t} (id, a, z) SELECT i, {m}, '{value}' FROM generate_series({0}, {0} + 9) i ON CONFLICT DO NOTHING; \
                 DROP TYPE once CASCADE",
                3000 + 10 * n
            )
        }
        _ => format!(
            "INSERT INTO t{t} (id, a, p) SELECT i, i % 40, i FROM generate_series({0}, {0} + 20) i ON CONFLICT DO NOTHING",
            1 + random.below(2000)
        ),
    }
}

fn contents(connection: &mut Connection) -> Vec<(String, Reply)> {
    let mut questions: Vec<String> = CATALOG.iter().map(|sql| (*sql).to_owned()).collect();
    let tables = connection.query(
        "SELECT 'SELECT * FROM ' || oid::regclass FROM pg_class WHERE relkind IN ('r', 'm', 'v') \
         AND relnamespace = 'public'::regnamespace ORDER BY 1",
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

#[test]
fn random_definitions_survive_a_kill() {
    if Target::is_postgres() {
        println!("not run: there is no server to kill");
        return;
    }
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let mut random = Random::new(seed);
    let directory = tempfile::tempdir().expect("a directory for the server");
    let (data, port) = (directory.path().join("data"), Nyala::free_port());
    let mut server = Nyala::start(&data, port);
    for sql in [
        "CREATE TYPE mood AS ENUM ('calm', 'wild')",
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "INSERT INTO parent SELECT generate_series(0, 60)",
    ] {
        assert_eq!(server.connect().query(sql).error(), None, "{sql}");
    }
    let mut failed = 0;
    for round in 1..=ROUNDS {
        let mut connection = server.connect();
        for _ in 0..STATEMENTS {
            let sql = statement(&mut random);
            let reply = connection.query(&sql);
            assert!(reply.status.is_some(), "round {round}: the connection is lost after {sql}: {reply}");
            assert_ne!(reply.code(), "XX000", "round {round}: {sql}: {reply}");
            if reply.error().is_some() {
                failed += 1;
                connection.query("ROLLBACK");
            }
        }
        let before = contents(&mut connection);
        if round % 2 == 0 {
            assert_eq!(connection.query("CHECKPOINT").error(), None);
        }
        server.kill();
        server = Nyala::start(&data, port);
        let after = contents(&mut server.connect());
        for ((sql, before), (_, after)) in before.iter().zip(&after) {
            assert!(before == after, "round {round}: {sql}\n  before:\n{before}\n  after the restart:\n{after}");
        }
        assert_eq!(before.len(), after.len(), "round {round}: relations came or went");
    }
    let all = u64::from(ROUNDS) * STATEMENTS;
    println!("{failed} of {all} statements failed");
    assert!(failed < all * 3 / 4, "hardly any statement did anything");
}
