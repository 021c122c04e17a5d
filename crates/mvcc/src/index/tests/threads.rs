//! Real threads: what is there all the time is always found, scans are sorted, nothing is lost.

use super::random::Rng;
use super::*;
use crate::sync::{AtomicBool, Ordering};

const KEYS: u64 = 4000;

/// Keys divisible by three stay; the others come and go. Every fifth is far in small nodes.
fn key(n: u64) -> Vec<u8> {
    let mut key = (n / 16).to_be_bytes()[5..].to_vec();
    if n.is_multiple_of(5) {
        key.resize(60, 7);
    }
    key.extend_from_slice(&(n as u16).to_be_bytes());
    key
}

fn is_stable(n: u64) -> bool {
    n.is_multiple_of(3)
}

/// Inserts and removes the changing keys with this remainder, and leaves them out at the end.
fn churn<const N: usize>(tree: &BTreeIndex<N>, writer: u64, writers: u64, rounds: usize, seed: u64) {
    let mut rng = Rng(seed);
    let own: Vec<u64> = (0..KEYS).filter(|&n| !is_stable(n) && n % writers == writer).collect();
    let mut present = vec![false; own.len()];
    for round in 0..rounds * own.len() {
        // Waves: mostly growing, then mostly shrinking, so that nodes split and merge.
        let grows = (round / own.len()).is_multiple_of(2);
        let at = rng.below(own.len());
        let insert = if rng.below(4) == 0 { !grows } else { grows };
        let n = own[at];
        if insert {
            assert_eq!(tree.insert(&key(n), RowId(n)), Ok(!present[at]));
        } else {
            assert_eq!(tree.remove(&key(n), RowId(n)), present[at]);
        }
        present[at] = insert;
    }
    for (at, n) in own.into_iter().enumerate() {
        assert_eq!(tree.remove(&key(n), RowId(n)), present[at]);
    }
}

fn read_all<const N: usize>(tree: &BTreeIndex<N>, direction: Direction, step: usize) {
    let found = collect(tree, &KeyRange::all(), direction, step);
    let forward = direction == Direction::Forward;
    assert!(found.is_sorted_by(|a, b| if forward { a < b } else { a > b }));
    assert_eq!(found.iter().filter(|pair| is_stable(pair.1)).count() as u64, KEYS.div_ceil(3));
    assert!(found.iter().all(|(bytes, row)| *bytes == key(*row)));
}

fn stress<const N: usize>(writers: u64, rounds: usize) {
    let tree = BTreeIndex::<N>::new();
    for n in (0..KEYS).filter(|&n| is_stable(n)) {
        tree.insert(&key(n), RowId(n)).expect("short");
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let tree = &tree;
        let writers: Vec<_> = (0..writers).map(|w| scope.spawn(move || churn(tree, w, writers, rounds, w))).collect();
        for reader in 0..2 {
            let done = &done;
            scope.spawn(move || {
                let mut rng = Rng(reader);
                while !done.load(Ordering::Relaxed) {
                    let direction = [Direction::Forward, Direction::Backward][rng.below(2)];
                    read_all(tree, direction, 1 + rng.below(300));
                    for _ in 0..200 {
                        let n = rng.below(KEYS as usize) as u64 / 3 * 3;
                        let mut rows = RowIds::new();
                        tree.get(&key(n), &mut rows);
                        assert_eq!(rows.as_slice(), [RowId(n)]);
                    }
                }
            });
        }
        let panicked: Vec<_> = writers.into_iter().filter_map(|writer| writer.join().err()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(panicked.is_empty(), "a writer panicked");
    });
    let expected: Vec<Pair> = (0..KEYS).filter(|&n| is_stable(n)).map(|n| (key(n), n)).collect();
    let mut expected = expected;
    expected.sort();
    assert_eq!(verify(&tree), expected);
}

#[test]
fn index_threads_on_tiny_nodes() {
    stress::<32>(2, 20);
}

#[test]
fn index_threads_on_real_nodes() {
    stress::<512>(2, 20);
}

/// Both threads append at the right edge, as two sessions with one sequence do.
#[test]
fn index_threads_ascending() {
    let tree = BTreeIndex::<512>::new();
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let tree = &tree;
            scope.spawn(move || {
                for n in 0..50_000_u64 {
                    let n = n * 2 + thread;
                    assert_eq!(tree.insert(&n.to_be_bytes(), RowId(n)), Ok(true));
                }
            });
        }
    });
    assert_eq!(verify(&tree).len(), 100_000);
}
