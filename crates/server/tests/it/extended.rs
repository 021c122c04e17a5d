//! The extended protocol: formats of portals, pipelines, errors up to Sync.

use tempfile::tempdir;

use crate::client::{Client, connect, describe};
use crate::node::Node;

/// Parse of an unnamed statement without parameter types.
fn parse(client: &mut Client, sql: &str) {
    client.send(b'P', format!("\0{sql}\0\0\0").as_bytes());
}

/// Bind of the unnamed statement without parameters.
fn bind(client: &mut Client, portal: &str, formats: &[u16]) {
    let mut body = format!("{portal}\0\0\0\0\0\0").into_bytes();
    body.extend((formats.len() as u16).to_be_bytes());
    formats.iter().for_each(|f| body.extend(f.to_be_bytes()));
    client.send(b'B', &body);
}

fn execute(client: &mut Client, portal: &str) {
    client.send(b'E', format!("{portal}\0\0\0\0\0").as_bytes());
}

fn describe_portal(client: &mut Client, portal: &str) {
    client.send(b'D', format!("P{portal}\0").as_bytes());
}

fn sync(client: &mut Client) -> String {
    client.send(b'S', b"");
    describe(&client.until_ready())
}

#[test]
fn portals_have_formats_of_their_own() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    parse(&mut client, "SHOW TimeZone");
    bind(&mut client, "named", &[1]);
    bind(&mut client, "", &[]);
    describe_portal(&mut client, "named");
    describe_portal(&mut client, "");
    client.send(b'S', b"");
    let messages = client.until_ready();
    assert_eq!(describe(&messages), "1 | 2 | 2 | T | T | [I]");
    let format = |i: usize| messages[i].body.last().copied();
    assert_eq!((format(3), format(4)), (Some(1), Some(0)));
    bind(&mut client, "", &[0, 0]);
    let refused = "ERROR 08P01: bind message has 2 result formats but query has 1 columns | [I]";
    assert_eq!(sync(&mut client), refused);
    bind(&mut client, "", &[0]);
    execute(&mut client, "");
    let answer = sync(&mut client);
    assert!(answer.starts_with("2 | (") && answer.ends_with(") | SHOW | [I]"), "{answer}");
}

#[test]
fn an_error_skips_to_sync_and_the_session_goes_on() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    parse(&mut client, "SELEC");
    bind(&mut client, "", &[]);
    execute(&mut client, "");
    assert_eq!(sync(&mut client), "ERROR 42601: syntax error at or near \"SELEC\" | [I]");
    execute(&mut client, "none");
    assert_eq!(sync(&mut client), "ERROR 34000: portal \"none\" does not exist | [I]");
    parse(&mut client, "BEGIN");
    bind(&mut client, "", &[]);
    describe_portal(&mut client, "");
    execute(&mut client, "");
    assert_eq!(sync(&mut client), "1 | 2 | n | BEGIN | [T]");
    // Not UTF-8.
    client.send(b'Q', b"SHOW \xff\0");
    let answer = describe(&client.until_ready());
    assert_eq!(answer, "ERROR 22021: invalid byte sequence for encoding \"UTF8\": 0xff | [E]");
    assert_eq!(client.query("ROLLBACK"), "ROLLBACK | [I]");
}

#[test]
fn a_pipeline_of_commits_is_answered_in_order() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &["--cores", "1"]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    for i in 0..50 {
        parse(&mut client, &format!("CREATE ROLE pipelined{i}"));
        bind(&mut client, "", &[]);
        execute(&mut client, "");
        client.send(b'S', b"");
    }
    for _ in 0..50 {
        assert_eq!(describe(&client.until_ready()), "1 | 2 | CREATE ROLE | [I]");
    }
    let again = client.query("CREATE ROLE pipelined49");
    assert_eq!(again, "ERROR 42710: role \"pipelined49\" already exists | [I]");
}

#[test]
fn many_clients_commit_at_once() {
    let dir = tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    let address = node.address;
    let work = |client: usize| {
        move || {
            let mut connection = connect(address, "postgres", None).unwrap();
            for i in 0..30 {
                assert_eq!(connection.query(&format!("CREATE ROLE c{client}_{i}")), "CREATE ROLE | [I]");
            }
        }
    };
    let threads: Vec<_> = (0..16).map(|client| std::thread::spawn(work(client))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // All of them are there after a crash: each was answered when it was durable.
    assert_eq!(node.end(rustix::process::Signal::KILL), None);
    let node = Node::start(dir.path(), &[]);
    let mut client = connect(node.address, "postgres", None).unwrap();
    for (i, j) in [(0, 29), (7, 3), (15, 29)] {
        let again = client.query(&format!("CREATE ROLE c{i}_{j}"));
        assert_eq!(again, format!("ERROR 42710: role \"c{i}_{j}\" already exists | [I]"));
    }
}
