//! The server of one test, with what is asked of it afterwards.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use testkit::{Connection, Nyala, Reply, Target};

/// A server with a directory of its own.
pub struct Server {
    /// The running process; taken while it is down.
    pub nyala: Nyala,
    directory: TempDir,
    flags: Vec<String>,
}

/// A new server with these flags, or `None` if the tests run against PostgreSQL.
pub fn start(flags: &[&str]) -> Option<Server> {
    if Target::is_postgres() {
        println!("not run: there is no server to break");
        return None;
    }
    let directory = tempfile::Builder::new().prefix("nyala-").tempdir().expect("a directory for the server");
    let nyala = Nyala::start_with(&directory.path().join("data"), Nyala::free_port(), flags);
    Some(Server { nyala, directory, flags: flags.iter().map(ToString::to_string).collect() })
}

/// As [`start`], in a control group.
pub fn start_in(group: &Path, flags: &[&str]) -> Option<Server> {
    if Target::is_postgres() {
        return None;
    }
    let directory = tempfile::Builder::new().prefix("nyala-").tempdir().expect("a directory for the server");
    let nyala = Nyala::start_in(Some(group), &directory.path().join("data"), Nyala::free_port(), flags);
    Some(Server { nyala, directory, flags: flags.iter().map(ToString::to_string).collect() })
}

impl Server {
    /// A new connection.
    pub fn connect(&self) -> Connection {
        self.nyala.connect()
    }

    /// Kills the server and starts it again.
    pub fn restart_after_kill(self) -> Server {
        let Server { nyala, directory, flags } = self;
        let (data, port) = (directory.path().join("data"), nyala.port());
        nyala.kill();
        let words: Vec<&str> = flags.iter().map(String::as_str).collect();
        Server { nyala: Nyala::start_with(&data, port, &words), directory, flags }
    }

    /// The directory that the data are in, as `data`, and the running server.
    pub fn parts(self) -> (TempDir, Nyala) {
        (self.directory, self.nyala)
    }

    /// The server lives, serves, has not panicked, and ends in order when asked to.
    pub fn assert_sound(self) {
        assert_eq!(self.connect().query("SELECT 1").code(), "00000");
        let log = self.nyala.stderr();
        let panics: Vec<&str> = log.lines().filter(|line| is_panic(line)).collect();
        assert!(panics.is_empty(), "the server has panicked: {panics:?}");
        assert_eq!(self.nyala.terminate(), 0, "SIGTERM is an orderly end");
    }

    /// Resident memory of the process in MiB.
    pub fn resident_mib(&self) -> u64 {
        status(&self.process(), "VmRSS:") >> 10
    }

    /// The most that it has had resident, in MiB.
    pub fn peak_mib(&self) -> u64 {
        status(&self.process(), "VmHWM:") >> 10
    }

    /// Makes [`Server::peak_mib`] begin anew.
    pub fn forget_peak(&self) {
        std::fs::write(self.process().join("clear_refs"), "5").expect("the kernel forgets the peak");
    }

    /// The directory of the process in `/proc`.
    fn process(&self) -> PathBuf {
        let data = self.directory.path().join("data");
        let marker = data.to_str().expect("the path is UTF-8").as_bytes();
        let processes = std::fs::read_dir("/proc").expect("there is a /proc").flatten().map(|entry| entry.path());
        let is_server = |path: &PathBuf| {
            let command = std::fs::read(path.join("cmdline")).unwrap_or_default();
            let mut words = command.split(|&byte| byte == 0);
            !command.starts_with(b"sh\0") && words.any(|word| word == marker)
        };
        processes.filter(|path| path.join("exe").exists()).find(is_server).expect("the server runs")
    }
}

/// A figure of a process's `status` file.
fn status(process: &std::path::Path, name: &str) -> u64 {
    let text = std::fs::read_to_string(process.join("status")).expect("the process lives");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells it");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Whether a line of the server's log tells of a bug.
pub fn is_panic(line: &str) -> bool {
    line.contains("panic") || line.contains("overflowed its stack")
}

/// The statement must succeed.
pub fn run(connection: &mut Connection, sql: &str) -> Reply {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{}", shortened(sql));
    reply
}

/// The first value of the first row, as a number.
pub fn number(connection: &mut Connection, sql: &str) -> i64 {
    let reply = run(connection, sql);
    reply.value().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{}: {reply}", shortened(sql)))
}

/// The beginning of a statement that may be very long.
pub fn shortened(sql: &str) -> String {
    sql.chars().take(120).collect()
}
