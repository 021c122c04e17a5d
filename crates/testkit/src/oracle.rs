//! PostgreSQL, the oracle: a throwaway cluster on a free port.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::client::Connection;
use crate::process::{Process, free_port, until};

/// A PostgreSQL cluster in a directory of its own, gone when dropped or when the test's process ends.
///
/// It does not sync, does not vacuum by itself, and lives in UTC with the C locale and UTF-8.
pub struct Oracle {
    port: u16,
    _process: Process,
}

impl Oracle {
    /// Makes a cluster and starts it.
    ///
    /// PANICS if no PostgreSQL is installed: without the oracle there is nothing to test against.
    pub fn start() -> Oracle {
        let bin = bin_directory();
        let user = unprivileged();
        let directory =
            tempfile::Builder::new().prefix("oracle-").tempdir().expect("a directory for PostgreSQL").keep();
        if let Some((_, uid, gid)) = &user {
            std::os::unix::fs::chown(&directory, Some(*uid), Some(*gid)).expect("root may give its directory away");
        }
        let data = directory.join("data");
        initdb(&bin, &data, &user);
        let port = free_port();
        let mut command = dropped(&user);
        command.push(bin.join("postgres").display().to_string());
        command.extend(["-D".to_owned(), data.display().to_string()]);
        for setting in SETTINGS {
            command.extend(["-c".to_owned(), (*setting).to_owned()]);
        }
        command.extend(["-c".to_owned(), format!("port={port}")]);
        let log = directory.join("log");
        let process = Process::spawn(&command, &log, Some(&directory));
        until(
            Duration::from_secs(60),
            || Connection::open(port, "postgres").is_ok(),
            || format!("PostgreSQL does not start: {}", std::fs::read_to_string(&log).unwrap_or_default()),
        );
        Oracle { port, _process: process }
    }

    /// The one cluster that the tests of this process share.
    pub fn shared() -> &'static Oracle {
        static SHARED: OnceLock<Oracle> = OnceLock::new();
        SHARED.get_or_init(Oracle::start)
    }

    /// A new, empty database of this cluster; its name.
    pub fn fresh_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("fresh_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let reply = self.connect("postgres").query(&format!("CREATE DATABASE {name} TEMPLATE template0"));
        assert_eq!(reply.error(), None, "a database for the test");
        name
    }

    /// The port it listens on at 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection as user `postgres`.
    pub fn connect(&self, database: &str) -> Connection {
        Connection::open(self.port, database).expect("PostgreSQL accepts connections")
    }
}

const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "full_page_writes=off",
    "autovacuum=off",
    "shared_buffers=32MB",
    "max_connections=200",
    "deadlock_timeout=100ms",
    "max_prepared_transactions=256",
    "timezone=UTC",
    "log_timezone=UTC",
    "datestyle=ISO,MDY",
    "lc_messages=C",
    "jit=off",
];

fn initdb(bin: &Path, data: &Path, user: &Option<(String, u32, u32)>) {
    let mut command = dropped(user);
    command.push(bin.join("initdb").display().to_string());
    for flag in ["--locale=C.UTF-8", "-E", "UTF8", "-A", "trust", "-U", "postgres", "-N", "-D"] {
        command.push(flag.to_owned());
    }
    let output = Command::new(&command[0])
        .args(&command[1..])
        .arg(data)
        .current_dir("/")
        .output()
        .expect("initdb can be started");
    assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
}

/// The release that the server under test follows: words and details of answers change between releases.
const RELEASE: u32 = 15;

/// The directory of PostgreSQL's programs: of that release if it is installed, else of the newest.
fn bin_directory() -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin"))))
        .filter(|(_, bin)| bin.join("initdb").exists() && bin.join("postgres").exists())
        .max_by_key(|(version, _)| (*version == RELEASE, *version));
    if let Some((_, bin)) = newest {
        return bin;
    }
    let output = Command::new("pg_config").arg("--bindir").output().expect("PostgreSQL (server programs) is installed");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

/// PostgreSQL refuses to run as root: the user to become instead, with its ids.
fn unprivileged() -> Option<(String, u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |name: &str| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((name.to_owned(), fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(find("postgres").or_else(|| find("nobody")).expect("a user `postgres` or `nobody` to run PostgreSQL as"))
}

/// The start of a command line that gives up root's rights. `setpriv` execs, so the pid stays the server's.
fn dropped(user: &Option<(String, u32, u32)>) -> Vec<String> {
    let Some((_, uid, gid)) = user else { return Vec::new() };
    vec!["setpriv".to_owned(), format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned()]
}
