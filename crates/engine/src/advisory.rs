//! Advisory locks of sessions, and the list of all locks.
//!
//! Responsible for: counting what a session and its transaction hold, translating `mvcc`'s list.
//! Not responsible for: the waits-for graph (`mvcc::locks`).
//! Invariant: of a lock the session's `core` holds exactly the modes whose counts are not zero, or ones that cover them.

use base::{Error, Result, SqlState};
use engine_api::{AdvisoryKey, AdvisoryLocks, LockRow, Locked, RowLockMode, Step, TableLockMode, WaitPolicy};
use mvcc::{AdvisoryMode, LockEntry, LockResult, LockTarget};
use rustc_hash::FxHashMap;

use crate::shard::Shard;

/// Locks of one session.
const LOCKS_MAX: usize = 1 << 16;

/// How often a lock is held: [shared, exclusive].
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    session: [u32; 2],
    transaction: [u32; 2],
}

impl Held {
    fn modes(&self) -> Vec<AdvisoryMode> {
        let count = |mode: usize| self.session[mode] + self.transaction[mode];
        let all = [AdvisoryMode::Shared, AdvisoryMode::Exclusive];
        all.into_iter().enumerate().filter(|(mode, _)| count(*mode) > 0).map(|(_, mode)| mode).collect()
    }
}

/// See [`AdvisoryLocks`].
struct SessionLocks {
    shard: Shard,
    /// Holds the locks of the session, and those of its transactions.
    core: Option<mvcc::Transaction>,
    held: FxHashMap<AdvisoryKey, Held>,
    /// What the transaction has taken, in order.
    taken: Vec<(AdvisoryKey, usize)>,
}

/// See [`engine_api::Engine::advisory_locks`].
pub(crate) fn of_session(shard: &Shard, session: u32) -> Result<Box<dyn AdvisoryLocks>> {
    let core = shard
        .0
        .store
        .begin_txn_for(session)
        .map_err(|_| Error::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, "too many transactions are active"))?;
    Ok(Box::new(SessionLocks { shard: shard.clone(), core: Some(core), held: FxHashMap::default(), taken: Vec::new() }))
}

/// Gives a prepared transaction the advisory locks that its session holds for it.
pub(crate) fn give(store: &mvcc::Store, core: &mvcc::Transaction, locks: &[(AdvisoryKey, bool)]) {
    for (key, is_shared) in locks {
        let mode = if *is_shared { AdvisoryMode::Shared } else { AdvisoryMode::Exclusive };
        store.give_advisory(core, name(*key), mode);
    }
}

/// Gives back what a prepared transaction was given.
pub(crate) fn give_back(store: &mvcc::Store, core: &mut mvcc::Transaction, locks: &[(AdvisoryKey, bool)]) {
    locks.iter().for_each(|(key, _)| store.reduce_advisory(core, name(*key), &[]));
}

fn name(key: AdvisoryKey) -> mvcc::AdvisoryKey {
    mvcc::AdvisoryKey { database: key.database, number: key.number, is_pair: key.is_pair }
}

impl SessionLocks {
    /// Makes what is held agree with the counts.
    fn settle(&mut self, key: AdvisoryKey) {
        let modes = self.held.get(&key).map(Held::modes).unwrap_or_default();
        if modes.is_empty() {
            self.held.remove(&key);
        }
        if let Some(core) = &mut self.core {
            self.shard.0.store.reduce_advisory(core, name(key), &modes);
        }
    }
}

impl AdvisoryLocks for SessionLocks {
    fn lock(
        &mut self,
        key: AdvisoryKey,
        is_shared: bool,
        of_transaction: bool,
        policy: WaitPolicy,
    ) -> Result<Step<bool>> {
        let inner = &self.shard.0;
        let core = self.core.as_mut().ok_or_else(|| Error::internal("the session is over"))?;
        if self.held.len() >= LOCKS_MAX && !self.held.contains_key(&key) {
            return Err(Error::new(SqlState::OUT_OF_MEMORY, "out of shared memory")
                .hint("You might need to increase max_locks_per_transaction."));
        }
        let mode = if is_shared { AdvisoryMode::Shared } else { AdvisoryMode::Exclusive };
        let mut waiting = None;
        let answer = if policy == WaitPolicy::Block {
            let (wait, wake) = crate::locks::wakeup();
            waiting = Some(wait);
            inner.store.lock_advisory(core, name(key), mode, mvcc::WaitPolicy::Block, &wake)
        } else {
            inner.store.lock_advisory(core, name(key), mode, mvcc::WaitPolicy::Never, &inner.nobody)
        };
        match (answer, waiting) {
            (LockResult::Granted { .. }, _) => {
                let held = self.held.entry(key).or_default();
                let at = usize::from(!is_shared);
                if of_transaction {
                    held.transaction[at] += 1;
                    self.taken.push((key, at));
                } else {
                    held.session[at] += 1;
                }
                // A mode that another covers is listed, and left over when the other goes.
                if held.modes().len() > 1 {
                    self.settle(key);
                }
                Ok(Step::Ready(true))
            }
            (LockResult::Wait, Some(wait)) => Ok(Step::Wait(wait)),
            (LockResult::Deadlock(cycle), _) => Err(crate::locks::deadlock(&cycle)),
            _ => Ok(Step::Ready(false)),
        }
    }

    fn unlock(&mut self, key: AdvisoryKey, is_shared: bool) -> bool {
        let count = self.held.get_mut(&key).map(|held| &mut held.session[usize::from(!is_shared)]);
        let Some(count) = count.filter(|count| **count > 0) else { return false };
        *count -= 1;
        if *count == 0 {
            self.settle(key);
        }
        true
    }

    fn unlock_all(&mut self) {
        let keys: Vec<_> = self.held.keys().copied().collect();
        for key in keys {
            if let Some(held) = self.held.get_mut(&key) {
                held.session = [0, 0];
            }
            self.settle(key);
        }
    }

    fn of_transaction(&self) -> Result<Vec<(AdvisoryKey, bool)>> {
        let both = |key: &AdvisoryKey| self.held.get(key).is_some_and(|held| held.session != [0, 0]);
        if self.taken.iter().any(|(key, _)| both(key)) {
            return Err(Error::unsupported(
                "cannot PREPARE while holding both session-level and transaction-level locks on the same object",
            ));
        }
        let mut locks: Vec<_> = self.taken.iter().map(|(key, at)| (*key, *at == 0)).collect();
        locks.sort_unstable();
        locks.dedup();
        Ok(locks)
    }

    fn mark(&self) -> usize {
        self.taken.len()
    }

    fn release_since(&mut self, mark: usize) {
        while self.taken.len() > mark {
            let Some((key, at)) = self.taken.pop() else { break };
            let held = self.held.entry(key).or_default();
            held.transaction[at] = held.transaction[at].saturating_sub(1);
            self.settle(key);
        }
    }

    fn cancel_wait(&mut self) {
        if let Some(core) = &mut self.core {
            self.shard.0.store.cancel_wait(core);
        }
    }
}

impl Drop for SessionLocks {
    fn drop(&mut self) {
        self.cancel_wait();
        self.held.values_mut().for_each(|held| *held = Held::default());
        let keys: Vec<_> = self.held.keys().copied().collect();
        keys.into_iter().for_each(|key| self.settle(key));
        if let Some(core) = self.core.take() {
            self.shard.0.store.abort(core);
        }
    }
}

const TABLE_MODES: [TableLockMode; 8] = [
    TableLockMode::AccessShare,
    TableLockMode::RowShare,
    TableLockMode::RowExclusive,
    TableLockMode::ShareUpdateExclusive,
    TableLockMode::Share,
    TableLockMode::ShareRowExclusive,
    TableLockMode::Exclusive,
    TableLockMode::AccessExclusive,
];

const ROW_MODES: [RowLockMode; 4] =
    [RowLockMode::KeyShare, RowLockMode::Share, RowLockMode::NoKeyUpdate, RowLockMode::Update];

/// The modes of tables in a mask.
pub(crate) fn table_modes(bits: u8) -> impl Iterator<Item = TableLockMode> {
    TABLE_MODES.into_iter().enumerate().filter(move |(bit, _)| bits & (1 << bit) != 0).map(|(_, mode)| mode)
}

/// The modes of rows in a mask.
pub(crate) fn row_modes(bits: u8) -> impl Iterator<Item = RowLockMode> {
    ROW_MODES.into_iter().enumerate().filter(move |(bit, _)| bits & (1 << bit) != 0).map(|(_, mode)| mode)
}

/// See [`engine_api::Engine::locks`]. A row that is waited for shows as on PostgreSQL: the first in the line holds the row's
/// place and waits for the end of the holder's transaction, the others wait for the place.
pub(crate) fn list(shard: &Shard) -> Vec<LockRow> {
    let entries = shard.0.store.locks();
    let mut rows = Vec::new();
    let mut known = Vec::new();
    for entry in &entries {
        let LockEntry { txn, session, is_granted, is_weak: is_fast, .. } = *entry;
        let row = |locked| LockRow { txn, session, locked, is_granted, is_fast };
        let bits = |modes: u8| (0..8).filter(move |bit| modes & (1 << bit) != 0);
        match entry.target {
            LockTarget::Table(oid) => {
                rows.extend(bits(entry.modes.0).map(|bit| row(Locked::Table(oid, TABLE_MODES[bit]))));
            }
            LockTarget::Advisory(key) => {
                let key = AdvisoryKey { database: key.database, number: key.number, is_pair: key.is_pair };
                rows.extend(bits(entry.modes.0).map(|bit| row(Locked::Advisory(key, TABLE_MODES[bit]))));
            }
            LockTarget::Txn(holder) => {
                known.push(holder);
                rows.push(row(Locked::Txn(holder, TableLockMode::Share)));
            }
            LockTarget::Row(..) if is_granted => {}
            LockTarget::Row(oid, id) => {
                let mode = bits(entry.modes.0).filter_map(|bit| ROW_MODES.get(bit)).next_back();
                let locked = Locked::Row(oid, id, mode.copied().unwrap_or(RowLockMode::Update));
                rows.push(LockRow { is_granted: entry.place == 0, ..row(locked) });
                if entry.place == 0 {
                    let holders = entries.iter().filter(|other| other.target == entry.target && other.is_granted);
                    for holder in holders.map(|holder| holder.txn).filter(|holder| *holder != txn) {
                        known.push(holder);
                        rows.push(row(Locked::Txn(holder, TableLockMode::Share)));
                    }
                }
            }
        }
    }
    known.sort_unstable();
    known.dedup();
    rows.extend(known.into_iter().map(|txn| LockRow {
        txn,
        session: shard.0.store.session_of(txn),
        locked: Locked::Txn(txn, TableLockMode::Exclusive),
        is_granted: true,
        is_fast: false,
    }));
    rows
}

/// See [`engine_api::Engine::blockers_of`].
pub(crate) fn blockers_of(shard: &Shard, session: u32) -> Vec<u32> {
    let waits = shard.0.store.waits();
    let mut holders: Vec<u32> =
        waits.iter().filter(|edge| edge.waiter_session == session).map(|edge| edge.holder_session).collect();
    holders.sort_unstable();
    holders.dedup();
    holders
}
