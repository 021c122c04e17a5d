//! Copies of a running directory, file by file, beside writers and checkpoints: a start on one has all that was acknowledged before the
//! copying began, and nothing by half, or refuses. On one that was made while the server stood still, as a snapshot of the file system
//! is, it always has all.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use testkit::{Nyala, Random, Signal, Target};

use super::check::check;

const WRITERS: i64 = 3;
const COPIES: usize = 12;
const FLAGS: [&str; 6] = ["--log-segment", "1MB", "--checkpoint-log", "1MB", "--http", "off"];

/// Copies file by file as a listing from the beginning names them, in any order; what is gone meanwhile is left out.
fn copy(from: &Path, to: &Path, random: &mut Random) {
    let mut files: Vec<_> =
        std::fs::read_dir(from).expect("it is there").flatten().map(|file| file.file_name()).collect();
    for at in (1..files.len()).rev() {
        files.swap(at, random.below(at as u64 + 1) as usize);
    }
    std::fs::create_dir(to).expect("it is not there");
    std::fs::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("it is ours");
    for file in files {
        let _ = std::fs::copy(from.join(&file), to.join(&file));
        std::thread::sleep(Duration::from_millis(random.below(30)));
    }
}

#[test]
fn a_copy_of_a_running_directory_has_all_or_refuses() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let seed = Random::seed();
    println!("NYALA_SEED={seed}");
    let mut random = Random::new(seed);
    let directory = tempfile::tempdir().expect("a directory for the server");
    let data = directory.path().join("data");
    let server = Nyala::start_with(&data, Nyala::free_port(), &FLAGS);
    let made = server.connect().query("CREATE TABLE t (w int, n bigint, b text, PRIMARY KEY (w, n))");
    assert_eq!(made.error(), None);
    let acknowledged: Vec<AtomicI64> = (0..WRITERS).map(|_| AtomicI64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    let mut copies = Vec::new();
    std::thread::scope(|scope| {
        for (me, acknowledged) in acknowledged.iter().enumerate() {
            let mut connection = server.connect();
            let is_over = &is_over;
            scope.spawn(move || {
                for n in 1.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let reply = connection.query(&format!("INSERT INTO t VALUES ({me}, {n}, repeat('x', 2000))"));
                    assert_eq!(reply.error(), None);
                    acknowledged.store(n, Ordering::Release);
                }
            });
        }
        for number in 0..COPIES {
            std::thread::sleep(Duration::from_millis(50 + random.below(200)));
            let is_snapshot = number % 3 == 2;
            if is_snapshot {
                server.signal(Signal::STOP);
            }
            let before: Vec<i64> = acknowledged.iter().map(|n| n.load(Ordering::Acquire)).collect();
            let to = directory.path().join(format!("copy{number}"));
            copy(&data, &to, &mut random);
            copies.push((to, before, is_snapshot));
            server.signal(Signal::CONT);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    server.kill();
    let (mut complete, mut refused) = (0, 0);
    for (data, before, is_snapshot) in &copies {
        let (code, _, wrong) = check(data);
        let server = Nyala::launch(data, Nyala::free_port(), &FLAGS);
        let begun = Instant::now();
        let connected = loop {
            match testkit::Connection::open(server.port(), "postgres") {
                Ok(connection) => break Some(connection),
                Err(_) if server.is_gone() => break None,
                Err(_) => assert!(begun.elapsed() < Duration::from_secs(60), "{}", server.stderr()),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(connected.is_some(), code == Some(0), "check says {wrong:?}, a start {}", server.stderr());
        let Some(mut connection) = connected else {
            let said = server.stderr();
            assert!(!is_snapshot, "a snapshot is refused: {said}");
            assert!(["damaged", "missing", "cannot"].iter().any(|word| said.contains(word)), "{said}");
            refused += 1;
            continue;
        };
        for (writer, before) in before.iter().enumerate() {
            let sql = format!("SELECT count(*) || ' ' || coalesce(max(n), 0) FROM t WHERE w = {writer}");
            let reply = connection.query(&sql);
            let text = reply.value().expect("a row");
            let (count, max) = text.split_once(' ').expect("two numbers");
            assert_eq!(count, max, "{}: rows are missing", data.display());
            assert!(max.parse::<i64>().expect("a number") >= *before, "{}: {max}, {before} before", data.display());
        }
        complete += 1;
        server.kill();
    }
    println!("{complete} copies were complete, {refused} refused");
}
