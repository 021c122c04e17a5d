//! A store with one table, and the verbs that tests are written in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use base::{CommandId, LayoutId, Oid, RowId, Timestamp, Unseen};
use mvcc::{
    Density, LockResult, NoIndexes, Read, RowGarbage, RowLockMode, Store, StoreOptions, Table, Transaction, View,
    ViewToken, WaitPolicy, Wakeup, pin,
};

pub const LAYOUT: LayoutId = LayoutId(1);

pub struct World {
    pub store: Store,
    pub table: Arc<Table>,
    clock: AtomicU64,
}

/// Counts its calls.
#[derive(Default)]
pub struct Bell(AtomicUsize);

impl Wakeup for Bell {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Bell {
    pub fn rung(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub fn bell() -> Arc<Bell> {
    Arc::default()
}

impl World {
    pub fn new() -> World {
        World::with_indexes(Arc::new(NoIndexes))
    }

    pub fn with_indexes(indexes: Arc<dyn RowGarbage>) -> World {
        let options = StoreOptions { horizon: Timestamp(1), memory_limit: 1 << 40 };
        let store = Store::new(options);
        let table = Arc::new(store.new_table(Oid(16384), indexes));
        World { store, table, clock: AtomicU64::new(1) }
    }

    pub fn begin(&self) -> Transaction {
        self.store.begin_txn().unwrap()
    }

    pub fn commit(&self, txn: Transaction) -> Timestamp {
        let ts = Timestamp(self.clock.fetch_add(1, Ordering::SeqCst) + 1);
        self.store.publish(&txn, ts);
        self.store.finish_commit(txn, ts);
        ts
    }

    pub fn abort<const N: usize>(&self, txns: [Transaction; N]) {
        txns.into_iter().for_each(|txn| self.store.abort(txn));
    }

    pub fn durable(&self) {
        self.store.raise_durable(Timestamp(self.clock.load(Ordering::SeqCst)));
    }

    pub fn insert(&self, txn: &mut Transaction, command: u32, tuple: &str) -> RowId {
        self.table.insert(txn, CommandId(command), LAYOUT, tuple.as_bytes(), &pin())
    }

    /// One committed row.
    pub fn row(&self, tuple: &str) -> RowId {
        let mut txn = self.begin();
        let row = self.insert(&mut txn, 0, tuple);
        self.commit(txn);
        row
    }

    pub fn update(&self, txn: &mut Transaction, row: RowId, command: u32, tuple: &str) {
        self.table.update(txn, row, CommandId(command), LAYOUT, tuple.as_bytes(), false, &pin());
    }

    pub fn delete(&self, txn: &mut Transaction, row: RowId, command: u32) {
        self.table.delete(txn, row, CommandId(command), &pin());
    }

    pub fn lock(&self, txn: &mut Transaction, row: RowId, mode: RowLockMode, bell: &Arc<Bell>) -> LockResult {
        let bell: Arc<dyn Wakeup> = bell.clone();
        self.store.lock_row(txn, &self.table, row, mode, WaitPolicy::Block, &bell)
    }

    pub fn try_lock(&self, txn: &mut Transaction, row: RowId, mode: RowLockMode) -> LockResult {
        let bell: Arc<dyn Wakeup> = bell();
        self.store.lock_row(txn, &self.table, row, mode, WaitPolicy::Never, &bell)
    }

    /// Locks without contention and updates, in a transaction of its own.
    pub fn set(&self, row: RowId, tuple: &str) -> Timestamp {
        let mut txn = self.begin();
        assert_eq!(self.try_lock(&mut txn, row, RowLockMode::NoKeyUpdate), GRANTED);
        self.update(&mut txn, row, 0, tuple);
        self.commit(txn)
    }

    pub fn remove(&self, row: RowId) -> Timestamp {
        let mut txn = self.begin();
        assert_eq!(self.try_lock(&mut txn, row, RowLockMode::Update), GRANTED);
        self.delete(&mut txn, row, 0);
        self.commit(txn)
    }

    /// Moves the rows that lie sparse; in a test that is all of them. Answers how many were moved.
    pub fn compact(&self) -> usize {
        let mut density = Density::default();
        let end = self.table.end();
        assert_eq!(self.table.count_density(RowId(0), end, usize::MAX, &mut density), end);
        let (next, moved) = self.table.compact(RowId(0), end, usize::MAX, &mut density);
        assert_eq!(next, end);
        moved
    }

    /// What a view sees: the tuple, `-` for a deleted row, nothing for an absent one.
    pub fn see(&self, row: RowId, view: View) -> String {
        show(self.table.read(row, &view, &pin()))
    }

    pub fn see_at(&self, row: RowId, token: &ViewToken) -> String {
        self.see(row, View { read_ts: token.read_ts(), own: None, command: CommandId(0) })
    }

    /// What a view taken now sees.
    pub fn see_now(&self, row: RowId) -> String {
        let token = self.store.begin_view();
        let seen = self.see_at(row, &token);
        self.store.end_view(token);
        seen
    }

    /// What command `command` of `txn` sees.
    pub fn own(&self, row: RowId, txn: &Transaction, command: u32) -> String {
        let read_ts = self.store.horizon();
        self.see(row, View { read_ts, own: Some(txn.id()), command: CommandId(command) })
    }
}

pub const GRANTED: LockResult = LockResult::Granted { newly: true };
pub const HELD: LockResult = LockResult::Granted { newly: false };

pub fn show(read: Read<'_>) -> String {
    match read {
        Read::Visible(version) => String::from_utf8(version.tuple.to_vec()).unwrap(),
        Read::Gone(_) => "-".into(),
        Read::Absent => String::new(),
    }
}

/// Whether what views were told agrees with when transactions committed, `None` if they were undone.
pub fn check_unseen(ends: &[(u64, Option<Timestamp>)], told: &[(Timestamp, Unseen)]) {
    for (view, Unseen { limit, below }) in told {
        assert!(below.is_sorted() && below.last().is_none_or(|last| last < limit));
        for (number, committed) in ends {
            let is_unseen = number >= limit || below.binary_search(number).is_ok();
            match committed {
                Some(ts) if ts <= view => {
                    assert!(number < limit && !is_unseen, "{number} at {ts:?}, the view at {view:?}")
                }
                Some(ts) => assert!(is_unseen, "{number} at {ts:?} is after the view at {view:?}"),
                None => {}
            }
        }
    }
}
