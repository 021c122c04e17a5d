//! Lines of transactions at one row or one key: who is next, who is woken, what is found then.

use base::{Error, RowId, SqlState};
use engine::Shard;
use engine_api::*;
use env::sim::{SimDisk, SimRandom};

use crate::support::*;

const UPSERT: ConflictArbiter = ConflictArbiter::Index(BY_ID);

/// Makes a call until it needs not wait any more.
fn await_step<T>(txn: &mut dyn Txn, mut call: impl FnMut(&mut dyn Txn) -> base::Result<Step<T>>) -> base::Result<T> {
    loop {
        match call(txn)? {
            Step::Ready(value) => return Ok(value),
            Step::Wait(wait) => {
                while !wait.is_over() {
                    std::thread::yield_now();
                }
            }
        }
    }
}

fn commit_lazily(mut txn: Box<dyn Txn>) {
    await_step(&mut *txn, |txn| txn.commit(Durability::Off)).unwrap();
}

fn lock(txn: &mut dyn Txn, row: RowId, policy: WaitPolicy) -> base::Result<Step<RowLockOutcome>> {
    let table = txn.open_table(ACCOUNTS)?;
    txn.lock_row(&table, row, RowLockMode::Update, policy, &mut RowBatch::new())
}

/// `INSERT … VALUES (id, 1) ON CONFLICT (id) DO UPDATE SET balance = balance + 1`.
fn upsert(txn: &mut dyn Txn, id: i32) -> base::Result<()> {
    txn.begin_command();
    let table = txn.open_table(ACCOUNTS)?;
    loop {
        let row = match await_step(txn, |txn| txn.insert(&table, &tuple(id, 1), UPSERT))? {
            InsertOutcome::Inserted(_) => return Ok(()),
            InsertOutcome::Conflict(row) => row,
        };
        let mut newest = RowBatch::new();
        let found = await_step(txn, |txn| {
            newest.clear();
            txn.lock_row(&table, row, RowLockMode::NoKeyUpdate, WaitPolicy::Block, &mut newest)
        })?;
        match found {
            RowLockOutcome::Locked => assert!(txn.fetch(&table, row, &mut newest)?),
            RowLockOutcome::Moved => {}
            RowLockOutcome::Own | RowLockOutcome::OwnUnlocked | RowLockOutcome::Gone | RowLockOutcome::Skipped => {
                continue;
            }
        }
        let changed = tuple(id, balance(newest.row(0).tuple) + 1);
        return await_step(txn, |txn| txn.update(&table, row, &changed));
    }
}

fn delete(txn: &mut dyn Txn, id: i32) -> base::Result<Option<i64>> {
    txn.begin_command();
    let Some((row, seen)) = find(txn, id) else { return Ok(None) };
    let table = txn.open_table(ACCOUNTS)?;
    let mut newest = RowBatch::new();
    let found = await_step(txn, |txn| {
        newest.clear();
        txn.lock_row(&table, row, RowLockMode::Update, WaitPolicy::Block, &mut newest)
    })?;
    let gone = match found {
        RowLockOutcome::Locked => seen,
        RowLockOutcome::Moved => balance(newest.row(0).tuple),
        RowLockOutcome::Own | RowLockOutcome::OwnUnlocked | RowLockOutcome::Gone | RowLockOutcome::Skipped => {
            return Ok(None);
        }
    };
    txn.delete(&table, row)?;
    Ok(Some(gone))
}

#[test]
fn a_key_that_is_taken_back_to_a_savepoint_is_free_at_once() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let mut holder = begin(&shard, isolation);
        let point = holder.savepoint();
        ready(insert(&mut *holder, 5, 1));
        let (mut first, mut second) = (begin(&shard, isolation), begin(&shard, isolation));
        let (one, two) = (waits(insert(&mut *first, 5, 2)), waits(insert(&mut *second, 5, 3)));
        holder.rollback_to(point);
        assert!(one.is_over() && two.is_over());
        ready(insert(&mut *first, 5, 2));
        let two = waits(insert(&mut *second, 5, 3));
        holder.rollback();
        assert!(!two.is_over(), "the one who has the key now is waited for");
        first.rollback();
        assert!(two.is_over());
        ready(insert(&mut *second, 5, 3));
        second.rollback();
    }
    assert_eq!(all(&shard), [(0, 100)]);
}

#[test]
fn a_key_given_up_by_an_update_that_is_undone_is_free_at_once() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let mut holder = begin(&shard, Isolation::ReadCommitted);
    let point = holder.savepoint();
    let (row, _) = find(&mut *holder, 0).unwrap();
    ready(lock(&mut *holder, row, WaitPolicy::Block));
    let table = holder.open_table(ACCOUNTS).unwrap();
    ready(holder.update(&table, row, &tuple(7, 100)));
    let mut new_key = begin(&shard, Isolation::ReadCommitted);
    let wait = waits(insert(&mut *new_key, 7, 1));
    let mut old_key = begin(&shard, Isolation::ReadCommitted);
    let still = waits(insert(&mut *old_key, 0, 1));
    holder.rollback_to(point);
    assert!(wait.is_over() && still.is_over());
    ready(insert(&mut *new_key, 7, 1));
    let error = insert(&mut *old_key, 0, 1).unwrap_err();
    assert_eq!(error.code(), SqlState::UNIQUE_VIOLATION);
    commit(&shard, new_key);
    commit(&shard, holder);
    assert_eq!(all(&shard), [(0, 100), (1, 100), (7, 1)]);
}

#[test]
fn who_must_go_on_waiting_after_a_savepoint_keeps_the_place() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let mut holder = begin(&shard, Isolation::ReadCommitted);
    ready(insert(&mut *holder, 5, 1));
    let point = holder.savepoint();
    ready(insert(&mut *holder, 6, 1));
    let (mut first, mut second) = (begin(&shard, Isolation::ReadCommitted), begin(&shard, Isolation::ReadCommitted));
    waits(insert(&mut *first, 5, 2));
    let other = waits(insert(&mut *second, 6, 3));
    holder.rollback_to(point);
    assert!(other.is_over());
    ready(insert(&mut *second, 6, 3));
    let wait = waits(insert(&mut *first, 5, 2));
    // Nobody waits for anything but `first` for `holder`: no false deadlock.
    let back = waits(insert(&mut *holder, 6, 4));
    commit(&shard, second);
    assert!(back.is_over());
    assert_eq!(insert(&mut *holder, 6, 4).unwrap_err().code(), SqlState::UNIQUE_VIOLATION);
    holder.rollback();
    assert!(wait.is_over());
    ready(insert(&mut *first, 5, 2));
    commit(&shard, first);
    assert_eq!(all(&shard), [(0, 100), (6, 3), (5, 2)]);
}

#[test]
fn a_row_unlocked_by_a_savepoint_goes_to_the_next_in_line() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let mut holder = begin(&shard, Isolation::RepeatableRead);
    let (row, _) = find(&mut *holder, 0).unwrap();
    let point = holder.savepoint();
    ready(update(&mut *holder, 0, |b| b + 1));
    let (mut first, mut second) = (begin(&shard, Isolation::RepeatableRead), begin(&shard, Isolation::RepeatableRead));
    let one = waits(lock(&mut *first, row, WaitPolicy::Block));
    let two = waits(lock(&mut *second, row, WaitPolicy::Block));
    holder.rollback_to(point);
    assert!(one.is_over() && !two.is_over());
    assert_eq!(ready(lock(&mut *first, row, WaitPolicy::Block)), RowLockOutcome::Locked);
    first.rollback();
    assert!(two.is_over());
}

#[test]
fn a_line_of_twenty_is_served_in_order_and_once_each() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let mut holder = begin(&shard, Isolation::ReadCommitted);
    let (row, _) = find(&mut *holder, 0).unwrap();
    ready(lock(&mut *holder, row, WaitPolicy::Block));
    let mut line: Vec<(usize, Box<dyn Txn>, Wait)> = (0..20)
        .map(|number| {
            let mut txn = begin(&shard, Isolation::ReadCommitted);
            let wait = waits(lock(&mut *txn, row, WaitPolicy::Block));
            (number, txn, wait)
        })
        .collect();
    // Three give up: one at the end, one in the middle, one at the head.
    for number in [19, 10, 0] {
        let (_, mut txn, _) = line.remove(number);
        txn.cancel_wait();
        txn.rollback();
        assert!(line.iter().all(|(_, _, wait)| !wait.is_over()), "nobody is overtaken by a timeout");
    }
    let late = lock(&mut *begin(&shard, Isolation::ReadCommitted), row, WaitPolicy::Error).unwrap_err();
    assert_eq!(late.code(), SqlState::LOCK_NOT_AVAILABLE);
    let mut served = Vec::new();
    while !line.is_empty() {
        commit(&shard, holder);
        let woken: Vec<usize> = line.iter().filter(|(_, _, wait)| wait.is_over()).map(|(number, ..)| *number).collect();
        assert_eq!(woken, [line[0].0]);
        let (number, mut txn, _) = line.remove(0);
        ready(lock(&mut *txn, row, WaitPolicy::Block));
        served.push(number);
        holder = txn;
    }
    assert_eq!(served, (1..19).filter(|n| *n != 10).collect::<Vec<_>>());
    commit(&shard, holder);
}

/// One whose turn came gives up before taking notice: the next one gets the row.
#[test]
fn a_turn_that_is_given_up_goes_on() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let mut holder = begin(&shard, Isolation::ReadCommitted);
    let (row, _) = find(&mut *holder, 0).unwrap();
    ready(lock(&mut *holder, row, WaitPolicy::Block));
    let (mut first, mut second) = (begin(&shard, Isolation::ReadCommitted), begin(&shard, Isolation::ReadCommitted));
    let one = waits(lock(&mut *first, row, WaitPolicy::Block));
    let two = waits(lock(&mut *second, row, WaitPolicy::Block));
    commit(&shard, holder);
    assert!(one.is_over() && !two.is_over());
    first.cancel_wait();
    assert!(two.is_over());
    ready(lock(&mut *second, row, WaitPolicy::Block));
}

#[test]
fn upserts_in_opposite_order_are_a_deadlock() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let (mut first, mut second) = (begin(&shard, Isolation::ReadCommitted), begin(&shard, Isolation::ReadCommitted));
    // One key that is there, one that is not.
    upsert(&mut *first, 0).unwrap();
    upsert(&mut *second, 5).unwrap();
    let table = first.open_table(ACCOUNTS).unwrap();
    let wait = waits(first.insert(&table, &tuple(5, 1), UPSERT));
    let error = upsert(&mut *second, 0).unwrap_err();
    assert_eq!(error.code(), SqlState::DEADLOCK_DETECTED);
    second.rollback();
    assert!(wait.is_over());
    ready(first.insert(&table, &tuple(5, 1), UPSERT));
    commit(&shard, first);
    assert_eq!(all(&shard), [(0, 101), (1, 100), (5, 1)]);
}

#[test]
fn on_conflict_does_not_pass_over_what_the_snapshot_lacks() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let mut old = begin(&shard, Isolation::RepeatableRead);
    let mut other = begin(&shard, Isolation::ReadCommitted);
    ready(insert(&mut *other, 5, 1));
    commit(&shard, other);
    let table = old.open_table(ACCOUNTS).unwrap();
    let known = ready(old.insert(&table, &tuple(0, 1), ConflictArbiter::Any));
    assert!(matches!(known, InsertOutcome::Conflict(_)));
    ready(insert(&mut *old, 6, 1));
    let own = ready(old.insert(&table, &tuple(6, 1), ConflictArbiter::Any));
    assert!(matches!(own, InsertOutcome::Conflict(_)));
    let error = old.insert(&table, &tuple(5, 1), ConflictArbiter::Any).unwrap_err();
    assert_eq!(error.code(), SqlState::SERIALIZATION_FAILURE);
}

#[test]
fn concurrent_upserts_of_one_key_add_up() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 0);
    let deleted = std::thread::scope(|scope| {
        let writers = [(); 2].map(|()| {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let mut txn = begin(&shard, Isolation::ReadCommitted);
                    upsert(&mut *txn, 1).expect("an upsert neither fails nor deadlocks");
                    commit_lazily(txn);
                }
            })
        });
        let mut deleted = 0;
        while !writers.iter().all(|writer| writer.is_finished()) {
            let mut txn = begin(&shard, Isolation::ReadCommitted);
            deleted += delete(&mut *txn, 1).unwrap().unwrap_or(0);
            commit_lazily(txn);
        }
        deleted
    });
    let left: i64 = all(&shard).iter().map(|(_, balance)| balance).sum();
    assert_eq!(deleted + left, 2000);
}

/// Moves a row to another key, or fails as a transaction may.
fn wander(shard: &Shard, random: &mut SimRandom) {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    let (from, to) = (random.below(4) as i32, random.below(4) as i32);
    let result = (|| {
        let Some((row, _)) = find(&mut *txn, from) else { return Ok(()) };
        let table = txn.open_table(ACCOUNTS)?;
        let found = await_step(&mut *txn, |txn| lock(txn, row, WaitPolicy::Block))?;
        if found != RowLockOutcome::Locked {
            return Ok(());
        }
        await_step(&mut *txn, |txn| txn.update(&table, row, &tuple(to, 0)))
    })();
    match result {
        Ok(()) => commit_lazily(txn),
        Err(error) => {
            let error: Error = error;
            let allowed = [SqlState::UNIQUE_VIOLATION, SqlState::DEADLOCK_DETECTED];
            assert!(allowed.contains(&error.code()), "{error:?}");
            txn.rollback();
        }
    }
}

#[test]
fn rows_that_change_keys_concurrently_never_share_one() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 3);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let shard = &shard;
            scope.spawn(move || {
                let mut random = SimRandom::new(seed);
                for _ in 0..1500 {
                    wander(shard, &mut random);
                    let mut ids: Vec<i32> = all(shard).iter().map(|(id, _)| *id).collect();
                    ids.sort_unstable();
                    assert!(ids.len() == 3 && ids.windows(2).all(|w| w[0] < w[1]), "{ids:?}");
                }
            });
        }
    });
}

/// A key that a transaction has given up again may come back to it by a savepoint: until then nobody else gets it.
#[test]
fn a_key_between_two_savepoints_is_not_free() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let change = |txn: &mut dyn Txn, row: RowId, to: i32| {
        txn.begin_command();
        let table = txn.open_table(ACCOUNTS).unwrap();
        ready(txn.update(&table, row, &tuple(to, 1)));
    };
    // Inserted, and of an update: key 5 is that of neither the newest version nor the newest committed one.
    for inserts in [true, false] {
        for deletes in [true, false] {
            let mut holder = begin(&shard, Isolation::ReadCommitted);
            let row = if inserts {
                ready(insert(&mut *holder, 5, 1));
                holder.begin_command();
                find(&mut *holder, 5).unwrap().0
            } else {
                let row = find(&mut *holder, 0).unwrap().0;
                ready(lock(&mut *holder, row, WaitPolicy::Block));
                change(&mut *holder, row, 5);
                row
            };
            let point = holder.savepoint();
            if deletes {
                delete(&mut *holder, 5).unwrap().unwrap();
            } else {
                change(&mut *holder, row, 6);
            }
            let mut other = begin(&shard, Isolation::ReadCommitted);
            let wait = waits(insert(&mut *other, 5, 2));
            holder.rollback_to(point);
            assert!(wait.is_over());
            let wait = waits(insert(&mut *other, 5, 2));
            holder.rollback();
            assert!(wait.is_over());
            ready(insert(&mut *other, 5, 2));
            other.rollback();
        }
    }
}
