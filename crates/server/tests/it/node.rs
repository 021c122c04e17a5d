//! A running server on a directory of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for a line of the log, or for the end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server process; killed if it is dropped.
pub struct Node {
    child: Child,
    lines: Receiver<String>,
    pub address: SocketAddr,
    pub socket: PathBuf,
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// `nyala serve` on `directory`/data, with the socket in `directory`.
pub fn command(directory: &Path, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nyala"));
    for name in ["NYALA_DATA", "NYALA_LISTEN", "NYALA_SOCKET_DIR", "NYALA_PASSWORD_FILE", "NYALA_LOG"] {
        command.env_remove(name);
    }
    command.arg("serve").arg("--data").arg(directory.join("data"));
    command.arg("--socket-dir").arg(directory).args(["--listen", listen, "--memory-limit", "256MB"]);
    command.stderr(Stdio::piped()).stdin(Stdio::null());
    command
}

impl Node {
    /// Starts a server and waits until it is ready.
    pub fn start(directory: &Path, arguments: &[&str]) -> Node {
        let port = free_port();
        Node::start_command(command(directory, &format!("127.0.0.1:{port}")).args(arguments), directory, port)
    }

    /// The same by a command of the caller's, which names `port` and the socket's directory.
    pub fn start_command(command: &mut Command, directory: &Path, port: u16) -> Node {
        command.stderr(Stdio::piped()).stdin(Stdio::null());
        let mut node = Node::spawn(command, directory, port);
        let line = node.line_with("ready: listening on ");
        assert!(line.contains(&format!("127.0.0.1:{port}")), "{line}");
        node
    }

    fn spawn(command: &mut Command, directory: &Path, port: u16) -> Node {
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let socket = directory.join(format!(".s.PGSQL.{port}"));
        Node { child, lines, address: SocketAddr::from(([127, 0, 0, 1], port)), socket }
    }

    /// Waits for a line of the log.
    pub fn line_with(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            if line.contains(text) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line with {text:?} in the log: {seen:#?}");
    }

    /// Process number.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for the end: the exit code, unless a signal killed it.
    pub fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Sends a signal and waits for the end: the exit code.
    pub fn end(self, signal: Signal) -> Option<i32> {
        kill_process(self.pid(), signal).unwrap();
        self.wait()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a server that is expected to refuse: its only error in the log and its exit code.
pub fn refusal(command: &mut Command) -> (String, Option<i32>) {
    let mut node = Node::spawn(command, Path::new(""), 0);
    let mut log = Vec::new();
    // The log ends with the process.
    while let Ok(line) = node.lines.recv_timeout(PATIENCE) {
        assert!(!line.contains("ready:"), "{line}");
        log.push(line);
    }
    let errors: Vec<&String> = log.iter().filter(|l| l.contains("ERROR") || l.contains("panic")).collect();
    assert_eq!(errors.len(), 1, "{log:#?}");
    let (_, message) = errors[0].split_once("ERROR ").unwrap();
    (message.to_string(), node.child.wait().unwrap().code())
}
