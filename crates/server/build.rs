//! Tells the program of which commit it is, for `nyala --version`.

use std::path::Path;
use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    // The commit that is checked out, and the files that say so. Without a repository the version stands alone.
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let mut version = env!("CARGO_PKG_VERSION").to_string();
    if let Some(commit) = &commit {
        version = format!("{version} ({commit})");
    }
    println!("cargo::rustc-env=NYALA_VERSION={version}");
    println!("cargo::rustc-env=NYALA_COMMIT={}", commit.unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
