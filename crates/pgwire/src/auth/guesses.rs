//! Who has given wrong passwords, and how long each of them waits before the next one is looked at.
//!
//! **Requirement**: passwords cannot be tried out fast, by one connection after the other or by many at once; who gives the right
//! one is not kept waiting by others, and no thread and no connection slot is held by who waits. **Rule**: the proof is looked at,
//! and a failure is counted, in one step, and before it comes a wait that is reserved: of many connections each waits behind the one
//! before. Counted are the address with the role, and the address with all roles, where more is forgiven; so a stranger who guesses
//! at a role from elsewhere slows nobody down but itself.
//! **Alternative**: to answer a failure late. Then a thousand connections try a thousand passwords in the time of one, and whoever
//! does not get its answer at once knows it already.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Peer;

/// Failures that cost nothing: of one role, and of an address with all roles.
const FREE: u32 = 3;
const FREE_OF_ADDRESS: u32 = 20;
/// The wait after the first one that costs; each doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Who would have to wait longer is refused unheard.
const PATIENCE: Duration = Duration::from_secs(40);
/// After so long without a failure all is forgotten.
const MEMORY: Duration = Duration::from_secs(15 * 60);
/// Names and addresses kept; beyond them the one that has failed longest ago is forgotten.
const KEPT_MAX: usize = 4096;

/// An address, and a role at it.
type Key = (Option<IpAddr>, Option<String>);

#[derive(Debug)]
struct Record {
    failures: u32,
    last: Instant,
    /// When the next proof may be looked at.
    next: Instant,
}

/// Failures of the last minutes.
#[derive(Debug, Default)]
pub(crate) struct Guesses(Mutex<BTreeMap<Key, Record>>);

/// What is counted together: an IPv6 client has a whole network of addresses.
fn place(peer: &Peer) -> Option<IpAddr> {
    match peer {
        Peer::Unix => None,
        Peer::Tcp(address) | Peer::Tls(address, _) => Some(match address.ip().to_canonical() {
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            ip => ip,
        }),
    }
}

fn keys(peer: &Peer, role: &str) -> [(Key, u32); 2] {
    let place = place(peer);
    [((place, Some(role.to_string())), FREE), ((place, None), FREE_OF_ADDRESS)]
}

fn wait_after(failures: u32, free: u32) -> Duration {
    match failures.checked_sub(free) {
        None => Duration::ZERO,
        Some(more) => FIRST_WAIT.saturating_mul(1 << more.min(10)).min(WAIT_MAX),
    }
}

impl Guesses {
    fn records(&self) -> MutexGuard<'_, BTreeMap<Key, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long to wait before a proof may be looked at; the place in the line is taken. `None`: not at all.
    pub(crate) fn reserve(&self, peer: &Peer, role: &str, now: Instant) -> Option<Duration> {
        let mut records = self.records();
        let mut wait = Duration::ZERO;
        for (key, free) in keys(peer, role) {
            let Some(record) = records.get_mut(&key).filter(|record| now < record.last + MEMORY) else { continue };
            let pause = wait_after(record.failures, free);
            if pause.is_zero() {
                continue;
            }
            let start = record.next.max(now);
            wait = wait.max(start - now);
            if start - now <= PATIENCE {
                record.next = start + pause;
            }
        }
        (wait <= PATIENCE).then_some(wait)
    }

    /// A proof was wrong.
    pub(crate) fn failed(&self, peer: &Peer, role: &str, now: Instant) {
        let mut records = self.records();
        for (key, free) in keys(peer, role) {
            if !records.contains_key(&key) && records.len() >= KEPT_MAX {
                records.retain(|_, record| now < record.last + MEMORY);
                let oldest = records.iter().min_by_key(|(_, record)| record.last).map(|(key, _)| key.clone());
                if let Some(oldest) = oldest.filter(|_| records.len() >= KEPT_MAX) {
                    records.remove(&oldest);
                }
            }
            let record = records.entry(key).or_insert(Record { failures: 0, last: now, next: now });
            if now >= record.last + MEMORY {
                record.failures = 0;
            }
            record.failures = record.failures.saturating_add(1);
            record.last = now;
            record.next = record.next.max(now + wait_after(record.failures, free));
        }
    }

    /// A proof was right: what was wrong before with this role from there is forgotten.
    pub(crate) fn succeeded(&self, peer: &Peer, role: &str) {
        let mut records = self.records();
        if !records.is_empty() {
            let [(key, _), _] = keys(peer, role);
            records.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::Tcp(address.parse().expect("an address"))
    }

    #[test]
    fn each_failure_costs_twice_the_one_before() {
        let (guesses, here, mut now) = (Guesses::default(), peer("10.0.0.1:1"), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..12 {
            let wait = guesses.reserve(&here, "app", now).expect("patience");
            now += wait;
            waits.push(wait.as_millis());
            guesses.failed(&here, "app", now);
        }
        assert_eq!(waits, [0, 0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(guesses.reserve(&peer("10.0.0.2:1"), "app", now), Some(Duration::ZERO), "from elsewhere");
        assert_eq!(guesses.reserve(&here, "other", now), Some(Duration::ZERO), "another role");
        guesses.succeeded(&here, "app");
        assert_eq!(guesses.reserve(&here, "app", now), Some(Duration::ZERO));
    }

    #[test]
    fn many_at_once_wait_in_line_and_the_line_ends() {
        let (guesses, here, now) = (Guesses::default(), Peer::Unix, Instant::now());
        (0..8).for_each(|_| guesses.failed(&here, "app", now));
        let waits: Vec<_> = (0..100).map_while(|_| guesses.reserve(&here, "app", now)).map(|w| w.as_millis()).collect();
        assert_eq!(waits, (1..=12).map(|n| n * 3200).collect::<Vec<_>>());
        assert_eq!(guesses.reserve(&here, "app", now + MEMORY), Some(Duration::ZERO), "forgotten");
    }

    #[test]
    fn an_address_that_tries_role_after_role_waits_too() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        (0..25).for_each(|n| guesses.failed(&peer(&format!("[2001:db8::{n}]:1")), &format!("role{n}"), now));
        let next = guesses.reserve(&peer("[2001:db8::ffff]:9"), "role99", now).expect("patience");
        assert_eq!(next, FIRST_WAIT * 32);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for n in 0..KEPT_MAX as u32 + 100 {
            guesses.failed(&Peer::Tcp((std::net::Ipv4Addr::from(n), 1).into()), "app", now);
        }
        assert!(guesses.records().len() <= KEPT_MAX);
    }
}
