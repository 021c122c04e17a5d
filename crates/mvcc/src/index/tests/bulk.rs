//! Indexes filled in bulk against indexes filled by inserts: same entries, same invariants, same behaviour afterwards.

use super::random::Rng;
use super::*;
use crate::memory::Memory;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Keys of many shapes: short and long, with shared beginnings of every length, far ones, with many rows each.
fn key(shape: usize, rng: &mut Rng) -> Vec<u8> {
    match shape {
        0 => (rng.below(1 << 20) as u32).to_be_bytes().to_vec(),
        1 => vec![b'k'; rng.below(40)],
        2 => [b"a beginning that all have ".as_slice(), &(rng.below(5000) as u32).to_be_bytes()].concat(),
        3 => {
            let mut key = vec![b'x'; rng.below(700)];
            let tail = key.len().saturating_sub(rng.below(9));
            key[tail..].iter_mut().for_each(|byte| *byte = [0, b'x', 0xff][rng.below(3)]);
            key
        }
        4 => {
            // Groups whose shared beginnings end abruptly, so that a node's prefix shrinks while it is filled.
            let group = rng.below(7);
            [vec![group as u8; 30 * group], (rng.below(3000) as u16).to_be_bytes().to_vec()].concat()
        }
        _ => vec![rng.below(3) as u8; if rng.below(40) == 0 { MAX_KEY_LEN } else { rng.below(3) }],
    }
}

fn boundary(pair: &Pair) -> Boundary {
    Boundary { key: pair.0.clone(), row: RowId(pair.1) }
}

/// Fills `tree` in as many parts as there are `cuts`, and one.
fn fill<const N: usize>(tree: &BTreeIndex<N>, entries: &BTreeSet<Pair>, cuts: &BTreeSet<Pair>, percent: u8) -> bool {
    let mut bounds: Vec<Option<&Pair>> = cuts.iter().map(Some).collect();
    bounds.push(None);
    let mut low = Boundary::default();
    let parts = bounds.into_iter().map(|high| {
        let mut part = tree.part(&low, percent);
        let from = (low.key.clone(), low.row.0);
        for (key, row) in entries.range(from..).take_while(|pair| high.is_none_or(|high| *pair < high)) {
            part.push(key, RowId(*row)).expect("in order");
        }
        let high = high.map(boundary);
        let part = part.finish(high.as_ref()).expect("in order");
        low = high.unwrap_or_default();
        part
    });
    let parts = parts.collect();
    tree.fill(parts, percent)
}

fn check<const N: usize>(shape: usize, count: usize, parts: usize, percent: u8, seed: u64) {
    let mut rng = Rng(seed);
    let mut model: BTreeSet<Pair> = BTreeSet::new();
    for _ in 0..count {
        model.insert((key(shape, &mut rng), [0, 3, 400, rng.next() >> (rng.below(8) * 8)][rng.below(4)]));
    }
    let cuts: BTreeSet<Pair> = (1..parts).map(|_| (key(shape, &mut rng), rng.below(5) as u64)).collect();
    let cuts = cuts.into_iter().filter(|cut| *cut > Pair::default()).collect();
    let memory = Arc::new(Memory::new(u64::MAX));
    let tree = BTreeIndex::<N>::charged_to(Arc::clone(&memory));
    let slow = BTreeIndex::<N>::new();
    model.iter().for_each(|(key, row)| assert_eq!(slow.insert(key, RowId(*row)), Ok(true)));
    let what = format!("shape {shape}, {count} keys, {parts} parts, {percent} %, nodes of {N} words, seed {seed}");
    assert!(fill(&tree, &model, &cuts, percent), "{what}");
    assert!(verify(&tree).iter().eq(&model), "{what}");
    assert_eq!(verify(&tree), verify(&slow), "{what}");
    assert_eq!(memory.used(), tree.memory_bytes() as u64, "{what}");
    // It goes on as any other: the same changes to both.
    for _ in 0..count.min(600) {
        let pair = (key(shape, &mut rng), rng.below(1000) as u64);
        assert_eq!(tree.insert(&pair.0, RowId(pair.1)), Ok(model.insert(pair)));
        if let Some(pair) = model.range((key(shape, &mut rng), 0)..).next().cloned() {
            assert!(tree.remove(&pair.0, RowId(pair.1)));
            model.remove(&pair);
        }
    }
    assert!(verify(&tree).iter().eq(&model), "{what}, changed");
    let all: Vec<Pair> = model.iter().cloned().collect();
    assert_eq!(collect(&tree, &KeyRange::all(), Direction::Forward, 37), all);
    for (key, row) in all {
        assert!(tree.remove(&key, RowId(row)));
    }
    assert_eq!(verify(&tree), vec![], "{what}, emptied");
    assert_eq!(memory.used(), tree.memory_bytes() as u64);
    drop(tree);
    assert_eq!(memory.used(), 0);
}

#[test]
fn bulk_equals_inserts() {
    for shape in 0..6 {
        for (round, count) in [0, 1, 2, 7, 60, 400, 1500].into_iter().enumerate() {
            for (parts, percent) in [(1, 90), (4, 100), (9, 50)] {
                let seed = (shape * 1000 + round * 10 + parts) as u64;
                check::<32>(shape, count, parts, percent, seed);
                check::<64>(shape, count, parts, percent, seed);
                check::<512>(shape, count, parts, percent, seed);
            }
        }
    }
}

/// Every number of entries around the ends of pages and of the level above.
#[test]
fn bulk_at_every_size() {
    for count in 0..400u32 {
        for len in [0, 4, 11, 24] {
            let key = |n: u32| [vec![b'p'; len], n.to_be_bytes().to_vec()].concat();
            let model: BTreeSet<Pair> = (0..count).map(|n| (key(n), u64::from(n))).collect();
            let tree = BTreeIndex::<32>::new();
            assert!(fill(&tree, &model, &BTreeSet::new(), 100));
            assert!(verify(&tree).iter().eq(&model), "{count} keys of {len}");
            let next = tree.insert(&key(count), RowId(1));
            assert_eq!((next, verify(&tree).len()), (Ok(true), count as usize + 1));
        }
    }
}

#[test]
fn bulk_fills_pages_as_asked() {
    let mut rng = Rng(5);
    let model: BTreeSet<Pair> = (0..40_000).map(|n| (rng.next().to_be_bytes().to_vec(), n)).collect();
    let fills: Vec<f64> = [60, 90, 100]
        .into_iter()
        .map(|percent| {
            let tree = BTreeIndex::<512>::new();
            assert!(fill(&tree, &model, &BTreeSet::new(), percent));
            tree.leaf_fill()
        })
        .collect();
    let slow = BTreeIndex::<512>::new();
    // In another order than that of keys.
    let mut shuffled: Vec<&Pair> = model.iter().collect();
    shuffled.sort_by_key(|pair| pair.1);
    shuffled.into_iter().for_each(|(key, row)| assert_eq!(slow.insert(key, RowId(*row)), Ok(true)));
    println!("filled to {fills:?}, by inserts to {}", slow.leaf_fill());
    assert!((0.58..0.61).contains(&fills[0]) && (0.88..0.91).contains(&fills[1]) && fills[2] > 0.98, "{fills:?}");
}

#[test]
fn bulk_refuses_what_does_not_rise() {
    let tree = BTreeIndex::<64>::new();
    let push = |pairs: &[(&[u8], u64)]| {
        let low = Boundary { key: b"b".to_vec(), row: RowId(2) };
        let mut part = tree.part(&low, 90);
        pairs.iter().try_for_each(|(key, row)| part.push(key, RowId(*row)))
    };
    assert_eq!(push(&[(b"b", 2), (b"b", 3), (b"ba", 0), (b"c", 0)]), Ok(()));
    for wrong in [
        [(b"b".as_slice(), 1), (b"c", 1)],
        [(b"a", 9), (b"c", 1)],
        [(b"c", 1), (b"c", 1)],
        [(b"c", 2), (b"c", 1)],
        [(b"cc", 2), (b"c", 9)],
        [(b"cd", 2), (b"cc", 9)],
    ] {
        assert_eq!(push(&wrong), Err(Unfit::Order), "{wrong:?}");
    }
    assert_eq!(push(&[(&[b'z'; MAX_KEY_LEN + 1], 1)]), Err(Unfit::TooLong(KeyTooLong { len: MAX_KEY_LEN + 1 })));
    let end = Boundary { key: b"d".to_vec(), row: RowId(0) };
    let mut part = tree.part(&Boundary::default(), 90);
    part.push(b"d", RowId(0)).unwrap();
    assert!(part.finish(Some(&end)).is_err());
    assert_eq!(tree.insert(b"x", RowId(1)), Ok(true));
    let part = tree.part(&Boundary::default(), 90).finish(None).unwrap();
    assert!(!tree.fill(vec![part], 90), "it has an entry");
    assert_eq!(verify(&tree).len(), 1);
}
