//! EXPLAIN and EXECUTE of the statements in `tests/plans/*.sql` say what the `.txt` beside each says.
//!
//! Statements end with a semicolon at the end of a line. `UPDATE_GOLDEN=1` rewrites the texts; whoever does must be able to
//! explain the difference. Nothing is compared with PostgreSQL here: its plans are its own.

use std::fmt::Write;
use std::path::Path;

use testkit::Target;

#[test]
fn plans_are_those_that_were_looked_at() {
    if Target::is_postgres() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/plans");
    let mut scripts: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "sql"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        let target = Target::start();
        let mut connection = target.connect();
        let text = std::fs::read_to_string(&script).expect("a script");
        let mut shown = String::new();
        for sql in text.split(";\n").map(str::trim).filter(|sql| !sql.is_empty()) {
            let reply = connection.query(sql);
            assert_eq!(reply.error(), None, "{sql}");
            if sql.lines().any(|line| line.starts_with("EX")) {
                writeln!(shown, "{};", sql.lines().filter(|l| !l.starts_with("--")).collect::<Vec<_>>().join("\n"))
                    .expect("a string takes all");
                for row in reply.rows() {
                    writeln!(shown, "    {}", row[0].as_deref().unwrap_or_default()).expect("a string takes all");
                }
                shown.push('\n');
            }
        }
        let golden = script.with_extension("txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&golden, &shown).expect("the text can be written");
        }
        let wanted = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(shown, wanted, "{}", golden.display());
        assert_eq!(target.panics(), Vec::<String>::new());
    }
}
