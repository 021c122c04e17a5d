//! What a transaction sees: the views of its commands, and what depends on what was seen.
//!
//! Invariant: a view is held by `token`, `held` or [`Kept`], and given back once.

use std::sync::Arc;

use base::{CommandId, Error, Result, SqlState, Timestamp, Unseen};
use engine_api::{Isolation, KeptView, Step, Txn, TxnOptions, Wait, WaitCell};
use mvcc::{View, ViewToken};
use parking_lot::Mutex;

use crate::commit;
use crate::commit::Safety;
use crate::reads::ReadSet;
use crate::shard::Shard;

use super::Transaction;

/// A view that outlives its command.
struct Kept {
    shard: Shard,
    token: Option<ViewToken>,
    command: CommandId,
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            self.shard.0.store.end_view(token);
        }
    }
}

/// Where a transaction notes what it reads, if it has to.
pub(super) fn read_set(shard: &Shard, options: TxnOptions) -> Option<Arc<Mutex<ReadSet>>> {
    let tracks = options.isolation == Isolation::Serializable && !options.read_only;
    tracks.then(|| Arc::new(Mutex::new(ReadSet::new(shard.0.store.memory()))))
}

impl Transaction {
    /// What the current command sees.
    pub fn view(&self) -> View {
        let read_ts = self.token.as_ref().map_or_else(|| self.shard.0.store.horizon(), ViewToken::read_ts);
        View { read_ts, own: self.core.as_ref().map(|c| c.id()), command: self.command }
    }

    /// Notes that something depends on the commit at `ts` (E2).
    #[inline]
    pub fn note(&mut self, ts: Timestamp) {
        if ts.0 != 0 {
            self.gate = self.gate.max(self.shard.0.gates.of(ts, self.shard.durable()));
        }
    }

    /// Notes that something depends on commits whose newest is that at `ts`.
    pub fn note_up_to(&mut self, ts: Timestamp) {
        if ts.0 != 0 {
            self.gate = self.gate.max(self.shard.0.gates.up_to(ts, self.shard.durable()));
        }
    }

    /// Notes that a command depends on the definitions in force.
    #[inline]
    pub(super) fn note_catalog(&mut self) {
        self.note_up_to(self.shard.0.catalog_timestamp());
    }

    /// See [`engine_api::Txn::begin_command`].
    pub(super) fn begin_command_view(&mut self) {
        self.is_over = false;
        self.leave_resumed();
        self.command.0 += 1;
        self.note_catalog();
        if self.held.is_some() {
            self.end_view_of_command();
            self.token = self.held.take();
        }
        if self.options.isolation == Isolation::ReadCommitted {
            self.end_view();
        }
        if self.token.is_none() {
            let session = self.options.session;
            self.token = Some(match self.options.isolation {
                Isolation::Serializable => self.begin_serializable(|store| store.begin_view_for(session)),
                _ => self.shard.0.store.begin_view_for(session),
            });
        }
    }

    /// See [`engine_api::Txn::begin_newest_command`].
    pub(super) fn begin_newest_view(&mut self) {
        self.is_over = false;
        self.leave_resumed();
        self.command.0 += 1;
        self.note_catalog();
        if self.options.isolation == Isolation::ReadCommitted || self.held.is_some() {
            self.end_view_of_command();
        } else {
            self.held = self.token.take();
        }
        self.token = Some(self.shard.0.store.begin_view_for(self.options.session));
    }

    /// See [`engine_api::Txn::await_safe_snapshot`].
    pub(super) fn await_safe(&mut self) -> Step<()> {
        let shard = self.shard.clone();
        loop {
            if self.token.is_none() {
                let session = self.options.session;
                self.token = Some(self.begin_serializable(|store| store.begin_view_for(session)));
            }
            let Some(number) = self.active else { return Step::Ready(()) };
            let cell = WaitCell::new();
            match commit::safety(&shard.0, number, &cell) {
                Safety::Open => return Step::Wait(Wait::for_snapshot(&cell)),
                Safety::Unsafe => self.end_view(),
                Safety::Safe => {
                    self.leave_active();
                    self.reads = None;
                }
            }
        }
    }

    /// See [`engine_api::Txn::keep_view`].
    pub(super) fn share_view(&mut self) -> KeptView {
        let store = &self.shard.0.store;
        let token = match &self.token {
            Some(held) => store.share_view(held),
            None => store.begin_view_for(self.options.session),
        };
        KeptView(Box::new(Kept { shard: self.shard.clone(), token: Some(token), command: self.command }))
    }

    /// See [`engine_api::Txn::adopt_view`].
    pub(super) fn adopt(&mut self, view: &KeptView) {
        let Some(kept) = view.0.downcast_ref::<Kept>() else { return };
        self.is_over = false;
        self.end_view();
        let Some(token) = &kept.token else { return };
        self.token = Some(match self.options.isolation {
            Isolation::Serializable => self.begin_serializable(|store| store.share_view(token)),
            _ => self.shard.0.store.share_view(token),
        });
    }

    /// See [`engine_api::Txn::resume_command`].
    pub(super) fn resume(&mut self, view: &KeptView) {
        let Some(kept) = view.0.downcast_ref::<Kept>() else { return self.begin_command() };
        self.is_over = false;
        self.latest = self.latest.max(self.command);
        self.command = kept.command;
        self.note_catalog();
        if let Some(token) = self.held.take() {
            self.end_view_of_command();
            self.token = Some(token);
        }
        if self.options.isolation == Isolation::ReadCommitted {
            self.end_view();
            self.token = kept.token.as_ref().map(|token| self.shard.0.store.share_view(token));
        }
    }

    /// See [`engine_api::Txn::unseen`].
    pub(super) fn unseen_by_view(&mut self) -> Result<Arc<Unseen>> {
        let view = self.view().read_ts;
        if let Some((at, unseen)) = &self.unseen
            && *at == view
        {
            return Ok(unseen.clone());
        }
        let unseen = self.shard.0.store.unseen(view).map_err(|mvcc::ViewTooOld| {
            Error::new(SqlState::SNAPSHOT_TOO_OLD, "snapshot too old")
                .detail("More transactions have committed since the snapshot was taken than are remembered.")
                .hint("Ask for the snapshot in the first statement of the transaction.")
        })?;
        let unseen = Arc::new(unseen);
        self.unseen = Some((view, unseen.clone()));
        Ok(unseen)
    }

    /// Takes the snapshot of a SERIALIZABLE transaction; `view` makes it.
    pub(super) fn begin_serializable(&mut self, view: impl FnOnce(&mvcc::Store) -> ViewToken) -> ViewToken {
        let shard = self.shard.clone();
        let commit::Begun { number, view } = commit::begin(&shard.0, self.options.read_only, || view(&shard.0.store));
        self.leave_active();
        self.active = number;
        if number.is_none() {
            self.reads = None;
        } else {
            let reads = self.reads.get_or_insert_with(|| Arc::new(Mutex::new(ReadSet::new(shard.0.store.memory()))));
            reads.lock().set_snapshot(view.read_ts());
        }
        view
    }

    /// The transaction has no part in the order of SERIALIZABLE ones any more.
    pub(super) fn leave_active(&mut self) {
        if let Some(number) = self.active.take() {
            commit::leave(&self.shard.0, number);
        }
    }

    pub fn end_view(&mut self) {
        self.end_view_of_command();
        if let Some(token) = self.held.take() {
            self.shard.0.store.end_view(token);
        }
    }

    /// Makes the newest command the current one again.
    pub(super) fn leave_resumed(&mut self) {
        self.command = self.command.max(self.latest);
    }

    pub(super) fn end_view_of_command(&mut self) {
        if let Some(token) = self.token.take() {
            self.shard.0.store.end_view(token);
        }
    }
}
