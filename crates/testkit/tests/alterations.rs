//! Random ALTER TABLE: what PostgreSQL refuses is refused, and afterwards columns and rows are the same.
//!
//! The server under test may refuse what it does not have (0A000). The seed is printed; `NYALA_SEED=n` repeats a run,
//! `NYALA_ROUNDS=n` makes it n times as long.

use testkit::{Connection, Random, Reply, Target, alterations};

const ROUNDS: u64 = 12;
const STATEMENTS: u64 = 40;

/// More than that says nothing new.
const SHOWN: usize = 10;

#[test]
fn random_alterations_agree() {
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let times = std::env::var("NYALA_ROUNDS").map_or(1, |text| text.parse().expect("NYALA_ROUNDS is a number"));
    let mut random = Random::new(seed);
    let (reference, subject) = (Target::reference(), Target::start());
    let (mut wrong, mut fine, mut unsupported) = (Vec::new(), 0, 0);
    for round in 0..ROUNDS * times {
        let (mut first, mut second) = (reference.connect(), subject.connect());
        let mut history = vec![format!("CREATE SCHEMA s{round}; SET search_path = s{round}")];
        history.extend(alterations::tables(&mut random));
        for sql in &history {
            assert_eq!(first.query(sql).error(), None, "{sql}");
            assert_eq!(second.query(sql).error(), None, "{sql}");
        }
        for _ in 0..STATEMENTS {
            let sql = alterations::statement(&mut random);
            let [expected, actual] = [&mut first, &mut second].map(|connection| {
                connection.query("BEGIN");
                connection.query(&sql)
            });
            let lacking = actual.error().is_some_and(|error| error.code == "0A000");
            // A literal of a default does not keep the type that its column had when it was set.
            let lenient = expected.error().is_some_and(|error| error.message.starts_with("default for column"));
            let succeeds = expected.error().is_none() && actual.error().is_none();
            unsupported += u64::from(lacking && expected.error().is_none());
            let same = lacking || lenient || expected.error().is_none() == actual.error().is_none();
            let end = if succeeds { "COMMIT" } else { "ROLLBACK" };
            first.query(end);
            second.query(end);
            if !same {
                wrong.push(told(&history, &sql, &expected, &actual));
            }
            if !succeeds {
                continue;
            }
            fine += 1;
            history.push(sql);
            if let Some((query, expected, actual)) = difference(&mut first, &mut second) {
                wrong.push(told(&history, &query, &expected, &actual));
                break;
            }
        }
    }
    println!("{fine} of {} statements succeed, {unsupported} are not supported", ROUNDS * times * STATEMENTS);
    assert!(fine * 8 > ROUNDS * times * STATEMENTS, "only {fine} statements succeed");
    assert!(unsupported * 50 < ROUNDS * times * STATEMENTS, "{unsupported} statements are not supported");
    let count = wrong.len();
    wrong.truncate(SHOWN);
    assert!(count == 0, "NYALA_SEED={seed}: {count} differ:\n{}", wrong.join("\n\n"));
}

fn told(history: &[String], sql: &str, expected: &Reply, actual: &Reply) -> String {
    format!("{};\n{sql}\n  PostgreSQL:\n{expected}\n  under test:\n{actual}", history.join(";\n"))
}

/// What one of the tables is by now, where the servers do not agree.
fn difference(first: &mut Connection, second: &mut Connection) -> Option<(String, Reply, Reply)> {
    ["t", "u"].into_iter().flat_map(alterations::shown).find_map(|query| {
        let (expected, actual) = (first.query(&query), second.query(&query));
        (expected != actual).then_some((query, expected, actual))
    })
}
