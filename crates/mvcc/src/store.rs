//! One shard's rows: transactions, views, locks and garbage together.
//!
//! Responsible for: the call order of a transaction's life (see the crate's top), waiting, collecting garbage.
//! Not responsible for: commit timestamps and the log (`engine`).

use std::sync::Arc;

use base::{Ending, Oid, RowId, Timestamp, TxnId, Unseen, work};
use smallvec::SmallVec;

use crate::epoch::{Guard, pin};
use crate::garbage::{Bounds, Collected, GarbageQueue, RowGarbage};
use crate::locks::row::RowAsk;
use crate::locks::table::is_weak;
use crate::locks::{AdvisoryKey, AdvisoryMode, LockEntry};
use crate::locks::{Ask, Graph, LockKey, LockResult, LockTable, Modes, RowLockMode, TableLockMode, WaitEdge};
use crate::locks::{WaitPolicy, Wakes, Wakeup, wake_all};
use crate::memory::Memory;
use crate::sync::{AtomicU64, Ordering};
use crate::table::Table;
use crate::txn::{Entry, TableLock, Transaction, TxnMark, Waiting};
use crate::txns::{TooManyTransactions, TxnTable, ViewTooOld};
use crate::views::{ViewToken, Views};

pub(crate) struct Shared {
    pub txns: TxnTable,
    pub views: Views,
    pub memory: Arc<Memory>,
    pub locks: LockTable,
    pub graph: Graph,
    pub garbage: GarbageQueue,
    /// Commits up to here are durable. Raised by the engine (Release); a lower value only delays garbage.
    durable: AtomicU64,
    next_table: AtomicU64,
}

/// How a store starts.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Commits up to here are loaded: the first view reads at it.
    pub horizon: Timestamp,
    /// Budget in bytes.
    pub memory_limit: u64,
}

/// The rows of one shard and everything that decides who sees and changes them.
pub struct Store {
    shared: Arc<Shared>,
}

impl Store {
    /// An empty store.
    pub fn new(options: StoreOptions) -> Store {
        Store {
            shared: Arc::new(Shared {
                txns: TxnTable::new(),
                views: Views::new(options.horizon),
                memory: Arc::new(Memory::new(options.memory_limit)),
                locks: LockTable::new(),
                graph: Graph::default(),
                garbage: GarbageQueue::default(),
                durable: AtomicU64::new(options.horizon.0),
                next_table: AtomicU64::new(1),
            }),
        }
    }

    /// Recovery: the numbers of transactions are from now on greater than that of `last`, the largest in the log, by so much
    /// that none comes again which a version had that was seen and is lost. REQUIRES that no transaction has begun.
    pub fn start_ids_after(&self, last: TxnId) {
        self.shared.txns.start_after(last);
    }

    /// An id that no transaction has exceeded which began before this call.
    pub fn last_txn(&self) -> TxnId {
        self.shared.txns.last_id()
    }

    /// Storage for a table. Not shared with an earlier one of the same OID.
    pub fn new_table(&self, oid: Oid, indexes: Arc<dyn RowGarbage>) -> Table {
        let number = self.shared.next_table.fetch_add(1, Ordering::Relaxed);
        Table::new(self.shared.clone(), oid, number, indexes)
    }

    /// The memory of the store; indexes are made with it ([`BTreeIndex::charged_to`](crate::index::BTreeIndex::charged_to)).
    pub fn memory(&self) -> &Arc<Memory> {
        &self.shared.memory
    }

    /// Bytes in use.
    pub fn memory_used(&self) -> u64 {
        self.shared.memory.used()
    }

    /// Starts a transaction that may write and lock. Reading needs none.
    ///
    /// # Errors
    /// If all slots are taken.
    pub fn begin_txn(&self) -> Result<Transaction, TooManyTransactions> {
        self.begin_txn_for(0)
    }

    /// As [`Store::begin_txn`], for a session: transactions of one session (not 0) never wait for each other.
    ///
    /// # Errors
    /// If all slots are taken.
    #[inline]
    pub fn begin_txn_for(&self, session: u32) -> Result<Transaction, TooManyTransactions> {
        Ok(Transaction::new(self.shared.txns.begin(session)?, &self.shared))
    }

    /// Makes `txn` committed at `ts`, and visible to every view that begins from now on.
    /// REQUIRES calls in the order of `ts`, one at a time: the log's critical section.
    pub fn publish(&self, txn: &Transaction, ts: Timestamp) {
        self.shared.txns.publish(txn.id(), ts);
        self.shared.views.advance(ts);
    }

    /// `txn`, which has written nothing and is about to end, counts as committed for [`Store::ending`].
    pub fn note_committed(&self, txn: &Transaction) {
        self.shared.txns.note_committed(txn.id());
    }

    /// The transactions that a view taken at `view` does not see, by their numbers.
    ///
    /// # Errors
    /// If more has committed since than is remembered.
    pub fn unseen(&self, view: Timestamp) -> Result<Unseen, ViewTooOld> {
        self.shared.txns.unseen(view, || self.horizon())
    }

    /// How the transaction has ended that has this number ([`TxnId::xid8`]).
    pub fn ending(&self, xid8: u64) -> Ending {
        self.shared.txns.ending(xid8)
    }

    /// Raises the horizon without a commit (no-op record, recovery). REQUIRES as [`Store::publish`].
    pub fn advance_horizon(&self, ts: Timestamp) {
        self.shared.views.advance(ts);
    }

    /// Commits up to `ts` are durable. Deleted rows and changed keys are not collected before.
    pub fn raise_durable(&self, ts: Timestamp) {
        self.shared.durable.fetch_max(ts.0, Ordering::Release);
    }

    /// Stamps the versions of a published transaction, prunes the rows it wrote, releases its locks and ends it.
    pub fn finish_commit(&self, mut txn: Transaction, ts: Timestamp) {
        self.finish(&mut txn, ts);
    }

    /// As [`Store::finish_commit`]. `txn` is to be dropped then.
    pub fn finish(&self, txn: &mut Transaction, ts: Timestamp) {
        txn.check(&self.shared);
        base::invariant!(!txn.is_waiting(), "{:?} commits while a call of it waits", txn.id());
        if txn.finished > 0 {
            while !self.finish_some(txn, ts, usize::MAX) {}
            return self.end_id(txn, Wakes::new());
        }
        let guard = pin();
        // They may have left the caches since they were made.
        txn.writes().for_each(|(table, row, _)| table.prefetch(row, 1, &guard));
        for (table, row, _) in txn.writes() {
            table.stamp(txn.id(), row, ts, &guard);
        }
        if txn.log.iter().any(|entry| matches!(entry, Entry::Wrote { .. })) {
            let bounds = self.bounds();
            for (table, row, _) in txn.writes().filter(|(_, _, inserted)| !inserted) {
                table.prune_written(txn, row, ts, &bounds, &guard);
            }
        }
        self.end(txn, &guard);
    }

    /// Does at most `count` more steps of [`Store::finish_commit`], which must follow with the same `ts`; whether all are
    /// done. A caller that has others to serve ends a large transaction in parts: it is published, so others see it as
    /// committed meanwhile, and whoever waits for one of its locks goes on when that is released.
    pub fn finish_some(&self, txn: &mut Transaction, ts: Timestamp, count: usize) -> bool {
        txn.check(&self.shared);
        let (len, mut wakes) = (txn.log.len(), Wakes::new());
        let until = txn.finished.saturating_add(count).min(3 * len);
        let bounds = self.bounds();
        let guard = pin();
        for step in txn.finished..until {
            // All are stamped before the first is pruned, and pruned before the first lock goes.
            match (step / len, txn.log[step % len]) {
                (0, Entry::Inserted { table, row } | Entry::Wrote { table, row }) => {
                    txn.table_ref(table).stamp(txn.id(), row, ts, &guard);
                }
                (1, Entry::Wrote { table, row }) => {
                    txn.table_ref(table).prune_written(txn, row, ts, &bounds, &guard);
                }
                (2, entry) => self.release_entry(txn, entry, &mut wakes, &guard),
                _ => {}
            }
        }
        txn.finished = until;
        drop(guard);
        wake_all(wakes);
        until == 3 * len
    }

    /// Undoes everything and ends the transaction. Gives up a wait first.
    pub fn abort(&self, mut txn: Transaction) {
        self.abort_with(&mut txn, || {});
    }

    /// As [`Store::abort`]; calls `undone` when no version is left and every lock is still held. `txn` is to be dropped then.
    pub fn abort_with(&self, txn: &mut Transaction, undone: impl FnOnce()) {
        txn.check(&self.shared);
        self.cancel_wait(txn);
        if !txn.has_rows() {
            undone();
            return self.end_reader(txn);
        }
        let guard = pin();
        self.undo_writes(txn, Transaction::START, &guard, &mut |_| {});
        undone();
        self.end(txn, &guard);
    }

    /// Undoes all writes since `mark`, newest first, and gives back the row and table locks taken since. Who waits for the
    /// end of `txn` because of one of these writes is woken. REQUIRES that no call waits, except for the end of a
    /// transaction.
    pub fn undo_to(&self, txn: &mut Transaction, mark: TxnMark) {
        self.undo_to_with(txn, mark, || {});
    }

    /// As [`Store::undo_to`]; calls `undone` when the writes are undone and every lock is still held.
    pub fn undo_to_with(&self, txn: &mut Transaction, mark: TxnMark, undone: impl FnOnce()) {
        let mut rows: SmallVec<[LockKey; 4]> = SmallVec::new();
        self.undo_entries(txn, mark, undone, &mut |row| {
            if rows.last() != Some(&row) {
                rows.push(row);
            }
        });
        let mut wakes = Wakes::new();
        self.shared.graph.undone(txn.id(), &rows, &self.shared.txns, &mut wakes);
        wake_all(wakes);
    }

    /// Undoes at most `count` of the newest things done since `mark`; whether no more than that are left. They are for
    /// [`Store::undo_to`] or [`Store::abort`]: a caller that has others to serve does a large transaction in parts.
    pub fn undo_some(&self, txn: &mut Transaction, mark: TxnMark, count: usize) -> bool {
        // Keys whose entries go may be longer work than the rest.
        const AT_ONCE: usize = 16;
        let start = work::total();
        for _ in 0..count.div_ceil(AT_ONCE) {
            match txn.mark_before(AT_ONCE).filter(|before| *before > mark) {
                Some(before) => self.undo_to(txn, before),
                None => return true,
            }
            if work::total() - start > work::LONG {
                break;
            }
        }
        false
    }

    /// As [`Store::undo_to_with`]; names the rows whose writes it undoes and wakes nobody because of them.
    fn undo_entries(
        &self,
        txn: &mut Transaction,
        mark: TxnMark,
        undone: impl FnOnce(),
        each_row: &mut dyn FnMut(LockKey),
    ) {
        txn.check(&self.shared);
        let guard = pin();
        self.undo_writes(txn, mark, &guard, each_row);
        undone();
        let mut wakes = Wakes::new();
        while let Some(entry) = txn.pop_to(mark) {
            match entry {
                Entry::Wrote { .. } => {}
                Entry::Inserted { table, row } => {
                    txn.table_ref(table).reduce(txn.id(), row, 0, &mut wakes, &guard);
                }
                Entry::RowLock { table, row, before } => {
                    txn.table_ref(table).reduce(txn.id(), row, before, &mut wakes, &guard);
                }
                Entry::TableLock { oid, before } => {
                    let lock = txn.table_lock(oid);
                    self.reduce_table(txn.id(), oid, lock, before, &mut wakes);
                    txn.set_table_lock(TableLock { modes: before, ..lock });
                }
            }
        }
        drop(guard);
        wake_all(wakes);
    }

    /// Undoes the versions written since `mark`, newest first; their locks stay.
    fn undo_writes(&self, txn: &mut Transaction, mark: TxnMark, guard: &Guard, each_row: &mut dyn FnMut(LockKey)) {
        for at in txn.since(mark).rev() {
            if let Entry::Wrote { table, row } | Entry::Inserted { table, row } = txn.log[at] {
                let table = txn.table(table);
                table.undo(txn, row, guard);
                each_row(table.key_of(row));
            }
        }
    }

    fn end(&self, txn: &Transaction, guard: &Guard) {
        let mut wakes = Wakes::new();
        for entry in txn.log.iter() {
            self.release_entry(txn, *entry, &mut wakes, guard);
        }
        self.end_id(txn, wakes);
    }

    /// As [`Store::end`], of a transaction that has neither written nor locked a row.
    fn end_reader(&self, txn: &Transaction) {
        let mut wakes = Wakes::new();
        for lock in txn.held_tables() {
            self.reduce_table(txn.id(), lock.oid, *lock, 0, &mut wakes);
        }
        self.end_id(txn, wakes);
    }

    /// Releases the lock that an entry stands for, if it is the first of its lock.
    #[inline]
    fn release_entry(&self, txn: &Transaction, entry: Entry, wakes: &mut Wakes, guard: &Guard) {
        match entry {
            Entry::Inserted { table, row } | Entry::RowLock { table, row, before: 0 } => {
                txn.table_ref(table).reduce(txn.id(), row, 0, wakes, guard);
            }
            Entry::TableLock { oid, before: 0 } => self.reduce_table(txn.id(), oid, txn.table_lock(oid), 0, wakes),
            Entry::Wrote { .. } | Entry::RowLock { .. } | Entry::TableLock { .. } => {}
        }
    }

    /// Gives the id back. REQUIRES that all locks are released.
    fn end_id(&self, txn: &Transaction, mut wakes: Wakes) {
        if self.shared.txns.end(txn.id()) {
            self.shared.graph.ended(txn.id(), &mut wakes);
        }
        self.shared.txns.release(txn.id());
        wake_all(wakes);
    }

    /// Locks a row until the end of the transaction. After [`LockResult::Wait`] make the same call again when woken.
    /// A granted row has versions; look at [`Table::newest`] for what it is, and undo to a mark taken before the call if
    /// it turns out to be deleted.
    pub fn lock_row(
        &self,
        txn: &mut Transaction,
        table: &Arc<Table>,
        row: RowId,
        mode: RowLockMode,
        policy: WaitPolicy,
        wake: &Arc<dyn Wakeup>,
    ) -> LockResult {
        txn.check(&self.shared);
        let guard = pin();
        let waited = matches!(&txn.waiting, Some(Waiting::Row(t, r)) if *r == row && Arc::ptr_eq(t, table));
        base::invariant!(waited || !txn.is_waiting(), "{:?} asks for a lock while another call waits", txn.id());
        let Some(header) = table.header(row, &guard) else { return LockResult::Gone };
        // A row without versions is undone, or about to be inserted: in both cases its word is not ours to take.
        if !waited && header.head(&guard).newest.is_none() {
            return LockResult::Gone;
        }
        let lock = table.lock_of(row, header);
        match lock.ask(txn.id(), mode.bit(), (policy == WaitPolicy::Block).then_some(wake)) {
            RowAsk::Dead => LockResult::Gone,
            RowAsk::WouldBlock => LockResult::WouldBlock,
            RowAsk::Waiting => {
                txn.waiting = Some(Waiting::Row(table.clone(), row));
                self.wait(txn, lock.key)
            }
            RowAsk::Granted(before) => {
                self.end_wait(txn);
                if header.head(&guard).newest.is_none() {
                    // Undone by the holder we waited for.
                    let mut wakes = Wakes::new();
                    table.reduce(txn.id(), row, before, &mut wakes, &guard);
                    wake_all(wakes);
                    return LockResult::Gone;
                }
                let newly = !crate::locks::ConflictTable::Row.covers(before, mode.bit());
                if newly {
                    txn.note_row_lock(table, row, before);
                }
                LockResult::Granted { newly }
            }
        }
    }

    /// Locks a table until the end of the transaction, as [`Store::lock_row`] does a row.
    pub fn lock_table(
        &self,
        txn: &mut Transaction,
        table: Oid,
        mode: TableLockMode,
        policy: WaitPolicy,
        wake: &Arc<dyn Wakeup>,
    ) -> LockResult {
        txn.check(&self.shared);
        let (held, wanted) = (txn.table_lock(table), mode.bit());
        if crate::locks::ConflictTable::Table.covers(held.modes, wanted) {
            return LockResult::Granted { newly: false };
        }
        let waited = matches!(txn.waiting, Some(Waiting::Table(oid)) if oid == table);
        base::invariant!(waited || !txn.is_waiting(), "{:?} asks for a lock while another call waits", txn.id());
        let (locks, txns) = (&self.shared.locks, &self.shared.txns);
        if !waited
            && is_weak(wanted)
            && let Some(at) = txn.weak_word(held)
            && locks.ask_weak(&txns.slot(txn.id()).weak, at, table, held.modes, wanted)
        {
            txn.note_table_lock(held, TableLock { modes: held.modes | wanted, weak: Some(at), ..held });
            return LockResult::Granted { newly: true };
        }
        let wake = (policy == WaitPolicy::Block).then_some(wake);
        let answer = locks.ask_table(txns, table, txn.id(), held.weak.map(|at| (at, held.modes)), wanted, wake);
        // Whatever the answer, what was held is in the queue now.
        let held = TableLock { weak: None, ..held };
        txn.set_table_lock(held);
        match answer {
            Ask::WouldBlock => LockResult::WouldBlock,
            Ask::Waiting => {
                txn.waiting = Some(Waiting::Table(table));
                self.wait(txn, LockKey::Table(table))
            }
            Ask::Granted(_) => {
                self.end_wait(txn);
                txn.note_table_lock(held, TableLock { modes: held.modes | wanted, ..held });
                LockResult::Granted { newly: true }
            }
        }
    }

    /// Asks for an advisory lock. Counting is the caller's; so is giving it back ([`Store::reduce_advisory`]) before `txn`
    /// ends.
    pub fn lock_advisory(
        &self,
        txn: &mut Transaction,
        key: AdvisoryKey,
        mode: AdvisoryMode,
        policy: WaitPolicy,
        wake: &Arc<dyn Wakeup>,
    ) -> LockResult {
        txn.check(&self.shared);
        let waited = matches!(txn.waiting, Some(Waiting::Advisory(of)) if of == key);
        base::invariant!(waited || !txn.is_waiting(), "{:?} asks for a lock while another call waits", txn.id());
        let wake = (policy == WaitPolicy::Block).then_some(wake);
        match self.shared.locks.ask_advisory(key, txn.id(), mode.bit(), wake) {
            Ask::WouldBlock => LockResult::WouldBlock,
            Ask::Waiting => {
                txn.waiting = Some(Waiting::Advisory(key));
                self.wait(txn, LockKey::Advisory(key))
            }
            Ask::Granted(before) => {
                self.end_wait(txn);
                LockResult::Granted { newly: before & mode.bit() == 0 }
            }
        }
    }

    /// Makes `txn` hold an advisory lock beside whoever holds it: the lock passes from a session to the transaction that it
    /// has prepared. REQUIRES that the other gives it back, with nothing between.
    pub fn give_advisory(&self, txn: &Transaction, key: AdvisoryKey, mode: AdvisoryMode) {
        txn.check(&self.shared);
        self.shared.locks.give_advisory(key, txn.id(), mode.bit());
    }

    /// Leaves `txn` with these modes of an advisory lock.
    pub fn reduce_advisory(&self, txn: &mut Transaction, key: AdvisoryKey, modes: &[AdvisoryMode]) {
        let mut wakes = Wakes::new();
        let modes = modes.iter().fold(0, |sum, mode| sum | mode.bit());
        self.shared.locks.reduce_queue(LockKey::Advisory(key), txn.id(), modes, &mut wakes);
        wake_all(wakes);
    }

    /// Locks of tables, rows that somebody waits for, advisory locks: who holds and who waits. A list of one moment per lock
    /// only.
    pub fn locks(&self) -> Vec<LockEntry> {
        let mut entries = self.shared.locks.entries(&self.shared.txns);
        entries.extend(self.shared.graph.awaited_ends(&self.shared.txns));
        entries
    }

    /// The transaction is prepared: it works for no session any more.
    pub fn disown(&self, txn: &Transaction) {
        txn.check(&self.shared);
        self.shared.txns.disown(txn.id());
    }

    /// The rows that a transaction has locked, with the modes as bits. Rows that it has inserted are not among them.
    pub fn row_locks(&self, txn: &Transaction) -> Vec<(Arc<Table>, RowId, u8)> {
        let guard = pin();
        let mut locks = Vec::new();
        for entry in txn.log.iter() {
            if let Entry::RowLock { table, row, before: 0 } = *entry {
                let table = txn.table_ref(table);
                if let Some(header) = table.header(row, &guard) {
                    locks.push((table.clone(), row, table.lock_of(row, header).held(txn.id())));
                }
            }
        }
        locks
    }

    /// The session that a running transaction works for; 0 if none.
    pub fn session_of(&self, txn: TxnId) -> u32 {
        self.shared.txns.owner(txn)
    }

    /// Leaves `txn` with `modes` of a table lock.
    fn reduce_table(&self, txn: TxnId, oid: Oid, held: TableLock, modes: Modes, wakes: &mut Wakes) {
        let weak = held.weak.is_some_and(|at| self.shared.txns.slot(txn).weak.reduce(at, oid, held.modes, modes));
        if !weak {
            self.shared.locks.reduce_table(oid, txn, modes, wakes);
        }
    }

    /// Waits until another transaction ends or undoes a write of `row`. `Granted`: it has ended.
    /// After [`LockResult::Wait`] look once more whether there is anything to wait for: it may have been taken back just
    /// before. A repeated call for the same transaction keeps the place in the line.
    pub fn wait_for_txn(
        &self,
        txn: &mut Transaction,
        holder: TxnId,
        table: &Table,
        row: RowId,
        wake: &Arc<dyn Wakeup>,
    ) -> LockResult {
        txn.check(&self.shared);
        let waited = matches!(txn.waiting, None | Some(Waiting::End(_)));
        base::invariant!(waited, "{:?} waits for a transaction while another call waits", txn.id());
        if !matches!(txn.waiting, Some(Waiting::End(before)) if before == holder) {
            self.cancel_wait(txn);
        }
        txn.waiting = None;
        let shared = &self.shared;
        let mut wakes = Wakes::new();
        let key = table.key_of(row);
        let waits = shared.graph.await_end(txn.id(), holder, key, wake, &shared.txns, &shared.locks, &mut wakes);
        wake_all(wakes);
        match waits {
            Ok(true) => {
                txn.waiting = Some(Waiting::End(holder));
                LockResult::Wait
            }
            Ok(false) => LockResult::Granted { newly: false },
            Err(cycle) => LockResult::Deadlock(cycle),
        }
    }

    fn wait(&self, txn: &mut Transaction, key: LockKey) -> LockResult {
        let mut wakes = Wakes::new();
        let cycle = self.shared.graph.enter(txn.id(), key, &self.shared.txns, &self.shared.locks, &mut wakes);
        wake_all(wakes);
        match cycle {
            None => LockResult::Wait,
            Some(cycle) => {
                self.cancel_wait(txn);
                LockResult::Deadlock(cycle)
            }
        }
    }

    fn end_wait(&self, txn: &mut Transaction) {
        if txn.waiting.take().is_some() {
            self.shared.graph.leave(txn.id());
        }
    }

    /// Gives up the wait that the last call began, and the lock if it was handed over meanwhile.
    pub fn cancel_wait(&self, txn: &mut Transaction) {
        let Some(waiting) = txn.waiting.take() else { return };
        let mut wakes = Wakes::new();
        match waiting {
            Waiting::Row(table, row) => {
                let guard = pin();
                table.cancel(txn.id(), row, &mut wakes, &guard);
                self.shared.graph.leave(txn.id());
            }
            Waiting::Table(oid) => {
                self.shared.locks.cancel_table(oid, txn.id(), &mut wakes);
                self.shared.graph.leave(txn.id());
            }
            Waiting::Advisory(key) => {
                self.shared.locks.cancel_queue(LockKey::Advisory(key), txn.id(), &mut wakes);
                self.shared.graph.leave(txn.id());
            }
            Waiting::End(holder) => self.shared.graph.cancel_end(txn.id(), holder),
        }
        wake_all(wakes);
    }

    /// Whether somebody may hold or wait for a lock of a table that stands against readers or writers. Cheap; may say so of a table
    /// that nobody has locked.
    pub fn may_be_locked(&self, table: Oid) -> bool {
        self.shared.locks.may_be_guarded(table)
    }

    /// All waits, as (waiter, what for, holder).
    pub fn waits(&self) -> Vec<WaitEdge> {
        self.shared.graph.edges(&self.shared.locks, &self.shared.txns)
    }

    /// Whether `txn` is still running.
    pub fn is_active(&self, txn: TxnId) -> bool {
        self.shared.txns.is_active(txn)
    }

    /// Registers a view at the visible horizon. Give it back with [`Store::end_view`].
    pub fn begin_view(&self) -> ViewToken {
        self.begin_view_for(0)
    }

    /// As [`Store::begin_view`], of a session.
    pub fn begin_view_for(&self, session: u32) -> ViewToken {
        self.shared.views.register(session)
    }

    /// The view that holds most versions back which could go otherwise: how many, and whose views of that time there are, 0 for
    /// those of no session.
    pub fn most_held(&self) -> Option<(usize, Vec<u32>)> {
        let (ts, count) = self.shared.garbage.most_held()?;
        Some((count, self.shared.views.owners(ts)))
    }

    /// Registers a second view at the timestamp of one that is held (a scan that outlives its command).
    pub fn share_view(&self, held: &ViewToken) -> ViewToken {
        self.shared.views.share(held)
    }

    /// Ends a view.
    pub fn end_view(&self, token: ViewToken) {
        self.shared.views.end(token);
    }

    /// The visible horizon: the timestamp of the last commit published.
    pub fn horizon(&self) -> Timestamp {
        self.shared.views.horizon()
    }

    /// The timestamps of the registered views, ascending.
    pub fn active_views(&self) -> Vec<Timestamp> {
        self.shared.views.active().reads.to_vec()
    }

    fn bounds(&self) -> Bounds {
        let durable = Timestamp(self.shared.durable.load(Ordering::Acquire));
        Bounds { views: self.shared.views.active(), durable }
    }

    /// Prunes the rows of at most `budget` versions that could not go when they were superseded. Never waits; rows that are locked
    /// stay queued. May run on any thread.
    pub fn collect(&self, budget: usize) -> Collected {
        const ROWS_PER_GUARD: usize = 64;
        let bounds = self.bounds();
        let rows = self.shared.garbage.take(&bounds, budget);
        let mut done = Collected::default();
        for part in rows.chunks(ROWS_PER_GUARD) {
            let guard = pin();
            let rows: SmallVec<[_; ROWS_PER_GUARD]> =
                part.iter().map(|version| (version.table.upgrade(), version.row, version.begin)).collect();
            // Whoever wrote them has them in its caches: header, newest version and the one below are asked for before.
            for depth in 0..3 {
                let there = rows.iter().filter_map(|(table, row, _)| Some((table.as_ref()?, *row)));
                there.for_each(|(table, row)| table.prefetch(row, depth, &guard));
            }
            for (table, row, begin) in rows {
                done.rows += 1;
                // A table that was dropped has freed its rows itself.
                let clean = table.is_none_or(|table| table.collect_row(row, begin, &bounds, &guard));
                done.cleaned += usize::from(clean);
            }
        }
        done.queued = self.shared.garbage.len();
        done
    }

    /// Bytes of the list of what waits to be freed.
    pub fn garbage_bytes(&self) -> usize {
        self.shared.garbage.bytes()
    }

    /// Versions that wait to be freed.
    pub fn garbage_len(&self) -> usize {
        self.shared.garbage.len()
    }
}
