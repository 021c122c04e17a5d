//! Small races under random schedules.

use std::sync::Arc;

use base::{CommandId, Oid, RowId, Timestamp};
use mvcc::{LockResult, Memory, Newest, Read, RowLockMode, TableLockMode, Transaction, View, WaitPolicy, Wakeup, pin};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

use crate::support::{GRANTED, LAYOUT, World, check_unseen};

const SCHEDULES: usize = 2000;

struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn new() -> Arc<Gate> {
        Arc::new(Gate(Mutex::new(false), Condvar::new()))
    }

    fn wait(&self) {
        let mut open = self.0.lock().unwrap();
        while !*open {
            open = self.1.wait(open).unwrap();
        }
        *open = false;
    }
}

impl Wakeup for Gate {
    fn wake(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
}

pub struct Shard {
    pub w: World,
    log: Mutex<u64>,
}

impl Shard {
    pub fn new() -> Arc<Shard> {
        Arc::new(Shard { w: World::new(), log: Mutex::new(100) })
    }

    fn commit(&self, txn: Transaction) {
        let ts = self.stamp(&txn);
        self.finish(txn, ts);
    }

    /// Timestamp and publication, one step.
    pub fn stamp(&self, txn: &Transaction) -> Timestamp {
        let mut log = self.log.lock().unwrap();
        *log += 1;
        let ts = Timestamp(*log);
        self.w.store.publish(txn, ts);
        ts
    }

    pub fn finish(&self, txn: Transaction, ts: Timestamp) {
        self.w.store.finish_commit(txn, ts);
        self.w.store.raise_durable(ts);
    }

    pub fn lock(&self, txn: &mut Transaction, row: RowId, mode: RowLockMode) -> LockResult {
        let gate = Gate::new();
        let wake: Arc<dyn Wakeup> = gate.clone();
        loop {
            match self.w.store.lock_row(txn, &self.w.table, row, mode, WaitPolicy::Block, &wake) {
                LockResult::Wait => gate.wait(),
                answer => return answer,
            }
        }
    }

    pub fn add(&self, txn: &mut Transaction, row: RowId) {
        let guard = pin();
        let Newest::Live(now) = self.w.table.newest(row, Some(txn.id()), &guard) else { panic!("not live") };
        let next = [now.tuple[0] + 1];
        self.w.table.update(txn, row, CommandId(0), LAYOUT, &next, false, &guard);
    }

    pub fn counter(&self) -> RowId {
        let mut txn = self.w.begin();
        let row = self.w.table.insert(&mut txn, CommandId(0), LAYOUT, &[0], &pin());
        self.commit(txn);
        row
    }

    fn see(&self, row: RowId) -> u8 {
        self.see_with_writer(row).0
    }

    /// The number, and the tag of the transaction that wrote it.
    fn see_with_writer(&self, row: RowId) -> (u8, u32) {
        let token = self.w.store.begin_view();
        let view = View { read_ts: token.read_ts(), own: None, command: CommandId(0) };
        let guard = pin();
        let Read::Visible(version) = self.w.table.read(row, &view, &guard) else { panic!("must be seen at {view:?}") };
        let seen = (version.tuple[0], version.writer);
        drop(guard);
        self.w.store.end_view(token);
        seen
    }
}

/// Runs random schedules, which switch often, and ones with few switches (PCT), which let a task stand still for long:
/// some races need the other side to finish a whole commit within two instructions.
pub fn run(test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    let mut config = shuttle::Config::new();
    // A store is built on the stack before it is moved to the heap.
    config.stack_size = 1 << 20;
    let again = test.clone();
    shuttle::Runner::new(RandomScheduler::new(SCHEDULES), config.clone()).run(move || test());
    shuttle::Runner::new(PctScheduler::new(3, SCHEDULES), config).run(move || again());
}

#[test]
fn increments_are_not_lost_and_readers_always_see_one() {
    run(|| {
        let shard = Shard::new();
        let row = shard.counter();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let shard = shard.clone();
                thread::spawn(move || {
                    let mut txn = shard.w.begin();
                    assert_eq!(shard.lock(&mut txn, row, RowLockMode::NoKeyUpdate), GRANTED);
                    shard.add(&mut txn, row);
                    shard.commit(txn);
                })
            })
            .collect();
        let reader = {
            let shard = shard.clone();
            thread::spawn(move || {
                let first = shard.see(row);
                shard.w.store.collect(4);
                shard.w.compact();
                assert!(shard.see(row) >= first, "views move forward");
            })
        };
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        reader.join().unwrap();
        assert_eq!(shard.see(row), 2);
    });
}

/// Before a version is stamped its writer stands in it, and where the command stood stands its writer's tag after: a reader that
/// looks meanwhile is told the one or the other, and both are the same.
#[test]
fn a_reader_is_told_who_wrote_what_it_sees() {
    run(|| {
        let shard = Shard::new();
        let row = shard.counter();
        let told = Arc::new(Mutex::new(vec![shard.see_with_writer(row)]));
        let writer = {
            let (shard, told) = (shard.clone(), told.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let mut txn = shard.w.begin();
                    assert_eq!(shard.lock(&mut txn, row, RowLockMode::NoKeyUpdate), GRANTED);
                    shard.add(&mut txn, row);
                    let value = told.lock().unwrap().len() as u8;
                    told.lock().unwrap().push((value, txn.id().tag()));
                    shard.commit(txn);
                }
            })
        };
        for _ in 0..3 {
            let seen = shard.see_with_writer(row);
            assert_eq!(told.lock().unwrap()[seen.0 as usize], seen);
            shard.w.compact();
        }
        writer.join().unwrap();
        assert_eq!(shard.see_with_writer(row), told.lock().unwrap()[2]);
    });
}

/// A number that is below a view's limit is that of a transaction that it sees, or is named, or is nobody's: the one who takes
/// the rest of a block away and the one who takes a number from it, or a new block, find each other.
#[test]
fn a_view_is_told_of_every_number_that_it_does_not_see() {
    run(|| {
        let shard = Shard::new();
        shard.counter();
        let ends = Arc::new(Mutex::new(Vec::new()));
        let writers: Vec<_> = (0..2)
            .map(|undone| {
                let (shard, ends) = (shard.clone(), ends.clone());
                thread::spawn(move || {
                    for round in 0..2 {
                        let txn = shard.w.begin();
                        let number = txn.id().xid8();
                        let end = if round == undone {
                            shard.w.store.abort(txn);
                            None
                        } else {
                            let ts = shard.stamp(&txn);
                            shard.finish(txn, ts);
                            Some(ts)
                        };
                        ends.lock().unwrap().push((number, end));
                    }
                })
            })
            .collect();
        let mut told = Vec::new();
        for _ in 0..2 {
            let token = shard.w.store.begin_view();
            told.push((token.read_ts(), shard.w.store.unseen(token.read_ts()).unwrap()));
            shard.w.store.end_view(token);
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        check_unseen(&ends.lock().unwrap(), &told);
    });
}

#[test]
fn crossing_locks_end_in_one_deadlock_at_most() {
    run(|| {
        let shard = Shard::new();
        let rows = [shard.counter(), shard.counter()];
        let tasks: Vec<_> = [[0, 1], [1, 0]]
            .map(|order| {
                let shard = shard.clone();
                thread::spawn(move || {
                    let mut txn = shard.w.begin();
                    for at in order {
                        match shard.lock(&mut txn, rows[at], RowLockMode::Update) {
                            LockResult::Deadlock(edges) => {
                                assert_eq!(edges.len(), 2);
                                shard.w.store.abort(txn);
                                return 0;
                            }
                            answer => assert_eq!(answer, GRANTED),
                        }
                        shard.add(&mut txn, rows[at]);
                    }
                    shard.commit(txn);
                    1
                })
            })
            .into();
        let done: u8 = tasks.into_iter().map(|task| task.join().unwrap()).sum();
        assert!(done >= 1, "one victim is enough");
        assert_eq!(rows.map(|row| shard.see(row)), [done, done]);
        assert!(shard.w.store.waits().is_empty());
    });
}

#[test]
fn an_end_wakes_whoever_waits_for_it() {
    run(|| {
        let shard = Shard::new();
        let holder = shard.w.begin();
        let id = holder.id();
        let waiter = {
            let shard = shard.clone();
            thread::spawn(move || {
                let mut txn = shard.w.begin();
                let gate = Gate::new();
                let wake: Arc<dyn Wakeup> = gate.clone();
                while shard.w.store.wait_for_txn(&mut txn, id, &shard.w.table, RowId(0), &wake) == LockResult::Wait {
                    gate.wait();
                }
                assert!(!shard.w.store.is_active(id));
                shard.w.store.abort(txn);
            })
        };
        shard.commit(holder);
        let next = shard.w.begin();
        waiter.join().unwrap();
        shard.w.store.abort(next);
    });
}

#[test]
fn a_waiter_of_an_undone_insert_finds_it_gone() {
    run(|| {
        let shard = Shard::new();
        let mut writer = shard.w.begin();
        let row = shard.w.insert(&mut writer, 0, "x");
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let shard = shard.clone();
                thread::spawn(move || {
                    let mut txn = shard.w.begin();
                    assert_eq!(shard.lock(&mut txn, row, RowLockMode::KeyShare), LockResult::Gone);
                    shard.w.store.abort(txn);
                })
            })
            .collect();
        shard.w.store.abort(writer);
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(shard.w.table.row_count(), 0);
    });
}

#[test]
fn an_undone_write_wakes_whoever_waits_because_of_it() {
    run(|| {
        let shard = Shard::new();
        let mut holder = shard.w.begin();
        let (id, mark) = (holder.id(), holder.mark());
        let row = shard.w.insert(&mut holder, 0, "x");
        let waiter = {
            let shard = shard.clone();
            thread::spawn(move || {
                let mut txn = shard.w.begin();
                let gate = Gate::new();
                let wake: Arc<dyn Wakeup> = gate.clone();
                let undecided = || matches!(shard.w.table.newest(row, None, &pin()), Newest::Undecided { .. });
                while undecided() {
                    if shard.w.store.wait_for_txn(&mut txn, id, &shard.w.table, row, &wake) != LockResult::Wait {
                        break;
                    }
                    // The second look that the store asks for.
                    if undecided() {
                        gate.wait();
                    }
                }
                shard.w.store.cancel_wait(&mut txn);
                shard.w.store.abort(txn);
            })
        };
        shard.w.store.undo_to(&mut holder, mark);
        waiter.join().unwrap();
        shard.commit(holder);
    });
}

#[test]
fn cancelling_meets_the_hand_over() {
    run(|| {
        let shard = Shard::new();
        let row = shard.counter();
        let mut holder = shard.w.begin();
        assert_eq!(shard.lock(&mut holder, row, RowLockMode::Update), GRANTED);
        let quitter = {
            let shard = shard.clone();
            thread::spawn(move || {
                let mut txn = shard.w.begin();
                let wake: Arc<dyn Wakeup> = Gate::new();
                let mode = RowLockMode::Update;
                shard.w.store.lock_row(&mut txn, &shard.w.table, row, mode, WaitPolicy::Block, &wake);
                shard.w.store.cancel_wait(&mut txn);
                shard.w.store.abort(txn);
            })
        };
        let patient = {
            let shard = shard.clone();
            thread::spawn(move || {
                let mut txn = shard.w.begin();
                assert_eq!(shard.lock(&mut txn, row, RowLockMode::Update), GRANTED);
                shard.w.store.abort(txn);
            })
        };
        shard.w.store.abort(holder);
        quitter.join().unwrap();
        patient.join().unwrap();
    });
}

#[test]
fn a_strong_table_lock_is_held_alone() {
    use shuttle::sync::atomic::{AtomicU64, Ordering};
    const STRONG: u64 = 100;
    run(|| {
        let shard = Shard::new();
        // The slots are made here: making them on first use is std's business, which shuttle does not schedule.
        shard.counter();
        let inside = Arc::new(AtomicU64::new(0));
        let modes = [TableLockMode::AccessExclusive, TableLockMode::RowExclusive, TableLockMode::AccessShare];
        let tasks: Vec<_> = modes
            .into_iter()
            .map(|mode| {
                let (shard, inside) = (shard.clone(), inside.clone());
                thread::spawn(move || {
                    for _ in 0..2 {
                        let mut txn = shard.w.begin();
                        let gate = Gate::new();
                        let wake: Arc<dyn Wakeup> = gate.clone();
                        while shard.w.store.lock_table(&mut txn, Oid(1), mode, WaitPolicy::Block, &wake)
                            == LockResult::Wait
                        {
                            gate.wait();
                        }
                        let is_strong = mode == TableLockMode::AccessExclusive;
                        let more = if is_strong { STRONG } else { 1 };
                        let before = inside.fetch_add(more, Ordering::SeqCst);
                        assert!(if is_strong { before == 0 } else { before < STRONG }, "{mode:?} beside {before}");
                        inside.fetch_sub(more, Ordering::SeqCst);
                        shard.w.store.abort(txn);
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn what_is_measured_is_seen_whole() {
    run(|| {
        let memory = Arc::new(Memory::new(1 << 30));
        memory.charge(1000);
        let measuring = {
            let memory = memory.clone();
            thread::spawn(move || {
                for bytes in [500_000, 20, 900] {
                    memory.set_other(1, bytes);
                    memory.set_other_beyond(2, bytes, 100);
                }
            })
        };
        for _ in 0..4 {
            let now = memory.in_use(1);
            assert_eq!(now.total, 1000 + now.kind + now.beyond, "{now:?}");
        }
        measuring.join().unwrap();
    });
}
