//! Tests that cannot be run here.

/// Says that a test was not run: at once, past the test runner's capture, and in the file that `NYALA_SKIPPED` names, for the
/// end. With `NYALA_REQUIRE_FAULTS` it PANICS instead.
pub fn skip(test: &str, why: &str) {
    use std::io::Write as _;
    assert!(std::env::var_os("NYALA_REQUIRE_FAULTS").is_none(), "{test} cannot be run: {why}");
    let line = format!("NOT RUN: {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("NYALA_SKIPPED")
        && let Ok(mut file) = std::fs::File::options().create(true).append(true).open(path)
    {
        let _ = file.write_all(line.as_bytes());
    }
}
