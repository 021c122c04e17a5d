//! Which server: `postgres://user[:password]@host:port/database`, or `mysql://…`.

use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::str::FromStr;

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL's protocol and SQL.
    Postgres,
    /// Those of MySQL and MariaDB.
    MySql,
}

impl Dialect {
    /// What stands before `://`, the port, the role and the database of a URL that names none.
    fn defaults(self) -> (&'static str, u16, &'static str, &'static str) {
        match self {
            Dialect::Postgres => ("postgres", 5432, "postgres", "postgres"),
            Dialect::MySql => ("mysql", 3306, "root", "test"),
        }
    }
}

/// Where a server listens and who connects to it.
///
/// A host that starts with `/` (written `%2F` in the URL, or given as `?host=/directory`) is the directory of a Unix
/// socket, as libpq has it; for MySQL it is the socket.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// What it speaks.
    pub dialect: Dialect,
    /// The role; `postgres` or `root` if the URL names none.
    pub user: String,
    /// Its password, for servers that ask.
    pub password: Option<String>,
    /// Name, address or socket directory.
    pub host: String,
    /// TCP port, or the number in the socket's name.
    pub port: u16,
    /// The database; `postgres` or `test` if the URL names none.
    pub database: String,
}

impl Target {
    /// Path of the Unix socket, if the target is one.
    pub fn socket_path(&self) -> Option<String> {
        self.host.starts_with('/').then(|| match self.dialect {
            Dialect::Postgres => format!("{}/.s.PGSQL.{}", self.host, self.port),
            // The file itself.
            Dialect::MySql => self.host.clone(),
        })
    }

    /// Whether the server runs on this machine, as far as its address tells.
    pub fn is_local(&self) -> bool {
        if self.socket_path().is_some() {
            return true;
        }
        let bare = self.host.trim_matches(['[', ']']);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return address.is_loopback();
        }
        (bare, self.port).to_socket_addrs().is_ok_and(|mut all| all.any(|a| a.ip().is_loopback()))
    }
}

/// The URL without the password: this goes into reports.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host.replace('/', "%2F");
        let (scheme, ..) = self.dialect.defaults();
        write!(f, "{scheme}://{}@{host}:{}/{}", self.user, self.port, self.database)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(url: &str) -> Result<Target, String> {
        let (dialect, rest) = match url.split_once("://") {
            Some(("postgres" | "postgresql", rest)) => (Dialect::Postgres, rest),
            Some(("mysql" | "mariadb", rest)) => (Dialect::MySql, rest),
            _ => return Err("a target looks like postgres://user@host:5432/database or mysql://…".into()),
        };
        let (_, default_port, default_user, default_database) = dialect.defaults();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(unescape(password)?)),
            None => (login, None),
        };
        // The colons of an IPv6 address are inside brackets.
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("\"{port}\" is not a port"))?)
            }
            _ => (place, default_port),
        };
        let mut host = unescape(host)?;
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            match pair.split_once('=') {
                Some(("host", directory)) => host = unescape(directory)?,
                // Both are what the client does anyway.
                Some(("sslmode", "disable" | "prefer" | "allow")) => {}
                _ => return Err(format!("the parameter \"{pair}\" of the target is not known")),
            }
        }
        let or = |text: String, default: &str| if text.is_empty() { default.to_string() } else { text };
        Ok(Target {
            dialect,
            user: or(unescape(user)?, default_user),
            password,
            host: or(host, "127.0.0.1"),
            port,
            database: or(unescape(database)?, default_database),
        })
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => return Err(format!("\"{text}\" has a % that two hexadecimal digits do not follow")),
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("\"{text}\" is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_with_their_defaults() {
        let full: Target = "postgres://ann:p%40ss@db.example:6543/shop".parse().unwrap();
        assert_eq!((full.user.as_str(), full.password.as_deref()), ("ann", Some("p@ss")));
        assert_eq!((full.host.as_str(), full.port, full.database.as_str()), ("db.example", 6543, "shop"));
        let short: Target = "postgres://localhost".parse().unwrap();
        assert_eq!(short.to_string(), "postgres://postgres@localhost:5432/postgres");
        let six: Target = "postgresql://[::1]:5433".parse().unwrap();
        assert_eq!((six.host.as_str(), six.port), ("[::1]", 5433));
        assert!(six.is_local());
    }

    #[test]
    fn a_socket_directory_is_a_host() {
        let escaped: Target = "postgres://ann@%2Frun%2Fpg:5433/x".parse().unwrap();
        assert_eq!(escaped.socket_path().as_deref(), Some("/run/pg/.s.PGSQL.5433"));
        let query: Target = "postgres://ann@:5433/x?host=/run/pg".parse().unwrap();
        assert_eq!(query, escaped);
        assert!(query.is_local());
    }

    #[test]
    fn mysql_has_its_own_defaults() {
        let maria: Target = "mariadb://db.example".parse().unwrap();
        assert_eq!(maria.to_string(), "mysql://root@db.example:3306/test");
        let socket: Target = "mysql://%2Frun%2Fmysqld.sock/x".parse().unwrap();
        assert_eq!(socket.socket_path().as_deref(), Some("/run/mysqld.sock"));
    }

    #[test]
    fn a_wrong_url_says_what_is_wrong() {
        assert!("oracle://x".parse::<Target>().unwrap_err().starts_with("a target looks like"));
        assert_eq!("postgres://h:99999/".parse::<Target>().unwrap_err(), "\"99999\" is not a port");
        assert!("postgres://a%2".parse::<Target>().is_err());
        assert!("postgres://h/?sslmode=require".parse::<Target>().is_err());
    }

    #[test]
    fn the_password_is_never_shown() {
        let target: Target = "postgres://ann:secret@h/x".parse().unwrap();
        assert!(!format!("{target} {target:?}").contains("secret"));
    }
}
