//! Definitions between the phases of a commit: over restarts, images and lost writes.

use base::{Oid, SqlState};
use engine::Shard;
use engine_api::*;
use env::sim::{Crash, SimDisk, SimRandom};

use crate::checkpoints::checkpoint;
use crate::prepared::{finish, named, names, prepare};
use crate::support::*;

const COPIES: Oid = Oid(20010);
const NUMBERS: Oid = Oid(20012);

fn numbers() -> SequenceDesc {
    SequenceDesc {
        start: 5,
        ..SequenceDesc::new(NUMBERS, oids::SCHEMA_PUBLIC, "numbers", oids::ROLE_POSTGRES, types::oid::INT8, 1000)
    }
}

/// A unique index over what is unique only since this transaction, a new table with rows, a sequence that is used.
fn make(shard: &Shard) -> Box<dyn Txn> {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
    for id in 0..5 {
        ready(update(&mut *txn, id, |b| b + i64::from(id)));
    }
    txn.begin_command();
    ready(txn.put_object(by_balance(true)));
    ready(txn.put_object(CatalogObject::Table(TableDesc { oid: COPIES, name: "copies".to_string(), ..accounts() })));
    ready(txn.put_object(CatalogObject::Sequence(numbers())));
    assert_eq!(next_value(shard, &numbers()).unwrap(), 5);
    // Rows of storage that is given up again.
    for id in 0..10 {
        let table = txn.open_table(COPIES).unwrap();
        ready(txn.insert(&table, &tuple(id, 1), ConflictArbiter::None));
        if id == 6 {
            txn.truncate(COPIES).unwrap();
        }
    }
    txn.begin_command();
    ready(insert(&mut *txn, 9, 900));
    txn
}

fn copies(shard: &Shard) -> Option<u64> {
    shard.catalog().table(COPIES).map(|_| shard.row_count(COPIES))
}

/// What others find while it is prepared.
fn is_hidden(shard: &Shard) {
    engine::inspect::check(shard).expect("indexes have what tables have");
    assert_eq!(shard.audit(), Vec::<String>::new());
    assert_eq!(names(shard), ["one"]);
    assert!(copies(shard).is_none() && shard.catalog().index(BY_BALANCE).is_none());
    let mut txn = begin(shard, Isolation::ReadCommitted);
    let refused = txn.lock_table(ACCOUNTS, TableLockMode::AccessShare, WaitPolicy::Error).unwrap_err();
    assert_eq!(refused.code(), SqlState::LOCK_NOT_AVAILABLE);
    // The names are taken.
    let other = TableDesc { oid: Oid(30000), name: "copies".to_string(), ..accounts() };
    waits(txn.put_object(CatalogObject::Table(other)));
    txn.rollback();
    assert_eq!(all(shard), (0..5).map(|id| (id, 100)).collect::<Vec<_>>());
}

fn is_ended(shard: &Shard, commits: bool) {
    engine::inspect::check(shard).expect("indexes have what tables have");
    assert_eq!(shard.audit(), Vec::<String>::new());
    assert!(names(shard).is_empty());
    assert_eq!(copies(shard), commits.then_some(3));
    if !commits {
        assert_eq!(all(shard), (0..5).map(|id| (id, 100)).collect::<Vec<_>>());
        assert!(shard.catalog().index(BY_BALANCE).is_none());
        return;
    }
    let expected = [(0, 100), (1, 101), (2, 102), (3, 103), (4, 104), (9, 900)];
    let mut txn = begin(shard, Isolation::ReadCommitted);
    assert_eq!(scan(&mut *txn, Some(BY_BALANCE)), expected);
    txn.begin_command();
    let error = insert(&mut *txn, 20, 104).unwrap_err();
    assert_eq!(error.code(), SqlState::UNIQUE_VIOLATION);
    txn.rollback();
    assert!(next_value(shard, &numbers()).unwrap() > 5);
}

/// Where it may be when the process ends.
#[derive(Clone, Copy, PartialEq)]
enum Image {
    None,
    Before,
    Behind,
}

#[test]
fn definitions_survive_restarts_until_they_are_ended() {
    for image in [Image::None, Image::Before, Image::Behind] {
        for commits in [true, false] {
            let disk = SimDisk::new();
            let mut shard = bank(&disk, 5);
            if image == Image::Before {
                checkpoint(&shard);
            }
            prepare(&shard, make(&shard), "one");
            is_hidden(&shard);
            for _ in 0..3 {
                if image == Image::Behind {
                    checkpoint(&shard);
                }
                drop(shard);
                shard = open(&disk);
                is_hidden(&shard);
            }
            assert!(shard.allocate_oid() > NUMBERS, "what it has made keeps its OIDs");
            finish(&shard, "one", commits);
            is_ended(&shard, commits);
            drop(shard);
            shard = open(&disk);
            is_ended(&shard, commits);
            checkpoint(&shard);
            drop(shard);
            is_ended(&open(&disk), commits);
        }
    }
}

/// Ends it without a restart between.
#[test]
fn another_ends_it() {
    for commits in [true, false] {
        let disk = SimDisk::new();
        let shard = bank(&disk, 5);
        prepare(&shard, make(&shard), "one");
        let mut waiting = begin(&shard, Isolation::ReadCommitted);
        let wait = waits(waiting.lock_table(ACCOUNTS, TableLockMode::RowExclusive, WaitPolicy::Block));
        finish(&shard, "one", commits);
        drop(wait);
        ready(waiting.lock_table(ACCOUNTS, TableLockMode::RowExclusive, WaitPolicy::Block));
        waiting.rollback();
        is_ended(&shard, commits);
    }
}

#[test]
fn what_goes_stays_until_the_end() {
    for (drops, image) in [(true, true), (true, false), (false, true), (false, false)] {
        for commits in [true, false] {
            let disk = SimDisk::new();
            let mut shard = bank(&disk, 5);
            let mut txn = begin(&shard, Isolation::ReadCommitted);
            ready(txn.lock_table(ACCOUNTS, TableLockMode::AccessExclusive, WaitPolicy::Block));
            // On the old rows, which go.
            ready(update(&mut *txn, 1, |b| b + 1));
            txn.begin_command();
            if drops {
                txn.drop_object(BY_ID).unwrap();
                txn.drop_object(ACCOUNTS).unwrap();
            } else {
                txn.truncate(ACCOUNTS).unwrap();
                ready(insert(&mut *txn, 7, 70));
            }
            prepare(&shard, txn, "one");
            for _ in 0..2 {
                assert_eq!(all(&shard).len(), 5);
                if image {
                    checkpoint(&shard);
                }
                drop(shard);
                shard = open(&disk);
            }
            finish(&shard, "one", commits);
            for _ in 0..2 {
                match (commits, drops) {
                    (false, _) => assert_eq!(all(&shard), (0..5).map(|id| (id, 100)).collect::<Vec<_>>()),
                    (true, true) => assert!(shard.catalog().table(ACCOUNTS).is_none()),
                    (true, false) => {
                        assert_eq!(all(&shard), [(7, 70)]);
                        let mut txn = begin(&shard, Isolation::ReadCommitted);
                        assert_eq!(find(&mut *txn, 7).map(|(_, balance)| balance), Some(70));
                    }
                }
                drop(shard);
                shard = open(&disk);
            }
        }
    }
}

/// The machine stops anywhere: what was answered is there, prepared or ended, never by half.
#[test]
fn a_crash_leaves_definitions_whole() {
    for seed in 0..80 {
        let disk = SimDisk::new();
        let shard = bank(&disk, 5);
        prepare(&shard, make(&shard), "one");
        disk.freeze_at(disk.operations() + seed / 2);
        let commits = seed % 2 == 0;
        let mut ended = false;
        let going = shard.begin_checkpoint().expect("no other goes on");
        if seed % 3 == 0 {
            let Step::Ready((outcome, _)) = shard.finish_prepared("one", commits).unwrap() else { panic!("waits") };
            ended = shard.durable().block(outcome.gate);
        }
        let made = going.writer(0).and_then(|mut writer| {
            while writer.step()? {}
            going.commit(vec![writer.finish()?])
        });
        drop((made, going));
        drop(shard);
        let crash = [Crash::LoseUnsynced, Crash::KeepAll, Crash::AnySectors][seed as usize % 3];
        let disk = disk.after_crash(crash, &mut SimRandom::new(seed + 1));
        let shard = open(&disk);
        if names(&shard).is_empty() {
            assert!(seed % 3 == 0, "seed {seed}: nobody ended it");
            is_ended(&shard, commits);
            continue;
        }
        assert!(!ended, "seed {seed}: it was ended");
        is_hidden(&shard);
        finish(&shard, "one", commits);
        drop(shard);
        is_ended(&open(&disk), commits);
    }
}

#[test]
fn what_is_temporary_is_refused() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 5);
    let schema = Oid(20020);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    let desc = SchemaDesc {
        oid: schema,
        database: oids::DATABASE_POSTGRES,
        name: "pg_temp_3".to_string(),
        owner: oids::ROLE_POSTGRES,
        comment: None,
    };
    ready(txn.put_object(CatalogObject::Schema(desc)));
    commit(&shard, txn);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(txn.put_object(CatalogObject::Table(TableDesc { oid: COPIES, schema, ..accounts() })));
    let error = txn.prepare(&named("one")).unwrap_err();
    assert_eq!(error.code(), SqlState::FEATURE_NOT_SUPPORTED);
    assert_eq!(error.fields().message, "cannot PREPARE a transaction that has operated on temporary objects");
}
