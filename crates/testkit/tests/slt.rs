//! Every file of `tests/slt` on PostgreSQL and on the server under test: the answers must be equal.
//!
//! One test per file and protocol, found by looking; arguments are filters by name, as with other tests. `SLT_SHOW=n` prints up to n
//! differences of a file (20 if not set).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use testkit::Target;
use testkit::script::{Outcome, Protocol, Script, Summary, run};

/// A script that is lost, or no longer found, must not look like success.
const STATEMENTS_MIN: usize = 4600;

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let files = files();
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    let (mut statements, mut failed, mut differences, mut summary) = (0, 0, 0, Summary::default());
    let tests = files.iter().flat_map(|(name, path)| {
        let tests = [(name.clone(), Protocol::Simple), (format!("{name}_extended"), Protocol::Extended)];
        tests.map(|(test, protocol)| (test, name, path, protocol))
    });
    let tests: Vec<_> = tests.collect();
    if std::env::args().any(|arg| arg == "--list") {
        tests.iter().for_each(|(test, ..)| println!("{test}: test"));
        return ExitCode::SUCCESS;
    }
    for (test, name, path, protocol) in tests.into_iter().filter(|(test, ..)| chosen(test)) {
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| run_file(name, path, protocol)));
        let millis = start.elapsed().as_millis();
        let Ok(outcome) = outcome else {
            failed += 1;
            println!("test {test} ... FAILED (panicked)");
            continue;
        };
        statements += outcome.statements;
        let wrong = outcome.differences.len();
        failed += usize::from(wrong > 0);
        differences += wrong;
        outcome.differences.iter().for_each(|difference| summary.add(difference));
        let verdict = if wrong == 0 { "ok".to_owned() } else { format!("FAILED ({wrong} wrong)") };
        println!("test {test} ... {verdict} ({} statements, {millis} ms)", outcome.statements);
        let shown = std::env::var("SLT_SHOW").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
        outcome.differences.iter().take(shown).for_each(|difference| println!("{difference}\n"));
    }
    print!("{summary}");
    println!("{statements} statements, {differences} differ, {failed} tests failed");
    if filters.is_empty() && statements < STATEMENTS_MIN {
        println!("fewer than {STATEMENTS_MIN} statements: a script is missing");
        return ExitCode::FAILURE;
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_file(name: &str, path: &Path, protocol: Protocol) -> Outcome {
    let text = std::fs::read_to_string(path).expect("the script can be read");
    let script = Script::parse(&format!("tests/slt/{name}.slt"), &text).unwrap_or_else(|fault| panic!("{fault}"));
    let subject = Target::start();
    let outcome = run(&script, protocol, &Target::reference(), &subject);
    subject.panics().iter().for_each(|line| println!("{name}: the server says: {line}"));
    outcome
}

/// Name and path of each script.
fn files() -> Vec<(String, PathBuf)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/slt");
    let entries = std::fs::read_dir(directory).expect("the scripts are there").flatten().map(|entry| entry.path());
    let scripts = entries.filter(|path| path.extension().is_some_and(|extension| extension == "slt"));
    let mut files: Vec<_> =
        scripts.map(|path| (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path)).collect();
    files.sort();
    files
}
