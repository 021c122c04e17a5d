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

/// Two writers split the same leaf and its neighbours while a third task reads.
#[test]
fn index_schedules_of_splits() {
    explore(150, || {
        let tree = filled([10, 20, 30, 40].into_iter());
        let writers: Vec<_> = [[11, 12, 21], [13, 22, 31]]
            .into_iter()
            .map(|keys| {
                let tree = tree.clone();
                thread::spawn(move || keys.map(|n| assert_eq!(tree.insert(&key(n), RowId(n)), Ok(true))))
            })
            .collect();
        assert_stable(&tree, &[10, 20, 30, 40], Direction::Forward, 3);
        let mut rows = Rows::new();
        tree.get(&key(30), &mut rows);
        assert_eq!(rows.as_slice(), [RowId(30)]);
        writers.into_iter().for_each(|writer| drop(writer.join().expect("no panic")));
        assert_eq!(verify(&tree).len(), 10);
    });
}

/// Leaves are emptied and merged while others scan backwards and insert into the range.
#[test]
fn index_schedules_of_merges() {
    explore(150, || {
        let tree = filled(0..16);
        let remover = {
            let tree = tree.clone();
            thread::spawn(move || (3..13).for_each(|n| assert!(tree.remove(&key(n), RowId(n)))))
        };
        let inserter = {
            let tree = tree.clone();
            thread::spawn(move || (16..19).for_each(|n| assert_eq!(tree.insert(&key(n), RowId(n)), Ok(true))))
        };
        assert_stable(&tree, &[0, 1, 2, 13, 14, 15], Direction::Backward, 4);
        remover.join().expect("no panic");
        inserter.join().expect("no panic");
        assert!(verify(&tree).into_iter().map(|pair| pair.1).eq([0, 1, 2].into_iter().chain(13..19)));
    });
}

/// Of two tasks that insert the same pair one is told that it was first; of two that remove it, too.
#[test]
fn index_schedules_of_the_same_pair() {
    explore(300, || {
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
