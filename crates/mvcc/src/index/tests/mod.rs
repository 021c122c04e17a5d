//! Tests of the index: against a model, under threads, under shuttle's schedules. `verify` knows the invariants.

#[cfg(not(shuttle))]
mod bulk;
#[cfg(not(shuttle))]
mod model;
#[cfg(not(shuttle))]
mod random;
#[cfg(shuttle)]
mod schedules;
#[cfg(not(shuttle))]
mod threads;

use super::node::{FarKeys, Node, Reading};
use super::page::{HIGH, LOW, Page};
use super::tree::retry;
use super::*;
use crate::epoch::{Guard, pin};
use crate::memory::block_bytes;

type Pair = (Vec<u8>, u64);

/// What is in a tree.
#[derive(Default)]
struct Found {
    entries: Vec<Pair>,
    /// Addresses.
    leaves: Vec<u64>,
}

/// Checks N1 to N3, N5 and both counters on a tree at rest; returns its entries.
pub(super) fn verify<const N: usize>(tree: &BTreeIndex<N>) -> Vec<Pair> {
    let guard = pin();
    let mut found = Found::default();
    let (root, _) = retry(|| tree.enter(&guard));
    let bytes = walk(root, &(Vec::new(), 0), None, &mut found, &guard);
    let Found { entries, leaves } = found;
    assert!(tree.fingers().all(|leaf| leaves.contains(&leaf)), "N5");
    assert_eq!(tree.memory_bytes(), bytes + size_of::<BTreeIndex<N>>());
    assert_eq!(tree.len(), entries.len());
    assert_eq!(tree.recount(), (entries.len(), tree.memory_bytes()));
    assert!(entries.is_sorted_by(|a, b| a < b));
    entries
}

/// Checks a subtree and returns its bytes.
fn walk<const N: usize>(
    node: Reading<'_, N>,
    low: &Pair,
    high: Option<&Pair>,
    found: &mut Found,
    guard: &Guard,
) -> usize {
    let header = node.header();
    let fence = |which| {
        let mut key = Vec::new();
        let row = node.fence_into(which, &mut key).expect("at rest");
        (key, row)
    };
    assert_eq!(&fence(LOW), low);
    assert_eq!(header.endless, high.is_none());
    let shared = high.map_or(0, |high| low.0.iter().zip(&high.0).take_while(|(a, b)| a == b).count());
    assert_eq!(header.prefix, shared);
    if let Some(high) = high {
        assert_eq!(&fence(HIGH), high);
    }
    let own: Vec<Pair> = (0..header.count)
        .map(|at| {
            let (mut prefix, mut key) = (Vec::new(), Vec::new());
            node.prefix_into(header, &mut prefix).expect("at rest");
            node.key_into(header, node.slot(at), &prefix, &mut key).expect("at rest");
            assert_eq!(node.slot(at).is_far(), key.len() > Reading::<N>::NEAR_MAX, "N2");
            (key, node.row(node.slot(at)))
        })
        .collect();
    assert!(own.is_sorted_by(|a, b| a < b));
    assert!(own.iter().all(|pair| pair >= low && high.is_none_or(|high| pair < high)), "N1");
    let far = node.far_keys().map(|(_, len)| block_bytes(len)).sum::<usize>();
    let mut bytes = size_of::<Node<N>>() + far;
    if header.level == 0 {
        found.entries.extend(own);
        found.leaves.push(node.node.address());
        return bytes;
    }
    for at in 0..=header.count {
        let child = node.descend(at, guard).expect("at rest");
        assert_eq!(child.header().level + 1, header.level, "N3");
        let low = if at == 0 { low } else { &own[at - 1] };
        bytes += walk(child, low, own.get(at).or(high), found, guard);
    }
    bytes
}

/// All entries of a range, fetched by `step`.
pub(super) fn collect<const N: usize>(
    tree: &BTreeIndex<N>,
    range: &KeyRange<'_>,
    direction: Direction,
    step: usize,
) -> Vec<Pair> {
    let mut batch = EntryBatch::new();
    let mut resume: Option<Pair> = None;
    let mut found = Vec::new();
    loop {
        batch.clear();
        let after = resume.as_ref().map(|(key, row)| (key.as_slice(), RowId(*row)));
        let more = tree.scan(range, direction, after, step, &mut batch);
        assert!(batch.len() <= step);
        found.extend(batch.iter().map(|(key, row)| (key.to_vec(), row.0)));
        if !more {
            return found;
        }
        assert_eq!(batch.len(), step, "a scan stops early at its limit only");
        resume = batch.last().map(|(key, row)| (key.to_vec(), row.0));
    }
}
