//! LISTEN, NOTIFY, UNLISTEN: what a transaction says, what its commit makes of it, and what the client is sent.
//!
//! Responsible for: notifications and changes of listening until their transaction ends; sending what has come.
//! Not responsible for: who gets what in which order ([`hub`]).
//! Invariants:
//! - Nothing of a transaction is heard before it commits, or if it rolls back; a savepoint undoes what was said since.
//! - Notifications are sent between transactions only, and those of one commit together.

mod channels;
mod hub;

use std::sync::Arc;
use std::task::{Context, Poll};

use base::work::{self, Count};
use base::{Error, Lsn, Result, SqlState};
use engine_api::CommitOutcome;
use rupg_sql::nodes::{ListenStmt, NotifyStmt, UnlistenStmt};
use rustc_hash::FxHashSet;

pub use channels::Channels;
pub(crate) use hub::{Hub, Mailbox};

use self::hub::{Entry, MAILBOX_BYTES, Mail, Notification};
use super::{Block, Output, Session};

/// Longest channel name, in bytes.
const CHANNEL_MAX: usize = 63;
/// Longest payload, in bytes.
const PAYLOAD_MAX: usize = 7999;
/// Channels that a session can listen to.
const CHANNELS_MAX: usize = 1 << 16;
/// What the notifications of one transaction may take.
const PENDING_BYTES_MAX: usize = 64 << 20;
/// Notifications from which on duplicates are looked up in a set.
const SEARCHED: usize = 16;

/// What a transaction has said so far.
#[derive(Default)]
pub struct Pending {
    notifications: Vec<(Arc<str>, Box<str>)>,
    bytes: usize,
    /// All of `notifications`, once there are many.
    known: FxHashSet<(Arc<str>, Box<str>)>,
    listening: Vec<Change>,
}

/// A change of what the session listens to.
enum Change {
    Listen(Arc<str>),
    Unlisten(Arc<str>),
    UnlistenAll,
}

/// What a session listens to once its transaction has committed.
pub(super) struct Listening {
    channels: Channels,
    /// What the hub has been told ahead.
    added: Vec<Arc<str>>,
    /// What it no longer listens to then.
    gone: Channels,
}

/// What a call of the hub is worth in units of work.
const CALL: usize = 64;

/// A place in a transaction to go back to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    notifications: usize,
    listening: usize,
}

fn invalid(message: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl Change {
    /// The channel that the session is to listen to.
    fn listens(&self) -> Option<&Arc<str>> {
        match self {
            Change::Listen(channel) => Some(channel),
            _ => None,
        }
    }
}

impl Channels {
    /// What becomes of them by these changes. `listen` is told of new ones.
    fn after(&self, changes: &[Change], mut listen: impl FnMut(&Arc<str>)) -> Listening {
        let mut channels = self.copy();
        let (mut added, mut gone) = (Vec::new(), Channels::default());
        for change in changes.iter().counted(CALL) {
            match change {
                Change::Listen(channel) => {
                    let is_new = channels.push(channel);
                    // What was there before is still listened to.
                    if is_new && !gone.remove(channel) {
                        listen(channel);
                        added.push(Arc::clone(channel));
                    }
                }
                Change::Unlisten(channel) => {
                    if channels.remove(channel) {
                        gone.push(channel);
                    }
                }
                Change::UnlistenAll => {
                    channels.iter().counted(CALL).for_each(|channel| _ = gone.push(channel));
                    std::mem::take(&mut channels).discard();
                }
            }
        }
        Listening { channels, added, gone }
    }
}

impl Pending {
    /// Drops it, step by step: there may be hundreds of thousands.
    pub(super) fn discard(mut self) {
        work::discard(&mut self.notifications);
        self.known.drain().counted(16).for_each(drop);
        work::discard(&mut self.listening);
    }

    /// Adds a notification, unless the transaction has said the same already.
    ///
    /// # Errors
    /// 22023 for a channel or payload that is too long; 53200 for too many.
    pub fn notify(&mut self, channel: &str, payload: &str) -> Result<()> {
        if channel.is_empty() {
            return Err(invalid("channel name cannot be empty"));
        }
        if channel.len() > CHANNEL_MAX {
            return Err(invalid("channel name too long"));
        }
        if payload.len() > PAYLOAD_MAX {
            return Err(invalid("payload string too long"));
        }
        let new = (Arc::<str>::from(channel), Box::<str>::from(payload));
        if self.notifications.len() >= SEARCHED && self.known.is_empty() {
            self.known.extend(self.notifications.iter().cloned());
        }
        let known = match self.known.is_empty() {
            true => self.notifications.contains(&new),
            false => !self.known.insert(new.clone()),
        };
        if known {
            return Ok(());
        }
        self.bytes += 2 * (channel.len() + payload.len() + 64);
        if self.bytes > PENDING_BYTES_MAX {
            return Err(Error::new(SqlState::OUT_OF_MEMORY, "out of memory").detail(format!(
                "The notifications of a transaction can have at most {} MB.",
                PENDING_BYTES_MAX >> 20
            )));
        }
        self.notifications.push(new);
        Ok(())
    }

    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        self.notifications.is_empty() && self.listening.is_empty()
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { notifications: self.notifications.len(), listening: self.listening.len() }
    }

    /// Forgets what was said since.
    pub(super) fn undo_to(&mut self, mark: Mark) {
        if self.notifications.len() > mark.notifications {
            self.notifications.truncate(mark.notifications);
            self.known.clear();
            self.bytes = self.notifications.iter().map(|(c, p)| 2 * (c.len() + p.len() + 64)).sum();
        }
        self.listening.truncate(mark.listening);
    }
}

impl Session {
    pub(super) fn notify(&mut self, stmt: &NotifyStmt) -> Result<&'static str> {
        self.ensure_transaction()?;
        let channel = stmt.conditionname.as_deref().unwrap_or_default();
        let payload = stmt.payload.as_deref().unwrap_or_default();
        self.environment.pending.borrow_mut().notify(channel, payload)?;
        Ok("NOTIFY")
    }

    pub(super) fn listen(&mut self, stmt: &ListenStmt) -> Result<&'static str> {
        self.ensure_transaction()?;
        let channel = stmt.conditionname.as_deref().unwrap_or_default();
        let mut pending = self.environment.pending.borrow_mut();
        if pending.listening.len() + self.environment.channels.borrow().len() >= CHANNELS_MAX {
            return Err(Error::new(SqlState::OUT_OF_MEMORY, "out of memory")
                .detail(format!("A session can listen to at most {CHANNELS_MAX} channels.")));
        }
        pending.listening.push(Change::Listen(channel.into()));
        Ok("LISTEN")
    }

    pub(super) fn unlisten(&mut self, stmt: &UnlistenStmt) -> Result<&'static str> {
        self.ensure_transaction()?;
        let change = match stmt.conditionname.as_deref() {
            Some(channel) => Change::Unlisten(channel.into()),
            // A session that has never listened has nothing to end.
            None if self.mailbox.is_none() && !self.has_notifications() => return Ok("UNLISTEN"),
            None => Change::UnlistenAll,
        };
        self.environment.pending.borrow_mut().listening.push(change);
        Ok("UNLISTEN")
    }

    /// Whether the transaction has said something that a prepared one could not keep.
    pub(super) fn has_notifications(&self) -> bool {
        !self.environment.pending.borrow().is_empty()
    }

    /// Stops listening to everything, at once; to what a commit has begun to listen to as well.
    pub(super) fn stop_listening(&mut self) {
        if self.mailbox.is_some() {
            let pending = self.environment.pending.borrow();
            self.unlisten_all(pending.listening.iter().filter_map(Change::listens));
            let channels = self.environment.channels.take();
            self.unlisten_all(channels.iter());
            channels.discard();
        }
    }

    /// Tells the hub that the session no longer listens to these.
    fn unlisten_all<'a>(&self, channels: impl Iterator<Item = &'a Arc<str>>) {
        let Some(mailbox) = &self.mailbox else { return };
        let database = self.environment.identity.borrow().database_oid;
        channels.counted(CALL).for_each(|channel| self.shared.hub.unlisten(database, channel, mailbox));
    }

    /// Before a commit: the session listens, so that it hears itself and all that commits later. Answers what it listens to
    /// then; `None` if nothing changes.
    pub(super) fn listen_ahead(&mut self) -> Option<Listening> {
        let pending = self.environment.pending.borrow();
        if pending.listening.is_empty() {
            return None;
        }
        let database = self.environment.identity.borrow().database_oid;
        let mailbox = &mut self.mailbox;
        let listen = |channel: &Arc<str>| {
            self.shared.hub.listen(database, channel, mailbox.get_or_insert_default());
        };
        Some(self.environment.channels.borrow().after(&pending.listening, listen))
    }

    /// After a commit that failed.
    pub(super) fn take_listening_back(&mut self, listening: Option<Listening>) {
        self.unlisten_all(listening.iter().flat_map(|listening| &listening.added));
    }

    /// The commit's way into the order of notifications, if it has any.
    pub(super) fn enter_hub<'a>(&self, hub: &'a Hub) -> Option<Entry<'a>> {
        (!self.environment.pending.borrow().notifications.is_empty()).then(|| hub.enter())
    }

    /// After a commit: what the transaction said is heard.
    pub(super) fn publish(&mut self, entry: Option<Entry<'_>>, listening: Option<Listening>, outcome: &CommitOutcome) {
        let (database, pid) = (self.environment.identity.borrow().database_oid, self.environment.pid);
        let before = listening.map(|Listening { channels, gone, .. }| {
            let leave = || self.unlisten_all(gone.iter());
            match &entry {
                // What it has left it does not hear, and nobody has a turn before the commit's notifications are in order.
                Some(_) => work::closed(leave),
                None => leave(),
            }
            self.environment.channels.replace(channels)
        });
        let mut pending = self.environment.pending.take();
        if let Some(entry) = entry {
            let said = std::mem::take(&mut pending.notifications).into_iter();
            let notifications =
                said.map(|(channel, payload)| Notification { channel, payload, pid, gate: Lsn(0) }).collect();
            entry.publish(outcome.position, outcome.gate, database, notifications);
        }
        pending.discard();
        if let Some(before) = before {
            before.discard();
        }
    }

    /// Sends the notifications that have come, if it is between two transactions.
    ///
    /// # Errors
    /// FATAL 54000 if more came than the mailbox holds.
    pub(super) fn send_notifications(&mut self, out: &mut dyn Output) -> Result<()> {
        let Some(mailbox) = &self.mailbox else { return Ok(()) };
        if self.block != Block::None || !mailbox.has_mail() {
            return Ok(());
        }
        while !out.is_full() {
            match mailbox.take() {
                Mail::Next(next) => {
                    self.gate = self.gate.max(next.gate);
                    out.gate(self.gate);
                    out.notification(next.pid, &next.channel, &next.payload);
                }
                Mail::None => return Ok(()),
                Mail::Overflowed => {
                    let message = "terminating connection because its queue of notifications is full";
                    return Err(Error::fatal(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                        .detail(format!("The client has left {} MB unread.", MAILBOX_BYTES >> 20)));
                }
            }
        }
        Ok(())
    }

    /// While the session is idle: sends notifications as they come. Ready only with an error, as
    /// [`Session::send_notifications`] has them.
    pub fn poll_notifications(&mut self, cx: &mut Context<'_>, out: &mut dyn Output) -> Poll<Error> {
        if let Some(mailbox) = &self.mailbox {
            mailbox.listen(cx.waker());
        }
        match self.send_notifications(out) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        }
    }

    /// Whether notifications may come.
    pub fn is_listening(&self) -> bool {
        self.mailbox.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_twice_counts_once_and_savepoints_undo() {
        let mut pending = Pending::default();
        for n in 0..40 {
            pending.notify("c", &(n % 20).to_string()).unwrap();
        }
        assert_eq!(pending.notifications.len(), 20);
        let mark = pending.mark();
        pending.notify("c", "more").unwrap();
        pending.undo_to(mark);
        pending.notify("c", "more").unwrap();
        pending.notify("c", "19").unwrap();
        assert_eq!(pending.notifications.len(), 21);
        assert_eq!(pending.notify("", "").unwrap_err().code(), SqlState::INVALID_PARAMETER_VALUE);
        assert!(pending.notify("c", &"x".repeat(7999)).is_ok());
        assert!(pending.notify("c", &"x".repeat(8000)).is_err());
        assert!(pending.notify(&"x".repeat(64), "").is_err());
    }
    fn shown(channels: &Channels) -> Vec<&str> {
        channels.iter().map(|channel| &**channel).collect()
    }

    #[test]
    fn the_last_change_of_a_channel_counts() {
        let [a, b, c] = ["a", "b", "c"].map(Arc::<str>::from);
        let (on, off) =
            (|name: &Arc<str>| Change::Listen(name.clone()), |name: &Arc<str>| Change::Unlisten(name.clone()));
        let before = Channels::default().after(&[on(&a), on(&b)], |_| {}).channels;
        let changes = [off(&a), on(&c), on(&a), off(&c), off(&b), on(&c), on(&a)];
        let mut told = Vec::new();
        let after = before.after(&changes, |channel| told.push(channel.to_string()));
        assert_eq!((shown(&after.channels), shown(&after.gone)), (vec!["a", "c"], vec!["b"]));
        assert_eq!((told, after.added), (vec!["c".to_string()], vec![c]));
        let none = after.channels.after(&[on(&b), Change::UnlistenAll], |_| {});
        assert_eq!((none.channels.len(), shown(&none.gone)), (0, vec!["a", "c", "b"]));
    }

    /// Nanoseconds that the thread has used a processor.
    fn used() -> i64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    #[test]
    fn a_change_among_many_is_a_step() {
        let names: Vec<Arc<str>> = (0..CHANNELS_MAX / 2).map(|n| n.to_string().into()).collect();
        let listens = names.iter().map(|name| Change::Listen(name.clone()));
        let changes: Vec<Change> = listens.chain(names.iter().map(|name| Change::Unlisten(name.clone()))).collect();
        let (began, before) = (used(), work::total());
        let after = Channels::default().after(&changes, |_| {});
        assert_eq!((after.channels.len(), after.gone.len()), (0, names.len()));
        let (nanos, units) = (used() - began, work::total() - before);
        assert!(units as usize >= CALL * changes.len(), "{units} units");
        // Looking each of them up among the others takes seconds.
        assert!(nanos / (changes.len() as i64) < 20_000, "{nanos} ns");
    }
}
