//! Taking addresses, and saying which one could not be had.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use pgwire::{Server, ServerConfig};

/// Binds everything.
///
/// # Errors
/// What is wrong, in one line.
pub fn bind(config: ServerConfig) -> Result<Server, String> {
    check(&config.listen)?;
    let sockets: Vec<PathBuf> = config.unix_directories.iter().map(|d| socket_path(d, config.port)).collect();
    Server::bind(config).map_err(|error| match sockets.first() {
        Some(path) => format!("cannot listen on the socket {}: {}", path.display(), reason(&error)),
        None => format!("cannot listen: {}", reason(&error)),
    })
}

/// Tries the addresses, so that a taken one is known before anything else is done and named.
///
/// # Errors
/// What is wrong, in one line.
pub fn check(addresses: &[SocketAddr]) -> Result<(), String> {
    for address in addresses {
        TcpListener::bind(address).map_err(|error| format!("cannot listen on {address}: {}", reason(&error)))?;
    }
    Ok(())
}

/// Where the Unix socket of a port is.
pub fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "it is in use by another server".to_string(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have the address".to_string(),
        _ => error.to_string(),
    }
}
