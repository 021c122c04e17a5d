//! The waits-for graph: deadlocks, and waiting for the end of a transaction.
//!
//! Responsible for: the waits-for graph, touched by blocked transactions only.
//! Not responsible for: queues of locks; their edges are read from the queues when a search needs them.
//!
//! **Requirement**: a cycle is found by the one who closes it. **Rule**: a transaction enters its queue, then the graph,
//! and searches under the graph's latch. Of the members of a cycle one enters the graph last, and sees the others.
//! A cycle in which a transaction waits only because another is before it in the queue of a table or an advisory lock is no deadlock yet:
//! the line is rearranged, if that makes no other cycle. In a row's line there is no such thing, as on PostgreSQL.
//! A hand-over does not come here (it would take the latches in the other order); the search asks the queue whether a
//! transaction in the graph still waits there. Latch order: graph → shard of the lock table.

use std::sync::Arc;

use base::{Oid, RowId, TxnId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{AdvisoryKey, LockEntry, LockKey, LockModes, LockTable, LockTarget, Wakes, Wakeup};
use crate::sync::Mutex;
use crate::txns::TxnTable;

/// What a transaction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitTarget {
    /// A row lock.
    Row {
        /// OID of the table.
        table: Oid,
        /// The row.
        row: RowId,
    },
    /// A table lock.
    Table(Oid),
    /// An advisory lock.
    Advisory(AdvisoryKey),
    /// The end of a transaction.
    Txn(TxnId),
}

/// One edge of a deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitEdge {
    /// Who waits.
    pub waiter: TxnId,
    /// For what.
    pub target: WaitTarget,
    /// Who is in the way.
    pub holder: TxnId,
    /// The session of the one who waits; 0 if none.
    pub waiter_session: u32,
    /// The session of the one in the way; 0 if none.
    pub holder_session: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Lock(LockKey),
    Txn(TxnId),
}

impl Wait {
    fn target(self) -> WaitTarget {
        match self {
            Wait::Lock(LockKey::Row { oid, row, .. }) => WaitTarget::Row { table: oid, row },
            Wait::Lock(LockKey::Table(oid)) => WaitTarget::Table(oid),
            Wait::Lock(LockKey::Advisory(key)) => WaitTarget::Advisory(key),
            Wait::Txn(txn) => WaitTarget::Txn(txn),
        }
    }
}

/// Longer lines are not rearranged.
const LINE_MAX: usize = 64;

#[derive(Default)]
struct GraphState {
    waits: FxHashMap<TxnId, Wait>,
    /// Which of its transactions a session waits with: it holds advisory locks by another than rows, and who waits for one
    /// waits for all. May be out of date; then the transaction is not in `waits`.
    sessions: FxHashMap<u32, TxnId>,
    /// Who waits for the end of a transaction, in order.
    ends: FxHashMap<TxnId, Vec<EndWaiter>>,
}

struct EndWaiter {
    txn: TxnId,
    /// The row whose fate is waited for.
    row: LockKey,
    wake: Arc<dyn Wakeup>,
}

#[derive(Default)]
pub(crate) struct Graph {
    state: Mutex<GraphState>,
}

impl Graph {
    /// Enters a transaction that stands in the queue of `key`. A cycle means: deadlock, and it did not enter.
    pub fn enter(
        &self,
        waiter: TxnId,
        key: LockKey,
        txns: &TxnTable,
        locks: &LockTable,
        wakes: &mut Wakes,
    ) -> Option<Vec<WaitEdge>> {
        let mut state = self.state.lock();
        state.begin_wait(waiter, Wait::Lock(key), txns);
        let cycle = state.deadlock_of(waiter, txns, locks, wakes);
        if cycle.is_some() {
            state.waits.remove(&waiter);
        }
        cycle
    }

    /// Takes out a transaction whose wait is over.
    pub fn leave(&self, waiter: TxnId) {
        self.state.lock().waits.remove(&waiter);
    }

    /// Lets `waiter` wait until `holder` ends or undoes a write of `row`; `Ok(false)` if it has ended.
    pub fn await_end(
        &self,
        waiter: TxnId,
        holder: TxnId,
        row: LockKey,
        wake: &Arc<dyn Wakeup>,
        txns: &TxnTable,
        locks: &LockTable,
        wakes: &mut Wakes,
    ) -> Result<bool, Vec<WaitEdge>> {
        let mut state = self.state.lock();
        // The flag is set before the look: either this sees the slot left, or the one who leaves sees the flag. A swap,
        // because of `Graph::undone`.
        txns.slot(holder).waited.swap(true, crate::sync::Ordering::SeqCst);
        if !txns.is_active(holder) {
            state.forget_end(waiter, holder);
            return Ok(false);
        }
        state.begin_wait(waiter, Wait::Txn(holder), txns);
        if let Some(cycle) = state.deadlock_of(waiter, txns, locks, wakes) {
            state.forget_end(waiter, holder);
            return Err(cycle);
        }
        let line = state.ends.entry(holder).or_default();
        let entry = EndWaiter { txn: waiter, row, wake: wake.clone() };
        match line.iter_mut().find(|place| place.txn == waiter) {
            Some(place) => *place = entry,
            None => line.push(entry),
        }
        Ok(true)
    }

    /// Gives up waiting for the end of `holder`.
    pub fn cancel_end(&self, waiter: TxnId, holder: TxnId) {
        self.state.lock().forget_end(waiter, holder);
    }

    /// The transaction has undone writes of rows: those who wait because of one of them look again whether they still must.
    /// Until then they wait for nobody, but keep their places.
    ///
    /// Requirement: no wakeup is lost. Rule: who undoes changes the rows first and the flag after; who waits swaps the flag,
    /// enters, and then looks at the rows once more. Of two swaps of one flag the later sees what came before the earlier.
    ///
    /// Only the rows undone matter: two transactions that try for each other's keys would otherwise wake each other for
    /// ever with their attempts, and never be found to deadlock.
    pub fn undone(&self, txn: TxnId, rows: &[LockKey], txns: &TxnTable, wakes: &mut Wakes) {
        if rows.is_empty() || !txns.slot(txn).waited.fetch_or(false, crate::sync::Ordering::SeqCst) {
            return;
        }
        let mut state = self.state.lock();
        let GraphState { waits, ends, .. } = &mut *state;
        for waiter in ends.get(&txn).into_iter().flatten().filter(|waiter| rows.contains(&waiter.row)) {
            waits.remove(&waiter.txn);
            wakes.push(waiter.wake.clone());
        }
    }

    /// The transaction has left its slot.
    pub fn ended(&self, txn: TxnId, wakes: &mut Wakes) {
        let mut state = self.state.lock();
        for waiter in state.ends.remove(&txn).unwrap_or_default() {
            state.waits.remove(&waiter.txn);
            wakes.push(waiter.wake);
        }
    }

    /// All waits as (waiter, what, holder), for `pg_locks` and a search beyond this shard.
    pub fn edges(&self, locks: &LockTable, txns: &TxnTable) -> Vec<WaitEdge> {
        let state = self.state.lock();
        let mut edges = Vec::new();
        let mut blockers = Vec::new();
        for (&waiter, &wait) in &state.waits {
            blockers.clear();
            blockers_of(waiter, wait, locks, |txn, _| blockers.push(txn));
            edges.extend(blockers.iter().map(|&holder| edge(waiter, wait.target(), holder, txns)));
        }
        edges.sort_unstable_by_key(|e| (e.waiter, e.holder));
        edges
    }

    /// Who waits for the end of a transaction.
    pub fn awaited_ends(&self, txns: &TxnTable) -> Vec<LockEntry> {
        let state = self.state.lock();
        let waits = state.waits.iter().filter_map(|(&waiter, wait)| match wait {
            Wait::Txn(holder) => Some((waiter, *holder)),
            Wait::Lock(_) => None,
        });
        waits
            .map(|(waiter, holder)| LockEntry {
                txn: waiter,
                session: txns.owner(waiter),
                target: LockTarget::Txn(holder),
                modes: LockModes(super::TableLockMode::Share.bit()),
                is_granted: false,
                place: 0,
                is_weak: false,
            })
            .collect()
    }
}

/// Visits whom `waiter` waits for, and whether they stand in the same line before it.
fn blockers_of(waiter: TxnId, wait: Wait, locks: &LockTable, mut visit: impl FnMut(TxnId, bool)) {
    match wait {
        Wait::Lock(key) => locks.blockers(key, waiter, visit),
        Wait::Txn(holder) => visit(holder, false),
    }
}

fn edge(waiter: TxnId, target: WaitTarget, holder: TxnId, txns: &TxnTable) -> WaitEdge {
    WaitEdge { waiter, target, holder, waiter_session: txns.owner(waiter), holder_session: txns.owner(holder) }
}

impl GraphState {
    fn begin_wait(&mut self, waiter: TxnId, wait: Wait, txns: &TxnTable) {
        self.waits.insert(waiter, wait);
        let session = txns.owner(waiter);
        if session != 0 {
            self.sessions.insert(session, waiter);
        }
        // A session that has gone leaves its entry behind.
        if self.sessions.len() > 2 * self.waits.len() + 64 {
            let waits = &self.waits;
            self.sessions.retain(|_, waiter| waits.contains_key(waiter));
        }
    }

    /// The transaction that `txn` waits with: itself, or another of its session.
    fn waiting_as(&self, txn: TxnId, txns: &TxnTable) -> TxnId {
        if self.waits.contains_key(&txn) {
            return txn;
        }
        match txns.owner(txn) {
            0 => txn,
            session => self.sessions.get(&session).copied().unwrap_or(txn),
        }
    }

    fn forget_end(&mut self, waiter: TxnId, holder: TxnId) {
        self.waits.remove(&waiter);
        if let Some(line) = self.ends.get_mut(&holder) {
            line.retain(|place| place.txn != waiter);
            if line.is_empty() {
                self.ends.remove(&holder);
            }
        }
    }

    /// A cycle through `start` that no other order of a line ends.
    fn deadlock_of(
        &self,
        start: TxnId,
        txns: &TxnTable,
        locks: &LockTable,
        wakes: &mut Wakes,
    ) -> Option<Vec<WaitEdge>> {
        let cycle = self.cycle_through(start, txns, locks)?;
        let is_over = cycle.iter().any(|edge| match self.waits.get(&edge.waiter) {
            Some(Wait::Lock(key)) => self.rearrange(*key, edge.waiter, start, txns, locks, wakes),
            _ => false,
        });
        (!is_over).then_some(cycle)
    }

    /// Lets `waiter`, or one before it in the line of `key`, overtake those that it conflicts with, if nobody there waits in a cycle then.
    fn rearrange(
        &self,
        key: LockKey,
        waiter: TxnId,
        start: TxnId,
        txns: &TxnTable,
        locks: &LockTable,
        wakes: &mut Wakes,
    ) -> bool {
        let line = |locks: &LockTable| {
            let mut line: SmallVec<[TxnId; 8]> = SmallVec::new();
            locks.with_line(key, |queue| queue.each_waiter(|txn, _| line.push(txn)));
            line
        };
        let members = line(locks);
        let Some(at) = members.iter().position(|txn| *txn == waiter).filter(|at| *at < LINE_MAX) else { return false };
        members[..=at].iter().rev().any(|&moved| {
            let Some(place) = locks.with_line(key, |queue| queue.move_ahead(moved)).flatten() else { return false };
            let is_free =
                |txn: &TxnId| !self.waits.contains_key(txn) || self.cycle_through(*txn, txns, locks).is_none();
            let is_over = is_free(&start) && line(locks).iter().all(is_free);
            locks.with_line(key, |queue| if is_over { queue.hand_over(wakes) } else { queue.move_back(moved, place) });
            is_over
        })
    }

    /// Depth-first search with an explicit path; the cycle as a list of edges that begins and ends at `start`.
    ///
    /// Those before it in a line are not searched: they wait nowhere else, and whom they wait for the line has told already. So
    /// a long line, as at a row that all want, costs its length and not the square of it.
    fn cycle_through(&self, start: TxnId, txns: &TxnTable, locks: &LockTable) -> Option<Vec<WaitEdge>> {
        let mut seen = FxHashSet::default();
        let mut path: Vec<(TxnId, WaitTarget, Vec<TxnId>)> = Vec::new();
        self.descend(start, start, locks, &mut path);
        while let Some((_, _, open)) = path.last_mut() {
            match open.pop().map(|next| self.waiting_as(next, txns)) {
                None => drop(path.pop()),
                Some(next) if next == start => return Some(edges_of(&path, start, txns)),
                Some(next) if seen.insert(next) => self.descend(next, start, locks, &mut path),
                Some(_) => {}
            }
        }
        None
    }

    /// Adds `txn` to the path, with those to be searched from there.
    fn descend(&self, txn: TxnId, start: TxnId, locks: &LockTable, path: &mut Vec<(TxnId, WaitTarget, Vec<TxnId>)>) {
        if let Some(&wait) = self.waits.get(&txn) {
            let mut open = Vec::new();
            blockers_of(txn, wait, locks, |blocker, in_line| {
                if !in_line || blocker == start {
                    open.push(blocker);
                }
            });
            path.push((txn, wait.target(), open));
        }
    }
}

fn edges_of(path: &[(TxnId, WaitTarget, Vec<TxnId>)], start: TxnId, txns: &TxnTable) -> Vec<WaitEdge> {
    let holders = path.iter().skip(1).map(|step| step.0).chain([start]);
    path.iter().zip(holders).map(|(step, holder)| edge(step.0, step.1, holder, txns)).collect()
}
