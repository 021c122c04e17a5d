//! Random changes under constraints, with blocks, savepoints and rollbacks: PostgreSQL and the server under test must give
//! the same replies and hold the same rows after every step.
//!
//! The seed is printed; `NYALA_SEED=n` repeats a run, `NYALA_ROUNDS=n` makes it n times as long.

use testkit::{Connection, Event, Fields, Random, Reply, Target, changes};

const ROUNDS: u64 = 5;
const STATEMENTS: u64 = 150;

#[test]
fn random_changes_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let times = std::env::var("NYALA_ROUNDS").map_or(1, |text| text.parse().expect("NYALA_ROUNDS is a number"));
    let mut random = Random::new(seed);
    let subject = Target::start();
    let reference = Target::reference();
    let (mut wrong, mut fine) = (Vec::new(), 0);
    for round in 0..ROUNDS * times {
        let (mut first, mut second) = (reference.connect(), subject.connect());
        let mut history = changes::tables(&mut random);
        let schema = format!("CREATE SCHEMA s{round}; SET search_path = s{round}");
        for sql in std::iter::once(&schema).chain(&history) {
            assert_eq!(first.query(sql).error(), None, "{sql}");
            assert_eq!(second.query(sql).error(), None, "{sql}");
        }
        let mut in_failed_block = false;
        for step in 0..STATEMENTS {
            if !in_failed_block {
                // How many numbers a failed statement has taken from a sequence is free.
                let set = format!("SELECT setval('q_id_seq', {})", 10 + 4 * step);
                first.query(&set);
                second.query(&set);
            }
            let sql = changes::statement(&mut random);
            let extended = random.below(3) == 0;
            let [expected, actual] = [&mut first, &mut second].map(|connection| {
                let reply = if extended { connection.extended(&sql, &[]) } else { connection.query(&sql) };
                comparable(reply)
            });
            fine += usize::from(expected.error().is_none());
            in_failed_block = expected.status == Some('E');
            let is_of_other_row = both_violate(&sql, &expected, &actual);
            history.push(sql);
            if is_of_other_row {
                continue;
            }
            if let Some(what) = difference(&expected, &actual, &mut first, &mut second) {
                wrong.push(format!("{};\n{what}", history.join(";\n")));
                break;
            }
        }
    }
    println!("{fine} of {} statements succeed", ROUNDS * times * STATEMENTS);
    let count = wrong.len();
    assert!(count == 0, "NYALA_SEED={seed}: {count} rounds differ:\n{}", wrong.join("\n\n"));
}

/// Both servers refuse a change of several rows for a constraint: which row, and so which constraint, comes first is the order of
/// the table's rows.
fn both_violate(sql: &str, expected: &Reply, actual: &Reply) -> bool {
    let violates = |reply: &Reply| reply.code().starts_with("23");
    let is_of_one = sql.contains(" WHERE id = ") && !sql.contains(" FROM ");
    !is_of_one && violates(expected) && violates(actual) && expected.status == actual.status
}

fn difference(expected: &Reply, actual: &Reply, first: &mut Connection, second: &mut Connection) -> Option<String> {
    if expected != actual {
        return Some(format!("  PostgreSQL:\n{expected}\n  under test:\n{actual}"));
    }
    if expected.status == Some('E') {
        return None;
    }
    changes::TABLES.iter().find_map(|table| {
        let sql = format!("SELECT * FROM {table}");
        let [expected, actual] = [&mut *first, second].map(|connection| comparable(connection.query(&sql)));
        (expected != actual).then(|| format!("  {table} on PostgreSQL:\n{expected}\n  under test:\n{actual}"))
    })
}

/// Rows in a fixed order, and no row's values in the detail of an error that any of several rows may cause.
fn comparable(mut reply: Reply) -> Reply {
    reply.drop_columns_of_errors();
    reply.sort_rows();
    if reply.error().is_some() {
        // PostgreSQL keeps rows back until the statement has ended.
        reply.events.retain(|event| !matches!(event, Event::Columns(_) | Event::Row(_)));
    }
    for event in &mut reply.events {
        match event {
            // Which of several rows comes first is the table's order, and by it which key is named, and where an action sets a
            // default that goes itself which side of it.
            Event::Error(fields) if fields.code == "23503" => {
                *fields = Fields { code: "23503".to_owned(), ..Fields::default() }
            }
            Event::Error(fields) if fields.detail.as_ref().is_some_and(|d| d.starts_with("Failing row")) => {
                fields.detail = None;
            }
            Event::Error(fields) if fields.detail.as_ref().is_some_and(|d| d.starts_with("Key (")) => {
                fields.detail = fields
                    .detail
                    .take()
                    .map(|detail| detail.split_once(')').map_or(detail.clone(), |(a, _)| a.to_owned()));
            }
            Event::Columns(columns) => columns.iter_mut().for_each(|column| column.modifier = -1),
            _ => {}
        }
    }
    reply
}
