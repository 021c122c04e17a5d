//! Health and metrics over HTTP, asked for by curl.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use testkit::Nyala;
use testkit::pages::{get, sample};

#[test]
fn figures_tell_what_statements_did() {
    let data = tempfile::tempdir().unwrap();
    let http = Nyala::free_port();
    let address = format!("127.0.0.1:{http}");
    let server = Nyala::start_with(data.path(), Nyala::free_port(), &["--http", &address]);
    assert_eq!(get(http, "/healthz"), Some((200, "ok\n".to_owned())));
    assert_eq!(get(http, "/readyz"), Some((200, "ready\n".to_owned())));
    assert_eq!(get(http, "/nothing").unwrap().0, 404);
    let mut post = Command::new("curl");
    post.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "-d", "x"]);
    let refused = post.arg(format!("http://{address}/metrics")).output().unwrap();
    assert_eq!(refused.stdout, b"405");

    let mut connection = server.connect();
    connection.query("CREATE TABLE t (id int PRIMARY KEY)");
    for id in 0..10 {
        connection.query(&format!("INSERT INTO t VALUES ({id})"));
    }
    connection.query("SELECT * FROM t");
    connection.query("SELECT * FROM nowhere");
    connection.query("INSERT INTO t VALUES (1)");
    let page = get(http, "/metrics").unwrap().1;
    assert_eq!(sample(&page, "nyala_statements_total{kind=\"insert\"}"), 10.0);
    assert_eq!(sample(&page, "nyala_statement_rows_total{kind=\"insert\"}"), 10.0);
    assert!(sample(&page, "nyala_statement_rows_total{kind=\"select\"}") >= 10.0);
    assert_eq!(sample(&page, "nyala_errors_total{sqlstate=\"42P01\"}"), 1.0);
    assert_eq!(sample(&page, "nyala_errors_total{sqlstate=\"23505\"}"), 1.0);
    assert_eq!(sample(&page, "nyala_statement_duration_seconds_count{kind=\"insert\"}"), 10.0);
    assert!(sample(&page, "nyala_commits_total") >= 11.0);
    assert!(sample(&page, "nyala_log_group_records_count") >= 1.0);
    assert!(sample(&page, "nyala_log_sync_seconds_sum") > 0.0);
    assert_eq!(sample(&page, "nyala_connections"), 1.0);
    assert!(sample(&page, "nyala_memory_bytes{kind=\"row_versions\"}") > 0.0);
    assert!(sample(&page, "nyala_data_bytes") > 0.0);
    // Every line is a comment or a sample of a family that was announced.
    let mut families = Vec::new();
    for line in page.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(family) => families.push(family.split(' ').next().unwrap().to_owned()),
            None if line.starts_with('#') => {}
            None => {
                let family = families.last().expect("a family comes first");
                assert!(line.starts_with(family.as_str()), "{line} in {family}");
            }
        }
    }
    let documented = include_str!("../../../docs/METRICS.md");
    for family in families {
        assert!(documented.contains(&format!("`{family}`")), "{family} is not documented");
    }
}

/// Clients that are slow to say what they want, or ask for much and read nothing, keep nobody from asking for health.
#[test]
fn health_is_answered_amid_hostile_clients() {
    let data = tempfile::tempdir().unwrap();
    let http = Nyala::free_port();
    let address = format!("127.0.0.1:{http}");
    let _server = Nyala::start_with(data.path(), Nyala::free_port(), &["--http", &address]);
    let mut crowd = Vec::new();
    for n in 0..300 {
        let mut client = TcpStream::connect(&address).unwrap();
        let request = match n % 3 {
            0 => b"GET /healthz HTTP/1.1\r\nX-Slow: ".to_vec(),
            1 => b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(200),
            _ => Vec::new(),
        };
        // Some are gone before they have said all.
        let _ = client.write_all(&request);
        crowd.push(client);
        if n % 100 == 99 {
            assert_eq!(get(http, "/healthz"), Some((200, "ok\n".to_owned())), "{n} hostile clients");
            assert_eq!(get(http, "/readyz"), Some((200, "ready\n".to_owned())), "{n} hostile clients");
        }
    }
    // None of them is there for long.
    for mut client in crowd {
        client.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
        let ended = client.read_to_end(&mut Vec::new());
        assert!(!ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "it is still there");
    }
}

#[test]
fn a_taken_port_matters_only_if_it_was_asked_for() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = tempfile::tempdir().unwrap();
    let mut serve = Command::new(Nyala::binary());
    serve.arg("serve").arg("--init").arg("--data").arg(data.path()).arg("--socket-dir").arg(data.path());
    let output = serve.args(["--http", &address, "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("cannot listen on {address} for HTTP")), "{said}");

    // Two servers that choose nothing: the second goes on without.
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _first = Nyala::start(one.path(), Nyala::free_port());
    let second = Nyala::start(two.path(), Nyala::free_port());
    assert!(second.stderr().contains("no health and metrics over HTTP"), "{}", second.stderr());
    assert_eq!(get(8432, "/healthz").unwrap().0, 200);
    let off = tempfile::tempdir().unwrap();
    let off = Nyala::start_with(off.path(), Nyala::free_port(), &["--http", "off"]);
    assert!(!off.stderr().contains("HTTP"), "{}", off.stderr());
}
