//! Health and metrics over HTTP, asked for by curl.

use std::process::Command;

use testkit::Nyala;

/// Status and body of a GET, or `None` if nobody answers.
fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let url = format!("http://127.0.0.1:{port}{path}");
    let output = Command::new("curl").args(["-sS", "--max-time", "10", "-w", "\n%{http_code}", &url]).output();
    let output = output.expect("curl is installed");
    let text = String::from_utf8(output.stdout).expect("pages are UTF-8");
    let (body, status) = text.rsplit_once('\n')?;
    Some((status.parse().ok().filter(|&status| status != 0)?, body.to_owned()))
}

/// The value of a sample.
fn sample(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().expect("samples are numbers")
}

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

#[test]
fn a_taken_port_matters_only_if_it_was_asked_for() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = tempfile::tempdir().unwrap();
    let mut serve = Command::new(Nyala::binary());
    serve.arg("serve").arg("--data").arg(data.path()).arg("--socket-dir").arg(data.path());
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
