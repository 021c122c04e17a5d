//! Starting, ending, and everything that keeps a server from starting.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, kill_process, prlimit};
use tempfile::tempdir;

use crate::client::{Client, connect};
use crate::node::{Node, command, free_port, refusal};

#[test]
fn a_server_starts_serves_and_ends() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    let parameter = |name: &str| client.parameters.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    assert!(parameter("server_version").unwrap().starts_with("15."));
    assert_eq!(parameter("client_encoding"), Some("UTF8"));
    assert_eq!(parameter("application_name"), Some("test"));
    assert_eq!(parameter("is_superuser"), Some("on"));
    assert_eq!(client.query(""), "I | [I]");
    assert_eq!(client.query("BEGIN"), "BEGIN | [T]");
    let mut local = Client::login(UnixStream::connect(&node.socket).unwrap(), "postgres", None).unwrap();
    assert_eq!(local.query("BEGIN; COMMIT"), "BEGIN | COMMIT | [I]");
    let socket = node.socket.clone();
    assert_eq!(node.end(Signal::TERM), Some(0));
    let last = client.receive().unwrap();
    assert_eq!(last.error(), "FATAL 57P01: terminating connection due to administrator command");
    assert_eq!(client.receive(), None);
    assert!(!socket.exists());
    // The same directory again.
    let node = Node::start(dir.path(), &[]);
    assert!(connect(node.address, "postgres", None).is_ok());
    assert_eq!(node.end(Signal::INT), Some(0));
}

const TERMINATED: &str = "FATAL 57P01: terminating connection due to administrator command";

/// The last message of a connection, which then ends.
fn last(mut client: Client<impl Read + Write>) -> String {
    let mut last = None;
    while let Some(message) = client.receive() {
        last = Some(message);
    }
    last.map(|message| message.error()).unwrap_or_default()
}

/// Whatever a client does when the server ends, it is told; so are those that come until it has ended.
#[test]
fn all_clients_are_told_of_the_end() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &["--cores", "2"]);
    let address = node.address;
    let client = || connect(address, "postgres", None).unwrap();
    let mut holder = client();
    assert!(holder.query("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)").ends_with("[I]"));
    assert!(holder.query("BEGIN; UPDATE t SET a = 2").ends_with("[T]"));
    let mut busy: Vec<_> = [
        "SELECT pg_sleep(100)",
        "SELECT count(*) FROM generate_series(1, 1000000000000)",
        "UPDATE t SET a = 3",
        "COPY t FROM STDIN",
        "SELECT 1",
    ]
    .into_iter()
    .map(|sql| {
        let mut client = client();
        client.send(b'Q', format!("{sql}\0").as_bytes());
        client
    })
    .collect();
    // More than it is going to be answered, and more than is read ahead.
    (0..10_000).for_each(|_| busy[0].send(b'Q', b"SELECT 1\0"));
    // One that does not read keeps the server from its end for a while.
    let mut lazy = client();
    lazy.send(b'Q', b"SELECT repeat('x', 1000) FROM generate_series(1, 1000000)\0");
    assert_eq!(lazy.receive().unwrap().tag, b'T');
    until_stuck(&lazy);
    // It has a core's turn behind all of them.
    assert!(connect(address, "postgres", None).unwrap().query("SELECT 1").ends_with("[I]"));
    let silent = TcpStream::connect(address).unwrap();
    let local = Client::login(UnixStream::connect(&node.socket).unwrap(), "postgres", None).unwrap();
    kill_process(node.pid(), Signal::TERM).unwrap();
    assert_eq!(last(local), TERMINATED);
    assert_eq!(last(holder), TERMINATED);
    // What was not read does not take back what it is told.
    let mut told = Vec::new();
    busy.remove(0).stream.read_to_end(&mut told).expect("an end in order");
    assert!(String::from_utf8_lossy(&told).contains("57P01"));
    for (n, client) in busy.into_iter().enumerate() {
        assert_eq!(last(client), TERMINATED, "client {n}");
    }
    let late = connect(address, "postgres", None).err();
    assert_eq!(late.as_deref(), Some("FATAL 57P03: the database system is shutting down"));
    assert_eq!(last(Client { stream: silent, parameters: Vec::new() }), TERMINATED);
    drop(lazy);
    assert_eq!(node.wait(), Some(0));
}

/// Waits until what lies unread for a client is no longer growing.
fn until_stuck(client: &Client<TcpStream>) {
    let mut unread = vec![0; 16 << 20];
    let mut before = 0;
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = client.stream.peek(&mut unread).unwrap();
        // More than one answer of the server's queue.
        if now == before && now > 100_000 {
            return;
        }
        before = now;
    }
}

/// Who asks for the end twice does not wait for clients, but they are told all the same.
#[test]
fn a_second_signal_does_not_silence_the_first() {
    let dir = tempdir().unwrap();
    let mut node = Node::start(dir.path(), &[]);
    let clients: Vec<_> = (0..40).map(|_| connect(node.address, "postgres", None).unwrap()).collect();
    kill_process(node.pid(), Signal::TERM).unwrap();
    // The second one counts from here on.
    node.line_with("SIGTERM: ending");
    let _ = kill_process(node.pid(), Signal::TERM);
    for client in clients {
        assert_eq!(last(client), TERMINATED);
    }
    assert_eq!(node.wait(), Some(0));
}

#[test]
fn instructions_move_to_huge_pages() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &["--huge-pages", "try"]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    assert_eq!(client.query("SELECT sum(i) FROM generate_series(1, 1000) i"), "T | (500500) | SELECT 1 | [I]");
    // Large executable mappings of no file: there are some, unless the system has no huge pages.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", node.pid().as_raw_nonzero())).unwrap();
    let moved = maps.lines().any(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (start, end) = fields[0].split_once('-').unwrap();
        let bytes = u64::from_str_radix(end, 16).unwrap() - u64::from_str_radix(start, 16).unwrap();
        fields[1] == "r-xp" && fields.len() == 5 && bytes >= 2 << 20
    });
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    assert_eq!(moved, setting.contains("[always]") || setting.contains("[madvise]"), "{maps}");
    assert_eq!(node.end(Signal::TERM), Some(0));
}

/// Working memory is touched in small steps, rows and indexes are read in few pages.
#[test]
fn rows_are_in_huge_pages_and_what_statements_use_is_not() {
    let setting = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    if !setting("/sys/kernel/mm/transparent_hugepage/enabled").contains("[madvise]")
        || setting("/proc/sys/vm/overcommit_memory").trim() == "2"
    {
        return;
    }
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &["--huge-pages", "off"]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    // Kilobytes that are resident where the kernel may use huge pages. Whether it has any at the moment is not the server's.
    let rows = || {
        let (mut rows, mut resident) = (0, 0);
        for line in setting(&format!("/proc/{}/smaps", node.pid().as_raw_nonzero())).lines() {
            if line.starts_with("Rss:") {
                resident = line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
            } else if line.starts_with("VmFlags:") && line.split_ascii_whitespace().any(|flag| flag == "hg") {
                rows += resident;
            }
        }
        rows
    };
    let before = rows();
    client.query("SELECT length(repeat('x', 40000000) || repeat('y', 40000000))");
    let worked = rows();
    assert!(worked < before + 16_384, "{before} {worked}");
    client.query("CREATE TABLE t (a) AS SELECT repeat('x', 400) FROM generate_series(1, 100000)");
    let written = rows();
    assert!(written > worked + 32_768, "{worked} {written}");
}

#[test]
fn a_directory_has_one_server() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    let (message, code) = refusal(&mut command(dir.path(), &format!("127.0.0.1:{}", free_port())));
    let data = dir.path().join("data");
    assert_eq!(message, format!("the data directory {} is in use by another server", data.display()));
    assert_eq!(code, Some(1));
    assert!(connect(node.address, "postgres", None).is_ok());
}

#[test]
fn a_taken_port_is_named() {
    let dir = tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (message, code) = refusal(&mut command(dir.path(), &address.to_string()));
    assert_eq!(message, format!("cannot listen on {address}: it is in use by another server"));
    assert_eq!(code, Some(1));
}

#[test]
fn a_socket_in_use_is_named_and_a_stale_one_is_replaced() {
    let dir = tempdir().unwrap();
    let port = free_port();
    let path = dir.path().join(format!(".s.PGSQL.{port}"));
    let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let (message, code) = refusal(&mut command(dir.path(), &format!("127.0.0.1:{port}")));
    assert_eq!(message, format!("cannot listen on the socket {}: it is in use by another server", path.display()));
    assert_eq!(code, Some(1));
    drop(other);
    let node = Node::start(dir.path(), &[]);
    let stale = node.socket.clone();
    assert!(stale.exists());
    // A server that is killed leaves its socket; nobody listens there any more.
    assert_eq!(node.end(Signal::KILL), None);
    assert!(stale.exists());
    let port: u16 = stale.extension().unwrap().to_str().unwrap().parse().unwrap();
    let mut child = command(dir.path(), &format!("127.0.0.1:{port}")).spawn().unwrap();
    let replaced = (0..300).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        UnixStream::connect(&stale).is_ok()
    });
    let _ = child.kill();
    let _ = child.wait();
    assert!(replaced);
}

#[test]
fn a_damaged_log_is_refused_with_its_place() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("password");
    // Two commits, one after the other: the second says that the first was durable.
    for password in ["one", "two"] {
        std::fs::write(&file, password).unwrap();
        let node = Node::start(dir.path(), &["--password-file", file.to_str().unwrap()]);
        assert_eq!(node.end(Signal::TERM), Some(0));
    }
    let log = dir.path().join("data").join("00000000000000000000.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let first = bytes.windows(6).position(|w| w == b"SCRAM-").unwrap();
    bytes[first] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let (message, code) = refusal(&mut command(dir.path(), &format!("127.0.0.1:{}", free_port())));
    let start = format!("cannot open the data directory {}: the log is damaged: ", dir.path().join("data").display());
    assert!(message.starts_with(&start), "{message}");
    assert!(message.contains("00000000000000000000.log"), "{message}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_directory_that_cannot_be_made_is_refused() {
    let dir = tempdir().unwrap();
    std::fs::write(dir.path().join("data"), "a file").unwrap();
    let (message, code) = refusal(&mut command(dir.path(), &format!("127.0.0.1:{}", free_port())));
    assert!(message.starts_with("cannot "), "{message}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_failed_log_ends_the_server_at_once() {
    let dir = tempdir().unwrap();
    let mut node = Node::start(dir.path(), &[]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    assert_eq!(client.query("CREATE ROLE early LOGIN"), "CREATE ROLE | [I]");
    let nothing = Rlimit { current: Some(0), maximum: Some(0) };
    prlimit(Some(node.pid()), Resource::Fsize, nothing).unwrap();
    // That it is committed waits for a position that never becomes durable.
    assert_eq!(client.query("CREATE ROLE late LOGIN"), "");
    let line = node.line_with("ERROR");
    assert!(line.contains("the log failed: ") && line.ends_with("; the server ends"), "{line}");
    assert_eq!(node.wait(), Some(1));
    let node = Node::start(dir.path(), &[]);
    assert!(connect(node.address, "early", None).is_ok());
}

#[test]
fn the_environment_says_what_the_command_line_does_not() {
    let dir = tempdir().unwrap();
    let port = free_port();
    let data = dir.path().join("from the environment");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_nyala"));
    serve.arg("serve").env("NYALA_DATA", &data).env("NYALA_LISTEN", format!("127.0.0.1:{port}"));
    serve.env("NYALA_SOCKET_DIR", dir.path()).env("NYALA_MEMORY_LIMIT", "256MB");
    let node = Node::start_command(&mut serve, dir.path(), port);
    assert!(connect(node.address, "postgres", None).is_ok());
    assert!(node.socket.exists());
    // Nobody else reads the directory.
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(node.end(Signal::TERM), Some(0));
}

#[test]
fn the_version_says_which_commit_it_is() {
    let (out, _, code) = shown(&["--version"]);
    assert_eq!(code, Some(0));
    let version = out.trim_end().strip_prefix(concat!("nyala ", env!("CARGO_PKG_VERSION"))).expect("the version");
    // A source tree without a repository has no commit.
    let commit = version.strip_prefix(" (").and_then(|rest| rest.strip_suffix(')'));
    assert!(
        version.is_empty() || commit.is_some_and(|c| c.len() >= 12 && c.bytes().all(|b| b.is_ascii_hexdigit())),
        "{out}"
    );
}

fn shown(arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_nyala"))
        .args(arguments)
        .env_remove("NYALA_DATA")
        .env_remove("NYALA_LISTEN")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

#[test]
fn the_command_line_explains_itself() {
    for (arguments, wanted) in [
        (&["--help"][..], &["serve", "bench", "PostgreSQL wire protocol"][..]),
        (&["serve", "--help"], &["--data <DIR>", "NYALA_DATA", "[default: 127.0.0.1:5432]", "NYALA_PASSWORD_FILE"]),
        (&["bench", "tpcc", "--help"], &["--warehouses", "--duration", "postgres://"]),
    ] {
        let (out, err, code) = shown(arguments);
        assert_eq!((err.as_str(), code), ("", Some(0)), "{arguments:?}");
        for text in wanted {
            assert!(out.contains(text), "{arguments:?} does not say {text:?}:\n{out}");
        }
    }
}

#[test]
fn a_wrong_command_line_is_refused() {
    for (arguments, wanted) in [
        (&["serve"][..], "--data <DIR>"),
        (&["serve", "--data", "x", "--listen", "5432"], "expected ADDRESS:PORT"),
        (&["serve", "--data", "x", "--memory-limit", "lots"], "expected bytes"),
        (&["serve", "--data", "x", "--nosuch"], "unexpected argument '--nosuch'"),
    ] {
        let (out, err, code) = shown(arguments);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{arguments:?}");
        assert!(err.starts_with("error: ") && err.contains(wanted), "{arguments:?}: {err}");
    }
    let dir = tempdir().unwrap();
    let (message, code) = refusal(
        command(dir.path(), &format!("127.0.0.1:{}", free_port())).args(["--password-file", "/nosuch/password"]),
    );
    assert!(message.starts_with("cannot read password file /nosuch/password: "), "{message}");
    assert_eq!(code, Some(1));
}
