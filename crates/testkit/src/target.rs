//! The server that is compared with PostgreSQL.

use crate::client::Connection;
use crate::nyala::Nyala;
use crate::oracle::Oracle;

/// The server under test, empty at the start: Nyala, or, to check the tests themselves, a second PostgreSQL.
pub enum Target {
    /// A server of its own.
    Nyala {
        /// Stopped before its directory goes.
        server: Nyala,
        /// Holds the data.
        directory: tempfile::TempDir,
    },
    /// A new database of the shared oracle.
    Postgres {
        /// Its name.
        database: String,
    },
}

impl Target {
    /// Starts Nyala, or PostgreSQL if the environment's `NYALA_TARGET` is `postgres`.
    pub fn start() -> Target {
        if Target::is_postgres() {
            return Target::reference();
        }
        let directory = tempfile::Builder::new().prefix("nyala-").tempdir().expect("a directory for the server");
        let server = Nyala::start(&directory.path().join("data"), Nyala::free_port());
        Target::Nyala { server, directory }
    }

    /// A new database of the shared oracle.
    pub fn reference() -> Target {
        Target::Postgres { database: Oracle::shared().fresh_database() }
    }

    /// Whether [`Target::start`] gives a second PostgreSQL: when asked to, or when there is no server to build.
    pub fn is_postgres() -> bool {
        let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/Cargo.toml");
        let asked = std::env::var("NYALA_TARGET").is_ok_and(|target| target == "postgres");
        let nothing_to_test = std::env::var_os("NYALA_BIN").is_none() && !std::path::Path::new(server).exists();
        asked || nothing_to_test
    }

    /// How reports call it.
    pub fn name(&self) -> &'static str {
        match self {
            Target::Nyala { .. } => "Nyala",
            Target::Postgres { .. } => "PostgreSQL",
        }
    }

    /// A new connection.
    pub fn connect(&self) -> Connection {
        match self {
            Target::Nyala { server, .. } => server.connect(),
            Target::Postgres { database } => Oracle::shared().connect(database),
        }
    }

    /// Whether the server has ended by itself.
    pub fn is_gone(&self) -> bool {
        match self {
            Target::Nyala { server, .. } => server.is_gone(),
            Target::Postgres { .. } => false,
        }
    }

    /// Lines of the server's log that tell of a panic.
    pub fn panics(&self) -> Vec<String> {
        let Target::Nyala { server, .. } = self else { return Vec::new() };
        server.stderr().lines().filter(|line| line.contains("panicked")).map(str::to_owned).collect()
    }

    /// The port at 127.0.0.1.
    pub fn port(&self) -> u16 {
        match self {
            Target::Nyala { server, .. } => server.port(),
            Target::Postgres { .. } => Oracle::shared().port(),
        }
    }

    /// The database that [`Target::connect`] connects to.
    pub fn database(&self) -> &str {
        match self {
            Target::Nyala { .. } => "postgres",
            Target::Postgres { database } => database,
        }
    }
}
