//! `nyala check`: its exit codes and what it says. Which byte is found is tested where the files are made (`engine`).

use std::path::Path;
use std::process::Command;

use testkit::{Nyala, Target};

use super::fixtures::{copy, fixtures};

/// Exit code, stdout, stderr.
pub fn check(data: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(Nyala::binary()).arg("check").arg(data).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn listed(data: &Path) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(data).expect("it is there").flatten();
    let read = |file: std::fs::DirEntry| {
        (file.file_name().to_string_lossy().into_owned(), std::fs::read(file.path()).expect("it can be read"))
    };
    let mut found: Vec<_> = files.map(read).collect();
    found.sort();
    found
}

#[test]
fn a_directory_is_sound_or_not() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    for fixture in fixtures() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        copy(&fixture, &data);
        let before = listed(&data);
        let (code, said, wrong) = check(&data);
        assert_eq!((code, wrong.as_str()), (Some(0), ""), "{}", fixture.display());
        for line in [
            "is sound\n",
            "checkpoint 1: ",
            "table public.accounts: 54 rows, 54 of them in the checkpoint\n",
            "table public.notes: 3 rows, 2 of them in the checkpoint\n",
            "prepared transaction \"before the image\"\n",
            "prepared transaction \"behind the image\"\n",
        ] {
            assert!(said.contains(line), "{line} is not in\n{said}");
        }
        assert!(listed(&data) == before, "something was changed");
        // A byte in the middle of the image.
        let (image, bytes) = before.iter().find(|(name, _)| name.ends_with(".image")).expect("there is one");
        let mut bad = bytes.clone();
        bad[bytes.len() / 2] ^= 4;
        std::fs::write(data.join(image), &bad).expect("it can be written");
        let (code, said, wrong) = check(&data);
        assert_eq!((code, said.as_str()), (Some(1), ""));
        assert!(wrong.contains("is damaged: ") && wrong.contains(&format!("{image} at byte ")), "{wrong}");
    }
}

#[test]
fn what_cannot_be_read_is_told_apart() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let (code, _, wrong) = check(&data);
    assert_eq!(code, Some(2), "{wrong}");
    assert!(wrong.contains("No such file or directory") && !data.exists(), "{wrong}");
    let (code, _, wrong) = check(directory.path());
    assert_eq!(code, Some(2), "{wrong}");
    assert!(wrong.contains("it has neither a checkpoint nor a log"), "{wrong}");
    let server = Nyala::start_with(&data, Nyala::free_port(), &["--log-segment", "1MB", "--http", "off"]);
    let (code, _, wrong) = check(&data);
    assert_eq!(code, Some(2), "{wrong}");
    assert!(wrong.contains("it is in use by a server"), "{wrong}");
    server.kill();
    let (code, said, wrong) = check(&data);
    assert_eq!((code, wrong.as_str()), (Some(0), ""));
    assert!(said.contains("no checkpoint\n"), "{said}");
}
