//! Transactions between the phases of their commit, over restarts and lost writes.

use base::SqlState;
use engine_api::{Engine as _, Isolation, PreparedTransaction, RowLockMode, Step, Txn, WaitPolicy};
use env::sim::{Crash, SimDisk, SimRandom};

use crate::support::*;

pub fn named(name: &str) -> PreparedTransaction {
    PreparedTransaction {
        name: name.to_string(),
        owner: "somebody".to_string(),
        database: base::Oid(5),
        prepared_at: 1,
        txn: 0,
        advisory: vec![(engine_api::AdvisoryKey { database: base::Oid(5), number: 7, is_pair: false }, false)],
    }
}

/// Prepares, durably.
pub fn prepare(shard: &engine::Shard, mut txn: Box<dyn Txn>, name: &str) {
    let outcome = ready(txn.prepare(&named(name)));
    assert!(shard.durable().block(outcome.gate));
}

/// Commits or rolls back what is prepared, durably.
pub fn finish(shard: &engine::Shard, name: &str, commits: bool) {
    let (outcome, _) = ready(shard.finish_prepared(name, commits));
    assert!(shard.durable().block(outcome.gate));
}

pub fn names(shard: &engine::Shard) -> Vec<String> {
    shard.prepared().into_iter().map(|prepared| prepared.name).collect()
}

/// A transfer from 1 to 2, account 3 gone, account 9 new.
pub fn work(shard: &engine::Shard, isolation: Isolation) -> Box<dyn Txn> {
    let mut txn = begin(shard, isolation);
    txn.begin_command();
    ready(update(&mut *txn, 1, |b| b - 10));
    txn.begin_command();
    ready(update(&mut *txn, 2, |b| b + 10));
    txn.begin_command();
    let (row, _) = find(&mut *txn, 3).unwrap();
    let table = txn.open_table(accounts().oid).unwrap();
    ready(txn.lock_row(&table, row, RowLockMode::Update, WaitPolicy::Block, &mut engine_api::RowBatch::new()));
    txn.delete(&table, row).unwrap();
    ready(insert(&mut *txn, 9, 900));
    txn
}

pub const BEFORE: [(i32, i64); 5] = [(0, 100), (1, 100), (2, 100), (3, 100), (4, 100)];
pub const AFTER: [(i32, i64); 5] = [(0, 100), (1, 90), (2, 110), (4, 100), (9, 900)];

#[test]
fn what_is_prepared_survives_restarts_until_it_is_ended() {
    for commits in [true, false] {
        let disk = SimDisk::new();
        let shard = bank(&disk, 5);
        prepare(&shard, work(&shard, Isolation::ReadCommitted), "one");
        assert_eq!((all(&shard), names(&shard)), (BEFORE.to_vec(), vec!["one".to_string()]));
        drop(shard);
        for _ in 0..3 {
            let shard = open(&disk);
            assert_eq!((all(&shard), names(&shard)), (BEFORE.to_vec(), vec!["one".to_string()]));
            is_guarded(&shard);
            // Others go on beside it, and take RowIds.
            let mut txn = begin(&shard, Isolation::ReadCommitted);
            txn.begin_command();
            let found = find(&mut *txn, 4).is_some();
            assert!(found);
            ready(update(&mut *txn, 4, |b| b));
            commit(&shard, txn);
        }
        let shard = open(&disk);
        finish(&shard, "one", commits);
        assert!(takes_advisory(&shard));
        let expected = if commits { AFTER } else { BEFORE };
        assert_eq!((all(&shard), names(&shard)), (expected.to_vec(), Vec::new()));
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        txn.begin_command();
        ready(insert(&mut *txn, 20, 1));
        commit(&shard, txn);
        drop(shard);
        let shard = open(&disk);
        let expected: Vec<_> = expected.into_iter().chain([(20, 1)]).collect();
        assert_eq!((all(&shard), names(&shard)), (expected, Vec::new()));
    }
}

/// Whether nobody has the lock that prepared transactions have here.
pub fn takes_advisory(shard: &engine::Shard) -> bool {
    let key = named("").advisory[0].0;
    matches!(shard.advisory_locks(77).unwrap().lock(key, true, true, WaitPolicy::Error), Ok(Step::Ready(true)))
}

/// Its rows are locked, its keys taken.
pub fn is_guarded(shard: &engine::Shard) {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    txn.begin_command();
    let table = txn.open_table(accounts().oid).unwrap();
    for id in [1, 2, 3] {
        let (row, _) = find(&mut *txn, id).unwrap();
        let mut out = engine_api::RowBatch::new();
        let outcome = txn.lock_row(&table, row, RowLockMode::NoKeyUpdate, WaitPolicy::Error, &mut out);
        assert_eq!(outcome.unwrap_err().code(), SqlState::LOCK_NOT_AVAILABLE, "{id}");
    }
    waits(insert(&mut *txn, 9, 1));
    txn.rollback();
    assert!(!takes_advisory(shard), "its advisory lock is held");
}

#[test]
fn a_name_is_used_once() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 5);
    prepare(&shard, work(&shard, Isolation::ReadCommitted), "one");
    let mut other = begin(&shard, Isolation::ReadCommitted);
    other.begin_command();
    ready(insert(&mut *other, 30, 1));
    assert_eq!(other.prepare(&named("one")).unwrap_err().code(), SqlState::DUPLICATE_OBJECT);
    other.rollback();
    finish(&shard, "one", true);
    let Err(error) = shard.finish_prepared("one", true) else { panic!("there is none") };
    assert_eq!(error.code(), SqlState::UNDEFINED_OBJECT);
}

#[test]
fn what_a_prepared_transaction_read_is_a_guard_over_restarts() {
    let disk = SimDisk::new();
    let mut shard = bank(&disk, 5);
    let mut txn = begin(&shard, Isolation::Serializable);
    txn.begin_command();
    assert_eq!(scan(&mut *txn, None).len(), 5);
    ready(update(&mut *txn, 1, |b| b + 1));
    prepare(&shard, txn, "reader");
    for _ in 0..2 {
        let mut writer = begin(&shard, Isolation::Serializable);
        writer.begin_command();
        ready(update(&mut *writer, 2, |b| b + 1));
        let error = writer.commit(engine_api::Durability::On).unwrap_err();
        assert_eq!(error.code(), SqlState::SERIALIZATION_FAILURE);
        writer.rollback();
        // Another that is prepared must not have read what this one has written.
        let mut reader = begin(&shard, Isolation::Serializable);
        reader.begin_command();
        assert!(find(&mut *reader, 1).is_some());
        let error = reader.prepare(&named("second")).unwrap_err();
        assert_eq!(error.code(), SqlState::SERIALIZATION_FAILURE);
        reader.rollback();
        drop((writer, reader, shard));
        shard = open(&disk);
    }
    finish(&shard, "reader", true);
    let mut writer = begin(&shard, Isolation::Serializable);
    writer.begin_command();
    ready(update(&mut *writer, 2, |b| b + 1));
    commit(&shard, writer);
    assert_eq!(all(&shard), [(0, 100), (1, 101), (2, 101), (3, 100), (4, 100)]);
}

/// The power fails after every number of syncs: what was answered is there, prepared or ended, never by half.
#[test]
fn a_crash_leaves_a_prepared_transaction_whole() {
    for seed in 0..60 {
        let disk = SimDisk::new();
        let shard = bank(&disk, 5);
        let prepared = ready(work(&shard, Isolation::ReadCommitted).prepare(&named("one"))).gate;
        if seed % 3 > 0 {
            assert!(shard.durable().block(prepared));
        }
        let commits = seed % 2 == 0;
        let mut ended = None;
        if seed % 3 > 0 && seed % 5 > 0 {
            let Step::Ready((outcome, _)) = shard.finish_prepared("one", commits).unwrap() else { panic!("waits") };
            ended = Some(outcome.gate);
        }
        let is_ended = ended.is_some_and(|gate| seed % 4 == 0 && shard.durable().block(gate));
        let durable = shard.durable().current() >= prepared;
        disk.freeze_at(disk.operations() + seed % 4);
        drop(shard);
        let crash = [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors, Crash::FlipBits][seed as usize / 5 % 4];
        let shard = open(&disk.after_crash(crash, &mut SimRandom::new(seed + 1)));
        match (names(&shard).len(), all(&shard)) {
            (1, rows) => {
                assert!(!is_ended, "seed {seed}: it was ended");
                assert_eq!(rows, BEFORE, "seed {seed}");
                finish(&shard, "one", true);
                assert_eq!(all(&shard), AFTER, "seed {seed}");
            }
            (_, rows) => {
                assert!(ended.is_some() || !durable, "seed {seed}: it was prepared");
                let expected = if ended.is_some() && commits && rows != BEFORE { AFTER } else { BEFORE };
                assert_eq!(rows, expected, "seed {seed}");
                assert!(!(is_ended && commits) || rows == AFTER, "seed {seed}: it was committed");
            }
        }
    }
}
