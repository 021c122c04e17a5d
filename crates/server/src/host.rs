//! What the process lends to SQL sessions: clock, timers, randomness, password hashing.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Error, Result};
use env::Clock;
use pgwire::scram::{ITERATIONS, Verifier};
use pgwire::{Registry, timers};
use sql_functions::LoginRule;
use sql_session::Host;

use crate::access::Access;

/// 2000-01-01 in microseconds since 1970-01-01.
const EPOCH_2000: i64 = 946_684_800_000_000;

/// The host of all sessions.
pub struct ProcessHost {
    clock: Arc<dyn Clock>,
    access: Arc<Access>,
    registry: Arc<Registry>,
    /// State of a Weyl sequence; sessions' seeds are drawn from it.
    seed: AtomicU64,
}

impl ProcessHost {
    /// A host with this clock.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new(clock: Arc<dyn Clock>, access: Arc<Access>, registry: Arc<Registry>) -> io::Result<ProcessHost> {
        Ok(ProcessHost { clock, access, registry, seed: AtomicU64::new(u64::from_be_bytes(random_bytes()?)) })
    }
}

impl Host for ProcessHost {
    fn now(&self) -> i64 {
        self.clock.now_micros() - EPOCH_2000
    }

    fn monotonic_nanos(&self) -> u64 {
        self.clock.monotonic_nanos()
    }

    fn random(&self) -> u64 {
        // SplitMix64.
        let mut z = self.seed.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn sleep(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(timers::sleep(Duration::from_millis(ms)))
    }

    fn turn(&self) -> Pin<Box<dyn Future<Output = ()>>> {
        // Unlike a task that wakes itself, which would run many times over before the runtime looks at its sockets.
        Box::pin(tokio::task::yield_now())
    }

    fn log(&self, line: &str) {
        tracing::info!("{line}");
    }

    fn reload(&self) {
        self.access.reload();
    }

    fn resident_bytes(&self) -> Option<u64> {
        crate::memory::resident_bytes()
    }

    fn login_rules(&self) -> Vec<LoginRule> {
        self.access.rules_in_file()
    }

    fn cancel_backend(&self, pid: i32) -> bool {
        self.registry.cancel(pid)
    }

    fn terminate_backend(&self, pid: i32) -> bool {
        self.registry.terminate(pid)
    }

    fn password_verifier(&self, password: &str) -> Result<String> {
        verifier(password)
    }
}

/// The verifier to store for a password; one that is given instead of a password stays as it is.
///
/// # Errors
/// 0A000 for an MD5 hash, XX000 without randomness.
pub fn verifier(password: &str) -> Result<String> {
    if Verifier::parse(password).is_some() {
        return Ok(password.to_string());
    }
    let is_md5 =
        password.strip_prefix("md5").is_some_and(|h| h.len() == 32 && h.bytes().all(|b| b.is_ascii_hexdigit()));
    if is_md5 {
        return Err(Error::unsupported("MD5 password hashes are not supported")
            .hint("Give the password itself, or its SCRAM-SHA-256 verifier."));
    }
    let salt: [u8; 16] = random_bytes().map_err(|_| Error::internal("could not generate random salt"))?;
    Ok(Verifier::build(password, &salt, ITERATIONS).to_string())
}

/// Bytes of the system's random source.
///
/// # Errors
/// If it cannot be read.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verifiers() {
        let stored = verifier("secret").unwrap();
        assert!(Verifier::parse(&stored).unwrap().matches("secret"));
        assert_ne!(stored, verifier("secret").unwrap());
        assert_eq!(verifier(&stored).unwrap(), stored);
        let md5 = verifier("md55f4dcc3b5aa765d61d8327deb882cf99").unwrap_err();
        assert_eq!(md5.code(), base::SqlState::FEATURE_NOT_SUPPORTED);
    }

    #[test]
    fn the_clock_counts_from_2000() {
        use clap::Parser as _;
        let cli = crate::config::Cli::parse_from(["nyala", "serve", "--data", "x"]);
        let crate::config::Command::Serve(options) = cli.command else { unreachable!("serve was asked for") };
        let (access, registry) = (Access::open(&options).unwrap(), Registry::new([0; 32]));
        let clock = Arc::new(env::real::SystemClock::new());
        let host = ProcessHost::new(clock, Arc::new(access), Arc::new(registry)).unwrap();
        // 2025-01-01.
        assert!(host.now() > 25 * 365 * 86_400_000_000);
        assert_ne!(host.random(), host.random());
    }
}
