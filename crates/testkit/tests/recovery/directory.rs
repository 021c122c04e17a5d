//! Directories without a database, and which database one has.

use std::path::Path;
use std::process::Command;

use testkit::{Nyala, Target};

use super::check::check;

const FLAGS: [&str; 6] = ["--http", "off", "--socket-dir", "", "--listen", "127.0.0.1:0"];

/// Exit code and what is said, of a command that ends.
fn run(arguments: &[&str], data: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(Nyala::binary());
    command.args(arguments).arg(data);
    if arguments[0] == "serve" {
        command.args(FLAGS);
    }
    let output = command.env_remove("NYALA_INIT").output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

fn listed(data: &Path) -> Vec<String> {
    let files = std::fs::read_dir(data).expect("it is there").flatten();
    files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn an_empty_directory_is_no_database_unless_it_is_to_be_one() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    std::fs::create_dir(&data).expect("there is room");
    for with in [&[][..], &["lost+found"]] {
        with.iter().for_each(|name| std::fs::create_dir(data.join(name)).expect("there is room"));
        let (code, said) = run(&["serve", "--data"], &data);
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("is there and empty") && said.contains("nyala init ") && said.contains("--init"),
            "{said}"
        );
        assert_eq!(listed(&data), with, "nothing is left in it");
    }
    let (code, said) = run(&["init"], &data);
    assert!(code == Some(0) && said.contains(" is database "), "{said}");
    let identity = said.trim().rsplit(' ').next().expect("the last word").to_owned();
    let (code, said) = run(&["init"], &data);
    assert!(code == Some(1) && said.contains("has a database already"), "{said}");
    assert!(check(&data).1.contains(&format!("database {identity}\n")));
    // It is served without more words, and stays what it is.
    for _ in 0..2 {
        let server = Nyala::start_with(&data, Nyala::free_port(), &["--http", "off"]);
        assert!(server.stderr().contains(&format!("database {identity}")), "{}", server.stderr());
        server.kill();
    }
    // All files of it but the lock and the identity are lost: it is not made anew.
    for name in listed(&data).iter().filter(|name| !matches!(name.as_str(), "lock" | "identity" | "lost+found")) {
        std::fs::remove_file(data.join(name)).expect("it is there");
    }
    for arguments in [&["serve", "--data"][..], &["serve", "--init", "--data"], &["check"]] {
        let (code, said) = run(arguments, &data);
        assert!(code == Some(1) && said.contains(&format!("it was database {identity}")), "{arguments:?}: {said}");
    }
    // One that is not there is made; two are not the same database.
    let other = directory.path().join("other");
    let server = Nyala::start_with(&other, Nyala::free_port(), &["--http", "off"]);
    assert!(server.stderr().contains("from now on") && !server.stderr().contains(&identity), "{}", server.stderr());
    server.kill();
}

/// The files of a database, one of which is lost or another's.
#[test]
fn files_that_do_not_go_together_are_refused_or_made_again() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let [data, other, mixed] = ["data", "other", "mixed"].map(|name| directory.path().join(name));
    let identity = |data: &Path| {
        let (code, said) = run(&["init"], data);
        assert_eq!(code, Some(0), "{said}");
        said.trim().rsplit(' ').next().expect("the last word").to_owned()
    };
    let numbers = [identity(&data), identity(&other)];
    let refused = |file: &str, what: &str| {
        super::fixtures::copy(&data, &mixed);
        match std::fs::read(other.join(file)) {
            Ok(bytes) if what.contains("of database") => std::fs::write(mixed.join(file), bytes),
            _ => std::fs::remove_file(mixed.join(file)),
        }
        .expect("there is room");
        for arguments in [&["serve", "--data"][..], &["serve", "--init", "--data"], &["check"]] {
            let (code, said) = run(arguments, &mixed);
            assert!(code == Some(1) && said.contains(what), "{file}, {arguments:?}: {said}");
        }
        std::fs::remove_dir_all(&mixed).expect("it is there");
    };
    let segment = "00000000000000000000.log";
    refused(segment, &format!("{segment} at byte 40: the file is of database {}, not of {}", numbers[1], numbers[0]));
    refused("log.end", &format!("at byte 40: the file is of database {}, not of {}", numbers[0], numbers[1]));
    refused("identity", &format!("the file is of database {}, not of {}", numbers[0], numbers[1]));
    refused("log.end", "log.end is missing");
    refused(segment, &format!("{segment} is missing"));
    // An identity that is lost is what the log says.
    std::fs::remove_file(data.join("identity")).expect("it is there");
    let (code, said) = run(&["check"], &data);
    assert!(code == Some(0) && said.contains(&format!("the log says {}, and a start", numbers[0])), "{said}");
    let server = Nyala::start_with(&data, Nyala::free_port(), &["--http", "off"]);
    let said = server.stderr();
    assert!(said.contains("WARN") && said.contains(&format!("database {}, as the log says", numbers[0])), "{said}");
    server.kill();
    assert!(check(&data).1.contains(&format!("database {}\nno checkpoint", numbers[0])));
}

/// What is left of a database that was being made, or of one that is lost, is not made into one unless that is asked for.
#[test]
fn beginnings_are_no_database_unless_they_are_to_be_one() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    // The tests' own servers are all started with --init.
    for with in [&["init"][..], &["serve", "--init", "--data"]] {
        let data = directory.path().join(with[0]);
        std::fs::create_dir(&data).expect("there is room");
        for name in ["lock", "spare"] {
            std::fs::write(data.join(name), [1; 100]).expect("there is room");
        }
        std::fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("it is ours");
        let (code, said) = run(&["serve", "--data"], &data);
        assert!(code == Some(1) && said.contains("nyala init ") && said.contains("has no database"), "{said}");
        assert_eq!(listed(&data).len(), 2, "nothing is made");
        match with {
            ["init"] => assert_eq!(run(with, &data).0, Some(0)),
            _ => Nyala::start_with(&data, Nyala::free_port(), &["--http", "off"]).kill(),
        }
        assert!(check(&data).1.contains("is sound"));
    }
}

#[test]
fn what_is_somebody_elses_is_refused() {
    if Target::is_postgres() {
        println!("not run: it is about Nyala's files");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    for (file, what) in [("PG_VERSION", "is PostgreSQL's"), ("notes.txt", "there is notes.txt in it, and no database")]
    {
        let data = directory.path().join(file);
        std::fs::create_dir(&data).expect("there is room");
        std::fs::write(data.join(file), "15\n").expect("there is room");
        for arguments in [&["serve", "--data"][..], &["serve", "--init", "--data"], &["init"]] {
            let (code, said) = run(arguments, &data);
            assert!(code == Some(1) && said.contains(what), "{arguments:?}: {said}");
            assert_eq!(listed(&data), [file]);
        }
    }
}

/// What the system lets the process have is asked before anything else is done.
#[test]
fn too_little_memory_is_told_before_the_server_is_ready() {
    if Target::is_postgres() {
        println!("not run: there is no server to start");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let limited = |kilobytes: u64, more: &[&str]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {kilobytes}; exec \"$@\""), "sh"]).arg(Nyala::binary());
        shell.args(["serve", "--data"]).arg(&data).args(FLAGS).args(["--cores", "2"]).args(more);
        shell
    };
    for kilobytes in [300_000, 1_000_000, 1_900_000] {
        for more in [&[][..], &["--memory-limit", "1GB"]] {
            let output = limited(kilobytes, more).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{kilobytes} kB, {more:?}: {said}");
            assert!(said.contains("too little memory") && said.contains("ulimit -v"), "{said}");
            assert!(!data.exists(), "nothing is made");
        }
    }
    // The limit is what fits by itself, and kept: a statement is refused, the server lives.
    let port = Nyala::free_port();
    let mut server = limited(2_600_000, &["--listen", &format!("127.0.0.1:{port}")]).spawn().expect("it runs");
    let begun = std::time::Instant::now();
    let mut connection = loop {
        if let Ok(connection) = testkit::Connection::open(port, "postgres") {
            break connection;
        }
        assert!(begun.elapsed().as_secs() < 60, "it does not come up");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(connection.query("CREATE TABLE t (a int, b text)").error(), None);
    let reply = connection.query("INSERT INTO t SELECT n, repeat('x', 2000) FROM generate_series(1, 400000) AS n");
    assert_eq!(reply.code(), "53200", "{reply}");
    assert_eq!(connection.query("SELECT count(*) FROM t").value(), Some("0"));
    server.kill().expect("it lives");
    server.wait().expect("it has ended");
}
