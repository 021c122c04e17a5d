//! All connections of the process: their keys, how to cancel their statements, how to end them.
//!
//! Touched when a connection comes, goes, is cancelled or ended; never while statements run, but for one atomic load.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::Peer;
use crate::auth::guesses::Guesses;
use crate::auth::guesses::origin::Network;
use crate::auth::scram::same;

/// Stops the statement a session is running, if any. Called from any thread.
pub trait CancelHandle: Send + Sync {
    /// Asks for it.
    fn cancel(&self);
}

/// What BackendKeyData tells a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendKey {
    /// Process number: `pg_backend_pid()`. Positive, unique among live connections.
    pub pid: i32,
    /// Proof that a CancelRequest comes from the connection's owner.
    pub secret: i32,
}

/// The connections of the process.
pub struct Registry {
    seed: [u8; 32],
    draws: AtomicU64,
    connections: Mutex<Connections>,
    /// Wrong passwords.
    pub(crate) guesses: Guesses,
}

#[derive(Default)]
struct Connections {
    last_pid: i32,
    /// Connections that have proved who they are, and how many there may be.
    places: usize,
    places_max: Option<usize>,
    by_pid: BTreeMap<i32, Entry>,
    closing: bool,
}

struct Entry {
    secret: i32,
    site: Network,
    control: Arc<Control>,
    cancel: Option<Arc<dyn CancelHandle>>,
}

/// The handle by which a connection is ended from outside.
#[derive(Default)]
pub(crate) struct Control {
    /// Set once (Release) by `end`, read (Acquire) by the connection whenever it is polled.
    ended: AtomicBool,
    /// Set before `ended` if it ends to make way for another that logs in.
    crowded_out: AtomicBool,
    /// It may not be crowded out: it has logged in, or waits for its turn, as only so many may.
    stays: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Control {
    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        if let Some(waker) = lock(&self.waker).take() {
            waker.wake();
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Completes when it is ended. For one task, that of the connection.
    pub(crate) async fn has_ended(&self) {
        poll_fn(|cx| {
            self.listen(cx.waker());
            if self.is_ended() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Whether others are to be preferred, not the server or somebody else wants its end.
    pub(crate) fn is_crowded_out(&self) -> bool {
        self.crowded_out.load(Ordering::Relaxed)
    }

    /// Whether it may be ended for others that want to log in.
    pub(crate) fn set_stays(&self, stays: bool) {
        self.stays.store(stays, Ordering::Relaxed);
    }

    /// The task to wake: a connection is one task for as long as it stays on its core, and says so once there.
    pub(crate) fn listen(&self, waker: &Waker) {
        *lock(&self.waker) = Some(waker.clone());
    }
}

/// A connection's place in the registry, given up when it is dropped.
pub(crate) struct Ticket {
    registry: Arc<Registry>,
    pub(crate) key: BackendKey,
    pub(crate) control: Arc<Control>,
    has_place: AtomicBool,
}

impl Ticket {
    pub(crate) fn set_cancel(&self, handle: Arc<dyn CancelHandle>) {
        if let Some(entry) = self.registry.lock().by_pid.get_mut(&self.key.pid) {
            entry.cancel = Some(handle);
        }
    }
}

impl Ticket {
    /// Takes one of the places for clients, to the connection's end; whether there is one.
    pub(crate) fn take_place(&self) -> bool {
        let mut connections = self.registry.lock();
        if connections.places_max.is_some_and(|max| connections.places >= max) {
            return false;
        }
        connections.places += usize::from(!self.has_place.swap(true, Ordering::Relaxed));
        self.control.set_stays(true);
        true
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut connections = self.registry.lock();
        connections.by_pid.remove(&self.key.pid);
        connections.places -= usize::from(*self.has_place.get_mut());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Registry {
    /// An empty registry. `seed` must come from the system's random source: cancel secrets and SCRAM nonces are drawn
    /// from it.
    pub fn new(seed: [u8; 32]) -> Registry {
        Registry { seed, draws: AtomicU64::new(0), connections: Mutex::default(), guesses: Guesses::default() }
    }

    /// Cancels the statement of connection `pid` (`pg_cancel_backend`); whether there is such a connection.
    pub fn cancel(&self, pid: i32) -> bool {
        let handle = self.lock().by_pid.get(&pid).map(|e| e.cancel.clone());
        if let Some(Some(handle)) = &handle {
            handle.cancel();
        }
        handle.is_some()
    }

    /// Ends connection `pid` with `57P01` (`pg_terminate_backend`); whether there is such a connection.
    pub fn terminate(&self, pid: i32) -> bool {
        let control = self.lock().by_pid.get(&pid).map(|e| Arc::clone(&e.control));
        if let Some(control) = &control {
            control.end();
        }
        control.is_some()
    }

    /// Ends all connections, and every one that still comes, with `57P01`.
    pub fn terminate_all(&self) {
        let mut connections = self.lock();
        connections.closing = true;
        connections.by_pid.values().for_each(|e| e.control.end());
    }

    /// Number of connections, those that are still logging in included.
    pub fn len(&self) -> usize {
        self.lock().by_pid.len()
    }

    /// A CancelRequest from the wire: does nothing unless the secret is right, and never tells.
    pub(crate) fn cancel_with_secret(&self, key: BackendKey) {
        let handle = match self.lock().by_pid.get(&key.pid) {
            Some(e) if same(&e.secret.to_be_bytes(), &key.secret.to_be_bytes()) => e.cancel.clone(),
            _ => None,
        };
        // Outside the lock: the handle may wake a task that ends and takes it.
        if let Some(handle) = handle {
            handle.cancel();
        }
    }

    /// How many clients may be connected. One that has not proved who it is takes no place yet.
    pub(crate) fn limit_places(&self, max: usize) {
        self.lock().places_max = Some(max);
    }

    /// Places that are not taken.
    pub fn free_places(&self) -> usize {
        let connections = self.lock();
        connections.places_max.map_or(usize::MAX, |max| max.saturating_sub(connections.places))
    }

    /// Ends a connection that has neither logged in nor waits for its turn, to make way for another; whether there was one. It is the oldest of
    /// the site that has most of them.
    pub(crate) fn crowd_out(&self) -> bool {
        let connections = self.lock();
        let idlers = || {
            let entries = connections.by_pid.values();
            entries.filter(|entry| !entry.control.stays.load(Ordering::Relaxed) && !entry.control.is_ended())
        };
        let mut counts = BTreeMap::new();
        idlers().for_each(|entry| *counts.entry(entry.site).or_insert(0) += 1);
        let largest = counts.into_iter().max_by_key(|(_, count)| *count).map(|(site, _)| site);
        // Numbers rise with time, but for their start anew after two thousand million.
        let Some(control) = idlers().find(|entry| Some(entry.site) == largest).map(|entry| Arc::clone(&entry.control))
        else {
            return false;
        };
        drop(connections);
        control.crowded_out.store(true, Ordering::Relaxed);
        control.end();
        true
    }

    pub(crate) fn register(self: &Arc<Registry>, peer: &Peer) -> Ticket {
        let random = self.random("cancel");
        let secret = i32::from_be_bytes([random[0], random[1], random[2], random[3]]);
        let control = Arc::new(Control::default());
        let site = Network::of(peer).site();
        let mut connections = self.lock();
        if connections.closing {
            control.end();
        }
        let mut pid = connections.last_pid;
        loop {
            pid = if pid == i32::MAX { 1 } else { pid + 1 };
            if !connections.by_pid.contains_key(&pid) {
                break;
            }
        }
        connections.last_pid = pid;
        connections.by_pid.insert(pid, Entry { secret, site, control: Arc::clone(&control), cancel: None });
        let key = BackendKey { pid, secret };
        Ticket { registry: Arc::clone(self), key, control, has_place: AtomicBool::new(false) }
    }

    /// 32 bytes that nobody without the seed can foretell, never the same twice.
    pub(crate) fn random(&self, purpose: &str) -> [u8; 32] {
        let draw = self.draws.fetch_add(1, Ordering::Relaxed);
        self.keyed(&[purpose.as_bytes(), &draw.to_be_bytes()])
    }

    /// 32 bytes that are always the same for `name`, and look random to anybody without the seed.
    pub(crate) fn mock_salt(&self, name: &str) -> [u8; 32] {
        self.keyed(&[b"mock salt", name.as_bytes()])
    }

    fn keyed(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.seed).expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        lock(&self.connections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(AtomicU64);

    impl CancelHandle for Count {
        fn cancel(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_the_right_secret_cancels() {
        let registry = Arc::new(Registry::new([7; 32]));
        let ticket = registry.register(&Peer::Unix);
        let count = Arc::new(Count(AtomicU64::new(0)));
        ticket.set_cancel(count.clone());
        let key = ticket.key;
        registry.cancel_with_secret(BackendKey { secret: key.secret ^ 1, ..key });
        registry.cancel_with_secret(BackendKey { pid: key.pid + 1, ..key });
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        registry.cancel_with_secret(key);
        assert!(registry.cancel(key.pid));
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        drop(ticket);
        assert!(!registry.cancel(key.pid));
        assert_eq!(registry.len(), 0);
    }

    #[test]
    fn places_are_given_back() {
        let registry = Arc::new(Registry::new([7; 32]));
        registry.limit_places(2);
        let silent = registry.register(&Peer::Unix);
        let (one, two) = (registry.register(&Peer::Unix), registry.register(&Peer::Unix));
        assert!(one.take_place() && one.take_place() && two.take_place() && !silent.take_place());
        assert_eq!(registry.free_places(), 0);
        drop(one);
        assert!(registry.free_places() == 1 && silent.take_place());
        drop((silent, two));
        assert_eq!(registry.free_places(), 2);
    }

    #[test]
    fn the_oldest_of_the_largest_crowd_makes_way() {
        let registry = Arc::new(Registry::new([7; 32]));
        let peer = |address: &str| Peer::Tcp(address.parse().unwrap());
        let alone = registry.register(&peer("10.1.1.1:1"));
        let crowd: Vec<_> = (1..6).map(|n| registry.register(&peer(&format!("10.0.0.{n}:1")))).collect();
        assert!(crowd[0].take_place());
        crowd[1].control.set_stays(true);
        let ended = || crowd.iter().map(|one| one.control.is_crowded_out()).collect::<Vec<_>>();
        assert!(registry.crowd_out());
        assert_eq!(ended(), [false, false, true, false, false]);
        assert!(registry.crowd_out() && registry.crowd_out() && registry.crowd_out() && !registry.crowd_out());
        assert_eq!(ended(), [false, false, true, true, true]);
        assert!(alone.control.is_crowded_out() && alone.control.is_ended());
    }

    #[test]
    fn shutdown_reaches_connections_that_come_late() {
        let registry = Arc::new(Registry::new([7; 32]));
        let early = registry.register(&Peer::Unix);
        registry.terminate_all();
        assert!(early.control.is_ended() && registry.register(&Peer::Unix).control.is_ended());
    }
}
