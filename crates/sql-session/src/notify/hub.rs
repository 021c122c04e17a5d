//! Who listens to what, and the order in which notifications reach them (rule R16).
//!
//! **Requirement**: every listener gets the notifications of committed transactions in the order of their commits.
//! **Rule**: a transaction with notifications [enters](Hub::enter) before it takes its position in the log, and says the
//! position when it has it. A notification is handed on once no transaction is inside that may still get an earlier
//! position: one that entered when `newest` was at least that far gets a later one.
//! **What breaks otherwise**: A commits at 10, B at 20, on two cores; B's core comes first, and a listener sees B before A.
//!
//! A notification is handed on before its commit is durable; the listener's connection holds its bytes back until it is
//! (rule R1), like those of any reply.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use base::{Lsn, Oid};
use rustc_hash::FxHashMap;

/// What a listener's unread notifications may take. A client beyond it does not read: its connection ends.
pub(super) const MAILBOX_BYTES: usize = 64 << 20;

/// A notification on its way.
#[derive(Debug)]
pub struct Notification {
    /// Its channel.
    pub channel: Arc<str>,
    /// Its payload; may be empty.
    pub payload: Box<str>,
    /// Process number of the session that sent it.
    pub pid: i32,
    /// It leaves when the log is durable up to here.
    pub gate: Lsn,
}

impl Notification {
    fn bytes(&self) -> usize {
        size_of::<Notification>() + self.payload.len() + 16
    }
}

/// What a session has not sent to its client yet.
#[derive(Default)]
pub struct Mailbox {
    /// There is something, or the mailbox has overflowed. Set (Release) with the lock held.
    any: AtomicBool,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    queue: VecDeque<Arc<Notification>>,
    bytes: usize,
    overflowed: bool,
    /// The session's task, while it is idle.
    waker: Option<Waker>,
}

/// What is in a mailbox.
pub(super) enum Mail {
    /// Nothing.
    None,
    /// The oldest.
    Next(Arc<Notification>),
    /// More came than it holds: all of it is lost.
    Overflowed,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Mailbox {
    /// Whether there may be something.
    pub(crate) fn has_mail(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Takes the oldest notification.
    pub(super) fn take(&self) -> Mail {
        let mut inbox = lock(&self.inbox);
        if inbox.overflowed {
            return Mail::Overflowed;
        }
        let Some(next) = inbox.queue.pop_front() else {
            self.any.store(false, Ordering::Release);
            return Mail::None;
        };
        inbox.bytes -= next.bytes();
        Mail::Next(next)
    }

    /// Wakes this task when something comes.
    pub(super) fn listen(&self, waker: &Waker) {
        lock(&self.inbox).waker = Some(waker.clone());
    }

    /// Puts a notification in. Answers the task to wake.
    fn put(&self, notification: &Arc<Notification>) -> Option<Waker> {
        let mut inbox = lock(&self.inbox);
        if !inbox.overflowed {
            inbox.bytes += notification.bytes();
            inbox.queue.push_back(Arc::clone(notification));
            if inbox.bytes > MAILBOX_BYTES {
                inbox.overflowed = true;
                inbox.queue = VecDeque::new();
            }
        }
        self.any.store(true, Ordering::Release);
        inbox.waker.take()
    }

    fn usage(&self) -> f64 {
        let inbox = lock(&self.inbox);
        if inbox.overflowed { 1.0 } else { inbox.bytes as f64 / MAILBOX_BYTES as f64 }
    }
}

/// The listeners of all sessions.
#[derive(Default)]
pub(crate) struct Hub {
    state: Mutex<HubState>,
}

#[derive(Default)]
struct HubState {
    /// By database and channel.
    listeners: FxHashMap<(Oid, Arc<str>), Vec<Arc<Mailbox>>>,
    /// Committed, not handed on: by position, then in order of arrival.
    waiting: BTreeMap<(Lsn, u64), (Oid, Vec<Notification>)>,
    /// Transactions inside: number, and what was newest when they entered.
    inside: Vec<(u64, Lsn)>,
    /// The newest position that a transaction has said.
    newest: Lsn,
    last_number: u64,
}

/// A transaction that is about to take its position.
pub(crate) struct Entry<'a> {
    hub: &'a Hub,
    number: u64,
}

impl Hub {
    /// Adds a listener; nothing happens if it listens already.
    pub(super) fn listen(&self, database: Oid, channel: &Arc<str>, mailbox: &Arc<Mailbox>) {
        let mut state = lock(&self.state);
        let listeners = state.listeners.entry((database, Arc::clone(channel))).or_default();
        if !listeners.iter().any(|m| Arc::ptr_eq(m, mailbox)) {
            listeners.push(Arc::clone(mailbox));
        }
    }

    /// Removes a listener.
    pub(super) fn unlisten(&self, database: Oid, channel: &Arc<str>, mailbox: &Arc<Mailbox>) {
        let mut state = lock(&self.state);
        let key = (database, Arc::clone(channel));
        if let Some(listeners) = state.listeners.get_mut(&key) {
            listeners.retain(|m| !Arc::ptr_eq(m, mailbox));
            if listeners.is_empty() {
                state.listeners.remove(&key);
            }
        }
    }

    /// A transaction with notifications is about to commit. What it answers is dropped, or published, before the
    /// transaction waits for anything.
    pub(super) fn enter(&self) -> Entry<'_> {
        let mut state = lock(&self.state);
        state.last_number += 1;
        let number = state.last_number;
        let newest = state.newest;
        state.inside.push((number, newest));
        Entry { hub: self, number }
    }

    /// How full the fullest mailbox is.
    pub(crate) fn usage(&self) -> f64 {
        let state = lock(&self.state);
        state.listeners.values().flatten().map(|m| m.usage()).fold(0.0, f64::max)
    }
}

impl HubState {
    /// Hands on what has become first. Answers the tasks to wake.
    fn hand_on(&mut self) -> Vec<Waker> {
        let mut wake = Vec::new();
        while let Some(first) = self.waiting.first_entry() {
            let position = first.key().0;
            if self.inside.iter().any(|(_, newest)| *newest < position) {
                break;
            }
            let (database, notifications) = first.remove();
            for notification in notifications {
                let key = (database, Arc::clone(&notification.channel));
                let Some(listeners) = self.listeners.get(&key) else { continue };
                let notification = Arc::new(notification);
                wake.extend(listeners.iter().filter_map(|m| m.put(&notification)));
            }
        }
        wake
    }
}

impl Entry<'_> {
    /// The transaction has committed at `position` (`None`: it had nothing to log), and these are its notifications. Replies
    /// about it wait for `gate`.
    pub fn publish(self, position: Option<Lsn>, gate: Lsn, database: Oid, mut notifications: Vec<Notification>) {
        let wake = {
            let mut state = lock(&self.hub.state);
            let position = position.unwrap_or(state.newest.max(gate));
            let gate = gate.max(position);
            notifications.iter_mut().for_each(|n| n.gate = gate);
            state.newest = state.newest.max(position);
            state.waiting.insert((position, self.number), (database, notifications));
            state.inside.retain(|(number, _)| *number != self.number);
            state.hand_on()
        };
        wake.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let wake = {
            let mut state = lock(&self.hub.state);
            let before = state.inside.len();
            state.inside.retain(|(number, _)| *number != self.number);
            if state.inside.len() == before { Vec::new() } else { state.hand_on() }
        };
        wake.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(payload: &str) -> Vec<Notification> {
        vec![Notification { channel: "c".into(), payload: payload.into(), pid: 1, gate: Lsn(0) }]
    }

    fn payloads(mailbox: &Mailbox) -> Vec<String> {
        let mut all = Vec::new();
        while let Mail::Next(next) = mailbox.take() {
            all.push(format!("{}@{}", next.payload, next.gate.0));
        }
        all
    }

    #[test]
    fn commits_come_in_order_whatever_core_is_first() {
        let hub = Hub::default();
        let (db, channel, mailbox) = (Oid(1), Arc::from("c"), Arc::new(Mailbox::default()));
        hub.listen(db, &channel, &mailbox);
        hub.listen(db, &channel, &mailbox);
        let (a, b) = (hub.enter(), hub.enter());
        b.publish(Some(Lsn(20)), Lsn(20), db, note("b"));
        assert!(!mailbox.has_mail());
        // It entered when 20 was known: it cannot come before.
        let late = hub.enter();
        a.publish(Some(Lsn(10)), Lsn(10), db, note("a"));
        assert_eq!(payloads(&mailbox), ["a@10", "b@20"]);
        // What has nothing in the log comes behind what is known.
        late.publish(None, Lsn(5), db, note("late"));
        assert_eq!(payloads(&mailbox), ["late@20"]);
        let (gone, next) = (hub.enter(), hub.enter());
        next.publish(Some(Lsn(30)), Lsn(30), db, note("next"));
        assert!(!mailbox.has_mail());
        drop(gone);
        assert_eq!(payloads(&mailbox), ["next@30"]);
        hub.unlisten(db, &channel, &mailbox);
        hub.enter().publish(Some(Lsn(40)), Lsn(40), db, note("nobody"));
        assert!(!mailbox.has_mail() && lock(&hub.state).listeners.is_empty());
    }

    #[test]
    fn a_listener_that_does_not_read_is_bounded() {
        let hub = Hub::default();
        let (db, channel, mailbox) = (Oid(1), Arc::from("c"), Arc::new(Mailbox::default()));
        hub.listen(db, &channel, &mailbox);
        let long = "x".repeat(7999);
        for _ in 0..MAILBOX_BYTES / 7999 + 10 {
            hub.enter().publish(None, Lsn(0), db, note(&long));
        }
        assert!(matches!(mailbox.take(), Mail::Overflowed));
        assert!(lock(&mailbox.inbox).queue.is_empty());
        assert_eq!(hub.usage(), 1.0);
    }
}
