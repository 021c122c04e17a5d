//! Every file of `tests/slt` in this process, by the simple protocol: the answers must be those that stand in the files.
//!
//! Statements with parameters are not run here; the test `slt` of `testkit` runs them. `tests/slt/in-process.txt` lists the scripts and
//! statements whose answers differ without a server around them, with the reason. `SLT_ONLY=text` runs the scripts whose names have the text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sandbox::{Sandbox, ask};
use sql_session::Session;
use testkit::script::{Script, Send, recorded};

/// Statements that are compared: a script that is lost, or no longer found, must not look like success.
const STATEMENTS_MIN: usize = 15_000;

/// A build without optimisation needs more than a server's threads have.
const STACK_BYTES: usize = 256 << 20;

/// The listed scripts and statements.
struct Exceptions(BTreeSet<String>);

impl Exceptions {
    fn read(path: &Path) -> Exceptions {
        let text = std::fs::read_to_string(path).expect("the list of exceptions");
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        Exceptions(lines.map(|line| line.split('\t').next().unwrap_or(line).to_owned()).collect())
    }

    fn has(&self, script: &str, sql: &str) -> bool {
        self.0.contains(&format!("{script}: {sql}"))
    }
}

/// Runs a script; the number of answers compared, and what differs.
fn run_script(file: &Path, exceptions: &Exceptions) -> (usize, Vec<String>) {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(file).expect("the script can be read");
    let script = Script::parse(&name, &text).unwrap_or_else(|fault| panic!("{fault}"));
    if exceptions.0.contains(&name) {
        return (0, Vec::new());
    }
    let mut sandbox = Sandbox::new("");
    let settings = [("application_name".to_owned(), "testkit".to_owned())];
    let mut sessions: BTreeMap<&str, Session> = BTreeMap::new();
    let (mut compared, mut wrong) = (0, Vec::new());
    for record in &script.records {
        let session = sessions.entry(&record.connection).or_insert_with(|| sandbox.connect(&settings));
        let (sql, data) = match &record.send {
            Send::Query(sql) | Send::Statement(sql) => (sql, ""),
            Send::Copy(sql, data) => (sql, data.as_str()),
            Send::Bind(..) => continue,
        };
        let reply = record.comparable(ask(session, sql, data.as_bytes()));
        let Some(expected) = &record.answer else {
            wrong.push(format!("{name}:{}: no answer stands in the script", record.line));
            continue;
        };
        if *expected == [recorded::CHANGES] || exceptions.has(&name, sql) {
            continue;
        }
        compared += 1;
        let actual = recorded::lines(&reply);
        if actual != *expected {
            wrong.push(format!("{name}:{}: {sql}\n  expected: {expected:?}\n  actual:   {actual:?}", record.line));
        }
    }
    (compared, wrong)
}

#[test]
fn answers_are_those_of_the_scripts() {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/slt"));
    let exceptions = Exceptions::read(&directory.join("in-process.txt"));
    let entries = std::fs::read_dir(directory).expect("the scripts are there").flatten().map(|entry| entry.path());
    let filter = std::env::var("SLT_ONLY").unwrap_or_default();
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .filter(|path| path.to_string_lossy().contains(&filter))
        .collect();
    files.sort();
    // One after the other: types that statements make are the process's, and two servers in it would take each other's.
    let work = || {
        let (mut compared, mut wrong) = (0, Vec::new());
        for file in &files {
            let (count, found) = run_script(file, &exceptions);
            compared += count;
            wrong.extend(found);
        }
        (compared, wrong)
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let (compared, wrong) =
        std::thread::scope(|scope| thread.spawn_scoped(scope, work).expect("a thread").join().expect("no panic"));
    println!("{compared} statements of {} scripts compared, {} differ", files.len(), wrong.len());
    wrong.iter().take(40).for_each(|line| println!("{line}"));
    assert!(wrong.is_empty(), "{} answers differ", wrong.len());
    assert!(!filter.is_empty() || compared >= STATEMENTS_MIN, "only {compared} statements: a script is missing");
}
