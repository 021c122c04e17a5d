//! While image and log are read, the server listens and says how far it is.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::{Connection, Nyala, Target};

const SSL: u32 = 1234 << 16 | 5679;
const GSSENC: u32 = 1234 << 16 | 5680;
const CANCEL: u32 = 1234 << 16 | 5678;

/// Killed when dropped.
struct Starting(Child);

impl Drop for Starting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn request(code: u32, more: &[u8]) -> Vec<u8> {
    let mut bytes = (8 + more.len() as u32).to_be_bytes().to_vec();
    bytes.extend(code.to_be_bytes());
    bytes.extend(more);
    bytes
}

/// All that the server says to these bytes.
fn answer(port: u16, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(bytes)?;
    let mut all = Vec::new();
    let mut part = [0; 512];
    while !all.ends_with(b"\0\0") {
        match stream.read(&mut part)? {
            0 => break,
            n => all.extend(&part[..n]),
        }
    }
    Ok(all)
}

fn fill(data: &std::path::Path) {
    let server = Nyala::start_with(data, Nyala::free_port(), &["--http", "off", "--checkpoint-log", "1GB"]);
    let mut connection = server.connect();
    let mut run = |sql: &str| assert_eq!(connection.query(sql).error(), None, "{sql}");
    run("CREATE TABLE t (id int PRIMARY KEY, a text, b int)");
    run("CREATE INDEX ON t (a)");
    run("CREATE INDEX ON t (b)");
    for part in 0..10 {
        run(&format!(
            "INSERT INTO t SELECT n, 'text ' || n, n % 100 FROM generate_series({part}0001, {part}9999) AS n"
        ));
        if part == 4 {
            run("CHECKPOINT");
        }
    }
    server.kill();
}

#[test]
fn clients_are_told_how_far_it_is() {
    if Target::is_postgres() {
        println!("not run: there is no server to start");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory for the server");
    let data = directory.path().join("data");
    fill(&data);
    let (port, http) = (Nyala::free_port(), Nyala::free_port());
    let mut serve = Command::new(Nyala::binary());
    serve.arg("serve").arg("--data").arg(&data).args(["--listen", &format!("127.0.0.1:{port}")]);
    serve.args(["--http", &format!("127.0.0.1:{http}")]).arg("--socket-dir").arg(directory.path());
    let _server = Starting(serve.stderr(Stdio::null()).spawn().expect("the server starts"));
    let begun = Instant::now();
    let (mut told, mut pages) = (Vec::new(), Vec::new());
    let (mut is_listening, mut had_requests) = (false, false);
    let mut connection = loop {
        assert!(begun.elapsed() < Duration::from_secs(120), "it does not come up; told {told:?}");
        match Connection::open(port, "postgres") {
            Ok(connection) => break connection,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                assert!(!is_listening, "it has listened before");
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => {
                is_listening = true;
                told.push(error.to_string());
                let url = format!("http://127.0.0.1:{http}/readyz");
                let curl = Command::new("curl").args(["-sS", "--max-time", "5", &url]).output();
                pages.push(String::from_utf8_lossy(&curl.expect("curl is installed").stdout).into_owned());
                if !had_requests {
                    had_requests = true;
                    requests(port);
                }
            }
        }
    };
    println!("{} times: {told:?}", told.len());
    let percent = |text: &str| {
        let (_, rest) = text.split_once("starting up: ").unwrap_or_else(|| panic!("{text}"));
        rest.split_once(" %").and_then(|(number, _)| number.parse::<u8>().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    assert!(!told.is_empty(), "nobody was told anything");
    assert!(told.iter().all(|text| text.contains("57P03")), "{told:?}");
    assert!(told.iter().map(|text| percent(text)).is_sorted(), "{told:?}");
    assert!(told.iter().all(|text| percent(text) < 100), "{told:?}");
    assert!(pages[0].starts_with("starting up: ") || pages[0] == "ready\n", "{pages:?}");
    assert_eq!(connection.query("SELECT count(*) FROM t").value(), Some("99990"));
}

/// What may come before a start-up packet is answered as ever.
fn requests(port: u16) {
    let start = request(196_608, b"user\0postgres\0\0");
    // It may be up by now: then it has other things to say.
    let is_refusal = |bytes: &[u8]| bytes.starts_with(b"E") && bytes.windows(6).any(|part| part == b"C57P03");
    let is_later = |bytes: &[u8]| bytes.starts_with(b"R");
    for (before, expected) in [(vec![SSL], &b"N"[..]), (vec![GSSENC], b"N"), (vec![GSSENC, SSL], b"NN")] {
        let mut bytes: Vec<u8> = before.iter().flat_map(|code| request(*code, b"")).collect();
        bytes.extend(&start);
        let said = answer(port, &bytes).expect("it listens");
        let rest = said.strip_prefix(expected).unwrap_or_else(|| panic!("{said:?}"));
        assert!(is_refusal(rest) || is_later(rest), "{said:?}");
    }
    let cancel = request(CANCEL, &[0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!(answer(port, &cancel).expect("it listens"), b"");
    let twice: Vec<u8> = [SSL, SSL].iter().flat_map(|code| request(*code, b"")).collect();
    let said = answer(port, &twice).expect("it listens");
    assert!(said.starts_with(b"NE") && said.windows(6).any(|part| part == b"C0A000"), "{said:?}");
}
