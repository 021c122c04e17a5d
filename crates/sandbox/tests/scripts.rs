//! Every file of `tests/slt` in this process, by the simple protocol: the answers must be those that stand in the files.
//!
//! Statements with parameters are not run here; the test `slt` of `testkit` runs them. `tests/slt/in-process.txt` lists the scripts and
//! statements whose answers differ without a server around them, with the reason. `SLT_ONLY=text` runs the scripts whose names have the text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use sandbox::{Client, Sandbox};
use testkit::script::{Script, Send, recorded};

/// Statements that are compared: a script that is lost, or no longer found, must not look like success.
const STATEMENTS_MIN: usize = 15_000;

/// A build without optimisation needs more than a server's threads have.
const STACK_BYTES: usize = 256 << 20;

/// The listed scripts and statements.
struct Exceptions(BTreeSet<String>);

/// What running scripts found.
#[derive(Default)]
struct Found {
    /// How many answers were compared.
    compared: usize,
    wrong: Vec<String>,
    /// The exceptions that were met, whole scripts among them.
    met: BTreeSet<String>,
    /// The listed statements whose answers differed.
    differing: BTreeSet<String>,
}

impl Found {
    fn and(mut self, other: Found) -> Found {
        self.compared += other.compared;
        self.wrong.extend(other.wrong);
        self.met.extend(other.met);
        self.differing.extend(other.differing);
        self
    }
}

impl Exceptions {
    fn read(path: &Path) -> Exceptions {
        let text = std::fs::read_to_string(path).expect("the list of exceptions");
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        Exceptions(lines.map(|line| line.split('\t').next().unwrap_or(line).to_owned()).collect())
    }

    /// The exception that a statement is.
    fn statement(&self, script: &str, sql: &str) -> Option<String> {
        let key = format!("{script}: {sql}");
        self.0.contains(&key).then_some(key)
    }

    /// The exceptions that are none: nothing in the scripts is named so, or the answers no longer differ.
    fn stale(&self, found: &Found) -> Vec<String> {
        let unmet = self.0.difference(&found.met).map(|name| format!("{name}: listed, and in no script"));
        let same = found.met.iter().filter(|name| name.contains(": ") && !found.differing.contains(*name));
        unmet.chain(same.map(|name| format!("{name}: listed, and its answer does not differ"))).collect()
    }
}

/// Runs a script and adds what it finds.
fn run_script(file: &Path, exceptions: &Exceptions, found: &mut Found) {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(file).expect("the script can be read");
    let script = Script::parse(&name, &text).unwrap_or_else(|fault| panic!("{fault}"));
    if exceptions.0.contains(&name) {
        found.met.insert(name);
        return;
    }
    let mut sandbox = Sandbox::new("");
    let settings = [("application_name".to_owned(), "testkit".to_owned())];
    let mut sessions: BTreeMap<&str, Client> = BTreeMap::new();
    for record in &script.records {
        let session = sessions.entry(&record.connection).or_insert_with(|| sandbox.connect(&settings));
        let (sql, data) = match &record.send {
            Send::Query(sql) | Send::Statement(sql) => (sql, ""),
            Send::Copy(sql, data) => (sql, data.as_str()),
            Send::Bind(..) => continue,
        };
        let reply = record.comparable(session.ask(sql, data.as_bytes()));
        let Some(expected) = &record.answer else {
            found.wrong.push(format!("{name}:{}: no answer stands in the script", record.line));
            continue;
        };
        if *expected == [recorded::CHANGES] {
            continue;
        }
        let actual = recorded::lines(&reply);
        if let Some(exception) = exceptions.statement(&name, sql) {
            if actual != *expected {
                found.differing.insert(exception.clone());
            }
            found.met.insert(exception);
            continue;
        }
        found.compared += 1;
        if actual != *expected {
            found
                .wrong
                .push(format!("{name}:{}: {sql}\n  expected: {expected:?}\n  actual:   {actual:?}", record.line));
        }
    }
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
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Found::default();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            run_script(file, &exceptions, &mut found);
        }
        found
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found = std::thread::scope(|scope| {
        let thread =
            |_| std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).expect("a thread");
        let threads: Vec<_> = (0..threads).map(thread).collect();
        let each = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        each.reduce(Found::and).expect("a thread at least")
    });
    if filter.is_empty() {
        found.wrong.extend(exceptions.stale(&found));
    }
    let Found { compared, wrong, .. } = found;
    println!("{compared} statements of {} scripts compared, {} differ", files.len(), wrong.len());
    wrong.iter().take(40).for_each(|line| println!("{line}"));
    assert!(wrong.is_empty(), "{} answers differ", wrong.len());
    assert!(!filter.is_empty() || compared >= STATEMENTS_MIN, "only {compared} statements: a script is missing");
}
