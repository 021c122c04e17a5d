//! The test suites of drivers and of a framework, written by others, on PostgreSQL and on the server under test.
//!
//! A test that passes on PostgreSQL passes here, or stands with its reason in `tests/clients/suites/NAME/differences.txt`; one that stands
//! there and passes is to be taken off. What PostgreSQL fails or skips is not asked for. `SUITES="psycopg2 asyncpg"` chooses; by
//! default some are run, and by `make clients-full` all.

use std::collections::BTreeSet;
use std::process::Command;

use testkit::{Target, skip};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/suites");
/// What `run.sh` ends with if the suite cannot be fetched.
const UNREACHABLE: i32 = 3;
/// Those that are run by default.
const DEFAULT: &str = "psycopg2 pq pgconn";
/// Suites of which so many of a hundred tests that pass on PostgreSQL must pass here: two drivers and a framework. The others are about
/// what is not here to a greater part.
const NEARLY_ALL: [&str; 3] = ["pq", "pgconn", "sqlalchemy"];
const SHARE_MIN: f64 = 97.0;
/// A test that has a clock can be late on a busy machine; a real difference is there every time.
const ATTEMPTS: u32 = 3;

/// The tests that pass. Those are in it of which all parts pass. `None` if the suite cannot be fetched.
fn passed(suite: &str, target: &Target, tests: &[&str]) -> Option<BTreeSet<String>> {
    let output = Command::new(format!("{DIRECTORY}/run.sh"))
        .arg(suite)
        .args(tests)
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", target.port().to_string())
        .env("PGUSER", "postgres")
        .output()
        .expect("bash runs");
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(UNREACHABLE) {
        eprintln!("{suite}:\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let of = |word: &str| said.lines().filter(|line| line.starts_with(word)).map(str::to_owned).collect::<Vec<_>>();
    let in_parts = of("SUBFAILED");
    let whole = |test: &String| !in_parts.iter().any(|line| line.split(" ").any(|word| word == test));
    let passed = of("PASSED ").into_iter().map(|line| line["PASSED ".len()..].trim().to_owned());
    Some(passed.filter(whole).collect())
}

/// The tests that differ: each stands below a line `# reason`.
fn listed(suite: &str) -> BTreeSet<String> {
    let path = format!("{DIRECTORY}/{suite}/differences.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(lines.first().is_none_or(|line| line.starts_with("# ")), "{path}: the first test has no reason");
    lines.into_iter().filter(|line| !line.starts_with("# ")).map(str::to_owned).collect()
}

/// What is wrong about a suite; `None` if it cannot be fetched.
fn compare(suite: &str, reference: &Target, subject: &Target) -> Option<Vec<String>> {
    let (expected, actual) = std::thread::scope(|scope| {
        let expected = scope.spawn(|| passed(suite, reference, &[]));
        let actual = passed(suite, subject, &[]);
        (expected.join().expect("PostgreSQL's run"), actual)
    });
    let (expected, mut actual) = (expected?, actual?);
    let listed = listed(suite);
    let unlisted = |actual: &BTreeSet<String>| {
        let missing = expected.difference(actual).filter(|test| !listed.contains(*test));
        missing.cloned().collect::<Vec<_>>()
    };
    for _ in 1..ATTEMPTS {
        let again = unlisted(&actual);
        if again.is_empty() {
            break;
        }
        println!("{suite}: once more, here only: {}", again.join(", "));
        actual.extend(passed(suite, subject, &again.iter().map(String::as_str).collect::<Vec<_>>())?);
    }
    let both = expected.intersection(&actual).count();
    let share = both as f64 * 100.0 / expected.len().max(1) as f64;
    println!("{suite}: {} tests pass on PostgreSQL, {both} of them here: {share:.1} %", expected.len());
    let mut wrong: Vec<String> = unlisted(&actual).iter().map(|test| format!("{suite}: {test} fails")).collect();
    let mended = listed.intersection(&actual);
    wrong.extend(mended.map(|test| format!("{suite}: {test} passes, and is listed")));
    if NEARLY_ALL.contains(&suite) && share < SHARE_MIN {
        wrong.push(format!("{suite}: {share:.1} % is less than {SHARE_MIN} %"));
    }
    if expected.is_empty() {
        wrong.push(format!("{suite}: nothing passes on PostgreSQL"));
    }
    Some(wrong)
}

#[test]
fn drivers_own_tests_pass() {
    let chosen = std::env::var("SUITES").ok();
    let (reference, subject) = (Target::reference(), Target::start());
    let mut wrong = Vec::new();
    for suite in chosen.as_deref().unwrap_or(DEFAULT).split_whitespace() {
        match compare(suite, &reference, &subject) {
            Some(found) => wrong.extend(found),
            None if chosen.is_none() => skip(suite, "its registry is out of reach"),
            None => wrong.push(format!("{suite} cannot be fetched")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(subject.panics(), Vec::<String>::new());
}
