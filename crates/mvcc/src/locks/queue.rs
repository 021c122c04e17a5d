//! One contended lock: its holders and the line of those who wait.
//!
//! Responsible for: who is granted, in which order.
//! Not responsible for: finding the queue (`LockTable`), deadlocks (`graph`), waking (the caller, after the latch).
//!
//! Rules
//! - A request is granted if it conflicts neither with another holder nor, unless it is for a row, with an earlier waiter. A lock of a row
//!   that is compatible with all holders is granted whatever waits, as on PostgreSQL: FOR SHARE does not wait for a DELETE that waits for a KEY
//!   SHARE.
//! - No waiter is overtaken by a later one that it conflicts with, unless that ends a deadlock ([`Queue::move_ahead`]).
//! - An upgrade (the requester holds a weaker mode) of a row's lock considers holders only, and waits ahead of the others, because those wait
//!   for it anyway. One of another lock stands before the first who waits for what it holds, as on PostgreSQL.
//! - Hand-over makes a waiter a holder before it is woken, so that no other transaction gets the lock first; the holder is *handed* until
//!   its transaction asks again and takes notice.

use std::collections::VecDeque;
use std::sync::Arc;

use base::TxnId;
use smallvec::SmallVec;

use super::mode::{ConflictTable, Modes};

/// Called when a waiter's turn has come; must not block. It may be called before the call that began the wait returns.
pub trait Wakeup: Send + Sync {
    /// The lock is held, or the transaction waited for is over: make the call again.
    fn wake(&self);
}

/// Wakeups to call once no latch is held.
pub(crate) type Wakes = SmallVec<[Arc<dyn Wakeup>; 4]>;

pub(crate) struct Holder {
    pub txn: TxnId,
    pub modes: Modes,
    /// Set by a hand-over: the modes held before it.
    pub handed: Option<Modes>,
}

struct Waiter {
    txn: TxnId,
    wanted: Modes,
    upgrade: bool,
    wake: Arc<dyn Wakeup>,
}

pub(crate) struct Queue {
    kind: ConflictTable,
    /// See `table`; of no meaning for rows.
    pub is_guarded: bool,
    holders: SmallVec<[Holder; 2]>,
    waiters: VecDeque<Waiter>,
}

pub(crate) enum Ask {
    /// Held, with the modes held before.
    Granted(Modes),
    /// In the line.
    Waiting,
    WouldBlock,
}

impl Queue {
    pub fn new(kind: ConflictTable) -> Queue {
        Queue { kind, is_guarded: false, holders: SmallVec::new(), waiters: VecDeque::new() }
    }

    pub fn add_holder(&mut self, txn: TxnId, modes: Modes) {
        self.holders.push(Holder { txn, modes, handed: None });
    }

    pub fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.waiters.is_empty()
    }

    /// What `txn` holds.
    pub fn held(&self, txn: TxnId) -> Modes {
        self.holders.iter().find(|h| h.txn == txn).map_or(0, |h| h.modes)
    }

    /// Asks for a lock, or asks again after [`Ask::Waiting`].
    pub fn ask(&mut self, txn: TxnId, wanted: Modes, wake: Option<&Arc<dyn Wakeup>>) -> Ask {
        if let Some(holder) = self.holders.iter_mut().find(|h| h.txn == txn)
            && let Some(before) = holder.handed.take()
        {
            return Ask::Granted(before);
        }
        if let Some(waiter) = self.waiters.iter_mut().find(|w| w.txn == txn) {
            if let Some(wake) = wake {
                waiter.wake = wake.clone();
            }
            return Ask::Waiting;
        }
        let held = self.held(txn);
        if self.kind.covers(held, wanted) && held != 0 {
            return Ask::Granted(held);
        }
        let is_row = self.kind == ConflictTable::Row;
        let upgrade = is_row && held != 0;
        let at = match (held, is_row) {
            (0, _) => self.waiters.len(),
            (_, true) => self.waiters.iter().take_while(|w| w.upgrade).count(),
            (_, false) => {
                let waits_for_it = |w: &Waiter| self.kind.conflict(w.wanted, held);
                self.waiters.iter().position(waits_for_it).unwrap_or(self.waiters.len())
            }
        };
        if !self.held_against(txn, wanted) && (is_row || !self.awaited_against(wanted, at)) {
            self.grant(txn, wanted);
            return Ask::Granted(held);
        }
        let Some(wake) = wake else { return Ask::WouldBlock };
        self.waiters.insert(at, Waiter { txn, wanted, upgrade, wake: wake.clone() });
        Ask::Waiting
    }

    fn held_against(&self, txn: TxnId, wanted: Modes) -> bool {
        self.holders.iter().any(|h| h.txn != txn && self.kind.conflict(h.modes, wanted))
    }

    fn awaited_against(&self, wanted: Modes, before: usize) -> bool {
        self.waiters.iter().take(before).any(|w| self.kind.conflict(w.wanted, wanted))
    }

    /// Visits who holds the lock, and how.
    pub fn each_holder(&self, mut visit: impl FnMut(TxnId, Modes)) {
        self.holders.iter().for_each(|holder| visit(holder.txn, holder.modes));
    }

    /// Visits the line, in order.
    pub fn each_waiter(&self, mut visit: impl FnMut(TxnId, Modes)) {
        self.waiters.iter().for_each(|waiter| visit(waiter.txn, waiter.wanted));
    }

    /// Whether one of `modes` is held or awaited.
    pub fn concerns(&self, modes: Modes) -> bool {
        self.holders.iter().any(|h| h.modes & modes != 0) || self.waiters.iter().any(|w| w.wanted & modes != 0)
    }

    /// Makes `txn` hold `wanted` as well.
    pub fn grant(&mut self, txn: TxnId, wanted: Modes) {
        match self.holders.iter_mut().find(|h| h.txn == txn) {
            Some(holder) => holder.modes |= wanted,
            None => self.add_holder(txn, wanted),
        }
    }

    /// Leaves `txn` with `modes` only (0: nothing) and hands over.
    pub fn reduce(&mut self, txn: TxnId, modes: Modes, wakes: &mut Wakes) {
        match self.holders.iter().position(|h| h.txn == txn) {
            Some(at) if modes == 0 => drop(self.holders.remove(at)),
            Some(at) => self.holders[at].modes = modes,
            None => {}
        }
        self.hand_over(wakes);
    }

    /// Gives up a wait; if the lock was handed over meanwhile, gives it back.
    pub fn cancel(&mut self, txn: TxnId, wakes: &mut Wakes) {
        if let Some(at) = self.waiters.iter().position(|w| w.txn == txn) {
            self.waiters.remove(at);
            self.hand_over(wakes);
        } else if let Some(before) = self.holders.iter_mut().find(|h| h.txn == txn).and_then(|h| h.handed.take()) {
            self.reduce(txn, before, wakes);
        }
    }

    /// Moves who waits to before the first in the line that it conflicts with; its place before, or `None` if there is none.
    pub fn move_ahead(&mut self, txn: TxnId) -> Option<usize> {
        let place = self.waiters.iter().position(|w| w.txn == txn)?;
        let wanted = self.waiters[place].wanted;
        let to = self.waiters.iter().take(place).position(|w| self.kind.conflict(w.wanted, wanted))?;
        let waiter = self.waiters.remove(place)?;
        self.waiters.insert(to, waiter);
        Some(place)
    }

    /// Takes [`Queue::move_ahead`] back.
    pub fn move_back(&mut self, txn: TxnId, place: usize) {
        if let Some(at) = self.waiters.iter().position(|w| w.txn == txn)
            && let Some(waiter) = self.waiters.remove(at)
        {
            self.waiters.insert(place.min(self.waiters.len()), waiter);
        }
    }

    /// Makes holders of those whose turn it is.
    pub fn hand_over(&mut self, wakes: &mut Wakes) {
        let mut at = 0;
        while at < self.waiters.len() {
            let (txn, wanted) = (self.waiters[at].txn, self.waiters[at].wanted);
            if self.held_against(txn, wanted) || (!self.waiters[at].upgrade && self.awaited_against(wanted, at)) {
                at += 1;
                continue;
            }
            let waiter = self.waiters.remove(at).expect("at is in range");
            let before = self.held(txn);
            self.grant(txn, wanted);
            let holder = self.holders.iter_mut().find(|h| h.txn == txn).expect("just granted");
            holder.handed = Some(before);
            wakes.push(waiter.wake);
        }
    }

    /// Visits the transactions that `txn` waits for here, directly or through others in the line, and whether they stand in the
    /// line before it; none if it does not wait.
    ///
    /// Who waits in this line waits nowhere else, so one backward pass over the line finds all: the modes wanted by the
    /// waiters reached so far say who ahead is reached, and in the end which holders are.
    pub fn blockers(&self, txn: TxnId, mut visit: impl FnMut(TxnId, bool)) {
        let Some(at) = self.waiters.iter().position(|w| w.txn == txn) else { return };
        let own = self.waiters[at].wanted;
        // What waits behind the line in front of it, and everything that waits for holders.
        let (mut in_line, mut others) = (if self.waiters[at].upgrade { 0 } else { own }, 0);
        for ahead in self.waiters.iter().take(at).rev() {
            if self.kind.conflict(ahead.wanted, in_line) {
                in_line |= if ahead.upgrade { 0 } else { ahead.wanted };
                others |= ahead.wanted;
                visit(ahead.txn, true);
            }
        }
        for holder in &self.holders {
            let reached = if holder.txn == txn { others } else { own | others };
            if self.kind.conflict(holder.modes, reached) {
                visit(holder.txn, false);
            }
        }
    }
}
