//! The server under test, as the operating system sees it: a binary, a data directory, a port.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;

use crate::client::Connection;
use crate::process::{Process, free_port, until};

/// A running `nyala serve`, killed when dropped or when the test's process ends. Its data directory is the caller's.
pub struct Nyala {
    port: u16,
    log: PathBuf,
    process: Process,
}

impl Nyala {
    /// Starts the server on `data` and waits until it says that it is ready and accepts a connection.
    ///
    /// PANICS with the server's log if it does not come up within two minutes.
    pub fn start(data: &Path, port: u16) -> Nyala {
        Nyala::start_with(data, port, &[])
    }

    /// Like [`Nyala::start`] with more flags.
    pub fn start_with(data: &Path, port: u16, flags: &[&str]) -> Nyala {
        Nyala::start_in(None, data, port, flags)
    }

    /// Like [`Nyala::start_with`], in a control group, whose directory is given, from its first instruction on.
    pub fn start_in(group: Option<&Path>, data: &Path, port: u16, flags: &[&str]) -> Nyala {
        let before = std::fs::metadata(data.with_extension("stderr")).map_or(0, |file| file.len()) as usize;
        let server = Nyala::launch_in(group, data, port, flags);
        let is_up = || {
            assert!(!server.process.is_gone(), "the server is gone: {}", server.stderr());
            let said = server.stderr().get(before..).is_some_and(|text| text.contains("ready"));
            said && Connection::open(port, "postgres").is_ok()
        };
        until(Duration::from_secs(120), is_up, || format!("the server does not start: {}", server.stderr()));
        server
    }

    /// Starts the server and does not wait for anything.
    pub fn launch(data: &Path, port: u16, flags: &[&str]) -> Nyala {
        Nyala::launch_in(None, data, port, flags)
    }

    fn launch_in(group: Option<&Path>, data: &Path, port: u16, flags: &[&str]) -> Nyala {
        let log = data.with_extension("stderr");
        let binary = binary().to_str().expect("the path of the binary is UTF-8");
        let mut command: Vec<String> = Vec::new();
        if let Some(group) = group {
            let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
            command.extend(["sh", "-c", enter].map(str::to_owned));
            command.push(group.display().to_string());
        }
        command.extend([binary, "serve"].map(str::to_owned));
        // A directory that is there and empty is as good as none.
        command.extend(["--data".to_owned(), data.display().to_string(), "--init".to_owned()]);
        // A server that is killed leaves its socket behind.
        command.extend(["--socket-dir".to_owned(), String::new()]);
        command.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
        command.extend(flags.iter().map(|flag| (*flag).to_owned()));
        Nyala { port, process: Process::spawn(&command, &log, None), log }
    }

    /// The server's binary: `NYALA_BIN`, or the one of this build, which is built first if need be.
    pub fn binary() -> &'static Path {
        binary()
    }

    /// A free port to start a server on, and to start it on again after a crash.
    pub fn free_port() -> u16 {
        free_port()
    }

    /// The port it listens on at 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection as user `postgres` to database `postgres`.
    pub fn connect(&self) -> Connection {
        let opened = Connection::open(self.port, "postgres");
        opened.unwrap_or_else(|error| panic!("the server accepts no connection: {error}\n{}", self.stderr()))
    }

    /// All that the server has logged in this data directory, over restarts.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Whether the process has ended.
    pub fn is_gone(&self) -> bool {
        self.process.is_gone()
    }

    /// Ends it as a power cut would end it, as far as a process can: no destructor runs.
    pub fn kill(mut self) {
        self.process.signal(Signal::KILL);
        self.process.wait();
    }

    /// Like [`Nyala::kill`], without waiting for the end.
    pub fn kill_now(&self) {
        self.process.signal(Signal::KILL);
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Waits for the end; the exit code, 128 + n after signal n.
    pub fn wait(mut self) -> i32 {
        self.process.wait()
    }

    /// The process's number.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// Asks it to stop and waits; its exit code.
    pub fn terminate(mut self) -> i32 {
        self.process.signal(Signal::TERM);
        self.process.wait()
    }
}

/// Cargo builds binaries for the tests of their own package only, and `testkit` is not the server's. So the build is
/// asked for here, once per process; it costs nothing when the binary is up to date.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("NYALA_BIN") {
            return PathBuf::from(path);
        }
        let test = std::env::current_exe().expect("the test knows its own path");
        let profile = test.parent().and_then(Path::parent).expect("tests are in <target>/<profile>/deps");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "-p", "server"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if profile.ends_with("release") {
            build.arg("--release");
        }
        build.env("CARGO_TARGET_DIR", profile.parent().expect("a profile's directory is in the target directory"));
        let status = build.status().expect("cargo can be started");
        assert!(status.success(), "the server does not build");
        profile.join("nyala")
    })
}
