//! LISTEN, NOTIFY, UNLISTEN: what a transaction says, what its commit makes of it, and what the client is sent.
//!
//! Responsible for: notifications and changes of listening until their transaction ends; sending what has come.
//! Not responsible for: who gets what in which order ([`hub`]).
//! Invariants:
//! - Nothing of a transaction is heard before it commits, or if it rolls back; a savepoint undoes what was said since.
//! - Notifications are sent between transactions only, and those of one commit together.

mod hub;

use std::sync::Arc;
use std::task::{Context, Poll};

use base::{Error, Lsn, Result, SqlState};
use engine_api::CommitOutcome;
use rupg_sql::nodes::{ListenStmt, NotifyStmt, UnlistenStmt};
use rustc_hash::FxHashSet;

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

/// A place in a transaction to go back to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    notifications: usize,
    listening: usize,
}

fn invalid(message: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl Pending {
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

    /// Stops listening to everything, at once.
    pub(super) fn stop_listening(&mut self) {
        let Some(mailbox) = &self.mailbox else { return };
        let database = self.environment.identity.borrow().database_oid;
        for channel in self.environment.channels.take() {
            self.shared.hub.unlisten(database, &channel, mailbox);
        }
    }

    /// Before a commit: the session listens, so that it hears itself and all that commits later. Answers what was added, to
    /// be taken back if the commit fails.
    pub(super) fn listen_ahead(&mut self) -> Vec<Arc<str>> {
        let pending = self.environment.pending.borrow();
        let database = self.environment.identity.borrow().database_oid;
        let channels = self.environment.channels.borrow();
        let mut added = Vec::new();
        for change in &pending.listening {
            if let Change::Listen(channel) = change
                && !channels.contains(channel)
            {
                let mailbox = self.mailbox.get_or_insert_default();
                self.shared.hub.listen(database, channel, mailbox);
                added.push(Arc::clone(channel));
            }
        }
        added
    }

    /// After a commit that failed.
    pub(super) fn take_listening_back(&mut self, added: &[Arc<str>]) {
        let Some(mailbox) = &self.mailbox else { return };
        let database = self.environment.identity.borrow().database_oid;
        added.iter().for_each(|channel| self.shared.hub.unlisten(database, channel, mailbox));
    }

    /// The commit's way into the order of notifications, if it has any.
    pub(super) fn enter_hub<'a>(&self, hub: &'a Hub) -> Option<Entry<'a>> {
        (!self.environment.pending.borrow().notifications.is_empty()).then(|| hub.enter())
    }

    /// After a commit: what the transaction said is heard.
    pub(super) fn publish(&mut self, entry: Option<Entry<'_>>, outcome: &CommitOutcome) {
        let pending = self.environment.pending.take();
        let (database, pid) = (self.environment.identity.borrow().database_oid, self.environment.pid);
        if !pending.listening.is_empty() {
            let mut channels = self.environment.channels.borrow_mut();
            let mut left = Vec::new();
            for change in pending.listening {
                match change {
                    Change::Listen(channel) if channels.contains(&channel) => {}
                    Change::Listen(channel) => {
                        left.retain(|c| *c != channel);
                        channels.push(channel);
                    }
                    Change::Unlisten(channel) => {
                        channels.retain(|c| *c != channel);
                        left.push(channel);
                    }
                    Change::UnlistenAll => left.append(&mut channels),
                }
            }
            if let Some(mailbox) = &self.mailbox {
                left.iter().for_each(|channel| self.shared.hub.unlisten(database, channel, mailbox));
            }
        }
        let Some(entry) = entry else { return };
        let said = pending.notifications.into_iter();
        let notifications =
            said.map(|(channel, payload)| Notification { channel, payload, pid, gate: Lsn(0) }).collect();
        entry.publish(outcome.position, outcome.gate, database, notifications);
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
}
