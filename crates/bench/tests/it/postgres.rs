//! A PostgreSQL in a temporary directory, gone when dropped.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench::client::Connection;
use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;

/// The running server.
pub struct Postgres {
    child: Child,
    directory: TempDir,
    port: u16,
}

impl Postgres {
    /// Starts one. It trusts everybody but the roles `scram` and `plain`, whom it asks for their passwords.
    pub fn start() -> Postgres {
        let bin = binaries();
        let directory = TempDir::with_prefix("bench-it-").expect("a temporary directory");
        // PostgreSQL refuses to run as root.
        let owner = getuid().is_root().then(|| (id("-u"), id("-g")));
        if let Some((uid, gid)) = owner {
            chown(directory.path(), Some(uid), Some(gid)).expect("root may give away its directory");
        }
        let command = |name: &str| {
            let mut command = Command::new(bin.join(name));
            command.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null());
            if let Some((uid, gid)) = owner {
                command.uid(uid).gid(gid);
            }
            command
        };
        let data = directory.path().join("data");
        let initdb = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D"];
        let made = command("initdb").args(initdb).arg(&data).output().expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let access = "host all scram 127.0.0.1/32 scram-sha-256\nhost all plain 127.0.0.1/32 password\n\
                      host all all 127.0.0.1/32 trust\nlocal all all trust\n";
        fs::write(data.join("pg_hba.conf"), access).expect("pg_hba.conf is written");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        let log = fs::File::create(directory.path().join("log")).expect("a log file");
        let child = command("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-k"])
            .arg(directory.path())
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "max_wal_size=4GB", "-c", "fsync=off"])
            .stderr(log)
            .spawn()
            .expect("postgres starts");
        let server = Postgres { child, directory, port };
        server.await_ready();
        server
    }

    fn await_ready(&self) {
        let target = self.url("postgres", None).parse().expect("a good URL");
        let started = Instant::now();
        while let Err(error) = Connection::open(&target) {
            let log = || fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            assert!(started.elapsed() < Duration::from_secs(60), "PostgreSQL does not answer: {error}\n{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it at once, as a crash would. It stays away.
    pub fn kill(&self) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a process has a number");
        kill_process(pid, Signal::QUIT).expect("it runs");
    }

    /// Its URL over TCP. The password is written as it is in a URL.
    pub fn url(&self, user: &str, password: Option<&str>) -> String {
        let password = password.map(|p| format!(":{p}")).unwrap_or_default();
        format!("postgres://{user}{password}@127.0.0.1:{}/postgres", self.port)
    }

    /// Its URL over a Unix socket.
    pub fn socket_url(&self) -> String {
        let directory = self.directory.path().to_str().expect("a plain path").replace('/', "%2F");
        format!("postgres://postgres@{directory}:{}/postgres", self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // A quick end; if it is dead already, waiting says so.
            let _ = kill_process(pid, Signal::QUIT);
        }
        let _ = self.child.wait();
    }
}

/// The newest PostgreSQL on this machine, or the one in `PG_BIN`.
fn binaries() -> PathBuf {
    let fits = |path: &Path| path.join("initdb").exists() && path.join("postgres").exists();
    if let Some(path) = std::env::var_os("PG_BIN").map(PathBuf::from) {
        assert!(fits(&path), "PG_BIN={} has no initdb and postgres", path.display());
        return path;
    }
    let packaged = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|e| e.path().join("bin"));
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = packaged.chain(std::env::split_paths(&on_path)).filter(|p| fits(p)).collect();
    found.sort();
    found.pop().expect("PostgreSQL is missing: install it (Debian: postgresql) or set PG_BIN to its bin directory")
}

/// The number of the user or group `postgres`, who runs the server when root tests.
fn id(which: &str) -> u32 {
    let output = Command::new("id").args([which, "postgres"]).output().expect("id starts");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("root needs a user named postgres to run PostgreSQL as")
}
