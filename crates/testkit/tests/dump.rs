//! pg_dump of PostgreSQL 15 from both servers, restored into the other one.
//!
//! `tests/clients/pg_dump/schema.sql` makes the objects on both. The two dumps must be equal line by line, each must go
//! into the other server without an error, and the dump of what went in must be the same again.

use std::io::Write;
use std::process::{Command, Stdio};

use testkit::Target;

fn place(target: &Target) -> [String; 8] {
    let port = target.port().to_string();
    ["-h", "127.0.0.1", "-U", "postgres", "-p", &port, "-d", target.database()].map(str::to_owned)
}

/// What psql complains of when it runs a script; nothing, if all is well.
fn run_script(target: &Target, script: &str) -> String {
    let mut psql = Command::new("psql")
        .args(["-X", "-q", "-o", "/dev/null"])
        .args(place(target))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql runs");
    psql.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("psql reads");
    let output = psql.wait_with_output().expect("psql ends");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The dump, without the lines that name versions.
fn dump(target: &Target, flags: &[&str]) -> String {
    let output = Command::new("pg_dump").args(flags).args(place(target)).output().expect("pg_dump runs");
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complained.is_empty(), "{} {flags:?}: {complained}", target.name());
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter(|l| !l.starts_with("-- Dumped ") && !l.contains("restrict "))
        .fold(String::new(), |all, l| all + l + "\n")
}

#[track_caller]
fn equal(got: &str, want: &str, what: &str) {
    if got == want {
        return;
    }
    let (got, want): (Vec<&str>, Vec<&str>) = (got.lines().collect(), want.lines().collect());
    let at = got.iter().zip(&want).position(|(a, b)| a != b).unwrap_or(got.len().min(want.len()));
    let around = |lines: &[&str]| lines[at.saturating_sub(6).min(lines.len())..(at + 8).min(lines.len())].join("\n");
    panic!("{what}, line {at}:\n--- got\n{}\n--- want\n{}", around(&got), around(&want));
}

/// Dumps an archive and restores it into another database; what that one's dump says then.
fn through_archive(from: &Target, into: &Target, dump_flags: &[&str], restore_flags: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("archive");
    let file = file.to_str().expect("the path is UTF-8");
    let output = Command::new("pg_dump").args(dump_flags).args(["-f", file]).args(place(from)).output();
    let output = output.expect("pg_dump runs");
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complained.is_empty(), "{} {dump_flags:?}: {complained}", from.name());
    let output = Command::new("pg_restore").args(restore_flags).args(place(into)).arg(file).output();
    let output = output.expect("pg_restore runs");
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complained.is_empty(), "{} {restore_flags:?}: {complained}", into.name());
    dump(into, &[])
}

#[test]
fn archives_go_both_ways() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/pg_dump/schema.sql");
    let schema = std::fs::read_to_string(file).expect("the schema is there");
    let (reference, subject) = (Target::reference(), Target::start());
    for target in [&reference, &subject] {
        assert_eq!(run_script(target, &schema), "", "the schema is made on {}", target.name());
    }
    let whole = dump(&reference, &[]);
    for (dump_flags, restore_flags) in [
        (&["-Fc"][..], &["--exit-on-error"][..]),
        (&["-Fc", "-Z0"], &["-j", "2", "--exit-on-error"]),
        (&["-Fd", "-j", "2"], &["-j", "2", "--exit-on-error"]),
        (&["-Fd", "-j", "3"], &["--single-transaction"]),
        (&["-Ft"], &["--exit-on-error"]),
    ] {
        for (from, into) in
            [(&subject, Target::reference()), (&reference, Target::start()), (&subject, Target::start())]
        {
            let restored = through_archive(from, &into, dump_flags, restore_flags);
            equal(&restored, &whole, &format!("{dump_flags:?} of {} into {}", from.name(), into.name()));
            assert_eq!(into.panics(), Vec::<String>::new());
        }
    }
    assert_eq!(subject.panics(), Vec::<String>::new());
}

#[test]
fn dumps_go_both_ways() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/pg_dump/schema.sql");
    let schema = std::fs::read_to_string(file).expect("the schema is there");
    let (reference, subject) = (Target::reference(), Target::start());
    for target in [&reference, &subject] {
        assert_eq!(run_script(target, &schema), "", "the schema is made on {}", target.name());
    }
    for flags in [
        &["--schema-only"][..],
        &[],
        &["--inserts", "--rows-per-insert=2", "--clean", "--if-exists"],
        &["--column-inserts", "-n", "shop"],
    ] {
        let (of_reference, of_subject) = (dump(&reference, flags), dump(&subject, flags));
        equal(&of_subject, &of_reference, &format!("dumps with {flags:?}"));
    }
    let plain = dump(&subject, &[]);
    for (target, script) in [(Target::reference(), &plain), (Target::start(), &dump(&reference, &[]))] {
        assert_eq!(run_script(&target, script), "", "restored into {}", target.name());
        equal(&dump(&target, &[]), script, &format!("dumped again from {}", target.name()));
        assert_eq!(target.panics(), Vec::<String>::new());
    }
}

/// What a query answers, as psql shows it.
fn ask(target: &Target, sql: &str) -> String {
    let output = Command::new("psql").args(["-X", "-A", "-t", "-c", sql]).args(place(target)).output();
    let output = output.expect("psql runs");
    let complained = String::from_utf8_lossy(&output.stderr);
    assert_eq!(complained, "", "{}: {sql}", target.name());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Each view's rows.
fn views(target: &Target) -> String {
    let names = ask(target, "SELECT viewname FROM pg_views WHERE schemaname = 'public' ORDER BY 1");
    let rows = names.lines().map(|name| {
        let rows = ask(target, &format!("SELECT * FROM {name}"));
        let mut rows: Vec<&str> = rows.lines().collect();
        rows.sort_unstable();
        format!("{name}: {}\n", rows.join(";"))
    });
    rows.collect()
}

/// Views of every kind, also those whose texts differ.
#[test]
fn views_go_both_ways() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/pg_dump/views.sql");
    let schema = std::fs::read_to_string(file).expect("the views are there");
    let (reference, subject) = (Target::reference(), Target::start());
    for target in [&reference, &subject] {
        assert_eq!(run_script(target, &schema), "", "the views are made on {}", target.name());
    }
    let expected = views(&reference);
    equal(&views(&subject), &expected, "what the views show");
    for (from, into) in [(&subject, Target::reference()), (&reference, Target::start()), (&subject, Target::start())] {
        let way = format!("from {} into {}", from.name(), into.name());
        assert_eq!(run_script(&into, &dump(from, &[])), "", "{way}");
        equal(&views(&into), &expected, &way);
        assert_eq!(into.panics(), Vec::<String>::new());
        // Once more, from what has gone in.
        let back = Target::reference();
        assert_eq!(run_script(&back, &dump(&into, &[])), "", "{way} and back");
        equal(&views(&back), &expected, &format!("{way} and back"));
    }
    assert_eq!(subject.panics(), Vec::<String>::new());
}
