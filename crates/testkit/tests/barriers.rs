//! Random statements over nested views with `security_barrier`: none fails through a row that the views hide, whatever kinds of
//! plans that it must use, and each gives PostgreSQL's rows and leaves PostgreSQL's.
//!
//! Hidden rows fail every condition that looks at them, so that one which is tested too early shows. PostgreSQL itself tests
//! some too early, in changes through views of views: then only the first half is judged. The seed is printed; `NYALA_SEED=n`
//! repeats a run, `NYALA_ROUNDS=n` makes it n times as long.

use testkit::{Connection, Event, Random, Reply, Target, barriers};

const ROUNDS: u64 = 20;
const STATEMENTS: u64 = 150;

/// What is switched off, so that each kind of plan has its turn.
const METHODS: [&[&str]; 7] = [
    &[],
    &[],
    &["enable_mergejoin", "enable_nestloop"],
    &["enable_hashjoin", "enable_nestloop"],
    &["enable_hashjoin", "enable_mergejoin"],
    &["enable_seqscan", "enable_sort"],
    &["enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"],
];

/// More than that says nothing new.
const SHOWN: usize = 8;

/// Errors of hidden rows: invalid input, division by zero, arguments out of range.
const LEAKS: [&str; 3] = ["22P02", "22012", "2201F"];

fn must(connection: &mut Connection, sql: &str) {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
}

/// Switches off some kinds of plans, all others on.
fn force(connection: &mut Connection, forced: &[&str]) {
    must(connection, "RESET ALL");
    for setting in forced {
        must(connection, &format!("SET {setting} = off"));
    }
}

/// Runs a statement; a change is looked at and taken back.
fn run(connection: &mut Connection, statement: &barriers::Statement) -> Vec<Reply> {
    if !statement.changes {
        return vec![comparable(connection.query(&statement.sql))];
    }
    must(connection, "BEGIN");
    let mut replies = vec![comparable(connection.query(&statement.sql))];
    if replies[0].error().is_none() {
        let look = |table: &&str| comparable(connection.query(&format!("SELECT * FROM {table}")));
        replies.extend(barriers::TABLES.iter().map(look));
    }
    must(connection, "ROLLBACK");
    replies
}

/// Rows in a fixed order, and of an error its code: which row is the first to fail is free.
fn comparable(mut reply: Reply) -> Reply {
    reply.drop_columns_of_errors();
    reply.keep_only_codes();
    if reply.error().is_some() {
        reply.events.retain(|event| !matches!(event, Event::Columns(_) | Event::Row(_)));
    }
    reply.sort_rows();
    reply
}

#[test]
fn no_statement_fails_through_hidden_rows() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let times = std::env::var("NYALA_ROUNDS").map_or(1, |text| text.parse().expect("NYALA_ROUNDS is a number"));
    let mut random = Random::new(seed);
    let (reference, subject) = (Target::reference(), Target::start());
    let (mut first, mut second) = (reference.connect(), subject.connect());
    let (mut wrong, mut fine, mut leaks) = (Vec::new(), 0, 0);
    for round in 0..ROUNDS * times {
        let schema = barriers::schema(&mut random);
        let name = format!("s{round}");
        for connection in [&mut first, &mut second] {
            must(connection, "RESET ALL");
            must(connection, &format!("CREATE SCHEMA {name}"));
            must(connection, &format!("SET search_path = {name}"));
            schema.statements.iter().for_each(|sql| must(connection, sql));
            for (table, value) in barriers::TABLES.iter().flat_map(|table| [(table, "t::int"), (table, "12 / z")]) {
                let sql = format!("SELECT count({value}) FROM {table}");
                assert!(LEAKS.contains(&connection.query(&sql).code()), "{sql}: the hidden rows fail nothing");
            }
        }
        for _ in 0..STATEMENTS {
            let statement = barriers::statement(&schema, &mut random);
            let forced = METHODS[random.below(METHODS.len() as u64) as usize];
            force(&mut second, forced);
            must(&mut second, &format!("SET search_path = {name}"));
            let (expected, actual) = (run(&mut first, &statement), run(&mut second, &statement));
            let leaked = |replies: &[Reply]| LEAKS.contains(&replies[0].code());
            leaks += usize::from(leaked(&expected));
            fine += usize::from(expected[0].error().is_none());
            if leaked(&actual) || (expected != actual && !leaked(&expected)) {
                let shown = |replies: &[Reply]| replies.iter().map(Reply::to_string).collect::<Vec<_>>().join("\n");
                wrong.push(format!(
                    "{};\n{}\n  without {forced:?}\n  PostgreSQL:\n{}\n  under test:\n{}",
                    schema.statements.join(";\n"),
                    statement.sql,
                    shown(&expected),
                    shown(&actual)
                ));
            }
        }
        for connection in [&mut first, &mut second] {
            must(connection, &format!("DROP SCHEMA {name} CASCADE"));
        }
    }
    let all = ROUNDS * times * STATEMENTS;
    println!("{fine} of {all} statements succeed, {leaks} leak on PostgreSQL");
    assert_eq!(subject.panics(), Vec::<String>::new());
    assert!(fine as u64 * 10 >= all * 9, "only {fine} of {all} statements are right at all");
    let count = wrong.len();
    wrong.truncate(SHOWN);
    assert!(count == 0, "NYALA_SEED={seed}: {count} statements differ:\n{}", wrong.join("\n\n"));
}
