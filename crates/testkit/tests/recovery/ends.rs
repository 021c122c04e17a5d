//! The log's end, damaged in every way after every end of the server: a start has all that was acknowledged, or refuses and names
//! the file, and `nyala check` says the same.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Nyala, Target};

use super::check::check;

const ROWS: i32 = 30;
const FLAGS: [&str; 4] = ["--log-segment", "1MB", "--http", "off"];

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    super::fixtures::copy(from, to);
}

fn newest(data: &Path) -> PathBuf {
    let files = std::fs::read_dir(data).expect("it is there").flatten().map(|file| file.path());
    files.filter(|path| path.extension().is_some_and(|kind| kind == "log")).max().expect("there is a log")
}

/// Where the frames of a segment begin, and where the last one ends (docs/formats/log.md).
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut borders = vec![64];
    let mut at = 64;
    while bytes[at..at + 4] == 0x4c41_594e_u32.to_le_bytes() {
        let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().expect("four bytes")) as usize;
        at += (48 + len).next_multiple_of(8);
        borders.push(at);
    }
    borders
}

/// What a start that refuses says.
fn refused(data: &Path) -> String {
    let mut serve = Command::new(Nyala::binary());
    serve.arg("serve").arg("--data").arg(data).args(FLAGS).args(["--socket-dir", ""]);
    let output = serve.args(["--listen", &format!("127.0.0.1:{}", Nyala::free_port())]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let errors: Vec<&str> = said.lines().filter(|line| line.contains(" ERROR ")).collect();
    let [error] = errors[..] else { panic!("{said}") };
    error.to_owned()
}

#[test]
fn a_damaged_end_is_refused_and_checked_alike() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    for is_killed in [false, true] {
        let directory = tempfile::tempdir().expect("a directory for the server");
        let (data, damaged) = (directory.path().join("data"), directory.path().join("damaged"));
        let server = Nyala::start_with(&data, Nyala::free_port(), &FLAGS);
        let mut connection = server.connect();
        assert_eq!(connection.query("CREATE TABLE t (a int PRIMARY KEY, b text)").error(), None);
        let mut older = Vec::new();
        for row in 1..=ROWS {
            let insert = format!("INSERT INTO t VALUES ({row}, repeat('x', {}))", row % 7 * 100);
            assert_eq!(connection.query(&insert).error(), None);
            if row % 10 == 9 {
                older.push(std::fs::read(newest(&data)).expect("it can be read"));
            }
        }
        if is_killed {
            server.kill()
        } else {
            assert_eq!(server.terminate(), 0)
        }
        let segment = newest(&data).file_name().expect("it has a name").to_owned();
        let bytes = std::fs::read(data.join(&segment)).expect("it can be read");
        let borders = borders(&bytes);
        assert!(borders.len() > ROWS as usize, "{borders:?}");
        let cuts = borders.windows(2).flat_map(|pair| [pair[0], pair[0] + 1, pair[0] + 48, pair[1] - 1]);
        let cuts = cuts.chain([0, 1, 63, *borders.last().expect("there are some"), bytes.len() - 1]);
        let mut changes: Vec<(String, Option<Vec<u8>>)> = vec![("removed".to_owned(), None)];
        changes.extend(cuts.map(|cut| (format!("cut at {cut}"), Some(bytes[..cut].to_vec()))));
        changes.extend(older.into_iter().map(|bytes| ("an older copy".to_owned(), Some(bytes))));
        for from in &borders[..borders.len() - 1] {
            let mut zeros = bytes.clone();
            zeros[*from..].fill(0);
            changes.push((format!("zeros from {from} on"), Some(zeros)));
        }
        for (n, (damage, bytes)) in changes.into_iter().enumerate() {
            let what = format!("killed: {is_killed}, {damage}");
            copy(&data, &damaged);
            match bytes {
                None => std::fs::remove_file(damaged.join(&segment)).expect("it is there"),
                Some(bytes) => std::fs::write(damaged.join(&segment), bytes).expect("there is room"),
            }
            let (code, said, wrong) = check(&damaged);
            assert_eq!(code, Some(1), "{what}: {said}{wrong}");
            assert!(wrong.contains(segment.to_str().expect("digits")), "{what}: {wrong}");
            // A start takes longer, and says the same.
            if n % 16 == 0 {
                let place = wrong.trim().split_once("is damaged: ").expect("it says what").1.to_owned();
                let said = refused(&damaged);
                assert!(said.contains(&place), "{what}: {said}\nand not: {place}");
            }
        }
        // What is whole starts, with everything, and is told apart.
        let (code, said, wrong) = check(&data);
        assert_eq!((code, wrong.as_str()), (Some(0), ""));
        let place = format!("({} at byte {})", segment.display(), borders.last().expect("there are some"));
        let ended = match is_killed {
            true => ["log: not closed, as after a crash: it ends at position ", &place, ", as far as log.end has it\n"],
            false => ["log: closed in order\n"; 3],
        };
        assert!(ended.iter().all(|part| said.contains(part)), "{said}");
        // As a power failure may leave it: the note is gone, or of before. The log says where it ends, and what that may mean.
        if is_killed {
            let end = data.join("log.end");
            let whole = std::fs::read(&end).expect("it can be read");
            std::fs::write(&end, [&whole[..8192], &[0; 4096]].concat()).expect("there is room");
            let (code, said, _) = check(&data);
            assert!(code == Some(0) && said.contains(&place) && said.contains("could not be told"), "{said}");
            std::fs::write(&end, whole).expect("there is room");
        }
        let server = Nyala::start_with(&data, Nyala::free_port(), &FLAGS);
        assert_eq!(server.connect().query("SELECT count(*) FROM t").value(), Some(&*ROWS.to_string()));
        assert!(!server.stderr().contains("cut off"), "{}", server.stderr());
    }
}

/// A group that was written in part when the server was killed. It is there only if no sync of it has returned, which a test cannot
/// arrange with a healthy disk: it is written behind the end by the test.
#[test]
fn a_torn_group_is_cut_off_and_told_of_truly() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory for the server");
    let data = directory.path().join("data");
    let server = Nyala::start_with(&data, Nyala::free_port(), &FLAGS);
    let mut connection = server.connect();
    assert_eq!(connection.query("CREATE TABLE t (a int); INSERT INTO t VALUES (1)").error(), None);
    server.kill();
    let segment = newest(&data);
    let mut bytes = std::fs::read(&segment).expect("it can be read");
    let borders = borders(&bytes);
    let (begin, end) = (borders[borders.len() - 2], borders[borders.len() - 1]);
    bytes.copy_within(begin..end - 8, end);
    std::fs::write(&segment, bytes).expect("there is room");
    let torn = "its end is torn or damaged: if a crash has torn it, it was never acknowledged; if it was damaged later, it may";
    let (code, said, _) = check(&data);
    assert!(code == Some(0) && said.contains(torn) && said.contains(&format!("at byte {end}")), "{said}");
    let server = Nyala::start_with(&data, Nyala::free_port(), &FLAGS);
    let said = server.stderr();
    assert!(said.contains(torn) && said.contains("the log was not closed, as after a crash"), "{said}");
    assert_eq!(server.connect().query("SELECT count(*) FROM t").value(), Some("1"));
    assert_eq!(server.terminate(), 0);
    let (_, said, _) = check(&data);
    assert!(!said.contains(torn), "it is told once: {said}");
}
