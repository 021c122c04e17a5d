//! Shuttle's schedules on the smallest nodes: splits, merges and scans interleaved at every word.

use super::*;
use shuttle::thread;
use std::sync::Arc;

/// Keys of 0 to 24 bytes, the long ones far in nodes of this size.
fn key(n: u64) -> Vec<u8> {
    let mut key = n.to_be_bytes()[7..].to_vec();
    key.resize(1 + (n as usize % 3) * 11, b'k');
    key
}

fn explore(iterations: usize, body: fn()) {
    shuttle::check_random(body, iterations);
    shuttle::check_pct(body, iterations / 2, 3);
}

fn filled(keys: impl Iterator<Item = u64>) -> Arc<BTreeIndex<32>> {
    let tree = Arc::new(BTreeIndex::new());
    for n in keys {
        tree.insert(&key(n), RowId(n)).expect("short");
    }
    tree
}

fn assert_stable(tree: &BTreeIndex<32>, stable: &[u64], direction: Direction, step: usize) {
    let found = collect(tree, &KeyRange::all(), direction, step);
    let forward = direction == Direction::Forward;
    assert!(found.is_sorted_by(|a, b| if forward { a < b } else { a > b }));
    assert!(found.iter().all(|(bytes, row)| *bytes == key(*row)));
    assert!(stable.iter().all(|&n| found.iter().any(|pair| pair.1 == n)), "a key that was there was not seen");
}

/// Two writers split leaves of a tree of two levels while a third task reads.
#[test]
fn index_schedules_of_splits() {
    explore(1500, || {
        let stable: Vec<u64> = (0..30).map(|n| n * 4).collect();
        let tree = filled(stable.iter().copied());
        let writers: Vec<_> = [[41, 42, 43, 45], [46, 47, 49, 50]]
            .into_iter()
            .map(|keys| {
                let tree = tree.clone();
                thread::spawn(move || keys.map(|n| assert_eq!(tree.insert(&key(n), RowId(n)), Ok(true))))
            })
            .collect();
        assert_stable(&tree, &stable, Direction::Forward, 13);
        writers.into_iter().for_each(|writer| _ = writer.join().expect("no panic"));
        assert_eq!(verify(&tree).len(), 38);
    });
}

/// Leaves are emptied and merged while others scan backwards and insert into the range.
#[test]
fn index_schedules_of_merges() {
    explore(1500, || {
        let tree = filled(0..32);
        let remover = {
            let tree = tree.clone();
            thread::spawn(move || (3..29).for_each(|n| assert!(tree.remove(&key(n), RowId(n)))))
        };
        let inserter = {
            let tree = tree.clone();
            thread::spawn(move || (32..35).for_each(|n| assert_eq!(tree.insert(&key(n), RowId(n)), Ok(true))))
        };
        assert_stable(&tree, &[0, 1, 2, 29, 30, 31], Direction::Backward, 4);
        remover.join().expect("no panic");
        inserter.join().expect("no panic");
        assert!(verify(&tree).into_iter().map(|pair| pair.1).eq([0, 1, 2].into_iter().chain(29..35)));
    });
}

/// Of two tasks that insert the same pair one is told that it was first; of two that remove it, too.
#[test]
fn index_schedules_of_the_same_pair() {
    explore(3000, || {
        let tree = filled(0..5);
        let other = {
            let tree = tree.clone();
            thread::spawn(move || (tree.insert(&key(7), RowId(7)), tree.remove(&key(2), RowId(2))))
        };
        let (inserted, removed) = (tree.insert(&key(7), RowId(7)), tree.remove(&key(2), RowId(2)));
        let (other_inserted, other_removed) = other.join().expect("no panic");
        assert_ne!(inserted, other_inserted);
        assert_ne!(removed, other_removed);
        assert_eq!(verify(&tree).len(), 5);
    });
}

/// Descents meet a leaf that is being split: without the second check of the parent, keys that moved right are missed
/// by readers and, worse, inserted on the left.
#[test]
fn index_schedules_of_descents() {
    explore(6000, || {
        let stable: Vec<u64> = (0..24).map(|n| n * 4).collect();
        let tree = filled(stable.iter().copied());
        let writer = {
            let tree = tree.clone();
            thread::spawn(move || {
                for n in [41, 42, 43, 45, 46] {
                    assert_eq!(tree.insert(&key(n), RowId(n)), Ok(true));
                }
            })
        };
        for _ in 0..3 {
            for n in [36, 40, 44, 48, 52, 56, 60] {
                let mut rows = RowIds::new();
                tree.get(&key(n), &mut rows);
                assert_eq!(rows.as_slice(), [RowId(n)]);
            }
        }
        writer.join().expect("no panic");
        assert_eq!(verify(&tree).len(), 29);
    });
}

/// Keys ascend into leaves that are emptied and merged away meanwhile: no finger points at one that is gone.
#[test]
fn index_schedules_of_ascending_keys() {
    explore(2000, || {
        let tree = filled(0..24);
        assert_ne!(tree.fingers().count(), 0, "the test would show nothing");
        let remover = {
            let tree = tree.clone();
            thread::spawn(move || (4..24).rev().for_each(|n| assert!(tree.remove(&key(n), RowId(n)))))
        };
        for n in 24..28 {
            assert_eq!(tree.insert(&key(n), RowId(n)), Ok(true));
        }
        (24..28).rev().for_each(|n| assert!(tree.remove(&key(n), RowId(n))));
        remover.join().expect("no panic");
        assert_eq!(verify(&tree).len(), 4);
    });
}
