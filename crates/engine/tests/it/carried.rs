//! Images carry what is prepared: the log does not have to be kept for it.

use base::SqlState;
use engine_api::{Engine as _, Isolation, RowBatch, RowLockMode, WaitPolicy};
use env::Disk as _;
use env::sim::{Crash, SimDisk, SimRandom};

use crate::checkpoints::checkpoint;
use crate::prepared::*;
use crate::support::*;

/// Changes account 4 often, in many commits, so that whole segments of log are written.
fn load(shard: &engine::Shard, commits: i64) {
    for round in 0..commits {
        let mut txn = begin(shard, Isolation::ReadCommitted);
        for n in 0..40 {
            ready(update(&mut *txn, 4, |b| b ^ (round * 40 + n)));
            ready(update(&mut *txn, 4, |b| b ^ (round * 40 + n)));
        }
        commit(shard, txn);
    }
}

fn log_bytes(disk: &SimDisk) -> u64 {
    let names = disk.list().expect("healthy");
    let logs = names.iter().filter(|name| name.ends_with(".log"));
    logs.map(|name| disk.open(name).and_then(|file| file.len()).unwrap_or(0)).sum()
}

#[test]
fn what_is_prepared_is_carried_while_the_log_goes() {
    for commits in [true, false] {
        let disk = SimDisk::new();
        let mut shard = bank(&disk, 5);
        prepare(&shard, work(&shard, Isolation::ReadCommitted), "one");
        let prepared = shard.prepared();
        for round in 0..3 {
            load(&shard, 150);
            checkpoint(&shard);
            load(&shard, 150);
            checkpoint(&shard);
            let manifest = shard.last_checkpoint().expect("just made");
            assert_eq!(manifest.log_from, manifest.upto, "nothing of the log is kept for what is prepared");
            load(&shard, 1);
            assert!(log_bytes(&disk) <= 3 * (256 << 10), "round {round}: {} bytes of log", log_bytes(&disk));
            drop(shard);
            shard = open(&disk);
            assert_eq!((all(&shard), shard.prepared()), (BEFORE.to_vec(), prepared.clone()));
            is_guarded(&shard);
        }
        finish(&shard, "one", commits);
        assert!(takes_advisory(&shard));
        let expected = if commits { AFTER } else { BEFORE };
        assert_eq!((all(&shard), names(&shard)), (expected.to_vec(), Vec::new()));
        for _ in 0..2 {
            // From the record that ends it, and from an image behind that.
            drop(shard);
            shard = open(&disk);
            assert_eq!((all(&shard), names(&shard)), (expected.to_vec(), Vec::new()));
            checkpoint(&shard);
        }
    }
}

/// Rows written more than once, made and gone again, changed in their keys; and one that only locks.
#[test]
fn the_last_state_of_each_row_is_carried() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 5);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    for amount in 1..4 {
        ready(update(&mut *txn, 1, |_| amount));
    }
    let table = txn.open_table(ACCOUNTS).unwrap();
    for id in [50, 51] {
        txn.begin_command();
        ready(insert(&mut *txn, id, 1));
    }
    ready(update(&mut *txn, 51, |_| 510));
    txn.begin_command();
    let (gone, _) = find(&mut *txn, 50).unwrap();
    ready(txn.lock_row(&table, gone, RowLockMode::Update, WaitPolicy::Block, &mut RowBatch::new()));
    txn.delete(&table, gone).unwrap();
    txn.begin_command();
    let (moved, _) = find(&mut *txn, 2).unwrap();
    ready(txn.lock_row(&table, moved, RowLockMode::Update, WaitPolicy::Block, &mut RowBatch::new()));
    ready(txn.update(&table, moved, &tuple(60, 7)));
    prepare(&shard, txn, "writes");
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let (locked, _) = find(&mut *txn, 0).unwrap();
    let table = txn.open_table(ACCOUNTS).unwrap();
    ready(txn.lock_row(&table, locked, RowLockMode::Share, WaitPolicy::Block, &mut RowBatch::new()));
    let mut other = named("locks");
    other.advisory.clear();
    ready(txn.prepare(&other));
    checkpoint(&shard);
    drop(shard);
    let shard = open(&disk);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let table = txn.open_table(ACCOUNTS).unwrap();
    for (row, mode) in [(locked, RowLockMode::NoKeyUpdate), (moved, RowLockMode::KeyShare)] {
        let refused = txn.lock_row(&table, row, mode, WaitPolicy::Error, &mut RowBatch::new());
        assert_eq!(refused.unwrap_err().code(), SqlState::LOCK_NOT_AVAILABLE, "{row}");
    }
    ready(txn.lock_row(&table, locked, RowLockMode::Share, WaitPolicy::Error, &mut RowBatch::new()));
    txn.begin_command();
    waits(insert(&mut *txn, 60, 1));
    txn.rollback();
    finish(&shard, "locks", true);
    finish(&shard, "writes", true);
    let mut found = all(&shard);
    found.sort_unstable();
    let expected = vec![(0, 100), (1, 3), (3, 100), (4, 100), (51, 510), (60, 7)];
    assert_eq!(found, expected);
    drop(shard);
    let mut found = all(&open(&disk));
    found.sort_unstable();
    assert_eq!(found, expected, "the payload of the image and the record that ends it");
}

#[test]
fn guards_are_carried() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 5);
    let mut txn = begin(&shard, Isolation::Serializable);
    assert_eq!(scan(&mut *txn, None).len(), 5);
    ready(update(&mut *txn, 1, |b| b + 1));
    prepare(&shard, txn, "reader");
    checkpoint(&shard);
    drop(shard);
    let shard = open(&disk);
    checkpoint(&shard);
    drop(shard);
    let shard = open(&disk);
    let mut writer = begin(&shard, Isolation::Serializable);
    ready(update(&mut *writer, 2, |b| b + 1));
    let error = writer.commit(engine_api::Durability::On).unwrap_err();
    assert_eq!(error.code(), SqlState::SERIALIZATION_FAILURE);
    writer.rollback();
    finish(&shard, "reader", true);
    let mut writer = begin(&shard, Isolation::Serializable);
    ready(update(&mut *writer, 2, |b| b + 1));
    commit(&shard, writer);
}

/// The machine stops anywhere while an image that carries a transaction is made, beside the end of that transaction.
#[test]
fn a_crash_around_the_image_leaves_it_whole() {
    for seed in 0..80 {
        let disk = SimDisk::new();
        let shard = bank(&disk, 5);
        prepare(&shard, work(&shard, Isolation::ReadCommitted), "one");
        disk.freeze_at(disk.operations() + seed / 2);
        let commits = seed % 2 == 0;
        let mut is_ended = false;
        let going = shard.begin_checkpoint().expect("no other goes on");
        let end = |is_ended: &mut bool| {
            let engine_api::Step::Ready((outcome, _)) = shard.finish_prepared("one", commits).unwrap() else { return };
            *is_ended = shard.durable().block(outcome.gate);
        };
        if seed % 3 == 0 {
            end(&mut is_ended);
        }
        let made = going.writer(0).and_then(|mut writer| {
            while writer.step()? {}
            going.commit(vec![writer.finish()?])
        });
        if seed % 3 == 1 {
            end(&mut is_ended);
        }
        drop((made, going));
        drop(shard);
        let crash = [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors][seed as usize % 3];
        let disk = disk.after_crash(crash, &mut SimRandom::new(seed + 1));
        let shard = open(&disk);
        if names(&shard).is_empty() {
            assert!(seed % 3 < 2, "seed {seed}: nobody ended it");
            assert_eq!(all(&shard), if commits { AFTER } else { BEFORE }, "seed {seed}");
        } else {
            assert!(!is_ended, "seed {seed}: it was ended");
            assert_eq!(all(&shard), BEFORE, "seed {seed}");
            is_guarded(&shard);
            finish(&shard, "one", commits);
            checkpoint(&shard);
            drop(shard);
            assert_eq!(all(&open(&disk)), if commits { AFTER } else { BEFORE }, "seed {seed}");
        }
    }
}
