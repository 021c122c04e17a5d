//! The command line and its environment variables.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::check::CheckOptions;
use crate::init::InitOptions;

/// Nyala, a memory-first SQL database for transactions that speaks the PostgreSQL wire protocol.
#[derive(Debug, Parser)]
#[command(name = "nyala", version = env!("NYALA_VERSION"))]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a data directory to PostgreSQL clients.
    Serve(ServeOptions),
    /// Make a new database in a directory that is not there or is empty. `serve` does it by itself where there is no directory.
    Init(InitOptions),
    /// Verify a data directory without starting it. Ends with 0 if it is sound, 1 if it is damaged, 2 if it cannot be read.
    Check(CheckOptions),
    /// The lab: measure a server of PostgreSQL's protocol or MySQL's, compare servers, report results.
    #[command(subcommand)]
    Bench(bench::command::Command),
}

/// Options of `nyala serve`.
#[derive(Clone, Debug, Args)]
#[command(next_line_help = true)]
pub struct ServeOptions {
    /// Configuration file in TOML: the options by their long names but for `config`, `set` and `init`, and run-time settings in a table `settings`. What is
    /// said on the command line or in the environment goes before.
    #[arg(long, env = "NYALA_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// A run-time setting that sessions begin with; may be given more than once.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,

    /// Data directory; made if it is not there. It is all the state there is.
    #[arg(long, env = "NYALA_DATA", value_name = "DIR")]
    pub data: PathBuf,

    /// Make a new database, too, if the data directory is there and empty; without this it is refused, for it may be the place of a
    /// file system that is not mounted. Says nothing where there is a database.
    #[arg(long, env = "NYALA_INIT", value_parser = clap::builder::BoolishValueParser::new())]
    pub init: bool,

    /// Address to listen on; may be given more than once. Beyond loopback, the role postgres must have a password.
    #[arg(
        long,
        env = "NYALA_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:5432",
        value_delimiter = ',',
        value_parser = address
    )]
    pub listen: Vec<SocketAddr>,

    /// Directory of the Unix socket `.s.PGSQL.PORT`, PORT being that of the first address; empty for no socket. For a service a
    /// directory of its own, such as /run/nyala, is better than /tmp, where everybody may reach it.
    #[arg(long, env = "NYALA_SOCKET_DIR", value_name = "DIR", default_value = "/tmp", value_parser = directory)]
    pub socket_dir: PathBuf,

    /// File whose first line becomes the password of the role postgres (or is its SCRAM-SHA-256 verifier).
    #[arg(long, env = "NYALA_PASSWORD_FILE", value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// File with host rules in the form of PostgreSQL's pg_hba.conf; read again on SIGHUP and by pg_reload_conf().
    #[arg(long, env = "NYALA_HBA", value_name = "FILE")]
    pub hba: Option<PathBuf>,

    /// Certificate chain in PEM: clients may then encrypt their connections. Read again on SIGHUP.
    #[arg(long, env = "NYALA_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate, in PEM.
    #[arg(long, env = "NYALA_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Refuse connections over TCP that are not encrypted. With --hba, the file decides.
    #[arg(long, env = "NYALA_TLS_REQUIRED", requires = "tls_cert")]
    pub tls_required: bool,

    /// Connections beyond this are refused; the last three are kept for superusers.
    #[arg(long, env = "NYALA_MAX_CONNECTIONS", value_name = "N", default_value_t = 300,
          value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub max_connections: u32,

    /// Memory to use: bytes, a size such as 8GB, or a share such as 80% of the machine's memory, or of the control group's.
    #[arg(long, env = "NYALA_MEMORY_LIMIT", value_name = "SIZE", default_value = "80%", value_parser = memory)]
    pub memory_limit: Memory,

    /// Address of health and metrics over HTTP, or `off`. 127.0.0.1:8432 if not given; there a taken port is a warning only.
    #[arg(long, env = "NYALA_HTTP", value_name = "ADDRESS:PORT|off", value_parser = http_address)]
    pub http: Option<HttpAddress>,

    /// Log after which a checkpoint is made: bytes, or a size such as 1GB.
    #[arg(long, env = "NYALA_CHECKPOINT_LOG", value_name = "SIZE", default_value = "1GB", value_parser = memory)]
    pub checkpoint_log: Memory,

    /// Size of the log's files, from 1MB to 1GB: a start reads the log in pieces of this size, and two of them are the least that a
    /// data directory takes.
    #[arg(long, env = "NYALA_LOG_SEGMENT", value_name = "SIZE", default_value = "64MB", value_parser = segment)]
    pub log_segment: u64,

    /// Seconds after which a checkpoint is made if anything was written since the last.
    #[arg(long, env = "NYALA_CHECKPOINT_INTERVAL", value_name = "SECONDS", default_value_t = 300,
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub checkpoint_interval: u32,

    /// Threads that serve connections; one per processor, each kept on its own, if not given.
    #[arg(long, env = "NYALA_CORES", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub cores: Option<u16>,

    /// Whether the server's instructions are moved to huge pages, where the system has them: `try` or `off`. In them `perf` does not
    /// find the names of functions.
    #[arg(long, env = "NYALA_HUGE_PAGES", value_name = "try|off", default_value = HUGE_PAGES)]
    pub huge_pages: HugePages,
}

/// Builds for tests are many times as large, and started for each test.
const HUGE_PAGES: &str = if cfg!(debug_assertions) { "off" } else { "try" };

/// Whether huge pages are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HugePages {
    /// If the system has them.
    Try,
    /// No.
    Off,
}

/// Where HTTP is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpAddress {
    /// Nowhere.
    Off,
    /// Here.
    At(SocketAddr),
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths of what there is.
    Percent(u64),
}

impl Memory {
    /// In bytes, on a machine with `total` bytes.
    pub fn bytes(self, total: u64) -> u64 {
        match self {
            Memory::Bytes(bytes) => bytes,
            Memory::Percent(percent) => total / 100 * percent,
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Some(port) = text.strip_prefix("localhost:") {
        let port = port.parse().map_err(|_| format!("\"{port}\" is not a port"))?;
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse().map_err(|_| "expected ADDRESS:PORT, such as 127.0.0.1:5432, 0.0.0.0:5432 or [::1]:5432".to_string())
}

/// As it is: a parser of paths would not take an empty one.
fn directory(text: &str) -> Result<PathBuf, std::convert::Infallible> {
    Ok(PathBuf::from(text))
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_string(), value.trim().to_string()))
}

fn http_address(text: &str) -> Result<HttpAddress, String> {
    match text {
        "off" | "" => Ok(HttpAddress::Off),
        text => address(text).map(HttpAddress::At),
    }
}

fn memory(text: &str) -> Result<Memory, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "expected bytes, a size such as 8GB, or a share such as 80%")?;
    let scale: u64 = match unit.trim() {
        "%" if (1..=100).contains(&number) => return Ok(Memory::Percent(number)),
        "%" => return Err("a share is from 1% to 100%".to_string()),
        "" | "B" => 1,
        "kB" | "KB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        other => return Err(format!("unknown unit \"{other}\": expected B, kB, MB, GB, TB or %")),
    };
    let bytes = number.checked_mul(scale).ok_or("too large")?;
    if bytes < 1 << 20 { Err("at least 1MB".to_string()) } else { Ok(Memory::Bytes(bytes)) }
}

pub fn segment(text: &str) -> Result<u64, String> {
    match memory(text)? {
        Memory::Bytes(bytes) if (1 << 20..=1 << 30).contains(&bytes) => Ok(bytes.next_multiple_of(env::PAGE as u64)),
        _ => Err("expected a size from 1MB to 1GB".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn no_socket_is_an_empty_directory() {
        let cli = Cli::try_parse_from(["nyala", "serve", "--data", "x", "--socket-dir", ""]).unwrap();
        assert!(matches!(cli.command, Command::Serve(options) if options.socket_dir.as_os_str().is_empty()));
    }

    #[test]
    fn sizes() {
        assert_eq!(memory("80%"), Ok(Memory::Percent(80)));
        assert_eq!(memory("8GB"), Ok(Memory::Bytes(8 << 30)));
        assert_eq!(memory("512 MB"), Ok(Memory::Bytes(512 << 20)));
        assert_eq!(memory("1048576"), Ok(Memory::Bytes(1 << 20)));
        for wrong in ["", "GB", "0%", "101%", "5", "8GiB", "99999999999TB"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Memory::Percent(80).bytes(1000), 800);
    }

    #[test]
    fn addresses() {
        assert_eq!(address("localhost:5433").unwrap().to_string(), "127.0.0.1:5433");
        assert_eq!(address("[::1]:5432").unwrap().to_string(), "[::1]:5432");
        assert_eq!(http_address("off"), Ok(HttpAddress::Off));
        assert!(http_address("8432").is_err());
        assert!(address("5432").is_err() && address("example.org:5432").is_err());
    }
}
