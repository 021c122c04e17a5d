//! Servers that are started for a comparison or a suite, tuned alike, and gone afterwards: Nyala, PostgreSQL, MariaDB.
//!
//! Each has a data directory of its own under one that is thrown away, listens on a free port of loopback only, takes
//! everybody, and has every commit on the disk before it is acknowledged. Memory is a sixth of the machine's for rows or pages.
//! Nothing of the system's own servers is touched.

pub mod pinning;

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rustix::process::{Pid, Signal, getuid, kill_process};

use crate::client::Connection;
use crate::experiments::Refusal;
use crate::result::Machine;
use crate::target::Target;

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(120);
/// More clients than any experiment has by default.
const CONNECTIONS: usize = 1000;

/// Servers that the lab knows how to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Product {
    /// This program.
    Nyala,
    /// From the system's packages.
    Postgres,
    /// From the system's packages.
    Mariadb,
}

impl Product {
    /// What tables call it.
    pub fn label(self) -> &'static str {
        match self {
            Product::Nyala => "Nyala",
            Product::Postgres => "PostgreSQL",
            Product::Mariadb => "MariaDB",
        }
    }
}

/// A directory that data directories are made in, nobody else's; gone when dropped. Servers in it must have been dropped before.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one in `parent`, or in the directory for temporary files.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(parent: Option<&Path>) -> Result<Scratch, Refusal> {
        /// A program may have several, and what another one with its number has left may lie there.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        fs::create_dir_all(&parent).map_err(io_error(parent.display()))?;
        let path = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("nyala-bench-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => break made.map(|()| path.clone()).map_err(io_error(path.display()))?,
            }
        };
        // Other users' servers must reach their directories in it.
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, open).map_err(io_error(path.display()))?;
        Ok(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is in a directory for what may go.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server; ended, and its data thrown away, when dropped.
pub struct Server {
    child: Child,
    target: Target,
    product: Product,
    directory: PathBuf,
}

/// Who runs a server: the user itself, or somebody without privileges if that is root.
#[derive(Clone, Copy)]
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn of(product: Product) -> Result<Owner, Refusal> {
        if !getuid().is_root() || product == Product::Nyala {
            return Ok(Owner(None));
        }
        // `nobody` is on every machine and owns nothing.
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let line = passwd.lines().find(|line| line.starts_with("nobody:"));
        let ids = line.and_then(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
        });
        let none =
            || Refusal::Options(format!("{} does not run as root, and there is no user nobody", product.label()));
        Ok(Owner(Some(ids.ok_or_else(none)?)))
    }

    fn give(self, path: &Path) -> io::Result<()> {
        self.0.map_or(Ok(()), |(user, group)| chown(path, Some(user), Some(group)))
    }

    fn command(self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null());
        // Alone in a group, so that Ctrl-C at the terminal does not reach it before the lab has ended.
        command.process_group(0);
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }
}

/// A port of loopback that nobody listens on.
///
/// # Errors
/// Of the network.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Makes a command a start of Nyala: without HTTP, and without what the environment says, which is meant for another server.
pub fn serve_nyala(command: &mut Command, data: &Path, port: u16) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NYALA_")) {
        command.env_remove(name);
    }
    command.arg("serve").arg("--data").arg(data).args(["--http", "off", "--listen", &format!("127.0.0.1:{port}")]);
}

fn io_error(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Refusal {
    move |error| Refusal::Output(format!("{what}: {error}"))
}

impl Server {
    /// Starts one in a directory of its own under `parent`, and waits until it takes connections.
    ///
    /// # Errors
    /// If its programs are not installed, or it does not start: one line, with where its log is or what it said.
    pub fn start(product: Product, nyala: &Path, parent: &Path) -> Result<Server, Refusal> {
        let directory = parent.join(product.label().to_lowercase());
        fs::create_dir_all(&directory).map_err(io_error(directory.display()))?;
        let owner = Owner::of(product)?;
        owner.give(&directory).map_err(io_error(directory.display()))?;
        let place = ServerPlace { directory: &directory, owner };
        let log_path = directory.join("log");
        let log = File::create(&log_path).map_err(io_error(log_path.display()))?;
        let (mut command, url) = match product {
            Product::Nyala => place.nyala(nyala)?,
            Product::Postgres => place.postgres()?,
            Product::Mariadb => place.mariadb()?,
        };
        let target = url.parse::<Target>().map_err(Refusal::Options)?;
        let spawned = pinning::of_servers(|| command.stderr(log).spawn());
        let child = spawned.map_err(io_error(command.get_program().to_string_lossy()))?;
        let mut server = Server { child, target, product, directory };
        server.await_ready(&log_path)?;
        Ok(server)
    }

    fn await_ready(&mut self, log: &Path) -> Result<(), Refusal> {
        let started = Instant::now();
        loop {
            let failure = match Connection::open(&self.target) {
                Ok(_) => return Ok(()),
                Err(failure) => failure,
            };
            let ended = self.child.try_wait().map_err(io_error("the server"))?;
            if ended.is_some() || started.elapsed() > PATIENCE {
                let said = fs::read_to_string(log).unwrap_or_default();
                let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
                let label = self.product.label();
                return Err(Refusal::Options(format!("{label} did not start ({failure}); it said last: {last}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Where it listens.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Its directory, with its log, `log`, and its data, `data`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Ends it at once, as a crash would. It stays away.
    ///
    /// # Errors
    /// If it has ended before.
    pub fn crash(&self) -> Result<(), Refusal> {
        // PostgreSQL's processes take no farewell after SIGQUIT to the first; the others are one process.
        let signal = if self.product == Product::Postgres { Signal::QUIT } else { Signal::KILL };
        kill_process(Pid::from_child(&self.child), signal).map_err(|error| io_error("the server")(error.into()))
    }

    /// What it is.
    pub fn product(&self) -> Product {
        self.product
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // PostgreSQL's fast shutdown is SIGINT; for the others it is as good as SIGTERM.
        let signal = if self.product == Product::Postgres { Signal::INT } else { Signal::TERM };
        let _ = kill_process(Pid::from_child(&self.child), signal);
        let started = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        // It may have ended; its data goes in any case.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Where a server is to be.
struct ServerPlace<'a> {
    directory: &'a Path,
    owner: Owner,
}

/// A port for a server that is started now: somebody else may take one that is chosen long before.
fn port() -> Result<u16, Refusal> {
    free_port().map_err(io_error("a port"))
}

impl ServerPlace<'_> {
    fn nyala(&self, program: &Path) -> Result<(Command, String), Refusal> {
        let (mut command, port) = (self.owner.command(program, self.directory), port()?);
        serve_nyala(&mut command, &self.directory.join("data"), port);
        command.arg("--socket-dir").arg(self.directory).args(["--max-connections", &CONNECTIONS.to_string()]);
        Ok((command, format!("postgres://postgres@127.0.0.1:{port}/postgres")))
    }

    fn postgres(&self) -> Result<(Command, String), Refusal> {
        let bin = postgres_programs()?;
        let data = self.directory.join("data");
        let mut initdb = self.owner.command(&bin.join("initdb"), self.directory);
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-D"]).arg(&data);
        made("initdb", initdb)?;
        let (mut command, port) = (self.owner.command(&bin.join("postgres"), self.directory), port()?);
        command.arg("-D").arg(&data).args(["-p", &port.to_string(), "-k"]).arg(self.directory);
        let settings = [
            "listen_addresses=127.0.0.1".to_string(),
            format!("shared_buffers={}MB", share_of_memory() >> 20),
            "max_wal_size=8GB".into(),
            "checkpoint_timeout=15min".into(),
            "wal_buffers=64MB".into(),
            format!("max_connections={CONNECTIONS}"),
            "synchronous_commit=on".into(),
        ];
        for setting in settings {
            command.args(["-c", &setting]);
        }
        Ok((command, format!("postgres://postgres@127.0.0.1:{port}/postgres")))
    }

    fn mariadb(&self) -> Result<(Command, String), Refusal> {
        let missing = || Refusal::Options("MariaDB is not installed (Debian: mariadb-server-core)".into());
        let program = find("mariadbd", &["/usr/sbin", "/usr/libexec"]).ok_or_else(missing)?;
        let install = find("mariadb-install-db", &["/usr/bin", "/usr/scripts"]).ok_or_else(missing)?;
        let data = self.directory.join("data");
        let mut setup = self.owner.command(&install, self.directory);
        setup.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        setup.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        made("mariadb-install-db", setup)?;
        // Read once, at the start: the databases that experiments use, and root from loopback without a password.
        let first = self.directory.join("first.sql");
        fs::write(&first, "CREATE DATABASE IF NOT EXISTS test;\n").map_err(io_error(first.display()))?;
        self.owner.give(&first).map_err(io_error(first.display()))?;
        let (mut command, port) = (self.owner.command(&program, self.directory), port()?);
        command.args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve", "--local-infile=1"]);
        command.arg(format!("--datadir={}", data.display())).arg(format!("--init-file={}", first.display()));
        command.arg(format!("--port={port}"));
        command.arg(format!("--socket={}", self.directory.join("socket").display()));
        command.arg(format!("--pid-file={}", self.directory.join("pid").display()));
        command.arg(format!("--innodb-buffer-pool-size={}", share_of_memory()));
        command.args(["--innodb-log-file-size=2G", "--innodb-flush-method=O_DIRECT"]);
        command.args(["--innodb-flush-log-at-trx-commit=1", "--skip-log-bin"]);
        command.arg(format!("--max-connections={CONNECTIONS}"));
        Ok((command, format!("mysql://root@127.0.0.1:{port}/test")))
    }
}

/// A sixth of the machine's memory, at least 128 MB, in whole megabytes: three servers may be up at once.
fn share_of_memory() -> u64 {
    ((Machine::this().memory_bytes / 6) >> 20 << 20).max(128 << 20)
}

/// Runs a program to its end.
fn made(name: &str, mut command: Command) -> Result<(), Refusal> {
    let output = command.stderr(Stdio::piped()).output().map_err(io_error(name))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing").to_string();
    Err(Refusal::Options(format!("{name} failed; it said last: {last}")))
}

/// The programs of PostgreSQL in `PG_BIN`, or of the newest that is installed.
fn postgres_programs() -> Result<PathBuf, Refusal> {
    if let Some(chosen) = std::env::var_os("PG_BIN").map(PathBuf::from) {
        let wrong = || Refusal::Options(format!("PG_BIN={} has no initdb", chosen.display()));
        return chosen.join("initdb").exists().then(|| chosen.clone()).ok_or_else(wrong);
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin"))))
        .filter(|(_, bin)| bin.join("initdb").exists())
        .max();
    let elsewhere = || find("initdb", &[]).and_then(|path| Some(path.parent()?.to_path_buf()));
    let missing = || Refusal::Options("PostgreSQL is not installed (Debian: postgresql)".into());
    newest.map(|(_, bin)| bin).or_else(elsewhere).ok_or_else(missing)
}

/// A program on the path, or in one of the directories where packages put it.
fn find(name: &str, directories: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).chain(directories.iter().map(PathBuf::from));
    all.map(|directory| directory.join(name)).find(|program| program.is_file())
}
