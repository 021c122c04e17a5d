//! What psql shows of definitions, on PostgreSQL and on the server under test: the same, line by line.
//!
//! `tests/clients/psql/schema.sql` makes the definitions, each line of `definitions.txt` shows some.

use std::process::Command;

use testkit::Target;

fn file(name: &str) -> String {
    format!("{}/../../tests/clients/psql/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn psql(target: &Target, arguments: &[&str]) -> String {
    let output = Command::new("psql")
        .args(["-X", "-q", "-h", "127.0.0.1", "-U", "postgres"])
        .args(["-p", &target.port().to_string(), "-d", target.database()])
        .args(arguments)
        .output()
        .expect("psql runs");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{said}{complained}")
}

#[test]
fn psql_shows_definitions_as_of_postgresql() {
    let (reference, subject) = (Target::reference(), Target::start());
    let schema = file("schema.sql");
    let made = [&reference, &subject].map(|target| psql(target, &["-f", &schema]));
    assert_eq!(made[0], made[1], "the schema is made");
    let commands = std::fs::read_to_string(file("definitions.txt")).expect("the commands are there");
    let mut wrong = Vec::new();
    for command in commands.lines() {
        let shown = [&reference, &subject].map(|target| psql(target, &["-c", command]));
        if shown[0] != shown[1] {
            wrong.push(format!("{command}\nPostgreSQL:\n{}\nunder test:\n{}", shown[0], shown[1]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
