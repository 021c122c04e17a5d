//! `scripts/run.sh`, which `make run` is: what a new user sees when it starts, is ended, starts again, or cannot start.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use testkit::Nyala;

/// The script in a process group of its own, as a terminal gives it one. Ends with the group when dropped.
struct Run {
    child: Child,
    output: BufReader<std::io::PipeReader>,
    said: String,
}

impl Run {
    fn start(data: &Path, port: u16) -> Run {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/run.sh"))
            .arg(Nyala::binary())
            .env("DATA", data)
            .env("PORT", port.to_string())
            .env("NYALA_HTTP", "off")
            .stdin(Stdio::null())
            .stdout(writer.try_clone().expect("a second end of the pipe"))
            .stderr(writer)
            .process_group(0)
            .spawn()
            .expect("bash runs");
        Run { child, output: BufReader::new(reader), said: String::new() }
    }

    /// Reads on to a line with `text`, or to the end.
    fn read_to(&mut self, text: &str) -> bool {
        let mut line = String::new();
        while self.output.read_line(&mut line).expect("the output is text") > 0 {
            self.said.push_str(&line);
            if line.contains(text) {
                return true;
            }
            line.clear();
        }
        false
    }

    /// Ctrl-C.
    fn interrupt(&self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::INT);
    }

    /// Waits for the end: everything said, the exit code.
    fn finish(mut self) -> (String, Option<i32>) {
        self.read_to("\0");
        let code = self.child.wait().expect("the script ends").code();
        (std::mem::take(&mut self.said), code)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Lines about errors. That its server has gone is what the lab may say when both were told to end.
fn errors(said: &str) -> Vec<&str> {
    let is_error = |line: &&str| line.to_lowercase().contains("error") && !line.contains(" 0 errors");
    said.lines().filter(is_error).filter(|line| !line.starts_with("tpcc: connection lost")).collect()
}

#[test]
fn it_loads_is_interrupted_and_goes_on() {
    let directory = tempfile::Builder::new().prefix("nyala-run-").tempdir().expect("a directory");
    let data = directory.path().join("deep/data");
    let port = Nyala::free_port();
    for _ in 0..2 {
        let mut run = Run::start(&data, port);
        assert!(run.read_to("ready: listening on 127.0.0.1"), "{}", run.said);
        assert!(run.read_to("rows/s"), "progress is shown: {}", run.said);
        run.interrupt();
        let (said, code) = run.finish();
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(errors(&said), Vec::<&str>::new(), "{said}");
        assert!(said.contains("ended; the log is durable"), "{said}");
    }
}

#[test]
fn a_taken_port_or_directory_is_one_line() {
    let directory = tempfile::Builder::new().prefix("nyala-run-").tempdir().expect("a directory");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("it has an address").port();
    let data = directory.path().join("data");
    let (said, code) = Run::start(&data, port).finish();
    assert_eq!((said.lines().count(), code), (1, Some(1)), "{said}");
    assert!(said.contains(&format!("cannot listen on 127.0.0.1:{port}: it is in use by another server")), "{said}");
    let server = Nyala::start(&data, Nyala::free_port());
    let (said, code) = Run::start(&data, Nyala::free_port()).finish();
    assert_eq!((said.lines().count(), code), (1, Some(1)), "{said}");
    assert!(said.contains("is in use by another server"), "{said}");
    assert_eq!(server.terminate(), 0);
}
