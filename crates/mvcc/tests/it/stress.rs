//! Threads transfer money, scan and collect at the same time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use base::{CommandId, RowId, Timestamp};
use mvcc::{LockResult, Newest, Read, RowLockMode, Transaction, View, WaitPolicy, Wakeup, pin};

use crate::support::{LAYOUT, World};

#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Wakeup for Gate {
    fn wake(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
}

impl Gate {
    fn wait(&self) {
        let mut open = self.0.lock().unwrap();
        while !*open {
            open = self.1.wait(open).unwrap();
        }
        *open = false;
    }
}

struct Bank {
    w: World,
    log: Mutex<u64>,
    stop: AtomicBool,
}

const ACCOUNTS: u64 = 8;
const START: i64 = 1000;

impl Bank {
    fn commit(&self, txn: Transaction) {
        let mut log = self.log.lock().unwrap();
        *log += 1;
        let ts = Timestamp(*log);
        self.w.store.publish(&txn, ts);
        drop(log);
        self.w.store.finish_commit(txn, ts);
        self.w.store.raise_durable(ts);
    }

    /// `false`: deadlock.
    fn lock(&self, txn: &mut Transaction, row: RowId, gate: &Arc<Gate>) -> bool {
        let wake: Arc<dyn Wakeup> = gate.clone();
        loop {
            match self.w.store.lock_row(txn, &self.w.table, row, RowLockMode::NoKeyUpdate, WaitPolicy::Block, &wake) {
                LockResult::Granted { .. } => return true,
                LockResult::Wait => gate.wait(),
                LockResult::Deadlock(_) => return false,
                other => panic!("{other:?}"),
            }
        }
    }

    fn add(&self, txn: &mut Transaction, row: RowId, amount: i64) {
        let guard = pin();
        let Newest::Live(now) = self.w.table.newest(row, Some(txn.id()), &guard) else { panic!("no account") };
        let sum = i64::from_le_bytes(now.tuple.try_into().unwrap()) + amount;
        self.w.table.update(txn, row, CommandId(0), LAYOUT, &sum.to_le_bytes(), false, &guard);
    }

    fn transfer(&self, from: RowId, to: RowId, gate: &Arc<Gate>, abort: bool) -> bool {
        let mut txn = self.w.begin();
        for (row, amount) in [(from, -1), (to, 1)] {
            if !self.lock(&mut txn, row, gate) {
                self.w.store.abort(txn);
                return false;
            }
            self.add(&mut txn, row, amount);
        }
        if abort {
            self.w.store.abort(txn)
        } else {
            self.commit(txn)
        }
        true
    }

    fn sum(&self) -> i64 {
        let token = self.w.store.begin_view();
        let view = View { read_ts: token.read_ts(), own: None, command: CommandId(0) };
        let (mut sum, mut count) = (0, 0);
        for row in 0..ACCOUNTS {
            let guard = pin();
            match self.w.table.read(RowId(row), &view, &guard) {
                Read::Visible(v) => {
                    assert!(v.ts <= view.read_ts);
                    sum += i64::from_le_bytes(v.tuple.try_into().unwrap());
                    count += 1;
                }
                other => panic!("account {row} at {:?}: {other:?}", view.read_ts),
            }
        }
        self.w.store.end_view(token);
        assert_eq!(count, ACCOUNTS);
        sum
    }
}

#[test]
fn transfers_keep_the_sum() {
    let bank = Bank { w: World::new(), log: Mutex::new(1), stop: AtomicBool::new(false) };
    let mut txn = bank.w.begin();
    for _ in 0..ACCOUNTS {
        bank.w.table.insert(&mut txn, CommandId(0), LAYOUT, &START.to_le_bytes(), &pin());
    }
    bank.commit(txn);
    let (done, deadlocks) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let rounds = if cfg!(miri) { 30 } else { 20_000 };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u64)
            .map(|seed| {
                let (bank, done, deadlocks) = (&bank, &done, &deadlocks);
                scope.spawn(move || {
                    let gate = Arc::new(Gate::default());
                    let mut x = seed * 7919 + 12345;
                    for _ in 0..rounds {
                        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        let (from, to) = ((x >> 33) % ACCOUNTS, (x >> 40) % ACCOUNTS);
                        let ok = bank.transfer(RowId(from), RowId(to), &gate, (x >> 50).is_multiple_of(8));
                        if ok { done } else { deadlocks }.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while !bank.stop.load(Ordering::Relaxed) {
                    assert_eq!(bank.sum(), START * ACCOUNTS as i64);
                }
            });
        }
        scope.spawn(|| {
            while !bank.stop.load(Ordering::Relaxed) {
                bank.w.store.collect(16);
                bank.w.compact();
            }
        });
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        bank.stop.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
    });
    assert_eq!(bank.sum(), START * ACCOUNTS as i64);
    assert!(done.load(Ordering::Relaxed) > 0);
    assert!(bank.w.store.waits().is_empty() && bank.w.store.active_views().is_empty());
    bank.w.store.collect(usize::MAX);
    assert_eq!(bank.w.store.garbage_len(), 0);
}

/// Rows come and go under scans; what is inserted and deleted in one commit each is never seen half.
#[test]
fn rows_come_and_go_under_scans() {
    let bank = Bank { w: World::new(), log: Mutex::new(1), stop: AtomicBool::new(false) };
    let pairs = if cfg!(miri) { 20 } else { 5_000 };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !bank.stop.load(Ordering::Relaxed) {
                    let token = bank.w.store.begin_view();
                    let view = View { read_ts: token.read_ts(), own: None, command: CommandId(0) };
                    let mut seen = 0;
                    bank.w.table.scan(RowId(0), bank.w.table.end(), true, &view, &pin(), |_, read| {
                        seen += usize::from(matches!(read, Read::Visible(_)));
                        true
                    });
                    bank.w.store.end_view(token);
                    assert_eq!(seen % 2, 0, "rows come and go in pairs");
                }
            });
        }
        scope.spawn(|| {
            while !bank.stop.load(Ordering::Relaxed) {
                bank.w.store.collect(64);
                bank.w.compact();
            }
        });
        let writers: Vec<_> = (0..2).map(|_| scope.spawn(|| come_and_go(&bank, pairs))).collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        bank.stop.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
    });
    bank.w.store.collect(usize::MAX);
    assert_eq!((bank.w.table.row_count(), bank.w.table.memory().versions), (0, 0));
}

fn come_and_go(bank: &Bank, pairs: usize) {
    for i in 0..pairs {
        let mut txn = bank.w.begin();
        let rows = [bank.w.insert(&mut txn, 0, "left"), bank.w.insert(&mut txn, 0, "right")];
        if i % 5 == 0 {
            bank.w.store.abort(txn);
            continue;
        }
        bank.commit(txn);
        let mut txn = bank.w.begin();
        let gate = Arc::new(Gate::default());
        for row in rows {
            let wake: Arc<dyn Wakeup> = gate.clone();
            let locked =
                bank.w.store.lock_row(&mut txn, &bank.w.table, row, RowLockMode::Update, WaitPolicy::Block, &wake);
            assert_eq!(locked, LockResult::Granted { newly: true });
            bank.w.delete(&mut txn, row, 0);
        }
        bank.commit(txn);
    }
}
