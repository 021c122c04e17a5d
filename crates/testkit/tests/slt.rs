//! Every file of `tests/slt` on PostgreSQL and on the server under test: the answers must be equal, save for those listed
//! in `tests/slt/known-differences.txt`, which must differ still.
//!
//! What PostgreSQL answers stands in the files, and must be what it answers now; `UPDATE_ANSWERS=1` writes it there.
//!
//! One test per file and protocol, found by looking; arguments are filters by name, as with other tests. `SLT_SHOW=n`
//! prints up to n differences of a file (20 if not set); `UPDATE_GOLDEN=1` rewrites the list after a run of all tests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use testkit::Target;
use testkit::script::{Difference, Known, Outcome, Protocol, Script, Summary, record, run};

/// A script that is lost, or no longer found, must not look like success.
const STATEMENTS_MIN: usize = 4600;

/// A file and how it is sent.
struct Test {
    name: String,
    file: PathBuf,
    protocol: Protocol,
}

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let tests = tests();
    if std::env::args().any(|arg| arg == "--list") {
        tests.iter().for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    let list = directory().join("known-differences.txt");
    let known = if Target::is_postgres() { Known::default() } else { Known::read(&list) };
    let chosen = |test: &&Test| filters.is_empty() || filters.iter().any(|filter| test.name.contains(filter));
    let (mut statements, mut failed) = (0, 0);
    let (mut now, mut summary) = (Known::default(), Summary::default());
    for test in tests.iter().filter(chosen) {
        let start = Instant::now();
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| run_test(test))) else {
            failed += 1;
            println!("test {} ... FAILED (panicked)", test.name);
            continue;
        };
        statements += outcome.statements;
        for difference in &outcome.differences {
            now.add(&test.name, difference);
            summary.add(difference);
        }
        failed += usize::from(!report(test, &known, &outcome, start.elapsed().as_millis()));
    }
    print!("{summary}");
    println!("{statements} statements, {failed} tests failed");
    if filters.is_empty() && std::env::var_os("UPDATE_GOLDEN").is_some() && !Target::is_postgres() {
        std::fs::write(list, now.text()).expect("the list can be written");
    }
    if filters.is_empty() && statements < STATEMENTS_MIN {
        println!("fewer than {STATEMENTS_MIN} statements: a script is missing");
        return ExitCode::FAILURE;
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints what a test came to; whether that is success.
fn report(test: &Test, known: &Known, outcome: &Outcome, millis: u128) -> bool {
    let is_new = |difference: &&Difference| !known.has(&test.name, difference);
    let new: Vec<&Difference> = outcome.differences.iter().filter(is_new).collect();
    let mended = known.mended(&test.name, &outcome.differences);
    let fine = new.is_empty() && mended.is_empty() && outcome.outdated.is_empty();
    let (wrong, old) = (new.len(), outcome.outdated.len());
    let verdict = match fine {
        true => "ok".to_owned(),
        false => {
            format!("FAILED ({wrong} wrong, {} mended, {old} answers in the script not PostgreSQL's)", mended.len())
        }
    };
    let listed = outcome.differences.len() - new.len();
    let name = &test.name;
    println!("test {name} ... {verdict} ({} statements, {listed} known to differ, {millis} ms)", outcome.statements);
    let shown = std::env::var("SLT_SHOW").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    new.iter().take(shown).for_each(|difference| println!("{difference}\n"));
    if let Some(line) = outcome.outdated.first() {
        println!(
            "{name}: UPDATE_ANSWERS=1 writes PostgreSQL's answers into the script, the first of them below line {line}"
        );
    }
    mended.iter().take(shown).for_each(|sql| println!("{name}: no longer differs, take it off the list: {sql}"));
    fine
}

fn run_test(test: &Test) -> Outcome {
    let text = std::fs::read_to_string(&test.file).expect("the script can be read");
    let file = test.file.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("tests/slt/{file}");
    let parse = |text: &str| Script::parse(&name, text).unwrap_or_else(|fault| panic!("{fault}"));
    let mut script = parse(&text);
    if std::env::var_os("UPDATE_ANSWERS").is_some() && test.protocol == Protocol::Simple {
        let text = script.answered(&text, &record(&script));
        std::fs::write(&test.file, &text).expect("the script can be written");
        script = parse(&text);
    }
    let subject = Target::start();
    let outcome = run(&script, test.protocol, &Target::reference(), &subject);
    subject.panics().iter().for_each(|line| println!("{file}: the server says: {line}"));
    outcome
}

fn directory() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/slt"))
}

fn tests() -> Vec<Test> {
    let entries = std::fs::read_dir(directory()).expect("the scripts are there").flatten().map(|entry| entry.path());
    let scripts = entries.filter(|path| path.extension().is_some_and(|extension| extension == "slt"));
    let both = scripts.flat_map(|file| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let extended = Test { name: format!("{name}_extended"), file: file.clone(), protocol: Protocol::Extended };
        [Test { name, file, protocol: Protocol::Simple }, extended]
    });
    let mut tests: Vec<Test> = both.collect();
    tests.sort_by(|a, b| a.name.cmp(&b.name));
    tests
}
