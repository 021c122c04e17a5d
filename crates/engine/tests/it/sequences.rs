//! Sequences over crashes and with little log space.

use base::{Lsn, Oid, SqlState};
use engine::Shard;
use engine_api::*;
use env::sim::{Crash, SimDisk, SimRandom};
use types::oid;

use crate::support::*;

const S: Oid = Oid(20020);

fn sequence(max: i64) -> SequenceDesc {
    SequenceDesc::new(S, oids::SCHEMA_PUBLIC, "s", oids::ROLE_POSTGRES, oid::INT8, max)
}

fn define_sequence(shard: &Shard, max: i64) {
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.put_object(CatalogObject::Sequence(sequence(max))));
    commit(shard, txn);
}

/// A value whose gate was waited for is not handed out again, at whatever operation the machine stops; one whose gate
/// was not reached may be.
#[test]
fn values_that_were_shown_do_not_come_again() {
    for seed in 1..=40 {
        let mut random = SimRandom::new(seed);
        let mut disk = SimDisk::new();
        let shard = open(&disk);
        define_sequence(&shard, i64::MAX);
        drop(shard);
        let mut shown = 0;
        for _ in 0..4 {
            let shard = open(&disk);
            disk.freeze_at(disk.operations() + random.below(12));
            for _ in 0..random.below(100) {
                let Ok(value) = next_value(&shard, &sequence(i64::MAX)) else { break };
                assert!(value > shown, "seed {seed}: {value} after {shown}");
                // Some sessions have not sent their reply when the machine stops.
                if random.below(4) > 0 && shard.durable().block(shard.sequence_gate(&sequence(i64::MAX))) {
                    shown = value;
                }
            }
            drop(shard);
            disk = disk.after_crash(Crash::LoseUnsynced, &mut random);
        }
    }
}

#[test]
fn a_gate_is_raised_by_the_record_and_over_when_it_is_durable() {
    let disk = SimDisk::new();
    let shard = open(&disk);
    define_sequence(&shard, i64::MAX);
    assert_eq!(shard.sequence_gate(&sequence(i64::MAX)), Lsn(0));
    next_value(&shard, &sequence(i64::MAX)).unwrap();
    assert!(shard.durable().block(shard.sequence_gate(&sequence(i64::MAX))));
    assert_eq!(shard.sequence_gate(&sequence(i64::MAX)), Lsn(0));
    with_space(|| shard.sequence_set(&sequence(i64::MAX), SequenceState { last_value: 500, is_called: true })).unwrap();
    assert!(shard.durable().block(shard.sequence_gate(&sequence(i64::MAX))));
    drop(shard);
    let next = next_value(&open(&disk), &sequence(i64::MAX)).unwrap();
    assert!(next > 500, "{next}");
}

#[test]
fn values_go_on_while_segments_are_prepared() {
    // Segments so small that records of sequences alone use them up all the time.
    let log = redo::FileOptions { segment_bytes: 64 << 10, batch_bytes_max: 8 << 10 };
    let disk = SimDisk::new();
    let shard = open_with(&disk, log);
    define_sequence(&shard, i64::MAX);
    let mut last = 0;
    for _ in 0..200_000 {
        let value = next_value(&shard, &sequence(i64::MAX)).expect("space that is being prepared is no full disk");
        assert!(value > last);
        last = value;
    }
    drop(shard);
    assert!(next_value(&open_with(&disk, log), &sequence(i64::MAX)).unwrap() > last);
}

/// More records than are kept aside.
#[test]
fn setting_values_waits_for_segments_that_are_prepared() {
    let log = redo::FileOptions { segment_bytes: 16 << 10, batch_bytes_max: 4 << 10 };
    let disk = SimDisk::new();
    let shard = open_with(&disk, log);
    define_sequence(&shard, i64::MAX);
    let mut waits = 0;
    for value in 1..=50_000 {
        let state = SequenceState { last_value: value, is_called: true };
        let ask = || {
            let step = shard.sequence_set(&sequence(i64::MAX), state)?;
            waits += u32::from(matches!(step, Step::Wait(_)));
            Ok(step)
        };
        with_space(ask).expect("space that is being prepared is no full disk");
    }
    assert!(waits > 0, "the log is never short of space");
    assert_eq!(next_value(&shard, &sequence(i64::MAX)).unwrap(), 50_001);
}

#[test]
fn a_full_disk_refuses_values_in_the_end() {
    let log = redo::FileOptions { segment_bytes: 16 << 10, batch_bytes_max: 4 << 10 };
    let disk = SimDisk::new();
    let shard = open_with(&disk, log);
    define_sequence(&shard, i64::MAX);
    disk.set_quota(Some(3 * log.segment_bytes));
    let error = (0..1_000_000).find_map(|_| next_value(&shard, &sequence(i64::MAX)).err()).expect("the disk is full");
    assert_eq!(error.code(), SqlState::DISK_FULL);
}

#[test]
fn the_oid_of_a_sequence_that_was_lost_is_not_used_again() {
    let disk = SimDisk::new();
    let shard = open(&disk);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    ready(txn.put_object(CatalogObject::Sequence(sequence(i64::MAX))));
    next_value(&shard, &sequence(i64::MAX)).unwrap();
    assert!(shard.durable().block(shard.sequence_gate(&sequence(i64::MAX))));
    txn.rollback();
    drop((txn, shard));
    assert!(open(&disk).allocate_oid() > S);
}

fn restart(shard: &Shard, to: i64) -> (Box<dyn Txn>, SequenceDesc) {
    let restarted = SequenceDesc { state: Some(shard.allocate_oid()), ..sequence(i64::MAX) };
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.put_object(CatalogObject::Sequence(restarted.clone())));
    with_space(|| shard.sequence_restart(&restarted, SequenceState { last_value: to, is_called: false })).unwrap();
    (txn, restarted)
}

#[test]
fn a_restart_counts_once_it_is_committed() {
    let disk = SimDisk::new();
    let shard = open(&disk);
    define_sequence(&shard, i64::MAX);
    let before = sequence(i64::MAX);
    assert_eq!(next_value(&shard, &before).unwrap(), 1);
    // Taken back.
    let (txn, restarted) = restart(&shard, 500);
    assert_eq!(next_value(&shard, &restarted).unwrap(), 500);
    assert_eq!(next_value(&shard, &before).unwrap(), 2, "others go on");
    drop(txn);
    assert_eq!(next_value(&shard, &before).unwrap(), 3);
    // Lost with the machine.
    let (txn, restarted) = restart(&shard, 600);
    assert_eq!(next_value(&shard, &restarted).unwrap(), 600);
    assert!(shard.durable().block(shard.sequence_gate(&restarted)));
    drop((txn, shard));
    let shard = open(&disk);
    assert!((4..600).contains(&next_value(&shard, &before).unwrap()));
    assert!(shard.allocate_oid() > restarted.state_id());
    // Committed: who has the definition of before gets the new values, too.
    let (txn, restarted) = restart(&shard, 700);
    commit(&shard, txn);
    assert_eq!(next_value(&shard, &restarted).unwrap(), 700);
    assert_eq!(next_value(&shard, &before).unwrap(), 701);
    assert!(shard.durable().block(shard.sequence_gate(&before)));
    drop(shard);
    let shard = open(&disk);
    let found = shard.catalog().sequence(S).cloned().expect("it is there");
    let next = next_value(&shard, &found).unwrap();
    assert!((702..800).contains(&next), "{next}");
}
