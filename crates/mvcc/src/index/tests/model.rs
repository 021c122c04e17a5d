//! The tree against a sorted set, on node sizes from tiny to the real one.

use super::random::Rng;
use super::*;
use std::collections::BTreeSet;
use std::ops::Bound;

/// How keys are made.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Few distinct short ones, many of them prefixes of others, with many rows each.
    Short,
    /// Eight random bytes.
    Eight,
    /// Ascending runs under a few prefixes.
    Runs,
    /// Up to several hundred bytes with long shared beginnings, now and then the longest.
    Long,
}

fn key(kind: Keys, rng: &mut Rng) -> Vec<u8> {
    match kind {
        Keys::Short => (0..rng.below(4)).map(|_| [0, 1, b'a', 0xff][rng.below(4)]).collect(),
        Keys::Eight => rng.next().to_be_bytes().to_vec(),
        Keys::Runs => [b"district".as_slice(), &[rng.below(3) as u8], &(rng.below(600) as u32).to_be_bytes()].concat(),
        Keys::Long => {
            let len = if rng.below(50) == 0 { MAX_KEY_LEN } else { rng.below(400) };
            let mut key = vec![b'x'; len];
            let tail = len.saturating_sub(rng.below(6));
            key[tail..].iter_mut().for_each(|byte| *byte = [0, b'x', 0xff][rng.below(3)]);
            key
        }
    }
}

fn edge<'a>(bytes: &'a [u8], rng: &mut Rng) -> Edge<'a> {
    match rng.below(8) {
        0 => Edge::Start,
        1 => Edge::End,
        2 | 3 => Edge::Before(bytes),
        4 | 5 => Edge::After(bytes),
        _ => Edge::AfterPrefix(bytes),
    }
}

/// Whether a key lies before an edge, said in another way than the tree does.
fn is_before(key: &[u8], edge: Edge<'_>) -> bool {
    match edge {
        Edge::Start => false,
        Edge::Before(bytes) => key < bytes,
        Edge::After(bytes) => key <= bytes,
        Edge::AfterPrefix(bytes) => key[..key.len().min(bytes.len())] <= *bytes,
        Edge::End => true,
    }
}

fn check_scans<const N: usize>(tree: &BTreeIndex<N>, model: &BTreeSet<Pair>, kind: Keys, rng: &mut Rng) {
    for _ in 0..12 {
        let (mut a, mut b) = (key(kind, rng), key(kind, rng));
        a.truncate(rng.below(a.len() + 1).max(rng.below(a.len() + 1)));
        b.truncate(b.len() - rng.below(2).min(b.len()));
        let range = KeyRange { from: edge(&a, rng), to: edge(&b, rng) };
        let inside = |pair: &&Pair| !is_before(&pair.0, range.from) && is_before(&pair.0, range.to);
        let mut expected: Vec<Pair> = model.iter().filter(inside).cloned().collect();
        let step = 1 + rng.below(60);
        assert_eq!(collect(tree, &range, Direction::Forward, step), expected, "{range:?}");
        expected.reverse();
        assert_eq!(collect(tree, &range, Direction::Backward, step), expected, "{range:?}");
    }
}

fn check_points<const N: usize>(tree: &BTreeIndex<N>, model: &BTreeSet<Pair>, kind: Keys, rng: &mut Rng) {
    for _ in 0..30 {
        let key = key(kind, rng);
        let mut rows = RowIds::new();
        tree.get(&key, &mut rows);
        let expected: Vec<RowId> =
            model.range((key.clone(), 0)..=(key.clone(), u64::MAX)).map(|pair| RowId(pair.1)).collect();
        assert_eq!(rows.as_slice(), expected);
        let mut batch = EntryBatch::rows_only();
        assert!(!tree.scan(&KeyRange::point(&key), Direction::Forward, None, usize::MAX, &mut batch));
        assert_eq!(batch.rows(), expected);
    }
}

fn run<const N: usize>(kind: Keys, steps: usize, seed: u64) {
    println!("{kind:?}, nodes of {N} words, seed {seed}");
    let mut rng = Rng(seed);
    let tree = BTreeIndex::<N>::new();
    let mut model: BTreeSet<Pair> = BTreeSet::new();
    // Grows, shrinks to nothing, grows again.
    for phase in 0..6 {
        let insert_of_ten = [9, 6, 2, 0, 8, 4][phase];
        for step in 0..steps {
            if rng.below(10) < insert_of_ten {
                let (key, row) = (key(kind, &mut rng), [0, 7, 300, rng.next() >> (rng.below(8) * 8)][rng.below(4)]);
                let same = model.range((key.clone(), 0)..=(key.clone(), u64::MAX));
                let expected: Vec<RowId> = same.map(|pair| RowId(pair.1)).collect();
                if rng.below(3) == 0 {
                    let mut others = RowIds::new();
                    assert_eq!(tree.insert_alone(&key, RowId(row), &mut others), Ok(expected.is_empty()));
                    assert_eq!(others.as_slice(), expected);
                    if expected.is_empty() {
                        model.insert((key, row));
                    }
                } else {
                    assert_eq!(tree.insert(&key, RowId(row)), Ok(model.insert((key, row))));
                }
            } else if !model.is_empty() {
                let from = (key(kind, &mut rng), 0);
                let pair = model.range(from..).next().or(model.first()).cloned().expect("not empty");
                assert!(tree.remove(&pair.0, RowId(pair.1)));
                assert!(!tree.remove(&pair.0, RowId(pair.1)));
                model.remove(&pair);
            }
            if step % (steps / 4) == 0 {
                assert!(verify(&tree).iter().eq(&model));
                check_scans(&tree, &model, kind, &mut rng);
                check_points(&tree, &model, kind, &mut rng);
            }
        }
        assert!(verify(&tree).iter().eq(&model));
    }
    for (key, row) in model {
        assert!(tree.remove(&key, RowId(row)));
    }
    assert_eq!(verify(&tree), vec![]);
}

fn run_sizes(kind: Keys, steps: usize) {
    for seed in 0..3 {
        run::<32>(kind, steps, seed);
        run::<64>(kind, steps, 100 + seed);
        run::<512>(kind, steps * 2, 200 + seed);
    }
}

#[test]
fn index_model_short_keys() {
    run_sizes(Keys::Short, 2000);
}

#[test]
fn index_model_eight_byte_keys() {
    run_sizes(Keys::Eight, 3000);
}

#[test]
fn index_model_runs() {
    run_sizes(Keys::Runs, 3000);
}

#[test]
fn index_model_long_keys() {
    run_sizes(Keys::Long, 800);
}

/// A split at every fill, wherever the next key goes: nodes of every size with keys of every size.
#[test]
fn index_splits_at_every_size() {
    for len in 0..300 {
        for order in 0..3 {
            let tree = BTreeIndex::<32>::new();
            let mut model = BTreeSet::new();
            for n in 0_u64..40 {
                let number = [n, 1000 - n, n * 7919 % 1000][order];
                let key = [vec![b'k'; len], number.to_be_bytes()[6..].to_vec()].concat();
                assert_eq!(tree.insert(&key, RowId(n)), Ok(true));
                model.insert((key, n));
            }
            assert!(verify(&tree).iter().eq(&model));
        }
    }
}

#[test]
fn index_rows_of_one_key_span_leaves() {
    let tree = BTreeIndex::<32>::new();
    for row in 0..500_u64 {
        for key in [b"a".as_slice(), b"b", b"ba", b"c"] {
            tree.insert(key, RowId(row * 977 % 500)).expect("short");
        }
    }
    for key in [b"a".as_slice(), b"b", b"ba", b"c"] {
        let mut rows = RowIds::new();
        tree.get(key, &mut rows);
        assert!(rows.iter().map(|row| row.0).eq(0..500));
    }
    let prefix = collect(&tree, &KeyRange::prefix(b"b"), Direction::Backward, 7);
    assert_eq!((prefix.len(), &prefix[0]), (1000, &(b"ba".to_vec(), 499)));
    let between = KeyRange::bounds(Bound::Excluded(b"b"), Bound::Included(b"c"));
    assert_eq!(collect(&tree, &between, Direction::Forward, 64).len(), 1000);
}

#[test]
fn index_resume_point_needs_no_keys_and_no_entry() {
    let tree = BTreeIndex::<64>::new();
    for n in 0..1000_u64 {
        tree.insert(&n.to_be_bytes(), RowId(n)).expect("short");
    }
    let mut batch = EntryBatch::rows_only();
    let mut seen = 0;
    let mut resume: Option<Pair> = None;
    loop {
        batch.clear();
        let after = resume.as_ref().map(|(key, row)| (key.as_slice(), RowId(*row)));
        let more = tree.scan(&KeyRange::all(), Direction::Forward, after, 13, &mut batch);
        seen += batch.len();
        if !more {
            break;
        }
        let (key, row) = batch.last().expect("the limit is not 0");
        assert_eq!(key, row.0.to_be_bytes());
        assert!(tree.remove(key, row));
        resume = Some((key.to_vec(), row.0));
    }
    assert_eq!(seen, 1000);
}

#[test]
fn index_refuses_keys_that_are_too_long() {
    let tree = BTreeIndex::<512>::new();
    let key = vec![1; MAX_KEY_LEN + 1];
    assert_eq!(tree.insert(&key, RowId(1)), Err(KeyTooLong { len: MAX_KEY_LEN + 1 }));
    assert!(!tree.remove(&key, RowId(1)));
    assert_eq!(tree.insert(&key[1..], RowId(1)), Ok(true));
    assert_eq!(verify(&tree).len(), 1);
}

fn bytes_per_entry(entries: u64, key: impl Fn(u64) -> u64) -> f64 {
    let tree = BTreeIndex::<512>::new();
    for n in 0..entries {
        tree.insert(&key(n).to_be_bytes(), RowId(n)).expect("short");
    }
    assert_eq!(verify(&tree).len(), entries as usize);
    tree.memory_bytes() as f64 / entries as f64
}

#[test]
fn index_takes_at_most_32_bytes_per_entry() {
    let entries = 200_000;
    let ascending = bytes_per_entry(entries, |n| n);
    let random = bytes_per_entry(entries, |n| Rng(n).next());
    let permuted = bytes_per_entry(entries, |n| n * 7919 % entries);
    println!("bytes per entry: ascending {ascending:.1}, random {random:.1}, permuted {permuted:.1}");
    assert!(ascending <= 20.0 && random <= 32.0 && permuted <= 32.0);
}

#[test]
fn index_ascending_under_many_prefixes_fills_leaves() {
    let tree = BTreeIndex::<512>::new();
    for n in 0..4000_u32 {
        for district in 0..50_u8 {
            let key = [&[district], n.to_be_bytes().as_slice()].concat();
            tree.insert(&key, RowId(u64::from(n) * 50 + u64::from(district))).expect("short");
        }
    }
    let per_entry = tree.memory_bytes() as f64 / tree.len() as f64;
    assert!(per_entry <= 20.0, "{per_entry:.1} bytes per entry");
    verify(&tree);
}

#[test]
fn index_used_as_a_queue_gives_nodes_back() {
    let tree = BTreeIndex::<64>::new();
    for n in 0..100_000_u64 {
        tree.insert(&n.to_be_bytes(), RowId(n)).expect("short");
        if n >= 100 {
            assert!(tree.remove(&(n - 100).to_be_bytes(), RowId(n - 100)));
        }
    }
    assert_eq!(verify(&tree).len(), 100);
    assert!(tree.memory_bytes() < 100 * 100, "{} bytes for 100 entries", tree.memory_bytes());
}

/// A leaf into which keys ascend is merged away, and keys ascend again.
#[test]
fn index_fingers_let_go_of_leaves_that_are_gone() {
    let tree = BTreeIndex::<32>::new();
    let key = |n: u64| n.to_be_bytes();
    for round in 1..20 {
        for n in 0..round * 10 {
            assert_eq!(tree.insert(&key(n), RowId(n)), Ok(true));
        }
        assert_eq!(tree.fingers().count(), 1);
        for n in (3..round * 10).rev() {
            assert!(tree.remove(&key(n), RowId(n)));
        }
        assert_eq!(verify(&tree).len(), 3);
        (0..3).for_each(|n| assert!(tree.remove(&key(n), RowId(n))));
    }
}
