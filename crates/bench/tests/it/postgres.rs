//! A PostgreSQL of a test's own, gone when dropped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use bench::client::Connection;
use bench::servers::{Product, Scratch, Server};
use tempfile::TempDir;

/// The running server. Dropped in this order.
pub struct Postgres {
    server: Server,
    _scratch: Scratch,
    _directory: TempDir,
}

impl Postgres {
    /// Starts one. It trusts everybody but the roles `scram` and `plain`, whom it asks for their passwords.
    pub fn start() -> Postgres {
        let directory = TempDir::with_prefix("bench-it-").expect("a temporary directory");
        // Who runs the server must reach his own directory in it.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let scratch = Scratch::new(Some(directory.path())).expect("a directory");
        let server =
            Server::start(Product::Postgres, Path::new("/nowhere"), scratch.path()).expect("PostgreSQL starts");
        let access = "host all scram 127.0.0.1/32 scram-sha-256\nhost all plain 127.0.0.1/32 password\n\
                      host all all 127.0.0.1/32 trust\nlocal all all trust\n";
        fs::write(server.directory().join("data/pg_hba.conf"), access).expect("pg_hba.conf is written");
        let mut admin = Connection::open(server.target()).expect("it takes connections");
        // Quicker, and reports must say so.
        admin.query("ALTER SYSTEM SET fsync = off").expect("a superuser may");
        admin.query("SELECT pg_reload_conf()").expect("it reads its files again");
        while admin.query_one("SHOW fsync").expect("it answers").as_deref() != Some("off") {
            std::thread::sleep(Duration::from_millis(5));
        }
        Postgres { server, _scratch: scratch, _directory: directory }
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        self.server.target().port
    }

    /// Ends it at once, as a crash would. It stays away.
    pub fn kill(&self) {
        self.server.crash().expect("it runs");
    }

    /// Its URL over TCP. The password is written as it is in a URL.
    pub fn url(&self, user: &str, password: Option<&str>) -> String {
        let password = password.map(|p| format!(":{p}")).unwrap_or_default();
        format!("postgres://{user}{password}@127.0.0.1:{}/postgres", self.port())
    }

    /// Its URL over a Unix socket.
    pub fn socket_url(&self) -> String {
        let directory = self.server.directory().to_str().expect("a plain path").replace('/', "%2F");
        format!("postgres://postgres@{directory}:{}/postgres", self.port())
    }
}
