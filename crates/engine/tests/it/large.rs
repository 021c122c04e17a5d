//! A large transaction ends in parts, and other transactions run between them.

use engine_api::{Durability, Engine as _, Isolation, Step};
use env::sim::SimDisk;

use crate::support::*;

const ROWS: i32 = 20_000;

#[test]
fn others_go_on_between_the_parts_of_a_large_commit() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 5);
    let mut large = begin(&shard, Isolation::ReadCommitted);
    ready(update(&mut *large, 1, |b| b + 1));
    for id in 100..100 + ROWS {
        loop {
            match insert(&mut *large, id, 1).unwrap() {
                Step::Ready(_) => break,
                Step::Wait(_) => std::thread::yield_now(),
            }
        }
    }
    let outcome = loop {
        match large.commit(Durability::On).unwrap() {
            Step::Ready(outcome) => break outcome,
            Step::Wait(_) => std::thread::yield_now(),
        }
    };
    // It is committed: all see it, also before its rows are stamped.
    assert_eq!(all(&shard).len(), 5 + ROWS as usize);
    let (mut turns, mut commits) = (0, 0);
    while !large.finish_some() {
        turns += 1;
        let mut other = begin(&shard, Isolation::Serializable);
        assert_eq!(find(&mut *other, 100 + turns).map(|found| found.1), Some(1));
        ready(update(&mut *other, 2, |b| b + 1));
        commit(&shard, other);
        // A row of the large one can be had as soon as its lock is released.
        let mut other = begin(&shard, Isolation::ReadCommitted);
        if let Ok(Step::Ready(())) = update(&mut *other, 1, |b| b + 10) {
            commit(&shard, other);
            commits += 1;
        } else {
            other.cancel_wait();
            other.rollback();
        }
    }
    assert!(turns > 20, "{turns} turns for others");
    assert!(commits > 0 && commits < turns, "{commits} of {turns}: its locks go near the end, not only then");
    assert!(shard.durable().block(outcome.gate));
    assert!(large.finish_some());
    let expected = 100 + 1 + 10 * i64::from(commits);
    let mut txn = begin(&shard, Isolation::ReadCommitted);
    assert_eq!(find(&mut *txn, 1).map(|found| found.1), Some(expected));
    txn.rollback();
    assert!(shard.locks().is_empty(), "{:?}", shard.locks());
}

/// The same of one that was prepared.
#[test]
fn others_go_on_between_the_parts_of_a_large_second_phase() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 5);
    let mut large = begin(&shard, Isolation::ReadCommitted);
    for id in 100..100 + ROWS {
        while let Step::Wait(_) = insert(&mut *large, id, 1).unwrap() {
            std::thread::yield_now();
        }
    }
    while let Step::Wait(_) = large.prepare(&crate::prepared::named("large")).unwrap() {
        std::thread::yield_now();
    }
    drop(large);
    let (outcome, mut rest) = ready(shard.finish_prepared("large", true));
    assert_eq!((all(&shard).len(), shard.prepared().len()), (5 + ROWS as usize, 0));
    let mut turns = 0;
    while !rest.finish_some() {
        turns += 1;
        let mut other = begin(&shard, Isolation::ReadCommitted);
        ready(update(&mut *other, 2, |b| b + 1));
        commit(&shard, other);
    }
    assert!(turns > 20, "{turns} turns for others");
    assert!(shard.durable().block(outcome.gate));
    assert!(shard.locks().is_empty(), "{:?}", shard.locks());
    drop((rest, shard));
    assert_eq!(all(&open(&disk)).len(), 5 + ROWS as usize);
}

/// Whoever drops a committed transaction ends it; nothing of it is undone.
#[test]
fn a_large_commit_that_nobody_ends_is_committed() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 5);
    let mut large = begin(&shard, Isolation::ReadCommitted);
    for id in 100..100 + ROWS {
        while let Step::Wait(_) = insert(&mut *large, id, 1).unwrap() {
            std::thread::yield_now();
        }
    }
    while let Step::Wait(_) = large.commit(Durability::On).unwrap() {
        std::thread::yield_now();
    }
    assert!(!large.finish_some());
    drop(large);
    assert_eq!(all(&shard).len(), 5 + ROWS as usize);
    assert!(shard.locks().is_empty());
}
