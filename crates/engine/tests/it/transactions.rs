//! The life of a transaction, and what is left of it after a crash.

use base::{Oid, SqlState};
use engine::Shard;
use engine_api::*;
use env::sim::{Crash, SimDisk, SimRandom};
use types::oid;

use crate::support::*;

#[test]
fn a_command_sees_earlier_commands_and_commits_only() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let mut writer = begin(&shard, Isolation::ReadCommitted);
    ready(insert(&mut *writer, 7, 1));
    assert_eq!(find(&mut *writer, 7), None, "a command does not see its own rows (R6)");
    writer.begin_command();
    assert!(find(&mut *writer, 7).is_some());
    let mut reader = begin(&shard, Isolation::RepeatableRead);
    assert_eq!(find(&mut *reader, 7), None);
    commit(&shard, writer);
    reader.begin_command();
    assert_eq!(find(&mut *reader, 7), None, "a snapshot stays");
    assert_eq!(all(&shard).len(), 3);
}

#[test]
fn savepoints_take_back_rows_entries_and_definitions() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(insert(&mut *txn, 1, 1));
    let point = txn.savepoint();
    ready(insert(&mut *txn, 2, 2));
    ready(update(&mut *txn, 0, |b| b + 5));
    txn.drop_object(BY_ID).unwrap();
    assert!(txn.catalog().index(BY_ID).is_none());
    txn.rollback_to(point);
    assert!(txn.catalog().index(BY_ID).is_some());
    ready(insert(&mut *txn, 2, 3));
    commit(&shard, txn);
    assert_eq!(all(&shard), [(0, 100), (1, 1), (2, 3)]);
    drop(shard);
    assert_eq!(all(&open(&disk)), [(0, 100), (1, 1), (2, 3)]);
}

#[test]
fn a_duplicate_key_waits_for_the_other_to_decide() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let error = insert(&mut *begin(&shard, Isolation::ReadCommitted), 0, 1).unwrap_err();
    assert_eq!(error.code(), SqlState::UNIQUE_VIOLATION);
    assert_eq!(error.fields().message, "duplicate key value violates unique constraint \"accounts_pkey\"");
    assert_eq!(error.fields().detail.as_deref(), Some("Key (id)=(0) already exists."));

    let mut first = begin(&shard, Isolation::ReadCommitted);
    ready(insert(&mut *first, 5, 1));
    let mut second = begin(&shard, Isolation::ReadCommitted);
    let wait = waits(insert(&mut *second, 5, 2));
    first.rollback();
    assert!(wait.is_over());
    ready(insert(&mut *second, 5, 2));
    let mut third = begin(&shard, Isolation::ReadCommitted);
    let table = third.open_table(ACCOUNTS).unwrap();
    let wait = waits(third.insert(&table, &tuple(5, 3), ConflictArbiter::Any));
    commit(&shard, second);
    assert!(wait.is_over());
    assert!(matches!(ready(third.insert(&table, &tuple(5, 3), ConflictArbiter::Any)), InsertOutcome::Conflict(_)));
}

#[test]
fn read_committed_goes_on_with_the_newest_version_and_a_snapshot_fails() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let mut first = begin(&shard, Isolation::ReadCommitted);
    ready(update(&mut *first, 0, |b| b + 1));
    let mut second = begin(&shard, Isolation::ReadCommitted);
    let mut snapshot = begin(&shard, Isolation::RepeatableRead);
    let (row, seen) = find(&mut *second, 0).unwrap();
    assert_eq!(seen, 100);
    let table = second.open_table(ACCOUNTS).unwrap();
    let mut moved = RowBatch::new();
    let mode = RowLockMode::NoKeyUpdate;
    let wait = waits(second.lock_row(&table, row, mode, WaitPolicy::Block, &mut moved));
    let skipped = snapshot.lock_row(&table, row, mode, WaitPolicy::Skip, &mut moved);
    assert_eq!(ready(skipped), RowLockOutcome::Skipped);
    let refused = snapshot.lock_row(&table, row, mode, WaitPolicy::Error, &mut moved).unwrap_err();
    assert_eq!(refused.code(), SqlState::LOCK_NOT_AVAILABLE);
    commit(&shard, first);
    assert!(wait.is_over());
    assert_eq!(ready(second.lock_row(&table, row, mode, WaitPolicy::Block, &mut moved)), RowLockOutcome::Moved);
    assert_eq!(balance(moved.row(0).tuple), 101);
    second.begin_command();
    moved.clear();
    assert_eq!(ready(second.lock_row(&table, row, mode, WaitPolicy::Block, &mut moved)), RowLockOutcome::Locked);
    assert_eq!(balance(moved.row(0).tuple), 101);
    ready(second.update(&table, row, &tuple(0, 102)));
    commit(&shard, second);
    let error = snapshot.lock_row(&table, row, mode, WaitPolicy::Block, &mut moved).unwrap_err();
    assert_eq!(error.code(), SqlState::SERIALIZATION_FAILURE);
    assert_eq!(error.fields().message, "could not serialize access due to concurrent update");
    drop(snapshot);
    assert_eq!(all(&shard), [(0, 102)]);
}

#[test]
fn a_deadlock_is_found_when_it_closes() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 2);
    let mut first = begin(&shard, Isolation::ReadCommitted);
    let mut second = begin(&shard, Isolation::ReadCommitted);
    ready(update(&mut *first, 0, |b| b + 1));
    ready(update(&mut *second, 1, |b| b + 1));
    let wait = waits(update(&mut *first, 1, |b| b + 1));
    let error = update(&mut *second, 0, |b| b + 1).unwrap_err();
    assert_eq!(error.code(), SqlState::DEADLOCK_DETECTED);
    second.rollback();
    assert!(wait.is_over());
}

#[test]
fn an_index_finds_rows_under_the_key_they_are_seen_with() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 3);
    let mut old = begin(&shard, Isolation::RepeatableRead);
    assert!(find(&mut *old, 1).is_some());
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let (row, _) = find(&mut *txn, 1).unwrap();
    let table = txn.open_table(ACCOUNTS).unwrap();
    ready(txn.lock_row(&table, row, RowLockMode::Update, WaitPolicy::Block, &mut RowBatch::new()));
    ready(txn.update(&table, row, &tuple(9, 100)));
    commit(&shard, txn);
    let mut new = begin(&shard, Isolation::ReadCommitted);
    assert_eq!((find(&mut *old, 1).is_some(), find(&mut *old, 9)), (true, None));
    assert_eq!((find(&mut *new, 1), find(&mut *new, 9).is_some()), (None, true));
    assert_eq!(scan(&mut *old, Some(BY_ID)), [(0, 100), (1, 100), (2, 100)]);
    assert_eq!(scan(&mut *new, Some(BY_ID)), [(0, 100), (2, 100), (9, 100)]);
    ready(insert(&mut *new, 1, 5));
    commit(&shard, new);
    drop(old);
    for _ in 0..10 {
        shard.collect_garbage(100);
    }
    assert_eq!(all(&shard).len(), 4);
}

#[test]
fn definitions_come_and_go_with_their_transaction() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 5);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
    txn.truncate(ACCOUNTS).unwrap();
    txn.begin_command();
    ready(insert(&mut *txn, 0, 7));
    txn.rollback();
    assert_eq!(all(&shard).len(), 5);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    txn.truncate(ACCOUNTS).unwrap();
    ready(insert(&mut *txn, 0, 7));
    commit(&shard, txn);
    assert_eq!(all(&shard), [(0, 7)]);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    txn.drop_object(BY_ID).unwrap();
    txn.drop_object(ACCOUNTS).unwrap();
    assert!(shard.catalog().table(ACCOUNTS).is_some());
    commit(&shard, txn);
    assert!(shard.catalog().table(ACCOUNTS).is_none());
    drop(shard);
    assert!(open(&disk).catalog().table(ACCOUNTS).is_none());
}

#[test]
fn sequences_never_hand_a_value_out_twice() {
    let disk = SimDisk::new();
    let shard = open(&disk);
    let sequence = SequenceDesc::new(Oid(20002), oids::SCHEMA_PUBLIC, "s", oids::ROLE_POSTGRES, oid::INT8, 40);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(txn.put_object(CatalogObject::Sequence(sequence.clone())));
    assert_eq!(next_value(&shard, &sequence).unwrap(), 1, "usable before its transaction commits");
    commit(&shard, txn);
    assert_eq!(next_value(&shard, &sequence).unwrap(), 2);
    drop(shard);
    let shard = open(&disk);
    let next = next_value(&shard, &sequence).unwrap();
    assert!(next > 2, "{next}");
    let error = (0..40).find_map(|_| next_value(&shard, &sequence).err()).expect("it ends");
    assert_eq!(error.code(), SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED);
    assert_eq!(error.fields().message, "nextval: reached maximum value of sequence \"s\" (40)");
}

/// Moves money about from several threads; some transactions fail on purpose. Stops when the machine does.
fn transfer(shard: &Shard, accounts: i32, seed: u64, rounds: u64) {
    let mut random = SimRandom::new(seed);
    for _ in 0..rounds {
        let (from, to) = (random.below(accounts as u64) as i32, random.below(accounts as u64) as i32);
        let amount = random.below(50) as i64;
        let mut txn = begin(shard, Isolation::ReadCommitted);
        let moves: [(i32, i64); 2] = [(from, -amount), (to, amount)];
        let mut failed = false;
        'moves: for (id, by) in moves {
            loop {
                match update(&mut *txn, id, |b| b + by) {
                    Ok(Step::Ready(())) => break,
                    Ok(Step::Wait(wait)) => {
                        while !wait.is_over() {
                            std::thread::yield_now();
                        }
                    }
                    Err(error) => {
                        assert_eq!(error.code(), SqlState::DEADLOCK_DETECTED, "{error:?}");
                        failed = true;
                        break 'moves;
                    }
                }
            }
        }
        if failed || random.below(10) == 0 {
            txn.rollback();
            continue;
        }
        loop {
            match txn.commit(Durability::On) {
                Ok(Step::Ready(outcome)) if shard.durable().block(outcome.gate) => break,
                Ok(Step::Ready(_)) | Err(_) => return,
                Ok(Step::Wait(_)) if shard.durable().has_failed() => return,
                Ok(Step::Wait(_)) => std::thread::yield_now(),
            }
        }
    }
}

#[test]
fn money_is_neither_made_nor_lost_by_crashes() {
    const ACCOUNTS: i32 = 20;
    let first = std::env::var("NYALA_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1u64);
    for seed in first..first + 24 {
        let mut random = SimRandom::new(seed);
        let mut disk = SimDisk::new();
        drop(bank(&disk, ACCOUNTS));
        for life in 0..3 {
            let shard = open(&disk);
            let sum: i64 = all(&shard).iter().map(|(_, b)| b).sum();
            assert_eq!(sum, 100 * ACCOUNTS as i64, "seed {seed}, life {life}");
            disk.freeze_at(disk.operations() + 5 + random.below(120));
            std::thread::scope(|scope| {
                for thread in 0..3 {
                    let shard = shard.clone();
                    let seed = seed * 100 + life * 10 + thread;
                    scope.spawn(move || transfer(&shard, ACCOUNTS, seed, 60));
                }
            });
            drop(shard);
            let crash = [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors, Crash::FlipBits][(seed % 4) as usize];
            disk = disk.after_crash(crash, &mut random);
        }
        let shard = open(&disk);
        let rows = all(&shard);
        assert_eq!(rows.len(), ACCOUNTS as usize, "seed {seed}");
        assert_eq!(rows.iter().map(|(_, b)| b).sum::<i64>(), 100 * ACCOUNTS as i64, "seed {seed}");
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        let mut by_row = rows.clone();
        by_row.sort();
        assert_eq!(scan(&mut *txn, Some(BY_ID)), by_row, "the index equals the table, seed {seed}");
    }
}

#[test]
fn a_long_record_goes_ahead_in_parts_and_can_still_be_taken_back() {
    const LARGE: redo::FileOptions = redo::FileOptions { segment_bytes: 8 << 20, batch_bytes_max: 2 << 20 };
    let disk = SimDisk::new();
    let shard = open_with(&disk, LARGE);
    define(&shard);
    let fill = |txn: &mut dyn Txn, from: i32, count: i32| {
        for id in from..from + count {
            loop {
                match insert(txn, id, id as i64).unwrap() {
                    Step::Ready(_) => break,
                    Step::Wait(_) => std::thread::yield_now(),
                }
            }
        }
    };
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    fill(&mut *txn, 0, 11);
    let point = txn.savepoint();
    fill(&mut *txn, 1000, 60_000);
    txn.rollback_to(point);
    fill(&mut *txn, 11, 10);
    commit(&shard, txn);
    let mut lost = begin(&shard, Isolation::ReadCommitted);
    fill(&mut *lost, 1000, 60_000);
    lost.rollback();
    let expected = all(&shard);
    assert_eq!(expected.len(), 21);
    drop(lost);
    drop(shard);
    assert_eq!(all(&open_with(&disk, LARGE)), expected);
}

/// A row that is larger than the space the log sets aside at once.
#[test]
fn a_record_larger_than_a_segment_goes_in_parts() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    // What the bytes of a tuple say is not the shard's concern, beyond the columns of keys.
    let mut large = tuple(7, 70);
    large.resize(3 << 20, 5);
    let table = txn.open_table(ACCOUNTS).unwrap();
    ready(txn.insert(&table, &large, ConflictArbiter::None));
    let mut rounds = 0;
    while let Step::Wait(_) = txn.insert(&table, &tuple(8, 80), ConflictArbiter::None).unwrap() {
        rounds += 1;
        assert!(rounds < 100_000, "it waits for ever");
        std::thread::yield_now();
    }
    commit(&shard, txn);
    drop(shard);
    let shard = open(&disk);
    assert_eq!(all(&shard), [(0, 100), (7, 70), (8, 80)]);
}

/// What is defined depends on the commit that defined it, for commands and for errors before the first one.
#[test]
fn definitions_raise_the_gate_until_they_are_durable() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    assert_eq!(shard.catalog_gate(), base::Lsn(0));
    disk.fail_syncs(2);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
    txn.truncate(ACCOUNTS).unwrap();
    let end = ready(txn.commit(Durability::On)).gate;
    assert!(end > shard.durable().current());
    let mut reader = begin(&shard, Isolation::ReadCommitted);
    assert_eq!(scan(&mut *reader, None), []);
    assert_eq!((reader.gate(), shard.catalog_gate()), (end, end));
}
