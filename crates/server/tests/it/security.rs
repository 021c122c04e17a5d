//! What docs/SECURITY.md says of the whole server.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use tempfile::tempdir;

use crate::client::connect;
use crate::node::{Node, command, free_port, refusal};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn the_data_directory_is_its_servers_alone() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    let data = dir.path().join("data");
    assert_eq!(mode(&data), 0o700);
    let mut client = connect(node.address, "postgres", None).unwrap();
    assert_eq!(client.query("CREATE TABLE t (a int)"), "CREATE TABLE | [I]");
    assert_eq!(client.query("CHECKPOINT"), "CHECKPOINT | [I]");
    let files: Vec<_> = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    assert_eq!(mode(&node.socket), 0o777);
    assert_eq!(node.end(Signal::TERM), Some(0));
    fs::set_permissions(&data, fs::Permissions::from_mode(0o750)).unwrap();
    let (message, code) = refusal(&mut command(dir.path(), &format!("127.0.0.1:{}", free_port())));
    let expected =
        format!("data directory \"{}\" has invalid permissions: permissions should be u=rwx (0700)", data.display());
    assert_eq!((message, code), (expected, Some(1)));
}

#[test]
fn no_password_reaches_the_log_or_other_sessions() {
    let dir = tempdir().unwrap();
    let mut node = Node::start(dir.path(), &["--set", "log_statement=all", "--set", "log_min_duration_statement=0"]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    for sql in [
        "CREATE ROLE app LOGIN PASSWORD 'top-secret'",
        "ALTER ROLE app PASSWORD E'top-secret' VALID UNTIL 'infinity'",
        "CREATE ROLE other PASSWORD $$top-secret$$; ALTER ROLE other PASSWORD NULL",
    ] {
        assert!(client.query(sql).ends_with("| [I]"), "{sql}");
    }
    // The statement stays on show after its end.
    let mut watcher = connect(node.address, "postgres", None).unwrap();
    assert!(client.query("ALTER ROLE app PASSWORD 'top-secret'").starts_with("ALTER ROLE"));
    let seen = watcher.query("SELECT query FROM pg_stat_activity WHERE query LIKE 'ALTER ROLE app%'");
    assert!(seen.contains("PASSWORD ********") && !seen.contains("top-secret"), "{seen}");
    let kept = watcher.query("SELECT query FROM pg_stat_statements WHERE query ILIKE '%ROLE%'");
    assert!(kept.contains("********") && !kept.contains("top-secret"), "{kept}");
    // Wrong statements are the client's business.
    let wrong = client.query("ALTER ROLE app PASSWORD 'top-secret' NONSENSE");
    assert!(wrong.contains("42601"), "{wrong}");
    assert!(client.query("SELECT 'the end'").contains("the end"));
    let mut log = String::new();
    loop {
        let line = node.line_with("");
        log.push_str(&line);
        log.push('\n');
        if line.contains("SELECT 'the end'") {
            break;
        }
    }
    assert!(log.contains("ALTER ROLE app PASSWORD ********"), "{log}");
    assert!(!log.contains("top-secret"), "{log}");
    let verifier = watcher.query("SELECT left(rolpassword, 14) FROM pg_authid WHERE rolname = 'app'");
    assert!(verifier.contains("SCRAM-SHA-256$"), "{verifier}");
    drop((client, watcher));
    assert_eq!(node.end(Signal::TERM), Some(0));
    for file in fs::read_dir(dir.path().join("data")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(10).any(|window| window == b"top-secret"), "only the verifier is stored");
    }
}

#[test]
fn guessing_gets_slower_and_keeps_nobody_else_waiting() {
    let dir = tempdir().unwrap();
    let mut node = Node::start(dir.path(), &["--max-connections", "6"]);
    let mut admin = connect(node.address, "postgres", None).unwrap();
    for role in ["app", "other"] {
        assert_eq!(client_created(&mut admin, role), "CREATE ROLE | [I]");
    }
    let address = node.address;
    let guess = move || {
        let began = Instant::now();
        let refused = connect(address, "app", Some("wrong")).err().expect("it is wrong");
        assert_eq!(refused, "FATAL 28P01: password authentication failed for user \"app\"");
        began.elapsed()
    };
    // Three are free; then 0.1, 0.2, 0.4 s.
    let waits: Vec<Duration> = (0..6).map(|_| guess()).collect();
    // The wait begins with the failure, not with the next effort.
    for (wait, least) in waits.iter().zip([0, 0, 0, 100, 200, 400]) {
        assert!(*wait >= Duration::from_millis(least / 2), "{waits:?}");
    }
    assert!(node.line_with("password authentication failed").contains("app"));
    // Many at once wait in line, and take no places.
    let guesses: Vec<_> = (0..3).map(|_| std::thread::spawn(guess)).collect();
    // The last three places are for superusers: this one would find none if those that wait had theirs.
    let comes_in = (0..40).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        connect(address, "other", Some("right")).is_ok()
    });
    assert!(comes_in, "another role, and a free place");
    assert!(admin.query("SELECT 1").contains("SELECT 1"), "others are served");
    let mut waits: Vec<Duration> = guesses.into_iter().map(|guess| guess.join().expect("it was refused")).collect();
    waits.sort();
    assert!(waits[2] >= Duration::from_millis(2500), "{waits:?}");
}

/// Sixty clients that guess without end at the address of a pool of connections: it goes on logging in, as does another role
/// of the address, and each guess is looked at.
#[test]
fn wrong_passwords_from_ones_own_address_lock_nobody_out() {
    let dir = tempdir().unwrap();
    let mut node = Node::start(dir.path(), &[]);
    let mut admin = connect(node.address, "postgres", None).unwrap();
    for role in ["app", "other"] {
        assert_eq!(client_created(&mut admin, role), "CREATE ROLE | [I]");
    }
    let address = node.address;
    let mut pool: Vec<_> = (0..4).map(|_| connect(address, "app", Some("right")).expect("it is right")).collect();
    let over = Arc::new(AtomicBool::new(false));
    let guesses: Vec<_> = (0..60)
        .map(|_| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                let mut guesses = 0;
                while !over.load(Ordering::Relaxed) {
                    let refused = connect(address, "app", Some("wrong")).err().expect("it is wrong");
                    assert_eq!(refused, "FATAL 28P01: password authentication failed for user \"app\"");
                    guesses += 1;
                }
                guesses
            })
        })
        .collect();
    for n in 0..5 {
        // All sixty have been there.
        for _ in 0..if n == 0 { 60 } else { 1 } {
            node.line_with("password authentication failed");
        }
        pool.remove(0);
        pool.push(connect(address, "app", Some("right")).unwrap_or_else(|e| panic!("login {n} of the pool: {e}")));
        connect(address, "other", Some("right")).unwrap_or_else(|e| panic!("login {n} of another role: {e}"));
    }
    over.store(true, Ordering::Relaxed);
    let guesses: usize = guesses.into_iter().map(|guess| guess.join().expect("each was refused")).sum();
    connect(address, "app", Some("right")).expect("no number of failures ends it");
    for client in &mut pool {
        assert!(client.query("SELECT 1").contains("SELECT 1"));
    }
    drop((admin, pool));
    kill_process(node.pid(), Signal::TERM).unwrap();
    let (mut wrong, mut refused) = (64, 0);
    loop {
        let line = node.line_with("");
        wrong += usize::from(line.contains("password authentication failed: the password is wrong user=\"app\""));
        refused += usize::from(line.contains("was not looked at"));
        if line.contains("SIGTERM") {
            break;
        }
    }
    assert_eq!((wrong, refused), (guesses, 0));
}

/// When no more can wait, the newest of the crowd is turned away, is told so, and the log says so; another role of the same address
/// is let in, and waits if it must.
#[test]
fn who_is_not_heard_is_told_so() {
    let dir = tempdir().unwrap();
    // A small server has as many places for those who wait as a large one: 256.
    let mut node = Node::start(dir.path(), &["--max-connections", "16"]);
    let mut admin = connect(node.address, "postgres", None).unwrap();
    for role in ["app", "other"] {
        assert_eq!(client_created(&mut admin, role), "CREATE ROLE | [I]");
    }
    let address = node.address;
    let (told, tells) = std::sync::mpsc::channel();
    for _ in 0..290 {
        let told = told.clone();
        // Most wait longer than this test.
        std::thread::spawn(move || connect(address, "app", Some("wrong")).err().map(|error| told.send(error)));
    }
    let full = "FATAL 53300: sorry, too many logins are waiting already";
    let wrong = "FATAL 28P01: password authentication failed for user \"app\"";
    let mut refused = (0, 0);
    while refused.0 < 5 || refused.1 < 3 {
        match tells.recv_timeout(Duration::from_secs(20)).expect("some are told at once") {
            told if told == full => refused.0 += 1,
            told if told == wrong => refused.1 += 1,
            told => panic!("{told}"),
        }
    }
    connect(address, "other", Some("right")).expect("another role of the address");
    let (mut refused, mut wrong) = (0, 0);
    while refused < 5 || wrong < 3 {
        let line = node.line_with("user=\"app\" peer=127.0.0.1:");
        refused += usize::from(line.contains("a password was not looked at: too many logins wait"));
        wrong += usize::from(line.contains("password authentication failed: the password is wrong"));
    }
}

/// Who has not proved that it is a role takes no place from those who can, and makes way when there are too many such.
#[test]
fn places_are_for_those_who_have_logged_in() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &["--max-connections", "5"]);
    let mut admin = connect(node.address, "postgres", None).unwrap();
    assert_eq!(client_created(&mut admin, "app"), "CREATE ROLE | [I]");
    let halfway: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut stream = TcpStream::connect(node.address).unwrap();
            let body = b"\0\x03\0\0user\0app\0\0";
            stream.write_all(&(body.len() as u32 + 4).to_be_bytes()).unwrap();
            stream.write_all(body).unwrap();
            let mut asked = [0; 9];
            stream.read_exact(&mut asked).unwrap();
            assert_eq!(asked[0], b'R', "a password is asked for");
            stream
        })
        .collect();
    assert!(connect(node.address, "app", Some("right")).is_ok());
    drop(halfway);
}

fn client_created(admin: &mut crate::client::Client, role: &str) -> String {
    admin.query(&format!("CREATE ROLE {role} LOGIN PASSWORD 'right'"))
}
