//! The experiment of cold starts, tiny: it must find all that it has written, with every case.

use std::process::Command;

#[test]
fn a_cold_start_finds_everything_and_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.json");
    let output = Command::new(env!("CARGO_BIN_EXE_nyala"))
        .args(["bench", "coldstart", "--size", "2", "--repeat", "1", "--dir"])
        .arg(directory.path())
        .arg("--json")
        .arg(&report)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    for case in ["log ", "data ", "primary keys ", "all indexes "] {
        assert!(said.lines().any(|line| line.starts_with(case)), "no line of {case}: {said}");
    }
    let json = std::fs::read_to_string(&report).unwrap();
    assert!(json.contains("\"per_core\""), "{json}");
    std::fs::remove_file(report).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}
