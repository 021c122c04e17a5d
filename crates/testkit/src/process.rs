//! A server process that cannot outlive the test that started it.
//!
//! A test can end by a panic, by Ctrl-C or by SIGKILL, and statics are never dropped. So the server is not our child but
//! that of a small shell that reads from a pipe whose other end only we hold: when we are gone, whatever the reason, the
//! read ends, and the shell kills the server and removes its directory.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use rustix::process::{Pid, Signal, kill_process};

/// `$1` is the directory to remove at the end, or empty; the rest is the server's command line.
const KEEPER: &str = r#"
remove=$1; shift
trap '' PIPE
exec 3<&0
"$@" 3<&- </dev/null >/dev/null &
pid=$!
echo $pid
{ read _ <&3; kill -KILL $pid; } >/dev/null 2>&1 &
watcher=$!
wait $pid 2>/dev/null
code=$?
kill $watcher 2>/dev/null
echo $code
exec 3<&-
[ -n "$remove" ] && { sleep 0.2; rm -rf "$remove"; }
exit 0
"#;

/// A running server.
pub(crate) struct Process {
    keeper: Child,
    answers: BufReader<ChildStdout>,
    pid: Pid,
    exited: Option<i32>,
}

impl Process {
    /// Starts `command` with its stderr going to `log`. `remove` is deleted when the process is gone.
    pub(crate) fn spawn(command: &[String], log: &Path, remove: Option<&Path>) -> Process {
        let log = File::options().create(true).append(true).open(log).expect("the log's directory exists");
        let mut keeper = Command::new("sh")
            .arg("-c")
            .arg(KEEPER)
            .arg("keeper")
            .arg(remove.unwrap_or(Path::new("")))
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()
            .expect("sh runs");
        let mut answers = BufReader::new(keeper.stdout.take().expect("stdout is a pipe"));
        let pid = number(&mut answers).and_then(Pid::from_raw).expect("the keeper says the server's pid");
        Process { keeper, answers, pid, exited: None }
    }

    /// Sends a signal. Harmless when the process is already gone: its pid is not reused before [`Process::wait`].
    pub(crate) fn signal(&self, signal: Signal) {
        if self.exited.is_none() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Its number.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Waits for the end; 128 + n after signal n.
    pub(crate) fn wait(&mut self) -> i32 {
        if self.exited.is_none() {
            self.exited = Some(number(&mut self.answers).unwrap_or(-1));
        }
        self.exited.unwrap_or(-1)
    }

    /// Whether the process has ended without being asked, as far as can be told without waiting.
    pub(crate) fn is_gone(&self) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero()));
        state.map_or(true, |text| text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn number(answers: &mut impl BufRead) -> Option<i32> {
    let mut line = String::new();
    answers.read_line(&mut line).ok()?;
    line.trim().parse().ok()
}

/// Ports for servers: below those that the system gives to clients, who come and go.
const PORTS: Range<u16> = 10_240..32_768;

/// A TCP port of this machine that is free, and that no other test is given before this process ends.
///
/// The socket never listens: a process that another test is starting holds a copy of it until it runs its program, and a
/// client would be accepted there and cut off.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let directory = std::env::temp_dir().join(format!("nyala-ports-{}", rustix::process::getuid().as_raw()));
    std::fs::create_dir_all(&directory).expect("a directory for ports");
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id().wrapping_mul(7919));
        let port = PORTS.start + (number % u32::from(PORTS.end - PORTS.start)) as u16;
        let file = File::create(directory.join(port.to_string())).expect("a file for the port");
        if file.try_lock().is_ok() && is_free(port) {
            // The lock is held to the end of the process.
            std::mem::forget(file);
            return port;
        }
    }
}

fn is_free(port: u16) -> bool {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    // A copy that does not listen keeps no server from the port.
    sockopt::set_socket_reuseaddr(&socket, true).expect("an option of a socket");
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Asks `ready` until it says yes, or panics with `complaint` after `limit`.
pub(crate) fn until(limit: Duration, mut ready: impl FnMut() -> bool, complaint: impl FnOnce() -> String) {
    let start = std::time::Instant::now();
    while !ready() {
        assert!(start.elapsed() < limit, "{}", complaint());
        std::thread::sleep(Duration::from_millis(10));
    }
}
