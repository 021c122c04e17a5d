//! Who gets in.

use rustix::process::Signal;
use tempfile::tempdir;

use crate::client::{Client, connect};
use crate::node::{Node, command, free_port, refusal};

#[test]
fn a_password_file_makes_passwords_necessary_for_good() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("password");
    std::fs::write(&file, "s\u{e9}cret\n").unwrap();
    let node = Node::start(dir.path(), &["--password-file", file.to_str().unwrap()]);
    assert_eq!(connect(node.address, "postgres", None).err().unwrap(), "a password is wanted");
    let wrong = connect(node.address, "postgres", Some("wrong")).err().unwrap();
    assert_eq!(wrong, "FATAL 28P01: password authentication failed for user \"postgres\"");
    let unknown = connect(node.address, "nobody", Some("wrong")).err().unwrap();
    assert_eq!(unknown, "FATAL 28P01: password authentication failed for user \"nobody\"");
    assert!(connect(node.address, "postgres", Some("s\u{e9}cret")).is_ok());
    let stream = std::os::unix::net::UnixStream::connect(&node.socket).unwrap();
    assert_eq!(Client::login(stream, "postgres", None).err().unwrap(), "a password is wanted");
    assert_eq!(node.end(Signal::TERM), Some(0));
    // The password is in the directory now.
    let node = Node::start(dir.path(), &[]);
    assert!(connect(node.address, "postgres", None).is_err());
    assert!(connect(node.address, "postgres", Some("s\u{e9}cret")).is_ok());
}

#[test]
fn beyond_loopback_a_password_is_necessary() {
    let dir = tempdir().unwrap();
    let address = format!("0.0.0.0:{}", free_port());
    let (message, code) = refusal(&mut command(dir.path(), &address));
    assert!(message.starts_with(&format!("refusing to listen on {address}: the role postgres has no password")));
    assert_eq!(code, Some(1));
    let file = dir.path().join("password");
    std::fs::write(&file, "secret").unwrap();
    let open = format!("0.0.0.0:{}", free_port());
    let node = Node::start(dir.path(), &["--listen", &open, "--password-file", file.to_str().unwrap()]);
    assert!(connect(node.address, "postgres", Some("secret")).is_ok());
}

#[test]
fn a_password_set_in_sql_counts_from_the_next_login_on() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    assert_eq!(client.query("ALTER ROLE postgres PASSWORD 'secret'"), "ALTER ROLE | [I]");
    assert_eq!(connect(node.address, "postgres", None).err().unwrap(), "a password is wanted");
    assert!(connect(node.address, "postgres", Some("secret")).is_ok());
    assert_eq!(client.query("ALTER ROLE postgres PASSWORD NULL"), "ALTER ROLE | [I]");
    assert!(connect(node.address, "postgres", None).is_ok());
}

#[test]
fn names_that_do_not_exist() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    assert_eq!(connect(node.address, "nobody", None).err().unwrap(), "FATAL 28000: role \"nobody\" does not exist");
}

#[test]
fn a_connection_too_many_is_refused_and_a_free_place_is_taken() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &["--max-connections", "4"]);
    let mut clients: Vec<Client> = (0..4).map(|_| connect(node.address, "postgres", None).unwrap()).collect();
    let refused = connect(node.address, "postgres", None).err().unwrap();
    assert_eq!(refused, "FATAL 53300: sorry, too many clients already");
    drop(clients.pop());
    let again = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        connect(node.address, "postgres", None).is_ok()
    });
    assert!(again);
    assert_eq!(clients[0].query("BEGIN"), "BEGIN | [T]");
}

#[test]
fn settings_come_with_the_connection_and_an_idle_transaction_is_ended() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    assert_eq!(client.query("SHOW max_connections"), "T | (300) | SHOW | [I]");
    assert_eq!(client.query("SET idle_in_transaction_session_timeout = 200"), "SET | [I]");
    assert_eq!(client.query("BEGIN"), "BEGIN | [T]");
    let last = client.receive().unwrap();
    assert_eq!(last.error(), "FATAL 25P03: terminating connection due to idle-in-transaction timeout");
    assert_eq!(client.receive(), None);
}
