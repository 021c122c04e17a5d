//! Replays `tests/cases.tsv`, whose last column is what PostgreSQL 15 answers.

mod run;

#[test]
fn answers_as_postgresql_does() {
    let mut wrong = Vec::new();
    let cases = include_str!("tests/cases.tsv");
    for (number, line) in cases.lines().enumerate() {
        let (case, expected) = line.rsplit_once('\t').expect("a case has an expectation");
        let got = run::run(case);
        if got != expected {
            wrong.push(format!("line {}: {case}\n  expected {expected}\n  got      {got}", number + 1));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ\n{}", wrong.len(), cases.lines().count(), wrong.join("\n"));
}
